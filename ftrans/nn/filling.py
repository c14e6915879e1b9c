"""Fillings: what cells hold for one call, in place of what they hold themselves.

A transformation puts traced values into the cells of a model while it calls the forward code, and `functional_call`
other arrays.  Models are shared by threads and tasks, so none of that is written into the cells: it is in a mapping
that the context of the call knows, and nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from threading import get_ident
from typing import Any

from ..base.cell import Cell
from ..core.trace import Builder, current_builder
from ..ops.host import in_host_call


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

    def __init__(self, cell: Any, held: Any, home: Builder | None, is_given: bool = True) -> None:
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
        modules: the modules, by `id`, that the transformations which run were given.
        tensors: the filling of the outermost forward code that runs on tensors.  Tensors that it puts into cells are
            there until it has run: what the code reads from them again has its gradient.
        taking: the filling that takes changes out of an inner trace, where one does.
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
        """What holds for a cell here; None if it holds what it holds itself."""
        around: Filling | None = self
        while around is not None:
            found = around.get(key)
            if found is not None:
                return found
            around = around.outer
        return None


class Taking(Filling):
    """What code that is traced on its own puts into cells of the trace around it: it grows with what is changed.

    Attributes:
        home: the trace around it.
        inner: its own trace.
        around: what takes changes of the trace around it further.
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
        """Whether a change can be taken out to a trace, by this and by what takes it further."""
        around = self.around
        return home is self.home or (around is not None and around.inner is self.home and around._reaches(home))


filling: ContextVar[Filling | None] = ContextVar("what cells hold", default=None)
# The fillings of the calls that run now, by `id`, with the thread of each.
running: dict[int, tuple[Filling, int]] = {}


def note_other_read(cell: Cell) -> None:
    """Note that a cell itself was read, where some call may have filled it in another thread."""
    if not running or in_host_call():
        return
    thread = get_ident()
    for around, home in running.copy().values():
        found = around.get(id(cell))
        if found is not None and home != thread:
            found.others = (*found.others, thread)


def in_turn(locks: Sequence[AbstractContextManager[Any]], f: Callable[..., Any], *args: Any) -> Any:
    """Call a function while nobody else has one of these locks.

    Code that a compiled program calls on the host has none: what waits for it may hold them.
    """
    if not locks or in_host_call():
        return f(*args)
    with locks[0]:
        return in_turn(locks[1:], f, *args)
