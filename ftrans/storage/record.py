"""A program as plain data: lists, dictionaries with strings for keys, strings, integers and None.

What equations share, such as types, constants and lines, is in tables, and referred to by its number.  A program comes
behind those that its equations hold, so that it can refer to them by theirs.  In an equation, an operand is the number
of a variable, counted through inputs and results, or `"c"` and the number of a constant.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..base import tree
from ..base.source import Line
from ..base.storable import INPUT_NAMES
from ..control.rules.custom_rule import Rule
from ..core.primitive import Primitive
from ..core.program import Atom, Const, Eqn, Program, Var
from ..core.types import ArrayType
from ..spectral.limit_series import SeriesOf
from .names import is_storable, name_of_primitive, primitives, records

VERSION = 1

Refusal = Callable[[Any, str, Eqn], Any]


class Writer:
    """Writes programs into tables.

    Attributes:
        tables: the tables.

    Args:
        other: what becomes of a value that plain data cannot express, given with a description and its equation.
        keep: what becomes of the array of a constant; text by default.
    """

    def __init__(self, other: Refusal, keep: Callable[[Any], Any] | None = None) -> None:
        self.tables: dict[str, list[Any]] = {
            name: [] for name in ("types", "primitives", "constants", "lines", "rules", "programs")
        }
        self._places: dict[Hashable, int] = {}
        self._kept: list[Any] = []
        self._other = other
        self._keep = keep or text_of_array

    def program(self, program: Program) -> int:
        """Write a program; return its number."""
        known = self._places.get(("programs", id(program)))
        if known is not None:
            return known
        numbers: dict[Any, int] = {v: i for i, v in enumerate(program.inputs)}
        equations = []
        for eqn in program.eqns:
            operands = [self._operand(a, numbers) for a in eqn.operands]
            params = {name: self._param(value, name, eqn) for name, value in eqn.params.items()}
            results = [self._type(v.type) for v in eqn.outputs]
            numbers.update((v, len(numbers)) for v in eqn.outputs)
            equations.append([self._primitive(eqn.primitive, eqn), operands, params, results, self._line(eqn.line)])
        written = {
            "name": program.name,
            "inputs": [self._type(t) for t in program.in_types],
            "equations": equations,
            "outputs": [self._operand(a, numbers) for a in program.outputs],
        }
        if INPUT_NAMES in program.derived:
            written["names"] = list(program.derived[INPUT_NAMES])
        return self._put("programs", id(program), written, program)

    def _put(self, table: str, key: Hashable, row: Any, kept: Any = None) -> int:
        """The number of a row, which is written once for each key; what the key is the address of is kept alive."""
        place = self._places.get((table, key))
        if place is None:
            place = self._places[table, key] = len(self.tables[table])
            self.tables[table].append(row)
            self._kept.append(kept)
        return place

    def _operand(self, atom: Atom, numbers: dict[Any, int]) -> int | str:
        return numbers[atom] if isinstance(atom, Var) else f"c{self._constant(atom)}"

    def _constant(self, const: Const) -> int:
        known = self._places.get(("constants", id(const)))
        if known is not None:
            return known
        is_splat = const.is_splat
        row = {"type": self._type(const.type), "splat": is_splat, "data": self._keep(np.asarray(const.value))}
        return self._put("constants", id(const), row, const)

    def _type(self, type: ArrayType) -> int:
        if not is_storable(type.dtype):
            raise TypeError(
                f"the program has arrays of dtype {type.dtype}, which cannot be written down: it holds Python objects, "
                f"or differs between machines"
            )
        return self._put("types", type, [type.dtype.name, list(type.shape)])

    def _line(self, line: Line | None) -> int | None:
        if line is None:
            return None
        row = [line.filename, line.number, line.text, line.expression, line.scope, line.derivative_of, line.order]
        return self._put("lines", id(line), row, line)

    def _primitive(self, primitive: Primitive, eqn: Eqn) -> int:
        name = name_of_primitive(primitive)
        row = name if primitives().get(name) is primitive else self._other(primitive, "the primitive", eqn)
        return self._put("primitives", primitive, row)

    def _rule(self, rule: Rule, name: str, eqn: Eqn) -> int:
        row: dict[str, Any] = {}
        known = self._places.get(("rules", id(rule)))
        if known is not None:
            return known
        number = self._put("rules", id(rule), row, rule)
        row.update(name=self._param(rule.name, name, eqn), primal=self.program(rule.primal), covered=rule.covered)
        row["stated"] = None if rule.stated is None else [self._param(p, name, eqn) for p in rule.stated]
        return number

    def _param(self, value: Any, name: str, eqn: Eqn) -> Any:
        cls = type(value)
        if value is None or cls in (bool, int, str):
            return value
        if cls is float:
            return {"float": value.hex()}
        if cls is tuple:
            return [self._param(x, name, eqn) for x in value]
        if cls is Program:
            return {"program": self.program(value)}
        if isinstance(value, np.dtype) and is_storable(value):
            return {"dtype": value.name}
        if cls is ArrayType:
            return {"type": self._type(value)}
        if cls is SeriesOf:
            return {"series": self._param(value.origin, name, eqn)}
        if cls is Rule:
            return {"rule": self._rule(value, name, eqn)}
        if isinstance(value, Primitive):
            return {"primitive": self._primitive(value, eqn)}
        if records().get(cls.__name__) is cls:
            return {"record": cls.__name__, "fields": [self._param(x, name, eqn) for x in value]}
        if name == "structure" and (value is tree.LEAF or _is_plain(value)):
            return {"structure": None if value is tree.LEAF else _skeleton(value.unflatten(range(value.num_leaves)))}
        return self._other(value, name, eqn)


def text_of_array(array: Any) -> str:
    """The bytes of an array as text, the least significant of each number first."""
    if array.dtype.name == "bfloat16":
        array = array.view(np.uint16)
    return base64.b64encode(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()).decode()


def _skeleton(container: Any) -> Any:
    """A container of Python's own classes with a number for each leaf, as plain data."""
    if type(container) is dict:
        return {"dict": [[k, _skeleton(v)] for k, v in container.items()]}
    if type(container) in (list, tuple):
        return {type(container).__name__: [_skeleton(x) for x in container]}
    return container


def _is_plain(structure: Any) -> bool:
    """Whether a structure consists of dictionaries with strings for keys, lists, tuples and None."""

    def check(x: Any) -> bool:
        if type(x) is dict:
            return all(type(k) is str and check(v) for k, v in x.items())
        if type(x) in (list, tuple):
            return all(map(check, x))
        return x is None or type(x) is int

    return hasattr(structure, "num_leaves") and check(structure.unflatten(range(structure.num_leaves)))
