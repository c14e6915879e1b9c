"""The tangents of a function with a custom rule: a linear map given by its program, its transpose, or both.

If only one is given, the other is derived: the map is the transpose of its transpose.  That holds only for linear
programs, so linearity is checked, equation by equation, before one is transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ...base.source import at_line
from ...core.interpret import inline
from ...core.on_numpy import Memory
from ...core.primitive import MissingRule, MultipleResults, Tangent
from ...core.program import Eqn, Params, Program, literal
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType
from ...ops.broadcast import reduce_sum
from ...ops.elementwise import add
from ...run.stand_alone import Function, Written
from ...run.straightline import function_to_run
from ...transforms.batch import batch as batch_program
from ...transforms.jvp import jvp as jvp_program
from ...transforms.simplify import simplify as simplify_program
from ...transforms.simplify import without_dead_code
from ...transforms.transpose import transpose as transpose_program
from ...xla.execute import lower
from ..subprograms import Flags, chosen, cut, rewired, specialized, spread, used_inputs
from .linearity import is_zero, nonlinearity


class Name(NamedTuple):
    """The name of a function with a rule in messages, and how its rules are stated.

    Attributes:
        function: name of the function.
        preferred: which of the two below to suggest if no rule is stated.
        reverse: how to state a rule for reverse mode, if the user can.
        forward: the same for forward mode.
        tolerance: for a solver, the call that it stands for, with its tolerances: its results are right up to those.
    """

    function: str
    preferred: Literal["reverse", "forward"]
    reverse: str | None
    forward: str | None
    tolerance: str = ""

    def __str__(self) -> str:
        return self.function


class LinearCall(MultipleResults):
    """`forward(*residuals, *tangents)`, whose transpose is `backward(*residuals, *cotangents)`.

    One of the two programs may be None: then it is the transpose of the other.  The first `residuals` operands are the
    residuals; `name` says whose derivative this is, for messages.
    """

    name = "linear_call"
    memory = Memory.NEW

    def type_rule(
        self,
        *types: ArrayType,
        forward: Program | None,
        backward: Program | None,
        residuals: int,
        name: Name,
    ) -> list[ArrayType]:
        results: list[ArrayType] = []
        if backward is not None:
            known, cotangents = cut(backward.in_types, residuals)
            if types != (*known, *backward.out_types):
                raise TypeError(f"{backward.name} is the transpose of a map of {(*known, *backward.out_types)}")
            results = cotangents
        if forward is not None:
            if forward.in_types != types:
                raise TypeError(f"{forward.name} takes {forward.in_types}, not {types}")
            if backward is not None and forward.out_types != tuple(results):
                raise TypeError(f"{forward.name} returns {forward.out_types}, not {results}")
            results = list(forward.out_types)
        return results

    def numpy(self, *arrays: Any, **params: Any) -> list[Any]:
        program = simplify_program(_forward(params))
        return function_to_run(program)(*arrays)

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        return Written(Function(simplify_program(_forward(params))), {})

    def xla(self, *arrays: Any, **params: Any) -> list[Any]:
        return lower(simplify_program(_forward(params)), arrays)

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return range(params["residuals"], count)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> Any:
        outs = self(*primals, **params)
        of_known, of_linear = cut(tangents, params["residuals"])
        # Without forward mode, there is no derivative of forward mode either.
        forward = _forward(params)
        if params["backward"] is None:
            return outs, _tangents_of(forward, primals, tangents)
        totals: list[Tangent] = [None] * len(outs)
        if any(t is not None for t in of_linear):
            active = tuple(t is not None for t in of_linear)
            known = primals[: len(of_known)]
            totals = list(self(*known, *chosen(of_linear, active), **_restricted(params, active)))
        if any(t is not None for t in of_known):
            terms = _tangents_of(forward, primals, [*of_known, *(None for _ in of_linear)])
            totals = [t if s is None else s if t is None else add(s, t) for s, t in zip(totals, terms, strict=True)]
        return outs, totals

    def transpose(self, cotangents: Any, operands: Sequence[Any], **params: Any) -> list[Tangent]:
        known, linear = cut(operands, params["residuals"])
        if any(isinstance(x, ArrayType) for x in known):
            self._missing("transpose")
        active = tuple(isinstance(x, ArrayType) for x in linear)
        arrived = [ct for ct in cotangents if ct is not None]
        backward = along(_backward(params), len(known), tuple(ct is not None for ct in cotangents))
        backward = with_outputs(backward, [i for i, a in enumerate(active) if a])
        outs = inline(backward, [*known, *arrived])
        found = [None if is_zero(a) else ct for ct, a in zip(outs, backward.outputs, strict=True)]
        return [*(None for _ in known), *spread(found, active)]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        count = params["residuals"]
        forward, backward = batched_maps(
            params["forward"], params["backward"], size, tuple(batched[:count]), tuple(batched[count:])
        )
        outs = self(*operands, **{**params, "forward": forward, "backward": backward})
        return outs, [True] * len(outs)

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        params = dict(eqn.params)
        wanted = [i for i, u in enumerate(used) if u]
        if params["forward"] is not None:
            params["forward"] = with_outputs(params["forward"], wanted)
        if params["backward"] is not None:
            params["backward"] = along(params["backward"], params["residuals"], tuple(used))
        return Eqn(self, eqn.operands, params, tuple(chosen(eqn.outputs, used)), eqn.line)


linear_call = LinearCall()


def with_outputs(program: Program, outputs: Sequence[int | ArrayType]) -> Program:
    """`program` with only some of its outputs (or zeros of a type), without equations that only the others need."""
    fewer = rewired(program, range(len(program.inputs)), outputs)
    return fewer if fewer is program else fewer.derive("without dead code", lambda: without_dead_code(fewer))


def batched_maps(
    forward: Program | None, backward: Program | None, size: int, known: Flags, linear: Flags
) -> tuple[Program | None, Program | None]:
    """The forward and backward programs of a linear call over a batch; all results are batched.

    Args:
        forward: the forward program, or None.
        backward: the backward program, or None.
        size: size of the batch.
        known: which residuals are batched.
        linear: which tangents are batched.
    """
    count = len(known)
    # Linearity is easier to see in the program of one element than in that of a batch.
    if forward is None and backward is not None and nonlinearity(backward, _behind(count, backward)) is None:
        forward = _transposed(backward, count)
    if forward is not None:
        wanted = (True,) * len(forward.outputs)
        batched_forward = batch_program(forward, size, (*known, *linear), wanted).program
    else:
        batched_forward = None
    return batched_forward, None if backward is None else _batched_backward(backward, size, known, linear)


def _behind(known: int, program: Program) -> Flags:
    """Flags for the inputs of a program behind the known ones."""
    return tuple(i >= known for i in range(len(program.inputs)))


def _transposed(program: Program, known: int) -> Program:
    """The transpose of a program that is linear in the inputs after the known ones."""
    linear = _behind(known, program)
    return transpose_program(program, linear, None, (True,) * linear.count(True)).program


def _batched_backward(backward: Program, size: int, known: Flags, linear: Flags) -> Program:
    """A program from residuals and cotangents to cotangents, over a batch of cotangents.

    Cotangents of unbatched tangents are sums over the batch, because every lane uses the same tangent.
    """

    def make() -> Program:
        flags = (*known, *(True for _ in backward.inputs[len(known) :]))
        derived = batch_program(backward, size, flags, (True,) * len(backward.outputs)).program
        builder = Builder(derived.in_types)
        with building(builder):
            outs = inline(derived, builder.inputs())
            outs = [
                Tracer(builder, literal(0, y.type if b else a.type))
                if is_zero(a)
                else y
                if b
                else reduce_sum(y, axes=(0,))
                for y, b, a in zip(outs, linear, backward.outputs, strict=True)
            ]
            return builder.finish(outs, derived.name)

    return backward.derive(("batched backward", size, known, linear), make)


def along(program: Program, known: int, active: Flags) -> Program:
    """`program` with only some of its tangents; the others are zero.

    Args:
        program: takes `known` values, then tangents or cotangents.
        known: how many values.
        active: which of the tangents stay.
    """
    if all(active):
        return program

    def make() -> Program:
        count, width = len(program.outputs), len(program.inputs)
        zeros = [None if a else literal(0, t) for a, t in zip(active, program.in_types[known:], strict=True)]
        with_zeros = specialized(program, [*(None for _ in range(known)), *zeros])
        if nonlinearity(program, _behind(known, program)) is not None:
            return with_zeros
        # A linear program is its own derivative, which drops zero tangents instead of multiplying by them.
        derived = jvp_program(program, (*(False,) * known, *active))
        place = iter(range(count, len(derived.program.outputs)))
        slim = with_outputs(
            derived.program,
            [next(place) if a else t for a, t in zip(derived.out_active, program.out_types, strict=True)],
        )
        if any(used_inputs(slim)[known:width]):
            return with_zeros
        return rewired(slim, [*range(known), *range(width, len(slim.inputs))])

    return program.derive(("along", known, active), make)


def _tangents_of(program: Program, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> list[Tangent]:
    """Tangents of the outputs of `program`, by its own derivative."""
    active = tuple(t is not None for t in tangents)
    derived = jvp_program(program, active)
    outs = inline(derived.program, [*primals, *(t for t in tangents if t is not None)])
    return spread(outs[len(program.outputs) :], derived.out_active)


def _restricted(params: Params, active: Flags) -> Params:
    """The map of some of the tangents; the others are zero."""
    if all(active):
        return params
    changed = {**params, "backward": with_outputs(params["backward"], [i for i, a in enumerate(active) if a])}
    if params["forward"] is not None:
        changed["forward"] = along(params["forward"], params["residuals"], active)
    return changed


def _forward(params: Params) -> Program:
    """The map itself, which may be the transpose of its transpose.

    Raises:
        MissingRule: only the transpose is given, and it is not linear.
    """
    if params["forward"] is not None:
        return params["forward"]
    return _transposed_if_linear(
        params["residuals"],
        params["backward"],
        f"the backward rule of {params['name']} is not linear in the cotangent",
        "Forward mode is its transpose, so it is not defined. Use reverse mode (grad, vjp, jacrev)",
        params["name"].forward and f", or state a rule for forward mode too: {params['name'].forward}",
    )


def _backward(params: Params) -> Program:
    """The transpose.

    Raises:
        MissingRule: only the map is given, and it is not linear.
    """
    if params["backward"] is not None:
        return params["backward"]
    return _transposed_if_linear(
        params["residuals"],
        params["forward"],
        f"the jvp rule of {params['name']} is not linear in the tangents",
        "Reverse mode is its transpose, so it is not defined. Use forward mode (jvp, jacfwd)",
        params["name"].reverse and f", or state a rule for reverse mode too: {params['name'].reverse}",
    )


def _transposed_if_linear(known: int, program: Program, what: str, why: str, advice: str | None) -> Program:
    problem = nonlinearity(program, _behind(known, program))
    if problem is not None:
        line = "" if problem.eqn is None else at_line(problem.eqn.line)
        raise MissingRule(f"{what}: {problem.what}{line}\n  {why}{advice or ''}")
    return _transposed(program, known)
