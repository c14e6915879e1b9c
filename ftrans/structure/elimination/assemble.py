"""What is left after elimination, as the entries of one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ...base.index_map import IndexMap, matches, places
from ...core.trace import Builder, Tracer
from ...ops.literals import full
from ...ops.parts import concatenate
from ...ops.shapes import reshape
from ..graph.arithmetic import Masked, traced
from ..graph.emission import put, summed_at, take
from ..graph.graph import Graph, Node

# More blocks than this are sorted together rather than compared in pairs.
_MOST_COMPARED = 200


class Block(NamedTuple):
    """Entries of a matrix.

    Attributes:
        rows: from lanes, which have one axis, to rows.
        cols: from lanes to columns.
        value: the values of the lanes.
    """

    rows: IndexMap
    cols: IndexMap
    value: Tracer

    @property
    def keys(self) -> IndexMap:
        """From lanes to places in the matrix."""
        return places(self.rows, self.cols)

    def at(self, lanes: IndexMap) -> Block:
        """The block of some of its lanes."""
        return Block(self.rows.after(lanes), self.cols.after(lanes), take(self.value, lanes))


def assembled(builder: Builder, graph: Graph, outputs: list[Node]) -> tuple[Any, Any, Tracer]:
    """The rows and columns of all entries, and their values as a vector, from the edges of outputs to inputs."""
    height = sum(x.type.size for x in outputs)
    width = sum(x.type.size for x in graph.inputs)
    dtype = np.result_type(*(x.type.dtype for x in outputs))
    blocks: list[Block] = []
    first_row = 0
    for k in outputs:
        first_col = 0
        for j in graph.inputs:
            if k is j:
                lanes = IndexMap.identity((k.type.size,))
                rows, cols = lanes.shifted(first_row, height), lanes.shifted(first_col, width)
                blocks.append(Block(rows, cols, full((k.type.size,), 1, dtype)))
            for edge in graph.ins.get(k, {}).get(j, ()):
                rows, cols = edge.rows.shifted(first_row, height), edge.cols.shifted(first_col, width)
                blocks.append(block_of(builder, rows, cols, edge.value, dtype))
            first_col += j.type.size
        first_row += k.type.size
    return entries_of(united(blocks), dtype)


def block_of(builder: Builder, rows: IndexMap, cols: IndexMap, value: Masked, dtype: Any) -> Block:
    """The block of lanes with these values."""
    vector = vector_of(builder, value, rows.shape, dtype)
    return Block(rows.reshaped(vector.shape), cols.reshaped(vector.shape), vector)


def vector_of(builder: Builder, value: Masked, shape: tuple[int, ...], dtype: Any) -> Tracer:
    """The value of lanes as an array of one axis."""
    x = traced(builder, value, shape, dtype)
    return x if x.ndim == 1 else reshape(x, shape=(x.size,))


def entries_of(blocks: Sequence[Block], dtype: Any) -> tuple[Any, Any, Tracer]:
    """The rows, columns and values of blocks, one behind the other."""
    if not blocks:
        none = np.zeros(0, np.int64)
        return none, none, full((0,), 0, dtype)
    rows, cols = (
        np.concatenate([m.table() for m in maps]) for maps in ([b.rows for b in blocks], [b.cols for b in blocks])
    )
    vector = blocks[0].value if len(blocks) == 1 else concatenate(*(b.value for b in blocks), axis=0)
    return rows, cols, vector


def united(blocks: Sequence[Block]) -> list[Block]:
    """The blocks with each place in one of them, once: what others have there is added."""
    if are_apart([b.keys for b in blocks]):
        return list(blocks)
    found: list[Block] = []
    for block in blocks:
        rest: Block | None = _without_repeats(block)
        remaining = []
        for other in found:
            pairs = None if rest is None else matches(other.keys, rest.keys)
            if rest is None or pairs is None:
                remaining.append(other)
            elif pairs[0].size == other.rows.size:
                rest = _with_added(rest, other, pairs[1], pairs[0])
            else:
                remaining.append(_with_added(other, rest, *pairs))
                beside = pairs[1].missing()
                rest = None if beside is None else rest.at(beside)
        found = remaining if rest is None else [*remaining, rest]
    return found


def are_apart(keys: Sequence[IndexMap]) -> bool:
    """Whether no place occurs twice."""
    if all(k.form is not None for k in keys) and len(keys) <= _MOST_COMPARED:
        alone = all(k.is_injective for k in keys)
        return alone and all(matches(a, b) is None for a, b in combinations(keys, 2))
    everything = np.sort(np.concatenate([k.table().reshape(-1) for k in keys]))
    return bool((np.diff(everything) != 0).all())


def _with_added(block: Block, other: Block, of_block: IndexMap, of_other: IndexMap) -> Block:
    """A block with the values of some lanes of another one added to its own."""
    return block._replace(value=summed_at(block.value, take(other.value, of_other), of_block))


def _without_repeats(block: Block) -> Block:
    """The block with each place once, and the values of all its lanes added up."""
    keys = block.keys
    if keys.is_injective:
        return block
    once, lanes = np.unique(keys.table(), return_inverse=True)
    rows, cols = np.divmod(once, block.cols.space)
    return Block(
        IndexMap.of(rows, block.rows.space),
        IndexMap.of(cols, block.cols.space),
        put(once.size, block.value, IndexMap.of(lanes, once.size)),
    )
