"""Value numbering: finds values that are equal in programs that were made in different ways."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ...core.program import Atom, Program, Var


class ValueNumbers:
    """Numbers for values: values with the same number are results of equal operations on equal operands."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._programs: dict[Program, Hashable] = {}

    def number(self, key: Hashable) -> int:
        """The number of the value that `key` describes."""
        return self._numbers.setdefault(key, len(self._numbers))

    def of_outputs(self, program: Program, inputs: Sequence[int]) -> list[int]:
        """The numbers of the outputs of a program, given those of its inputs."""
        values: dict[Var, int] = dict(zip(program.inputs, inputs, strict=True))

        def value(atom: Atom) -> int:
            return values[atom] if isinstance(atom, Var) else self.number(atom)

        for eqn in program.eqns:
            params = [(name, self._param(p)) for name, p in eqn.params.items()]
            whole = self.number((eqn.primitive, *map(value, eqn.operands), *params))
            for index, var in enumerate(eqn.outputs):
                values[var] = self.number(("result", whole, index))
        return [value(a) for a in program.outputs]

    def _param(self, param: Any) -> Hashable:
        if isinstance(param, tuple):
            return tuple(map(self._param, param))
        if not isinstance(param, Program):
            return param
        if param not in self._programs:
            inputs = [self.number(("input", i, t)) for i, t in enumerate(param.in_types)]
            self._programs[param] = ("program", param.in_types, *self.of_outputs(param, inputs))
        return self._programs[param]
