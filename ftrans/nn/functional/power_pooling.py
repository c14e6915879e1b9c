"""Power-average pooling: the p-norm of each window, without absolute values, as torch defines it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from .arguments import array, described
from .entry import functional
from .pooling import pool_max, pool_mean
from .spatial import per_axis

__all__ = ["lp_pool1d", "lp_pool2d", "lp_pool3d"]


def _lp_pool(count: int, input: Any, norm_type: Any, kernel_size: Any, stride: Any, ceil_mode: bool) -> Any:
    what = f"lp_pool{count}d"
    x = array(input)
    if not is_plain(norm_type, int | float | np.number) or not norm_type:
        raise ValueError(
            f"norm_type of {what} must be a number other than 0, not {described(norm_type)}{at_line(user_line())}"
        )
    if math.isinf(norm_type):
        sign = math.copysign(1, norm_type)
        return sign * pool_max(what, count, sign * np.abs(x), kernel_size, stride, 0, 1, ceil_mode, False)
    means = pool_mean(what, count, x**norm_type, kernel_size, stride, 0, ceil_mode, True, None)
    # As in torch a window that ceil_mode cuts off counts like a whole one.
    totals = means * float(math.prod(per_axis(kernel_size, count, what, "kernel_size")))
    some = totals != 0
    return np.where(some, np.where(some, totals, 1) ** (1 / norm_type), 0)


@functional
def lp_pool1d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """`sum(x ** p) ** (1 / p)` over each window of signals.

    Odd powers keep signs, so a sum may be negative, whose root is NaN.  The gradient of a sum that is 0 is 0.  In a
    window that `ceil_mode` cuts off, the sum is scaled up to that of a whole one.

    Args:
        input: array of shape (N, C, L) or (C, L).
        norm_type: the power p; infinity for the maximum of absolute values.
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` by default.
        ceil_mode: whether a last window may extend beyond the end.

    Returns:
        The norms.

    Raises:
        ValueError: shapes do not match, or `norm_type` is 0.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.lp_pool1d(np.array([[3.0, 4.0, 1.0, 0.0]]), 2, 2)
        array([[5., 1.]])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@functional
def lp_pool2d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """`sum(x ** p) ** (1 / p)` over each window of images.

    Odd powers keep signs, so a sum may be negative, whose root is NaN.  The gradient of a sum that is 0 is 0.  In a
    window that `ceil_mode` cuts off, the sum is scaled up to that of a whole one.

    Args:
        input: array of shape (N, C, H, W) or (C, H, W).
        norm_type: the power p; infinity for the maximum of absolute values.
        kernel_size: size of the windows; an integer, or one for height and width each.
        stride: step between windows; `kernel_size` by default.
        ceil_mode: whether a last window may extend beyond the end.

    Returns:
        The norms.

    Raises:
        ValueError: shapes do not match, or `norm_type` is 0.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.lp_pool2d(np.ones((1, 4, 4)), 2, 2)
        array([[[2., 2.],
                [2., 2.]]])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@functional
def lp_pool3d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """`sum(x ** p) ** (1 / p)` over each window of volumes.

    Odd powers keep signs, so a sum may be negative, whose root is NaN.  The gradient of a sum that is 0 is 0.  In a
    window that `ceil_mode` cuts off, the sum is scaled up to that of a whole one.

    Args:
        input: array of shape (N, C, D, H, W) or (C, D, H, W).
        norm_type: the power p; infinity for the maximum of absolute values.
        kernel_size: size of the windows; an integer, or one for each axis of space.
        stride: step between windows; `kernel_size` by default.
        ceil_mode: whether a last window may extend beyond the end.

    Returns:
        The norms.

    Raises:
        ValueError: shapes do not match, or `norm_type` is 0.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.lp_pool3d(np.ones((1, 2, 2, 2)), 1, 2)
        array([[[[8.]]]])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
