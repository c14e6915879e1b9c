"""Prepared: a sparse Jacobian or Hessian for arguments of certain types, whose entries one program computes."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np

from ..base import tree
from ..base.source import at_line, user_line
from ..control.lanes.in_blocks import in_blocks
from ..control.lanes.unit_axes import without_unit_axes
from ..control.subprograms import with_outputs
from ..core.program import Program
from ..ops.host import as_host_call
from ..run.costs import cost
from ..run.places import JAX, NUMPY, place_of
from ..structure.origins import hessian_origins, jacobian_origins
from ..transforms.simplify import for_compiler, simplify
from ..xla import Compiled, device_arrays, fastest, to_numpy, usual_limit
from .call import name_of, run
from .paths import bind, without_collector
from .prepared_function import PreparedFunction
from .sparse_call import SparseDerivative, known_values, matrix_of
from .sparse_check import find_wrong
from .sparse_formats import Block, owned
from .sparsity import Sparsity

# As for `jit`: larger arrays that the function closes over are passed to the compiled program on each call.
_EMBEDDED_BYTES = 1 << 16
# How many lines of the user's code an explanation names.
_MOST_LINES = 5


class Prepared:
    """A sparse Jacobian or Hessian for arguments of certain types: what `sparse_jacobian(f).prepare(*args)` returns.

    The function is traced once, and the program for the entries is made, and compiled, once.  Calls run that program
    and no other Python.  Arrays that the function closes over are constants from then on; if one that it uses as it is
    has been written to since, a call raises an error.  Where Python code of the function has looked at values (an `if`,
    an index), calls compare with what it saw.

    Compiled for a CPU, values that many entries share are stored, and not computed again for each.  With
    `prepare(*args, tune=True)`, what is fastest for these arguments is found by compiling and timing several forms.

    Called with arguments like those, it returns the matrix in the format that was asked for, and with it the value and
    the auxiliary result of the function where these were asked for.  It can be called inside `jit` and other
    transformations as well.

    Attributes:
        shape: shape of the matrix: elements of the results, elements of the arguments.
        rows: the row of each entry, in the order of `values`.
        cols: its column.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> J = ft.sparse_jacobian(lambda x: x[1:] * x[:-1]).prepare(np.ones(3), compile=False)
        >>> J(np.array([1.0, 2.0, 3.0])).toarray()
        array([[2., 1., 0.],
               [0., 3., 2.]])
        >>> J.shape, J.values(np.ones(3)).shape == J.rows.shape == J.cols.shape
        ((2, 3), True)
    """

    def __init__(
        self,
        derivative: SparseDerivative,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        is_compiled: bool,
        is_tuned: bool = False,
    ) -> None:
        self._args, self._kwargs, self._is_compiled, self._is_tuned = args, kwargs, is_compiled, is_tuned
        self._derivative = derivative
        self._function = function = PreparedFunction(derivative, args, kwargs)
        inputs, traced = function.inputs, function.traced
        known = known_values(traced, len(inputs.leaves))
        self._entries = entries = derivative.entries(traced.program, function.active, function.wanted, known)
        point = [np.asarray(x) for x in (*inputs.leaves, *traced.captured)]
        derivative.trust(traced.program, function.active, function.wanted, entries, point)
        self.rows, self.cols, self.shape = entries.rows, entries.cols, entries.shape
        heights = [t.size for t in traced.program.out_types[: function.wanted]]
        self._blocks: list[Block] = derivative.blocks(entries, heights, [t.size for t in inputs.types[: inputs.count]])
        self._program, self._constants = self._ready()
        self._compiled: Compiled | None = None
        if is_compiled:
            self._on_device = device_arrays(self._constants)
            self._ends = list(map(as_host_call, self._program.endings()))
            short = in_blocks(without_unit_axes(for_compiler(self._program)))
            if is_tuned:
                self._compiled = without_collector(fastest, short, [*inputs.leaves, *self._on_device])
            else:
                self._compiled = Compiled(short, limit=usual_limit(short))
            without_collector(self._run, inputs.leaves)

    def _ready(self) -> tuple[Program, list[Any]]:
        """The program to run: value and auxiliary results if they are asked for, guards, entries; and its constants."""
        options, program, function = self._derivative.options, self._entries.program, self._function
        first = 0 if options.with_value else function.wanted
        if not (options.with_value or options.has_aux):
            first += function.aux.num_leaves
        program = with_outputs(program, program.outputs[first:])
        return bind(program, len(function.inputs.leaves), function.traced.captured, _EMBEDDED_BYTES)

    # Calls

    def values(self, *args: Any, **kwargs: Any) -> Any:
        """The entries of the matrix, a vector; `rows` and `cols` say where they are.

        Args:
            args: arguments like those that this was prepared for.
            kwargs: the same by name.

        Raises:
            ValueError: the arguments have other types, or the function takes another path for them.
        """
        return owned(self._run(self._function.leaves_of(args, kwargs))[-1])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The matrix, and what else was asked for."""
        *outs, vector = self._run(self._function.leaves_of(args, kwargs))
        options, function = self._derivative.options, self._function
        matrix = self._derivative.nested(self._blocks, function.results, function.inputs.structure, vector)
        if not (options.with_value or options.has_aux):
            return matrix
        count = function.wanted if options.with_value else 0
        aux = tree.unflatten(function.aux, outs[count:])
        if not options.with_value:
            return matrix, aux
        value = tree.unflatten(function.results, outs[:count])
        return ((value, aux) if options.has_aux else value), matrix

    def _run(self, leaves: list[Any]) -> list[Any]:
        """The results of the program but the guards, which are compared."""
        place = place_of(leaves)
        if self._compiled is not None and (place is NUMPY or place is JAX):
            try:
                outs = self._compiled(*leaves, *self._on_device)
            finally:
                for end in self._ends:
                    end()
            if place is NUMPY:
                # Entries are copied only where they are not put in another order anyway.
                outs = [*map(to_numpy, outs[:-1]), np.asarray(outs[-1])]
        else:
            outs = run(self._program, [*leaves, *self._constants])
        count = len(self._function.traced.builder.guards)
        if count:
            self._function.require_same_path(outs[-1 - count : -1])
            outs = [*outs[: -1 - count], outs[-1]]
        return outs

    def operator(self, *args: Any, **kwargs: Any) -> Any:
        """The matrix as a linear operator of SciPy, which computes products without forming it.

        The function is linearized once; a product then costs about as much as an evaluation.

        Args:
            args: arguments like those that this was prepared for.
            kwargs: the same by name.

        Returns:
            A `scipy.sparse.linalg.LinearOperator` with products by vectors and matrices, also of the adjoint.

        Example:
            >>> import numpy as np, ftrans as ft
            >>> H = ft.sparse_hessian(lambda x: np.sum(x**3)).prepare(np.ones(3), compile=False)
            >>> H.operator(np.ones(3)) @ np.array([1.0, 2.0, 3.0])
            array([ 6., 12., 18.])
        """
        leaves = self._function.leaves_of(args, kwargs)
        if self._function.traced.builder.guards:
            # The entries are computed for the sake of the guards.
            self._run(leaves)
        return self._function.operator(leaves, self._is_compiled)

    def check(self, *args: Any, seed: int = 0, **kwargs: Any) -> None:
        """Compare the matrix with products of the Jacobian or Hessian and random vectors, for the function as it is.

        The function is traced again, so that this also notices when it has changed.

        Args:
            args: arguments like those that this was prepared for.
            seed: seed of the random vectors.
            kwargs: more arguments, by name.

        Raises:
            ValueError: the matrix is wrong; the message names an entry.
        """
        leaves = self._function.leaves_of(args, kwargs)
        vector = self._run(leaves)[-1]
        matrix = matrix_of(self._entries, vector, self._derivative.options.lower)
        function = PreparedFunction(self._derivative, args, kwargs)
        wrong = find_wrong(function.products(leaves, is_compiled=False), matrix, seed)
        if wrong is None:
            return
        has = "which is not in the pattern" if wrong.is_missing else f"which is {wrong.given} in the matrix"
        raise ValueError(
            f"{self._derivative.name} of {name_of(self._derivative.f)} is wrong at row {wrong.row}, column "
            f"{wrong.col}, {has} and should be {wrong.exact}; if the function has changed, prepare "
            f"it again{at_line(user_line())}"
        )

    # What it is

    @functools.cached_property
    def sparsity(self) -> Sparsity:
        """The pattern of the matrix; its rows and columns are sorted, unlike those of `values`."""
        return Sparsity(self.rows, self.cols, self.shape)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the pattern by matplotlib, as `Sparsity.plot` does."""
        return self.sparsity.plot(ax, **options)

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return len(self.rows)

    def explain(self) -> str:
        """How the entries are computed, as text for people.

        It says which engine was taken and why not others, what it costs, which lines of the function cost most, which
        lines make most entries, and under which assumptions the matrix is valid.  A line makes an entry of a Jacobian
        if the entry has a factor from there other than 1 and -1; one of a Hessian, if what is written there is
        nonlinear and the entry has its second derivative.
        """
        m, n = self.shape
        program, inputs = simplify(self._program), self._function.inputs
        where = "run by NumPy"
        if self._compiled is not None:
            where = "compiled by XLA" + ", which keeps shared values" * self._compiled.has_barriers
        lines = [
            f"{self._derivative.name} of {name_of(self._derivative.f)}: {m} x {n}, {self.nnz} entries "
            f"({100 * self.nnz / max(m * n, 1):.3g} %)",
            *self._entries.how,
            f"equations: {len(program.eqns)}, {where}",
            *_costs_of_lines(program),
            *[f"  {count} entries made at {line}" for line, count in self._origins()[:_MOST_LINES]],
        ]
        guards = self._function.traced.builder.guards
        if guards:
            lines.append(f"valid where Python code sees the same {len(guards)} value{'s' * (len(guards) > 1)}")
        if any(t.dtype.kind in "biu" and t.size > 1 for t in inputs.types[inputs.count :]):
            lines.append(
                "valid for all values of arguments that are integers or booleans; if they never change, close over "
                "them, and indices and conditions made of them are known"
            )
        return "\n".join(lines)

    def _origins(self) -> list[tuple[str, int]]:
        """The lines of the user's code that make entries, and how many."""
        function = self._function
        program, known = function.traced.program, known_values(function.traced, len(function.inputs.leaves))
        if self._derivative.options.of_hessian:
            found = hessian_origins(program, function.active, known, self._entries)
        else:
            found = jacobian_origins(program, function.active, function.wanted, known, self._entries)
        return [*found.items()]

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<Prepared {self._derivative.name} of {name_of(self._derivative.f)}: {m} x {n}, {self.nnz} entries>"

    def __reduce__(self) -> tuple[Any, ...]:
        # What programs are made from is less than they are, and the same in each process.
        try:
            pickle.dumps(self._derivative)
        except Exception as error:
            raise pickle.PicklingError(
                f"{self._derivative.name} of {name_of(self._derivative.f)} is pickled as the function that it is made "
                f"of, which cannot be: {error}; define the function in a module, outside of others, and let it close "
                f"over nothing that cannot be pickled"
            ) from None
        return Prepared, (self._derivative, self._args, self._kwargs, self._is_compiled, self._is_tuned)


def _costs_of_lines(program: Program) -> list[str]:
    """The lines of the user's code whose derivatives cost most, with their parts of the whole."""
    times: dict[str, float] = {}
    for eqn in program.eqns:
        line = "ftrans itself" if eqn.line is None else str(eqn.line.written)
        times[line] = times.get(line, 0.0) + cost(eqn).time
    total = max(sum(times.values()), 1.0)
    first = sorted(times, key=lambda line: -times[line])[:_MOST_LINES]
    return [f"  {100 * times[line] / total:3.0f} % at {line}" for line in first]
