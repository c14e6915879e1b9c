"""Functions of neural networks that are worth primitives: relu, softsign, softplus (the integral of the logistic one).

Written with other primitives they would overflow, lose digits far from zero, or share the derivative of a kink.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.trace import Tracer
from ..literals import full_like
from .family import Elementwise, add, div, is_real, mul, unary
from .functions import abs_, logistic
from .logic import gt, select


def _relu(x: Any) -> Any:
    return np.maximum(x, x.dtype.type(0))


def _relu_xla(x: Any) -> Any:
    from jax import lax

    return lax.max(x, lax.full_like(x, 0))


def _relu_partial(y: Tracer, x: Tracer, t: Tracer) -> Tracer:
    # In terms of the result, so that reverse mode need not keep the operand.
    zero = full_like(y, 0)
    return select(gt(y, zero), t, zero)


relu = Elementwise(
    "relu",
    _relu,
    _relu_xla,
    lambda y, x: [lambda t: _relu_partial(y, x, t)],
    accepts=lambda d: d.kind != "c",
    arithmetic=True,
)


def _softplus(x: Any) -> Any:
    return np.maximum(x, x.dtype.type(0)) + np.log1p(np.exp(-np.abs(x)))


def _softplus_xla(x: Any) -> Any:
    from jax import lax

    return lax.add(lax.max(x, lax.full_like(x, 0)), lax.log1p(lax.exp(lax.neg(lax.abs(x)))))


softplus = unary("softplus", _softplus, _softplus_xla, lambda y, x, t: mul(t, logistic(x)), accepts=is_real)


def _softsign(x: Any) -> Any:
    return x / (1 + abs(x))


def _softsign_partial(x: Tracer, t: Tracer) -> Tracer:
    # Not by the rule for quotients, whose difference of 1 and |y| has lost all digits where y is close to 1.
    one = full_like(x, 1)
    part = div(one, add(one, abs_(x)))
    return mul(t, mul(part, part))


softsign = unary("softsign", _softsign, _softsign, lambda y, x, t: _softsign_partial(x, t), accepts=is_real)
