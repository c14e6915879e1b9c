"""Functions of Airy and Kelvin.

The functions of Airy satisfy w'' = z w (DLMF 9.2.1), and those of Kelvin are Bessel functions along rays of the complex
plane (DLMF 10.61.1), so derivatives of every order are made of the functions themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.types import is_complex
from ..elementwise import complex_, convert, ge, imag, mul, neg, real, select, sign, sqrt
from ..literals import full_like
from .arithmetic import minus, plus, times
from .bessel import jv, kv
from .family import Special, Specials


def _airy_partials(ys: Any, z: Any) -> list[Any]:
    ai, aip, bi, bip = ys
    return [[lambda t, y=y: mul(t, y)] for y in (aip, mul(z, ai), bip, mul(z, bi))]


airy = Specials("airy", _airy_partials, results=4)


def _airye_partials(ys: Any, z: Any) -> list[Any]:
    ai, aip, bi, bip = ys
    if is_complex(z.dtype):
        root = sqrt(z)
        side = sign(real(mul(z, root)))

        def descale(t: Any, y: Any) -> Any:
            return mul(convert(mul(side, real(mul(t, root))), dtype=z.dtype), y)
    else:
        # For negative numbers Ai has no scaled form, and the scale of Bi is 1.
        is_scaled = ge(z, full_like(z, 0))
        root = select(is_scaled, sqrt(select(is_scaled, z, full_like(z, 1))), full_like(z, 0))

        def descale(t: Any, y: Any) -> Any:
            return mul(t, mul(root, y))

    return [
        [lambda t: mul(t, plus(aip, mul(root, ai)))],
        [lambda t: mul(t, plus(mul(z, ai), mul(root, aip)))],
        [lambda t: minus(mul(t, bip), descale(t, bi))],
        [lambda t: minus(mul(t, mul(z, bi)), descale(t, bip))],
    ]


airye = Specials("airye", _airye_partials, results=4)


def _itairy_partials(ys: Any, x: Any) -> list[Any]:
    ai, _, bi, _ = airy(x)
    ai_behind, _, bi_behind, _ = airy(neg(x))
    return [[lambda t, y=y: mul(t, y)] for y in (ai, bi, ai_behind, bi_behind)]


itairy = Specials("itairy", _itairy_partials, results=4)


# Kelvin's


def _kelvin(name: str, derivative: Callable[[Any], Any]) -> Special:
    return Special(name, lambda y, x: [lambda t: mul(t, derivative(x))])


def _ray(x: Any, angle: float) -> Any:
    return complex_(times(math.cos(angle), x), times(math.sin(angle), x))


def _first_kind(x: Any) -> Any:
    """The second derivative of J0, where ber + i bei = J0(x exp(3 pi i / 4))."""
    z = _ray(x, 0.75 * math.pi)
    return times(0.5, minus(jv(full_like(x, 2), z), jv(full_like(x, 0), z)))


def _second_kind(x: Any) -> Any:
    """The second derivative of K0, where ker + i kei = K0(x exp(pi i / 4))."""
    z = _ray(x, 0.25 * math.pi)
    return times(0.5, plus(kv(full_like(x, 2), z), kv(full_like(x, 0), z)))


ber = _kelvin("ber", lambda x: berp(x))
bei = _kelvin("bei", lambda x: beip(x))
ker = _kelvin("ker", lambda x: kerp(x))
kei = _kelvin("kei", lambda x: keip(x))
berp = _kelvin("berp", lambda x: imag(_first_kind(x)))
beip = _kelvin("beip", lambda x: neg(real(_first_kind(x))))
kerp = _kelvin("kerp", lambda x: neg(imag(_second_kind(x))))
keip = _kelvin("keip", lambda x: real(_second_kind(x)))
