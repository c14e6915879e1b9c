"""Alike: calls of a function like one before, told by their containers and the classes of their leaves.

Most calls of a compiled function are like the last one.  To take containers apart and to look types up takes longer
than JAX takes for all of a call.  So a function is generated that takes apart containers like those of one call, and
types are left to JAX, which compares them anyway: `Compiled` says if they are others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from operator import attrgetter, is_
from types import NoneType
from typing import Any

import numpy as np

from ..base.type_questions import is_plain
from ..xla import is_jax, is_jax_tracer

_NUMBERS = (float, int, bool, complex)
# Containers are taken apart to this depth.
_DEEPEST = 32
_dtype_of = attrgetter("dtype")


class Alike:
    """The calls like one that has been made, but for shapes, and for dtypes of JAX arrays.

    Args:
        args: the arguments of that call.
    """

    __slots__ = ("_classes", "_dtypes", "_is_array", "_is_module", "_is_numpy", "_take_out")

    def __init__(self, args: tuple[Any, ...], module_class: type) -> None:
        # Arguments that are leaves themselves need not be taken apart.
        are_leaves = all([x is not None and _keys(x) is None for x in args])
        self._take_out = None if are_leaves else _taking_out(args)
        leaves = args if self._take_out is None else self._take_out(args) or ()
        self._classes = [*map(type, leaves)]
        self._is_module = [isinstance(x, module_class) for x in leaves]
        self._is_array = [not is_module for is_module in self._is_module]
        self._is_numpy = [type(x) is np.ndarray for x in leaves]
        self._dtypes = [*map(_dtype_of, compress(leaves, self._is_numpy))]

    @classmethod
    def to(
        cls, args: tuple[Any, ...], arrays: Sequence[Any], modules: Sequence[Any] = (), module_class: type = NoneType
    ) -> Alike | None:
        """The calls like one with these arguments; None if it cannot be told quickly which ones that are.

        Args:
            args: the arguments.
            arrays: the arrays and numbers among them, in the order in which they are wanted.
            modules: the other leaves.
            module_class: the class of these.
        """
        if not all(map(_is_array, arrays)):
            return None
        alike = cls(args, module_class)
        leaves = alike.leaves(args)
        if leaves is None:
            return None
        return alike if _same(alike.arrays(leaves), arrays) and _same(alike.modules(leaves), modules) else None

    def arrays(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves that are arrays or numbers."""
        return [*compress(leaves, self._is_array)]

    def modules(self, leaves: Sequence[Any]) -> list[Any]:
        """The other leaves."""
        return [*compress(leaves, self._is_module)]

    def leaves(self, args: tuple[Any, ...]) -> Sequence[Any] | None:
        """The leaves of the arguments of another call; None if it is not like this one."""
        leaves = args if self._take_out is None else self._take_out(args)
        if leaves is None or [*map(type, leaves)] != self._classes:
            return None
        # JAX takes an array in the byte order of another machine for one in its own.
        is_same = not self._dtypes or [*map(_dtype_of, compress(leaves, self._is_numpy))] == self._dtypes
        return leaves if is_same else None


def _same(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return len(found) == len(wanted) and all(map(is_, found, wanted))


def _is_array(x: Any) -> bool:
    """Whether a leaf is an array or a number that JAX takes as it is."""
    if is_jax(x):
        return not is_jax_tracer(x) and isinstance(x.dtype, np.dtype)
    return type(x) is np.ndarray or type(x) in _NUMBERS or is_plain(x, np.generic)


def _taking_out(args: tuple[Any, ...]) -> Callable[[Any], list[Any] | None]:
    """A function that takes the leaves out of containers like `args`, and returns None for others."""
    lines: list[str] = []
    leaves: list[str] = []
    classes: dict[str, type] = {}

    def take_apart(x: Any, name: str, depth: int) -> None:
        if x is None:
            lines.append(f"if {name} is not None: return None")
            return
        keys = _keys(x)
        if keys is None or depth == _DEEPEST:
            leaves.append(name)
            return
        classes[f"class_of_{name}"] = type(x)
        lines.append(f"if type({name}) is not class_of_{name} or len({name}) != {len(x)}: return None")
        for number, key in enumerate(keys):
            lines.append(f"{name}_{number} = {name}[{key!r}]")
            take_apart(x[key], f"{name}_{number}", depth + 1)

    take_apart(args, "x", 0)
    body = "\n        ".join([*lines, f"return [{', '.join(leaves)}]"])
    exec(f"def taken_out(x):\n    try:\n        {body}\n    except KeyError:\n        return None", classes)
    taken_out: Any = classes["taken_out"]
    return taken_out


def _keys(x: Any) -> Sequence[Any] | None:
    """The keys of what is in a container, in the order of the leaves; None for a leaf, or what is not known here."""
    if type(x) in (list, tuple) or (isinstance(x, tuple) and hasattr(x, "_fields")):
        return range(len(x))
    # Keys of other classes may be equal and yet different, such as 1 and True.
    return sorted(x) if type(x) is dict and all([type(key) is str for key in x]) else None
