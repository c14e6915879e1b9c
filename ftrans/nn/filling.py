"""Fillings: what cells hold for one call, in place of what they hold themselves.

A transformation puts traced values into the cells of a model while it calls the forward code, and `functional_call`
other arrays.  Models are shared by threads and tasks, so none of that is written into the cells: it is in a mapping
that the context of the call knows, and nobody else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar, copy_context
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ..base.source import at_line, user_line
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
        is_read: whether the code inside has read it.
        others: the threads in which other code has read the cell itself meanwhile.
    """

    __slots__ = ("cell", "held", "home", "is_given", "is_read", "others")

    def __init__(self, cell: ArrayCell, held: Any, home: Builder | None, is_given: bool = True) -> None:
        self.cell = cell
        self.held = held
        self.home = home
        self.is_given = is_given
        self.is_read = False
        self.others: tuple[int, ...] = ()


class Filling(dict[int, Held]):
    """What some cells hold, by `id`, and the filling around this one, which knows the others.

    Attributes:
        outer: the filling around this one.
        runs_module: whether forward code of a module has run in the call.
    """

    __slots__ = ("outer", "runs_module")

    def __init__(self) -> None:
        self.outer = filling.get()
        self.runs_module = False

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


# The fillings of the calls that run now, by `id`, with the thread of each.
_running: dict[int, tuple[Filling, int]] = {}


def note_other_read(cell: ArrayCell) -> None:
    """Note that a cell itself was read, where some call may have filled it in another thread."""
    if not _running or in_host_call():
        return
    thread = get_ident()
    for around, home in _running.copy().values():
        found = around.get(id(cell))
        if found is not None and home != thread:
            found.others = (*found.others, thread)


def _require_own_reads(graph: Graph, mine: Filling, threads: set[int | None]) -> None:
    """Raise if the code of a call has left the reading of cells to other threads, which do not see what they hold.

    Other threads may use the model on their own account.  What tells them apart is that the code of the call has never
    read the cell itself, and that the thread was started during the call, or that forward code has read no parameter.

    Raises:
        RuntimeError: it has.
    """
    values = [*mine.values()]
    missed = [i for i, held in enumerate(values) if held.others and not held.is_read]
    if not missed:
        return
    reads_none = mine.runs_module and not any([values[i].is_read for i in graph.trained])
    for i in missed:
        if reads_none or not threads.issuperset(values[i].others):
            raise RuntimeError(
                f"{graph.paths[i]} was read only by another thread while a transformation or functional_call had put "
                "something else into it, which that thread does not see: gradients and new values would be lost. "
                "Where forward code starts threads, run their functions in its context: write "
                f"executor.submit(contextvars.copy_context().run, f, x) for executor.submit(f, x){at_line(user_line())}"
            )


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
    threads = {thread.ident for thread in threading.enumerate()}
    before = []
    for i, cell in enumerate(graph.cells):
        x = arrays.get(i, cell.array)
        mine[id(cell)] = Held(cell, x, builder)
        # Assigning to elements of a traced value changes what it stands for.
        before.append((x, x.atom if x.__class__ is Tracer else None))
    filling.set(mine)
    given_modules.set(given_modules.get() | {id(m) for m in graph.modules.values()})
    _running[id(mine)] = mine, get_ident()
    try:
        out = f()
        _require_own_reads(graph, mine, threads)
        changed = {}
        for i, (held, (x, atom)) in enumerate(zip(mine.values(), before, strict=True)):
            now = held.held
            if now is not x or (atom is not None and now.atom is not atom):
                changed[i] = now
    finally:
        _running.pop(id(mine), None)
        # A task that outlives the call has a copy of its context.
        mine.clear()
    return out, changed
