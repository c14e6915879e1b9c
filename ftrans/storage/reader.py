"""Programs from plain data, which may be damaged or hostile: whatever is not as expected is a ValueError.

Nothing is executed but type rules of ftrans's primitives, and nothing is looked up but in the tables of `names`.
"""

from __future__ import annotations

import base64
import binascii
import inspect
import keyword
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..base import tree
from ..base.source import Line, RecordedLine, at_line, user_line
from ..base.storable import INPUT_NAMES
from ..control.rules.custom_rule import Derivatives, Rule
from ..control.rules.linear_call import Name
from ..core.primitive import MissingRule, Primitive
from ..core.program import Atom, Const, Eqn, Program, Var, literal
from ..core.types import ArrayType
from ..spectral.decomposition import Decomposition
from ..spectral.limit_series import series_from
from .names import dtype_named, primitives, records

# More axes than NumPy's arrays can have, and more bytes than can be addressed.
_MOST_AXES, _MOST_BYTES = 64, 2**63
# Arrays with so few elements are made the same object wherever they occur, as in a trace.
_SMALL = 8


class Reader:
    """Reads the programs of some tables.

    Args:
        tables: the tables.
        kept: gives the value that stands where the writer's `other` was asked; by default there is none.
    """

    def __init__(self, tables: dict[str, Any], kept: Callable[[Any], Any] | None = None) -> None:
        self._kept = kept
        self._series: dict[Any, Any] = {}
        self._types = [self._type(row) for row in _rows(tables, "types")]
        self._primitives = [self._primitive(row) for row in _rows(tables, "primitives")]
        self._constants = [self._constant(row) for row in _rows(tables, "constants")]
        self._lines = [_line(row) for row in _rows(tables, "lines")]
        self._rule_rows = _rows(tables, "rules")
        self._rules: dict[int, Rule] = {}
        self.programs: list[Program] = []
        for number, row in enumerate(_rows(tables, "programs")):
            try:
                self.programs.append(self._program(row))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"program {number} is wrong: {error}") from None
        require(bool(self.programs), "it holds no program")
        # A rule may call its function, so its programs may hold the rule.
        for number, rule in self._rules.items():
            stated = self._rule_rows[number]["stated"]
            if stated is not None:
                rule.define(Derivatives(*map(self._param, _parts(stated, 3, "what a rule states"))))

    def _type(self, row: Any) -> ArrayType:
        name, shape = _parts(row, 2, "a type")
        dtype = dtype_named(name)
        good = type(shape) is list and len(shape) <= _MOST_AXES and all(type(n) is int and n >= 0 for n in shape)
        require(good, f"{shape!r:.100} is no shape")
        # An axis without elements makes an array small, but not the other axes.
        size = math.prod(max(n, 1) for n in shape) * dtype.itemsize
        require(size < _MOST_BYTES, f"an array of shape {shape!r:.100} does not fit into any memory")
        return ArrayType(tuple(shape), dtype)

    def _primitive(self, row: Any) -> Primitive:
        if type(row) is not str and self._kept is not None:
            found = self._kept(row)
            require(isinstance(found, Primitive), f"{found!r:.100} is no primitive")
            return found
        known = primitives().get(row) if type(row) is str else None
        if known is None:
            raise ValueError(f"{row!r:.100} is no primitive of this version of ftrans")
        return known

    def _constant(self, row: Any) -> Const:
        row = _dictionary(row, ("type", "splat", "data"), "a constant")
        type_ = _numbered(self._types, row["type"], "type")
        require(type(row["splat"]) is bool, "a constant does not say whether it is a single number")
        shape = () if row["splat"] else type_.shape
        if type(row["data"]) is str:
            array = _array(row["data"], ArrayType(shape, type_.dtype))
        else:
            require(self._kept is not None, "the values of a constant are no text")
            assert self._kept is not None
            array = self._kept(row["data"])
            good = isinstance(array, np.ndarray) and (array.shape, array.dtype) == (shape, type_.dtype)
            require(good, f"the values of a constant {type_} are others")
        if row["splat"] or array.size <= _SMALL:
            return literal(array[()], type_)
        array.flags.writeable = False
        return Const(array, type_)

    def _program(self, row: Any) -> Program:
        given = _dictionary(row, ("name", "inputs", "equations", "outputs"), "a program")
        require(type(given["name"]) is str and given["name"].isprintable(), "its name is no text")
        inputs = [Var(_numbered(self._types, t, "type")) for t in _list(given["inputs"], "the inputs")]
        variables = list(inputs)
        equations = []
        for number, equation in enumerate(_list(given["equations"], "the equations")):
            try:
                equations.append(self._equation(equation, variables))
            except ValueError as error:
                raise ValueError(f"equation {number}: {error}") from None
        outputs = [self._operand(a, variables) for a in _list(given["outputs"], "the outputs")]
        program = Program(given["name"], inputs, equations, outputs)
        names = row.get("names")
        if type(names) is list and len(names) == len(inputs) and all(type(n) is str for n in names):
            program.derived[INPUT_NAMES] = tuple(names)
        return program

    def _equation(self, row: Any, variables: list[Var]) -> Eqn:
        name, operands, params, results, line = _parts(row, 5, "an equation")
        primitive = _numbered(self._primitives, name, "primitive")
        atoms = tuple(self._operand(a, variables) for a in _list(operands, "the operands"))
        require(type(params) is dict, "the parameters are no object")
        # They become keywords in generated code, also for primitives that take any.
        bad = [key for key in params if not key.isidentifier() or keyword.iskeyword(key)]
        require(not bad, f"{bad!r:.100} are no names of parameters")
        names = _parameters(primitive)
        if names is not None:
            require(names >= params.keys(), f"{primitive} does not take these parameters: {[*params]!r:.100}")
        values = {key: self._param(value) for key, value in params.items()}
        declared = tuple(_numbered(self._types, t, "type") for t in _list(results, "the results"))
        try:
            found = primitive.output_types([a.type for a in atoms], values)
        except Exception as error:
            raise ValueError(f"{primitive} does not take these operands and parameters: {error}") from None
        require(found == declared, f"the results of {primitive} are {found}, not {declared}")
        outputs = tuple(map(Var, declared))
        variables.extend(outputs)
        return Eqn(primitive, atoms, values, outputs, None if line is None else _numbered(self._lines, line, "line"))

    def _operand(self, row: Any, variables: list[Var]) -> Atom:
        if type(row) is str and row[:1] == "c" and row[1:].isdecimal() and len(row) < 20:
            return _numbered(self._constants, int(row[1:]), "constant")
        return _numbered(variables, row, "variable before its use")

    def _param(self, row: Any) -> Any:
        if row is None or type(row) in (bool, int, str):
            return row
        if type(row) is list:
            return tuple(map(self._param, row))
        require(type(row) is dict and len(row) > 0, f"{row!r:.100} is no parameter")
        kind = next(iter(row))
        value = row[kind]
        match kind:
            case "float":
                return _float(value)
            case "program":
                return _numbered(self.programs, value, "program before its use")
            case "dtype":
                return dtype_named(value)
            case "type":
                return _numbered(self._types, value, "type")
            case "primitive":
                return _numbered(self._primitives, value, "primitive")
            case "rule":
                return self._rule(value)
            case "series":
                return self._series_of(self._param(value))
            case "record":
                return self._record(value, row.get("fields"))
            case "structure":
                return tree.LEAF if value is None else tree.flatten(_container(value))[1]
            case "kept" if self._kept is not None:
                return self._kept(row)
        raise ValueError(f"{kind!r:.100} is no kind of parameter")

    def _record(self, name: Any, fields: Any) -> Any:
        known = records().get(name) if type(name) is str else None
        if known is None:
            raise ValueError(f"{name!r:.100} is no record of this version of ftrans")
        values = [self._param(x) for x in _list(fields, "the fields of a record")]
        require(len(values) == len(known._fields), f"a record {name} has {len(known._fields)} fields")
        return known(*values)

    def _rule(self, number: Any) -> Rule:
        row = _numbered(self._rule_rows, number, "rule")
        if number not in self._rules:
            row = _dictionary(row, ("name", "primal", "covered", "stated"), "a rule")
            name, primal = self._param(row["name"]), _numbered(self.programs, row["primal"], "program before its use")
            require(type(name) is Name and type(row["covered"]) is int, "a rule is damaged")
            make = Rule if row["stated"] else lost_rule
            self._rules[number] = make(name, primal, row["covered"])
        return self._rules[number]

    def _series_of(self, origin: Any) -> Any:
        decompositions, rest, strict, batches = _parts(origin, 4, "a series", tuple)
        good = type(decompositions) is tuple and all(isinstance(p, Decomposition) for p in decompositions)
        good = good and type(rest) is Program and type(strict) is bool and type(batches) is tuple
        require(good and all(type(b) is tuple and len(b) == 2 for b in batches), "a series is damaged")
        key = (decompositions, rest)
        if key not in self._series:
            self._series[key] = series_from(decompositions, rest, False, ())
        found = self._series[key].strict if strict else self._series[key]
        for size, flags in batches:
            found = found.batched(size, flags)
        return found


