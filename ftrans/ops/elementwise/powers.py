"""Powers: of two arrays, and of one with an exponent that is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.cost import Cost
from ...core.primitive import Tangent
from ...core.program import Params
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex, is_inexact
from ..literals import full_like
from .family import Elementwise, Partial, mul, neg, singular_slope, sub, unary
from .functions import log
from .logic import eq, isinf, select

_ROOTED = (np.dtype(np.float32), np.dtype(np.float64))
_HALF_POWERS = (3, 5, 7)


def _half_power(x: Any, twice: int) -> Any:
    """`x ** (twice / 2)` by a square root and products, which take a tenth of the time of a power; `twice` is odd.

    As for powers, the result is infinite or zero at minus infinity, and never -0.0.
    """
    from jax import lax

    size = lax.abs(x)
    root = lax.select(lax.eq(size, lax.full_like(x, math.inf)), size, lax.abs(lax.sqrt(x)))
    power = lax.mul(lax.integer_pow(size, abs(twice) // 2), root)
    return lax.integer_pow(power, -1) if twice < 0 else power


def _power_xla(x: Any, y: Any) -> Any:
    import jax.numpy as jnp

    # A number that is known is one of NumPy.
    if np.ndim(x) and isinstance(y, np.floating) and x.dtype in _ROOTED and abs(2 * y) in _HALF_POWERS:
        return _half_power(x, int(2 * y))
    power = jnp.power(x, y)
    return jnp.where((x == 0) & (y.real > 0), 0, power) if is_complex(x.dtype) else power


class IntegerPow(Elementwise):
    """`x ** exponent` for a constant integer exponent."""

    def __init__(self) -> None:
        super().__init__("integer_pow", np.power, "integer_pow")

    def type_rule(self, *types: ArrayType, exponent: int = 1) -> ArrayType:
        if exponent < 0 and not is_inexact(types[0].dtype):
            raise ValueError("integers to negative integer powers are not allowed")
        return types[0]

    def numpy(self, *arrays: Any, exponent: int = 1) -> Any:
        (x,) = arrays
        power = np.power(x, exponent)
        # NumPy takes powers of the small formats in a larger one.
        return power if power.dtype == x.dtype else power.astype(x.dtype)

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        (x,) = operands
        n = params["exponent"]
        if 2 <= n <= 3:
            return " * ".join([x] * n)
        if n == 4:
            return f"np.square({x} * {x})"
        return {-1: f"np.reciprocal({x})", -2: f"np.reciprocal({x} * {x})"}.get(n)

    def xla(self, *arrays: Any, exponent: int = 1) -> Any:
        from jax import lax

        return lax.integer_pow(arrays[0], exponent)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        # By repeated squaring.
        n = abs(params["exponent"])
        products = max(n.bit_length() - 1, 0) + max(n.bit_count() - 1, 0) + (params["exponent"] < 0)
        return Cost.arithmetic(products * types[0].size)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        (x,), (t,), n = primals, tangents, params["exponent"]
        assert t is not None
        out = integer_pow(x, exponent=n)
        if n == 0:
            return out, None
        tangent = mul(t, mul(full_like(x, n), x if n == 2 else integer_pow(x, exponent=n - 1)))
        return out, singular_slope(tangent) if self.is_singular(primals, params) else tangent

    def is_singular(self, operands: Sequence[Tracer | ArrayType], params: Params) -> bool:
        return bool(params["exponent"] < 0)

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Tracer | None:
        n = params["exponent"]
        return operands[0] if n == 1 else full_like(operands[0], 1) if n == 0 else None


integer_pow = IntegerPow()


def _power_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Partial]:
    one = full_like(x, 1)
    zero = full_like(x, 0)

    def along_x(t: Tracer) -> Tracer:
        # At x = y = 0 the derivative is 0, but x ** (y - 1) infinite.
        less = sub(y, one)
        exponent = select(eq(y, zero), select(eq(x, zero), one, less), less)
        return mul(t, mul(y, power(x, exponent)))

    def along_y(t: Tracer) -> Tracer:
        # The limit of log(x) x**y is 0 for y > 0 where x tends to 0, and for y < 0 where it tends to infinity; at
        # x = y = 0 the derivative is 0.
        at_zero = select(eq(z, zero), one, select(eq(y, zero), one, x))
        at_infinity = select(eq(z, zero), one, x)
        base = select(eq(x, zero), at_zero, select(isinf(x), at_infinity, x))
        return mul(t, mul(log(base), z))

    return [along_x, along_y]


power = Elementwise("power", np.power, _power_xla, _power_partials, python="{} ** {}", singular=True)
square = Elementwise(
    "square",
    np.square,
    "square",
    lambda y, x: [lambda t: mul(t, mul(full_like(x, 2), x))],
    python="{0} * {0}",
    arithmetic=True,
)
reciprocal = unary(
    "reciprocal",
    np.reciprocal,
    "reciprocal",
    lambda y, x, t: neg(mul(t, mul(y, y))),
    python="np.reciprocal({})",
    singular=True,
    arithmetic=True,
)
