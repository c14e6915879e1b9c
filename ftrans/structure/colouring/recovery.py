"""Recovery: where the entries of a coloured matrix are found in its products with sums of unit vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


def in_rows(rows: Any, cols: Any, colours: Any) -> Any:
    """Which entries are alone in their row with the colour of their column, so that a product `J @ v` shows them."""
    return _is_alone(rows, colours[cols])


def _is_alone(group: Any, colour: Any) -> Any:
    """For each entry, whether it has a colour that no other entry of its group has."""
    if colour.max(initial=-1) < 0:
        return np.zeros(len(group), np.bool_)
    _, which, counts = np.unique(group * (colour.max() + 2) + colour + 1, return_inverse=True, return_counts=True)
    return (counts[which] == 1) & (colour >= 0)


class Forest(NamedTuple):
    """The trees of an acyclic colouring: how entries of a symmetric matrix are found by substitution.

    A place is a vertex among those of its own colour and one other: it lies in one tree.  The product with the other
    colour has, in the row of the vertex, the sum of the entries of all edges at this place.  The entry of the edge from
    a place up to its parent is therefore the sum over the places below, itself included, with signs that alternate
    from level to level.

    Attributes:
        vertices: vertex of each place.
        colours: the other colour of each place.
        signs: 1 or -1, by the distance of each place from the root.
        parents: the place above each place; its own number for a root.
        depth: largest distance from a root.
        place_of: for each edge, the place whose edge to its parent it is.
    """

    vertices: Any
    colours: Any
    signs: Any
    parents: Any
    depth: int
    place_of: Any


def forest_of(rows: Any, cols: Any, colours: Any) -> Forest | None:
    """The trees that the edges of a symmetric pattern form, two colours at a time; None if there is a cycle.

    Args:
        rows: one end of each edge, none twice, no loops.
        cols: the other end.
        colours: colours of the vertices.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    width = int(colours.max(initial=0)) + 1
    names = np.concatenate([rows * width + colours[cols], cols * width + colours[rows]])
    named, which = np.unique(names, return_inverse=True)
    low, high = np.split(which, 2)
    count = len(named)
    graph = coo_array((np.ones(len(low), np.int8), (low, high)), (count, count)).tocsr()
    trees, tree_of = connected_components(graph, directed=False)
    if len(low) != count - trees:
        return None
    # One more vertex above all roots makes one tree of them, so that one search finds all parents.
    _, roots = np.unique(tree_of, return_index=True)
    above = coo_array(
        (np.ones(len(low) + trees, np.int8), (np.append(low, roots), np.append(high, np.full(trees, count)))),
        (count + 1, count + 1),
    ).tocsr()
    _, parents = breadth_first_order(above, count, directed=False)
    parents = parents.astype(np.int64)[:count]
    parents[roots] = roots
    levels = _levels(parents)
    low_is_below = parents[low] == high
    return Forest(
        named // width,
        named % width,
        1 - 2 * (levels % 2),
        parents,
        int(levels.max(initial=0)),
        np.where(low_is_below, low, high),
    )


def _levels(parents: Any) -> Any:
    """The distance of each place from its root, by jumps of 1, 2, 4, ..."""
    places = np.arange(len(parents))
    levels = (parents != places).astype(np.int64)
    while (parents[parents] != parents).any():
        levels, parents = levels + levels[parents], parents[parents]
    return levels
