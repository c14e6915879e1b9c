"""The zeta functions of Riemann and Hurwitz, with derivatives of any order in both arguments."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from ...core.trace import Tracer
from ...core.types import is_complex
from ..elementwise import convert, cos, exp, lt, mul, neg, real, rint, select, sin
from ..elementwise.family import Partial
from ..literals import full_like
from .arithmetic import minus, plus, times
from .family import Special
from .gamma import gamma, hurwitz_xla, psi
from .incomplete_numerics import BERNOULLI


def _euler_maclaurin(n: int, s: Any, q: Any, count: int) -> Any:
    """The `n`-th derivative in `s` of the sum of (q + k)**-s over k = 0, 1, ... (DLMF 25.11.7, 25.11.20).

    `count` terms are summed and the rest is the formula of Euler and Maclaurin; all are Taylor polynomials in s.
    """
    total = sum((-np.log(q + k)) ** n * (q + k) ** -s for k in range(count))
    end = q + count
    # Taylor coefficients of end**-(s + e) in e, of the end of the sum and of the integral.
    powers = [(-np.log(end)) ** j / math.factorial(j) * end**-s for j in range(n + 1)]
    integral = [(-1) ** j * end / (s - 1) ** (j + 1) for j in range(n + 1)]
    rest = 0.5 * powers[n] + sum(powers[j] * integral[n - j] for j in range(n + 1))
    # The rising factorial (s + e) (s + e + 1) ... in e, two factors longer for each term.
    rising = [s, np.ones_like(s), *[np.zeros_like(s)] * n][: n + 1]
    for k, b in enumerate(BERNOULLI, 1):
        if k > 1:
            for shift in (2 * k - 3, 2 * k - 2):
                rising = [(s + shift) * r + (rising[j - 1] if j else 0.0) for j, r in enumerate(rising)]
        term = sum(rising[j] * powers[n - j] for j in range(n + 1))
        rest = rest + b / math.factorial(2 * k) * term / end ** (2 * k - 1)
    return total + math.factorial(n) * rest


def _terms(s: Any) -> int:
    """How many terms to sum: the further `s` is from the real axis, the more."""
    finite = np.abs(np.asarray(s).imag)
    return 12 + int(min(np.max(finite, initial=0.0, where=np.isfinite(finite)), 1e4))


@cache
def zeta_in_s(n: int) -> Special:
    """The `n`-th derivative in `s` of Hurwitz' zeta function, for `s` > 1 and positive `q`."""

    def compute(s: Any, q: Any) -> Any:
        with np.errstate(all="ignore"):
            s, q = np.asarray(s, np.float64), np.asarray(q, np.float64)
            is_inside = (s > 1) & (q > 0)
            found = _euler_maclaurin(n, np.where(is_inside, s, 2.0), np.where(is_inside, q, 1.0), 12)
            return np.where(is_inside, found, np.nan)[()]

    def along_q(t: Tracer, s: Tracer, q: Tracer) -> Tracer:
        slope = neg(mul(s, zeta_in_s(n)(plus(s, 1.0), q)))
        lower = zeta if n == 1 else zeta_in_s(n - 1)
        return mul(t, minus(slope, times(lower(plus(s, 1.0), q), float(n))))

    return Special(
        f"zeta_s{n}",
        lambda y, s, q: [lambda t: mul(t, zeta_in_s(n + 1)(s, q)), lambda t: along_q(t, s, q)],
        numpy=compute,
    )


def _zeta_xla(s: Any, q: Any) -> Any:
    return hurwitz_xla(s.astype(np.float64), q.astype(np.float64)).astype(q.dtype)


zeta = Special(
    "zeta",
    lambda y, s, q: [
        lambda t: mul(t, zeta_in_s(1)(s, q)),
        lambda t: neg(times(t, s, zeta(plus(s, 1.0), q))),
    ],
    xla=_zeta_xla,
)


@cache
def _riemann_right(n: int) -> Special:
    """The `n`-th derivative of Riemann's zeta function, for real parts of at least -1."""

    def compute(s: Any) -> Any:
        with np.errstate(all="ignore"):
            wide = np.asarray(s, np.complex128 if np.iscomplexobj(s) else np.float64)
            is_inside = wide.real >= -1
            start = np.where(is_inside, wide, 2.0)
            return np.where(is_inside, _euler_maclaurin(n, start, 1.0, _terms(start)), np.nan)[()]

    return Special(f"riemann_zeta{n}", lambda y, s: [lambda t: mul(t, _riemann_right(n + 1)(s))], numpy=compute)


def _riemann_partials(y: Tracer, s: Tracer) -> list[Partial]:
    place = real(s) if is_complex(s.dtype) else s
    is_left = lt(place, full_like(place, -1))
    right = _riemann_right(1)(select(is_left, full_like(s, 2), s))
    # zeta(s) = 2 (2 pi)**(s - 1) sin(pi s / 2) gamma(1 - s) zeta(1 - s), DLMF 25.4.1, with angles near 0.
    left = select(is_left, s, full_like(s, -2))
    mirrored = minus(1.0, left)
    whole = rint(real(left) if is_complex(s.dtype) else left)
    whole = times(rint(times(whole, 0.25)), 4.0)
    angle = times(minus(left, convert(whole, dtype=s.dtype)), math.pi / 2)
    sine, cosine = sin(angle), cos(angle)
    other = riemann_zeta(mirrored)
    scale = times(exp(times(minus(left, 1.0), math.log(2 * math.pi))), gamma(mirrored), 2.0)
    by_scale = mul(minus(math.log(2 * math.pi), psi(mirrored)), mul(sine, other))
    by_sine = times(cosine, other, math.pi / 2)
    by_zeta = mul(sine, _riemann_right(1)(mirrored))
    slope = mul(scale, minus(plus(by_scale, by_sine), by_zeta))
    return [lambda t: mul(t, select(is_left, slope, right))]


def _riemann(x: Any) -> Any:
    import scipy.special

    return scipy.special.zeta(x)


riemann_zeta = Special("riemann_zeta", _riemann_partials, numpy=_riemann)
zetac = Special("zetac", _riemann_partials)
