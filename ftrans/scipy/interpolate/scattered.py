"""Interpolation between scattered points: `LinearNDInterpolator` on simplices, `NearestNDInterpolator`, `griddata`.

The points of the data are plain, so the triangulation is of SciPy.  Values are linear in the data, and in the point
within each simplex.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate

from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...numpy.dispatch import implements
from .between import interp1d
from .grids import coordinates
from .objects import Form, enter
from .operands import as_double, in_column, is_plain, take

__all__ = ["LinearNDInterpolator", "NearestNDInterpolator", "griddata"]

# SciPy's tolerance for points on the border of a simplex.
_BORDER = 100 * np.finfo(float).eps


class _Scattered(Form):
    """A function of values at plain points.

    Args:
        plain: the same interpolator of SciPy, for other values.
        values: values, (points, ...).
    """

    def __init__(self, plain: Any, values: Any) -> None:
        self._plain, self.values = plain, values

    def __call__(self, *args: Any) -> Any:
        """Values at points, whose coordinates are along the last axis, or several arguments."""
        xi = coordinates(args[0] if len(args) == 1 else args, self._plain.points.shape[1])
        flat = xi.reshape(-1, xi.shape[-1])
        if self._plain.scale is not None:
            flat = (flat - self._plain.offset) / self._plain.scale
        return self._at(flat).reshape(*xi.shape[:-1], *self.values.shape[1:])

    def _at(self, x: Any) -> Any:
        raise NotImplementedError


class OnSimplices(_Scattered):
    """A function that is linear in each simplex of a triangulation."""

    stands_for = scipy.interpolate.LinearNDInterpolator

    def _at(self, x: Any) -> Any:
        mesh, ndim = self._plain.tri, self._plain.points.shape[1]
        matrices, corners = mesh.transform[:, :ndim], mesh.transform[:, ndim]
        # Barycentric coordinates in all simplices: the one where the least of them is greatest has the point.
        parts = np.einsum("sij,psj->psi", matrices, x[:, None, :] - corners)
        least = np.minimum(np.min(parts, axis=-1), 1.0 - np.sum(parts, axis=-1))
        least = np.where(np.isnan(matrices[:, 0, 0]), -np.inf, least)
        simplex = np.argmax(least, axis=1)
        inner = np.einsum("pij,pj->pi", take(matrices, simplex, axis=0), x - take(corners, simplex, axis=0))
        weights = np.concatenate([inner, 1.0 - np.sum(inner, axis=1, keepdims=True)], axis=1)
        vertices = take(mesh.simplices, simplex, axis=0)
        total: Any = 0.0
        for j in range(ndim + 1):
            chosen = take(self.values, vertices[:, j], axis=0)
            total = total + chosen * in_column(weights[:, j], chosen.ndim)
        is_outside = ~(np.max(least, axis=1) >= -_BORDER)
        return np.where(in_column(is_outside, total.ndim), self._plain.fill_value, total)


class AtNearest(_Scattered):
    """A function that has the value of the nearest point."""

    stands_for = scipy.interpolate.NearestNDInterpolator

    def _at(self, x: Any) -> Any:
        squared = np.sum((x[:, None, :] - self._plain.points) ** 2, axis=-1)
        return take(self.values, np.argmin(squared, axis=1), axis=0)


def _plain_points(name: str, points: Any) -> None:
    if not is_plain(points):
        raise MissingRule(
            f"{name} takes plain points of data, which decide on neighbours; give traced values, or take "
            f"RBFInterpolator{at_line(user_line())}"
        )


def _linear(points: Any, values: Any, fill_value: Any = np.nan, rescale: bool = False) -> OnSimplices:
    """`scipy.interpolate.LinearNDInterpolator`, whose values and points of evaluation may be traced."""
    _plain_points("LinearNDInterpolator", points)
    values = as_double(values)
    return OnSimplices(
        scipy.interpolate.LinearNDInterpolator(points, np.zeros(values.shape[0]), fill_value, rescale), values
    )


def _nearest(x: Any, y: Any, rescale: bool = False, tree_options: Any = None) -> AtNearest:
    """`scipy.interpolate.NearestNDInterpolator`, whose values may be traced; they are constant between jumps."""
    _plain_points("NearestNDInterpolator", x)
    values = as_double(y)
    return AtNearest(scipy.interpolate.NearestNDInterpolator(x, np.zeros(values.shape[0]), rescale), values)


def _of_linear(f: Any) -> OnSimplices:
    made = OnSimplices(f, f.values.reshape(-1, *f.values_shape))
    made.stands_for = type(f)
    return made


def _of_nearest(f: Any) -> AtNearest:
    made = AtNearest(f, f.values)
    made.stands_for = type(f)
    return made


LinearNDInterpolator = enter(scipy.interpolate.LinearNDInterpolator, _linear, _of_linear)
NearestNDInterpolator = enter(scipy.interpolate.NearestNDInterpolator, _nearest, _of_nearest)


@implements(scipy.interpolate.griddata)
def griddata(
    points: Any,
    values: Any,
    xi: Any,
    method: str = "linear",
    fill_value: Any = np.nan,
    rescale: bool = False,
) -> Any:
    """`scipy.interpolate.griddata`, linear or nearest, whose values and points of evaluation may be traced."""
    points = points if not isinstance(points, tuple) else coordinates(points, len(points))
    if np.ndim(points) == 1 or np.shape(points)[-1] == 1:
        (xi,) = xi if isinstance(xi, tuple) else (xi,)
        fill_value = "extrapolate" if method == "nearest" else fill_value
        points = points.reshape(-1) if hasattr(points, "reshape") else points
        return interp1d(points, values, method, axis=0, bounds_error=False, fill_value=fill_value)(xi)
    if method not in ("linear", "nearest"):
        raise MissingRule(
            f"griddata has the methods 'linear' and 'nearest' of traced values, not {method!r}; for smooth functions "
            f"there is RBFInterpolator{at_line(user_line())}"
        )
    make = LinearNDInterpolator if method == "linear" else NearestNDInterpolator
    options = {"fill_value": fill_value} if method == "linear" else {}
    return make(points, values, rescale=rescale, **options)(xi)
