"""Derivatives of gamma, beta, zeta and distribution functions where they are hard, against mpmath and closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.special

import ftrans as ft
from ftrans.core.primitive import MissingRule
from ftrans.scipy import special


def precise(f: Callable[..., Any], point: tuple[Any, ...], orders: tuple[int, ...], digits: int = 40) -> complex:
    """A mixed partial derivative by differences in many digits."""
    with mpmath.workdps(digits):
        return complex(mpmath.diff(f, tuple(map(mpmath.mpmathify, point)), orders))


def ours(f: Callable[..., Any], point: tuple[float, ...], orders: tuple[int, ...]) -> float:
    """The same by repeated reverse mode."""
    for place, order in enumerate(orders):
        for _ in range(order):
            f = ft.grad(f, argnums=place)
    return float(f(*point))


def lower_gamma(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def lower_beta(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


# From the lower tail to the upper one, for small and large parameters
GAMMA_POINTS = [
    (1e-3, 1e-5), (1e-3, 2.0), (0.3, 1e-8), (0.3, 0.9), (0.3, 1.1), (0.3, 30.0), (1.0, 0.5), (4.0, 0.2), (4.0, 4.0),
    (4.0, 40.0), (80.0, 30.0), (80.0, 70.0), (80.0, 150.0), (3e3, 2.9e3), (3e3, 3.2e3),
]  # fmt: skip


@pytest.mark.parametrize("point", GAMMA_POINTS)
@pytest.mark.parametrize("orders", [(1, 0), (2, 0), (1, 1)])
def test_gammainc_in_its_parameter(point: tuple[float, float], orders: tuple[int, int]) -> None:
    expected = precise(lower_gamma, point, orders, 120).real
    assert ours(special.gammainc, point, orders) == pytest.approx(expected, rel=3e-11, abs=1e-300)
    assert ours(special.gammaincc, point, orders) == pytest.approx(-expected, rel=3e-11, abs=1e-300)


BETA_POINTS = [
    (0.01, 0.02, 0.3), (0.01, 0.02, 0.999), (0.5, 0.5, 1e-6), (2.0, 0.1, 0.7), (0.1, 30.0, 0.2), (3.0, 4.0, 0.45),
    (60.0, 90.0, 0.2), (60.0, 90.0, 0.4), (60.0, 90.0, 0.6), (150.0, 0.7, 0.98),
]  # fmt: skip


@pytest.mark.parametrize("point", BETA_POINTS)
@pytest.mark.parametrize("orders", [(1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 2, 0), (1, 0, 1)])
def test_betainc_in_its_parameters(point: tuple[float, ...], orders: tuple[int, ...]) -> None:
    expected = precise(lower_beta, point, orders, 80).real
    assert ours(special.betainc, point, orders) == pytest.approx(expected, rel=3e-11, abs=1e-300)


def test_third_derivatives() -> None:
    assert ours(special.gammainc, (2.5, 1.5), (3, 0)) == pytest.approx(precise(lower_gamma, (2.5, 1.5), (3, 0)).real)
    expected = precise(lower_beta, (2.0, 3.0, 0.4), (1, 2, 0)).real
    assert ours(special.betainc, (2.0, 3.0, 0.4), (1, 2, 0)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("f", "point"),
    [
        (special.gammainc, (1e5, 1e5 + 300.0)),
        (special.gammainc, (1e5, 9e4)),
        (special.gammaincc, (2.0, 700.0)),
        (special.gammainc, (50.0, 1e-4)),
        (special.betainc, (3e4, 5e4, 0.376)),
        (special.betainc, (100.0, 2.0, 1e-2)),
        (special.betainc, (2.0, 300.0, 0.9)),
    ],
)
def test_far_out_derivatives_are_differences_of_logarithms(f: Callable[..., Any], point: tuple[float, ...]) -> None:
    # Derivatives of the logarithm are moderate numbers where the function itself is tiny.
    value = f(*point)
    for place, x in enumerate(point):
        step = 1e-5 * x

        def log_at(h: float, place: int = place) -> float:
            moved = list(point)
            moved[place] += h
            return math.log(f(*moved))

        expected = (8 * (log_at(step) - log_at(-step)) - (log_at(2 * step) - log_at(-2 * step))) / (12 * step)
        slope = ft.grad(f, argnums=place)(*point) / value
        assert slope == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("f", [special.gammainc, special.gammaincc])
def test_gammainc_at_its_ends(f: Callable[..., Any]) -> None:
    ends = np.array([0.0, np.inf, 0.0, 0.0, 1e308])
    shapes = np.array([2.0, 2.0, 1.0, 3.0, 0.5])
    sign = 1 if f is special.gammainc else -1
    in_a, in_x = ft.vmap(ft.grad(f, argnums=(0, 1)))(shapes, ends)
    np.testing.assert_array_equal(in_a, 0.0)
    np.testing.assert_array_equal(in_x, sign * np.array([0.0, 0.0, 1.0, 0.0, 0.0]))
    # The distribution function of the exponential distribution, at 0.
    assert ft.grad(ft.grad(f, argnums=1), argnums=1)(1.0, 0.0) == -sign


def test_betainc_at_its_ends() -> None:
    grads = ft.vmap(ft.grad(special.betainc, argnums=(0, 1, 2)))
    found = grads(np.array([2.0, 1.0, 2.0, 3.0]), np.array([3.0, 3.0, 1.0, 2.0]), np.array([0.0, 0.0, 1.0, 1.0]))
    np.testing.assert_array_equal(found, [np.zeros(4), np.zeros(4), [0.0, 3.0, 2.0, 0.0]])
    second = ft.grad(ft.grad(special.betainc, argnums=2), argnums=2)
    assert second(1.0, 3.0, 0.0) == pytest.approx(-6.0)
    assert second(2.0, 3.0, 0.0) == pytest.approx(12.0)
    assert second(3.0, 1.0, 1.0) == pytest.approx(6.0)


@pytest.mark.parametrize(("a", "b"), [(1e10, 1.0), (1e-12, 3.0), (2.0, 1e9), (1e6, 1e-9)])
def test_betaln_of_parameters_far_apart(a: float, b: float) -> None:
    def log_beta(a: Any, b: Any) -> Any:
        return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)

    for orders in [(1, 0), (0, 1)]:
        expected = precise(log_beta, (a, b), orders, 60).real
        assert ours(special.betaln, (a, b), orders) == pytest.approx(expected, rel=1e-12)
        at = orders.index(1)
        assert ft.jit(ft.grad(special.betaln, argnums=at))(a, b) == pytest.approx(expected, rel=1e-12)


def test_zeros_of_functions_with_poles_in_their_logarithms() -> None:
    for n in range(5):
        assert ft.grad(special.rgamma)(-float(n)) == pytest.approx((-1) ** n * math.factorial(n))
        second = precise(mpmath.rgamma, (-n,), (2,)).real
        assert ft.grad(ft.grad(special.rgamma))(-float(n)) == pytest.approx(second)
    # z (z + 1) (z + 2) (z + 3) at a factor that is 0, and where gamma(z + 4) has a pole too.
    assert ft.grad(special.poch)(-2.0, 4.0) == pytest.approx(-2 * -1 * 1)
    assert ft.grad(special.poch)(-4.0, 2.0) == pytest.approx(-4 + -3)
    # n (n - 1) (n - 2) / 6 at n = 2
    assert ft.grad(special.binom)(2.0, 3.0) == pytest.approx(2 / 6)


def test_poles_are_not_numbers_or_infinite() -> None:
    with np.errstate(all="ignore"):
        for f in (special.gamma, special.gammaln, special.psi):
            assert not np.isfinite(ft.grad(f)(-1.0))


@pytest.mark.parametrize("z", [1.5 + 2j, 0.3 - 0.1j, -3.5 + 0.2j, -0.5 - 30j, -200.3 + 1e-3j])
def test_complex_polygamma(z: complex) -> None:
    def slope(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda z: ft.jvp(f, (z,), (1.0 + 0j,))[1]

    first, second = slope(special.psi), slope(slope(special.psi))
    assert first(z) == pytest.approx(complex(mpmath.psi(1, z)), rel=1e-11)
    assert second(z) == pytest.approx(complex(mpmath.psi(2, z)), rel=1e-9)
    assert slope(special.loggamma)(z) == pytest.approx(complex(mpmath.psi(0, z)), rel=1e-12)


@pytest.mark.parametrize("s", [1.001, 2.5, 30.0, 0.5, 0.0, -0.9, -1.1, -2.0, -7.5, -40.3])
def test_riemann_zeta(s: float) -> None:
    for order in (1, 2):
        expected = float(mpmath.zeta(s, 1, order))
        assert ours(special.zeta, (s,), (order,)) == pytest.approx(expected, rel=1e-10)
        assert ours(special.zetac, (s,), (order,)) == pytest.approx(expected, rel=1e-10)


def takes_complex(f: Callable[..., Any]) -> bool:
    """Whether this version of SciPy has a function for complex numbers."""
    try:
        f(2.0 + 1.0j)
    except TypeError:
        return False
    return True


@pytest.mark.skipif(not takes_complex(scipy.special.zeta), reason="SciPy's zeta function takes real numbers only")
def test_riemann_zeta_of_complex_numbers() -> None:
    for s in (0.5 + 14j, -3.5 + 4j, 2 - 60j):
        slope = ft.jvp(special.zeta, (s,), (1.0 + 0j,))[1]
        assert slope == pytest.approx(complex(mpmath.diff(mpmath.zeta, s)), rel=1e-9)


@pytest.mark.parametrize(("s", "q"), [(1.01, 0.3), (2.5, 1.3), (9.0, 20.0), (30.0, 0.5)])
def test_hurwitz_zeta(s: float, q: float) -> None:
    for orders in [(1, 0), (2, 0), (1, 1), (0, 2)]:
        expected = precise(mpmath.zeta, (s, q), orders).real
        assert ours(special.zeta, (s, q), orders) == pytest.approx(expected, rel=1e-11)


def student(df: Any, t: Any) -> Any:
    tail = mpmath.betainc(df / 2, mpmath.mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


@pytest.mark.parametrize(("df", "t"), [(0.5, -300.0), (3.0, 1e-4), (7.0, 2.0), (500.0, -1.3), (4.0, -1e6)])
def test_student(df: float, t: float) -> None:
    for orders in [(1, 0), (0, 1), (1, 1)]:
        expected = precise(student, (df, t), orders).real
        assert ours(special.stdtr, (df, t), orders) == pytest.approx(expected, rel=1e-9)


def test_student_at_zero() -> None:
    assert ft.grad(special.stdtr)(3.0, 0.0) == 0
    mixed = ft.grad(ft.grad(special.stdtr, argnums=0), argnums=1)(3.0, 0.0)
    swapped = ft.grad(ft.grad(special.stdtr, argnums=1), argnums=0)(3.0, 0.0)
    density = lambda df: mpmath.gamma((df + 1) / 2) / mpmath.sqrt(df * mpmath.pi) / mpmath.gamma(df / 2)  # noqa: E731
    expected = precise(density, (3.0,), (1,)).real
    assert mixed == pytest.approx(expected)
    assert swapped == pytest.approx(expected)


@pytest.mark.parametrize("t", [-np.inf, np.inf])
def test_distributions_at_infinity(t: float) -> None:
    assert ft.grad(special.stdtr, argnums=(0, 1))(3.0, t) == (0, 0)
    assert ft.grad(special.fdtr, argnums=(0, 1, 2))(3.0, 4.0, abs(t)) == (0, 0, 0)
    normal = math.exp(-0.5) / math.sqrt(2 * math.pi)
    assert ft.grad(special.stdtr, argnums=(0, 1))(np.inf, 1.0) == (0, pytest.approx(normal))


def noncentral_chi_square(x: Any, df: Any, nc: Any) -> Any:
    return mpmath.nsum(
        lambda j: mpmath.exp(-nc / 2) * (nc / 2) ** j / mpmath.factorial(j) * lower_gamma(df / 2 + j, x / 2), [0, 80]
    )


def test_noncentral_chi_square() -> None:
    point = (6.0, 2.5, 3.0)
    for orders in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1)]:
        expected = precise(noncentral_chi_square, point, orders, 30).real
        assert ours(special.chndtr, point, orders) == pytest.approx(expected, rel=1e-10)


def test_noncentral_distributions_without_an_offset_are_central() -> None:
    assert ft.grad(special.chndtr)(3.0, 2.5, 0.0) == pytest.approx(ft.grad(special.chdtr, argnums=1)(2.5, 3.0))
    for place in (0, 1):
        f = ft.grad(special.ncfdtr, argnums=place)(3.0, 5.0, 0.0, 1.3)
        assert f == pytest.approx(ft.grad(special.fdtr, argnums=place)(3.0, 5.0, 1.3))
    for t in (-2.0, 0.7):
        assert ft.grad(special.nctdtr)(4.0, 0.0, t) == pytest.approx(ft.grad(special.stdtr)(4.0, t))


@pytest.mark.parametrize(
    ("inverse", "function", "unknown", "p", "args", "bounds"),
    [
        (special.nctdtridf, scipy.special.nctdtr, 0, 0, (0.3, 1.0, 0.7), (0.1, 2.0)),
        (special.ncfdtridfd, scipy.special.ncfdtr, 1, 1, (3.0, 0.3, 1.2, 0.9), (0.3, 9.0)),
        (special.ncfdtridfn, scipy.special.ncfdtr, 0, 0, (0.4, 5.0, 1.2, 0.3), (0.05, 1.0)),
        (special.ncfdtrinc, scipy.special.ncfdtr, 2, 2, (3.0, 5.0, 0.3, 0.9), (0.1, 9.0)),
    ],
)
def test_inverses_that_scipy_finds_roughly(
    inverse: Any, function: Any, unknown: int, p: int, args: tuple[float, ...], bounds: tuple[float, float]
) -> None:
    def solve(values: Any) -> float:
        rest = [v for i, v in enumerate(values) if i != p]

        def error(y: float) -> float:
            return function(*rest[:unknown], y, *rest[unknown:]) - values[p]

        return scipy.optimize.brentq(error, *bounds, xtol=1e-14)

    slopes = ft.grad(inverse, argnums=tuple(range(len(args))))(*args)
    for place, slope in enumerate(slopes):
        step = 1e-4 * np.eye(len(args))[place]
        assert slope == pytest.approx((solve(args + step) - solve(args - step)) / 2e-4, rel=1e-4)


def test_where_scipy_finds_no_solution_the_derivative_is_not_a_number() -> None:
    assert abs(math.log(special.ncfdtridfn(0.3, 5.0, 1.2, 0.9))) > 100
    assert np.isnan(ft.grad(special.ncfdtridfn)(0.3, 5.0, 1.2, 0.9))


def test_noncentral_distributions_at_zero() -> None:
    # Without an event, which has probability exp(-1), the density is that of the central distribution.
    assert ft.grad(special.chndtr)(0.0, 2.0, 2.0) == pytest.approx(math.exp(-1) / 2)
    assert ft.grad(special.ncfdtr, argnums=3)(2.0, 5.0, 2.0, 0.0) == pytest.approx(math.exp(-1))
    assert ft.grad(special.chndtr)(0.0, 3.0, 2.0) == 0
    assert ft.grad(special.chndtr, argnums=(1, 2))(0.0, 3.0, 2.0) == (0, 0)


@pytest.mark.parametrize("d", [0.02, 0.21, 0.5, 0.93])
def test_smirnov(d: float) -> None:
    n = 10

    def smirnov(d: Any) -> Any:
        top = math.floor(n * (1 - float(d)))
        return sum(
            mpmath.binomial(n, j) * d * (d + mpmath.mpf(j) / n) ** (j - 1) * (1 - d - mpmath.mpf(j) / n) ** (n - j)
            for j in range(top + 1)
        )

    for order in (1, 2, 3):
        assert ours(lambda x: special.smirnov(n, x), (d,), (order,)) == pytest.approx(
            precise(smirnov, (d,), (order,)).real, rel=1e-9
        )


@pytest.mark.parametrize("x", [0.05, 0.4, 0.89999, 0.90001, 2.0, 6.0])
def test_kolmogorov(x: float) -> None:
    def kolmogorov(x: Any) -> Any:
        if x > 0.2:
            return 2 * sum((-1) ** (k - 1) * mpmath.exp(-2 * k * k * x * x) for k in range(1, 30))
        terms = [mpmath.exp(-((k * mpmath.pi) ** 2) / (8 * x * x)) for k in (1, 3, 5)]
        return 1 - mpmath.sqrt(2 * mpmath.pi) / x * sum(terms)

    for order in (1, 2):
        expected = precise(kolmogorov, (x,), (order,), 450).real
        assert ours(special.kolmogorov, (x,), (order,)) == pytest.approx(expected, rel=1e-9)


def test_sure_events_have_no_slope() -> None:
    for f in (special.bdtr, special.bdtrc):
        for k in (-1, 5, 7):
            assert ft.grad(f, argnums=2)(k, 5, 0.3) == 0 or np.isnan(f(k, 5, 0.3))
    assert ft.grad(special.chdtrc, argnums=1)(3.0, -1.0) == 0
    assert ft.grad(special.tklmbda)(3.0, 0.5) == 0


def test_what_has_no_derivative_says_so() -> None:
    with pytest.raises(MissingRule, match=r"scipy\.special\.polygamma has no derivative with respect to n"):
        ft.grad(lambda n: special.polygamma(n, 2.0))(1.5)
    with pytest.raises(TypeError, match="leave exact out"):
        ft.grad(lambda n: special.comb(n, 2, exact=True))(5.0)
    with pytest.raises(ValueError, match="positive integer"):
        ft.grad(lambda a: special.multigammaln(a, 1.5))(5.0)


def test_multigammaln_outside_of_its_domain_is_not_a_number() -> None:
    assert np.isnan(ft.jit(lambda a: special.multigammaln(a, 3))(0.9))


# Compiled, where JAX's functions have other values than SciPy's


def test_compiled_polygamma_and_zeta_left_of_zero() -> None:
    x = np.array([-0.5, -3.3, -8.75, -9.25, -30.3, -200.25, -1.0, -10.0, 0.0, 1e-3, 2.5, 1e10, 1e300, np.inf, -np.inf])
    n, s = np.array([[1.0], [2.0], [3.0]]), np.array([[0.5], [1.0], [1.5], [2.0], [7.0]])
    np.testing.assert_allclose(ft.jit(special.polygamma)(n, x), scipy.special.polygamma(n, x), rtol=1e-11)
    np.testing.assert_allclose(ft.jit(special.zeta)(s, x), scipy.special.zeta(s, x), rtol=1e-11)
    with mpmath.workdps(30):
        expected = float(mpmath.psi(1, -30.3))
    second = ft.grad(ft.grad(special.gammaln))
    np.testing.assert_allclose([second(-30.3), ft.jit(second)(-30.3)], expected, rtol=1e-12)


def test_compiled_betaln_everywhere() -> None:
    x = np.array([-7.0, -3.4, -2.0, -1.0, -0.5, 0.0, 0.3, 1.0, 2.0, 6.5, 1e300])
    a, b = np.meshgrid(x, x)
    found = ft.jit(special.betaln)(a, b)
    np.testing.assert_allclose(found, scipy.special.betaln(a, b), rtol=1e-12, atol=1e-14)


# What SciPy makes of arguments outside of the usual domain, and derivatives of that


def slope(f: Callable[..., Any], point: tuple[float, ...], place: int) -> float:
    """A derivative by central differences of SciPy's values."""
    step = 1e-3 * max(abs(point[place]), 1e-2)
    weights = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
    moved = {k: [x + k * step if i == place else x for i, x in enumerate(point)] for k in weights}
    return float(sum(w * f(*moved[k]) for k, w in weights.items()) / step)


