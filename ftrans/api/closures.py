"""What a function is made of besides its code: the values that it closes over, as text."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from ..base.names import printable
from ..base.source import of_package
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..core.types import type_of

_LONGEST = 40
# Arrays up to this size are compared by what they hold.
_MOST_BYTES = 1 << 16
_VALUES = (bool, int, float, complex, str, bytes, type(None))


def code_of(f: Callable[..., Any]) -> CodeType | None:
    """The code of the user's function within a transformed one, or None if there is none."""
    inner = _innermost(f)
    if inner is None or of_package(inner.__code__.co_filename) == "ftrans":
        return None
    return inner.__code__


def held(f: Callable[..., Any]) -> dict[str, tuple[str, Any]]:
    """What a function closes over and its defaults, by name: how it is shown, and what tells it from other values."""
    inner = _innermost(f)
    if inner is None:
        return {}
    found: dict[str, Any] = {}
    for name, cell in zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    defaults = inner.__defaults__ or ()
    last = inner.__code__.co_argcount
    found.update(zip(inner.__code__.co_varnames[last - len(defaults) : last], defaults, strict=False))
    found.update(inner.__kwdefaults__ or {})
    namespace = inner.__globals__
    found.update({name: namespace[name] for name in inner.__code__.co_names if _is_value(namespace.get(name))})
    if isinstance(f, functools.partial):
        found.update({**{f"argument {i}": x for i, x in enumerate(f.args)}, **f.keywords})
    return {name: (shown(x), _key(x)) for name, x in found.items()}


def shown(x: Any) -> str:
    """A value in few characters: arrays by their type."""
    if isinstance(x, Tracer):
        return str(x.type)
    if is_plain(x, np.ndarray):
        return str(type_of(x)) if x.dtype.kind in "biufc" else f"array of {x.dtype}"
    if isinstance(x, FunctionType | type):
        return printable(x.__qualname__)
    if not isinstance(x, (*_VALUES, tuple, frozenset, np.generic)):
        return printable(type(x).__name__)
    text = printable(repr(x))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _is_value(x: Any) -> bool:
    return x is not None and (type(x) in _VALUES or is_plain(x, np.ndarray | np.generic))


def _key(x: Any) -> Any:
    if type(x) in _VALUES:
        return type(x), repr(x)
    if is_plain(x, np.ndarray | np.generic) and x.nbytes <= _MOST_BYTES and not x.dtype.hasobject:
        return x.shape, x.dtype.str, hash(np.ascontiguousarray(x).tobytes())
    return id(x)


def _innermost(f: Any) -> FunctionType | None:
    """The function of Python at the bottom of wrappers, bound methods and partial functions."""
    for _ in range(100):
        if isinstance(f, functools.partial):
            f = f.func
        elif isinstance(f, MethodType):
            f = f.__func__
        elif hasattr(f, "__wrapped__"):
            f = f.__wrapped__
        else:
            break
    return f if isinstance(f, FunctionType) else None
