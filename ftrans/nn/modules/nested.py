"""Nested containers among attributes and arguments: lists, tuples, dicts and dataclasses.

Subclasses count, such as named tuples and ordered dicts, and so do namespaces of `types` and `argparse`.
"""

from __future__ import annotations

import argparse
import copy
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...base.dataclass_nodes import attributes_of, is_dataclass

_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)


def attributes(x: Any) -> dict[str, Any]:
    """A copy of the attributes of an object, since other threads may set one meanwhile."""
    return x.__dict__.copy()


def parts_of(x: Any) -> Iterable[tuple[Any, Any]] | None:
    """Names and parts of a container; None for everything else."""
    cls = type(x)
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
    """The leaves of nested containers, with names such as `layers.0`; cycles are entered once."""
    parts = None if id(x) in around else parts_of(x)
    if parts is None:
        yield name, x
    else:
        for key, part in parts:
            yield from walk(f"{name}.{key}", part, (*around, id(x)))


def is_mutable(x: Any) -> bool:
    """Whether the parts of a container may be replaced."""
    return not isinstance(x, tuple)


def rebuilt(x: Any, f: Callable[[Any], Any], always: bool = False) -> Any:
    """A container of the same kind, with `f` applied to each part.

    If no part changes, it is the container itself, unless `always` asks for a new one.
    """
    parts = parts_of(x)
    assert parts is not None
    old = list(parts)
    new = [f(part) for _, part in old]
    if not always and all([a is b for a, (_, b) in zip(new, old, strict=True)]):
        return x
    if isinstance(x, tuple):
        return x._make(new) if hasattr(x, "_make") else type(x)(new)
    if type(x) is list:
        return new
    if type(x) is dict:
        return {name: part for (name, _), part in zip(old, new, strict=True)}
    made = copy.copy(x)
    for (name, _), part in zip(old, new, strict=True):
        if isinstance(x, dict | list):
            made[name] = part
        else:
            object.__setattr__(made, name, part)
    return made


def _is_dataclass(cls: Any) -> bool:
    # What has cells is a module.
    return is_dataclass(cls) and not hasattr(cls, "named_cells")
