"""What numbers are made of: divisors and bits of integers, exponents and steps of floating-point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .family import is_integer, is_real, of_jnp, piecewise_constant

gcd = piecewise_constant("gcd", np.gcd, of_jnp("gcd"), accepts=is_integer)
lcm = piecewise_constant("lcm", np.lcm, of_jnp("lcm"), accepts=is_integer)


def _takes_bits(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biu"


bitwise_count = piecewise_constant(
    "bitwise_count", np.bitwise_count, of_jnp("bitwise_count"), result=lambda _: np.uint8, accepts=_takes_bits
)


def _xla_exponent(x: Any) -> Any:
    import jax.numpy as jnp

    # `frexp` of JAX and of NumPy differ in what they say of numbers that are not finite.
    return jnp.where(jnp.isfinite(x), jnp.frexp(x)[1], 0).astype(np.int32)


def _exponent(x: Any) -> Any:
    return np.where(np.isfinite(x), np.frexp(x)[1], 0).astype(np.int32)[()]


# The exponent of two that brings a number to between 1/2 and 1, and 0 for numbers that are not finite.
exponent = piecewise_constant("exponent", _exponent, _xla_exponent, result=lambda _: np.int32, accepts=is_real)


def _xla_spacing(x: Any) -> Any:
    import jax.numpy as jnp

    away = jnp.where(jnp.signbit(x), -jnp.inf, jnp.inf).astype(x.dtype)
    step = jnp.nextafter(x, away) - x
    return jnp.where(jnp.isfinite(x), step, jnp.nan)


spacing = piecewise_constant("spacing", np.spacing, _xla_spacing, accepts=is_real)
