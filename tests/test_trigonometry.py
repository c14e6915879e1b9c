"""sin and cos as arithmetic, which is how XLA runs them on large arrays and in loops on a CPU."""

import math

import jax
import mpmath
import numpy as np
import pytest

import ftrans as ft

_FUNCTIONS = {"sin": (np.sin, mpmath.sin), "cos": (np.cos, mpmath.cos)}
_SIZE = 5000
_RNG = np.random.default_rng(0)
_ARGUMENTS = {
    "small": _RNG.uniform(-1.0, 1.0, _SIZE),
    "tiny": np.concatenate([_RNG.uniform(-1e-7, 1e-7, _SIZE - 4), [0.0, -0.0, 5e-324, -1e-310]]),
    "some turns": _RNG.uniform(-100.0, 100.0, _SIZE),
    "many turns": _RNG.uniform(-1e4, 1e4, _SIZE),
    "near multiples of pi/2": np.arange(1, _SIZE + 1) * 1.0 * (np.pi / 2),
    "at quarters": (np.arange(_SIZE) - _SIZE / 2) * (np.pi / 4),
    "huge": _RNG.uniform(-1e4, 1e4, _SIZE) * 10.0 ** _RNG.uniform(0, 300, _SIZE),
}


def _is_arithmetic(f, x):
    """Whether XLA is given arithmetic for sin and cos, beside the call for large arguments."""
    return "stablehlo.while" in ft.jit(f).lower(x).as_text()


def _exact(function, x):
    with mpmath.workprec(1200):
        return [function(mpmath.mpf(float(v))) for v in x]


@pytest.mark.parametrize("arguments", _ARGUMENTS)
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_accuracy(name, arguments):
    function, exact = _FUNCTIONS[name]
    x = _ARGUMENTS[arguments]
    assert _is_arithmetic(function, x)
    # A tenth of the elements; all of them are in the array, so that the whole array is computed in one way.
    chosen = slice(None, None, 10)
    errors = [
        0.0 if value == wanted else float(abs(mpmath.mpf(float(value)) - wanted) / math.ulp(float(wanted)))
        for value, wanted in zip(ft.jit(function)(x)[chosen], _exact(exact, x[chosen]), strict=True)
    ]
    assert max(errors) < 0.8
    np.testing.assert_array_max_ulp(ft.jit(function)(x), function(x), maxulp=2)


def test_multiples_of_a_quarter_turn_near_the_largest_argument():
    # The doubles next to multiples of pi/2, whose sine or cosine has its digits far behind those of the argument.
    with mpmath.workprec(200):
        x = np.array([float(k * mpmath.pi / 2) for k in range(14_000, 14_000 + _SIZE)])
    for name, (function, exact) in _FUNCTIONS.items():
        value = ft.jit(function)(x)
        for v, wanted in zip(value[::50], _exact(exact, x[::50]), strict=True):
            assert abs(float(v) - float(wanted)) <= math.ulp(float(wanted)), name


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_special_values(name):
    function, _ = _FUNCTIONS[name]
    x = np.tile([0.0, -0.0, np.nan, np.inf, -np.inf, 1e22, -1e300, 1.0, 5e-324], 1000)
    with np.errstate(invalid="ignore"):
        wanted = function(x)
    value = ft.jit(function)(x)
    np.testing.assert_array_max_ulp(value, wanted, maxulp=2)
    if name == "sin":
        finite = np.abs(x) < 1
        np.testing.assert_array_equal(np.signbit(value[finite]), np.signbit(x[finite]))


@pytest.mark.parametrize("size", [10, 100, _SIZE])
def test_loops_and_straight_programs_agree(size):
    x = np.linspace(-3.0, 3.0, size)

    def loop(x):
        return ft.fori_loop(0, 5, lambda i, x: x + 0.1 * np.sin(x) * np.cos(1.1 * x), x)

    def straight(x):
        for _ in range(5):
            x = x + 0.1 * np.sin(x) * np.cos(1.1 * x)
        return x

    for f in (loop, straight):
        np.testing.assert_allclose(ft.jit(f)(x), straight(x), rtol=1e-14, atol=1e-15)
    gradient = ft.grad(lambda x: np.sum(straight(x)))(x)
    np.testing.assert_allclose(ft.jit(ft.grad(lambda x: np.sum(loop(x))))(x), gradient, rtol=1e-13)


def test_what_is_small_is_left_to_the_library():
    def loop(x):
        return ft.scan(lambda x, _: (np.sin(x), None), x, None, length=3)[0]

    assert not _is_arithmetic(np.sin, np.ones(1000))
    assert not _is_arithmetic(np.sin, np.ones(_SIZE, np.float32))
    assert "stablehlo.sine" in ft.jit(loop).lower(np.ones(10)).as_text()
    assert "round_nearest_even" not in ft.jit(loop).lower(np.ones(10)).as_text()
    assert "round_nearest_even" in ft.jit(loop).lower(np.ones(100)).as_text()


def test_transformations_of_jax():
    x = np.linspace(-3.0, 3.0, 2 * _SIZE).reshape(2, _SIZE)
    f, g = ft.jit(np.sin), ft.jit(np.cos)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.vmap(f)(x), np.sin(x), rtol=1e-14)
        np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(x), np.cos(x), rtol=1e-14)
        np.testing.assert_allclose(jax.jvp(g, (x,), (np.ones_like(x),))[1], -np.sin(x), rtol=1e-14, atol=1e-16)
        second = jax.jvp(jax.grad(lambda x: g(x).sum()), (x,), (np.ones_like(x),))[1]
    np.testing.assert_allclose(second, -np.cos(x), rtol=1e-14, atol=1e-16)
