"""Distributions where formulas fail: outside of and at the ends of the support, in the tails, for wrong parameters."""

from __future__ import annotations

import doctest
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.stats
from checks import differences

import ftrans as ft
from ftrans.numpy.dispatch import TABLE
from ftrans.scipy import stats
from ftrans.scipy.stats import distribution, multivariate

CONTINUOUS = {
    "norm": (), "cauchy": (), "laplace": (), "logistic": (), "gumbel_r": (), "gumbel_l": (), "t": (2.5,),
    "skewnorm": (1.3,), "vonmises": (1.7,), "expon": (), "gamma": (2.3,), "chi2": (3.1,), "invgamma": (2.2,),
    "f": (3.3, 4.2), "lognorm": (0.7,), "weibull_min": (1.6,), "weibull_max": (1.6,), "rayleigh": (), "maxwell": (),
    "halfnorm": (), "pareto": (2.4,), "beta": (1.7, 2.6), "uniform": (), "triang": (0.3,), "genextreme": (0.3,),
    "truncnorm": (-0.7, 1.8),
}  # fmt: skip
DISCRETE = {
    "bernoulli": (0.3,), "binom": (5.0, 0.3), "poisson": (2.2,), "geom": (0.3,), "nbinom": (3.0, 0.4),
    "randint": (1.0, 6.0),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.filterwarnings("ignore")
def test_everywhere_as_in_scipy(name: str) -> None:
    shapes = (*CONTINUOUS[name], 0.2, 1.4)
    ours, original = getattr(stats, name), getattr(scipy.stats, name)
    x = np.concatenate([original.ppf([0.1, 0.8], *shapes), [-40.0, 40.0, np.nan, np.inf, -np.inf]])
    if name == "vonmises":
        x = x[:-2]
    for method in [m for m in ours.methods if m in vars(ours)]:
        points = np.array([0.0, 0.3, 1.0, 1.5, -0.5, 1e-12]) if method in ("ppf", "isf") else x
        expected = getattr(original, method)(points, *shapes)
        (found,) = ft.trace(getattr(ours, method))(points, *shapes)(points, *shapes)
        # SciPy's own is not a number at some infinities.
        expected = np.where(np.isinf(points) & np.isnan(expected), found, expected)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-18, err_msg=method)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_first_derivatives_of_all_methods(name: str) -> None:
    shapes = (*CONTINUOUS[name], 0.2, 1.4)
    ours, original = getattr(stats, name), getattr(scipy.stats, name)
    middle = original.ppf([0.37, 0.6], *shapes)
    for method in [m for m in ours.methods if m in vars(ours)]:
        args = [np.array([0.1, 0.8]) if method in ("ppf", "isf") else middle, *map(np.array, shapes)]

        def total(*args: Any, method: str = method) -> Any:
            return np.sum(getattr(ours, method)(*args))

        slopes = ft.grad(total, argnums=tuple(range(len(args))))(*args)
        for i, slope in enumerate(slopes):
            tangents = [np.ones_like(x) if i == j else None for j, x in enumerate(args)]
            (expected,) = differences(lambda *xs, m=method: [np.sum(getattr(original, m)(*xs))], args, tangents)
            np.testing.assert_allclose(np.sum(slope), expected, rtol=1e-6, atol=1e-8, err_msg=f"{method} {i}")


@pytest.mark.parametrize("name", CONTINUOUS)
def test_nothing_depends_on_parameters_outside_of_the_support(name: str) -> None:
    low, high = getattr(scipy.stats, name).support(*CONTINUOUS[name], 0.2, 1.4)
    ends = [-1200.0, 1200.0] if name in ("gumbel_r", "gumbel_l") else [low - 1.0, high + 1.0]
    outside = np.array([x for x in ends if np.isfinite(x)])
    args = (outside, *CONTINUOUS[name], 0.2, 1.4)
    places = tuple(range(len(args)))
    distribution = getattr(stats, name)
    for method in ("pdf", "cdf") if name.startswith("gumbel") else ("pdf", "logpdf", "cdf"):
        if method in vars(distribution) and outside.size:
            function = getattr(distribution, method)
            assert not any(np.any(s) for s in ft.jacfwd(function, argnums=places)(*args)), method
            second = ft.jacrev(ft.jacrev(function, argnums=len(args) - 1), argnums=places)(*args)
            assert not any(np.any(s) for s in second), method


