"""Nested containers at the edge of the API: arguments and results as flat lists of leaves.

Tuples, lists, dicts, NamedTuples, dataclasses, holders of arrays of other libraries, None and whatever is registered
with `optree` in the "ftrans" namespace are containers; all else is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dataclass_nodes, holders
from .cell import Cell
from .dataclass_nodes import is_dataclass
from .forks import lock
from .source import at_line, user_line

if TYPE_CHECKING:
    import optree

    Structure = optree.PyTreeSpec

NAMESPACE = "ftrans"
# Classes that are leaves for certain; asking about anything else takes longer, and the first time imports optree.
LEAVES: set[type] = {np.ndarray, np.float64, float, int}
# Classes that have been met as leaves and are no dataclasses.
_plain_leaves: set[type] = set()
# Dataclasses, and classes of holders, that are known to optree.
_registered: set[type] = set()
_registering = lock()
# Which leaves are differentiated, while a container is being taken apart for that: all others go into `Fixed`.
of_targets: ContextVar[Callable[[Any], bool] | None] = ContextVar("leaves that are differentiated", default=None)


class _Leaf:
    """The structure of what is no container."""

    num_leaves = 1

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        return leaves[0]

    def __repr__(self) -> str:
        return "*"


LEAF: Any = _Leaf()


def _register_class(cls: Any) -> None:
    with _registering:
        # Another thread may have met the class at the same time.
        if cls not in _registered:
            if is_dataclass(cls):
                dataclass_nodes.register(cls, NAMESPACE, _beside_fields)
            else:
                holders.register(cls, NAMESPACE)
            _registered.add(cls)


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of a nested container, in a fixed order, and its structure."""
    if type(tree) in LEAVES:
        return [tree], LEAF
    import optree

    try:
        leaves, structure = optree.tree_flatten(tree, namespace=NAMESPACE)
    except RecursionError:
        raise RecursionError(
            f"a container of type {type(tree).__name__} holds itself, or is nested too deeply to be taken apart"
            + at_line(user_line())
        ) from None
    for cls in {type(x) for x in leaves}:
        if cls not in _plain_leaves:
            if issubclass(cls, Cell):
                leaves = [_held(x) if isinstance(x, cls) else x for x in leaves]
                continue
            if is_dataclass(cls) or holders.is_class_of_holders(cls):
                _register_class(cls)
                return flatten(tree)
            _plain_leaves.add(cls)
    return (leaves, LEAF) if structure.num_nodes == 1 and len(leaves) == 1 else (leaves, structure)


def _beside_fields(x: Any) -> Any:
    """What stands for an attribute of a dataclass that is no field: as it is, but integers are not differentiated."""
    is_target = of_targets.get()
    if is_target is None:
        return x
    import optree

    return optree.tree_map(lambda leaf: leaf if is_target(leaf) else Fixed(leaf), x, namespace=NAMESPACE)


def _held(cell: Any) -> Any:
    """What stands for a cell: what an operation on it computes with, or the array to be differentiated."""
    return cell.read() if of_targets.get() is None else cell.value


def is_one_array(structure: Any) -> bool:
    """Whether a structure is that of an array, alone or in a holder."""
    return structure is LEAF or (structure.type is not None and holders.is_class_of_holders(structure.type))


def keys_of_dicts(structure: Structure) -> tuple[tuple[Any, ...], ...]:
    """For each leaf, the keys of the dicts that it is in."""
    if structure is LEAF:
        return ()
    import optree

    return tuple(
        [
            tuple([entry.entry for entry in accessor if isinstance(entry, optree.MappingEntry)])
            for accessor in structure.accessors()
        ]
    )


class Fixed:
    """A leaf that a container has beside those that are differentiated, such as an integer array of a module."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """The nested container of a structure, with these leaves."""
    return structure.unflatten(leaves)


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
            raise ValueError(
                f"two nested containers differ in structure: {structure} and {other_structure}{at_line(user_line())}"
            )
        columns.append(more)
    return unflatten(structure, [f(*row) for row in zip(*columns, strict=True)])


def broadcast_prefix(prefix: Any, tree: Any) -> list[Any]:
    """One entry of `prefix` per leaf of `tree`, where an entry may stand for a whole subtree.  None is an entry."""
    import optree

    return optree.broadcast_prefix(prefix, tree, is_leaf=lambda x: x is None, namespace=NAMESPACE)