@lru_cache(maxsize=1000)
def _parameters(primitive: Primitive) -> set[str] | None:
    """The names of the parameters of a primitive, as its type rule states them; None if it takes any."""
    found = inspect.signature(primitive.type_rule).parameters.values()
    takes_any = any(p.kind is p.VAR_KEYWORD for p in found)
    return None if takes_any else {p.name for p in found if p.kind is p.KEYWORD_ONLY}


def lost_rule(name: Name, primal: Program, covered: int) -> Rule:
    """A rule of which only the function is left, since what makes its derivative is Python code."""

    def linearize(active: Any) -> Any:
        raise MissingRule(
            f"the derivative rule of {name} is Python code, which the text of a program does not keep; differentiate "
            f"first, and write the derivative: ft.trace(ft.grad(f))(x).to_json(){at_line(user_line())}"
        )

    return Rule(name, primal, covered, linearize)


def require(holds: bool, problem: str) -> None:
    """Raise a ValueError unless a condition holds."""
    if not holds:
        raise ValueError(problem)


def _rows(tables: dict[str, Any], name: str) -> list[Any]:
    return _list(tables.get(name), f"the table of {name}")


def _list(value: Any, what: str) -> list[Any]:
    require(type(value) is list, f"{what} is not a list")
    return value


def _parts(row: Any, count: int, what: str, cls: type[Any] = list) -> Any:
    require(type(row) is cls and len(row) == count, f"{row!r:.100} is not {what}")
    return row


