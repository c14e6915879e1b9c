"""Witnesses: the actual arguments of traced code, so that it can ask for values.

When user code needs a Python `bool` or an index, the equations that this value depends on are evaluated.  If the
arguments are themselves traced, they are recorded in the enclosing program, which is asked in turn.  The values that
the code has seen are the program's *guards*.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import numpy as np

from ..base.cell import Holder
from ..base.error_modes import Handling, Reaction, reaction_since
from ..base.floating_point import warnings_at_user_line
from ..base.source import Line, at_line, attributed_to, user_line
from ..base.type_questions import is_plain
from .program import Atom, Const, Eqn, Program, Var
from .tape import Tape
from .trace import Builder, Guard, NoWitness, Tracer, current_builder, recording_in
from .trie import TrieTape
from .types import ArrayType


class ConcretizationError(TypeError):
    """Python code asked for the value of a tracer that has none."""


class CodeBuilder(Builder):
    """Records user code, which may ask for values and handle floating-point errors.

    Attributes:
        assumed: strides of inputs that the program depends on.
        checks: what is called with the program when it is finished, to raise if it is not what the code means.

    Args:
        types: types of the program's explicit inputs.
        witnesses: the actual arguments; or one `NoWitness` for all.
        shared: record in the trie, where an equal program is found again.
        has_one_shape: whether the program is compiled once.
        tape: where to record if not there; a new tape by default.
    """

    # Evaluates a program on arrays that are divided over processes; set by what runs programs through JAX.
    evaluate_together: ClassVar[Callable[[Program, Sequence[Any]], list[Any]]]

    def __init__(
        self,
        types: Sequence[ArrayType],
        witnesses: Sequence[Any] | NoWitness,
        shared: bool = False,
        has_one_shape: bool = False,
        tape: Tape | None = None,
    ) -> None:
        super().__init__(TrieTape(types, current_builder() is None) if shared else tape or Tape(types))
        self.witnesses = witnesses
        self.has_one_shape = has_one_shape
        if has_one_shape and self.captures.originals is None:
            self.captures.originals = {}
        self.assumed: dict[int, tuple[int, ...]] = {}
        self.checks: list[Callable[[Program], None]] = []
        self.handling = Handling()
        # The handling of floating-point errors when it was last compared.
        self._compared: tuple[Handling, Reaction | None] = (self.handling, None)

    def reaction(self) -> Reaction | None:
        """How the code handles floating-point errors, if differently than when the trace began."""
        compared, reaction = self._compared
        if not compared.is_current():
            assert self.handling is not None
            reaction = reaction_since(self.handling)
            self._compared = Handling(), reaction
        return reaction

    def handle_errors(self, eqn: Eqn) -> None:
        """Evaluate an equation at once if the code handles its errors, which otherwise come after the code."""
        reaction = self.reaction()
        if reaction is None:
            return
        line = user_line()
        if self.is_compiled():
            raise refuse(
                ConcretizationError(
                    f"{reaction.written} inside a function that is compiled: XLA raises no such errors, so "
                    f"{reaction.handler} would never be reached"
                    + at_line(line)
                    + "\n  Test for what leads to the error: np.where(x == 0.0, a, b / x), with another x where it is "
                    "not chosen; or leave this part outside of ftrans.jit."
                )
            )
        what = f"{reaction.written} asks for the errors of"
        operands = [_value_of(self, a, what, line) if isinstance(a, Var) else a.array() for a in eqn.operands]
        symbolic = any(isinstance(x, Tracer) for x in operands)
        with recording_in(self.parent if symbolic else None):
            results = eqn.primitive.bind_all(operands, eqn.params)
        self.values.update(zip(eqn.outputs, results, strict=True))


def refuse(error: TypeError, as_plain: bool = False) -> TypeError:
    """Remember an error, which code may replace or catch; `as_plain` if plain numbers give one, too.  Return it."""
    builder = current_builder()
    if builder is not None:
        builder.refused.append((error, as_plain))
    return error


# Values


def concretize(tracer: Tracer, what: str, seen_as: Callable[[Any], Any] | None = None) -> Any:
    """The value of a tracer as a NumPy scalar or array, from the witnesses of its builder.

    The value is recorded as a guard.

    Args:
        tracer: the tracer.
        what: who asks for the value, as the beginning of a sentence that continues "... a traced value".
        seen_as: a function of the value, if the code sees only the result of that.

    Raises:
        ConcretizationError: the value depends on an input without a witness.
    """
    return _concretized(tracer, what, seen_as, any_size=False)


def known_value(tracer: Tracer) -> Any:
    """The value of a tracer if it is available, else None.  For printing only: records no guard."""
    depth = [(b, len(b.guards)) for b in tracer.builder.chain()]
    try:
        return _concretized(tracer, "printing", None, any_size=True)
    except Exception:
        return None
    finally:
        for b, count in depth:
            del b.guards[count:]


def _concretized(tracer: Tracer, what: str, seen_as: Callable[[Any], Any] | None, any_size: bool) -> Any:
    builder, line = tracer.builder, user_line()
    atom = builder.atom(tracer)
    if isinstance(atom, Const):
        return atom.array()
    value = _value_of(builder, atom, what, line)
    if isinstance(value, Tracer):
        value = _concretized(value, what, seen_as, any_size)
        if not builder.is_one_of_many:
            return value
    elif builder.has_one_shape and np.size(value) > 1 and not any_size and constant_of(tracer) is None:
        raise refuse(
            ConcretizationError(
                f"a shape depends on {what} a traced array, but a compiled program has one shape whatever the "
                "values"
                + at_line(line)
                + "\n  Keep the shape: np.where(mask, x, 0.0) in place of x[mask], np.sum(x, where=mask), "
                "x[mask] = number, np.sort(x) in place of np.unique(x); or leave this part outside of ftrans.jit."
            )
        )
    builder.guards.append(Guard(atom, value, line, seen_as))
    return value


def _value_of(builder: Builder, var: Var, what: str, line: Line | None) -> Any:
    values = builder.values
    values.update(_given(builder))
    if var in values and not isinstance(values[var], NoWitness):
        return _as_numpy(values[var], what, line)
    needed, slice_ = _slice(builder.tape.backwards(), var, values)
    builder.captures.check(needed)
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
    if not (symbolic or all(map(_is_here, leaves))):
        inputs = [v for v in needed if v in values]
        program = Program("a value", inputs, slice_[::-1], [var])
        [values[var]] = CodeBuilder.evaluate_together(program, [values[v] for v in inputs])
        return values[var]
    with recording_in(builder.parent if symbolic else None), _modes_to_run(builder, symbolic):
        for eqn in reversed(slice_):
            operands = [values[a] if isinstance(a, Var) else a if symbolic else a.array() for a in eqn.operands]
            if not symbolic:
                operands = [_as_numpy(x, what, line) for x in operands]
            with attributed_to(eqn.line):
                results = eqn.primitive.bind_all(operands, eqn.params)
            values.update(zip(eqn.outputs, results, strict=True))
    return values[var]


def _is_here(x: Any) -> bool:
    """Whether this process can read an array; JAX refuses to say it of a value that it traces."""
    try:
        return bool(getattr(x, "is_fully_addressable", True))
    except TypeError:
        return True


def _given(builder: Builder) -> dict[Var, Any]:
    """The values of all inputs of a program."""
    inputs, witnesses = builder.tape.inputs, builder.witnesses
    given = [witnesses] * len(inputs) if isinstance(witnesses, NoWitness) else witnesses
    return dict(zip((*inputs, *builder.captures.vars), (*given, *builder.captures.values), strict=True))


def _modes_to_run(builder: Builder, symbolic: bool) -> AbstractContextManager[Any]:
    """The handling of floating-point errors for equations recorded earlier that are evaluated now."""
    if isinstance(builder, CodeBuilder) and builder.reaction() is not None:
        # They do not belong to the block that handles errors now.
        return np.errstate(all="ignore")
    return nullcontext() if symbolic else warnings_at_user_line()


def _slice(
    backwards: Iterable[Eqn], var: Var, known: Container[Var], until: Set[Var] = frozenset()
) -> tuple[set[Var], list[Eqn]]:
    """The variables that a value depends on, back to the known ones, and the equations between, latest first.

    If it depends on one of `until`, the rest is left out.
    """
    needed = {var}
    missing = set() if var in known else {var}
    slice_: list[Eqn] = []
    for eqn in backwards:
        if not missing:
            break
        if not missing.isdisjoint(eqn.outputs):
            slice_.append(eqn)
            operands = [a for a in eqn.operands if isinstance(a, Var)]
            needed.update(operands)
            if not until.isdisjoint(operands):
                break
            missing.difference_update(eqn.outputs)
            missing.update(a for a in operands if a not in known)
    return needed, slice_


def _as_numpy(value: Any, what: str, line: Line | None) -> Any:
    if isinstance(value, np.ndarray | np.generic | Tracer):
        return value
    if isinstance(value, Holder):
        return value.concrete()
    try:
        return np.asarray(value)
    except Exception as error:
        raise ConcretizationError(
            f"{what} a traced value, but its value is not known here ({type(error).__name__}): the function runs "
            "inside another library's trace; use numpy.where or ftrans.cond" + at_line(line)
        ) from None


# Values known without guards


def value_of_input(builder: Builder, var: Atom) -> Any:
    """The value of an input, or a `NoWitness`; None for a variable that is not an input.

    If the program is traced once for many calls, the strides of the argument are noted as assumed.
    """
    for place, input in enumerate(builder.tape.inputs):
        if input is var:
            value: Any = builder.witnesses if isinstance(builder.witnesses, NoWitness) else builder.witnesses[place]
            if isinstance(builder, CodeBuilder) and not builder.tape.is_shared and is_plain(value, np.ndarray):
                builder.assumed[place] = value.strides
            return value
    captures = builder.captures
    return next((x for x, v in zip(captures.values, captures.vars, strict=True) if v is var), None)


def example_of(value: Any) -> Any:
    """An actual or possible value of an operand, as an array; None if none is known.  Records nothing."""
    if isinstance(value, NoWitness):
        return None if value.example is None else value.example()
    return _computed(value, example_of, with_arguments=True)


def constant_of(value: Any) -> Any:
    """The value of an operand that depends on no argument, as an array; None for others.  Records nothing."""
    return None if isinstance(value, NoWitness | Holder) else _computed(value, constant_of, with_arguments=False)


def _computed(value: Any, of: Callable[[Any], Any], with_arguments: bool) -> Any:
    """The value of an operand, computed from those that `of` gives for captured values and, maybe, for arguments."""
    if not isinstance(value, Tracer):
        try:
            return _as_numpy(value, "an example of", None)
        except ConcretizationError:
            return None
    builder, atom = value.builder, value.builder.atom(value)
    if isinstance(atom, Const):
        return atom.array()
    known = _given(builder)
    # Code asks value after value, and each may depend on all of the trace: what is found is kept.
    varying = frozenset() if with_arguments else builder.varying
    needed, slice_ = _slice(() if atom in varying else builder.tape.backwards(), atom, known, varying)
    if not needed.isdisjoint(varying):
        builder.varying.add(atom)
        return None
    values = {v: of(known[v]) for v in needed if v in known}
    if any(x is None for x in values.values()):
        return None
    with recording_in(None), warnings_at_user_line():
        for eqn in reversed(slice_):
            operands = [values[a] if isinstance(a, Var) else a.array() for a in eqn.operands]
            values.update(zip(eqn.outputs, eqn.primitive.bind_all(operands, eqn.params), strict=True))
    return values[atom]
