"""Fillings: what cells hold for one call, in place of what they hold themselves.

A transformation puts traced values into the cells of a model while it calls the forward code, and `functional_call`
other arrays.  Models are shared by threads and tasks, so none of that is written into the cells: it is in a mapping
that the context of the call knows, and nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any

from ..core.trace import Builder, Tracer, current_builder
from ..ops.host import in_host_call

if TYPE_CHECKING:
    from .array_cell import ArrayCell
    from .graph import Graph


class Held:
    """What one cell holds for a call.

    Attributes:
        cell: the cell, which the mapping keeps alive, since it knows it by `id`.
        held: what it holds.
        home: the trace that it belongs to, which alone may change it.
        is_given: whether whoever made the call was given the cell, as opposed to code inside that has changed it.
    """

    __slots__ = ("cell", "held", "home", "is_given")

    def __init__(self, cell: ArrayCell, held: Any, home: Builder | None, is_given: bool = True) -> None:
        self.cell = cell
        self.held = held
        self.home = home
        self.is_given = is_given


class Filling(dict[int, Held]):
    """What some cells hold, by `id`, and the filling around this one, which knows the others."""

    __slots__ = ("outer",)

    def __init__(self) -> None:
        self.outer = filling.get()

    def find(self, key: int) -> Held | None:
        """What holds for a cell here; None if it holds what it holds itself."""
        around: Filling | None = self
        while around is not None:
            found = around.get(key)
            if found is not None:
                return found
            around = around.outer
        return None


filling: ContextVar[Filling | None] = ContextVar("what cells hold", default=None)
# The filling of the forward code that runs on tensors.  Tensors that it puts into cells are there until the outermost
# module has run: what the code reads from them again has its gradient.
holding_tensors: ContextVar[Filling | None] = ContextVar("cells that hold tensors", default=None)
# The modules that a running transformation was given.
given_modules: ContextVar[frozenset[int]] = ContextVar("modules given to transformations", default=frozenset())


def read_cells(cells: Sequence[ArrayCell]) -> list[Any]:
    """What cells hold here."""
    if filling.get() is None:
        return [cell.held for cell in cells]
    return [cell.array for cell in cells]


def write_cells(cells: Sequence[ArrayCell], places: Sequence[int], values: Sequence[Any]) -> None:
    """Put values into the cells at these places: all of them, or none if an interrupt comes."""
    has_own = filling.get() is None
    before = [cells[place].held if has_own else cells[place].array for place in places]
    try:
        if has_own:
            for place, x in zip(places, values, strict=True):
                cells[place].held = x
        else:
            for place, x in zip(places, values, strict=True):
                cells[place].array = x
    except BaseException:
        for place, x in zip(places, before, strict=True):
            cells[place].array = x
        raise


def in_turn(locks: Sequence[AbstractContextManager[Any]], f: Callable[..., Any], *args: Any) -> Any:
    """Call a function while nobody else has one of these locks.

    Code that a compiled program calls on the host has none: what waits for it may hold them.
    """
    if not locks or in_host_call():
        return f(*args)
    with locks[0]:
        return in_turn(locks[1:], f, *args)


def call_filled(graph: Graph, arrays: Mapping[int, Any], f: Callable[[], Any]) -> tuple[Any, dict[int, Any]]:
    """Call a function while the cells of a graph hold other arrays, which the function may change.

    Args:
        graph: the cells, all of which the function may change.
        arrays: what they hold, by place; the others hold what they held.
        f: the function.

    Returns:
        Its result, and what the cells hold that it has changed, by place.
    """
    # A context of its own is left whole, whatever happens inside, be it an interrupt.
    return copy_context().run(_call, graph, arrays, f)


def _call(graph: Graph, arrays: Mapping[int, Any], f: Callable[[], Any]) -> tuple[Any, dict[int, Any]]:
    builder = current_builder()
    mine = Filling()
    before = []
    for i, cell in enumerate(graph.cells):
        x = arrays.get(i, cell.array)
        mine[id(cell)] = Held(cell, x, builder)
        # Assigning to elements of a traced value changes what it stands for.
        before.append((x, x.atom if x.__class__ is Tracer else None))
    filling.set(mine)
    given_modules.set(given_modules.get() | {id(m) for m in graph.modules.values()})
    try:
        out = f()
        changed = {}
        for i, (held, (x, atom)) in enumerate(zip(mine.values(), before, strict=True)):
            now = held.held
            if now is not x or (atom is not None and now.atom is not atom):
                changed[i] = now
    finally:
        # A task that outlives the call has a copy of its context.
        mine.clear()
    return out, changed
