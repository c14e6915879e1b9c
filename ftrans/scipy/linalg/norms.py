"""`scipy.linalg.norm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .operands import implemented, matrices

__all__ = ["norm"]


@implemented
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """Norm of vectors or matrices; its derivative at 0 is 0.

    Arguments are SciPy's: of the whole array, or along one `axis` for vectors and two for matrices.

    Returns:
        The norms, of the shape of `a` without these axes, which have size 1 with `keepdims`.

    Raises:
        ValueError: there is no norm of this `ord`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> print(ft.grad(linalg.norm)(np.array([3.0, 4.0])))
        [0.6 0.8]
    """
    (a,) = matrices(a)
    return np.linalg.norm(a, ord, axis, keepdims)
