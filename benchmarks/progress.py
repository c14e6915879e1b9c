"""What a progress bar costs: a loop of 1,000 steps of about 1 ms, with and without one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import numpy

from .harness import Contender, Row, Table, time_side_by_side

STEPS = 1_000
SIZE = 200


def run() -> Table:
    return Table(
        f"progress: {STEPS} steps of a product of matrices and a sine, {SIZE} by {SIZE}",
        [row("un-jitted", lambda f: f), row("compiled", jitted)],
    )


def row(label: str, way: Callable[..., Any]) -> Row:
    contenders = {
        "without": contender(way, False),
        "with a bar": contender(way, "steps"),
    }
    timings = time_side_by_side(contenders, reference="without", seconds=12.0, patience=10.0)
    columns = {name: timings.typical(name) for name in contenders}
    return Row(label, columns, [timings.ratio("with a bar", "without", at_most=1.05)])


def jitted(f: Callable[..., Any]) -> Callable[..., Any]:
    import ftrans as ft

    return ft.jit(f)


def contender(way: Callable[..., Any], progress: bool | str) -> Contender:
    import ftrans as ft

    matrix = numpy.linalg.qr(numpy.random.default_rng(0).normal(size=(SIZE, SIZE)))[0]

    def loop(x: Any) -> Any:
        return ft.scan(lambda y, _: (numpy.sin(matrix @ y), None), x, length=STEPS, progress=progress)[0]

    run_loop = way(loop)
    return Contender(lambda: run_loop(matrix), nowhere)


@contextlib.contextmanager
def nowhere() -> Any:
    """A scope in which bars are drawn to nowhere."""
    with open(os.devnull, "w") as stream, contextlib.redirect_stderr(stream):
        yield
