"""Plain NumPy code, compiled: beside the same code in JAX, code restructured by hand for XLA, and C++."""

from __future__ import annotations

import functools
import statistics
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from .harness import Contender, Row, Table, Verdict, clock, show_seconds, time_side_by_side
from .plain_problems import Problem, native, problems

SHORT, REPEATED = 2.0, 3  # a first result that takes less than SHORT seconds is waited for several times
Maker = Callable[[Problem, Any], Contender]


def run() -> Table:
    warm_up()
    rows = [row for problem in problems() for row in compare(problem)]
    return Table("plain: derivatives of plain NumPy code, compiled, NumPy in and out", rows)


def warm_up() -> None:
    """What is imported on first use counts for nobody."""
    import jax

    import ftrans as ft

    ft.jit(ft.grad(lambda x: numpy.sum(numpy.sin(x) ** 2)))(numpy.ones(3))
    jax.jit(jax.grad(lambda x: jax.numpy.sum(jax.numpy.sin(x) ** 2)))(numpy.ones(3))


def compare(problem: Problem) -> list[Row]:
    """One row for a call, and one for the time until the first result."""
    print(f"  {problem.label}", file=sys.stderr)
    arguments = problem.arguments(numpy.random.default_rng(0))
    makers = contenders(problem)
    first = {name: until_first_result(maker, problem, arguments) for name, maker in makers.items() if name != "C++"}
    made = {name: maker(problem, arguments) for name, maker in makers.items()}
    timings = time_side_by_side(made, reference="JAX careful", seconds=2.0, patience=5.0)
    targets = problem.targets
    aims = {"JAX careful": targets.careful, "JAX plain": targets.plain, "C++": targets.cpp}
    verdicts = [timings.ratio("ftrans", name, at_most) for name, at_most in aims.items() if name in made]
    return [
        Row(problem.label, {name: timings.typical(name) for name in made}, verdicts),
        Row("  first result", first, waiting(first, problem)),
    ]


def contenders(problem: Problem) -> dict[str, Maker]:
    makers: dict[str, Maker] = {"ftrans": by_ftrans}
    if problem.is_for_jax:
        makers["JAX plain"] = by_jax
    makers["JAX careful"] = by_jax_with_care
    if problem.cpp is not None and native.COMPILER is not None:
        makers["C++"] = by_cpp
    return makers


def by_ftrans(problem: Problem, arguments: Any) -> Contender:
    import ftrans as ft

    # A function of its own, so that nothing is known of it.
    function = functools.partial(problem.plain, numpy)
    made = ft.jit(problem.derive(ft, function)) if problem.prepare is None else problem.prepare(function, arguments)
    return Contender(functools.partial(made, *arguments))


def by_jax(problem: Problem, arguments: Any) -> Contender:
    import jax

    return jax_contender(problem.derive(jax, functools.partial(problem.plain, jax.numpy)), arguments)


def by_jax_with_care(problem: Problem, arguments: Any) -> Contender:
    import jax

    return jax_contender(problem.derive_with_care(jax, functools.partial(problem.careful, jax)), arguments)


def by_cpp(problem: Problem, arguments: Any) -> Contender:
    assert problem.cpp is not None
    return Contender(functools.partial(problem.cpp, *arguments))


def jax_contender(derivative: Callable[..., Any], arguments: Any) -> Contender:
    import jax

    compiled = jax.jit(derivative)
    return Contender(lambda: jax.tree.map(numpy.asarray, compiled(*arguments)), lambda: jax.enable_x64(True))


def until_first_result(maker: Maker, problem: Problem, arguments: Any) -> float | str:
    """Seconds from a function to its first derivative, with nothing left of earlier ones."""
    import jax

    def first() -> None:
        contender = maker(problem, arguments)
        with contender.scope():
            contender.call()

    took: list[float] = []
    try:
        while not took or (len(took) < REPEATED and took[0] < SHORT):
            jax.clear_caches()
            took.append(clock(first, 1))
    except Exception as error:
        return f"failed: {type(error).__name__}: {error}"
    return statistics.median(took)


def waiting(first: Mapping[str, float | str], problem: Problem) -> list[Verdict]:
    ours, careful = first["ftrans"], first["JAX careful"]
    both = isinstance(ours, float) and isinstance(careful, float)
    verdicts = [Verdict(ours / careful if both else None, "JAX careful", problem.targets.first, "{:.2f}x".format)]
    if problem.targets.first_seconds is not None:
        seconds = ours if isinstance(ours, float) else None
        verdicts.append(Verdict(seconds, "ftrans", problem.targets.first_seconds, show_seconds))
    return verdicts
