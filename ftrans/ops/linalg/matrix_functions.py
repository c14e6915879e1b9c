"""Functions of square matrices, such as the exponential, and their derivatives of all orders (Higham 2008).

The derivative of order k of f at A along E1 ... Ek is symmetric and linear in the directions.  It is the upper right
block of f at the matrix X[k], where X[0] = A and X[k] = [[X[k-1], I ⊗ Ek], [0, X[k-1]]] (Higham and Relton, "Higher
order Fréchet derivatives of matrix functions and the level-2 condition number", 2014).  So one primitive with the
matrices and any number of directions holds f and all of its derivatives: differentiating it adds a direction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.cost import Cost
from ...core.on_numpy import Memory
from ...core.primitive import SingleResult, Tangent
from ...core.program import Params
from ...core.trace import Tracer
from ...core.types import ArrayType
from ..broadcast import with_batch_axis
from ..contractions import swap_last
from ..elementwise import add
from ..literals import full_like, splat
from .equations import solve
from .family import by_host, check_square, each_matrix


class MatrixFunctionOf(SingleResult):
    """A function f of the matrices `a`, or with directions its derivative along them.

    It is an analytic function that commutes with the transpose, so the cotangent of one direction is the derivative at
    the transposed matrices along the cotangent and the other directions, transposed.

    Args:
        name: name in print.
        function: f on a NumPy array of matrices.
        xla: f on a JAX array of matrices; by default the host computes.
    """

    memory = Memory.NEW

    def __init__(self, name: str, function: Callable[[Any], Any], xla: Callable[[Any], Any] | None = None) -> None:
        self.name = name
        self._function = function
        self._xla = xla

    def type_rule(self, a: ArrayType, *directions: ArrayType) -> ArrayType:
        check_square(self.name, a)
        for e in directions:
            if e is not a:
                raise TypeError(f"{self.name}: a direction {e} is not of the type of the matrices {a}")
        return a

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(30.0 * types[0].size * types[0].shape[-1] * 8.0 ** (len(types) - 1))

    def numpy(self, a: Any, *directions: Any) -> Any:
        return self._derivative(np, self._function, a, directions).astype(a.dtype, copy=False)

    def xla(self, a: Any, *directions: Any) -> Any:
        if self._xla is None:
            return by_host(self.numpy, ArrayType(a.shape, np.dtype(a.dtype)), a, *directions)
        from jax import numpy as jnp

        return self._derivative(jnp, self._xla, a, directions)

    @staticmethod
    def _derivative(xp: Any, function: Callable[[Any], Any], a: Any, directions: Sequence[Any]) -> Any:
        """Directions are scaled to the size of `a`, so that how f is computed does not depend on their size."""
        n = a.shape[-1]
        if not n:
            return a
        x, factor = a, 1.0
        size = xp.max(xp.abs(a), axis=(-2, -1), keepdims=True)
        for e in directions:
            largest = xp.max(xp.abs(e), axis=(-2, -1), keepdims=True)
            scale = xp.where((largest > 0) & (size > 0), largest / xp.where(size > 0, size, 1), 1)
            factor = factor * scale
            e = e / scale
            copies = x.shape[-1] // n
            corner = e
            while corner.shape[-1] < x.shape[-1]:
                nothing = xp.zeros_like(corner)
                corner = _blocks(xp, corner, nothing, nothing, corner)
            assert copies * n == corner.shape[-1]
            x = _blocks(xp, x, corner, xp.zeros_like(x), x)
        found = function(x)[..., :n, -n:]
        return found * factor if directions else found

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return each_matrix(types, results, types[0].ndim - 2)[0]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        total: Tangent = None
        a, *directions = primals
        for place, t in enumerate(tangents):
            if t is None:
                continue
            others = [e for i, e in enumerate(directions, start=1) if i != place]
            term = self(a, *others, t)
            total = term if total is None else add(total, term)
        return self(*primals), total

    def transpose(self, ct: Tracer, operands: Sequence[Any]) -> list[Tangent]:
        place = next(i for i, x in enumerate(operands) if isinstance(x, ArrayType))
        turned = [ct if i == place else swap_last(x) for i, x in enumerate(operands)]
        return [self(*turned) if i == place else None for i in range(len(operands))]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool]) -> Any:
        return self(*(with_batch_axis(size, x, f) for x, f in zip(operands, batched, strict=True))), True

    def simplify(self, operands: Sequence[Tracer]) -> Tracer | None:
        return full_like(operands[0], 0) if any(splat(e) == 0 for e in operands[1:]) else None


def _blocks(xp: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return xp.concatenate([xp.concatenate([a, b], -1), xp.concatenate([c, d], -1)], -2)


def _of_scipy(name: str) -> Callable[[Any], Any]:
    """A matrix function of `scipy.linalg`, matrix by matrix."""

    def call(x: Any) -> Any:
        import scipy.linalg

        function = getattr(scipy.linalg, name)
        out = np.empty_like(x)
        # In double precision: SciPy takes the rounding of single precision for a failure.
        wide = x.astype(np.result_type(x.dtype, np.float64))
        for i in np.ndindex(x.shape[:-2]):
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message=".*(exactly singular|Matrix is singular)")
                try:
                    value = function(wide[i])
                except (UserWarning, scipy.linalg.LinAlgWarning):
                    raise np.linalg.LinAlgError(f"{name} of a singular matrix") from None
            if np.iscomplexobj(value) and not np.iscomplexobj(x):
                raise np.linalg.LinAlgError(
                    f"{name} of a real matrix is complex here, and the type of a traced value cannot depend on that; "
                    "convert the matrix to complex numbers first, with a.astype(complex)"
                )
            out[i] = value
        return out

    return call


# The numerator of the Padé approximant [13/13] of the exponential, and the norm up to which it is exact in double
# precision (Higham, "The scaling and squaring method for the matrix exponential revisited", 2005).
_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_PADE_NORM = 5.371920351148152


def _expm_by_xla(x: Any) -> Any:
    """Scaling and squaring, all matrices at once, which compiles faster than a choice between approximants."""
    from jax import lax, numpy

    size = numpy.max(numpy.sum(numpy.abs(x), axis=-2), axis=-1)[..., None, None]
    squarings = numpy.ceil(numpy.log2(numpy.maximum(size / _PADE_NORM, 1)))
    # A matrix that is not finite gives what is not finite.
    squarings = numpy.where(numpy.isfinite(squarings), squarings, 0)
    x = x / numpy.exp2(squarings).astype(x.dtype)
    eye = numpy.eye(x.shape[-1], dtype=x.dtype)
    b = [numpy.asarray(c / _PADE[0], x.dtype) for c in _PADE]

    def product(a: Any, b: Any) -> Any:
        return numpy.matmul(a, b, precision=lax.Precision.HIGHEST)

    x2 = product(x, x)
    x4 = product(x2, x2)
    x6 = product(x4, x2)
    odd = product(x6, b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * eye
    even = product(x6, b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * eye
    odd = product(x, odd)
    found = solve.xla(even - odd, even + odd, transpose_a=False)

    def squared(i: Any, y: Any) -> Any:
        return numpy.where(i < squarings, product(y, y), y)

    return lax.fori_loop(0, numpy.max(squarings, initial=0).astype(np.int32), squared, found)


expm = MatrixFunctionOf("expm", _of_scipy("expm"), _expm_by_xla)
logm = MatrixFunctionOf("logm", _of_scipy("logm"))
sqrtm = MatrixFunctionOf("sqrtm", _of_scipy("sqrtm"))
signm = MatrixFunctionOf("signm", _of_scipy("signm"))
