"""What is examined, and how."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..control.subprograms import chosen
from ..core.program import Program
from ..core.types import ArrayType
from .derivatives import Arrays, Flags, Mode, differentiable
from .precision import in_double_precision, is_double, widened, without_calls


class Settings(NamedTuple):
    """How derivatives are examined: see `check_grads`."""

    order: int = 2
    modes: tuple[Mode, ...] = ("forward", "reverse")
    eps: float | None = None
    atol: float | None = None
    rtol: float | None = None
    nondet_tol: float = 0.0
    seed: int = 0


class Subject(NamedTuple):
    """A program at a point.

    Attributes:
        program: the program, in double precision.
        args: the point, in double precision.
        active: which arguments are differentiated.
        own: the program in its own precision, where that is lower; None otherwise.
        own_args: the point in that precision.
        out_names: names of the outputs, for messages.
    """

    program: Program
    args: tuple[Any, ...]
    active: Flags
    own: Program | None
    own_args: tuple[Any, ...]
    out_names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        program: Program,
        args: tuple[Any, ...],
        active: Flags,
        out_names: tuple[str, ...],
        wide: tuple[Program, Arrays] | None = None,
    ) -> Subject:
        """A program in whatever precision; `wide` is the same in double precision, with its arguments, if known."""
        own = without_calls(program)
        if is_double(own):
            return cls(own, args, active, None, args, out_names)
        in_double, wide_args = wide or (program, args)
        wide_args = tuple(map(widened, wide_args))
        return cls(in_double_precision(in_double), wide_args, active, own, args, out_names)

    @property
    def out_differentiable(self) -> Flags:
        """Which outputs have derivatives."""
        return differentiable(self.program.out_types)

    @property
    def out_types(self) -> list[ArrayType]:
        """Types of the outputs that have derivatives."""
        return chosen(self.program.out_types, self.out_differentiable)

    @property
    def names(self) -> list[str]:
        """Names of the outputs that have derivatives."""
        return chosen(self.out_names, self.out_differentiable)
