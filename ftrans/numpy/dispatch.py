"""The table of the functions of NumPy and SciPy that have a traced form, and the public forms of those.

`implements(np.f)` enters a function in the table; what it returns is the public `ftrans.numpy.f`, which calls NumPy
itself when no tracer is among its arguments.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from ..base.source import at_line, user_line
from ..core.cell import Cell
from ..core.eager import Eager
from ..core.primitive import MissingRule
from ..core.trace import Tracer
from .layouts import forget_order
from .promotion import has_tracer
from .refused import REFUSED

Function = TypeVar("Function", bound=Callable[..., Any])

TABLE: dict[Callable[..., Any], Callable[..., Any]] = {}
# The functions in it whose results have no derivative: integers, booleans, or constants between jumps.
CONSTANT: set[Callable[..., Any]] = set()
# What enters the functions of another library in the table, by the library's name.  It is called when one is met.
ENTERED_LATER: dict[str, Callable[[], ModuleType]] = {}


def implements(
    *functions: Callable[..., Any], constant: bool = False, keeps_order: bool = False
) -> Callable[[Function], Function]:
    """Enter the decorated function as the traced form of NumPy functions; return the public form of the first.

    Args:
        functions: functions of NumPy or SciPy.
        constant: whether no result has a derivative.
        keeps_order: whether results lie in memory as those of a ufunc of the same operands do.  Otherwise how they lie
            is what the function itself says of them, and unknown where it says nothing: the last of its equations may
            be a ufunc's, and NumPy's function another.
    """

    def enter(implementation: Function) -> Function:
        if not keeps_order:
            implementation = _in_unknown_order(implementation)
        for function in functions:
            TABLE[function] = implementation
            if constant:
                CONSTANT.add(function)
        return public(functions[0], implementation)

    return enter


def _in_unknown_order(implementation: Function) -> Function:
    @functools.wraps(implementation)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = implementation(*args, **kwargs)
        if found.__class__ is Tracer:
            if found.memory is None and len(found.atom.type.shape) > 1:
                forget_order(found, args)
        elif isinstance(found, tuple | list):
            for x in found:
                if x.__class__ is Tracer and x.memory is None and len(x.atom.type.shape) > 1:
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
        call = _public_ufunc(function, "__call__", implementation)
        for method in ("reduce", "accumulate", "reduceat", "outer", "at"):
            setattr(call, method, _public_ufunc(function, method, implementation))
        call.__signature__ = signature_of(function)
        for attribute in ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature"):
            setattr(call, attribute, getattr(function, attribute))
    else:
        call = _on_tracers(implementation, function, implementation)
        if function.__module__.partition(".")[0] != "numpy":
            call = _on_eager(call, implementation)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = implementation.__doc__ or f"`numpy.{name}` on arrays and on traced values."
    return call  # type: ignore[return-value]


def signature_of(ufunc: np.ufunc) -> inspect.Signature:
    """The parameters of a ufunc, which older versions of NumPy do not tell."""
    operands = ["x"] if ufunc.nin == 1 else [f"x{i + 1}" for i in range(ufunc.nin)]
    options: dict[str, Any] = {"casting": "same_kind", "order": "K", "dtype": None, "subok": True, "signature": None}
    if ufunc.signature is None:
        options = {"where": True} | options
    else:
        options = {"axes": np._NoValue, "axis": np._NoValue, "keepdims": False} | options
    out = None if ufunc.nout == 1 else (None,) * ufunc.nout
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
    return public(function, call)


def _public_ufunc(ufunc: np.ufunc, method: str, implementation: Callable[..., Any]) -> Callable[..., Any]:
    """A ufunc, or a method of it, as a public function."""

    def traced(*args: Any, **kwargs: Any) -> Any:
        if method == "__call__" and len(args) > ufunc.nin:
            args, kwargs = args[: ufunc.nin], {"out": args[ufunc.nin :], **kwargs}
        return Tracer.__array_ufunc__(None, ufunc, method, *args, **kwargs)  # type: ignore[attr-defined]

    return _on_tracers(traced, getattr(ufunc, method), implementation)


def _on_tracers(traced: Callable[..., Any], plain: Callable[..., Any], like: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is `traced` where a tracer is among the arguments, and `plain` on arrays."""

    @functools.wraps(like)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(map(has_tracer, args)) or (kwargs and any(map(has_tracer, kwargs.values()))):
            return traced(*args, **kwargs)
        if "jax" in sys.modules:
            from ..xla import is_jax, run_function

            if any(map(is_jax, args)):
                return run_function(traced, args, kwargs)
        return plain(*args, **kwargs)

    return call


def _on_eager(on_arrays: Callable[..., Any], like: Callable[..., Any]) -> Callable[..., Any]:
    """A function that NumPy's protocols do not reach, on eager values and cells as well."""

    @functools.wraps(like)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any(map(holds_eager, (*args, *kwargs.values()))):
            return on_arrays(*args, **kwargs)
        args = tuple(map(_read, args))
        kwargs = {key: _read(x) for key, x in kwargs.items()}
        eager = next(filter(None, map(_eager_in, (*args, *kwargs.values()))), None)
        return on_arrays(*args, **kwargs) if eager is None else eager.apply_function(call, args, kwargs)

    return call


def holds_eager(x: Any) -> bool:
    """Whether `x` is an eager value or a cell, or a list or tuple that holds one."""
    return isinstance(x, Eager | Cell) or (isinstance(x, list | tuple) and any(map(holds_eager, x)))


def _read(x: Any) -> Any:
    """What is in a cell, also where cells are in a list or tuple."""
    return x.read() if isinstance(x, Cell) else type(x)(map(_read, x)) if type(x) in (list, tuple) else x


def _eager_in(x: Any) -> type[Eager] | None:
    """The class of an eager value, or of one in a list or tuple."""
    if isinstance(x, Eager):
        return type(x)
    return next(filter(None, map(_eager_in, x)), None) if isinstance(x, list | tuple) else None


def missing(name: str) -> MissingRule:
    """The error for a function of NumPy or SciPy that has no traced form: `name` is its full name."""
    advice = REFUSED.get(
        name,
        "compose it from functions that have one (see ftrans.numpy), or apply it to values outside of the traced"
        " function",
    )
    return MissingRule(f"{name} has no rule in ftrans, so it cannot be traced: {advice}{at_line(user_line())}")
