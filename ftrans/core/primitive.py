"""Primitive: an operation that programs are made of, with all of its rules in one class.

A primitive states the type of its result, its meaning on NumPy arrays and its lowering to XLA; its derivative (`jvp`),
its transpose if it is linear, and how it maps over a leading batch axis.  All rules except the evaluators `numpy` and
`xla` work on tracers: applying primitives in a rule records equations.

Conventions:
    * Operands of one equation have equal dtypes and shapes, if that makes sense for the primitive.
    * None stands for a tangent or cotangent that is zero.
    * The batch axis is always axis 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from ..base.index_map import IndexMap, Piece
from ..base.source import at_line, user_line
from .cost import Cost
from .on_numpy import OnNumpy
from .program import Eqn, Params, Program
from .trace import Tracer, current_builder, leak_error
from .types import ArrayType, is_inexact

Tangent = Tracer | None


class MissingRule(NotImplementedError):
    """A primitive lacks a rule that a transformation needs, or a function of NumPy has no traced form."""


class Primitive(OnNumpy):
    """Base class of all primitives: each one is a `SingleResult` or a `MultipleResults`.

    Attributes:
        name: its name in printed programs.
        multiple_results: whether its rules take and return lists of results instead of one result.
        fuses: whether XLA may compute the result again in each equation that uses it, rather than store it.
        convolves: whether XLA on a CPU is faster with channels last (see `xla_channels_last`), so that it pays to
            bring operands into that order.
        repeats: whether it runs a program again and again, so that it may take long.
    """

    name: str = ""
    multiple_results = False
    fuses = False
    convolves = False
    repeats = False

    def __repr__(self) -> str:
        return self.name

    # Applying

    def bind_all(self, operands: Sequence[Any], params: Params) -> list[Any]:
        """Record the equation in the current trace, or evaluate it if none is running; return all results."""
        builder = current_builder()
        if builder is not None:
            return builder.record(self, operands, params)
        for x in operands:
            if isinstance(x, Tracer):
                raise leak_error(x)
        result = self.numpy(*operands, **params)
        return list(result) if self.multiple_results else [result]

    def output_types(self, types: Sequence[ArrayType], params: Params) -> tuple[ArrayType, ...]:
        """Types of all results, from the types of the operands."""
        result = self.type_rule(*types, **params)
        return tuple(result) if self.multiple_results else (result,)

    # Required rules

    def type_rule(self, *types: ArrayType, **params: Any) -> Any:
        """Type of the result (a list if there are several).  Raises TypeError or ValueError on a mismatch."""
        self._missing("type_rule")

    def numpy(self, *arrays: Any, **params: Any) -> Any:
        """The meaning of the primitive, on NumPy arrays."""
        self._missing("numpy")

    def xla(self, *arrays: Any, **params: Any) -> Any:
        """The same in public calls of `jax.lax` and `jax.numpy`."""
        self._missing("xla")

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        """(results, tangents of the results), given operands and their tangents, not all of them None."""
        self._missing("jvp")

    def transpose(self, cotangents: Any, operands: Sequence[Tracer | ArrayType], **params: Any) -> Sequence[Tangent]:
        """Cotangents of the operands.

        Args:
            cotangents: the cotangent of the result (a list, with None for zeros, if there are several).
            operands: known operands as tracers, linear ones as their types.
            params: parameters of the equation.
        """
        self._missing("transpose")

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> tuple[Any, Any]:
        """(results, whether each is batched), where batched operands have a leading axis of `size`."""
        self._missing("batch")

    # Rules with a default

    def xla_channels_last(self, *arrays: Any, **params: Any) -> Any:
        """The same as `xla` for arrays in the order of `base.channels`; None where that has no such form.

        Of the operands and the result, those with as many axes as the one that has most are in that order, and the
        others in that of the program.
        """
        return None

    def split(self, unknown: Sequence[bool], types: Sequence[ArrayType], **params: Any) -> Any:
        """A `transforms.split.SplitEqn` for an equation with known and unknown results; None if all are unknown."""
        return None

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Any:
        """An operand or a simpler equation that equals the result (a list if there are several), or None."""
        return None

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        """The equation without the parts that only unused results need; it assigns all results flagged in `used`."""
        return eqn

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost | None:
        """The cost of an equation.

        None means the cost of the programs that it holds; if it holds none, an unknown cost, which is never assumed to
        be small.
        """
        return None

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        """The operands, of `count`, in which the results are jointly linear; empty if that is not known."""
        return ()

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        """Which elements of the result depend on which of each operand, and how, if that is the same for all values.

        Args:
            types: types of the operands.
            results: types of the results.
            known: for each operand, its array if it is known (or a number that it is filled with), or None.
            params: parameters of the equation.

        Returns:
            For each operand, a sequence of `base.index_map.Piece`, empty for no dependence (for several results, such
            a list for each); None if nothing is known, so that all may depend on all.
        """
        return None

    def passes_on(self, operands: Sequence[Tracer], params: Params) -> Sequence[Tracer] | None:
        """The operands that equal its results, if it only states a derivative or shows values; None if it computes."""
        return None

    def before_differentiating(self, program: Program, active: tuple[bool, ...]) -> Program:
        """Rewrite a program with equations of this primitive before it is differentiated along its `active` inputs."""
        return program

    def before_running(self, program: Program) -> Program:
        """Rewrite a program with equations of this primitive before it runs; no transformation follows."""
        return program

    def after_running(self, params: Params) -> Callable[[], None] | None:
        """A function to call when a program with such an equation has finished or failed; None for nothing."""
        return None

    def _missing(self, rule: str) -> NoReturn:
        meaning = {
            "jvp": "it cannot be differentiated",
            "transpose": "it is not linear, or reverse mode is not defined for it",
            "batch": "it cannot be mapped by vmap",
            "xla": "it cannot be compiled",
        }.get(rule, "it is incomplete")
        raise MissingRule(f"the primitive {self.name!r} has no {rule} rule: {meaning}{at_line(user_line())}")


class SingleResult(Primitive):
    """Base class of primitives with one result."""

    def __call__(self, *operands: Any, **params: Any) -> Tracer:
        """Record the equation, or evaluate it if no trace is running; return the result."""
        result: Tracer = self.bind_all(operands, params)[0]
        return result


class MultipleResults(Primitive):
    """Base class of primitives with any number of results: its rules take and return lists of them."""

    multiple_results = True

    def __call__(self, *operands: Any, **params: Any) -> list[Tracer]:
        """Record the equation, or evaluate it if no trace is running; return the results."""
        return self.bind_all(operands, params)


class Moving(SingleResult):
    """Base class of primitives that move, copy or make elements, and compute nothing."""

    fuses = True

    def output_types(self, types: Sequence[ArrayType], params: Params) -> tuple[ArrayType, ...]:
        return remembered_types(self, tuple(types), tuple(params.items()))

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost | None:
        return Cost.moves(results[0].size)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return moved_pieces(self, types, known, params)


@lru_cache(maxsize=10_000)
def remembered_types(primitive: Primitive, types: Sequence[ArrayType], params: Sequence[tuple[str, Any]]) -> tuple[Any]:
    """What a type rule says, which is asked once for equal types and items of parameters; all can be hashed."""
    return (primitive.type_rule(*types, **dict(params)),)


def moved_pieces(primitive: Primitive, types: Sequence[ArrayType], known: Sequence[Any], params: Params) -> Any:
    """The pieces of an equation that moves elements, found by moving labels; None if it needs a value not known."""
    if any(value is None and not is_inexact(t.dtype) for value, t in zip(known, types, strict=True)):
        return None
    labels, start = [], 1
    for value, t in zip(known, types, strict=True):
        if is_inexact(t.dtype):
            labels.append(np.arange(start, start + t.size).reshape(t.shape))
            start += t.size
        else:
            labels.append(np.broadcast_to(value, t.shape)[()])
    result = np.asarray(primitive.numpy(*labels, **params))
    source = result.reshape(-1)
    pieces: list[list[Piece]] = []
    start = 1
    for t in types:
        pieces.append([])
        if is_inexact(t.dtype):
            rows = np.flatnonzero((source >= start) & (source < start + t.size))
            if rows.size:
                cols = IndexMap.of(source[rows] - start, t.size)
                shape = result.shape if rows.size == source.size else t.shape if cols.is_identity else rows.shape
                pieces[-1].append(Piece(IndexMap.of(rows, source.size).reshaped(shape), cols.reshaped(shape), 1.0))
            start += t.size
    return pieces


class ProgramHolder(MultipleResults):
    """Base class of primitives that hold a `program` and have its operands and results.

    So a transformation may give them another program, with more operands and results.
    """

    def type_rule(self, *types: ArrayType, **params: Any) -> list[ArrayType]:
        program: Program = params["program"]
        if types != program.in_types:
            raise TypeError(f"{program.name} takes {program.in_types}, not {types}")
        return list(program.out_types)


class ProgramCall(ProgramHolder):
    """Base class of primitives that only call the program that they hold."""


class RunOnly(Primitive):
    """Base class of primitives whose equations only `before_running` makes: they run, and are never transformed."""
