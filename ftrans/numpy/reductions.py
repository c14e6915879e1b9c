"""Reductions along axes: sums, products, means, extrema, logic, and their cumulative forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.foreign import NO_VALUE
from ..base.source import at_line, user_line
from ..core.primitive import Primitive
from ..core.trace import Tracer, current_builder
from ..core.types import Shape, is_complex, is_inexact
from ..ops import elementwise as e
from ..ops import reductions as r
from ..ops.broadcast import reduce_sum
from ..ops.literals import full_like
from .delivery import deliver
from .dispatch import implements
from .manipulation import along_axis, normal_axes, normal_axis, reduced_axes
from .promotion import asarray, broadcast_to, builder, cast, operand, reshaped, same_value

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "diff", "ediff1d", "max", "min", "prod", "ptp", "sum", "trapezoid",
]  # fmt: skip


def kept_shape(shape: Shape, axes: Shape) -> Shape:
    """A shape whose reduced axes have size 1."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def reduce_with_options(
    x: Tracer,
    reduction: Callable[..., Tracer],
    axis: Any,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
    identity: Any,
    combine: np.ufunc,
) -> Any:
    """A reduction with NumPy's options.

    It begins with `initial`, by default with the identity of the ufunc, or with the first element where that is None.
    """
    axes = reduced_axes(axis, x.ndim)
    start = check_start(combine, identity if initial is NO_VALUE else initial, where, x.shape, axes)
    if where is not True and where is not NO_VALUE:
        neutral = start if identity is None else identity
        if combine is np.add and is_inexact(x.dtype):
            # Adding 0.0 would change the sign of -0.0.
            neutral = complex(-0.0, -0.0) if is_complex(x.dtype) else -0.0
        x = asarray(np.where(where, x, operand(neutral, x.dtype, ())))
    rest = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    count = math.prod(x.shape[a] for a in axes)
    if not count:
        y = same_value(operand(start, x.dtype, rest))
    elif start is None and count == 1:
        y = reshaped(same_value(x), rest)
    elif combine is np.add and is_inexact(x.dtype):
        y = _sum(x, axes, start)
    else:
        y = reduction(x, axes=axes)
        y = y if start is None or initial is NO_VALUE else combine(y, operand(start, x.dtype, ()))
    if keepdims is not NO_VALUE and keepdims:
        y = reshaped(y, kept_shape(x.shape, axes))
    return deliver(y, out, combine.__name__)


def check_start(combine: np.ufunc, start: Any, where: Any, shape: Shape, axes: Shape) -> Any:
    """The initial value of a reduction; an error if there is none and elements may be missing."""
    if start is None and where is not True and where is not NO_VALUE:
        raise ValueError(
            f"reduction operation '{combine.__name__}' does not have an identity, so to use a where mask one "
            f"has to specify 'initial'{at_line(user_line())}"
        )
    if start is None and 0 in (shape[a] for a in axes):
        raise ValueError(
            f"zero-size array to reduction operation {combine.__name__} which has no identity{at_line(user_line())}"
        )
    return start


def _sum(x: Tracer, axes: Shape, start: Any) -> Any:
    """The sum of inexact numbers and what it starts from, with NumPy's sign where it is zero: 0.0 - 0.0 is 0.0."""
    if start is None:
        return sum_of_elements(x, axes)
    if type(start) in (int, float) and start == 0 and math.copysign(1.0, start) > 0:
        if math.prod(x.shape[a] for a in axes) > 1:
            return reduce_sum(x, axes=axes)
        kept = reshaped(same_value(x), tuple(n for i, n in enumerate(x.shape) if i not in axes))
        return e.add(kept, full_like(kept, 0))
    return np.add(operand(start, x.dtype, ()), sum_of_elements(x, axes))


