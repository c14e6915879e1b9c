"""Rows of `numpy.linalg`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from function_rows import row
from sampling import Source, c64, c128, distinct, f32, given, invertible, normal, positive_definite, separated, uniform

COMPLEX: dict[str, Any] = {"dtypes": (c64,)}


def turning(*shape: int, dtype: Any = np.float64) -> Source:
    """Square matrices with complex eigenvalues that are apart, and vectors whose largest element is clear."""

    def draw(rng: np.random.Generator) -> Any:
        a = uniform(-0.1, 0.1, shape, dtype)(rng)
        return (a + np.array([[1.0, 2.0, 0.0], [-1.0, 1.5, 0.3], [0.2, 0.0, 4.0]])).astype(dtype)

    return draw


def spread(*shape: int, dtype: Any = np.float64) -> Source:
    """Matrices of full rank with singular values near 1, 2, ..."""

    def draw(rng: np.random.Generator) -> Any:
        a = uniform(-0.2, 0.2, shape, dtype)(rng)
        return (a + np.eye(*shape[-2:]) * np.arange(1.0, shape[-1] + 1)).astype(dtype)

    return draw


def without_signs(results: list[Any]) -> list[Any]:
    """Vectors by the sizes of their elements."""
    return [np.abs(y) if y.ndim > 1 else y for y in results]


def real_parts(results: list[Any]) -> list[Any]:
    """Of real numbers that may have a complex dtype."""
    return [np.real(x) for x in results]


def products(results: list[Any]) -> list[Any]:
    """What does not depend on the phases of singular vectors."""
    u, s, vh = results
    k = s.shape[-1]
    return [s, (u[..., :k] * s[..., None, :] ** 2) @ vh[..., :k, :], u @ np.conj(np.swapaxes(u, -1, -2))]


def projectors(results: list[Any]) -> list[Any]:
    """What does not depend on the phases of eigenvectors: functions of the matrix, and the values."""
    values, vectors = results
    first = vectors[..., :, :1]
    return [values, first @ np.conj(np.swapaxes(first, -1, -2))]


# Equations

row("numpy.linalg.solve", invertible(3, 3), normal((3,)))
row("numpy.linalg.solve", invertible(2, 2, dtype=c128), normal((3, 2, 1), c128), **COMPLEX)
row("numpy.linalg.inv", invertible(2, 2, 2), looseness=10)
row("numpy.linalg.inv", invertible(3, 3, dtype=c128), looseness=10, **COMPLEX)
row("numpy.linalg.pinv", spread(4, 2), looseness=10)
row("numpy.linalg.pinv", spread(2, 2, 3, dtype=c128), rtol=1e-3, looseness=10, **COMPLEX)
row(
    "numpy.linalg.pinv",
    normal((3, 2)),
    normal((2, 4)),
    call=lambda f, x, y: f(x @ y, 1e-6),
    note="rank 2",
    looseness=100,
    dtypes=(),
)
row("numpy.linalg.pinv", separated(3, 3), hermitian=(0,), looseness=10, call=lambda f, a: f(a, hermitian=True))
row("numpy.linalg.lstsq", spread(3, 2), normal((3, 1)), looseness=10)
row("numpy.linalg.lstsq", spread(2, 4, dtype=c128), normal((2,), c128), rcond=1e-8, looseness=10, dtypes=())
row("numpy.linalg.tensorsolve", normal((2, 3, 6)), normal((2, 3)), looseness=1000)
row("numpy.linalg.tensorsolve", invertible(2, 2, dtype=c128), normal((2,), c128), axes=(0,), looseness=10, **COMPLEX)
row("numpy.linalg.tensorinv", uniform(-0.2, 0.2, (2, 2, 4)), call=lambda f, a: f(a + np.eye(4).reshape(2, 2, 4)))
row("numpy.linalg.tensorinv", invertible(3, 3, dtype=c128), ind=1, looseness=10, **COMPLEX)
row("numpy.linalg.det", normal((2, 3, 3)), analytic=True)
row("numpy.linalg.det", normal((2, 2), c128), **COMPLEX)
row("numpy.linalg.slogdet", invertible(2, 3, 3))
row("numpy.linalg.slogdet", invertible(2, 2, dtype=c128), **COMPLEX)

# Factorisations

row("numpy.linalg.cholesky", positive_definite(2, 3, 3), hermitian=(0,))
row("numpy.linalg.cholesky", positive_definite(2, 2, dtype=c128), upper=True, hermitian=(0,), **COMPLEX)
for mode in ("reduced", "r"):
    row("numpy.linalg.qr", spread(3, 2), mode=mode)
row("numpy.linalg.qr", spread(2, 2, 2, dtype=c128), **COMPLEX)
row("numpy.linalg.qr", spread(2, 3), note="wide")
row(
    "numpy.linalg.qr",
    spread(4, 2, dtype=c128),
    mode="complete",
    canonical=lambda qr: [qr[0][:, 2:] @ np.conj(qr[0][:, 2:].T), qr[1]],
    **COMPLEX,
)
row("numpy.linalg.eigh", separated(2, 2, 2), hermitian=(0,), canonical=without_signs, looseness=10)
row(
    "numpy.linalg.eigh",
    separated(3, 3, dtype=c128),
    UPLO="U",
    hermitian=(0,),
    canonical=projectors,
    looseness=10,
    dtypes=(),
)
row("numpy.linalg.eigvalsh", separated(3, 3), hermitian=(0,), UPLO="U", looseness=10)
row("numpy.linalg.eigvalsh", separated(2, 2, dtype=c128), hermitian=(0,), looseness=10, **COMPLEX)
row("numpy.linalg.eig", turning(2, 3, 3), looseness=100, canonical=lambda r: [r[0], np.abs(r[1])], dtypes=())
row("numpy.linalg.eigvals", turning(3, 3), looseness=100)
row("numpy.linalg.eigvals", turning(3, 3, dtype=c128), looseness=100, dtypes=())
row("numpy.linalg.svd", spread(3, 2), full_matrices=False, canonical=without_signs, looseness=10)
row("numpy.linalg.svd", spread(2, 3, dtype=c128), full_matrices=False, canonical=products, looseness=10, dtypes=())
row("numpy.linalg.svd", spread(3, 2), canonical=lambda r: [r[0][:, 2:] @ r[0][:, 2:].T], dtypes=(), note="complement")
row("numpy.linalg.svd", spread(2, 2), compute_uv=False)
row(
    "numpy.linalg.svd",
    separated(3, 3),
    call=lambda f, a: f(a * [[1, -1, 1]] * [[1], [-1], [1]] * 1.0 - 2.4 * np.eye(3), hermitian=True),
    hermitian=(0,),
    canonical=without_signs,
    looseness=10,
    note="signs",
)
row("numpy.linalg.svdvals", spread(2, 3, 2, dtype=c128), **COMPLEX)

# Numbers

row("numpy.linalg.cond", invertible(2, 2, 2), looseness=100)
for p in (-2, 1, -math.inf, "fro"):
    # Older versions of NumPy give complex numbers.
    row("numpy.linalg.cond", invertible(2, 2, dtype=c128), p=p, canonical=real_parts, looseness=100, dtypes=())
row("numpy.linalg.norm", normal((2, 3)))
row("numpy.linalg.norm", normal((3,), c128), **COMPLEX)
row("numpy.linalg.norm", normal((2, 3), c128), ord=3, axis=0, dtypes=())
row("numpy.linalg.norm", normal((2, 3), c128), ord=1, dtypes=())
for order in (1, 2.5, 0.5, -1.5, math.inf, -math.inf):
    row("numpy.linalg.norm", distinct((2, 3)), ord=order, axis=1, keepdims=True, dtypes=(f32,) if order == 2.5 else ())
for order in (2, -2, "nuc", "fro", 1, -1, math.inf, -math.inf):
    row("numpy.linalg.norm", spread(2, 3), ord=order, dtypes=(f32,) if order == "nuc" else (), looseness=10)
row("numpy.linalg.norm", spread(2, 3, 2, dtype=c128), ord="nuc", axis=(2, 1), keepdims=True, looseness=10, **COMPLEX)
row("numpy.linalg.vector_norm", distinct((2, 3)), ord=3, axis=(0, 1))
row("numpy.linalg.matrix_norm", spread(2, 2, 2), ord="nuc", keepdims=True, looseness=10)

# Products

row("numpy.linalg.matrix_power", invertible(2, 2, 2), n=3)
row("numpy.linalg.matrix_power", invertible(2, 2, dtype=c128), n=-2, looseness=10, **COMPLEX)
row("numpy.linalg.multi_dot", normal((3,)), normal((3, 2)), normal((2, 4)), call=lambda f, *xs: f(list(xs)))
row("numpy.linalg.cross", normal((2, 3)), normal((3,)))
row("numpy.linalg.trace", normal((2, 3, 3)), offset=1)
row("numpy.linalg.diagonal", normal((2, 3, 3)), offset=-1)
row("numpy.linalg.vecdot", normal((2, 3), c128), normal((3,), c128), **COMPLEX)
row("numpy.linalg.outer", normal((3,)), normal((2,)))
row("numpy.linalg.matmul", normal((2, 2, 3)), normal((3, 2)))
row("numpy.linalg.matrix_transpose", normal((2, 3)))
row("numpy.linalg.tensordot", normal((2, 3)), normal((3, 2)), axes=1)
row("numpy.linalg.norm", given([0.0, 3.0, 4.0]), ord=4, note="a zero")
