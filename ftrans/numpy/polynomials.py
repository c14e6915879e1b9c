"""Functions of polynomials that are arrays of coefficients, the highest power first.

NumPy drops leading zeros here and there, which asks for the values of coefficients.  Where there are none, as under
`vmap`, coefficients are taken for nonzero.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.types import is_complex, is_inexact
from ..core.witness import ConcretizationError
from ..ops.literals import full
from .dispatch import implements
from .promotion import asarray, cast, result_dtype
from .vectorizing import as_objects

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "roots"]


def _coefficients(p: Any) -> Any:
    """Coefficients as an array of at least one axis."""
    return np.atleast_1d(asarray(p.coeffs if isinstance(p, np.poly1d) else p))


def _floating(x: Any) -> Any:
    x = asarray(x)
    return x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64))


def _like(result: Any, *given: Any) -> Any:
    """The result as a `poly1d` where one was given."""
    return np.poly1d(result) if any(isinstance(p, np.poly1d) for p in given) else result


def _is_known(condition: Any, fallback: bool) -> bool:
    """The truth of a condition, or `fallback` where its value is not known."""
    try:
        return bool(condition)
    except ConcretizationError:
        return fallback


def _without_leading_zeros(p: Any) -> Any:
    start = 0
    while start < len(p) - 1 and _is_known(p[start] == 0, False):
        start += 1
    return p[start:]


def _combined(ufunc: np.ufunc, a1: Any, a2: Any) -> Any:
    x, y = _coefficients(a1), _coefficients(a2)
    size = max(len(x), len(y))
    x, y = (np.concatenate([np.zeros(size - len(z), z.dtype), z]) for z in (x, y))
    return _like(ufunc(x, y), a1, a2)


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials."""
    return _combined(np.add, a1, a2)


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials."""
    return _combined(np.subtract, a1, a2)


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials."""
    x, y = (_without_leading_zeros(_coefficients(a)) for a in (a1, a2))
    return _like(np.convolve(x, y), a1, a2)


@implements(np.polydiv)
def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """The quotient and the remainder of two polynomials."""
    dividend, divisor = _coefficients(u) + 0.0, _coefficients(v) + 0.0
    dtype = result_dtype(dividend, divisor)
    n = len(divisor)
    quotient = []
    rest = dividend.astype(dtype)
    scale = 1.0 / divisor[0]
    for k in range(len(dividend) - n + 1):
        quotient.append(scale * rest[k])
        rest = np.concatenate([rest[:k], rest[k : k + n] - quotient[-1] * divisor, rest[k + n :]])
    # NumPy's remainder begins with what was divided away, and loses numbers near 0 in front.
    while len(rest) > 1 and _is_known(np.allclose(rest[0], 0, rtol=1e-14), len(rest) >= n):
        rest = rest[1:]
    result = np.stack(quotient) if quotient else np.zeros_like(rest, shape=(1,))
    return _like(result, u, v), _like(rest, u, v)


@implements(np.polyder)
def polyder(p: Any, m: Any = 1) -> Any:
    """The derivative of order `m` of a polynomial."""
    order = operator.index(m)
    if order < 0:
        raise ValueError(f"Order of derivative must be positive (see polyint){at_line(user_line())}")
    y = _coefficients(p)
    for _ in range(order):
        y = y[:-1] * np.arange(len(y) - 1, 0, -1)
    return _like(y, p)


@implements(np.polyint)
def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    """The integral of order `m` of a polynomial, with the constants `k`."""
    order = operator.index(m)
    if order < 0:
        raise ValueError(f"Order of integral must be positive (see polyder){at_line(user_line())}")
    constants = np.atleast_1d(asarray(0.0 if k is None else k))
    if len(constants) == 1 and order > 1:
        constants = np.broadcast_to(constants, (order,))
    if len(constants) < order:
        raise ValueError(f"k must be a scalar or a rank-1 array of length 1 or >m.{at_line(user_line())}")
    y = _coefficients(p)
    for i in range(order):
        y = np.concatenate([y / np.arange(len(y), 0, -1), constants[i : i + 1]])
    return _like(y, p)