def sum_of_elements(x: Tracer, axes: Shape) -> Any:
    """The sum that does not begin with 0.0, so that it is -0.0 where all elements are."""
    if is_complex(x.dtype):
        return e.complex_(sum_of_elements(e.real(x), axes), sum_of_elements(e.imag(x), axes))
    total = reduce_sum(x, axes=axes)
    is_negative = e.bitwise_and(r.reduce_and(e.signbit(x), axes=axes), e.eq(total, full_like(total, 0)))
    return e.select(is_negative, e.neg(reduce_sum(e.neg(x), axes=axes)), total)


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which NumPy adds up or multiplies elements: small integers and booleans are widened."""
    if dtype.kind in "bi":
        return np.promote_types(dtype, np.int_)
    return np.promote_types(dtype, np.uint) if dtype.kind == "u" else dtype


@implements(np.sum)
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """The sum of elements along axes."""
    x = asarray(a)
    type = x.atom.type
    if type.dtype.kind == "f" and keepdims is where is initial is NO_VALUE and dtype is out is None:
        # The usual call.
        axes = tuple(range(type.ndim)) if axis is None else reduced_axes(axis, type.ndim)
        if type.size > 1 and (axis is None or math.prod([type.shape[a] for a in axes]) > 1):
            return (current_builder() or builder(x)).record(reduce_sum, (x,), {"axes": axes})[0]
    x = cast(x, accumulator(x.dtype) if dtype is None else np.dtype(dtype))
    if x.dtype.kind == "b":
        return reduce_with_options(x, r.reduce_or, axis, out, keepdims, initial, where, False, np.logical_or)
    return reduce_with_options(x, reduce_sum, axis, out, keepdims, initial, where, 0, np.add)


@implements(np.prod)
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """The product of elements along axes."""
    x = asarray(a)
    x = cast(x, accumulator(x.dtype) if dtype is None else np.dtype(dtype))
    if x.dtype.kind == "b":
        return reduce_with_options(x, r.reduce_and, axis, out, keepdims, initial, where, True, np.logical_and)
    return reduce_with_options(x, r.reduce_prod, axis, out, keepdims, initial, where, 1, np.multiply)


def largest(x: Tracer, axes: Shape) -> Tracer:
    """The largest element along axes."""
    # Derivatives by index stand on checkpoints, which take as long to import as all of `core`.
    from ..control.extrema.by_index import reduce_max

    return reduce_max(x, axes=axes)


def smallest(x: Tracer, axes: Shape) -> Tracer:
    """The smallest element along axes."""
    from ..control.extrema.by_index import reduce_min

    return reduce_min(x, axes=axes)


@implements(np.max, np.amax)
def max(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """The largest element along axes; elements that tie share its derivative."""
    return reduce_with_options(asarray(a), largest, axis, out, keepdims, initial, where, None, np.maximum)


amax = max


@implements(np.min, np.amin)
def min(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """The smallest element along axes; elements that tie share its derivative."""
    return reduce_with_options(asarray(a), smallest, axis, out, keepdims, initial, where, None, np.minimum)


amin = min


def truth(x: Any) -> Tracer:
    x = asarray(x)
    return x if x.dtype.kind == "b" else e.ne(x, full_like(x, 0))


@implements(np.any, constant=True)
def any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE) -> Any:
    """Whether any element along axes is true (not zero)."""
    return reduce_with_options(truth(a), r.reduce_or, axis, out, keepdims, NO_VALUE, where, False, np.logical_or)


@implements(np.all, constant=True)
def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE) -> Any:
    """Whether all elements along axes are true (not zero)."""
    return reduce_with_options(truth(a), r.reduce_and, axis, out, keepdims, NO_VALUE, where, True, np.logical_and)


@implements(np.count_nonzero, constant=True)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The number of nonzero elements along axes."""
    return np.sum(truth(a), axis, keepdims=keepdims)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Any:
    """The range of the elements along axes: the maximum minus the minimum."""
    return deliver(np.max(a, axis, keepdims=keepdims) - np.min(a, axis, keepdims=keepdims), out, "ptp")


# Positions


