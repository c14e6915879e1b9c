"""Rewrites of sums of products of matrices, scaled and shifted: as one product of wider matrices."""

from __future__ import annotations

from typing import NamedTuple

from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import Shape
from ..ops.broadcast import broadcast
from ..ops.contractions import dot_general
from ..ops.elementwise import add, mul
from ..ops.literals import full, splat
from ..ops.parts import concatenate
from ..ops.shapes import transpose
from .rule import Operands, made_by


class Term(NamedTuple):
    """A product `left @ right`.

    Attributes:
        left: its axes are those of the rows of the product, then the one that is summed over.
        right: its first axis is summed over, the others are those of the columns.
    """

    left: Tracer
    right: Tracer


class Terms(NamedTuple):
    """Products whose sum is an array.

    Attributes:
        terms: the products.
        passes: how many equations, with results as large as the array, have made it of them.
        products: how many of the terms were products before.
    """

    terms: list[Term]
    passes: int
    products: int


def sum_of_matrix_products(operands: Operands, params: Params) -> Tracer | None:
    x, y = operands.values
    rows = _row_count(x) or _row_count(y)
    if not rows or x.dtype.kind != "f" or x.dtype.itemsize < 4 or not x.size:
        return None
    both = _sum(operands, x, y, x.shape[:rows])
    if both is None or both.products < 2:
        return None
    # What was joined before is joined anew, and not computed.
    joined = sum(z.size for term in both.terms for z in term if made_by(concatenate, z) is None)
    if 2 * joined > x.size * both.passes:
        return None
    left = concatenate(*(t.left for t in both.terms), axis=rows)
    right = concatenate(*(t.right for t in both.terms), axis=0)
    return dot_general(left, right, contract=((rows,), (0,)), batch=((), ()))


def _row_count(x: Tracer) -> int:
    """How many axes of an array are rows of the first product that it is made of; 0 if there is none."""
    while True:
        product = made_by(dot_general, x)
        if product is not None:
            (a, _), params = product
            return a.ndim - 1 if params["batch"] == ((), ()) and len(params["contract"][0]) == 1 else 0
        moved = made_by(transpose, x)
        inner = next((found for p in (add, mul) if (found := made_by(p, x)) is not None), None)
        if moved is not None:
            x = moved[0][0]
        elif inner is not None:
            x = next((z for z in inner[0] if made_by(broadcast, z) is None), inner[0][0])
        else:
            return 0


def _sum(operands: Operands, x: Tracer, y: Tracer, rows: Shape) -> Terms | None:
    a = _terms(operands, x, rows)
    b = None if a is None else _terms(operands, y, rows)
    return (
        None if a is None or b is None else Terms(a.terms + b.terms, a.passes + b.passes + 1, a.products + b.products)
    )


def _terms(operands: Operands, x: Tracer, rows: Shape) -> Terms | None:
    """The products that an array is the sum of, if nothing else uses what is between."""
    if splat(x) == 0:
        return Terms([], 0, 0)
    shift = made_by(broadcast, x)
    if shift is not None:
        return _shift(shift[0][0], shift[1]["dims"], x.shape, len(rows))
    if not operands.only_user_of(x):
        return None
    summands, factors = made_by(add, x), made_by(mul, x)
    if summands is not None:
        a, b = summands[0]
        return _sum(operands, a, b, rows)
    if factors is not None:
        a, b = factors[0]
        return _scaled(operands, a, b, rows) or _scaled(operands, b, a, rows)
    return _product(operands, x, rows)


def _shift(x: Tracer, dims: Shape, shape: Shape, rows: int) -> Terms | None:
    """An array that is the same in all columns, as a product with ones."""
    if any(i >= rows for i in dims):
        return None
    left = broadcast(x, shape=(*shape[:rows], 1), dims=dims)
    return Terms([Term(left, full((1, *shape[rows:]), 1, x.dtype))], 0, 0)


def _scaled(operands: Operands, scale: Tracer, x: Tracer, rows: Shape) -> Terms | None:
    """A sum whose columns are scaled: the right hand sides are."""
    repeated = made_by(broadcast, scale)
    if repeated is None or not repeated[1]["dims"] or min(repeated[1]["dims"]) < len(rows):
        return None
    inner = _terms(operands, x, rows)
    if inner is None:
        return None
    (source,), dims = repeated[0], tuple(i - len(rows) + 1 for i in repeated[1]["dims"])
    scaled = [Term(t.left, mul(t.right, broadcast(source, shape=t.right.shape, dims=dims))) for t in inner.terms]
    return Terms(scaled, inner.passes + 1, inner.products)


def _product(operands: Operands, x: Tracer, rows: Shape) -> Terms | None:
    """A product of two arrays that sums over one axis, its rows perhaps in another order."""
    count, order = len(rows), tuple(range(len(rows)))
    moved = made_by(transpose, x)
    if moved is not None:
        axes = moved[1]["axes"]
        order, x = axes[:count], moved[0][0]
        if axes[count:] != tuple(range(count, x.ndim)) or not operands.only_user_of(x):
            return None
    product = made_by(dot_general, x)
    if product is None or product[1]["batch"] != ((), ()):
        return None
    (a, b), (from_a, from_b) = product[0], product[1]["contract"]
    if len(from_a) != 1 or a.ndim - 1 != count:
        return None
    free = [i for i in range(a.ndim) if i not in from_a]
    left = _moved(a, (*(free[i] for i in order), *from_a))
    right = _moved(b, (*from_b, *(i for i in range(b.ndim) if i not in from_b)))
    return Terms([Term(left, right)], 1, 1)


def _moved(x: Tracer, axes: Shape) -> Tracer:
    return x if axes == tuple(range(x.ndim)) else transpose(x, axes=axes)
