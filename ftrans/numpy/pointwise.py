"""Elementwise functions that are not ufuncs: choices, rounding, comparisons, interpolation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.foreign import NO_VALUE
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..core.types import is_complex, is_inexact
from ..core.witness import ConcretizationError
from ..ops import elementwise as e
from ..ops.literals import full_like
from ..ops.special.family import SpecialFunction
from .creation import traced_in_trace
from .delivery import deliver
from .dispatch import implements
from .layouts import own
from .manipulation import normal_axes, normal_axis
from .promotion import (
    asarray,
    broadcast_shapes,
    broadcast_to,
    cast,
    has_tracer,
    is_number,
    is_weak,
    operand,
    promote,
    result_dtype,
    same_value,
)
from .reductions import truth
from .selection import known_mask
from .views import is_scalar

__all__ = [
    "allclose", "around", "array_equal", "array_equiv", "clip", "fix", "gradient", "i0", "interp", "isclose",
    "iscomplex", "isneginf", "isposinf", "isreal", "nan_to_num", "piecewise", "polyval", "round", "select", "sinc",
    "unwrap", "where",
]  # fmt: skip


def where(condition: Any, x: Any = NO_VALUE, y: Any = NO_VALUE) -> Any:
    """`x` where the condition holds, else `y`; with the condition alone, where it holds, which asks for its value."""
    # NumPy's own function takes no names.
    if x is NO_VALUE and y is NO_VALUE:
        return _where(condition)
    if x is NO_VALUE or y is NO_VALUE:
        raise ValueError(f"either both or neither of x and y should be given{at_line(user_line())}")
    return _where(condition, x, y)


@implements(np.where, keeps_order=True)
def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        return np.nonzero(condition)
    if len(choices) != 2:
        raise ValueError(f"either both or neither of x and y should be given{at_line(user_line())}")
    mask = truth(condition)
    choices = tuple([v if is_number(v) else asarray(v) for v in choices])
    dtype = result_dtype(*choices)
    shape = broadcast_shapes("where", mask, *choices)
    z = e.select(broadcast_to(mask, shape), operand(choices[0], dtype, shape), operand(choices[1], dtype, shape))
    z.weak = is_weak(choices[0]) and is_weak(choices[1]) and dtype.kind != "b"
    return z


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """Elements of the first choice whose condition is true, or the default."""
    if len(condlist) != len(choicelist):
        raise ValueError(f"list of cases must be same length as list of conditions{at_line(user_line())}")
    if not condlist:
        raise ValueError(f"select with an empty condition list is not possible{at_line(user_line())}")
    dtype = result_dtype(*(v if is_number(v) else asarray(v) for v in (*choicelist, default)))
    result: Any = cast(asarray(default), dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        condition = asarray(condition)
        if condition.dtype.kind != "b":
            raise TypeError(f"select takes boolean conditions, not {condition.type}{at_line(user_line())}")
        result = np.where(condition, cast(asarray(choice), dtype), result)
    # NumPy writes to a new array in row-major order.
    return own(result, None)


@traced_in_trace
@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Evaluate a piecewise-defined function; where values are not known, each function is applied to all elements."""
    x = asarray(x)
    if is_plain(condlist, bool) or not getattr(condlist, "ndim", 1) or (np.ndim(condlist[0]) == 0 and x.ndim):
        condlist = [condlist]
    conditions = [np.asarray(c) if is_plain(c, bool | list) and not has_tracer(c) else c for c in condlist]
    if len(funclist) == len(conditions) + 1:
        some = conditions[0]
        for condition in conditions[1:]:
            some = np.logical_or(some, condition)
        conditions.append(np.logical_not(some))
    if len(funclist) != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are "
            f"expected{at_line(user_line())}"
        )
    y: Any = np.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        if not callable(function):
            y[condition] = function
            continue
        try:
            known = known_mask(condition) if type(condition) is Tracer else condition
        except ConcretizationError:
            value = _of_each(function, asarray(condition), x, args, kw)
            y = np.where(condition, cast(asarray(value), x.dtype), y)
        else:
            y[known] = function(x[known], *args, **kw)
    return y


