"""Program: a pure function written down as typed equations.

A program is in A-normal form: every equation applies one primitive to variables and constants and names its
results, and every variable is assigned once.  A program is frozen; transformations read one and write another.
Programs and functions derived from it (its gradient, its compiled forms) are kept in its `derived` dictionary
and die with it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..base.displayed import Displayed
from ..base.names import Names, printable
from ..base.observe import activity
from ..base.source import Line, at_line
from ..base.storable import Storable
from .types import ArrayType

_COMMENT_COLUMN = 52

Params = dict[str, Any]
# The parameters of equations that have none, which share one dictionary.
NO_PARAMS: Params = {}
Derived = TypeVar("Derived")


class Var:
    """A variable of a program.  Its identity is its name; the printer gives it a letter."""

    __slots__ = ("type",)

    def __init__(self, type: ArrayType) -> None:
        self.type = type

    def __repr__(self) -> str:
        return f"Var({self.type})"


class Const:
    """A constant operand: an array, or a single number that stands for an array filled with it (a *splat*).

    Attributes:
        value: an array of the type's shape, or a NumPy scalar.
        type: type of the operand.
    """

    __slots__ = ("type", "value")

    def __init__(self, value: Any, type: ArrayType) -> None:
        self.value = value
        self.type = type

    @property
    def is_splat(self) -> bool:
        """Whether a single number stands for the whole array."""
        return isinstance(self.value, np.generic)

    def array(self) -> Any:
        """The constant as an array of its full shape."""
        if not self.is_splat:
            return self.value
        return self.value if self.type.shape == () else np.full(self.type.shape, self.value, self.type.dtype)

    def __repr__(self) -> str:
        return f"Const({self.value!r}: {self.type})"


Atom = Var | Const

_NUMBERS = (float, int, np.float64)
_literals: dict[Any, Const] = {}
_MOST_LITERALS = 100_000


def literal(value: Any, type: ArrayType) -> Const:
    """The interned constant for a number (or a small array) that is part of a program's structure.

    Equal literals are the same object.

    Args:
        value: a number, standing for an array filled with it, or an array of the type's shape.
        type: type of the constant.
    """
    # Zeros of different sign are equal in Python.
    number = (type, value.__class__, value or str(value)) if value.__class__ in _NUMBERS else None
    const = _literals.get(number)
    if const is not None:
        return const
    array = np.asarray(value, type.dtype)
    key = (type, array.tobytes())
    const = _literals.get(key)
    if const is None:
        if len(_literals) > _MOST_LITERALS:
            _literals.clear()
        if array.size == 1:
            # Its bytes are those of the number, which may be asked for later.
            array = array.reshape(())
        elif array.ndim:
            array = array.copy()
            array.flags.writeable = False
        const = _literals.setdefault(key, Const(array[()], type))
    if number is not None:
        _literals[number] = const
    return const


class Eqn:
    """One equation: `outputs = primitive(*operands, **params)`, and the user's line that it comes from.

    The primitive is a `primitive.Primitive`; its class is defined in terms of programs, so it is not imported here.
    """

    __slots__ = ("line", "operands", "outputs", "params", "primitive")

    def __init__(
        self, primitive: Any, operands: tuple[Atom, ...], params: Params, outputs: tuple[Var, ...], line: Line | None
    ) -> None:
        self.primitive = primitive
        self.operands = operands
        self.params = params
        self.outputs = outputs
        self.line = line

    def __repr__(self) -> str:
        return format_eqn(self)


class ProgramError(TypeError):
    """A program that is not closed, not typed or assigns a variable twice: a defect of a transformation."""


class Program(Storable, Displayed):
    """A pure function as a list of equations.

    Attributes:
        name: its name in print.
        inputs: the variables that stand for the arguments of a call.
        recorded: the equations as they were recorded; those of a long trace are a sequence that takes little memory.
        outputs: the variables and constants that a call returns.
        derived: programs and functions made from this one, by key.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> program = ft.trace(lambda x: np.sin(x) * 2.0)(1.0)
        >>> program(0.5)
        [np.float64(0.958851077208406)]
    """

    __slots__ = ("__weakref__", "derived", "inputs", "name", "outputs", "recorded")

    # Evaluates a program on NumPy arrays; set by the evaluator, which is imported later.
    evaluator: ClassVar[Callable[[Program, Sequence[Any]], list[Any]]]

    def __init__(self, name: str, inputs: Sequence[Var], eqns: Sequence[Eqn], outputs: Sequence[Atom]) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.recorded: Sequence[Eqn] = tuple(eqns)
        self.outputs = tuple(outputs)
        self.derived: dict[Hashable, Any] = {}

    @property
    def eqns(self) -> tuple[Eqn, ...]:
        """The equations, in an order in which they can run."""
        if self.recorded.__class__ is not tuple:
            self.recorded = tuple(self.recorded)
        return self.recorded

    @property
    def in_types(self) -> tuple[ArrayType, ...]:
        """Types of the inputs."""
        return tuple(v.type for v in self.inputs)

    @property
    def out_types(self) -> tuple[ArrayType, ...]:
        """Types of the outputs."""
        return tuple(a.type for a in self.outputs)

    def derive(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        """The result of `make()`, computed once per program and key."""
        if key not in self.derived:
            # What is made is kept.  The garbage collector would look through it again and again, and free nothing.
            is_collecting = gc.isenabled()
            try:
                gc.disable()
                with activity("transforming", str(key[0] if isinstance(key, tuple) else key), self):
                    self.derived[key] = copy_context().run(make)
            finally:
                if is_collecting:
                    gc.enable()
        found: Derived = self.derived[key]
        return found

    def __call__(self, *args: Any) -> list[Any]:
        """Evaluate on NumPy arrays: takes one argument per input, returns a list with one result per output."""
        if len(args) != len(self.inputs):
            raise TypeError(f"{self.name} takes {len(self.inputs)} arguments, {len(args)} were given")
        return Program.evaluator(self, args)

    def __str__(self) -> str:
        return format_program(self)

    __repr__ = __str__

    def executable(self) -> Program:
        """The program as it runs, after the `before_running` rules of its primitives."""

        def make() -> Program:
            form = self
            for primitive in dict.fromkeys(eqn.primitive for eqn in self.eqns):
                form = primitive.before_running(form)
            return form

        return self.derive("executable", make)

    def endings(self) -> list[Callable[[], None]]:
        """Functions to call when the program has finished or failed, in reverse order of the equations."""
        found: dict[Callable[[], None], None] = {}
        for eqn in self.eqns:
            end = eqn.primitive.after_running(eqn.params)
            if end is not None:
                found[end] = None
            for program in programs_in(eqn.params):
                found.update(dict.fromkeys(reversed(program.endings())))
        return [*reversed(found)]

    def subprograms(self) -> Iterator[Program]:
        """The programs among the parameters of its equations."""
        for eqn in self.eqns:
            yield from programs_in(eqn.params)

    def repeating(self) -> Iterator[Eqn]:
        """The loops and solvers among its equations and those of its sub-programs, the outermost ones."""
        for eqn in self.eqns:
            if eqn.primitive.repeats:
                yield eqn
            else:
                for program in programs_in(eqn.params):
                    yield from program.repeating()

    def running(self) -> str:
        """What is told of a program with loops or solvers while it runs."""
        places = [f"{eqn.primitive.name}{f' at {eqn.line!r}' if eqn.line else ''}" for eqn in self.repeating()]
        first, *others = dict.fromkeys(places)
        # The program of a loop that is called alone has its name.
        name = "" if first.startswith(self.name) else f"{printable(self.name)}, "
        return f"running {name}{first}{f' and {len(others)} more' if others else ''}"

    def check(self) -> Program:
        """Check that the program is closed, typed and assigns each variable once; return it.

        Raises:
            ProgramError: it is not, naming the equation, its neighbours and the user's line.
        """
        known: set[Var] = set()
        for var in self.inputs:
            if var in known:
                raise ProgramError(f"an input of {self.name} is listed twice\n{self}")
            known.add(var)
        for index, eqn in enumerate(self.eqns):
            problem = _problem_with(eqn, known)
            if problem:
                near = "\n".join(f"    {eqn!r}" for eqn in self.eqns[max(0, index - 2) : index + 3])
                raise ProgramError(f"{problem} in equation {index} of {self.name}:\n{near}{at_line(eqn.line)}")
            known.update(eqn.outputs)
            for program in programs_in(eqn.params):
                program.check()
        for atom in self.outputs:
            if isinstance(atom, Var) and atom not in known:
                raise ProgramError(f"an output of {self.name} is assigned nowhere\n{self}")
        return self


def needed_eqns(eqns: Sequence[Eqn], outputs: Sequence[Atom], given: Container[Atom] = ()) -> list[Eqn]:
    """The equations, in order, that `outputs` depend on, given the values of the variables `given`."""
    needed = {a for a in outputs if isinstance(a, Var) and a not in given}
    kept: list[Eqn] = []
    for eqn in reversed(eqns):
        if not needed.isdisjoint(eqn.outputs):
            kept.append(eqn)
            needed.update(a for a in eqn.operands if isinstance(a, Var) and a not in given)
    kept.reverse()
    return kept


def with_operands(eqns: Iterable[Eqn], known: Mapping[Atom, Atom]) -> list[Eqn]:
    """The equations with other atoms in place of some operands."""
    return [
        eqn
        if known.keys().isdisjoint(eqn.operands)
        else Eqn(eqn.primitive, tuple([known.get(a, a) for a in eqn.operands]), eqn.params, eqn.outputs, eqn.line)
        for eqn in eqns
    ]


def programs_in(params: Params) -> Iterator[Program]:
    """The sub-programs among the parameters of an equation."""
    for value in params.values():
        if isinstance(value, Program):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Program))


def _problem_with(eqn: Eqn, known: set[Var]) -> str | None:
    for atom in eqn.operands:
        if isinstance(atom, Var):
            if atom not in known:
                return "an operand is not defined before its use"
        elif not atom.is_splat and tuple(atom.value.shape) != atom.type.shape:
            return f"a constant of shape {atom.value.shape} is declared as {atom.type}"
    try:
        types = eqn.primitive.output_types([a.type for a in eqn.operands], eqn.params)
    except Exception as error:
        return f"operands do not fit ({error})"
    declared = tuple(v.type for v in eqn.outputs)
    if types != declared:
        return f"declared types {declared} differ from inferred types {types}"
    if any(v in known for v in eqn.outputs):
        return "a variable is assigned twice"
    return None


# Text


def format_const(const: Const) -> str:
    """A constant in print: a number, the values of a small array, or its type."""
    value = const.value
    if const.is_splat or value.ndim == 0:
        item = value.item()
        return (
            f"{item:g}" if isinstance(item, float) and float(f"{item:g}") == item and "e" in f"{item:g}" else repr(item)
        )
    if value.size <= 6:
        return np.array2string(np.asarray(value), separator=", ", precision=6).replace("\n", "")
    return f"<constant {const.type}>"


def format_atom(atom: Atom, names: Names) -> str:
    """A variable's name, or a constant in print."""
    return names[atom] if isinstance(atom, Var) else format_const(atom)


