"""Captures: the values that a program closes over, as they were when they were used.

A program runs after the code that wrote it has finished, and a value that it closes over may have changed by then, or
between two uses.  So arrays are copied, up to a total size; an array that has changed is captured again as another one.
Larger arrays, and tensors and cells, are checked for changes at each use and at the end instead.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from ..base.cell import Holder
from ..base.checksum import checksum, has_same_bits, is_frozen
from ..base.forward_code import plain
from ..base.source import Line, at_line, user_line
from ..base.type_questions import is_plain
from .program import Atom, Const, Var, literal
from .tape import Tape
from .types import ArrayType, type_of

# Captured arrays up to this size are merged if they are equal, such as those created in each step of a loop.
_SMALL_BYTES = 1 << 16

# How many bytes of the arrays that one program and its sub-programs close over are copied.
_COPIED_BYTES = 1 << 26

_FROZEN = b"frozen"


class _Watched(NamedTuple):
    """A captured value that is not copied: a check that it is unchanged, and the line that used it first."""

    value: Any
    state: Any
    line: Line | None


class _Copies:
    """Copies of arrays, stored with the originals, so that the `id` of an original is not reused.

    Attributes:
        latest: for the `id` of an array, the array and the last copy of it.
        all: the copies by their own `id`; a copy need not be copied again.
        nbytes: total size of the copies.
    """

    __slots__ = ("all", "latest", "nbytes")

    def __init__(self) -> None:
        self.latest: dict[int, tuple[Any, Any]] = {}
        self.all: dict[int, Any] = {}
        self.nbytes = 0


class Captures:
    """The values that one program closes over; each is an input of it.

    Attributes:
        values: arrays, tensors, cells, and tracers of programs around it.
        vars: the inputs that stand for them.
        originals: of a program that is kept, the arrays of the user that it and its sub-programs close over, by `id`,
            each with the checksum of what was captured; None for other programs.

    Args:
        tape: the tape of the program.
        outer: the captures of the enclosing program, so that both share one copy.
    """

    __slots__ = ("_by_identity", "_copies", "_outer", "_tape", "_watched", "originals", "values", "vars")

    def __init__(self, tape: Tape, outer: Captures | None) -> None:
        self.values: list[Any] = []
        self.vars: list[Var] = []
        self.originals: dict[int, tuple[ref[Any], bytes]] | None = None if outer is None else outer.originals
        self._tape = tape
        self._outer = outer
        self._by_identity: dict[Any, Var] = {}
        self._copies: _Copies | None = None
        self._watched: dict[int, _Watched] | None = None

    def add(self, identity: Any, value: Any, type: ArrayType) -> Var:
        """The input for a value; equal identities share one input."""
        var = self._by_identity.get(identity)
        if var is None:
            var = self._by_identity[identity] = self._tape.capture(type)
            self.values.append(value)
            self.vars.append(var)
        return var

    def add_number(self, number: Const) -> Var:
        """The input for a number that may differ in the next call."""
        return self.add(("scalar", number), number.value, number.type)

    def add_array(self, x: Any) -> Atom:
        """The variable or constant for an array, a number, a tensor or a cell."""
        x = plain(x)
        type = type_of(x)
        if not is_plain(x, np.ndarray):
            if is_plain(x, np.generic | bool | int | float | complex):
                const = literal(x, type)
                return self.add_number(const) if self._tape.is_shared else const
            if isinstance(x, Holder):
                self._taken(x)
            return self.add(("array", id(x)), x, type)
        if self.originals is not None:
            self._note(x, self.originals)
        if x.nbytes <= _SMALL_BYTES and not is_frozen(x):
            identity = ("copy", type, x.strides if x.ndim > 1 else None, x.tobytes())
            return self.add(identity, x.copy("K"), type)
        x = self._taken(x)
        return self.add(("array", id(x)), x, type)

    def _note(self, x: Any, originals: dict[int, tuple[ref[Any], bytes]]) -> None:
        known = originals.get(id(x))
        # The `id` of an array that is gone may be used again.
        if (known is None or known[0]() is not x) and not is_frozen(x):
            originals[id(x)] = ref(x), checksum(x)

    def _taken(self, x: Any) -> Any:
        """The value to capture for `x` as it is now: `x` itself, or a copy that nobody writes to.

        Raises:
            ValueError: `x` was not copied at an earlier use, and has changed since.
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
        if is_plain(x, np.ndarray) and copies.nbytes + x.nbytes <= _COPIED_BYTES and not is_frozen(x):
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
        """Raise if a value that was not copied has changed; `needed` limits the check to some inputs.

        Raises:
            ValueError: a value has changed.
        """
        for watched in (self._watched or {}).values():
            if needed is None or self._by_identity.get(("array", id(watched.value))) in needed:
                _require_unchanged(watched)


def _state(x: Any) -> Any:
    if is_plain(x, np.ndarray):
        return x.shape, x.dtype, _FROZEN if is_frozen(x) else checksum(x)
    held = x.concrete()
    if not isinstance(held, np.ndarray | np.generic):
        return id(held)
    return held.shape, held.dtype, checksum(np.asarray(held))


def _require_unchanged(watched: _Watched) -> None:
    x = watched.value
    if _state(x) == watched.state:
        return
    if is_plain(x, np.ndarray):
        what, instead = f"an array of shape {x.shape}", "write `a = a + b` instead of `a += b`"
    else:
        what, instead = f"a {type(x).__name__} of shape {tuple(x.shape)}", "compute a new one instead of changing it"
    raise ValueError(
        f"{what} was used and then overwritten inside one traced function; the program sees it only once, so "
        f"{instead}, or pass it as an argument" + at_line(watched.line)
    )
