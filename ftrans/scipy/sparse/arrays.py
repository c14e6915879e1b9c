"""Sparse arrays with traced entries: objects of the classes of `scipy.sparse`, at places that are known."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse

from ...base.foreign import computes_with_sparse_arrays
from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...numpy.promotion import asarray
from ...run.places import live_in_trace
from .entries import Entries, dense, segment_sums

_FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
# Functions of each element that keep zeros, which sparse arrays have as methods.
_OF_ELEMENTS = (
    "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "conj", "conjugate", "deg2rad", "expm1", "floor", "log1p",
    "rad2deg", "rint", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip


class TracedSparse:
    """What the sparse arrays of all formats with traced entries have in common.

    The places of entries are known; elements between them are zero, whatever the traced values are.

    Attributes:
        entries: the entries, in the order of the format.
    """

    format: str
    entries: Entries
    # The class of SciPy that it stands for.
    kind: type
    ndim = 2
    __array_priority__ = 10.1
    __hash__ = object.__hash__

    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # For the operators of SciPy's arrays it is another object, which they leave the operation to.
        return type(self) if computes_with_sparse_arrays(sys._getframe(1)) else self.kind

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.shape} of {self.dtype} with {self.nnz} traced entries>"

    __str__ = __repr__

    # What it is

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.entries.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.entries.dtype

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self.entries.row.size

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.nnz

    @property
    def data(self) -> Any:
        """The elements at the places of entries, in the order of the format."""
        if self.format not in ("coo", "csc", "csr"):
            raise _refusal(self, "data", "write A.tocoo().data, or A.tocsr().data")
        return self.entries.data

    @property
    def row(self) -> Any:
        """The rows of the entries."""
        return self.entries.row

    @property
    def col(self) -> Any:
        """The columns of the entries."""
        return self.entries.col

    @property
    def coords(self) -> tuple[Any, Any]:
        """The rows and columns of the entries."""
        return self.row, self.col

    @property
    def indices(self) -> Any:
        """For the formats of rows or columns: the other index of each entry."""
        return self.row if self.format == "csc" else self.col

    @property
    def indptr(self) -> Any:
        """For the formats of rows or columns: where the entries of each begin."""
        lines, count = (self.col, self.shape[1]) if self.format == "csc" else (self.row, self.shape[0])
        return np.concatenate([[0], np.cumsum(np.bincount(lines, minlength=count))])

    @property
    def T(self) -> Any:
        """The transposed array."""
        return self.transpose()

    @property
    def real(self) -> Any:
        """The real part."""
        return made_like(self, self.entries.with_data(asarray(self.entries.data).real))

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return made_like(self, self.entries.with_data(asarray(self.entries.data).imag))

    # Other forms

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transposed array."""
        turned = {"csr": "csc", "csc": "csr"}.get(self.format, self.format)
        return made(turned, self._is_array, self.entries.T)

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """The dense array."""
        return dense(self.entries)

    todense = toarray

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The same in another format."""
        return self if format in (None, self.format) else made(format, self._is_array, self.entries)

    def copy(self) -> Any:
        """The array itself, which cannot be changed."""
        return self

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """The same in another dtype."""
        return made_like(self, self.entries.with_data(asarray(self.entries.data).astype(dtype, casting=casting)))

    def diagonal(self, k: int = 0) -> Any:
        """The elements of a diagonal."""
        m, n = self.shape
        places = np.flatnonzero(self.col - self.row == k)
        chosen = self.entries.taken(places)
        length = max(0, min(m + min(k, 0), n - max(k, 0)))
        return segment_sums(chosen.data, np.minimum(chosen.row, chosen.col), length)

    def trace(self, offset: int = 0) -> Any:
        """The sum of a diagonal."""
        return np.sum(self.diagonal(offset))

    def __getitem__(self, index: Any) -> Any:
        # SciPy says which entries an index picks: of an array of their numbers, which begin at 1.
        kind = scipy.sparse.csr_array if self._is_array else scipy.sparse.csr_matrix
        found = kind((np.arange(1, self.nnz + 1), (self.row, self.col)), shape=self.shape)[index]
        if scipy.sparse.issparse(found) and found.ndim == 2:
            found = found.tocoo()
            return made_like(self, Entries(self.entries.data[found.data - 1], found.row, found.col, found.shape))
        numbers = found.toarray() if scipy.sparse.issparse(found) else np.asarray(found)
        data = asarray(self.entries.data)
        return np.concatenate([data, np.zeros(1, data.dtype)])[numbers - 1]

    def getrow(self, i: int) -> Any:
        """A row, as a matrix of one row."""
        return self[[i]]

    def getcol(self, j: int) -> Any:
        """A column, as a matrix of one column."""
        return self[:, [j]]

    # Sums and products

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The sum of all elements, or along an axis."""
        if axis is None:
            return np.sum(asarray(self.entries.data))
        if axis not in (0, 1, -1, -2):
            raise ValueError(f"a sparse array has the axes 0 and 1, not {axis!r}{at_line(user_line())}")
        axis %= 2
        lines, count = (self.col, self.shape[1]) if axis == 0 else (self.row, self.shape[0])
        total = segment_sums(self.entries.data, lines, count)
        return total if self._is_array else np.expand_dims(total, axis)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The mean of all elements, or along an axis."""
        count = self.shape[0] * self.shape[1] if axis is None else self.shape[axis]
        return self.sum(axis) / count

    def dot(self, other: Any) -> Any:
        """The product with a sparse or dense array, or a number."""
        return self * other if np.ndim(other) == 0 else self @ other

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Powers of elements."""
        return made_like(self, self.entries.with_data(asarray(self.entries.data) ** n))

    def __abs__(self) -> Any:
        return made_like(self, self.entries.with_data(abs(asarray(self.entries.data))))

    def __neg__(self) -> Any:
        return made_like(self, self.entries.with_data(-asarray(self.entries.data)))

    def __pos__(self) -> Any:
        return self

    def __pow__(self, n: Any) -> Any:
        if not self._is_array:
            raise _refusal(self, "** (a product of matrices)", "write A @ A")
        return self.power(n)

    @property
    def _is_array(self) -> bool:
        return isinstance(self, scipy.sparse.sparray)


