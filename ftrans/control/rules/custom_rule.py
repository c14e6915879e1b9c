"""A function with a custom derivative rule.

An equation `custom` holds the program of the function and a `Rule`.  The rule covers the first operands, the arguments
of the function; the operands behind them are what the function and its rules closed over, and the derivative with
respect to those is that of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...base.source import at_line, user_line
from ...core.interpret import inline
from ...core.on_numpy import Memory
from ...core.primitive import MissingRule, MultipleResults, Tangent
from ...core.program import Atom, Const, Eqn, Params, Program, literal
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType, is_inexact
from ...ops.elementwise import add
from ...run.stand_alone import Function, Written
from ...run.straightline import function_to_run
from ...transforms.batch import batch as batch_program
from ...transforms.jvp import jvp as jvp_program
from ...transforms.simplify import simplify as simplify_program
from ...transforms.split import split as split_program
from ...xla.execute import lower
from ..subprograms import Flags, chosen, cut, rewired, specialized, spread, transposed, used_inputs
from .linear_call import Name, along, batched_maps, linear_call, with_outputs
from .linearity import is_zero, nonlinearity


class Derivatives(NamedTuple):
    """What a rule states.  Differentiable arguments and results are those with floating-point dtypes.

    Attributes:
        fwd: operands -> results, then residuals.
        bwd: residuals, then cotangents of the differentiable results -> cotangents of the differentiable arguments.
        jvp: operands, then tangents of the differentiable arguments -> results, then tangents of the differentiable
            ones.
    """

    fwd: Program | None
    bwd: Program | None
    jvp: Program | None


class Linearized(NamedTuple):
    """The derivative along some of the arguments: what `linear_call` takes, and where its residuals come from.

    Attributes:
        values: operands -> results, then further values for residuals.
        sources: for each residual, its index among the operands followed by the results of `values`.
        forward: residuals, then tangents -> tangents of the differentiable results; or None.
        backward: residuals, then cotangents of the differentiable results -> cotangents; or None.
        out_active: which results have a tangent.
        is_linear: whether both modes are defined: the stated program is linear, or both programs are stated.
    """

    values: Program
    sources: tuple[int, ...]
    forward: Program | None
    backward: Program | None
    out_active: Flags
    is_linear: bool


class Rule:
    """The derivative rule of one traced function.

    Attributes:
        stated: the derivatives that the rule states, if it was defined by them.

    Args:
        name: name of the function, and how to state its rules.
        primal: its program.
        covered: how many of the operands the rule covers.
        linearize: the derivative along the operands that are flagged; given later, by `define`, if it is None.
    """

    def __init__(
        self, name: Name, primal: Program, covered: int, linearize: Callable[[Flags], Linearized] | None = None
    ) -> None:
        self.name = name
        self.primal = primal
        self.covered = covered
        self.stated: Derivatives | None = None
        self._linearize = linearize
        self._batched: dict[Any, Rule] = {}
        self._linearized: dict[Flags, Linearized | None] = {}

    def __repr__(self) -> str:
        return f"<rule of {self.name.function}>"

    def define(self, stated: Derivatives) -> None:
        """Set the derivatives that the rule states."""
        self.stated = stated
        self._linearize = lambda active: _linearized(self, stated, active)

    def linearized(self, active: Flags) -> Linearized:
        """The derivative along the operands flagged in `active`, all of which the rule covers.

        Raises:
            MissingRule: no rule is stated.
            RuntimeError: the rule differentiates the function that it is for.
        """
        found = self._linearized.get(active)
        if found is not None:
            return found
        if self._linearize is None or active in self._linearized:
            name = self.name.function
            raise RuntimeError(
                f"a derivative rule of {name} differentiates {name} itself, which calls the rule again; it may "
                f"call {name}, but must not differentiate it{at_line(user_line())}"
            )
        # None while it is being computed, so that a rule that needs itself is noticed.
        self._linearized[active] = None
        try:
            found = self._linearized[active] = self._linearize(active)
        finally:
            if self._linearized[active] is None:
                del self._linearized[active]
        return found

    def batched(self, size: int, flags: Flags) -> Rule:
        """The rule of the function over a batch, where the flagged operands are batched and so are all results."""
        rule = self._batched.get((size, flags))
        if rule is None:
            primal = batch_program(self.primal, size, flags, (True,) * len(self.primal.outputs)).program
            rule = Rule(self.name, primal, self.covered, lambda active: self._over_batch(size, flags, active))
            self._batched[size, flags] = rule
        return rule

    def _over_batch(self, size: int, flags: Flags, active: Flags) -> Linearized:
        parts = self.linearized(active)
        count = len(self.primal.outputs)
        wanted = tuple(i < count for i in range(len(parts.values.outputs)))
        values = batch_program(parts.values, size, flags, wanted)
        atoms = (*flags, *values.out_batched)
        forward, backward = batched_maps(
            parts.forward, parts.backward, size, tuple(atoms[i] for i in parts.sources), tuple(chosen(flags, active))
        )
        return parts._replace(values=values.program, forward=forward, backward=backward)


class Custom(MultipleResults):
    """The results of `program` on the operands.

    The first ones are the results of the function with the indices `outs`; their derivative is that of the rule.  The
    others have the derivative of the program.
    """

    name = "custom"
    memory = Memory.NEW

    def type_rule(self, *types: ArrayType, program: Program, rule: Rule, outs: tuple[int, ...]) -> list[ArrayType]:
        if types != program.in_types:
            raise TypeError(f"{program.name} takes {program.in_types}, not {types}")
        if program.out_types[: len(outs)] != tuple(rule.primal.out_types[i] for i in outs):
            raise TypeError(f"{program.name} returns {program.out_types}, but {rule} is for {rule.primal.out_types}")
        return list(program.out_types)

    def numpy(self, *arrays: Any, program: Program, rule: Rule, outs: tuple[int, ...]) -> list[Any]:
        simple = simplify_program(program)
        return function_to_run(simple)(*arrays)

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        return Written(Function(simplify_program(params["program"])), {})

    def xla(self, *arrays: Any, program: Program, rule: Rule, outs: tuple[int, ...]) -> list[Any]:
        return lower(program, arrays)

    def jvp(
        self,
        primals: Sequence[Tracer],
        tangents: Sequence[Tangent],
        *,
        program: Program,
        rule: Rule,
        outs: tuple[int, ...],
    ) -> Any:
        results: list[Tracer] = []
        out_tangents: list[Tangent] = []
        if outs:
            values, pushed = _pushed(rule, primals, tangents)
            results, out_tangents = [values[i] for i in outs], [pushed[i] for i in outs]
        if len(outs) < len(program.outputs):
            more = with_outputs(program, range(len(outs), len(program.outputs)))
            derived = jvp_program(more, tuple(t is not None for t in tangents))
            found = inline(derived.program, [*primals, *(t for t in tangents if t is not None)])
            results += self(*primals, program=program, rule=rule, outs=outs)[len(outs) :]
            out_tangents += spread(found[len(more.outputs) :], derived.out_active)
        return results, out_tangents

    def transpose(
        self, cotangents: Any, operands: Sequence[Any], *, program: Program, rule: Rule, outs: tuple[int, ...]
    ) -> list[Tangent]:
        return transposed(program, cotangents, operands, lambda turned, known, cts: inline(turned, [*known, *cts]))

    def batch(
        self,
        size: int,
        operands: Sequence[Tracer],
        batched: Sequence[bool],
        *,
        program: Program,
        rule: Rule,
        outs: tuple[int, ...],
    ) -> Any:
        flags = tuple(batched)
        wanted = tuple(i < len(outs) for i in range(len(program.outputs)))
        derived = batch_program(program, size, flags, wanted)
        results = self(*operands, program=derived.program, rule=rule.batched(size, flags), outs=outs)
        return results, list(derived.out_batched)

    def simplify(
        self, operands: Sequence[Tracer], *, program: Program, rule: Rule, outs: tuple[int, ...]
    ) -> list[Any] | None:
        # Without results of the function itself, the rule does not apply.
        return None if outs else inline(simplify_program(program), operands)

    def passes_on(self, operands: Sequence[Tracer], params: Params) -> list[Tracer] | None:
        program = params["program"]
        return None if program.eqns else inline(program, operands)

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        program, outs = eqn.params["program"], eqn.params["outs"]
        params = {
            "program": with_outputs(program, [i for i, u in enumerate(used) if u]),
            "rule": eqn.params["rule"],
            "outs": tuple(chosen(outs, used[: len(outs)])),
        }
        return Eqn(self, eqn.operands, params, tuple(chosen(eqn.outputs, used)), eqn.line)


custom = Custom()


def _pushed(rule: Rule, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[list[Tracer], list[Tangent]]:
    """All results of the function, and their tangents."""
    every = tuple(range(len(rule.primal.outputs)))
    active = tuple(t is not None and i < rule.covered for i, t in enumerate(tangents))
    captured = tuple(t is not None and i >= rule.covered for i, t in enumerate(tangents))
    if any(active):
        values, totals = _pushed_by_rule(rule, primals, chosen(tangents, active), active)
    else:
        values, totals = custom(*primals, program=rule.primal, rule=rule, outs=every), [None] * len(every)
    if any(captured):
        derived = jvp_program(rule.primal, captured)
        found = inline(derived.program, [*primals, *chosen(tangents, captured)])[len(every) :]
        for i, t in enumerate(spread(found, derived.out_active)):
            before = totals[i]
            totals[i] = t if before is None else before if t is None else add(before, t)
    return values, totals


def _pushed_by_rule(
    rule: Rule, primals: Sequence[Tracer], tangents: Sequence[Tangent], active: Flags
) -> tuple[list[Tracer], list[Tangent]]:
    """All results of the function, and their tangents along the arguments that are flagged."""
    every = tuple(range(len(rule.primal.outputs)))
    parts = rule.linearized(active)
    if parts.is_linear:
        values = custom(*primals, program=parts.values, rule=rule, outs=every)
    else:
        # One mode is not defined.  The values come from an ordinary program, so that higher derivatives are defined.
        values = inline(parts.values, primals)
    atoms = [*primals, *values]
    operands = [*(atoms[i] for i in parts.sources), *tangents]
    if parts.backward is None and parts.is_linear:
        assert parts.forward is not None
        pushed = inline(parts.forward, operands)
    else:
        maps = {"forward": parts.forward, "backward": parts.backward}
        pushed = linear_call(*operands, **maps, residuals=len(parts.sources), name=rule.name)
    return values[: len(every)], spread(pushed, parts.out_active)


def _linearized(rule: Rule, stated: Derivatives, active: Flags) -> Linearized:
    if stated.bwd is None and stated.jvp is None:
        raise MissingRule(
            f"{rule.name.function} is differentiated, but has no derivative rule; write "
            f"{getattr(rule.name, rule.name.preferred)}{at_line(user_line())}"
        )
    covered = rule.primal.in_types[: rule.covered]
    flags = tuple(a for a, t in zip(active, covered, strict=False) if is_inexact(t.dtype))
    pushed = None if stated.jvp is None else _by_jvp(rule, stated.jvp, flags)
    if stated.bwd is None:
        assert pushed is not None
        return pushed
    assert stated.fwd is not None
    backward = with_outputs(stated.bwd, [i for i, a in enumerate(flags) if a])
    count = len(rule.primal.outputs)
    is_cotangent = tuple(i >= len(stated.fwd.outputs) - count for i in range(len(backward.inputs)))
    is_linear = nonlinearity(backward, is_cotangent) is None
    pulled = _divided(stated.fwd, count, None, backward, _differentiable(rule.primal), is_linear)
    return pulled if pushed is None else _combined(pulled, pushed)


def _differentiable(program: Program) -> Flags:
    return tuple(is_inexact(t.dtype) for t in program.out_types)


def _divided(
    values: Program,
    count: int,
    forward: Program | None,
    backward: Program | None,
    out_active: Flags,
    is_linear: bool,
) -> Linearized:
    """A linearization whose residuals are the outputs of `values` from index `count` on.

    Residuals that are inputs, results or constants need no output of their own.
    """
    inputs: dict[Atom, int] = {v: i for i, v in enumerate(values.inputs)}
    results: dict[Atom, int] = {a: i for i, a in reversed(list(enumerate(values.outputs[:count])))}
    kept = list(range(count))
    sources: list[int] = []
    known: list[Const | None] = []
    used = [used_inputs(p) for p in (forward, backward) if p is not None]
    for index, atom in enumerate(values.outputs[count:], count):
        is_used = any(u[index - count] for u in used)
        # Residuals that neither program uses need not be kept.
        const = atom if isinstance(atom, Const) else None if is_used else literal(0, atom.type)
        known.append(const)
        if const is not None:
            continue
        if atom not in inputs and atom not in results:
            results[atom] = len(kept)
            kept.append(index)
        sources.append(inputs[atom] if atom in inputs else len(inputs) + results[atom])

    def without_constants(program: Program | None) -> Program | None:
        if program is None:
            return None
        return specialized(program, [*known, *(None for _ in program.inputs[len(known) :])])

    return Linearized(
        with_outputs(values, kept),
        tuple(sources),
        without_constants(forward),
        without_constants(backward),
        out_active,
        is_linear,
    )


def _combined(pulled: Linearized, pushed: Linearized) -> Linearized:
    """Combine two linearizations, one with the backward program and the other with the forward program."""
    assert pulled.backward is not None
    assert pushed.forward is not None
    count = len(pulled.out_active)
    builder = Builder(pulled.values.in_types)
    with building(builder):
        inputs = builder.inputs()
        outs = inline(pulled.values, inputs)
        more = inline(pushed.values, inputs)
        of_bwd = [[*inputs, *outs][i] for i in pulled.sources]
        of_jvp = [[*inputs, *more][i] for i in pushed.sources]
        values = builder.finish([*outs[:count], *of_bwd, *of_jvp], pulled.values.name)
    bwd_types, cotangents = cut(pulled.backward.in_types, len(of_bwd))
    jvp_types, tangents = cut(pushed.forward.in_types, len(of_jvp))
    backward = rewired(
        pulled.backward, [*range(len(of_bwd)), *jvp_types, *range(len(of_bwd), len(of_bwd) + len(cotangents))]
    )
    is_there = iter(range(len(pushed.forward.outputs)))
    flags = zip(pulled.out_active, pushed.out_active, strict=True)
    places = [next(is_there) if has_tangent else None for is_active, has_tangent in flags if is_active]
    outputs = [t if i is None else i for t, i in zip(cotangents, places, strict=True)]
    forward = rewired(pushed.forward, [*bwd_types, *range(len(of_jvp) + len(tangents))], outputs)
    return _divided(values, count, forward, backward, pulled.out_active, is_linear=True)


def _by_jvp(rule: Rule, jvp: Program, active: Flags) -> Linearized:
    """The derivative along some of the differentiable arguments, by a rule for tangents."""
    count, operands = len(rule.primal.outputs), len(rule.primal.inputs)
    simple = simplify_program(jvp)
    # A loop that computes less has fewer constants, too, which only simplification finds.
    values = simplify_program(with_outputs(simple, range(count)))
    tangents = with_outputs(simple, range(count, len(simple.outputs)))
    is_linear = nonlinearity(tangents, tuple(i >= operands for i in range(len(jvp.inputs)))) is None
    tangents = along(tangents, operands, active)
    has_tangent = [not is_zero(a) for a in tangents.outputs]
    tangents = with_outputs(tangents, [i for i, t in enumerate(has_tangent) if t])
    together = _joined(rewired(values, range(operands)), tangents)
    unknown = tuple(i >= operands for i in range(len(together.inputs)))
    halves = split_program(together, unknown, tuple(i >= count for i in range(len(together.outputs))))
    remaining = iter(has_tangent)
    out_active = tuple(d and next(remaining) for d in _differentiable(rule.primal))
    return _divided(halves.known, count, halves.unknown, None, out_active, is_linear)


def _joined(values: Program, tangents: Program) -> Program:
    """One program for the results of two; common equations are computed once."""
    builder = Builder(tangents.in_types)
    with building(builder):
        inputs = builder.inputs()
        outs = inline(values, inputs[: len(values.inputs)])
        program = builder.finish([*outs, *inline(tangents, inputs)], values.name)
    return simplify_program(program)


def with_inputs_returned(program: Program, inputs: Sequence[int]) -> Program:
    """`program` with some of its inputs as further outputs."""
    if not inputs:
        return program

    def make() -> Program:
        more = [program.inputs[i] for i in inputs]
        return Program(program.name, program.inputs, program.eqns, (*program.outputs, *more))

    return program.derive(("with inputs returned", tuple(inputs)), make)
