"""Fillings: the values that cells have during one call, in place of their own arrays.

A transformation puts traced values into the cells of a model while it calls the forward code, and `functional_call`
other arrays.  Models are shared by threads and tasks, so none of that is written into the cells: it is in a mapping
that only the context of the call refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from threading import get_ident
from typing import Any

from ...base.cell import Cell
from ...core.trace import Builder, current_builder
from ...ops.host import in_host_call


class Held:
    """The value of one cell during a call.

    Attributes:
        cell: the cell; the mapping, whose key is its `id`, keeps it alive.
        held: the value.
        home: the trace that the value belongs to, the only one that may change it.
        is_given: whether the cell is an argument of the call, as opposed to one that code inside has changed.
        is_read: whether code inside the call has read it.
        others: threads in which other code has read the cell's own array meanwhile.
    """

    __slots__ = ("cell", "held", "home", "is_given", "is_read", "others")

    def __init__(self, cell: Any, held: Any, home: Builder | None, is_given: bool = True) -> None:
        self.cell = cell
        self.held = held
        self.home = home
        self.is_given = is_given
        self.is_read = False
        self.others: tuple[int, ...] = ()


class Filling(dict[int, Held]):
    """The values of some cells, by `id`; the enclosing filling has those of other cells.

    Attributes:
        outer: the enclosing filling.
        modules: the modules, by `id`, that are arguments of the running transformations.
        tensors: the filling of the outermost forward code that runs on tensors.  Tensors that the code assigns to cells
            stay there until it has run, so that reading them again keeps their gradients.
        taking: the filling that carries changes out of an inner trace, if there is one.
        runs_module: whether forward code of a module has run in the call.
    """

    __slots__ = ("modules", "outer", "runs_module", "taking", "tensors")

    modules: frozenset[int]
    tensors: Filling | None
    taking: Taking | None

    def __init__(self, modules: Iterable[int] = ()) -> None:
        outer = self.outer = filling.get()
        if outer is None:
            self.modules, self.tensors, self.taking = frozenset(modules), None, None
        else:
            self.modules, self.tensors, self.taking = outer.modules.union(modules), outer.tensors, outer.taking
        self.runs_module = False

    def find(self, key: int) -> Held | None:
        """The value of a cell in this call; None if it has its own array."""
        around: Filling | None = self
        while around is not None:
            found = around.get(key)
            if found is not None:
                return found
            around = around.outer
        return None


class Taking(Filling):
    """Changes that separately traced code makes to cells of the enclosing trace; it grows with each changed cell.

    Attributes:
        home: the enclosing trace.
        inner: the trace of the code itself.
        around: what carries changes out of the enclosing trace, in turn.
    """

    __slots__ = ("around", "home", "inner")

    def __init__(self, home: Builder | None) -> None:
        super().__init__()
        self.home, self.inner, self.around = home, current_builder(), self.taking
        self.taking = self

    def take(self, cell: Any) -> bool:
        """Let a cell be changed in the running trace, if that is the inner one; return whether it may be."""
        place = cell.place()
        if current_builder() is not self.inner or not self._reaches(place.home):
            return False
        self[id(cell)] = Held(cell, place.held, self.inner, isinstance(place, Held) and place.is_given)
        return True

    def _reaches(self, home: Builder | None) -> bool:
        """Whether a change can be carried out to a trace, by this filling and the enclosing ones."""
        around = self.around
        return home is self.home or (around is not None and around.inner is self.home and around._reaches(home))


filling: ContextVar[Filling | None] = ContextVar("what cells hold", default=None)
# Fillings of the running calls, by `id`, with the thread of each.
running: dict[int, tuple[Filling, int]] = {}


def note_other_read(cell: Cell) -> None:
    """Note that a cell's own array was read, where a call in another thread may have filled the cell."""
    if not running or in_host_call():
        return
    thread = get_ident()
    for around, home in running.copy().values():
        found = around.get(id(cell))
        if found is not None and home != thread:
            found.others = (*found.others, thread)


def in_turn(locks: Sequence[AbstractContextManager[Any]], f: Callable[..., Any], *args: Any) -> Any:
    """Call a function while holding these locks.

    Code that a compiled program calls on the host takes none of them: whoever waits for it may hold them.
    """
    if not locks or in_host_call():
        return f(*args)
    with locks[0]:
        return in_turn(locks[1:], f, *args)
