"""Scan: a program that is applied to each element of sequences in turn, with a carry from one step to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.cost import Cost
from ...core.interpret import inline
from ...core.on_numpy import Memory
from ...core.primitive import MultipleResults, Tangent
from ...core.program import Eqn, Params, Program
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType
from ...ops import literals
from ...ops import shapes as s
from ...ops.accumulation import accumulated
from ...ops.broadcast import with_batch_axis
from ...run.costs import program_cost
from ...run.stand_alone import Function, Written
from ...run.straightline import function_to_run
from ...transforms.batch import batch as batch_program
from ...transforms.jvp import jvp as jvp_program
from ...transforms.simplify import condense
from ...transforms.simplify import simplify as simplify_program
from ...transforms.split import Residual, Result, SplitEqn
from ...transforms.split import split as split_program
from ...transforms.transpose import transpose as transpose_program
from ...xla.kinds import is_jax_tracer
from ..subprograms import (
    Flags,
    chosen,
    cut,
    either,
    filled,
    others,
    own_carries,
    rewired,
    spread,
    used_inputs,
    with_tangents,
)
from . import plain
from .in_place import lower_step
from .motion import Loop
from .residuals import loop_residuals
from .results import Results


class Scan(MultipleResults):
    """`carry, y = program(*consts, *carry, *x)` for every element `x` of the sequences, from first to last.

    Operands are `consts` constants, `carries` initial carries and the sequences, whose leading axis is `length`.
    Results are the final carries and the sequences of every `y`.  With `reverse` it starts at the last element.
    `unroll` is how many steps XLA puts in one iteration of its loop.
    """

    name = "scan"
    repeats = True
    memory = Memory.NEW

    def apply(
        self,
        program: Program,
        fixed: Sequence[Any],
        carry: Sequence[Any],
        xs: Sequence[Any],
        length: int,
        reverse: bool,
        unroll: int,
    ) -> list[Any]:
        """Record the loop of `program` over constants, initial carries and sequences."""
        params = scan_params(program, length, reverse, unroll, len(fixed), len(carry))
        return self.bind_all([*fixed, *carry, *xs], params)

    def type_rule(
        self, *types: ArrayType, program: Program, length: int, reverse: bool, unroll: int, consts: int, carries: int
    ) -> list[ArrayType]:
        fixed, carry, xs = cut(types, consts, carries)
        for x in xs:
            if x.shape[:1] != (length,):
                raise TypeError(f"a sequence of {length} elements cannot be {x}")
        elements = [x.with_shape(x.shape[1:]) for x in xs]
        if program.in_types != (*fixed, *carry, *elements):
            raise TypeError(f"{program.name} takes {program.in_types}, not {(*fixed, *carry, *elements)}")
        if program.out_types[:carries] != tuple(carry):
            raise TypeError(f"{program.name} returns {program.out_types[:carries]} for a carry of {tuple(carry)}")
        return [*carry, *(_sequence(t, length) for t in program.out_types[carries:])]

    def numpy(
        self, *arrays: Any, program: Program, length: int, reverse: bool, unroll: int, consts: int, carries: int
    ) -> list[Any]:
        own = own_carries(program, consts, carries)
        elements = _elements(program, carries)
        step = function_to_run(program, own)
        return plain.scan(
            *arrays,
            step=step,
            length=length,
            reverse=reverse,
            consts=consts,
            carries=carries,
            own=own,
            elements=elements,
        )

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        program, consts, carries = params["program"], params["consts"], params["carries"]
        own = own_carries(program, consts, carries)
        kept = {name: params[name] for name in ("length", "reverse", "consts", "carries")}
        step, elements = Function(program, own), _elements(program, carries)
        return Written(plain.scan, {"step": step, **kept, "own": own, "elements": elements})

    def xla(
        self, *arrays: Any, program: Program, length: int, reverse: bool, unroll: int, consts: int, carries: int
    ) -> list[Any]:
        from jax import jit, lax

        results = Results.of(program, length, consts, carries)

        def loop(*arrays: Any) -> list[Any]:
            fixed, init, xs = cut(arrays, consts, carries)

            def step(carry: Any, x: Any) -> Any:
                after, ys = cut(lower_step(program, [*fixed, *carry, *x]), carries)
                return after, results.written(ys, after)

            carry, ys = lax.scan(step, init, xs, length=length, reverse=reverse, unroll=unroll)
            return [*carry, *results.read(ys, init, reverse)]

        if any(map(is_jax_tracer, arrays)):
            return loop(*arrays)
        key = ("compiled scan", length, reverse, unroll, consts, carries)
        return program.derive(key, lambda: jit(loop))(*arrays)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return program_cost(params["program"]).times(params["length"])

    def jvp(
        self,
        primals: Sequence[Tracer],
        tangents: Sequence[Tangent],
        *,
        program: Program,
        consts: int,
        carries: int,
        length: int,
        reverse: bool,
        unroll: int,
    ) -> Any:
        of_fixed, of_carry, of_xs = cut(tangents, consts, carries)
        fixed_active, carry_active, xs_active = (tuple(t is not None for t in ts) for ts in (of_fixed, of_carry, of_xs))
        no_ys = (False,) * (len(program.outputs) - carries)
        while True:
            active = (*fixed_active, *carry_active, *xs_active)
            derived = jvp_program(program, active, (*carry_active, *no_ys))
            if derived.out_active[:carries] == carry_active:
                break
            carry_active = derived.out_active[:carries]
        inputs = with_tangents(active, consts, carries)
        outputs = with_tangents(derived.out_active, carries)
        fixed, carry, xs = cut(primals, consts, carries)
        outs = self.apply(
            condense(rewired(derived.program, inputs, outputs)),
            [*fixed, *chosen(of_fixed, fixed_active)],
            [*carry, *filled(of_carry, carry, carry_active)],
            [*xs, *chosen(of_xs, xs_active)],
            length,
            reverse,
            unroll,
        )
        restored = [outs[outputs.index(i)] for i in range(len(outputs))]
        results, out_tangents = cut(restored, len(program.outputs))
        return results, spread(out_tangents, derived.out_active)

    def split(self, unknown: Sequence[bool], types: Sequence[ArrayType], **params: Any) -> SplitEqn:
        program: Program = params["program"]
        key = ("split scan", tuple(unknown), *(v for name, v in sorted(params.items()) if name != "program"))
        return program.derive(key, lambda: _split(tuple(unknown), **params))

    def transpose(
        self,
        cotangents: Any,
        operands: Sequence[Any],
        *,
        program: Program,
        length: int,
        reverse: bool,
        unroll: int,
        consts: int,
        carries: int,
    ) -> list[Tangent]:
        given = tuple(isinstance(x, ArrayType) for x in operands)
        linear = _linear(program, given, consts, carries)
        if not all(linear[consts : consts + carries]):
            # A carry that is not linear, such as a counter, has to run forward first.
            params = scan_params(program, length, reverse, unroll, consts, carries)
            return self._transpose_linear_part(cotangents, operands, given, params)
        turned = _transposed(program, linear, tuple(ct is not None for ct in cotangents), consts, carries)
        fixed, _, xs = cut(operands, consts, carries)
        fixed_linear, _, xs_linear = cut(linear, consts, carries)
        of_carry, of_ys = cut(cotangents, carries)
        totals = [literals.full_like(t, 0) for t in chosen(chosen(fixed, fixed_linear), turned.fixed_active)]
        outs = self.apply(
            turned.program,
            others(fixed, fixed_linear),
            [*totals, *filled(of_carry, program.out_types[:carries], turned.carry_active)],
            [*others(xs, xs_linear), *(ct for ct in of_ys if ct is not None)],
            length,
            not reverse,
            unroll,
        )
        of_fixed, of_carry, of_xs = cut(outs, turned.fixed_active.count(True), turned.carry_active.count(True))
        results = [
            *spread(spread(of_fixed, turned.fixed_active), fixed_linear),
            *spread(of_carry, turned.carry_active),
            *spread(spread(of_xs, turned.xs_active), xs_linear),
        ]
        return [ct if g else None for ct, g in zip(results, given, strict=True)]

    def _transpose_linear_part(
        self, cotangents: Any, operands: Sequence[Any], given: Flags, params: dict[str, Any]
    ) -> list[Tangent]:
        halves = self.split(given, [], **params)
        known = self(*(operands[i] for i in halves.known_operands), **halves.known_params)
        results = iter(known)
        values = [None if u else next(results) for u in halves.out_unknown]
        residuals = list(results)

        def operand(i: int | Residual | Result) -> Any:
            if isinstance(i, int):
                return operands[i]
            return residuals[i.position] if isinstance(i, Residual) else values[i.position]

        cts = self.transpose(
            chosen(cotangents, halves.out_unknown),
            [operand(i) for i in halves.unknown_operands],
            **halves.unknown_params,
        )
        found = {i: ct for i, ct in zip(halves.unknown_operands, cts, strict=True) if isinstance(i, int)}
        return [found.get(i) for i in range(len(operands))]

    def batch(
        self,
        size: int,
        operands: Sequence[Tracer],
        batched: Sequence[bool],
        *,
        program: Program,
        consts: int,
        carries: int,
        length: int,
        reverse: bool,
        unroll: int,
    ) -> Any:
        fixed_flags, given, xs_flags = (tuple(f) for f in cut(batched, consts, carries))
        no_ys = (False,) * (len(program.outputs) - carries)
        flags = given
        while True:
            derived = batch_program(program, size, (*fixed_flags, *flags, *xs_flags), (*flags, *no_ys))
            if derived.out_batched[:carries] == flags:
                break
            flags = derived.out_batched[:carries]
        fixed, carry, xs = cut(operands, consts, carries)
        outs = self.apply(
            simplify_program(derived.program),
            fixed,
            [with_batch_axis(size, x, g) if f else x for x, g, f in zip(carry, given, flags, strict=True)],
            [_swapped(x) if f else x for x, f in zip(xs, xs_flags, strict=True)],
            length,
            reverse,
            unroll,
        )
        carry, ys = cut(outs, carries)
        ys = [_swapped(y) if f else y for y, f in zip(ys, derived.out_batched[carries:], strict=True)]
        return [*carry, *ys], list(derived.out_batched)

    def simplify(
        self,
        operands: Sequence[Tracer],
        *,
        program: Program,
        length: int,
        reverse: bool,
        unroll: int,
        consts: int,
        carries: int,
    ) -> list[Any] | None:
        fixed, carry, xs = cut(operands, consts, carries)
        if length == 0:
            return [*carry, *(literals.full((0, *t.shape), 0, t.dtype) for t in program.out_types[carries:])]
        if length == 1:
            elements = [s.reshape(x, shape=x.shape[1:]) for x in xs]
            carry, ys = cut(inline(simplify_program(program), [*fixed, *carry, *elements]), carries)
            return [*carry, *(s.reshape(y, shape=(1, *y.shape)) for y in ys)]
        loop = Loop(program, fixed, carry, xs, length)
        loop.improve()
        if loop.program is program:
            return None
        outs: list[Any] = []
        if loop.outputs:
            outs = self.apply(loop.program, loop.fixed, loop.carry, loop.xs, length, reverse, unroll)
        return loop.original_results(outs)

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        params = eqn.params
        consts, carries = params["consts"], params["carries"]
        program: Program = params["program"]
        every = range(len(program.inputs))
        needed, of_ys = (tuple(f) for f in cut(used, carries))
        while True:
            outputs = [i for i, n in enumerate((*needed, *of_ys)) if n]
            pruned = condense(rewired(program, every, outputs))
            inputs_used = used_inputs(pruned)
            grown = either(needed, inputs_used[consts : consts + carries])
            if grown == needed:
                break
            needed = grown
        kept = (*inputs_used[:consts], *needed, *inputs_used[consts + carries :])
        if all(kept) and all(of_ys):
            return eqn
        return Eqn(
            self,
            tuple(chosen(eqn.operands, kept)),
            {
                **params,
                "program": condense(rewired(pruned, [i for i, k in enumerate(kept) if k])),
                "consts": kept[:consts].count(True),
                "carries": needed.count(True),
            },
            tuple(chosen(eqn.outputs, (*needed, *of_ys))),
            eqn.line,
        )


def scan_params(program: Program, length: int, reverse: bool, unroll: int, consts: int, carries: int) -> Params:
    """The parameters of an equation of `scan`, in the order in which they are compared."""
    return {
        "program": program,
        "length": length,
        "reverse": reverse,
        "unroll": unroll,
        "consts": consts,
        "carries": carries,
    }


def _sequence(element: ArrayType, length: int) -> ArrayType:
    return element.with_shape((length, *element.shape))


def _swapped(x: Tracer) -> Tracer:
    """`x` with its first two axes, of the batch and of the sequence, swapped."""
    return s.transpose(x, axes=(1, 0, *range(2, x.ndim)))


# Reverse mode


def _linear(program: Program, given: Flags, consts: int, carries: int) -> Flags:
    """Which inputs depend on linear operands; a carry may, although its initial value is known."""
    fixed, carry, xs = (tuple(f) for f in cut(given, consts, carries))
    while True:
        grown = either(carry, split_program(program, (*fixed, *carry, *xs)).out_unknown[:carries])
        if grown == carry:
            return (*fixed, *carry, *xs)
        carry = grown


def _split(
    unknown: Flags, *, program: Program, length: int, reverse: bool, unroll: int, consts: int, carries: int
) -> SplitEqn:
    unknown = _linear(program, unknown, consts, carries)
    no_ys = (False,) * (len(program.outputs) - carries)
    halves = split_program(program, unknown, (*unknown[consts : consts + carries], *no_ys))
    known, later = halves.known, halves.unknown
    fixed_known, carry_known, xs_known = cut(
        [i for i, u in enumerate(unknown) if not u],
        unknown[:consts].count(False),
        unknown[consts : consts + carries].count(False),
    )
    fixed_later, carry_later, xs_later = cut(
        [i for i, u in enumerate(unknown) if u],
        unknown[:consts].count(True),
        unknown[consts : consts + carries].count(True),
    )
    fixed_vars, _, xs_vars = cut(known.inputs, len(fixed_known), len(carry_known))
    known_results = [i for i, u in enumerate(halves.out_unknown) if not u]
    known_outputs = list(known.outputs[: len(known_results)])
    wanted = later.inputs[: halves.residual_count]
    stacked, again = loop_residuals(known, length, known_outputs, wanted, fixed_vars, xs_vars)
    sequences = {a: i for a, i in zip(known_outputs, known_results, strict=True) if i >= carries}
    saved = [v for v in stacked if v not in sequences]

    eqns = [*again, *later.eqns]
    used = {a for eqn in eqns for a in eqn.operands} | set(later.outputs)
    fixed_used, xs_used = [v in used for v in fixed_vars], [v in used for v in xs_vars]
    unknown_vars = cut(later.inputs[halves.residual_count :], len(fixed_later), len(carry_later))
    later_inputs = [
        *chosen(fixed_vars, fixed_used),
        *unknown_vars[0],
        *unknown_vars[1],
        *chosen(xs_vars, xs_used),
        *stacked,
        *unknown_vars[2],
    ]
    return SplitEqn(
        known=scan,
        known_params=scan_params(
            condense(Program(known.name, known.inputs, known.eqns, [*known_outputs, *saved])),
            length,
            reverse,
            unroll,
            len(fixed_known),
            len(carry_known),
        ),
        known_operands=[*fixed_known, *carry_known, *xs_known],
        unknown=scan,
        unknown_params=scan_params(
            condense(Program(later.name, later_inputs, eqns, later.outputs)),
            length,
            reverse,
            unroll,
            fixed_used.count(True) + len(fixed_later),
            len(carry_later),
        ),
        unknown_operands=[
            *chosen(fixed_known, fixed_used),
            *fixed_later,
            *carry_later,
            *chosen(xs_known, xs_used),
            *(Result(sequences[v]) if v in sequences else Residual(saved.index(v)) for v in stacked),
            *xs_later,
        ],
        residual_types=[_sequence(v.type, length) for v in saved],
        out_unknown=halves.out_unknown,
    )


class _Transposed(NamedTuple):
    """The body of a transposed loop, and which linear inputs and carries have cotangents in it."""

    program: Program
    fixed_active: Flags
    carry_active: Flags
    xs_active: Flags


def _transposed(program: Program, linear: Flags, active: Flags, consts: int, carries: int) -> _Transposed:
    key = ("transposed scan", linear, active, consts, carries)
    return program.derive(key, lambda: _transpose(program, linear, active, consts, carries))


def _transpose(program: Program, linear: Flags, active: Flags, consts: int, carries: int) -> _Transposed:
    carry_active, ys_active = (tuple(f) for f in cut(active, carries))
    fixed_linear, _, xs_linear = cut(linear, consts, carries)
    fixed_count, xs_count = fixed_linear.count(True), xs_linear.count(True)
    while True:
        wanted = (*(False,) * fixed_count, *carry_active, *(False,) * xs_count)
        turned = transpose_program(program, linear, (*carry_active, *ys_active), wanted)
        fixed_active, grown, xs_active = (tuple(f) for f in cut(turned.in_active, fixed_count, carries))
        if grown == carry_active:
            break
        carry_active = grown
    fixed, _, xs = cut(program.in_types, consts, carries)
    totals = chosen(chosen(fixed, fixed_linear), fixed_active)
    carry, ys = cut(program.out_types, carries)
    builder = Builder(
        [
            *others(fixed, fixed_linear),
            *totals,
            *chosen(carry, carry_active),
            *others(xs, xs_linear),
            *chosen(ys, ys_active),
        ]
    )
    with building(builder):
        of_fixed, sums, cts, of_xs, of_ys = cut(
            builder.inputs(),
            fixed_linear.count(False),
            len(totals),
            carry_active.count(True),
            xs_linear.count(False),
        )
        outs = inline(turned.program, [*of_fixed, *of_xs, *cts, *of_ys])
        terms, rest = cut(outs, len(totals))
        sums = [accumulated(total, term) for total, term in zip(sums, terms, strict=True)]
        body = builder.finish([*sums, *rest], turned.program.name)
    return _Transposed(condense(body), fixed_active, carry_active, xs_active)


def _elements(program: Program, carries: int) -> tuple[tuple[tuple[int, ...], Any], ...]:
    """Shapes and dtypes of what a step returns beside the carry."""
    return tuple((t.shape, t.dtype) for t in program.out_types[carries:])


scan = Scan()
