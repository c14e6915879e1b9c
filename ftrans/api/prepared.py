"""Prepared: a sparse Jacobian or Hessian for arguments of certain types, whose entries one program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import tree
from ..base.cell import Eager
from ..base.source import at_line, user_line
from ..core.program import Program
from ..core.trace import Guard, Tracer
from ..core.witness import concretize
from ..ops.host import as_host_call
from ..run.places import JAX, NUMPY, place_of
from ..transforms.simplify import simplify
from ..xla import Compiled, device_arrays, to_numpy
from .call import Traced, name_of, run
from .paths import bind, trace_guarded, without_collector
from .prepared_inputs import PreparedInputs
from .sparse_call import SparseDerivative, known_captures
from .sparse_formats import Block

# As for `jit`: larger arrays that the function closes over are passed to the compiled program on each call.
_EMBEDDED_BYTES = 1 << 16


class Prepared:
    """A sparse Jacobian or Hessian for arguments of certain types: what `sparse_jacobian(f).prepare(*args)` returns.

    The function is traced once, and the program for the entries is made, and compiled, once.  Calls run that program
    and no other Python.  As with `jit`, arrays that the function closes over are constants from then on.  Where Python
    code of the function has looked at values (an `if`, an index), calls compare with what it saw.

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
        self, derivative: SparseDerivative, args: tuple[Any, ...], kwargs: dict[str, Any], is_compiled: bool
    ) -> None:
        self._derivative, self._args, self._kwargs, self._is_compiled = derivative, args, kwargs, is_compiled
        self._inputs = inputs = PreparedInputs(derivative.f, derivative.argnums, args, kwargs, derivative.name)
        self._trace()
        self._entries = derivative.entries(
            self._traced.program, self._active, self._wanted, known_captures(self._traced, len(inputs.leaves))
        )
        self.rows, self.cols, self.shape = self._entries.rows, self._entries.cols, self._entries.shape
        heights = [t.size for t in self._traced.program.out_types[: self._wanted]]
        self._blocks: list[Block] = derivative.blocks(
            self._entries, heights, [t.size for t in inputs.types[: inputs.count]]
        )
        self._program, self._constants = self._ready()
        self._compiled: Compiled | None = None
        if is_compiled:
            self._compiled = Compiled(simplify(self._program))
            self._on_device = device_arrays(self._constants)
            self._ends = list(map(as_host_call, self._program.endings()))
            without_collector(self._run, inputs.leaves)

    def _trace(self) -> None:
        """Trace the function: its results, auxiliary results, and what it assumes of its arguments."""
        derivative, inputs = self._derivative, self._inputs
        results: list[tree.Structure] = []

        def call(tracers: list[Tracer]) -> Any:
            out = inputs.call(self._args, self._kwargs, tracers)
            if not derivative.options.has_aux:
                out = (out, ())
            elif not isinstance(out, tuple) or len(out) != 2:
                raise TypeError(
                    f"with has_aux=True, {name_of(derivative.f)} must return a pair (result, auxiliary), not "
                    f"{type(out).__name__}{at_line(user_line())}"
                )
            results.extend(tree.flatten(part)[1] for part in out)
            return out

        self._traced: Traced = trace_guarded(derivative.f, inputs.witnesses(), call)
        if any(isinstance(x, Eager) for x in self._traced.captured):
            raise TypeError(
                f"{name_of(derivative.f)} closes over a tensor, which would be a constant from now on; pass it as an "
                f"argument, or close over its array, x.detach().numpy(){at_line(user_line())}"
            )
        self._results, self._aux = results
        self._wanted: int = self._results.num_leaves
        count, total = inputs.count, len(self._traced.program.inputs)
        self._active = (True,) * count + (False,) * (total - count)
        derivative.require_differentiable(self._traced.program, inputs.types[:count], self._results)

    def _ready(self) -> tuple[Program, list[Any]]:
        """The program to run: value and auxiliary results if they are asked for, guards, entries; and its constants."""
        options, program = self._derivative.options, self._entries.program
        first = 0 if options.with_value else self._wanted
        program = Program(program.name, program.inputs, program.eqns, program.outputs[first:])
        if not (options.with_value or options.has_aux):
            aux = self._aux.num_leaves
            program = Program(program.name, program.inputs, program.eqns, program.outputs[aux:])
        return bind(program, len(self._inputs.leaves), self._traced.captured, _EMBEDDED_BYTES)

    # Calls

    def values(self, *args: Any, **kwargs: Any) -> Any:
        """The entries of the matrix, a vector; `rows` and `cols` say where they are.

        Args:
            args: arguments like those that this was prepared for.
            kwargs: the same by name.

        Raises:
            ValueError: the arguments have other types, or the function takes another path for them.
        """
        return self._run(self._inputs.leaves_of(args, kwargs))[-1]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The matrix, and what else was asked for."""
        *outs, vector = self._run(self._inputs.leaves_of(args, kwargs))
        options = self._derivative.options
        matrix = self._derivative.nested(self._blocks, self._results, self._inputs.structure, vector)
        if not (options.with_value or options.has_aux):
            return matrix
        count = self._wanted if options.with_value else 0
        aux = tree.unflatten(self._aux, outs[count : count + self._aux.num_leaves])
        if not options.with_value:
            return matrix, aux
        value = tree.unflatten(self._results, outs[:count])
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
                outs = [to_numpy(x) for x in outs]
        else:
            outs = run(self._program, [*leaves, *self._constants])
        guards = self._traced.builder.guards
        if guards:
            first = len(outs) - 1 - len(guards)
            self._compare(guards, outs[first:-1])
            outs = [*outs[:first], outs[-1]]
        return outs

    def _compare(self, guards: Sequence[Guard], values: Sequence[Any]) -> None:
        """Raise unless the function would have taken the path that it was traced on."""
        for guard, value in zip(guards, values, strict=True):
            if isinstance(value, Tracer):
                value = concretize(value, "a prepared derivative compares")
            if not guard.holds_for(np.asarray(value)):
                name = name_of(self._derivative.f)
                raise ValueError(
                    f"{self._derivative.name} of {name} was prepared for arguments for which Python code in it saw "
                    f"{guard.expected!s}, and sees {np.asarray(value)!s} for these, so that its entries may be others; "
                    f"prepare it again for these arguments, or write numpy.where or ftrans.cond for the choice"
                    + at_line(guard.line)
                )

    # What it is

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return len(self.rows)

    def explain(self) -> str:
        """How the entries are computed, as text for people."""
        m, n = self.shape
        total = max(m * n, 1)
        where = "compiled by XLA" if self._is_compiled else "run by NumPy"
        lines = [
            f"{self._derivative.name} of {name_of(self._derivative.f)}: {m} x {n}, {self.nnz} entries "
            f"({100 * self.nnz / total:.3g} %)",
            *self._entries.how,
            f"{len(simplify(self._program).eqns)} equations, {where}",
        ]
        if self._traced.builder.guards:
            lines.append(f"valid where {len(self._traced.builder.guards)} values seen by Python code are the same")
        return "\n".join(lines)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<Prepared {self._derivative.name} of {name_of(self._derivative.f)}: {m} x {n}, {self.nnz} entries>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Programs hold tracers' lines and primitives; what they are made from is less, and the same in each process.
        d = self._derivative
        return _prepared_again, (d.f, d.argnums, d.options, d.name, self._args, self._kwargs, self._is_compiled)


def _prepared_again(
    f: Any, argnums: Any, options: Any, name: str, args: Any, kwargs: Any, is_compiled: bool
) -> Prepared:
    return Prepared(SparseDerivative(f, argnums, options, name), args, kwargs, is_compiled)
