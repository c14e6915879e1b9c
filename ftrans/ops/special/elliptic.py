"""Elliptic integrals and functions.

Two families of integrals are closed under derivatives, so derivatives of every order are members of them, at equal
arguments and at m = 0 too (B. C. Carlson, "Special Functions of Applied Mathematics", 1977; DLMF 19.16 and 19.2):

    carlson    the integral over t > 0 of a product of powers (t + x_i)**(-e_i / 2), times a power of t
    legendre   the integral over u from 0 to phi of sin(u)**(2 a) (1 - m sin(u)**2)**(-b / 2)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..elementwise import abs_, add, cos, div, eq, integer_pow, lt, mul, neg, select, sign, sin, sqrt, square, sub
from ..literals import full_like
from .algebraic_integral import algebraic_integral
from .arithmetic import minus, over, times
from .family import Special, Specials

# Carlson's integrals


def _carlson_partials(_: Any, *points: Any, power: int, exponents: tuple[int, ...]) -> list[Any]:
    def along(i: int) -> Any:
        raised = tuple(e + 2 if j == i else e for j, e in enumerate(exponents))
        return lambda t: mul(t, times(-0.5 * exponents[i], carlson(*points, power=power, exponents=raised)))

    return [along(i) for i in range(len(points))]


carlson = Special(
    "carlson",
    _carlson_partials,
    numpy=lambda *points, power, exponents: algebraic_integral(points, power, exponents),
)


def _symmetric(name: str, factor: float, *exponents: int) -> Special:
    """`factor` times an integral of these exponents."""

    def partials(_: Any, *points: Any) -> list[Any]:
        rows = _carlson_partials(_, *points, power=0, exponents=exponents)
        return [lambda t, row=row: times(factor, row(t)) for row in rows]

    return Special(name, partials)


def _elliprg_partials(_: Any, *points: Any) -> list[Any]:
    def along(i: int) -> Any:
        exponents = tuple(3 if j == i else 1 for j in range(3))
        return lambda t: mul(t, times(0.125, carlson(*points, power=1, exponents=exponents)))

    return [along(i) for i in range(3)]


elliprf = _symmetric("elliprf", 0.5, 1, 1, 1)
elliprd = _symmetric("elliprd", 1.5, 1, 1, 3)
elliprj = _symmetric("elliprj", 1.5, 1, 1, 1, 2)
elliprg = Special("elliprg", _elliprg_partials)
degenerate = _symmetric("elliprc", 0.5, 1, 2)


def elliprc(x: Any, y: Any) -> Any:
    """R_C, which is a principal value for y < 0 and then an elementary factor times another R_C (DLMF 19.2.20)."""
    if x.dtype.kind == "c":
        return degenerate(x, y)
    one = full_like(x, 1)
    is_principal = lt(y, full_like(y, 0))
    # The cases are apart so that at x = 0, where the slope in x is infinite, that in y is not lost.
    distance = select(is_principal, sub(x, y), one)
    factor = sqrt(div(select(is_principal, x, one), distance))
    principal = mul(factor, degenerate(distance, select(is_principal, neg(y), one)))
    return select(is_principal, principal, degenerate(select(is_principal, one, x), select(is_principal, one, y)))


# Legendre's integrals


def _legendre(phi: Any, m: Any, *, a: int, b: int) -> Any:
    # The integrand has period pi, so that the rest is a multiple of the complete integral.
    periods = np.rint(phi / math.pi)
    s, c = np.sin(phi - math.pi * periods), np.cos(phi - math.pi * periods)
    exponents = (1, b, 2 * a + 2 - b)
    # 1 - m s**2 without cancellation.
    inner = s ** (2 * a + 1) / 2 * algebraic_integral((c * c, c * c + (1 - m) * (s * s), np.ones_like(s)), 0, exponents)
    complete = algebraic_integral((np.zeros_like(m), 1 - m, np.ones_like(m)), 0, exponents)
    with np.errstate(invalid="ignore"):
        return inner + np.where(periods == 0, 0, periods * complete)


def _rooted(phi: Any, m: Any) -> Any:
    """`1 - m sin(phi)**2` without cancellation."""
    return add(square(cos(phi)), mul(minus(1, m), square(sin(phi))))


def _legendre_partials(_: Any, phi: Any, m: Any, *, a: int, b: int) -> list[Any]:
    def along_phi(t: Any) -> Any:
        integrand = mul(integer_pow(sin(phi), exponent=2 * a), integer_pow(sqrt(_rooted(phi, m)), exponent=-b))
        return mul(t, integrand)

    return [along_phi, lambda t: mul(t, times(0.5 * b, legendre(phi, m, a=a + 1, b=b + 2)))]


legendre = Special("legendre_integral", _legendre_partials, numpy=_legendre)
ellipkinc = Special("ellipkinc", lambda y, phi, m: _legendre_partials(y, phi, m, a=0, b=1))
ellipeinc = Special("ellipeinc", lambda y, phi, m: _legendre_partials(y, phi, m, a=0, b=-1))


# Complete integrals: R_F(0, 1 - m, 1) and its kin


def _complete(p: Any, *exponents: int) -> Any:
    return carlson(full_like(p, 0), p, full_like(p, 1), power=0, exponents=exponents)


ellipk = Special("ellipk", lambda y, m: [lambda t: mul(t, times(0.25, _complete(minus(1, m), 1, 3, 1)))])
ellipkm1 = Special("ellipkm1", lambda y, p: [lambda t: mul(t, times(-0.25, _complete(p, 1, 3, 1)))])
ellipe = Special("ellipe", lambda y, m: [lambda t: mul(t, times(-0.25, _complete(minus(1, m), 1, 1, 3)))])


def _agm_partials(y: Any, a: Any, b: Any) -> list[Any]:
    """The mean is `pi / 2 / R_F(0, a**2, b**2)`, DLMF 19.22.10.

    At 0 it is 0, and its slope in the argument that is 0 is infinite.
    """
    zero, one = full_like(y, 0), full_like(y, 1)
    is_zero = eq(y, zero)

    def along(a: Any, b: Any) -> Any:
        first, second = select(is_zero, one, a), select(is_zero, one, b)
        slope = carlson(zero, square(first), square(second), power=0, exponents=(1, 3, 1))
        inside = times(1 / math.pi, square(y), mul(abs_(first), slope))
        edge = div(sign(b), abs_(select(eq(a, zero), a, one)))
        return select(is_zero, select(eq(a, zero), edge, zero), inside)

    return [lambda t: mul(t, along(a, b)), lambda t: mul(t, along(b, a))]


agm = Special("agm", _agm_partials)


# Jacobi's functions


def _ellipj_partials(ys: Any, u: Any, m: Any) -> list[Any]:
    """In m, from F(am(u, m), m) = u: the amplitude moves by -dn dF/dm."""
    sn, cn, dn, am = ys

    def turned() -> Any:
        return mul(dn, times(-0.5, legendre(am, m, a=1, b=3)))

    def dn_along_m(t: Any) -> Any:
        both = add(square(sn), times(2, mul(m, mul(mul(sn, cn), turned()))))
        return mul(t, over(times(-0.5, both), dn))

    return [
        [lambda t: mul(t, mul(cn, dn)), lambda t: mul(t, mul(cn, turned()))],
        [lambda t: neg(mul(t, mul(sn, dn))), lambda t: neg(mul(t, mul(sn, turned())))],
        [lambda t: neg(mul(t, mul(m, mul(sn, cn)))), dn_along_m],
        [lambda t: mul(t, dn), lambda t: mul(t, turned())],
    ]


ellipj = Specials("ellipj", _ellipj_partials, results=4)
