"""Products of vectors with a Jacobian or Hessian that is never formed: one linearization, for many vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..control.subprograms import with_outputs
from ..core.program import Program
from ..core.types import ArrayType, is_complex
from ..structure.dense.whole import gradient_first
from ..transforms import differentiate as d
from ..transforms.batch import batch
from .call import run
from .paths import run_compiled

Flags = tuple[bool, ...]
Run = Callable[[Program, Sequence[Any]], list[Any]]


class _Product(NamedTuple):
    """A linear program that computes products.

    Attributes:
        linear: takes residuals, then vectors.
        given: types of the vectors that make up one side.
        wanted: types of those that make up the other.
        takes: which of the given ones the program takes.
        returns: which of the wanted ones it returns; the others are zero.
    """

    linear: Program
    given: Sequence[ArrayType]
    wanted: Sequence[ArrayType]
    takes: Flags
    returns: Flags


class Products:
    """Products with the Jacobian of a program's first outputs, or the Hessian of the first one, at a point.

    Attributes:
        shape: shape of the matrix.
        dtype: its dtype.

    Args:
        program: the program.
        active: which inputs are differentiated.
        wanted: how many leading outputs are.
        inputs: the point: NumPy arrays.
        of_hessian: whether the matrix is the Hessian.
        is_compiled: whether XLA runs the products, not NumPy.
    """

    def __init__(
        self,
        program: Program,
        active: Flags,
        wanted: int,
        inputs: Sequence[Any],
        of_hessian: bool,
        is_compiled: bool = False,
    ) -> None:
        if of_hessian:
            program, wanted = gradient_first(program, active), sum(active)
        only = with_outputs(program, program.outputs[:wanted])
        self._only, self._active, self._is_symmetric = only, active, of_hessian
        self._run: Run = run_compiled if is_compiled else run
        self._columns = [t for t, a in zip(only.in_types, active, strict=True) if a]
        self._rows = list(only.out_types)
        self.shape = sum(t.size for t in self._rows), sum(t.size for t in self._columns)
        self.dtype = np.result_type(*(t.dtype for t in (*self._rows, *self._columns)))
        # Both directions share what the linearization keeps.
        self._pushed = only.derive(("products forwards", active), lambda: d.pushforward(only, active))
        outs = self._run(self._pushed.values, inputs)
        self._values, self._residuals = outs[:wanted], outs[wanted:]
        self._point = [x for x, a in zip(inputs, active, strict=True) if a]

    def forward(self, v: Any) -> Any:
        """The product of the matrix (m, n) with a vector (n,), or with each column of (n, k)."""
        parts = self._pushed
        every = (True,) * len(self._columns)
        return self._apply(_Product(parts.linear, self._columns, self._rows, every, parts.out_active), v)

    def backward(self, v: Any) -> Any:
        """The product of the matrix's conjugate transpose with a vector (m,), or with each column of (m, k)."""
        if self._is_symmetric:
            return np.conj(self.forward(np.conj(v)))
        parts = d.pullback(self._only, self._active)
        product = _Product(parts.linear, self._rows, self._columns, parts.out_active, parts.in_active)
        return np.conj(self._apply(product, np.conj(v)))

    def noise(self) -> Any:
        """For each row, a derivative so small that it changes the value by what rounding does, at this point."""
        size = max(float(np.abs(x).max(initial=0)) for x in self._point)
        values = np.concatenate([np.abs(y).reshape(-1) for y in self._values])
        return 16 * rounding_unit(self.dtype) * values.astype(np.float64) / (size or 1.0)

    def _apply(self, product: _Product, v: Any) -> Any:
        """The product with a vector, or with the columns of a matrix."""
        if any(is_complex(t.dtype) for t in product.given) and not any(is_complex(t.dtype) for t in product.wanted):
            # What is real is the real part of the product, so that of the product with 1j * v is minus the other part.
            v = np.asarray(v)
            return self._applied(product, v) - 1j * self._applied(product, 1j * v)
        return self._applied(product, v)

    def _applied(self, product: _Product, v: Any) -> Any:
        linear = product.linear
        v = np.asarray(v)
        count = v.shape[1] if v.ndim == 2 else 1
        vectors = list(_parts(v.T if v.ndim == 2 else v[None], product.given))
        seeds = [x for x, taken in zip(vectors, product.takes, strict=True) if taken]
        if v.ndim == 1:
            found = iter(self._run(linear, [*self._residuals, *(x[0] for x in seeds)]))
            outs = [np.asarray(next(found))[None] if has else None for has in product.returns]
        else:
            batched = batch(
                linear,
                count,
                (False,) * len(self._residuals) + (True,) * len(seeds),
                (True,) * len(linear.outputs),
            )
            found = iter(self._run(batched.program, [*self._residuals, *seeds]))
            outs = [next(found) if has else None for has in product.returns]
        rows = [
            np.zeros((count, t.size), self.dtype) if y is None else np.reshape(y, (count, t.size))
            for y, t in zip(outs, product.wanted, strict=True)
        ]
        whole = np.concatenate(rows, axis=1).astype(self.dtype, copy=False) if rows else np.zeros((count, 0))
        return whole.T if v.ndim == 2 else whole[0]


def rounding_unit(dtype: Any) -> float:
    """The distance from 1 to the next number of a dtype, relative to which results are rounded."""
    return 2.0**-7 if dtype.name == "bfloat16" else float(np.finfo(dtype).eps)


def _parts(vectors: Any, types: Sequence[ArrayType]) -> Any:
    """Vectors (k, n) as an array (k, *shape) for each type, one after the other."""
    start = 0
    for t in types:
        part = vectors[:, start : start + t.size].reshape(len(vectors), *t.shape)
        yield part.astype(t.dtype, copy=False)
        start += t.size
