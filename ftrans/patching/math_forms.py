"""The functions of `math` and `cmath` on traced numbers.

What is computed is NumPy's function.  Where it is not finite, `math` may raise an error, and code may wait for that; so
the value is looked at, as by a branch, wherever there is one value to look at.  Results are numbers of Python, which
take the dtype of an array that they meet.
"""

from __future__ import annotations

import cmath
import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.by_values import AllElements
from ..api.derivatives import stop_gradient
from ..core.witness import ConcretizationError, concretize
from ..numpy.promotion import asarray, has_tracer
from .builtin_forms import complex_number, number

Function = Callable[..., Any]


def _finite(function: Function, result: Any, args: tuple[Any, ...]) -> Any:
    """The result, or the error that `function` of `math` raises for these arguments."""
    if not _is_true(np.isfinite(result), default=True):
        function(*[concretize(asarray(x), "a check of").item() if has_tracer(x) else x for x in args])
    return result


def _is_true(condition: Any, default: bool) -> bool:
    """Whether a traced condition holds; the default where it holds for some values and not for others."""
    count = len(condition.builder.refused)
    try:
        # An error takes the place of NumPy's warnings.
        with np.errstate(all="ignore"):
            return bool(concretize(condition, "a check of"))
    except ConcretizationError:
        if any([isinstance(b, AllElements) for b in condition.builder.chain()]):
            # Those with an error run apart from the others.
            raise
        del condition.builder.refused[count:]
        return default


