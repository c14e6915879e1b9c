"""Nearest neighbours: SciPy's trees say which points they are, and distances are computed from these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.spatial

from ...base.source import at_line, user_line
from ...control.rules.black_box import Code, black_box
from ...core.primitive import MissingRule
from ...core.types import ArrayType
from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, cast
from ...run.places import live_in_trace
from .metrics import minkowski

_DOUBLE, _INDEX = np.dtype(np.float64), np.dtype(np.int64)


def _query(
    given: Any,
    data: Any,
    x: Any,
    k: Any = 1,
    eps: float = 0.0,
    p: float = 2.0,
    distance_upper_bound: float = np.inf,
    workers: int = 1,
) -> tuple[Any, Any]:
    """Distances and indices of the nearest of the points `data` (n, dimension) to those of `x` (..., dimension).

    `given` is the tree of these points, or None where they are traced.
    """
    data, x = (cast(asarray(v), _DOUBLE) for v in (data, x))
    n = data.shape[0]
    ranks = np.arange(1, k + 1) if np.ndim(k) == 0 else np.asarray(k)

    def search(data: Any, x: Any) -> Sequence[Any]:
        tree = scipy.spatial.KDTree(data) if given is None else given
        found = tree.query(x, ranks, eps=eps, p=p, distance_upper_bound=distance_upper_bound, workers=workers)[1]
        return [np.asarray(found, np.int64)]

    code = Code(
        "KDTree.query", search, [ArrayType((*x.shape[:-1], ranks.size), _INDEX)], "a search tree depends on values"
    )
    (places,) = black_box.apply(code, [data, x])
    # The index n stands for no neighbour.
    is_missing = places == n
    points = data[np.where(is_missing, 0, places)]
    distances = np.where(is_missing, np.inf, minkowski(x[..., None, :], points, p))
    if np.ndim(k) == 0 and k == 1:
        return distances[..., 0], places[..., 0]
    return distances, places


class TracedTree:
    """A `KDTree` of traced points: `query` is all that it has."""

    def __init__(self, data: Any) -> None:
        self._points = asarray(data)

    @property
    def data(self) -> Any:
        """The points."""
        return self._points

    @property
    def n(self) -> int:
        """The number of points."""
        return self._points.shape[0]

    @property
    def m(self) -> int:
        """The number of dimensions."""
        return self._points.shape[1]

    def query(self, x: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """As `scipy.spatial.KDTree.query`: distances have derivatives, indices have none."""
        return _query(None, self.data, x, *args, **kwargs)


def _refused(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise MissingRule(
            f"scipy.spatial.KDTree.{name} has no form for traced points: build the tree of plain points, and compute "
            f"distances by scipy.spatial.distance from its indices{at_line(user_line())}"
        )

    return method


_NAMES = {n for n in dir(scipy.spatial.KDTree) if not n.startswith("_")} - {"data", "n", "m", "query"}
_Refusing = type("_Refusing", (), {name: _refused(name) for name in _NAMES})


class _TracedKDTree(TracedTree, _Refusing, scipy.spatial.KDTree):  # type: ignore[misc, valid-type]
    """The same, as an object of SciPy's class."""


live_in_trace(_TracedKDTree)


@implements(scipy.spatial.KDTree, scipy.spatial.cKDTree)
def KDTree(data: Any, *args: Any, **kwargs: Any) -> Any:
    """A tree of points (n, dimension), for `query` of the nearest."""
    return _TracedKDTree(data)


@implements(scipy.spatial.KDTree.query, scipy.spatial.cKDTree.query)
def query(tree: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """`KDTree.query` of traced points."""
    return _query(tree, tree.data, x, *args, **kwargs)
