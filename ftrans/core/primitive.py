"""Primitive: an operation that programs are made of, with all of its rules in one class.

A primitive states its type, its meaning on NumPy arrays and its lowering to XLA; its derivative (`jvp`), its
transpose if it is linear, and how it maps over a leading batch axis.  Every rule but the evaluators is written
with tracers: applying primitives in a rule records equations.

Conventions:
    * Operands of one equation have equal dtypes and shapes, where that makes sense for the primitive.
    * A tangent or cotangent that is zero is absent: None.
    * The batch axis is always axis 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..base.source import at_line, user_line
from .cost import Cost
from .on_numpy import OnNumpy
from .program import Eqn, Params, Program
from .trace import Tracer, current_builder, leak_error
from .types import ArrayType

Tangent = Tracer | None


class MissingRule(NotImplementedError):
    """A primitive lacks the rule that a transformation needs, or NumPy's function has no ftrans form."""


class Primitive(OnNumpy):
    """What all primitives have in common: each one is a `SingleResult` or a `MultipleResults`.

    Attributes:
        name: what it is called in print.
        multiple_results: whether its rules take and return a list in place of one result.
    """

    name: str = ""
    multiple_results = False

    def __repr__(self) -> str:
        return self.name

    # Applying

    def bind_all(self, operands: Sequence[Any], params: Params) -> list[Any]:
        """Record the equation in the current trace, or evaluate it where none is running; return all results."""
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

    # Rules: what it is

    def type_rule(self, *types: ArrayType, **params: Any) -> Any:
        """Type of the result (a list where there are several).  Raises TypeError or ValueError on a mismatch."""
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
            cotangents: the cotangent of the result (a list with None for zeros where there are several).
            operands: known operands as tracers, linear ones as their types.
            params: parameters of the equation.
        """
        self._missing("transpose")

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> tuple[Any, Any]:
        """(results, whether each is batched), where batched operands have a leading axis of `size`."""
        self._missing("batch")

    # Rules with a default

    def split(self, unknown: Sequence[bool], types: Sequence[ArrayType], **params: Any) -> Any:
        """A `transforms.split.SplitEqn`, for an equation part of whose results are known, or None."""
        return None

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Any:
        """An operand or a simpler equation that equals the result (a list where there are several), or None."""
        return None

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        """The equation without what only the results not flagged in `used` need; it assigns all that are flagged."""
        return eqn

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost | None:
        """What an equation costs.

        None stands for what the programs cost that it holds; without any, for a cost that is not known and never taken
        to be small.
        """
        return None

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        """Which of its `count` operands the results are linear in, all of these together; none if that is not known."""
        return ()

    def passes_on(self, operands: Sequence[Tracer], params: Params) -> Sequence[Tracer] | None:
        """The operands that its results are, where it only states a derivative or shows values; None if it computes."""
        return None

    def before_differentiating(self, program: Program, active: tuple[bool, ...]) -> Program:
        """The form in which a program with equations of this primitive is differentiated along its `active` inputs."""
        return program

    def before_running(self, program: Program) -> Program:
        """The form in which a program with equations of this primitive runs, which nothing will transform."""
        return program

    def after_running(self, params: Params) -> Callable[[], None] | None:
        """What is called when a program with such an equation has run, or failed; None for nothing."""
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
        """Record the equation, or evaluate it where no trace is running; return the result."""
        result: Tracer = self.bind_all(operands, params)[0]
        return result


class MultipleResults(Primitive):
    """Base class of primitives with any number of results: its rules take and return lists of them."""

    multiple_results = True

    def __call__(self, *operands: Any, **params: Any) -> list[Tracer]:
        """Record the equation, or evaluate it where no trace is running; return the results."""
        return self.bind_all(operands, params)


class Moving(SingleResult):
    """Base class of primitives that move, copy or make elements, and compute nothing."""

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost | None:
        return Cost.moves(results[0].size)


class ProgramHolder(MultipleResults):
    """Base class of primitives that run the `program` which they hold: its operands are theirs, and its results.

    So they may be given another program, with more operands and results.
    """

    def type_rule(self, *types: ArrayType, **params: Any) -> list[ArrayType]:
        program: Program = params["program"]
        if types != program.in_types:
            raise TypeError(f"{program.name} takes {program.in_types}, not {types}")
        return list(program.out_types)


class ProgramCall(ProgramHolder):
    """Base class of primitives that are no more than the program that they hold."""


class RunOnly(Primitive):
    """Base class of primitives of which only `before_running` makes equations: they run, and are never transformed."""
