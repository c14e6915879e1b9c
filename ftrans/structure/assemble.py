"""What is left after elimination, as the entries of one matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base.index_map import IndexMap
from ..core.trace import Builder, Tracer
from ..ops.elementwise import add
from ..ops.literals import full
from ..ops.parts import concatenate
from ..ops.shapes import reshape
from .arithmetic import Masked, traced
from .emission import put
from .graph import Graph, Node


class Block(NamedTuple):
    """Entries of a matrix.

    Attributes:
        keys: their positions, row times the number of columns plus column.
        value: their values, in one axis.
    """

    keys: Any
    value: Tracer


def assembled(builder: Builder, graph: Graph, outputs: list[Node]) -> tuple[Any, Any, Tracer]:
    """The rows and columns of all entries, and their values as a vector, from the edges of outputs to inputs."""
    width = sum(x.type.size for x in graph.inputs)
    dtype = np.result_type(*(x.type.dtype for x in outputs))
    blocks: list[Block] = []
    first_row = 0
    for k in outputs:
        first_col = 0
        for j in graph.inputs:
            if k is j:
                rows = cols = np.arange(k.type.size)
                keys = (rows + first_row) * width + cols + first_col
                blocks.append(Block(keys, full((rows.size,), 1, dtype)))
            for edge in graph.ins.get(k, {}).get(j, ()):
                rows = edge.rows.table().reshape(-1).astype(np.int64)
                keys = (rows + first_row) * width + edge.cols.table().reshape(-1) + first_col
                blocks.append(Block(keys, vector_of(builder, edge.value, edge.rows.shape, dtype)))
            first_col += j.type.size
        first_row += k.type.size
    return entries_of(blocks, width, dtype)


def vector_of(builder: Builder, value: Masked, shape: tuple[int, ...], dtype: Any) -> Tracer:
    """The value of lanes as an array of one axis."""
    x = traced(builder, value, shape, dtype)
    return x if x.ndim == 1 else reshape(x, shape=(x.size,))


def entries_of(blocks: list[Block], width: int, dtype: Any) -> tuple[Any, Any, Tracer]:
    """The rows, columns and values of blocks, those of one position added up."""
    if not blocks:
        none = np.zeros(0, np.int64)
        return none, none, full((0,), 0, dtype)
    blocks = united(blocks)
    keys = np.concatenate([b.keys for b in blocks])
    vector = blocks[0].value if len(blocks) == 1 else concatenate(*(b.value for b in blocks), axis=0)
    return keys // width, keys % width, vector


def united(blocks: list[Block]) -> list[Block]:
    """The blocks, with those that share positions added up."""
    keys = np.concatenate([b.keys for b in blocks])
    if np.unique(keys).size == keys.size:
        return blocks
    found: list[Block] = []
    for block in blocks:
        merged = block
        if np.unique(block.keys).size < block.keys.size:
            merged = _summed([block])
        remaining = []
        for other in found:
            if _overlap(merged.keys, other.keys):
                merged = _summed([other, merged])
            else:
                remaining.append(other)
        found = [*remaining, merged]
    return found


def _overlap(a: Any, b: Any) -> bool:
    if a.max() < b.min() or b.max() < a.min():
        return False
    return bool(np.isin(a, b).any())


def _summed(blocks: list[Block]) -> Block:
    """One block for several, with the values of each position added up."""
    if len(blocks) == 2 and np.array_equal(blocks[0].keys, blocks[1].keys):
        return Block(blocks[0].keys, add(blocks[0].value, blocks[1].value))
    keys = np.unique(np.concatenate([b.keys for b in blocks]))
    total: Tracer | None = None
    for block in blocks:
        places = IndexMap.of(np.searchsorted(keys, block.keys), keys.size)
        values = put(keys.size, block.value, places)
        total = values if total is None else add(total, values)
    assert total is not None
    return Block(keys, total)
