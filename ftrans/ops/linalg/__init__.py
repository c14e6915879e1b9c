"""Primitives of linear algebra, on the matrices in the last two axes of their operands; all leading axes are a batch.

Where a matrix is singular, or not positive definite, NumPy raises LinAlgError and XLA returns NaN or infinities.
Derivatives follow Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), and for the Cholesky factor Smith (1995) and Murray, "Differentiation of the Cholesky
decomposition" (2016).  A factorisation that reads one triangle of a symmetric matrix is differentiated as a function
of the symmetric part of its operand, so the gradient of a symmetric matrix is symmetric.

Decompositions into values and vectors are in `ftrans/spectral/`.
"""

from .determinants import cofactors, det, slogdet
from .equations import inv, pinv, solve, sylvester, triangular_solve
from .factorisations import cholesky, lu, order_of_rows, qr
from .family import hermitian
from .matrix_functions import expm, logm, signm, sqrtm
from .polar import nuclear_norm, polar_factor
from .riccati import riccati

__all__ = [
    "cholesky",
    "cofactors",
    "det",
    "expm",
    "hermitian",
    "inv",
    "logm",
    "lu",
    "nuclear_norm",
    "order_of_rows",
    "pinv",
    "polar_factor",
    "qr",
    "riccati",
    "signm",
    "slogdet",
    "solve",
    "sqrtm",
    "sylvester",
    "triangular_solve",
]
