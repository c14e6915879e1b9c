"""transpose: a program that is linear in some inputs -> the program of the transposed linear map.

It walks the linear equations backwards.  Cotangents of a variable that is used several times are added; None stands
for a zero cotangent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..base.source import at_line, attributed_to
from ..core.program import Atom, Const, Eqn, Program, ProgramError, Var, literal
from ..core.tape import Tape
from ..core.trace import Builder, Tracer, building
from ..ops.accumulation import sum_of_cotangents
from ..ops.shapes import StructuralPrimitive
from .choices import with_choices_last

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
    key = ("transpose", linear, active, wanted)
    return program.derive(key, lambda: _transpose(program, linear, active, wanted))


def _transpose(program: Program, linear: Flags, out_active: Flags, wanted: Flags) -> Transpose:
    other = [v for v, is_linear in zip(program.inputs, linear, strict=True) if not is_linear]
    targets = [v for v, is_linear in zip(program.inputs, linear, strict=True) if is_linear]
    ct_types = [t for t, a in zip(program.out_types, out_active, strict=True) if a]
    builder = Builder(Tape([*other, *ct_types], program.eqns))
    with building(builder):
        inputs = builder.inputs()
        known: dict[Var, Tracer] = dict(zip(other, inputs, strict=False))
        cotangents: dict[Var, Tracer] = {}
        linear_eqns, same = _run_known(builder, program, set(targets), known)
        given = iter(inputs[len(other) :])
        for atom, is_active in zip(program.outputs, out_active, strict=True):
            if is_active:
                _add(cotangents, same.get(atom, atom), next(given))
        for eqn in reversed(linear_eqns):
            outs = [cotangents.pop(v, None) for v in eqn.outputs]
            if all(ct is None for ct in outs):
                continue
            operands = [Tracer(builder, a) if isinstance(a, Const) else known.get(a, a.type) for a in eqn.operands]
            with attributed_to(eqn.line):
                cts = outs if eqn.primitive.multiple_results else outs[0]
                results = eqn.primitive.transpose(cts, operands, **eqn.params)
                for atom, ct in zip(eqn.operands, results, strict=True):
                    if ct is not None:
                        if ct.atom.type is not atom.type:
                            raise ProgramError(
                                f"the transpose rule of {eqn.primitive.name} gives a cotangent {ct.type} for an "
                                f"operand {atom.type}{at_line(eqn.line)}"
                            )
                        _add(cotangents, same.get(atom, atom), ct)
        found = [
            Tracer(builder, literal(0, v.type)) if v not in cotangents and w else cotangents.get(v)
            for v, w in zip(targets, wanted, strict=True)
        ]
        turned = builder.finish([ct for ct in found if ct is not None], f"transpose({program.name})")
    is_cotangent = (False,) * len(other) + (True,) * len(ct_types)
    return Transpose(with_choices_last(turned, is_cotangent, forward=False), tuple(ct is not None for ct in found))


def _run_known(
    builder: Builder, program: Program, linear: set[Var], known: dict[Var, Tracer]
) -> tuple[list[Eqn], dict[Atom, Atom]]:
    """Record the equations that do not depend on linear inputs; return the others.

    An equation that moves the same elements as an earlier one is left out; a dictionary maps its variables to those of
    the earlier one.  So for a function that unpacks its parameters in each of many calls, the cotangents of each
    parameter are added, instead of arrays of all parameters.
    """
    linear_eqns: list[Eqn] = []
    firsts: dict[Any, Eqn] = {}
    same: dict[Atom, Atom] = {}
    for eqn in program.eqns:
        if any(isinstance(a, Var) and a in linear for a in eqn.operands):
            linear.update(eqn.outputs)
            if isinstance(eqn.primitive, StructuralPrimitive):
                key = (eqn.primitive, *[same.get(a, a) for a in eqn.operands], *eqn.params.items())
                first = firsts.setdefault(key, eqn)
                if first is not eqn:
                    same.update(zip(eqn.outputs, first.outputs, strict=True))
                    continue
            linear_eqns.append(eqn)
            continue
        operands = [Tracer(builder, a) if isinstance(a, Const) else known[a] for a in eqn.operands]
        known.update(zip(eqn.outputs, builder.repeat(eqn, operands), strict=True))
    return linear_eqns, same


def _add(cotangents: dict[Var, Tracer], atom: Atom, ct: Tracer) -> None:
    if isinstance(atom, Var):
        before = cotangents.get(atom)
        cotangents[atom] = ct if before is None else sum_of_cotangents(before, ct)
