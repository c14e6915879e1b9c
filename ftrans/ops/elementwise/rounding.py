"""Division with remainder, and rounding to whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.types import is_inexact
from .family import Elementwise, div, is_integer, is_real, mul, neg, of_jnp, piecewise_constant

floor = piecewise_constant("floor", np.floor, "floor", accepts=is_real, arithmetic=True)
ceil = piecewise_constant("ceil", np.ceil, "ceil", accepts=is_real, arithmetic=True)
trunc = piecewise_constant("trunc", np.trunc, of_jnp("trunc"), accepts=is_real, arithmetic=True)
rint = piecewise_constant("rint", np.rint, of_jnp("rint"), accepts=is_inexact, arithmetic=True)


# Division with remainder: the quotient is piecewise constant.


def _integer_division(name: str) -> Callable[..., Any]:
    """A division of `jax.numpy` whose result is 0 where an integer is divided by 0, as it is in NumPy.

    Zeros have the signs of NumPy: a remainder that of the divisor, a quotient its own.
    """

    def call(x: Any, y: Any) -> Any:
        import jax.numpy as jnp

        if not is_integer(x.dtype):
            quotient = getattr(jnp, name)(x, y)
            zero = np.zeros((), x.dtype)
            if name == "fmod":
                return quotient
            if name == "remainder":
                return jnp.where(quotient == 0, jnp.copysign(zero, y), quotient)
            quotient = jnp.where(quotient == 0, jnp.copysign(zero, x / y), quotient)
            # Older versions of JAX give NaN for a floor division by zero, where NumPy gives infinity.
            return jnp.where(y == 0, x / y, quotient)
        is_zero = y == 0
        return jnp.where(is_zero, 0, getattr(jnp, name)(x, jnp.where(is_zero, 1, y))).astype(x.dtype)

    return call


floor_divide = piecewise_constant("floor_divide", np.floor_divide, _integer_division("floor_divide"), python="{} // {}")
remainder = Elementwise(
    "remainder",
    np.remainder,
    _integer_division("remainder"),
    lambda z, x, y: [lambda t: t, lambda t: neg(mul(t, floor_divide(x, y)))],
    python="{} % {}",
)
fmod = Elementwise(
    "fmod", np.fmod, _integer_division("fmod"), lambda z, x, y: [lambda t: t, lambda t: neg(mul(t, trunc(div(x, y))))]
)
