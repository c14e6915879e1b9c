"""Hypergeometric functions, differentiable in their argument, and the Lambert W function."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, broadcast_shapes, operand
from ...ops.special import hypergeometric as _hypergeometric
from .entry import ufunc

__all__ = ["hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "lambertw", "wrightomega"]

hyp0f1 = ufunc("hyp0f1", _hypergeometric.hyp0f1)
hyp1f1 = ufunc("hyp1f1", _hypergeometric.hyp1f1)
hyp2f1 = ufunc("hyp2f1", _hypergeometric.hyp2f1)
hyperu = ufunc("hyperu", _hypergeometric.hyperu)
wrightomega = ufunc("wrightomega", _hypergeometric.wrightomega)


@implements(scipy.special.lambertw)
def lambertw(z: Any, k: Any = 0, tol: Any = 1e-8) -> Any:
    """`scipy.special.lambertw` on arrays and on traced values; the result is complex."""
    z, k, tol = asarray(z), asarray(k), asarray(tol)
    shape = broadcast_shapes("lambertw", z, k, tol)
    z = operand(z, np.dtype(np.complex128), shape)
    return _hypergeometric.lambertw(operand(k, np.dtype(np.int64), shape), operand(tol, np.dtype(float), shape), z)