# The ends of the support, where the density is a power or has a limit


ENDS: list[tuple[str, tuple[float, ...], float, float]] = [
    # name, shapes, point, derivative of the density there
    ("expon", (), 0.0, -1.0),
    ("gamma", (1.0,), 0.0, -1.0),
    ("gamma", (2.0,), 0.0, 1.0),
    ("gamma", (3.0,), 0.0, 0.0),
    ("chi2", (4.0,), 0.0, 0.25),
    ("f", (4.0, 2.0), 0.0, 8.0),
    ("weibull_min", (1.0,), 0.0, -1.0),
    ("weibull_min", (2.0,), 0.0, 2.0),
    ("weibull_max", (2.0,), 0.0, -2.0),
    ("rayleigh", (), 0.0, 1.0),
    ("maxwell", (), 0.0, 0.0),
    ("beta", (2.0, 1.0), 0.0, 2.0),
    ("beta", (2.0, 3.0), 0.0, 12.0),
    ("beta", (1.0, 2.0), 1.0, -2.0),
    ("lognorm", (1.0,), 0.0, 0.0),
    ("invgamma", (1.0,), 0.0, 0.0),
    ("truncnorm", (0.0, 1.0), 0.0, 0.0),
    ("pareto", (1.0,), 1.0, -2.0),
]


@pytest.mark.parametrize(("name", "shapes", "point", "expected"), ENDS)
def test_densities_at_the_ends_of_the_support(
    name: str, shapes: tuple[float, ...], point: float, expected: float
) -> None:
    density = getattr(stats, name).pdf
    assert density(point, *shapes) == getattr(scipy.stats, name).pdf(point, *shapes)
    np.testing.assert_allclose(ft.grad(density)(point, *shapes), expected, rtol=1e-14)
    np.testing.assert_allclose(ft.jvp(lambda x: density(x, *shapes), (point,), (1.0,))[1], expected, rtol=1e-14)


def test_exponential_density_with_all_parameters() -> None:
    slopes = ft.grad(stats.expon.logpdf, argnums=(0, 1, 2))(0.0, 0.0, 2.0)
    np.testing.assert_allclose(slopes, [-0.5, 0.5, -0.5])


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_mass_of_binomials_at_the_ends(p: float) -> None:
    # (1 - p)**3, 3 p (1 - p)**2, 3 p**2 (1 - p), p**3
    expected = {0.0: [-3.0, 3.0, 0.0, 0.0], 1.0: [0.0, 0.0, -3.0, 3.0]}[p]
    k = np.arange(4)
    np.testing.assert_allclose(ft.jacfwd(lambda p: stats.binom.pmf(k, 3, p))(p), expected, atol=1e-14)
    np.testing.assert_allclose(ft.jacrev(lambda p: stats.binom.pmf(k, 3, p))(p), expected, atol=1e-14)
    second = {0.0: [6.0, -12.0, 6.0, 0.0], 1.0: [0.0, 6.0, -12.0, 6.0]}[p]
    np.testing.assert_allclose(ft.jacfwd(ft.jacrev(lambda p: stats.binom.pmf(k, 3, p)))(p), second, atol=1e-13)


