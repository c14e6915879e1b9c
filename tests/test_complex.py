"""Complex numbers: derivatives of holomorphic functions, gradients of real ones, branch cuts, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import ftrans as ft

Z = np.array([0.3 + 0.4j, -0.7 + 1.2j, 1.6 - 0.5j, -1.5 - 0.2j])

# Functions with their first and second derivatives.
HOLOMORPHIC: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "exp": (np.exp, np.exp, np.exp),
    "exp2": (np.exp2, lambda z: np.log(2) * 2**z, lambda z: np.log(2) ** 2 * 2**z),
    "expm1": (np.expm1, np.exp, np.exp),
    "log": (np.log, lambda z: 1 / z, lambda z: -1 / z**2),
    "log2": (np.log2, lambda z: 1 / (z * np.log(2)), lambda z: -1 / (z**2 * np.log(2))),
    "log10": (np.log10, lambda z: 1 / (z * np.log(10)), lambda z: -1 / (z**2 * np.log(10))),
    "log1p": (np.log1p, lambda z: 1 / (1 + z), lambda z: -1 / (1 + z) ** 2),
    "sqrt": (np.sqrt, lambda z: 0.5 / np.sqrt(z), lambda z: -0.25 / (z * np.sqrt(z))),
    "square": (np.square, lambda z: 2 * z, lambda z: 2 + 0 * z),
    "reciprocal": (np.reciprocal, lambda z: -1 / z**2, lambda z: 2 / z**3),
    "sin": (np.sin, np.cos, lambda z: -np.sin(z)),
    "cos": (np.cos, lambda z: -np.sin(z), lambda z: -np.cos(z)),
    "tan": (np.tan, lambda z: 1 / np.cos(z) ** 2, lambda z: 2 * np.tan(z) / np.cos(z) ** 2),
    "sinh": (np.sinh, np.cosh, np.sinh),
    "cosh": (np.cosh, np.sinh, np.cosh),
    "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2, lambda z: -2 * np.tanh(z) / np.cosh(z) ** 2),
    "arcsin": (np.arcsin, lambda z: 1 / np.sqrt(1 - z**2), lambda z: z / np.sqrt(1 - z**2) ** 3),
    "arccos": (np.arccos, lambda z: -1 / np.sqrt(1 - z**2), lambda z: -z / np.sqrt(1 - z**2) ** 3),
    "arctan": (np.arctan, lambda z: 1 / (1 + z**2), lambda z: -2 * z / (1 + z**2) ** 2),
    "arcsinh": (np.arcsinh, lambda z: 1 / np.sqrt(1 + z**2), lambda z: -z / np.sqrt(1 + z**2) ** 3),
    "arccosh": (np.arccosh, lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1)),
                lambda z: -z / (np.sqrt(z - 1) * np.sqrt(z + 1)) ** 3),
    "arctanh": (np.arctanh, lambda z: 1 / (1 - z**2), lambda z: 2 * z / (1 - z**2) ** 2),
    "positive": (np.positive, lambda z: 1 + 0 * z, lambda z: 0 * z),
    "z ** 3": (lambda z: z**3, lambda z: 3 * z**2, lambda z: 6 * z),
    "z ** -2": (lambda z: z**-2, lambda z: -2 / z**3, lambda z: 6 / z**4),
    "z ** 2.5": (lambda z: z**2.5, lambda z: 2.5 * z**1.5, lambda z: 3.75 * z**0.5),
    "z ** 1j": (lambda z: z**1j, lambda z: 1j * z ** (1j - 1), lambda z: (-1 - 1j) * z ** (1j - 2)),
    "2 ** z": (lambda z: 2.0**z, lambda z: np.log(2) * 2**z, lambda z: np.log(2) ** 2 * 2**z),
    "z ** z": (lambda z: z**z, lambda z: z**z * (np.log(z) + 1), lambda z: z**z * ((np.log(z) + 1) ** 2 + 1 / z)),
    "quotient": (lambda z: z / (z + 2j), lambda z: 2j / (z + 2j) ** 2, lambda z: -4j / (z + 2j) ** 3),
    "sinc": (np.sinc, lambda z: (np.cos(np.pi * z) - np.sinc(z)) / z,
             lambda z: -np.pi * np.sin(np.pi * z) / z - 2 * (np.cos(np.pi * z) - np.sinc(z)) / z**2),
    "where": (lambda z: np.where(z.real > 0, z * z, z), lambda z: np.where(z.real > 0, 2 * z, 1),
              lambda z: np.where(z.real > 0, 2 + 0 * z, 0)),
    "cumprod": (lambda z: np.cumprod(np.stack([z, z, z]), axis=0)[2], lambda z: 3 * z**2, lambda z: 6 * z),
    "parts": (lambda z: (z.real + 1j * z.imag) ** 2, lambda z: 2 * z, lambda z: 2 + 0 * z),
    "conj twice": (lambda z: np.conj(np.conj(z) ** 2), lambda z: 2 * z, lambda z: 2 + 0 * z),
}  # fmt: skip


def derivatives(f: Callable[[Any], Any], z: Any) -> list[Any]:
    """The value, the first derivative, and the second by forward over reverse mode."""
    slope = ft.vmap(ft.grad(f, holomorphic=True))
    return [f(z), slope(z), ft.jvp(slope, (z,), (np.ones_like(z),))[1]]


def expected(name: str, z: Any) -> list[Any]:
    f, first, second = HOLOMORPHIC[name]
    return [f(z), first(z), second(z)]


def check(name: str, found: list[Any], z: Any, tolerance: float) -> None:
    for y, wanted in zip(found, expected(name, z.astype(np.complex128)), strict=False):
        assert y.dtype == z.dtype
        np.testing.assert_allclose(y, wanted, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_derivatives_of_holomorphic_functions(name: str) -> None:
    f, first, second = HOLOMORPHIC[name]
    check(name, derivatives(f, Z), Z, 1e-12)
    # The derivative is the same in all directions, and in both modes.
    for direction in (1, 1j):
        pushed = ft.jvp(f, (Z,), (np.full_like(Z, direction),))[1]
        np.testing.assert_allclose(pushed / direction, first(Z), rtol=1e-12, atol=1e-12)
    twice = ft.vmap(ft.grad(ft.grad(f, holomorphic=True), holomorphic=True))(Z)
    np.testing.assert_allclose(twice, second(Z), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.complex64, 2e-5), (np.complex128, 1e-12)])
def test_compiled_derivatives_of_holomorphic_functions(dtype: Any, tolerance: float) -> None:
    z = Z.astype(dtype)
    # Compiling second derivatives takes long, so that it is done in one dtype.
    count = 2 if dtype is np.complex64 else 3
    found = ft.jit(lambda z: {name: derivatives(f, z)[:count] for name, (f, *_) in HOLOMORPHIC.items()})(z)
    for name, derived in found.items():
        check(name, derived, z, tolerance)


# Branch cuts, where the sign of a zero says from which side: as in NumPy, also compiled

CUTS = {
    "sqrt": [-2, -0.5], "log": [-2, -0.5], "log2": [-2], "log10": [-2], "arcsin": [-2, 2], "arccos": [-2, 2],
    "arccosh": [-2, -0.5, 0.5], "arctanh": [-2, 2], "arctan": [-2j, 2j], "arcsinh": [-2j, 2j],
}  # fmt: skip


def on_both_sides(z: complex) -> list[complex]:
    if isinstance(z, complex):
        return [complex(0.0, z.imag), complex(-0.0, z.imag)]
    return [complex(z, 0.0), complex(z, -0.0)]


def test_derivatives_on_branch_cuts_are_those_of_the_side() -> None:
    points = {name: np.array([w for z in cut for w in on_both_sides(z)]) for name, cut in CUTS.items()}

    def values_and_slopes(points: Any) -> Any:
        return {
            n: (getattr(np, n)(z), ft.vmap(ft.grad(getattr(np, n), holomorphic=True))(z)) for n, z in points.items()
        }

    for found in (values_and_slopes(points), ft.jit(values_and_slopes)(points)):
        for name, (values, slopes) in found.items():
            z = points[name]
            f, first, _ = HOLOMORPHIC[name]
            np.testing.assert_allclose(values, f(z), rtol=1e-14, err_msg=name)
            aside = z + 1e-9 * np.where(z.imag == 0, 1j * np.copysign(1, z.imag), np.copysign(1, z.real))
            np.testing.assert_allclose(slopes, first(aside), rtol=1e-6, atol=1e-8, err_msg=name)


def test_derivatives_far_out() -> None:
    z = 1e200 * (1 + 2j)
    for f, g in (
        (np.arcsinh, mpmath.asinh),
        (np.arcsin, mpmath.asin),
        (np.arccosh, mpmath.acosh),
        (np.log, mpmath.log),
    ):
        with mpmath.workdps(500):
            wanted = complex(mpmath.diff(g, mpmath.mpc(z)))
        found = ft.grad(f, holomorphic=True)(z)
        # On the cuts of arcsin and arccos the sign of a derivative is that of a half plane.
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
    assert ft.grad(np.arctan, holomorphic=True)(z) == 0.0


# Real functions of complex numbers: df/dx - i df/dy, whose conjugate points uphill

REAL: dict[str, Callable[[Any], Any]] = {
    "abs": lambda z: np.sum(np.abs(z)),
    "squared modulus": lambda z: np.vdot(z, z).real,
    "norm": np.linalg.norm,
    "angle": lambda z: np.sum(np.angle(z)),
    "real": lambda z: np.sum(z.real * z.imag**2),
    "mixed": lambda z: np.sum((np.exp(z) * np.conj(z)).real),
    "var": np.var,
    "std": np.std,
    "sign": lambda z: np.sum((np.sign(z) * (2 + 1j)).imag),
    "max": lambda z: np.max(np.abs(z)),
    "norm of order 3": lambda z: np.linalg.norm(z, 3),
    "fft": lambda z: np.sum(np.abs(np.fft.fft(z)) ** 4),
}


def by_differences(f: Callable[[Any], Any], z: Any, h: float = 1e-6) -> Any:
    """df/dx - i df/dy for each element."""
    steps = h * np.eye(len(z))
    along = [[(f(z + w * s) - f(z - w * s)) / (2 * h) for s in steps] for w in (1, 1j)]
    return np.array(along[0]) - 1j * np.array(along[1])


@pytest.mark.parametrize("name", REAL)
def test_gradients_of_real_functions(name: str) -> None:
    f = REAL[name]
    gradient = ft.grad(f)(Z)
    np.testing.assert_allclose(gradient, by_differences(f, Z), rtol=1e-6, atol=1e-7)
    t = np.array([1 + 2j, -1j, 0.5, 1 - 1j])
    np.testing.assert_allclose(ft.jvp(f, (Z,), (t,))[1], np.sum(gradient * t).real, rtol=1e-12)
    np.testing.assert_allclose(ft.jacrev(f)(Z), gradient, rtol=1e-14)


def test_compiled_gradients_of_real_functions() -> None:
    found = ft.jit(lambda z: {name: ft.grad(f)(z) for name, f in REAL.items()})(Z)
    for name, gradient in found.items():
        np.testing.assert_allclose(gradient, ft.grad(REAL[name])(Z), rtol=1e-10, atol=1e-12, err_msg=name)


def test_the_conjugate_of_a_gradient_points_uphill() -> None:
    def distance(z: Any) -> Any:
        return np.sum(np.abs(z - (1 + 2j)) ** 2)

    z = Z
    for _ in range(60):
        z = z - 0.25 * np.conj(ft.grad(distance)(z))
    np.testing.assert_allclose(z, 1 + 2j, rtol=1e-12)


def test_second_derivatives_of_real_functions() -> None:
    # The gradient of |z|**2 is 2 conj(z), which changes by 2 conj(t).
    t = np.array([1 + 2j, -1j, 0.5, 1 - 1j])
    found = ft.hvp(lambda z: np.sum(np.abs(z) ** 2), (Z,), (t,))
    np.testing.assert_allclose(found, 2 * np.conj(t), rtol=1e-14)
    at_zero = ft.hvp(lambda z: np.sum(np.abs(z) ** 2), (0 * Z,), (t,))
    np.testing.assert_allclose(at_zero, 2 * np.conj(t), rtol=1e-14)


def test_conventions_are_those_of_jax() -> None:
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        for f in (lambda np, z: np.sum(np.abs(z) ** 3), lambda np, z: np.sum((z**2 * np.conj(z)).imag)):
            wanted = jax.grad(lambda z, f=f: f(jnp, z))(Z)
            np.testing.assert_allclose(ft.grad(lambda z, f=f: f(np, z))(Z), wanted, rtol=1e-12)
        wanted = jax.grad(lambda z: jnp.conj(z) * z, holomorphic=True)(Z[0])
        np.testing.assert_allclose(ft.grad(lambda z: np.conj(z) * z, holomorphic=True)(Z[0]), wanted, rtol=1e-12)


# holomorphic=True


def test_holomorphic_jacobians_and_hessians() -> None:
    a = np.array([[1, 2j, 0, 1], [3, -1j, 1, 0], [0, 1, 1j, 2]])

    def f(z: Any) -> Any:
        return a @ z**2

    wanted = a * (2 * Z)
    for jacobian in (ft.jacobian, ft.jacfwd, ft.jacrev):
        np.testing.assert_allclose(jacobian(f, holomorphic=True)(Z), wanted, rtol=1e-14)
        np.testing.assert_allclose(ft.jit(jacobian(f, holomorphic=True))(Z), wanted, rtol=1e-14)
    value, found = ft.value_and_jacobian(f, holomorphic=True)(Z)
    np.testing.assert_allclose(value, f(Z), rtol=1e-14)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    hessian = ft.hessian(lambda z: np.prod(z[:2]) * z[2] ** 2 + z[3], holomorphic=True)(Z)
    x, y, u, _ = Z
    rows = [[0, u**2, 2 * y * u, 0], [u**2, 0, 2 * x * u, 0], [2 * y * u, 2 * x * u, 2 * x * y, 0], [0] * 4]
    np.testing.assert_allclose(hessian, rows, rtol=1e-13)


def test_holomorphic_gradients_take_what_other_gradients_take() -> None:
    def f(p: Any, w: Any) -> Any:
        return np.sum(p["a"] ** 2 * w), {"kept": p["b"]}

    p = {"a": Z, "b": 1j}
    (value, aux), (of_p, of_w) = ft.value_and_grad(f, argnums=(0, 1), has_aux=True, holomorphic=True)(p, 1 - 1j)
    np.testing.assert_allclose(value, np.sum(Z**2) * (1 - 1j))
    assert aux == {"kept": 1j}
    np.testing.assert_allclose(of_p["a"], 2 * Z * (1 - 1j))
    assert of_p["b"] == 0
    np.testing.assert_allclose(of_w, np.sum(Z**2))


def test_real_arguments_with_complex_results() -> None:
    x = np.array([0.5, 1.0])
    found = ft.jacobian(lambda x: np.exp(1j * x))(x)
    np.testing.assert_allclose(found, np.diag(1j * np.exp(1j * x)), rtol=1e-14)
    _, pull = ft.vjp(lambda x: np.exp(1j * x), x)
    np.testing.assert_allclose(pull(np.array([1, 1j]))[0], (1j * np.exp(1j * x) * [1, 1j]).real, rtol=1e-14)


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: ft.grad(np.sin)(1j), "needs a real result.*take .real, .imag or abs.. of it, or give holomorphic=True"),
    (lambda: ft.value_and_grad(np.sin)(1j), "value_and_grad needs a real result.*holomorphic=True"),
    (lambda: ft.grad(np.sin, holomorphic=True)(1.0), r"f64\[\] among its arguments"),
    (lambda: ft.grad(lambda z: abs(z), holomorphic=True)(1j), r"f64\[\] among its results"),
    (lambda: ft.jacobian(lambda z: z.real, holomorphic=True)(1j), r"jacobian with holomorphic=True.*f64\[\]"),
    (lambda: ft.jacobian(np.sin)(Z), "lose half of the derivative; give holomorphic=True"),
    (lambda: ft.hessian(lambda z: np.sum(np.abs(z)))(Z), "jvp and vjp"),
    (lambda: ft.grad(lambda z: np.sum(z), holomorphic=True)([1j, 2.0]), r"f64\[\] among its arguments"),
]


@pytest.mark.parametrize(("call", "message"), MISTAKES)
def test_mistakes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        call()
    assert "test_complex.py" in str(caught.value)


def test_order_of_complex_numbers() -> None:
    z = np.array([1 + 1j, 2 - 1j, 2 + 3j, 2 + 3j, 0])
    for f in (np.argmax, np.argmin, lambda z: z < z[::-1], lambda z: z >= z[::-1], np.sort, np.max, np.min):
        for w in (z, -z):
            np.testing.assert_array_equal(ft.jit(f)(w), f(w))
            np.testing.assert_array_equal(ft.vmap(f)(w[None])[0], f(w))
    # One that is not a number comes first.
    with_nan = np.array([1, complex(np.nan, 1), 3j])
    for f in (np.argmax, np.argmin):
        assert ft.jit(f)(with_nan) == ft.vmap(f)(with_nan[None])[0] == 1