def _arg_extremum(primitive: Primitive, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x = asarray(a)
    flat, place = along_axis(x, axis)
    shape = (1,) * x.ndim if axis is None else kept_shape(x.shape, (place,))
    if not flat.shape[place]:
        raise ValueError(f"attempt to get {primitive.name} of an empty sequence{at_line(user_line())}")
    y = primitive(_by_imaginary_part(flat, primitive, place) if is_complex(flat.dtype) else flat, axis=place)
    return deliver(reshaped(y, shape) if keepdims is not NO_VALUE and keepdims else y, out, primitive.name)


def _by_imaginary_part(x: Any, primitive: Primitive, axis: int) -> Any:
    """Real numbers with their extrema where those of `x` are: the imaginary parts where the real ones are extreme."""
    extremum, worst = (np.max, -math.inf) if primitive is r.argmax else (np.min, math.inf)
    candidates = np.where(x.real == extremum(x.real, axis, keepdims=True), x.imag, worst)
    return np.where(np.isnan(x), math.nan, candidates)


@implements(np.argmax, constant=True)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Any:
    """The index of the first maximum."""
    return _arg_extremum(r.argmax, a, axis, out, keepdims)


@implements(np.argmin, constant=True)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Any:
    """The index of the first minimum."""
    return _arg_extremum(r.argmin, a, axis, out, keepdims)


# Cumulative forms


def cumulate(x: Tracer, primitive: Primitive, axis: Any) -> Any:
    line, place = along_axis(x, axis)
    return primitive(line, axis=place, reverse=False)


@implements(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The cumulative sum along an axis."""
    x = asarray(a)
    x = cast(x, accumulator(x.dtype) if dtype is None else np.dtype(dtype))
    return deliver(cumulate(x, r.cumsum, axis), out, "cumsum")


@implements(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The cumulative product along an axis."""
    x = asarray(a)
    x = cast(x, accumulator(x.dtype) if dtype is None else np.dtype(dtype))
    return deliver(cumulate(x, r.cumprod, axis), out, "cumprod")


def _cumulative(function: Any, x: Any, axis: Any, dtype: Any, include_initial: bool, first: int) -> Any:
    """What `function` gives along an axis, which only a vector need not name, after `first` if so wished."""
    x = asarray(x)
    if axis is None and x.ndim > 1:
        raise ValueError(
            f"For arrays which have more than one dimension ``axis`` argument is required, as for {x.type}"
            + at_line(user_line())
        )
    axis = 0 if axis is None else axis
    result = function(x, axis, dtype)
    if not include_initial:
        return result
    shape = kept_shape(result.shape, normal_axes(axis, result.ndim))
    return np.concatenate([np.full_like(result, first, shape=shape), result], axis)


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """The cumulative sum along an axis."""
    return deliver(_cumulative(np.cumsum, x, axis, dtype, include_initial, 0), out, "cumulative_sum")


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """The cumulative product along an axis."""
    return deliver(_cumulative(np.cumprod, x, axis, dtype, include_initial, 1), out, "cumulative_prod")


if hasattr(np, "cumulative_sum"):
    cumulative_sum = implements(np.cumulative_sum)(cumulative_sum)
    cumulative_prod = implements(np.cumulative_prod)(cumulative_prod)


@implements(np.diff, keeps_order=True)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NO_VALUE, append: Any = NO_VALUE) -> Any:
    """The `n`-th discrete difference along an axis."""
    x = asarray(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}{at_line(user_line())}")
    if n == 0:
        return same_value(x)
    axis = normal_axis(axis, x.ndim)

    def end(value: Any) -> list[Any]:
        if value is NO_VALUE:
            return []
        value = asarray(value)
        return [value if value.ndim else broadcast_to(value, kept_shape(x.shape, (axis,)))]

    x = np.concatenate([*end(prepend), x, *end(append)], axis)
    lead = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[(*lead, slice(1, None))], x[(*lead, slice(None, -1))]
        x = later != earlier if x.dtype.kind == "b" else later - earlier
    return x


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """The differences between consecutive elements of the flattened array, with numbers prepended and appended."""
    x: Any = np.ravel(asarray(ary))
    ends: list[list[Any]] = []
    for name, value in (("to_begin", to_begin), ("to_end", to_end)):
        end = None if value is None else asarray(value)
        if end is not None and not np.can_cast(end.dtype, x.dtype, "same_kind"):
            raise TypeError(
                f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule: {end.dtype} and "
                f"{x.dtype}{at_line(user_line())}"
            )
        ends.append([] if end is None else [np.ravel(cast(end, x.dtype))])
    return np.concatenate([*ends[0], x[1:] - x[:-1], *ends[1]])


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule."""
    y = asarray(y)
    axis = normal_axis(axis, y.ndim)
    lead = (slice(None),) * axis
    if x is not None:
        x = asarray(x)
        if x.ndim == 1:
            steps = np.diff(x)
            dx = reshaped(steps, (*steps.shape, *(1,) * (y.ndim - 1 - axis)))
        else:
            dx = np.diff(x, axis=axis)
    return np.sum(dx * (y[(*lead, slice(1, None))] + y[(*lead, slice(None, -1))]) / 2.0, axis)
