"""The arguments of functions with derivative rules: flatten and rebuild them."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base import tree
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..core.types import ArrayType, is_inexact, type_of
from ..numpy.promotion import asarray, has_tracer, is_weak
from .call import as_argnums, as_names, is_recorded, name_of
from .rule_checks import here

Function = Callable[..., Any]


class Parameters:
    """The parameters of a function with rules.

    Attributes:
        f: the function.
        held: positions of arguments without derivative.

    Args:
        f: the function.
        argnums: positions of arguments without derivative.
        argnames: names of such arguments.

    Raises:
        ValueError: there is no such argument.
    """

    def __init__(self, f: Function, argnums: int | Sequence[int], argnames: str | Sequence[str]) -> None:
        self.f = f
        self._signature: inspect.Signature | None = None
        # A ufunc refuses calls with all of its options, even with their defaults.
        if not isinstance(f, np.ufunc):
            with contextlib.suppress(TypeError, ValueError):
                self._signature = inspect.signature(f)
        parameters = list(self._signature.parameters.values()) if self._signature is not None else []
        self._names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self._takes_more = self._signature is None or any(p.kind is p.VAR_POSITIONAL for p in parameters)
        self._is_plain = len(self._names) == len(parameters) and self._signature is not None
        keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        argnums = as_argnums(argnums, name_of(f), "nondiff_argnums")
        positions = [self._position(n) for n in ([argnums] if isinstance(argnums, int) else argnums)]
        for name in as_names(argnames, name_of(f), "nondiff_argnames"):
            if name in self._names:
                positions.append(self._names.index(name))
            elif name not in keywords:
                # Keyword-only arguments have no cotangent anyway.
                raise ValueError(f"{name_of(f)} has no argument {name!r} for nondiff_argnames{here()}")
        self.held = frozenset(positions)

    def _position(self, number: int) -> int:
        """The position of an argument, counted from the front."""
        count = len(self._names)
        if self._takes_more and number >= 0:
            return number
        if self._takes_more or not -count <= number < count:
            raise ValueError(
                f"nondiff_argnums asks for argument {number}, but {name_of(self.f)} takes "
                f"{'any number of' if self._takes_more else count} positional argument{'s' * (count != 1)}{here()}"
            )
        return number % count

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """Positional arguments, including those given by name or by default, and keyword-only ones."""
        if self._signature is None or (self._is_plain and not kwargs and len(args) == len(self._names)):
            return args, kwargs
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name_of(self.f)}() cannot be called like this: {error}{here()}") from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def name(self, position: int) -> str:
        """The name of a positional argument in messages."""
        count = len(self._names)
        return self._names[position] if position < count else f"args[{position - count}]"


class Call(NamedTuple):
    """A call of a function with rules, with flattened arguments.

    Attributes:
        held: the arguments without derivative, by position.
        keywords: the keyword-only arguments.
        names: names of the other arguments in messages, by position.
        structures: their structures.
        leaves: the leaves of all of them.
        places: which of the leaves are arrays; the others are passed unchanged.
        values: those arrays.
        types: their types.
        differentiable: which of them have a derivative.
    """

    held: dict[int, Any]
    keywords: Mapping[str, Any]
    names: dict[int, str]
    structures: list[tree.Structure]
    leaves: list[Any]
    places: list[int]
    values: list[Any]
    types: list[ArrayType]
    differentiable: list[bool]

    @classmethod
    def of(cls, parameters: Parameters, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Flatten the arguments of a call."""
        args, keywords = parameters.bound(args, kwargs)
        positions = [i for i in range(len(args)) if i not in parameters.held]
        leaves: list[Any] = []
        structures = []
        for i in positions:
            more, structure = tree.flatten(args[i])
            leaves += more
            structures.append(structure)
        places = [i for i, x in enumerate(leaves) if _is_array(x)]
        values = [asarray(x) if has_tracer(x) or is_weak(x) else x for x in (leaves[i] for i in places)]
        types = [type_of(x) for x in values]
        return cls(
            {i: tree.map_leaves(_read_only, x) for i, x in enumerate(args) if i in parameters.held},
            keywords,
            {i: parameters.name(i) for i in positions},
            structures,
            leaves,
            places,
            values,
            types,
            [is_inexact(t.dtype) for t in types],
        )

    @property
    def weak(self) -> list[bool]:
        """Which of the arrays stand for Python numbers."""
        return [is_weak(x) for x in self.values]

    @property
    def is_differentiated(self) -> bool:
        """Whether any argument with a derivative is a traced value, or another one whose operations are recorded."""
        return any(
            d and (type(x) is Tracer or is_recorded(x)) for x, d in zip(self.values, self.differentiable, strict=True)
        )

    def arguments(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments that have a derivative, with other arrays in them."""
        leaves = list(self.leaves)
        for place, x in zip(self.places, arrays, strict=True):
            leaves[place] = x
        return self._together(leaves)

    def all_arguments(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """All positional arguments, with other arrays in those that have a derivative."""
        if not self.held:
            return self.arguments(arrays)
        both = {**dict(zip(self.names, self.arguments(arrays), strict=True)), **self.held}
        return tuple(both[i] for i in sorted(both))

    def tangents(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Tangents of the arguments: None for those without a derivative."""
        remaining = iter(arrays)
        leaves: list[Any] = [None] * len(self.leaves)
        for place, has_derivative in zip(self.places, self.differentiable, strict=True):
            leaves[place] = next(remaining) if has_derivative else None
        return self._together(leaves)

    def _together(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with these leaves."""
        ends = itertools.accumulate(s.num_leaves for s in self.structures)
        return tuple(
            [tree.unflatten(s, leaves[end - s.num_leaves : end]) for s, end in zip(self.structures, ends, strict=True)]
        )

    def path(self, leaf: int) -> str:
        """The path of a leaf in messages."""
        arguments = dict(zip(self.names.values(), self._together(range(len(self.leaves))), strict=True))
        return [f"the argument {name}{path}" for name, x in arguments.items() for path in tree.paths(x)][leaf]

    def equals(self, other: Call) -> bool:
        """Whether a call is one of the same function with the same types and the same objects."""
        return (
            self.structures == other.structures
            and self.places == other.places
            and self.types == other.types
            and self.weak == other.weak
            and _same(self._objects(), other._objects())
        )

    def _objects(self) -> list[Any]:
        others = [x for i, x in enumerate(self.leaves) if i not in self.places]
        held = [leaf for x in (*self.held.values(), *self.keywords.values()) for leaf in tree.flatten(x)[0]]
        return [*others, *self.held, *self.keywords, *held]


def _is_array(x: Any) -> bool:
    """Whether an argument is traced.  Python integers are not: they may be exponents, sizes or flags."""
    if is_plain(x, int):
        return False
    if has_tracer(x):
        return True
    try:
        type_of(x)
    except TypeError:
        return False
    return True


def _read_only(x: Any) -> Any:
    """`x`, or a read-only view of an array."""
    if is_plain(x, np.ndarray) and x.flags.writeable:
        x = x.view()
        x.flags.writeable = False
    return x


def _same(xs: Sequence[Any], ys: Sequence[Any]) -> bool:
    return len(xs) == len(ys) and all(x is y or _equal(x, y) for x, y in zip(xs, ys, strict=True))


def _equal(x: Any, y: Any) -> bool:
    if type(x) is not type(y):
        return False
    if isinstance(x, Tracer):
        return x.builder is y.builder and x.atom is y.atom
    if isinstance(x, np.ndarray):
        same_place = x.__array_interface__["data"] == y.__array_interface__["data"] and x.strides == y.strides
        return x.shape == y.shape and x.dtype == y.dtype and same_place
    try:
        return bool(x == y)
    except Exception:
        return False