def _real(function: Function, traced: Function, is_finite: bool = False) -> Function:
    """A function of `math`; `is_finite` says that it raises no error for finite arguments."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        if not any(map(has_tracer, args)):
            return function(*args)
        result = number(traced(*[number(x, np.float64) if has_tracer(x) else x for x in args]), np.float64)
        return result if is_finite else _finite(function, result, args)

    return call


def _complex(function: Function, traced: Function) -> Function:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        if not any(map(has_tracer, args)):
            return function(*args)
        result = number(traced(*[number(x, np.complex128) if has_tracer(x) else x for x in args]), np.complex128)
        return _finite(function, result, args)

    return call


def _special(name: str) -> Function:
    """A function of `scipy.special`, which is imported when it is first called."""
    return lambda *args: getattr(importlib.import_module("scipy.special"), name)(*args)


def _question(function: Function, traced: Function) -> Function:
    @functools.wraps(function)
    def ask(*args: Any, **kwargs: Any) -> Any:
        return traced(*args, **kwargs) if any(map(has_tracer, args)) else function(*args, **kwargs)

    return ask


def _whenever(function: Function) -> Callable[[Function], Function]:
    """The decorated function where a traced value is among the arguments, otherwise `function`."""

    def decorate(traced: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            args = tuple([list(x) if hasattr(x, "__next__") else x for x in args])
            return traced(*args, **kwargs) if any(map(has_tracer, args)) else function(*args, **kwargs)

        _BY_HAND[function] = call
        return call

    return decorate


_BY_HAND: dict[Any, Function] = {}


@_whenever(math.log)
def _log(x: Any, base: Any = None) -> Any:
    return _LOG(x) if base is None else _finite(math.log, number(_LOG(x) / _LOG(base), np.float64), (x, base))


@_whenever(math.hypot)
def _hypot(*coordinates: Any) -> Any:
    xs = [number(x, np.float64) for x in coordinates]
    return number(np.hypot(*xs) if len(xs) == 2 else _length(np.stack(xs)), np.float64)


@_whenever(math.dist)
def _dist(p: Any, q: Any) -> Any:
    p, q = asarray(p), asarray(q)
    if p.shape != q.shape:
        raise ValueError("both points must have the same number of dimensions")
    return number(_length(p - q), np.float64)


def _length(x: Any) -> Any:
    """The length of a vector, whose squares may be too large or too small for a number."""
    largest = np.max(np.abs(stop_gradient(x)), initial=0.0)
    unit = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    return np.where(np.any(np.isinf(x)), np.inf, unit * np.linalg.norm(x / unit))


@_whenever(math.fsum)
def _fsum(seq: Any) -> Any:
    """The sum, with what each addition rounds off added at the end (T. J. Dekker, Numer. Math. 18, 1971)."""
    xs = np.stack([number(x, np.float64) for x in seq])
    high, low = stop_gradient(xs), np.zeros(len(seq))
    while len(high) > 1:
        if len(high) % 2:
            high, low = np.append(high, 0.0), np.append(low, 0.0)
        a, b = high[::2], high[1::2]
        total = a + b
        part = total - a
        high, low = total, low[::2] + low[1::2] + ((a - (total - part)) + (b - part))
    # The derivative is that of a plain sum.
    return number(high[0] + low[0] + np.sum(xs - stop_gradient(xs)), np.float64)


@_whenever(math.remainder)
def _remainder(x: Any, y: Any) -> Any:
    args = x, y
    x, y = number(x, np.float64), number(y, np.float64)
    sign = np.copysign(1.0, stop_gradient(x))
    size, step = sign * x, np.copysign(1.0, stop_gradient(y)) * y
    # Exact, as is `fmod`: what is left over, or what is missing, or with the even one of two equally near multiples.
    over = np.fmod(size, step)
    missing = step - over
    even = over - 2.0 * np.fmod(0.5 * (size - over), step)
    nearest = np.where(over < missing, over, np.where(over > missing, -missing, even))
    return _finite(math.remainder, number(sign * nearest, np.float64), args)


@_whenever(math.ldexp)
def _ldexp(x: Any, i: Any) -> Any:
    return _finite(math.ldexp, number(np.ldexp(number(x, np.float64), i), np.float64), (x, i))


@_whenever(math.frexp)
def _frexp(x: Any) -> Any:
    mantissa, exponent = np.frexp(number(x, np.float64))
    return number(mantissa, np.float64), number(exponent, np.int64)


@_whenever(math.modf)
def _modf(x: Any) -> Any:
    fraction, whole = np.modf(number(x, np.float64))
    return number(fraction, np.float64), number(whole, np.float64)


@_whenever(math.isclose)
def _isclose(a: Any, b: Any, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> Any:
    return _close(a, b, rel_tol, abs_tol)


@_whenever(cmath.isclose)
def _complex_isclose(a: Any, b: Any, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> Any:
    return _close(a, b, rel_tol, abs_tol)


def _close(a: Any, b: Any, rel_tol: Any, abs_tol: Any) -> Any:
    allowed = np.maximum(rel_tol * np.maximum(abs(a), abs(b)), abs_tol)
    return np.equal(a, b) | (np.isfinite(a) & np.isfinite(b) & (abs(a - b) <= allowed))


@_whenever(cmath.polar)
def _polar(z: Any) -> Any:
    z = number(z, np.complex128)
    return number(np.abs(z), np.float64), number(np.angle(z), np.float64)


@_whenever(cmath.phase)
def _phase(z: Any) -> Any:
    return number(np.angle(number(z, np.complex128)), np.float64)


@_whenever(cmath.rect)
def _rect(r: Any, phi: Any) -> Any:
    return _finite(cmath.rect, complex_number(r * np.cos(phi), r * np.sin(phi)), (r, phi))


@_whenever(cmath.log)
def _complex_log(z: Any, base: Any = None) -> Any:
    if base is None:
        return _COMPLEX_LOG(z)
    return _finite(cmath.log, number(_COMPLEX_LOG(z) / _COMPLEX_LOG(base), np.complex128), (z, base))


# Functions of `math` that raise no error for finite arguments, and all that have the same name in NumPy or one of
# those below.
_SAFE = [
    "sin",
    "cos",
    "atan",
    "tanh",
    "asinh",
    "degrees",
    "radians",
    "fabs",
    "copysign",
    "atan2",
    "cbrt",
    "nextafter",
]
_SAME = [
    *_SAFE,
    *[
        "acos",
        "acosh",
        "asin",
        "atanh",
        "cosh",
        "exp",
        "exp2",
        "expm1",
        "fmod",
        "log10",
        "log1p",
        "log2",
        "pow",
        "sinh",
        "sqrt",
        "tan",
    ],
]
_SPECIAL = {math.erf: "erf", math.erfc: "erfc", math.gamma: "gamma", math.lgamma: "gammaln"}
_NAMES = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
          "atan2": "arctan2", "atanh": "arctanh", "pow": "power"}  # fmt: skip
_QUESTIONS = ("isfinite", "isinf", "isnan")
_COMPLEX = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log10", "sin", "sinh", "sqrt", "tan",
    "tanh",
)  # fmt: skip

_LOG = _real(lambda x: math.log(x), np.log)
_COMPLEX_LOG = _complex(lambda z: cmath.log(z), np.log)

FUNCTIONS: dict[Any, Function] = {
    **{getattr(math, n): _real(getattr(math, n), getattr(np, _NAMES.get(n, n)), n in _SAFE) for n in _SAME},
    **{f: _real(f, _special(name), name.startswith("erf")) for f, name in _SPECIAL.items()},
    **{getattr(m, n): _question(getattr(m, n), getattr(np, n)) for m in (math, cmath) for n in _QUESTIONS},
    **{getattr(cmath, n): _complex(getattr(cmath, n), getattr(np, _NAMES.get(n, n))) for n in _COMPLEX},
    math.ulp: _real(math.ulp, lambda x: np.where(np.isinf(x), np.inf, np.spacing(np.abs(x))), is_finite=True),
    **_BY_HAND,
}
