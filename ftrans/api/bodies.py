"""Bodies of branches and loops: flatten their operands, trace them to programs, and check their results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base import tree
from ..base.foreign_arrays import is_foreign
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.program import Program
from ..core.trace import Builder, NoWitness, Tracer
from ..core.types import ArrayType, type_of
from ..core.witness import example_of
from ..numpy.promotion import asarray, cast, has_tracer, is_weak, result_dtype
from ..xla import is_traced
from .call import name_of, trace_flat, type_name

Function = Callable[..., Any]

# Arguments


class Leaves(NamedTuple):
    """A flattened container: its leaves, their types, its structure; the container and its name are for messages."""

    leaves: list[Any]
    types: list[ArrayType]
    structure: tree.Structure
    container: Any
    name: str

    @classmethod
    def of(cls, container: Any, name: str, what: str) -> Leaves:
        leaves, structure = tree.flatten(container)
        for index, x in enumerate(leaves):
            if is_plain(x, np.ndarray) and x.dtype == object and has_tracer(x):
                leaves[index] = asarray(x)
            elif not is_array(x):
                advice = "" if is_foreign(x) else "; close over it instead"
                raise TypeError(
                    f"{what} takes arrays, numbers and containers of them, but {name}{tree.paths(container)[index]} is "
                    f"{type_name(x)}{advice}{at_line(user_line())}"
                )
        return cls(leaves, [type_of(x) for x in leaves], structure, container, name)

    def path(self, index: int) -> str:
        """The path of a leaf, for messages."""
        return f"{self.name}{tree.paths(self.container)[index]}"


def is_array(x: Any) -> bool:
    try:
        type_of(x)
    except TypeError:
        return False
    return True


def described(x: Any) -> str:
    return str(type_of(x)) if is_array(x) else f"a {type(x).__name__}"


def scalar_of(x: Any, name: str, what: str) -> Any:
    """`x`, if it is a number or an array of shape ()."""
    if is_plain(x, np.ndarray) and x.dtype == object and has_tracer(x):
        x = asarray(x)
    if not is_array(x):
        raise TypeError(f"{name} of {what} must be a number, not {type_name(x)}{at_line(user_line())}")
    if type_of(x).shape != ():
        raise TypeError(
            f"{name} of {what} must have the shape (), not {type_of(x)}; numpy.where chooses between the elements of "
            f"arrays, and vmap applies a function of one element to all of them{at_line(user_line())}"
        )
    return x


def integer_of(x: Any, name: str, what: str) -> Any:
    """`x`, if it is an integer or an integer array of shape ()."""
    x = scalar_of(x, name, what)
    if type_of(x).dtype.kind not in "iu":
        raise TypeError(f"{name} of {what} must be an integer, not {type_of(x)}{at_line(user_line())}")
    return x


def known_value(x: Any) -> Any:
    """The Python number for a scalar, or None if it is traced."""
    return None if is_traced(x) else np.asarray(x).item()


# Results


def tracers_of(out: Any, what: str, f: Function) -> tuple[list[Tracer], tree.Structure]:
    """The leaves of the result of a traced function, as tracers."""
    leaves, structure = tree.flatten(out)
    for index, x in enumerate(leaves):
        if type(x) is not Tracer:
            try:
                leaves[index] = asarray(x)
            except TypeError:
                raise TypeError(
                    f"{name_of(f)}, a function of {what}, returned {type_name(x)} at result{tree.paths(out)[index]}, "
                    f"which is not an array{at_line(user_line())}"
                ) from None
    return leaves, structure


# Bodies of loops


class Body(NamedTuple):
    """The traced body of a loop.

    Attributes:
        program: takes the carry, elements of sequences, then captured values; returns the carry, then elements.
        captured: the captured values.
        types: types of the carry.
        weak: which members of the carry are still Python numbers.
        more: structure of the results after the carry.
        builder: the builder that recorded the program.
    """

    program: Program
    captured: list[Any]
    types: list[ArrayType]
    weak: list[bool]
    more: tree.Structure
    builder: Builder


Step = Callable[[Any, list[Tracer]], tuple[Any, Any]]


def trace_body(
    what: str,
    f: Function,
    step: Step,
    first: Leaves,
    x_types: Sequence[ArrayType] = (),
    x_weak: Sequence[bool] = (),
) -> Body:
    """Trace `step(carry, xs)`; repeat until Python numbers in the first carry have the types that it returns."""
    types, weak = first.types, [is_weak(x) for x in first.leaves]
    for _ in range(2 * sum(weak) + 2):
        body, returned = _trace_step(what, f, step, first, [*types, *x_types], [*weak, *x_weak])
        body = body._replace(types=types, weak=weak)
        types = [_joined(x, t, y) for x, t, y in zip(first.leaves, types, returned, strict=True)]
        weak = [w and y.weak for w, y in zip(weak, returned, strict=True)]
        if types == body.types and weak == body.weak:
            break
    wrong = [
        f"\n  {first.path(i)}: {t} came in{f' (at first {x!r})' if is_weak(x) else ''}, {y.type} was returned"
        for i, (x, t, y) in enumerate(zip(first.leaves, types, returned, strict=True))
        if not _fits(x, t, y)
    ]
    if wrong:
        raise TypeError(
            f"the carry of {what} must keep its shapes and dtypes from step to step, but {name_of(f)} changes them:"
            f"{''.join(wrong)}{at_line(user_line())}"
        )
    return body


def _trace_step(
    what: str, f: Function, step: Step, first: Leaves, types: Sequence[ArrayType], weak: Sequence[bool]
) -> tuple[Body, list[Tracer]]:
    """Trace a body for given types of carry and elements; also return the carry as the function returned it."""
    count = len(first.leaves)
    found: list[Any] = []

    def rebuild(tracers: list[Tracer]) -> list[Tracer]:
        carry, rest = step(tree.unflatten(first.structure, tracers[:count]), tracers[count:])
        returned, structure = tracers_of(carry, what, f)
        if structure != first.structure:
            raise TypeError(
                f"the carry of {what} must keep its structure: {first.structure} came in, and {name_of(f)} "
                f"returned {structure}{at_line(user_line())}"
            )
        more, more_structure = tracers_of(rest, what, f)
        found.extend((returned, more_structure))
        fitted = [
            cast(y, t.dtype) if _fits(x, t, y) else y
            for x, t, y in zip(first.leaves, types[:count], returned, strict=True)
        ]
        return [*fitted, *more]

    reason = f"the body of {what} runs once for every step, so a branch inside it has no single value"
    starts = [NoWitness(reason, functools.partial(_start, x, t)) for x, t in zip(first.leaves, types, strict=False)]
    traced, _ = trace_flat(f, types, rebuild, [*starts, *[NoWitness(reason)] * (len(types) - count)], weak)
    returned, more = found
    return Body(traced.program, traced.captured, [], [], more, traced.builder), returned


def _start(x: Any, t: ArrayType) -> Any:
    """The initial value of a carry, as an array of its type in the loop; None if it is not known."""
    value = example_of(x)
    return None if value is None else np.broadcast_to(np.asarray(value, t.dtype), t.shape)[()]


def _joined(x: Any, t: ArrayType, y: Tracer) -> ArrayType:
    """The type of a carry with the initial number `x` and the current type `t`, for which the body returns `y`."""
    return ArrayType(y.shape if t.shape == () else t.shape, result_dtype(x, y)) if is_weak(x) else t


def _fits(x: Any, t: ArrayType, y: Tracer) -> bool:
    """Whether the body may return `y` for a carry of type `t` and initial value `x`; numbers are weakly typed."""
    if is_weak(x):
        return y.shape == t.shape and result_dtype(x, y) == t.dtype
    return y.type is t or (y.weak and y.shape == t.shape and result_dtype(t, y) == t.dtype)
