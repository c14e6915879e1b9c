"""Shared by the functions of this package: checks of arguments, and reductions of losses."""

from __future__ import annotations

import operator
from typing import Any, Literal

import numpy as np

from ...base import cell
from ...base.narrow_products import product_dtype, rounded
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...core.types import Shape, is_inexact, type_of
from ...numpy.promotion import asarray, has_tracer
from ...run.places import TRACE, place_of_argument

Reduction = Literal["none", "mean", "sum"]


def array(x: Any) -> Any:
    """`x` as an object with a shape: lists and numbers become arrays."""
    if hasattr(x, "shape"):
        return x
    return asarray(x) if has_tracer(x) else np.asarray(x)


def shape_of(x: Any) -> Shape:
    """The shape of an array, a traced value, a tensor or a number."""
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


def described(x: Any) -> str:
    """Type and shape of an argument, as in `f32[2,3]`, for messages."""
    try:
        return str(type_of(x))
    except TypeError:
        return (
            f"an array of dtype {x.dtype}" if isinstance(x, np.ndarray) else str(x if x is None else type(x).__name__)
        )


def matrix_product(x: Any, y: Any) -> Any:
    """`x @ y`.  Plain NumPy arrays, whose product nothing records, are rounded here as `nn.autocast` says."""
    if product_dtype() is not None and is_plain(x, np.ndarray) and is_plain(y, np.ndarray):
        x, y = rounded((x, y))
    return x @ y


def numbers_like(x: Any, other: Any) -> Any:
    """`x`, if it holds integers or booleans, in the floating-point dtype of another array.

    NumPy promotes float32 and int64 to float64; integer labels and weights must not do so.
    """
    is_whole = getattr(getattr(x, "dtype", None), "kind", "") in ("b", "i", "u")
    return x.astype(other.dtype) if is_whole and is_inexact(other.dtype) else x


def dtype_of_noise(x: Any) -> Any:
    """The dtype in which random numbers for an array are drawn."""
    return np.float64 if x.dtype == np.float64 else np.float32


def axis_of(dim: Any, ndim: int, what: str) -> int:
    """A nonnegative axis.

    Raises:
        TypeError: `dim` is not an integer.
        IndexError: there is no such axis.
    """
    try:
        axis = operator.index(dim)
    except TypeError:
        raise TypeError(f"dim of {what} must be an integer, not {dim!r}{at_line(user_line())}") from None
    if not -max(ndim, 1) <= axis < max(ndim, 1):
        raise IndexError(f"dim={dim} of {what} is out of range for an array with {ndim} axes{at_line(user_line())}")
    return axis % ndim if ndim else 0


def concrete(x: Any) -> Any:
    """`x` as a NumPy array, or None if its values are unknown while tracing."""
    if type(x) is np.ndarray:
        return x
    return None if place_of_argument(x) is TRACE else np.asarray(cell.concrete(x))


def checked_indices(x: Any, size: int, what: str, name: str, ignored: int | None = None) -> Any:
    """An array of integers from 0 to `size - 1`, checked as far as its values are known.

    Raises:
        TypeError: they are not integers.
        IndexError: one is out of range, and is not `ignored`.
    """
    x = array(x)
    if x.dtype.kind not in "iu":
        raise TypeError(
            f"{name} of {what} must be integers, from 0 to {size - 1}, not {described(x)}; convert it with "
            f".astype(np.int64){at_line(user_line())}"
        )
    values = concrete(x)
    if values is not None and values.size:
        wrong = (values < 0) | (values >= size)
        if ignored is not None:
            wrong &= values != ignored
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            where = f"{name}[{', '.join(map(str, place))}]" if place else name
            raise IndexError(
                f"{where} of {what} is {int(values[place])}, but must be from 0 to {size - 1}"
                + ("" if ignored is None else f", or {ignored} to be ignored")
                + at_line(user_line())
            )
    return x


def same_shapes(what: str, **given: Any) -> None:
    """Raise unless the arguments have the same shape; scalars match any.

    Raises:
        ValueError: they have not.
        TypeError: one is a tuple or dictionary of arrays.
    """
    for name, x in given.items():
        if type(x) in (tuple, dict):
            hint = "; nn.functional_call returns the result and the new state: write out, _ = nn.functional_call(...)"
            is_call = type(x) is tuple and len(x) == 2 and type(x[1]) is dict
            raise TypeError(
                f"{what} takes arrays, but {name} is a {type(x).__name__} of {len(x)} values; give one of them"
                f"{hint if is_call else ''}{at_line(user_line())}"
            )
    shapes = {name: shape_of(x) for name, x in given.items()}
    if len({s for s in shapes.values() if s != ()}) > 1:
        listed = " and ".join(f"{name} {described(x)}" for name, x in given.items())
        hint = "; NumPy would broadcast them, which is rarely intended in a loss: reshape one of them"
        try:
            np.broadcast_shapes(*shapes.values())
        except ValueError:
            hint = ""
        raise ValueError(f"{what} takes arrays of the same shape, not {listed}{hint}{at_line(user_line())}")


def reduced(loss: Any, reduction: str, what: str) -> Any:
    """The elements of a loss, their mean, or their sum.

    Raises:
        ValueError: `reduction` is unknown.
    """
    if reduction == "mean":
        return np.mean(loss)
    if reduction == "sum":
        return np.sum(loss)
    if reduction == "none":
        return loss
    raise unknown_reduction(reduction, what)


def unknown_reduction(reduction: Any, what: str, allowed: str = "'none', 'mean' or 'sum'") -> ValueError:
    """The error for an unknown reduction."""
    return ValueError(f"reduction of {what} must be {allowed}, not {reduction!r}{at_line(user_line())}")


def positive_part(x: Any) -> Any:
    """`max(x, 0)`, with derivative 1 at 0, as in the losses of torch."""
    return np.where(x < 0, 0, x)
