"""Functions of `scipy.sparse` that make sparse arrays, of traced entries or parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ...base.source import at_line, user_line
from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, has_tracer
from .arithmetic import is_sparse
from .arrays import made
from .entries import Entries, entries_of

__all__ = [
    "block_array",
    "block_diag",
    "bmat",
    "bsr_array",
    "bsr_matrix",
    "coo_array",
    "coo_matrix",
    "csc_array",
    "csc_matrix",
    "csr_array",
    "csr_matrix",
    "dia_array",
    "dia_matrix",
    "diags",
    "diags_array",
    "dok_array",
    "dok_matrix",
    "hstack",
    "kron",
    "kronsum",
    "lil_array",
    "lil_matrix",
    "spdiags",
    "tril",
    "triu",
    "vstack",
]  # fmt: skip


def _constructor(format: str, is_array: bool) -> Callable[..., Any]:
    name = f"{format}_{'array' if is_array else 'matrix'}"

    def construct(arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> Any:
        entries = _given(name, format, arg1, shape)
        if dtype is not None:
            entries = entries.with_data(asarray(entries.data).astype(dtype))
        return made(format, is_array, entries)

    construct.__name__ = name
    construct.__doc__ = f"""`scipy.sparse.{name}`, whose entries may be traced; where they are must be known.

    Of a traced dense matrix, all elements are entries.
    """
    public: Callable[..., Any] = implements(getattr(scipy.sparse, name))(construct)
    return public


def _given(name: str, format: str, arg1: Any, shape: Any) -> Entries:
    """The entries that the arguments of a constructor of SciPy describe."""
    if not isinstance(arg1, tuple):
        return entries_of(arg1)
    if len(arg1) == 3 and format in ("csr", "csc"):
        data, indices, indptr = arg1
        indices, indptr = _places(name, indices), _places(name, indptr)
        lines = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        row, col = (lines, indices) if format == "csr" else (indices, lines)
        least = (indptr.size - 1, int(indices.max(initial=-1)) + 1)
        return Entries(asarray(data), row, col, _shape(shape) or (least if format == "csr" else least[::-1]))
    if len(arg1) == 2 and format == "dia":
        return _of_diagonals(arg1[0], arg1[1], _shape(shape) or _missing_shape(name))
    if len(arg1) == 2 and isinstance(arg1[1], tuple | list) and len(arg1[1]) == 2:
        data, (row, col) = arg1
        row, col = _places(name, row), _places(name, col)
        least = int(row.max(initial=-1)) + 1, int(col.max(initial=-1)) + 1
        data = asarray(data)
        if data.shape != row.shape or row.shape != col.shape:
            raise ValueError(
                f"{name}: {data.size} entries have {row.size} rows and {col.size} columns{at_line(user_line())}"
            )
        return Entries(data, row, col, _shape(shape) or least)
    raise TypeError(
        f"{name} of traced entries takes (data, (rows, columns)), a matrix"
        f"{', (data, indices, indptr)' if format in ('csr', 'csc') else ''}, or for dia_array (data, offsets)"
        + at_line(user_line())
    )


def _places(name: str, places: Any) -> Any:
    if has_tracer(places):
        raise TypeError(
            f"{name}: where the entries are must be known, but the indices are traced; take them out of the traced "
            f"function, or as static arguments{at_line(user_line())}"
        )
    return np.asarray(places, np.int64)


def _shape(shape: Any) -> tuple[int, int] | None:
    return None if shape is None else (int(shape[0]), int(shape[1]))


def _missing_shape(name: str) -> Any:
    raise ValueError(f"{name} of diagonals needs shape={at_line(user_line())}")


bsr_array = _constructor("bsr", True)
bsr_matrix = _constructor("bsr", False)
coo_array = _constructor("coo", True)
coo_matrix = _constructor("coo", False)
csc_array = _constructor("csc", True)
csc_matrix = _constructor("csc", False)
csr_array = _constructor("csr", True)
csr_matrix = _constructor("csr", False)
dia_array = _constructor("dia", True)
dia_matrix = _constructor("dia", False)
dok_array = _constructor("dok", True)
dok_matrix = _constructor("dok", False)
lil_array = _constructor("lil", True)
lil_matrix = _constructor("lil", False)


def _of_diagonals(data: Any, offsets: Any, shape: tuple[int, int]) -> Entries:
    """Diagonals as the format of diagonals has them: the element in column j of each is that with the index j."""
    offsets = np.atleast_1d(np.asarray(offsets))
    data = asarray(data)
    data = data.reshape((1, -1)) if data.ndim < 2 else data
    number, col = np.indices(data.shape).reshape(2, -1)
    row = col - offsets[number]
    inside = (row >= 0) & (row < shape[0]) & (col < shape[1])
    return Entries(data.reshape(-1)[np.flatnonzero(inside)], row[inside], col[inside], shape)


def _diagonals(name: str, diagonals: Any, offsets: Any, shape: Any, dtype: Any) -> Entries:
    offsets = np.atleast_1d(np.asarray(offsets))
    if offsets.size == 1 and (np.ndim(diagonals) == 1 if has_tracer(diagonals) and not _is_list(diagonals) else
                              not np.ndim(diagonals[0])):  # fmt: skip
        diagonals = [diagonals]
    if len(diagonals) != offsets.size:
        raise ValueError(f"{name}: {len(diagonals)} diagonals have {offsets.size} offsets{at_line(user_line())}")
    parts = [asarray(d).reshape(-1) for d in diagonals]
    if shape is None:
        n = parts[0].size + abs(int(offsets[0]))
        shape = (n, n)
    m, n = shape = (int(shape[0]), int(shape[1]))
    data, rows, cols = [], [], []
    for part, offset in zip(parts, offsets.tolist(), strict=True):
        length = min(m + min(offset, 0), n - max(offset, 0))
        if length < 0 or part.size not in (1, length):
            raise ValueError(
                f"{name}: the diagonal {offset} of a matrix {shape} has {max(length, 0)} elements, not {part.size}"
                + at_line(user_line())
            )
        data.append(np.broadcast_to(part, (length,)))
        rows.append(np.arange(length) - min(offset, 0))
        cols.append(np.arange(length) + max(offset, 0))
    entries = Entries(np.concatenate(data), np.concatenate(rows), np.concatenate(cols), shape)
    return entries if dtype is None else entries.with_data(entries.data.astype(dtype))


def _is_list(x: Any) -> bool:
    return type(x) in (list, tuple)


@implements(scipy.sparse.diags)
def diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None) -> Any:
    """A sparse matrix of diagonals, which may be traced."""
    return made(format or "dia", False, _diagonals("diags", diagonals, offsets, shape, dtype))


@implements(scipy.sparse.diags_array)
def diags_array(
    diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None
) -> Any:
    """A sparse array of diagonals, which may be traced."""
    return made(format or "dia", True, _diagonals("diags_array", diagonals, offsets, shape, dtype))


@implements(scipy.sparse.spdiags)
def spdiags(data: Any, diags: Any, m: Any = None, n: Any = None, format: Any = None) -> Any:
    """A sparse matrix of diagonals, the rows of `data`: the element in column j is that with the index j."""
    if m is None and n is None:
        m = n = np.shape(data)[-1] if not has_tracer(data) else asarray(data).shape[-1]
    elif n is None:
        m, n = m
    return made(format or "dia", False, _of_diagonals(data, diags, (int(m), int(n))))


def _is_any_array(*parts: Any) -> bool:
    return any(isinstance(p, scipy.sparse.sparray) for p in parts)


@implements(scipy.sparse.kron)
def kron(A: Any, B: Any, format: Any = None) -> Any:
    """The Kronecker product of sparse arrays."""
    a, b = entries_of(A), entries_of(B)
    i, j = np.indices((a.row.size, b.row.size)).reshape(2, -1)
    entries = Entries(
        a.data[i] * b.data[j],
        a.row[i] * b.shape[0] + b.row[j],
        a.col[i] * b.shape[1] + b.col[j],
        (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]),
    )
    return made(format or "coo", _is_any_array(A, B), entries)


@implements(scipy.sparse.kronsum)
def kronsum(A: Any, B: Any, format: Any = None) -> Any:
    """The Kronecker sum of square sparse arrays: kron(I_n, A) + kron(B, I_m)."""
    m, n = np.shape(A)[0], np.shape(B)[0]
    make = scipy.sparse.eye_array if _is_any_array(A, B) else scipy.sparse.eye
    left, right = kron(make(n), A), kron(B, make(m))
    return (left + right).asformat(format or "coo")


def _joined(blocks: Sequence[Sequence[Any]], format: Any, dtype: Any, is_array: bool) -> Any:
    """The sparse array of blocks, some of which may be None."""
    grid = [[None if b is None else entries_of(b) for b in line] for line in blocks]
    heights = [_common_size([b.shape[0] for b in line if b is not None], "row", i) for i, line in enumerate(grid)]
    columns = list(zip(*grid, strict=True))
    widths = [_common_size([b.shape[1] for b in line if b is not None], "column", i) for i, line in enumerate(columns)]
    tops, lefts = (np.concatenate([[0], np.cumsum(sizes)]) for sizes in (heights, widths))
    found = [
        (block, block.row + tops[i], block.col + lefts[j])
        for i, line in enumerate(grid)
        for j, block in enumerate(line)
        if block is not None
    ]
    data = np.concatenate([asarray(block.data) for block, _, _ in found])
    rows, cols = (np.concatenate([f[k] for f in found]) for k in (1, 2))
    entries = Entries(data if dtype is None else data.astype(dtype), rows, cols, (int(tops[-1]), int(lefts[-1])))
    return made(format, is_array, entries)


def _common_size(sizes: list[int], what: str, number: int) -> int:
    if len(set(sizes)) != 1:
        raise ValueError(
            f"blocks in {what} {number} have the sizes {sorted(set(sizes))}, and must have one{at_line(user_line())}"
        )
    return sizes[0]


def _all(blocks: Any) -> list[Any]:
    return [b for line in blocks for b in line]


@implements(scipy.sparse.block_array)
def block_array(blocks: Any, *, format: Any = None, dtype: Any = None) -> Any:
    """A sparse array of blocks; None stands for zeros."""
    return _joined(blocks, format, dtype, True)


@implements(scipy.sparse.bmat)
def bmat(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    """A sparse array or matrix of blocks; None stands for zeros."""
    return _joined(blocks, format, dtype, _is_any_array(*_all(blocks)))


@implements(scipy.sparse.hstack)
def hstack(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    """Sparse arrays side by side."""
    return _joined([list(blocks)], format, dtype, _is_any_array(*blocks))


@implements(scipy.sparse.vstack)
def vstack(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    """Sparse arrays one above the other."""
    return _joined([[b] for b in blocks], format, dtype, _is_any_array(*blocks))


@implements(scipy.sparse.block_diag)
def block_diag(mats: Any, format: Any = None, dtype: Any = None) -> Any:
    """Sparse arrays along the diagonal."""
    blocks = [m if is_sparse(m) else made("coo", True, entries_of(m)) for m in mats]
    grid = [[b if i == j else None for j, b in enumerate(blocks)] for i in range(len(blocks))]
    return _joined(grid, format, dtype, _is_any_array(*mats))


@implements(scipy.sparse.tril)
def tril(A: Any, k: int = 0, format: Any = None) -> Any:
    """The entries on and below a diagonal."""
    a = entries_of(A)
    return made(format, _is_any_array(A), a.taken(np.flatnonzero(a.row + k >= a.col)))


@implements(scipy.sparse.triu)
def triu(A: Any, k: int = 0, format: Any = None) -> Any:
    """The entries on and above a diagonal."""
    a = entries_of(A)
    return made(format, _is_any_array(A), a.taken(np.flatnonzero(a.row + k <= a.col)))
