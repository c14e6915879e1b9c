"""split: a program -> the part that some inputs determine (known), and the rest (unknown).

Reverse mode needs it: the known part of a jvp program computes the values, and the unknown part is linear in the
tangents.  Values of the known part that the unknown part needs are the *residuals*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.primitive import Primitive
from ..core.program import Atom, Eqn, Params, Program, Var, needed_eqns
from ..core.types import ArrayType

Flags = tuple[bool, ...]


class Split(NamedTuple):
    """Two programs that together are equivalent to one.

    Attributes:
        known: takes the known inputs; returns the known outputs, then the residuals.
        unknown: takes the residuals, then the unknown inputs; returns the unknown outputs.
        out_unknown: which of the original outputs are unknown.
    """

    known: Program
    unknown: Program
    out_unknown: Flags

    @property
    def residual_count(self) -> int:
        """How many residuals there are."""
        return len(self.known.outputs) - self.out_unknown.count(False)


class Residual(NamedTuple):
    """Stands for a residual among the operands of the unknown half of a split equation."""

    position: int


class Result(NamedTuple):
    """Stands for a known result (by its index among all results), as an operand of the unknown half."""

    position: int


class SplitEqn(NamedTuple):
    """How an equation with sub-programs divides: what a primitive's `split` rule returns.

    Attributes:
        known: primitive of the known half.
        known_params: its parameters; its results are the known results, then residuals.
        known_operands: which operands of the equation it takes.
        unknown: primitive of the unknown half; its results are the unknown results, then unused ones.
        unknown_params: its parameters.
        unknown_operands: which operands (by index), residuals or known results it takes.
        residual_types: types of the residuals.
        out_unknown: which results are unknown.
    """

    known: Primitive
    known_params: Params
    known_operands: Sequence[int]
    unknown: Primitive
    unknown_params: Params
    unknown_operands: Sequence[int | Residual | Result]
    residual_types: Sequence[ArrayType]
    out_unknown: Flags


def split(program: Program, unknown: Flags, wanted: Flags | None = None) -> Split:
    """Split `program` by which of its inputs are unknown.

    Args:
        program: the program.
        unknown: which inputs are unknown.
        wanted: which outputs count as unknown even where they are known; none by default.
    """
    wanted = wanted if wanted is not None else (False,) * len(program.outputs)
    return program.derive(("split", unknown, wanted), lambda: _split(program, unknown, wanted))


def _split(program: Program, unknown: Flags, wanted: Flags) -> Split:
    unknown_vars: set[Var] = {v for v, u in zip(program.inputs, unknown, strict=True) if u}
    known_eqns: list[Eqn] = []
    unknown_eqns: list[Eqn] = []
    for eqn in program.eqns:
        flags = tuple(isinstance(a, Var) and a in unknown_vars for a in eqn.operands)
        if not any(flags):
            known_eqns.append(eqn)
            continue
        halves = eqn.primitive.split(flags, [a.type for a in eqn.operands], **eqn.params)
        if halves is None:
            unknown_vars.update(eqn.outputs)
            unknown_eqns.append(eqn)
            continue
        known_eqn, unknown_eqn = _split_eqn(eqn, halves)
        known_eqns.append(known_eqn)
        unknown_eqns.append(unknown_eqn)
        unknown_vars.update(v for v, u in zip(eqn.outputs, halves.out_unknown, strict=True) if u)

    out_unknown = tuple(
        w or (isinstance(a, Var) and a in unknown_vars) for a, w in zip(program.outputs, wanted, strict=True)
    )
    unknown_outputs = [a for a, u in zip(program.outputs, out_unknown, strict=True) if u]
    unknown_eqns = needed_eqns(unknown_eqns, unknown_outputs)
    made = {v for eqn in unknown_eqns for v in eqn.outputs} | unknown_vars
    # A dict, not a set, keeps residuals in order, so that the same trace gives the same program.
    used: dict[Var, None] = {}
    for eqn in unknown_eqns:
        used.update((a, None) for a in eqn.operands if isinstance(a, Var) and a not in made)
    used.update((a, None) for a in unknown_outputs if isinstance(a, Var) and a not in made)
    residuals = list(used)
    known_inputs = [v for v, u in zip(program.inputs, unknown, strict=True) if not u]
    unknown_inputs = [v for v, u in zip(program.inputs, unknown, strict=True) if u]
    known_outputs = [a for a, u in zip(program.outputs, out_unknown, strict=True) if not u]
    outputs: list[Atom] = [*known_outputs, *residuals]
    return Split(
        Program(f"known({program.name})", known_inputs, needed_eqns(known_eqns, outputs), outputs),
        Program(f"unknown({program.name})", [*residuals, *unknown_inputs], unknown_eqns, unknown_outputs),
        out_unknown,
    )


def _split_eqn(eqn: Eqn, halves: SplitEqn) -> tuple[Eqn, Eqn]:
    residuals = [Var(t) for t in halves.residual_types]
    known_outputs = [v for v, u in zip(eqn.outputs, halves.out_unknown, strict=True) if not u]
    unknown_outputs = [v for v, u in zip(eqn.outputs, halves.out_unknown, strict=True) if u]

    def operand(i: int | Residual | Result) -> Atom:
        if isinstance(i, int):
            return eqn.operands[i]
        return residuals[i.position] if isinstance(i, Residual) else eqn.outputs[i.position]

    operands = tuple(operand(i) for i in halves.unknown_operands)
    types = halves.unknown.output_types([a.type for a in operands], halves.unknown_params)
    unneeded = [Var(t) for t in types[len(unknown_outputs) :]]
    known = Eqn(
        halves.known,
        tuple(eqn.operands[i] for i in halves.known_operands),
        halves.known_params,
        (*known_outputs, *residuals),
        eqn.line,
    )
    unknown = Eqn(
        halves.unknown,
        operands,
        halves.unknown_params,
        (*unknown_outputs, *unneeded),
        eqn.line,
    )
    return known, unknown
