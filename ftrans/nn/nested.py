"""Nested containers among the attributes and arguments: lists, tuples, dicts, and dataclasses, with what is in them.

Subclasses count, such as named tuples and ordered dicts, and so do the namespaces of Python's `types` and `argparse`.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from ..base.dataclass_nodes import attributes_of, is_dataclass
from ..base.source import at_line, user_line
from ..core.trace import current_builder
from ..numpy.promotion import asarray, has_tracer
from .array_cell import ArrayCell

_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)


def attributes(x: Any) -> dict[str, Any]:
    """The attributes of an object as they are now: other threads may set one while we look through them."""
    return x.__dict__.copy()  # type: ignore[no-any-return]


def parts_of(x: Any) -> Iterable[tuple[Any, Any]] | None:
    """Names and parts of a container; None for all else."""
    cls = x.__class__
    if cls is list or cls is tuple:
        return enumerate(x)
    if cls is dict:
        return [*x.items()]
    if isinstance(x, dict):
        return [*x.items()]
    if isinstance(x, list | tuple):
        return enumerate(x)
    if isinstance(x, _NAMESPACES):
        return attributes(x).items()
    if _is_dataclass(cls):
        return attributes_of(x).items()
    return None


def walk(name: str, x: Any, around: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """What is in nested containers, with names such as `layers.0`; what holds itself is not entered again."""
    parts = None if id(x) in around else parts_of(x)
    if parts is None:
        yield name, x
    else:
        for key, part in parts:
            yield from walk(f"{name}.{key}", part, (*around, id(x)))


def is_mutable(x: Any) -> bool:
    """Whether the parts of a container may be exchanged."""
    return not isinstance(x, tuple)


def rebuilt(x: Any, f: Callable[[Any], Any], always: bool = False) -> Any:
    """A container of the same kind, with `f` of each part.

    Unless a new one is wanted `always`, it is the container itself if no part changes.
    """
    parts = parts_of(x)
    assert parts is not None
    old = list(parts)
    new = [f(part) for _, part in old]
    if not always and all([a is b for a, (_, b) in zip(new, old, strict=True)]):
        return x
    if isinstance(x, tuple):
        return x._make(new) if hasattr(x, "_make") else x.__class__(new)
    if x.__class__ is list:
        return new
    if x.__class__ is dict:
        return {name: part for (name, _), part in zip(old, new, strict=True)}
    made = copy.copy(x)
    for (name, _), part in zip(old, new, strict=True):
        if isinstance(x, dict | list):
            made[name] = part
        else:
            object.__setattr__(made, name, part)
    return made


def settled(x: Any) -> Any:
    """A result of forward code, with what its cells hold now in their places.

    Raises:
        TypeError: it is or holds what would run when the call is over and the cells hold something else.
    """
    if isinstance(x, ArrayCell):
        return x.value if x.is_given else x.read()
    if x.__class__ is np.ndarray and x.dtype == object:
        return asarray(x) if current_builder() is not None and has_tracer(x) else x
    if parts_of(x) is not None:
        return rebuilt(x, settled)
    if _runs_later(x.__class__):
        how = "await it inside" if hasattr(x, "__await__") else "write list(...)"
        if inspect.iscoroutine(x):
            # Nobody will await it.
            x.close()
        raise TypeError(
            f"the result is or holds an object of type {type(x).__name__}, which would run after the call, when the "
            f"cells no longer hold what they hold in it; {how}{at_line(user_line())}"
        )
    return x


@lru_cache(maxsize=1000)
def _runs_later(cls: type) -> bool:
    """Whether objects of a class compute only when they are asked, as generators, iterators and coroutines do."""
    is_lazy = any(hasattr(cls, name) for name in ("__next__", "__anext__", "__await__"))
    return is_lazy and not hasattr(cls, "named_cells")


def _is_dataclass(cls: Any) -> bool:
    # What has cells is a module.
    return is_dataclass(cls) and not hasattr(cls, "named_cells")