def test_mass_where_nothing_is_left_to_chance() -> None:
    k = np.arange(3)
    np.testing.assert_allclose(ft.jacobian(stats.poisson.pmf, argnums=1)(k, 0.0), [-1.0, 1.0, 0.0])
    np.testing.assert_allclose(ft.jacobian(stats.bernoulli.pmf, argnums=1)(k, 0.0), [-1.0, 1.0, 0.0])
    np.testing.assert_allclose(ft.jacobian(stats.geom.pmf, argnums=1)(k + 1, 1.0), [1.0, -1.0, 0.0])
    np.testing.assert_allclose(ft.jacobian(stats.geom.cdf, argnums=1)(k + 1, 1.0), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(ft.jacobian(stats.nbinom.pmf, argnums=2)(k, 2.0, 1.0), [2.0, -2.0, 0.0])


@pytest.mark.parametrize("name", DISCRETE)
def test_masses_everywhere_as_in_scipy(name: str) -> None:
    k = np.array([-1.0, 0.0, 1.0, 2.0, 4.0, 9.0, 2.5, 1.7, np.nan])
    ours, original = getattr(stats, name), getattr(scipy.stats, name)
    for method in [m for m in ours.methods if m in vars(ours)]:
        with np.errstate(all="ignore"):
            (found,) = ft.trace(getattr(ours, method))(k, *DISCRETE[name])(k, *DISCRETE[name])
            expected = getattr(original, method)(k, *DISCRETE[name])
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-15, err_msg=method)


# The tails


def test_normal_tails() -> None:
    mp.mp.dps = 40
    compiled = ft.jit(ft.grad(ft.grad(stats.norm.logsf)))
    for x in (-8.0, -38.0, -1e3, -1e8):
        ratio = mp.npdf(x) / mp.ncdf(x) if x > -1e4 else -mp.mpf(x) - 1 / mp.mpf(x)
        second = -ratio * (ratio + x)
        np.testing.assert_allclose(ft.grad(stats.norm.logcdf)(x), float(ratio), rtol=1e-14)
        np.testing.assert_allclose(ft.grad(ft.grad(stats.norm.logcdf))(x), float(second), rtol=1e-12)
        np.testing.assert_allclose(compiled(-x), float(second), rtol=1e-12)


def test_truncated_normal_far_from_the_middle() -> None:
    mp.mp.dps = 40

    def reference(x: Any, a: Any, b: Any) -> Any:
        mass = mp.ncdf(-a) - mp.ncdf(-b) if a > 0 else mp.ncdf(b) - mp.ncdf(a)
        return -x * x / 2 - mp.log(mass)

    for args in ((30.5, 30.0, 32.0), (-30.5, -31.0, -30.0), (0.3, -2.0, 1.0)):
        for i, place in enumerate(((1, 0, 0), (0, 1, 0), (0, 0, 1))):
            expected = float(mp.diff(reference, args, place))
            np.testing.assert_allclose(
                ft.grad(stats.truncnorm.logpdf, argnums=i)(*args), expected, rtol=1e-9, atol=1e-12
            )
    for a, b in ((-np.inf, 1.0), (0.0, np.inf), (-np.inf, np.inf)):
        slopes = ft.grad(stats.truncnorm.logpdf, argnums=(0, 1, 2))(0.5, a, b)
        assert np.all(np.isfinite(slopes))
        assert [s == 0 for s in slopes[1:]] == [bool(np.isinf(a)), bool(np.isinf(b))]


def test_extreme_values_meet_the_gumbel_distribution() -> None:
    x = np.array([-1.0, 0.5, 2.0])
    for method in ("logpdf", "cdf", "sf", "logcdf"):
        gumbel, extreme = getattr(stats.gumbel_r, method), getattr(stats.genextreme, method)
        np.testing.assert_allclose(
            ft.jacobian(extreme)(x, 0.0).diagonal(), ft.jacobian(gumbel)(x).diagonal(), rtol=1e-13, atol=1e-15
        )
        near = ft.jacobian(extreme, argnums=1)(x, 1e-7)
        np.testing.assert_allclose(ft.jacobian(extreme, argnums=1)(x, 0.0), near, rtol=1e-5)


# Arguments


def test_wrong_parameters_give_nan() -> None:
    for call in (
        lambda s: stats.norm.pdf(0.5, 0.0, s),
        lambda s: stats.gamma.logpdf(0.5, s),
        lambda s: stats.geom.pmf(1, s),
    ):
        assert np.isnan(ft.jit(call)(-1.0))
    assert np.isnan(ft.jit(stats.norm.ppf)(1.5))


