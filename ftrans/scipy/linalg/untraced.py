"""The functions of `scipy.linalg` that have no traced form, each with the reason and what to write instead."""

from __future__ import annotations

import scipy.linalg

from ...numpy.dispatch import refused

_STRUCTURE = "it says something of the elements of one array; ask before the traced function is called"
_BASIS = (
    "the number of its columns depends on values, and the basis is any one; take the left or right vectors of "
    "scipy.linalg.svd that you need by their index, or scipy.linalg.qr with mode='full'"
)
_SCHUR = "the Schur form has no derivative where eigenvalues meet; take eig, or a matrix function such as expm or sqrtm"
_UPDATE = "it updates factors for speed; factor the changed matrix by scipy.linalg.qr, which has derivatives"

REASONS = {
    "bandwidth": _STRUCTURE,
    "issymmetric": _STRUCTURE,
    "ishermitian": _STRUCTURE,
    "null_space": _BASIS,
    "orth": _BASIS,
    "schur": _SCHUR,
    "rsf2csf": _SCHUR,
    "qz": _SCHUR,
    "ordqz": _SCHUR,
    "hessenberg": "its reflections have no use of their own; take qr, eig or eigh",
    "ldl": "its pivots come in blocks that depend on values; take cholesky, lu or eigh",
    "cdf2rdf": "it gives eigenvalues of pairs in real form; take their real and imaginary parts",
    "cossin": "it is four singular value decompositions in one; take svd of the blocks",
    "matrix_balance": "its scales are powers of two that depend on values; scale the matrix before",
    "qr_delete": _UPDATE,
    "qr_insert": _UPDATE,
    "qr_update": _UPDATE,
    "expm_cond": "take the norm of expm_frechet along the directions that matter",
    "funm": "take expm, logm, sqrtm, signm, cosm, sinm or fractional_matrix_power, which have all derivatives",
    "clarkson_woodruff_transform": "it multiplies by a random matrix; make that matrix before, and multiply by it",
}

FUNCTIONS = {
    name: refused(getattr(scipy.linalg, name), f"scipy.linalg.{name}", why)
    for name, why in REASONS.items()
    if hasattr(scipy.linalg, name)
}
