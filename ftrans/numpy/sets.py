"""Set operations on arrays.  How many distinct elements there are depends on the values, which must be known."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.trace import Tracer
from ..core.witness import concretize
from .dispatch import implements
from .promotion import asarray, cast, reshaped, strong_dtype

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip


def _known(x: Tracer) -> Any:
    """The elements of an array, as numbers along one axis."""
    return np.asarray(concretize(x, "the distinct elements of")).reshape(-1)


def _flat(*arrays: Any) -> list[Tracer]:
    """All elements of arrays in their common dtype, along one axis each."""
    xs = [asarray(a) for a in arrays]
    dtype = strong_dtype(*xs)
    return [reshaped(cast(x, dtype), (x.size,)) for x in xs]


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    **options: Any,
) -> Any:
    """The sorted distinct elements; of equal ones the first has the derivative."""
    x = asarray(ar)
    known = np.asarray(concretize(x, "the distinct elements of"))
    # Without `sorted`, any order is right.
    options.pop("sorted", None)
    _, places, *rest = np.unique(known, True, return_inverse, return_counts, axis, **options)
    results = [np.take(np.ravel(x), places) if axis is None else np.take(x, places, axis)]
    results += [places] if return_index else []
    results += rest
    return tuple(results) if len(results) > 1 else results[0]


def _named(function: Any, results: Any) -> Any:
    """Results in the named tuple that a function of NumPy returns."""
    return type(function(np.zeros(0)))(*results)


@implements(np.unique_all)
def unique_all(x: Any, /) -> Any:
    """The distinct elements, their first indices, the indices that reconstruct the array, and the counts."""
    return _named(np.unique_all, unique(x, True, True, True, equal_nan=False))


@implements(np.unique_counts)
def unique_counts(x: Any, /) -> Any:
    """The distinct elements and their counts."""
    return _named(np.unique_counts, unique(x, return_counts=True, equal_nan=False))


@implements(np.unique_inverse)
def unique_inverse(x: Any, /) -> Any:
    """The distinct elements, and the indices that reconstruct the array."""
    return _named(np.unique_inverse, unique(x, return_inverse=True, equal_nan=False))


@implements(np.unique_values)
def unique_values(x: Any, /) -> Any:
    """The distinct elements, here in increasing order."""
    return unique(x, equal_nan=False)


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The sorted intersection of two arrays, with the derivatives of the first."""
    x, y = _flat(ar1, ar2)
    _, places, others = np.intersect1d(_known(x), _known(y), assume_unique, return_indices=True)
    common = np.take(x, places)
    return (common, places, others) if return_indices else common


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The set difference: elements of the first array that are not in the second."""
    x = asarray(ar1)
    x, others = reshaped(x, (x.size,)), asarray(ar2)
    known = _known(x)
    places = np.arange(known.size) if assume_unique else np.unique(known, return_index=True)[1]
    return np.take(x, places[~np.isin(known[places], _known(others))])


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The sorted symmetric difference of two arrays: elements of one of them only."""
    x, y = _flat(ar1, ar2)
    known = [_known(x), _known(y)]
    parts = [np.arange(k.size) if assume_unique else np.unique(k, return_index=True)[1] for k in known]
    places = np.concatenate([parts[0], x.size + parts[1]])
    both = np.concatenate(known)[places]
    order = np.argsort(both, kind="stable")
    ordered = both[order]
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]]) if ordered.size else np.zeros(1, bool)
    return np.take(np.concatenate([x, y]), places[order[starts[1:] & starts[:-1]]])


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    """The sorted union of two arrays."""
    return unique(np.concatenate(_flat(ar1, ar2)))


@implements(np.isin, constant=True)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    """Whether each element occurs in another array."""
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    found = np.any(np.equal(asarray(element)[..., None], np.ravel(asarray(test_elements))), -1)
    return ~found if invert else found
