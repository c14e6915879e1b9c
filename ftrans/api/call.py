"""Calls of user functions as programs: flatten containers, check arguments, trace, and rebuild results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from ..base import tree
from ..base.cell import Eager
from ..base.contexts import in_own_context
from ..base.foreign_arrays import ForeignArrays
from ..base.lookalikes import lookalike
from ..base.names import name_of
from ..base.observe import current_observer, reported
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..control.rolling import FEWEST_SAVED
from ..core.program import Program
from ..core.tape import Tape
from ..core.trace import NoWitness, Tracer, building, current_builder
from ..core.types import ArrayType, is_complex, is_inexact, type_of
from ..core.witness import CodeBuilder, ConcretizationError
from ..numpy.promotion import asarray, cast, has_tracer
from ..numpy.views import as_array
from ..run.places import TRACE, place_of
from ..xla import is_jax_tracer
from . import anomaly, lending
from .anomaly import Residuals
from .caught import hand_up, require_uncaught
from .targets import Partial, flatten_targets, is_target

_INTEGERS = (int, bool)
_PYTHON_NUMBERS = (float, int, bool, complex)


class Traced(NamedTuple):
    """A function that has been traced.

    Attributes:
        program: the program, with loops of Python as loops; its inputs are the traced arguments, then the captured
            values.
        captured: the captured values, to be passed after the arguments.
        structure: structure of the result.
        builder: the builder that recorded the program, for its guards.
    """

    program: Program
    captured: list[Any]
    structure: tree.Structure
    builder: CodeBuilder


def run(
    program: Program, args: Sequence[Any], wanted: int | None = None, residuals: Residuals | None = None
) -> list[Any]:
    """Run `program` where its arguments live: in the running trace, through JAX, or on the NumPy evaluator.

    Args:
        program: the program.
        args: its arguments.
        wanted: how many results the user gets, which anomaly detection checks; all by default.
        residuals: the origin of its first arguments, if they are residuals.
    """
    place = place_of(args)
    if place is TRACE or not anomaly.is_anomaly_enabled():
        return place.run(program, args)
    with anomaly.without_warnings():
        results = place.run(program, args)
    anomaly.check(program, args, results[:wanted], residuals)
    return results


def record_or_run(what: str, record: Callable[[list[Tracer]], list[Tracer]], operands: Sequence[Any]) -> list[Any]:
    """Record equations in the running trace, or run them at once if there is none."""
    if current_builder() is not None:
        return record([asarray(x) for x in operands])
    arrays = [x if hasattr(x, "dtype") else np.asarray(x)[()] for x in operands]
    return run(recorded(what, record, [type_of(x) for x in arrays]), arrays)


@in_own_context
def recorded(what: str, record: Callable[[list[Tracer]], list[Tracer]], types: Sequence[ArrayType]) -> Program:
    """The program of the equations that `record` records for operands of these types."""
    builder = CodeBuilder(types, NoWitness(f"the operands of {what} are given later"), shared=True)
    with building(builder):
        return builder.finish(record(builder.inputs()), what)


def has_active(container: Any) -> bool:
    """Whether a container holds an eager value whose operations are recorded."""
    return any(isinstance(x, Eager) and x.is_active() for x in tree.flatten(container)[0])


def is_recorded(container: Any) -> bool:
    """Whether a container holds a value whose operations are recorded, be it by JAX."""
    return any((isinstance(x, Eager) and x.is_active()) or is_jax_tracer(x) for x in tree.flatten(container)[0])


def call_on_recorded(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function that only has an effect in traces with eager values, or with what JAX traces.

    It is traced, and its program is applied to them.
    """
    leaves, structure = tree.flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, Eager) or is_jax_tracer(x)]
    values = [leaves[i] for i in places]

    def call(tracers: list[Tracer]) -> Any:
        given = list(leaves)
        for i, x in zip(places, tracers, strict=True):
            given[i] = x
        new_args, new_kwargs = tree.unflatten(structure, given)
        return f(*new_args, **new_kwargs)

    traced, _ = trace_flat(f, [type_of(x) for x in values], call, values)
    return tree.unflatten(traced.structure, run(traced.program, [*values, *traced.captured]))


# What is called with each function that is about to be traced.
BEFORE_TRACING: list[Callable[[Callable[..., Any]], None]] = []


