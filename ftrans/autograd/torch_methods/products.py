"""Products and matrices: methods of torch's tensors as functions of any value."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arguments import in_dtype_of


def matmul(x: Any, other: Any) -> Any:
    """The product of matrices along the last two axes."""
    return np.matmul(x, other)


def mm(x: Any, mat2: Any) -> Any:
    """The product of two matrices, or of those along the first axes."""
    return np.matmul(x, mat2)


def mv(x: Any, vec: Any) -> Any:
    """The product of a matrix and a vector."""
    return np.matmul(x, vec)


def dot(x: Any, tensor: Any) -> Any:
    """The inner product of two vectors."""
    return np.dot(x, tensor)


def addmm(x: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * x + alpha * (mat1 @ mat2)`."""
    return _added(x, np.matmul(mat1, mat2), beta, alpha)


def _added(x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """`beta * x + alpha * product`; at `beta=0`, nothing of `x` counts, be it NaN."""
    product = product if alpha == 1 else alpha * product
    return product if beta == 0 else (x if beta == 1 else beta * x) + product


def addbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * x` plus `alpha` times the sum of the products of the matrices of two batches."""
    return _added(x, np.sum(np.matmul(batch1, batch2), 0), beta, alpha)


def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * x` plus `alpha` times the outer product of two vectors."""
    return _added(x, np.outer(vec1, vec2), beta, alpha)


def outer(x: Any, vec2: Any) -> Any:
    """The products of each two elements of two vectors."""
    return np.outer(x, vec2)


def inner(x: Any, other: Any) -> Any:
    """The inner products along the last axes."""
    return np.inner(x, other)


def cross(x: Any, other: Any, dim: int = -1) -> Any:
    """The cross products along an axis of size three."""
    return np.cross(x, other, axis=dim)


def kron(x: Any, other: Any) -> Any:
    """The Kronecker product."""
    return np.kron(x, other)


def trace(x: Any) -> Any:
    """The sum of the diagonal of a matrix."""
    return np.trace(x)


def det(x: Any) -> Any:
    """The determinants of matrices along the last two axes."""
    return np.linalg.det(x)


def logdet(x: Any) -> Any:
    """The logarithms of the determinants, NaN where they are negative."""
    sign, logarithm = np.linalg.slogdet(x)
    return np.where(sign < 0, np.nan, logarithm)


def slogdet(x: Any) -> Any:
    """The signs and the logarithms of the absolute values of the determinants."""
    return tuple(np.linalg.slogdet(x))


def inverse(x: Any) -> Any:
    """The inverses of matrices along the last two axes."""
    return np.linalg.inv(x)


def pinverse(x: Any, rcond: float = 1e-15) -> Any:
    """The pseudoinverses of matrices along the last two axes."""
    return np.linalg.pinv(x, rcond)


def cholesky(x: Any, upper: bool = False) -> Any:
    """The Cholesky factors of matrices along the last two axes."""
    return np.linalg.cholesky(x, upper=upper)


def qr(x: Any, some: bool = True) -> Any:
    """The QR factors of matrices along the last two axes."""
    return tuple(np.linalg.qr(x, "reduced" if some else "complete"))


def svd(x: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """The factors U, S and V of matrices along the last two axes, where `x = U S V^H`."""
    u, s, vh = np.linalg.svd(x, full_matrices=not some)
    return u, s, np.conj(np.swapaxes(vh, -2, -1))


def matrix_power(x: Any, n: int) -> Any:
    """The products of matrices with themselves."""
    return np.linalg.matrix_power(x, n)


def cov(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariances of the rows."""
    return in_dtype_of(x, np.cov(x, ddof=correction, fweights=fweights, aweights=aweights))


def corrcoef(x: Any) -> Any:
    """The correlations of the rows."""
    return in_dtype_of(x, np.corrcoef(x))


def einsum(equation: str, *operands: Any) -> Any:
    """Sums of products, as `numpy.einsum`; the operands may be in one list."""
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    return np.einsum(equation, *given)


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Sums of products along axes of two arrays."""
    return np.tensordot(a, b, dims)


def cdist(x1: Any, x2: Any, p: Any = 2.0) -> Any:
    """The norms of the differences of each two rows of two arrays."""
    return np.linalg.vector_norm(np.expand_dims(x1, -2) - np.expand_dims(x2, -3), axis=-1, ord=p)


METHODS = {
    "matmul": matmul, "mm": mm, "bmm": mm, "mv": mv, "dot": dot, "vdot": np.vdot, "addmm": addmm,
    "addmv": addmm, "baddbmm": addmm, "addbmm": addbmm, "addr": addr, "outer": outer, "ger": outer, "inner": inner,
    "cross": cross, "kron": kron, "trace": trace, "det": det, "logdet": logdet, "slogdet": slogdet,
    "inverse": inverse, "pinverse": pinverse, "cholesky": cholesky, "qr": qr, "svd": svd,
    "matrix_power": matrix_power, "cov": cov, "corrcoef": corrcoef,
}  # fmt: skip
FUNCTIONS = {"einsum": einsum, "tensordot": tensordot, "cdist": cdist}
