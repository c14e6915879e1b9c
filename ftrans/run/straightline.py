"""Program -> straight-line Python over NumPy: the fast form of the NumPy evaluator.

Each equation becomes one statement.  A broadcast whose result only meets elementwise operations is left to
NumPy's own broadcasting.  What NumPy raises or warns of while the code runs is reported at the user's line of the
equation.  While an observer looks on, the same expressions run in another form of the code, which reports each of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..base.floating_point import LEFT_OUT, LINES, add_user_line, end_sending, send_warnings
from ..base.names import Names, identifier
from ..base.observe import current_observer
from ..base.progress import shows_progress, working
from ..base.source import Line
from ..core.primitive import Moving
from ..core.program import Atom, Const, Eqn, Program, Var
from .memory import find_overwriting

_FILENAME = "<ftrans program>"
# What reports equations, and where its namespace holds them, in the form of the code that is observed.
_REPORT, _EQNS = "_report_", "_eqns_"
# Under this key a program may hold a function that is to run in place of all those that are made here.
GIVEN = "given function"
# The dtypes that numbers in the text have.
_DTYPES_OF_NUMBERS = frozenset(map(np.dtype, (np.float64, np.int64, np.bool_)))
# Below this size, holding on to a dead temporary costs less than the statement that drops it.
_DROP_BYTES = 1 << 14


class StraightLine:
    """The source of a program's function, with the objects that it names.

    Attributes:
        source: text of the function.
        name: name of the function.
        namespace: the constants and rules that the text names.
        lines: the user's line for each line of the text.

    Args:
        program: the program.
        fresh: whether each result gets memory of its own.
        observed: make each equation a call of `Observer.equation`, which is the function's first argument.
        own: which inputs the function may write to.
    """

    def __init__(self, program: Program, fresh: bool = True, observed: bool = False, own: Sequence[Var] = ()) -> None:
        self.program = program
        self._fresh = fresh
        self._observed = observed
        self.lines: list[Line | None] = [None, None]
        self.namespace: dict[str, Any] = {
            "np": np,
            LINES: self.lines,
            LEFT_OUT: functools.cache(functools.partial(_find_left_out, program.eqns, program.outputs)),
            _EQNS: program.eqns,
        }
        self._names = self.names()
        self._last_use: dict[Atom, int] = {}
        for index, eqn in enumerate(program.eqns):
            self._last_use.update(dict.fromkeys(eqn.operands, index))
        self._thin = self._find_thin()
        self._overwriting = find_overwriting(program, own)
        self._constants: dict[tuple[int, bool], str] = {}
        self.source = self._write()

    # What another form of the text has otherwise

    def names(self) -> Names:
        """Names for the variables; some may have one already."""
        return Names()

    def result(self, returned: Sequence[str]) -> str:
        """What is returned, given the text of each result."""
        return f"[{', '.join(returned)}]"

    def _find_thin(self) -> set[Var]:
        """Results of broadcasts that may stay thin, because NumPy broadcasts them wherever they are used."""
        thin = {eqn.outputs[0] for eqn in self.program.eqns if eqn.primitive.python_thin("", eqn.params) is not None}
        thin.difference_update(a for a in self.program.outputs if isinstance(a, Var))
        count = 0
        while count != len(thin):
            count = len(thin)
            for eqn in self.program.eqns:
                full = any(isinstance(a, Var) and a not in thin for a in eqn.operands)
                if not (eqn.primitive.broadcasts and full):
                    thin.difference_update(a for a in eqn.operands if isinstance(a, Var))
        return thin

    def _write(self) -> str:
        program = self.program
        arguments = [_REPORT] * self._observed + [self._names[v] for v in program.inputs]
        aliased: set[Atom] = set(program.inputs)
        body: list[str] = []
        for index, eqn in enumerate(program.eqns):
            statement = self._statement(eqn, index)
            dead = [self._names[a] for a in dict.fromkeys(eqn.operands) if self._is_dead_after(a, index)]
            body.append(f"{statement}; del {', '.join(dead)}" if dead else statement)
            self.lines.append(eqn.line)
            if eqn.primitive.aliases:
                aliased.update(eqn.outputs)
        returned: list[str] = []
        seen: set[Atom] = set()
        for atom in program.outputs:
            text = self._names[atom] if isinstance(atom, Var) else self._constant_operand(atom, False)
            if self._fresh and (isinstance(atom, Const) or atom in aliased or atom in seen):
                text = f"np.array({text})[()]" if atom.type.shape == () else f'np.array({text}, order="C")'
            seen.add(atom)
            returned.append(text)
        self.name = identifier(program.name)
        while self.name in self.namespace:
            self.name += "_"
        lines = [f"def {self.name}({', '.join(arguments)}):"]
        lines += [f"    {statement}" for statement in body]
        lines.append(f"    return {self.result(returned)}")
        self.lines.append(None)
        return "\n".join(lines)

    def _is_dead_after(self, atom: Atom, index: int) -> bool:
        """Whether dropping a variable after an equation frees memory worth the statement."""
        # Most arrays are small, whatever their dtype.
        if atom.type.size < _DROP_BYTES // 16 or atom.type.nbytes < _DROP_BYTES or not isinstance(atom, Var):
            return False
        return self._last_use[atom] == index and atom not in self.program.outputs

    def _statement(self, eqn: Eqn, index: int) -> str:
        # NumPy broadcasts a number to an array's shape, but numbers alone make no array.
        scalar_will_do = eqn.primitive.broadcasts and any([isinstance(a, Var) for a in eqn.operands])
        names = self._names
        operands = [names[a] if isinstance(a, Var) else self._constant_operand(a, scalar_will_do) for a in eqn.operands]
        results = ", ".join([names[v] for v in eqn.outputs])
        if eqn.outputs and eqn.outputs[0] in self._thin:
            expression = eqn.primitive.python_thin(operands[0], eqn.params)
        else:
            expression = eqn.primitive.python(operands, eqn.params)
        if index in self._overwriting.writes and not self._observed:
            written = eqn.primitive.python_overwriting(operands, eqn.params)
            return f"{written or self.call(eqn, operands, overwriting=True)}; {results} = {operands[0]}"
        if expression is None:
            expression = self.call(eqn, operands)
        if index in self._overwriting.copies:
            expression = f"{expression}.copy()"
        if self._observed:
            values = expression if eqn.primitive.multiple_results else f"[{expression}]"
            expression = f"{_REPORT}({_EQNS}[{index}], [{', '.join(operands)}], lambda: {values})"
        if len(eqn.outputs) == 1 and (eqn.primitive.multiple_results or self._observed):
            results += ","
        elif not eqn.outputs:
            return expression
        return f"{results} = {expression}"

    def call(self, eqn: Eqn, operands: Sequence[str], overwriting: bool = False) -> str:
        """A call of the rule of an equation."""
        name = eqn.primitive.name
        bound = None if overwriting else eqn.primitive.bound([a.type for a in eqn.operands], eqn.params)
        if bound is not None:
            return f"{self._bind_name(name, bound)}({', '.join(operands)})"
        rule = (
            self._bind_name(f"overwrite_by_{name}", eqn.primitive.overwrite)
            if overwriting
            else self._bind_name(name, eqn.primitive.numpy)
        )
        return f"{rule}({', '.join([*operands, *(f'{k}={self._param(v)}' for k, v in eqn.params.items())])})"

    def _constant_operand(self, atom: Const, scalar_will_do: bool) -> str:
        if atom.is_splat and (scalar_will_do or atom.type.shape == ()):
            item = atom.value.item()
            if scalar_will_do and atom.type.dtype in _DTYPES_OF_NUMBERS and math.isfinite(item):
                return f"({item!r})" if str(item).startswith("-") else repr(item)
            return self.constant(atom, atom.value)
        return self.constant(atom, atom.array())

    def constant(self, atom: Const, value: Any) -> str:
        """The name of a constant, or of the number that stands for it."""
        # A splat may be needed both as a number and in its full shape.
        key = (id(atom), value is atom.value)
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = f"c{len(self._constants)}_"
            self.namespace[name] = value
        return name

    def _param(self, value: Any) -> str:
        return repr(value) if _is_written_as_text(value) else self._bind_name("p", value)

    def _bind_name(self, stem: str, value: Any) -> str:
        name = identifier(stem) + "_"
        while name in self.namespace and self.namespace[name] != value:
            name += "_"
        self.namespace[name] = value
        return name


def _is_written_as_text(value: Any) -> bool:
    """Whether the text of a parameter is Python that makes it; that of a class of its own may not be."""
    if type(value) is tuple:
        return all(type(v) in (int, bool) for v in value)
    return value is None or type(value) in (int, bool, str)


def source(program: Program) -> str:
    """Readable Python text of a program, as the NumPy evaluator runs it."""
    return StraightLine(program.executable()).source


def function_of(program: Program, fresh: bool = True, own: tuple[int, ...] = ()) -> Callable[..., list[Any]]:
    """The bare function of a program: takes arrays, returns a list of them, which are `fresh` unless told otherwise.

    It may write to the arrays that it takes for the inputs numbered in `own`.  What NumPy raises or warns of in it is
    reported at the user's line by the `compiled` function that it runs in.
    """
    given: Callable[..., list[Any]] | None = program.derived.get(GIVEN)
    return given or program.derive(("function", fresh, own), lambda: _generated(program, fresh, own=own))


def function_to_run(program: Program, own: tuple[int, ...] = ()) -> Callable[..., list[Any]]:
    """The bare function of a program, to be called now and not kept; it may write to the inputs numbered in `own`.

    An observer that looks on is told of each equation.
    """
    observer = current_observer()
    if observer is None:
        return function_of(program, own=own)
    function = program.derive("code for an observer", lambda: _generated(program, observed=True))
    return functools.partial(function, observer.equation)


def _generated(
    program: Program, fresh: bool = True, observed: bool = False, own: Sequence[int] = ()
) -> Callable[..., list[Any]]:
    text = StraightLine(program.executable(), fresh, observed, [program.inputs[i] for i in own])
    exec(compile(text.source, _FILENAME, "exec"), text.namespace)
    return text.namespace[text.name]


def compiled(program: Program) -> Callable[[Sequence[Any]], list[Any]]:
    """The function that evaluates `program`: takes a sequence of arrays, returns a list of fresh ones."""
    function = function_of(program)

    def run(args: Sequence[Any]) -> list[Any]:
        token = send_warnings()
        try:
            return function(*args) if current_observer() is None else function_to_run(program)(*args)
        except Exception as error:
            add_user_line(error)
            raise
        finally:
            end_sending(token)

    ends = program.endings()
    # Loops with a bar of their own need not be told of.
    is_told = not ends and next(program.repeating(), None) is not None
    if not ends and not is_told:
        return run

    def run_for_long(args: Sequence[Any]) -> list[Any]:
        try:
            with working(program.running) if is_told and shows_progress() else nullcontext():
                return run(args)
        finally:
            for end in ends:
                end()

    return run_for_long


def _find_left_out(eqns: Sequence[Eqn], outputs: Sequence[Atom]) -> set[int]:
    """The lines of the text whose results go only into choices, perhaps through others that act on each element."""
    counts = set(outputs)
    found: set[int] = set()
    # The first line is that of the definition.
    for number, eqn in reversed(list(enumerate(eqns, 2))):
        if counts.isdisjoint(eqn.outputs):
            found.add(number)
        passes_on = eqn.primitive.broadcasts or isinstance(eqn.primitive, Moving)
        if number not in found or not passes_on:
            counts.update(a for i, a in enumerate(eqn.operands) if i not in eqn.primitive.choices)
    return found
