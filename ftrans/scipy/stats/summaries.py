"""Functions of samples: moments, and means of several kinds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.stats

from ...base.source import at_line, user_line
from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, cast
from .distribution import floating_dtype
from .results import DescribeResult

__all__ = [
    "describe", "gmean", "gstd", "hmean", "kurtosis", "moment", "pmean", "sem", "skew", "tmean", "trim_mean", "tsem",
    "tstd", "tvar", "variation",
]  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])


def implemented(function: Function) -> Function:
    """Enter the decorated function as the traced form of the function of `scipy.stats` of the same name."""
    return implements(getattr(scipy.stats, function.__name__))(function)


def sample(x: Any, axis: Any, nan_policy: str = "propagate") -> tuple[Any, Any]:
    """A sample as floating-point numbers, and its axis or axes: all of them where none is given."""
    if nan_policy != "propagate":
        raise ValueError(
            f"traced samples are taken with nan_policy='propagate' only, not {nan_policy!r}; leave out what is not a "
            f"number before, as in x[~np.isnan(x)]{at_line(user_line())}"
        )
    x = asarray(x)
    x = cast(x, floating_dtype([x]))
    return x, tuple(range(x.ndim)) if axis is None else axis


def count(x: Any, axis: Any) -> int:
    """The number of elements along an axis or axes."""
    return math.prod(x.shape[i] for i in (axis if isinstance(axis, tuple) else (axis,)))


# Moments


def _central(x: Any, order: int, axis: Any, keepdims: bool) -> Any:
    rest = x - np.mean(x, axis=axis, keepdims=True)
    return np.mean(rest**order, axis=axis, keepdims=keepdims)


def _standard(x: Any, order: int, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    """A central moment over a power of the variance; and whether the variance vanishes, where that is NaN."""
    variance = _central(x, 2, axis, keepdims)
    floor = np.finfo(x.dtype).resolution * np.abs(np.mean(x, axis=axis, keepdims=keepdims))
    is_constant = variance <= floor**2
    quotient = _central(x, order, axis, keepdims) / np.where(is_constant, 1.0, variance) ** (0.5 * order)
    return quotient, is_constant


@implemented
def moment(
    a: Any, order: Any = 1, axis: Any = 0, nan_policy: str = "propagate", *, center: Any = None, keepdims: bool = False
) -> Any:
    """A moment of a sample around its mean, or around `center`."""
    a, axis = sample(a, axis, nan_policy)
    if np.ndim(order):
        return np.stack([moment(a, n, axis, center=center, keepdims=keepdims) for n in order])
    if center is None:
        return np.mean(0 * a, axis=axis, keepdims=keepdims) if order == 1 else _central(a, order, axis, keepdims)
    return np.mean((a - center) ** order, axis=axis, keepdims=keepdims)


@implemented
def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The skewness of a sample; NaN where it is constant.

    Arguments are SciPy's; of all elements together if `axis` is None.

    Returns:
        The results, of the shape of `a` without the axis, or with size 1 for it with `keepdims`.

    Raises:
        ValueError: `nan_policy` is not "propagate".

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import stats
        >>> print(ft.grad(stats.skew)(np.array([1.0, 2.0, 6.0])).round(4))
        [ 0.1889 -0.2362  0.0472]
    """
    a, axis = sample(a, axis, nan_policy)
    found, is_constant = _standard(a, 3, axis, keepdims)
    n = count(a, axis)
    if not bias and n > 2:
        found = found * (math.sqrt((n - 1) * n) / (n - 2))
    return np.where(is_constant, math.nan, found)


