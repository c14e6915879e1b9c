"""Arrays that enter and leave forward code, where they have the methods of torch's tensors (`ForwardArray`).

Those in lists and dictionaries change their class in place, because forward code may change the containers, and change
it back when the call is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...base.forward_code import ArrayContainer, ForwardArray, in_forward, returned
from .nested import parts_of

_KEPT = (str, int, float, type(None))


def entering(xs: Iterable[Any], borrowed: list[Any]) -> tuple[Any, ...]:
    """Arguments as forward code gets them; lists and dictionaries that this changes are added to `borrowed`."""
    return tuple([x if type(x) is ForwardArray else _entering(x, borrowed) for x in xs])


def _entering(x: Any, borrowed: list[Any]) -> Any:
    cls = type(x)
    if cls is np.ndarray:
        return in_forward(x)
    if cls is tuple:
        return tuple([_entering(y, borrowed) for y in x])
    if cls is list or cls is dict:
        _exchange(x, lambda y: _entering(y, borrowed), borrowed)
    elif isinstance(x, tuple) and hasattr(x, "_make"):
        return x._make([_entering(y, borrowed) for y in x])
    elif isinstance(x, ArrayContainer):
        return in_forward(x)
    return x


def leaving(x: Any) -> Any:
    """A result of forward code, with plain arrays in it."""
    cls = type(x)
    if cls is ForwardArray:
        return returned(x)
    if cls is np.ndarray or cls in _KEPT:
        return x
    if cls is tuple:
        return tuple([leaving(y) for y in x])
    if isinstance(x, tuple) and hasattr(x, "_make"):
        return x._make([leaving(y) for y in x])
    if isinstance(x, ArrayContainer):
        return x.with_arrays(map(leaving, x.arrays()))
    _exchange(x, leaving, [])
    return x


def give_back(borrowed: list[Any]) -> None:
    """Exchange the arrays in containers for plain ones again."""
    for x in borrowed:
        leaving(x)


def _exchange(x: Any, f: Any, changed: list[Any]) -> None:
    """Put `f` of each part of a container in its place, in place."""
    parts = parts_of(x)
    if parts is None:
        return
    new = [(key, y, f(y)) for key, y in parts]
    found = [(key, y) for key, before, y in new if y is not before]
    for key, y in found:
        if isinstance(x, list | dict):
            x[key] = y
        else:
            object.__setattr__(x, key, y)
    if found:
        changed.append(x)
