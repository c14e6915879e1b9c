"""Functions that act element by element and are no ufuncs: choices, rounding, comparisons, interpolation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.source import at_line, user_line
from ..core.types import is_complex, is_inexact
from ..ops import elementwise as e
from ..ops.shapes import full_like
from .dispatch import implements
from .manipulation import normal_axes
from .promotion import (
    asarray,
    broadcast_shapes,
    broadcast_to,
    cast,
    is_number,
    is_weak,
    operand,
    promote,
    result_dtype,
    same_value,
)
from .reductions import NO_VALUE, truth
from .ufuncs import deliver


@implements(np.where)
def where(condition: Any, x: Any = NO_VALUE, y: Any = NO_VALUE, /) -> Any:
    """`x` where the condition holds, else `y`; with the condition alone, where it holds, which asks for its value."""
    if x is NO_VALUE and y is NO_VALUE:
        return np.nonzero(condition)
    if x is NO_VALUE or y is NO_VALUE:
        raise ValueError(f"either both or neither of x and y should be given{at_line(user_line())}")
    mask = truth(condition)
    choices = [v if is_number(v) else asarray(v) for v in (x, y)]
    dtype = result_dtype(*choices)
    shape = broadcast_shapes("where", mask, *choices)
    z = e.select(broadcast_to(mask, shape), operand(choices[0], dtype, shape), operand(choices[1], dtype, shape))
    z.weak = is_weak(choices[0]) and is_weak(choices[1]) and dtype.kind != "b"
    return z


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """For each element, the choice whose condition is the first to hold."""
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
    return result


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Functions applied to the elements where their conditions hold, which asks for the values of the conditions."""
    x = asarray(x)
    conditions = [np.asarray(c) if isinstance(c, bool) else c for c in condlist]
    if np.ndim(condlist[0]) == 0 and x.ndim:
        conditions = [condlist]
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
        y[condition] = function(x[condition], *args, **kw) if callable(function) else function
    return y


@implements(np.clip)
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
    """Elements held between two bounds; one that equals a bound has half of its derivative, as for `maximum`."""
    low = min if a_min is NO_VALUE else a_min
    high = max if a_max is NO_VALUE else a_max
    result = asarray(a)
    if low is not NO_VALUE and low is not None:
        result = np.maximum(result, low, **options)
    if high is not NO_VALUE and high is not None:
        result = np.minimum(result, high, **options)
    return deliver(same_value(result) if result is a else result, out, "clip")


# Rounding


