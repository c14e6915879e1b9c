"""Tracing: running Python code on tracers writes a program.

A `Tracer` stands for a value of the program that a `Builder` is writing.  There is one kind of tracer and one
kind of builder; a tracer of an outer builder, or an array, that the code closes over becomes a *captured input*
of the inner program.

Tracing is also how a program is looked up.  Programs that begin alike share a path in a trie whose edges are
equations, so tracing a function a second time walks that path and allocates little, and it ends at the very same
`Program` object, with everything that was ever derived from it.

Tracing never computes.  But a builder remembers the actual arguments (its *witnesses*), so when user code asks
for a Python `bool` or an index, the slice of the program that this needs is evaluated.  The predicates assumed
in that way are the program's *guards*.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.checksum import is_frozen
from ..base.error_modes import Handling, Reaction, reaction_since
from ..base.source import Line, at_line, attributed_line, attributed_to, user_line
from ..run.straightline import warnings_at_user_line
from .captures import Captures
from .cell import Cell
from .eager import Eager
from .program import Atom, Const, Eqn, Params, Program, Var, literal
from .trie import Node, Root, trie
from .types import ArrayType, type_of

if TYPE_CHECKING:
    from .primitive import Primitive

_current: ContextVar[Builder | None] = ContextVar("builder", default=None)

# Captured arrays up to this size are one if they hold the same, such as those made in each step of a loop.
_SMALL_BYTES = 1 << 16
# A scalar at one place of a program is structure until it has been seen with more values than this.
_MOST_SCALARS = 4


class TracerLeak(RuntimeError):
    """A tracer was used after the trace that made it had ended."""


class ConcretizationError(TypeError):
    """Python code asked for the value of a tracer that has none."""


class NoWitness(NamedTuple):
    """Stands in for the value of an input that has none.

    Attributes:
        reason: why.
        example: gives one of the values that it may have, where one is known.
        lie_alike: whether all of them have the strides of this one.
    """

    reason: str
    example: Callable[[], Any] | None = None
    lie_alike: bool = False


_PRINTING = "printing"
_TRANSFORMED = NoWitness("the program is being transformed")


class Tracer:
    """A value of the program that is being written: what user code computes with in place of an array."""

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


class Guard(NamedTuple):
    """A value that Python code assumed.

    Attributes:
        atom: what was asked for.
        expected: the value it had.
        line: the line that asked.
        seen_as: what the code made of the value, where that is all that it knows of it.
    """

    atom: Atom
    expected: Any
    line: Line | None
    seen_as: Callable[[Any], Any] | None = None

    def holds_for(self, value: Any) -> bool:
        """Whether the code would have seen the same in another value."""
        if self.seen_as is not None:
            return bool(self.seen_as(value) == self.seen_as(self.expected))
        return bool(np.all(np.asarray(value) == np.asarray(self.expected)))

    def assumes_the_same(self, other: Guard) -> bool:
        """Whether two guards of one place are one."""
        return self.line is other.line and self.seen_as == other.seen_as and self.holds_for(other.expected)


class Builder:
    """Writes one program.

    Attributes:
        has_one_shape: whether the program is compiled once, so that values of arrays must not decide its shapes.
        refused: the last error for a value that could not be had.  NumPy tends to replace it by one that says less.
        layouts: for a variable, tracers of it whose arrays may lie in memory otherwise than the variable's equation
            says; kept for the face of NumPy.
        strides: what is known of how arrays lie in memory, by variable; kept for the face of NumPy.
        assumed: the strides of inputs that something in the program depends on.

    Args:
        types: types of the program's explicit inputs.
        witnesses: the actual arguments, so that Python control flow can ask for values; or one `NoWitness` for all.
        shared: take part in the trie of programs.  Off for programs that transformations write.
    """

    def __init__(
        self,
        types: Sequence[ArrayType],
        witnesses: Sequence[Any] | NoWitness = _TRANSFORMED,
        shared: bool = False,
    ) -> None:
        self.parent = _current.get()
        self.shared = shared
        self.root = trie.root(tuple(types), self.parent is None) if self.shared else Root(types)
        self.node: Node = self.root
        self.is_open = True
        self.guards: list[Guard] = []
        self.captured: list[Any] = []
        self.capture_vars: list[Var] = []
        self._captures: dict[Any, Var] = {}
        self.definitions: dict[Var, Eqn] = {}
        self._eqns: list[Eqn] = []
        self._closed_over: Captures | None = None
        self.witnesses = witnesses
        self.refused: TypeError | None = None
        self.has_one_shape = False
        self.layouts: dict[Atom, list[Tracer]] = {}
        self.strides: dict[Atom, Any] = {}
        self.assumed: dict[int, tuple[int, ...]] = {}
        self._values: dict[Var, Any] | None = None
        self._runs_code = witnesses is not _TRANSFORMED
        # What is done about floating-point errors as the trace begins, and what was done when that was last compared.
        self._handling = Handling()
        self._compared: tuple[Handling, Reaction | None] = (self._handling, None)

    def inputs(self) -> list[Tracer]:
        """Tracers for the explicit inputs."""
        return [Tracer(self, v) for v in self.root.inputs]

    # Recording

    def record(
        self, primitive: Primitive, operands: Sequence[Any], params: Params, line: Line | None = None
    ) -> list[Tracer]:
        """Record one equation, of the line that runs now or of a given one; return tracers for its results."""
        atoms = [
            x.atom if x.__class__ is Tracer and x.builder is self and x.memory is None else self.atom(x)
            for x in operands
        ]
        line = line or user_line()
        if not self.shared:
            eqn = _new_eqn(primitive, atoms, params, line)
            self._eqns.append(eqn)
        else:
            key = (primitive, line, *atoms, *params.items())
            node = self.node.children.get(key)
            if node is None:
                node = self._add(key, Node(self.node, eqn=_new_eqn(primitive, atoms, params, line)))
            self.node = node
            eqn = node.eqn  # type: ignore[assignment]
        for var in eqn.outputs:
            self.definitions[var] = eqn
        if not self._handling.is_current():
            self._run_if_errors_matter(eqn)
        return [Tracer(self, v) for v in eqn.outputs]

    def repeat(self, eqn: Eqn, operands: Sequence[Any]) -> list[Tracer]:
        """Record an equation of another program on operands of the same types; return tracers for its results."""
        if self.shared:
            return self.record(eqn.primitive, operands, eqn.params, eqn.line)
        atoms = [
            x.atom if x.__class__ is Tracer and x.builder is self and x.memory is None else self.atom(x)
            for x in operands
        ]
        # The types of the results are known, so the type rule need not run again.
        new = Eqn(eqn.primitive, tuple(atoms), eqn.params, tuple([Var(v.type) for v in eqn.outputs]), eqn.line)
        self._eqns.append(new)
        for var in new.outputs:
            self.definitions[var] = new
        if self._runs_code and not self._handling.is_current():
            self._run_if_errors_matter(new)
        return [Tracer(self, v) for v in new.outputs]

    def _add(self, key: Any, node: Node) -> Node:
        trie.count += 1
        return self.node.children.setdefault(key, node)

    def eqns(self) -> list[Eqn]:
        """The equations recorded so far."""
        return self.node.eqns() if self.shared else self._eqns

    def atom(self, x: Any) -> Atom:
        """The variable or constant that an operand is in this program; anything foreign is captured."""
        if isinstance(x, Tracer):
            if x.memory is not None:
                x.memory.refresh(x)
            return x.atom if x.builder is self else self._capture_tracer(x)
        if isinstance(x, Const):
            return x
        return self._capture_array(x)

    def scalar(self, value: Any, dtype: np.dtype[Any]) -> Atom:
        """The operand for a number in user code: a literal, or a captured input if it varies from call to call."""
        const = literal(value, ArrayType((), dtype))
        if not self.shared or attributed_line() is not None:
            return const
        seen = self.node.scalars
        if seen is None:
            seen = self.node.scalars = {}
        if const not in seen:
            # Counted by line, because functions that begin alike are at the same place of the trie.
            line = user_line()
            count = seen.get(line, 0)
            if count >= _MOST_SCALARS:
                return self._capture(("scalar", const), const.value, const.type)
            seen[line] = count + 1
            seen[const] = 1
        return const

    # Captures

    def _capture(self, identity: Any, value: Any, type: ArrayType) -> Var:
        var = self._captures.get(identity)
        if var is None:
            var = self._captures[identity] = self._new_capture(type)
            self.captured.append(value)
            self.capture_vars.append(var)
        return var

    def _new_capture(self, type: ArrayType) -> Var:
        if not self.shared:
            return Var(type)
        key = ("capture", type)
        node = self.node.children.get(key)
        if node is None:
            node = self._add(key, Node(self.node, var=Var(type)))
        self.node = node
        assert node.var is not None
        return node.var

    def _capture_tracer(self, tracer: Tracer) -> Atom:
        builder = tracer.builder
        if not builder.is_open:
            raise leak_error(tracer)
        ancestor = self.parent
        while ancestor is not None and ancestor is not builder:
            ancestor = ancestor.parent
        if ancestor is None:
            raise TracerLeak(
                "a traced value of one trace was used in another that is not inside it, for instance in another thread "
                "or after an inner function had stored it; return the value from the function instead"
                + at_line(user_line())
            )
        if isinstance(tracer.atom, Const):
            return tracer.atom
        # Traces that begin alike share variables, so the variable alone does not say whose value it is.
        return self._capture((builder, tracer.atom), Tracer(builder, tracer.atom), tracer.atom.type)

    def _capture_array(self, x: Any) -> Atom:
        type = type_of(x)
        if not isinstance(x, np.ndarray):
            if isinstance(x, np.generic | bool | int | float | complex):
                const = literal(x, type)
                return self._capture(("scalar", const), const.value, type) if self.shared else const
            if isinstance(x, Eager | Cell):
                self._captures_so_far().taken(x)
            return self._capture(("array", id(x)), x, type)
        if x.nbytes <= _SMALL_BYTES and not is_frozen(x):
            identity = ("copy", type, x.strides if x.ndim > 1 else None, x.tobytes())
            return self._capture(identity, x.copy("K"), type)
        x = self._captures_so_far().taken(x)
        return self._capture(("array", id(x)), x, type)

    def check_captures(self, needed: Container[Var] | None = None) -> None:
        """Raise if what is captured and was not copied has changed; where only some is `needed`, if that has."""
        if self._closed_over is None:
            return
        if needed is None:
            self._closed_over.check()
        else:
            self._closed_over.check(x for v, x in zip(self.capture_vars, self.captured, strict=True) if v in needed)

    def _captures_so_far(self) -> Captures:
        if self._closed_over is None:
            self._closed_over = Captures(None if self.parent is None else self.parent._captures_so_far())
        return self._closed_over

    # Floating-point errors that the code waits for

    def _reaction(self) -> Reaction | None:
        """What the code does about floating-point errors that was not done when the trace began."""
        compared, reaction = self._compared
        if not compared.is_current():
            reaction = reaction_since(self._handling)
            self._compared = Handling(), reaction
        return reaction

    def _run_if_errors_matter(self, eqn: Eqn) -> None:
        """Evaluate an equation at once if the code waits for its errors, which otherwise come when the code is over."""
        reaction = self._reaction()
        if reaction is None or not self._runs_code:
            return
        line = user_line()
        if self.is_compiled():
            raise refuse(
                ConcretizationError(
                    f"{reaction.written} inside of a function that is compiled: XLA raises no such errors, so "
                    f"{reaction.handler} would never be reached"
                    + at_line(line)
                    + "\n  Test for what leads to the error: np.where(x == 0.0, a, b / x), with another x where it is "
                    "not chosen; or leave this part outside of ftrans.jit."
                )
            )
        what = f"{reaction.written} asks for the errors of"
        operands = [self._value_of(a, what, line) if isinstance(a, Var) else a.array() for a in eqn.operands]
        symbolic = any(isinstance(x, Tracer) for x in operands)
        with recording_in(self.parent if symbolic else None):
            results = eqn.primitive.bind_all(operands, eqn.params)
        assert self._values is not None
        self._values.update(zip(eqn.outputs, results, strict=True))

    # Finishing

    def finish(self, outputs: Sequence[Any], name: str) -> Program:
        """The program recorded so far: explicit inputs first, then captured ones."""
        atoms = tuple(self.atom(x) for x in outputs)
        self.check_captures()
        inputs = self.root.inputs + tuple(self.capture_vars)
        if not self.shared:
            return Program(name, inputs, self._eqns, atoms)
        programs = self.node.programs
        if programs is None:
            programs = self.node.programs = {}
        key = (name, atoms)
        program = programs.get(key)
        if program is None:
            program = programs.setdefault(key, Program(name, inputs, self.node.eqns(), atoms))
            trie.count_program(program)
        return program

    # Concrete values

    def concretize(self, tracer: Tracer, what: str, seen_as: Callable[[Any], Any] | None = None) -> Any:
        """The value of a tracer of this builder as a NumPy scalar or array, from the witnesses.

        The result is remembered, and recorded as a guard: of the value, or of what it is `seen_as`.

        Raises:
            ConcretizationError: the value depends on an input without a witness.
        """
        line = user_line()
        atom = self.atom(tracer)
        if isinstance(atom, Const):
            return atom.array()
        value = self._value_of(atom, what, line)
        if isinstance(value, Tracer):
            return value.builder.concretize(value, what, seen_as)
        if self.has_one_shape and np.size(value) > 1 and what != _PRINTING:
            raise refuse(
                ConcretizationError(
                    f"a shape depends on {what} a traced array, but a compiled program has one shape whatever the "
                    "values"
                    + at_line(line)
                    + "\n  Keep the shape: np.where(mask, x, 0.0) in place of x[mask], np.sum(x, where=mask), "
                    "x[mask] = number, np.sort(x) in place of np.unique(x); or leave this part outside of ftrans.jit."
                )
            )
        self.guards.append(Guard(atom, value, line, seen_as))
        return value

    def _value_of(self, var: Var, what: str, line: Line | None) -> Any:
        if self._values is None:
            witnesses = self.witnesses
            if isinstance(witnesses, NoWitness):
                witnesses = [witnesses] * len(self.root.inputs)
            self._values = dict(zip(self.root.inputs, witnesses, strict=True))
        values = self._values
        values.update(zip(self.capture_vars, self.captured, strict=True))
        if var in values and not isinstance(values[var], NoWitness):
            return _as_numpy(values[var], what, line)
        needed, slice_ = self._slice(var, values)
        self.check_captures(needed)
        leaves = [values[v] for v in needed if v in values]
        missing = [x for x in leaves if isinstance(x, NoWitness)]
        if missing:
            raise refuse(
                ConcretizationError(
                    f"{what} a traced value, but there is no one value to look at: {missing[0].reason}"
                    + at_line(line)
                    + "\n  Write numpy.where(condition, a, b) to choose between values, or ftrans.cond, "
                    "ftrans.while_loop or ftrans.fori_loop for a branch or loop that depends on it."
                )
            )
        symbolic = any(isinstance(x, Tracer) for x in leaves)
        with recording_in(self.parent if symbolic else None), self._modes_to_run(symbolic):
            for eqn in reversed(slice_):
                operands = [values[a] if isinstance(a, Var) else a if symbolic else a.array() for a in eqn.operands]
                if not symbolic:
                    operands = [_as_numpy(x, what, line) for x in operands]
                with attributed_to(eqn.line):
                    results = eqn.primitive.bind_all(operands, eqn.params)
                values.update(zip(eqn.outputs, results, strict=True))
        return values[var]

    def _modes_to_run(self, symbolic: bool) -> AbstractContextManager[Any]:
        """What becomes of the floating-point errors of equations that were written before and run now."""
        if self._reaction() is not None:
            # They do not belong to the block that waits for errors now.
            return np.errstate(all="ignore")
        return nullcontext() if symbolic else warnings_at_user_line()

    def value_of_input(self, var: Atom) -> Any:
        """The value of an input as it was given, a `NoWitness` where there is none; None for another variable.

        The strides of an argument, where the program is made once for many calls, are noted as assumed.
        """
        for place, input in enumerate(self.root.inputs):
            if input is var:
                value = self.witnesses if isinstance(self.witnesses, NoWitness) else self.witnesses[place]
                if not self.shared and isinstance(value, np.ndarray):
                    self.assumed[place] = value.strides
                return value
        return next((x for x, v in zip(self.captured, self.capture_vars, strict=True) if v is var), None)

    def _slice(self, var: Var, known: Container[Var]) -> tuple[set[Var], list[Eqn]]:
        """The variables that a value depends on, as far as those known, and the equations in between, latest first."""
        needed = {var}
        missing = set() if var in known else {var}
        slice_: list[Eqn] = []
        for eqn in self.backwards():
            if not missing:
                break
            if not missing.isdisjoint(eqn.outputs):
                slice_.append(eqn)
                operands = [a for a in eqn.operands if isinstance(a, Var)]
                needed.update(operands)
                missing.difference_update(eqn.outputs)
                missing.update(a for a in operands if a not in known)
        return needed, slice_

    def example(self, tracer: Tracer) -> Any:
        """A value that a tracer of this builder may have, as an array; None where none is known.  Records nothing."""
        atom = self.atom(tracer)
        if isinstance(atom, Const):
            return atom.array()
        given = self.witnesses
        witnesses = [given] * len(self.root.inputs) if isinstance(given, NoWitness) else given
        known = dict(zip((*self.root.inputs, *self.capture_vars), (*witnesses, *self.captured), strict=True))
        needed, slice_ = self._slice(atom, known)
        values = {v: example_of(known[v]) for v in needed if v in known}
        if any(x is None for x in values.values()):
            return None
        with recording_in(None), warnings_at_user_line():
            for eqn in reversed(slice_):
                operands = [values[a] if isinstance(a, Var) else a.array() for a in eqn.operands]
                values.update(zip(eqn.outputs, eqn.primitive.bind_all(operands, eqn.params), strict=True))
        return values[atom]

    def is_compiled(self) -> bool:
        """Whether what is being traced, or a program around it, will be compiled and run for other values."""
        return any(b.has_one_shape for b in _chain(self))

    def backwards(self) -> Iterator[Eqn]:
        """The equations recorded so far, the latest first."""
        if not self.shared:
            yield from reversed(self._eqns)
            return
        node: Node | None = self.node
        while node is not None:
            if node.eqn is not None:
                yield node.eqn
            node = node.parent

    def witness(self, tracer: Tracer) -> Any:
        """The value of a tracer if it can be had, else None.  For printing only: it records no guard."""
        builder: Builder = self
        depth = [(b, len(b.guards)) for b in _chain(builder)]
        try:
            value = self.concretize(tracer, _PRINTING)
        except Exception:
            return None
        finally:
            for b, count in depth:
                del b.guards[count:]
        return value


def _new_eqn(primitive: Primitive, atoms: list[Atom], params: Params, line: Line | None) -> Eqn:
    types = primitive.output_types([a.type for a in atoms], params)
    return Eqn(primitive, tuple(atoms), params, tuple([Var(t) for t in types]), line)


def refuse(error: TypeError) -> TypeError:
    """Remember an error that is about to be raised through NumPy's own code; return it."""
    builder = _current.get()
    if builder is not None:
        builder.refused = error
    return error


