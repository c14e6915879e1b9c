"""Traced values that depend on no argument, such as tables that a package keeps: they outlive their trace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..core.trace import Tracer, current_builder, leak_error
from ..core.witness import constant_of

# What asks no trace, and what would write to an array that nobody else sees.
_AS_THEY_ARE = {
    "__init__", "__array__", "__array_ufunc__", "__array_function__", "__float__", "__complex__", "__getattr__",
    "__setitem__", "__repr__", "__str__", "__format__", "line", "fill", "sort", "partition",
}  # fmt: skip


def after_trace(x: Any) -> Any:
    """Arguments where no trace runs: what depends on no argument of a trace that has ended is an array."""
    if isinstance(x, list | tuple):
        return type(x)(map(after_trace, x))
    if isinstance(x, dict):
        return {name: after_trace(y) for name, y in x.items()}
    if type(x) is not Tracer:
        return x
    known = constant_of(x)
    if known is None:
        raise leak_error(x)
    return known


@functools.cache
def let_outlive() -> None:
    """Let operators and methods of traced values know of the end of their trace; without it, functions of NumPy do."""
    for name, method in list(vars(Tracer).items()):
        is_in_place = name.startswith("__i") and f"__{name[3:]}" in vars(Tracer)
        if isinstance(method, FunctionType) and name not in _AS_THEY_ARE and not is_in_place:
            setattr(Tracer, name, _ending(name, method))


def _ending(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        if current_builder() is None:
            return getattr(after_trace(self), name)(*after_trace(args), **after_trace(kwargs))
        return method(self, *args, **kwargs)

    return call
