"""Programs by Python's pickle, which also keeps Python functions that programs hold, by their names."""

from __future__ import annotations

from typing import Any

from ..core.program import Eqn, Program
from .reader import Reader
from .record import Writer


def reduced(program: Program) -> tuple[Any, ...]:
    """What pickle keeps of a program: tables, arrays, and objects that have no other form."""
    objects: list[Any] = []

    def keep(value: Any) -> dict[str, int]:
        objects.append(value)
        return {"kept": len(objects) - 1}

    def other(value: Any, name: str, eqn: Eqn) -> dict[str, int]:
        return keep(value)

    writer = Writer(other, keep)
    writer.program(program)
    return restored, (writer.tables, objects)


def restored(tables: dict[str, Any], objects: list[Any]) -> Program:
    """The program that pickle has kept."""
    return Reader(tables, lambda row: objects[row["kept"]]).programs[-1]
