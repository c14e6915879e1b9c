"""Piecewise polynomials: `PPoly` in powers of the distance from the left end of a piece, `BPoly` in Bernstein's basis.

A coefficient array `c` of shape (k, m, ...) has the k coefficients of each of m pieces, between the breakpoints `x` of
shape (m + 1,).  Values are linear in `c`, and derivatives by points, coefficients and breakpoints are those of the
formula of the piece that a point lies in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.interpolate

from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...solvers.implicit import root
from .objects import Form, enter
from .operands import as_double, as_real, in_column, intervals, require, spread, take, value_of

__all__ = ["BPoly", "PPoly"]


class Pieces(Form):
    """A piecewise polynomial.

    Args:
        c: coefficients, (k, m, ...).
        x: breakpoints, (m + 1,).
        extrapolate: True, False or "periodic".
        axis: the place of the axes of points among those of values.
    """

    stands_for = scipy.interpolate.PPoly

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        self.c, self.x, self.axis = c, x, axis
        self.extrapolate = True if extrapolate is None else extrapolate

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Values, or derivatives of order `nu`, at points."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        points = as_real(x, "x")
        flat = points.reshape(-1)
        start, end = self.x[0], self.x[-1]
        if extrapolate == "periodic":
            flat = start + (flat - start) % (end - start)
        # Breakpoints may be in descending order.
        sign = np.where(end < start, -1.0, 1.0)
        piece = intervals(sign * self.x, sign * flat, 0, self.c.shape[1] - 1)
        left = take(self.x, piece)
        values = self._values(take(self.c, piece, axis=1), flat - left, take(self.x, piece + 1) - left, nu)
        lost = np.isnan(flat)
        if not extrapolate or extrapolate == "periodic":
            lost = ~((flat >= np.minimum(start, end)) & (flat <= np.maximum(start, end)))
        return spread(np.where(in_column(lost, values.ndim), np.nan, values), points.shape, self.axis)

    def _values(self, c: Any, distance: Any, width: Any, nu: int) -> Any:
        """Values at points of given coefficients, (k, points, ...), at distances from the left ends of their pieces."""
        distance = in_column(distance, c.ndim - 1)
        power, total = 1.0, np.zeros(c.shape[1:], c.dtype)
        for exponent in range(nu, c.shape[0]):
            term = c[c.shape[0] - 1 - exponent]
            total = total + term * power * math.perm(exponent, nu) if exponent > nu else term * math.factorial(nu)
            power = power * distance
        return total

    def _like(self, c: Any, extrapolate: Any = None) -> Any:
        made = type(self)(c, self.x, self.extrapolate if extrapolate is None else extrapolate, self.axis)
        made.stands_for = self.stands_for
        return made

    def derivative(self, nu: int = 1) -> Any:
        """The piecewise polynomial of derivatives."""
        if nu < 0:
            return self.antiderivative(-nu)
        k = self.c.shape[0]
        if nu >= k:
            return self._like(np.zeros_like(self.c[:1]))
        factors = np.array([math.perm(k - 1 - j, nu) for j in range(k - nu)], float)
        return self._like(self.c[: k - nu] * in_column(factors, self.c.ndim))

    def antiderivative(self, nu: int = 1) -> Any:
        """The piecewise polynomial of antiderivatives, which is continuous and 0 at the first breakpoint."""
        if nu <= 0:
            return self.derivative(-nu)
        c, widths = self.c, in_column(np.diff(self.x), self.c.ndim - 1)
        for _ in range(nu):
            raised = c / in_column(np.arange(c.shape[0], 0, -1.0), c.ndim)
            rise = np.zeros(c.shape[1:])
            for row in raised:
                rise = (rise + row) * widths
            start = np.cumsum(rise, axis=0) - rise
            c = np.concatenate([raised, start[None]])
        return self._like(c, self.extrapolate != "periodic" and self.extrapolate)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from `a` to `b`."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        whole = self.antiderivative()
        if extrapolate != "periodic":
            return whole(b, extrapolate=extrapolate) - whole(a, extrapolate=extrapolate)
        start, end = self.x[0], self.x[-1]
        turn = whole(end)

        def up_to(point: Any) -> Any:
            turns = np.floor((point - start) / (end - start))
            return turns * turn + whole(point - turns * (end - start))

        return up_to(b) - up_to(a)

    def solve(self, y: Any = 0.0, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """The points where the value is `y`, in ascending order.

        They are differentiated implicitly.  How many there are depends on values, so a compiled function takes no data
        for them; it is compiled again for another `y`.
        """
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if self.c.ndim > 2:
            raise MissingRule(f"roots of traced values are those of one polynomial{at_line(user_line())}")
        c, x, level = (value_of(z, "looking for roots needs the value of") for z in (self.c, self.x, y))
        places = scipy.interpolate.PPoly(c, x).solve(level, discontinuity, extrapolate)
        jumps = np.abs(scipy.interpolate.PPoly(c, x)(places) - level) > 1e-6 * np.max(np.abs(c), initial=1.0)
        if np.any(np.isnan(places) | jumps):
            raise MissingRule(
                f"the polynomial is equal to {level} on a whole piece, or jumps over it: there is no root with a "
                f"derivative; with discontinuity=False jumps are left out{at_line(user_line())}"
            )
        return root(lambda points: self(points, extrapolate=True) - y, places)

    def roots(self, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """The points where the value is 0, as of `solve`."""
        return self.solve(0.0, discontinuity, extrapolate)


class BernsteinPieces(Pieces):
    """A piecewise polynomial in Bernstein's basis."""

    stands_for = scipy.interpolate.BPoly

    def _values(self, c: Any, distance: Any, width: Any, nu: int) -> Any:
        width = in_column(width, c.ndim - 1)
        for _ in range(nu):
            c = (c.shape[0] - 1) * np.diff(c, axis=0) / width if c.shape[0] > 1 else np.zeros_like(c)
        degree, part = c.shape[0] - 1, in_column(distance, c.ndim - 1) / width
        terms = [math.comb(degree, j) * part**j * (1 - part) ** (degree - j) * c[j] for j in range(degree + 1)]
        return sum(terms[1:], terms[0])

    def derivative(self, nu: int = 1) -> Any:
        """The piecewise polynomial of derivatives."""
        if nu < 0:
            return self.antiderivative(-nu)
        c, widths = self.c, in_column(np.diff(self.x), self.c.ndim - 1)
        for _ in range(nu):
            c = (c.shape[0] - 1) * np.diff(c, axis=0) / widths if c.shape[0] > 1 else np.zeros_like(c)
        return self._like(c)

    def antiderivative(self, nu: int = 1) -> Any:
        """The piecewise polynomial of antiderivatives, which is continuous and 0 at the first breakpoint."""
        if nu <= 0:
            return self.derivative(-nu)
        c, widths = self.c, in_column(np.diff(self.x), self.c.ndim - 1)
        for _ in range(nu):
            sums = np.concatenate([np.zeros_like(c[:1]), np.cumsum(c, axis=0) / c.shape[0]]) * widths
            rise = sums[-1]
            c = sums + (np.cumsum(rise, axis=0) - rise)
        return self._like(c, self.extrapolate != "periodic" and self.extrapolate)


