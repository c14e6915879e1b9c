"""Determinants, their logarithms, and the cofactors that the derivative of a determinant is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.primitive import MultipleResults, SingleResult, Tangent
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex
from ..contractions import matmul, swap_last
from ..elementwise import convert, eq, mul, neg, real, select, sub
from ..literals import full_like
from ..parts import concatenate, slice_
from .equations import inv
from .family import MatrixFunction, check_square, each_times, entries, real_type, sum_of_products


class Cofactors(MatrixFunction, SingleResult):
    """The derivative of the determinant with respect to each element of `a`, for singular matrices as well.

    It is the transposed adjugate, made from the singular value decomposition.  Its own derivative is that of
    `det(a) * inv(a).T`, and needs an inverse.
    """

    name = "cofactors"
    cubic = 25.0

    def numpy(self, a: Any) -> Any:
        return self._from_factors(np, *np.linalg.svd(a))

    def xla(self, a: Any) -> Any:
        import jax.numpy as jnp

        return self._from_factors(jnp, *jnp.linalg.svd(a))

    @staticmethod
    def _from_factors(xp: Any, u: Any, s: Any, vh: Any) -> Any:
        one = xp.ones_like(s[..., :1])
        smaller = xp.cumprod(xp.concatenate((one, s[..., :0:-1]), -1), -1)[..., ::-1]
        larger = xp.cumprod(xp.concatenate((one, s[..., :-1]), -1), -1)
        others = (smaller * larger)[..., None, :]
        sign = (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
        return sign * xp.conj(xp.matmul(u * others, vh))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        out = cofactors(a)
        inverse = swap_last(inv(a))
        change = matmul(matmul(inverse, swap_last(t)), out)
        return out, sub(each_times(sum_of_products(out, t), inverse), change)


cofactors = Cofactors()


def _cofactors(a: Tracer) -> Tracer:
    """The cofactors of each matrix: up to size 3 as polynomials, which are right for every matrix to any order."""
    n = a.shape[-1]
    if n > 3:
        return cofactors(a)
    if n < 2:
        return full_like(a, 1)
    cyclic = concatenate(a, a, axis=a.ndim - 1)
    cyclic = concatenate(cyclic, cyclic, axis=a.ndim - 2)

    def moved(down: int, right: int) -> Tracer:
        start = (*[0] * (a.ndim - 2), down, right)
        limit = (*a.shape[:-2], down + n, right + n)
        return slice_(cyclic, start=start, limit=limit, strides=(1,) * a.ndim)

    if n == 2:
        other = moved(1, 1)
        return select(entries(a, eq), other, neg(other))
    return sub(mul(moved(1, 1), moved(2, 2)), mul(moved(1, 2), moved(2, 1)))


class Det(MatrixFunction, SingleResult):
    """The determinants of the matrices `a`.

    The first derivative is right for singular matrices of any size, higher ones for those up to 3 by 3; for larger
    matrices they need an inverse.
    """

    name = "det"

    def type_rule(self, a: ArrayType) -> ArrayType:
        check_square(self.name, a)
        return a.with_shape(a.shape[:-2])

    def numpy(self, a: Any) -> Any:
        return np.linalg.det(a)

    def xla(self, a: Any) -> Any:
        import jax.numpy as jnp

        return jnp.linalg.det(a)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        return det(a), sum_of_products(_cofactors(a), t)


class SlogDet(MatrixFunction, MultipleResults):
    """Sign (for complex matrices: phase) and logarithm of the absolute value of the determinants of the matrices `a`.

    Derivatives need an inverse.
    """

    name = "slogdet"

    def type_rule(self, a: ArrayType) -> list[ArrayType]:
        check_square(self.name, a)
        sign = a.with_shape(a.shape[:-2])
        return [sign, sign.with_dtype(real_type(a.dtype))]

    def numpy(self, a: Any) -> Any:
        return np.linalg.slogdet(a)

    def xla(self, a: Any) -> Any:
        import jax.numpy as jnp

        return jnp.linalg.slogdet(a)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        sign, logarithm = slogdet(a)
        change = sum_of_products(swap_last(inv(a)), t)
        if not is_complex(a.dtype):
            return [sign, logarithm], [None, change]
        turn = sub(change, convert(real(change), dtype=a.dtype))
        return [sign, logarithm], [mul(sign, turn), real(change)]


det = Det()
slogdet = SlogDet()
