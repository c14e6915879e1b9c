"""Tracing: running Python code on tracers records a program.

A `Tracer` stands for a value of the program that a `Builder` is recording.  All transformations use the same kind of
tracer.  If the code closes over an array, or over a tracer of an outer builder, that becomes a *captured input* of the
inner program.

Tracing never computes.  Known values of tracers, for code that asks for them, are in `witness`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from ..base.error_modes import Handling
from ..base.source import Line, at_line, user_line
from ..base.tree import LEAVES
from ..base.type_questions import AnswersTypeQuestions
from .captures import Captures
from .program import Atom, Const, Eqn, Params, Program, Var, literal
from .tape import Tape
from .types import ArrayType

_current: ContextVar[Builder | None] = ContextVar("builder", default=None)

# The builder of the innermost trace that is running, or None.
current_builder = _current.get


class TracerLeak(RuntimeError):
    """A tracer was used after the trace that made it had ended."""


class NoWitness(NamedTuple):
    """Stands for the value of an input that has no single value.

    Attributes:
        reason: why it has none, for messages.
        example: returns one of its possible values, if one is known.
        lie_alike: whether all possible values have the strides of the example.
    """

    reason: str
    example: Callable[[], Any] | None = None
    lie_alike: bool = False


class Guard(NamedTuple):
    """A value that Python code has looked at, so that the program holds only for this value.

    Attributes:
        atom: the variable or constant.
        expected: its value.
        line: the line that looked at it.
        seen_as: a function of the value, such as its text, if the code has seen only the result of that.
    """

    atom: Atom
    expected: Any
    line: Line | None
    seen_as: Callable[[Any], Any] | None = None

    def holds_for(self, value: Any) -> bool:
        """Whether the code would have seen the same if this were the value."""
        if self.seen_as is not None:
            return bool(self.seen_as(value) == self.seen_as(self.expected))
        return bool(np.all(np.asarray(value) == np.asarray(self.expected)))

    def assumes_the_same(self, other: Guard) -> bool:
        """Whether two guards at the same place of a program are equal."""
        return self.line is other.line and self.seen_as == other.seen_as and self.holds_for(other.expected)


class Tracer(AnswersTypeQuestions):
    """A value of the program that is being recorded; user code computes with it in place of an array."""

    __slots__ = ("__weakref__", "atom", "builder", "memory", "weak")

    def __init__(self, builder: Builder, atom: Atom, weak: bool = False) -> None:
        self.builder = builder
        self.atom = atom
        self.weak = weak
        self.memory: Any = None

    @property
    def type(self) -> ArrayType:
        """Shape and dtype."""
        return self.atom.type

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.atom.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the array."""
        return self.atom.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.atom.type.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.atom.type.size

    def line(self) -> Line | None:
        """The user's line that made this value, or None for an argument."""
        eqn = definition(self)
        return None if eqn is None else eqn.line


LEAVES.add(Tracer)


