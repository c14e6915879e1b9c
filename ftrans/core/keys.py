"""Keys for values that a program depends on, which tell apart what Python holds to be equal.

`1 == 1.0 == True` and `0.0 == -0.0`, and so are tuples, sets and dataclasses of them; what a function makes of one is
not what it makes of the other.
"""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from enum import Enum
from math import copysign
from typing import Any

import numpy as np


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
    """A key for a number of Python or NumPy, down to the sign of a zero and of what is no number; None for all else."""
    cls = x.__class__
    if cls is int or cls is bool:
        return cls, x
    if isinstance(x, np.generic):
        return (cls, x.dtype, x.tobytes()) if x.dtype != object else None
    if isinstance(x, float):
        return cls, _text(x)
    if isinstance(x, complex):
        return cls, _text(x.real), _text(x.imag)
    return None


def _text(x: float) -> str:
    """A number as one writes it, which says all of it but the sign of what is no number."""
    return f"{copysign(1.0, x):+.0f} nan" if x != x else float.__repr__(x)


def exact(x: Any) -> Any:
    """A key for a value that can be hashed, equal to that of another one only if a function cannot tell them apart.

    It looks into tuples, named ones too, into frozen sets, ranges, and the fields of dataclasses that their equality
    compares.  Of objects of other classes their own `==` decides.
    """
    cls = x.__class__
    if cls is str or x is None or isinstance(x, Enum):
        return cls, x
    number = exact_number(x)
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
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        fields = [f.name for f in dataclasses.fields(x) if f.compare]
        return cls, x, tuple([exact(getattr(x, name)) for name in fields])
    return cls, x
