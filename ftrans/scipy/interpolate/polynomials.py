"""The polynomial through all points: `KroghInterpolator` in Newton's form, `BarycentricInterpolator` in Lagrange's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.interpolate

from ...base.foreign import axes_of_polynomial
from ...base.source import at_line, user_line
from ...numpy.dispatch import implements
from .objects import Form, enter
from .operands import as_double, as_real, holds, in_column, spread

__all__ = ["BarycentricInterpolator", "KroghInterpolator", "barycentric_interpolate", "krogh_interpolate"]


class _Polynomial(Form):
    """A polynomial that gives its value and derivatives at points along one axis."""

    xi: Any
    _axis: int

    def _all(self, x: Any, count: int) -> list[Any]:
        """The derivatives of orders 0 to `count` - 1 at points along one axis."""
        raise NotImplementedError

    def __call__(self, x: Any) -> Any:
        """Values at points."""
        return self.derivative(x, 0)

    def derivative(self, x: Any, der: int = 1) -> Any:
        """The derivative of one order at points."""
        points = as_real(x, "x")
        return spread(self._all(points.reshape(-1), der + 1)[der], points.shape, self._axis)

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """The derivatives of the orders below `der` at points, along a further first axis."""
        points = as_real(x, "x")
        found = self._all(points.reshape(-1), self.xi.shape[0] if der is None else der)
        return np.stack([spread(d, points.shape, self._axis) for d in found])


class Newton(_Polynomial):
    """A polynomial in Newton's form.

    Args:
        xi: abscissas; one that is there several times has derivatives for further values.
        c: coefficients, (n, ...).
        axis: the place of the axes of points among those of values.
    """

    stands_for = scipy.interpolate.KroghInterpolator

    def __init__(self, xi: Any, c: Any, axis: int) -> None:
        self.xi, self.c, self._axis = xi, c, axis

    def _all(self, x: Any, count: int) -> list[Any]:
        # Horner's scheme for the coefficients of Taylor's series at the points.
        zero = np.zeros((x.shape[0], *self.c.shape[1:]))
        taylor = [zero] * count
        for k in range(self.xi.shape[0] - 1, -1, -1):
            distance = in_column(x - self.xi[k], zero.ndim)
            for j in range(count - 1, 0, -1):
                taylor[j] = taylor[j] * distance + taylor[j - 1]
            taylor[0] = taylor[0] * distance + self.c[k]
        return [d * math.factorial(j) for j, d in enumerate(taylor)]


def _krogh(xi: Any, yi: Any, axis: int = 0) -> Newton:
    """`scipy.interpolate.KroghInterpolator`, whose data and points may be traced."""
    x, y, axis = _data(xi, yi, axis)
    c, column = [y[0]], [y[0]] * len(x)
    for k in range(1, len(x)):
        repeated = 0
        while repeated < k and holds(x[k - repeated - 1] == x[k]):
            repeated += 1
        column[0] = y[k] / math.factorial(repeated)
        for i in range(k - repeated):
            upper = column[i + 1] if repeated else c[i]
            column[i + 1] = (upper - column[i]) / (x[i] - x[k])
        c.append(column[k - repeated])
    return Newton(x, np.stack(c), axis)


def _data(xi: Any, yi: Any, axis: int) -> tuple[Any, Any, int]:
    x, y = as_real(xi, "xi"), as_double(yi)
    axis %= y.ndim
    if x.shape != (y.shape[axis],):
        raise ValueError(
            f"x and y arrays must be equal in length along interpolation axis, not {x.shape} and {y.shape[axis]}"
            f"{at_line(user_line())}"
        )
    return x, np.moveaxis(y, axis, 0), axis


class Lagrange(_Polynomial):
    """A polynomial in Lagrange's form.

    Args:
        xi: abscissas.
        y: values, with their axis first.
        axis: the place of the axes of points among those of values.
    """

    stands_for = scipy.interpolate.BarycentricInterpolator

    def __init__(self, xi: Any, y: Any, axis: int) -> None:
        self.xi, self._values, self._axis = xi, y, axis

    def _all(self, x: Any, count: int) -> list[Any]:
        n = self.xi.shape[0]
        # Distances of the order of one keep products in range.
        scale = 4.0 / (np.max(self.xi) - np.min(self.xi))
        between = (self.xi[:, None] - self.xi) * scale
        weights = 1.0 / np.prod(np.where(np.eye(n, dtype=bool), 1.0, between), axis=1)
        distances = (x[:, None] - self.xi) * scale
        # Products of all distances but one: no quotient, so that nodes are points like others.
        ones = np.ones_like(distances[:, :1])
        before = np.cumprod(np.concatenate([ones, distances[:, :-1]], axis=1), axis=1)
        after = np.cumprod(np.concatenate([ones, distances[:, :0:-1]], axis=1), axis=1)[:, ::-1]
        basis = before * after * weights
        values, found = self._values.reshape(n, -1), []
        matrix = self._matrix(weights) if count > 1 else None
        for order in range(count):
            values = matrix @ values if order else values
            found.append((basis @ values).reshape(x.shape[0], *self._values.shape[1:]))
        return found

    def _matrix(self, weights: Any) -> Any:
        """The matrix that takes values at the abscissas to derivatives there."""
        is_own = np.eye(self.xi.shape[0], dtype=bool)
        quotients = weights / (weights[:, None] * np.where(is_own, 1.0, self.xi[:, None] - self.xi))
        others = np.where(is_own, 0.0, quotients)
        return others - np.diag(np.sum(others, axis=1))


def _barycentric(xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None) -> Lagrange:
    """`scipy.interpolate.BarycentricInterpolator`, whose data and points may be traced."""
    if yi is None:
        raise ValueError(f"BarycentricInterpolator of traced abscissas needs its values at once{at_line(user_line())}")
    return Lagrange(*_data(xi, yi, axis))


def _of_krogh(f: Any) -> Newton:
    axis, shape = axes_of_polynomial(f)
    made = Newton(f.xi, f.c[: len(f.xi)].reshape(-1, *shape), axis)
    made.stands_for = type(f)
    return made


def _of_barycentric(f: Any) -> Lagrange:
    axis, shape = axes_of_polynomial(f)
    made = Lagrange(f.xi, f.yi.reshape(-1, *shape), axis)
    made.stands_for = type(f)
    return made


_METHODS = ("__call__", "derivative", "derivatives")
KroghInterpolator = enter(scipy.interpolate.KroghInterpolator, _krogh, _of_krogh, _METHODS)
BarycentricInterpolator = enter(scipy.interpolate.BarycentricInterpolator, _barycentric, _of_barycentric, _METHODS)


def _interpolated(polynomial: Any, x: Any, der: Any) -> Any:
    return polynomial.derivative(x, der) if np.ndim(der) == 0 else polynomial.derivatives(x, max(der) + 1)[list(der)]


@implements(scipy.interpolate.krogh_interpolate)
def krogh_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """`scipy.interpolate.krogh_interpolate`, whose data and points may be traced."""
    return _interpolated(_krogh(xi, yi, axis), x, der)


@implements(scipy.interpolate.barycentric_interpolate)
def barycentric_interpolate(xi: Any, yi: Any, x: Any, axis: int = 0, *, der: Any = 0, rng: Any = None) -> Any:
    """`scipy.interpolate.barycentric_interpolate`, whose data and points may be traced."""
    return _interpolated(_barycentric(xi, yi, axis), x, der)
