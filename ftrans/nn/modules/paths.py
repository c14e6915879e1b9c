"""Paths: all ways from a module to its cells; the graph has only the first of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..cells.array_cell import ArrayCell
from ..cells.kinds import Buffer, RngState
from .bare import REMEMBERED, BareModule, joined
from .nested import attributes, walk


def children_of(module: BareModule) -> Iterator[tuple[str, Any]]:
    """The cells and modules among the attributes, also in lists and dicts, with their names."""
    for name, x in attributes(module).items():
        if name != "_hooks" and name not in REMEMBERED:
            for where, part in walk(name, x):
                if isinstance(part, ArrayCell | BareModule):
                    yield where, part


def all_paths(module: BareModule, prefix: str = "", above: tuple[int, ...] = ()) -> Iterator[tuple[str, ArrayCell]]:
    """All paths to cells; a cell that is reached twice appears twice."""
    for name, x in children_of(module):
        path = joined(prefix, name)
        if isinstance(x, ArrayCell):
            yield path, x
        elif id(x) not in above:
            yield from all_paths(x, path, (*above, id(module)))


def all_modules(module: BareModule, prefix: str = "", above: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """All paths to modules, this one included; a module that is reached twice appears twice."""
    yield prefix, module
    for name, x in children_of(module):
        if isinstance(x, BareModule) and id(x) not in (*above, id(module)):
            yield from all_modules(x, joined(prefix, name), (*above, id(module)))


def is_saved(cell: ArrayCell, rng: bool) -> bool:
    """Whether a cell is part of the state dictionary; streams of random numbers only with `rng`."""
    if isinstance(cell, RngState):
        return rng
    return not isinstance(cell, Buffer) or cell.persistent


def tied(cells: Mapping[str, ArrayCell]) -> Iterator[tuple[str, str]]:
    """Pairs of paths that lead to the same cell."""
    firsts: dict[int, str] = {}
    for path, cell in cells.items():
        first = firsts.setdefault(id(cell), path)
        if first != path:
            yield first, path