def _of_elements(name: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return made_like(self, self.entries.with_data(getattr(np, name)(asarray(self.entries.data))))

    method.__doc__ = f"`numpy.{name}` of each element."
    return method


def _to_format(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: self.asformat(name)


for _name in _OF_ELEMENTS:
    setattr(TracedSparse, _name, _of_elements(_name))
for _name in _FORMATS:
    setattr(TracedSparse, f"to{_name}", _to_format(_name))


def _refusal(self: Any, name: str, instead: str = "write A.toarray() for the dense array") -> MissingRule:
    return MissingRule(
        f"scipy.sparse.{type(self).__name__}.{name} has no form for traced entries: {instead}{at_line(user_line())}"
    )


def _refused(name: str) -> Any:
    def read(self: Any, *args: Any) -> Any:
        raise _refusal(self, name)

    # Python hides the error of a property among its special methods.
    return read if name.startswith("__") else property(read)


_OPERATORS = ("eq", "ne", "lt", "le", "gt", "ge", "iadd", "isub", "imul", "itruediv", "rpow", "rtruediv", "divmod")
_SPECIAL = {
    *(f"__{name}__" for name in _OPERATORS), "__iter__", "__setitem__", "__delitem__", "__contains__", "__bool__",
    "__len__", "__array__", "__round__", "__reduce__",
}  # fmt: skip


@cache
def _class_of(format: str, is_array: bool) -> type:
    """The class of sparse arrays or matrices of a format with traced entries."""
    if format not in _FORMATS:
        raise ValueError(f"there is no sparse format {format!r}, only {', '.join(_FORMATS)}{at_line(user_line())}")
    name = f"{format}_{'array' if is_array else 'matrix'}"
    base = getattr(scipy.sparse, name)
    public = {n for n in dir(base) if not n.startswith("_")}
    others = {n: _refused(n) for n in (public | _SPECIAL & set(dir(base))) - set(dir(TracedSparse))}
    # What Python asks of all objects is a method of each class.
    others |= {n: _refused(n) for n in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")}
    members = {**others, "format": format, "kind": base, "__hash__": object.__hash__, "__module__": "scipy.sparse"}
    cls = type(name, (TracedSparse,), members)
    live_in_trace(cls)
    return cls


def made(format: str | None, is_array: bool, entries: Entries) -> Any:
    """A sparse array of a format, of SciPy's class; of SciPy itself where the entries are not traced."""
    format = format or "coo"
    entries = entries.summed()
    if format == "csc":
        entries = entries.taken(np.lexsort((entries.row, entries.col)))
    return _class_of(format, is_array)(entries._replace(data=asarray(entries.data)))


def made_like(x: Any, entries: Entries) -> Any:
    """A sparse array of the format of another one."""
    return made(x.format, isinstance(x, scipy.sparse.sparray), entries)
