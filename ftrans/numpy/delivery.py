"""Results that are assigned: to `out=`, and by operators that work in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.cell import read
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from .promotion import asarray, broadcast_to, cast, fits
from .views import assign


def deliver(result: Any, out: Any, name: str, casting: Any = "same_kind") -> Any:
    """`result`, or `out` after the result has been assigned to it."""
    if out is None:
        return result
    out = read(out)
    if type(out) is not Tracer:
        if not is_plain(out, np.ndarray) or out.dtype != object:
            raise not_assignable(out, name)
        whole = np.broadcast_to(result, out.shape)
        for place in np.ndindex(out.shape):
            out[place] = whole[place]
        return out
    assign_cast(out, asarray(result), name, casting)
    return out


def not_assignable(target: Any, name: str) -> TypeError:
    """The error for a plain array that traced values cannot be put into."""
    return TypeError(
        f"np.{name} cannot put traced values into an array of type {type(target).__name__}, which holds numbers; make "
        f"the array by np.zeros_like(x) or ftrans.numpy.zeros(shape){at_line(user_line())}"
    )


def assign_cast(target: Tracer, new: Tracer, name: str, casting: Any = "same_kind") -> None:
    """Assign the result of an operation to an array, if its dtype and shape may become those of the array."""
    dtype = target.dtype
    if not np.can_cast(new.dtype, dtype, casting):
        raise TypeError(
            f"Cannot cast ufunc '{name}' output from {new.dtype!r} to {dtype!r} with casting rule '{casting}'; the "
            f"array that is assigned to keeps its dtype, so convert it first by .astype{at_line(user_line())}"
        )
    if not fits(new.shape, target.shape):
        raise ValueError(
            f"non-broadcastable output operand with shape {target.shape} doesn't match the broadcast shape {new.shape}"
            + at_line(user_line())
        )
    assign(target, broadcast_to(cast(new, dtype), target.shape))
