"""Derivatives to full relative accuracy, over the whole range of floating-point numbers, against mpmath.

A row is a function, its first and its second derivative in mpmath, and where it is defined.  A formula that is right on
paper may lose all digits: `1 - tanh(x)**2` is 0 where the derivative of tanh is 1e-17, and squares overflow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest

import ftrans as ft
import ftrans.scipy.special as sp

Function = Callable[[Any], Any]

MAGNITUDES = np.array([
    5e-324, 1e-310, 1e-300, 1e-200, 1e-150, 1e-100, 1e-20, 1e-10, 1e-5, 0.01, 0.3, 0.9, 1.7, 5, 12, 19, 25, 37, 80,
    300, 700, 1e3, 1e5, 1e8, 1e20, 1e50, 1e100, 1e150,
])  # fmt: skip
EVERYWHERE = np.concatenate([-MAGNITUDES[::-1], MAGNITUDES])


class Row(NamedTuple):
    """A function, what its derivatives are, and at which numbers.

    Attributes:
        f: the function of ftrans, of an array.
        first: its derivative, in mpmath.
        second: its second derivative; None where it is not looked at.
        domain: the numbers between which it is defined.
        growth: how much faster than x relative errors of x grow in the derivative, as those of `exp` do.
    """

    f: Function
    first: Function
    second: Function | None
    domain: tuple[float, float] = (-np.inf, np.inf)
    growth: Function = lambda x: 0.0


def _sech_square(x: Any) -> Any:
    return 1 / mp.cosh(x) ** 2


def _logistic_slope(x: Any) -> Any:
    return 1 / (mp.exp(x) + 2 + mp.exp(-x))


def _logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _scaled(f: Any, sign: int) -> Function:
    """`exp(sign * x)` times a Bessel function of order n and x > 0, by its expansion far out (DLMF 10.40)."""

    def value(n: int, x: Any) -> Any:
        if x < 100:
            with mp.workdps(40):
                return f(n, x) * mp.exp(sign * x)
        term = total = mp.mpf(1)
        for k in range(1, 20):
            term *= sign * (4 * n**2 - (2 * k - 1) ** 2) / (8 * k * x)
            total += term
        return total * (mp.sqrt(mp.pi / (2 * x)) if sign > 0 else 1 / mp.sqrt(2 * mp.pi * x))

    return value


_IE, _KE = _scaled(mp.besseli, -1), _scaled(mp.besselk, 1)


def _ive_slope(n: int, parity: int) -> Function:
    def slope(x: Any) -> Any:
        a = abs(x)
        return (parity if x < 0 else 1) * ((_IE(abs(n - 1), a) + _IE(n + 1, a)) / 2 - _IE(n, a))

    return slope


def _kve_slope(n: int) -> Function:
    return lambda x: _KE(n, x) - (_KE(abs(n - 1), x) + _KE(n + 1, x)) / 2


def _exponential(x: Any) -> Any:
    return np.abs(x)


def _cancelling(x: Any) -> Any:
    return np.minimum(np.abs(x), 60.0)


def _gaussian(x: Any) -> Any:
    return np.square(np.minimum(np.abs(x), 1e3))


def _gelu_by_tanh_slope(order: int) -> Function:
    """The first or second derivative of `x` times the logistic function of a cubic polynomial."""

    def slope(x: Any) -> Any:
        if abs(x) > 40:
            return mp.mpf(1 if x > 0 and order == 1 else 0)
        scale, cubic = mp.sqrt(8 / mp.pi), mp.mpf(0.044715)
        z, dz, ddz = scale * (x + cubic * x**3), scale * (1 + 3 * cubic * x**2), scale * 6 * cubic * x
        rise = _logistic_slope(z)
        if order == 1:
            return _logistic(z) + x * rise * dz
        return 2 * rise * dz + x * rise * (ddz - mp.tanh(z / 2) * dz**2)

    return slope


POSITIVE, INSIDE = (0.0, np.inf), (-1.0, 1.0)
ROWS: dict[str, Row] = {
    "tanh": Row(np.tanh, _sech_square, lambda x: -2 * mp.tanh(x) * _sech_square(x), growth=_exponential),
    "expit": Row(sp.expit, _logistic_slope, lambda x: -mp.tanh(x / 2) * _logistic_slope(x), growth=_exponential),
    "sigmoid": Row(ft.nn.functional.sigmoid, _logistic_slope, lambda x: -mp.tanh(x / 2) * _logistic_slope(x),
        growth=_exponential),
    "log_expit": Row(sp.log_expit, lambda x: _logistic(-x), lambda x: -_logistic_slope(x), growth=_exponential),
    "logaddexp": Row(lambda x: np.logaddexp(0.0, x), _logistic, _logistic_slope, growth=_exponential),
    "logaddexp, first": Row(lambda x: np.logaddexp(x, 1.0), lambda x: _logistic(x - 1),
        lambda x: _logistic_slope(x - 1), growth=_exponential),
    "logaddexp2": Row(lambda x: np.logaddexp2(0.0, x), lambda x: 1 / (1 + mp.power(2, -x)),
        lambda x: mp.log(2) * _logistic_slope(mp.log(2) * x), growth=_exponential),
    "softsign": Row(ft.nn.functional.softsign, lambda x: (1 + abs(x)) ** -2,
        lambda x: -2 * mp.sign(x) * (1 + abs(x)) ** -3),
    "gelu by tanh": Row(lambda x: ft.nn.functional.gelu(x, "tanh"), _gelu_by_tanh_slope(1), _gelu_by_tanh_slope(2),
        growth=lambda x: np.minimum(np.abs(x), 40.0) ** 3),
    "hypot": Row(lambda x: np.hypot(x, 1.0), lambda x: x / mp.hypot(x, 1), lambda x: 1 / mp.hypot(x, 1) ** 3),
    "abs of complex numbers": Row(lambda x: np.abs(x + 1j), lambda x: x / mp.hypot(x, 1),
        lambda x: 1 / mp.hypot(x, 1) ** 3),
    "pseudo_huber": Row(lambda x: sp.pseudo_huber(1.0, x), lambda x: x / mp.hypot(x, 1),
        lambda x: 1 / mp.hypot(x, 1) ** 3),
    "arctan": Row(np.arctan, lambda x: 1 / (1 + x * x), None),
    "arctan2": Row(lambda x: np.arctan2(x, 1.0), lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "arcsinh": Row(np.arcsinh, lambda x: 1 / mp.hypot(1, x), lambda x: -x / mp.hypot(1, x) ** 3),
    "arccosh": Row(np.arccosh, lambda x: 1 / mp.sqrt((x - 1) * (x + 1)), lambda x: -x / mp.sqrt((x - 1) * (x + 1)) ** 3,
        (1.0, np.inf)),
    "arctanh": Row(np.arctanh, lambda x: 1 / (1 - x * x), lambda x: 2 * x / (1 - x * x) ** 2, INSIDE),
    "arcsin": Row(np.arcsin, lambda x: 1 / mp.sqrt(1 - x * x), lambda x: x / mp.sqrt(1 - x * x) ** 3, INSIDE),
    "arccos": Row(np.arccos, lambda x: -1 / mp.sqrt(1 - x * x), lambda x: -x / mp.sqrt(1 - x * x) ** 3, INSIDE),
    "sinh": Row(np.sinh, mp.cosh, mp.sinh, growth=_exponential),
    "cosh": Row(np.cosh, mp.sinh, mp.cosh, growth=_exponential),
    "expm1": Row(np.expm1, mp.exp, mp.exp, growth=_exponential),
    "exp2": Row(np.exp2, lambda x: mp.log(2) * mp.power(2, x), lambda x: mp.log(2) ** 2 * mp.power(2, x),
        growth=_exponential),
    "log1p": Row(np.log1p, lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2, (-1.0, np.inf)),
    "log": Row(np.log, lambda x: 1 / x, lambda x: -1 / x**2, POSITIVE),
    "sqrt": Row(np.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), lambda x: -1 / (4 * mp.sqrt(x) ** 3), POSITIVE),
    "cbrt": Row(np.cbrt, lambda x: 1 / (3 * mp.cbrt(abs(x)) ** 2),
        lambda x: -2 * mp.sign(x) / (9 * mp.cbrt(abs(x)) ** 5)),
    "x ** -0.5": Row(lambda x: x**-0.5, lambda x: -mp.power(x, -1.5) / 2,
        lambda x: mp.power(x, -2.5) * 3 / 4, POSITIVE),
    "reciprocal": Row(np.reciprocal, lambda x: -1 / x**2, lambda x: 2 / x**3),
    "erf": Row(sp.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x),
        lambda x: -4 * x / mp.sqrt(mp.pi) * mp.exp(-x * x), growth=_gaussian),
    "ndtr": Row(sp.ndtr, mp.npdf, lambda x: -x * mp.npdf(x), growth=_gaussian),
    "logit": Row(sp.logit, lambda x: 1 / (x * (1 - x)), lambda x: (2 * x - 1) / (x * (1 - x)) ** 2, (1e-120, 1.0)),
    "gammaln": Row(sp.gammaln, mp.digamma, lambda x: mp.polygamma(1, x), POSITIVE),
    "entr": Row(sp.entr, lambda x: -mp.log(x) - 1, lambda x: -1 / x, POSITIVE),
    "i1": Row(sp.i1, lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2,
        lambda x: (3 * mp.besseli(1, x) + mp.besseli(3, x)) / 4, (-50.0, 50.0), _exponential),
    # SciPy computes powers of small numbers by logarithms.
    "iv": Row(lambda x: sp.iv(2.0, x), lambda x: (mp.besseli(1, x) + mp.besseli(3, x)) / 2,
        lambda x: (mp.besseli(0, x) + 2 * mp.besseli(2, x) + mp.besseli(4, x)) / 4, (-50.0, 50.0),
        lambda x: 60.0 + np.abs(x)),
    "i0e": Row(sp.i0e, _ive_slope(0, -1), None, growth=_cancelling),
    "i1e": Row(sp.i1e, _ive_slope(1, 1), None, growth=_cancelling),
    # SciPy computes powers of small numbers by logarithms.
    "ive": Row(lambda x: sp.ive(3.0, x), _ive_slope(3, 1), None, growth=lambda x: 60.0),
    "k0e": Row(sp.k0e, _kve_slope(0), None, (1e-320, np.inf), _cancelling),
    "k1e": Row(sp.k1e, _kve_slope(1), None, (1e-320, np.inf), _cancelling),
    "kve": Row(lambda x: sp.kve(2.0, x), _kve_slope(2), None, (1e-320, np.inf), _cancelling),
}  # fmt: skip


def points(row: Row, least: float = 0.0) -> Any:
    low, high = row.domain
    return EVERYWHERE[(low < EVERYWHERE) & (high > EVERYWHERE) & (np.abs(EVERYWHERE) > least)]


def exactly(f: Function, x: Any) -> Any:
    """The values of a function of mpmath, rounded to float64."""
    # The difference of what is equal to hundreds of digits is asked for.
    with mp.workdps(400):
        return np.array([float(f(mp.mpf(float(v)))) for v in x])


def check(row: Row, found: Any, wanted: Any, x: Any, name: str, least: float = 1e-320, epsilons: float = 100) -> None:
    info = np.finfo(found.dtype)
    wanted = np.where(np.abs(wanted) > float(info.max), np.copysign(np.inf, wanted), wanted)
    relative = epsilons * float(info.eps) * (1 + row.growth(x.astype(float)))
    with np.errstate(invalid="ignore"):
        right = (np.abs(found - wanted) <= relative * np.abs(wanted) + least) | (found == wanted)
    assert right.all(), f"{name}: at {x[~right]} are {found[~right]}, not {wanted[~right]}"


def slope(f: Function) -> Function:
    return lambda x: ft.jvp(f, (x,), (np.ones_like(x),))[1]


def gradient(f: Function) -> Function:
    return ft.grad(lambda x: np.sum(f(x)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ROWS)
def test_un_jitted(name: str) -> None:
    row = ROWS[name]
    x = points(row)
    wanted = exactly(row.first, x)
    check(row, slope(row.f)(x), wanted, x, "jvp")
    check(row, gradient(row.f)(x), wanted, x, "grad")
    if row.second is not None:
        wanted = exactly(row.second, x)
        for second in (slope(slope(row.f)), slope(gradient(row.f)), gradient(slope(row.f))):
            check(row, second(x), wanted, x, "second derivative")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled(dtype: Any) -> None:
    # XLA takes numbers below the normal ones for zero.
    tiny = float(np.finfo(dtype).tiny)
    at = [points(row, 1e3 * tiny) for row in ROWS.values()]
    at = [x[np.abs(x) < 1e-3 * float(np.finfo(dtype).max)].astype(dtype) for x in at]

    def derivatives(at: Any) -> Any:
        return [
            [gradient(row.f)(x), None if row.second is None else slope(gradient(row.f))(x)]
            for row, x in zip(ROWS.values(), at, strict=True)
        ]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ft.jit(derivatives)(at)
    for (name, row), x, (first, second) in zip(ROWS.items(), at, found, strict=True):
        # XLA's own functions, as its cube root, are right to some hundred.
        check(row, first, exactly(row.first, x), x, name, 10 * tiny, 400)
        if row.second is not None:
            check(row, second, exactly(row.second, x), x, f"second derivative of {name}", 10 * tiny, 400)


@pytest.mark.parametrize("exponent", [-3.5, -2.5, -1.5, 1.5, 2.5, 3.5])
def test_compiled_powers_by_square_roots(exponent: float) -> None:
    # Compiled code may take the smallest numbers for zeros.
    x = np.concatenate([[0.0, -0.0, np.inf, -np.inf, np.nan], EVERYWHERE[np.abs(EVERYWHERE) > 1e-307]])
    with np.errstate(all="ignore"):
        expected = x**exponent
    found = ft.jit(lambda x: x**exponent)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    numbers = ~np.isnan(x)
    np.testing.assert_array_equal(np.signbit(found)[numbers & (x >= 0)], np.signbit(expected)[numbers & (x >= 0)])
