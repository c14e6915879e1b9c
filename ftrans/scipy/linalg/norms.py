"""`scipy.linalg.norm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .operands import implemented, matrices

__all__ = ["norm"]


@implemented
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """Norm of vectors or matrices; its derivative at 0 is 0."""
    (a,) = matrices(a)
    return np.linalg.norm(a, ord, axis, keepdims)