def test_single_precision_is_kept() -> None:
    x = np.array([0.5, 1.0], np.float32)
    assert stats.gamma.logpdf(x, 2.0).dtype == ft.jit(stats.gamma.logpdf)(x, 2.0).dtype == np.float32
    assert stats.poisson.pmf(np.array([1, 2]), x).dtype == ft.jit(stats.poisson.pmf)(np.array([1, 2]), x).dtype
    assert ft.grad(lambda x: np.sum(stats.t.cdf(x, 3.0)))(x).dtype == np.float32


def test_variables_by_their_names() -> None:
    assert ft.grad(lambda m: stats.norm.pdf(x=1.0, loc=m))(0.2) == ft.grad(stats.norm.pdf, argnums=1)(1.0, 0.2)
    assert ft.grad(lambda m: stats.norm.ppf(q=0.3, loc=m))(0.2) == 1.0
    assert ft.grad(lambda m: stats.poisson.cdf(k=2, mu=m))(0.2) == ft.grad(stats.poisson.cdf, argnums=1)(2, 0.2)
    with pytest.raises(TypeError, match="takes the variable x and at most 2"):
        ft.grad(lambda m: stats.norm.pdf(loc=m))(0.2)


def test_at_infinity_nothing_depends_on_the_place() -> None:
    x = np.array([np.inf, -np.inf])
    for family, shapes in ((stats.genextreme, (0.3,)), (stats.norm, ()), (stats.gamma, (2.0,))):
        for method in (family.pdf, family.cdf, family.logsf):
            slopes = ft.grad(lambda *a, f=method, s=shapes: np.sum(f(x, *s, *a)), argnums=(0, 1))(0.2, 1.4)
            assert slopes == (0.0, 0.0)


def test_laplace_far_out() -> None:
    assert ft.grad(stats.laplace.logcdf)(-1e10) == 1.0
    assert ft.grad(stats.laplace.logsf)(1e10) == -1.0


def test_errors_say_what_there_is() -> None:
    with pytest.raises(AttributeError, match=r"norm has no 'fit'; it has pdf, logpdf, cdf"):
        _ = stats.norm.fit
    with pytest.raises(AttributeError, match=r"multivariate_normal has no 'rvs'; it has logpdf, pdf"):
        _ = stats.multivariate_normal.rvs
    with pytest.raises(AttributeError, match=r"no 'kappa4'; it has bernoulli, beta"):
        _ = stats.kappa4
    with pytest.raises(TypeError, match=r"at most 2 parameters \(loc, scale\); 4 positional"):
        ft.grad(stats.norm.pdf)(1.0, 2.0, 3.0, 4.0)
    with pytest.raises(TypeError, match=r"gamma\.pdf lacks its parameter 'a'"):
        ft.grad(stats.gamma.pdf)(1.0)
    with pytest.raises(TypeError, match="'mu' is none of its parameters loc, scale"):
        ft.grad(lambda x: stats.norm.pdf(x, mu=1.0))(1.0)
    with pytest.raises(TypeError, match="'loc' was given twice"):
        ft.grad(lambda x: stats.norm.pdf(x, 1.0, loc=1.0))(1.0)
    with pytest.raises(ValueError, match=r"takes 2 numbers for its middle and a matrix of shape \(2, 2\)"):
        ft.grad(stats.multivariate_normal.logpdf)(np.zeros(2), np.zeros(2), np.eye(3))


@pytest.mark.parametrize("cov", [np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([2.0, 1.0]), np.array(2.0)])
def test_forms_of_the_covariance(cov: Any) -> None:
    x, mean = np.array([[0.5, -1.0], [2.0, 0.1]]), np.array([0.2, 0.4])
    expected = scipy.stats.multivariate_normal.logpdf(x, mean, cov)
    (found,) = ft.trace(stats.multivariate_normal.logpdf)(x, mean, cov)(x, mean, cov)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    wide = cov if cov.ndim == 2 else np.diag(np.broadcast_to(cov, 2))
    slope = ft.grad(stats.multivariate_normal.logpdf)(x[0], mean, cov)
    np.testing.assert_allclose(slope, -np.linalg.solve(wide, x[0] - mean), rtol=1e-13)


