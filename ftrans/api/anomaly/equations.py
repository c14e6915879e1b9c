"""One equation, evaluated once more under observation: what it makes of bad operands, and which one is to blame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.source import Line
from ...base.type_questions import is_plain
from ...control.call import call
from ...control.rules.host_call import watch
from ...core.interpret import interpret
from ...core.primitive import Primitive
from ...core.program import Const, Eqn, Program
from ...core.types import is_inexact
from ...ops.elementwise import Elementwise
from ...run.straightline import GIVEN

Index = tuple[Any, ...]

# How bad an element is.
FINITE, INFINITE, NAN, _UNKNOWN = range(4)

# What takes the place of a bad element.  One may be a pole of the function, or make a matrix singular.
_FINITE_NUMBERS = (1.0, 0.5, 0.0)
# Calls of the programs inside an equation are noted until their results take this much memory.
_NOTED_BYTES = 1 << 28


class Call(NamedTuple):
    """One call of a program inside an equation, with a bad result.

    Attributes:
        program: the program.
        number: how often it had been called before.
        args: its arguments.
        results: its results, each an object of its own.
    """

    program: Program
    number: int
    args: tuple[Any, ...]
    results: list[Any]


class Cause(NamedTuple):
    """The element of an operand that a bad element of a result comes from."""

    operand: int
    where: Index


def badness(x: Any) -> int:
    """How bad a number is: FINITE, INFINITE or NAN."""
    return FINITE if np.isfinite(x) else NAN if np.isnan(x) else INFINITE


def bad_elements(x: Any) -> Any:
    """Which elements of an array are NaN or infinite."""
    return ~np.isfinite(x)


def is_bad(x: Any) -> bool:
    """Whether a value is an array with a NaN or an infinity in it."""
    return is_array(x) and is_inexact(x.dtype) and not np.isfinite(x).all()


def worst_element(x: Any) -> Index | None:
    """The first NaN of an array, or else the first infinity; None if it is finite."""
    if not is_bad(x):
        return None
    nan = np.isnan(x)
    return _index(nan if nan.any() else bad_elements(x))


def is_array(x: Any) -> bool:
    """Whether a value is an array or a number, as opposed to the saved states of a loop."""
    return is_plain(x, np.ndarray | np.generic)


def is_derivative_of(line: Line | None, *primitives: Primitive) -> bool:
    """Whether an equation of this line belongs to the derivative of one of the primitives."""
    return line is not None and line.derivative_of in [p.name for p in primitives]


def blamed(eqn: Eqn, operands: Sequence[Any], position: int, index: Index) -> Cause | None:
    """The element of an operand that a bad element of a result comes from; None if the equation itself made it.

    It finds out by evaluating the equation with finite numbers in the place of bad ones: all, some, then half of those
    that are left, and so on.
    """
    is_elementwise = isinstance(eqn.primitive, Elementwise)
    operands = [element(x, index) for x in operands] if is_elementwise else operands
    bad = {i: np.flatnonzero(bad_elements(x)) for i, x in enumerate(operands) if is_array(x) and is_bad(x)}
    if not bad:
        return None

    def result(kept: dict[int, Any], number: float) -> int:
        values = [_with(x, bad[i], kept.get(i, ()), number) if i in bad else x for i, x in enumerate(operands)]
        try:
            return badness(element(applied(eqn, values, None)[position], () if is_elementwise else index))
        except Exception:
            return _UNKNOWN

    target = result(bad, 1.0)
    without = {number: result({}, number) for number in _FINITE_NUMBERS}
    number = min(without, key=lambda number: without[number])
    rest = without[number]
    if rest == target:
        # Of two reasons, as in inf / 0, the bad operand was there first.
        return Cause(next(iter(bad)), index) if is_elementwise else None
    alone = {i: result({i: bad[i]}, number) for i in bad}
    operand = max(alone, key=lambda i: (alone[i] == target, rest < alone[i] < _UNKNOWN))
    if is_elementwise:
        return Cause(operand, index)
    # Infinities of opposite signs make a NaN only together.
    others = {} if alone[operand] > rest else {i: bad[i] for i in bad if i != operand}
    level = max(alone[operand], result({**others, operand: bad[operand]}, number))
    places = bad[operand]
    while len(places) > 1:
        halves = places[: len(places) // 2], places[len(places) // 2 :]
        first = result({**others, operand: halves[0]}, number)
        places = halves[first != level and result({**others, operand: halves[1]}, number) >= first]
    return Cause(operand, tuple(map(int, np.unravel_index(places[0], np.shape(operands[operand])))))


def _with(x: Any, bad: Any, kept: Any, number: float) -> Any:
    """An array with a number in the place of the `bad` elements that are not `kept`."""
    out = np.array(x, order="C")
    out.reshape(-1)[np.setdiff1d(bad, kept, assume_unique=True)] = number
    return out[()]


def applied(eqn: Eqn, operands: Sequence[Any], calls: list[Call] | None) -> list[Any]:
    """The results of an equation on NumPy; calls of the programs inside that make something bad are noted."""
    primitive, params = eqn.primitive, eqn.params
    if primitive is watch:
        return list(operands[: len(eqn.outputs)])
    if primitive is call:
        return _function(params["program"], calls)(*operands)
    params = {name: _watched(value, calls) for name, value in params.items()}
    if "is_last" in params:
        # What a loop keeps is looked into again.
        params["is_last"] = False
    try:
        result = primitive.numpy(*operands, **params)
    except Exception as error:
        # Programs inside an equation may expect the error as it is, and the innermost equation is the one to name.
        vars(error).setdefault("equation", (eqn, tuple(operands)))
        raise
    return list(result) if primitive.multiple_results else [result]


def failed_equation(error: Exception) -> tuple[Eqn, tuple[Any, ...]]:
    """The equation that failed with an error that `applied` raised, and its operands."""
    return vars(error)["equation"]


def _watched(param: Any, calls: list[Call] | None) -> Any:
    """A parameter of an equation, in which programs run equation by equation and are noted."""
    if isinstance(param, tuple) and param and all(isinstance(p, Program) for p in param):
        return tuple(_watched(p, calls) for p in param)
    if not isinstance(param, Program):
        return param
    watched = Program(param.name, param.inputs, param.eqns, param.outputs)
    function = _function(param, calls)
    # This is where the evaluator looks for what it has made of a program.
    watched.derived.update({"simplify": watched, GIVEN: function})
    watched.derived["straight line"] = lambda args: function(*args)
    return watched


def _function(program: Program, calls: list[Call] | None) -> Callable[..., list[Any]]:
    """A function that runs a program equation by equation, and notes calls with bad results."""
    form = program.executable()
    count, room = 0, _NOTED_BYTES

    def function(*args: Any) -> list[Any]:
        nonlocal count, room
        results: list[Any] = []
        for y in interpret(form, args, lambda eqn, xs: applied(eqn, xs, None), Const.array):
            # Each result is an object of its own, so that it says who made it.
            results.append(np.array(y)[()] if any(y is x for x in (*args, *results)) else y)
        if calls is not None and room > 0 and any(map(is_bad, results)):
            calls.append(Call(program, count, args, results))
            room -= sum(y.nbytes for y in results)
        count += 1
        return results

    return function


def element(x: Any, index: Index) -> Any:
    """An element of an array; numbers stand for arrays filled with them."""
    return x[index] if np.ndim(x) else x


def _index(flags: Any) -> Index:
    """The index of the first element that is flagged."""
    return tuple(map(int, np.unravel_index(int(np.argmax(flags)), np.shape(flags))))
