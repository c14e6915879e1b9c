"""`scipy.sparse.linalg`: eigenvalues, singular values, exponentials and norms of sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg

from ....api.loops import fori_loop
from ....base.source import at_line, user_line
from ....core.primitive import MissingRule
from ....core.types import is_complex
from ....numpy.dispatch import implements
from ....numpy.promotion import asarray, cast, has_tracer, strong_dtype
from ....ops.elementwise import stop_gradient
from ....spectral.sparse import extreme_eigenpairs, extreme_singular_triples
from ..entries import Entries, entries_of, product, segment_sums

__all__ = ["eigsh", "expm_multiply", "norm", "svds"]

# The Taylor polynomial of this degree is the exponential, to rounding, of a matrix whose norm is at most the reach.
_DEGREE, _REACH = 30, 3.0


def _real_entries(name: str, A: Any) -> Entries:
    if isinstance(A, scipy.sparse.linalg.LinearOperator):
        raise MissingRule(
            f"{name} with traced values takes a matrix, and not a LinearOperator, whose entries it does not know"
            + at_line(user_line())
        )
    a = entries_of(A)
    if is_complex(a.dtype):
        raise MissingRule(
            f"{name} of complex traced matrices is missing; take numpy.linalg.eigh or svd of A.toarray()"
            + at_line(user_line())
        )
    return a.with_data(cast(asarray(a.data), np.dtype(np.float64)))


def _unless_given(name: str, **options: Any) -> None:
    given = [key for key, value in options.items() if value is not None]
    if given:
        raise MissingRule(f"{name} with traced entries has no {', '.join(given)}={at_line(user_line())}")


def _pairs(primitive: Any, a: Entries, **options: Any) -> Any:
    if not 0 < options["k"] < min(a.shape):
        raise ValueError(f"k={options['k']} must be between 1 and {min(a.shape) - 1}{at_line(user_line())}")
    return primitive(a.data, asarray(a.row), asarray(a.col), shape=a.shape, options=tuple(sorted(options.items())))


@implements(scipy.sparse.linalg.eigsh, takes_functions=True)
def eigsh(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: Any = None,
    which: str = "LM",
    v0: Any = None,
    ncv: Any = None,
    maxiter: Any = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    mode: str = "normal",
    rng: Any = None,
) -> Any:
    """A few eigenvalues (k,) and vectors (n, k) of a symmetric matrix; eigenvalues have to be distinct.

    The derivative is that of the symmetric part of a change.
    """
    _unless_given("eigsh", M=M, Minv=Minv, OPinv=OPinv)
    if mode != "normal":
        raise MissingRule(f"eigsh with traced entries has no mode={mode!r}{at_line(user_line())}")
    a = _real_entries("eigsh", A)
    values, vectors = _pairs(
        extreme_eigenpairs,
        a,
        k=int(k),
        sigma=sigma,
        which=which,
        ncv=ncv,
        maxiter=maxiter,
        tol=tol,
        values_only=not return_eigenvectors,
    )
    return (values, vectors) if return_eigenvectors else values


@implements(scipy.sparse.linalg.svds, takes_functions=True)
def svds(
    A: Any,
    k: int = 6,
    ncv: Any = None,
    tol: float = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: Any = None,
    return_singular_vectors: Any = True,
    solver: str = "arpack",
    rng: Any = None,
    options: Any = None,
    **others: Any,
) -> Any:
    """A few singular values (k,) of a matrix (m, n), with vectors (m, k) and (k, n); they have to be distinct."""
    a = _real_entries("svds", A)
    u, s, v = _pairs(
        extreme_singular_triples, a, k=int(k), ncv=ncv, tol=tol, which=which, maxiter=maxiter, solver=solver
    )
    if return_singular_vectors is False:
        return s
    return (None if return_singular_vectors == "vh" else u, s, None if return_singular_vectors == "u" else v.T)


@implements(scipy.sparse.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """The norm of a sparse matrix, or of its rows or columns; its derivative at 0 is 0."""
    a = entries_of(x).summed()
    size = np.abs(asarray(a.data))
    if axis is None or np.ndim(axis):
        if ord in (None, "fro", "f"):
            return np.linalg.norm(size)
        if ord in (1, -1, np.inf, -np.inf):
            lines, count = (a.col, a.shape[1]) if abs(ord) == 1 else (a.row, a.shape[0])
            sums = segment_sums(size, lines, count)
            return np.max(sums) if ord > 0 else np.min(sums)
        if ord == 2:
            return svds(x, 1, return_singular_vectors=False)[0]
    elif axis in (0, 1, -1, -2):
        lines, count = (a.col, a.shape[1]) if axis % 2 == 0 else (a.row, a.shape[0])
        if ord in (None, 2, 1):
            sums = segment_sums(size if ord == 1 else size * size, lines, count)
            is_zero = sums == 0
            return sums if ord == 1 else np.where(is_zero, 0.0, np.sqrt(np.where(is_zero, 1.0, sums)))
    raise MissingRule(f"norm of a traced sparse array has no ord={ord!r} with axis={axis!r}{at_line(user_line())}")


def _exponential_times(a: Entries, b: Any, time: Any) -> Any:
    """expm(time * A) @ b, by Taylor polynomials of matrices that are divided so often that these are exact."""
    n = a.shape[0]
    is_diagonal = a.row == a.col
    data = asarray(a.data) * time
    shift = np.sum(data[np.flatnonzero(is_diagonal)]) / n
    every = np.arange(n)
    a = Entries(
        np.concatenate([data, -shift * np.ones(n)]),
        np.concatenate([a.row, every]),
        np.concatenate([a.col, every]),
        a.shape,
    ).summed()
    size = np.max(segment_sums(stop_gradient(asarray(np.abs(a.data))), a.col, n))
    # The number of steps is asked of the matrix.
    steps = max(1, int(np.ceil(size / _REACH)))
    scale = np.exp(shift / steps)

    def step(_: Any, total: Any) -> Any:
        term = total
        for j in range(1, _DEGREE + 1):
            term = product(a, term) / (steps * j)
            total = total + term
        return total * scale

    return fori_loop(0, steps, step, b)


@implements(scipy.sparse.linalg.expm_multiply, takes_functions=True)
def expm_multiply(
    A: Any,
    B: Any,
    start: Any = None,
    stop: Any = None,
    num: Any = None,
    endpoint: Any = None,
    traceA: Any = None,
) -> Any:
    """expm(A) @ B, or expm(t * A) @ B for `num` times t from `start` to `stop`; B is (n,) or (n, k)."""
    if isinstance(A, scipy.sparse.linalg.LinearOperator):
        raise MissingRule(
            f"expm_multiply with traced values takes a matrix, and not a LinearOperator{at_line(user_line())}"
        )
    a, b = entries_of(A), asarray(B)
    if a.shape[0] != a.shape[1] or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ValueError(
            f"expm_multiply takes a square matrix (n, n) and (n,) or (n, k), not {a.shape} and {b.shape}"
            + at_line(user_line())
        )
    dtype = np.result_type(strong_dtype(asarray(a.data), b), np.float64)
    a, b = a.with_data(cast(asarray(a.data), dtype)), cast(b, dtype)
    if all(x is None for x in (start, stop, num, endpoint)):
        return _exponential_times(a, b, 1.0)
    start = 0.0 if start is None else start
    count = 50 if num is None else int(num)
    length = (1.0 if stop is None else stop) - start
    step = length / (count - 1 if endpoint in (None, True) else count)
    found = [_exponential_times(a, b, start) if has_tracer(start) or start else b]
    for _ in range(count - 1):
        found.append(_exponential_times(a, found[-1], step))
    return np.stack(found)
