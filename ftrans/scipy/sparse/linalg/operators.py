"""Linear operators: what multiplies vectors, as the iterative solvers take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse.linalg

from ....base.source import at_line, user_line
from ....numpy.dispatch import implements
from ....numpy.promotion import asarray, has_tracer
from ..arithmetic import is_sparse
from ..entries import entries_of, product

OPERATOR: Any = scipy.sparse.linalg.LinearOperator
# What SciPy makes of a matrix, which is its attribute `A`.
_OF_MATRIX = type(scipy.sparse.linalg.aslinearoperator(np.eye(1)))


class Operator(NamedTuple):
    """A square matrix that multiplies vectors.

    Attributes:
        n: the number of rows.
        matvec: the product with a vector (n,).
        dtype: the dtype of the matrix.
        is_traced: whether it depends on traced values.
    """

    n: int
    matvec: Callable[[Any], Any]
    dtype: Any
    is_traced: bool


def apply(operator: Any, x: Any) -> Any:
    """The product of a LinearOperator of SciPy with a traced vector (n,) or (n, 1)."""
    x = asarray(x)
    if x.shape not in ((operator.shape[1],), (operator.shape[1], 1)):
        raise ValueError(
            f"dimension mismatch: a LinearOperator {operator.shape} cannot multiply {x.shape}{at_line(user_line())}"
        )
    if isinstance(operator, _OF_MATRIX):
        return (operator.A @ x) if is_sparse(operator.A) else asarray(operator.A) @ x
    found = asarray(operator._matvec(x))
    return found.reshape((operator.shape[0], *x.shape[1:]))


def operator_of(name: str, a: Any) -> Operator:
    """The operator that an argument of a solver stands for."""
    shape = np.shape(a) if not hasattr(a, "shape") else a.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{name}: expected square matrix, not {tuple(shape)}{at_line(user_line())}")
    n = int(shape[0])
    if is_sparse(a):
        entries = entries_of(a)
        return Operator(n, lambda x: product(entries, x), entries.dtype, has_tracer(entries.data))
    if isinstance(a, OPERATOR):
        # What its function closes over is seen only in what it returns.
        dtype = a.dtype or np.dtype(np.float64)
        return Operator(n, lambda x: apply(a, x), dtype, has_tracer(a._matvec(np.zeros(n, dtype))))
    matrix = asarray(a)
    return Operator(n, lambda x: matrix @ x, matrix.dtype, has_tracer(a))


@implements(OPERATOR, takes_functions=True)
def made_operator(
    shape: Any,
    matvec: Callable[..., Any],
    rmatvec: Any = None,
    matmat: Any = None,
    dtype: Any = None,
    rmatmat: Any = None,
) -> Any:
    """The LinearOperator of functions, which may close over traced values."""
    if dtype is None:
        # SciPy would ask a NumPy array for it.
        probe = matvec(np.zeros(shape[-1], np.int8))
        dtype = asarray(probe).dtype if has_tracer(probe) else None
    return OPERATOR(shape, matvec, rmatvec, matmat, dtype, rmatmat)


class _Kind(type(OPERATOR)):  # type: ignore[misc]
    """Calls of the class make operators of SciPy, which are its instances."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return made_operator(*args, **kwargs) if cls is LinearOperator else super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, OPERATOR) if cls is LinearOperator else super().__instancecheck__(instance)


class LinearOperator(OPERATOR, metaclass=_Kind):
    """`scipy.sparse.linalg.LinearOperator`, of functions that may close over traced values.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy.sparse.linalg import LinearOperator, cg
        >>> def f(scale):
        ...     return np.sum(cg(LinearOperator((2, 2), matvec=lambda v: scale * v), np.ones(2))[0])
        >>> float(ft.grad(f)(2.0))
        -0.5
    """


@implements(OPERATOR.matvec, takes_functions=True)
def matvec(operator: Any, x: Any) -> Any:
    """`LinearOperator.matvec` of a traced vector."""
    return apply(operator, x)


@implements(OPERATOR.matmat, takes_functions=True)
def matmat(operator: Any, X: Any) -> Any:
    """`LinearOperator.matmat` of traced columns."""
    X = asarray(X)
    return np.stack([apply(operator, X[:, i]) for i in range(X.shape[1])], 1)


@implements(OPERATOR.dot, OPERATOR.__matmul__, OPERATOR.__mul__, OPERATOR.__call__, takes_functions=True)
def dot(operator: Any, x: Any) -> Any:
    """The product of a LinearOperator with a traced vector or columns."""
    x = asarray(x)
    return matmat(operator, x) if x.ndim == 2 else apply(operator, x)


@implements(OPERATOR.rmatvec, takes_functions=True)
def rmatvec(operator: Any, x: Any) -> Any:
    """`LinearOperator.rmatvec` of a traced vector, by its own function."""
    return asarray(operator._rmatvec(asarray(x))).reshape(-1)