def of_pieces(p: Any) -> Pieces:
    """The form of a piecewise polynomial of SciPy."""
    form = BernsteinPieces if isinstance(p, scipy.interpolate.BPoly) else Pieces
    made = form(p.c, p.x, p.extrapolate, p.axis)
    made.stands_for = type(p)
    return made


def _checked(form: type[Pieces], c: Any, x: Any, extrapolate: Any, axis: int) -> Pieces:
    """A form of coefficients whose axis of pieces may be another, as SciPy's constructors take them."""
    c, x = as_double(c), as_real(x, "x")
    if c.ndim < 2 or not 0 <= axis < c.ndim - 1:
        raise ValueError(f"axis={axis} is not one of the {c.ndim} axes of the coefficients{at_line(user_line())}")
    if x.ndim != 1 or len(x) < 2 or c.shape[0] == 0:
        raise ValueError(f"at least 2 breakpoints and 1 coefficient are needed{at_line(user_line())}")
    c = np.moveaxis(c, (axis, axis + 1), (0, 1))
    if c.shape[1] != len(x) - 1:
        raise ValueError(f"{len(x)} breakpoints need coefficients of {len(x) - 1} pieces, not of {c.shape[1]}")
    steps = np.diff(x)
    is_monotonic = np.all(steps >= 0) | np.all(steps <= 0)
    x = require(is_monotonic, "`x` must be strictly increasing or decreasing.", x)
    return form(c, x, extrapolate if extrapolate in (None, "periodic") else bool(extrapolate), axis)


def _ppoly(c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Pieces:
    """`scipy.interpolate.PPoly`, whose coefficients, breakpoints and points may be traced."""
    return _checked(Pieces, c, x, extrapolate, axis)


def _bpoly(c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Pieces:
    """`scipy.interpolate.BPoly`, whose coefficients, breakpoints and points may be traced."""
    return _checked(BernsteinPieces, c, x, extrapolate, axis)


METHODS = ("__call__", "integrate")
PPoly = enter(scipy.interpolate.PPoly, _ppoly, of_pieces, (*METHODS, "solve"))
BPoly = enter(scipy.interpolate.BPoly, _bpoly, of_pieces, METHODS)
