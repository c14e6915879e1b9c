"""The gamma function and its kin: logarithms, reciprocal, derivatives of the logarithm, beta, binomials."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...core.trace import Tracer
from ...core.types import is_complex
from ..elementwise import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    convert,
    cos,
    eq,
    floor,
    le,
    lt,
    mul,
    neg,
    real,
    rint,
    select,
    sin,
)
from ..elementwise.family import Partial
from ..literals import full_like
from . import incomplete_numerics as numerics
from .arithmetic import minus, plus, times
from .family import Special, refused

# Polygamma functions


def _digamma_xla(x: Any) -> Any:
    import jax.numpy as jnp
    from jax.scipy.special import digamma

    is_pole = jnp.abs(x) < jnp.finfo(x.dtype).tiny
    return jnp.where(is_pole, -jnp.copysign(jnp.inf, x), digamma(jnp.where(is_pole, 1, x)))


def hurwitz_xla(s: Any, q: Any) -> Any:
    """Hurwitz' zeta function, of which `jax.scipy.special.zeta` has the values for positive `q` of moderate size."""
    import jax.numpy as jnp
    from jax.scipy.special import zeta

    def on_right(q: Any) -> Any:
        # Far out, the first two terms of the formula of Euler and Maclaurin, DLMF 25.11.43.
        far = (1 / (s - 1) + 0.5 / q) * q ** (1 - s)
        return jnp.where(q > 1e8, far, zeta(s, jnp.where(q > 1e8, 1.0, q)))

    is_pole, is_left = (q <= 0) & (q == jnp.floor(q)), q < 0
    positive = jnp.where(is_pole, 1.0, jnp.where(is_left, q - jnp.floor(q), q))
    # The terms of negative q + k are, for whole s and up to the sign, those from 1 - positive up to and without 1 - q.
    sign = jnp.where(s == jnp.floor(s), jnp.where(s % 2 == 0, 1.0, -1.0), jnp.nan)
    near, far = on_right(jnp.where(is_left, 1 - positive, 1.0)), on_right(jnp.where(is_left, 1 - q, 1.0))
    found = on_right(positive)
    found = jnp.where(is_left, (found + sign * near) - sign * far, found)
    # The limit of q**-s.
    found = jnp.where(s == jnp.inf, jnp.where(q > 1, 0.0, jnp.where(q == 1, 1.0, jnp.inf)), found)
    found = jnp.where(jnp.isnan(q), q, jnp.where(is_pole, jnp.inf, found))
    return jnp.where(s > 1, found, jnp.where(s == 1, jnp.inf, jnp.nan))


def _polygamma_xla(n: Any, x: Any) -> Any:
    import jax.numpy as jnp
    from jax.scipy.special import gamma

    n, wide = n.astype(np.float64), x.astype(np.float64)
    sign = jnp.where(n == jnp.floor(n), jnp.where(n % 2 == 0, -1.0, 1.0), jnp.nan)
    found = sign * gamma(n + 1) * hurwitz_xla(n + 1, wide)
    return jnp.where(n == 0, _digamma_xla(wide), found).astype(x.dtype)


polygamma = Special(
    "polygamma",
    lambda y, n, x: [refused("polygamma", "n"), lambda t: mul(t, polygamma(plus(n, 1), x))],
    orders=1,
    xla=_polygamma_xla,
)


@cache
def complex_polygamma(n: int) -> Special:
    """The `n`-th derivative of psi, for complex numbers, which SciPy lacks."""

    def compute(z: Any) -> Any:
        with np.errstate(all="ignore"):
            wide = np.asarray(z, np.complex128)
            is_left = wide.real < 0.5
            found = numerics.polygamma(np, n, np.where(is_left, 1 - wide, wide))
            # DLMF 5.15.6, where the derivatives of cot(pi z) are polynomials of itself.
            slope = np.polynomial.Polynomial([0.0, math.pi])
            for _ in range(n):
                slope = slope.deriv() * np.polynomial.Polynomial([-math.pi, 0.0, -math.pi])
            cotangent = 1 / np.tan(math.pi * (wide - np.rint(wide.real)))
            return np.asarray(np.where(is_left, (-1) ** n * found - slope(cotangent), found))[()]

    return Special(f"polygamma{n}", lambda y, z: [lambda t: mul(t, complex_polygamma(n + 1)(z))], numpy=compute)


def _psi_partials(y: Tracer, x: Tracer) -> list[Partial]:
    if is_complex(x.dtype):
        return [lambda t: mul(t, complex_polygamma(1)(x))]
    return [lambda t: mul(t, polygamma(full_like(x, 1), x))]


psi = Special("psi", _psi_partials, xla=_digamma_xla)


