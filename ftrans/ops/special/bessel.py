"""Bessel functions, in their argument: of integer and real order, modified, exponentially scaled, spherical.

Derivatives are sums of functions of neighbouring orders (DLMF 10.6.1, 10.29.1, 10.51.2), which are finite wherever the
derivative is; the forms with `v / x` are not, at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.trace import Tracer
from ...core.types import is_complex
from ..elementwise import convert, eq, exp, imag, mul, neg, real, select, sign
from ..elementwise.family import Partial
from ..shapes import full_like
from .arithmetic import minus, over, plus, times, truncated
from .family import Special, refused

_OF_ORDER = "no elementary formula for it exists"


def in_order(name: str, argument: str = "v") -> Partial:
    """The refused partial derivative with respect to an order."""
    return refused(name, argument, _OF_ORDER)


def like(n: Tracer, x: Tracer) -> Any:
    """An order as a factor of `x`."""
    return convert(n, dtype=x.dtype)


# Of real order, and a real or complex argument


def _half_difference(f: Special, v: Any, x: Any) -> Any:
    return times(0.5, minus(f(plus(v, -1), x), f(plus(v, 1), x)))


def _half_sum(f: Special, v: Any, x: Any) -> Any:
    return times(0.5, plus(f(plus(v, -1), x), f(plus(v, 1), x)))


def _cylinder(name: str, derivative: Callable[[Any, Any, Any], Any]) -> Special:
    """A function of order and argument; `derivative(y, v, x)` is the one in the argument."""
    return Special(name, lambda y, v, x: [in_order(name), lambda t: mul(t, derivative(y, v, x))], orders=1)


jv = _cylinder("jv", lambda y, v, z: _half_difference(jv, v, z))
yv = _cylinder("yv", lambda y, v, z: _half_difference(yv, v, z))
iv = _cylinder("iv", lambda y, v, z: _half_sum(iv, v, z))
kv = _cylinder("kv", lambda y, v, z: neg(_half_sum(kv, v, z)))
yn = _cylinder("yn", lambda y, n, x: _half_difference(yn, truncated(n), x))
kn = _cylinder("kn", lambda y, n, x: neg(_half_sum(kn, truncated(n), x)))
hankel1 = _cylinder("hankel1", lambda y, v, z: _half_difference(hankel1, v, z))
hankel2 = _cylinder("hankel2", lambda y, v, z: _half_difference(hankel2, v, z))

# The scales exp(z), exp(-iz) and exp(iz) are analytic.
kve = _cylinder("kve", lambda y, v, z: minus(y, _half_sum(kve, v, z)))
hankel1e = _cylinder("hankel1e", lambda y, v, z: minus(_half_difference(hankel1e, v, z), times(1j, y)))
hankel2e = _cylinder("hankel2e", lambda y, v, z: plus(_half_difference(hankel2e, v, z), times(1j, y)))


def _scaled_by(part: Special | Any, y: Tracer, z: Tracer, t: Tracer) -> Tracer:
    """The tangent of `exp(-abs(part(z)))`, times `y`; the scale is analytic in no part of the plane."""
    size = mul(sign(part(z)), part(t)) if is_complex(z.dtype) else mul(sign(z), t)
    return neg(mul(convert(size, dtype=z.dtype), y))  # type: ignore[no-any-return]


def _oscillating(name: str) -> Special:
    """`jve` or `yve`, whose scale is exp(-abs(imag z)): 1 where the argument is real."""

    def along_z(y: Any, v: Any, z: Any, t: Any) -> Any:
        inner = mul(t, _half_difference(f, v, z))
        return plus(inner, _scaled_by(imag, y, z, t)) if is_complex(z.dtype) else inner

    f = Special(name, lambda y, v, z: [in_order(name), lambda t: along_z(y, v, z, t)], orders=1)
    return f


jve = _oscillating("jve")
yve = _oscillating("yve")
ive = Special(
    "ive",
    lambda y, v, z: [in_order("ive"), lambda t: plus(mul(t, _half_sum(ive, v, z)), _scaled_by(real, y, z, t))],
    orders=1,
)


# Of orders 0 and 1, and a real argument


def _plain(name: str, derivative: Callable[[Any, Any], Any], xla: str | None = None) -> Special:
    return Special(name, lambda y, x: [lambda t: mul(t, derivative(y, x))], xla=xla)


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
i0e = _plain("i0e", lambda y, x: minus(i1e(x), _unscaled(y, x)), xla="i0e")
i1e = _plain("i1e", lambda y, x: minus(times(0.5, plus(i0e(x), ive(_order(2, x), x))), _unscaled(y, x)), xla="i1e")
k0 = _plain("k0", lambda y, x: neg(k1(x)))
k1 = _plain("k1", lambda y, x: times(-0.5, plus(k0(x), kv(_order(2, x), x))))
k0e = _plain("k0e", lambda y, x: minus(y, k1e(x)))
k1e = _plain("k1e", lambda y, x: minus(y, times(0.5, plus(k0e(x), kve(_order(2, x), x)))))


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
