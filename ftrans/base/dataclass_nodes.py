"""Dataclasses as containers: which attributes of an object are children, and which stay with the structure.

Children are the fields, and what else the object holds that is made of numbers, as `__post_init__` may have set it.
Other attributes, such as names and functions, stay as they are: part of the structure.  What a `cached_property` keeps
is left out, because it follows from the rest.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from .type_questions import is_plain

_NOTHING = object()


def is_dataclass(cls: Any) -> bool:
    """Whether objects of a class are containers; what has a dtype is an array."""
    return hasattr(cls, "__dataclass_fields__") and not hasattr(cls, "dtype")


def attributes_of(x: Any) -> dict[str, Any]:
    """What an object of a dataclass holds, by name: its fields first."""
    return _Attributes(type(x)).of(x)


class _Attributes:
    """Which attributes objects of a dataclass have."""

    def __init__(self, cls: Any) -> None:
        import dataclasses

        self.fields = tuple(f.name for f in dataclasses.fields(cls))
        of_fields = [inspect.getattr_static(cls, name, None) for name in self.fields]
        # Such a field keeps its value under a name of its own, which would come as a second child.
        self._has_descriptors = any(
            hasattr(x, "__set__") and not isinstance(x, types.MemberDescriptorType) for x in of_fields
        )
        self._cls = cls

    def of(self, x: Any) -> dict[str, Any]:
        found = {name: value for name in self.fields if (value := getattr(x, name, _NOTHING)) is not _NOTHING}
        if not self._has_descriptors:
            for state in _states(x):
                if not state.keys() <= found.keys():
                    found |= {k: v for k, v in state.items() if k not in found and not self._is_computed(k)}
        return found

    def _is_computed(self, name: str) -> bool:
        """Whether an attribute is what a `cached_property` keeps."""
        of_class = inspect.getattr_static(self._cls, name, None)
        return hasattr(of_class, "__get__") and not hasattr(of_class, "__set__") and not callable(of_class)


def _states(x: Any) -> Iterable[dict[str, Any]]:
    """The attributes in the dictionary of an object and in its slots."""
    state: Any = object.__getstate__(x)
    return [s for s in (state if isinstance(state, tuple) else (state,)) if s]


class Structure:
    """What an object of a dataclass is beside its children: their names, and the attributes that are none."""

    __slots__ = ("_key", "_others", "names")

    def __init__(self, names: tuple[str, ...], others: dict[str, Any]) -> None:
        self.names = names
        self._others = others
        # What is compared is the attributes of now, which may be changed in place later.
        self._key = names, tuple((name, _snapshot(value)) for name, value in others.items())

    def put_together(self, cls: Any, children: Iterable[Any]) -> Any:
        """An object with these children."""
        x: Any = object.__new__(cls)
        for name, value in (*self._others.items(), *zip(self.names, children, strict=True)):
            object.__setattr__(x, name, value)
        return x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and (self is other or self._key == other._key)

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return ", ".join([*self.names, *(f"{name}={value!r}" for name, value in self._others.items())])


def _snapshot(x: Any) -> Any:
    """A key for a value, which does not change with it if it is a list, dictionary, set or array."""
    if x is None or type(x) is str:
        return x
    if isinstance(x, list | tuple):
        return type(x), tuple(map(_snapshot, x))
    if isinstance(x, dict):
        return type(x), tuple((key, _snapshot(value)) for key, value in x.items())
    if isinstance(x, set):
        return type(x), frozenset(x)
    if is_plain(x, np.ndarray):
        return x.shape, _snapshot(x.tolist())
    # Keys know numbers of `decimal` and `fractions`, which take milliseconds to import.
    from .keys import Identity, exact

    return exact(x) if isinstance(x, Hashable) else Identity(x)


def register(cls: Any, namespace: str, child: Callable[[Any], Any]) -> None:
    """Make the objects of a dataclass containers.

    Args:
        cls: the class.
        namespace: where optree looks for it.
        child: what stands for an attribute that is no field.
    """
    import optree

    attributes = _Attributes(cls)
    fields = attributes.fields
    plain = Structure(fields, {})

    def flatten(x: Any) -> tuple[list[Any], Structure, tuple[str, ...]]:
        found = attributes.of(x)
        if len(found) == len(fields) and all(map(found.__contains__, fields)):
            return list(found.values()), plain, fields
        children = {k: v for k, v in found.items() if k in fields}
        others = {k: v for k, v in found.items() if k not in fields}
        children |= {k: child(v) for k, v in others.items() if _has_numbers(v, namespace)}
        names = tuple(children)
        structure = Structure(names, {k: v for k, v in others.items() if k not in children})
        return list(children.values()), structure, names

    def unflatten(structure: Any, children: Iterable[Any]) -> Any:
        return structure.put_together(cls, children)

    optree.register_pytree_node(cls, flatten, unflatten, namespace=namespace)


def _has_numbers(x: Any, namespace: str) -> bool:
    """Whether there are arrays or floating-point numbers in a value.  An integer, such as a size, does not count."""
    import optree

    for leaf in optree.tree_leaves(x, namespace=namespace):
        if is_dataclass(type(leaf)):
            if any(_has_numbers(value, namespace) for value in attributes_of(leaf).values()):
                return True
        elif is_plain(leaf, float | complex) or getattr(leaf, "dtype", np.dtype(object)).kind not in "OSUMm":
            return True
    return False
