"""transpose: a program that is linear in some inputs -> the program of the transposed linear map.

It walks the linear equations backwards.  Cotangents of a variable that is used several times are added; a
cotangent that is zero is absent.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.program import Atom, Const, Eqn, Program, ProgramError, Var, literal
from ..core.source import at_line, attributed_to
from ..core.trace import Builder, Tracer, building
from ..ops.elementwise import add

Flags = tuple[bool, ...]


class Transpose(NamedTuple):
    """The transposed program, and which linear inputs get a cotangent.

    Its inputs are the other inputs of the original, then a cotangent for each active output; its outputs are the
    cotangents of linear inputs that are not zero.
    """

    program: Program
    in_active: Flags


def transpose(
    program: Program, linear: Flags, out_active: Flags | None = None, wanted: Flags | None = None
) -> Transpose:
    """Transpose `program`, which is linear in the inputs flagged in `linear`.

    Args:
        program: the program.
        linear: which inputs it is linear in.
        out_active: which outputs have a cotangent; all by default.
        wanted: which linear inputs get a cotangent even where it is zero; none by default.
    """
    active = out_active if out_active is not None else (True,) * len(program.outputs)
    wanted = wanted if wanted is not None else (False,) * linear.count(True)
    return program.derive(("transpose", linear, active, wanted), lambda: _transpose(program, linear, active, wanted))


def _transpose(program: Program, linear: Flags, out_active: Flags, wanted: Flags) -> Transpose:
    other = [v for v, is_linear in zip(program.inputs, linear, strict=True) if not is_linear]
    targets = [v for v, is_linear in zip(program.inputs, linear, strict=True) if is_linear]
    ct_types = [t for t, a in zip(program.out_types, out_active, strict=True) if a]
    builder = Builder([*(v.type for v in other), *ct_types])
    with building(builder):
        inputs = builder.inputs()
        known: dict[Var, Tracer] = dict(zip(other, inputs, strict=False))
        cotangents: dict[Var, Tracer] = {}
        linear_eqns = _run_known(builder, program, set(targets), known)
        given = iter(inputs[len(other) :])
        for atom, is_active in zip(program.outputs, out_active, strict=True):
            if is_active:
                _accumulate(cotangents, atom, next(given))
        for eqn in reversed(linear_eqns):
            outs = [cotangents.pop(v, None) for v in eqn.outputs]
            if all(ct is None for ct in outs):
                continue
            operands = [Tracer(builder, a) if isinstance(a, Const) else known.get(a, a.type) for a in eqn.operands]
            with attributed_to(eqn.line):
                results = eqn.primitive.transpose(
                    outs if eqn.primitive.multiple_results else outs[0], operands, **eqn.params
                )
                for atom, ct in zip(eqn.operands, results, strict=True):
                    if ct is not None:
                        _check(eqn, atom, ct)
                        _accumulate(cotangents, atom, ct)
        results = [
            Tracer(builder, literal(0, v.type)) if v not in cotangents and w else cotangents.get(v)
            for v, w in zip(targets, wanted, strict=True)
        ]
        kept = [ct for ct in results if ct is not None]
        return Transpose(builder.finish(kept, f"transpose({program.name})"), tuple(ct is not None for ct in results))


def _run_known(builder: Builder, program: Program, linear: set[Var], known: dict[Var, Tracer]) -> list[Eqn]:
    """Record the equations that do not depend on linear inputs; return the others."""
    linear_eqns: list[Eqn] = []
    for eqn in program.eqns:
        if any(isinstance(a, Var) and a in linear for a in eqn.operands):
            linear.update(eqn.outputs)
            linear_eqns.append(eqn)
            continue
        operands = [Tracer(builder, a) if isinstance(a, Const) else known[a] for a in eqn.operands]
        known.update(zip(eqn.outputs, builder.repeat(eqn, operands), strict=True))
    return linear_eqns


def _accumulate(cotangents: dict[Var, Tracer], atom: Atom, ct: Tracer) -> None:
    if isinstance(atom, Var):
        before = cotangents.get(atom)
        cotangents[atom] = ct if before is None else add(before, ct)


def _check(eqn: Eqn, atom: Atom, ct: Tracer) -> None:
    if ct.type is not atom.type:
        raise ProgramError(
            f"the transpose rule of {eqn.primitive.name} gives a cotangent {ct.type} for an operand {atom.type}"
            + at_line(eqn.line)
        )