class Builder:
    """Records one program: its equations, and captured values as further inputs.

    This class serves transformations, which record the equations of rules; `witness.CodeBuilder` serves user code.

    Attributes:
        parent: the builder of the enclosing trace.
        tape: the equations recorded so far.
        captures: the values that the program closes over.
        is_open: whether the program is still being recorded.
        witnesses: the arguments that the program is traced for, or one `NoWitness` for all of them.
        has_one_shape: whether the program is compiled once, so that values of arrays must not decide its shapes.
        is_one_of_many: whether its guards are asked for others, too, if they depend on values of an outer program.
        guards: values that Python code has looked at.
        values: values of variables that have been asked for.
        varying: the inputs, and variables that have been asked for and were found to depend on one.
        refused: errors for values that are not available, and of each whether plain numbers give one, too.
        handling: the handling of floating-point errors when user code began; None for other code.
        layouts: for a variable, tracers of it whose arrays may have another layout than the variable's equation
            implies; kept for `ftrans.numpy`.
        strides: known strides of arrays, by variable; kept for `ftrans.numpy`.

    Args:
        tape: where to record, or the inputs of a new tape.
    """

    witnesses: Sequence[Any] | NoWitness = NoWitness("the program is being transformed")
    has_one_shape = is_one_of_many = False
    handling: Handling | None = None

    def __init__(self, tape: Tape | Sequence[ArrayType]) -> None:
        self.parent = _current.get()
        self.tape = tape if isinstance(tape, Tape) else Tape(tape)
        self.captures: Captures = Captures(self.tape, None if self.parent is None else self.parent.captures)
        self.is_open = True
        self.guards: list[Guard] = []
        self.values: dict[Var, Any] = {}
        self.varying = set(self.tape.inputs)
        self.refused: list[tuple[TypeError, bool]] = []
        self.layouts: dict[Atom, list[Tracer]] = {}
        self.strides: dict[Atom, Any] = {}

    def inputs(self) -> list[Tracer]:
        """Tracers for the explicit inputs."""
        return [Tracer(self, v) for v in self.tape.inputs]

    def record(self, primitive: Any, operands: Sequence[Any], params: Params, line: Line | None = None) -> list[Tracer]:
        """Record one equation, with the running line or a given one; return tracers for its results."""
        # Loops, because older versions of Python call a function for a comprehension.
        atoms: list[Atom] = []
        for x in operands:
            is_known = type(x) is Tracer and x.builder is self and x.memory is None
            atoms.append(x.atom if is_known else self.atom(x))
        eqn = self.tape.add(primitive, atoms, params, line or user_line(3))
        if self.handling is not None and not self.handling.is_current():
            self.handle_errors(eqn)
        outputs = eqn.outputs
        return [Tracer(self, outputs[0])] if len(outputs) == 1 else [Tracer(self, v) for v in outputs]

    def repeat(self, eqn: Eqn, operands: Sequence[Any]) -> list[Tracer]:
        """Record an equation of another program on operands of the same types; return tracers for its results."""
        atoms = [
            x.atom if type(x) is Tracer and x.builder is self and x.memory is None else self.atom(x) for x in operands
        ]
        new = self.tape.repeat(eqn, atoms)
        if self.handling is not None and not self.handling.is_current():
            self.handle_errors(new)
        return [Tracer(self, v) for v in new.outputs]

    def handle_errors(self, eqn: Eqn) -> None:
        """Process a new equation if the handling of floating-point errors has changed since tracing began."""

    def atom(self, x: Any) -> Atom:
        """The variable or constant for an operand in this program; foreign values are captured."""
        if isinstance(x, Tracer):
            if x.memory is not None:
                x.memory.refresh(x)
            return x.atom if x.builder is self else self._capture_tracer(x)
        if isinstance(x, Const):
            return x
        return self.captures.add_array(x)

    def scalar(self, value: Any, dtype: np.dtype[Any]) -> Atom:
        """The operand for a number in user code: a literal, or a captured input if it varies from call to call."""
        const = literal(value, ArrayType((), dtype))
        return self.captures.add_number(const) if self.tape.varies(const) else const

    def _capture_tracer(self, tracer: Tracer) -> Atom:
        builder = tracer.builder
        if not builder.is_open:
            raise leak_error(tracer)
        if all(b is not builder for b in self.chain()):
            raise TracerLeak(
                "a traced value of one trace was used in another that is not inside it, for instance in another thread "
                "or after an inner function has stored it; return the value from the function instead"
                + at_line(user_line())
            )
        if isinstance(tracer.atom, Const):
            return tracer.atom
        # Traces with the same beginning share variables, so the variable alone does not tell which trace a value is of.
        return self.captures.add((builder, tracer.atom), Tracer(builder, tracer.atom), tracer.atom.type)

    def chain(self) -> Iterator[Builder]:
        """This builder and the enclosing ones."""
        builder: Builder | None = self
        while builder is not None:
            yield builder
            builder = builder.parent

    def is_compiled(self) -> bool:
        """Whether this program, or an enclosing one, will be compiled and run for other values."""
        return any(b.has_one_shape for b in self.chain())

    def finish(self, outputs: Sequence[Any], name: str) -> Program:
        """The program recorded so far: explicit inputs first, then captured ones."""
        atoms = tuple([self.atom(x) for x in outputs])
        self.captures.check()
        return self.tape.program(name, self.captures.vars, atoms)


def definition(tracer: Tracer) -> Eqn | None:
    """The equation whose result a tracer is; None for an input or a constant."""
    return tracer.builder.tape.definition(tracer.atom)


def leak_error(tracer: Tracer) -> TracerLeak:
    """The error for a tracer used after its trace: names the line that made it and the line that used it."""
    made = tracer.line()
    where = f"made at {made.describe()}" if made is not None else "an argument of the traced function"
    return TracerLeak(
        f"a traced value ({tracer.type}, {where}) was used after the function that made it had returned; "
        "it stands for a value only while that function is traced. Return it from the function instead of storing it, "
        "and clear what was stored" + at_line(user_line())
    )


class recording_in:
    """Record in `builder`, which stays open, until the block ends; None evaluates instead of recording."""

    __slots__ = ("_builder", "_token")

    def __init__(self, builder: Builder | None) -> None:
        self._builder = builder

    def __enter__(self) -> Builder | None:
        self._token = _current.set(self._builder)
        return self._builder

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


class building(recording_in):
    """Record in `builder`; when the block ends, the builder and its tracers are closed."""

    __slots__ = ()

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
        assert self._builder is not None
        self._builder.is_open = False
