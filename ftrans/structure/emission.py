"""Equations that take elements of an array by an index map, and add to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.index_map import IndexMap
from ..core.program import Const
from ..core.trace import Tracer
from ..core.types import ArrayType
from ..ops.indexing import gather, scatter_add
from ..ops.literals import full
from ..ops.shapes import reshape


def take(x: Any, lanes: IndexMap) -> Any:
    """The elements of `x` that the lanes stand for, in the shape of the lanes."""
    if not isinstance(x, Tracer):
        return x if np.ndim(x) == 0 else np.asarray(x).reshape(-1)[lanes.table()]
    if lanes.is_identity:
        return reshape(x, shape=lanes.shape)
    flat = reshape(x, shape=(x.size,))
    t = np.ascontiguousarray(lanes.table().reshape(-1))
    r = gather(flat, Tracer(x.builder, Const(t, ArrayType(t.shape, t.dtype))), axis=0)
    return reshape(r, shape=lanes.shape)


def put(size: int, values: Any, lanes: IndexMap) -> Any:
    """An array of `size` zeros with the values added to the elements that the lanes stand for."""
    return summed_at(full((size,), 0, values.dtype), values, lanes)


def summed_at(base: Any, values: Any, lanes: IndexMap) -> Any:
    """`base`, an array of one axis, with the values added to the elements that the lanes stand for."""
    t = np.ascontiguousarray(lanes.table().reshape(-1))
    return scatter_add(
        base,
        reshape(values, shape=(values.size,)),
        Tracer(values.builder, Const(t, ArrayType(t.shape, t.dtype))),
        axis=0,
    )
