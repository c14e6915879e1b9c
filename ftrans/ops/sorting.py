"""Primitives that order elements: sort, argsort, and the search in what is sorted.  NaN comes last, as in NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.pieces import aligned
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import SingleResult, Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType
from .broadcast import with_batch_axis
from .indexing import take_along
from .literals import iota, splat


def _check_axis(name: str, x: ArrayType, axis: int) -> None:
    if axis >= x.ndim:
        raise ValueError(f"{name} along axis {axis} of {x}, which has {x.ndim} axes")


class Argsort(SingleResult):
    """The indices, int64, that put `x` into increasing order along `axis`.

    Elements that are equal keep their order if `stable`; otherwise NumPy and XLA may order them differently.
    """

    name = "argsort"
    memory = Memory.NEW

    def type_rule(self, x: ArrayType, *, axis: int, stable: bool) -> ArrayType:
        _check_axis(self.name, x, axis)
        return x.with_dtype(np.int64)

    def numpy(self, x: Any, *, axis: int, stable: bool) -> Any:
        return x.argsort(axis, "stable" if stable else None)

    def python(self, operands: Sequence[str], params: Params) -> str:
        kind = ", 'stable'" if params["stable"] else ""
        return f"{operands[0]}.argsort({params['axis']}{kind})"

    def xla(self, x: Any, *, axis: int, stable: bool) -> Any:
        from jax import lax

        places = lax.broadcasted_iota(np.int64, x.shape, axis)
        return lax.sort((x, places), dimension=axis, is_stable=stable, num_keys=1)[1]

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(types[0].size * math.log2(max(types[0].shape[params["axis"]], 1)))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        return argsort(*primals, **params), None

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axis: int, stable: bool) -> Any:
        return argsort(operands[0], axis=axis + 1, stable=stable), True

    def simplify(self, operands: Sequence[Tracer], *, axis: int, stable: bool) -> Tracer | None:
        (x,) = operands
        ordered = x.shape[axis] <= 1 or splat(x) is not None
        return iota(shape=x.shape, axis=axis, dtype=np.dtype(np.int64)) if ordered else None


class Sort(SingleResult):
    """`x` in increasing order along `axis`.  The derivative of equal elements goes by their order in `x`."""

    name = "sort"
    memory = Memory.NEW

    def type_rule(self, x: ArrayType, *, axis: int) -> ArrayType:
        _check_axis(self.name, x, axis)
        return x

    def numpy(self, x: Any, *, axis: int) -> Any:
        return np.sort(x, axis)

    def python(self, operands: Sequence[str], params: Params) -> str:
        return f"np.sort({operands[0]}, {params['axis']})"

    def xla(self, x: Any, *, axis: int) -> Any:
        from jax import lax

        return lax.sort(x, dimension=axis, is_stable=False)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(types[0].size * math.log2(max(types[0].shape[params["axis"]], 1)))

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        shape = types[0].shape
        return [aligned(shape, shape, [(i, i) for i in range(len(shape)) if i != params["axis"]])]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, axis: int) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        assert t is not None
        order = argsort(x, axis=axis, stable=True)
        return take_along(x, order, axis), take_along(t, order, axis)

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axis: int) -> Any:
        return sort(operands[0], axis=axis + 1), True

    def simplify(self, operands: Sequence[Tracer], *, axis: int) -> Tracer | None:
        (x,) = operands
        return x if x.shape[axis] <= 1 or splat(x) is not None else None


class Searchsorted(SingleResult):
    """Where to insert `values` so that `table`, sorted along its last axis, stays sorted: indices, int64.

    With `side` "left" in front of equal elements, with "right" behind them.  The leading axes of `table` are shared
    with `values`; the remaining axes of `values` are free.
    """

    name = "searchsorted"
    memory = Memory.NEW

    def type_rule(self, table: ArrayType, values: ArrayType, *, side: str) -> ArrayType:
        lead = table.shape[:-1]
        if table.ndim == 0 or values.shape[: len(lead)] != lead or table.dtype != values.dtype:
            raise TypeError(f"{self.name}: {values} cannot be looked up in {table}")
        if side not in ("left", "right"):
            raise ValueError(f"{self.name}: side must be 'left' or 'right', not {side!r}")
        return values.with_dtype(np.int64)

    def numpy(self, table: Any, values: Any, *, side: str) -> Any:
        if table.ndim == 1:
            return table.searchsorted(values, side)
        out = np.empty(values.shape, np.int64)
        for place in np.ndindex(table.shape[:-1]):
            out[place] = table[place].searchsorted(values[place], side)
        return out

    def xla(self, table: Any, values: Any, *, side: str) -> Any:
        import jax
        import jax.numpy as jnp

        def search(table: Any, values: Any) -> Any:
            return jnp.searchsorted(table, values, side=side).astype(np.int64)

        for _ in table.shape[:-1]:
            search = jax.vmap(search)
        return search(table, values)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        table, values = types
        return Cost.arithmetic(values.size * math.log2(max(table.shape[-1], 1)))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, side: str) -> tuple[Any, Any]:
        return searchsorted(*primals, side=side), None

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, side: str) -> Any:
        table, values = operands
        if not batched[0] and table.ndim == 1:
            return searchsorted(table, values, side=side), True
        table, values = (with_batch_axis(size, x, b) for x, b in zip(operands, batched, strict=True))
        return searchsorted(table, values, side=side), True


argsort = Argsort()
sort = Sort()
searchsorted = Searchsorted()
