"""How NumPy's own functions reach tracers: the NEP 13 and NEP 18 protocols, and the table behind them.

`implements(np.f)` enters a function in the table; what it returns is the public `ftrans.numpy.f`, which calls NumPy
itself when no tracer is among its arguments.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from ..core.primitive import MissingRule
from ..core.source import at_line, user_line
from ..core.trace import Tracer
from .promotion import has_tracer

Function = TypeVar("Function", bound=Callable[..., Any])

TABLE: dict[Callable[..., Any], Callable[..., Any]] = {}


def implements(*functions: Callable[..., Any]) -> Callable[[Function], Function]:
    """Enter the decorated function as the traced form of NumPy functions; return the public form of the first."""

    def enter(implementation: Function) -> Function:
        for function in functions:
            TABLE[function] = implementation
        return public(functions[0], implementation)

    return enter


def public(function: Callable[..., Any], implementation: Function) -> Function:
    """The public form: NumPy's function on arrays, `implementation` where a tracer is among the arguments."""
    name = function.__name__
    if isinstance(function, np.ufunc):
        call = _public_ufunc(function, "__call__", implementation)
        for method in ("reduce", "accumulate", "outer", "at"):
            setattr(call, method, _public_ufunc(function, method, implementation))
    else:
        call = _on_tracers(implementation, function, implementation)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = implementation.__doc__ or f"`numpy.{name}` on arrays and on traced values."
    return call  # type: ignore[return-value]


def _public_ufunc(ufunc: np.ufunc, method: str, implementation: Callable[..., Any]) -> Callable[..., Any]:
    """A ufunc, or a method of it, as a public function."""

    def traced(*args: Any, **kwargs: Any) -> Any:
        return array_ufunc(None, ufunc, method, *args, **kwargs)

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


def array_ufunc(self: Tracer | None, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__`: a NumPy ufunc was called with a tracer among its operands."""
    implementation = TABLE.get(ufunc)
    if implementation is None:
        raise missing(ufunc.__name__)
    if method == "__call__":
        if not kwargs:
            return implementation(*inputs)
        from .ufuncs import call_with_options

        return call_with_options(ufunc, implementation, inputs, kwargs)
    from .ufunc_methods import METHODS

    if method not in METHODS:
        raise missing(f"{ufunc.__name__}.{method}")
    return METHODS[method](ufunc, implementation, *inputs, **kwargs)


def array_function(self: Tracer, function: Any, types: Iterable[type], args: Any, kwargs: Any) -> Any:
    """`__array_function__`: a NumPy function was called with a tracer among its arguments."""
    implementation = TABLE.get(function)
    if implementation is None:
        module = getattr(function, "__module__", "numpy") or "numpy"
        raise missing(f"{module}.{function.__name__}")
    return implementation(*args, **kwargs)


def missing(name: str) -> MissingRule:
    """The error for a NumPy function that has no traced form."""
    return MissingRule(
        f"{name} has no rule in ftrans, so it cannot be traced; compose it from functions that have one (see"
        f" ftrans.numpy), or apply it to values outside of the traced function{at_line(user_line())}"
    )
