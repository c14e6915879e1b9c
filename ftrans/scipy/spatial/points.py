"""Functions of `scipy.spatial` itself: distances between all points, and the superposition of two shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.spatial

from ...base.source import at_line, user_line
from ...numpy.dispatch import implements, refused
from ...numpy.promotion import asarray
from ..linalg import orthogonal_procrustes
from .metrics import minkowski

__all__ = ["distance_matrix", "minkowski_distance", "minkowski_distance_p", "procrustes"]

_HULLS = (
    "neighbours are found by comparisons, which have no derivative; apply it to plain points outside the traced "
    "function, and compute with its indices (.simplices, .vertices)"
)
REFUSED = {
    name: refused(getattr(scipy.spatial, name), f"scipy.spatial.{name}", why)
    for name, why in {
        **dict.fromkeys(("ConvexHull", "Delaunay", "HalfspaceIntersection", "Voronoi", "SphericalVoronoi"), _HULLS),
        "geometric_slerp": "use ftrans.scipy.spatial.transform.Slerp, or write the sines of the angle",
        "tsearch": _HULLS,
    }.items()
}


@implements(scipy.spatial.minkowski_distance)
def minkowski_distance(x: Any, y: Any, p: Any = 2.0) -> Any:
    """The distances of norm `p` along the last axis of two arrays, which broadcast."""
    return minkowski(asarray(x), asarray(y), p)


@implements(scipy.spatial.minkowski_distance_p)
def minkowski_distance_p(x: Any, y: Any, p: Any = 2.0) -> Any:
    """The same to the power of `p`, so without the root."""
    size = np.abs(asarray(x) - asarray(y))
    return np.max(size, -1) if p == np.inf else np.sum(size**p, -1)


@implements(scipy.spatial.distance_matrix)
def distance_matrix(x: Any, y: Any, p: Any = 2.0, threshold: Any = 1000000) -> Any:
    """The distances (m, n) of norm `p` of points (m, dimension) to points (n, dimension)."""
    x, y = asarray(x), asarray(y)
    return minkowski(x[:, None], y[None], p)


@implements(scipy.spatial.procrustes)
def procrustes(data1: Any, data2: Any) -> tuple[Any, Any, Any]:
    """Two shapes (n, dimension), centred and scaled, the second turned onto the first, and their disparity."""
    a, b = (asarray(x) * 1.0 for x in (data1, data2))
    if a.ndim != 2 or a.shape != b.shape or not a.size:
        raise ValueError(f"procrustes takes two matrices of one shape, not {a.type} and {b.type}{at_line(user_line())}")
    a, b = (x - np.mean(x, 0) for x in (a, b))
    a, b = (x / np.linalg.norm(x) for x in (a, b))
    turn, scale = orthogonal_procrustes(a, b)
    b = (b @ turn.T) * scale
    return a, b, np.sum((a - b) ** 2)