def trace_flat(
    f: Callable[..., Any],
    types: Sequence[ArrayType],
    rebuild: Callable[[list[Tracer]], Any],
    witnesses: Sequence[Any] | NoWitness,
    weak: Sequence[bool] = (),
    shared: bool = True,
    has_aux: bool = False,
    with_guards: bool = False,
    rolls: bool = True,
    builder_type: type[CodeBuilder] = CodeBuilder,
) -> tuple[Traced, Any]:
    """Trace `rebuild(tracers)`, which calls `f`; return the traced function and the auxiliary result.

    Without `rolls`, the program keeps every step of a loop of Python, as it was written.
    """
    for prepare in BEFORE_TRACING:
        prepare(f)
    outer = current_builder()
    # Inside a trace that is made only once, the program will not be looked up again.
    shared_here = shared and (outer is None or outer.tape.is_shared)
    tape = None if shared_here else _long_tape(types)
    builder = builder_type(types, witnesses, shared_here, with_guards and not shared, tape)
    run = _traced if outer is not None else _traced_alone
    try:
        traced, rebuild_aux = run(builder, f, rebuild, weak, has_aux, with_guards)
    finally:
        # An interrupt may have hit the builder itself.
        builder.is_open = False
    if rolls and len(traced.program.recorded) > FEWEST_SAVED:
        traced = _rolled(traced, len(types), shared_here)
    return traced, rebuild_aux


def _long_tape(types: Sequence[ArrayType]) -> Tape:
    from ..control.rolling.long_tape import LongTape

    return LongTape(types)


def _rolled(traced: Traced, count: int, is_shared: bool) -> Traced:
    """What was traced, in the form that is transformed and run; `count` of its inputs are arguments."""
    from .rolling import as_it_runs, with_stacked_captures

    program, is_compiled = traced.program, traced.builder.is_compiled()
    if is_shared:
        return traced._replace(program=as_it_runs(program, is_compiled))
    program, captured = with_stacked_captures(program, count, traced.captured, is_compiled)
    return traced._replace(program=program, captured=captured)


def _traced(
    builder: CodeBuilder,
    f: Callable[..., Any],
    rebuild: Callable[[list[Tracer]], Any],
    weak: Sequence[bool],
    has_aux: bool,
    with_guards: bool,
) -> tuple[Traced, Any]:
    recording: AbstractContextManager[Any] = building(builder)
    if current_observer() is not None:
        recording = reported(recording, "tracing", "", f)
    with recording:
        tracers = builder.inputs()
        for index, is_weak in enumerate(weak):
            tracers[index].weak = is_weak
        if not isinstance(builder.witnesses, NoWitness):
            for tracer, value in zip(tracers, builder.witnesses, strict=False):
                # An array without axes can be assigned to, a number cannot.
                if type(value) is np.ndarray and not value.shape:
                    as_array(tracer)
        try:
            out = rebuild(tracers)
        except Exception as error:
            from .misuse import explained

            said = explained(error, builder)
            hand_up(error, said or error, builder)
            if said is None:
                raise
            raise said from None
        if builder.refused:
            require_uncaught(builder)
        aux: Any = None
        if has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise TypeError(
                    f"with has_aux=True, {name_of(f)} must return a pair (result, auxiliary), not {type(out).__name__}"
                    + at_line(user_line())
                )
            out, aux = out
        if type(out) is Tracer:
            leaves, structure = [out], tree.LEAF
        else:
            leaves, structure = tree.flatten(out)
            leaves = [_output(x, f, out, i) for i, x in enumerate(leaves)]
        aux_leaves, rebuild_aux = _auxiliary(aux) if has_aux else ([], None)
        guards = [Tracer(builder, guard.atom) for guard in builder.guards] if with_guards else []
        program = builder.finish([*leaves, *aux_leaves, *guards], name_of(f))
        for check in builder.checks:
            check(program)
    return Traced(program, builder.captures.values, structure, builder), rebuild_aux


_traced_alone = in_own_context(_traced)

# The code that runs in a thread while it traces a function.
TRACING = _traced.__code__


def _output(x: Any, f: Callable[..., Any], out: Any, index: int) -> Any:
    if type(x) is Tracer:
        return x
    try:
        return asarray(x)
    except ConcretizationError:
        raise
    except TypeError as error:
        advice = f"return arrays, numbers and containers of them{at_line(user_line())}"
        raise TypeError(
            f"{name_of(f)} returned {type(x).__name__} at result{tree.paths(out)[index]}, which is not an array; "
            + (str(error) if hasattr(x, "dtype") else advice)
        ) from None


