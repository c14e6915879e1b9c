"""Where the coefficients of a result may be nonzero, from where those of the operands may be.

Only zeros that come from choices, padding, indexing and assignment count, as in `transforms/choices.py`: multiplied by
an infinite derivative, they stay zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...core.primitive import Primitive
from ...core.program import Params
from ...core.trace import Tracer
from ...ops.broadcast import reduce_sum
from ...ops.elementwise import Elementwise, convert, ne, select
from ...ops.indexing import gather, scatter_add, scatter_set
from ...ops.literals import full, full_like, splat
from ...ops.moving_slices import dynamic_add, dynamic_set, dynamic_slice
from ...ops.parts import concatenate, pad, slice_
from ...ops.reductions import reduce_or
from ...ops.shapes import StructuralPrimitive
from ...ops.slices import add_slice, set_slice
from ...transforms.masks import Condition, Mask, all_of, carried, weight
from .series import EVERYWHERE, Series, Support, union

_SUMS = (add_slice, scatter_add, dynamic_add)
_JOINS = (pad, concatenate, set_slice, scatter_set, dynamic_set, *_SUMS)
_READS = (slice_, gather, dynamic_slice)


def of_linear(primitive: Primitive, operands: Sequence[Series], params: Params, k: int) -> Support:
    """The support of coefficient `k` of the result of an equation that is linear in its operands that vary."""
    if primitive is select:
        return _of_choice(operands, k)
    if isinstance(primitive, Elementwise):
        return union([x.support(k) for x in operands if not _is_zero(x, k)])
    if primitive in _JOINS:
        return _of_join(primitive, operands, params, k)
    x, others = operands[0], operands[1:]
    if isinstance(primitive, StructuralPrimitive):
        same = primitive.output_types([x.type], params)[0].size == x.type.size
        return _moved(x.support(k), lambda c: primitive.bind_all([c], params)[0], same)
    if primitive in _READS:
        return _moved(x.support(k), lambda c: primitive.bind_all([c, *(y.at(0) for y in others)], params)[0], False)
    if primitive is reduce_sum:
        return _moved(x.support(k), lambda c: reduce_or(c, **params), False)
    return EVERYWHERE


def _is_zero(x: Series, k: int) -> bool:
    """Whether coefficient `k` is zero."""
    if not x.is_constant:
        return False
    return bool(k) or splat(x.at(0)) == 0


def _of_choice(operands: Sequence[Series], k: int) -> Support:
    condition, x, y = operands
    for one, other, holds in ((x, y, True), (y, x, False)):
        if _is_zero(other, k):
            near, far = one.support(k)
            return Support((*near, Condition(condition.at(0), holds)), far)
    return union([x.support(k), y.support(k)])


def _moved(support: Support, move: Callable[[Tracer], Tracer], is_choice: bool) -> Support:
    near, far = carried(support.near, move), carried(support.far, move)
    return Support(near, far) if is_choice else Support((), (*near, *far))


def _of_join(primitive: Primitive, operands: Sequence[Series], params: Params, k: int) -> Support:
    masks = [(*x.support(k).near, *x.support(k).far) for x in operands]
    if not any(masks) and not any(_is_zero(x, k) for x in operands if x.type.dtype.kind in "fc"):
        return EVERYWHERE
    total = 1 + weight(*masks)
    return Support((), (Condition(lambda: _joined(primitive, operands, masks, params, k), weight=total),))


def _joined(primitive: Primitive, operands: Sequence[Series], masks: Sequence[Mask], params: Params, k: int) -> Tracer:
    """The equation applied to the supports of its operands."""
    is_sum = primitive in _SUMS
    dtype = operands[0].type.dtype if is_sum else np.dtype(np.bool_)

    def support(x: Series, mask: Mask) -> Tracer:
        if x.type.dtype.kind in "iu":
            return x.at(0)
        if _is_zero(x, k) or not mask:
            return full(x.type.shape, 0 if _is_zero(x, k) else 1, dtype)
        return convert(all_of(mask), dtype=dtype)

    (found,) = primitive.bind_all([support(x, m) for x, m in zip(operands, masks, strict=True)], params)
    return ne(found, full_like(found, 0)) if is_sum else found