@pytest.mark.parametrize("module", [stats, distribution, multivariate])
def test_examples_in_docstrings(module: Any) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


# What depends on parameters alone, and frozen distributions


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_moments_and_entropies_as_in_scipy(name: str) -> None:
    shapes = {**CONTINUOUS, **DISCRETE}[name]
    params = (*shapes, 0.2, 1.4) if name in CONTINUOUS else (*shapes, 2.0)
    ours, original = getattr(stats, name), getattr(scipy.stats, name)
    for method in [m for m in ("mean", "var", "std", "entropy", "median", "interval") if m in vars(ours)]:
        first = (0.9,) if method == "interval" else ()

        def value(*params: Any, method: str = method, first: Any = first) -> Any:
            return np.sum(getattr(ours, method)(*first, *params))

        expected = np.sum(getattr(original, method)(*first, *params))
        found, slopes = ft.value_and_grad(value, argnums=tuple(range(len(params))))(*params)
        np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=method)
        if name in DISCRETE and name not in ("bernoulli", "poisson"):
            continue

        def reference(t: Any, method: str = method, first: Any = first) -> Any:
            return [np.sum(getattr(original, method)(*first, *(p + t for p in params)))]

        (difference,) = differences(reference, [np.array(0.0)], [np.array(1.0)])
        np.testing.assert_allclose(np.sum(slopes), difference, rtol=1e-6, atol=1e-8, err_msg=method)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_random_numbers_are_those_of_scipy_and_follow_place_and_scale(name: str) -> None:
    shapes = CONTINUOUS[name]
    expected = getattr(scipy.stats, name).rvs(*shapes, 0.2, 1.4, size=(2, 3), random_state=5)

    def draw(loc: Any, scale: Any) -> Any:
        return getattr(stats, name).rvs(*shapes, loc, scale, size=(2, 3), random_state=5)

    for f in (draw, ft.jit(draw)) if name in ("norm", "vonmises") else (draw,):
        x, slope = ft.jvp(f, (0.2, 1.4), (0.3, 0.7))
        np.testing.assert_allclose(x, expected, rtol=1e-14)
        if name != "vonmises":
            np.testing.assert_allclose(slope, 0.3 + 0.7 * (expected - 0.2) / 1.4, rtol=1e-12, atol=1e-14)


def test_frozen_distributions() -> None:
    for params, kwargs in (((0.3, 2.0), {}), ((0.3,), {"scale": 2.0})):
        frozen, original = stats.norm(*params, **kwargs), scipy.stats.norm(*params, **kwargs)
        assert isinstance(frozen, type(original))
        assert (frozen.pdf(1.0), frozen.mean()) == (original.pdf(1.0), original.mean())
        assert frozen.interval(0.9) == original.interval(0.9)
        assert frozen.support() == original.support()
        assert frozen.rvs(2, random_state=1).tolist() == original.rvs(2, random_state=1).tolist()
    assert ft.grad(lambda m: stats.norm(m, 2.0).logpdf(1.0))(0.0) == 0.25
    assert ft.grad(lambda x: stats.norm(0.0, 2.0).logpdf(x))(1.0) == -0.25
    assert ft.jit(ft.grad(lambda s: stats.norm(1.0, scale=s).rvs(random_state=1)))(2.0) == scipy.stats.norm.rvs(
        random_state=1
    )
    assert ft.grad(lambda mu: stats.poisson(mu).logpmf(3))(2.0) == 0.5
    covariance = np.array([[2.0, 0.3], [0.3, 1.0]])
    slope = ft.grad(lambda c: stats.multivariate_normal(None, c).logpdf([0.3, -1.0]))(covariance)
    np.testing.assert_allclose(
        slope, ft.grad(lambda c: stats.multivariate_normal.logpdf([0.3, -1.0], None, c))(covariance), rtol=1e-14
    )
    assert repr(stats.norm(1.0, scale=2.0)) == "ftrans.scipy.stats.norm(1.0, scale=2.0)"
    with pytest.raises(AttributeError, match="'expect'; it has pdf"):
        ft.grad(lambda m: stats.norm(m).expect())(0.0)


