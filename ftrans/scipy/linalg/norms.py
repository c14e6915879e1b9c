"""`scipy.linalg.norm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .operands import implemented, matrices


@implemented
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """A norm of vectors or matrices; where it is 0, so is its derivative."""
    (a,) = matrices(a)
    return np.linalg.norm(a, ord, axis, keepdims)
