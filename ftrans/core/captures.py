"""What a program closes over, as it was when it was used.

A program runs when the code that wrote it is over, and a value that it closes over may have changed by then, or from
one use to the next.  So arrays are copied as long as the copies are not too large together; a changed one is another
array.  What is too large, and what is more than an array, is looked at again at each use and at the end instead.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

import numpy as np

from ..base.cell import Holder
from ..base.checksum import checksum, has_same_bits, is_frozen
from ..base.source import Line, at_line, user_line
from .program import Atom, Const, Var, literal
from .tape import Tape
from .types import ArrayType, type_of

# Captured arrays up to this size are one if they hold the same, such as those made in each step of a loop.
_SMALL_BYTES = 1 << 16

# How much of what one program closes over, with the programs inside of it, is copied.
_COPIED_BYTES = 1 << 26

_FROZEN = b"frozen"


class _Watched(NamedTuple):
    """A value that a program has itself: what tells whether it is still what it was, and who used it first."""

    value: Any
    state: Any
    line: Line | None


class _Copies:
    """The copies of arrays, with the arrays, so that the `id` of one is not given to another one.

    Attributes:
        latest: for the `id` of an array, the array and the last copy of it.
        all: the copies by their own `id`; what has been copied once need not be copied again.
        nbytes: how much they are together.
    """

    __slots__ = ("all", "latest", "nbytes")

    def __init__(self) -> None:
        self.latest: dict[int, tuple[Any, Any]] = {}
        self.all: dict[int, Any] = {}
        self.nbytes = 0


class Captures:
    """What one program closes over, each an input of it.

    Attributes:
        values: arrays, tensors, cells, and tracers of programs around it.
        vars: the inputs that stand for them.

    Args:
        tape: where the program is written.
        outer: what the program around it closes over, so that both have one copy.
    """

    __slots__ = ("_by_identity", "_copies", "_outer", "_tape", "_watched", "values", "vars")

    def __init__(self, tape: Tape, outer: Captures | None) -> None:
        self.values: list[Any] = []
        self.vars: list[Var] = []
        self._tape = tape
        self._outer = outer
        self._by_identity: dict[Any, Var] = {}
        self._copies: _Copies | None = None
        self._watched: dict[int, _Watched] | None = None

    def add(self, identity: Any, value: Any, type: ArrayType) -> Var:
        """The input for a value, which is the one that an equal identity has got already."""
        var = self._by_identity.get(identity)
        if var is None:
            var = self._by_identity[identity] = self._tape.capture(type)
            self.values.append(value)
            self.vars.append(var)
        return var

    def add_number(self, number: Const) -> Var:
        """The input for a number, which may be another one in the next call."""
        return self.add(("scalar", number), number.value, number.type)

    def add_array(self, x: Any) -> Atom:
        """What an array, a number, a tensor or a cell is in the program."""
        type = type_of(x)
        if not isinstance(x, np.ndarray):
            if isinstance(x, np.generic | bool | int | float | complex):
                const = literal(x, type)
                return self.add_number(const) if self._tape.is_shared else const
            if isinstance(x, Holder):
                self._taken(x)
        elif x.nbytes <= _SMALL_BYTES and not is_frozen(x):
            identity = ("copy", type, x.strides if x.ndim > 1 else None, x.tobytes())
            return self.add(identity, x.copy("K"), type)
        else:
            x = self._taken(x)
        return self.add(("array", id(x)), x, type)

    def _taken(self, x: Any) -> Any:
        """What stands in the program for `x` as it is now: `x` itself, or a copy that nobody writes to.

        Raises:
            ValueError: there is no copy of what it was at an earlier use, and it has changed.
        """
        if self._watched is None:
            self._watched = {}
        watched = self._watched.get(id(x))
        if watched is not None:
            _require_unchanged(watched)
            return x
        copies = self._all_copies()
        if id(x) in copies.all:
            return x
        _, copy = copies.latest.get(id(x), (None, None))
        if copy is not None and has_same_bits(x, copy):
            return copy
        if isinstance(x, np.ndarray) and copies.nbytes + x.nbytes <= _COPIED_BYTES and not is_frozen(x):
            copy = x.copy(order="K")
            copy.flags.writeable = False
            copies.nbytes += x.nbytes
            copies.latest[id(x)] = x, copy
            copies.all[id(copy)] = copy
            return copy
        self._watched[id(x)] = _Watched(x, _state(x), user_line())
        return x

    def _all_copies(self) -> _Copies:
        if self._copies is None:
            self._copies = _Copies() if self._outer is None else self._outer._all_copies()
        return self._copies

    def check(self, needed: Container[Var] | None = None) -> None:
        """Raise if what was not copied is no longer what it was; where only some inputs are `needed`, if those are.

        Raises:
            ValueError: a value has changed.
        """
        for watched in (self._watched or {}).values():
            if needed is None or self._by_identity.get(("array", id(watched.value))) in needed:
                _require_unchanged(watched)


def _state(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.shape, x.dtype, _FROZEN if is_frozen(x) else checksum(x)
    held = x.concrete()
    if not isinstance(held, np.ndarray | np.generic):
        return id(held)
    return held.shape, held.dtype, checksum(np.asarray(held))


def _require_unchanged(watched: _Watched) -> None:
    x = watched.value
    if _state(x) == watched.state:
        return
    if isinstance(x, np.ndarray):
        what, instead = f"an array of shape {x.shape}", "write `a = a + b` instead of `a += b`"
    else:
        what, instead = f"a {type(x).__name__} of shape {tuple(x.shape)}", "compute a new one instead of changing it"
    raise ValueError(
        f"{what} was used and then overwritten inside one traced function; the program sees it only once, so "
        f"{instead}, or pass it as an argument" + at_line(watched.line)
    )
