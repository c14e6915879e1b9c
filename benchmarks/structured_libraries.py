"""Sparse Jacobians and Hessians by ftrans and its peers: from a problem to a call that computes the entries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy

from .structured_problems import CasadiNumpy, Structured


@dataclass(frozen=True)
class Derivative:
    """A derivative that is ready to be called at the start of a problem.

    Attributes:
        entries: computes the entries that are stored, and waits for them.
        rows: the row of each.
        cols: its column.
        scope: is entered around calls.
    """

    entries: Callable[[], Any]
    rows: numpy.ndarray
    cols: numpy.ndarray
    scope: Callable[[], AbstractContextManager[Any]] = nullcontext


Maker = Callable[[Structured], Derivative]


def ftrans(problem: Structured, compile: bool = True) -> Derivative:
    """A prepared derivative, NumPy in and out."""
    prepared = prepare(problem, compile)
    return Derivative(functools.partial(prepared.values, problem.start), prepared.rows, prepared.cols)


def prepare(problem: Structured, compile: bool = True) -> Any:
    import ftrans as ft

    f = functools.partial(problem.function, numpy)
    if problem.of_hessian:
        derivative = ft.sparse_hessian(f, triangle="lower" if problem.lower else "full")
    else:
        derivative = ft.sparse_jacobian(f)
    return derivative.prepare(problem.start, compile=compile)


def ftrans_on_jax(problem: Structured) -> Derivative:
    """A prepared derivative, JAX arrays in and out, as those of its peers on JAX."""
    import jax

    prepared = prepare(problem)
    with jax.enable_x64(True):
        x = jax.numpy.asarray(problem.start)
    return Derivative(lambda: prepared.values(x).block_until_ready(), prepared.rows, prepared.cols)


def ftrans_unjitted(problem: Structured) -> Derivative:
    """The same program run by NumPy."""
    return ftrans(problem, compile=False)


def asdex(problem: Structured) -> Derivative:
    """asdex, which finds the pattern and colours it."""
    import asdex
    import jax

    with jax.enable_x64(True):
        x = jax.numpy.asarray(problem.start)
        f = functools.partial(problem.function, jax.numpy)
        compiled = jax.jit((asdex.hessian if problem.of_hessian else asdex.jacobian)(f, x))
        rows, cols = numpy.asarray(compiled(x).indices).T
    return Derivative(lambda: compiled(x).data.block_until_ready(), rows, cols, x64)


def sparsejac(problem: Structured) -> Derivative:
    """sparsejac, which is given the pattern and colours it."""
    import jax
    import sparsejac
    from jax.experimental.sparse import BCOO

    pattern = pattern_of(problem)
    with jax.enable_x64(True):
        x = jax.numpy.asarray(problem.start)
        f = functools.partial(problem.function, jax.numpy)
        indices = jax.numpy.stack([jax.numpy.asarray(pattern.row), jax.numpy.asarray(pattern.col)], 1)
        sparsity = BCOO((jax.numpy.ones(pattern.nnz), indices), shape=pattern.shape)
        compiled = jax.jit(sparsejac.jacfwd(jax.grad(f) if problem.of_hessian else f, sparsity))
        rows, cols = numpy.asarray(compiled(x).indices).T
    return Derivative(lambda: compiled(x).data.block_until_ready(), rows, cols, x64)


@functools.cache
def pattern_of(problem: Structured) -> Any:
    """The pattern, for who does not find it; its time counts for nobody."""
    import ftrans as ft

    find = ft.hessian_sparsity if problem.of_hessian else ft.jacobian_sparsity
    return find(functools.partial(problem.function, numpy))(problem.start).to_scipy().tocoo()


def casadi(problem: Structured) -> Derivative:
    """CasADi's MX, with the memory of argument and result given once."""
    import casadi

    x = casadi.MX.sym("x", problem.start.size)
    value = problem.function(CasadiNumpy(), x)
    matrix = casadi.hessian(value, x)[0] if problem.of_hessian else casadi.jacobian(value, x)
    function = casadi.Function("entries", [x], [casadi.tril(matrix) if problem.lower else matrix])
    rows, cols = map(numpy.asarray, function.sparsity_out(0).get_triplet())
    buffer, evaluate = function.buffer()
    start, entries = problem.start.copy(), numpy.zeros(len(rows))
    buffer.set_arg(0, memoryview(start))
    buffer.set_res(0, memoryview(entries))

    def call() -> numpy.ndarray:
        evaluate()
        return entries

    # The views that the buffer holds do not keep the arrays alive, nor does `evaluate` the buffer.
    call.keeps = buffer, start, function
    call()
    return Derivative(call, rows, cols)


def jax_dense(problem: Structured) -> Derivative:
    """`jax.hessian`, or `jax.jacfwd` where the result is longer than the argument and `jax.jacrev` where it is not."""
    import jax

    with jax.enable_x64(True):
        x = jax.numpy.asarray(problem.start)
        f = functools.partial(problem.function, jax.numpy)
        if problem.of_hessian:
            dense = jax.hessian(f)
        else:
            dense = jax.jacfwd(f) if jax.eval_shape(f, x).size >= x.size else jax.jacrev(f)
        compiled = jax.jit(dense)
        rows, cols = map(numpy.ravel, numpy.indices(compiled(x).shape))
    return Derivative(lambda: compiled(x).block_until_ready(), rows, cols, x64)


def x64() -> AbstractContextManager[Any]:
    import jax

    return jax.enable_x64(True)
