"""Bessel, elliptic, hypergeometric and orthogonal functions: against mpmath, and where naive formulas give NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp

import ftrans as ft
from ftrans.core.primitive import MissingRule
from ftrans.scipy import special

ORDERS = (1, 2, 3)


def derivatives(f: Callable[[Any], Any], x: float) -> list[float]:
    """The first three derivatives, in forward mode."""
    found = []
    for _ in ORDERS:
        f = derivative_of(f)
        found.append(float(f(x)))
    return found


def derivative_of(f: Callable[[Any], Any], one: complex = 1.0) -> Callable[[Any], Any]:
    """The derivative of a function of one number, like which `one` is."""
    return lambda x: ft.jvp(f, (x,), (one,))[1]


def reference(f: Callable[[Any], Any], x: float) -> list[float]:
    """The same by differences in 40 digits, on both sides of x."""
    with mp.workdps(40):
        return [float(mp.re(mp.diff(f, mp.mpf(x), n))) for n in ORDERS]


# A function, the same in mpmath, and where. All are smooth there, and at many of these points a formula that is common
# for the derivative divides 0 by 0 or takes the difference of infinities.
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], float]] = {
    "j0": (sp.j0, lambda x: mp.besselj(0, x), 2.3),
    "j1 at 0": (sp.j1, lambda x: mp.besselj(1, x), 0.0),
    "jv": (lambda x: sp.jv(2.5, x), lambda x: mp.besselj(2.5, x), 30.0),
    "jv at 0": (lambda x: sp.jv(2, x), lambda x: mp.besselj(2, x), 0.0),
    "yv": (lambda x: sp.yv(0.3, x), lambda x: mp.bessely(0.3, x), 1.7),
    "i0": (sp.i0, lambda x: mp.besseli(0, x), 0.0),
    "i1e": (sp.i1e, lambda x: mp.besseli(1, x) * mp.exp(-x), 2.0),
    "ive": (lambda x: sp.ive(0.7, x), lambda x: mp.besseli(0.7, x) * mp.exp(-x), 5.0),
    "kv": (lambda x: sp.kv(1.3, x), lambda x: mp.besselk(1.3, x), 0.8),
    "kve": (lambda x: sp.kve(1.3, x), lambda x: mp.besselk(1.3, x) * mp.exp(x), 3.0),
    "spherical_jn at 0": (
        lambda x: special.spherical_jn(1, x),
        lambda x: x / 3 * mp.hyp0f1(2.5, -(x**2) / 4),
        0.0,
    ),
    "struve at 0": (lambda x: sp.struve(0, x), lambda x: mp.struveh(0, x), 0.0),
    "struve": (lambda x: sp.struve(1.5, x), lambda x: mp.struveh(1.5, x), 4.0),
    "modstruve": (lambda x: sp.modstruve(0, x), lambda x: mp.struvel(0, x), 1e-9),
    "airy": (lambda x: sp.airy(x)[0], mp.airyai, -1.3),
    "ber": (sp.ber, lambda x: mp.ber(0, x), 0.0),
    "kei": (sp.kei, lambda x: mp.kei(0, x), 1.2),
    "it2i0k0": (lambda x: sp.it2i0k0(x)[0], lambda x: mp.nsum(_i0_term(x), [1, 40]), 1e-9),
    "it2j0y0 far": (lambda x: sp.it2j0y0(x)[0], lambda x: mp.nsum(_j0_term(x), [1, 60]), 3.0),
    "ellipk at 0": (sp.ellipk, mp.ellipk, 0.0),
    "ellipe at 0": (sp.ellipe, mp.ellipe, 0.0),
    "ellipe": (sp.ellipe, mp.ellipe, -3.0),
    "ellipk near 1": (sp.ellipk, mp.ellipk, 0.999),
    "ellipkinc in m": (lambda m: sp.ellipkinc(4.0, m), lambda m: mp.ellipf(4, m), 0.3),
    "ellipkinc in m at 0": (lambda m: sp.ellipkinc(0.8, m), lambda m: mp.ellipf(mp.mpf(0.8), m), 0.0),
    "ellipeinc in m": (lambda m: sp.ellipeinc(-2.0, m), lambda m: mp.ellipe(-2, m), 0.6),
    "ellipeinc in phi": (lambda phi: sp.ellipeinc(phi, 0.6), lambda phi: mp.ellipe(phi, mp.mpf(0.6)), 1.5),
    "ellipj in m": (lambda m: sp.ellipj(1.2, m)[0], lambda m: mp.ellipfun("sn", mp.mpf(1.2), m=m), 0.4),
    "dn in m": (lambda m: sp.ellipj(1.2, m)[2], lambda m: mp.ellipfun("dn", mp.mpf(1.2), m=m), 0.4),
    "elliprc at equal": (lambda x: sp.elliprc(x, 0.7), lambda x: mp.elliprc(x, mp.mpf(0.7)), 0.7),
    "elliprc beyond 0": (lambda y: sp.elliprc(0.7, y), lambda y: mp.elliprc(mp.mpf(0.7), y, pv=True), -0.4),
    "elliprf at equal": (lambda x: sp.elliprf(x, 0.7, 0.7), lambda x: mp.elliprf(x, mp.mpf(0.7), mp.mpf(0.7)), 0.7),
    "elliprd at equal": (lambda z: sp.elliprd(0.7, 0.7, z), lambda z: mp.elliprd(mp.mpf(0.7), mp.mpf(0.7), z), 0.7),
    "elliprd far": (lambda x: sp.elliprd(x, 1e6, 1e-4), lambda x: mp.elliprd(x, 1e6, mp.mpf(1e-4)), 0.2),
    "elliprj": (lambda p: sp.elliprj(0, 2, 3, p), lambda p: mp.elliprj(0, 2, 3, p), 2.0),
    "elliprg": (lambda y: sp.elliprg(0, y, 1.5), lambda y: mp.elliprg(0, y, mp.mpf(1.5)), 1.5),
    "agm at equal": (lambda a: sp.agm(a, 1.0), lambda a: mp.agm(a, 1), 1.0),
    "hyp0f1 at 0": (lambda x: sp.hyp0f1(1.5, x), lambda x: mp.hyp0f1(1.5, x), 0.0),
    "hyp1f1": (lambda x: sp.hyp1f1(0.5, 1.5, x), lambda x: mp.hyp1f1(0.5, 1.5, x), -3.0),
    "hyp2f1": (lambda x: sp.hyp2f1(0.5, 1.0, 1.5, x), lambda x: mp.hyp2f1(0.5, 1, 1.5, x), -2.0),
    "hyperu": (lambda x: sp.hyperu(0.5, 1.2, x), lambda x: mp.hyperu(0.5, mp.mpf(1.2), x), 2.0),
    "wrightomega": (sp.wrightomega, lambda x: mp.lambertw(mp.exp(x)), -1.5),
    "lambertw at 0": (lambda x: special.lambertw(x).real, mp.lambertw, 0.0),
    "lambertw far": (lambda x: special.lambertw(x).real, mp.lambertw, 1e4),
    "lambertw, other branch": (lambda x: special.lambertw(x, -1).real, lambda x: mp.lambertw(x, -1), -0.2),
    "eval_legendre": (lambda x: sp.eval_legendre(4, x), lambda x: mp.legendre(4, x), 1.0),
    "eval_legendre, degree -4": (lambda x: sp.eval_legendre(-4, x), lambda x: mp.legendre(3, x), 0.3),
    "eval_chebyu, degree -4": (lambda x: sp.eval_chebyu(-4, x), lambda x: -mp.chebyu(2, x), 0.3),
    "eval_jacobi": (lambda x: sp.eval_jacobi(3, 0.5, 1.5, x), lambda x: mp.jacobi(3, 0.5, 1.5, x), -1.0),
    "lpmv": (lambda x: sp.lpmv(2, 4, x), lambda x: 15 * (1 - x**2) * (7 * x**2 - 1) / 2, 1.0),
    "pbdv": (lambda x: sp.pbdv(0.7, x)[0], lambda x: mp.pcfd(mp.mpf(0.7), x), 1.1),
}


def _i0_term(x: Any) -> Callable[[Any], Any]:
    return lambda k: (x / 2) ** (2 * k) / mp.factorial(k) ** 2 / (2 * k)


def _j0_term(x: Any) -> Callable[[Any], Any]:
    return lambda k: -((-1) ** int(k)) * (x / 2) ** (2 * k) / mp.factorial(k) ** 2 / (2 * k)


@pytest.mark.parametrize("name", CASES)
def test_three_derivatives_are_those_of_mpmath(name: str) -> None:
    f, exact, x = CASES[name]
    expected = reference(exact, x)
    scale = max(map(abs, expected))
    np.testing.assert_allclose(derivatives(f, x), expected, rtol=1e-9, atol=1e-10 * min(scale, 1.0))


def test_compiled_derivatives_are_the_same() -> None:
    cases = [CASES[name] for name in ("i0", "jv at 0", "it2i0k0", "ellipj in m", "elliprg", "lambertw at 0", "lpmv")]

    def everything(xs: list[Any]) -> list[Any]:
        return [ft.grad(derivative_of(f))(x) for (f, _, _), x in zip(cases, xs, strict=True)]

    xs = [x for _, _, x in cases]
    np.testing.assert_allclose(ft.jit(everything)(xs), everything(xs), rtol=1e-10, atol=1e-12)


# Elliptic functions at the ends of their range (DLMF 22.10.5 to 22.10.9)


def test_elliptic_functions_move_at_the_ends_in_m() -> None:
    u = np.array([-1.1, 0.3, 2.0])
    along_m = lambda m: ft.jvp(lambda m: sp.ellipj(u, np.full(3, 1.0) * m)[:3], (m,), (1.0,))[1]  # noqa: E731
    turned = (u - np.sin(u) * np.cos(u)) / 4
    at_0 = [-turned * np.cos(u), turned * np.sin(u), -(np.sin(u) ** 2) / 2]
    np.testing.assert_allclose(along_m(0.0), at_0, rtol=1e-12)
    grown, sech = (np.sinh(u) * np.cosh(u) - u) / 4, 1 / np.cosh(u)
    both = (np.sinh(u) * np.cosh(u) + u) / 4
    at_1 = [-grown * sech**2, grown * np.tanh(u) * sech, -both * np.tanh(u) * sech]
    np.testing.assert_allclose(along_m(1.0), at_1, rtol=1e-11)


# Points of the plane


PLANE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], complex]] = {
    "elliprf": (
        lambda z: sp.elliprf(z, 1.0 + 0.2j, 0.5),
        lambda z: mp.elliprf(z, mp.mpc(1, mp.mpf(0.2)), 0.5),
        -1.0 + 0.4j,
    ),
    "elliprd": (
        lambda z: sp.elliprd(0.0, 1.0, z),
        lambda z: mp.elliprd(0, 1, z),
        -2.0 - 1.0j,
    ),
    "elliprg": (lambda z: sp.elliprg(z, 2.0, 0.0), lambda z: mp.elliprg(z, 2, 0), 0.3 + 1.0j),
    "jv": (lambda z: sp.jv(0.5, z), lambda z: mp.besselj(0.5, z), -1.0 + 0.5j),
    "hankel1e": (
        lambda z: sp.hankel1e(0.7, z),
        lambda z: mp.hankel1(0.7, z) * mp.exp(-1j * z),
        2.0 + 0.5j,
    ),
    "lambertw": (lambda z: special.lambertw(z, 2), lambda z: mp.lambertw(z, 2), 0.1 - 0.3j),
    "hyp2f1": (
        lambda z: sp.hyp2f1(0.5, 1.0, 1.5, z),
        lambda z: mp.hyp2f1(0.5, 1, 1.5, z),
        0.3 + 0.4j,
    ),
}


@pytest.mark.parametrize("name", PLANE)
def test_complex_derivatives_are_those_of_mpmath(name: str) -> None:
    f, exact, z = PLANE[name]
    with mp.workdps(40):
        expected = [complex(mp.diff(exact, mp.mpc(z), n)) for n in ORDERS]
    found = []
    for _ in ORDERS:
        f = derivative_of(f, 1.0 + 0.0j)
        found.append(complex(f(z)))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_scale_that_is_not_analytic_is_differentiated_along_both_axes() -> None:
    z = 0.8 - 0.6j
    for f in (lambda z: sp.jve(1.5, z), lambda z: sp.ive(0.5, z), lambda z: sp.airye(z)[2]):
        for step in (1.0, 1.0j):
            found = ft.jvp(f, (z,), (complex(step),))[1]
            h = 1e-5 * step
            np.testing.assert_allclose(found, (f(z + h) - f(z - h)) / 2e-5, rtol=1e-8)


# Kinks, poles and values that SciPy does not have


def test_scaled_functions_have_no_slope_at_their_kink() -> None:
    assert ft.grad(sp.i0e)(0.0) == 0.0
    assert ft.grad(lambda x: sp.ive(0, x))(0.0) == 0.0


def test_derivatives_at_poles_are_infinite() -> None:
    assert ft.grad(sp.k0)(0.0) == -math.inf
    assert ft.grad(lambda x: sp.kv(2, x))(0.0) == -math.inf
    assert ft.grad(sp.y0)(0.0) == math.inf
    assert ft.grad(sp.ellipkm1)(0.0) == -math.inf
    assert ft.grad(lambda y: sp.elliprf(0.0, y, 1.0))(0.0) == -math.inf


def test_a_principal_value_has_a_derivative_that_is_no_number() -> None:
    assert math.isnan(ft.grad(lambda p: sp.elliprj(1.0, 2.0, 3.0, p))(-0.5))


# Refusals


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda v: sp.jv(v, 2.0), r"scipy.special.jv has no derivative with respect to v .* Hold it constant"),
        (lambda v: sp.yn(v, 2.0), r"scipy.special.yn has no derivative with respect to v"),
        (lambda a: sp.hyp1f1(a, 1.0, 2.0), r"scipy.special.hyp1f1 has no derivative with respect to a "),
        (lambda a: sp.eval_jacobi(2, 1.0, a, 0.5), r"eval_jacobi has no derivative with respect to beta"),
        (lambda q: sp.mathieu_cem(2, q, 1.0)[0], r"mathieu_cem has no derivative with respect to q"),
        (lambda q: ft.grad(lambda q: sp.mathieu_a(2, q))(q), r"mathieu_a has no derivative .* only the first"),
        (lambda c: sp.pro_ang1(0, 1, c, 0.5)[0], r"pro_ang1 has no derivative with respect to c"),
        (lambda x: special.obl_rad2(0, 1, 1.0, x)[0], r"obl_rad2 has no rule .* apply it to plain arrays"),
        (lambda x: sp.obl_rad2(0, 1, 1.0, x)[0], r"obl_rad2 has no rule .* apply it to plain arrays"),
        (lambda x: special.jn_zeros(x, 2)[0], r"jn_zeros has no rule .* plain numbers"),
        (lambda a: special.roots_jacobi(2, a, 1.0)[0][0], r"roots_jacobi has no rule .* hold these constant"),
    ],
)
def test_what_has_no_formula_is_refused_by_name(f: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(MissingRule, match=message) as caught:
        ft.grad(f)(1.5)
    assert "test_special_bessel.py" in str(caught.value)


def test_an_order_that_is_held_constant_is_no_obstacle() -> None:
    found = ft.grad(lambda x: sp.jv(ft.stop_gradient(x), x))(1.5)
    np.testing.assert_allclose(found, sp.jvp(1.5, 1.5), rtol=1e-14)


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda x: special.spherical_jn(1.5, x), TypeError, "spherical_jn takes integer orders, not"),
        (lambda x: special.jvp(1, x, -1), ValueError, "n >= 0, not -1"),
        (lambda x: sp.jv(x), TypeError, "invalid number of arguments|takes from 2 to|takes 2 operands"),
    ],
)
def test_wrong_arguments(f: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ft.grad(f)(1.5)


@pytest.mark.skipif(not hasattr(sp, "legendre_p"), reason="SciPy has had it since 1.15")
def test_derivatives_are_taken_by_transformations() -> None:
    with pytest.raises(MissingRule, match=r"does not take diff_n=1: leave it out"):
        ft.grad(lambda x: special.legendre_p(2, x, diff_n=1)[0])(0.5)
    with pytest.raises(TypeError, match="integer degrees"):
        ft.grad(lambda x: special.legendre_p(2.5, x)[0])(0.5)
