"""What the functions of `numpy.linalg` ask of their operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import is_inexact
from ..promotion import asarray, cast, result_dtype

LinAlgError = np.linalg.LinAlgError


def matrices(*xs: Any) -> list[Tracer]:
    """Operands in the floating-point dtype that linear algebra computes them in."""
    tracers = [asarray(x) for x in xs]
    dtype = result_dtype(*tracers)
    if not is_inexact(dtype):
        dtype = np.dtype(np.float64)
    if dtype == np.float16:
        raise TypeError(f"array type float16 is unsupported in linalg{at_line(user_line())}")
    return [cast(x, dtype) for x in tracers]


def check_matrices(name: str, a: Tracer) -> None:
    """Raise unless the last two axes hold matrices."""
    if a.ndim < 2:
        raise LinAlgError(f"{name} takes matrices in the last two axes, not {a.type}{at_line(user_line())}")


def check_square(name: str, a: Tracer) -> None:
    """Raise unless the last two axes hold square matrices."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise LinAlgError(f"{name} takes square matrices in the last two axes, not {a.type}{at_line(user_line())}")


def adjoint(a: Any) -> Any:
    """Each matrix transposed and conjugated."""
    return np.conj(np.swapaxes(a, -1, -2))
