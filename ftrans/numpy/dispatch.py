"""The table of the functions of NumPy and SciPy that have a traced form, and the public forms of those.

`implements(np.f)` enters a function in the table; what it returns is its public form in `ftrans.numpy`, which calls
NumPy itself when no tracer is among its arguments.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from ..base.columns import is_labelled, on_labelled
from ..base.foreign import NO_VALUE
from ..base.source import at_line, user_line
from ..core.primitive import MissingRule
from ..core.trace import Tracer, current_builder
from ..run.places import NUMPY, TRACE, place_of_arguments
from .layouts import forget_order
from .refused import REFUSED

Function = TypeVar("Function", bound=Callable[..., Any])

TABLE: dict[Callable[..., Any], Callable[..., Any]] = {}
# The functions in it whose results have no derivative: integers, booleans, or constants between jumps.
CONSTANT: set[Callable[..., Any]] = set()
# The functions in it that take functions, which may close over traced values: no argument tells.
TAKES_FUNCTIONS: set[Callable[..., Any]] = set()
# What enters the functions of a module of NumPy or SciPy in the table, by its name.  It is called when one is met.
ENTERED_LATER: dict[str, Callable[[], ModuleType]] = {}


def implements(
    *functions: Callable[..., Any], constant: bool = False, keeps_order: bool = False, takes_functions: bool = False
) -> Callable[[Function], Function]:
    """Enter the decorated function as the traced form of NumPy functions; return the public form of the first.

    Args:
        functions: functions of NumPy or SciPy.
        constant: whether no result has a derivative.
        keeps_order: whether results lie in memory as those of a ufunc of the same operands do.  Otherwise how they lie
            is what the function itself says of them, and unknown where it says nothing: the last of its equations may
            be a ufunc's, and NumPy's function another.
        takes_functions: whether an argument is a function, so that the traced form is called wherever a trace runs.
    """

    def enter(implementation: Function) -> Function:
        if not keeps_order:
            implementation = _in_unknown_order(implementation)
        for function in functions:
            TABLE[function] = implementation
            if constant:
                CONSTANT.add(function)
            if takes_functions:
                TAKES_FUNCTIONS.add(function)
        return public(functions[0], implementation)

    return enter


def _in_unknown_order(implementation: Function) -> Function:
    @functools.wraps(implementation)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = implementation(*args, **kwargs)
        if type(found) is Tracer:
            if found.memory is None and len(found.atom.type.shape) > 1:
                forget_order(found, args)
        elif isinstance(found, tuple | list):
            for x in found:
                if type(x) is Tracer and x.memory is None and len(x.atom.type.shape) > 1:
                    forget_order(x, args)
        return found

    return call  # type: ignore[return-value]


def public(function: Callable[..., Any], implementation: Function) -> Function:
    """The public form: NumPy's function on arrays, `implementation` where a tracer is among the arguments."""
    # Some objects of SciPy that are called like functions have no name.
    name = getattr(function, "__name__", implementation.__name__.removeprefix("_"))
    called = inspect.unwrap(implementation)
    if isinstance(called, FunctionType) and called.__qualname__ != name:
        # What Python says of wrong arguments names the function that was called.
        called.__qualname__ = name
    if isinstance(function, np.ufunc):
        call = functools.wraps(implementation)(_public_ufunc(function, "__call__", implementation))
        for method in ("reduce", "accumulate", "reduceat", "outer", "at"):
            bound = _public_ufunc(function, method, implementation)
            bound.__name__ = bound.__qualname__ = method
            setattr(call, method, bound)
        call.__signature__ = _signature(function.nin, function.nout, function.signature is None)
        for attribute in ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature"):
            setattr(call, attribute, getattr(function, attribute))
    else:
        # Methods of compiled classes have no module.
        module = getattr(function, "__module__", None) or ""
        form = wherever(implementation, function, module.partition(".")[0] == "numpy")
        call = functools.wraps(implementation)(form)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = implementation.__doc__ or f"`numpy.{name}` on arrays and on traced values."
    return call  # type: ignore[return-value]


