"""Bessel functions, in their argument: of integer and real order, modified, exponentially scaled, spherical.

Derivatives are sums of functions of neighbouring orders (DLMF 10.6.1, 10.29.1, 10.51.2), which are finite wherever the
derivative is; the forms with `v / x` are not, at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.type_questions import is_plain
from ...core.trace import Tracer
from ...core.types import is_complex
from ..elementwise import (
    abs_,
    convert,
    eq,
    exp,
    gt,
    imag,
    lt,
    mul,
    neg,
    real,
    remainder,
    select,
    sign,
    sqrt,
    square,
    trunc,
)
from ..elementwise.family import Partial
from ..literals import full_like
from .arithmetic import minus, over, plus, times, truncated
from .family import Special, refused

_OF_ORDER = "no elementary formula for it exists"


def in_order(name: str, argument: str = "v") -> Partial:
    """The refused partial derivative with respect to an order."""
    return refused(name, argument, _OF_ORDER)


def like(n: Tracer, x: Tracer) -> Any:
    """An order as a factor of `x`."""
    return convert(n, dtype=x.dtype)


# Far from zero the scaled modified functions decay like x**(-1/2), and sums of neighbours cancel: their expansions
# (DLMF 10.40.1 and 10.40.2) are summed instead, so far out that these terms are enough.
_TERMS, _FAR = 14, 40.0


def _far_slope(v: Any, x: Any, growing: bool, near: Any) -> Any:
    """The derivative of `ive` or `kve` of a real `x` by its expansion, where that is exact, and elsewhere `near`."""
    size = abs_(x)
    order_squared = full_like(x, v * v) if is_plain(v, float | int) else square(like(v, x))
    is_far = gt(size, plus(times(2.0, order_squared), _FAR))
    w = over(1.0, select(is_far, size, full_like(x, _FAR)))
    # Horner's scheme, with the quotient of two coefficients in each step.
    mu = times(4.0, select(is_far, order_squared, full_like(x, 0)))
    sign_of_term = -1.0 if growing else 1.0
    weight = full_like(x, 0)
    for k in range(_TERMS, 0, -1):
        quotient = times(sign_of_term / (8 * k), w, minus(mu, float((2 * k - 1) ** 2)))
        weight = times(quotient, plus(weight, k + 0.5))
    total = plus(weight, 0.5)
    scale = 1 / math.sqrt(2 * math.pi) if growing else math.sqrt(math.pi / 2)
    far = times(-scale, times(w, sqrt(w)), total)
    return select(is_far, far, near)


# Of real order, and a real or complex argument


def _half_difference(f: Special, v: Any, x: Any) -> Any:
    return times(0.5, minus(f(plus(v, -1), x), f(plus(v, 1), x)))


def _half_sum(f: Special, v: Any, x: Any) -> Any:
    return times(0.5, plus(f(plus(v, -1), x), f(plus(v, 1), x)))


def _cylinder(name: str, derivative: Callable[[Any, Any, Any], Any], numpy: Any = None) -> Special:
    """A function of order and argument; `derivative(y, v, x)` is the one in the argument."""
    partials = lambda y, v, x: [in_order(name), lambda t: mul(t, derivative(y, v, x))]  # noqa: E731
    return Special(name, partials, numpy=numpy, orders=1)


def _growing(name: str, v: Any, x: Any) -> Any:
    """`iv` or `ive`, of which SciPy makes 0 or NaN for small numbers: two terms of its series (DLMF 10.25.2)."""
    import scipy.special

    y = getattr(scipy.special, name)(v, x)
    small = (np.isnan(y) | (y == 0)) & (x != 0) & (np.abs(x) < 1e-5)
    if not np.any(small):
        return y
    # A whole order may as well be positive.
    order = np.where(np.trunc(v) == v, np.abs(v), v)
    half = np.where(small, x / 2, 0)
    with np.errstate(all="ignore"):
        first = np.power(half, order) / scipy.special.gamma(order + 1.0)
        series = first * (1 + np.square(half) / (order + 1))
        scale = np.exp(-np.abs(np.real(x))) if name == "ive" else 1.0
        return np.where(small, series * scale, y).astype(y.dtype)[()]


def _decaying(name: str) -> Callable[[Any], Any]:
    """`k1` or `k1e`, of which SciPy makes NaN where it is infinite for the tiniest numbers."""

    def compute(x: Any) -> Any:
        import scipy.special

        y = getattr(scipy.special, name)(x)
        return np.where(np.isnan(y) & (x > 0) & (x < np.finfo(x.dtype).tiny), np.inf, y)[()]

    return compute


jv = _cylinder("jv", lambda y, v, z: _half_difference(jv, v, z))
yv = _cylinder("yv", lambda y, v, z: _half_difference(yv, v, z))
iv = _cylinder("iv", lambda y, v, z: _half_sum(iv, v, z), lambda v, z: _growing("iv", v, z))
kv = _cylinder("kv", lambda y, v, z: neg(_half_sum(kv, v, z)))
yn = _cylinder("yn", lambda y, n, x: _half_difference(yn, truncated(n), x))
kn = _cylinder("kn", lambda y, n, x: neg(_half_sum(kn, truncated(n), x)))
hankel1 = _cylinder("hankel1", lambda y, v, z: _half_difference(hankel1, v, z))
hankel2 = _cylinder("hankel2", lambda y, v, z: _half_difference(hankel2, v, z))


# The scales exp(z), exp(-iz) and exp(iz) are analytic.
def _kve_slope(y: Any, v: Any, z: Any) -> Any:
    if is_complex(z.dtype):
        return minus(y, _half_sum(kve, v, z))
    # In this form the infinite values near 0 have one sign.
    v = abs_(v)
    return _far_slope(v, z, False, minus(times(y, minus(1.0, over(like(v, z), z))), kve(plus(v, -1), z)))


kve = _cylinder("kve", _kve_slope)
hankel1e = _cylinder("hankel1e", lambda y, v, z: minus(_half_difference(hankel1e, v, z), times(1j, y)))
hankel2e = _cylinder("hankel2e", lambda y, v, z: plus(_half_difference(hankel2e, v, z), times(1j, y)))


def _scaled_by(part: Special | Any, y: Tracer, z: Tracer, t: Tracer) -> Tracer:
    """The tangent of `exp(-abs(part(z)))`, times `y`; the scale is analytic in no part of the plane."""
    size = mul(sign(part(z)), part(t)) if is_complex(z.dtype) else mul(sign(z), t)
    return neg(mul(convert(size, dtype=z.dtype), y))


def _oscillating(name: str) -> Special:
    """`jve` or `yve`, whose scale is exp(-abs(imag z)): 1 where the argument is real."""

    def along_z(y: Any, v: Any, z: Any, t: Any) -> Any:
        inner = mul(t, _half_difference(f, v, z))
        return plus(inner, _scaled_by(imag, y, z, t)) if is_complex(z.dtype) else inner

    f = Special(name, lambda y, v, z: [in_order(name), lambda t: along_z(y, v, z, t)], orders=1)
    return f


jve = _oscillating("jve")
yve = _oscillating("yve")


def _ive_tangent(y: Any, v: Any, z: Any, t: Any) -> Any:
    if is_complex(z.dtype):
        return plus(mul(t, _half_sum(ive, v, z)), _scaled_by(real, y, z, t))
    # For a negative argument whole orders alone have a value, by which it is even or odd.
    odd = remainder(like(v, z), full_like(z, 2))
    is_whole = eq(trunc(odd), odd)
    mirrored = select(is_whole, minus(times(2, odd), 1), full_like(z, math.nan))
    turn = select(lt(z, full_like(z, 0)), mirrored, full_like(z, 1))
    near = minus(_half_sum(ive, v, z), _unscaled(y, z))
    return mul(t, mul(turn, _far_slope(v, z, True, mul(turn, near))))


ive = Special(
    "ive",
    lambda y, v, z: [in_order("ive"), lambda t: _ive_tangent(y, v, z, t)],
    numpy=lambda v, z: _growing("ive", v, z),
    orders=1,
)


# Of orders 0 and 1, and a real argument


def _plain(name: str, derivative: Callable[[Any, Any], Any], xla: str | None = None, numpy: Any = None) -> Special:
    return Special(name, lambda y, x: [lambda t: mul(t, derivative(y, x))], xla=xla, numpy=numpy)


def _order(n: int, x: Any) -> Any:
    return full_like(x, n)


def _unscaled(y: Any, x: Any) -> Any:
    """What the scale exp(-abs(x)) adds to a derivative, with a minus."""
    return mul(sign(x), y)


j0 = _plain("j0", lambda y, x: neg(j1(x)))
j1 = _plain("j1", lambda y, x: times(0.5, minus(j0(x), jv(_order(2, x), x))))
y0 = _plain("y0", lambda y, x: neg(y1(x)))
y1 = _plain("y1", lambda y, x: times(0.5, minus(y0(x), yv(_order(2, x), x))))
i0 = _plain("i0", lambda y, x: i1(x), xla="i0")
i1 = _plain("i1", lambda y, x: times(0.5, plus(i0(x), iv(_order(2, x), x))), xla="i1")
i0e = _plain("i0e", lambda y, x: times(sign(x), _far_slope(0, x, True, minus(times(sign(x), i1e(x)), y))), xla="i0e")
i1e = _plain(
    "i1e",
    lambda y, x: _far_slope(1, x, True, minus(times(0.5, plus(i0e(x), ive(_order(2, x), x))), _unscaled(y, x))),
    xla="i1e",
)
k0 = _plain("k0", lambda y, x: neg(k1(x)))
k1 = _plain("k1", lambda y, x: times(-0.5, plus(k0(x), kv(_order(2, x), x))), numpy=_decaying("k1"))
k0e = _plain("k0e", lambda y, x: _far_slope(0, x, False, minus(y, k1e(x))))
# Without the function of order 2, which may be infinite where the derivative of the scale is, too.
k1e = _plain(
    "k1e",
    lambda y, x: _far_slope(1, x, False, minus(times(y, minus(1.0, over(1.0, x))), k0e(x))),
    numpy=_decaying("k1e"),
)


# Spherical, of integer order n = 0, 1, ...


def _spherical(name: str) -> Special:
    return Special(name, lambda y, n, z: [in_order(name, "n"), lambda t: mul(t, spherical_slope(name, n, z))], orders=1)


spherical_jn = _spherical("spherical_jn")
spherical_yn = _spherical("spherical_yn")
spherical_in = _spherical("spherical_in")
spherical_kn = _spherical("spherical_kn")

# By function, the signs of its two neighbours in `(2n + 1) f_n' = +- n f_{n-1} +- (n + 1) f_{n+1}`.
_NEIGHBOURS = {
    "spherical_jn": (spherical_jn, 1, -1),
    "spherical_yn": (spherical_yn, 1, -1),
    "spherical_in": (spherical_in, 1, 1),
    "spherical_kn": (spherical_kn, -1, -1),
}


def spherical_slope(name: str, n: Any, z: Any) -> Any:
    """The derivative in `z` of the spherical function of a name."""
    f, below, above = _NEIGHBOURS[name]
    is_first, degree = eq(n, full_like(n, 0)), like(n, z)
    lower = times(below, degree, f(select(is_first, n, plus(n, -1)), z))
    upper = times(above, plus(degree, 1), f(plus(n, 1), z))
    # At a pole 0 times the function of order -1 is no number.
    total = plus(select(is_first, full_like(z, 0), lower), upper)
    return over(total, plus(times(2, degree), 1))


# An integral, and the functions of Wright


def _besselpoly(lmb: Any, nu: Any, a: Any) -> Any:
    import scipy.special

    return scipy.special.besselpoly(a, lmb, nu)


besselpoly = Special(
    "besselpoly",
    lambda y, lmb, nu, a: [
        in_order("besselpoly", "lmb"),
        in_order("besselpoly", "nu"),
        lambda t: mul(t, minus(besselpoly(plus(lmb, 1), plus(nu, -1), a), besselpoly(plus(lmb, 1), plus(nu, 1), a))),
    ],
    numpy=_besselpoly,
    orders=2,
)
wright_bessel = Special(
    "wright_bessel",
    lambda y, a, b, x: [
        in_order("wright_bessel", "a"),
        in_order("wright_bessel", "b"),
        lambda t: mul(t, wright_bessel(a, plus(a, b), x)),
    ],
    orders=2,
)
log_wright_bessel = Special(
    "log_wright_bessel",
    lambda y, a, b, x: [
        in_order("log_wright_bessel", "a"),
        in_order("log_wright_bessel", "b"),
        lambda t: mul(t, exp(minus(log_wright_bessel(a, plus(a, b), x), y))),
    ],
    orders=2,
)
