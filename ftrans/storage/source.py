"""Programs as source of functions of NumPy, which runs without ftrans."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.names import Names, identifier
from ..base.source import Line, at_line, user_line
from ..base.storable import INPUT_NAMES
from ..control.rules.host_call import UserCode
from ..control.rules.jax_code import CallJax
from ..core.program import Const, Eqn, Program
from ..core.types import ArrayType
from ..run.stand_alone import Function, StandsAlone
from ..run.straightline import StraightLine
from .functions import CannotBeWritten, Functions

# Arrays with so few numbers are written among the code.
_FEW = 32


def to_source(program: Program, path: Any = None) -> str:
    """See `Storable.to_source`."""
    place = None if path is None else Path(os.fspath(path))
    if place is not None and place.suffix != ".py":
        raise ValueError(f"to_source writes a file of Python, with a name that ends in .py, not {path}{_here()}")
    file = _File(place is None)
    text = file.text(program, None if place is None else place.with_suffix(".npz").name)
    if place is not None:
        place.write_text(text, encoding="utf-8")
        if file.arrays:
            np.savez(place.with_suffix(".npz"), **file.arrays)
    return text


def _here() -> str:
    return at_line(user_line())


class _File:
    """The source of a program, while it is being written.

    Attributes:
        arrays: large constants, by their names.

    Args:
        holds_all: whether large constants are in the text, too.
    """

    def __init__(self, holds_all: bool) -> None:
        self.arrays: dict[str, Any] = {}
        self.functions = Functions(self._function, self.array)
        self._holds_all = holds_all
        self._written: dict[Any, str] = {}
        self._constants: dict[Any, str] = {}
        self._kept: list[Any] = []

    def text(self, program: Program, beside: str | None) -> str:
        """The source of a program, whose large constants are in a file of the name `beside`."""
        name = self.functions.fresh(identifier(program.name).rstrip("_"))
        argument = self.functions.expression(_argument)
        main = _Body(self, program, name, argument).text()
        needs = "SciPy" if any("scipy" in line for line in self.functions.imports) else "NumPy only"
        head = f'"""{name}: a program of ftrans, written out.  It needs {needs}, and no ftrans."""'
        imports = ["import numpy as np", *self.functions.imports, *["import pathlib"] * bool(self.arrays)]
        opened = f"np.load(pathlib.Path(__file__).with_name({beside!r}), allow_pickle=False)"
        constants = f"with {opened} as _file:\n    _arrays = dict(_file)"
        top = "\n\n".join([head, "\n".join(sorted(imports)), *[constants] * bool(self.arrays)])
        return "\n\n\n".join([top, *self.functions.texts, main]) + "\n"

    def _function(self, function: Function) -> str:
        key = (function.program, function.own)
        known = self._written.get(key)
        if known is None:
            known = self._written[key] = self.functions.fresh(identifier(function.program.name).rstrip("_"))
            body = _Body(self, function.program, known, None, function.own)
            self.functions.texts.append(body.text())
        return known

    def array(self, value: Any) -> str:
        """The name of an array, which is defined at the top."""
        key = id(value)
        if key not in self._constants:
            self._kept.append(value)
            name = self._constants[key] = f"c{len(self._constants)}_"
            self.functions.texts.append(f"{name} = {self._array(np.asarray(value), name)}")
        return self._constants[key]

    def _array(self, value: Any, name: str) -> str:
        dtype = self.functions.expression(value.dtype)
        if value.size <= _FEW and value.dtype.kind in "biuf" and np.isfinite(value).all():
            return f"np.array({value.tolist()}, {dtype})" + ("" if value.size else f".reshape({value.shape})")
        if not self._holds_all:
            is_known = value.dtype.kind in "biufc"
            self.arrays[name] = value if is_known else value.view(f"u{value.dtype.itemsize}")
            return f'_arrays["{name}"]' + ("" if is_known else f".view({dtype})")
        self.functions.imports["import base64"] = None
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return f'np.frombuffer(base64.b64decode("{data}"), {dtype}).reshape({value.shape})'


class _Apart(Names):
    """Names of variables that differ from those that are given to some of them."""

    def fresh(self) -> str:
        name = super().fresh()
        while name in self.values():
            name = super().fresh()
        return name


class _Body(StraightLine):
    """The text of one function.

    Args:
        file: the source that it belongs to.
        program: its program.
        name: its name.
        argument: the name of the function that checks an argument, for the function that users call.
        own: which inputs it may write to.
    """

    def __init__(self, file: _File, program: Program, name: str, argument: str | None, own: Sequence[int] = ()) -> None:
        self._file, self._argument, self._title = file, argument, name
        self._given = program.derived.get(INPUT_NAMES, ())
        self._of = program
        runs = program.executable()
        super().__init__(runs, own=[runs.inputs[i] for i in own])
        self._own_name = name

    def names(self) -> Names:
        names = _Apart()
        for var, name in zip(self.program.inputs, self._given, strict=False):
            names[var] = self._file.functions.variable(identifier(name))
        return names

    def result(self, returned: Sequence[str]) -> str:
        if self._argument is None:
            return super().result(returned)
        return returned[0] if len(returned) == 1 else f"({', '.join(returned)})" if returned else "()"

    def constant(self, atom: Const, value: Any) -> str:
        if isinstance(value, np.generic) or not value.shape:
            return self._file.functions.expression(value[()])
        return self._file.array(value)

    def call(self, eqn: Eqn, operands: Sequence[str], overwriting: bool = False) -> str:
        primitive = eqn.primitive
        if isinstance(primitive, UserCode | CallJax):
            code = eqn.params.get("code", eqn.params.get("see"))
            what = getattr(code, "name", None) or getattr(code, "__name__", primitive.name)
            raise _refused(f"it calls the Python function {what}", eqn)
        function, params = primitive.numpy, eqn.params
        if overwriting:
            function = primitive.overwrite
        elif isinstance(primitive, StandsAlone):
            function, params = primitive.stand_alone([a.type for a in eqn.operands], eqn.params)
        try:
            name = self._file.functions.expression(function, primitive.name)
            more = [f"{k}={self._file.functions.expression(v, k)}" for k, v in params.items()]
        except CannotBeWritten as error:
            raise _refused(f"{primitive.name} needs {error}", eqn) from None
        return f"{name}({', '.join([*operands, *more])})"

    def text(self) -> str:
        """The text of the function, with comments."""
        head, *statements = self.source.split("\n")
        head = head.replace(f"def {self.name}(", f"def {self._own_name}(", 1)
        lines = [head, *self._docstring()]
        if self._argument is not None:
            for v in self.program.inputs:
                name = self._names[v]
                expected = self._file.functions.expression(v.type.dtype)
                lines.append(f"    {name} = {self._argument}({name}, {name!r}, {v.type.shape}, {expected})")
        last = None
        for number, statement in enumerate(statements, 2):
            comment = _comment(self.lines[number] if number < len(self.lines) else None)
            if comment is not None and comment != last:
                lines.append(f"    # {comment}")
            last = comment or last
            lines.append(statement)
        return "\n".join(lines)

    def _docstring(self) -> list[str]:
        results = ", ".join(map(_described, self.program.out_types))
        if self._argument is None:
            return [f'    """{", ".join(map(_described, self.program.in_types))} -> {results}."""']
        name = self.program.name.replace("\\", r"\\").replace('"', r"\"")
        lines = [f'    """The program {name}.', "", "    Args:"]
        lines += [f"        {self._names[v]}: {_described(v.type)}." for v in self.program.inputs]
        return [*lines, "", "    Returns:", f"        {results or 'nothing'}.", '    """']


def _argument(x: Any, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """An argument as an array (or a number) of the shape and dtype that the function is for."""
    array = np.asarray(x)
    if array.shape != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ValueError(f"{name} is an array of shape {shape} and dtype {dtype}, not {array.shape}, {array.dtype}")
    return array.astype(dtype, copy=False)[()]


def _described(type: ArrayType) -> str:
    return f"{type.dtype.name} {type.shape}" if type.shape else type.dtype.name


def _comment(line: Line | None) -> str | None:
    """The user's line, on one line."""
    if line is None:
        return None
    text = f"{line!r}: {line.text}".encode("unicode_escape").decode()
    return text if line.derivative_of is None else f"derivative of {text}"


def _refused(why: str, eqn: Eqn) -> TypeError:
    return TypeError(
        f"the program cannot be written as source: {why}. Trace what comes before and after it by itself, and write "
        f"two functions{at_line(eqn.line)}"
    )
