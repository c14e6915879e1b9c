"""SparseDerivative: a function whose sparse Jacobian or Hessian is asked for, and what is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ..base import tree
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..control.subprograms import with_outputs
from ..core.program import Program
from ..core.types import ArrayType, is_complex, is_inexact
from ..structure.choice import HESSIAN_METHODS, JACOBIAN_METHODS, hessian_entries_by, jacobian_entries_by
from ..structure.entries import Entries, NotStructured
from ..structure.patterns.detect import hessian_pattern, jacobian_pattern
from .call import Traced, as_argnums, check_function, name_of, require_scalar, run
from .derivatives import Argnums, active_inputs, trace_at
from .products import Products
from .sparse_check import find_wrong
from .sparse_formats import FORMATS, Block, blocks
from .sparsity import as_sparsity

Flags = tuple[bool, ...]
# A captured matrix counts as sparse with up to so many numbers in a row that are not zero.
_MOST_IN_A_ROW = 8
# Arguments by position and by name.
Given = tuple[tuple[Any, ...], dict[str, Any]]


class Options(NamedTuple):
    """What is asked for.

    Attributes:
        of_hessian: whether it is the Hessian, not the Jacobian.
        format: one of `FORMATS`.
        method: how the entries are found.
        pattern: where they are, a SciPy array; None if that is to be found out.
        chunk_size: how many products are computed at once; None for all.
        has_aux: whether the function returns a pair `(out, aux)`.
        with_value: whether the value of the function comes with the matrix.
        lower: whether only the entries on and below the diagonal are wanted.
    """

    of_hessian: bool
    format: str
    method: str
    pattern: Any
    chunk_size: int | None
    has_aux: bool
    with_value: bool
    lower: bool = False


class SparseDerivative:
    """A function, and what is asked for of its sparse Jacobian or Hessian.

    Attributes:
        f: the function.
        argnums: the positions of the arguments to differentiate with respect to.
        options: what is asked for.
        name: what the public function is called.
        arguments: the arguments of `f` from those of a call.

    Args:
        f: the function.
        argnums: as given.
        options: as given; the pattern in any form.
        name: what the public function is called.
        arguments: the arguments of `f` from those of a call, if they differ.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        argnums: Argnums,
        options: Options,
        name: str,
        arguments: Callable[..., Given] | None = None,
    ) -> None:
        self.arguments = arguments or _as_they_are
        check_function(f, name)
        self.f = f
        self.argnums = as_argnums(argnums, name)
        self.name = name
        methods = HESSIAN_METHODS if options.of_hessian else JACOBIAN_METHODS
        _require_one_of("format", options.format, FORMATS)
        _require_one_of("method", options.method, methods)
        chunk = options.chunk_size
        if chunk is not None and not (isinstance(chunk, Integral) and chunk > 0):
            raise ValueError(f"chunk_size must be a positive integer or None, not {chunk!r}{at_line(user_line())}")
        self.options = options._replace(pattern=_as_pattern(options.pattern, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The matrix for these arguments of `f`, with the value and the auxiliary result if they are asked for."""
        has_aux = self.options.has_aux
        chosen, traced, rebuild_aux = trace_at(self.f, args, kwargs, self.argnums, self.name, has_aux, rolls=False)
        count = traced.structure.num_leaves
        self.require_differentiable(traced.program, chosen.types, traced.structure)
        active = active_inputs(chosen, traced)
        entries = self.entries(traced.program, active, count, known_values(traced, len(chosen.leaves)))
        needed = entries.program if self.options.with_value else without_values(entries.program, count)
        inputs = [*chosen.leaves, *traced.captured]
        self.trust(traced.program, active, count, entries, inputs)
        *outs, vector = run(needed, inputs)
        matrix = self.matrix(entries, traced, chosen.structure, chosen.types, vector)
        if not self.options.with_value:
            return (matrix, rebuild_aux(outs)) if has_aux else matrix
        value = tree.unflatten(traced.structure, outs[:count])
        return ((value, rebuild_aux(outs[count:])) if has_aux else value), matrix

    def entries(self, program: Program, active: Flags, wanted: int, known: dict[int, Any]) -> Entries:
        """The program for the entries of the derivative of the first outputs of a program."""
        o = self.options
        self._require_shape(program, active, wanted)
        try:
            if o.of_hessian:
                return hessian_entries_by(program, active, known, o.method, o.pattern, o.chunk_size, o.lower)
            return jacobian_entries_by(program, active, wanted, known, o.method, o.pattern, o.chunk_size)
        except NotStructured as error:
            raise ValueError(
                f'{self.name} of {name_of(self.f)} cannot be found by method="{o.method}": {error.reason}; leave the '
                f"method to ftrans{at_line(user_line())}"
            ) from None

    def trust(self, program: Program, active: Flags, wanted: int, entries: Entries, inputs: Sequence[Any]) -> None:
        """Raise unless the pattern that the user gave is right, as far as products with random vectors tell.

        Once is enough for a program and a pattern.  Where the arguments are traced, nothing can be computed, and the
        pattern has to cover the one that is found.

        Raises:
            ValueError: an entry is missing.
        """
        if self.options.pattern is None or "trusted" in entries.program.derived:
            return
        problem = self._problem(program, active, wanted, entries, inputs)
        if problem is not None:
            raise ValueError(
                f"the pattern given to {self.name} {problem}; leave it out, since the pattern is found from the program"
                + at_line(user_line())
            )
        entries.program.derive("trusted", lambda: True)

    def _problem(
        self, program: Program, active: Flags, wanted: int, entries: Entries, inputs: Sequence[Any]
    ) -> str | None:
        if all(is_plain(x, np.ndarray | np.generic) for x in inputs):
            vector = run(entries.program, inputs)[-1]
            of_hessian = self.options.of_hessian
            products = Products(program, active, wanted, inputs, of_hessian)
            wrong = find_wrong(products, matrix_of(entries, vector, self.options.lower))
            if wrong is None:
                return None
            place, value = f"at row {wrong.row}, column {wrong.col}", f"where the derivative is {wrong.exact} here"
            if wrong.is_missing:
                return f"has no entry {place}, {value}"
            return f"lacks entries, so that {wrong.given} is found {place}, {value}"
        known: dict[int, Any] = {}
        found = hessian_pattern(program, active, known) if self.options.of_hessian else None
        found = jacobian_pattern(program, active, wanted, known) if found is None else found
        over = (found.astype(np.int8) - self.options.pattern.astype(np.int8)).tocoo()
        places = np.flatnonzero(over.data > 0)
        if not places.size:
            return None
        row, col = (int(x[places[0]]) for x in over.coords)
        return (
            f"has no entry at row {row}, column {col}, which may be non-zero; with traced arguments it cannot be "
            f"compared with the derivative: prepare it outside, for arrays, by {self.name}(...).prepare(...)"
        )

    def matrix(
        self, entries: Entries, traced: Traced, structure: tree.Structure, types: Sequence[ArrayType], vector: Any
    ) -> Any:
        """The matrix in the format that was asked for, or a container of blocks."""
        heights = [t.size for t in traced.program.out_types[: traced.structure.num_leaves]]
        found = self.blocks(entries, heights, [t.size for t in types])
        return self.nested(found, traced.structure, structure, vector)

    def blocks(self, entries: Entries, heights: Sequence[int], widths: Sequence[int]) -> list[Block]:
        """The blocks of the matrix, by row, then column."""
        sizes = tuple(widths if self.options.of_hessian else heights), tuple(widths)
        return entries.program.derive(("blocks", sizes), lambda: blocks(entries.rows, entries.cols, *sizes))

    def nested(self, found: Sequence[Block], results: tree.Structure, arguments: tree.Structure, vector: Any) -> Any:
        """The blocks out of the vector of all entries, nested as the results and arguments of the function."""
        made = [block.formatted(vector, self.options.format) for block in found]
        outer = arguments if self.options.of_hessian else results
        width = len(made) // max(outer.num_leaves, 1)
        rows = [tree.unflatten(arguments, made[i : i + width]) for i in range(0, len(made), max(width, 1))]
        return tree.unflatten(outer, rows)

    def require_differentiable(self, program: Program, types: Sequence[ArrayType], results: tree.Structure) -> None:
        """Raise unless the function has the derivative that is asked for.

        Raises:
            TypeError: it has not.
        """
        if self.options.of_hessian:
            if results is not tree.LEAF:
                raise TypeError(
                    f"{self.name} is for functions with a scalar result, but {name_of(self.f)} returned a container "
                    f"with {results.num_leaves} arrays; return a scalar, or use has_aux=True for a pair (scalar, "
                    f"more){at_line(user_line())}"
                )
            require_scalar(program, self.f, self.name, "sparse_jacobian")
        if not results.num_leaves:
            raise TypeError(
                f"{self.name} needs a result, but {name_of(self.f)} returned no arrays; return what is to be "
                f"differentiated{at_line(user_line())}"
            )
        for type in program.out_types[: results.num_leaves]:
            if not is_inexact(type.dtype):
                raise TypeError(
                    f"{self.name} needs floating-point results, but {name_of(self.f)} returned {type}, whose "
                    f"derivative is zero everywhere or does not exist; return it as auxiliary result by has_aux=True"
                    + at_line(user_line())
                )
        complex_in = any(is_complex(t.dtype) for t in types)
        complex_out = any(is_complex(t.dtype) for t in program.out_types[: results.num_leaves])
        if complex_in and (complex_out or self.options.of_hessian):
            dense = "hessian" if self.options.of_hessian else "jacobian"
            raise TypeError(
                f"{self.name} of {name_of(self.f)} has complex arguments, and one matrix of complex numbers does not "
                f"say how it moves with them; use {dense} with holomorphic=True if it has complex derivatives, or "
                f"differentiate by the real and imaginary parts{at_line(user_line())}"
            )

    def _require_shape(self, program: Program, active: Flags, wanted: int) -> None:
        pattern = self.options.pattern
        columns = sum(t.size for t, a in zip(program.in_types, active, strict=True) if a)
        rows = columns if self.options.of_hessian else sum(t.size for t in program.out_types[:wanted])
        if pattern is not None and pattern.shape != (rows, columns):
            raise ValueError(
                f"the pattern given to {self.name} has the shape {pattern.shape}, but the matrix for "
                f"{name_of(self.f)} and these arguments has {rows} rows and {columns} columns{at_line(user_line())}"
            )


def _as_they_are(*args: Any, **kwargs: Any) -> Given:
    return args, kwargs


def known_captures(traced: Traced, count: int) -> dict[int, Any]:
    """The captured integers and booleans whose values are known, by the position of their inputs."""
    found = enumerate(traced.captured, count)
    return {i: np.asarray(x) for i, x in found if is_plain(x, np.ndarray | np.generic) and x.dtype.kind in "biu"}


def known_values(traced: Traced, count: int) -> dict[int, Any]:
    """The captured arrays on whose values a pattern may depend: integers, booleans, and matrices of mostly zeros."""
    found = enumerate(traced.captured, count)
    return known_captures(traced, count) | {i: x for i, x in found if _is_mostly_zero(x)}


def _is_mostly_zero(x: Any) -> bool:
    """Whether an array is a sparse matrix that is written out, such as one of finite differences."""
    if not is_plain(x, np.ndarray) or x.ndim < 2 or x.dtype.kind != "f":
        return False
    return int(np.count_nonzero(x)) <= min(_MOST_IN_A_ROW * max(x.shape), x.size // 2)


def matrix_of(entries: Entries, vector: Any, is_lower: bool) -> Any:
    """The whole matrix as a SciPy array in the format CSR, also of the lower triangle of a symmetric one."""
    from scipy import sparse

    rows, cols, values = entries.rows, entries.cols, np.asarray(vector)
    if is_lower:
        below = np.flatnonzero(rows > cols)
        values = np.append(values, values[below])
        rows, cols = np.append(rows, cols[below]), np.append(cols, rows[below])
    # SciPy has no sparse arrays of numbers of 16 bits.
    values = values.astype(np.float32) if values.dtype.itemsize == 2 else values
    return sparse.coo_array((values, (rows, cols)), shape=entries.shape).tocsr()


def without_values(program: Program, wanted: int) -> Program:
    """A program for entries without the outputs that are differentiated."""
    return with_outputs(program, program.outputs[wanted:])


def _require_one_of(name: str, given: Any, known: Sequence[str]) -> None:
    if not (isinstance(given, str) and given in known):
        listed = ", ".join(f'"{x}"' for x in known)
        raise ValueError(f"{name} must be one of {listed}, not {given!r}{at_line(user_line())}")


def _as_pattern(pattern: Any, what: str) -> Any:
    """A pattern as a SciPy array of True in the format CSR, with sorted indices; None stays None."""
    return None if pattern is None else as_sparsity(pattern, what).to_scipy("csr")
