"""Sparsity: which entries of a matrix may differ from zero."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from ..base.displayed import Displayed
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from .call import type_name
from .sparsity_pictures import as_svg, as_text, draw

# Positions of entries are numbered row by row, as 64-bit integers.
_MOST_POSITIONS = 2**63


class Sparsity(Displayed):
    """The pattern of a sparse matrix: the positions of the entries that may differ from zero.

    A pattern is immutable, compares by its positions and can be hashed.  `a | b` has the entries of both, `a & b` those
    in common, `a - b` those of `a` alone; `(i, j) in a` asks for one; `a.T` is the pattern of the transpose.  `print`
    draws a picture.

    Args:
        rows: row of each entry, integers from 0; in any order, and the same position may occur again.
        cols: column of each entry.
        shape: number of rows, and of columns.

    Attributes:
        rows: row of each entry, an array of int64, read-only.  Entries are in row-major order, each once.
        cols: column of each entry.
        shape: number of rows, and of columns.

    Raises:
        TypeError: rows or columns are not integers.
        ValueError: their numbers differ, or one is outside of the shape.

    Example:
        >>> import ftrans as ft
        >>> pattern = ft.Sparsity([0, 0, 1, 2], [0, 1, 1, 2], (3, 3))
        >>> pattern
        Sparsity(shape=(3, 3), nnz=4, density=44.4%)
        >>> print(pattern)
        ● ● ·
        · ● ·
        · · ●
        3 x 3, 4 entries (44.4%)
        >>> (pattern | pattern.T).nnz
        5
    """

    __slots__ = ("_hash", "_keys", "cols", "rows", "shape")

    rows: Any
    cols: Any
    shape: tuple[int, int]
    _keys: Any
    _hash: int | None

    def __init__(self, rows: Any, cols: Any, shape: tuple[int, int]) -> None:
        shape = _as_shape(shape)
        i, j = _as_numbers(rows, "rows"), _as_numbers(cols, "cols")
        if i.size != j.size:
            raise ValueError(
                f"every entry has a row and a column, but there are {i.size} rows and {j.size} columns"
                + at_line(user_line())
            )
        for numbers, size, what in ((i, shape[0], "row"), (j, shape[1], "column")):
            if numbers.size and not (numbers.min() >= 0 and numbers.max() < size):
                place = int(np.flatnonzero((numbers < 0) | (numbers >= size))[0])
                raise ValueError(
                    f"entry {place} is in {what} {numbers[place]}, but a pattern of shape {shape} has {what}s 0 to "
                    f"{size - 1}{at_line(user_line())}"
                )
        keys = i * shape[1] + j
        if not (keys[1:] > keys[:-1]).all():
            keys = np.sort(keys)
            keys = keys[np.append(True, keys[1:] > keys[:-1])]
        self._fill(keys, shape)

    def _fill(self, keys: Any, shape: tuple[int, int]) -> None:
        rows, cols = np.divmod(keys, max(shape[1], 1))
        for array in (keys, rows, cols):
            array.flags.writeable = False
        for name, value in zip(Sparsity.__slots__, (None, keys, cols, rows, shape), strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def _of(cls, keys: Any, shape: tuple[int, int]) -> Sparsity:
        """The pattern with the entries of these numbers, in ascending order."""
        self = object.__new__(cls)
        self._fill(keys, shape)
        return self

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a Sparsity is immutable; cannot set {name!r}{at_line(user_line())}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Sparsity is immutable; cannot delete {name!r}{at_line(user_line())}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Sparsity, (self.rows, self.cols, self.shape)

    # Other forms

    @classmethod
    def from_scipy(cls, matrix: Any) -> Sparsity:
        """The pattern of a sparse array or matrix of SciPy: everything that it stores, zeros as well.

        Raises:
            TypeError: it is not one.
        """
        from scipy import sparse

        if not sparse.issparse(matrix) or len(matrix.shape) != 2:
            raise TypeError(
                f"from_scipy takes a sparse matrix of SciPy with two axes, not {type_name(matrix)}; for a dense array "
                f"call from_dense{at_line(user_line())}"
            )
        entries = matrix.tocoo()
        return cls(entries.row, entries.col, entries.shape)

    @classmethod
    def from_dense(cls, array: Any) -> Sparsity:
        """The pattern of a dense array with two axes: what is not zero in it; NaN is not zero.

        Raises:
            ValueError: it has another number of axes.
        """
        array = np.asarray(array)
        if array.ndim != 2:
            raise ValueError(f"a pattern has two axes, but the array has the shape {array.shape}{at_line(user_line())}")
        rows, cols = np.nonzero(array)
        return cls(rows, cols, array.shape)

    def to_scipy(self, format: str = "csr", values: Any = None) -> Any:
        """The pattern as a sparse array of SciPy.

        Args:
            format: one of SciPy's formats: "csr", "csc", "coo", "bsr", "dia", "dok" or "lil".
            values: a value for each entry, in the order of `rows` and `cols`; True by default.

        Returns:
            An array, `scipy.sparse.csr_array` and so on, in SciPy's sense of one: `*` is elementwise.

        Raises:
            ValueError: the format is unknown, or the number of values is not that of the entries.

        Example:
            >>> import numpy as np, ftrans as ft
            >>> pattern = ft.Sparsity.from_dense([[1, 0], [1, 1]])
            >>> pattern.to_scipy("csc", np.array([1.0, 2.0, 3.0])).toarray()
            array([[1., 0.],
                   [2., 3.]])
        """
        from scipy import sparse

        known = ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")
        if format not in known:
            raise ValueError(f"format must be one of {', '.join(known)}, not {format!r}{at_line(user_line())}")
        values = np.ones(self.nnz, np.bool_) if values is None else np.asarray(values)
        if values.shape != (self.nnz,):
            raise ValueError(
                f"the pattern has {self.nnz} entries, so values must have the shape ({self.nnz},), not {values.shape}"
                + at_line(user_line())
            )
        if format != "csr":
            return sparse.coo_array((values, (self.rows, self.cols)), self.shape).asformat(format)
        starts = np.zeros(self.shape[0] + 1, np.int64)
        np.cumsum(np.bincount(self.rows, minlength=self.shape[0]), out=starts[1:])
        index = np.int32 if max(self.nnz, *self.shape) < 2**31 else np.int64
        made = sparse.csr_array((values, self.cols.astype(index), starts.astype(index)), self.shape)
        made.has_canonical_format = True
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the pattern to a file, a compressed `.npz` of NumPy; `load` reads it.

        Args:
            path: the file; NumPy adds the suffix `.npz` if it has another one.
        """
        np.savez_compressed(path, rows=self.rows, cols=self.cols, shape=np.array(self.shape, np.int64))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sparsity:
        """Read a pattern from a file that `save` has written.  Nothing in the file is executed.

        Raises:
            ValueError: the file holds something else.
        """
        try:
            with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
                rows, cols, shape = file["rows"], file["cols"], file["shape"]
                return cls(rows, cols, tuple(shape.tolist()))
        except (ValueError, TypeError, KeyError, IndexError, EOFError, AttributeError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{os.fspath(path)!r} is not a file that Sparsity.save has written: {error}{at_line(user_line())}"
            ) from None

    # Questions

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return int(self._keys.size)

    @property
    def density(self) -> float:
        """The share of all positions that are entries; 0.0 for a matrix without positions."""
        return self.nnz / max(math.prod(self.shape), 1)

    @property
    def bandwidth(self) -> tuple[int, int]:
        """How many diagonals below and above the main one reach the entries furthest from it.

        Example:
            >>> import numpy as np, ftrans as ft
            >>> ft.Sparsity.from_dense(np.tri(4)).bandwidth
            (3, 0)
        """
        below = self.rows - self.cols
        return max(int(below.max(initial=0)), 0), max(int((-below).max(initial=0)), 0)

    def contains(self, rows: Any, cols: Any) -> Any:
        """Whether positions are entries: an array of booleans of the common shape of `rows` and `cols`."""
        rows, cols = np.broadcast_arrays(rows, cols)
        is_inside = (rows >= 0) & (rows < self.shape[0]) & (cols >= 0) & (cols < self.shape[1])
        return is_inside & np.isin(rows.astype(np.int64) * self.shape[1] + cols, self._keys)

    def __contains__(self, position: tuple[int, int]) -> bool:
        return bool(self.contains(*position))

    def covers(self, other: Sparsity) -> bool:
        """Whether all entries of another pattern of the same shape are entries of this one.

        Example:
            >>> import numpy as np, ftrans as ft
            >>> ft.Sparsity.from_dense(np.ones((2, 2))).covers(ft.Sparsity.from_dense(np.eye(2)))
            True
        """
        self._require_alike(other, "covers")
        return bool(np.isin(other._keys, self._keys, assume_unique=True).all())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sparsity):
            return NotImplemented
        return self.shape == other.shape and np.array_equal(self._keys, other._keys)

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash((self.shape, self._keys.tobytes())))
        assert self._hash is not None
        return self._hash

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a pattern is neither true nor false; ask whether .nnz is 0, or compare with ==" + at_line(user_line())
        )

    # Other patterns

    @property
    def T(self) -> Sparsity:
        """The pattern of the transpose."""
        return self.transpose()

    def transpose(self) -> Sparsity:
        """The pattern of the transpose."""
        return Sparsity(self.cols, self.rows, self.shape[::-1])

    def lower(self) -> Sparsity:
        """The entries on and below the main diagonal."""
        return Sparsity._of(self._keys[self.rows >= self.cols], self.shape)

    def union(self, *others: Sparsity) -> Sparsity:
        """The entries of this pattern and of others of the same shape."""
        return reduce(Sparsity.__or__, others, self)

    def __or__(self, other: Sparsity) -> Sparsity:
        return self._combined(other, "|", np.union1d)

    def __and__(self, other: Sparsity) -> Sparsity:
        return self._combined(other, "&", np.intersect1d)

    def __sub__(self, other: Sparsity) -> Sparsity:
        return self._combined(other, "-", np.setdiff1d)

    def _combined(self, other: Any, what: str, combine: Callable[[Any, Any], Any]) -> Any:
        if not isinstance(other, Sparsity):
            return NotImplemented
        self._require_alike(other, what)
        return Sparsity._of(combine(self._keys, other._keys), self.shape)

    def _require_alike(self, other: Any, what: str) -> None:
        if not isinstance(other, Sparsity):
            raise TypeError(f"{what} compares with another Sparsity, not {type_name(other)}{at_line(user_line())}")
        if self.shape != other.shape:
            raise ValueError(
                f"{what} is for patterns of one shape, but these have {self.shape} and {other.shape}"
                + at_line(user_line())
            )

    # Pictures

    def __repr__(self) -> str:
        return f"Sparsity(shape={self.shape}, nnz={self.nnz}, density={_percent(self.density)})"

    def __str__(self) -> str:
        height, width = self.shape
        entries = "entry" if self.nnz == 1 else "entries"
        legend = f"{height} x {width}, {self.nnz} {entries} ({_percent(self.density)})"
        return "\n".join([*as_text(self.rows, self.cols, self.shape), legend])

    def to_svg(self, path: str | os.PathLike[str] | None = None) -> str:
        """A picture of the pattern as SVG.  A large pattern is drawn in cells, the darker the more entries they hold.

        Args:
            path: a file to write it to, if given.

        Returns:
            The text of the picture.

        Example:
            >>> import numpy as np, ftrans as ft
            >>> ft.Sparsity.from_dense(np.eye(3)).to_svg()[:4]
            '<svg'
        """
        text = as_svg(self.rows, self.cols, self.shape, repr(self))
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return text

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the pattern with matplotlib (`pip install 'ftrans[plot]'`).

        Args:
            ax: axes of matplotlib to draw in; by default those of a new figure, which is `.figure` of the result.
            options: passed on to `imshow` of matplotlib, such as `cmap`.

        Returns:
            The axes.

        Raises:
            ImportError: matplotlib is not installed.
        """
        return draw(self.rows, self.cols, self.shape, ax, options)


def as_sparsity(pattern: Any, what: str) -> Sparsity:
    """A pattern that is given as a `Sparsity`, a sparse matrix of SciPy or a dense array with two axes.

    Args:
        pattern: the pattern.
        what: the name of the function that it is given to, for messages.
    """
    if isinstance(pattern, Sparsity):
        return pattern
    if hasattr(pattern, "tocoo") and len(pattern.shape) == 2:
        return Sparsity.from_scipy(pattern)
    if is_plain(pattern, np.ndarray | list | tuple) and _has_two_axes(pattern):
        return Sparsity.from_dense(pattern)
    raise TypeError(
        f"{what} takes a pattern: a Sparsity, a sparse matrix of SciPy or an array with two axes, not "
        f"{type_name(pattern)}{at_line(user_line())}"
    )


def _has_two_axes(rows: Any) -> bool:
    try:
        return np.ndim(rows) == 2
    except ValueError:
        # Rows of different lengths.
        return False


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _as_shape(shape: Any) -> tuple[int, int]:
    is_pair = isinstance(shape, tuple | list) and len(shape) == 2
    if not is_pair or not all(isinstance(n, int | np.integer) and n >= 0 for n in shape):
        raise ValueError(
            f"the shape of a pattern is its numbers of rows and of columns, (m, n), not {shape!r}{at_line(user_line())}"
        )
    height, width = int(shape[0]), int(shape[1])
    if height * width >= _MOST_POSITIONS:
        raise ValueError(f"a matrix of shape {shape} has 2**63 positions or more{at_line(user_line())}")
    return height, width


def _as_numbers(numbers: Any, what: str) -> Any:
    array = np.asarray(numbers)
    if array.ndim != 1:
        raise ValueError(
            f"{what} must be a sequence of integers, not an array of shape {array.shape}; of a dense matrix make a "
            f"pattern by Sparsity.from_dense{at_line(user_line())}"
        )
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{what} must be integers, not {array.dtype}{at_line(user_line())}")
    return array.astype(np.int64)
