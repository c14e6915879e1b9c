"""Further rows of the sample table: factorisations, spectra and functions of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg
from samples import signs_chosen
from sampling import (
    Source,
    c128,
    f64,
    given,
    i32,
    i64,
    invertible,
    misfit,
    normal,
    positive_definite,
    sample,
    separated,
    triangular,
    uniform,
)

import ftrans as ft
from ftrans.core.types import ArrayType
from ftrans.ops import linalg
from ftrans.ops.sparse_solve import factored_solve, sparse_solve
from ftrans.spectral import eig, inverse_gap, limit, svd
from ftrans.spectral.repeated_values import with_limits
from ftrans.spectral.sparse import extreme_eigenpairs, extreme_singular_triples


def tall(*shape: int, dtype: Any = f64) -> Source:
    """Matrices with at least as many rows as columns, and singular values near 1, 2, ..."""

    def draw(rng: np.random.Generator) -> Any:
        a = uniform(-0.1, 0.1, shape, dtype)(rng)
        return (a + np.eye(*shape[-2:]) * np.arange(1.0, shape[-1] + 1)).astype(dtype)

    return draw


def spinning(dtype: Any = f64) -> Source:
    """Square matrices with complex eigenvalues that are apart."""
    return lambda rng: (uniform(-0.1, 0.1, (2, 2), dtype)(rng) + np.array([[1.0, 3.0], [-1.0, 1.5]])).astype(dtype)


sample(linalg.qr, tall(2, 3, 2), complete=False, looseness=10)
sample(linalg.qr, tall(2, 2, dtype=c128), complete=False, looseness=10)
sample(linalg.qr, tall(3, 1), complete=True, smooth=False, canonical=lambda r: [np.abs(x) for x in r])
sample(linalg.lu, invertible(3, 3))
sample(linalg.lu, tall(3, 2))
sample(linalg.lu, normal((2, 2, 3), c128), smooth=False)
sample(linalg.order_of_rows, given([[1, 2, 2], [2, 2, 2]], i32))
sample(linalg.hermitian, normal((2, 3, 3)), hermitian=(0,), smooth=False)
sample(linalg.hermitian, positive_definite(2, 2, dtype=c128), hermitian=(0,))
for triangular_part in (False, True):
    source = separated(2, 2, dtype=c128) if triangular_part else tall(3, 2)
    sample(linalg.pinv, source, given(0.01), symmetric=triangular_part, smooth=not triangular_part, looseness=10)
sample(linalg.sylvester, triangular(2, 2), triangular(3, 3), normal((2, 3)), symmetric=False, looseness=10)
for is_discrete in (False, True):
    operands = (uniform(-0.4, 0.4, (2, 2)), normal((2, 1)), positive_definite(2, 2), given([[1.7]]))
    sample(linalg.riccati, *operands, discrete=is_discrete, looseness=100)
# A matrix of the shape [[a, d, 0], [0, b, 0], [e, 0, c]].
ENTRIES, AT_ROWS, AT_COLS = uniform(1, 2, (5,)), given([0, 1, 2, 0, 2], i64), given([0, 1, 2, 1, 0], i64)
sample(sparse_solve, ENTRIES, normal((3,)), AT_ROWS, AT_COLS, transposed=False)
sample(sparse_solve, ENTRIES, normal((3, 2)), AT_ROWS, AT_COLS, transposed=True)
FACTORS = scipy.sparse.linalg.splu(scipy.sparse.csc_array([[2.0, 1.0, 0.0], [0.0, 3.0, 0.0], [1.0, 0.0, 4.0]]))
sample(factored_solve, normal((3, 2)), factors=FACTORS, transposed=True)
DIAGONAL = (lambda rng: np.arange(1.0, 7.0) + rng.uniform(-0.1, 0.1, 6), given(range(6), i64), given(range(6), i64))
PAIRS = {"smooth": False, "looseness": 100, "shape": (6, 6)}
sample(
    extreme_eigenpairs,
    *DIAGONAL,
    options=(("k", 2), ("values_only", False)),
    canonical=lambda r: [r[0], np.abs(r[1])],
    **PAIRS,
)
sample(extreme_singular_triples, *DIAGONAL, options=(("k", 2),), canonical=lambda r: [np.abs(x) for x in r], **PAIRS)
sample(svd, tall(3, 2), full=False, canonical=lambda r: [np.abs(x) for x in r], smooth=False)
sample(svd, tall(2, 2), full=False, looseness=100, smooth=False, canonical=lambda r: [np.abs(x) for x in r])
sample(eig, spinning(), looseness=100, smooth=False, canonical=lambda r: [r[0], np.abs(r[1])])
sample(eig, spinning(c128), looseness=100, canonical=signs_chosen)
sample(linalg.polar_factor, tall(3, 2), partial=False, looseness=10)
sample(linalg.nuclear_norm, tall(2, 2, dtype=c128), looseness=10)
for function in (linalg.logm, linalg.sqrtm, linalg.signm):
    sample(function, positive_definite(2, 2), looseness=100)
sample(linalg.expm, normal((2, 2)), looseness=100)
sample(linalg.expm, normal((2, 2)), normal((2, 2)), looseness=100)
sample(inverse_gap, uniform(0.5, 2, (2, 3)), uniform(1e-9, 1e-8, (2, 3)), order=1, differentiated=(0,))
sample(inverse_gap, given([0.0, 0.5, 2.0]), given([1.0, 1.0, 1.0]), order=2, smooth=False)


def exponential(a: Any, rate: Any) -> Any:
    """A function of a matrix that is smooth where eigenvalues are equal."""
    w, v = np.linalg.eigh(a)
    return (v * np.exp(rate * w)) @ v.T


def series() -> Any:
    """What a limit in a program differentiates; it takes eigenvalues, eigenvectors, the matrix and the rate."""
    program = with_limits(ft.trace(exponential)(np.eye(2), 0.5), (True, True))
    return next(eqn.params["series"] for eqn in program.eqns if eqn.primitive is limit)


# Eigenvectors do not move with the matrix here, so there is no derivative along it to compare.
EXPONENTIAL = series()
BOTH, MATRIX_ONLY = (False, False, True, True), (False, False, True, False)
for values in ([1.0, 2.0], [2.0, 2.0]):
    vectors = np.array([[0.6, 0.8], [-0.8, 0.6]])
    at = (given(values), given(vectors), given((vectors * values) @ vectors.T), uniform(0.5, 1.0, ()))
    flag, matrix, number = given(values[0] == values[1], np.dtype(bool)), normal((2, 2)), normal(())
    sample(limit, matrix, flag, *at, series=EXPONENTIAL, directions=(), pulled=None, smooth=False)
    for operands, moved, how in (
        ((matrix, flag, *at, matrix, number), (0, 5, 6, 7), {"directions": (BOTH,), "pulled": None}),
        ((matrix, number, flag, *at, matrix), (0, 1, 6, 7), {"directions": (BOTH,), "pulled": 0}),
        ((matrix, flag, *at, matrix, number, matrix), (0, 5, 6, 7, 8),
         {"directions": (BOTH, MATRIX_ONLY), "pulled": None}),
        ((matrix, flag, *at, matrix, matrix, number), (0, 5, 6, 7, 8),
         {"directions": (BOTH, MATRIX_ONLY), "pulled": 1}),
    ):  # fmt: skip
        sample(limit, *operands, series=EXPONENTIAL, differentiated=moved, **how)
for primitive in (eig, linalg.expm, linalg.hermitian):
    misfit(primitive, ArrayType((2, 3), f64), error=ValueError)
    misfit(primitive, ArrayType((3, 3), i64), error=TypeError)
misfit(linalg.qr, ArrayType((2, 3), f64), error=ValueError, complete=False)
misfit(linalg.lu, ArrayType((3,), f64), error=ValueError)
misfit(svd, ArrayType((3,), f64), error=ValueError, full=False)
misfit(linalg.pinv, ArrayType((3, 2), f64), ArrayType((2,), f64), error=TypeError, symmetric=False)
misfit(linalg.expm, ArrayType((3, 3), f64), ArrayType((3, 2), f64), error=TypeError)
MATRIX = ArrayType((2, 2), f64)
misfit(linalg.sylvester, MATRIX, MATRIX, ArrayType((3, 2), f64), error=ValueError, symmetric=False)
misfit(linalg.sylvester, MATRIX, MATRIX, ArrayType((2, 2), c128), error=TypeError, symmetric=False)
misfit(linalg.riccati, *[MATRIX] * 3, ArrayType((1, 1), f64), error=ValueError, discrete=False)
misfit(linalg.riccati, *[MATRIX] * 3, ArrayType((2, 2), c128), error=TypeError, discrete=True)
misfit(linalg.order_of_rows, ArrayType((3,), f64), error=TypeError)
