"""The unknowns of a system of equations: a container of arrays as one vector, which is what solvers work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from ..base import tree
from ..base.source import at_line, user_line
from ..control.subprograms import rewired
from ..core.program import Program
from ..core.trace import NoWitness, Tracer
from ..core.types import ArrayType, is_inexact
from ..numpy.promotion import asarray, cast, is_weak
from ..ops.parts import concatenate, slice_
from ..ops.shapes import reshape
from .bodies import Leaves
from .call import name_of, trace_flat, type_name

Function = Callable[..., Any]


class SolverInfo(NamedTuple):
    """The outcome of a solver.

    Attributes:
        converged: whether the solution meets the tolerances.
        iterations: number of steps taken.
        residual: norm of the residual.
    """

    converged: Any
    iterations: Any
    residual: Any


class Vector(NamedTuple):
    """A container of arrays that stands for one vector: its leaves, one after the other.

    Attributes:
        leaves: the arrays.
        types: their types, floating-point.
        structure: structure of the container.
        container: the container itself, and `name`, what it is called in messages.
    """

    leaves: list[Any]
    types: list[ArrayType]
    structure: tree.Structure
    container: Any
    name: str

    @classmethod
    def of(cls, container: Any, name: str, what: str) -> Vector:
        """Take a container apart.

        Raises:
            TypeError: a leaf is not an array of numbers.
            ValueError: there is no number in it.
        """
        leaves, types, structure, *_ = Leaves.of(container, name, what)
        # A number written without a point is still a point on the real line.
        types = [t if is_inexact(t.dtype) else t.with_dtype(np.float64) for t in types]
        if not sum(t.size for t in types):
            raise ValueError(f"{what} has nothing to solve for: {name} holds no numbers{at_line(user_line())}")
        return cls(leaves, types, structure, container, name)

    @property
    def type(self) -> ArrayType:
        """Type of the vector."""
        return ArrayType((sum(t.size for t in self.types),), np.result_type(*(t.dtype for t in self.types)))

    def joined(self, leaves: Sequence[Tracer]) -> Tracer:
        """The vector of these leaves."""
        size, dtype = self.type.shape[0], self.type.dtype
        parts = [reshape(cast(asarray(x), dtype), shape=(t.size,)) for x, t in zip(leaves, self.types, strict=True)]
        parts = [p for p in parts if p.size] if size else parts
        return parts[0] if len(parts) == 1 else concatenate(*parts, axis=0)

    def parted(self, vector: Tracer) -> list[Tracer]:
        """The leaves that a vector stands for."""
        leaves, start = [], 0
        for t in self.types:
            part = vector
            if len(self.types) > 1:
                part = slice_(vector, start=(start,), limit=(start + t.size,), strides=(1,))
            leaves.append(cast(reshape(part, shape=t.shape), t.dtype))
            start += t.size
        return leaves

    def rebuilt(self, vector: Tracer) -> Any:
        """The container that a vector stands for."""
        return tree.unflatten(self.structure, self.parted(vector))

    def result_of(self, f: Function, out: Any, what: str) -> Tracer:
        """What `f` returned for a vector, as a vector.

        Raises:
            TypeError: it does not have the structure, shapes and dtypes of the container.
        """
        leaves, structure = tree.flatten(out)
        if structure != self.structure:
            raise TypeError(
                f"{what} needs a function whose result has the structure of {self.name}: {self.name} is "
                f"{self.structure}, but {name_of(f)} returned {structure}{at_line(user_line())}"
            )
        wrong = []
        for index, (x, t) in enumerate(zip(leaves, self.types, strict=True)):
            path = tree.paths(self.container)[index]
            try:
                y = leaves[index] = asarray(x)
            except TypeError:
                wrong.append(f"\n  {self.name}{path} is {t}, result{path} is {type_name(x)}")
                continue
            if y.shape != t.shape or not (is_weak(x) or is_weak(y) or np.can_cast(y.dtype, t.dtype)):
                wrong.append(f"\n  {self.name}{path} is {t}, result{path} is {y.type}")
        if wrong:
            raise TypeError(
                f"{what} needs a function whose result has the shapes and dtypes of {self.name}, but {name_of(f)} "
                f"returned others; if only a dtype is wider, convert {self.name} to it with astype:{''.join(wrong)}"
                + at_line(user_line())
            )
        return self.joined(leaves)

    def trace(self, f: Function, what: str, instead: str = "") -> Captured:
        """The program of `f` from a vector to a vector.

        Args:
            f: a function of the container, with a result like it.
            what: the name of the function that `f` is given to.
            instead: what errors say that takes functions with branches.

        Raises:
            TypeError: the result of `f` is not like the container.
        """

        def rebuild(tracers: list[Tracer]) -> list[Tracer]:
            return [self.result_of(f, f(self.rebuilt(tracers[0])), what)]

        reason = NoWitness(
            f"a function given to {what} is evaluated at many points, so a branch has no single value{instead}"
        )
        traced, _ = trace_flat(f, [self.type], rebuild, reason)
        return Captured.of(traced.program, traced.captured)


class Captured(NamedTuple):
    """A program whose last input is explicit, and the values of those before it, which a function closed over."""

    program: Program
    consts: list[Any]

    @classmethod
    def of(cls, program: Program, captured: list[Any], explicit: int = 1) -> Captured:
        """Move the captured inputs of a program, which are last, to the front."""
        count = len(program.inputs)
        return cls(rewired(program, [*range(explicit, count), *range(explicit)]), captured)


def check_limits(what: str, **limits: Any) -> None:
    """Raise unless the limits of a solver that are given make sense: numbers as tolerances, integers for all others.

    Raises:
        TypeError: a limit is of another type.
        ValueError: it is out of range.
    """
    for name, limit in limits.items():
        if limit is None:
            continue
        expected, least = (Real, 0) if name in ("tol", "atol") else (Integral, int(name != "acceleration"))
        if not isinstance(limit, expected):
            kind = "a number" if expected is Real else "an integer"
            raise TypeError(f"{name} of {what} must be {kind}, not {type_name(limit)} {limit!r}{at_line(user_line())}")
        if not float(limit) >= least:
            raise ValueError(f"{name} of {what} must be at least {least}, not {limit!r}{at_line(user_line())}")
