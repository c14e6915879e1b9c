"""A call of one of SciPy's solvers in a trace: which of its arguments are traced, and how it is run nevertheless.

The solver itself runs on the host, on values: un-jitted, compiled and for each lane of a batch.  The functions that it
is given are traced once, as programs of the unknowns and of all that they close over, and the host evaluates these.
Where a function asks for the value of an unknown, for instance in a branch, it has no one program.  Then the solver
runs while the function is traced, and the program is that of the branches at the solution.

Nothing here has a derivative: that is what `solutions` adds.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...api.call import run, trace_flat
from ...api.vectors import Captured
from ...base import tree
from ...base.keys import Identity, exact
from ...base.source import at_line, user_line
from ...base.tracebacks import short_tracebacks
from ...control.rules.black_box import Code, black_box
from ...core.interpret import inline
from ...core.program import Program
from ...core.trace import NoWitness, Tracer, building, current_builder
from ...core.types import ArrayType, is_complex
from ...core.witness import CodeBuilder, known_value
from ...numpy.dispatch import TABLE, TAKES_FUNCTIONS
from ...numpy.promotion import asarray, has_tracer
from ...ops.elementwise import stop_gradient
from ...run.places import NUMPY, place_of_arguments

Function = Callable[..., Any]

NUMBER, INT, BOOL = (ArrayType((), np.dtype(kind)) for kind in (float, np.int64, bool))
# Of a run that is still to come nobody can say more.
TRACED_MESSAGE = "found in a trace: see success and status"


def vector_of(size: int) -> ArrayType:
    """The type of so many unknowns."""
    return NUMBER.with_shape((size,))


def alone(found: Any) -> Sequence[Any]:
    """What a solver returns by itself."""
    return (found,)


class NothingTraced(Exception):
    """None of the arguments of a solver is traced, and none of its functions uses what is."""


def entering(original: Function, plain: Function | None = None) -> Callable[[Callable[[Call], Any]], Function]:
    """A decorator: enter what it decorates, a function of a `Call`, as the traced form of a solver.

    It returns the public form.  In both forms the solver itself runs where nothing is traced.  What functions close
    over cannot be seen among the arguments, so that is decided by the `Call` whenever a trace is running.

    Args:
        original: SciPy's solver.
        plain: the solver of the public form, if that is not SciPy's own.
    """

    def enter(traced: Callable[[Call], Any]) -> Function:
        TABLE[original] = _form(original, original, traced)
        TAKES_FUNCTIONS.add(original)
        return _form(original, plain or original, traced)

    return enter


def _form(original: Function, solve: Function, traced: Callable[[Call], Any]) -> Function:
    if solve is not original:
        # What users call it, in messages, too.
        solve.__name__ = solve.__qualname__ = original.__name__
    signature = inspect.signature(solve)

    @short_tracebacks
    @functools.wraps(solve)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current_builder() is None:
            place = place_of_arguments(args, kwargs)
            return solve(*args, **kwargs) if place is NUMPY else place.call(call, args, kwargs)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            # SciPy says what is wrong.
            return solve(*args, **kwargs)
        try:
            return traced(Call(original.__name__, solve, bound))
        except NothingTraced:
            return solve(*args, **kwargs)

    return call


class Given:
    """A function that a solver is given, as a function of the unknowns alone.

    Called with traced unknowns it is its program, recorded in the running trace.

    Args:
        f: the function.
        types: the types of the unknowns.
        what: the name of the solver.
    """

    def __init__(self, f: Function, types: Sequence[ArrayType], what: str) -> None:
        self.f = f
        self.types = tuple(types)
        self.error: Exception | None = None
        self.captured: Captured | None = None
        reason = NoWitness(f"a function given to {what} is evaluated at many points, so a branch has no single value")
        try:
            self._trace(reason)
        except Exception as error:  # whatever the user's function raises when it is traced
            self.error = error

    def _trace(self, at: Sequence[Any] | NoWitness) -> None:
        traced, _ = trace_flat(self.f, self.types, lambda xs: self.f(*xs), at)
        self.structure = traced.structure
        self.captured = Captured.of(traced.program, traced.captured, len(self.types))

    def settle(self, at: Sequence[Any]) -> None:
        """Take the program of the branches that the function takes at these values, if it has no other."""
        if self.captured is None:
            self._trace([np.asarray(x)[()] for x in at])

    def is_traced(self) -> bool:
        """Whether the program depends on what is traced."""
        return any(isinstance(x, Tracer) or not isinstance(x, np.ndarray | np.generic) for x in self.consts)

    @property
    def consts(self) -> list[Any]:
        """What the program closes over."""
        return [] if self.captured is None else self.captured.consts

    def __call__(self, *unknowns: Tracer) -> Any:
        assert self.captured is not None
        outs = inline(self.captured.program, [*map(asarray, self.consts), *unknowns])
        return tree.unflatten(self.structure, outs)

    def by_value(self, witness: _Values) -> Function:
        """The function on values, however it branches."""

        def call(*xs: Any) -> Any:
            if any(map(has_tracer, xs)):
                # The solver asks for a derivative, which takes differences of values here.
                raise self.error or NothingTraced
            builder = _ByValue(witness, self.error)
            with building(builder):
                leaves, structure = tree.flatten(self.f(*xs))
                return tree.unflatten(structure, [_value_in(builder, x) for x in leaves])

        return call


class _Values:
    """Whether values of what is traced were asked for."""

    used = False

    def of(self, tracer: Tracer, error: Exception | None) -> Any:
        """The value of a traced value.

        Raises:
            Exception: the `error`, if the trace is one for many values.
        """
        self.used = True
        value = None if tracer.builder.is_compiled() else known_value(tracer)
        if value is None:
            raise error or NothingTraced
        return value


class _ByValue(CodeBuilder):
    """Records code that closes over traced values as if it closed over their values."""

    def __init__(self, values: _Values, error: Exception | None) -> None:
        super().__init__((), ())
        self._by_value = values
        self._error = error

    def _capture_tracer(self, tracer: Tracer) -> Any:
        return self.captures.add_array(self._by_value.of(tracer, self._error))


def _value_in(builder: CodeBuilder, x: Any) -> Any:
    if not isinstance(x, Tracer):
        return x
    return known_value(x if x.builder is builder else Tracer(builder, builder.atom(x)))


class Call:
    """A call of a solver in a trace.

    Attributes:
        name: the name of the solver.
        arguments: its arguments by name.

    Args:
        name: the name.
        solve: the solver.
        bound: its arguments.
    """

    def __init__(self, name: str, solve: Function, bound: inspect.BoundArguments) -> None:
        self.name = name
        self.solve = solve
        self._given = dict(bound.arguments)
        bound.apply_defaults()
        self.arguments = dict(bound.arguments)
        self._signature = bound.signature

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def solved(self, arguments: dict[str, Any]) -> Any:
        """The result of the solver for other arguments."""
        bound = inspect.BoundArguments(self._signature, arguments)
        return self.solve(*bound.args, **bound.kwargs)

    def given(self, name: str, *types: ArrayType, as_read: Callable[[Function], Function] = lambda f: f) -> Given:
        """A function among the arguments, with its further arguments, and with its result `as_read` by SciPy."""
        f = self.arguments[name]
        args = self.arguments.get("args", ())
        args = args if isinstance(args, tuple) else (args,)
        return Given(as_read((lambda *xs, **more: f(*xs, *args, **more)) if args else f), types, self.name)

    def searched(
        self,
        functions: Mapping[str, Given],
        read: Callable[[Any], Sequence[Any]],
        types: Sequence[ArrayType],
        changed: Mapping[str, Any] | None = None,
        put_together: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> list[Tracer]:
        """What the solver finds, without derivatives.

        Args:
            functions: the functions among the arguments.
            read: the wanted parts of the solver's result, of which the first are the unknowns of the functions.
            types: the types of these.
            changed: arguments that are changed.
            put_together: makes the solver's arguments of those, and of the functions by their names.

        Raises:
            NothingTraced: neither arguments nor functions are.
        """
        arguments = {**self._given, **(changed or {}), **dict.fromkeys(functions)}
        if "args" in arguments:
            arguments["args"] = ()
        leaves, structure = tree.flatten(arguments)
        places = tuple([i for i, x in enumerate(leaves) if _is_operand(x)])
        operands = [leaves[i] for i in places]
        for i in places:
            leaves[i] = None
        is_traced = any(map(has_tracer, operands))
        host = _Host(self, (structure, leaves, places), functions, read, types, put_together)
        if any(f.captured is None for f in functions.values()):
            return self._found_now(host, functions, operands, is_traced)
        if not is_traced and not any(f.is_traced() for f in functions.values()):
            raise NothingTraced
        consts = [x for f in functions.values() for x in f.consts]
        return black_box.apply(host, [stop_gradient(asarray(x)) for x in (*consts, *operands)])

    def _found_now(
        self, host: _Host, functions: Mapping[str, Given], operands: Sequence[Any], is_traced: bool
    ) -> list[Tracer]:
        """The same while a function is traced that has no one program."""
        values = _Values()
        error = next(f.error for f in functions.values() if f.captured is None)
        known = [values.of(asarray(x), error) if has_tracer(x) else x for x in operands]
        found = host.solved({name: f.by_value(values) for name, f in functions.items()}, known)
        if not values.used and not is_traced:
            raise NothingTraced
        for f in functions.values():
            f.settle(found[: len(f.types)])
        return [asarray(x) for x in found]


def refuse_complex(call: Call, name: str) -> None:
    """Raise if the start of a search in a trace is complex.

    Raises:
        TypeError: it is.
    """
    x = call[name]
    if np.iscomplexobj(x) if not has_tracer(x) else is_complex(asarray(x).dtype):
        raise TypeError(
            f"{call.name} of traced values solves for real numbers, but {name} is complex; write the real and the "
            f"imaginary part as two unknowns, for ftrans.scipy.optimize.root{at_line(user_line())}"
        )


def _is_operand(x: Any) -> bool:
    return has_tracer(x) or (isinstance(x, np.ndarray) and x.dtype != object)


class _Host(Code):
    """A solver that runs on values, and what of its arguments is no operand.

    Equal ones are equal, so that programs in which they stand are found again.

    Args:
        call: the call.
        arguments: the structure of its arguments, their leaves, and the places of operands among these.
        functions: the functions that it is given.
        read: the wanted parts of its result.
        types: the types of these.
        put_together: makes the solver's arguments, if not of these names.
    """

    def __init__(
        self,
        call: Call,
        arguments: tuple[tree.Structure, list[Any], tuple[int, ...]],
        functions: Mapping[str, Given],
        read: Callable[[Any], Sequence[Any]],
        types: Sequence[ArrayType],
        put_together: Callable[[dict[str, Any]], dict[str, Any]] | None,
    ) -> None:
        super().__init__(call.name, self._on_values, types, "SciPy computes it")
        self._call = call
        self._structure, self._leaves, self._places = arguments
        self._read = read
        self._put_together = put_together
        self._programs = [
            (name, f.captured.program, f.structure, len(f.captured.consts))
            for name, f in functions.items()
            if f.captured is not None
        ]
        statics = tuple(map(_key, self._leaves))
        self._key = (
            call.solve,
            self._structure,
            statics,
            self._places,
            tuple(self._programs),
            read,
            self.types,
            put_together,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Host) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def _on_values(self, *arrays: Any) -> list[Any]:
        functions = {}
        for name, program, structure, count in self._programs:
            functions[name] = _evaluating(program, structure, arrays[:count])
            arrays = arrays[count:]
        return self.solved(functions, arrays)

    def solved(self, functions: Mapping[str, Function], operands: Sequence[Any]) -> list[Any]:
        """What the solver finds with these functions and operands."""
        leaves = list(self._leaves)
        for i, x in zip(self._places, operands, strict=True):
            leaves[i] = x
        arguments = {**tree.unflatten(self._structure, leaves), **functions}
        if self._put_together is not None:
            arguments = self._put_together(arguments)
        found = self._read(self._call.solved(arguments))
        return [np.asarray(x, t.dtype).reshape(t.shape)[()] for x, t in zip(found, self.types, strict=True)]


def _key(x: Any) -> Any:
    key = exact(x)
    try:
        hash(key)
    except TypeError:
        return Identity(x)
    return key


def _evaluating(program: Program, structure: tree.Structure, consts: Sequence[Any]) -> Function:
    """A program as a function of the unknowns, which may be traced."""
    types = program.in_types[len(consts) :]

    def call(*unknowns: Any) -> Any:
        xs = [x if has_tracer(x) else np.asarray(x, t.dtype) for x, t in zip(unknowns, types, strict=False)]
        return tree.unflatten(structure, run(program, [*consts, *xs]))

    return call
