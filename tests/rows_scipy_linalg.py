"""Rows of `scipy.linalg`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from function_rows import row
from rows_linalg import COMPLEX, spread, turning, without_signs
from sampling import c128, distinct, f32, given, invertible, normal, positive_definite, separated, triangular, uniform

ONCE: dict[str, Any] = {"dtypes": ()}
# Since this version all functions of SciPy take stacks.
STACK = (2,) if np.lib.NumpyVersion(scipy.__version__) >= "1.17.0" else ()

# Equations

row("scipy.linalg.solve", invertible(2, 2), normal((2,)), transposed=True)
row("scipy.linalg.solve", positive_definite(2, 2, dtype=c128), normal((2, 1), c128), assume_a="pos", hermitian=(0,))
for structure in ("sym", "her", "tridiagonal", "diagonal", "lower triangular"):
    symmetric = structure in ("sym", "her")
    source = separated(3, 3) if symmetric else triangular(3, 3)
    row("scipy.linalg.solve", source, normal((3, 2)), assume_a=structure, hermitian=(0,) if symmetric else (), **ONCE)
row(
    "scipy.linalg.solve", normal((2, 2), c128), normal((2,), c128), assume_a="sym", lower=True, looseness=100, **COMPLEX
)
row("scipy.linalg.solve_triangular", triangular(3, 3), normal((3,)), lower=True)
row("scipy.linalg.solve_triangular", triangular(2, 2, dtype=c128), normal((2, 2), c128), trans="C", **COMPLEX)
row("scipy.linalg.solve_triangular", triangular(2, 2), normal((2,)), trans=1, unit_diagonal=True, **ONCE)
row("scipy.linalg.inv", invertible(3, 3), looseness=10)
row("scipy.linalg.det", normal((2, 2)), **ONCE)
row("scipy.linalg.pinv", spread(2, 2), atol=0.1, return_rank=True, looseness=10, **ONCE)
row("scipy.linalg.pinvh", separated(2, 2, dtype=c128), lower=False, hermitian=(0,), looseness=10, **ONCE)
row("scipy.linalg.lstsq", spread(3, 2), normal((3,)), looseness=10, **ONCE)
row(
    "scipy.linalg.lstsq",
    spread(*STACK, 3, 2, dtype=c128),
    normal((3, 1), c128),
    # Newer versions of SciPy give complex residuals.
    canonical=lambda r: [r[0], np.real(r[1]), *r[2:]],
    looseness=10,
    note="stack",
    **ONCE,
)
row("scipy.linalg.solve_sylvester", positive_definite(2, 2), triangular(3, 3), normal((2, 3)), looseness=10)
row(
    "scipy.linalg.solve_sylvester",
    turning(3, 3, dtype=c128),
    triangular(2, 2, dtype=c128),
    normal((3, 2), c128),
    **ONCE,
)
row("scipy.linalg.solve_continuous_lyapunov", turning(3, 3), normal((3, 3)), looseness=10, **ONCE)
row("scipy.linalg.solve_lyapunov", triangular(2, 2), normal((2, 2)), looseness=10, **ONCE)
for method in ("direct", "bilinear"):
    row(
        "scipy.linalg.solve_discrete_lyapunov",
        uniform(-0.4, 0.4, (*STACK, 2, 2), c128),
        normal((2, 2), c128),
        method=method,
        looseness=100,
        **ONCE,
    )
row("scipy.linalg.solve_toeplitz", given([4.0, 1.0, 0.5]), normal((3, 2)), looseness=10)
row(
    "scipy.linalg.solve_toeplitz",
    given([4.0, 1.0]),
    given([4.0, 2.0]),
    normal((2,)),
    call=lambda f, c, r, b: f((c, r), b),
    looseness=10,
    **ONCE,
)
row("scipy.linalg.matmul_toeplitz", normal((3,), c128), normal((*STACK, 3, 1), c128), looseness=10, **ONCE)
row("scipy.linalg.solve_circulant", given([[4.0, 1.0, 0.5], [3.0, -1.0, 1.0]]), normal((3,)), looseness=10, **ONCE)
BANDS = given([[0.0, 1.0, 0.5], [4.0, 5.0, 4.5], [0.7, -1.0, 0.0]])
row("scipy.linalg.solve_banded", BANDS, normal((3,)), call=lambda f, ab, b: f((1, 1), ab, b), looseness=10, **ONCE)
row("scipy.linalg.solveh_banded", given([[0.0, 1.0, 0.5], [4.0, 5.0, 4.5]]), normal((3,)), looseness=10, **ONCE)

# Factorisations

row("scipy.linalg.cholesky", positive_definite(3, 3), hermitian=(0,))
row(
    "scipy.linalg.cho_factor",
    positive_definite(3, 3),
    call=lambda f, a: np.tril(f(a, lower=True)[0]),
    hermitian=(0,),
    note="lower",
)
row(
    "scipy.linalg.cho_solve",
    positive_definite(2, 2, dtype=c128),
    normal((2,), c128),
    call=lambda f, c, b: f((c, False), b),
    note="upper",
    **ONCE,
)
row("scipy.linalg.lu_factor", invertible(3, 3), call=lambda f, a: f(a)[0])
row("scipy.linalg.lu", invertible(3, 3))
row("scipy.linalg.lu", invertible(2, 2, dtype=c128), permute_l=True, **ONCE)
row("scipy.linalg.lu", spread(2, 3, 2, dtype=c128), note="tall", **ONCE)
row("scipy.linalg.lu_factor", spread(2, 3), call=lambda f, a: f(a)[0], note="wide", **ONCE)
row("scipy.linalg.lu", invertible(3, 3), p_indices=True, **ONCE)
for trans in (0, 1, 2):
    row(
        "scipy.linalg.lu_solve",
        triangular(3, 3, dtype=c128),
        normal((3,), c128),
        call=lambda f, lu, b, trans=trans: f((lu, np.array([1, 2, 2], np.int32)), b, trans),
        note=f"trans={trans}",
        **ONCE,
    )
row("scipy.linalg.qr", spread(3, 2), mode="economic")
row("scipy.linalg.qr", spread(2, 2), mode="r", **ONCE)
row("scipy.linalg.qr", spread(3, 2), canonical=lambda qr: [qr[0][:, 2:] @ qr[0][:, 2:].T, qr[1]], **ONCE)
row("scipy.linalg.rq", spread(2, 3), mode="economic", **ONCE)
row("scipy.linalg.rq", spread(*STACK, 3, 2, dtype=c128), note="tall", **ONCE)
row("scipy.linalg.svd", spread(3, 2), full_matrices=False, canonical=without_signs, looseness=10, **ONCE)
row("scipy.linalg.svdvals", spread(2, 2), **ONCE)
row("scipy.linalg.polar", spread(3, 2), looseness=10, **ONCE)
row("scipy.linalg.polar", spread(2, 3, dtype=c128), side="left", looseness=10, **ONCE)
row("scipy.linalg.orthogonal_procrustes", spread(*STACK, 3, 2), spread(3, 2), looseness=10, **ONCE)
row("scipy.linalg.norm", spread(2, 3), ord=2, looseness=10, **ONCE)

# Eigenvalues

row("scipy.linalg.eigh", separated(3, 3), subset_by_index=(0, 1), hermitian=(0,), canonical=without_signs, looseness=10)
for problem in (1, 2, 3):
    row(
        "scipy.linalg.eigh",
        separated(2, 2),
        positive_definite(2, 2),
        type=problem,
        lower=problem == 2,
        hermitian=(0, 1),
        canonical=without_signs,
        looseness=100,
        **ONCE,
    )
row("scipy.linalg.eigvalsh", separated(2, 2), positive_definite(2, 2), hermitian=(0, 1), looseness=10, **ONCE)
row(
    "scipy.linalg.eig", turning(3, 3, dtype=c128), call=lambda f, a: f(a, left=True), note="left", looseness=100, **ONCE
)
row("scipy.linalg.eig", turning(3, 3), positive_definite(3, 3), right=False, looseness=100, **ONCE)
row("scipy.linalg.eigvals", turning(3, 3), looseness=100, **ONCE)
row("scipy.linalg.eig_banded", given([[0.0, 0.1, 0.2], [1.0, 2.0, 3.0]]), canonical=without_signs, looseness=10, **ONCE)
row("scipy.linalg.eigvals_banded", given([[1.0, 2.0, 3.0], [0.1, 0.2, 0.0]]), lower=True, looseness=10, **ONCE)
row("scipy.linalg.eigh_tridiagonal", distinct((3,)), given([0.1, 0.2]), canonical=without_signs, looseness=10, **ONCE)
row("scipy.linalg.eigvalsh_tridiagonal", distinct((*STACK, 3)), uniform(0.1, 0.3, (*STACK, 2)), looseness=10, **ONCE)

# Functions of matrices

row("scipy.linalg.expm", normal((2, 2)), looseness=100)
row("scipy.linalg.expm", normal((1, 2, 2), c128), looseness=100, **ONCE)
row("scipy.linalg.expm_frechet", normal((2, 2)), normal((2, 2)), looseness=100, **ONCE)
for name in ("logm", "sqrtm"):
    row(f"scipy.linalg.{name}", positive_definite(3, 3), looseness=100, **ONCE)
    row(f"scipy.linalg.{name}", triangular(2, 2, dtype=c128), looseness=100, **ONCE)
row("scipy.linalg.signm", given([[2.0, 1.0], [0.5, -1.0]]), looseness=1000, **ONCE)
for name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"):
    row(f"scipy.linalg.{name}", uniform(-0.5, 0.5, (2, 2)), looseness=100, **ONCE)
row("scipy.linalg.fractional_matrix_power", positive_definite(2, 2), t=0.3, looseness=1000, **ONCE)

# Matrices of few numbers

row("scipy.linalg.toeplitz", normal((3,)), normal((2,)))
row("scipy.linalg.toeplitz", normal((*STACK, 3), c128), **ONCE)
row("scipy.linalg.hankel", normal((3,)), normal((2,)), **ONCE)
row("scipy.linalg.circulant", normal((3,)), **ONCE)
row("scipy.linalg.companion", uniform(1, 2, (*STACK, 3)), **ONCE)
row("scipy.linalg.leslie", normal((*STACK, 3)), normal((2,)), **ONCE)
row("scipy.linalg.fiedler", distinct((3,)), **ONCE)
for mode in ("full", "same", "valid"):
    row("scipy.linalg.convolution_matrix", normal((4,) if mode == "full" else (*STACK, 4)), n=3, mode=mode, **ONCE)
row("scipy.linalg.block_diag", normal((2, 2)), normal((3,)), normal((1, 2)), dtypes=(f32,))
row("scipy.linalg.block_diag", normal((*STACK, 1, 2)), normal((2, 1)), note="stack", **ONCE)
row("scipy.linalg.khatri_rao", normal((*STACK, 2, 2)), normal((3, 2)), **ONCE)
row("scipy.linalg.diagsvd", normal((*STACK, 2)), M=3, N=2, **ONCE)

# Control, band matrices and subspaces

for name in ("continuous", "discrete"):
    row(
        f"scipy.linalg.solve_{name}_are",
        uniform(-0.4, 0.4, (2, 2)),
        normal((2, 1)),
        positive_definite(2, 2),
        given([[1.7]]),
        hermitian=(2, 3),
        looseness=100,
        **ONCE,
    )
row(
    "scipy.linalg.solve_continuous_are",
    uniform(-0.4, 0.4, (2, 2), c128),
    normal((2, 1), c128),
    positive_definite(2, 2, dtype=c128),
    given([[1.7]]),
    given([[1.5, 0.2], [-0.1, 1.2]]),
    given([[0.1], [0.2]]),
    hermitian=(2, 3),
    looseness=1000,
    note="e and s",
    **ONCE,
)
HIGHER, LOWER = given([[0.3, 1.0, 0.5], [4.0, 5.0, 4.5]]), given([[4.0, 5.0, 4.5], [1.0, 0.5, 0.3]])
row("scipy.linalg.cholesky_banded", HIGHER)
row("scipy.linalg.cholesky_banded", LOWER, lower=True, **ONCE)
row("scipy.linalg.cho_solve_banded", HIGHER, normal((3,)), call=lambda f, c, b: f((c, False), b), looseness=10, **ONCE)
row("scipy.linalg.qr_multiply", spread(3, 2), normal((2, 2)), mode="left", **ONCE)
row("scipy.linalg.qr_multiply", spread(3, 2), normal((3,)), **ONCE)
row("scipy.linalg.subspace_angles", spread(5, 2), normal((5, 2)), looseness=100, **ONCE)
row("scipy.linalg.fiedler_companion", uniform(1, 2, (5,)), **ONCE)
