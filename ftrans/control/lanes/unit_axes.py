"""Unit axes: axes of size 1, which elementwise functions do not need, and XLA does not vectorize across on a CPU.

Where a kernel mixes arrays of shapes (n,) and (n, 1), XLA computes one element at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.program import Atom, Const, Eqn, Program, Var
from ...core.types import ArrayType
from ...ops.elementwise.family import Elementwise
from ...ops.shapes import reshape


def without_unit_axes(program: Program) -> Program:
    """The program, which is about to be compiled, with elementwise functions applied to arrays without unit axes."""
    return program.derive("without unit axes", lambda: _Squeezing().squeezed(program))


class _Squeezing:
    """A program that is written.

    Attributes:
        eqns: its equations.
        squeezed_form: values of the old program, without their unit axes.
        missing: those of which there is only this form.
    """

    def __init__(self) -> None:
        self.eqns: list[Eqn] = []
        self.squeezed_form: dict[Atom, Atom] = {}
        self.missing: set[Var] = set()

    def squeezed(self, program: Program) -> Program:
        for eqn in program.eqns:
            type = eqn.outputs[0].type
            if isinstance(eqn.primitive, Elementwise) and 1 in type.shape and type.size > 1:
                result = Var(_without(type))
                operands = [self._squeeze(a) for a in eqn.operands]
                self.eqns.append(Eqn(eqn.primitive, tuple(operands), eqn.params, (result,), eqn.line))
                self._put(eqn.outputs[0], result)
            elif eqn.primitive is reshape and type.size > 1 and _without(type) == _without(eqn.operands[0].type):
                self._put(eqn.outputs[0], self._squeeze(eqn.operands[0]))
            else:
                operands = self._whole(eqn.operands)
                self.eqns.append(Eqn(eqn.primitive, tuple(operands), eqn.params, eqn.outputs, eqn.line))
        outputs = self._whole(program.outputs)
        return Program(program.name, program.inputs, self.eqns, outputs)

    def _put(self, old: Var, new: Atom) -> None:
        self.squeezed_form[old] = new
        self.missing.add(old)

    def _whole(self, atoms: Sequence[Atom]) -> list[Atom]:
        """The values with their unit axes."""
        found = []
        for a in atoms:
            form = self.squeezed_form.get(a)
            if form is not None and form.type == a.type:
                a = form
            elif isinstance(a, Var) and form is not None and a in self.missing:
                self.missing.remove(a)
                self.eqns.append(Eqn(reshape, (form,), {"shape": a.type.shape}, (a,), None))
            found.append(a)
        return found

    def _squeeze(self, a: Atom) -> Atom:
        form = self.squeezed_form.get(a)
        if form is None:
            type = _without(a.type)
            if type == a.type:
                return a
            if isinstance(a, Const) and a.is_splat:
                return Const(a.value, type)
            form = self.squeezed_form[a] = Var(type)
            self.eqns.append(Eqn(reshape, (a,), {"shape": type.shape}, (form,), None))
        return form


def _without(type: ArrayType) -> ArrayType:
    return type.with_shape(tuple(n for n in type.shape if n != 1))
