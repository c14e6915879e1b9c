"""Targets: those leaves of a nested container that are differentiated, where others are integers or held fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.tree import LEAF, LEAVES, Fixed, flatten, of_targets, unflatten
from ..core.types import ArrayType, is_inexact, type_of


class Partial:
    """The structure of a container of which only some leaves are differentiated.

    With those leaves, `unflatten` makes a container in which the others are zeros: what a gradient is.
    """

    def __init__(self, structure: Any, fixed: dict[int, Any]) -> None:
        self._structure = structure
        self._fixed = fixed
        self.num_leaves = structure.num_leaves - len(fixed)

    def _filled(self, leaves: Sequence[Any], others: dict[int, Any]) -> Any:
        remaining = iter(leaves)
        count = self._structure.num_leaves
        return unflatten(self._structure, [others[i] if i in others else next(remaining) for i in range(count)])

    def with_values(self, leaves: Sequence[Any]) -> Any:
        """The container with these leaves, and the others as they are."""
        return self._filled(leaves, self._fixed)

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The container with these leaves, and zeros of the types of the others."""
        types = {i: type_of(x) for i, x in self._fixed.items()}
        return self._filled(leaves, {i: np.zeros(t.shape, t.dtype) for i, t in types.items()})

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Partial)
            and self._structure == other._structure
            and self._fixed.keys() == other._fixed.keys()
        )

    def __hash__(self) -> int:
        return hash((self._structure, *self._fixed))

    def __repr__(self) -> str:
        return repr(self._structure)


def unflatten_square(structure: Any, types: Sequence[ArrayType], blocks: Sequence[Any]) -> Any:
    """A container of containers, both of one structure, from blocks for each pair of leaves, in order of rows.

    Args:
        structure: the structure.
        types: types of its leaves.
        blocks: the blocks, such as those of a Hessian.
    """
    width = len(types)
    rows = [unflatten(structure, blocks[i : i + width]) for i in range(0, width * width, width)]
    if type(structure) is not Partial:
        return unflatten(structure, rows)
    fixed = {i: type_of(x) for i, x in structure._fixed.items()}
    zeros = {
        i: unflatten(structure, [np.zeros((*t.shape, *wrt.shape), t.dtype) for wrt in types]) for i, t in fixed.items()
    }
    return structure._filled(rows, zeros)


def flatten_targets(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a container that are differentiated, and its structure."""
    if type(tree) in LEAVES:
        return [tree], LEAF
    token = of_targets.set(_is_differentiable)
    try:
        leaves, structure = flatten(tree)
    finally:
        of_targets.reset(token)
    fixed = {i: x.value for i, x in enumerate(leaves) if type(x) is Fixed}
    if not fixed:
        return leaves, structure
    return [x for x in leaves if type(x) is not Fixed], Partial(structure, fixed)


def _is_differentiable(leaf: Any) -> bool:
    try:
        return is_inexact(type_of(leaf).dtype)
    except TypeError:
        # An error is raised where it is known which argument it is.
        return True


def flatten_like(structure: Any, tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a container that has, or should have, a structure; and its own structure."""
    return flatten_targets(tree) if type(structure) is Partial else flatten(tree)


def is_target(tree: Any) -> list[bool]:
    """For each leaf, whether it is one of those that are differentiated."""
    leaves, structure = flatten_targets(tree)
    if type(structure) is not Partial:
        return [True] * len(leaves)
    return [i not in structure._fixed for i in range(structure._structure.num_leaves)]
