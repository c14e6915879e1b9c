"""`scipy.linalg`: functions of square matrices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import is_complex
from ...ops import linalg as ops
from .operands import check_square, implemented, in_double_precision, matrices

__all__ = [
    "coshm", "cosm", "expm", "expm_frechet", "fractional_matrix_power", "logm", "signm", "sinhm", "sinm", "sqrtm",
    "tanhm", "tanm",
]  # fmt: skip


def _square(name: str, a: Any) -> Any:
    (a,) = matrices(a)
    check_square(name, a)
    return a


@implemented
def expm(A: Any) -> Any:
    """The exponentials of matrices.

    Arguments are SciPy's: `A` has the shape (..., n, n).

    Returns:
        The exponentials, of the shape (..., n, n).

    Raises:
        LinAlgError: a matrix is not square.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> print(ft.grad(lambda t: linalg.expm(t * np.array([[0.0, 1.0], [0.0, 0.0]]))[0, 1])(2.0))
        1.0
    """
    return ops.expm(_square("expm", A))


@implemented
def expm_frechet(
    A: Any, E: Any, method: str | None = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """Matrix exponential and its Frechet derivative in the direction `E`."""
    a, e = in_double_precision(A, E)
    check_square("expm_frechet", a)
    change = ops.expm(a, e)
    return (ops.expm(a), change) if compute_expm else change


@implemented
def logm(A: Any, disp: Any = True) -> Any:
    """Principal logarithms of matrices; the logarithm of a real matrix must be real.

    Arguments are SciPy's: `A` has the shape (n, n).

    Returns:
        The logarithms, of the shape (n, n).

    Raises:
        LinAlgError: a matrix is not square, or the logarithm of a real one is complex.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> print(ft.grad(lambda s: np.trace(linalg.logm(s * np.eye(2))))(4.0).round(12))
        0.5
    """
    (a,) = in_double_precision(_square("logm", A))
    return ops.logm(a)


@implemented
def sqrtm(A: Any, disp: Any = True, blocksize: Any = 64) -> Any:
    """Principal square roots of matrices; the root of a real matrix must be real.

    Arguments are SciPy's: `A` has the shape (n, n).

    Returns:
        The roots, of the shape (n, n).

    Raises:
        LinAlgError: a matrix is not square, or the root of a real one is complex.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> print(ft.grad(lambda s: np.trace(linalg.sqrtm(s * np.eye(2))))(4.0).round(12))
        0.5
    """
    return ops.sqrtm(_square("sqrtm", A))


@implemented
def signm(A: Any, disp: Any = True) -> Any:
    """Matrix sign functions: eigenvalues become 1 or -1 by the sign of their real parts."""
    return ops.signm(_square("signm", A))


@implemented
def fractional_matrix_power(A: Any, t: Any) -> Any:
    """Powers of matrices, for any real exponent."""
    a = _square("fractional_matrix_power", A)
    if not isinstance(t, Tracer) and float(t).is_integer():
        return np.linalg.matrix_power(a, operator.index(int(t)))
    if np.ndim(t):
        raise ValueError(f"fractional_matrix_power takes one exponent, not {t}{at_line(user_line())}")
    return ops.expm(t * logm(a))


def _halves(a: Any) -> tuple[Any, Any]:
    return ops.expm(a), ops.expm(-a)


def _turning(a: Any) -> tuple[Any, Any]:
    """Cosine and sine."""
    if is_complex(a.dtype):
        there, back = _halves(1j * a)
        return (there + back) / 2, (there - back) / 2j
    whole = ops.expm(1j * a)
    return whole.real, whole.imag


@implemented
def cosm(A: Any) -> Any:
    """The cosines of matrices."""
    return _turning(_square("cosm", A))[0]


@implemented
def sinm(A: Any) -> Any:
    """The sines of matrices."""
    return _turning(_square("sinm", A))[1]


@implemented
def tanm(A: Any) -> Any:
    """The tangents of matrices."""
    cosine, sine = _turning(_square("tanm", A))
    return np.linalg.solve(cosine, sine)


@implemented
def coshm(A: Any) -> Any:
    """The hyperbolic cosines of matrices."""
    there, back = _halves(_square("coshm", A))
    return (there + back) / 2


@implemented
def sinhm(A: Any) -> Any:
    """The hyperbolic sines of matrices."""
    there, back = _halves(_square("sinhm", A))
    return (there - back) / 2


@implemented
def tanhm(A: Any) -> Any:
    """The hyperbolic tangents of matrices."""
    there, back = _halves(_square("tanhm", A))
    return np.linalg.solve(there + back, there - back)
