"""`numpy.linalg`: the functions that have a traced form.  The others raise an error with their name."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import is_complex, is_inexact
from ..ops import linalg as ops
from .dispatch import implements, missing
from .manipulation import matrix_diagonal as diagonal
from .manipulation import matrix_transpose, normal_axes
from .products import matmul, outer, tensordot, vecdot
from .products import matrix_trace as trace
from .products import vector_cross as cross
from .promotion import asarray, broadcast_to, cast, reshaped, result_dtype
from .statistics import root
from .ufuncs import deliver

LinAlgError = np.linalg.LinAlgError

__all__ = [
    "LinAlgError", "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_transpose", "multi_dot", "norm", "outer", "slogdet", "solve", "tensordot", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip


def _matrices(*xs: Any) -> list[Tracer]:
    """Operands in the floating-point dtype that linear algebra computes them in."""
    tracers = [asarray(x) for x in xs]
    dtype = result_dtype(*tracers)
    if not is_inexact(dtype):
        dtype = np.dtype(np.float64)
    if dtype == np.float16:
        raise TypeError(f"array type float16 is unsupported in linalg{at_line(user_line())}")
    return [cast(x, dtype) for x in tracers]


def _check_square(name: str, a: Tracer) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise LinAlgError(f"{name} takes square matrices in the last two axes, not {a.type}{at_line(user_line())}")


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """`x` in `a @ x = b`; a `b` of one axis is a vector, any other holds matrices."""
    a, b = _matrices(a, b)
    _check_square("solve", a)
    is_vector = b.ndim == 1
    if is_vector:
        b = reshaped(b, (*b.shape, 1))
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ValueError(f"solve: right-hand sides {b.type} do not fit the matrices {a.type}{at_line(user_line())}")
    try:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(f"solve: batches of {a.type} and {b.type} do not fit together{at_line(user_line())}") from None
    x = ops.solve(broadcast_to(a, (*lead, *a.shape[-2:])), broadcast_to(b, (*lead, *b.shape[-2:])))
    return reshaped(x, x.shape[:-1]) if is_vector else x


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    """The inverses of matrices."""
    (a,) = _matrices(a)
    _check_square("inv", a)
    return ops.inv(a)


@implements(np.linalg.det)
def det(a: Any) -> Any:
    """The determinants of matrices."""
    (a,) = _matrices(a)
    _check_square("det", a)
    return ops.det(a)


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the absolute value of determinants."""

    sign: Any
    logabsdet: Any


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants."""
    (a,) = _matrices(a)
    _check_square("slogdet", a)
    return SlogdetResult(*ops.slogdet(a))


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The triangular factors of positive definite matrices."""
    (a,) = _matrices(a)
    _check_square("cholesky", a)
    if upper:
        return np.conj(np.swapaxes(ops.cholesky(np.conj(np.swapaxes(a, -1, -2))), -1, -2))
    return ops.cholesky(a)


class EighResult(NamedTuple):
    """Eigenvalues, increasing, and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices, of which one triangle is read."""
    (a,) = _matrices(a)
    _check_square("eigh", a)
    if UPLO.upper() not in ("L", "U"):
        raise ValueError(f"UPLO argument must be 'L' or 'U'{at_line(user_line())}")
    return EighResult(*ops.eigh(a if UPLO.upper() == "L" else np.conj(np.swapaxes(a, -1, -2))))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of Hermitian matrices, of which one triangle is read."""
    return np.linalg.eigh(a, UPLO)[0]


# Norms


def _abs(x: Tracer) -> Tracer:
    return np.abs(x)


def _vector_norm(x: Tracer, order: Any, axes: Any, keepdims: bool) -> Any:
    if order is None or order == 2:
        squares = np.square(x.real) + np.square(x.imag) if is_complex(x.dtype) else np.square(x)
        return root(np.sum(squares, axes, keepdims=keepdims))
    if order == math.inf:
        return np.max(_abs(x), axes, keepdims=keepdims)
    if order == -math.inf:
        return np.min(_abs(x), axes, keepdims=keepdims)
    if order == 0:
        return np.sum(cast(x != 0, x.real.dtype), axes, keepdims=keepdims)
    if order == 1:
        return np.sum(_abs(x), axes, keepdims=keepdims)
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order {order!r} for vectors{at_line(user_line())}")
    total = np.sum(_abs(x) ** order, axes, keepdims=keepdims)
    # Where the norm is 0, so is its derivative.
    is_zero = total == 0
    return np.where(is_zero, total, np.where(is_zero, 1.0, total) ** (1.0 / order))


def _matrix_norm(x: Tracer, order: Any, axes: Sequence[int], keepdims: bool) -> Any:
    row, column = axes
    if order in (None, "fro", "f"):
        return _vector_norm(x, 2, (row, column), keepdims)
    if order in (2, -2, "nuc"):
        raise missing(f"numpy.linalg.norm of matrices with ord={order!r}, which takes singular values,")
    if order not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"Invalid norm order {order!r} for matrices{at_line(user_line())}")
    summed, other = (row, column) if abs(order) == 1 else (column, row)
    sums = np.sum(_abs(x), summed, keepdims=True)
    result = (np.max if order > 0 else np.min)(sums, other, keepdims=True)
    return result if keepdims else np.squeeze(result, (row, column))


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A norm of vectors or matrices; where it is 0, so is its derivative."""
    x = asarray(x)
    if not is_inexact(x.dtype):
        x = cast(x, np.dtype(np.float64))
    if axis is None:
        if ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1):
            return _vector_norm(x, 2, None, keepdims)
        if x.ndim > 2:
            raise ValueError(f"Improper number of dimensions to norm: {x.type}; give axis={at_line(user_line())}")
    axes = normal_axes(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) != 2:
        raise ValueError(f"Improper number of dimensions to norm.{at_line(user_line())}")
    return _matrix_norm(x, ord, axes, keepdims)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """A norm of vectors along axes; where it is 0, so is its derivative."""
    x = asarray(x)
    x = x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64))
    return _vector_norm(x, ord, normal_axes(axis, x.ndim), keepdims)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """A norm of the matrices in the last two axes."""
    x = asarray(x)
    x = x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64))
    return _matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


# Products


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    """Square matrices raised to an integer power."""
    a = asarray(a)
    _check_square("matrix_power", a)
    n = operator.index(n)
    if n < 0:
        a, n = np.linalg.inv(a), -n
    if n == 0:
        return np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape) + np.zeros_like(a)
    result = None
    while True:
        n, bit = divmod(n, 2)
        if bit:
            result = a if result is None else result @ a
        if not n:
            return result
        a = a @ a


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of several matrices, in the order that takes the least work."""
    xs = [asarray(x) for x in arrays]
    if len(xs) < 2:
        raise ValueError(f"Expecting at least two arrays.{at_line(user_line())}")
    first, last = xs[0].ndim == 1, xs[-1].ndim == 1
    xs[0] = reshaped(xs[0], (1, xs[0].size)) if first else xs[0]
    xs[-1] = reshaped(xs[-1], (xs[-1].size, 1)) if last else xs[-1]
    sizes = [x.shape[0] for x in xs] + [xs[-1].shape[1]]
    cost: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(xs))}
    for width in range(1, len(xs)):
        for i in range(len(xs) - width):
            j = i + width
            cost[i, j] = min(
                (cost[i, k][0] + cost[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> Any:
        if i == j:
            return xs[i]
        k = cost[i, j][1]
        return np.dot(product(i, k), product(k + 1, j))

    result = product(0, len(xs) - 1)
    shape = result.shape[first : 2 - last]
    return deliver(reshaped(result, shape), out, "multi_dot")
