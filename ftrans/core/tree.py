"""Nested containers at the edge of the API: arguments and results as flat lists of leaves.

Tuples, lists, dicts, NamedTuples, dataclasses, None and whatever is registered with `optree` in the "ftrans"
namespace are containers; all else is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .trace import Tracer

if TYPE_CHECKING:
    import optree

    Structure = optree.PyTreeSpec

NAMESPACE = "ftrans"
# Classes that are leaves for certain; asking about anything else takes longer, and the first time imports optree.
_LEAVES = frozenset((np.ndarray, np.float64, float, int, Tracer))
# Classes that have been met as leaves and are no dataclasses.
_plain_leaves: set[type] = set()


class _Leaf:
    """The structure of what is no container."""

    num_leaves = 1

    def __repr__(self) -> str:
        return "*"


LEAF: Any = _Leaf()


def _register_dataclass(cls: Any) -> None:
    import optree

    names = list(cls.__dataclass_fields__)

    def flatten(x: Any) -> tuple[list[Any], None, list[str]]:
        return [getattr(x, name) for name in names], None, names

    def unflatten(_: Any, children: Iterable[Any]) -> Any:
        x: Any = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(x, name, child)
        return x

    optree.register_pytree_node(cls, flatten, unflatten, namespace=NAMESPACE)


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of a nested container, in a fixed order, and its structure."""
    if tree.__class__ in _LEAVES:
        return [tree], LEAF
    import optree

    leaves, structure = optree.tree_flatten(tree, namespace=NAMESPACE)
    for cls in {x.__class__ for x in leaves}:
        if cls not in _plain_leaves:
            if hasattr(cls, "__dataclass_fields__") and not hasattr(cls, "dtype"):
                _register_dataclass(cls)
                return flatten(tree)
            _plain_leaves.add(cls)
    return (leaves, LEAF) if structure.num_nodes == 1 and len(leaves) == 1 else (leaves, structure)


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """The nested container of a structure, with these leaves."""
    if structure is LEAF:
        return leaves[0]
    import optree

    return optree.tree_unflatten(structure, leaves)


def paths(tree: Any) -> list[str]:
    """For each leaf, how to get to it: `['weights'][0]`, or an empty string for a tree that is a leaf."""
    import optree

    flatten(tree)
    accessors = optree.tree_accessors(tree, namespace=NAMESPACE)
    return [accessor.codify("") for accessor in accessors]


def map_leaves(f: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply `f` to the leaves of one or several trees of the same structure."""
    leaves, structure = flatten(tree)
    columns = [leaves]
    for other in others:
        more, other_structure = flatten(other)
        if other_structure != structure:
            raise ValueError(f"two nested containers differ in structure: {structure} and {other_structure}")
        columns.append(more)
    return unflatten(structure, [f(*row) for row in zip(*columns, strict=True)])


def broadcast_prefix(prefix: Any, tree: Any) -> list[Any]:
    """One entry of `prefix` per leaf of `tree`, where an entry may stand for a whole subtree.  None is an entry."""
    import optree

    return optree.broadcast_prefix(prefix, tree, is_leaf=lambda x: x is None, namespace=NAMESPACE)
