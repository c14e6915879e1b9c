"""`scipy.linalg` on arrays and traced values."""

from typing import Any as _Any

from scipy.linalg import (
    LinAlgError,
    LinAlgWarning,
    dft,
    hadamard,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    pascal,
)

from .equations import (
    cho_solve,
    det,
    inv,
    lstsq,
    lu_solve,
    matmul_toeplitz,
    pinv,
    pinvh,
    solve,
    solve_banded,
    solve_circulant,
    solve_continuous_lyapunov,
    solve_discrete_lyapunov,
    solve_sylvester,
    solve_toeplitz,
    solve_triangular,
    solveh_banded,
)
from .factorisations import (
    cho_factor,
    cholesky,
    eig,
    eig_banded,
    eigh,
    eigh_tridiagonal,
    eigvals,
    eigvals_banded,
    eigvalsh,
    eigvalsh_tridiagonal,
    lu,
    lu_factor,
    orthogonal_procrustes,
    polar,
    qr,
    rq,
    svd,
    svdvals,
)
from .matrix_functions import (
    coshm,
    cosm,
    expm,
    expm_frechet,
    fractional_matrix_power,
    logm,
    signm,
    sinhm,
    sinm,
    sqrtm,
    tanhm,
    tanm,
)
from .norms import norm
from .special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    diagsvd,
    fiedler,
    hankel,
    khatri_rao,
    leslie,
    toeplitz,
)
from .untraced import FUNCTIONS as _FUNCTIONS

solve_lyapunov = solve_continuous_lyapunov


def __getattr__(name: str) -> _Any:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "LinAlgError", "LinAlgWarning", "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion",
    "convolution_matrix", "coshm", "cosm", "det", "dft", "diagsvd", "eig", "eig_banded", "eigh", "eigh_tridiagonal",
    "eigvals", "eigvals_banded", "eigvalsh", "eigvalsh_tridiagonal", "expm", "expm_frechet", "fiedler",
    "fractional_matrix_power", "hadamard", "hankel", "helmert", "hilbert", "inv", "invhilbert", "invpascal",
    "khatri_rao", "leslie", "logm", "lstsq", "lu", "lu_factor", "lu_solve", "matmul_toeplitz", "norm",
    "orthogonal_procrustes", "pascal", "pinv", "pinvh", "polar", "qr", "rq", "signm", "sinhm", "sinm", "solve",
    "solve_banded", "solve_circulant", "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_lyapunov",
    "solve_sylvester", "solve_toeplitz", "solve_triangular", "solveh_banded", "sqrtm", "svd", "svdvals", "tanhm",
    "tanm", "toeplitz",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
