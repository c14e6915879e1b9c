"""Log-sum-exp and softmax along axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from ...core.types import is_complex, is_inexact
from ...numpy.dispatch import implements
from ...numpy.manipulation import normal_axes
from ...numpy.promotion import asarray, cast, promote
from ...ops import elementwise as e
from ...ops.logsumexp import logsumexp as log_sum_exp

__all__ = ["log_softmax", "logsumexp", "softmax"]


def _floating(x: Any) -> Any:
    x = asarray(x)
    return x if is_inexact(x.dtype) else cast(x, np.dtype(float))


def _shift(x: Any, axes: Any) -> Any:
    """The largest of real numbers along axes, so that no exponential overflows; 0 where it is infinite."""
    top = np.max(e.stop_gradient(asarray(x)), axis=axes, keepdims=True, initial=-math.inf)
    return np.where(np.isfinite(top), top, 0.0)


def _weighted(x: Any, weights: Any, axes: Any) -> tuple[Any, Any]:
    """The sum of weighted exponentials, divided by `exp(shift)`, and this shift."""
    if weights is None:
        shift = _shift(x.real, axes)
        return np.sum(np.exp(x - shift), axis=axes, keepdims=True), shift
    shift = _shift(np.where(weights == 0, -math.inf, x.real), axes)
    terms = x - shift
    # What is weighted with 0 counts for the derivative with respect to that weight, but must stay finite.
    largest = math.floor(math.log(np.finfo(x.dtype).max) / 2)
    exponentials = np.exp(np.where((weights == 0) & (terms.real > largest), largest, terms))
    return np.sum(weights * exponentials, axis=axes, keepdims=True), shift


@implements(scipy.special.logsumexp)
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Logarithm of `sum(b * exp(a))` along axes; with `return_sign`, of its absolute value, and the sign.

    Terms with `a == -inf` have zero derivatives; a sum of such terms only has none.
    """
    x: Any = np.atleast_1d(_floating(a))
    weights = None
    if b is not None:
        x, weights = promote("logsumexp", x, b)
    axes = tuple(sorted(normal_axes(axis, x.ndim)))
    if weights is None and not is_complex(x.dtype):
        out = np.expand_dims(log_sum_exp(asarray(x), axes=axes), axes)
        sign = np.where(np.isnan(out), out, np.where(out == -math.inf, 0.0, np.ones_like(out)))
    else:
        total, shift = _weighted(x, weights, axes)
        is_zero = total == 0
        safe = np.where(is_zero, 1.0, total)
        sign = np.where(is_zero, 0.0, np.sign(safe))
        if is_complex(x.dtype) and not return_sign:
            logarithm = np.log(safe)
        else:
            logarithm = np.log(np.abs(safe))
            logarithm = logarithm if return_sign else np.where(sign < 0, math.nan, logarithm)
        out = np.where(is_zero, -math.inf, logarithm + shift)
    if not keepdims:
        out, sign = np.squeeze(out, axes), np.squeeze(sign, axes)
    return (out, sign) if return_sign else out


@implements(scipy.special.softmax)
def softmax(x: Any, axis: Any = None) -> Any:
    """`exp(x) / sum(exp(x))` along axes."""
    x = _floating(x)
    terms = np.exp(x - np.max(e.stop_gradient(x.real), axis=axis, keepdims=True))
    return terms / np.sum(terms, axis=axis, keepdims=True)


@implements(scipy.special.log_softmax)
def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of `softmax(x)`, without underflow."""
    x = _floating(x)
    x = x - _shift(x.real, axis)
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))
