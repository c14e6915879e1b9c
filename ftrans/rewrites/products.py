"""Rewrites of sums of products: as products of matrices, and in the order that takes the fewest multiplications."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..core.program import Params
from ..core.trace import Tracer, definition
from ..core.types import Shape
from ..ops.broadcast import broadcast, reduce_sum
from ..ops.contractions import Dims, dot_general
from ..ops.elementwise import mul
from ..ops.literals import full, splat
from ..ops.shapes import transpose
from .rule import Operands, made_by

# From these sizes on, a product of a matrix and a vector is faster than a sum that XLA fuses.
_LEAST_MATRIX, _LEAST_ROW = 1 << 12, 64


class Factor(NamedTuple):
    """An array whose elements are repeated along the axes of a product that it does not have.

    Attributes:
        source: the array.
        axes: for each of its axes, that of the product.
    """

    source: Tracer
    axes: Shape

    def summed(self, axes: Shape) -> Factor:
        """The sums along some axes of the product."""
        if not axes:
            return self
        own = tuple(self.axes.index(i) for i in axes)
        return Factor(reduce_sum(self.source, axes=own), tuple(i for i in self.axes if i not in axes))

    def places(self, axes: Shape) -> Shape:
        """Where axes of the product are among its own."""
        return tuple(self.axes.index(i) for i in axes)

    def without(self, other: Factor) -> Shape:
        """The axes that only this one of two factors has."""
        return tuple(i for i in self.axes if i not in other.axes)

    def times(self, other: Factor) -> Factor:
        """The product with a factor that has no axis but those of this one."""
        dims = self.places(other.axes)
        return Factor(mul(self.source, broadcast(other.source, shape=self.source.shape, dims=dims)), self.axes)


def _may_be_reordered(x: Tracer) -> bool:
    """Whether an array has elements, and of at least single precision: shorter ones would show in which order."""
    return x.size > 0 and x.dtype.kind in "fc" and x.dtype.itemsize >= 4


def sum_of_products(operands: Operands, params: Params) -> Tracer | None:
    (x,), summed = operands.values, params["axes"]
    if made_by(mul, x) is None or not _may_be_reordered(x):
        return None
    factors = _factors(operands, x)
    two = _two_of(factors)
    if two is None or len({*two[0].axes, *two[1].axes}) < x.ndim or not _is_matrix_product(*two, x, summed):
        return None
    a, b = two
    for f in factors:
        if f is not two[0] and f is not two[1]:
            a, b = (a.times(f), b) if set(f.axes) <= set(a.axes) else (a, b.times(f))
    a, b = (f.summed(tuple(i for i in f.without(g) if i in summed)) for f, g in ((a, b), (b, a)))
    return _contracted(a, b, summed)


def _contracted(a: Factor, b: Factor, summed: Shape) -> Tracer:
    """The sums of the products of two factors over axes that both of them have."""
    if max(b.without(a), default=0) < max(a.without(b), default=0):
        a, b = b, a
    shared = tuple(i for i in a.axes if i in b.axes)
    contracted, kept = (tuple(i for i in shared if (i in summed) is is_summed) for is_summed in (True, False))
    contract, batch = ((a.places(axes), b.places(axes)) for axes in (contracted, kept))
    out = dot_general(a.source, b.source, contract=contract, batch=batch)
    axes = (*kept, *a.without(b), *b.without(a))
    order = tuple(axes.index(i) for i in sorted(axes))
    return out if order == tuple(range(out.ndim)) else transpose(out, axes=order)


def _factors(operands: Operands, x: Tracer) -> list[Factor]:
    """The factors of a product that nothing else uses."""
    product = made_by(mul, x)
    if product is None or not operands.only_user_of(x):
        repeated = made_by(broadcast, x)
        return [Factor(x, tuple(range(x.ndim))) if repeated is None else Factor(repeated[0][0], repeated[1]["dims"])]
    found: list[Factor] = []
    for factor in product[0]:
        number = splat(factor)
        found += _factors(operands, factor) if number is None else [Factor(full((), number, x.dtype), ())]
    return found


def _two_of(factors: list[Factor]) -> tuple[Factor, Factor] | None:
    """Two factors that have the axes of all others between them, the smaller one first."""
    by_axes = sorted(factors, key=lambda f: len(f.axes))
    if len(by_axes) < 2:
        return None
    *rest, b = by_axes
    a = next((f for f in reversed(rest) if not set(f.axes) <= set(b.axes)), rest[-1])
    fit = all(set(f.axes) <= set(a.axes) or set(f.axes) <= set(b.axes) for f in rest)
    return (a, b) if fit and a.axes else None


def _is_matrix_product(a: Factor, b: Factor, x: Tracer, summed: Shape) -> bool:
    """Whether a product of matrices pays, in place of a sum that XLA fuses with what makes the factors."""
    rows, columns = (math.prod(x.shape[i] for i in f.without(g) if i not in summed) for f, g in ((a, b), (b, a)))
    length = math.prod(x.shape[i] for i in summed if i in a.axes and i in b.axes)
    summed_before = x.size // (rows * columns * math.prod(x.shape[i] for i in a.axes if i in b.axes))
    if summed_before > 1 or (length > 1 and min(rows, columns) > 1):
        return True
    matrix = a.source if a.source.size > b.source.size else b.source
    return max(rows, columns) > 1 and x.size >= _LEAST_MATRIX and length >= _LEAST_ROW and _is_in_memory(matrix)


def _is_in_memory(x: Tracer) -> bool:
    """Whether an array is written to memory anyhow: an argument, or a result of what XLA does not fuse."""
    made = definition(x)
    return made is None or not made.primitive.fuses


# Products of products


def product_of_product(operands: Operands, params: Params) -> Tracer | None:
    x, y = operands.values
    if params["batch"] != ((), ()) or not (_may_be_reordered(x) and _may_be_reordered(y)):
        return None
    return _reordered(operands, x, y, params["contract"])


def _reordered(operands: Operands, x: Tracer, y: Tracer, contract: Dims) -> Tracer | None:
    found = _left(operands, x, y, contract)
    return _right(operands, x, y, contract) if found is None else found


def _product(operands: Operands, x: Tracer, y: Tracer, contract: Dims) -> Tracer:
    """A product, in another order if that is cheaper."""
    found = _reordered(operands, x, y, contract)
    return dot_general(x, y, contract=contract, batch=((), ())) if found is None else found


def _left(operands: Operands, x: Tracer, y: Tracer, contract: Dims) -> Tracer | None:
    """`(a @ b) @ y` as `a @ (b @ y)`."""
    inner = _plain_product(operands, x)
    if inner is None:
        return None
    a, b, (from_a, from_b) = inner
    count = a.ndim - len(from_a)
    b_free = tuple(i for i in range(b.ndim) if i not in from_b)
    if any(i < count for i in contract[0]):
        return None
    of_b = tuple(b_free[i - count] for i in contract[0])
    rest = tuple(i for i in range(b.ndim) if i not in of_b)
    lanes = math.prod(n for i, n in enumerate(y.shape) if i not in contract[1])
    if not _saves(x.size * (_size(a, from_a) + lanes), lanes * (b.size + a.size * _size(b, b_free) // _size(b, of_b))):
        return None
    last = _product(operands, b, y, (of_b, contract[1]))
    return _product(operands, a, last, (from_a, tuple(rest.index(i) for i in from_b)))


def _right(operands: Operands, x: Tracer, y: Tracer, contract: Dims) -> Tracer | None:
    """`x @ (a @ b)` as `(x @ a) @ b`."""
    inner = _plain_product(operands, y)
    if inner is None:
        return None
    a, b, (from_a, from_b) = inner
    a_free = tuple(i for i in range(a.ndim) if i not in from_a)
    if any(i >= len(a_free) for i in contract[1]):
        return None
    of_a = tuple(a_free[i] for i in contract[1])
    rest = tuple(i for i in range(a.ndim) if i not in of_a)
    lanes = math.prod(n for i, n in enumerate(x.shape) if i not in contract[0])
    if not _saves(y.size * (_size(a, from_a) + lanes), lanes * (a.size + b.size * _size(a, a_free) // _size(a, of_a))):
        return None
    first = _product(operands, x, a, (contract[0], of_a))
    before = first.ndim - len(rest)
    return _product(operands, first, b, (tuple(before + rest.index(i) for i in from_a), from_b))


def _plain_product(operands: Operands, x: Tracer) -> tuple[Tracer, Tracer, Dims] | None:
    """The factors of a product without shared axes, if nothing else uses it, and what it sums over."""
    if not operands.only_user_of(x):
        return None
    made = made_by(dot_general, x)
    if made is None:
        a, *rest = _factors(operands, x)
        is_outer = len(rest) == 1 and (*a.axes, *rest[0].axes) == tuple(range(x.ndim))
        return (a.source, rest[0].source, ((), ())) if is_outer else None
    if made[1]["batch"] != ((), ()):
        return None
    return made[0][0], made[0][1], made[1]["contract"]


def _size(x: Tracer, axes: Shape) -> int:
    return math.prod(x.shape[i] for i in axes)


def _saves(now: int, then: int) -> bool:
    """Whether so many multiplications are at least twice as many as so many others."""
    return now >= 2 * then
