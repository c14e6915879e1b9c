"""Structure: a module without its arrays, and copies of modules that are made from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...base.source import at_line
from ...core.program import Program, needed_eqns
from ...core.trace import Tracer, current_builder
from ...core.witness import CodeBuilder
from ..cells.array_cell import ArrayCell
from ..cells.kinds import Parameter
from .bare import REMEMBERED, BareModule
from .graph import graph_of, without_types
from .nested import attributes, parts_of, rebuilt


class Structure:
    """A module without its arrays: classes, attributes, and which cells are the same.

    Two structures are equal if the forward code of their modules is the same.
    """

    def __init__(self, module: BareModule) -> None:
        graph = graph_of(module)
        self.key = without_types(graph.key)
        self.paths = tuple(graph.paths)
        made: dict[int, Any] = {}
        self._skeleton = _with_cells_of_its_own(module, made)
        self._cells = [made[id(cell)] for cell in graph.cells]
        for cell in self._cells:
            # Arrays are put in when a module is made of this.
            cell.array = None

    def build(self, arrays: Any) -> Any:
        """A new module with these arrays in its cells, in the order of `paths`."""
        made: dict[int, Any] = {}
        module = _with_cells_of_its_own(self._skeleton, made)
        for cell, array in zip(self._cells, arrays, strict=True):
            made[id(cell)].array = array
        builder = current_builder()
        if isinstance(builder, CodeBuilder):
            cells = [made[id(cell)] for cell in self._cells]
            given = [
                (cell, path, cell.held)
                for cell, path in zip(cells, self.paths, strict=True)
                if isinstance(cell, Parameter)
            ]
            builder.checks.append(lambda program: _require_changes_used(program, type(module).__name__, given))
        return module

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Structure({self._skeleton!r})"


def _require_changes_used(program: Program, kind: str, given: Iterable[tuple[Parameter, str, Any]]) -> None:
    """Raise if the code has changed parameters of a copy of a module, and no result depends on any change.

    Args:
        program: what was recorded of the code.
        kind: the class of the module.
        given: parameters, their paths, and the arrays that they held before.
    """
    changed = [(cell.held, path) for cell, path, array in given if cell.held is not array and type(cell.held) is Tracer]
    if not changed:
        return
    used = {a for eqn in needed_eqns(program.eqns, program.outputs) for a in eqn.operands}.union(program.outputs)
    if used.isdisjoint([value.atom for value, _ in changed]):
        value, path = changed[0]
        raise RuntimeError(
            f"{program.name} changes {path} of {kind}, which it was given as an argument, and the new value would be "
            "lost: the transformations of ftrans pass modules and optimizers by value. Write nn.jit in place of ft.jit "
            f"(or nn.grad, nn.vmap ...), which writes changes back; or return the {kind}{at_line(value.line())}"
        )


def _with_cells_of_its_own(x: Any, made: dict[int, Any]) -> Any:
    """A copy of a module with new cells for the same arrays; parts that are the same object stay so."""
    if id(x) in made:
        return made[id(x)]
    if isinstance(x, ArrayCell):
        new: Any = x.twin()
    elif isinstance(x, BareModule):
        # No graph has met the new module yet, so the epoch stays.
        new = made[id(x)] = type(x).__new__(type(x))
        for name, value in attributes(x).items():
            if name not in REMEMBERED:
                new.__dict__[name] = part = _with_cells_of_its_own(value, made)
                new._adopt(name, part)
    elif parts_of(x) is not None:
        new = rebuilt(x, lambda part: _with_cells_of_its_own(part, made), always=True)
    else:
        return x
    made[id(x)] = new
    return new


def structure_of(module: BareModule) -> Structure:
    """The structure of a module, cached while it does not change."""
    graph = graph_of(module)
    if graph.structure is None:
        graph.structure = Structure(module)
    return graph.structure


def copy_with_cells_of_its_own(module: BareModule) -> Any:
    """A copy of a module whose cells are to be filled; until then they hold zeros that take no memory."""
    copy = _with_cells_of_its_own(module, {})
    for cell in graph_of(copy).cells:
        cell.array = np.broadcast_to(np.zeros((), cell.dtype), cell.shape)
    return copy
