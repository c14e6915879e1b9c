"""simplify: a program -> a shorter program with the same meaning.

One pass forwards applies each primitive's `simplify` rule, folds constants and shares common subexpressions;
one pass backwards drops what nothing needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.interpret import interpret
from ..core.program import Const, Eqn, Program, Var, literal
from ..core.source import attributed_to
from ..core.trace import Builder, Tracer, building
from ..core.types import is_inexact

# Results of constant expressions up to this many elements are computed once and for all.
_FOLDED_SIZE = 256
# A rule may write an equation that is simple to another rule.  In long programs that is left to XLA.
_SHORT = 500
_MOST_PASSES = 8


def simplify(program: Program) -> Program:
    """Simplify `program`.  Its inputs, outputs and their types stay the same."""
    return program.derive("simplify", lambda: _simplify(program))


def _simplify(program: Program) -> Program:
    for _ in range(_MOST_PASSES):
        rewritten, changed = _rewrite(program)
        program = without_dead_code(rewritten)
        # Equations with sub-programs that lost results have yet to meet those around them.
        if not changed and set(program.eqns) <= set(rewritten.eqns):
            break
    program.derived["simplify"] = program
    return program


def without_dead_code(program: Program) -> Program:
    """`program` without the equations that no output needs, and without the parts of equations that nothing needs."""
    needed = {a for a in program.outputs if isinstance(a, Var)}
    kept: list[Eqn] = []
    for eqn in reversed(program.eqns):
        used = [v in needed for v in eqn.outputs]
        if any(used):
            if not all(used):
                eqn = eqn.primitive.prune(eqn, used)
            kept.append(eqn)
            needed.update(a for a in eqn.operands if isinstance(a, Var))
    return Program(program.name, program.inputs, kept[::-1], program.outputs)


def _rewrite(program: Program) -> tuple[Program, bool]:
    """The rewritten program, and whether another pass is worth its time."""
    is_short = len(program.eqns) <= _SHORT
    builder = Builder(program.in_types)
    known: dict[Any, Sequence[Tracer]] = {}
    changed: list[Eqn] = []

    def apply(eqn: Eqn, operands: list[Tracer]) -> Sequence[Tracer]:
        if eqn.primitive.multiple_results:
            return apply_with_programs(eqn, operands)
        count = len(builder.eqns())
        with attributed_to(eqn.line):
            simpler = eqn.primitive.simplify(operands, **eqn.params)
        if simpler is not None:
            if is_short and len(builder.eqns()) > count:
                changed.append(eqn)
            return [simpler]
        folded = _fold(eqn, operands)
        if folded is not None:
            return [Tracer(builder, folded)]
        key = (eqn.primitive, *[x.atom for x in operands], *eqn.params.items())
        results = known.get(key)
        if results is None:
            results = known[key] = builder.repeat(eqn, operands)
        return results

    def apply_with_programs(eqn: Eqn, operands: list[Tracer]) -> Sequence[Tracer]:
        key = (eqn.primitive, *[x.atom for x in operands], *eqn.params.items())
        results = known.get(key)
        if results is None:
            with attributed_to(eqn.line):
                results = eqn.primitive.simplify(operands, **eqn.params)
            if results is None:
                results = builder.repeat(eqn, operands)
            else:
                changed.append(eqn)
            known[key] = results
        return results

    with building(builder):
        outs = interpret(program, builder.inputs(), apply, lambda const: Tracer(builder, const))
        return builder.finish(outs, program.name), bool(changed)


def _fold(eqn: Eqn, operands: Sequence[Tracer]) -> Const | None:
    """The constant that an equation of constants computes, or None."""
    consts = []
    for x in operands:
        if not isinstance(x.atom, Const):
            return None
        consts.append(x.atom)
    type = eqn.outputs[0].type
    splats = bool(consts) and eqn.primitive.broadcasts and all(c.is_splat for c in consts)
    if not splats and max([type.size, *(c.type.size for c in consts)]) > _FOLDED_SIZE:
        return None
    values = [c.value if splats else c.array() for c in consts]
    try:
        with np.errstate(all="ignore"):
            result = eqn.primitive.numpy(*values, **eqn.params)
    except (ArithmeticError, ValueError, IndexError):
        # What cannot be computed is reported when the program runs, at the user's line.
        return None
    # So is what is not finite.
    return literal(result, type) if not is_inexact(type.dtype) or np.isfinite(result).all() else None
