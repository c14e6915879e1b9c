"""explain_zero: the lines that cut every path from an argument to the result, and so make its gradient zero."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base import tree
from ..base.displayed import Displayed
from ..base.source import Line, at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_questions import is_plain
from ..core.interpret import interpret, repeat
from ..core.program import Eqn, Program, programs_in
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType, is_inexact, type_of
from ..ops.elementwise import convert, stop_gradient
from ..transforms.differentiate import pullback
from .call import Traced, as_argnums, check_function, name_of, named, run, select_arguments, trace_flat
from .targets import flatten_targets, is_target

Function = Callable[..., Any]


@dataclass(frozen=True)
class Cut:
    """One place where the derivative ends.

    Attributes:
        why: what happens there, as text.
        line: the user's line, or None where it is unknown.
    """

    why: str
    line: Line | None

    def __str__(self) -> str:
        return f"{self.why}{at_line(self.line)}"


@dataclass(frozen=True)
class ZeroGradient:
    """An array among the arguments whose gradient is zero.

    Attributes:
        path: where it is: the name of the argument, then keys and indices.
        type: its shape and dtype.
        is_structural: whether the gradient is zero for all values, not just for the given ones.
        cuts: where the derivative ends: on all paths if the zero is structural, on some paths otherwise; empty if the
            result does not depend on the array.
    """

    path: str
    type: ArrayType
    is_structural: bool
    cuts: tuple[Cut, ...]

    def __str__(self) -> str:
        head = f"{self.path}: {self.type}"
        if self.is_structural:
            what = "no derivative reaches the result" if self.cuts else "the result does not depend on it"
        else:
            what = "zero for these values" + ("; some paths to the result are cut:" if self.cuts else " alone")
        return "\n".join([f"{head}: {what}", *(f"  {cut}" for cut in self.cuts)])


class ZeroGradients(tuple[ZeroGradient, ...], Displayed):
    """The arrays among the arguments of a function whose gradient is zero; it prints as an explanation."""

    name: str

    def __new__(cls, items: Iterable[ZeroGradient], name: str) -> ZeroGradients:
        """The report for a function called `name`."""
        report = super().__new__(cls, tuple(items))
        report.name = name
        return report

    def __repr__(self) -> str:
        if not self:
            return f"No gradient of {self.name} is zero."
        return "\n".join([f"Gradients of {self.name} that are zero:", *map(str, self)])


def explain_zero(f: Function, argnums: int | Sequence[int] | None = None) -> Callable[..., ZeroGradients]:
    """Find the lines that make gradients zero, for each array among the arguments whose gradient is.

    Such lines compute integers or booleans (`astype(int)`, `argmax`, a comparison), round, stop the gradient, or use a
    value in Python control flow only.

    Args:
        f: the function; its result may be anything that `jacobian` accepts.
        argnums: positions of the arguments to examine; by default all that hold floating-point arrays.

    Returns:
        A function of the same arguments.  It returns a tuple of `ZeroGradient`, which prints as an explanation: first
        the arrays whose gradient is zero for all values, with the lines; then those whose gradient is zero at these
        values.

    Raises:
        TypeError: `argnums` includes an argument that is not differentiable.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> def loss(scale, shift):
        ...     return np.sum(np.round(scale * 3.0))
        >>> report = ft.explain_zero(loss)(np.ones(2), 1.0)
        >>> [(zero.path, len(zero.cuts)) for zero in report]
        [('scale', 1), ('shift', 0)]
    """

    check_function(f, "explain_zero")
    argnums = None if argnums is None else as_argnums(argnums, "explain_zero")

    @short_tracebacks
    @functools.wraps(f)
    def explain(*args: Any, **kwargs: Any) -> ZeroGradients:
        places = _positions(args) if argnums is None else argnums
        chosen = select_arguments(f, args, kwargs, places, "explain_zero")
        traced, _ = trace_flat(f, chosen.types, chosen.call, chosen.leaves, chosen.weak, with_guards=True, rolls=False)
        guards = traced.builder.guards
        paths = _paths(f, args, (places,) if isinstance(places, int) else places)
        count = len(traced.program.outputs) - len(guards)
        structural, here = [], []
        zero = [i for i, is_zero in enumerate(_is_zero(traced, chosen.leaves, count)) if is_zero]
        for i in zero:
            outs = _follow(traced.program, [j == i for j in range(len(traced.program.inputs))])
            cuts = dict.fromkeys(cut for out in outs[:count] for cut in out.cuts)
            if any(out.tangent is not None for out in outs[:count]):
                here.append(ZeroGradient(paths[i], chosen.types[i], False, tuple(cuts)))
                continue
            for guard, out in zip(guards, outs[count:], strict=True):
                if out.depends:
                    cuts[Cut("Python's control flow, or an index, takes its value here", guard.line)] = None
            structural.append(ZeroGradient(paths[i], chosen.types[i], True, tuple(cuts)))
        return ZeroGradients([*structural, *here], name_of(f))

    return named(explain, f, "explain_zero")


def _positions(args: tuple[Any, ...]) -> tuple[int, ...]:
    """The arguments that hold arrays of floating-point numbers and no others."""
    leaves = [flatten_targets(x)[0] for x in args]
    found = tuple(i for i, xs in enumerate(leaves) if xs and all(map(_is_float, xs)))
    if not found:
        raise TypeError(
            f"explain_zero found no argument of floating-point arrays; convert one with x.astype(float)"
            f"{at_line(user_line())}"
        )
    return found


def _is_float(x: Any) -> bool:
    if is_plain(x, float | complex):
        return True
    try:
        return is_inexact(type_of(x).dtype)
    except TypeError:
        return False


def _paths(f: Function, args: tuple[Any, ...], places: Sequence[int]) -> list[str]:
    """Where each leaf is, from the name of its argument."""
    try:
        names = [p.name for p in inspect.signature(f).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    except (TypeError, ValueError):
        names = []
    paths = []
    for place in places:
        place %= len(args)
        name = names[place] if place < len(names) else f"argument {place}"
        inside = zip(tree.paths(args[place]), is_target(args[place]), strict=True)
        paths += [name + path for path, wanted in inside if wanted]
    return paths


def _is_zero(traced: Traced, leaves: Sequence[Any], count: int) -> list[bool]:
    """For each leaf, whether the gradient of a weighted sum of all results is zero at the values that were given.

    The first `count` outputs of the program are results, the others guards.
    """
    whole = traced.program
    program = Program(whole.name, whole.inputs, whole.eqns, whole.outputs[:count])
    parts = pullback(program, tuple(i < len(leaves) for i in range(len(program.inputs))))
    values = run(parts.values, [*leaves, *traced.captured])
    # Random weights, since a plain sum may be constant where its terms are not, as that of a softmax is.
    random = np.random.default_rng(0)
    types = [t for t, a in zip(program.out_types, parts.out_active, strict=True) if a]
    weights = [random.uniform(1, 2, t.shape).astype(t.dtype) for t in types]
    found = iter(run(parts.linear, [*values[len(program.outputs) :], *weights]))
    return [not (has_path and np.any(next(found))) for has_path in parts.in_active]


class _Value(NamedTuple):
    """A value of the program, its tangent, whether it depends on the input, and where paths of the derivative ended."""

    primal: Tracer
    tangent: Tracer | None
    depends: bool
    cuts: tuple[Cut, ...]


def _follow(program: Program, active: Sequence[bool]) -> list[_Value]:
    """What becomes of the tangents of the active inputs on their way through a program."""
    types = [t for t, a in zip(program.in_types, active, strict=True) if a]
    builder = Builder([*program.in_types, *types])
    with building(builder):
        inputs = builder.inputs()
        tangents = iter(inputs[len(active) :])
        values = [_Value(x, next(tangents) if a else None, a, ()) for x, a in zip(inputs, active, strict=False)]
        return interpret(program, values, _apply, lambda const: _Value(Tracer(builder, const), None, False, ()))


def _apply(eqn: Eqn, operands: list[_Value]) -> list[_Value]:
    primals = [x.primal for x in operands]
    tangents = [x.tangent for x in operands]
    depends = any(x.depends for x in operands)
    before = tuple(dict.fromkeys(cut for x in operands for cut in x.cuts))
    if not any(t is not None for t in tangents):
        return [_Value(y, None, depends, before) for y in repeat(eqn, primals)]
    outs, found = eqn.primitive.jvp(primals, tangents, **eqn.params)
    if not eqn.primitive.multiple_results:
        outs, found = [outs], [found]
    inside = _cuts_inside(eqn, [x.tangent is not None for x in operands])
    here = inside or (Cut(_why(eqn), eqn.line),)
    return [_Value(y, t, True, before + (here if t is None else inside)) for y, t in zip(outs, found, strict=True)]


def _cuts_inside(eqn: Eqn, active: Sequence[bool]) -> tuple[Cut, ...]:
    """Where the sub-programs of an equation have no derivative along its active operands."""
    inner: dict[Cut, None] = {}
    for program in programs_in(eqn.params):
        # The inputs of a sub-program are the last operands; what comes before says which one runs.
        flags = active[len(active) - len(program.inputs) :]
        if len(program.inputs) <= len(active) and any(flags):
            flags = [a and is_inexact(t.dtype) for a, t in zip(flags, program.in_types, strict=True)]
            inner |= dict.fromkeys(cut for out in _follow(program, flags) for cut in out.cuts)
    return tuple(inner)


def _why(eqn: Eqn) -> str:
    kinds = {v.type.dtype.kind for v in eqn.outputs}
    name = eqn.primitive.name
    if eqn.primitive is stop_gradient:
        return "stop_gradient lets no derivative pass"
    if kinds <= {"b"}:
        return f"{name} gives booleans, which have no derivative"
    if kinds <= set("iu"):
        what = f"conversion to {eqn.outputs[0].type.dtype}" if eqn.primitive is convert else name
        return f"{what} gives integers, which have no derivative"
    return f"{name} is constant between its jumps, so that its derivative is zero"
