"""`ftrans.scipy.spatial`: distances, trees of points and superpositions on traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.spatial
import scipy.spatial.distance
from test_scipy_sparse import check_along

import ftrans as ft
from ftrans.numpy.dispatch import TABLE
from ftrans.scipy import spatial

RNG = np.random.default_rng(0)
U, V, W = RNG.uniform(0.1, 1, (3, 4))
INVERSE = np.eye(4) + 0.1 * np.outer(U, U)
A, B = RNG.normal(size=(6, 4)), RNG.normal(size=(3, 4))

WEIGHTED = (
    "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "euclidean", "minkowski",
    "sqeuclidean",
)  # fmt: skip
METRICS = (*WEIGHTED, "hamming", "jensenshannon", "mahalanobis", "seuclidean")

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "minkowski 3.5": lambda x, m: m.distance.minkowski(x, V, 3.5, W),
    "minkowski by order": lambda x, m: m.distance.minkowski(V, W, 1 + x[0]),
    "minkowski inf": lambda x, m: m.distance.minkowski(x, V, np.inf),
    "mahalanobis": lambda x, m: m.distance.mahalanobis(x, V, INVERSE),
    "mahalanobis by metric": lambda x, m: m.distance.mahalanobis(U, V, INVERSE * x),
    "seuclidean": lambda x, m: m.distance.seuclidean(U, V, x),
    "jensenshannon": lambda x, m: m.distance.jensenshannon(x, V, 2.0),
    "hamming": lambda x, m: m.distance.hamming(x, V, W),
    "cdist of order": lambda x, m: m.distance.cdist(A * x, B, "minkowski", p=3, w=W),
    "cdist of a function": lambda x, m: m.distance.cdist(A * x, B, lambda a, b: np.sum(np.abs(a - b) ** 3)),
    "pdist of a function": lambda x, m: m.distance.pdist(A * x, lambda a, b: np.sum(np.abs(a - b) ** 3)),
    "squareform": lambda x, m: m.distance.squareform(m.distance.pdist(A * x)),
    "squareform of a matrix": lambda x, m: m.distance.squareform(np.outer(x, x), checks=False),
    "directed_hausdorff": lambda x, m: m.distance.directed_hausdorff(A * x, B)[0],
    "distance_matrix": lambda x, m: m.distance_matrix(A * x, B, 3),
    "minkowski_distance": lambda x, m: m.minkowski_distance(A * x, B[0]),
    "minkowski_distance_p": lambda x, m: m.minkowski_distance_p(A * x, B[0], 3),
    "procrustes": lambda x, m: m.procrustes(A * x, A**2)[2],
    "procrustes, shape": lambda x, m: m.procrustes(A * x, A**2)[1],
    "KDTree": lambda x, m: m.KDTree(A * x).query(B, 2)[0],
    "KDTree, bounded": lambda x, m: np.minimum(m.KDTree(A * x).query(B, 8, distance_upper_bound=2.0)[0], 9.0),
    "KDTree.query": lambda x, m: (query if m is spatial else scipy.spatial.KDTree.query)(TREE, B * x, [1, 3])[0],
}
for _name in WEIGHTED:
    CALLS[_name] = lambda x, m, n=_name: getattr(m.distance, n)(x, V)
    CALLS[f"{_name} with weights"] = lambda x, m, n=_name: getattr(m.distance, n)(V, x, w=W)
    CALLS[f"{_name} by weights"] = lambda x, m, n=_name: getattr(m.distance, n)(U, V, w=x)
for _name in METRICS:
    _options: dict[str, Any] = {"VI": INVERSE} if _name == "mahalanobis" else {}
    CALLS[f"cdist {_name}"] = lambda x, m, n=_name, o=_options: m.distance.cdist(np.abs(A * x), np.abs(B), n, **o)
    CALLS[f"pdist {_name}"] = lambda x, m, n=_name: m.distance.pdist(np.abs(A * x), n)

TREE = scipy.spatial.KDTree(A)
query: Any = TABLE[scipy.spatial.KDTree.query]


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_points(name: str) -> None:
    call = CALLS[name]
    check_along(lambda x: call(x, spatial), lambda x: call(x, scipy.spatial), U)


@pytest.mark.parametrize("name", [*WEIGHTED, "jensenshannon"])
def test_distances_of_a_point_to_itself_have_derivatives(name: str) -> None:
    metric = getattr(spatial.distance, name)
    np.testing.assert_allclose(ft.grad(lambda x: metric(x, U))(U), np.zeros(4), atol=1e-14)
    assert np.isfinite(ft.hessian(lambda x: metric(x, U))(U)).all()


def test_second_derivatives_at_the_smallest_cosine_distance() -> None:
    # That of 1 - cos(angle) at the angle 0, across u, is 1 / |u|**2.
    across = np.array([U[1], -U[0], 0.0, 0.0]) / np.hypot(U[0], U[1])
    second = ft.hessian(lambda x: spatial.distance.cosine(x, U))(U)
    np.testing.assert_allclose(across @ second @ across, 1 / (U @ U), rtol=1e-12)


def test_distances_in_every_mode() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.exp(-spatial.distance.pdist(x, "sqeuclidean")))

    second = ft.hessian(f)(A)
    np.testing.assert_allclose(ft.jit(ft.hessian(f))(A), second, atol=1e-14)
    stacked = np.stack([A, 2 * A])
    np.testing.assert_allclose(ft.vmap(f)(stacked), [f(A), f(2 * A)])
    of_tree = ft.jit(lambda x: spatial.KDTree(x).query(B, 2))
    for found, expected in zip(of_tree(A), TREE.query(B, 2), strict=True):
        np.testing.assert_allclose(found, expected)
    nearest = ft.vmap(lambda x: spatial.KDTree(x).query(B)[0])(stacked)
    np.testing.assert_allclose(nearest[1], scipy.spatial.KDTree(2 * A).query(B)[0])


def test_what_has_no_traced_form_says_so() -> None:
    with pytest.raises(NotImplementedError, match=r"scipy\.spatial\.Delaunay has no rule.*plain points"):
        ft.trace(lambda x: spatial.Delaunay(x))(A)
    with pytest.raises(NotImplementedError, match=r"scipy\.spatial\.distance\.dice has no rule.*booleans"):
        ft.trace(lambda x: spatial.distance.dice(x, x))(U)

    def of_tree(x: Any) -> Any:
        tree = spatial.KDTree(x)
        assert isinstance(tree, scipy.spatial.KDTree)
        return tree.query_ball_point(x, 1.0)

    with pytest.raises(NotImplementedError, match=r"KDTree\.query_ball_point has no form"):
        ft.trace(of_tree)(A)
    with pytest.raises(ValueError, match="unknown distance metric 'eucl'"):
        ft.trace(lambda x: spatial.distance.pdist(x, "eucl"))(A)
    with pytest.raises(ValueError, match="non-negative"):
        ft.trace(lambda x: spatial.distance.euclidean(x, x, -W))(U)
