"""Solutions of algebraic Riccati equations, the stabilizing ones, in continuous and in discrete time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.cost import Cost
from ...core.on_numpy import Memory
from ...core.primitive import SingleResult, Tangent
from ...core.program import Params
from ...core.trace import Tracer
from ...core.types import ArrayType
from ..broadcast import with_batch_axis
from ..contractions import matmul
from ..elementwise import add, eq, neg, select, sub
from ..literals import full_like
from .equations import inv, solve, sylvester
from .family import adjoint, by_host, check_square, each_matrix, entries, symmetric_part


class Riccati(SingleResult):
    """The stabilizing solution `x` of an algebraic Riccati equation with the Hermitian parts of `q` and `r`.

    In continuous time the equation is `a.H x + x a - x b inv(r) b.H x + q = 0`, with `discrete`
    `a.H x a - x - a.H x b inv(r + b.H x b) b.H x a + q = 0`.  SciPy solves it on the host, by the stable subspace of a
    pencil (Van Dooren 1981).  Its derivative solves a Lyapunov equation with the matrix of the closed loop (Kao and
    Hennequin, "Automatic differentiation of Sylvester, Lyapunov, and algebraic Riccati equations", 2020).
    """

    name = "riccati"
    memory = Memory.NEW

    def type_rule(self, a: ArrayType, b: ArrayType, q: ArrayType, r: ArrayType, *, discrete: bool) -> ArrayType:
        for x in (a, q, r):
            check_square(self.name, x)
        if not a.dtype == b.dtype == q.dtype == r.dtype:
            raise TypeError(f"operands of riccati differ in dtype: {a}, {b}, {q}, {r}")
        if q != a or b.shape[:-1] != a.shape[:-1] or r.shape != (*a.shape[:-2], b.shape[-1], b.shape[-1]):
            raise ValueError(f"riccati: b ({b}), q ({q}) and r ({r}) do not fit a ({a})")
        return a

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(200.0 * types[0].size * types[0].shape[-1])

    def numpy(self, a: Any, b: Any, q: Any, r: Any, *, discrete: bool) -> Any:
        import scipy.linalg

        found = scipy.linalg.solve_discrete_are if discrete else scipy.linalg.solve_continuous_are
        q, r = ((m + np.conj(np.swapaxes(m, -1, -2))) / 2 for m in (q, r))
        x = np.empty_like(a)
        for i in np.ndindex(a.shape[:-2]):
            x[i] = found(a[i], b[i], q[i], r[i])
        return x

    def xla(self, a: Any, b: Any, q: Any, r: Any, *, discrete: bool) -> Any:
        type = ArrayType(a.shape, np.dtype(a.dtype))
        return by_host(lambda *xs: self.numpy(*xs, discrete=discrete), type, a, b, q, r)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return each_matrix(types, results, types[0].ndim - 2)[0]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, discrete: bool) -> tuple[Any, Any]:
        a, b, _, r = primals
        r = symmetric_part(r)
        x = self(*primals, discrete=discrete)
        weight = add(r, matmul(adjoint(b), matmul(x, b))) if discrete else r
        gain = solve(weight, matmul(adjoint(b), matmul(x, a) if discrete else x), transpose_a=False)
        closed = sub(a, matmul(b, gain))
        change = _change_of_residual(tangents, matmul(x, closed) if discrete else x, gain)
        if discrete:
            return x, _stein(adjoint(closed), change)
        return x, sylvester(adjoint(closed), closed, neg(change), symmetric=False)

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, discrete: bool) -> Any:
        xs = [with_batch_axis(size, x, f) for x, f in zip(operands, batched, strict=True)]
        return self(*xs, discrete=discrete), True


def _change_of_residual(tangents: Sequence[Tangent], met: Tracer, gain: Tracer) -> Tracer:
    """What tangents of `a`, `b`, `q` and `r` change about the equation; `met` is what those of `a` and `b` meet."""
    ta, tb, tq, tr = tangents
    halves = [matmul(adjoint(ta), met)] if ta is not None else []
    halves += [neg(matmul(adjoint(gain), matmul(adjoint(tb), met)))] if tb is not None else []
    parts = [add(half, adjoint(half)) for half in halves]
    parts += [symmetric_part(tq)] if tq is not None else []
    parts += [matmul(adjoint(gain), matmul(symmetric_part(tr), gain))] if tr is not None else []
    change = parts[0]
    for part in parts[1:]:
        change = add(change, part)
    return change


def _stein(a: Tracer, q: Tracer) -> Tracer:
    """`x` in `x = a x a.H + q`, for `a` with eigenvalues inside of the unit circle, by a bilinear transformation."""
    eye = select(entries(a, eq), full_like(a, 1), full_like(a, 0))
    inverse = inv(add(adjoint(a), eye))
    moved = matmul(sub(adjoint(a), eye), inverse)
    right = matmul(inv(add(a, eye)), matmul(q, inverse))
    return sylvester(adjoint(moved), moved, neg(add(right, right)), symmetric=False)


riccati = Riccati()