def _chain(builder: Builder | None) -> Iterator[Builder]:
    while builder is not None:
        yield builder
        builder = builder.parent


def _as_numpy(value: Any, what: str, line: Line | None) -> Any:
    if isinstance(value, np.ndarray | np.generic | Tracer):
        return value
    if isinstance(value, Eager | Cell):
        return value.concrete()
    try:
        return np.asarray(value)
    except Exception as error:
        raise ConcretizationError(
            f"{what} a traced value, but its value is not known here ({type(error).__name__}): the function runs "
            "inside another library's trace; use numpy.where or ftrans.cond" + at_line(line)
        ) from None


def example_of(value: Any) -> Any:
    """A value that an operand has or may have, as an array; None where none is known."""
    if isinstance(value, NoWitness):
        return None if value.example is None else value.example()
    if isinstance(value, Tracer):
        return value.builder.example(value)
    try:
        return _as_numpy(value, "an example of", None)
    except ConcretizationError:
        return None


def repeat(eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Record an equation of another program in the current trace, or evaluate it where none is running."""
    builder = _current.get()
    if builder is not None:
        return builder.repeat(eqn, operands)
    with attributed_to(eqn.line):
        return eqn.primitive.bind_all(operands, eqn.params)


def definition(tracer: Tracer) -> Eqn | None:
    """The equation that a tracer is the result of, or None for an input or a constant."""
    atom = tracer.atom
    return tracer.builder.definitions.get(atom) if isinstance(atom, Var) else None


def leak_error(tracer: Tracer) -> TracerLeak:
    """The error for a tracer used after its trace: names the line that made it and the line that used it."""
    made = tracer.line()
    where = f"made at {made.describe()}" if made is not None else "an argument of the traced function"
    return TracerLeak(
        f"a traced value ({tracer.type}, {where}) was used after the function that made it had returned; "
        "it stands for a value only while that function is traced. Return it from the function instead of storing it"
        + at_line(user_line())
    )


# The builder of the innermost trace that is running, or None.
current_builder = _current.get


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
    """Make `builder` the one that records; when the block ends, it and its tracers are closed."""

    __slots__ = ()

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
        assert self._builder is not None
        self._builder.is_open = False