@pytest.mark.filterwarnings("ignore:.*truncated to an integer", "ignore:non-integer arg n is deprecated")
@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("expn", (2.7, 1.3)), ("expn", (0.7, 1.3)), ("kn", (2.7, 1.3)), ("kn", (-0.4, 1.3)), ("yn", (3.2, 2.3)),
        ("nbdtr", (2.7, 3.4, 0.4)), ("nbdtrc", (-0.3, 3.4, 0.4)), ("bdtr", (1.7, 5.0, 0.4)), ("pdtr", (2.7, 1.3)),
        ("pdtri", (1.6, 0.3)),
    ],
)  # fmt: skip
def test_orders_that_scipy_truncates(name: str, point: tuple[float, ...]) -> None:
    f, last = getattr(special, name), len(point) - 1
    np.testing.assert_allclose(ft.grad(f, argnums=last)(*point), slope(f, point, last), rtol=1e-7)


@pytest.mark.parametrize(
    ("name", "args"), [("bdtrik", (0.01, 5.0, 0.3)), ("nbdtrik", (0.01, 3.0, 0.5)), ("pdtrik", (0.01, 2.0))]
)
def test_no_events_where_even_their_probability_is_larger(name: str, args: tuple[float, ...]) -> None:
    f = getattr(special, name)
    assert f(*args) == 0
    assert ft.grad(f, argnums=tuple(range(len(args))))(*args) == (0.0,) * len(args)


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ((0.0828432, 2.42524, 3.54585), (1.12467836168, -0.0505574914019, 0.0195317869788)),
        ((0.816674, 4.15831, 4.2151), (0.117552726388, -0.103200635521, 0.0961569417834)),
    ],
)
def test_noncentral_t_of_few_degrees_of_freedom(point: tuple[float, ...], expected: tuple[float, ...]) -> None:
    # Expected are integrals by mpmath.quad over the logarithm of s, in 25 digits.
    np.testing.assert_allclose(ft.grad(special.nctdtr, argnums=(0, 1, 2))(*point), expected, rtol=2e-11)


def test_noncentral_f_with_impossible_parameters_is_not_a_number() -> None:
    slopes = ft.grad(special.ncfdtr, argnums=(0, 1, 2, 3))(1.0, 2.0, -1.0, 1.0)
    assert np.all(np.isnan(slopes))
    assert ft.grad(special.ncfdtr, argnums=(0, 1))(1.0, 2.0, 0.5, 0.0) == (0.0, 0.0)


def test_a_solution_counts_relative_to_its_probability() -> None:
    # SciPy returns the lower end of its search, where the probability is 2e-4 larger than it should be.
    args = (9.15001e-06, 37.5936, 0.000453031)
    assert np.all(np.isnan(ft.grad(special.chndtrinc, argnums=(0, 1, 2))(*args)))
