"""Rewrites of products of many matrices whose axes are in another order than the axes of what they are combined with.

XLA on a CPU puts the shared axes of such a product first, and so its result. A transpose behind it is carried on, past
what acts on each element and past sums, until another one or the next product takes it up.
"""

from __future__ import annotations

from ..core.program import Params
from ..core.trace import Tracer, definition
from ..core.types import Shape
from ..ops.broadcast import Reduction, broadcast, reduce_sum
from ..ops.contractions import dot_general
from ..ops.elementwise import (
    Elementwise,
    abs_,
    add,
    cos,
    div,
    exp,
    expm1,
    integer_pow,
    log,
    log1p,
    logistic,
    maximum,
    minimum,
    mul,
    neg,
    power,
    reciprocal,
    sin,
    sqrt,
    square,
    stop_gradient,
    sub,
    tanh,
)
from ..ops.literals import full, splat
from ..ops.shapes import transpose
from .products import sum_of_products
from .rule import Operands, made_by

OPERATIONS: tuple[Elementwise, ...] = (
    abs_, add, cos, div, exp, expm1, integer_pow, log, log1p, logistic, maximum, minimum, mul, neg, power, reciprocal,
    sin, sqrt, square, stop_gradient, sub, tanh,
)  # fmt: skip
# What may be computed again in another order of axes, if something else needs it in the first one.
_CHEAP = (add, mul, neg, sub)

# Smaller arrays are left as they are, and so is what lies this far behind a product, or is made in so many steps.
_LEAST_SIZE, _MOST_STEPS = 1 << 12, 24


def operation_on_transposed(primitive: Elementwise, operands: Operands, params: Params) -> Tracer | None:
    axes = next((found for x in operands.values if (found := _axes_behind_product(x))), None)
    if axes is None:
        return None
    moved = [_moved(x, _inverse(axes), _MOST_STEPS) for x in operands.values]
    known = [x for x in moved if x is not None]
    return transpose(primitive(*known, **params), axes=axes) if len(known) == len(moved) else None


def sum_of_transposed(operands: Operands, params: Params) -> Tracer | None:
    (x,) = operands.values
    axes = _axes_behind_product(x)
    if axes is None:
        return None
    source, reduced = _source(x), tuple(sorted(axes[i] for i in params["axes"]))
    out = None
    if operands.only_user_of(x):
        out = sum_of_products(Operands([source], operands.users), {"axes": reduced})
    if out is None:
        out = reduce_sum(source, axes=reduced)
    kept = [i for i in range(x.ndim) if i not in reduced]
    return _transposed(out, tuple(kept.index(a) for i, a in enumerate(axes) if i not in params["axes"]))


def transposed_product(operands: Operands, params: Params) -> Tracer | None:
    (x,), axes = operands.values, params["axes"]
    product = made_by(dot_general, x)
    if product is None or x.size < _LEAST_SIZE or not operands.only_user_of(x):
        return None
    (a, b), (of_a, of_b), (batch_a, batch_b) = product[0], product[1]["contract"], product[1]["batch"]
    shared, from_a = len(batch_a), a.ndim - len(of_a)
    if not shared or axes[-1] != from_a - 1 or from_a == shared or from_a == x.ndim:
        return None
    out = dot_general(b, a, contract=(of_b, of_a), batch=(batch_b, batch_a))
    before = (*range(shared), *range(from_a, x.ndim), *range(shared, from_a))
    return _transposed(out, tuple(before.index(i) for i in axes))


def product_of_transposed(operands: Operands, params: Params) -> Tracer | None:
    if not params["batch"][0]:
        return None
    sides = [_with_batch_first(x, batch) for x, batch in zip(operands.values, params["batch"], strict=True)]
    if not any(axes for _, axes in sides):
        return None
    dims: dict[str, list[Shape]] = {"contract": [], "batch": []}
    order = list(range(len(params["batch"][0])))
    for side, (x, moved) in enumerate(sides):
        axes = moved or tuple(range(x.ndim))
        for name, both in dims.items():
            both.append(tuple(axes[i] for i in params[name][side]))
        bound = {*params["contract"][side], *params["batch"][side]}
        free = [a for i, a in enumerate(axes) if i not in bound]
        order += [len(order) + sorted(free).index(a) for a in free]
    out = dot_general(sides[0][0], sides[1][0], **{name: (both[0], both[1]) for name, both in dims.items()})
    return _transposed(out, tuple(order))


def _with_batch_first(x: Tracer, batch: Shape) -> tuple[Tracer, Shape | None]:
    """What `x` is the transpose of, with which axes, if it is better to multiply by that."""
    if x.size < _LEAST_SIZE:
        return x, None
    axes = _axes_behind_product(x)
    if axes is not None:
        return _source(x), axes
    if batch == tuple(range(len(batch))):
        return x, None
    order = (*batch, *(i for i in range(x.ndim) if i not in batch))
    moved = _moved(x, order, _MOST_STEPS)
    return (x, None) if moved is None else (moved, _inverse(order))


def _axes_behind_product(x: Tracer) -> Shape | None:
    """The axes of a large transpose of what is made of a product of many matrices, element by element."""
    made = made_by(transpose, x)
    if made is None or x.size < _LEAST_SIZE:
        return None
    waiting = [made[0][0]]
    for _ in range(_MOST_STEPS):
        if not waiting:
            break
        eqn = definition(source := waiting.pop())
        if eqn is None:
            continue
        if eqn.primitive is dot_general and eqn.params["batch"][0]:
            axes: Shape = made[1]["axes"]
            return axes
        if isinstance(eqn.primitive, Elementwise | Reduction):
            waiting += [Tracer(source.builder, a) for a in eqn.operands]
    return None


def _source(x: Tracer) -> Tracer:
    """The operand of the equation that made `x`."""
    eqn = definition(x)
    assert eqn is not None
    return Tracer(x.builder, eqn.operands[0])


def _moved(x: Tracer, axes: Shape, steps: int) -> Tracer | None:
    """`x` transposed, by equations none of which moves as many elements; None where there are no such."""
    if axes == tuple(range(x.ndim)):
        return x
    shape, value, eqn = tuple(x.shape[i] for i in axes), splat(x), definition(x)
    if value is not None:
        return full(shape, value, x.dtype)
    if eqn is None or not steps:
        return None
    if eqn.primitive is transpose:
        return _moved(_source(x), tuple(eqn.params["axes"][i] for i in axes), steps - 1)
    if eqn.primitive is broadcast:
        places = tuple(axes.index(d) for d in eqn.params["dims"])
        order = tuple(sorted(range(len(places)), key=places.__getitem__))
        source = _source(x)
        moved = _moved(source, order, steps - 1)
        moved = _transposed(source, order) if moved is None and 4 * source.size <= x.size else moved
        return None if moved is None else broadcast(moved, shape=shape, dims=tuple(sorted(places)))
    if isinstance(eqn.primitive, Elementwise) and eqn.primitive in _CHEAP:
        inner = [_moved(Tracer(x.builder, a), axes, steps // 2) for a in eqn.operands]
        known = [y for y in inner if y is not None]
        return eqn.primitive(*known, **eqn.params) if len(known) == len(inner) else None
    return None


def _transposed(x: Tracer, axes: Shape) -> Tracer:
    return x if axes == tuple(range(x.ndim)) else transpose(x, axes=axes)


def _inverse(axes: Shape) -> Shape:
    return tuple(axes.index(i) for i in range(len(axes)))
