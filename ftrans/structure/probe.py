"""Probes: whether the entries of a sparse matrix of derivatives are those of the function, at one point.

The product of the matrix with a random vector is compared with that of the derivative, which needs no pattern.  Where
they differ, single rows of the derivative tell which entry it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.program import Program
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType, is_complex
from ..ops.elementwise import convert
from ..ops.parts import slice_
from ..ops.shapes import reshape
from ..run.places import NUMPY
from ..transforms.differentiate import gradient
from .entries import Entries
from .jacobian_products import Flags, Products

# Rounding errors that a difference has to exceed, in units of the last place of what is added up.
_ROUNDING = 1e4
_ROUNDINGS_OF_A_VALUE = 16
# How many rows that differ are looked at.
_MOST_ROWS = 16


class WrongEntries(ValueError):
    """Entries of a sparse matrix that are not those of the derivative.

    Attributes:
        row: row of an entry that is wrong or missing.
        col: its column; None if only the row is known.
        is_missing: whether the pattern has no such entry, and the derivative has.

    Args:
        message: what is wrong.
        row: as the attribute.
        col: as the attribute.
        is_missing: as the attribute.
    """

    def __init__(self, message: str, row: int, col: int | None, is_missing: bool) -> None:
        super().__init__(message)
        self.row, self.col, self.is_missing = row, col, is_missing


def check_jacobian(
    entries: Entries, program: Program, active: Sequence[bool], wanted: int, args: Sequence[Any], seed: int = 0
) -> None:
    """Compare the entries of a Jacobian with products at a point.

    Args:
        entries: the entries, in whatever way they were found.
        program: the differentiated program.
        active: for each input, whether it was differentiated by.
        wanted: the number of outputs that were differentiated.
        args: the inputs, arrays of NumPy.
        seed: of the random vector.

    Raises:
        WrongEntries: an entry is wrong, or missing in the pattern.
    """
    is_wanted = tuple(i < wanted for i in range(len(program.outputs)))
    _Probe(entries, program, tuple(active), is_wanted, args).check("Jacobian", seed)


def check_hessian(
    entries: Entries, program: Program, active: Sequence[bool], args: Sequence[Any], lower: bool = False, seed: int = 0
) -> None:
    """Compare the entries of a Hessian with products at a point.

    Args:
        entries: as for `check_jacobian`.
        program: as for `check_jacobian`.
        active: as for `check_jacobian`.
        args: as for `check_jacobian`.
        lower: whether they are those on and below the diagonal.
        seed: as for `check_jacobian`.

    Raises:
        WrongEntries: an entry is wrong, or missing in the pattern.
    """
    inner = gradient(program, tuple(active), with_value=True)
    is_wanted = tuple(i >= len(program.outputs) for i in range(len(inner.outputs)))
    _Probe(entries, inner, tuple(active), is_wanted, args, lower).check("Hessian", seed)


class _Probe:
    """Entries at a point, and products with the derivative that they should be those of."""

    def __init__(
        self,
        entries: Entries,
        program: Program,
        active: Flags,
        is_wanted: Flags,
        args: Sequence[Any],
        is_lower: bool = False,
    ) -> None:
        from scipy import sparse

        self._args = [np.asarray(x) for x in args]
        self._program, self._active, self._is_wanted = program, active, is_wanted
        ins = [t for t, a in zip(program.in_types, active, strict=True) if a]
        outs = [t for t, w in zip(program.out_types, is_wanted, strict=True) if w]
        self._forward = self._product(ins, lambda products, vectors: products.forward(vectors))
        self._reverse = self._product(outs, lambda products, vectors: products.reverse(vectors))
        self._is_complex = any(is_complex(t.dtype) for t in ins), any(is_complex(t.dtype) for t in outs)
        with np.errstate(all="ignore"):
            values = NUMPY.run(entries.program, self._args)[-1]
        self._unit = _rounding_unit(values.dtype)
        self._tolerance = _ROUNDING * self._unit
        values = _wide(values)
        rows, cols = entries.rows, entries.cols
        if is_lower:
            is_below = rows > cols
            values = np.append(values, values[is_below])
            rows, cols = np.append(rows, cols[is_below]), np.append(cols, rows[is_below])
        # Entries of value zero are entries, too.
        self.matrix = sparse.coo_array((values, (rows, cols)), entries.shape).tocsr()

    def _product(self, types: list[ArrayType], multiply: Callable[[Products, list[Tracer]], Tracer]) -> Program:
        """A program of the inputs and one vector, for the product with it; the vector has all elements in one axis."""
        dtype = np.result_type(*(t.dtype for t in types))
        builder = Builder([*self._program.in_types, ArrayType((sum(t.size for t in types),), dtype)])
        with building(builder):
            *inputs, vector = builder.inputs()
            products = Products(self._program, self._active, self._is_wanted, inputs)
            parts: list[Tracer] = []
            start = 0
            for t in types:
                part = slice_(vector, start=(start,), limit=(start + t.size,), strides=(1,))
                parts.append(_as_type(part, t))
                start += t.size
            found = multiply(products, parts)
            wanted = [y for y, w in zip(products.values, self._is_wanted, strict=True) if w]
            return builder.finish([reshape(found, shape=(found.size,)), *wanted], f"product({self._program.name})")

    def check(self, what: str, seed: int) -> None:
        """Raise if a product with a random vector differs.

        Raises:
            WrongEntries: it does.
        """
        with np.errstate(all="ignore"):
            self._check(what, seed)

    def _check(self, what: str, seed: int) -> None:
        if 0 in self.matrix.shape:
            return
        vector = self._random(seed)
        expected, *values = self._times(vector)
        vector = _wide(vector)
        noise = self._noise(values)
        found, scale = self.matrix @ vector, abs(self.matrix) @ abs(vector)
        if self._is_complex == (True, False):
            # The matrix is df/dx - i df/dy, so the derivative along dx + i dy is the real part.
            found = found.real
        excess = np.abs(expected - found) / np.maximum(scale + np.abs(expected), np.finfo(scale.dtype).tiny)
        # Where both are not finite, there is nothing to compare.
        excess = np.where(np.isfinite(expected) | np.isfinite(found), excess, 0.0)
        excess = np.where(np.isnan(excess), np.inf, excess)
        suspects = np.flatnonzero((excess > self._tolerance) & ~(np.abs(expected - found) < noise))
        if not suspects.size:
            return
        suspects = suspects[np.argsort(-excess[suspects], kind="stable")][:_MOST_ROWS]
        # An entry that is missing may make others wrong, so that is looked for first.
        lines = [(i, self._row(i)) for i in suspects.tolist()]
        for i, row in lines:
            self._check_missing(what, i, row, noise[i])
        if self._is_complex[0] == self._is_complex[1]:
            for i, row in lines:
                self._check_values(what, i, row, noise[i])
        i = int(suspects[0])
        if excess[i] > np.sqrt(self._tolerance):
            raise WrongEntries(
                f"row {i} of the {what} has a wrong or missing entry at this point{at_line(user_line())}", i, None, True
            )

    def _random(self, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        width = self.matrix.shape[1]
        vector = rng.uniform(0.5, 1.0, width) * rng.choice([-1.0, 1.0], width)
        if self._is_complex[0]:
            vector = vector + 1j * rng.uniform(0.5, 1.0, width)
        return vector.astype(self._forward.in_types[-1].dtype)

    def _noise(self, values: Sequence[Any]) -> Any:
        """For each row, a derivative that is as good as zero: it changes the value by what rounding does."""
        active = [_wide(x) for x, a in zip(self._args, self._active, strict=True) if a]
        size = max(float(np.abs(x).max(initial=0)) for x in active)
        rows = np.concatenate([np.abs(_wide(np.asarray(y))).reshape(-1) for y in values])
        return _ROUNDINGS_OF_A_VALUE * self._unit * rows / (size or 1.0)

    def _times(self, vector: Any) -> list[Any]:
        found, *values = NUMPY.run(self._forward, [*self._args, vector])
        return [_wide(found), *values]

    def _row(self, i: int) -> Any:
        """A row of the derivative; for complex results, elements that are not zero where the row is not."""
        unit = np.zeros(self.matrix.shape[0], self._reverse.in_types[-1].dtype)
        unit[i] = 1
        row = _wide(NUMPY.run(self._reverse, [*self._args, unit])[0])
        if self._is_complex == (False, True):
            row = row + 1j * NUMPY.run(self._reverse, [*self._args, 1j * unit])[0]
        return row

    def _check_missing(self, what: str, i: int, row: Any, noise: float) -> None:
        """Raise if this row of the derivative has an entry at a place where the pattern has none."""
        size = np.abs(row)
        size[_inside(self.matrix, i)] = 0
        j = int(np.argmax(size))
        if size[j] > max(self._tolerance * np.abs(row).max(), noise):
            raise WrongEntries(
                f"the {what} has an entry at ({i}, {j}), which is {row[j]:g} at this point, and the pattern has none; "
                f"add it to the pattern, or give no pattern, so that it is found out{at_line(user_line())}",
                i, j, True,
            )  # fmt: skip

    def _check_values(self, what: str, i: int, row: Any, noise: float) -> None:
        """Raise if an entry is not that of this row of the derivative."""
        mine = _inside(self.matrix, i)
        given = self.matrix.data[slice(*self.matrix.indptr[i : i + 2])]
        error = np.abs(row[mine] - given)
        if not error.size:
            return
        place = int(np.argmax(error))
        if error[place] > max(np.sqrt(self._tolerance) * np.abs(row).max(), noise):
            j = int(mine[place])
            raise WrongEntries(
                f"the entry ({i}, {j}) of the {what} is {row[j]:g} at this point, but {given[place]:g} was found"
                + at_line(user_line()),
                i, j, False,
            )  # fmt: skip


def _inside(matrix: Any, i: int) -> Any:
    """The columns of the entries in a row of a CSR array."""
    return matrix.indices[slice(*matrix.indptr[i : i + 2])]


def _rounding_unit(dtype: Any) -> float:
    return 2.0**-7 if dtype.name == "bfloat16" else float(np.finfo(dtype).eps)


def _wide(x: Any) -> Any:
    """An array in a dtype of SciPy's sparse arrays, which have no numbers of 16 bits."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _as_type(part: Tracer, type: ArrayType) -> Tracer:
    """A part of a vector as the one vector of a batch, in the dtype of its input."""
    return convert(reshape(part, shape=(1, *type.shape)), dtype=type.dtype)
