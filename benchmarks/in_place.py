"""Loops that assign to elements of arrays: the gradient against the function, and against jax.

Compiled, the cotangent of an assignment is itself updated in place, so that a gradient takes a few times as long as the
function.  Un-jitted, a loop of Python and its gradient take time in proportion to the number of steps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from .harness import Contender, Row, Table, time_side_by_side

STEPS = 8000
COUNTS = (1000, 2000, 4000, 8000)
# A gradient may take so many times as long as its function.
MOST = 5.0


def recurrence(np: Any, loop: Any, put: Any, x: Any) -> Any:
    """`y[i] = f(y[i - 1])`."""

    def step(i: Any, y: Any) -> Any:
        return put(y, i, 0.9 * np.sin(y[i - 1]) + x[i])

    return np.sum(loop(1, len(x), step, np.copy(x)) ** 2)


def exchange(np: Any, loop: Any, put: Any, x: Any) -> Any:
    """Two elements are read and two are written in each step: a rotation of neighbours."""

    def step(i: Any, y: Any) -> Any:
        a, b = y[i - 1], y[i]
        return put(put(y, i - 1, 0.8 * a - 0.6 * b), i, 0.6 * a + 0.8 * b)

    return np.sum(loop(1, len(x), step, np.copy(x)) ** 3)


def masked(np: Any, loop: Any, put: Any, x: Any) -> Any:
    """An element is changed where a condition holds."""

    def step(i: Any, y: Any) -> Any:
        return put(y, i, np.where(y[i - 1] > 0.0, y[i] - 0.5 * y[i - 1], y[i]))

    return np.sum(loop(1, len(x), step, np.copy(x)) ** 2)


def rows(np: Any, loop: Any, put: Any, x: Any) -> Any:
    """A stencil in two dimensions that goes over the rows in place, as Gauss and Seidel do."""

    def step(i: Any, u: Any) -> Any:
        row = u[i]
        inside = 0.25 * (u[i - 1][1:-1] + u[i + 1][1:-1] + row[:-2] + row[2:])
        return put(u, i, np.concatenate([row[:1], inside, row[-1:]]))

    u = np.reshape(x, (-1, 8))
    return np.sum(loop(1, u.shape[0] - 1, step, u) ** 2)


def kalman(np: Any, loop: Any, put: Any, x: Any) -> Any:
    """A filter of position and velocity that fills arrays of means and variances."""
    move = np.array([[1.0, 0.1], [0.0, 1.0]])

    def step(i: Any, filled: Any) -> Any:
        means, variances = filled
        mean = move @ means[i - 1]
        variance = move @ variances[i - 1] @ move.T + 0.01 * np.eye(2)
        gain = variance[:, 0] / (variance[0, 0] + 0.1)
        mean = mean + gain * (x[i] - mean[0])
        variance = variance - gain[:, None] * variance[0][None, :]
        return put(means, i, mean), put(variances, i, variance)

    n = len(x)
    start = 0.0 * x[:, None] * np.ones(2), 0.0 * x[:, None, None] * np.ones((2, 2)) + np.eye(2)
    means, _ = loop(1, n, step, start)
    return np.sum((means[:, 0] - x) ** 2)


class Subject(NamedTuple):
    """A loop to measure, the size of its argument, and how many times as long as it its gradient may take.

    There is no such number where XLA runs the function's own loop as one piece of machine code, and that of any longer
    body operation by operation.
    """

    label: str
    function: Callable[..., Any]
    size: int
    most: float | None = None


SUBJECTS = [
    Subject("y[i] = f(y[i - 1])", recurrence, STEPS, MOST),
    Subject("two elements exchanged", exchange, STEPS, MOST),
    Subject("masked update", masked, STEPS, MOST),
    Subject("stencil by rows of 8", rows, 8 * 1000),
    Subject("Kalman filter", kalman, 1000),
]


def run() -> Table:
    compiled = [row(subject) for subject in SUBJECTS]
    return Table("assignment in loops: gradients of functions, compiled and as plain Python", [*compiled, *unjitted()])


def row(subject: Subject) -> Row:
    import jax
    import jax.numpy as jnp

    import ftrans as ft

    print(f"  {subject.label}", file=sys.stderr)
    x = numpy.random.default_rng(0).normal(size=subject.size)

    def assigned(y: Any, i: Any, value: Any) -> Any:
        y[i] = value
        return y

    def ours(x: Any) -> Any:
        return subject.function(numpy, ft.fori_loop, assigned, x)

    def theirs(x: Any) -> Any:
        return subject.function(jnp, jax.lax.fori_loop, lambda y, i, value: y.at[i].set(value), x)

    f, g = ft.jit(ours), ft.jit(ft.grad(ours))
    with jax.enable_x64(True):
        given = jnp.asarray(x)
    f_jax, g_jax = jax.jit(theirs), jax.jit(jax.grad(theirs))
    wide = lambda: jax.enable_x64(True)  # noqa: E731
    gradients = {
        "ftrans": Contender(lambda: g(x)),
        "jax": Contender(lambda: jax.block_until_ready(g_jax(given)), wide),
    }
    functions = {
        "ftrans": gradients["ftrans"],
        "function alone": Contender(lambda: f(x)),
        "jax": gradients["jax"],
        "jax alone": Contender(lambda: jax.block_until_ready(f_jax(given)), wide),
    }
    beside = time_side_by_side(gradients, reference="jax")
    alone = time_side_by_side(functions, patience=0.5)
    names = ("function alone", "jax alone")
    return Row(
        subject.label,
        {**{n: beside.typical(n) for n in gradients}, **{n: alone.typical(n) for n in names}},
        [
            alone.ratio("ftrans", "function alone", at_most=subject.most),
            beside.ratio("ftrans", "jax", at_most=1.0),
            alone.ratio("jax", "jax alone"),
        ],
    )


def unjitted() -> list[Row]:
    """The gradient of a loop in Python, per step: the same for any number of steps."""
    import ftrans as ft

    found: list[Row] = []
    for count in COUNTS:
        label = f"y[i] = f(y[i - 1]) in Python, {count:,} steps: gradient, per step"
        print(f"  {label}", file=sys.stderr)
        x = numpy.random.default_rng(0).normal(size=count)

        def f(x: Any) -> Any:
            y = x.copy()
            for i in range(1, len(x)):
                y[i] = 0.9 * numpy.sin(y[i - 1]) + x[i]
            return numpy.sum(y**2)

        gradient = ft.grad(f)
        timings = time_side_by_side({"ftrans": Contender(lambda: gradient(x))}, seconds=1.0, patience=10.0)  # noqa: B023
        typical = timings.typical("ftrans")
        found.append(Row(label, {"ftrans": typical if isinstance(typical, str) else typical / count}))
    return found