def _of_each(function: Any, condition: Tracer, x: Tracer, args: Any, kw: Any) -> Any:
    """A function of all elements of an array, which must act on each by itself."""
    start = e.select(condition, x, full_like(x, 1))
    result = function(start, *args, **kw)
    if not has_tracer(result):
        return result
    result = asarray(result)
    # What depends on the elements, and whether each by itself.
    alone: dict[Any, bool] = {start.atom: True}
    for eqn in reversed(list(start.builder.tape.backwards())):
        found = [alone[atom] for atom in eqn.operands if atom in alone]
        if found:
            acts_on_each = isinstance(eqn.primitive, e.Elementwise | SpecialFunction)
            alone.update(dict.fromkeys(eqn.outputs, acts_on_each and all(found)))
    if not alone.get(result.atom, True):
        raise ConcretizationError(
            "np.piecewise under jit or vmap gives its functions all elements, since which ones meet a condition is not"
            " known, and one of the functions does more than act on each element by itself; write it out by np.where"
            + at_line(user_line())
        )
    return result


@implements(np.clip, keeps_order=True)
def clip(
    a: Any,
    a_min: Any = NO_VALUE,
    a_max: Any = NO_VALUE,
    out: Any = None,
    *,
    min: Any = NO_VALUE,
    max: Any = NO_VALUE,
    **options: Any,
) -> Any:
    """Limit elements to an interval; an element that equals a bound has half of its derivative, as for `maximum`."""
    if not (a_min is NO_VALUE and a_max is NO_VALUE) and not (min is NO_VALUE and max is NO_VALUE):
        raise ValueError(
            "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden."
            + at_line(user_line())
        )
    low = min if a_min is NO_VALUE else a_min
    high = max if a_max is NO_VALUE else a_max
    result = asarray(a)
    if low is not NO_VALUE and low is not None:
        result = np.maximum(result, low, **options)
    if high is not NO_VALUE and high is not None:
        result = np.minimum(result, high, **options)
    if sum(np.ndim(v) > 1 for v in (a, low, high) if v is not NO_VALUE) > 2:
        # NumPy's function has three operands, whose order it looks at together.
        result = same_value(result, "?")
    return deliver(same_value(result) if result is a else result, out, "clip")


# Rounding


@implements(np.round, np.around, constant=True, keeps_order=True)
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round to a number of decimals, halves to even."""
    x = asarray(a)
    if is_complex(x.dtype):
        result: Any = e.complex_(np.round(x.real, decimals), np.round(x.imag, decimals))
        result = own(result, x, "K")
    elif x.dtype.kind in "iu" and decimals >= 0:
        result = same_value(x)
    elif decimals:
        scale = 10.0 ** abs(decimals)
        inner = x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64))
        result = np.rint(inner * scale) / scale if decimals > 0 else np.rint(inner / scale) * scale
        # Only without decimals NumPy's function is a ufunc.
        result = own(same_value(cast(result, x.dtype)), x, "A")
    else:
        result = np.rint(x)
    return deliver(result, out, "round")


around = round


@implements(np.fix, constant=True, keeps_order=True)
def fix(x: Any, out: Any = None) -> Any:
    """Round towards zero."""
    return deliver(np.trunc(x), out, "fix")


# Comparisons and questions


@implements(np.isclose, constant=True)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Elementwise equality within tolerances."""
    x, y = promote("isclose", a, b)
    if not is_inexact(x.dtype):
        x, y = cast(x, np.dtype(np.float64)), cast(y, np.dtype(np.float64))
    near = (np.abs(x - y) <= atol + rtol * np.abs(y)) & np.isfinite(y)
    result = near | (x == y)
    return result | (np.isnan(x) & np.isnan(y)) if equal_nan else result


@implements(np.allclose, constant=True)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are equal within tolerances; `if` and `bool` need the value."""
    return np.all(np.isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal, constant=True)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and elements are equal; `if` and `bool` need the value."""
    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        return False
    same: Any = x == y
    if equal_nan and is_inexact(x.dtype) and is_inexact(y.dtype):
        same = same | (np.isnan(x) & np.isnan(y))
    return np.all(same)