@cache
def psi_step(n: int) -> Special:
    """The `n`-th derivative of psi at `a + h` less that at `a`: no digits are lost where `h` is small beside `a`."""

    def compute(xp: Any, plain: Callable[[Any], Any], a: Any, h: Any) -> Any:
        # By reflection, DLMF 5.5.4, whose cotangents are equal for a step of a whole number.
        is_mirrored = (a <= 0) & (a + h <= 0) & (h == xp.floor(h))
        start = xp.where(is_mirrored, 1 - a - h, a)
        is_positive = (start > 0) & (start + h > 0) & xp.isfinite(start) & xp.isfinite(h)
        stepped = numerics.polygamma_step(xp, n, xp.where(is_positive, start, 1.0), xp.where(is_positive, h, 1.0))
        stepped = xp.where(is_mirrored, -((-1.0) ** n) * stepped, stepped)
        return xp.where(is_positive, stepped, plain(a + h) - plain(a))

    def on_numpy(a: Any, h: Any) -> Any:
        from scipy.special import polygamma

        with np.errstate(all="ignore"):
            a, h = np.asarray(a, np.float64), np.asarray(h, np.float64)
            return np.asarray(compute(np, lambda x: polygamma(n, x), a, h))[()]

    def on_xla(a: Any, h: Any) -> Any:
        import jax.numpy as jnp

        return compute(jnp, _digamma_xla, a.astype(np.float64), h.astype(np.float64)).astype(a.dtype)

    def partials(y: Tracer, a: Tracer, h: Tracer) -> list[Partial]:
        return [
            lambda t: mul(t, psi_step(n + 1)(a, h)),
            lambda t: mul(t, polygamma(full_like(a, n + 1), plus(a, h))),
        ]

    return Special(f"psi{n}_step", partials, numpy=on_numpy, xla=None if n else on_xla)


# The gamma function


def _gamma_xla(x: Any) -> Any:
    from jax.scipy.special import gamma

    return gamma(x.astype(np.float64)).astype(x.dtype)


def _gammaln_xla(x: Any) -> Any:
    import jax.numpy as jnp
    from jax.scipy.special import gammaln

    return jnp.where(x == -jnp.inf, -jnp.inf, gammaln(x))


