"""The gradient of a mixture of Gaussians, the benchmark that compares differentiation tools most widely."""

from __future__ import annotations

from typing import Any

from .compiled import rows
from .harness import Table
from .problems import MIXTURES


def run(device: Any) -> Table:
    return Table(
        f"gmm: gradient of ADBench's mixture-of-Gaussians log likelihood, float64, on {device.device_kind}",
        [row for problem in MIXTURES for row in rows(problem, device, at_most=1.0)],
    )
