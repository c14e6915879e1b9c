"""Krylov solvers: x with A x = b from products with A alone, by conjugate gradients, BiCGSTAB and restarted GMRES.

They are written against a `Backend`.  Each lane stops by itself, when its residual has the norm `target`.  Solvers
return x, the number of iterations that each lane took, and the residual b - A x.

Sources: Hestenes & Stiefel (1952), van der Vorst (1992), Saad & Schultz (1986).  GMRES orthogonalises twice by
classical Gram-Schmidt, which is as good as the modified form (Giraud et al. 2005) and needs matrix products only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..control.rules.backends import Backend, State

Operator = Callable[[Any], Any]


def _quotient(backend: Backend, x: Any, y: Any) -> Any:
    """`x / y`, and zero where `y` is."""
    zero = y == 0
    return backend.np.where(zero, 0, x / backend.np.where(zero, 1, y))


def _while_active(backend: Backend, step: Callable[[State], State], state: State) -> State:
    """Steps as long as any lane is active, which the last member of the state says."""
    return backend.loop(lambda state: backend.np.any(state[-1]), step, state)


def _start(backend: Backend, b: Any, target: Any, maxiter: int) -> tuple[Any, Any, Any]:
    """The norms of the right-hand sides, the steps that were taken, and which lanes are active."""
    norms = backend.norm(b)
    count = backend.np.zeros(norms.shape, int)
    return norms, count, (norms > target) & (count < maxiter)


def cg(
    backend: Backend, a: Operator, m: Operator, b: Any, target: Any, maxiter: int, restart: int
) -> tuple[Any, Any, Any]:
    """Conjugate gradients, for Hermitian positive definite `a` and preconditioner `m`."""
    np = backend.np

    def step(state: State) -> State:
        x, r, p, rho, count, active = state
        q = a(p)
        curvature = backend.dot(p, q)
        alpha = np.where(active, _quotient(backend, rho, curvature), 0)[..., None]
        x, r = x + alpha * p, r - alpha * q
        z = m(r)
        new = backend.dot(r, z)
        p = np.where(active[..., None], z + _quotient(backend, new, rho)[..., None] * p, p)
        count = count + active
        active = active & (backend.norm(r) > target) & (curvature != 0) & (count < maxiter)
        return x, r, p, new, count, active

    z = m(b)
    _, count, active = _start(backend, b, target, maxiter)
    state = (np.zeros_like(b), b, z, backend.dot(b, z), count, active)
    x, _, _, _, count, _ = _while_active(backend, step, state)
    return x, count, b - a(x)


def bicgstab(
    backend: Backend, a: Operator, m: Operator, b: Any, target: Any, maxiter: int, restart: int
) -> tuple[Any, Any, Any]:
    """Stabilised biconjugate gradients, for any `a`, preconditioned from the right."""
    np = backend.np

    def step(state: State) -> State:
        x, r, p, rho, count, active = state
        ready = m(p)
        v = a(ready)
        alpha = np.where(active, _quotient(backend, rho, backend.dot(b, v)), 0)[..., None]
        s = r - alpha * v
        smooth = m(s)
        t = a(smooth)
        omega = np.where(active, _quotient(backend, backend.dot(t, s), backend.dot(t, t)), 0)[..., None]
        x = x + alpha * ready + omega * smooth
        r = np.where(active[..., None], s - omega * t, r)
        new = backend.dot(b, r)
        beta = _quotient(backend, new, rho)[..., None] * _quotient(backend, alpha, omega)
        p = np.where(active[..., None], r + beta * (p - omega * v), p)
        count = count + active
        broken = (new == 0) | (omega[..., 0] == 0)
        return x, r, p, new, count, active & (backend.norm(r) > target) & ~broken & (count < maxiter)

    _, count, active = _start(backend, b, target, maxiter)
    state = (np.zeros_like(b), b, b, backend.dot(b, b), count, active)
    x, _, _, _, count, _ = _while_active(backend, step, state)
    return x, count, b - a(x)


def gmres(
    backend: Backend, a: Operator, m: Operator, b: Any, target: Any, maxiter: int, restart: int
) -> tuple[Any, Any, Any]:
    """Restarted generalised minimal residuals, for any `a`, preconditioned from the right.

    It holds `restart + 1` vectors.
    """
    np = backend.np
    restart = max(1, min(restart, b.shape[-1], maxiter))

    def cycle(state: State) -> State:
        x, r, norms, count, active = state
        dx, taken = _arnoldi(backend, a, m, r, norms, active, target, count, maxiter, restart)
        x = np.where(active[..., None], x + m(dx), x)
        r = np.where(active[..., None], b - a(x), r)
        new = backend.norm(r)
        count = count + taken
        # A cycle that gains nothing will not gain anything next time.
        return x, r, new, count, active & (new > target) & (new < 0.999 * norms) & (count < maxiter)

    norms, count, active = _start(backend, b, target, maxiter)
    state = (np.zeros_like(b), b, norms, count, active)
    x, r, _, count, _ = _while_active(backend, cycle, state)
    return x, count, r


def _arnoldi(
    backend: Backend,
    a: Operator,
    m: Operator,
    r: Any,
    norms: Any,
    active: Any,
    target: Any,
    count: Any,
    maxiter: int,
    restart: int,
) -> tuple[Any, Any]:
    """One cycle: the combination of the vectors r, A M r, ... that makes the residual least, and how many there were.

    `rotation` is unitary and makes the Hessenberg matrix triangular: its product with a new column costs one
    product, and its first column, times the norm of r, is the right-hand side of the triangular system.
    """
    np = backend.np
    lanes, size = norms.shape, restart + 1

    def column(x: Any) -> Any:
        return x[..., None]

    def going(state: State) -> Any:
        return np.any(state[-1]) & (state[0] < restart)

    def step(state: State) -> State:
        k, basis, rotation, triangle, taken, active = state
        w = a(m(basis[k]))
        h = np.zeros((size, *lanes), w.dtype)
        for _ in range(2):
            part = np.conj(np.einsum("k...n,...n->k...", basis, np.conj(w)))
            w, h = w - np.einsum("k...,k...n->...n", part, basis), h + part
        length = backend.norm(w)
        basis = backend.put(basis, k + 1, w / column(np.where(length == 0, 1, length)))
        turned = np.einsum("ij...,j...->i...", rotation, h)
        c, s = turned[k], length.astype(w.dtype)
        radius = np.sqrt(np.abs(c) ** 2 + np.abs(s) ** 2)
        safe = np.where(radius == 0, 1, radius)
        c, s = np.where(radius == 0, 1, c / safe), s / safe
        upper, lower = rotation[k], rotation[k + 1]
        changed = backend.put(rotation, k, np.conj(c) * upper + s * lower)
        changed = backend.put(changed, k + 1, c * lower - s * upper)
        # A lane that is done has its unit vectors left for columns, with nothing on the right-hand side.
        index = np.arange(size).reshape(-1, *[1] * len(lanes))
        new = np.where(index < k, turned, np.where(index == k, radius, 0).astype(w.dtype))
        unit = (index == k).astype(w.dtype) + np.zeros_like(new)
        triangle = backend.put(triangle, k, np.where(active & (radius != 0), new, unit)[:restart])
        rotation = np.where(active, changed, rotation)
        taken = taken + active
        left = norms * np.abs(rotation[k + 1, 0])
        return k + 1, basis, rotation, triangle, taken, active & (left > target) & (count + taken < maxiter)

    basis = np.zeros((size, *r.shape), r.dtype)
    basis = backend.put(basis, 0, r / column(np.where(norms == 0, 1, norms)))
    shape = (size, size, *lanes)
    rotation = np.broadcast_to(np.eye(size, dtype=r.dtype).reshape(size, size, *[1] * len(lanes)), shape) + 0
    triangle = rotation[:restart, :restart]
    first = np.zeros((), int)
    state = (first, basis, rotation, triangle, np.zeros(lanes, int), active)
    _, basis, rotation, triangle, taken, _ = backend.loop(going, step, state)
    index = np.arange(restart).reshape(-1, *[1] * len(lanes))
    right = np.where(index < taken, rotation[:restart, 0] * norms, 0)
    matrix = np.moveaxis(triangle, (1, 0), (-2, -1))
    weights = np.moveaxis(backend.solve(matrix, np.moveaxis(right, 0, -1)), -1, 0)
    return np.einsum("k...,k...n->...n", weights, basis[:restart]), taken


def ritz_values(backend: Backend, a: Operator, shape: tuple[int, ...], dtype: Any, steps: int) -> Any:
    """Approximate eigenvalues, (*lanes, k), of a symmetric `a` by `steps` products (Lanczos 1950): the outermost ones.

    None lies outside of the eigenvalues; one may be zero that stands for nothing.
    """
    np = backend.np
    steps = min(steps, shape[-1])
    least = float(numpy.finfo(dtype).eps) ** 0.5

    def step(state: State) -> State:
        k, basis, products = state
        w = a(basis[k])
        products = backend.put(products, k, w)
        size = backend.norm(w)
        for _ in range(2):
            w = w - np.einsum("k...,k...n->...n", np.einsum("k...n,...n->k...", basis, w), basis)
        length = backend.norm(w)[..., None]
        new = np.where(length > least * size[..., None], w / np.where(length == 0, 1, length), 0)
        return k + 1, backend.put(basis, k + 1, new.astype(dtype)), products

    basis = np.zeros((steps + 1, *shape), dtype)
    basis = backend.put(basis, 0, np.broadcast_to(backend.generic(shape[-1], dtype), shape))
    state = (np.zeros((), int), basis, np.zeros((steps, *shape), dtype))
    _, basis, products = backend.loop(lambda state: state[0] < steps, step, state)
    matrix = np.einsum("i...n,j...n->...ij", basis[:steps], products)
    return np.linalg.eigvalsh((matrix + np.swapaxes(matrix, -1, -2)) / 2)


METHODS = {"cg": cg, "bicgstab": bicgstab, "gmres": gmres}
