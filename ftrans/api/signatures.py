"""Signatures: what the compiled program of a call depends on among its arguments."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..base import tree
from ..base.cell import Eager
from ..base.foreign_arrays import ForeignArrays, is_foreign
from ..base.keys import exact
from ..base.lookalikes import lookalike
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..core.types import type_of
from ..xla import is_jax, is_jax_tracer
from .call import as_names, name_of, type_name
from .closures import shown


class Signatures:
    """Takes the calls of one function apart.

    Args:
        f: the function.
        static_argnums: positions of arguments that are no arrays.
        static_argnames: the same by name.
    """

    def __init__(
        self, f: Callable[..., Any], static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = ()
    ) -> None:
        self.function = f
        self.statics = _Statics(f, static_argnums, static_argnames)
        self._has_other_keys: dict[Any, bool] = {}
        self.has_statics = bool(self.statics.positions or self.statics.names)

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any], Any]:
        """The signature of a call, its array leaves, and how to call the function with others in their place."""
        if not kwargs and not self.has_statics:
            # The usual call, without containers, is spared the cost of taking them apart.
            keys = [leaf_key(x) for x in args]
            if None not in keys:
                return tuple(keys), list(args), (None, None, False)
        static: Any = None
        if self.has_statics:
            static, args, kwargs = self.statics.take(args, kwargs)
        leaves, structure = tree.flatten((args, kwargs) if kwargs else args)
        keys = [leaf_key(x) for x in leaves]
        if None in keys:
            raise _not_an_array(self.function, keys.index(None), leaves, args, kwargs)
        key = (structure, bool(kwargs), self._keys_of_dicts(structure), static and _exactly(static), tuple(keys))
        return key, leaves, (structure, static, bool(kwargs))

    def _keys_of_dicts(self, structure: Any) -> Any:
        """What tells structures apart that Python holds to be equal: the keys of their dicts, if any is no string."""
        try:
            has_others = self._has_other_keys.get(structure)
        except TypeError:
            # What cannot be hashed is told when the signature is looked up.
            return None
        if has_others is None:
            found = tree.keys_of_dicts(structure)
            has_others = self._has_other_keys[structure] = not all(isinstance(k, str) for keys in found for k in keys)
        return has_others and exact(tree.keys_of_dicts(structure))

    def rebuild(self, how: Any, function: Callable[..., Any] | None = None) -> Callable[[list[Any]], Any]:
        """A function of the leaves that calls the function, or another one in its place."""
        structure, static, has_kwargs = how
        f = function or self.function

        def call(values: list[Any]) -> Any:
            if structure is None:
                return f(*values)
            whole = tree.unflatten(structure, values)
            new_args, new_kwargs = whole if has_kwargs else (whole, {})
            if static is not None:
                new_args, new_kwargs = self.statics.put_back(static, new_args, new_kwargs)
            return f(*new_args, **new_kwargs)

        return call

    def donated(self, argnums: Sequence[int], args: tuple[Any, ...]) -> tuple[int, ...]:
        """Which leaves of the arguments, not counting static ones, belong to donated positions."""
        positions = {i % len(args) for i in argnums if -len(args) <= i < len(args)}
        return _donated_leaves(positions, args, self.statics.among(len(args))) if positions else ()

    def names(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        """A name for each array leaf of the arguments: `argument 0['w']`."""
        static = self.statics.among(len(args))
        by_name = {name: x for name, x in kwargs.items() if name not in self.statics.names}
        found = [f"argument {i}{path}" for i, x in enumerate(args) if i not in static for path in tree.paths(x)]
        return [*found, *(f"argument {name}{path}" for name in sorted(by_name) for path in tree.paths(by_name[name]))]

    def shown_statics(self, how: Any) -> dict[str, tuple[str, Any]]:
        """The static arguments of a call by name: as text, and as what tells them from others."""
        by_position, by_name = (how and how[1]) or ((), ())
        named = [*((self.statics.name_of(i), x) for i, x in by_position), *by_name]
        return {name: (shown(x), hash(exact(x))) for name, x in named}

    def unhashable(self, how: Any) -> TypeError:
        """The error for a call whose signature cannot be looked up."""
        return _unhashable(self.function, how[1])


def _kind_for_jax(x: Any) -> str | None:
    # What JAX traces is recorded as an operation, which other programs belong to than those that are compiled.
    return "traced by jax" if is_jax_tracer(x) else "jax" if is_jax(x) else None


_kinds: dict[type, str | None] = {float: "number", int: "number", bool: "number", complex: "number"}


def leaf_key(x: Any) -> Any:
    """What the program of a call depends on in an argument: kind, shape and dtype; None if it is not an array."""
    cls: Any = type(x)
    try:
        kind = _kinds[cls]
    except KeyError:
        if is_plain(x, np.ndarray | np.generic):
            # An array without axes can be assigned to, a number of NumPy cannot.
            kind = ("numpy" if is_plain(x, np.ndarray) else "scalar") if lookalike(cls) is None else None
        elif isinstance(x, Eager):
            kind = "eager"
        else:
            kind = _kind_for_jax(x) or ("traced" if cls is Tracer else None)
        _kinds[cls] = kind
    if kind == "number":
        return cls
    return None if kind is None else (kind, x.shape, x.dtype)


def shown_type(x: Any) -> str:
    """An argument as its program depends on it: its type, and what it is if that is no array of NumPy."""
    key = leaf_key(x)
    kind = key.__name__ if isinstance(key, type) else key[0]
    remark = {"numpy": "", "scalar": " (a number)", "jax": " (of JAX)", "eager": " (a tensor)"}.get(kind, f" ({kind})")
    return f"{type_of(x)}{remark}"


def _donated_leaves(positions: set[int], args: tuple[Any, ...], static: set[int]) -> tuple[int, ...]:
    """Which leaves of the arguments, not counting static ones, belong to donated positions."""
    donated: list[int] = []
    count = 0
    for position, arg in enumerate(args):
        if position in static:
            continue
        size = len(tree.flatten(arg)[0])
        if position in positions:
            donated += range(count, count + size)
        count += size
    return tuple(donated)


class _Statics:
    """Which arguments are static, by position and by name."""

    def __init__(self, f: Any, argnums: int | Sequence[int], argnames: str | Sequence[str]) -> None:
        self.positions = {argnums} if isinstance(argnums, int) else set(argnums)
        self.names = set(as_names(argnames, "jit", "static_argnames"))
        self._parameters: list[str] = []
        if not self.positions and not self.names:
            return
        import inspect

        declared: Iterable[inspect.Parameter] = ()
        with contextlib.suppress(TypeError, ValueError):
            declared = inspect.signature(f).parameters.values()
        parameters = self._parameters = [
            p.name for p in declared if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        # A static argument may be given by position or by name, whichever way it was declared.
        self.names |= {parameters[i] for i in self.positions if -len(parameters) <= i < len(parameters)}
        self.positions |= {i for i, name in enumerate(parameters) if name in self.names}

    def take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Divide arguments into static ones (hashable) and others."""
        positions = self.among(len(args))
        static = (
            tuple((i, args[i]) for i in sorted(positions)),
            tuple((k, v) for k, v in sorted(kwargs.items()) if k in self.names),
        )
        others = tuple(x for i, x in enumerate(args) if i not in positions)
        return static, others, {k: v for k, v in kwargs.items() if k not in self.names}

    def among(self, count: int) -> set[int]:
        """Which of so many positional arguments are static."""
        return {i % count for i in self.positions if -count <= i < count}

    def name_of(self, position: int) -> str:
        """The name of a positional argument, or its position."""
        return self._parameters[position] if position < len(self._parameters) else str(position)

    def put_back(self, static: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The opposite of `take`."""
        whole = list(args)
        for position, value in static[0]:
            whole.insert(position, value)
        return whole, {**kwargs, **dict(static[1])}


def _exactly(static: Any) -> Any:
    """A key for static arguments that tells apart what Python holds to be equal: 1, 1.0 and True, 0.0 and -0.0."""
    return tuple((name, exact(v)) for part in static for name, v in part)


def _unhashable(f: Any, static: Any) -> TypeError:
    for _, value in itertools.chain(*(static or ())):
        try:
            hash(value)
        except TypeError:
            return TypeError(
                f"a static argument of jit({name_of(f)}) must be hashable, but it is {type_name(value)}; pass a tuple "
                f"or another immutable value{at_line(user_line())}"
            )
    return TypeError(f"a container among the arguments of jit({name_of(f)}) has keys that cannot be hashed")


def _not_an_array(f: Any, index: int, leaves: list[Any], args: Any, kwargs: Any) -> TypeError:
    where = f"argument {tree.paths((args, kwargs))[index][3:]} of {name_of(f)}"
    said = f"jit takes arrays, but {where} is {type_name(leaves[index])}"
    if is_foreign(leaves[index]):
        return ForeignArrays(f"{said}{at_line(user_line())}")
    return TypeError(f"{said}; declare it by static_argnums or static_argnames{at_line(user_line())}")
