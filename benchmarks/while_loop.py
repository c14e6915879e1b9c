"""Compiled reverse mode through a loop whose number of steps is not known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from .harness import Contender, Row, Table, time_side_by_side

CHECKPOINTS = 64
SIZE = 64
Loop = Callable[..., Any]


def run() -> Table:
    return Table(
        f"while_loop: gradient through {SIZE} numbers, by {CHECKPOINTS} checkpoints (ftrans, equinox) or with a bound",
        [row(1_000), row(100_000)],
    )


def row(steps: int) -> Row:
    contenders = {"ftrans": ftrans(steps), "ftrans max_steps": ftrans(steps, max_steps=steps)}
    try:
        contenders["equinox"] = equinox(steps)
    except ModuleNotFoundError as error:
        # An equinox that is there but broken is not passed over.
        if error.name != "equinox":
            raise
    timings = time_side_by_side(contenders, reference="equinox", seconds=4.0, patience=10.0)
    ours = {name: contenders[name] for name in ("ftrans", "ftrans max_steps")}
    alone = time_side_by_side({**ours, "function alone": function(steps)}, seconds=4.0, patience=10.0)
    columns = {name: timings.typical(name) for name in ("ftrans", "ftrans max_steps", "equinox")}
    columns["function alone"] = alone.typical("function alone")
    verdicts = [
        timings.ratio("ftrans", "equinox", at_most=1.2),
        timings.ratio("ftrans max_steps", "equinox", at_most=1.2),
        # Its checkpoints make the loop run once more, or several times if it is long.
        alone.ratio("ftrans", "function alone"),
        alone.ratio("ftrans max_steps", "function alone", at_most=3.0),
    ]
    return Row(f"{steps:,} steps", columns, verdicts)


def loss(np: Any, loop: Loop, steps: int, weights: Any, x: Any) -> Any:
    def body(carry: Any) -> Any:
        index, y = carry
        return index + 1, np.sin(y * weights) + 0.1 * y

    return np.sum(loop(lambda carry: carry[0] < steps, body, x)[1] ** 2)


def arguments() -> tuple[numpy.ndarray, numpy.ndarray]:
    return 1.0 + 0.1 * numpy.random.default_rng(0).normal(size=SIZE), numpy.linspace(0.5, 1.5, SIZE)


def ftrans(steps: int, **reverse: int) -> Contender:
    import ftrans as ft

    return compiled(ft.grad(ours(steps, **reverse)))


def function(steps: int) -> Contender:
    """The loop without its gradient."""
    return compiled(ours(steps))


def ours(steps: int, **reverse: int) -> Callable[..., Any]:
    import ftrans as ft

    def loop(condition: Loop, body: Loop, x: Any) -> Any:
        return ft.while_loop(condition, body, (0, x), **reverse)

    return lambda weights, x: loss(numpy, loop, steps, weights, x)


def compiled(f: Callable[..., Any]) -> Contender:
    """JAX arrays in and out, as for its peer."""
    import jax

    import ftrans as ft

    run = ft.jit(f)
    with jax.enable_x64(True):
        own = [jax.numpy.asarray(x) for x in arguments()]
    return Contender(lambda: jax.block_until_ready(run(*own)))


def equinox(steps: int) -> Contender:
    import equinox.internal
    import jax

    def loop(condition: Loop, body: Loop, x: Any) -> Any:
        first = jax.numpy.asarray(0), x
        return equinox.internal.while_loop(condition, body, first, kind="checkpointed", checkpoints=CHECKPOINTS)

    gradient = jax.jit(jax.grad(lambda weights, x: loss(jax.numpy, loop, steps, weights, x)))
    with jax.enable_x64(True):
        own = [jax.numpy.asarray(x) for x in arguments()]
    return Contender(lambda: jax.block_until_ready(gradient(*own)), lambda: jax.enable_x64(True))