def test_distributions_that_scipy_made() -> None:
    def call(made: Any, method: str) -> Any:
        return TABLE[getattr(type(made), method)]

    norm, normal = scipy.stats.norm, scipy.stats.multivariate_normal
    assert ft.grad(lambda x: call(norm, "logpdf")(norm, x))(1.0) == -1.0
    assert ft.grad(lambda m: call(norm, "__call__")(norm, m).logpdf(1.0))(0.0) == 1.0
    for frozen, x, expected in (
        (norm(0.0, 2.0), 1.0, -0.25),
        (scipy.stats.gamma(3.0, scale=2.0), 1.0, 1.5),
        (normal([0.0, 1.0]), np.array([1.0, 3.0]), [-1.0, -2.0]),
        (scipy.stats.dirichlet([2.0, 3.0]), np.array([0.5, 0.5]), [2.0, 4.0]),
    ):
        slope = ft.grad(lambda x, f=frozen: call(f, "logpdf")(f, x))(x)
        np.testing.assert_allclose(slope, expected, rtol=1e-14)
    with pytest.raises(NotImplementedError, match=r"levy has no traced form; ftrans\.scipy\.stats has bernoulli"):
        ft.grad(lambda x: call(norm, "logpdf")(scipy.stats.levy, x))(1.0)


def test_singular_covariances() -> None:
    rng = np.random.default_rng(0)
    a, b, z = rng.standard_normal((3, 2)), rng.standard_normal((3, 2)), rng.standard_normal((4, 2))

    def log_likelihood(t: Any) -> Any:
        turned = a + t * b
        return np.sum(stats.multivariate_normal.logpdf(z @ turned.T, None, turned @ turned.T, allow_singular=True))

    def expected(t: Any) -> Any:
        turned = a + t * b
        return -0.5 * np.sum(z * z) - 2 * np.linalg.slogdet(turned.T @ turned)[1] - 4 * np.log(2 * np.pi)

    assert ft.grad(log_likelihood)(0.1) == pytest.approx(ft.grad(expected)(0.1), rel=1e-12)
    assert ft.jit(ft.hessian(log_likelihood))(0.1) == pytest.approx(ft.hessian(expected)(0.1), rel=1e-10)
    beside = np.ones(3)
    assert scipy.stats.multivariate_normal.logpdf(beside, None, a @ a.T, allow_singular=True) == -np.inf
    (found,) = ft.trace(lambda x: stats.multivariate_normal.logpdf(x, None, a @ a.T, allow_singular=True))(beside)(
        beside
    )
    assert found == -np.inf
    with pytest.raises(ValueError, match="symmetric positive semidefinite"):
        ft.grad(lambda x: stats.multivariate_normal.logpdf(x, None, -np.eye(3), allow_singular=True))(beside)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: stats.gamma.rvs(x, size=3), TypeError, r"follows loc and scale.*gamma\.ppf\(u"),
        (lambda x: stats.poisson.rvs(x), TypeError, "draws whole numbers"),
        (lambda x: stats.norm.rvs(0.0, -x), ValueError, "positive scale"),
        (lambda x: stats.gaussian_kde([x]), ValueError, "as many as dimensions"),
        (lambda x: stats.gaussian_kde([x, 2.0, 4.0], "best"), ValueError, "'scott', 'silverman'"),
        (lambda x: stats.gaussian_kde([x, 2.0, 4.0])([[1.0], [2.0]]), ValueError, "points have dimension 2"),
        (lambda x: stats.gaussian_kde([x, 2.0, 4.0]).resample(3), TypeError, "has no derivative"),
        (lambda x: stats.gaussian_kde([x, 2.0], weights=[1.0]), ValueError, "length n"),
    ],
)
def test_mistakes_with_samples(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}.*test_stats.py"):
        ft.grad(call)(1.0)
