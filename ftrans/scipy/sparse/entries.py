"""Entries: a sparse matrix as its elements and their places, which are known while the elements may be traced."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ...base.source import at_line, user_line
from ...core.types import is_inexact
from ...numpy.promotion import asarray, cast, has_tracer, strong_dtype
from ...ops.indexing import scatter_add
from ...ops.literals import full
from ...ops.sparse import sparse_product


class Entries(NamedTuple):
    """The elements of a sparse matrix that are stored.  No place occurs twice, but in what `of` makes of SciPy's.

    Attributes:
        data: the elements (count,), traced or not.
        row: their rows, integers of NumPy.
        col: their columns.
        shape: the shape of the matrix.
    """

    data: Any
    row: Any
    col: Any
    shape: tuple[int, int]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def T(self) -> Entries:
        """The transposed matrix."""
        return Entries(self.data, self.col, self.row, self.shape[::-1])

    def with_data(self, data: Any) -> Entries:
        """Other elements at the same places."""
        return self._replace(data=data)

    def taken(self, places: Any) -> Entries:
        """Some of the entries, or all in another order."""
        return Entries(self.data[places], self.row[places], self.col[places], self.shape)

    def summed(self) -> Entries:
        """The same in row-major order, with entries at the same place added."""
        keys = self.row * self.shape[1] + self.col
        found, first, places = np.unique(keys, return_index=True, return_inverse=True)
        if found.size < keys.size:
            row, col = np.divmod(found, max(self.shape[1], 1))
            return Entries(segment_sums(self.data, places.reshape(-1), found.size), row, col, self.shape)
        return self if np.array_equal(first, np.arange(keys.size)) else self.taken(first)


def entries_of(a: Any) -> Entries:
    """The entries of a sparse array of SciPy or of ftrans, or of a dense matrix.

    Raises:
        TypeError: it has not two axes.
    """
    if isinstance(a, scipy.sparse.sparray | scipy.sparse.spmatrix):
        if a.ndim != 2:
            raise TypeError(
                f"sparse arrays with traced values have two axes, not {a.ndim}; reshape the array to one row"
                + at_line(user_line())
            )
        found = getattr(a, "entries", None)
        if found is not None:
            return found
        coo = a.tocoo(copy=False)
        row, col = (_frozen(places, np.int64) for places in (coo.row, coo.col))
        return Entries(_frozen(coo.data, coo.dtype), row, col, coo.shape)
    dense = asarray(a) if has_tracer(a) else np.asarray(a)
    if dense.ndim == 1:
        dense = dense.reshape((1, -1))
    if dense.ndim != 2:
        raise TypeError(f"a sparse array is made of a matrix, not of {dense.shape}{at_line(user_line())}")
    if not has_tracer(a):
        return entries_of(scipy.sparse.coo_array(dense))
    # Which elements are zero is not known, so all are entries.
    row, col = np.indices(dense.shape).reshape(2, -1)
    return Entries(dense.reshape(-1), row, col, dense.shape)


def _frozen(x: Any, dtype: Any) -> Any:
    """A copy that nobody can write to, so that a trace needs no other copy."""
    return np.frombuffer(x.astype(dtype, copy=False).tobytes(), dtype)


def segment_sums(data: Any, places: Any, count: int) -> Any:
    """The sums of the elements at each of `count` places."""
    data = asarray(data)
    return scatter_add(full((count,), 0, data.dtype), data, asarray(np.asarray(places, np.int64)), axis=0)


def product(a: Entries, x: Any) -> Any:
    """The sparse matrix times a vector or columns."""
    x = asarray(x)
    if x.ndim not in (1, 2) or x.shape[0] != a.shape[1]:
        raise ValueError(f"matmul: a sparse array {a.shape} cannot multiply {x.type}{at_line(user_line())}")
    data = asarray(a.data)
    dtype = strong_dtype(data, x)
    if not is_inexact(dtype) or dtype.itemsize < 4:
        # The dtypes that SciPy multiplies.
        dtype = np.result_type(dtype, np.float32 if is_inexact(dtype) else np.int64)
    places = (asarray(a.row), asarray(a.col))
    return sparse_product(cast(data, dtype), cast(x, dtype), *places, height=a.shape[0])


def sparse_times_sparse(a: Entries, b: Entries) -> Entries:
    """The product of two sparse matrices: an entry for each place that products of entries fall on."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"matmul: sparse arrays {a.shape} and {b.shape} do not fit{at_line(user_line())}")
    order = np.argsort(b.row, kind="stable")
    counts = np.bincount(b.row, minlength=b.shape[0])
    starts = np.concatenate([[0], np.cumsum(counts)])
    of_each = counts[a.col]
    left = np.repeat(np.arange(a.col.size), of_each)
    within = np.arange(left.size) - np.repeat(np.cumsum(of_each) - of_each, of_each)
    right = order[starts[a.col[left]] + within]
    terms = a.data[left] * b.data[right]
    return Entries(terms, a.row[left], b.col[right], (a.shape[0], b.shape[1])).summed()


def sum_of(a: Entries, b: Entries) -> Entries:
    """The sum of two sparse matrices of one shape."""
    if a.shape != b.shape:
        raise ValueError(f"sparse arrays {a.shape} and {b.shape} cannot be added{at_line(user_line())}")
    data = np.concatenate([asarray(a.data), asarray(b.data)])
    return Entries(data, np.concatenate([a.row, b.row]), np.concatenate([a.col, b.col]), a.shape).summed()


def common_entries(a: Entries, b: Entries) -> tuple[Entries, Entries]:
    """The entries at the places that both matrices of one shape have, in one order."""
    if a.shape != b.shape:
        raise ValueError(f"sparse arrays {a.shape} and {b.shape} cannot be multiplied{at_line(user_line())}")
    a, b = a.summed(), b.summed()
    keys = [x.row * x.shape[1] + x.col for x in (a, b)]
    _, in_a, in_b = np.intersect1d(*keys, assume_unique=True, return_indices=True)
    return a.taken(in_a), b.taken(in_b)


def dense(a: Entries) -> Any:
    """The matrix with all of its elements."""
    flat = segment_sums(a.data, a.row * a.shape[1] + a.col, a.shape[0] * a.shape[1])
    return flat.reshape(a.shape)
