"""Products with the Jacobian of a program, `J @ v` and `v @ J`, recorded as a part of another program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.interpret import inline
from ..core.program import Program, needed_eqns
from ..core.trace import Tracer
from ..core.types import ArrayType, is_complex
from ..ops.elementwise import convert
from ..ops.literals import full
from ..ops.parts import concatenate
from ..ops.shapes import reshape
from ..transforms.differentiate import linearize, pushforward
from ..transforms.transpose import transpose
from .chunks import apply_in_chunks

Flags = tuple[bool, ...]


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
        self._program, self._active = program, active
        self._parts = linearize(program, active)
        results = inline(self._parts.values, inputs)
        self.values, self._residuals = results[: len(program.outputs)], results[len(program.outputs) :]
        self.ins = [t for t, a in zip(program.in_types, active, strict=True) if a]
        self.outs = [t for t, w in zip(program.out_types, is_wanted, strict=True) if w]
        out_active = self._parts.out_active
        # The linear program has those outputs only that depend on an active input.
        self._is_chosen = tuple(w for w, a in zip(is_wanted, out_active, strict=True) if a)
        self._is_made = [a for w, a in zip(is_wanted, out_active, strict=True) if w]
        dtypes = [t.dtype for t in self.outs] or [t.dtype for t in self.ins]
        self.dtype: Any = np.result_type(*dtypes, *(t.dtype for t in self.ins if is_complex(t.dtype)))

    def forward(self, vectors: Sequence[Tracer], chunk_size: int | None = None) -> Tracer:
        """The products `J @ v` with several vectors, (count, number of rows).

        Args:
            vectors: for each active input, its part of all vectors, (count, *shape).
            chunk_size: how many to process at once; all by default.
        """
        linear = pushforward(self._program, self._active).linear
        outputs = [a for a, c in zip(linear.outputs, self._is_chosen, strict=True) if c]
        needed = Program(linear.name, linear.inputs, needed_eqns(linear.eqns, outputs), outputs)
        return self._joined(needed, vectors, self.outs, self._is_made, vectors[0].shape[0], chunk_size)

    def reverse(self, vectors: Sequence[Tracer], chunk_size: int | None = None) -> Tracer:
        """The products `v @ J` with several vectors, (count, number of columns).

        Args:
            vectors: for each differentiated output, its part of all vectors, (count, *shape).
            chunk_size: how many to process at once; all by default.
        """
        is_linear = (False,) * len(self._residuals) + (True,) * len(self.ins)
        turned = transpose(self._parts.linear, is_linear, self._is_chosen)
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
