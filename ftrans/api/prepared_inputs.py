"""The arguments of a function that is prepared for their types: which are differentiated, and how calls must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import tree
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..core.types import ArrayType, type_of
from ..numpy.promotion import cast
from .call import name_of, normalize_argnums, select_arguments, type_name
from .derivatives import Argnums
from .targets import flatten_like


class PreparedInputs:
    """Takes calls of one function apart, whose arguments have to be like those that it was prepared for.

    Attributes:
        leaves: the arrays among the arguments that it was prepared for: first those to differentiate with respect to.
        types: their types.
        count: how many are differentiated.
        structure: structure of those.

    Args:
        f: the function.
        argnums: the positions of the arguments to differentiate with respect to.
        args: arguments to prepare for.
        kwargs: the same by name.
        what: who prepares, for messages.
    """

    def __init__(
        self, f: Callable[..., Any], argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any], what: str
    ) -> None:
        self._f, self._argnums, self._what = f, argnums, what
        chosen = select_arguments(f, args, kwargs, argnums, what)
        self._positions = normalize_argnums(argnums, len(args), f)
        self._arity = len(args)
        self.structure, self.count = chosen.structure, len(chosen.leaves)
        others, self._others = tree.flatten(self._rest(args, kwargs))
        # What is no array stays as it is, and has to be the same in each call.
        self._fixed = {i: x for i, x in enumerate(others) if not _is_array(x)}
        self.leaves = [*chosen.leaves, *self._without_fixed(others)]
        if any(isinstance(x, Tracer) for x in self.leaves):
            raise TypeError(
                f"{what} of {name_of(f)} is prepared for traced arguments, whose values are not known; prepare it "
                f"before, for arrays of the same types, and call the result here{at_line(user_line())}"
            )
        self._is_weak = [*chosen.weak, *(is_plain(x, float | int | complex) for x in self.leaves[self.count :])]
        self.types = [type_of(x) for x in self.leaves]
        self._order = [*self._positions, *(i for i in range(len(args)) if i not in self._positions)]
        self._is_plain = not kwargs and len(self.leaves) == len(args) and all(map(_is_array, args))

    def witnesses(self) -> list[Any]:
        """The leaves to trace with: numbers of Python, which adapt to the dtype of arrays, as such."""
        return [
            x.item() if weak and is_plain(x, np.generic) else x
            for x, weak in zip(self.leaves, self._is_weak, strict=True)
        ]

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], tracers: list[Tracer]) -> Any:
        """The result of the function with tracers in place of the arrays of these arguments."""
        rest = iter(tracers[self.count :])
        count = self._others.num_leaves
        given, named = tree.unflatten(
            self._others, [self._fixed[i] if i in self._fixed else next(rest) for i in range(count)]
        )
        others = iter(given)
        args = tuple(x if i in self._positions else next(others) for i, x in enumerate(args))
        return select_arguments(self._f, args, named, self._argnums, self._what).call(tracers[: self.count])

    def leaves_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arrays of a call, which has to be like that it was prepared for.

        Raises:
            ValueError: an argument is not of the type prepared for.
        """
        if self._is_plain and not kwargs and len(args) == self._arity:
            leaves = [args[i] for i in self._order]
        else:
            leaves = self._taken_apart(args, kwargs)
        for i, (x, wanted) in enumerate(zip(leaves, self.types, strict=True)):
            if type(x) is not np.ndarray or x.shape != wanted.shape or x.dtype != wanted.dtype:
                leaves[i] = self._fitted(x, wanted, i)
        return leaves

    def _taken_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        if len(args) != self._arity:
            raise self._unlike(f"{self._arity} positional arguments", f"{len(args)}")
        positions = self._positions
        chosen = args[positions[0]] if isinstance(self._argnums, int) else tuple(args[i] for i in positions)
        leaves, structure = flatten_like(self.structure, chosen)
        if structure != self.structure:
            raise self._unlike(f"arguments of the structure {self.structure}", f"{structure}")
        others, rest = tree.flatten(self._rest(args, kwargs))
        if rest != self._others:
            raise self._unlike(f"other arguments of the structure {self._others}", f"{rest}")
        for i, x in self._fixed.items():
            if others[i] is not x and not _equal(others[i], x):
                raise self._unlike(f"the argument {x!r}, which is no array", f"{others[i]!r}")
        return [*leaves, *self._without_fixed(others)]

    def _rest(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        return [x for i, x in enumerate(args) if i not in self._positions], kwargs

    def _without_fixed(self, others: list[Any]) -> list[Any]:
        return [x for i, x in enumerate(others) if i not in self._fixed]

    def _fitted(self, x: Any, type: ArrayType, index: int) -> Any:
        """An argument as an array of a type, if it can be one without loss."""
        try:
            given = type_of(x)
        except TypeError:
            raise self._unlike(
                f"an array {type} (number {index} of the arguments)", f"what is {type_name(x)}"
            ) from None
        if given.shape != type.shape or not np.can_cast(given.dtype, type.dtype):
            raise self._unlike(f"{type} (number {index} of the arrays among the arguments)", f"{given}")
        if is_plain(x, float | int | complex | np.ndarray | np.generic):
            return np.asarray(x, type.dtype)
        if given is type:
            return x
        if isinstance(x, Tracer):
            return cast(x, type.dtype)
        raise self._unlike(f"{type} (number {index} of the arrays among the arguments)", f"{given}")

    def _unlike(self, prepared: str, given: str) -> ValueError:
        return ValueError(
            f"{self._what} of {name_of(self._f)} was prepared for {prepared}, and was called with {given}; prepare it "
            f"again for arguments like these{at_line(user_line())}"
        )


def _is_array(x: Any) -> bool:
    try:
        type_of(x)
    except TypeError:
        return False
    return True


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)