@implemented
def kurtosis(
    a: Any,
    axis: Any = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The kurtosis of a sample, less that of a normal distribution if `fisher`; NaN where it is constant.

    Arguments are SciPy's; of all elements together if `axis` is None.

    Returns:
        The results, of the shape of `a` without the axis, or with size 1 for it with `keepdims`.

    Raises:
        ValueError: `nan_policy` is not "propagate".

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import stats
        >>> print(ft.grad(stats.kurtosis)(np.array([1.0, 2.0, 3.0, 6.0])).round(4))
        [ 0.1224  0.1224 -0.3673  0.1224]
    """
    a, axis = sample(a, axis, nan_policy)
    found, is_constant = _standard(a, 4, axis, keepdims)
    n = count(a, axis)
    if not bias and n > 3:
        found = ((n * n - 1) * found - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3
    return np.where(is_constant, math.nan, found - 3 if fisher else found)


@implemented
def sem(a: Any, axis: Any = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The standard error of the mean of a sample.

    Arguments are SciPy's; of all elements together if `axis` is None.

    Returns:
        The results, of the shape of `a` without the axis, or with size 1 for it with `keepdims`.

    Raises:
        ValueError: `nan_policy` is not "propagate".

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import stats
        >>> print(ft.grad(stats.sem)(np.array([1.0, 2.0, 3.0])).round(4))
        [-0.2887  0.      0.2887]
    """
    a, axis = sample(a, axis, nan_policy)
    return np.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / math.sqrt(count(a, axis))


@implemented
def variation(a: Any, axis: Any = 0, nan_policy: str = "propagate", ddof: int = 0, *, keepdims: bool = False) -> Any:
    """The standard deviation of a sample over its mean."""
    a, axis = sample(a, axis, nan_policy)
    return np.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / np.mean(a, axis=axis, keepdims=keepdims)


@implemented
def describe(a: Any, axis: Any = 0, ddof: int = 1, bias: bool = True, nan_policy: str = "propagate") -> DescribeResult:
    """The size, the range, the mean, the variance, the skewness and the kurtosis of a sample."""
    a, axis = sample(a, axis, nan_policy)
    return DescribeResult(
        count(a, axis),
        (np.min(a, axis=axis), np.max(a, axis=axis)),
        np.mean(a, axis=axis),
        np.var(a, axis=axis, ddof=ddof),
        skew(a, axis, bias),
        kurtosis(a, axis, bias=bias),
    )


# Means


def _average(x: Any, axis: Any, weights: Any, keepdims: bool) -> Any:
    if weights is None:
        return np.mean(x, axis=axis, keepdims=keepdims)
    return np.average(x, axis=axis, weights=weights, keepdims=keepdims)


@implemented
def gmean(
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    weights: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The geometric mean.

    Arguments are SciPy's; of all elements together if `axis` is None.  `weights` have the shape of `a`.

    Returns:
        The results, of the shape of `a` without the axis, or with size 1 for it with `keepdims`.

    Raises:
        ValueError: `nan_policy` is not "propagate".

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import stats
        >>> print(ft.grad(stats.gmean)(np.array([1.0, 4.0])))
        [1.   0.25]
    """
    a, axis = sample(a, axis, nan_policy)
    return np.exp(_average(np.log(a if dtype is None else a.astype(dtype)), axis, weights, keepdims))


@implemented
def hmean(
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    *,
    weights: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The harmonic mean; NaN where a number is negative.

    Arguments are SciPy's; of all elements together if `axis` is None.  `weights` have the shape of `a`.

    Returns:
        The results, of the shape of `a` without the axis, or with size 1 for it with `keepdims`.

    Raises:
        ValueError: `nan_policy` is not "propagate".

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import stats
        >>> print(ft.grad(stats.hmean)(np.array([1.0, 3.0])))
        [1.125 0.125]
    """
    a, axis = sample(a, axis, nan_policy)
    a = a if dtype is None else a.astype(dtype)
    is_valid = np.all(a >= 0, axis=axis, keepdims=keepdims)
    return np.where(is_valid, 1 / _average(1 / a, axis, weights, keepdims), math.nan)


@implemented
def pmean(
    a: Any,
    p: Any,
    *,
    axis: Any = 0,
    dtype: Any = None,
    weights: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The power mean of the exponent `p`; NaN where a number is negative."""
    a, axis = sample(a, axis, nan_policy)
    a = a if dtype is None else a.astype(dtype)
    if isinstance(p, int | float) and p == 0:
        return gmean(a, axis, weights=weights, keepdims=keepdims)
    is_valid = np.all(a >= 0, axis=axis, keepdims=keepdims)
    return np.where(is_valid, _average(a**p, axis, weights, keepdims) ** (1 / p), math.nan)


@implemented
def gstd(a: Any, axis: Any = 0, ddof: int = 1, *, keepdims: bool = False, nan_policy: str = "propagate") -> Any:
    """The geometric standard deviation."""
    a, axis = sample(a, axis, nan_policy)
    return np.exp(np.std(np.log(a), axis=axis, ddof=ddof, keepdims=keepdims))


@implemented
def trim_mean(
    a: Any, proportiontocut: float, axis: Any = 0, *, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """The mean without the smallest and the largest numbers.

    Arguments are SciPy's; of all elements together if `axis` is None.

    Returns:
        The results, of the shape of `a` without the axis, or with size 1 for it with `keepdims`.

    Raises:
        ValueError: nothing would be left, or `nan_policy` is not "propagate".

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import stats
        >>> print(ft.grad(lambda a: stats.trim_mean(a, 0.25))(np.array([9.0, 1.0, 2.0, 4.0])))
        [0.  0.  0.5 0.5]
    """
    a, axis = sample(a, axis, nan_policy)
    n = count(a, axis)
    cut = int(proportiontocut * n)
    if 2 * cut >= n:
        raise ValueError(f"Proportion too big.{at_line(user_line())}")
    if isinstance(axis, tuple):
        found = np.mean(np.sort(a, axis=None)[cut : n - cut])
    else:
        found = np.mean(np.moveaxis(np.sort(a, axis=axis), axis, 0)[cut : n - cut], axis=0)
    return np.expand_dims(found, axis) if keepdims else found


# Of numbers between limits


def _kept(a: Any, limits: Any, inclusive: tuple[bool, bool]) -> Any:
    """Which numbers are between limits; all are where there are none."""
    lower, upper = (None, None) if limits is None else limits
    kept = np.ones(a.shape, bool)
    if lower is not None:
        kept = kept & (a >= lower if inclusive[0] else a > lower)
    if upper is not None:
        kept = kept & (a <= upper if inclusive[1] else a < upper)
    return kept


@implemented
def tmean(
    a: Any,
    limits: Any = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The mean of the numbers between limits."""
    a, axis = sample(a, axis, nan_policy)
    return np.mean(a, axis=axis, keepdims=keepdims, where=_kept(a, limits, inclusive))


@implemented
def tvar(
    a: Any,
    limits: Any = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: Any = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The variance of the numbers between limits."""
    a, axis = sample(a, axis, nan_policy)
    return np.var(a, axis=axis, ddof=ddof, keepdims=keepdims, where=_kept(a, limits, inclusive))


@implemented
def tstd(
    a: Any,
    limits: Any = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: Any = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The standard deviation of the numbers between limits."""
    return np.sqrt(tvar(a, limits, inclusive, axis, ddof, nan_policy=nan_policy, keepdims=keepdims))


@implemented
def tsem(
    a: Any,
    limits: Any = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: Any = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The standard error of the mean of the numbers between limits."""
    variance = tvar(a, limits, inclusive, axis, ddof, nan_policy=nan_policy, keepdims=keepdims)
    a, axis = sample(a, axis, nan_policy)
    return np.sqrt(variance / np.sum(_kept(a, limits, inclusive), axis=axis, keepdims=keepdims))
