"""`scipy.spatial` on arrays and traced values: `distance`, `transform`, trees of points and superpositions.

Names that are not here are those of `scipy.spatial`.
"""

import typing as _typing

import scipy.spatial as _spatial

from . import distance as distance
from . import transform as transform
from .neighbours import KDTree as KDTree
from .points import REFUSED as _REFUSED
from .points import distance_matrix as distance_matrix
from .points import minkowski_distance as minkowski_distance
from .points import minkowski_distance_p as minkowski_distance_p
from .points import procrustes as procrustes

__all__ = [
    "KDTree", "distance", "distance_matrix", "minkowski_distance", "minkowski_distance_p", "procrustes",
    "transform",
]  # fmt: skip


def __getattr__(name: str) -> _typing.Any:
    return _REFUSED[name] if name in _REFUSED else getattr(_spatial, name)


def __dir__() -> list[str]:
    return __all__
