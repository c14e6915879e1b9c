"""Keys for values that a program depends on, which tell apart what Python holds to be equal.

`1 == 1.0 == True` and `0.0 == -0.0`, and so are tuples, sets and dataclasses of them; what a function makes of one is
not what it makes of the other.
"""

from __future__ import annotations

import dataclasses
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import copysign
from types import FunctionType
from typing import Any

import numpy as np

from .type_questions import is_plain

# Classes with an equality of the values that they hold, which leaves out what a subclass adds.
_VALUES = (
    int, float, complex, np.generic, str, bytes, tuple, frozenset, Decimal, Fraction, date, time, timedelta,
)  # fmt: skip
_NOTHING_ADDED = {bool, datetime, *_VALUES}
_EQUALITIES = {cls.__eq__ for cls in _NOTHING_ADDED}


class Identity:
    """An object as a key that is equal to itself only."""

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.x is other.x

    def __hash__(self) -> int:
        return id(self.x)

    def __repr__(self) -> str:
        return repr(self.x)


def exact_number(x: Any) -> Any:
    """A key for a number of Python or NumPy, down to the sign of a zero and of what is no number; None for all else.

    A number is more than that if its class adds attributes or an equality of its own.
    """
    cls = type(x)
    if cls is int or cls is bool:
        return cls, x
    return None if _added(x) else _number(x)


def _number(x: Any) -> Any:
    cls = type(x)
    if is_plain(x, np.generic):
        return (cls, x.dtype, x.tobytes()) if x.dtype != object else None
    if is_plain(x, float):
        return cls, _text(x)
    if is_plain(x, complex):
        return cls, _text(x.real), _text(x.imag)
    return None


def _added(x: Any) -> tuple[Any, ...]:
    """A key for what a subclass adds to a value: an equality of its own, which decides, else attributes."""
    cls = type(x)
    if cls in _NOTHING_ADDED or not isinstance(x, _VALUES) or isinstance(x, Enum):
        return ()
    if isinstance(cls.__eq__, FunctionType) and cls.__eq__ not in _EQUALITIES:
        return x, _fields(x)
    state = object.__getstate__(x)
    if not state:
        return ()
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    key = tuple([(name, exact(value)) for name, value in {**(attributes or {}), **(slots or {})}.items()])
    try:
        hash(key)
    except TypeError:
        return (Identity(x),)
    return key


def _fields(x: Any) -> Any:
    """A key for the fields of a dataclass that its equality compares; None for another object."""
    if not dataclasses.is_dataclass(x) or isinstance(x, type):
        return None
    return tuple([exact(getattr(x, f.name)) for f in dataclasses.fields(x) if f.compare])


def _text(x: float) -> str:
    """A number as one writes it, which says all of it but the sign of what is no number."""
    return f"{copysign(1.0, x):+.0f} nan" if x != x else float.__repr__(x)


def exact(x: Any) -> Any:
    """A key for a value that can be hashed, equal to that of another one only if a function cannot tell them apart.

    It looks into tuples, named ones too, into frozen sets, ranges, times, the fields of dataclasses that their equality
    compares, and the attributes of subclasses of numbers and the like.  Of objects of other classes their own `==`
    decides.
    """
    cls = type(x)
    if cls is str or x is None or isinstance(x, Enum):
        return cls, x
    added = _added(x)
    return (_value(x), *added) if added else _value(x)


def _value(x: Any) -> Any:
    cls = type(x)
    if cls is int or cls is bool:
        return cls, x
    number = _number(x)
    if number is not None:
        return number
    if isinstance(x, tuple):
        return cls, tuple(map(exact, x))
    if isinstance(x, frozenset):
        return cls, frozenset(map(exact, x))
    if cls is range or cls is slice:
        return cls, exact(x.start), exact(x.stop), exact(x.step)
    if isinstance(x, Decimal):
        return cls, str(x)
    if isinstance(x, datetime | time):
        # Equality leaves out which of two hours a clock shows twice, and of two zones it compares the same moment.
        return cls, x, x.fold, x.utcoffset(), x.tzinfo, str(x.tzinfo)
    fields = _fields(x)
    return (cls, x) if fields is None else (cls, x, fields)
