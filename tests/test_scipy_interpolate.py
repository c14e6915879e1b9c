"""Interpolators of SciPy: values and derivatives of all kinds, their objects, and points where pieces meet."""

from __future__ import annotations

import copy
import doctest
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import ftrans as ft
import ftrans.scipy.interpolate as module
from ftrans.core.primitive import MissingRule
from ftrans.numpy.dispatch import TABLE
from ftrans.scipy import interpolate
from ftrans.testing import check_grads

X = np.array([0.0, 0.4, 1.1, 1.5, 2.3, 2.9, 3.2])
Y = np.array([0.3, -0.8, 1.2, 0.1, 0.7, 2.0, -0.5])
INSIDE = np.array([0.2, 0.7, 1.3, 2.0, 3.0])
# Breakpoints, both ends, and points outside.
EVERYWHERE = np.concatenate([INSIDE, X, [-0.3, 3.6]])
CLOSED = np.append(Y[:-1], Y[0])


def assert_as_in_scipy(f: Callable[..., Any], *args: Any) -> None:
    """The same values from a function of `scipy.interpolate` and of ours, with arguments plain and traced in turn."""
    expected = f(scipy.interpolate, *args)
    np.testing.assert_array_equal(f(interpolate, *args), expected)
    for places in ([len(args) - 1], [len(args) - 2], range(len(args))):

        def part(*xs: Any, places: Any = places) -> Any:
            full = list(args)
            for i, x in zip(places, xs, strict=True):
                full[i] = x
            return f(interpolate, *full)

        xs = [args[i] for i in places]
        np.testing.assert_allclose(ft.vjp(part, *xs)[0], expected, rtol=1e-11, atol=1e-12)


CONDITIONS: list[Any] = ["not-a-knot", "natural", "clamped", ((1, 0.3), (2, -0.4)), ("not-a-knot", (2, 0.3))]


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_cubic_splines_and_their_derivatives(condition: Any) -> None:
    for nu in range(4):
        assert_as_in_scipy(lambda m, x, y, p, nu=nu: m.CubicSpline(x, y, bc_type=condition)(p, nu), X, Y, EVERYWHERE)
    if not isinstance(condition, str):
        check_grads(lambda x, y, p: interpolate.CubicSpline(x, y, bc_type=condition)(p), X, Y, INSIDE)
    for count in (2, 3, 4):
        assert_as_in_scipy(lambda m, x, y, p: m.CubicSpline(x, y, bc_type=condition)(p), X[:count], Y[:count], INSIDE)


def test_periodic_splines() -> None:
    for n in (2, 3, 7):
        x, y = X[:n], np.append(Y[: n - 1], Y[0])
        assert_as_in_scipy(lambda m, x, y, p: m.CubicSpline(x, y, bc_type="periodic")(p), x, y, EVERYWHERE)
    for k in (2, 3, 4):
        assert_as_in_scipy(
            lambda m, x, y, p, k=k: m.make_interp_spline(x, y, k, bc_type="periodic")(p, 1), X, CLOSED, EVERYWHERE
        )
    assert_as_in_scipy(
        lambda m, x, y, ab: m.CubicSpline(x, y, bc_type="periodic").integrate(ab[0], ab[1]), X, CLOSED, [-1.0, 8.0]
    )
    with pytest.raises(ValueError, match="must be identical"):
        ft.grad(lambda y: interpolate.CubicSpline(X, y, bc_type="periodic")(0.3))(Y)