def format_param(value: Any) -> str:
    """A parameter of an equation in print; sub-programs are printed separately."""
    if isinstance(value, Program):
        return value.name
    if isinstance(value, tuple) and value and all(isinstance(v, Program) for v in value):
        return "(" + ", ".join(v.name for v in value) + ")"
    if isinstance(value, np.dtype):
        return str(value.name)
    if callable(value):
        return printable(str(getattr(value, "__name__", type(value).__name__)))
    return printable(str(value))


def format_eqn(eqn: Eqn, names: Names | None = None) -> str:
    """One equation as a line of text, without its comment."""
    names = names or Names()
    operands = [format_atom(a, names) for a in eqn.operands]
    params = [f"{k}={format_param(v)}" for k, v in eqn.params.items()]
    left = ", ".join(f"{names[v]}: {v.type}" for v in eqn.outputs)
    return f"{left} = {eqn.primitive.name}({', '.join(operands + params)})"


def format_program(program: Program, indent: str = "") -> str:
    """A program as text, with its sub-programs indented below the equations that hold them."""
    names = Names()
    inputs = ", ".join(f"{names[v]}: {v.type}" for v in program.inputs)
    outputs = ", ".join(str(t) for t in program.out_types)
    if len(program.outputs) != 1:
        outputs = f"({outputs})"
    lines = [f"{indent}{program.name}({inputs}) -> {outputs}:"]
    for eqn in program.eqns:
        text = f"{indent}  {format_eqn(eqn, names)}"
        lines.append(f"{text:<{_COMMENT_COLUMN}}  # {eqn.line}" if eqn.line is not None else text)
        for value in eqn.params.values():
            inner = value if isinstance(value, tuple) else (value,)
            lines += [format_program(p, indent + "      ") for p in inner if isinstance(p, Program)]
    result = ", ".join(format_atom(a, names) for a in program.outputs)
    lines.append(f"{indent}  return {result}")
    return "\n".join(lines)
