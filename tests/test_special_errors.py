"""Error functions, exponential integrals and functions for statistics where formulas fail: poles, tails, equal numbers.

References are closed forms or mpmath's, in more digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import ftrans as ft
from ftrans.scipy import special

mp.mp.dps = 40


def derivatives(f: Callable[..., Any], point: tuple[float, ...], place: int = 0) -> list[float]:
    """The first and the second derivative in one argument: forward and reverse mode agree about both."""

    def along(x: Any) -> Any:
        return f(*point[:place], x, *point[place + 1 :])

    x = point[place]
    first, second = ft.grad(along)(x), ft.grad(ft.grad(along))(x)
    forward, twice = ft.jvp(lambda x: ft.jvp(along, (x,), (1.0,))[1], (x,), (1.0,))
    np.testing.assert_allclose([forward, twice], [first, second], rtol=1e-12)
    return [float(first), float(second)]


def erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def dawsn(x: Any) -> Any:
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    z = (x + 1j * gamma) / (sigma * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (sigma * mp.sqrt(2 * mp.pi))


def logit(x: Any) -> Any:
    return mp.log(x / (1 - x))


def expit(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def exprel(x: Any) -> Any:
    return mp.hyp1f1(1, 2, x)


def spence(x: Any) -> Any:
    return mp.re(mp.polylog(2, 1 - x))


def powm1(x: Any, y: Any) -> Any:
    return x**y - 1


def boxcox(x: Any, p: Any) -> Any:
    return mp.log(x) * exprel(p * mp.log(x))


def inv_boxcox(y: Any, p: Any) -> Any:
    return mp.exp(y * mp.hyp2f1(1, 1, 2, -p * y))


# name, reference, points, the argument, tolerance
POINTS: list[tuple[str, Callable[..., Any], list[tuple[float, ...]], int, float]] = [
    ("erf", mp.erf, [(0.0,), (5.0,), (-4.0,)], 0, 1e-12),
    ("erfinv", mp.erfinv, [(0.0,), (1e-8,), (0.999,)], 0, 1e-12),
    ("erfcx", erfcx, [(-3.0,), (0.9,), (2.1,), (30.0,), (1e4,)], 0, 1e-13),
    ("erfi", mp.erfi, [(0.0,), (3.0,)], 0, 1e-12),
    ("dawsn", dawsn, [(0.0,), (0.9,), (1.1,), (6.0,), (7.6,), (300.0,)], 0, 1e-12),
    ("ndtr", mp.ncdf, [(-30.0,), (0.0,), (5.0,)], 0, 1e-12),
    ("log_ndtr", lambda x: mp.log(mp.ncdf(x)), [(-30.0,), (-1.0,), (-0.9,), (7.0,)], 0, 1e-12),
    ("expit", expit, [(-40.0,), (0.0,), (40.0,)], 0, 1e-12),
    ("log_expit", lambda x: -mp.log(1 + mp.exp(-x)), [(-40.0,), (0.3,), (40.0,)], 0, 1e-12),
    ("logit", logit, [(1e-12,), (0.4,), (0.999,)], 0, 1e-12),
    ("exprel", exprel, [(0.0,), (1e-9,), (0.99,), (1.01,), (-1.01,), (-50.0,), (40.0,)], 0, 1e-13),
    ("spence", spence, [(0.76,), (0.999,), (1.26,), (4.0,)], 0, 1e-12),
    ("exp1", mp.e1, [(1e-3,), (20.0,)], 0, 1e-12),
    ("expi", mp.ei, [(-2.0,), (1e-3,), (20.0,)], 0, 1e-12),
    ("cosm1", lambda x: mp.cos(x) - 1, [(0.0,), (1e-9,), (2.0,)], 0, 1e-12),
    ("sinc", lambda x: mp.sinc(mp.pi * x), [(1e-3,), (0.03,), (2.0,)], 0, 1e-10),
    ("voigt_profile", voigt, [(0.3, 0.5, 0.2), (-3.0, 1e-2, 1e-3), (9.0, 1.0, 1e-4), (3.0, 1.0, 0.0)], 0, 1e-11),
    ("voigt_profile", voigt, [(0.3, 0.5, 0.2), (-3.0, 1e-2, 1e-3), (9.0, 1.0, 0.1)], 1, 1e-10),
    ("voigt_profile", voigt, [(0.3, 0.5, 0.2), (-3.0, 1e-2, 1e-3), (9.0, 1.0, 1e-4)], 2, 1e-11),
    ("powm1", powm1, [(1.0, 1e-9), (2.0, 3.0)], 0, 1e-12),
    ("powm1", powm1, [(1.0, 1e-9), (2.0, 0.0)], 1, 1e-12),
    ("boxcox", boxcox, [(0.4, 0.0), (3.0, 1e-9), (3.0, -2.0), (3.0, 0.9)], 1, 1e-12),
    ("inv_boxcox", inv_boxcox, [(0.4, 0.0), (3.0, 1e-9), (0.5, 0.6), (-0.4, 0.6)], 1, 1e-12),
    ("agm", mp.agm, [(1.5, 1.5), (1.5, 0.01), (2.0, 1e5)], 0, 1e-12),
    ("pseudo_huber", lambda d, r: d * (mp.sqrt(d * d + r * r) - d), [(1.0, 1e-6), (1e-6, 1.0), (0.5, 2.0)], 0, 1e-12),
    ("kl_div", lambda x, y: x * mp.log(x / y) - x + y, [(1.0, 1.0), (1.0, 1 + 1e-9), (1e-8, 3.0)], 0, 1e-12),
]


@pytest.mark.parametrize(("name", "reference", "points", "place", "tolerance"), POINTS)
def test_first_and_second_derivatives(
    name: str, reference: Callable[..., Any], points: list[tuple[float, ...]], place: int, tolerance: float
) -> None:
    for point in points:
        orders = [tuple(k if i == place else 0 for i in range(len(point))) for k in (1, 2)]
        direction = 1 if name == "voigt_profile" and place == 2 else 0
        exact = [mp.diff(reference, tuple(map(mp.mpf, point)), n, direction=direction) for n in orders]
        scale = float(max(abs(mp.re(v)) for v in exact)) * (1e-3 if len(point) == 1 else 1)
        for got, want in zip(derivatives(getattr(special, name), point, place), exact, strict=True):
            np.testing.assert_allclose(
                got, float(mp.re(want)), rtol=tolerance, atol=tolerance * scale, err_msg=str(point)
            )


@pytest.mark.parametrize(
    ("name", "point", "expected"),
    [
        ("log_ndtr", -1e3, [1000.000999998, -0.999999000006]),
        ("log_ndtr", -1e8, [1e8, -1.0]),
        ("log_ndtr", 1e3, [0.0, 0.0]),
        ("erfcx", 1e8, [-1 / np.sqrt(np.pi) * 1e-16, 2 / np.sqrt(np.pi) * 1e-24]),
        ("erfcx", np.inf, [0.0, 0.0]),
        ("dawsn", 1e8, [-0.5e-16, 1e-24]),
        ("erf", np.inf, [0.0, 0.0]),
        ("erfc", 1e200, [0.0, 0.0]),
        ("ndtr", -np.inf, [0.0, 0.0]),
        ("expit", 300.0, [np.exp(-300.0), -np.exp(-300.0)]),
        ("erf", -26.0, [2 / np.sqrt(np.pi) * np.exp(-676.0), 104 / np.sqrt(np.pi) * np.exp(-676.0)]),
        ("expit", 800.0, [0.0, 0.0]),
        ("expit", -800.0, [0.0, 0.0]),
        ("log_expit", -800.0, [1.0, 0.0]),
        ("sinc", 0.0, [0.0, -(np.pi**2) / 3]),
        ("spence", 1.0, [-1.0, 0.5]),
        ("exprel", 0.0, [0.5, 1 / 3]),
        ("exprel", -1e10, [1e-20, 2e-30]),
        ("entr", 1.0, [-1.0, -1.0]),
        ("entr", -1.0, [0.0, 0.0]),
        ("sindg", 180.0, [-np.pi / 180, 0.0]),
        ("cosdg", 90.0, [-np.pi / 180, 0.0]),
    ],
)
def test_ends_and_tails(name: str, point: float, expected: list[float]) -> None:
    np.testing.assert_allclose(derivatives(getattr(special, name), (point,)), expected, rtol=1e-12, atol=1e-300)


def test_inverses_far_out() -> None:
    for y in (-1e3, -1e8, -1e-5):
        x = special.ndtri_exp(y)
        np.testing.assert_allclose(ft.grad(special.ndtri_exp)(y) * ft.grad(special.log_ndtr)(x), 1, rtol=1e-10)
    for p in (1e-300, 1e-20):
        x = special.erfcinv(p)
        np.testing.assert_allclose(ft.grad(special.erfcinv)(p) * ft.grad(special.erfc)(x), 1, rtol=1e-12)


@pytest.mark.parametrize("name", ["erfinv", "ndtri", "log_ndtr", "logit", "exp10", "powm1", "cosdg", "erfcx"])
def test_compiled_as_accurate_as_scipy(name: str) -> None:
    points = {
        "erfinv": [[-1.0, -0.9999999, 1e-10, 0.3, 0.99999999, 1.0]],
        "ndtri": [[0.0, 1e-300, 0.1, 0.5, 1 - 1e-12, 1.0]],
        "log_ndtr": [[-1e10, -1e3, -20.1, -19.9, -3.0, 0.0, 0.1, 7.9, 30.0]],
        "logit": [[0.0, 1e-300, 0.29, 0.5 + 1e-9, 0.69, 1.0]],
        "exp10": [[-300.0, 0.1, 300.0]],
        "powm1": [[1.0, 1 + 1e-9, 2.0, -2.0], [3.0, 1e-3, 1e-12, 3.0]],
        "cosdg": [[0.0, 60.0, 90.0, 270.0, -120.0]],
        "erfcx": [[-5.0, 0.0, 1.49, 1.51, 1e3, 1e300]],
    }[name]
    operands = [np.array(x) for x in points]
    with np.errstate(divide="ignore"):
        expected = getattr(scipy.special, name)(*operands)
    np.testing.assert_allclose(ft.jit(getattr(special, name))(*operands), expected, rtol=1e-12)


# Functions of two arguments at 0


def test_voigt_profile_without_one_of_its_widths() -> None:
    # A Cauchy distribution, which spreads as the square of sigma.
    slopes = ft.grad(special.voigt_profile, argnums=(0, 1, 2))(0.5, 0.0, 2.0)
    width = 0.25 + 4
    np.testing.assert_allclose(slopes, [-2 / np.pi / width**2, 0, (0.25 - 4) / np.pi / width**2], rtol=1e-14)
    second = ft.grad(ft.grad(special.voigt_profile, argnums=1), argnums=1)(0.5, 0.0, 2.0)
    curvature = ft.grad(ft.grad(lambda x: 2 / np.pi / (x * x + 4)))(0.5)
    np.testing.assert_allclose(second, curvature, rtol=1e-13)
    # A normal distribution.
    for x in (0.5, 20.0):
        density = np.exp(-x * x / 8) / np.sqrt(8 * np.pi)
        slopes = ft.grad(special.voigt_profile, argnums=(0, 1))(x, 2.0, 0.0)
        np.testing.assert_allclose(slopes, [-x / 4 * density, (x * x / 8 - 0.5) * density], rtol=1e-12)


def test_entropies_at_zero() -> None:
    xlogy = ft.hessian(lambda v: special.xlogy(0.0, v))(np.float64(0.0)), ft.grad(special.xlogy, argnums=1)(0.0, 0.0)
    assert not any(xlogy)
    assert ft.grad(special.xlogy)(0.0, 2.0) == np.log(2.0)
    assert ft.grad(ft.grad(special.xlogy), argnums=1)(0.0, 2.0) == 0.5
    assert ft.grad(special.xlog1py, argnums=1)(0.0, -1.0) == 0
    for name, along_y in (("rel_entr", 0.0), ("kl_div", 1.0)):
        f = getattr(special, name)
        assert ft.grad(f, argnums=(0, 1))(0.0, 0.0) == (0.0, along_y)
        assert ft.grad(f, argnums=1)(0.0, 2.0) == along_y
        assert ft.jvp(lambda y, f=f: f(0.0, y), (2.0,), (1.0,))[1] == along_y
        assert ft.grad(ft.grad(f, argnums=1), argnums=1)(0.0, 2.0) == 0
        assert ft.grad(f, argnums=(0, 1))(-1.0, 2.0) == (0.0, 0.0)
        with np.errstate(divide="ignore"):
            assert ft.grad(f)(0.0, 2.0) == -np.inf
    with np.errstate(divide="ignore"):
        assert ft.grad(special.entr)(0.0) == np.inf


def test_losses_at_the_kink_and_the_origin() -> None:
    assert ft.grad(special.huber, argnums=(0, 1))(1.0, 1.0) == (0.0, 1.0)
    assert ft.grad(special.huber, argnums=(0, 1))(1.0, -3.0) == (2.0, -1.0)
    assert ft.grad(ft.grad(special.huber, argnums=1), argnums=1)(1.0, 1.0) == 1.0
    assert ft.grad(special.huber, argnums=(0, 1))(-1.0, 3.0) == (0.0, 0.0)
    assert ft.grad(special.pseudo_huber, argnums=(0, 1))(0.0, 0.0) == (0.0, 0.0)
    assert ft.grad(special.pseudo_huber, argnums=(0, 1))(0.0, 2.0) == (2.0, 0.0)
    assert ft.grad(special.pseudo_huber, argnums=(0, 1))(-1.0, 2.0) == (0.0, 0.0)


def test_transformations_of_zero() -> None:
    np.testing.assert_allclose(ft.grad(special.boxcox, argnums=1)(0.0, 2.0), 0.25)


def test_exponential_integrals_of_low_order() -> None:
    np.testing.assert_allclose(ft.grad(special.expn, argnums=1)(0, 2.0), -np.exp(-2.0) * 0.75, rtol=1e-14)
    np.testing.assert_allclose(ft.grad(special.expn, argnums=1)(3, 0.0), -1.0, rtol=1e-14)
    with pytest.raises(NotImplementedError, match="expn has no derivative with respect to n"):
        ft.grad(special.expn)(2.0, 1.0)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_periodic_sinc(n: int) -> None:
    x = np.array([0.0, 2 * np.pi, -4 * np.pi, 1.0, 3.0])
    np.testing.assert_allclose(ft.jit(special.diric)(x, n), scipy.special.diric(x, n), rtol=1e-12, atol=1e-15)
    odd = np.sin(n * x[3:] / 2) / (n * np.sin(x[3:] / 2))
    curvature = np.array([ft.grad(ft.grad(special.diric))(v, n) for v in x[:3]])
    np.testing.assert_allclose(curvature, np.array([1, (-1) ** (n - 1), 1]) * (1 - n * n) / 12, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(ft.jit(special.diric)(x[3:], n), odd, rtol=1e-13)
    assert np.isnan(ft.jit(special.diric)(1.0, 1.5))


# Sums of exponentials


def test_logsumexp_with_nothing_in_some_terms() -> None:
    x = np.array([-np.inf, 1.0, -np.inf, 2.0])
    share = np.array([0, 1 / (1 + np.e), 0, np.e / (1 + np.e)])
    np.testing.assert_allclose(ft.grad(special.logsumexp)(x), share, rtol=1e-14)
    expected = np.diag(share) - np.outer(share, share)
    for hessian in (
        ft.jacfwd(ft.jacrev(special.logsumexp)),
        ft.jacrev(ft.jacrev(special.logsumexp)),
        ft.hessian(special.logsumexp),
    ):
        np.testing.assert_allclose(hessian(x), expected, rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(ft.jit(ft.grad(special.logsumexp))(x), share, rtol=1e-14)
    empty = np.full(3, -np.inf)
    assert not np.any(ft.grad(special.logsumexp)(empty))
    assert ft.jit(special.logsumexp)(empty) == -np.inf
    full = np.array([np.inf, 1.0, np.inf])
    assert ft.jit(special.logsumexp)(full) == np.inf
    np.testing.assert_allclose(ft.grad(special.logsumexp)(full), [0.5, 0, 0.5])


def test_logsumexp_keeps_small_terms_and_huge_ones() -> None:
    x = np.array([0.0, -50.0])
    np.testing.assert_allclose(ft.jit(special.logsumexp)(x), np.exp(-50.0), rtol=1e-14)
    # Of many numbers, small terms are added up by themselves only if some row has such a sum.
    rows = np.full((3, 4000), -50.0)
    rows[0, 0], rows[1] = 0.0, 1.0
    expected = [np.log1p(3999 * np.exp(-50.0)), 1 + np.log(4000), np.log(4000) - 50]
    for f in (special.logsumexp, ft.jit(special.logsumexp, static_argnames="axis")):
        np.testing.assert_allclose(f(rows, axis=1), expected, rtol=1e-14)
    np.testing.assert_allclose(ft.grad(special.logsumexp)(np.array([1e4, 1e4, -1e4])), [0.5, 0.5, 0])
    np.testing.assert_allclose(ft.hessian(special.logsumexp)(np.array([1e4, 1e4])), [[0.25, -0.25], [-0.25, 0.25]])


def test_logsumexp_with_weights() -> None:
    x, b = np.array([1.0, 2.0, 800.0, -np.inf]), np.array([-3.0, 1.0, 0.0, 2.0])
    total = np.e**2 - 3 * np.e

    def both(x: Any, b: Any) -> Any:
        return special.logsumexp(x, b=b, return_sign=True)

    np.testing.assert_allclose(ft.jit(both)(x, b), scipy.special.logsumexp(x, b=b, return_sign=True), rtol=1e-13)
    along_x, along_b = ft.grad(lambda x, b: both(x, b)[0], argnums=(0, 1))(x, b)
    np.testing.assert_allclose(along_x, [-3 * np.e / total, np.e**2 / total, 0, 0], rtol=1e-12)
    np.testing.assert_allclose(along_b[[0, 1, 3]], [np.e / total, np.e**2 / total, 0], rtol=1e-12)
    assert abs(along_b[2]) > 1e150
    assert np.isnan(ft.jit(lambda x: special.logsumexp(x, b=np.array([1.0, -1.0, 0.0, 1.0])))(x))
    assert both(np.zeros(2), np.array([1.0, -1.0])) == (-np.inf, 0)
    assert ft.jit(both)(np.zeros(2), np.array([1.0, -1.0])) == (-np.inf, 0)


@pytest.mark.parametrize("axis", [None, 0, (0, 1), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_along_axes(axis: Any, keepdims: bool) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 2))
    for operand, b in ((x, None), (x + 1j * x[::-1], None), (x, np.array([1.0, 2.0]))):
        expected = scipy.special.logsumexp(operand, axis=axis, b=b, keepdims=keepdims)
        (found,) = ft.trace(lambda x, b=b: special.logsumexp(x, axis=axis, b=b, keepdims=keepdims))(operand)(operand)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_logsumexp_of_few_things() -> None:
    assert ft.jit(special.logsumexp)(3.0) == 3.0
    assert ft.jit(special.logsumexp)(np.zeros(0)) == -np.inf
    assert ft.jit(special.logsumexp)(np.array([1, 2])).dtype == np.float64
    assert ft.jit(special.logsumexp)(np.ones(2, np.float32)).dtype == np.float32


def test_shares_with_nothing_in_some_terms() -> None:
    x = np.array([-np.inf, 0.0, 1000.0])
    np.testing.assert_allclose(ft.jit(special.softmax)(x), [0, 0, 1])
    assert np.all(np.isfinite(ft.jacobian(special.softmax)(x)))
    np.testing.assert_allclose(ft.jacobian(special.log_softmax)(x)[1], [0, 1, -1])


# As a user writes it


def test_functions_of_scipy_itself_take_traced_values() -> None:
    x = np.array([0.3, 0.8])
    np.testing.assert_allclose(ft.grad(lambda x: np.sum(scipy.special.ndtr(x) * x))(x).shape, (2,))
    np.testing.assert_allclose(ft.vmap(ft.grad(scipy.special.erfcx))(x), [ft.grad(special.erfcx)(v) for v in x])
    np.testing.assert_allclose(ft.grad(lambda x: np.sum(ft.vmap(special.dawsn)(x)))(x), 1 - 2 * x * special.dawsn(x))
    third = ft.grad(ft.grad(ft.grad(special.exprel)))(0.0)
    np.testing.assert_allclose(third, 0.25, rtol=1e-14)
    assert not ft.grad(lambda x: special.round(x) * 1.0)(0.3)


@pytest.mark.parametrize("point", [(0.47, -3.1, 2.9), (1.9, -0.55, -2.2), (0.3, 0.8, -0.5), (20.0, -1.3, 0.0)])
def test_voigt_profile_of_negative_widths_as_in_scipy(point: tuple[float, float, float]) -> None:
    for place in range(3 if point[2] else 2):
        step = 1e-4
        low, high = (
            scipy.special.voigt_profile(*(x + side * step * (i == place) for i, x in enumerate(point)))
            for side in (-1, 1)
        )
        found = ft.grad(scipy.special.voigt_profile, argnums=place)(*point)
        np.testing.assert_allclose(found, (high - low) / (2 * step), rtol=1e-5, atol=1e-12)


def test_means_and_integrals_of_zero() -> None:
    grads = ft.grad(scipy.special.agm, argnums=(0, 1))
    assert grads(0.0, 2.0) == (math.inf, 0.0)
    assert grads(2.0, 0.0) == (0.0, math.inf)
    assert grads(0.0, -2.0) == (-math.inf, 0.0)
    # R_C(0, y) = pi / (2 sqrt(y)); in x its slope at 0 is infinite, which must not spoil that in y.
    x, y = np.zeros(2), np.array([0.7, 2.9])
    expected = -math.pi / 4 * y**-1.5
    (_, tangent) = ft.jvp(lambda y: scipy.special.elliprc(x, y), (y,), (np.ones(2),))
    np.testing.assert_allclose(tangent, expected, rtol=1e-14)
    np.testing.assert_allclose(ft.grad(lambda y: np.sum(scipy.special.elliprc(x, y)))(y), expected, rtol=1e-14)


@pytest.mark.parametrize("name", ["rel_entr", "kl_div"])
def test_relative_entropy_everywhere_as_in_scipy(name: str) -> None:
    points = np.array([-1.0, 0.0, 1e-300, 0.7, 0.7000001, 3.0, np.inf, -np.inf, np.nan])
    x, y = np.meshgrid(points, points)
    f = getattr(scipy.special, name)
    is_finite = np.isfinite(x) | np.isfinite(y) | np.isnan(x) | np.isnan(y)
    found = ft.jit(f)(x, y)
    np.testing.assert_allclose(found[is_finite], f(x, y)[is_finite], rtol=1e-12, atol=1e-15)
    slopes = ft.grad(lambda x, y: np.sum(f(x, y)), argnums=(0, 1))
    for place, (plain, compiled) in enumerate(zip(slopes(x, y), ft.jit(slopes)(x, y), strict=True)):
        np.testing.assert_allclose(plain, compiled, rtol=1e-12, err_msg=str(place))
        assert np.all(np.isnan(plain[(np.isnan(x) & (y > 0)) | ((x > 0) & np.isnan(y))]))
        assert not np.any(plain[(x < 0) & (y > 0)])


def test_mixed_derivative_of_powm1_at_the_power_0() -> None:
    # The derivative of y x**(y - 1) in y.
    mixed = ft.grad(ft.grad(scipy.special.powm1), argnums=1)
    np.testing.assert_allclose([mixed(4.0, 0.0), ft.jit(mixed)(4.0, 0.0)], 0.25)
    assert ft.grad(scipy.special.powm1)(0.0, 0.0) == 0.0
