"""Products with the Jacobian of a program, `J @ v` and `v @ J`, recorded as a part of another program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.interpret import inline
from ...core.program import Program, needed_eqns
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex
from ...ops.elementwise import convert
from ...ops.literals import full
from ...ops.parts import concatenate
from ...ops.shapes import reshape
from ...transforms.differentiate import linearize, pushforward
from ...transforms.transpose import Transpose, transpose
from ..dense.chunks import apply_in_chunks

Flags = tuple[bool, ...]


def forward_product(program: Program, active: Flags, is_wanted: Flags) -> Program:
    """The linear program of `J @ v`: from residuals and a vector to those wanted outputs that depend on it."""
    parts = pushforward(program, active)
    is_chosen = _of_active(is_wanted, parts.out_active)
    outputs = [atom for atom, chosen in zip(parts.linear.outputs, is_chosen, strict=True) if chosen]
    return Program(parts.linear.name, parts.linear.inputs, needed_eqns(parts.linear.eqns, outputs), outputs)


def reverse_product(program: Program, active: Flags, is_wanted: Flags) -> Transpose:
    """The linear program of `v @ J`."""
    parts = linearize(program, active)
    is_linear = (False,) * parts.residual_count + (True,) * active.count(True)
    return transpose(parts.linear, is_linear, _of_active(is_wanted, parts.out_active))


def _of_active(is_wanted: Flags, out_active: Flags) -> Flags:
    """Flags of those outputs that depend on an active input; a linear program has no others."""
    return tuple(w for w, a in zip(is_wanted, out_active, strict=True) if a)


class Products:
    """A program at given inputs, and products with the Jacobian of some of its outputs by its active inputs.

    Columns of the Jacobian count the elements of the active inputs, one input after the other; rows those of the
    outputs.

    Attributes:
        values: all outputs of the program.
        ins: types of the active inputs.
        outs: types of the outputs that are differentiated.
        dtype: dtype of the Jacobian: that of these outputs, complex if an active input is.

    Args:
        program: the program.
        active: which inputs are active.
        is_wanted: which outputs are differentiated.
        inputs: the inputs, in the program that is recorded.
    """

    def __init__(self, program: Program, active: Flags, is_wanted: Flags, inputs: Sequence[Tracer]) -> None:
        self._program, self._active, self._is_wanted = program, active, is_wanted
        self._parts = linearize(program, active)
        results = inline(self._parts.values, inputs)
        self.values, self._residuals = results[: len(program.outputs)], results[len(program.outputs) :]
        self.ins = [t for t, a in zip(program.in_types, active, strict=True) if a]
        self.outs = [t for t, w in zip(program.out_types, is_wanted, strict=True) if w]
        out_active = self._parts.out_active
        self._is_made = [a for w, a in zip(is_wanted, out_active, strict=True) if w]
        dtypes = [t.dtype for t in self.outs] or [t.dtype for t in self.ins]
        self.dtype: Any = np.result_type(*dtypes, *(t.dtype for t in self.ins if is_complex(t.dtype)))

    def forward(self, vectors: Sequence[Tracer], chunk_size: int | None = None) -> Tracer:
        """The products `J @ v` with several vectors, (count, number of rows).

        Args:
            vectors: for each active input, its part of all vectors, (count, *shape).
            chunk_size: how many to process at once; all by default.
        """
        needed = forward_product(self._program, self._active, self._is_wanted)
        return self._joined(needed, vectors, self.outs, self._is_made, vectors[0].shape[0], chunk_size)

    def reverse(self, vectors: Sequence[Tracer], chunk_size: int | None = None) -> Tracer:
        """The products `v @ J` with several vectors, (count, number of columns).

        Args:
            vectors: for each differentiated output, its part of all vectors, (count, *shape).
            chunk_size: how many to process at once; all by default.
        """
        turned = reverse_product(self._program, self._active, self._is_wanted)
        made_of = [v for v, m in zip(vectors, self._is_made, strict=True) if m]
        return self._joined(turned.program, made_of, self.ins, turned.in_active, vectors[0].shape[0], chunk_size)

    def _joined(
        self,
        linear: Program,
        vectors: Sequence[Tracer],
        results: Sequence[ArrayType],
        is_made: Sequence[bool],
        count: int,
        chunk_size: int | None,
    ) -> Tracer:
        """The results of a linear program for several vectors, side by side, with zeros for those it does not make."""
        made: list[Tracer] = []
        if linear.outputs and count == 1:
            only = [reshape(x, shape=x.shape[1:]) for x in vectors]
            made = inline(linear, [*self._residuals, *only])
        elif linear.outputs:
            made = apply_in_chunks(linear, self._residuals, vectors, chunk_size)
        remaining = iter(made)
        blocks = [
            convert(reshape(next(remaining), shape=(count, t.size)), dtype=self.dtype)
            if m
            else full((count, t.size), 0, self.dtype)
            for t, m in zip(results, is_made, strict=True)
        ]
        return blocks[0] if len(blocks) == 1 else concatenate(*blocks, axis=1)
