"""The Faddeeva function and its kin: erfcx, wofz, the Dawson function, the Voigt profile, modified Fresnel integrals.

Their derivatives by the differential equation, such as `2 x erfcx(x) - 2 / sqrt(pi)`, are differences of nearly equal
numbers far from the origin.  So derivatives of each order are functions of their own here, computed to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.trace import Tracer
from ..elementwise import complex_, conj, convert, cos, imag, mul, neg, real, sin, square
from .arithmetic import times
from .family import Special, Specials

_ROOT_PI = math.sqrt(math.pi)
# From this radius on, asymptotic series reach the rounding error; their terms fall for longer than these.
_FAR = 7.5
_ASYMPTOTIC_TERMS = 40
# Steps of the continued fraction that reach the rounding error from this real part on.
_RIGHT = 1.5
_STEPS = 100
# Distance of the points of the trapezoidal rule for Dawson's integral, for imaginary parts of at most `_RIGHT`.
_SPACING = 0.15


# Derivatives of erfcx


def _from_origin(x: Any, first: Any, order: int) -> Any:
    """The derivative of erfcx, whose value is `first`, by its differential equation."""
    before, derivative = first, 2 * x * first - 2 / _ROOT_PI
    if order == 0:
        return first
    for n in range(1, order):
        before, derivative = derivative, 2 * x * derivative + 2 * n * before
    return derivative


def _by_fraction(x: Any, order: int, repeat: Callable[..., Any]) -> Any:
    """The derivative of erfcx by the continued fraction of the repeated integrals of erfc (DLMF 7.18.7 and 7.18.13).

    `exp(x**2) * ierfc(n, x)` is the n-th derivative times `(-1)**n / (2**n * n!)`; the fraction is the quotient of two
    neighbours.  `repeat(count, f, start)` is `f(i, ...)` of the value so far, for each `i` below `count`.
    """
    last = order + _STEPS
    ratio = repeat(_STEPS, lambda i, ratio: 1 / (2 * x + 2 * (last - i + 1) * ratio), 1 / (2 * x))
    product: Any = 2 / _ROOT_PI
    for k in range(order, -1, -1):
        ratio = 1 / (2 * x + 2 * (k + 1) * ratio)
        product = product * ratio * (-2 * k if k else 1)
    return product


def _repeat(count: int, f: Callable[..., Any], value: Any) -> Any:
    for i in range(count):
        value = f(i, value)
    return value


def _asymptotic(x: Any, order: int, sign: int) -> Any:
    """The derivative of `sum((2 k - 1)!! * (sign / 2)**k * x**(-2 k - 1)) / sqrt(pi)`."""
    inverse = 1 / x
    term = inverse * (-inverse) ** order * (math.factorial(order) / _ROOT_PI)
    total = term
    for k in range(_ASYMPTOTIC_TERMS):
        growth = (2 * k + 1 + order) * (2 * k + 2 + order) / (2 * k + 2)
        term = term * inverse * inverse * (sign * growth / 2)
        total = total + term
    return total


def _bell_derivative(x: Any, order: int, sign: int) -> Any:
    """The derivative of `exp(sign * x**2)`."""
    before, derivative = 0 * x, np.exp(sign * x * x)
    for n in range(order):
        before, derivative = derivative, 2 * sign * (x * derivative + n * before)
    return derivative


def _erfcx_derivative(x: Any, order: int) -> Any:
    import scipy.special

    if order == 0:
        return scipy.special.erfcx(x)
    is_complex = x.dtype.kind == "c"
    wide = x.astype(np.complex128 if is_complex else np.float64)
    with np.errstate(all="ignore"):
        z = np.where(wide.real < 0, -wide, wide) if is_complex else wide
        is_right = z.real >= _RIGHT
        found = np.where(is_right, _by_fraction(np.where(is_right, z, _RIGHT), order, _repeat), 0)
        found = np.where(is_right, found, _from_origin(z, scipy.special.erfcx(z), order))
        if is_complex:
            is_far = np.abs(z) >= _FAR
            bell = _bell_derivative(z, order, 1)
            # erfcx(z) = exp(z**2) + 2 i / sqrt(pi) * dawsn(i z)
            dawson = 1j**order * _dawson_sum(1j * np.where(is_far | is_right, 0, z), order)
            found = np.where(~is_right & (np.abs(z.imag) > 1), bell + 2j / _ROOT_PI * dawson, found)
            found = np.where(~is_right & is_far, _asymptotic(np.where(is_far, z, _FAR), order, -1), found)
            found = np.where(wide.real < 0, 2 * _bell_derivative(wide, order, 1) - (-1) ** order * found, found)
    return found.astype(x.dtype)[()]


def _erfcx_derivative_xla(x: Any, order: int) -> Any:
    from jax import lax, numpy

    is_far = x >= _RIGHT
    near = numpy.where(is_far, 0, x)
    first = numpy.exp(near * near) * lax.erfc(near)
    fraction = _by_fraction(
        numpy.where(is_far, x, _RIGHT), order, lambda count, f, value: lax.fori_loop(0, count, f, value)
    )
    return numpy.where(is_far, fraction, _from_origin(near, first, order))


erfcx_derivative = Special(
    "erfcx_derivative",
    lambda y, x, order: [lambda t: mul(t, erfcx_derivative(x, order=order + 1))],
    numpy=_erfcx_derivative,
    xla=_erfcx_derivative_xla,
)
erfcx = Special(
    "erfcx",
    lambda y, x: [lambda t: mul(t, erfcx_derivative(x, order=1))],
    xla=lambda x: _erfcx_derivative_xla(x, 0),
)
# w(z) = erfcx(-i z)
wofz = Special("wofz", lambda y, z: [lambda t: mul(t, times(-1j, erfcx_derivative(times(-1j, z), order=1)))])


# The Dawson function


def _dawsn_derivative(x: Any, order: int) -> Any:
    import scipy.special

    if order == 0:
        return scipy.special.dawsn(x)
    is_complex = x.dtype.kind == "c"
    z = x.astype(np.complex128 if is_complex else np.float64)
    is_far = np.abs(z) >= _FAR
    with np.errstate(all="ignore"):
        before = scipy.special.dawsn(z)
        found = 1 - 2 * z * before
        for n in range(1, order):
            before, found = found, -2 * (z * found + n * before)
        found = np.where(np.abs(z.real) > 1, _dawson_sum(np.where(is_far, 0, z), order), found)
        if is_complex:
            # dawsn(z) = i sqrt(pi) / 2 * (exp(-z**2) - erfcx(-i z))
            is_far |= np.abs(z.imag) > _RIGHT
            above = np.where(z.imag < 0, -z, z)
            second = (-1j) ** order * _erfcx_derivative(-1j * above, order)
            far = 0.5j * _ROOT_PI * (_bell_derivative(above, order, -1) - second)
            far = np.where(z.imag < 0, (-1) ** (order + 1), 1) * far
        else:
            far = _ROOT_PI / 2 * _asymptotic(np.where(is_far, z, _FAR), order, 1)
    return np.where(is_far, far, found).astype(x.dtype)[()]


def _dawson_sum(x: Any, order: int) -> Any:
    """The derivative of dawsn by Rybicki's sum (Computers in Physics 3, 1989): Gaussians around odd multiples of h."""
    total = 0 * x
    for n in range(1, 2 * math.ceil((_FAR + 7) / _SPACING / 2), 2):
        right, left = (_bell_derivative(x - side * n * _SPACING, order, -1) for side in (1, -1))
        total = total + (right - left) / n
    return total / _ROOT_PI


