"""The default dtype: that of tensors which are made from no data, or from Python's floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.types import is_complex, is_inexact

_default_dtype: list[Any] = [np.dtype(np.float64)]


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype of tensors that are created from no data or from Python's floats: float32 is that of torch.

    Args:
        dtype: a floating-point dtype.

    Raises:
        TypeError: it is another one.
    """
    dtype = np.dtype(dtype)
    if not is_inexact(dtype) or is_complex(dtype):
        raise TypeError(f"the default dtype is a floating-point one, not {dtype}{at_line(user_line())}")
    _default_dtype[0] = dtype


def get_default_dtype() -> Any:
    """The dtype of tensors that are created from no data or from Python's floats."""
    return _default_dtype[0]


def by_default(array: Any, data: Any, dtype: Any = None) -> Any:
    """An array of Python's numbers in the default dtype, unless one was asked for or the data have one."""
    if dtype is not None or array.dtype != np.float64 or _has_dtype(data):
        return array
    return array.astype(get_default_dtype(), copy=False)


def _has_dtype(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return any(map(_has_dtype, data))
    return hasattr(data, "dtype")
