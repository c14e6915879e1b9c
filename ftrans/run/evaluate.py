"""evaluate(): running a program on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.program import Program
from .straightline import compiled


def evaluate(program: Program, args: Sequence[Any]) -> list[Any]:
    """Run `program` on NumPy arrays, through the straight-line Python that it is translated to once.

    Returns:
        One fresh, writable array (or NumPy scalar) per output.
    """
    return program.derive("straight line", lambda: compiled(program))(args)


Program.evaluator = evaluate