@implements(np.array_equiv, constant=True)
def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether arrays are equal after broadcasting."""
    try:
        return np.all(np.equal(a1, a2))
    except ValueError:
        return False


@implements(np.isposinf, constant=True)
def isposinf(x: Any, out: Any = None) -> Any:
    """Whether elements are positive infinity."""
    return deliver(np.isinf(x) & ~np.signbit(x), out, "isposinf")


@implements(np.isneginf, constant=True)
def isneginf(x: Any, out: Any = None) -> Any:
    """Whether elements are negative infinity."""
    return deliver(np.isinf(x) & np.signbit(x), out, "isneginf")


@implements(np.iscomplex, constant=True)
def iscomplex(x: Any) -> Any:
    """Whether elements have an imaginary part other than 0."""
    return np.imag(x) != 0


@implements(np.isreal, constant=True)
def isreal(x: Any) -> Any:
    """Whether elements have an imaginary part of 0."""
    return np.imag(x) == 0


@implements(np.nan_to_num, keeps_order=True)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace NaN and infinities by numbers, whose derivative is 0."""
    x = asarray(x)
    if is_complex(x.dtype):
        result: Any = e.complex_(*(np.nan_to_num(part, True, nan, posinf, neginf) for part in (x.real, x.imag)))
    elif is_inexact(x.dtype):
        limits = np.finfo(x.dtype)
        result = np.where(np.isnan(x), nan, x)
        result = np.where(np.isposinf(x), float(limits.max) if posinf is None else posinf, result)
        result = np.where(np.isneginf(x), float(limits.min) if neginf is None else neginf, result).astype(x.dtype)
    else:
        result = x
    if copy or is_scalar(x):
        # NumPy writes to a copy of the array.
        return own(same_value(result), x, "K") if x.ndim else same_value(result)
    if result is not x:
        x[...] = result
    return x if x.ndim else x[()]


# Functions of one variable


@implements(np.sinc, keeps_order=True)
def sinc(x: Any) -> Any:
    """`sin(pi x) / (pi x)`, with all of its derivatives at 0."""
    x = asarray(x)
    (x,) = promote("sinc", x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64)))
    y = x * math.pi
    # Near 0 by its series, where the closed form loses the digits of derivatives.
    is_small = np.abs(y) < 0.5
    square = np.square(np.where(is_small, y, 0.0))
    series: Any = 1.0
    for n in range(14, 0, -2):
        series = 1.0 - square / (n * (n + 1.0)) * series
    away = np.where(is_small, 1.0, y)
    return np.where(is_small, series, np.sin(away) / away)


@implements(np.i0)
def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind and order 0."""
    from ..ops.special import bessel

    x = asarray(x)
    if is_complex(x.dtype):
        raise TypeError(f"i0 not supported for complex values ({x.type}){at_line(user_line())}")
    return bessel.i0(x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64)))


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Linear interpolation between the points (xp, fp), where xp is increasing."""
    x, xp, fp = asarray(x), asarray(xp), asarray(fp)
    if is_complex(x.dtype) or is_complex(xp.dtype):
        raise TypeError(f"np.interp takes real x and xp, not {x.type} and {xp.type}{at_line(user_line())}")
    if xp.ndim != 1 or fp.shape != xp.shape or not xp.size:
        raise ValueError(
            f"np.interp takes points xp and fp that are vectors of one length, not {xp.type} and {fp.type}"
            + at_line(user_line())
        )
    dtype = np.promote_types(fp.dtype, np.float64)
    x, xp, fp = cast(x, np.dtype(np.float64)), cast(xp, np.dtype(np.float64)), cast(fp, dtype)
    if not is_complex(dtype) and any(is_complex(asarray(v).dtype) for v in (left, right) if v is not None):
        raise TypeError(f"np.interp of real fp takes real left= and right={at_line(user_line())}")
    if period is not None:
        if type(period) is not Tracer and period == 0:
            raise ValueError(f"period must be a non-zero value{at_line(user_line())}")
        period = abs(period)
        x, xp = x % period, xp % period
        order = np.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = np.concatenate([fp[-1:], fp, fp[:1]])
    size = xp.shape[0]
    if size == 1:
        result = broadcast_to(fp, x.shape) if x.ndim else fp[0]
    else:
        i = np.clip(np.searchsorted(xp, x, "right"), 1, size - 1)
        x0, x1, y0, y1 = xp[i - 1], xp[i], fp[i - 1], fp[i]
        width = x1 - x0
        empty = width == 0
        part: Any = np.where(empty, 0.0, x - x0) / np.where(empty, 1.0, width)
        result = y0 + (y1 - y0) * part if is_complex(dtype) else e.lerp(y0, y1, part)
    if period is None:
        result = np.where(x < xp[0], fp[0] if left is None else left, result)
        result = np.where(x > xp[-1], fp[-1] if right is None else right, result)
    return result


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    """Unwrap angles along an axis: jumps of more than half a period become their complements."""
    p = asarray(p)
    axis = normal_axis(axis, p.ndim)
    steps = np.diff(p, axis=axis)
    dtype = result_dtype(steps, period)
    high: Any = period / 2
    if dtype.kind in "iu":
        high, rest = divmod(period, 2)
    wrapped = np.mod(steps + high, period) - high
    if dtype.kind not in "iu" or rest == 0:
        wrapped = np.where((wrapped == -high) & (steps > 0), high, wrapped)
    correction = np.where(np.abs(steps) < (period / 2 if discont is None else discont), 0, wrapped - steps)
    lead = (slice(None),) * axis
    first, others = p[(*lead, slice(1))].astype(dtype), p[(*lead, slice(1, None))]
    return np.concatenate([first, (others + np.cumsum(correction, axis)).astype(dtype)], axis)


