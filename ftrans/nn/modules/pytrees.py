"""Modules as pytrees, for `jax.tree_util` and the transformations of `ftrans`.

The arrays of the cells are the leaves, and the rest of the module is the structure.  Unflattening makes a new module,
so functions that take modules as pytrees never change the original.  To derivatives, only parameters that require a
gradient are leaves; in a gradient that is a module, all other cells hold zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...base import tree
from .graph import graph_of
from .structure import structure_of


def register(cls: type[Any]) -> None:
    """Register a class of modules as a pytree."""
    import jax
    import optree

    def flatten(module: Any) -> tuple[list[Any], Any]:
        graph = graph_of(module)
        leaves = [cell.array for cell in graph.cells]
        if tree.of_targets.get() is not None:
            trained = set(graph.trained)
            leaves = [x if i in trained else tree.Fixed(x) for i, x in enumerate(leaves)]
        return leaves, structure_of(module)

    def unflatten(structure: Any, leaves: Iterable[Any]) -> Any:
        return structure.build(leaves)

    def with_paths(module: Any) -> tuple[Any, Any, tuple[str, ...]]:
        leaves, structure = flatten(module)
        return leaves, structure, structure.paths

    def with_keys(module: Any) -> tuple[Any, Any]:
        leaves, structure = flatten(module)
        keys = map(jax.tree_util.GetAttrKey, structure.paths)
        return list(zip(keys, leaves, strict=True)), structure

    optree.register_pytree_node(
        cls, with_paths, unflatten, path_entry_type=optree.GetAttrEntry, namespace=tree.NAMESPACE
    )
    jax.tree_util.register_pytree_with_keys(cls, with_keys, unflatten, flatten)


def register_container(
    cls: type[Any], flatten: Callable[[Any], tuple[tuple[Any, ...], Any]], unflatten: Callable[[Any, Any], Any]
) -> None:
    """Register a class of containers as a pytree.

    Args:
        cls: the class.
        flatten: takes an object apart: into its arrays, and the rest, which is hashable.
        unflatten: puts an object together from the rest and the arrays.
    """
    import jax
    import optree

    optree.register_pytree_node(cls, flatten, unflatten, namespace=tree.NAMESPACE)
    jax.tree_util.register_pytree_node(cls, flatten, unflatten)
