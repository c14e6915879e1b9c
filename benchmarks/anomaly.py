"""What anomaly detection costs compiled functions whose results are finite: large results, and a small one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from .harness import Contender, Row, Table, time_side_by_side


def function(x: Any) -> Any:
    """The value and gradient of this are the results."""
    return numpy.sum(numpy.sin(x) ** 2 * numpy.exp(-x))


def run() -> Table:
    return Table(
        "anomaly: compiled functions without and with the check of their results",
        [
            row("gradient, 10,000,000 numbers", gradient, 10_000_000, at_most=1.1),
            row("gradient, 1,000,000 numbers", gradient, 1_000_000, at_most=1.1),
            row("2 x + 1, 10,000,000 numbers", affine, 10_000_000, at_most=1.1),
            row("2 x + 1, 1,000,000 numbers", affine, 1_000_000),
            row("gradient, 100 numbers", gradient, 100),
        ],
    )


def gradient() -> Callable[..., Any]:
    import ftrans as ft

    return ft.jit(ft.grad(function))


def affine() -> Callable[..., Any]:
    import ftrans as ft

    return ft.jit(lambda x: x * 2.0 + 1.0)


def row(label: str, make: Callable[[], Callable[..., Any]], size: int, at_most: float | None = None) -> Row:
    import ftrans as ft

    f = make()
    x = numpy.random.default_rng(0).uniform(0.5, 2.0, size)
    contenders = {
        "without": Contender(lambda: f(x)),
        "checked": Contender(lambda: f(x), ft.debug.detect_anomaly),
    }
    timings = time_side_by_side(contenders, reference="without", seconds=6.0)
    columns = {name: timings.typical(name) for name in contenders}
    return Row(label, columns, [timings.ratio("checked", "without", at_most)])