# Roots


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with these roots, or the characteristic polynomial of a matrix."""
    x = _floating(_coefficients(seq_of_zeros))
    if x.ndim == 2 and x.shape[0] == x.shape[1] != 0:
        return _characteristic_polynomial(x)
    if x.ndim != 1:
        raise ValueError(f"input must be 1d or non-empty square 2d array, not {x.type}{at_line(user_line())}")
    if not len(x):
        return 1.0
    one = full((1,), 1, x.dtype)
    product: Any = one
    for zero in x:
        product = np.convolve(product, np.concatenate([one, -zero[None]]))
    if is_complex(x.dtype) and _is_known(np.all(np.sort(x) == np.sort(np.conj(x))), False):
        # Roots in conjugate pairs: the polynomial is real.
        return product.real.copy()
    return product


def _characteristic_polynomial(a: Any) -> Any:
    """By the recurrence of Faddeev and LeVerrier, which is a polynomial in the elements, as the result is."""
    n = a.shape[0]
    identity = np.eye(n, dtype=a.dtype)
    coefficients: list[Any] = [full((), 1, a.dtype)]
    power = np.zeros_like(a)
    for k in range(1, n + 1):
        power = a @ power + coefficients[-1] * identity
        coefficients.append(-np.trace(a @ power) / k)
    return np.stack(coefficients)


@implements(np.roots)
def roots(p: Any) -> Any:
    """The roots of a polynomial: eigenvalues of its companion matrix.  Multiple ones have no derivative."""
    coefficients = _coefficients(p)
    if coefficients.ndim != 1:
        raise ValueError(f"Input must be a rank-1 array.{at_line(user_line())}")
    x = _without_leading_zeros(_floating(coefficients))
    size = len(x)
    while len(x) and _is_known(x[-1] == 0, False):
        x = x[:-1]
    if len(x) < 2:
        return np.zeros_like(x, shape=(size - 1 if len(x) else 0,))
    first = -x[1:] / x[0]
    companion = np.concatenate([first[None], np.eye(len(x) - 2, len(x) - 1, dtype=x.dtype)])
    found = np.linalg.eigvals(companion)
    return np.concatenate([found, np.zeros(size - len(x), found.dtype)])


# Fits


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """The least-squares fit of a polynomial of the given degree to points."""
    order = operator.index(deg) + 1
    x, y = _floating(x), _floating(y)
    if order < 1:
        raise ValueError(f"expected deg >= 0{at_line(user_line())}")
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0] or not x.size:
        raise TypeError(
            f"polyfit takes x of one axis, and y of one or two whose first is as long, not {x.type} and {y.type}"
            + at_line(user_line())
        )
    rcond = len(x) * np.finfo(x.dtype).eps if rcond is None else rcond
    left, right = np.vander(x, order), y
    if w is not None:
        heights = _floating(w)
        if heights.shape != x.shape:
            raise TypeError(
                f"polyfit takes a weight for each point: w is {heights.type}, x is {x.type}{at_line(user_line())}"
            )
        left = left * heights[:, None]
        right = (right.T * heights).T
    scale = np.sqrt(np.sum(left * left, 0))
    left = left / scale
    found, residuals, rank, values = np.linalg.lstsq(left, right, rcond)
    found = (found.T / scale).T
    if full:
        return found, residuals, rank, values, rcond
    if not cov:
        return found
    base = np.linalg.inv(left.T @ left) / np.outer(scale, scale)
    if isinstance(cov, str) and cov == "unscaled":
        factor: Any = 1.0
    else:
        if len(x) <= order:
            raise ValueError(
                f"the number of data points must exceed order to scale the covariance matrix{at_line(user_line())}"
            )
        factor = _squares_left(left, right, found, scale) / (len(x) - order)
    return found, base * factor if y.ndim == 1 else base[:, :, None] * factor


def _squares_left(left: Any, right: Any, found: Any, scale: Any) -> Any:
    """The sum of squared residuals, in the shape that `numpy.linalg.lstsq` gives it."""
    apart = right - left @ (found.T * scale).T
    return np.sum(np.abs(apart) ** 2, 0, keepdims=right.ndim == 1)


def enter_on_objects(function: Any) -> None:
    """Enter a function of `numpy.polynomial`, whose own code runs on arrays of traced numbers."""

    @implements(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return asarray(function.__wrapped__(*map(as_objects, args), **{k: as_objects(x) for k, x in kwargs.items()}))
