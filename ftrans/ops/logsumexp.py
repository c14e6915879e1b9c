"""logsumexp, the logarithm of a sum of exponentials, as one operation with the accuracy and the derivatives of its own.

The largest element m is taken out, so that nothing overflows: m + log(sum(exp(x - m))).  Where m is small, one term is
1 and the others are small, these would be lost in the rounding of their sum: there they are added up by themselves.

The tangent is sum(exp(x - m) t) / sum(exp(x - m)), whatever the number m.  So m is held constant in derivatives of all
orders, and they contain no comparisons with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.cost import Cost
from ..core.primitive import Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType, Shape
from .broadcast import Reduction, reduce_sum, restored, sum_on_xla
from .elementwise import Elementwise, add, div, maximum, minimum, mul, neg, stop_gradient, sub
from .elementwise.family import is_real
from .literals import full_like
from .reductions import reduce_max
from .shapes import reshape

# If a sum of terms of which one is 1 is below this, there is one such term, and the others are below one half.
_ONE_LARGE_TERM = 1.5
# A largest element beyond this hides in its own rounding what a sum close to 1 has lost.
_SMALL = 2.0
# Of more elements than this, the smaller terms are added up only if they may be lost.
_MANY = 10_000


def _largest(dtype: np.dtype[Any]) -> Any:
    """The largest finite number of a dtype."""
    return np.nextafter(dtype.type(math.inf), dtype.type(0))


def _exp_from(x: Any, base: Any) -> Any:
    largest = _largest(np.result_type(x, base))
    return np.exp((np.minimum(x, largest) if np.any(base >= largest) else x) - base)


def _exp_from_xla(x: Any, base: Any) -> Any:
    import jax.numpy as jnp

    return jnp.exp(jnp.minimum(x, _largest(jnp.result_type(x, base))) - base)


# exp(x - base), where inf counts as the largest number: equal infinities give 1 if the base is cut off there.
exp_from = Elementwise(
    "exp_from",
    _exp_from,
    _exp_from_xla,
    lambda y, x, base: [lambda t: mul(t, y), lambda t: neg(mul(t, y))],
    accepts=is_real,
)


class LogSumExp(Reduction):
    """The logarithm of the sum of `exp(x)` along `axes`, which the result drops."""

    def __init__(self) -> None:
        super().__init__("logsumexp", np.logaddexp, accepts=is_real)

    def simplify(self, operands: Sequence[Tracer], *, axes: Shape) -> Tracer | None:
        (x,) = operands
        if math.prod(x.shape[a] for a in axes) == 1:
            # The logarithm of exp(-0.0) is 0.0.
            single = reshape(x, shape=self.type_rule(x.type, axes=axes).shape)
            return add(single, full_like(single, 0))
        return super().simplify(operands, axes=axes)

    def numpy(self, x: Any, *, axes: Shape) -> Any:
        largest = _largest(x.dtype)
        top = np.asarray(x.max(axes, keepdims=True, initial=-math.inf))
        terms = _exp_from(x, np.clip(top, -largest, largest))
        total = np.asarray(terms.sum(axes, x.dtype))
        top = top.reshape(total.shape)
        is_lossy = (total < _ONE_LARGE_TERM) & ((np.abs(top) < _SMALL) | (top == -math.inf))
        if not is_lossy.any():
            return (top + np.log(total))[()]
        others = np.where(terms == 1, x.dtype.type(0), terms).sum(axes, x.dtype)
        logarithm = np.where(is_lossy, np.log1p(others), np.log(np.where(is_lossy, x.dtype.type(1), total)))
        return (top + logarithm)[()]

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        return None

    def xla(self, x: Any, *, axes: Shape) -> Any:
        import jax.numpy as jnp
        from jax import lax

        largest = _largest(x.dtype)
        top = lax.reduce_max(x, axes)
        base = jnp.expand_dims(jnp.maximum(jnp.minimum(top, largest), -largest), axes)
        terms = _exp_from_xla(x, base)
        total = sum_on_xla(terms, axes)
        is_lossy = (total < _ONE_LARGE_TERM) & ((jnp.abs(top) < _SMALL) | (top == -math.inf))

        def others(x: Any, base: Any) -> Any:
            terms = _exp_from_xla(x, base)
            return sum_on_xla(jnp.where(terms == 1, jnp.zeros_like(terms), terms), axes)

        if x.size > _MANY:
            rest = lax.cond(jnp.any(is_lossy), others, lambda x, base: jnp.zeros_like(total), x, base)
        else:
            rest = others(x, base)
        return top + jnp.where(is_lossy, jnp.log1p(rest), jnp.log(total))

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.functions(types[0].size)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axes: Shape) -> Tangent:
        if not x.size:
            return None
        largest = _largest(x.dtype)
        top = stop_gradient(reduce_max(x, axes=axes))
        base = maximum(minimum(top, full_like(top, largest)), full_like(top, -largest))
        terms = exp_from(x, restored(base, x, axes))
        total = reduce_sum(terms, axes=axes)
        # A sum that has no terms is 0, any other one at least 1.
        if_none = stop_gradient(maximum(sub(full_like(total, 0.5), total), full_like(total, 0)))
        scale = div(full_like(total, 1), add(total, if_none))
        return mul(reduce_sum(mul(t, terms), axes=axes), scale)

    def _of_repeated(self, value: Any, count: int) -> Any:
        return None


logsumexp = LogSumExp()
