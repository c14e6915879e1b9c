"""Lending: arguments that reach a function as they are, without being traced.

A function that assigns to its argument assigns to a copy, so the caller's arrays do not change.  A traced argument is a
copy anyway, and a traced value that is passed on becomes one.  Of the others, small arrays are copied, and large ones
are passed read-only, because copying them on every call would cost as much as computing with them: an assignment is an
error.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import tree
from ..base.foreign import Said
from ..base.foreign_arrays import is_foreign
from ..base.lookalikes import refuse_lookalike
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..numpy.promotion import same_value
from ..numpy.views import is_scalar

# Arrays up to this size are copied, as captured arrays are.
_COPY_BYTES = 1 << 16
_PLAIN = frozenset((float, int, bool, complex, str, type(None), np.float64))


def lent(x: Any) -> Any:
    """An argument with its arrays, including those in containers, replaced by copies or read-only views.

    Raises:
        ForeignArrays: an array is of a library that ftrans does not compute with.
        TypeError: an array is of a class with arithmetic of its own, such as `numpy.matrix`.
    """
    cls = type(x)
    if cls in _PLAIN:
        return x
    if cls is Tracer:
        return x if is_scalar(x) else same_value(x, "=")
    if isinstance(x, np.ndarray):
        return _lent_array(x)
    if isinstance(x, list | tuple):
        items = [lent(y) for y in x]
        if all(a is b for a, b in zip(items, x, strict=True)):
            return x
        if isinstance(x, tuple):
            return x._make(items) if hasattr(x, "_make") else tuple(items)
        found = copy.copy(x)
        found[:] = items
        return found
    if isinstance(x, dict):
        return _changed(x, {key: (y, lent(y)) for key, y in x.items()}, dict.__setitem__)
    if hasattr(cls, "__dataclass_fields__"):
        fields = {name: getattr(x, name) for name in cls.__dataclass_fields__ if hasattr(x, name)}
        return _changed(x, {name: (y, lent(y)) for name, y in fields.items()}, object.__setattr__)
    if is_foreign(x):
        refuse_lookalike(x)
    return x


def _changed(container: Any, parts: dict[Any, tuple[Any, Any]], put: Any) -> Any:
    """A copy of a container with new parts; the container itself if no part has changed."""
    if all(old is new for old, new in parts.values()):
        return container
    found = copy.copy(container)
    for key, (_, new) in parts.items():
        put(found, key, new)
    return found


def _lent_array(x: Any) -> Any:
    refuse_lookalike(x)
    flags = x.flags
    if x.dtype.hasobject or (flags.forc and x.nbytes <= _COPY_BYTES):
        return x.copy("A")
    low, high = np.lib.array_utils.byte_bounds(x)
    if high - low > _COPY_BYTES:
        found = x.view()
        found.flags.writeable = False
        return found
    # NumPy's answers depend on strides: whether a reshaped array is a view, for instance.
    start = x.__array_interface__["data"][0] - low
    found = np.ndarray(x.shape, x.dtype, np.empty(high - low, np.uint8), start, x.strides)
    found[...] = x
    if type(x) is np.ndarray:
        return found
    # With the attributes that a copy of an array of this class has.
    found = found.view(type(x))
    found.__array_finalize__(x)
    return found


def called(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function whose arguments are lent."""
    args = tuple(map(lent, args))
    kwargs = {name: lent(x) for name, x in kwargs.items()}
    try:
        return f(*args, **kwargs)
    except ValueError as error:
        explain(error)
        raise


def called_directly(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function that is called without tracing and cannot change its caller's arguments."""
    result = called(f, *args, **kwargs)
    leaves, structure = tree.flatten(result)
    found = [returned(y) for y in leaves]
    return result if all(a is b for a, b in zip(found, leaves, strict=True)) else tree.unflatten(structure, found)


def explain(error: ValueError) -> None:
    """Add advice to NumPy's error for an assignment to a lent array."""
    if Said.READ_ONLY in str(error):
        error.add_note(
            "  Arguments above 64 KiB that are not differentiated are passed read-only, so that the caller's array "
            "stays unchanged: assign to a copy, x = x.copy()"
        )


def returned(x: Any) -> Any:
    """The untraced results of a function, without views of read-only arguments."""
    return x.copy() if is_plain(x, np.ndarray) and (x.base is not None or not x.flags.writeable) else x