dawsn_derivative = Special(
    "dawsn_derivative",
    lambda y, x, order: [lambda t: mul(t, dawsn_derivative(x, order=order + 1))],
    numpy=_dawsn_derivative,
)
dawsn = Special("dawsn", lambda y, x: [lambda t: mul(t, dawsn_derivative(x, order=1))])


# The Voigt profile: the real part of w((x + i gamma) / (sigma sqrt(2))) / (sigma sqrt(2 pi)).


def _complex_voigt(x: Any, sigma: Any, gamma: Any, order: int) -> Any:
    """The derivative of that complex number in x, which is `i / (pi * (x + i gamma))` for `sigma == 0`."""
    z = x + 1j * gamma.astype(np.float64)
    scale = sigma.astype(np.float64) * math.sqrt(2)
    with np.errstate(all="ignore"):
        # A negative width or gamma is for SciPy the formula above; its asymptotic series holds where both are or none.
        is_far = (np.abs(z) >= _FAR * np.abs(scale)) & (gamma * scale >= 0)
        safe = np.where(is_far, 1, scale)
        near = (-1j / safe) ** order * _erfcx_derivative(-1j * np.where(is_far, 0, z) / safe, order)
        inverse = 1 / np.where(is_far, z, 1)
        term = inverse * (-inverse) ** order * (1j * math.factorial(order) / math.pi)
        far = term
        ratio = np.where(is_far, scale * inverse, 0) ** 2
        for k in range(_ASYMPTOTIC_TERMS):
            growth = (2 * k + 1 + order) * (2 * k + 2 + order) / (2 * k + 2)
            term = term * ratio * (growth / 2)
            far = far + term
        # On the real line this is the imaginary part only; the real one is a normal distribution.
        is_normal = is_far & (gamma == 0) & (scale != 0)
        width = np.where(is_normal, scale, 1)
        normal = _bell_derivative(np.where(is_normal, x, 0) / width, order, -1) / (width ** (order + 1) * _ROOT_PI)
        far = np.where(is_normal, normal + 1j * far.imag, far)
    return np.where(is_far, far, near / (safe * _ROOT_PI))


