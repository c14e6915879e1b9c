"""Tracing a function and its derivative rules, and checking their results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base import tree
from ..base.type_questions import is_plain
from ..control.subprograms import rewired, specialized
from ..core.program import Const, Program, literal
from ..core.trace import Builder, NoWitness, Tracer
from ..core.types import ArrayType, is_inexact, type_of
from ..core.witness import example_of
from ..numpy.promotion import asarray
from ..run.places import JAX, JAX_TRACE, TRACE, place_of_argument
from ..transforms.split import split
from .call import name_of, trace_flat
from .rule_arguments import Call
from .rule_checks import arrays_of, called, described, fitted, here, matched, pair_of, shown, shown_value

Function = Callable[..., Any]

# Captured arrays up to this size are told apart by what they hold.
_SMALL = 1 << 16


class Part(NamedTuple):
    """A function or rule that has been traced: its program takes what is given, then what it captured."""

    program: Program
    captured: list[Any]
    builder: Builder

    @property
    def given(self) -> int:
        """How many of the inputs are no captures."""
        return len(self.program.inputs) - len(self.captured)


class Result(NamedTuple):
    """What the function returned: the structure, and for each leaf its type and whether it stands for a number."""

    structure: tree.Structure
    types: list[ArrayType]
    weak: list[bool]

    @property
    def differentiable(self) -> list[bool]:
        """Which of the leaves have a derivative."""
        return [is_inexact(t.dtype) for t in self.types]

    def rebuilt(self, tracers: Sequence[Tracer]) -> Any:
        """The result, with these leaves."""
        for x, weak in zip(tracers, self.weak, strict=True):
            x.weak = weak
        return tree.unflatten(self.structure, tracers)

    def cotangent(self, tracers: Sequence[Tracer]) -> Any:
        """A cotangent like the result: None for what has no derivative."""
        remaining = iter(tracers)
        return tree.unflatten(self.structure, [next(remaining) if d else None for d in self.differentiable])

    def checked(self, out: Any, what: str) -> list[Tracer]:
        """The leaves of what a rule returned as the result."""
        leaves, structure = arrays_of(out, what)
        if structure != self.structure:
            raise TypeError(
                f"{what} returned a value of another structure than the function: {shown(structure)}, not "
                f"{shown(self.structure)}{here()}"
            )

        def where(index: int) -> str:
            return f"as result{tree.paths(out)[index]}, where the function returns"

        return [
            fitted(x, t, w, what, where, i)
            for i, (x, t, w) in enumerate(zip(leaves, self.types, self.weak, strict=True))
        ]

    def checked_tangent(self, tangent: Any, what: str) -> list[Tracer]:
        """The leaves of what a rule returned as the tangent, for the results that have one."""
        entries = matched(tangent, self.structure, f"{what} returned a tangent", "the result")

        def where(index: int) -> str:
            path = tree.paths(tree.unflatten(self.structure, range(len(self.types))))[index]
            return f"as the tangent of result{path}, which is"

        return [
            fitted(x, t, w, what, where, i)
            for i, (x, t, w) in enumerate(zip(entries, self.types, self.weak, strict=True))
            if is_inexact(t.dtype)
        ]


class Residuals(NamedTuple):
    """What a rule keeps for another one: traced values, among other objects that stay what they are."""

    leaves: list[Any]
    structure: tree.Structure
    places: list[int]
    tracers: list[Tracer]

    @classmethod
    def of(cls, residuals: Any) -> Residuals:
        """Take residuals apart."""
        leaves, structure = tree.flatten(residuals)
        places = [i for i, x in enumerate(leaves) if place_of_argument(x) in (JAX, JAX_TRACE, TRACE)]
        return cls(leaves, structure, places, [asarray(leaves[i]) for i in places])

    def rebuilt(self, tracers: Sequence[Tracer]) -> Any:
        """The residuals, with other traced values."""
        leaves = list(self.leaves)
        for place, x in zip(self.places, tracers, strict=True):
            leaves[place] = x
        return tree.unflatten(self.structure, leaves)


class Captured:
    """What several parts captured together: they are all inputs of each of them.

    Attributes:
        values: the captured values.
        is_complete: whether all parts that were closed had captured nothing else.  What else they had is a constant.
    """

    def __init__(self, *parts: Part | None) -> None:
        self.values: list[Any] = []
        self.is_complete = True
        self._places: dict[Any, int] = {}
        for part in parts:
            if part is not None:
                # The rules traced after it may have overwritten what it captured.
                part.builder.captures.check()
            for x in part.captured if part is not None else ():
                if not _is_small_zero(x) and _identity(x) not in self._places:
                    self._places[_identity(x)] = len(self.values)
                    self.values.append(x)

    def closed(self, part: Part, position: int) -> Program:
        """The program of a part that takes all that was captured, as inputs from `position` on."""
        if not self.values and not part.captured:
            return part.program
        given = part.given
        known: list[int | Const | None] = [None] * given
        inputs: dict[int, int] = {}
        for index, x in enumerate(part.captured, given):
            place = self._place(x)
            if _is_small_zero(x):
                # That a rule is linear may depend on what it adds being zero.
                known.append(literal(0, type_of(x)))
            elif place is None:
                known.append(Const(x, type_of(x)))
                self.is_complete = False
            else:
                known.append(inputs.get(place))
                inputs.setdefault(place, index)
        order = {place: given + i for i, place in enumerate(inputs)}
        captured = [order.get(place, type_of(x)) for place, x in enumerate(self.values)]
        return rewired(specialized(part.program, known), [*range(position), *captured, *range(position, given)])

    def _place(self, x: Any) -> int | None:
        place = self._places.get(_identity(x))
        if place is None and is_plain(x, np.ndarray):
            # A rule that is traced twice makes its arrays twice.
            place = next((i for i, y in enumerate(self.values) if _holds_the_same(x, y)), None)
        return place


def _holds_the_same(x: np.ndarray[Any, Any], y: Any) -> bool:
    return is_plain(y, np.ndarray) and type_of(x) is type_of(y) and x.tobytes() == y.tobytes()


def _is_small_zero(x: Any) -> bool:
    return is_plain(x, np.ndarray | np.generic) and x.nbytes <= _SMALL and not np.any(x)


def _identity(x: Any) -> Any:
    """What tells captured values apart."""
    if type(x) is Tracer:
        return x.builder, x.atom
    if is_plain(x, np.generic) or (is_plain(x, np.ndarray) and x.nbytes <= _SMALL):
        return type_of(x), x.tobytes()
    return id(x)


# Tracing


def trace_function(f: Function, call: Call) -> tuple[Part, Result]:
    """Trace the function itself on the arguments of a call."""
    found: list[Result] = []

    def rebuild(tracers: list[Tracer]) -> list[Tracer]:
        out = called(name_of(f), f, call.all_arguments(tracers), call.keywords)
        leaves, structure = arrays_of(out, name_of(f))
        found.append(Result(structure, [x.type for x in leaves], [x.weak for x in leaves]))
        return leaves

    traced, _ = trace_flat(f, call.types, rebuild, call.values, call.weak)
    return Part(traced.program, traced.captured, traced.builder), found[0]


def trace_fwd(f: Function, fwd: Function, call: Call, result: Result) -> tuple[Part, Residuals]:
    """Trace the first half of a rule for reverse mode: arguments -> result, then residuals."""
    what = described("fwd rule", f, fwd)
    found: list[Residuals] = []

    def rebuild(tracers: list[Tracer]) -> list[Tracer]:
        out, kept = pair_of(called(what, fwd, call.all_arguments(tracers), call.keywords), what, "(out, residuals)")
        found.append(Residuals.of(kept))
        return [*result.checked(out, what), *found[0].tracers]

    traced, _ = trace_flat(fwd, call.types, rebuild, call.values, call.weak)
    return Part(traced.program, traced.captured, traced.builder), found[0]


def trace_bwd(f: Function, bwd: Function, call: Call, result: Result, residuals: Residuals) -> Part:
    """Trace the second half of a rule for reverse mode: residuals, then cotangents of the result -> cotangents."""
    what = described("bwd rule", f, bwd)
    count = len(residuals.tracers)

    def where(index: int) -> str:
        return f"as the cotangent of {call.path(index)}, which is"

    def rebuild(tracers: list[Tracer]) -> list[Tracer]:
        given = (*call.held.values(), residuals.rebuilt(tracers[:count]), result.cotangent(tracers[count:]))
        cotangents = called(what, bwd, given, {})
        if not isinstance(cotangents, tuple | list) or len(cotangents) != len(call.names):
            is_tuple = isinstance(cotangents, tuple | list)
            returned = f"{len(cotangents)} of them" if is_tuple else shown_value(cotangents)
            raise TypeError(
                f"{what} must return a tuple of {len(call.names)} cotangent{'s' * (len(call.names) != 1)}, for "
                f"{', '.join(call.names.values())}, but it returned {returned}; None stands for zero{here()}"
            )
        entries: list[Any] = []
        for ct, structure, name in zip(cotangents, call.structures, call.names.values(), strict=True):
            entries += matched(ct, structure, f"{what} returned a cotangent", f"the argument {name}")
        return [
            fitted(entries[i], t, w, what, where, i)
            for i, t, w in zip(call.places, call.types, call.weak, strict=True)
            if is_inexact(t.dtype)
        ]

    is_active = result.differentiable
    types = [*(x.type for x in residuals.tracers), *_chosen(result.types, is_active)]
    weak = [*(x.weak for x in residuals.tracers), *_chosen(result.weak, is_active)]
    reason = f"the backward rule of {name_of(f)} is traced before its residuals and cotangents are known"
    examples = [functools.partial(example_of, x) for x in residuals.tracers]
    examples += [functools.partial(np.ones, t.shape, t.dtype) for t in types[count:]]
    traced, _ = trace_flat(bwd, types, rebuild, [NoWitness(reason, x) for x in examples], weak)
    return Part(traced.program, traced.captured, traced.builder)


def trace_jvp(f: Function, rule: Function, call: Call, result: Result) -> Part:
    """Trace a rule for forward mode: arguments, then their tangents -> result, then its tangents."""
    what = described("jvp rule", f, rule)
    count = len(call.values)

    def rebuild(tracers: list[Tracer]) -> list[Tracer]:
        given = (*call.held.values(), call.arguments(tracers[:count]), call.tangents(tracers[count:]))
        out, tangent = pair_of(called(what, rule, given, call.keywords), what, "(out, tangent)")
        return [*result.checked(out, what), *result.checked_tangent(tangent, what)]

    is_active = call.differentiable
    reason = NoWitness(f"the jvp rule of {name_of(f)} is traced before its tangents are known")
    types = [*call.types, *_chosen(call.types, is_active)]
    weak = [*call.weak, *_chosen(call.weak, is_active)]
    witnesses = [*call.values, *(reason for a in is_active if a)]
    traced, _ = trace_flat(rule, types, rebuild, witnesses, weak)
    is_tangent = tuple(count <= i < len(types) for i in range(len(traced.program.inputs)))
    if any(split(traced.program, is_tangent).out_unknown[: len(result.types)]):
        raise TypeError(f"{what} returned a result that depends on the tangents{here()}")
    return Part(traced.program, traced.captured, traced.builder)


def _chosen(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [x for x, f in zip(items, flags, strict=True) if f]
