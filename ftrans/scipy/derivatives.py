"""Which derivatives SciPy's solvers are given: dense or sparse matrices, or products with vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..api.derivatives import value_and_grad
from ..api.jacobians import hessian, hvp, jacobian
from ..api.jit import trace
from ..api.sparse import sparse_hessian, sparse_jacobian
from ..core.program import Program, programs_in
from ..numpy.promotion import asarray
from ..run.costs import program_flops
from ..structure.entries import NotStructured
from ..structure.patterns.detect import hessian_pattern, jacobian_pattern
from .supplied import Function, Gradient, Supplied, Used, patience

# Below so many elements a dense matrix is factorised as quickly as a sparse one.
DENSE_BELOW = 10_000
# A dense Hessian with so many rows is cheaper than the products that a step takes.
FEW = 50
# Operations for each element that is computed, in functions that may have a sparse derivative.
_FLOPS_OF_SPARSE = 30
# Entries in a row, on average, that are looked for in any case.
_FEW_IN_ROW = 20

# What functions return, as SciPy reads it


def scalar(f: Function) -> Function:
    """A function whose result, one number in whatever shape, is an array without axes."""
    return lambda *args: np.reshape(asarray(f(*args)), ())


def vector(f: Function) -> Function:
    """A function whose result, an array, a number, or a list of them, is a vector."""
    return lambda *args: np.reshape(asarray(f(*args)), (-1,))


# Derivatives by the first argument, for a function `f` that can be evaluated at the arguments `at`


def gradient_of(f: Function, at: tuple[Any, ...], used: Used, compile: bool | None) -> Gradient:
    """The gradient of a scalar function."""
    used.engine = "gradient by reverse mode"
    both = value_and_grad(scalar(f))
    return Gradient(f, Supplied(both, used, at, compile, patience(trace(scalar(f))(*at), 3, 3)))


def jacobian_of(
    f: Function, at: tuple[Any, ...], used: Used, sparse: bool, compile: bool | None, dense_below: int = DENSE_BELOW
) -> Supplied:
    """The Jacobian of a vector-valued function, as a sparse array where it is sparse.

    Args:
        f: the function.
        at: arguments at which it can be evaluated.
        used: where it is entered what was used.
        sparse: whether it may be a sparse array.
        compile: whether it is compiled; None leaves that to the estimate.
        dense_below: the number of elements below which it is dense all the same; with 0 it is a sparse array in any
            case.
    """
    program = trace(f)(*at)
    rows, columns = program.out_types[0].size, at[0].size

    def find(active: list[bool], at_most: float) -> Any:
        return jacobian_pattern(program, active, 1, {}, at_most)

    if sparse and (not dense_below or (rows * columns >= dense_below and _is_sparse(program, rows * columns, find))):
        used.engine = "sparse Jacobian"
        return Supplied(sparse_jacobian(f), used, at, compile, patience(program, 6, 6))
    used.engine = "dense Jacobian"
    return Supplied(jacobian(f), used, at, compile, patience(program, 3, 2 * min(rows, columns)))


def hessian_of(f: Function, at: tuple[Any, ...], used: Used, compile: bool | None) -> Supplied:
    """The Hessian of a scalar function, as a dense matrix."""
    used.engine = "dense Hessian"
    return Supplied(hessian(f), used, at, compile, patience(trace(f)(*at), 6, 4 * at[0].size))


def sparse_hessian_of(f: Function, at: tuple[Any, ...], used: Used, compile: bool | None) -> Supplied | None:
    """The Hessian of a scalar function, as a sparse array; None if it is not sparse."""
    program = trace(f)(*at)

    def find(active: list[bool], at_most: float) -> Any:
        return hessian_pattern(program, active, {}, at_most)

    if not _is_sparse(program, at[0].size ** 2, find):
        return None
    used.engine = "sparse Hessian"
    return Supplied(sparse_hessian(f), used, at, compile, patience(program, 6, 6))


def product_of(f: Function, at: tuple[Any, ...], used: Used, compile: bool | None) -> Supplied:
    """The product of the Hessian of a scalar function with a vector: a function of its arguments, then the vector."""

    def derivative(x: Any, *rest: Any) -> Any:
        *others, direction = rest
        return hvp(lambda x: f(x, *others), (x,), (direction,))

    used.engine = "products with the Hessian"
    return Supplied(derivative, used, (*at, np.zeros_like(at[0])), compile, patience(trace(f)(*at), 6, 6))


def _is_sparse(program: Program, size: int, find: Function) -> bool:
    """Whether a derivative by the first input, with `size` elements, is sparse, as far as it is worth finding out."""
    # Products of large matrices make dense derivatives, after a long look.
    if program_flops(program) > _FLOPS_OF_SPARSE * _elements(program):
        return False
    active = [i == 0 for i in range(len(program.inputs))]
    try:
        return bool(find(active, max(size / 4, _FEW_IN_ROW * program.in_types[0].size)).nnz <= size / 4)
    except NotStructured:
        return False


def _elements(program: Program) -> float:
    """The number of elements that are computed, those of loops once for each step."""
    return sum(
        sum(v.type.size for v in eqn.outputs)
        + eqn.params.get("length", 1) * sum(map(_elements, programs_in(eqn.params)))
        for eqn in program.eqns
    )
