"""Rows of `scipy.spatial`, `scipy.spatial.distance` and `scipy.spatial.transform`."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import row
from sampling import given, normal, uniform

ONCE: dict[str, Any] = {"dtypes": ()}
POINTS = normal((4, 3))
PLACES = np.array([[0.3, 0.1, -0.2], [1.0, -1.5, 0.4]])
TURNS = given([[0.1, 0.2, 0.3], [-0.4, 0.9, 0.1], [0.5, -0.2, 1.3]])

for name in ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "canberra", "braycurtis", "cosine", "correlation"):
    row(f"scipy.spatial.distance.{name}", uniform(0.2, 1, (3,)), uniform(1.2, 2, (3,)), uniform(0.5, 1, (3,)), **ONCE)
row("scipy.spatial.distance.minkowski", normal((3,)), normal((3,)), p=3, **ONCE)
row("scipy.spatial.distance.mahalanobis", normal((2,)), normal((2,)), given([[2.0, 0.3], [0.3, 1.0]]), **ONCE)
row("scipy.spatial.distance.seuclidean", normal((3,)), normal((3,)), uniform(1, 2, (3,)), **ONCE)
row("scipy.spatial.distance.jensenshannon", uniform(0.2, 1, (3,)), uniform(0.2, 1, (3,)), **ONCE)
row("scipy.spatial.distance.cdist", POINTS, normal((2, 3)), **ONCE)
row("scipy.spatial.distance.pdist", POINTS, metric="seuclidean", **ONCE)
row("scipy.spatial.distance.squareform", normal((6,)), **ONCE)
row(
    "scipy.spatial.distance.directed_hausdorff", POINTS, normal((2, 3)), canonical=lambda r: [r[0]], note="size", **ONCE
)
row("scipy.spatial.distance_matrix", POINTS, normal((2, 3)), p=3, **ONCE)
row("scipy.spatial.minkowski_distance", POINTS, normal((3,)), **ONCE)
row("scipy.spatial.minkowski_distance_p", POINTS, normal((3,)), p=3, **ONCE)
row("scipy.spatial.procrustes", POINTS, normal((4, 3)), looseness=10, **ONCE)
row("scipy.spatial.KDTree", POINTS, call=lambda f, x: f(x).query(PLACES, 2)[0], **ONCE)


def interpolated(make: Any, turns: Any) -> Any:
    from ftrans.scipy.spatial.transform import Rotation

    return make([0.0, 1.0, 2.0], Rotation.from_rotvec(turns))([0.3, 1.5]).as_matrix()


row("scipy.spatial.transform.Rotation", normal((2, 4)), call=lambda f, q: f(q).as_matrix(), **ONCE)
row("scipy.spatial.transform.Slerp", TURNS, call=interpolated, looseness=10, **ONCE)