@functools.cache
def _signature(nin: int, nout: int, is_elementwise: bool) -> inspect.Signature:
    """The parameters of a ufunc, which older versions of NumPy do not tell."""
    operands = ["x"] if nin == 1 else [f"x{i + 1}" for i in range(nin)]
    options: dict[str, Any] = {"casting": "same_kind", "order": "K", "dtype": None, "subok": True, "signature": None}
    options = ({"where": True} if is_elementwise else {"axes": NO_VALUE, "axis": NO_VALUE, "keepdims": False}) | options
    out = None if nout == 1 else (None,) * nout
    parameter = inspect.Parameter
    return inspect.Signature(
        [
            *(parameter(name, parameter.POSITIONAL_ONLY) for name in operands),
            parameter("out", parameter.POSITIONAL_OR_KEYWORD, default=out),
            *(parameter(name, parameter.KEYWORD_ONLY, default=value) for name, value in options.items()),
        ]
    )


def refused(function: Callable[..., Any], name: str, why: str) -> Callable[..., Any]:
    """The public form of a function without a traced one: itself on arrays, an error that says why on traced values.

    Args:
        function: the function of NumPy or SciPy.
        name: its full name.
        why: the reason, and what to write instead.
    """
    REFUSED[name] = why

    def call(*args: Any, **kwargs: Any) -> Any:
        raise missing(name)

    call.__name__ = name.rpartition(".")[2]
    call.__doc__ = f"`{name}` on arrays; it has no traced form."
    if not isinstance(function, np.ufunc):
        with contextlib.suppress(TypeError, ValueError):  # some builtin functions have none
            vars(call)["__signature__"] = inspect.signature(function)
    return public(function, call)


def _public_ufunc(ufunc: np.ufunc, method: str, implementation: Callable[..., Any]) -> Callable[..., Any]:
    """A ufunc, or a method of it, as a public function."""

    nin = ufunc.nin if method == "__call__" else -1

    def traced(*args: Any, **kwargs: Any) -> Any:
        if len(args) == nin and not kwargs:
            return implementation(*args)
        if len(args) > nin >= 0:
            args, kwargs = args[:nin], {"out": args[nin:], **kwargs}
        return Tracer.__array_ufunc__(None, ufunc, method, *args, **kwargs)

    return wherever(traced, getattr(ufunc, method))


def wherever(traced: Callable[..., Any], plain: Callable[..., Any], has_protocols: bool = True) -> Callable[..., Any]:
    """A function wherever its arguments live: `plain` on arrays, `traced` on what stands for arrays.

    NumPy's protocols bring `plain` itself to tensors and cells, unless it has none.
    """

    takes_functions = plain in TAKES_FUNCTIONS

    def call(*args: Any, **kwargs: Any) -> Any:
        place = place_of_arguments(args, kwargs)
        if place is TRACE or (takes_functions and place is NUMPY and current_builder() is not None):
            return traced(*args, **kwargs)
        if place is NUMPY or (has_protocols and not place.is_jax):
            return plain(*args, **kwargs)
        return place.call(call, args, kwargs)

    return call


def left_to_others(ufunc: Callable[..., Any], *operands: Any) -> Any:
    """What operands that are no arrays make of a ufunc: sparse arrays and Series have arithmetic of their own."""
    if any(hasattr(type(x), "tocoo") for x in operands):
        return ENTERED_LATER["scipy.sparse"]().arithmetic.combined(ufunc, *operands)
    if any(map(is_labelled, operands)):
        return on_labelled(ufunc, operands)
    return NotImplemented


def missing(name: str) -> MissingRule:
    """The error for a function of NumPy or SciPy that has no traced form: `name` is its full name."""
    advice = REFUSED.get(
        name,
        "compose it from functions that have one (see ftrans.numpy), or apply it to values outside of the traced"
        " function",
    )
    return MissingRule(f"{name} has no rule in ftrans, so it cannot be traced: {advice}{at_line(user_line())}")
