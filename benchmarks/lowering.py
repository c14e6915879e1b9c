"""What happens before XLA compiles: tracing, transforming and lowering a long function and its gradient."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy

from .harness import Contender, Row, Table, time_side_by_side
from .libraries import available, ftrans, jax_on

LongFunction = Callable[[Any, int, Any], Any]


def run() -> Table:
    return Table(
        "lowering: from a Python function to its gradient's StableHLO, before XLA",
        [row("elementwise", elementwise), row("mixed", mixed)],
    )


def row(label: str, function: LongFunction) -> Row:
    import jax

    x = numpy.linspace(0.1, 1.0, 20)
    with jax.enable_x64(True):
        equations = len(jax.make_jaxpr(functools.partial(function, jax.numpy, 0))(x).eqns)
    cpu = jax.devices("cpu")[0]
    libraries = available({"ftrans": ftrans, "jax": functools.partial(jax_on, cpu)})
    gradients = {name: library.contender(lambda np, x: function(np, 0, x), (x,)) for name, library in libraries.items()}
    wrong = time_side_by_side(gradients, reference="jax", patience=0.0).failures
    lowerings = {"jax": Contender(lowered(jax, jax.numpy, function, x), lambda: jax.enable_x64(True))}
    if "ftrans" in libraries:
        import ftrans as ft

        lowerings["ftrans"] = Contender(lowered(ft, numpy, function, x))
    timings = time_side_by_side(lowerings, seconds=8.0, patience=10.0)
    columns = {name: wrong.get(name, timings.typical(name)) for name in ("ftrans", "jax")}
    return Row(f"{label}, {equations:,} equations", columns, [timings.ratio("ftrans", "jax", at_most=0.6)])


def lowered(library: Any, np: Any, function: LongFunction, x: numpy.ndarray) -> Callable[[], Any]:
    """Lower a function never seen before, neither as an object nor in its structure: no cache can help."""
    variants = itertools.count(1)

    def lower() -> Any:
        variant = next(variants)
        return library.jit(library.grad(lambda x: function(np, variant, x))).lower(x)

    return lower


def elementwise(np, variant, x):
    y = x
    for step in range(200):
        bend = np.cos if step == variant else np.sin
        y = bend(y) * x + np.exp(-(y * y))
    return np.sum(y)


def mixed(np, variant, x):
    weights = np.outer(x, x)
    y = x
    for step in range(85):
        bend = np.arctan if step == variant else np.tanh
        z = bend(weights @ y + y[::-1])
        z = np.concatenate([z[1:], z[:1]]) - np.mean(z)
        y = z / (1.0 + np.max(z**2)) + 0.1 * x
    return np.sum(y)