MAKERS: dict[str, Callable[..., Any]] = {
    "pchip": lambda m, x, y: m.PchipInterpolator(x, y),
    "akima": lambda m, x, y: m.Akima1DInterpolator(x, y),
    "makima": lambda m, x, y: m.Akima1DInterpolator(x, y, method="makima", extrapolate=True),
    "hermite": lambda m, x, y: m.CubicHermiteSpline(x, y, 2 * y, extrapolate="periodic"),
    "power": lambda m, x, y: m.PPoly(np.stack([y[1:], y[:-1]]), x, extrapolate=False),
    "bernstein": lambda m, x, y: m.BPoly(np.stack([y[1:], y[:-1], 2 * y[1:]]), x),
    "spline": lambda m, x, y: m.make_interp_spline(x, y, 4),
    "with ends": lambda m, x, y: m.make_interp_spline(x, y, 3, bc_type=([(1, 0.2)], [(2, 0.3)])),
    "steps": lambda m, x, y: m.make_interp_spline(x, y, 0),
    "lines": lambda m, x, y: m.make_interp_spline(x, y, 1),
    "nearest": lambda m, x, y: m.make_lsq_spline(x, y, [0, 0, 0, 1.2, 3.2, 3.2, 3.2], 2, w=np.arange(1.0, 8.0)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_objects_and_what_is_made_of_them(name: str) -> None:
    make = MAKERS[name]
    assert_as_in_scipy(lambda m, x, y, p: make(m, x, y)(p), X, Y, EVERYWHERE)
    assert_as_in_scipy(lambda m, x, y, p: make(m, x, y)(p, 1), X, Y, EVERYWHERE)
    assert_as_in_scipy(lambda m, x, y, p: make(m, x, y).antiderivative(2)(p), X, Y, EVERYWHERE)
    assert_as_in_scipy(lambda m, x, y, ab: make(m, x, y).integrate(ab[0], ab[1]), X, Y, [2.6, 0.1])
    if name != "steps":
        assert_as_in_scipy(lambda m, x, y, p: make(m, x, y).derivative()(p), X, Y, EVERYWHERE)
    if name in ("makima", "nearest"):
        check_grads(lambda x, y, p: make(interpolate, x, y)(p), X, Y, INSIDE)


@pytest.mark.parametrize(
    "kind", ["linear", "nearest", "nearest-up", "zero", "slinear", "quadratic", "cubic", "previous", "next", 4]
)
def test_all_kinds_of_interp1d(kind: Any) -> None:
    order = np.array([3, 1, 0, 5, 6, 2, 4])
    for fill in (np.nan, (1.0, 2.0), "extrapolate"):
        options = {"fill_value": fill, "bounds_error": None if isinstance(fill, str) else False}
        assert_as_in_scipy(
            lambda m, x, y, p, options=options: m.interp1d(x, y, kind, **options)(p), X[order], Y[order], EVERYWHERE
        )
    if kind in ("linear", "quadratic"):
        check_grads(lambda x, y, p: interpolate.interp1d(x, y, kind)(p), X, Y, INSIDE, order=1)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_splines_of_fitpack(k: int) -> None:
    for ext, nu in ((0, 1), (1, 0), (3, 0), (3, 1)):
        assert_as_in_scipy(lambda m, x, y, p, e=ext, nu=nu: m.splev(p, m.splrep(x, y, k=k), nu, e), X, Y, EVERYWHERE)
    assert_as_in_scipy(
        lambda m, x, y, p: m.InterpolatedUnivariateSpline(x, y, k=k, ext=3).derivative()(p), X, Y, EVERYWHERE
    )
    if k == 2:
        assert_as_in_scipy(lambda m, x, y, ab: m.splint(*ab, m.splrep(x, y, xb=-1, xe=4)), X, Y, np.array([-2.0, 5.0]))
        assert_as_in_scipy(lambda m, x, y, p: m.splev(p, m.splrep(x, y, k=k, per=1)), X, CLOSED, INSIDE)


def test_other_calls_of_fitpack() -> None:
    weights = np.arange(1.0, 8.0)
    for f in (
        lambda m, x, y, p: m.splev(p, m.splrep(x, y, k=2, t=[1.2, 2.0], w=weights)),
        lambda m, x, y, p: m.splev(p, m.splder(m.splantider(m.splrep(x, y), 2))),
        lambda m, x, y, p: np.stack(m.splev(p, [m.splrep(x, y)[0], [m.splrep(x, y)[1], m.splrep(x, 2 * y)[1]], 3])),
        lambda m, x, y, p: m.LSQUnivariateSpline(x, y, [1.2, 2.0], w=weights, k=2).integral(p[0], p[3]),
        lambda m, x, y, p: m.UnivariateSpline(x, y, s=0).derivatives(p[0]),
        lambda m, x, y, p: m.LSQUnivariateSpline(x, y, [1.2, 2.0], k=2).get_residual() + 0 * p[0],
    ):
        assert_as_in_scipy(f, X, Y, INSIDE)


def test_splines_whose_knots_scipy_chooses() -> None:
    smooth = interpolate.UnivariateSpline(X, Y, s=0.5)
    assert np.isclose(ft.grad(smooth)(0.3), smooth(0.3, 1))
    assert np.isclose(ft.grad(smooth.derivative())(0.3), smooth(0.3, 2))
    for call in (
        lambda y: interpolate.UnivariateSpline(X, y)(0.3),
        lambda y: interpolate.splrep(X, y, s=0.1)[1][0],
        lambda y: interpolate.RectBivariateSpline(X, X, np.outer(y, y), s=1).ev(0.3, 0.4),
        lambda y: interpolate.SmoothBivariateSpline(X, X, y).ev(0.3, 0.4),
    ):
        with pytest.raises(MissingRule, match=r"(?s)knots are chosen by the data.*test_scipy_interpolate.py"):
            ft.grad(call)(Y)


GX, GY, GZ = X, X[1:] / 2, -X[:6]
VALUES = np.random.default_rng(0).normal(size=(7, 6, 6, 2))
AMONG = np.random.default_rng(1).uniform([0, 0.2, -2.9], [3.2, 1.6, 0.0], (2, 2, 3))
# SciPy solves for splines on a grid iteratively.
DIGITS = {"cubic": 1e-2, "quintic": 1e-2}


@pytest.mark.parametrize("method", ["linear", "nearest", "pchip", "slinear", "cubic", "cubic_legacy"])
def test_methods_on_grids(method: str) -> None:
    def at(m: Any, x: Any, y: Any, z: Any, values: Any, points: Any, fill: Any) -> Any:
        return m.RegularGridInterpolator((x, y, z), values, method, bounds_error=False, fill_value=fill)(points)

    for fill, shift in ((3.0, 0.9), (None, 0.9)):
        points = AMONG + shift
        expected = at(scipy.interpolate, GX, GY, GZ, VALUES, points, fill)
        np.testing.assert_array_equal(at(interpolate, GX, GY, GZ, VALUES, points, fill), expected)
        by_point = ft.vjp(lambda p, fill=fill: at(interpolate, GX, GY, GZ, VALUES, p, fill), points)[0]
        np.testing.assert_allclose(by_point, expected, rtol=1e-11, atol=1e-11)
        by_all = ft.vjp(lambda *xs, fill=fill: at(interpolate, *xs, fill), GX, GY, GZ, VALUES, points)[0]
        np.testing.assert_allclose(by_all, expected, rtol=DIGITS.get(method, 1e-11), atol=DIGITS.get(method, 1e-11))


def test_other_calls_on_grids() -> None:
    plane, pairs = VALUES[..., 0, 0], AMONG[0, :, :2]
    for f in (
        lambda m, x, y, v, p: m.RegularGridInterpolator((x, y), v)((p[:, 0], p[:, 1])),
        lambda m, x, y, v, p: m.RegularGridInterpolator((x, y), v, "slinear")(p, nu=(1, 0)),
        lambda m, x, y, v, p: m.interpn((x, y), v, 2 * p, "pchip", bounds_error=False, fill_value=1.0),
        lambda m, x, y, v, p: m.RectBivariateSpline(x, y, v).ev(2 * p[:, 0], p[:, 1]),
        lambda m, x, y, v, p: m.RectBivariateSpline(x, y, v, kx=4, bbox=[-1, 4, -1, 3])(
            np.sort(p[0]), np.sort(p[1]), 1
        ),
        lambda m, x, y, v, p: m.RectBivariateSpline(x, y, v).integral(p[0, 0], p[0, 1], p[1, 0], 9.0),
    ):
        assert_as_in_scipy(f, GX, GY, plane, pairs)
    grid = interpolate.RegularGridInterpolator((GX, GY), plane)
    with pytest.raises(ValueError, match=r"(?s)out of bounds.*test_scipy_interpolate.py"):
        ft.grad(lambda p: grid(p)[0])(np.array([9.0, 9.0]))


@pytest.mark.parametrize("name", ["KroghInterpolator", "BarycentricInterpolator"])
def test_polynomials_and_their_derivatives(name: str) -> None:
    y = np.stack([Y, 2 * Y - 1])
    for f in (
        lambda m, x, y, p: getattr(m, name)(x, y, axis=1)(p.reshape(2, 7)),
        lambda m, x, y, p: getattr(m, name)(x, y, axis=1).derivative(p, 2),
        lambda m, x, y, p: getattr(m, name)(x, y, axis=1).derivatives(p, 3),
    ):
        expected = f(scipy.interpolate, X, y, EVERYWHERE)
        # SciPy's weights are rounded differently every time.
        np.testing.assert_allclose(f(interpolate, X, y, EVERYWHERE), expected, rtol=1e-11, atol=1e-11)
        found = ft.vjp(lambda x, y, p, f=f: f(interpolate, x, y, p), X, y, EVERYWHERE)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    curve = getattr(interpolate, name)(X, Y)
    # At a node, too.
    assert np.isclose(ft.grad(curve)(X[2]), curve.derivative(X[2]))
    assert np.isclose(ft.hessian(curve)(X[2]), curve.derivative(X[2], 2))


def test_polynomials_of_derivatives() -> None:
    places = [0.0, 0.0, 1.0, 1.0, 1.0, 2.0]
    assert_as_in_scipy(lambda m, y, p: m.KroghInterpolator(places, y)(p), Y[:6], INSIDE)


PLACES = np.random.default_rng(0).normal(size=(12, 2))
DATA = np.random.default_rng(1).normal(size=(12,))
AROUND = np.random.default_rng(2).uniform(-1.5, 1.5, (2, 3, 2))
KERNELS = {
    "linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric", "inverse_quadratic",
    "gaussian",
}  # fmt: skip


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_kernels(kernel: str) -> None:
    points = np.concatenate([PLACES[:1], AROUND[0]])
    for options in ({}, {"smoothing": 0.1, "degree": 2}):

        def at(m: Any, y: Any, d: Any, e: Any, p: Any, options: Any = options) -> Any:
            return m.RBFInterpolator(y, d, kernel=kernel, epsilon=e, **options)(p)

        expected = at(scipy.interpolate, PLACES, DATA, 1.3, points)
        found = ft.vjp(lambda y, d, e, p, at=at: at(interpolate, y, d, e, p), PLACES, DATA, 1.3, points)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
        made = interpolate.RBFInterpolator(PLACES, DATA, kernel=kernel, epsilon=1.3, **options)
        np.testing.assert_allclose(ft.vjp(made, points)[0], expected, rtol=1e-10, atol=1e-10)


def test_older_radial_functions() -> None:
    for function in ("multiquadric", "inverse", "gaussian", "linear", "cubic", "quintic", "thin_plate"):

        def at(m: Any, y: Any, d: Any, p: Any, function: str = function) -> Any:
            return m.Rbf(y[:, 0], y[:, 1], d, function=function, smooth=0.1)(p[..., 0], p[..., 1])

        expected = at(scipy.interpolate, PLACES, DATA, AROUND)
        found = ft.vjp(lambda y, d, p, at=at: at(interpolate, y, d, p), PLACES, DATA, AROUND)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_scattered_points() -> None:
    columns = np.stack([DATA, DATA**2], axis=1)
    for f in (
        lambda m, d, p: m.LinearNDInterpolator(PLACES, d, 9.0, rescale=True)(p),
        lambda m, d, p: m.NearestNDInterpolator(PLACES, d, rescale=True)(p),
        lambda m, d, p: m.griddata((PLACES[:, 0], PLACES[:, 1]), d, (p[..., 0], p[..., 1])),
        lambda m, d, p: m.griddata(PLACES, d, p, method="nearest"),
        lambda m, d, p: m.griddata(PLACES[:, 0], d, p[..., 0], method="cubic"),
    ):
        assert_as_in_scipy(f, columns, AROUND)
    for call in (
        lambda c: interpolate.LinearNDInterpolator(c, DATA)(AROUND).sum(),
        lambda c: interpolate.RBFInterpolator(c, DATA, neighbors=3)(AROUND[0]).sum(),
        lambda c: interpolate.Rbf(c[:, 0], DATA, function=abs)(AROUND[0]).sum(),
        lambda c: interpolate.griddata(PLACES, c[:, 0], AROUND, "cubic").sum(),
    ):
        with pytest.raises(MissingRule, match=r"(?s).*test_scipy_interpolate.py"):
            ft.grad(call)(PLACES)


def test_places_of_axes() -> None:
    y = np.arange(42.0).reshape(2, 7, 3) % 5
    points = INSIDE[:4].reshape(2, 2)
    for make in (
        lambda m, y: m.CubicSpline(X, y, axis=1),
        lambda m, y: m.interp1d(X, y, axis=1),
        lambda m, y: m.interp1d(X, y, "cubic", axis=1, fill_value=(y[:, 0], y[:, -1]), bounds_error=False),
        lambda m, y: m.make_interp_spline(X, y, axis=1),
    ):
        assert_as_in_scipy(lambda m, y, p, make=make: make(m, y)(p), y, points)


def test_points_outside_raise_where_they_are_known() -> None:
    line = interpolate.interp1d(X, Y)
    compiled = ft.jit(ft.grad(line))
    assert np.isclose(compiled(0.2), (Y[1] - Y[0]) / 0.4)
    for call in (ft.grad(line), compiled):
        with pytest.raises(ValueError, match=r"(?s)outside of the interpolation range.*test_scipy_interpolate.py"):
            call(9.0)
    assert np.isnan(ft.vmap(line)(np.array([0.2, 9.0]))[1])


def test_objects_of_plain_data_are_those_of_scipy() -> None:
    for name in ("CubicSpline", "PchipInterpolator", "BSpline", "interp1d", "PPoly"):
        ours, theirs = getattr(interpolate, name), getattr(scipy.interpolate, name)
        args = (X, Y[:4], 2) if name == "BSpline" else (np.ones((2, 6)), X) if name == "PPoly" else (X, Y)
        made, expected = ours(*args), theirs(*args)
        assert isinstance(made, theirs)
        np.testing.assert_array_equal(made(INSIDE), expected(INSIDE))
        np.testing.assert_array_equal(copy.deepcopy(made)(INSIDE), expected(INSIDE))
        # What patched code does with an object of SciPy.
        answer = TABLE[theirs.__call__]
        assert np.isclose(ft.jit(lambda p, e=expected, a=answer: a(e, p))(1.3), expected(1.3), rtol=1e-13)
    spline = pickle.loads(pickle.dumps(interpolate.CubicSpline(X, Y)))
    assert np.isclose(ft.grad(spline.derivative())(0.3), spline(0.3, 2))


def test_objects_of_traced_data_answer_for_scipy() -> None:
    def slope(y: Any) -> Any:
        spline = interpolate.CubicSpline(X, y)
        assert isinstance(spline, scipy.interpolate.CubicSpline)
        assert isinstance(spline, interpolate.CubicSpline)
        assert spline.c.shape == (4, 6)
        with pytest.raises(MissingRule, match=r"(?s)CubicSpline.extend.*test_scipy_interpolate.py"):
            spline.extend(Y, X)
        with pytest.raises(AttributeError, match="no attribute 'surely_not'"):
            spline.surely_not  # noqa: B018
        return spline.derivative()(0.3)

    ft.grad(slope)(Y)


def test_roots_are_differentiated_implicitly() -> None:
    spline = interpolate.CubicSpline(X, Y)
    places = spline.solve(0.2)
    found, slopes = ft.jvp(spline.solve, (0.2,), (1.0,))
    np.testing.assert_allclose(found, places, rtol=1e-12)
    np.testing.assert_allclose(slopes, 1 / spline(places, 1), rtol=1e-12)
    check_grads(lambda x, y: interpolate.CubicSpline(x, y).roots(extrapolate=False), X, Y)
    steps = np.array([[1.0, -1.0]])
    for call in (
        lambda c: interpolate.PPoly(c, [0.0, 1.0, 2.0]).roots(),
        lambda c: interpolate.PPoly(0 * c, [0.0, 1.0, 2.0]).roots(),
    ):
        with pytest.raises(MissingRule, match=r"(?s)no root with a derivative.*test_scipy_interpolate.py"):
            ft.jacobian(call)(steps)


def test_points_and_data_that_are_tensors() -> None:
    points, values = (ft.autograd.tensor(x, requires_grad=True) for x in (np.stack([INSIDE / 2, INSIDE / 3], 1), Y))
    grid = interpolate.RegularGridInterpolator((X, X), np.outer(Y, Y))
    for f, x in (
        (lambda p: grid(p), points),
        (lambda p: interpolate.CubicSpline(X, Y)(p), points),
        (lambda y: interpolate.interp1d(X, y)(INSIDE), values),
    ):
        x.grad = None
        np.sum(f(x)).backward()
        expected = ft.grad(lambda x, f=f: np.sum(f(x)))(x.detach().numpy())
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)


def test_data_that_make_no_spline() -> None:
    for call, message in (
        (lambda y: interpolate.CubicSpline(X[::-1], y), "strictly increasing"),
        (lambda y: interpolate.CubicSpline(X, y[1:]), "doesn't match"),
        (lambda y: interpolate.CubicSpline(X, y, bc_type="closed"), "bc_type=closed"),
        (lambda y: interpolate.CubicSpline(X, y, bc_type=((3, 0.0), "natural")), "must be 1 or 2"),
        (lambda y: interpolate.PchipInterpolator(X, y * 1j), "only works with real values"),
        (lambda y: interpolate.interp1d(X[:4], y), "must be equal in length"),
        (lambda y: interpolate.interp1d(X, y, fill_value="extrapolate", bounds_error=True), "Cannot extrapolate"),
        (lambda y: interpolate.make_interp_spline(X, y, 1, bc_type="natural"), "Too much info"),
        (lambda y: interpolate.make_interp_spline(X, y, 2, bc_type="natural"), "number of derivatives"),
        (lambda y: interpolate.BSpline(X, y, 5), "do not fit"),
    ):
        with pytest.raises((ValueError, NotImplementedError), match=rf"(?s){message}.*test_scipy_interpolate.py"):
            ft.grad(call)(Y)


def test_data_in_loops_are_not_known() -> None:
    def total(f: Any, scales: Any) -> Any:
        return ft.scan(lambda carry, scale: (carry + f(X * scale), 0.0), 0.0, np.asarray(scales))[0]

    def spline(x: Any) -> Any:
        return interpolate.CubicSpline(x, Y)(0.5)

    def falling(x: Any) -> Any:
        return interpolate.PPoly(np.stack([Y[1:], Y[:-1]]), x)(-0.5)

    assert np.isclose(total(spline, [1.0, 2.0]), spline(X) + spline(2 * X))
    # What cannot raise there is not a number.
    assert np.isnan(total(spline, [1.0, -1.0]))
    assert np.isnan(total(lambda x: interpolate.RegularGridInterpolator((x,), Y, "nearest")([0.5])[0], [1.0, -1.0]))
    assert np.isclose(total(falling, [-1.0, -2.0]), falling(-X) + falling(-2 * X))


def test_examples() -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("make", [interpolate.CubicSpline, interpolate.PchipInterpolator])
def test_data_that_are_not_finite_make_no_spline(make: Any) -> None:
    with pytest.raises(ValueError, match="only finite values"):
        ft.grad(lambda y: make(np.arange(4.0), y)(0.5))(np.array([1.0, np.nan, 2.0, 3.0]))


def test_one_point_makes_no_line() -> None:
    with pytest.raises(ValueError, match="at least 2 entries"):
        ft.grad(lambda y: interpolate.interp1d(np.zeros(1), y, "slinear")(0.0))(np.ones(1))
