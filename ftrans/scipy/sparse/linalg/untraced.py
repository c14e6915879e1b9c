"""The functions of `scipy.sparse.linalg` that have no traced form, each with the reason and what to write instead."""

from __future__ import annotations

import scipy.sparse.linalg

from ....numpy.dispatch import refused

_OTHER_SOLVER = "take cg, bicgstab or gmres, or spsolve, whose solutions have derivatives"
_DENSE = "its result is dense; take the function of scipy.linalg of A.toarray(), or apply it to vectors by spsolve"
_LEAST_SQUARES = "solve A.T @ A x = A.T @ b by spsolve or cg, or take numpy.linalg.lstsq of A.toarray()"

REASONS = {
    **dict.fromkeys(("bicg", "cgs", "gcrotmk", "lgmres", "minres", "qmr", "tfqmr"), _OTHER_SOLVER),
    "eigs": "take numpy.linalg.eig of A.toarray(), or eigsh for a symmetric matrix",
    "lobpcg": "take eigsh",
    "expm": _DENSE.replace("spsolve", "expm_multiply"),
    "inv": _DENSE,
    **dict.fromkeys(("lsmr", "lsqr"), _LEAST_SQUARES),
    "matrix_power": "write A @ A",
    "onenormest": "take norm(A, 1)",
    "spilu": "factorise a plain matrix outside of the traced function, as a preconditioner; it has no derivative",
    "funm_multiply_krylov": "take expm_multiply, or a function of scipy.linalg of A.toarray()",
}

FUNCTIONS = {
    name: refused(getattr(scipy.sparse.linalg, name), f"scipy.sparse.linalg.{name}", why)
    for name, why in REASONS.items()
    if hasattr(scipy.sparse.linalg, name)
}
