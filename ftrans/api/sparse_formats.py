"""Formats of sparse matrices: a vector of entries as the matrix that the user asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..base import tree
from ..base.affine import Affine, detected
from ..base.memory_size import require_fits
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.program import Const
from ..core.trace import Tracer, current_builder
from ..core.types import ArrayType
from ..ops.broadcast import broadcast
from ..ops.elementwise import convert, mul
from ..ops.indexing import gather, scatter_add
from ..ops.literals import full
from ..ops.shapes import reshape
from ..xla import is_jax
from .call import record_or_run

SCIPY_FORMATS = ("csr", "csc", "coo")
# Elements of shorter vectors are taken by a table.
_MANY = 10_000
FORMATS = (*SCIPY_FORMATS, "values", "dense", "bcoo")


class Compressed(NamedTuple):
    """The index arrays of a matrix of SciPy's format CSR or CSC.

    Attributes:
        order: the places of its entries in a vector of entries; None if they are in the same order.
        form: these places as an affine function, if there are many and they are one.
        indices: columns (of CSC: rows) of the entries.
        indptr: where each row (column) begins.
    """

    order: Any
    form: Affine | None
    indices: Any
    indptr: Any


class Positions:
    """Where the entries of a vector are in a matrix.

    Attributes:
        rows: the row of each.
        cols: its column.
        shape: shape of the matrix.
    """

    def __init__(self, rows: Any, cols: Any, shape: tuple[int, int]) -> None:
        self.rows, self.cols = _frozen(rows), _frozen(cols)
        self.shape = shape
        self._of_format: dict[str, Compressed] = {}

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return int(self.rows.size)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.rows.tobytes(), self.cols.tobytes()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Positions) and self._key == other._key)

    def __hash__(self) -> int:
        return hash((self.shape, self.nnz))

    def compressed(self, format: str) -> Compressed:
        """The index arrays of "csr" or "csc", with sorted indices."""
        found = self._of_format.get(format)
        if found is None:
            from scipy import sparse

            numbers = np.arange(self.nnz)
            matrix = sparse.coo_array((numbers, (self.rows, self.cols)), shape=self.shape).asformat(format)
            matrix.sort_indices()
            order = None if np.array_equal(matrix.data, numbers) else matrix.data
            form = detected(order) if order is not None and self.nnz > _MANY else None
            # SciPy takes 64 bits for those it is given, whatever their size; 32 take half the time in each operation.
            wide = max(self.nnz, *self.shape) >= 1 << 31
            indices, indptr = (x.astype(np.int64 if wide else np.int32) for x in (matrix.indices, matrix.indptr))
            found = self._of_format[format] = Compressed(order, form, indices, indptr)
        return found

    @cached_property
    def canonical(self) -> Positions:
        """The same positions in row-major order."""
        order = self.compressed("csr").order
        return self if order is None else Positions(self.rows[order], self.cols[order], self.shape)

    def matrix(self, values: Any, format: str) -> Any:
        """A new SciPy array with these entries, which shares no memory with any other.

        Raises:
            TypeError: SciPy has no sparse arrays of their dtype.
        """
        from scipy import sparse

        if values.dtype.itemsize == 2:
            raise TypeError(
                f'SciPy has no sparse arrays of {values.dtype}; ask for format="values", "dense" or "bcoo", or '
                f"differentiate by an array of float32{at_line(user_line())}"
            )
        if format == "coo":
            return sparse.coo_array((owned(values), (self.rows.copy(), self.cols.copy())), shape=self.shape)
        order, form, indices, indptr = self.compressed(format)
        data = owned(values) if order is None else values.take(order) if form is None else _strided(values, form)
        make = sparse.csr_array if format == "csr" else sparse.csc_array
        matrix = make((data, indices.copy(), indptr.copy()), shape=self.shape)
        # Found out again by each operation that needs it, if not said.
        matrix.has_canonical_format = True
        return matrix

    @cached_property
    def _places(self) -> Const:
        """The places of the entries in the elements of the matrix, in row-major order."""
        places = self.rows * self.shape[1] + self.cols
        return Const(places, ArrayType(places.shape, places.dtype))

    def dense(self, values: Any) -> Any:
        """The matrix with zeros.

        Raises:
            MemoryError: it does not fit in the memory of this machine.
        """
        m, n = self.shape
        instead = f"as a sparse matrix it has {self.nnz} entries: leave out format, or todense()"
        require_fits(m * n * values.dtype.itemsize, f"the matrix with zeros ({m} x {n})", instead)
        if is_plain(values, np.ndarray):
            matrix = np.zeros(self.shape, values.dtype)
            matrix[self.rows, self.cols] = values
            return matrix

        def put(operands: list[Tracer]) -> list[Tracer]:
            zeros = full((self.shape[0] * self.shape[1],), 0, operands[0].dtype)
            return [reshape(scatter_add(zeros, operands[0], _constant(self._places)), shape=self.shape)]

        return record_or_run("todense", put, [values])[0]


def _frozen(x: Any) -> Any:
    x = np.asarray(x, np.int64).view()
    x.flags.writeable = False
    return x


def _strided(values: Any, form: Affine) -> Any:
    """The elements of a vector at the places of a form, as a copy: memory is read in long steps, but no table is."""
    steps = [values.strides[0] * s for s in form.strides]
    return np.lib.stride_tricks.as_strided(values[form.offset :], form.box, steps).copy().reshape(-1)


def _constant(const: Const) -> Tracer:
    builder = current_builder()
    assert builder is not None
    return Tracer(builder, const)


def _const(x: Any) -> Const:
    return Const(x, ArrayType(x.shape, x.dtype))


def taken(values: Any, places: Any) -> Any:
    """The elements of a vector at known places; all of it for None."""
    if places is None:
        return values
    if is_plain(values, np.ndarray):
        return values.take(places)
    return record_or_run("reordering", lambda xs: [gather(xs[0], _constant(_const(places)))], [values])[0]


def owned(values: Any) -> Any:
    """Entries that may be written to: those that a compiled program has returned are the memory of JAX."""
    return values.copy() if is_plain(values, np.ndarray) and not values.flags.writeable else values


class Block(NamedTuple):
    """A matrix of derivatives of one array by another.

    Attributes:
        places: the places of its entries in the vector of all entries; None for all of them.
        positions: where they are in the block.
    """

    places: Any
    positions: Positions

    def formatted(self, vector: Any, format: str) -> Any:
        """The block out of the vector of all entries."""
        values = taken(vector, self.places)
        if format == "values":
            return owned(values)
        if format == "dense":
            return self.positions.dense(values)
        if is_plain(values, np.ndarray) and format in SCIPY_FORMATS:
            return self.positions.matrix(values, format)
        ordered = taken(values, self.positions.compressed("csr").order)
        return _matrix(ordered, self.positions.canonical, format)


def blocks(rows: Any, cols: Any, heights: Sequence[int], widths: Sequence[int]) -> list[Block]:
    """The blocks of a matrix, by output, then input, whose sizes are given."""
    if len(heights) == len(widths) == 1:
        return [Block(None, Positions(rows, cols, (heights[0], widths[0])))]
    ends, limits = np.cumsum(heights), np.cumsum(widths)
    outputs, inputs = np.searchsorted(ends, rows, "right"), np.searchsorted(limits, cols, "right")
    found = []
    for i, m in enumerate(heights):
        for j, n in enumerate(widths):
            places = np.flatnonzero((outputs == i) & (inputs == j))
            positions = Positions(rows[places] - (ends[i] - m), cols[places] - (limits[j] - n), (m, n))
            found.append(Block(places, positions))
    return found


def _matrix(values: Any, positions: Positions, format: str) -> Any:
    """The matrix that stands for entries in row-major order wherever they live."""
    if is_plain(values, np.ndarray) and values.shape == (positions.nnz,) and format in SCIPY_FORMATS:
        return positions.matrix(values, format)
    if format == "bcoo" and (is_plain(values, np.ndarray) or is_jax(values)):
        from ..xla.sparse import bcoo

        return bcoo(values, positions.rows, positions.cols, positions.shape)
    return SparseValues(values, positions, format)


class SparseValues:
    """A sparse matrix whose entries are traced, or no array of NumPy: what `sparse_jacobian` returns inside `jit`.

    Its pattern is known, and its entries are in row-major order.  It is a container: transformations of `ftrans` see
    the entries.  As a result of a compiled function it becomes the SciPy array that was asked for.

    Attributes:
        values: the entries, in row-major order; with a leading axis under `vmap`.
        format: the format that it takes as soon as the entries are an array of NumPy.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> def norm(x):
        ...     return np.sum(ft.sparse_jacobian(np.sin)(x).values ** 2)
        >>> ft.grad(norm)(np.array([0.0, 0.5])).round(4)
        array([-0.    , -0.8415])
    """

    # NumPy's operators, and those of traced values, leave `array @ matrix` to this class.
    __array_ufunc__ = None

    def __init__(self, values: Any, positions: Positions, format: str = "csr") -> None:
        self.values = values
        self.format = format
        self._positions = positions

    @property
    def rows(self) -> Any:
        """The row of each entry."""
        return self._positions.rows

    @property
    def cols(self) -> Any:
        """The column of each entry."""
        return self._positions.cols

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return self._positions.shape

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return self._positions.nnz

    @property
    def dtype(self) -> Any:
        """Dtype of the entries."""
        return self.values.dtype

    def todense(self) -> Any:
        """The matrix with zeros: an array of shape `shape`, traced if the entries are."""
        return self._positions.dense(self.values)

    def to_scipy(self, format: str | None = None) -> Any:
        """The matrix as a SciPy array on the host.

        Args:
            format: "csr", "csc" or "coo"; by default the one that the derivative was asked for.

        Raises:
            TypeError: the entries are traced.
        """
        chosen = format or (self.format if self.format in SCIPY_FORMATS else "csr")
        if chosen not in SCIPY_FORMATS:
            raise ValueError(f'format must be "csr", "csc" or "coo", not {format!r}{at_line(user_line())}')
        if isinstance(self.values, Tracer):
            raise TypeError(_advice("to_scipy()"))
        return self._positions.matrix(np.asarray(self.values), chosen)

    @property
    def T(self) -> SparseValues:
        """The transposed matrix."""
        turned = Positions(self.cols, self.rows, self.shape[::-1])
        return SparseValues(taken(self.values, turned.compressed("csr").order), turned.canonical, self.format)

    def __matmul__(self, x: Any) -> Any:
        """The product with a vector (n,) or a matrix (n, k)."""
        if not hasattr(x, "shape"):
            x = np.asarray(x)
        if len(x.shape) not in (1, 2) or x.shape[0] != self.shape[1]:
            raise ValueError(
                f"a sparse matrix of shape {self.shape} is multiplied by an array of shape ({self.shape[1]},) or "
                f"({self.shape[1]}, k), not {tuple(x.shape)}{at_line(user_line())}"
            )
        dtype = np.result_type(self.values.dtype, x.dtype)
        return record_or_run("@", lambda operands: [self._product(operands[0], operands[1], dtype)], [self.values, x])[
            0
        ]

    def _product(self, values: Tracer, x: Tracer, dtype: Any) -> Tracer:
        values, x = convert(values, dtype=dtype), convert(x, dtype=dtype)
        shape = (self.nnz, *x.shape[1:])
        terms = mul(broadcast(values, shape=shape, dims=(0,)), gather(x, _constant(_const(self.cols))))
        return scatter_add(full((self.shape[0], *x.shape[1:]), 0, dtype), terms, _constant(_const(self.rows)))

    def __rmatmul__(self, x: Any) -> Any:
        """The product of a vector (m,) or a matrix (k, m) with this matrix."""
        return self.T @ x if len(x.shape) == 1 else (self.T @ x.T).T

    def _arithmetic(self, other: Any) -> Any:
        raise TypeError(_advice("arithmetic"))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __pow__ = _arithmetic

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise TypeError(_advice(f"numpy.{function.__name__}"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(_advice("numpy.asarray"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(_advice(f".{name}"))

    def __repr__(self) -> str:
        return f"SparseValues({self.shape[0]} x {self.shape[1]}, {self.nnz} entries, values={self.values!r})"


def _advice(what: str) -> str:
    return (
        f"{what} needs the entries of a sparse matrix as an array of NumPy, but they are traced, or live elsewhere: it "
        "has .values, .rows, .cols, .shape, .T, .todense() and `@`; return the matrix from the compiled function to "
        f"get a SciPy array, or use .to_scipy() outside of it{at_line(user_line())}"
    )


def _register() -> None:
    import optree

    def flatten(matrix: Any) -> tuple[tuple[Any], tuple[Positions, str], tuple[str]]:
        return (matrix.values,), (matrix._positions, matrix.format), ("values",)

    def unflatten(static: Any, values: Any) -> Any:
        return _matrix(*values, *static)

    cls: Any = SparseValues
    optree.register_pytree_node(cls, flatten, unflatten, path_entry_type=optree.GetAttrEntry, namespace=tree.NAMESPACE)


_register()