@implements(np.round, np.around)
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Rounded to a number of decimals, halves to even."""
    x = asarray(a)
    if is_complex(x.dtype):
        result: Any = e.complex_(np.round(x.real, decimals), np.round(x.imag, decimals))
    elif x.dtype.kind in "iu" and decimals >= 0:
        result = same_value(x)
    elif decimals:
        scale = 10.0 ** abs(decimals)
        inner = x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64))
        result = np.rint(inner * scale) / scale if decimals > 0 else np.rint(inner / scale) * scale
        result = cast(result, x.dtype)
    else:
        result = np.rint(x)
    return deliver(result, out, "round")


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    """Rounded towards zero."""
    return deliver(np.trunc(x), out, "fix")


# Comparisons and questions


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether elements are equal up to tolerances."""
    x, y = promote("isclose", a, b)
    if not is_inexact(x.dtype):
        x, y = cast(x, np.dtype(np.float64)), cast(y, np.dtype(np.float64))
    near = (np.abs(x - y) <= atol + rtol * np.abs(y)) & np.isfinite(y)
    result = near | (x == y)
    return result | (np.isnan(x) & np.isnan(y)) if equal_nan else result


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are equal up to tolerances; `if` and `bool` ask for the value."""
    return np.all(np.isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and elements are equal; `if` and `bool` ask for the value."""
    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        return False
    same: Any = x == y
    if equal_nan and is_inexact(x.dtype) and is_inexact(y.dtype):
        same = same | (np.isnan(x) & np.isnan(y))
    return np.all(same)


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether arrays are equal after broadcasting."""
    try:
        return np.all(np.equal(a1, a2))
    except ValueError:
        return False


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    """Whether elements are positive infinity."""
    return deliver(np.isinf(x) & ~np.signbit(x), out, "isposinf")


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    """Whether elements are negative infinity."""
    return deliver(np.isinf(x) & np.signbit(x), out, "isneginf")


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    """Whether elements have an imaginary part other than 0."""
    return np.imag(x) != 0


@implements(np.isreal)
def isreal(x: Any) -> Any:
    """Whether elements have an imaginary part of 0."""
    return np.imag(x) == 0


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """NaN and infinities replaced by numbers, whose derivative is 0."""
    x = asarray(x)
    if is_complex(x.dtype):
        return e.complex_(*(np.nan_to_num(part, True, nan, posinf, neginf) for part in (x.real, x.imag)))
    if not is_inexact(x.dtype):
        return same_value(x)
    limits = np.finfo(x.dtype)
    result: Any = np.where(np.isnan(x), nan, x)
    result = np.where(np.isposinf(x), float(limits.max) if posinf is None else posinf, result)
    result = np.where(np.isneginf(x), float(limits.min) if neginf is None else neginf, result)
    if not copy:
        x[...] = result
        return x
    return result


# Functions of one variable


@implements(np.sinc)
def sinc(x: Any) -> Any:
    """`sin(pi x) / (pi x)`, with all of its derivatives at 0."""
    x = asarray(x)
    (x,) = promote("sinc", x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64)))
    y = x * math.pi
    # Near 0 by its series, whose terms beyond these are below the rounding error.
    is_small = np.abs(y) < 0.1
    z = np.where(is_small, y, 0.0)
    square = z * z
    series = 1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0)))
    away = np.where(is_small, 1.0, y)
    return np.where(is_small, series, np.sin(away) / away)


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Linear interpolation between the points (xp, fp), of which xp is increasing."""
    x, xp, fp = asarray(x), asarray(xp), asarray(fp)
    dtype = np.promote_types(fp.dtype, np.float64)
    x, xp, fp = cast(x, np.dtype(np.float64)), cast(xp, np.dtype(np.float64)), cast(fp, dtype)
    if period is not None:
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
        result = y0 + (y1 - y0) * (np.where(empty, 0.0, x - x0) / np.where(empty, 1.0, width))
    if period is None:
        result = np.where(x < xp[0], fp[0] if left is None else left, result)
        result = np.where(x > xp[-1], fp[-1] if right is None else right, result)
    return result


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    """Angles without jumps of more than half a period along an axis."""
    p = asarray(p)
    (p,) = promote("unwrap", p if is_inexact(p.dtype) else cast(p, np.dtype(np.float64)))
    axis = axis % p.ndim
    steps = np.diff(p, axis=axis)
    half = period / 2
    wrapped = np.mod(steps + half, period) - half
    wrapped = np.where((wrapped == -half) & (steps > 0), half, wrapped)
    correction = np.where(np.abs(steps) < max(half if discont is None else discont, half), 0.0, wrapped - steps)
    lead = (slice(None),) * axis
    return np.concatenate([p[(*lead, slice(1))], p[(*lead, slice(1, None))] + np.cumsum(correction, axis)], axis)


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients `p`, highest power first, at `x`."""
    x = asarray(x)
    y: Any = full_like(x, 0)
    for coefficient in asarray(p):
        y = y * x + coefficient
    return y


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Differences over evenly spaced points along axes: central inside, one-sided at the ends."""
    f = asarray(f)
    axes = normal_axes(axis, f.ndim)
    spacings = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(f"invalid number of arguments{at_line(user_line())}")
    if any(np.ndim(s) for s in spacings) or edge_order != 1:
        raise NotImplementedError(
            f"np.gradient of traced values takes even spacings and edge_order=1{at_line(user_line())}"
        )
    if not is_inexact(f.dtype):
        f = cast(f, np.dtype(np.float64))
    results = []
    for i, spacing in zip(axes, spacings, strict=True):
        g: Any = np.moveaxis(f, i, 0)
        steps = g[1:] - g[:-1]
        inner = (g[2:] - g[:-2]) / 2.0
        results.append(np.moveaxis(np.concatenate([steps[:1], inner, steps[-1:]]) / spacing, 0, i))
    return results[0] if len(axes) == 1 else tuple(results)