def _complex(dtype: np.dtype[Any]) -> Any:
    return np.result_type(dtype, np.complex64)


def _voigt_partials(y: Tracer, x: Tracer, sigma: Tracer, gamma: Tracer, order: int) -> list[Any]:
    def along(t: Tracer, by: int) -> Tracer:
        return mul(convert(t, dtype=y.dtype), complex_voigt(x, sigma, gamma, order=order + by))

    # It is analytic in x + i gamma, and diffuses as sigma**2 / 2 grows.
    return [lambda t: along(t, 1), lambda t: along(mul(t, sigma), 2), lambda t: times(1j, along(t, 1))]


complex_voigt = Special("complex_voigt", _voigt_partials, numpy=_complex_voigt, result=_complex)


def _voigt_profile_partials(y: Tracer, x: Tracer, sigma: Tracer, gamma: Tracer) -> list[Any]:
    slope = complex_voigt(x, sigma, gamma, order=1)
    return [
        lambda t: mul(t, real(slope)),
        lambda t: mul(t, mul(sigma, real(complex_voigt(x, sigma, gamma, order=2)))),
        lambda t: neg(mul(t, imag(slope))),
    ]


voigt_profile = Special("voigt_profile", _voigt_profile_partials)


# Modified Fresnel integrals: the second one is erfcx(exp(-i pi / 4) x) / 2, or its conjugate.  Of the first one SciPy's
# imaginary part is wrong for x < 0; its derivative here is that of the integral.


def _modified_fresnel(name: str, sign: int) -> Specials:
    turn = complex(math.sqrt(0.5), -math.sqrt(0.5))

    def of_sign(z: Tracer) -> Tracer:
        return z if sign > 0 else conj(z)

    def partials(ys: list[Tracer], x: Tracer) -> list[list[Any]]:
        dtype = ys[0].dtype
        phase = square(x)
        wave = of_sign(complex_(cos(phase), sin(phase)))
        slope = times(turn / 2, erfcx_derivative(times(turn, convert(x, dtype=dtype)), order=1))
        return [
            [lambda t: neg(mul(convert(t, dtype=dtype), wave))],
            [lambda t: mul(convert(t, dtype=dtype), of_sign(slope))],
        ]

    return Specials(name, partials, results=2, result=_complex)


modfresnelp = _modified_fresnel("modfresnelp", 1)
modfresnelm = _modified_fresnel("modfresnelm", -1)
