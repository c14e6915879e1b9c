"""Random numbers that a function draws while it is traced for a program that is kept.

NumPy draws them while Python runs, so they are constants of the program: the same in every later call.  That may be
meant, so it is a warning.  A draw is told by the state of a generator before and after the trace: of NumPy's and
Python's global ones, and of those that the function reaches by the names in its code.
"""

from __future__ import annotations

import dis
import functools
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..base.source import Line, is_of_users, user_line, warn_at
from .call import name_of

_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
# Modules with a global generator, and the object whose methods their functions are.
_MODULES: dict[Any, Any] = {
    np.random: getattr(np.random.normal, "__self__", None),
    random: getattr(random.random, "__self__", None),
}
# How many functions are looked at.
_MOST_FUNCTIONS = 200

# A name in code, and its value.
Named = tuple[str, Any]


class _Source(NamedTuple):
    """What random numbers are drawn from: a generator, or a module that has one; its name, and its state."""

    owner: Any
    name: str
    state: Any


class Draws:
    """The random generators that a function may draw from, as they are before it is traced.

    Args:
        f: the function.
        methods: further functions that it may call, such as methods of its arguments.
    """

    def __init__(self, f: Callable[..., Any], methods: Sequence[Callable[..., Any]] = ()) -> None:
        self._functions = (f, *methods)
        owners = {id(module): (module, module.__name__) for module in _MODULES}
        for _, values in _reached(self._functions):
            owners |= {id(x): (x, name) for name, x in values if isinstance(x, _GENERATORS)}
        self._sources = [_Source(x, name, _state(x)) for x, name in owners.values()]

    def warn(self) -> None:
        """Warn if a number was drawn since."""
        for source in self._sources:
            if _is_same(source.state, _state(source.owner)):
                continue
            line = _line_of(source.owner, self._functions)
            if line is None and threading.active_count() > 1:
                # Another thread may have drawn it, such as one that loads data.
                continue
            warn_at(
                line or user_line(),
                f"{name_of(self._functions[0])} is compiled, so every later call uses the same random numbers from "
                f"{source.name}. Draw them outside and pass them as an argument, or pass a key and write "
                "ftrans.nn.random.normal(key, shape). If they are meant to stay the same, draw them once outside",
                RuntimeWarning,
            )
            return


def _state(owner: Any) -> Any:
    if isinstance(owner, np.random.Generator):
        return owner.bit_generator.state
    return owner.get_state(legacy=False) if hasattr(owner, "get_state") else owner.getstate()


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(_is_same(x, b[name]) for name, x in a.items())
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else bool(a == b)


def _reached(functions: Sequence[Callable[..., Any]]) -> Iterator[tuple[CodeType, list[Named]]]:
    """The code of functions and of those that they call by name, each with the values of the names in it."""
    waiting: list[Any] = list(functions)
    seen: set[tuple[int, int]] = set()
    while waiting and len(seen) < _MOST_FUNCTIONS:
        function, owner, given = _innermost(waiting.pop(0))
        waiting += given
        if function is None or (id(function.__code__), id(owner)) in seen:
            continue
        if is_of_users(function.__code__.co_filename):
            seen.add((id(function.__code__), id(owner)))
            values = _values(function, owner)
            yield function.__code__, values
            waiting += [x for _, x in values if callable(x) and not isinstance(x, type)]


def _innermost(f: Any) -> tuple[FunctionType | None, Any, list[Any]]:
    """The function of Python at the bottom of wrappers, the object that it is a method of, and arguments on the way."""
    owner: Any = None
    given: list[Any] = []
    for _ in range(100):
        if isinstance(f, functools.partial):
            given += [*f.args, *f.keywords.values()]
            f = f.func
        elif isinstance(f, MethodType):
            f, owner = f.__func__, f.__self__
        elif hasattr(f, "__wrapped__"):
            f = f.__wrapped__
        elif isinstance(f, FunctionType):
            return f, owner, given
        else:
            f = _of_class(f, "__call__")
            if f is None:
                break
    return None, None, given


def _values(function: FunctionType, owner: Any) -> list[Named]:
    """The values of the names in the code of a function, be they variables or attributes."""
    names = list(dict.fromkeys(name for code in _codes(function.__code__) for name in code.co_names))
    found: list[Named] = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:
            continue
    defaults = function.__defaults__ or ()
    last = function.__code__.co_argcount
    found += zip(function.__code__.co_varnames[last - len(defaults) : last], defaults, strict=False)
    found += (function.__kwdefaults__ or {}).items()
    found += [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    objects = [x for _, x in found] if owner is None else [owner, *(x for _, x in found)]
    for x in objects:
        held = _held(x)
        for name in names:
            value = held.get(name, _of_class(x, name))
            if value is not None:
                found.append((name, value))
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those that are defined in it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _held(x: Any) -> dict[str, Any]:
    """The attributes of an object or of a module of the user."""
    if isinstance(x, type | FunctionType) or (isinstance(x, ModuleType) and not is_of_users(_file(x))):
        return {}
    try:
        return vars(x)
    except TypeError:
        return {}


def _file(module: ModuleType) -> str:
    # Built-in modules have none.
    return vars(module).get("__file__") or os.__file__


def _of_class(x: Any, name: str) -> MethodType | None:
    """A method of an object, if it is written in Python."""
    for kind in type(x).__mro__:
        function = kind.__dict__.get(name)
        if isinstance(function, FunctionType):
            return MethodType(function, x)
    return None


def _line_of(owner: Any, functions: Sequence[Callable[..., Any]]) -> Line | None:
    """The first line that names a generator, or a module with one, in functions and those that they call."""
    for code, values in _reached(functions):
        names = {name for name, x in values if x is owner or getattr(x, "__self__", x) is _MODULES.get(owner, owner)}
        if owner is np.random and any(x is np for _, x in values):
            names.add("random")
        for each in _codes(code):
            for instruction in dis.get_instructions(each):
                if instruction.argval in names:
                    return Line(each, instruction.offset)
    return None
