"""The interface of FITPACK to splines: `splrep` and its kin on tuples `(t, c, k)`, `UnivariateSpline` and its kin.

A spline through its data, or nearest to data for given knots, is linear in the data.  With a smoothing factor FITPACK
chooses the knots by the data, so such a spline has derivatives by its points only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate

from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...numpy.dispatch import implements
from .bsplines import Spline, antiderived, derived, evaluate, interpolating, nearest, not_a_knot
from .objects import Form, enter, form_of
from .operands import as_double, as_real, holds, is_plain, joined

__all__ = [
    "InterpolatedUnivariateSpline", "LSQUnivariateSpline", "UnivariateSpline", "splantider", "splder", "splev",
    "splint", "splrep",
]  # fmt: skip

_MODES = {0: 0, "extrapolate": 0, 1: 1, "zeros": 1, 2: 2, "raise": 2, 3: 3, "const": 3}
_SMOOTHING = (
    "with a smoothing factor the knots are chosen by the data, which has no derivative; write s=0 for the spline "
    "through the data, or give knots: t= of splrep, LSQUnivariateSpline or make_lsq_spline"
)


def _at(t: Any, c: Any, k: int, x: Any, nu: int, mode: Any) -> Any:
    """Values at points of any shape; the mode says what is outside of the base interval."""
    if mode not in _MODES:
        raise ValueError(f"Unknown extrapolation mode {mode}.{at_line(user_line())}")
    if not 0 <= nu <= k:
        raise ValueError(f"the order of the derivative is from 0 to the degree {k}, not {nu}{at_line(user_line())}")
    mode, points = _MODES[mode], as_real(x, "x")
    flat = points.reshape(-1)
    start, end = t[k], t[t.shape[0] - k - 1]
    outside = (flat < start) | (flat > end)
    if mode == 2 and holds(np.any(outside)):
        raise ValueError(f"Found x value not in the domain{at_line(user_line())}")
    # FITPACK knows the values at the ends as a mode of values only; derivatives it extrapolates then.
    values = evaluate(t, c, k, np.clip(flat, start, end) if mode == 3 and nu == 0 else flat, nu)
    if mode in (1, 2):
        values = np.where(outside, 0.0 if mode == 1 else np.nan, values)
    return values.reshape(points.shape)


def _parts(tck: Any) -> tuple[Any, Any, int]:
    """Knots, coefficients and degree of a tuple or of a `BSpline`."""
    t, c, k = form_of(tck).tck if isinstance(tck, scipy.interpolate.BSpline) else tck
    return as_real(t, "t"), c if isinstance(c, list | tuple) and np.ndim(c[0]) else as_double(c), int(k)


def _each(c: Any, of_one: Any) -> Any:
    """What a function makes of coefficients, or a list of it for those of each coordinate of a curve."""
    is_curve = isinstance(c, list | tuple) or c.ndim > 1
    return [of_one(as_double(row)) for row in c] if is_curve else of_one(c)


@implements(scipy.interpolate.splev)
def _splev(x: Any, tck: Any, der: int = 0, ext: Any = 0) -> Any:
    t, c, k = _parts(tck)
    return _each(c, lambda c: _at(t, c, k, x, der, ext))


def splev(x: Any, tck: Any, der: int = 0, ext: Any = 0) -> Any:
    """`scipy.interpolate.splev`: values or derivatives of a spline, whose points and parts may be traced."""
    parts = tck.tck if isinstance(tck, scipy.interpolate.BSpline) else tck
    return (scipy.interpolate.splev if is_plain(x, parts) else _splev)(x, tck, der, ext)


@implements(scipy.interpolate.splint)
def _splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    if full_output:
        raise MissingRule(f"splint has no full_output of traced values; write full_output=0{at_line(user_line())}")
    t, c, k = _parts(tck)
    return _each(c, lambda c: Spline(t, c, k).integrate(a, b, extrapolate=False))


def splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    """`scipy.interpolate.splint`: the integral of a spline, whose limits and parts may be traced."""
    parts = tck.tck if isinstance(tck, scipy.interpolate.BSpline) else tck
    return (scipy.interpolate.splint if is_plain(a, b, parts) else _splint)(a, b, tck, full_output)


@implements(scipy.interpolate.splder)
def _splder(tck: Any, n: int = 1) -> Any:
    if isinstance(tck, scipy.interpolate.BSpline):
        return tck.derivative(n)
    return antiderived(*_parts(tck), -n) if n < 0 else derived(*_parts(tck), n)


def splder(tck: Any, n: int = 1) -> Any:
    """`scipy.interpolate.splder`: the derivative of a spline, whose parts may be traced."""
    return (scipy.interpolate.splder if is_plain(tck) else _splder)(tck, n)


@implements(scipy.interpolate.splantider)
def _splantider(tck: Any, n: int = 1) -> Any:
    return _splder(tck, -n)


def splantider(tck: Any, n: int = 1) -> Any:
    """`scipy.interpolate.splantider`: the antiderivative of a spline, whose parts may be traced."""
    return (scipy.interpolate.splantider if is_plain(tck) else _splantider)(tck, n)


@implements(scipy.interpolate.splrep)
def splrep(
    x: Any,
    y: Any,
    w: Any = None,
    xb: Any = None,
    xe: Any = None,
    k: int = 3,
    task: int = 0,
    s: Any = None,
    t: Any = None,
    full_output: int = 0,
    per: int = 0,
    quiet: int = 1,
) -> Any:
    """`scipy.interpolate.splrep`, whose data may be traced where `s` is 0 or the inner knots `t` are given."""
    if full_output:
        raise MissingRule(f"splrep has no full_output of traced values; write full_output=0{at_line(user_line())}")
    if t is None and (s if s is not None else w is not None):
        raise MissingRule(f"splrep of traced data: {_SMOOTHING}{at_line(user_line())}")
    if per:
        if t is not None:
            raise MissingRule(f"splrep of traced data has no periodic splines of given knots{at_line(user_line())}")
        found = interpolating(x, y, k, bc_type="periodic")
    else:
        found = _fitted(x, y, w, (xb, xe), k, t)
    return found.t, np.concatenate([found.c, np.zeros(k + 1)]), k


def _fitted(x: Any, y: Any, w: Any, ends: tuple[Any, Any], k: int, inner: Any) -> Spline:
    """The spline through data, or with inner knots that nearest to them, on the interval between two ends."""
    x = as_real(x, "x")
    start, end = (default if given is None else given for given, default in zip(ends, (x[0], x[-1]), strict=True))
    if inner is None:
        inner = not_a_knot(x, k)[k + 1 : -k - 1]
        return interpolating(x, y, k, joined([*[start] * (k + 1), inner, *[end] * (k + 1)]))
    return nearest(x, y, joined([*[start] * (k + 1), as_real(inner, "t"), *[end] * (k + 1)]), k, w)


# Objects


class Fitted(Form):
    """A spline of FITPACK.

    Args:
        t: knots.
        c: coefficients.
        k: degree.
        ext: what is outside of the base interval.
        residual: the sum of squared weighted distances from the data.
    """

    stands_for = scipy.interpolate.UnivariateSpline

    def __init__(self, t: Any, c: Any, k: int, ext: Any = 0, residual: Any = None) -> None:
        if ext not in _MODES:
            raise ValueError(f"Unknown extrapolation mode {ext}.{at_line(user_line())}")
        self._tck, self.ext, self._residual = (t, c, k), _MODES[ext], residual

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        """Values, or derivatives of order `nu`, at points."""
        return _at(*self._tck, x, nu, self.ext if ext is None else ext)

    def get_knots(self) -> Any:
        """The knots, those at the ends once."""
        t, _, k = self._tck
        return t[k : t.shape[0] - k]

    def get_coeffs(self) -> Any:
        """The coefficients."""
        return self._tck[1]

    def get_residual(self) -> Any:
        """The sum of squared weighted distances from the data."""
        return self._residual

    def integral(self, a: Any, b: Any) -> Any:
        """The integral from `a` to `b` of the spline, which is 0 outside of its base interval."""
        return Spline(*self._tck).integrate(a, b, extrapolate=False)

    def derivatives(self, x: Any) -> Any:
        """The value and all derivatives at one point."""
        return np.stack([_at(*self._tck, x, nu, 0) for nu in range(self._tck[2] + 1)])

    def derivative(self, n: int = 1) -> Fitted:
        """The spline of derivatives."""
        t, c, k = derived(*self._tck, n)
        return Fitted(t, c[: t.shape[0] - k - 1], k, 1 if self.ext == 3 else self.ext)

    def antiderivative(self, n: int = 1) -> Fitted:
        """The spline of antiderivatives, 0 at the first knot."""
        t, c, k = antiderived(*self._tck, n)
        return Fitted(t, c[: t.shape[0] - k - 1], k, self.ext)


def _of_fitted(spline: Any) -> Fitted:
    knots, c = spline.get_knots(), spline.get_coeffs()
    k = len(c) - len(knots) + 1
    made = Fitted(np.concatenate([[knots[0]] * k, knots, [knots[-1]] * k]), c, k, spline.ext, spline.get_residual())
    made.stands_for = type(spline)
    return made


def _made(cls: type, x: Any, y: Any, w: Any, bbox: Any, k: int, ext: Any, inner: Any = None) -> Fitted:
    spline = _fitted(x, y, w, tuple(bbox), k, inner)
    distances = (evaluate(*spline.tck, as_real(x, "x")) - as_double(y)) * (1.0 if w is None else as_real(w, "w"))
    made = Fitted(*spline.tck, ext, np.sum(distances**2))
    made.stands_for = cls
    return made


def _univariate(
    x: Any,
    y: Any,
    w: Any = None,
    bbox: Any = (None, None),
    k: int = 3,
    s: Any = None,
    ext: Any = 0,
    check_finite: bool = False,
) -> Fitted:
    """`scipy.interpolate.UnivariateSpline`, whose points may be traced, and its data where `s` is 0."""
    if s is None or s:
        raise MissingRule(f"UnivariateSpline of traced data: {_SMOOTHING}{at_line(user_line())}")
    return _made(scipy.interpolate.UnivariateSpline, x, y, w, bbox, k, ext)


def _interpolated(
    x: Any,
    y: Any,
    w: Any = None,
    bbox: Any = (None, None),
    k: int = 3,
    ext: Any = 0,
    check_finite: bool = False,
) -> Fitted:
    """`scipy.interpolate.InterpolatedUnivariateSpline`, whose data and points may be traced."""
    return _made(scipy.interpolate.InterpolatedUnivariateSpline, x, y, w, bbox, k, ext)


def _lsq(
    x: Any,
    y: Any,
    t: Any,
    w: Any = None,
    bbox: Any = (None, None),
    k: int = 3,
    ext: Any = 0,
    check_finite: bool = False,
) -> Fitted:
    """`scipy.interpolate.LSQUnivariateSpline`, whose data, weights, knots and points may be traced."""
    return _made(scipy.interpolate.LSQUnivariateSpline, x, y, w, bbox, k, ext, t)


_METHODS = ("__call__", "integral", "derivatives")
_MAKES = ("derivative", "antiderivative")
UnivariateSpline = enter(scipy.interpolate.UnivariateSpline, _univariate, _of_fitted, _METHODS, _MAKES)
InterpolatedUnivariateSpline = enter(
    scipy.interpolate.InterpolatedUnivariateSpline, _interpolated, _of_fitted, _METHODS, _MAKES
)
LSQUnivariateSpline = enter(scipy.interpolate.LSQUnivariateSpline, _lsq, _of_fitted, _METHODS, _MAKES)
