"""What singular vectors make without their values, and values without their vectors: polar factors, nuclear norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.primitive import SingleResult, Tangent
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex
from ..contractions import matmul
from ..elementwise import add, conj, sub
from .equations import solve, sylvester
from .family import (
    MatrixFunction,
    adjoint,
    check_matrices,
    real_if_complex,
    real_type,
    sum_of_products,
    symmetric_part,
)


class PolarFactor(MatrixFunction, SingleResult):
    """The part `u` of the matrices `a = u @ p`, where `p` is positive semidefinite: orthonormal columns, or rows.

    Vectors of singular values that are 0 up to rounding are arbitrary; if `partial`, they are left out, so that `u` has
    singular values of 0 where `a` has.  Derivatives need singular values that are not 0; equal ones do no harm (Kenney
    and Laub, "Polar decomposition and matrix sign function condition estimates", 1991).
    """

    name = "polar_factor"
    cubic = 22.0

    def __call__(self, a: Any, *, partial: bool = False) -> Any:
        return super().__call__(a, partial=partial)

    def type_rule(self, a: ArrayType, *, partial: bool) -> ArrayType:
        check_matrices(self.name, a)
        return a

    def numpy(self, a: Any, *, partial: bool) -> Any:
        return self._of_factors(np, *np.linalg.svd(a, full_matrices=False), partial=partial)

    def xla(self, a: Any, *, partial: bool) -> Any:
        from jax import numpy as jnp

        return self._of_factors(jnp, *jnp.linalg.svd(a, full_matrices=False), partial=partial)

    @staticmethod
    def _of_factors(xp: Any, u: Any, s: Any, vh: Any, *, partial: bool) -> Any:
        limit = s[..., :1] * (max(u.shape[-2], vh.shape[-1]) * np.finfo(s.dtype).eps)
        return (xp.where((s > limit)[..., None, :], u, 0) if partial else u) @ vh

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, partial: bool) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        m, n = a.shape[-2:]
        out = self(a, partial=partial)
        u = out
        if m < n:
            u, a, t = adjoint(u), adjoint(a), adjoint(t)
        p, inner = symmetric_part(matmul(adjoint(u), a)), matmul(adjoint(u), t)
        change = matmul(u, sylvester(p, p, sub(inner, adjoint(inner)), symmetric=True))
        if m != n:
            outer = sub(t, matmul(u, inner))
            change = add(change, adjoint(solve(p, adjoint(outer))))
        return out, adjoint(change) if m < n else change


class NuclearNorm(MatrixFunction, SingleResult):
    """The sums of the singular values of matrices; where some of them are 0, the derivative leaves them out."""

    name = "nuclear_norm"
    cubic = 4.0

    def type_rule(self, a: ArrayType) -> ArrayType:
        check_matrices(self.name, a)
        return ArrayType(a.shape[:-2], real_type(a.dtype))

    def numpy(self, a: Any) -> Any:
        return np.linalg.norm(a, "nuc", axis=(-2, -1))

    def xla(self, a: Any) -> Any:
        from jax import numpy as jnp

        return jnp.sum(jnp.linalg.svd(a, full_matrices=False, compute_uv=False), -1)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        u = polar_factor(a, partial=True)
        return nuclear_norm(a), real_if_complex(sum_of_products(conj(u) if is_complex(u.dtype) else u, t))


polar_factor = PolarFactor()
nuclear_norm = NuclearNorm()
