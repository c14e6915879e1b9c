"""`numpy.linalg`: equations, inverses and determinants."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from ...base.foreign import NO_VALUE
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.witness import ConcretizationError
from ...ops import linalg as ops
from ..dispatch import implements
from ..promotion import asarray, broadcast_to, cast, real_dtype, reshaped
from .operands import LinAlgError, check_matrices, check_square, matrices

__all__ = ["det", "inv", "lstsq", "pinv", "slogdet", "solve", "tensorinv", "tensorsolve"]


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """`x` in `a @ x = b`; a `b` of one axis is a vector, any other holds matrices."""
    a, b = matrices(a, b)
    check_square("solve", a)
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
    (a,) = matrices(a)
    check_square("inv", a)
    return ops.inv(a)


@implements(np.linalg.det)
def det(a: Any) -> Any:
    """The determinants of matrices."""
    (a,) = matrices(a)
    check_square("det", a)
    return ops.det(a)


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the absolute value of determinants."""

    sign: Any
    logabsdet: Any


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants."""
    (a,) = matrices(a)
    check_square("slogdet", a)
    return SlogdetResult(*ops.slogdet(a))


def cutoff_of(a: Tracer, rcond: Any) -> Any:
    """The singular values to leave out, relative to the largest one, as an array for each matrix of `a`."""
    cutoff = cast(asarray(rcond), real_dtype(a.dtype))
    try:
        return broadcast_to(cutoff, a.shape[:-2])
    except ValueError:
        raise ValueError(
            f"a cutoff of type {cutoff.type} does not fit the matrices {a.type}{at_line(user_line())}"
        ) from None


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NO_VALUE) -> Any:
    """The Moore-Penrose pseudo-inverses of matrices; derivatives assume that the rank does not change."""
    (a,) = matrices(a)
    check_matrices("pinv", a)
    if rcond is not None and rtol is not NO_VALUE:
        raise ValueError(f"`rtol` and `rcond` can't be both set.{at_line(user_line())}")
    if rcond is None and rtol is NO_VALUE:
        rcond = 1e-15
    elif rcond is None:
        rcond = max(a.shape[-2:]) * np.finfo(a.dtype).eps if rtol is None else rtol
    if hermitian:
        check_square("pinv of Hermitian matrices", a)
    return ops.pinv(a, cutoff_of(a, rcond), symmetric=bool(hermitian))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """The least-squares solution of minimum norm, sums of squared residuals, rank and singular values."""
    a, b = matrices(a, b)
    is_vector = b.ndim == 1
    if is_vector:
        b = reshaped(b, (*b.shape, 1))
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[0]:
        raise LinAlgError(
            f"lstsq takes a matrix and right-hand sides of as many rows, not {a.type} and {b.type}"
            f"{at_line(user_line())}"
        )
    if rcond is None:
        rcond = max(a.shape) * np.finfo(a.dtype).eps
    x, residuals, rank, values = least_squares(a, b, rcond)
    return (x[:, 0] if is_vector else x), residuals, rank.astype(np.int32), values


def least_squares(a: Any, b: Any, rcond: Any) -> tuple[Any, Any, Any, Any]:
    """What `lstsq` gives, for matrices with the same leading axes."""
    if np.ndim(rcond) == 0 and not isinstance(rcond, Tracer) and not 0 < rcond < 1:
        # As LAPACK does.
        rcond = np.finfo(a.dtype).eps
    x = np.matmul(ops.pinv(a, cutoff_of(a, rcond), symmetric=False), b)
    values = np.linalg.svdvals(a)
    rank = np.sum(values > values[..., :1] * rcond, -1)
    return x, _residuals(a, x, b, rank), rank, values


def _residuals(a: Tracer, x: Tracer, b: Tracer, rank: Any) -> Any:
    """The sums of squares; as in NumPy, there are none where the rank is less than the number of unknowns."""
    m, n = a.shape[-2:]
    none = np.zeros_like(a, real_dtype(a.dtype), shape=(*a.shape[:-2], 0))
    if m <= n:
        return none
    squares, is_full = np.sum(np.square(np.abs(b - a @ x)), -2), rank == n
    try:
        if np.all(is_full):
            return squares
        if a.ndim == 2:
            return none
    except ConcretizationError:
        pass
    # Under vmap and in stacks, the shape cannot depend on the rank: not a number stands for those that are not there.
    return np.where(is_full[..., None], squares, np.nan)


# Tensors


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """`x` in `tensordot(a, x, x.ndim) = b`."""
    a, b = asarray(a), asarray(b)
    if axes is not None:
        order = [k for k in range(a.ndim) if k not in axes] + list(axes)
        a = np.transpose(a, order)
    shape = a.shape[b.ndim :]
    size = math.prod(shape)
    if math.prod(a.shape[: b.ndim]) != size or b.size != size:
        raise LinAlgError(
            f"tensorsolve: {a.type} has other sizes in the axes of {b.type} than in the rest{at_line(user_line())}"
        )
    return np.reshape(np.linalg.solve(np.reshape(a, (size, size)), np.ravel(b)), shape)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of `tensordot(a, b, ind)` as a map of `b`."""
    a = asarray(a)
    ind = operator.index(ind)
    if ind <= 0:
        raise ValueError(f"Invalid ind argument.{at_line(user_line())}")
    size = math.prod(a.shape[:ind])
    if a.size != size * size:
        raise LinAlgError(
            f"tensorinv: the first {ind} axes of {a.type} have another size than the rest{at_line(user_line())}"
        )
    return np.reshape(np.linalg.inv(np.reshape(a, (size, size))), a.shape[ind:] + a.shape[:ind])