def _loggamma_xla(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.where(x < 0, jnp.nan, _gammaln_xla(x))


def _rgamma_xla(x: Any) -> Any:
    import jax.numpy as jnp
    from jax.scipy.special import gammaln, gammasgn

    wide = x.astype(np.float64)
    is_pole = (wide <= 0) & (wide == jnp.floor(wide))
    return jnp.where(is_pole, 0.0, gammasgn(wide) * jnp.exp(-gammaln(wide))).astype(x.dtype)


gamma = Special("gamma", lambda y, x: [lambda t: mul(t, mul(y, psi(x)))], xla=_gamma_xla)
gammaln = Special("gammaln", lambda y, x: [lambda t: mul(t, psi(x))], xla=_gammaln_xla)
loggamma = Special("loggamma", lambda y, x: [lambda t: mul(t, psi(x))], xla=_loggamma_xla)
gammasgn = Special("gammasgn", lambda y, x: [None], xla="gammasgn")


def _rgamma_slope(y: Tracer, x: Tracer) -> Tracer:
    """The derivative of 1 / gamma, which is finite everywhere.

    Left of 1/2 it is that of gamma(1 - x) sin(pi x) / pi, since psi has poles where 1 / gamma has zeros.
    """
    place = real(x) if is_complex(x.dtype) else x
    is_left = lt(place, full_like(place, 0.5))
    one = full_like(x, 1)
    right = neg(mul(y, psi(select(is_left, one, x))))
    whole = rint(place)
    # The sign of sin(pi x) and cos(pi x) in steps of pi.
    sign = rint(cos(times(whole, math.pi)))
    if is_complex(x.dtype):
        whole, sign = convert(whole, dtype=x.dtype), convert(sign, dtype=x.dtype)
    angle = times(minus(x, whole), math.pi)
    mirrored = select(is_left, minus(1.0, x), one)
    factor = minus(cos(angle), times(sin(angle), psi(mirrored), 1 / math.pi))
    return select(is_left, times(sign, gamma(mirrored), factor), right)


rgamma = Special("rgamma", lambda y, x: [lambda t: mul(t, _rgamma_slope(y, x))], xla=_rgamma_xla)


# Functions of two arguments


def _log_beta(xp: Any, a: Any, b: Any) -> Any:
    """log |beta(a, b)| for float64, from Stirling's formula for what is positive."""
    from jax.scipy.special import gammaln

    a, b = xp.maximum(a, b), xp.minimum(a, b)
    # At a negative integer only beta(-n, m) with m <= n is finite: it is that of (n + 1 - m, m), up to the sign.
    is_mirrored = (b <= 0) & (b == xp.floor(b)) & (a == xp.floor(a)) & (a + b < 1)
    a, b = xp.where(is_mirrored, 1 - a - b, a), xp.where(is_mirrored, a, b)
    a, b = xp.maximum(a, b), xp.minimum(a, b)
    is_positive = b > 0
    is_pole = ((b <= 0) & (b == xp.floor(b))) | ((a <= 0) & (a == xp.floor(a)))
    inside = numerics.log_beta(xp, xp.where(is_positive, a, 1.0), xp.where(is_positive, b, 1.0))
    # Of a large and a negative number, the quotient of two large factors.
    is_step = ~is_positive & (a > 0) & (a + b > 0)
    step = numerics.log_gamma_step(xp, xp.where(is_step, a, 1.0), xp.where(is_step, b, 1.0))
    outside = gammaln(b) + xp.where(is_step, -step, gammaln(a) - gammaln(a + b))
    return xp.where(is_positive, inside, xp.where(is_pole, xp.inf, outside))


def _betaln_xla(a: Any, b: Any) -> Any:
    import jax.numpy as jnp

    return _log_beta(jnp, a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def _beta_partials(y: Tracer, a: Tracer, b: Tracer) -> list[Partial]:
    return [lambda t: neg(times(t, y, psi_step(0)(a, b))), lambda t: neg(times(t, y, psi_step(0)(b, a)))]


def _betaln_partials(y: Tracer, a: Tracer, b: Tracer) -> list[Partial]:
    return [lambda t: neg(times(t, psi_step(0)(a, b))), lambda t: neg(times(t, psi_step(0)(b, a)))]


beta = Special("beta", _beta_partials)
betaln = Special("betaln", _betaln_partials, xla=_betaln_xla)


def _is_pole(x: Tracer) -> Tracer:
    """Whether gamma has a pole there: at 0, -1, -2, ..."""
    return bitwise_and(le(x, full_like(x, 0)), eq(x, floor(x)))


def _outside(flag: Tracer, x: Tracer) -> Tracer:
    """`x`, but 1 where the flag is set: what is computed with it there is not used."""
    return select(flag, full_like(x, 1), x)


def _only(flag: Tracer, x: Tracer) -> Tracer:
    """`x`, but 1 where the flag is not set."""
    return select(flag, x, full_like(x, 1))


def _binom_partials(y: Tracer, n: Tracer, k: Tracer) -> list[Partial]:
    # gamma(n + 1) / gamma(k + 1) / gamma(n - k + 1), whose zeros are where the divisors have poles.
    top, low, rest = plus(n, 1.0), plus(k, 1.0), plus(minus(n, k), 1.0)
    is_zero = bitwise_or(_is_pole(low), _is_pole(rest))
    safe_low, safe_rest = _outside(is_zero, low), _outside(is_zero, rest)
    zero_low, zero_rest, zero_top = _only(is_zero, low), _only(is_zero, rest), _only(is_zero, top)
    by_low, by_rest = rgamma(zero_low), rgamma(zero_rest)
    slope_low, slope_rest = _rgamma_slope(by_low, zero_low), _rgamma_slope(by_rest, zero_rest)
    size = gamma(zero_top)

    def along_n(t: Tracer) -> Tracer:
        regular = mul(y, psi_step(0)(safe_rest, minus(_outside(is_zero, top), safe_rest)))
        at_zero = times(size, by_low, plus(slope_rest, mul(psi(zero_top), by_rest)))
        return mul(t, select(is_zero, at_zero, regular))

    def along_k(t: Tracer) -> Tracer:
        regular = mul(y, psi_step(0)(safe_low, minus(safe_rest, safe_low)))
        at_zero = mul(size, minus(mul(slope_low, by_rest), mul(by_low, slope_rest)))
        return mul(t, select(is_zero, at_zero, regular))

    return [along_n, along_k]


binom = Special("binom", _binom_partials)


def _poch_partials(y: Tracer, z: Tracer, m: Tracer) -> list[Partial]:
    # gamma(z + m) / gamma(z), which is 0 where only the divisor has a pole.
    top = plus(z, m)
    is_zero = bitwise_and(_is_pole(z), bitwise_not(_is_pole(top)))
    zero_z, zero_top = _only(is_zero, z), _only(is_zero, top)
    by_z = rgamma(zero_z)

    def along_z(t: Tracer) -> Tracer:
        regular = mul(y, psi_step(0)(_outside(is_zero, z), _outside(is_zero, m)))
        at_zero = mul(gamma(zero_top), plus(_rgamma_slope(by_z, zero_z), mul(psi(zero_top), by_z)))
        return mul(t, select(is_zero, at_zero, regular))

    return [along_z, lambda t: times(t, y, psi(top))]


poch = Special("poch", _poch_partials)
