"""Numbers that distributions compute with: operands in one dtype, and random numbers from a key."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.cell import concrete, read
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...core.types import Shape, is_inexact
from ...numpy.promotion import asarray, combined_dtype
from ...run.places import JAX_TRACE, TRACE, place_of_argument, place_of_arguments
from ...scipy.special import gammaincinv
from ..functional.arguments import described
from ..random import open_unit, split


def is_number(x: Any) -> bool:
    """Whether `x` is a number of Python, which takes the dtype of what it meets."""
    return is_plain(x, float | int)


def operands(given: Sequence[Any], default: Any = np.float64) -> list[Any]:
    """Arrays in one floating-point dtype: that of the floating-point arrays among them, at least float32.

    Args:
        given: arrays, numbers, traced values, tensors or cells.
        default: the dtype, if there are only numbers of Python and integers.
    """
    xs = read(list(given))
    kinds = [np.dtype(x.dtype) for x in xs if hasattr(x, "dtype") and is_inexact(np.dtype(x.dtype))]
    dtype = combined_dtype(*kinds) if kinds else np.dtype(default)
    dtype = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    return [_converted(x, dtype) for x in xs]


def _converted(x: Any, dtype: np.dtype[Any]) -> Any:
    if not hasattr(x, "dtype"):
        return np.asarray(x, dtype)[()]
    return x if x.dtype == dtype else x.astype(dtype)


def as_parameter(x: Any, what: str) -> Any:
    """A parameter as it is kept: lists become arrays, everything else stays what it is.

    Raises:
        TypeError: it is no array of numbers.
    """
    if is_number(x):
        return x
    # NumPy makes arrays of objects of traced values.
    if is_plain(x, list | tuple | np.ndarray) and place_of_argument(x) is TRACE:
        x = asarray(read(x))
    elif isinstance(x, list | tuple):
        x = np.stack(x) if any(hasattr(y, "dtype") for y in x) else np.asarray(x)
    kind = getattr(getattr(x, "dtype", None), "kind", "")
    if kind not in ("f", "i", "u", "b", "V"):
        raise TypeError(
            f"{what} must be a number or an array of real numbers, not {described(x)}{at_line(user_line())}"
        )
    return x


def sizes_of(sample_shape: Any, what: str) -> Shape:
    """The shape in which samples are asked for.

    Raises:
        TypeError: it is not made of integers.
        ValueError: a size is negative.
    """
    if getattr(sample_shape, "dtype", None) == np.uint32:
        raise TypeError(f"{what} takes the shape of the sample first; write {what}(rng=key){at_line(user_line())}")
    try:
        given = (sample_shape,) if is_plain(sample_shape, int | np.integer) else sample_shape
        sizes = tuple(map(operator.index, given))
    except TypeError:
        raise TypeError(
            f"sample_shape of {what} must be a tuple of integers, not {sample_shape!r}{at_line(user_line())}"
        ) from None
    if min(sizes, default=0) < 0:
        raise ValueError(f"sample_shape of {what} must not be negative, but is {sample_shape!r}{at_line(user_line())}")
    return sizes


def compute(formula: Callable[..., Any], xs: Sequence[Any]) -> Any:
    """A formula of arrays; arrays of JAX are left to JAX."""
    place = place_of_arguments(xs)
    return place.call(formula, tuple(xs), {}) if place.is_jax else formula(*xs)


def is_known(x: Any) -> bool:
    """Whether the elements of an array are known now, and may be checked."""
    return place_of_argument(x) not in (TRACE, JAX_TRACE)


def tiny(x: Any) -> float:
    """The smallest normal number of the dtype of an array."""
    return float(np.finfo(x.dtype).tiny)


def eps(x: Any) -> float:
    """The spacing of the numbers above 1 in the dtype of an array."""
    return float(np.finfo(x.dtype).eps)


def concrete_maximum(x: Any, what: str, name: str) -> int:
    """The largest of some integers that must be known, because a shape depends on them.

    Raises:
        TypeError: they are traced.
    """
    if not is_known(x):
        raise TypeError(
            f"{what} makes an array whose size is {name}, which must be a plain integer and not traced"
            + at_line(user_line())
        )
    return int(np.max(np.asarray(concrete(x))))


def log1p_ratio(z: Any) -> Any:
    """`log(1 + z) / z`, which is 1 where `z` is 0."""
    is_small = abs(z) < 1e-4
    safe = np.where(is_small, 1.0, z)
    return np.where(is_small, 1 - z / 2 + z**2 / 3 - z**3 / 4 + z**4 / 5, np.log1p(safe) / safe)


def logs_of_gammas(key: Any, shape: Shape, concentration: Any) -> Any:
    """The logarithms of numbers with a gamma distribution, also of those that are too small to be written.

    A number is one of concentration a + 1 times u**(1 / a), with a uniform number u (Marsaglia and Tsang, 2000).
    """
    keys, dtype = split(key), concentration.dtype
    above = gammaincinv(np.broadcast_to(concentration + 1, shape), open_unit(keys[0], shape, dtype))
    return np.log(above) + np.log(open_unit(keys[1], shape, dtype)) / concentration
