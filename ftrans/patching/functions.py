"""Functions, methods and classes that are patched by themselves, and for good, as by the decorator `@ft.patch`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

from ..base.pickles import Made
from ..base.source import at_line, of_package, user_line
from .codes import Exchange, Survey

# What consists of functions, and the attributes that hold them: `functools.wraps` and other decorators leave the first.
_KINDS = (
    FunctionType, MethodType, staticmethod, classmethod, property, functools.partial, functools.cached_property,
    type(functools.lru_cache(lambda: None)), Made,
)  # fmt: skip
_ATTRIBUTES = ("__wrapped__", "__func__", "func", "fget", "fset")

# The exchanged code of these functions, by the `id` of their namespace.
_exchanges: dict[int, Exchange] = {}


def is_function(x: Any) -> bool:
    """Whether something is, or has been made of, functions of Python that may be patched, a class included."""
    return isinstance(x, (type, *_KINDS))


def has_functions(namespace: int) -> bool:
    """Whether functions of a namespace, by its `id`, were patched by themselves."""
    return namespace in _exchanges


def patch_functions(x: Any) -> None:
    """Patch a function, those that it wraps, or those of a class.

    Raises:
        TypeError: there is no Python code in it.
        ValueError: the source is not at hand.
    """
    found = list(_methods(x) if isinstance(x, type) else _functions_in(x))
    if not found:
        what = f"class {x.__qualname__} has no methods" if isinstance(x, type) else f"{x!r} has no function"
        raise TypeError(f"{what} of Python code{at_line(user_line())}")
    survey = Survey()
    for f in found:
        exchange = _exchanges.setdefault(id(f.__globals__), Exchange(f.__globals__))
        exchange.put_in([f], survey)
        if not exchange.holds(f):
            why = exchange.missing.get(f.__code__.co_filename, "its source is not at hand")
            raise ValueError(
                f"{f.__qualname__} cannot be patched: {why}. Put it into a file, or write the traced form: "
                f"numpy.sin for math.sin, ftrans.numpy.zeros for numpy.zeros{at_line(user_line())}"
            )


def _methods(cls: type) -> Iterator[FunctionType]:
    for x in vars(cls).values():
        yield from (f for f in _functions_in(x) if f.__globals__.get("__name__") == cls.__module__)


def _functions_in(x: Any) -> Iterator[FunctionType]:
    """The functions of Python that something is, wraps or binds, but not those of ftrans, which `ft.jit` returns."""
    waiting, seen = [x], set()
    while waiting:
        x = waiting.pop()
        if id(x) in seen or not isinstance(x, _KINDS):
            continue
        seen.add(id(x))
        if isinstance(x, FunctionType) and of_package(x.__code__.co_filename) != "ftrans":
            yield x
        waiting += [getattr(x, name, None) for name in _ATTRIBUTES]