def _dictionary(row: Any, keys: tuple[str, ...], what: str) -> dict[str, Any]:
    require(type(row) is dict and all(k in row for k in keys), f"{what} is no object with {', '.join(keys)}")
    return row


def _numbered(table: list[Any], number: Any, what: str) -> Any:
    require(type(number) is int and 0 <= number < len(table), f"there is no {what} with the number {number!r:.100}")
    return table[number]


def _line(row: Any) -> Line:
    filename, number, text, expression, scope, primitive, order = _parts(row, 7, "a line")
    good = all(type(x) is str for x in (filename, text, expression, scope)) and type(number) is int
    require(good and (primitive is None or type(primitive) is str) and type(order) is int, "a line is damaged")
    line: Line = RecordedLine(filename, number, text, expression, scope)
    if primitive is not None:
        line = line.differentiated(primitive)
        line.order = order
    return line


def _float(value: Any) -> float:
    try:
        return float.fromhex(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{value!r:.100} is no number") from None


def _array(text: str, type: ArrayType) -> Any:
    """The array of a type whose bytes are written."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"the values of a constant {type} are damaged") from None
    require(len(data) == type.nbytes, f"a constant {type} has {len(data)} bytes in place of {type.nbytes}")
    is_brain_float = type.dtype.name == "bfloat16"
    numbers = np.frombuffer(data, np.dtype("<u2") if is_brain_float else type.dtype.newbyteorder("<"))
    if is_brain_float:
        numbers = numbers.astype(np.uint16).view(type.dtype)
    if type.dtype.kind == "b":
        require(not (numbers.view(np.uint8) > 1).any(), "a constant has booleans that are neither true nor false")
    return numbers.astype(type.dtype).reshape(type.shape)


def _container(value: Any) -> Any:
    """The container of Python's own classes that plain data describes."""
    if value is None or type(value) is int:
        return value
    require(type(value) is dict and len(value) == 1, "a structure is damaged")
    ((kind, items),) = value.items()
    items = _list(items, "a structure")
    if kind == "dict":
        require(all(type(i) is list and len(i) == 2 and type(i[0]) is str for i in items), "a structure is damaged")
        return {k: _container(v) for k, v in items}
    require(kind in ("list", "tuple"), "a structure is damaged")
    return (list if kind == "list" else tuple)(map(_container, items))
