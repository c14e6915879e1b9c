"""The steady-state time of compiled gradients, over a set of functions that people differentiate."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from .harness import Contender, Row, Table, time_side_by_side
from .libraries import Library, autograd, available, ftrans, ftrans_jit, ftrans_jit_on, jax_jit, jax_jit_on, torch_on
from .problems import PROBLEMS, Problem

Libraries = Mapping[str, Callable[[], Library]]


def run(device: Any) -> Table:
    return Table(
        f"compiled: steady-state time of a gradient, on {device.device_kind}",
        [row for problem in PROBLEMS for row in rows(problem, device, at_most=1.05)],
    )


def rows(problem: Problem, device: Any, at_most: float) -> list[Row]:
    """JAX arrays on `device` in and out; on the CPU also NumPy in and out, and libraries that do not compile."""
    print(f"  {problem.name}", file=sys.stderr)
    peers = {"ftrans jit": functools.partial(ftrans_jit_on, device), "jax jit": functools.partial(jax_jit_on, device)}
    torch: Libraries = {"torch": functools.partial(torch_on, device)}
    if device.platform != "cpu":
        return [row(problem.name, problem, peers, torch, at_most)]
    others: Libraries = {"ftrans": ftrans, "autograd": autograd, **torch}
    return [
        row(problem.name, problem, peers, others, at_most),
        row("- NumPy in and out", problem, {"ftrans jit": ftrans_jit, "jax jit": jax_jit}, {}),
    ]


def row(label: str, problem: Problem, peers: Libraries, others: Libraries, at_most: float | None = None) -> Row:
    """The two `peers` are judged undisturbed by the threads and the memory of the `others`."""
    judged = contenders(problem, peers)
    timings = time_side_by_side(judged, reference="jax jit", seconds=2.5)
    columns = {name: timings.typical(name) for name in peers}
    if others:
        reference = {"jax jit": judged["jax jit"]}
        beside = time_side_by_side(reference | contenders(problem, others), reference="jax jit", patience=0.2)
        columns |= {name: beside.typical(name) for name in others}
    return Row(label, columns, [timings.ratio("ftrans jit", "jax jit", at_most)])


def contenders(problem: Problem, libraries: Libraries) -> dict[str, Contender]:
    arguments = problem.arguments(numpy.random.default_rng(1))
    made = {}
    for name, library in available(libraries).items():
        function = functools.partial(problem.function, scan=library.scan) if problem.scans else problem.function
        made[name] = library.contender(function, arguments)
    return made