def _auxiliary(aux: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The traced leaves of an auxiliary result, and a function that rebuilds it; other leaves pass through."""
    leaves, structure = tree.flatten(aux)
    is_traced = [has_tracer(x) for x in leaves]
    traced = [asarray(x) for x, t in zip(leaves, is_traced, strict=True) if t]

    def rebuild(values: Sequence[Any]) -> Any:
        remaining = iter(values)
        return tree.unflatten(
            structure, [next(remaining) if t else lending.returned(x) for x, t in zip(leaves, is_traced, strict=True)]
        )

    return traced, rebuild


def named(wrapped: Callable[..., Any], f: Callable[..., Any], transformation: str) -> Callable[..., Any]:
    """Give a transformed function the name that its programs are printed with."""
    wrapped.__name__ = f"{transformation}({name_of(f)})"
    return wrapped


def check_function(f: Any, what: str, name: str = "f") -> None:
    """Raise unless an argument is callable.

    Args:
        f: the argument.
        what: the name of the transformation or loop.
        name: the name of the parameter.
    """
    if callable(f):
        return
    advice = ""
    if isinstance(f, np.ndarray | np.generic | Tracer | Eager | int | float | complex):
        advice = ": if that is what a function returned, give the function itself, f in place of f(x)"
    raise TypeError(f"{what} takes a function, but {name} is {type_name(f)}{advice}{at_line(user_line())}")


def check_flag(flag: Any, what: str, name: str) -> None:
    """Raise unless an argument is True or False.

    Args:
        flag: the argument.
        what: the name of the transformation.
        name: the name of the parameter.
    """
    if not is_plain(flag, bool | np.bool_):
        raise TypeError(f"{name} of {what} is True or False, not {flag!r}{at_line(user_line())}")


def as_tuple(values: Any, what: str, name: str) -> tuple[Any, ...]:
    """Arguments that are given as a tuple or list.

    Raises:
        TypeError: they are something else, such as the one argument itself.
    """
    if isinstance(values, tuple | list):
        return tuple(values)
    raise TypeError(
        f"{name} of {what} must be a tuple with an entry for each argument of the function, but it is "
        f"{type_name(values)}; for one argument write (x,){at_line(user_line())}"
    )


def as_argnums(argnums: Any, what: str, name: str = "argnums") -> int | tuple[int, ...]:
    """Positions of arguments, as Python's integers.

    Raises:
        TypeError: they are something else, such as names.
    """
    if type(argnums) is int:
        return argnums
    try:
        is_several = isinstance(argnums, list | tuple | range | set | frozenset) or np.ndim(argnums) == 1
        return tuple([_position(number) for number in argnums]) if is_several else _position(argnums)
    except TypeError:
        is_point = is_plain(argnums, np.ndarray) or (isinstance(argnums, list) and argnums)
        hint = f"; {what}(f) is a function, which is called at a point: {what}(f)(x)" if is_point else ""
        raise TypeError(
            f"{name} of {what} is the position of an argument, counted from 0, or a tuple of positions, not {argnums!r}"
            + hint
            + at_line(user_line())
        ) from None


def as_names(names: Any, what: str, name: str) -> tuple[str, ...]:
    """Names of arguments.

    Raises:
        TypeError: they are something else, such as positions.
    """
    found = (
        (names,)
        if isinstance(names, str)
        else tuple(names)
        if isinstance(names, list | tuple | set | frozenset)
        else (names,)
    )
    if not all(isinstance(x, str) for x in found):
        raise TypeError(
            f"{name} of {what} is the name of an argument, or a tuple of names, not {names!r}{at_line(user_line())}"
        )
    return found


def _position(number: Any) -> int:
    if isinstance(number, bool | np.bool):
        raise TypeError
    return operator.index(number)


def normalize_argnums(argnums: int | Sequence[int], count: int, f: Callable[..., Any]) -> tuple[int, ...]:
    """Positions of arguments, counted from the front, checked against the number of positional arguments."""
    argnums = as_argnums(argnums, name_of(f))
    positions: list[int] = []
    for number in (argnums,) if isinstance(argnums, int) else argnums:
        if not -count <= number < count:
            hint = "; those to be differentiated are not passed by name" if count == 0 else ""
            raise TypeError(
                f"argnums={argnums} asks for argument {number}, but {name_of(f)} was called with {count} positional "
                f"argument{'s' if count != 1 else ''}{hint}{at_line(user_line())}"
            )
        positions.append(number % count)
    if len(set(positions)) < len(positions):
        raise TypeError(f"argnums={argnums} names an argument of {name_of(f)} twice{at_line(user_line())}")
    return tuple(positions)


class Arguments(NamedTuple):
    """The arguments of a call that are traced: their leaves and how to call the function with others in their place."""

    leaves: list[Any]
    types: list[ArrayType]
    weak: list[bool]
    structure: tree.Structure
    call: Callable[[list[Tracer]], Any]


def select_arguments(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: int | Sequence[int], what: str
) -> Arguments:
    """Take the arguments at `argnums` apart, to be differentiated by `what`; the others are lent to the function.

    Raises:
        TypeError: a leaf is not an array of floating-point numbers.
    """
    if type(argnums) is int and argnums == 0 and len(args) > 0:
        positions: tuple[int, ...] = (0,)
        chosen = args[0]
    else:
        positions = normalize_argnums(argnums, len(args), f)
        chosen = args[positions[0]] if isinstance(argnums, int) else tuple(args[i] for i in positions)
    if not positions:
        raise TypeError(
            f"{what} of {name_of(f)} has no argument to differentiate with respect to: argnums is empty"
            + at_line(user_line())
        )
    leaves, structure = flatten_targets(chosen)
    types, weak = [], []
    for index, x in enumerate(leaves):
        weak.append(x.weak if type(x) is Tracer else type(x) in _PYTHON_NUMBERS)
        if type(x) is not np.ndarray or x.dtype.kind not in "fc":
            x = leaves[index] = _differentiable(x, chosen, index, argnums, what)
        types.append(type_of(x))

    def call(tracers: list[Tracer]) -> Any:
        new = structure.with_values(tracers) if type(structure) is Partial else tree.unflatten(structure, tracers)
        if len(args) == 1 and isinstance(argnums, int) and not kwargs:
            return f(new)
        values = dict(zip(positions, (new,) if isinstance(argnums, int) else new, strict=True))
        changed = [values[i] if i in values else lending.lent(x) for i, x in enumerate(args)]
        named = {name: lending.lent(x) for name, x in kwargs.items()}
        try:
            return f(*changed, **named)
        except ValueError as error:
            lending.explain(error)
            raise

    return Arguments(leaves, types, weak, structure, call)


def _differentiable(x: Any, tree_of_x: Any, index: int, argnums: Any, what: str) -> Any:
    if type(x) is float or is_plain(x, _INTEGERS):
        # A number written without a point is still a point on the real line.
        return np.float64(x)
    if type(x) is complex:
        return np.complex128(x)
    if is_plain(x, np.ndarray) and x.dtype == object and has_tracer(x):
        return asarray(x)
    try:
        given = type_of(x)
    except ForeignArrays:
        raise
    except TypeError:
        where = f"argument {argnums}{_path_of_target(tree_of_x, index)}"
        raise TypeError(
            f"{what} differentiates with respect to arrays, but {where} is {type_name(x)}; pass it at a position that "
            f"is not in argnums, or close over it{at_line(user_line())}"
        ) from None
    if isinstance(x, Tracer) and x.weak and not is_inexact(given.dtype):
        return cast(x, np.dtype(np.float64))
    if not is_inexact(given.dtype):
        where = f"argument {argnums}{_path_of_target(tree_of_x, index)}"
        raise TypeError(
            f"{what} differentiates with respect to floating-point arrays, but {where} is {given}; convert it with "
            f"x.astype(float){at_line(user_line())}"
        )
    return x


def _path_of_target(container: Any, index: int) -> str:
    """The path of a differentiated leaf, for messages."""
    return [path for path, wanted in zip(tree.paths(container), is_target(container), strict=True) if wanted][index]


def type_name(x: Any) -> str:
    """The description of an object that is not an array, for messages."""
    if hasattr(x, "dtype") or hasattr(x, "to_numpy"):
        cls: Any = type(x)
        found = lookalike(cls)
        if found is not None:
            return f"{found.name}, which {found.why} ({found.instead})"
    if is_plain(x, np.ndarray):
        return f"an array of dtype {x.dtype}"
    return f"the {type(x).__name__} {x!r}" if isinstance(x, str | bytes) else f"of type {type(x).__name__}"


def require_scalar(
    program: Program, f: Callable[..., Any], what: str, alternative: str, may_be_complex: bool = False
) -> None:
    """Raise unless the first output of a traced function is a floating-point scalar, real unless complex is allowed.

    Raises:
        TypeError: it is not; the message names the alternative.
    """
    type = program.out_types[0]
    if type.shape != ():
        is_elementwise = alternative == "jacobian" and program.in_types[:1] == (type,)
        each = f", or, where f works element by element, write ft.vmap(ft.{what}(f))(x)" if is_elementwise else ""
        raise TypeError(
            f"{what} is for functions with a scalar result, but {name_of(f)} returned {type}; use {alternative} for "
            f"all derivatives of an array, or reduce the result, for instance by .sum(){each}{at_line(user_line())}"
        )
    if not is_inexact(type.dtype):
        raise TypeError(
            f"{what} needs a floating-point result, but {name_of(f)} returned {type}, whose derivative is zero "
            f"everywhere or does not exist{at_line(user_line())}"
        )
    if is_complex(type.dtype) and not may_be_complex:
        raise TypeError(
            f"{what} needs a real result, but {name_of(f)} returned {type}; take .real, .imag or abs() of it, or give "
            f"holomorphic=True if it has a complex derivative{at_line(user_line())}"
        )
