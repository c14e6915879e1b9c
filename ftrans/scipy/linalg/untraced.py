"""The functions of `scipy.linalg` that have no traced form, each with the reason and what to write instead."""

from __future__ import annotations

import scipy.linalg

from ...numpy.dispatch import refused

_STRUCTURE = (
    "its result depends on which elements are zero, so it has no derivative; call it outside the traced function"
)
_BASIS = (
    "the number of its columns depends on values, and the basis is arbitrary; use the left or right vectors of "
    "scipy.linalg.svd that you need, by their index, or scipy.linalg.qr with mode='full'"
)
_SCHUR = "the Schur form has no derivative at equal eigenvalues; use eig, or a matrix function such as expm or sqrtm"
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
    "hessenberg": "it has no rule for derivatives; use qr, eig or eigh",
    "ldl": "its pivots are in blocks that depend on values; use cholesky, lu or eigh",
    "cdf2rdf": "it returns pairs of eigenvalues in real form; use their real and imaginary parts",
    "cossin": "it is four singular value decompositions in one; use svd of the blocks",
    "matrix_balance": "its scales are powers of two that depend on values; scale the matrix beforehand",
    "qr_delete": _UPDATE,
    "qr_insert": _UPDATE,
    "qr_update": _UPDATE,
    "expm_cond": "use the norm of expm_frechet along the directions that matter",
    "funm": "use expm, logm, sqrtm, signm, cosm, sinm or fractional_matrix_power, which have derivatives of all orders",
    "clarkson_woodruff_transform": (
        "it multiplies by a random matrix; create that matrix beforehand, and multiply by it"
    ),
}

FUNCTIONS = {
    name: refused(getattr(scipy.linalg, name), f"scipy.linalg.{name}", why)
    for name, why in REASONS.items()
    if hasattr(scipy.linalg, name)
}
