"""B-splines: `BSpline`, and the splines that interpolate data or are nearest to them.

Values are sums of coefficients times the basis functions that are not zero at a point, by the recurrence of Cox and de
Boor.  Interpolation solves the linear system of the values of basis functions at the data points.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.interpolate

from ...base.source import at_line, user_line
from ...numpy.dispatch import implements
from .objects import Form, enter
from .operands import (
    as_double,
    as_real,
    in_column,
    intervals,
    is_plain,
    joined,
    least_squares,
    require,
    solve,
    spread,
    take,
)

__all__ = ["BSpline", "make_interp_spline", "make_lsq_spline"]


def basis(t: Any, k: int, x: Any, nu: int = 0) -> tuple[Any, list[Any]]:
    """The basis functions that are not zero at points, or their derivatives of order `nu`.

    Args:
        t: knots.
        k: degree.
        x: points, one axis.
        nu: order of derivatives.

    Returns:
        The index of the interval of each point, and the values of the basis functions from that index less `k` on.
    """
    interval = intervals(t, x, k, t.shape[0] - k - 2)
    if nu > k:
        return interval, [np.zeros_like(x)] * (k + 1)
    knots = {j: take(t, interval + j) for j in range(1 - k, k + 1)}
    # Within a base interval whose first and last pieces have a width, no point is in a piece without.
    has_ends = is_plain(t) and t[k] < t[k + 1] and t[-k - 2] < t[-k - 1]
    values = [np.ones_like(x)]
    for degree in range(1, k + 1):
        raised: list[Any] = [0.0] * (degree + 1)
        for j, value in enumerate(values):
            high, low = knots[j + 1], knots[j + 1 - degree]
            share = value / (high - low) if has_ends else _quotient(value, high - low)
            falling, rising = (high - x, x - low) if degree <= k - nu else (-degree, degree)
            raised[j] = raised[j] + share * falling
            raised[j + 1] = share * rising
        values = raised
    return interval, values


def _quotient(a: Any, width: Any) -> Any:
    """`a / width`, and 0 where the width is 0."""
    return np.where(width == 0, 0.0, a / np.where(width == 0, 1.0, width))


def collocation(t: Any, k: int, x: Any, nu: int = 0) -> Any:
    """The matrix that takes coefficients to values, or derivatives of order `nu`, at points: (points, coefficients)."""
    interval, values = basis(t, k, x, nu)
    columns = np.arange(t.shape[0] - k - 1)
    return sum(np.where(columns == (interval - k + a)[:, None], v[:, None], 0.0) for a, v in enumerate(values))


def evaluate(t: Any, c: Any, k: int, x: Any, nu: int = 0) -> Any:
    """Values of a spline, or derivatives of order `nu`, at points along one axis; `c` has the shape (n, ...)."""
    interval, values = basis(t, k, x, nu)
    terms = [take(c, interval - k + a, axis=0) * in_column(v, c.ndim) for a, v in enumerate(values)]
    return sum(terms[1:], terms[0])


def derived(t: Any, c: Any, k: int, nu: int) -> tuple[Any, Any, int]:
    """Knots, coefficients (with zeros at the end, as SciPy's have) and degree of the derivative of order `nu`."""
    if nu > k:
        raise ValueError(f"Order of derivative ({nu}) must be <= order of spline ({k}){at_line(user_line())}")
    c = c[: t.shape[0] - k - 1]
    for _ in range(nu):
        width = t[k + 1 : -1] - t[1 : -k - 1]
        # The coefficient of a basis function of width 0 has no influence.
        share = in_column(_quotient(float(k), width), c.ndim)
        t, c, k = t[1:-1], np.diff(c, axis=0) * share, k - 1
    return t, np.concatenate([c, np.zeros((k + 1, *c.shape[1:]))]), k


def antiderived(t: Any, c: Any, k: int, nu: int) -> tuple[Any, Any, int]:
    """Knots, coefficients (the last of them repeated) and degree of the antiderivative that is 0 at the first knot."""
    c = c[: t.shape[0] - k - 1]
    for _ in range(nu):
        sums = np.cumsum(c * in_column(t[k + 1 :] - t[: -k - 1], c.ndim), axis=0) / (k + 1)
        t, c, k = joined([t[0], t, t[-1]]), np.concatenate([np.zeros_like(sums[:1]), sums]), k + 1
    return t, np.concatenate([c, *[c[-1:]] * (k + 1)]), k


class Spline(Form):
    """A spline in the basis of B-splines.

    Args:
        t: knots, (n + k + 1,).
        c: coefficients, (n, ...).
        k: degree.
        extrapolate: True, False or "periodic".
        axis: the place of the axes of points among those of values.
    """

    stands_for = scipy.interpolate.BSpline

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        self.t, self.c, self.k, self.extrapolate, self.axis = t, c, k, extrapolate, axis

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Values, or derivatives of order `nu`, at points."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        points = as_real(x, "x")
        flat = points.reshape(-1)
        start, end = self._ends()
        if extrapolate == "periodic":
            flat = start + (flat - start) % (end - start)
        lost = np.isnan(flat)
        if not extrapolate or extrapolate == "periodic":
            lost = ~((flat >= start) & (flat <= end))
        values = evaluate(self.t, self.c, self.k, flat, nu)
        return spread(np.where(in_column(lost, values.ndim), np.nan, values), points.shape, self.axis)

    def _ends(self) -> tuple[Any, Any]:
        return self.t[self.k], self.t[self.t.shape[0] - self.k - 1]

    def _like(self, t: Any, c: Any, k: int, extrapolate: Any) -> Spline:
        made = Spline(t, c, k, extrapolate, self.axis)
        made.stands_for = self.stands_for
        return made

    def derivative(self, nu: int = 1) -> Spline:
        """The spline of derivatives."""
        if nu < 0:
            return self.antiderivative(-nu)
        if nu > self.k:
            raise ValueError(f"Order of derivative ({nu}) must be <= order of spline ({self.k}){at_line(user_line())}")
        t, c, k = derived(*self.tck, nu)
        return self._like(t, c, k, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> Spline:
        """The spline of antiderivatives, 0 at the first knot."""
        if nu < 0:
            return self.derivative(-nu)
        t, c, k = antiderived(*self.tck, nu)
        return self._like(t, c, k, self.extrapolate != "periodic" and self.extrapolate)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from `a` to `b`; without extrapolation that of the part inside of the base interval."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        whole = self.antiderivative()
        start, end = self._ends()
        if extrapolate == "periodic":
            low = whole(start)
            turn = whole(end) - low

            def up_to(point: Any) -> Any:
                turns = np.floor((point - start) / (end - start))
                return turns * turn + whole(point - turns * (end - start)) - low

            return up_to(b) - up_to(a)
        if not extrapolate:
            a, b = np.clip(a, start, end), np.clip(b, start, end)
        return whole(b, extrapolate=True) - whole(a, extrapolate=True)


def of_spline(spline: Any) -> Spline:
    """The form of a spline of SciPy."""
    made = Spline(spline.t, spline.c, spline.k, spline.extrapolate, spline.axis)
    made.stands_for = type(spline)
    return made


def _bspline(t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> Spline:
    """`scipy.interpolate.BSpline`, whose knots, coefficients and points may be traced."""
    t, c, k = as_real(t, "t"), as_double(c), operator.index(k)
    c = np.moveaxis(c, axis, 0)
    if k < 0 or t.ndim != 1:
        raise ValueError(f"a spline has a degree from 0 on, and knots along one axis{at_line(user_line())}")
    n = t.shape[0] - k - 1
    if n < k + 1 or c.shape[0] < n:
        raise ValueError(
            f"{t.shape[0]} knots do not fit {c.shape[0]} coefficients and degree {k}: at least {2 * k + 2} knots are "
            f"needed, and at least {n} coefficients{at_line(user_line())}"
        )
    t = require(np.diff(t) >= 0, "Knots must be in a non-decreasing order.", t)
    return Spline(t, c, k, extrapolate if extrapolate == "periodic" else bool(extrapolate), axis % c.ndim)


BSpline = enter(scipy.interpolate.BSpline, _bspline, of_spline, ("__call__", "integrate"))


# Splines from data


def _with_points(spline: Any) -> Any:
    """A spline of SciPy as one that takes traced points."""
    return BSpline.construct_fast(*spline.tck, extrapolate=spline.extrapolate, axis=spline.axis)


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> Any:
    """`scipy.interpolate.make_interp_spline`, whose data, knots, boundary values and points may be traced."""
    if is_plain(x, y, t, bc_type):
        return _with_points(scipy.interpolate.make_interp_spline(x, y, k, t, bc_type, axis, check_finite))
    return interpolating(x, y, k, t, bc_type, axis)


def make_lsq_spline(
    x: Any,
    y: Any,
    t: Any,
    k: int = 3,
    w: Any = None,
    axis: int = 0,
    check_finite: bool = True,
    *,
    method: str = "qr",
) -> Any:
    """`scipy.interpolate.make_lsq_spline`, whose data, weights, knots and points may be traced."""
    if is_plain(x, y, t, w):
        return _with_points(scipy.interpolate.make_lsq_spline(x, y, t, k, w, axis, check_finite, method=method))
    return nearest(x, y, t, k, w, axis)


@implements(scipy.interpolate.make_interp_spline)
def interpolating(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> Spline:
    """The spline through data points."""
    x, y, k = as_real(x, "x"), as_double(y), operator.index(k)
    axis %= y.ndim
    y = np.moveaxis(y, axis, 0)
    _check_data("make_interp_spline", x, y)
    x = require(np.diff(x) > 0, "Expect x to be a 1D strictly increasing sequence.", x)
    is_periodic = isinstance(bc_type, str) and bc_type == "periodic"
    if isinstance(bc_type, str):
        ends = [None, None] if bc_type in ("not-a-knot", "periodic") else [bc_type, bc_type]
    else:
        ends = [None, None] if bc_type is None else list(bc_type)
    if k < 2 and t is None:
        if ends != [None, None]:
            raise ValueError(f"Too much info for k={k}: bc_type can only be None.{at_line(user_line())}")
        return Spline(joined([x, x[-1]] if k == 0 else [x[0], x, x[-1]]), y, k, True, axis)
    if is_periodic:
        return _periodic(x, y, k, t, axis)
    left, right = (_end_derivatives(e, y.shape[1:]) for e in ends)
    if t is None:
        t = joined([x[0]] * k + [x] + [x[-1]] * k) if left or right else not_a_knot(x, k)
    t = as_real(t, "t")
    count = t.shape[0] - k - 1
    if count - len(x) != len(left) + len(right):
        raise ValueError(
            f"The number of derivatives at boundaries does not match: expected {count - len(x)}, got "
            f"{len(left)}+{len(right)}{at_line(user_line())}"
        )
    rows = [collocation(t, k, x[:1], order) for order, _ in left]
    rows += [collocation(t, k, x), *(collocation(t, k, x[-1:], order) for order, _ in right)]
    data = [*(value[None] for _, value in left), y, *(value[None] for _, value in right)]
    return Spline(t, solve(np.concatenate(rows), np.concatenate(data)), k, True, axis)


def _check_data(name: str, x: Any, y: Any) -> None:
    if x.ndim != 1 or len(x) != y.shape[0]:
        raise ValueError(f"{name}: Shapes of x {x.shape} and y {y.shape} are incompatible{at_line(user_line())}")


def _end_derivatives(condition: Any, shape: tuple[int, ...]) -> list[tuple[int, Any]]:
    """The orders and values of derivatives that are given at an end."""
    if condition is None:
        return []
    if isinstance(condition, str):
        orders = {"clamped": 1, "natural": 2}
        if condition not in orders:
            raise ValueError(f"Unknown boundary condition: {condition}{at_line(user_line())}")
        return [(orders[condition], np.zeros(shape))]
    return [(operator.index(order), as_double(value).reshape(shape)) for order, value in condition]


def not_a_knot(x: Any, k: int) -> Any:
    """The knots of the spline of degree `k` that is one polynomial over the first and the last pieces."""
    inner = x if k % 2 else (x[1:] + x[:-1]) / 2
    skipped = (k + 1) // 2
    return joined([x[0]] * (k + 1) + [inner[skipped:-skipped]] + [x[-1]] * (k + 1))


def _periodic(x: Any, y: Any, k: int, t: Any, axis: int) -> Spline:
    """The periodic spline: derivatives up to the order k - 1 are the same at both ends."""
    if t is not None:
        raise NotImplementedError(f"For periodic case t is constructed automatically{at_line(user_line())}")
    is_closed = np.abs(y[0] - y[-1]) <= 1e-15 + 1e-5 * np.abs(y[-1])
    y = require(is_closed, "First and last points do not match while the periodic case is asked for.", y)
    t = _periodic_knots(x, k)
    rows = [collocation(t, k, x[:1], nu) - collocation(t, k, x[-1:], nu) for nu in range(1, k)]
    zeros = np.zeros((k - 1, *y.shape[1:]))
    coefficients = solve(np.concatenate([*rows, collocation(t, k, x)]), np.concatenate([zeros, y]))
    return Spline(t, coefficients, k, "periodic", axis)


def _periodic_knots(x: Any, k: int) -> Any:
    inner = x if k % 2 else joined([x[0], (x[1:-1] + x[:-2]) / 2, x[-1]])
    widths = np.diff(inner)
    around = np.arange(k) % widths.shape[0]
    before, after = np.cumsum(widths[-1 - around]), np.cumsum(widths[around])
    return np.concatenate([(inner[0] - before)[::-1], inner, inner[-1] + after])


@implements(scipy.interpolate.make_lsq_spline)
def nearest(
    x: Any,
    y: Any,
    t: Any,
    k: int = 3,
    w: Any = None,
    axis: int = 0,
    check_finite: bool = True,
    *,
    method: str = "qr",
) -> Spline:
    """The spline with given knots that is nearest to data points."""
    x, y, t, k = as_real(x, "x"), as_double(y), as_real(t, "t"), operator.index(k)
    axis %= y.ndim
    y = np.moveaxis(y, axis, 0)
    _check_data("make_lsq_spline", x, y)
    weights = np.ones(len(x)) if w is None else as_real(w, "w")
    matrix = collocation(t, k, x) * weights[:, None]
    return Spline(t, least_squares(matrix, y * in_column(weights, y.ndim)), k, True, axis)
