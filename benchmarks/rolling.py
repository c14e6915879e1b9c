"""Loops of Python, compiled as loops and with every step by itself, beside `jax.lax.scan` written by hand."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy

from .harness import Contender, Row, Table, time_side_by_side
from .plain import by_jax_with_care, until_first_result, warm_up
from .plain_problems.loops import body_problem, heat_problem, kalman_problem, recurrent_problem, runge_kutta_problem
from .plain_problems.problem import Problem


def run() -> Table:
    warm_up()
    # Few steps: compiling each of them takes minutes soon.
    problems = [
        body_problem(100),
        body_problem(400),
        runge_kutta_problem(20),
        kalman_problem(50),
        heat_problem(40),
        recurrent_problem(50),
    ]
    return Table("rolling: gradients of loops of Python, compiled", [row for p in problems for row in compare(p)])


def by_ftrans(roll: bool) -> Callable[[Problem, Any], Contender]:
    def maker(problem: Problem, arguments: Any) -> Contender:
        import ftrans as ft

        function = functools.partial(problem.plain, numpy)
        return Contender(functools.partial(ft.jit(ft.grad(function), roll=roll), *arguments))

    return maker


def compare(problem: Problem) -> list[Row]:
    """One row for a call, and one for the time until the first result."""
    print(f"  {problem.label}", file=sys.stderr)
    arguments = problem.arguments(numpy.random.default_rng(0))
    makers = {"rolled": by_ftrans(True), "every step": by_ftrans(False), "jax.lax.scan": by_jax_with_care}
    first = {name: until_first_result(maker, problem, arguments) for name, maker in makers.items()}
    made = {name: maker(problem, arguments) for name, maker in makers.items()}
    timings = time_side_by_side(made, reference="jax.lax.scan")
    verdicts = [timings.ratio("rolled", name) for name in made if name != "rolled"]
    return [
        Row(problem.label, {name: timings.typical(name) for name in made}, verdicts),
        Row("  first result", first),
    ]
