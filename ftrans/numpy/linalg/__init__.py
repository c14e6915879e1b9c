"""`numpy.linalg` on arrays and traced values."""

from ..manipulation import matrix_diagonal as diagonal
from ..manipulation import matrix_transpose
from ..products import matmul, tensordot, vecdot
from ..products import matrix_trace as trace
from ..products import vector_cross as cross
from ..products import vector_outer as outer
from .chains import matrix_power, multi_dot
from .decompositions import (
    cholesky,
    cond,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    matrix_rank,
    qr,
    svd,
    svdvals,
)
from .equations import det, inv, lstsq, pinv, slogdet, solve, tensorinv, tensorsolve
from .norms import matrix_norm, norm, vector_norm
from .operands import LinAlgError

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv",
    "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot",
    "vector_norm",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
