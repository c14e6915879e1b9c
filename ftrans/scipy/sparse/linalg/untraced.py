"""The functions of `scipy.sparse.linalg` that have no traced form, each with the reason and what to write instead."""

from __future__ import annotations

import scipy.sparse.linalg

from ....numpy.dispatch import refused

_OTHER_SOLVER = "use cg, bicgstab, gmres or spsolve, whose solutions have derivatives"
_DENSE = "its result is dense; use the function of scipy.linalg with A.toarray(), or apply it to vectors with spsolve"
_LEAST_SQUARES = "solve A.T @ A x = A.T @ b by spsolve or cg, or use numpy.linalg.lstsq with A.toarray()"

REASONS = {
    **dict.fromkeys(("bicg", "cgs", "gcrotmk", "lgmres", "minres", "qmr", "tfqmr"), _OTHER_SOLVER),
    "eigs": "use numpy.linalg.eig of A.toarray(), or eigsh for a symmetric matrix",
    "lobpcg": "use eigsh",
    "expm": _DENSE.replace("spsolve", "expm_multiply"),
    "inv": _DENSE,
    **dict.fromkeys(("lsmr", "lsqr"), _LEAST_SQUARES),
    "matrix_power": "write A @ A",
    "onenormest": "use norm(A, 1)",
    "spilu": "factorise a plain matrix outside the traced function, as a preconditioner; it has no derivative",
    "funm_multiply_krylov": "use expm_multiply, or a function of scipy.linalg with A.toarray()",
}

FUNCTIONS = {
    name: refused(getattr(scipy.sparse.linalg, name), f"scipy.sparse.linalg.{name}", why)
    for name, why in REASONS.items()
    if hasattr(scipy.sparse.linalg, name)
}
