"""Orthogonal matrices as products of Householder reflections, and by QR decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as fnp
from ...api.derivatives import stop_gradient
from ..init import generator

Array = np.ndarray[Any, Any]


def with_reflections(x: Any) -> Any:
    """The first columns of the product of reflections, times the signs on the diagonal.

    The vector of reflection i is 1 at i, and what is below the diagonal in column i of `x`.  With these vectors as the
    columns of V, the product is I - V T^-1 V^T, where T is upper triangular: half the squared norms on the diagonal,
    and above it the products of the vectors (Joffrain et al., Accumulating Householder transformations, revisited,
    2006).

    Args:
        x: array of shape (..., m, n), m >= n.

    Returns:
        An array of the same shape.
    """
    rows, columns = x.shape[-2:]
    identity = np.eye(rows, columns, dtype=x.dtype)
    v = fnp.tril(x, -1) + identity
    products = fnp.swapaxes(v, -1, -2) @ v
    t = fnp.triu(products, 1) + 0.5 * products * np.eye(columns, dtype=x.dtype)
    q = identity - v @ fnp.linalg.solve(t, fnp.swapaxes(v[..., :columns, :], -1, -2))
    signs = fnp.trunc(stop_gradient(fnp.diagonal(x, axis1=-2, axis2=-1)))
    return q * signs[..., None, :]


def reflections_of(q: Array) -> Array:
    """The matrix from which `with_reflections` makes the orthogonal factor of `q`, the other one being positive."""
    h, tau = _factored(q)
    diagonal = np.arange(h.shape[-1])
    signs = np.sign(h[..., diagonal, diagonal])
    # A reflection with factor 0 is none, which a vector has as one with factor 2 and the opposite sign.
    h[..., diagonal, diagonal] = np.where(tau == 0, -signs, signs)
    return h


def orthonormal(x: Array) -> Array:
    """The orthogonal factor of a matrix whose triangular factor has a positive diagonal."""
    q, r = np.linalg.qr(x)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    return q * (diagonal / np.abs(diagonal))[..., None, :]


def completed(q: Array) -> Array:
    """A square orthogonal matrix whose first columns are those of `q`, made orthonormal."""
    rows, columns = q.shape[-2:]
    others = generator().normal(size=(*q.shape[:-2], rows, rows - columns)).astype(q.dtype)
    return orthonormal(np.concatenate([q, others], axis=-1))


def is_orthogonal(q: Array) -> bool:
    """Whether the columns are orthonormal, up to rounding."""
    identity = np.eye(q.shape[-1], dtype=q.dtype)
    tolerance = 10 * q.shape[-2] * np.finfo(q.dtype).eps
    return np.allclose(np.swapaxes(q.conj(), -1, -2) @ q, identity, atol=tolerance)


def _factored(x: Array) -> tuple[Array, Array]:
    """Reflections and their factors, as LAPACK's geqrf gives them."""
    h, tau = np.linalg.qr(x, mode="raw")
    return np.swapaxes(h, -1, -2).copy(), tau
