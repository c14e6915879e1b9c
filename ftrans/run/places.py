"""Places: where values live, and so where what is computed from them is computed.

Values of several kinds may meet: arrays of NumPy and of JAX, tensors, traced values, and cells, which hold one of
these.  The place of all of them together is the first that applies:

    * the running trace, if one is traced: it records;
    * JAX, if one is traced by JAX, which records an operation that has our derivatives;
    * what the cells hold, if one is a cell;
    * the define-by-run graph, if one is an eager value: its class records what NumPy computes;
    * JAX, if one is its array;
    * NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.cell import Cell, Eager, read
from ..base.type_questions import is_plain
from ..core.interpret import inline
from ..core.program import Program
from ..core.trace import Tracer
from ..transforms.simplify import condense, simplify
from ..xla import is_jax, is_jax_tracer
from .evaluate import evaluate


class Place:
    """NumPy, and the base class of the other places.

    Attributes:
        rank: which place is that of values from several: the one of the highest rank.
        holds_arrays: whether values that live here are arrays, and do not just stand for them.
        is_jax: whether they are JAX's.
    """

    rank = 0
    holds_arrays = True
    is_jax = False

    def run(self, program: Program, args: Sequence[Any]) -> list[Any]:
        """The results of a program on arguments that live here."""
        return evaluate(simplify(program), args)

    def call(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a function of arrays and traced values on arguments that live here."""
        return f(*args, **kwargs)


class _Jax(Place):
    rank = 1
    is_jax = True

    def run(self, program: Program, args: Sequence[Any]) -> list[Any]:
        from ..xla import run_program

        return run_program(program, args)

    def call(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from ..xla import run_function

        return run_function(f, args, kwargs, self.run)


class _JaxTrace(_Jax):
    rank = 4

    def run(self, program: Program, args: Sequence[Any]) -> list[Any]:
        from .jax_operation import JaxOperation

        return JaxOperation(condense(program))(*args)


class _Graph(Place):
    rank = 2
    holds_arrays = False

    def __init__(self, eager: type[Eager]) -> None:
        self._eager = eager

    def run(self, program: Program, args: Sequence[Any]) -> list[Any]:
        return self._eager.apply_program(program, args)

    def call(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._eager.apply_function(f, args, kwargs)


class _Cells(Place):
    rank = 3
    holds_arrays = False

    def run(self, program: Program, args: Sequence[Any]) -> list[Any]:
        # The program captured the cells.  Where others are recorded, so is what is computed from what they hold.
        is_recorded = any([isinstance(x, Eager) for x in args])
        values = [(x.recorded() if is_recorded else x.concrete()) if isinstance(x, Cell) else x for x in args]
        return place_of(values).run(program, values)

    def call(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = read(args), read(kwargs)
        return place_of_arguments(args, kwargs).call(f, args, kwargs)


class _Trace(Place):
    rank = 5
    holds_arrays = False

    def run(self, program: Program, args: Sequence[Any]) -> list[Any]:
        return inline(condense(program), args)


NUMPY, JAX, CELLS, JAX_TRACE, TRACE = Place(), _Jax(), _Cells(), _JaxTrace(), _Trace()

# The place of each class of values that has been met.
_places: dict[type, Place] = {np.ndarray: NUMPY, float: NUMPY, int: NUMPY, bool: NUMPY, complex: NUMPY, Tracer: TRACE}


def live_in_trace(cls: type) -> None:
    """State that objects of a class hold traced values, so that functions of them are recorded."""
    _places[cls] = TRACE


def _place_of_new(x: Any) -> Place:
    """The place of a value of a class that has not been met."""
    cls = type(x)
    if isinstance(x, Eager):
        place: Place = _Graph(cls)
    elif isinstance(x, Cell):
        place = CELLS
    elif is_jax(x):
        place = JAX_TRACE if is_jax_tracer(x) else JAX
    else:
        place = NUMPY
    return _places.setdefault(cls, place)


def place_of(values: Iterable[Any]) -> Place:
    """The place of the operands of a program."""
    place = NUMPY
    for x in values:
        cls = type(x)
        if cls is np.ndarray:
            continue
        found = _places.get(cls) or _place_of_new(x)
        if found.rank > place.rank:
            place = found
    return place


def place_of_arguments(args: Iterable[Any], kwargs: Mapping[str, Any] = {}) -> Place:
    """The place of the arguments of a function, which may lie in lists; traced values also in arrays of objects."""
    place = NUMPY
    for x in (*args, *kwargs.values()):
        if type(x) is np.ndarray and x.dtype.char != "O":
            continue
        found = place_of_argument(x)
        if found.rank > place.rank:
            place = found
    return place


def place_of_argument(x: Any) -> Place:
    """The place of one argument.  Of what lies in lists, NumPy makes one array, so those of JAX become NumPy's."""
    if is_plain(x, np.ndarray):
        return TRACE if x.dtype.char == "O" and any([place_of_argument(y) is TRACE for y in x.flat]) else NUMPY
    if isinstance(x, list | tuple):
        place = place_of_arguments(x)
        return NUMPY if place is JAX else place
    place = _places.get(type(x)) or _place_of_new(x)
    return TRACE if place is CELLS and type(x.read()) is Tracer else place