@implements(np.polyval, keeps_order=True)
def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients `p`, highest power first, at `x`."""
    x = asarray(x)
    y: Any = full_like(x, 0)
    for coefficient in asarray(p):
        y = y * x + coefficient
    return y


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The gradient along axes by finite differences: central in the interior, one-sided at the ends."""
    f = asarray(f)
    axes = normal_axes(axis, f.ndim)
    spacings = list(varargs) or [1.0]
    if len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(f"invalid number of arguments{at_line(user_line())}")
    if edge_order not in (1, 2):
        raise ValueError(f"'edge_order' must be 1 or 2, not {edge_order}{at_line(user_line())}")
    if not is_inexact(f.dtype):
        f = cast(f, np.dtype(np.float64))
    results = []
    for i, spacing in zip(axes, spacings, strict=True):
        if f.shape[i] < edge_order + 1:
            raise ValueError(
                f"axis {i} of {f.type} is too short for a numerical gradient: at least (edge_order + 1) elements are "
                f"required{at_line(user_line())}"
            )
        g: Any = np.moveaxis(f, i, 0)
        found = _differences(g, _steps(spacing, g), edge_order)
        results.append(np.moveaxis(found.astype(f.dtype), 0, i))
    return results[0] if len(axes) == 1 else tuple(results)


def _steps(spacing: Any, g: Any) -> Any:
    """The distances between neighbours along the first axis: one number, or a column where they may differ."""
    if np.ndim(spacing) == 0:
        return spacing
    if np.shape(spacing) != g.shape[:1]:
        raise ValueError(
            f"when 1d, distances must match the length of their dimension: {np.shape(spacing)} and {g.shape}"
            + at_line(user_line())
        )
    places = asarray(spacing)
    steps = np.diff(places if is_inexact(places.dtype) else cast(places, np.dtype(np.float64)))
    return np.reshape(steps, (-1,) + (1,) * (g.ndim - 1))


def _differences(g: Any, steps: Any, edge_order: int) -> Any:
    slopes = (g[1:] - g[:-1]) / steps
    if np.ndim(steps) == 0:
        inner = (g[2:] - g[:-2]) / (2.0 * steps)
        before = after = 0.5
    else:
        # The slopes on both sides, each weighted by the other's distance.
        left, right = steps[:-1], steps[1:]
        inner = (slopes[:-1] * right + slopes[1:] * left) / (left + right)
        before, after = (left / (left + right))[:1], (right / (left + right))[-1:]
    first, last = slopes[:1], slopes[-1:]
    if edge_order == 2:
        # The parabola through the last three points goes on as the slope does.
        first = first - (slopes[1:2] - slopes[:1]) * before
        last = last + (slopes[-1:] - slopes[-2:-1]) * after
    return np.concatenate([first, inner, last])
