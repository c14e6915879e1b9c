"""simplify: a program -> a shorter program with the same meaning.

A forward pass applies each primitive's `simplify` rule and the table of rewrites, folds constants and shares common
subexpressions; a backward pass removes dead code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.source import Line, attributed_to
from ..core.interpret import interpret
from ..core.primitive import Primitive, ProgramCall
from ..core.program import Atom, Const, Eqn, Params, Program, literal
from ..core.tape import Tape
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType, is_inexact
from ..ops.elementwise import Elementwise, singular_slope
from ..ops.literals import splat
from ..rewrites import table
from ..rewrites.rule import Operands, Stage, users_of

# Constant expressions with results of up to this many elements are evaluated.
_FOLDED_SIZE = 256
# A rule may record an equation that another rule can simplify.  In long programs this is left to XLA.
_SHORT = 500
_MOST_PASSES = 8


def simplify(program: Program) -> Program:
    """Simplify `program`, which is about to run.  Its inputs, outputs and their types stay the same."""
    return program.derive("simplify", lambda: _simplify(program))


def condense(program: Program) -> Program:
    """Simplify `program` before further transformations: equations that only matter to derivatives stay in it."""
    return program.derive("condense", lambda: without_dead_code(_rewrite(program, is_final=False)[0]))


def for_differentiation(program: Program) -> Program:
    """Condense `program` and rewrite it so that its derivatives are cheaper."""
    return program.derive("for differentiation", lambda: _rewritten(condense(program), Stage.DIFFERENTIATED))


def for_compiler(program: Program) -> Program:
    """Simplify `program`, which XLA is about to compile, and reorder what is cheaper in another order."""
    return program.derive("for compiler", lambda: _rewritten(simplify(program), Stage.COMPILED))


def _rewritten(program: Program, stage: Stage) -> Program:
    if not table.has_rules_for(program, stage):
        return program
    is_final = stage is Stage.COMPILED
    rewritten, _ = _rewrite(program, is_final, stage)
    if rewritten.eqns == program.eqns:
        return program
    short = without_dead_code(rewritten)
    return simplify(short) if is_final else short


def _simplify(program: Program) -> Program:
    for _ in range(_MOST_PASSES):
        rewritten, changed = _rewrite(program)
        program = without_dead_code(rewritten)
        # Equations whose sub-programs have lost results are simplified together with their neighbours.
        if not changed and set(program.eqns) <= set(rewritten.eqns):
            break
    program.derived["simplify"] = program
    return program


def without_dead_code(program: Program) -> Program:
    """`program` without equations, and parts of equations, that no output needs."""
    needed = set(program.outputs)
    kept: list[Eqn] = []
    for eqn in reversed(program.eqns):
        used = [v in needed for v in eqn.outputs]
        if True in used:
            if False in used:
                eqn = eqn.primitive.prune(eqn, used)
            kept.append(eqn)
            needed.update(eqn.operands)
    return Program(program.name, program.inputs, kept[::-1], program.outputs)


class Sharing(Builder):
    """A builder that records no equation twice, whether it comes from the program or from a rule.

    Attributes:
        known: results, by operation and operands.
        line: the line of the equation that is simplified.
    """

    def __init__(self, tape: Tape | Sequence[ArrayType]) -> None:
        super().__init__(tape)
        self.known: dict[Any, list[Tracer]] = {}
        self.line: Line | None = None

    def record(
        self, primitive: Primitive, operands: Sequence[Any], params: Params, line: Line | None = None
    ) -> list[Tracer]:
        key = operation(primitive, [self.atom(x) for x in operands], params)
        results = self.known.get(key)
        if results is None:
            results = self.known[key] = super().record(primitive, operands, params, line or self.line)
        return results

    def repeat(self, eqn: Eqn, operands: Sequence[Any]) -> list[Tracer]:
        key = operation(eqn.primitive, [self.atom(x) for x in operands], eqn.params)
        results = self.known.get(key)
        if results is None:
            results = self.known[key] = super().repeat(eqn, operands)
        return results

    def constant(self, array: Any) -> Tracer:
        """A known array as a part of the program; equal arrays are one constant."""
        type = ArrayType(array.shape, array.dtype)
        bits = array.tobytes()
        # Zeros of different sign are equal, but not the same number.
        if array.size and bits == bits[: array.itemsize] * array.size:
            return Tracer(self, literal(array.flat[0], type))
        key = ("constant", type, bits)
        if key not in self.known:
            self.known[key] = [Tracer(self, Const(array, type))]
        return self.known[key][0]


def operation(primitive: Primitive, atoms: list[Atom], params: Params) -> Any:
    """A key that is the same for the same operation on the same operands."""
    if isinstance(primitive, Elementwise) and primitive.commutes and atoms[0].type.dtype.kind in "bfiu":
        atoms.sort(key=id)
    return (primitive, *atoms, *params.items())


def _rewrite(program: Program, is_final: bool = True, stage: Stage = Stage.ANY) -> tuple[Program, bool]:
    """The rewritten program, and whether another pass may simplify it further."""
    is_short = len(program.eqns) <= _SHORT
    builder = Sharing(Tape(program.inputs, program.eqns))
    changed: list[Eqn] = []
    rules = table.rules[stage]
    users_before: Counter[Atom] = Counter() if stage is Stage.ANY else users_of(program)
    users: Counter[Atom] = Counter()

    def apply(eqn: Eqn, operands: list[Tracer]) -> Sequence[Tracer]:
        key = operation(eqn.primitive, [x.atom for x in operands], eqn.params)
        results = builder.known.get(key)
        if results is None:
            results = builder.known[key] = simplified(eqn, operands)
        if users_before:
            for var, x in zip(eqn.outputs, results, strict=True):
                users[x.atom] += users_before[var]
        return results

    def simplified(eqn: Eqn, operands: list[Tracer]) -> list[Tracer]:
        if is_final or not _is_left_whole(eqn.primitive, operands):
            simpler = several(eqn, operands) if eqn.primitive.multiple_results else single(eqn, operands)
            if simpler is not None:
                return simpler
        same = builder.tape.repeat(eqn, [x.atom for x in operands])
        return [Tracer(builder, v) for v in same.outputs]

    def several(eqn: Eqn, operands: list[Tracer]) -> list[Tracer] | None:
        with attributed_to(eqn.line):
            simpler = eqn.primitive.simplify(operands, **eqn.params)
        if simpler is None:
            return None
        changed.append(eqn)
        return list(simpler)

    def single(eqn: Eqn, operands: list[Tracer]) -> list[Tracer] | None:
        count = len(builder.tape.eqns())
        builder.line = eqn.line
        simpler = eqn.primitive.simplify(operands, **eqn.params)
        if simpler is None:
            for rule in rules.get(eqn.primitive, ()):
                simpler = rule.apply(Operands(operands, users), eqn.params)
                if simpler is not None:
                    break
        if simpler is None:
            folded = _fold(eqn, operands)
            return None if folded is None else [Tracer(builder, folded)]
        if is_short and len(builder.tape.eqns()) > count:
            changed.append(eqn)
        return [simpler]

    with building(builder):
        outs = interpret(program, builder.inputs(), apply, lambda const: Tracer(builder, const))
        rewritten = builder.finish(outs, program.name)
    # Break the cycle with its tracers, so that both are freed without the garbage collector.
    builder.known.clear()
    return rewritten, bool(changed)


def _is_left_whole(primitive: Primitive, operands: Sequence[Tracer]) -> bool:
    """Whether an equation of a primitive stays as it is before further transformations."""
    if primitive is singular_slope:
        # No zero can be put into a number such as 1, the cotangent that a gradient begins with.
        return not splat(operands[0])
    return primitive.multiple_results and not isinstance(primitive, ProgramCall)


def _fold(eqn: Eqn, operands: Sequence[Tracer]) -> Const | None:
    """The constant that an equation of constants computes, or None."""
    consts = [x.atom for x in operands if isinstance(x.atom, Const)]
    if len(consts) < len(operands):
        return None
    type = eqn.outputs[0].type
    splats = bool(consts) and eqn.primitive.broadcasts and all(c.is_splat for c in consts)
    if not splats and max([type.size, *(c.type.size for c in consts)]) > _FOLDED_SIZE:
        return None
    values = [c.value if splats else c.array() for c in consts]
    try:
        with np.errstate(all="ignore"):
            result = eqn.primitive.numpy(*values, **eqn.params)
    except (ArithmeticError, ValueError, IndexError):
        # Errors are raised when the program runs, with the user's line.
        return None
    # Results that are not finite are not folded either, so that NumPy's warning comes when the program runs.
    return literal(result, type) if not is_inexact(type.dtype) or np.isfinite(result).all() else None
