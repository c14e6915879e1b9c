"""Rows of the sample table for primitives that hold programs: control flow, custom rules, solvers.

The programs are traced from functions of tracers, written in primitives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sampling import (
    boolean,
    f32,
    f64,
    failure,
    given,
    i32,
    i64,
    integers,
    invertible,
    misfit,
    normal,
    positive_definite,
    sample,
    uniform,
)

import ftrans as ft
from ftrans.base import tree
from ftrans.control.call import call
from ftrans.control.checkpoints.checkpoint import checkpoint
from ftrans.control.checkpoints.recompute import Budget, Named
from ftrans.control.cond import cond
from ftrans.control.convergence import ConvergenceError, derivative_required, required
from ftrans.control.extrema.if_needed import if_needed
from ftrans.control.loops.rewind import rewind
from ftrans.control.loops.scan import scan
from ftrans.control.loops.while_loop import while_
from ftrans.control.rules.black_box import Batch, Code, black_box, final
from ftrans.control.rules.custom_rule import Derivatives, Rule, custom
from ftrans.control.rules.host_call import watch
from ftrans.control.rules.jax_code import JaxCode, call_jax
from ftrans.control.rules.linear_call import Name, linear_call
from ftrans.control.rules.tap import tap
from ftrans.core.program import Program
from ftrans.core.trace import Builder, building
from ftrans.core.types import ArrayType
from ftrans.ops import contractions, literals
from ftrans.ops import elementwise as e
from ftrans.ops.broadcast import reduce_sum
from ftrans.ops.sharding import shard
from ftrans.solvers.linear_primitive import LinearMethod, linear_solve
from ftrans.solvers.root import root
from ftrans.solvers.search import Search


def traced(f: Callable[..., Any], *types: ArrayType) -> Program:
    """The program of a function written in primitives."""
    builder = Builder(types)
    with building(builder):
        return builder.finish(f(*builder.inputs()), f.__name__)


def full(value: float) -> Any:
    """A scalar constant, inside of a traced function."""
    return literals.full((), value, f64)


V, S, N = ArrayType((3,), f64), ArrayType((), f64), ArrayType((), i64)


def waves(x: Any, y: Any) -> Any:
    return [e.mul(e.sin(x), y), reduce_sum(x, axes=(0,))]


def product(x: Any, y: Any) -> Any:
    return [e.mul(x, y), full(2.0)]


def ignoring(x: Any, y: Any) -> Any:
    return [y, reduce_sum(e.exp(y), axes=(0,))]


def counted(x: Any, n: Any) -> Any:
    return [e.add(n, literals.full((), 1, i64)), e.tanh(x), n]


for f in (waves, product):
    sample(call, normal((3,)), normal((3,)), program=traced(f, V, V), note=f.__name__)
sample(call, normal((3,)), integers(0, 9, ()), program=traced(counted, V, N), note="counted")


def layers(x: Any, y: Any) -> Any:
    x = e.tanh(contractions.dot_general(x, y, contract=((), ()), batch=((), ())))
    total = reduce_sum(e.mul(tap(x, name="x", leaf=0, structure=tree.LEAF), x), axes=(0,))
    return [e.exp(total), y, e.mul(total, y)]


for policy in ("nothing", "everything", "dots", Named(("x",)), Budget(10_000)):
    params = {"program": traced(layers, V, V), "policy": policy, "again": False}
    sample(checkpoint, normal((3,)), normal((3,)), note=f"layers,{policy}", **params)
params = {"program": traced(counted, V, N), "policy": "nothing", "again": True}
sample(checkpoint, normal((3,)), integers(0, 9, ()), note="counted,again", **params)
misfit(checkpoint, S, V, error=TypeError, program=traced(waves, V, V), policy="nothing", again=False)

for functions in [(product, waves), (waves, ignoring, product), (ignoring, ignoring), (waves,)]:
    branches = tuple(traced(f, V, V) for f in functions)
    which = integers(0, len(branches), ())
    sample(cond, which, normal((3,)), normal((3,)), branches=branches, note="or".join(f.__name__ for f in functions))
branches = (traced(lambda x, n: [n, x, n], V, N), traced(counted, V, N))
sample(cond, given(1, i64), normal((3,)), integers(0, 9, ()), branches=branches, note="integers")
misfit(cond, ArrayType((), i32), V, V, error=TypeError, branches=(traced(waves, V, V), traced(product, V, V)))
misfit(cond, N, V, S, error=TypeError, branches=(traced(waves, V, V), traced(product, V, V)))
misfit(cond, N, V, V, error=TypeError, branches=(traced(waves, V, V), traced(lambda x, y: [x, y], V, V)))


def loop(f: Callable[..., Any], fixed: int, carries: int, *types: ArrayType, length: int = 4, **more: Any) -> Any:
    """The parameters of a scan of `f`, whose results are carries, then elements."""
    program = traced(f, *types)
    order = {
        "program": program,
        "length": length,
        "reverse": more.get("reverse", False),
        "unroll": more.get("unroll", 1),
    }
    return {**order, "consts": fixed, "carries": carries}


def recurrence(a: Any, y: Any, x: Any) -> Any:
    y = e.add(e.mul(a, y), e.sin(x))
    return [y, e.mul(y, x)]


def accumulating(total: Any, x: Any) -> Any:
    return [e.add(total, x), total]


def mapped(x: Any) -> Any:
    return [e.exp(x), e.mul(x, x)]


def powers(a: Any, y: Any) -> Any:
    return [e.mul(a, y)]


def counting(n: Any, y: Any, x: Any) -> Any:
    step = e.convert(n, dtype=f64)
    return [e.add(n, literals.full((), 1, i64)), e.add(y, e.mul(step, x)), e.mul(y, step), n]


def mixing(a: Any, y: Any, z: Any, x: Any) -> Any:
    turned = contractions.dot_general(a, y, contract=((1,), (0,)), batch=((), ()))
    return [e.tanh(e.add(turned, x)), e.add(z, reduce_sum(e.mul(y, x), axes=(0,))), e.cos(z)]


SEQUENCE = normal((4,))
for reverse in (False, True):
    for unroll in (1, 2):
        params = loop(recurrence, 1, 1, S, S, S, reverse=reverse, unroll=unroll)
        sample(scan, normal(()), normal(()), SEQUENCE, note="recurrence", **params)
    sample(scan, normal(()), SEQUENCE, note="accumulating", **loop(accumulating, 0, 1, S, S, reverse=reverse))
    sample(scan, SEQUENCE, note="mapped", **loop(mapped, 0, 0, S, reverse=reverse))
    params = loop(mixing, 1, 2, ArrayType((3, 3), f64), V, S, V, reverse=reverse)
    sample(scan, normal((3, 3)), normal((3,)), normal(()), normal((4, 3)), note="mixing", **params)
for length in (0, 1):
    params = loop(recurrence, 1, 1, S, S, S, length=length)
    sample(scan, normal(()), normal(()), normal((length,)), note="recurrence", **params)
sample(scan, normal(()), normal(()), note="powers", **loop(powers, 1, 1, S, S, length=3))
sample(scan, given(0, i64), normal(()), SEQUENCE, note="counting", **loop(counting, 0, 2, N, S, S))
misfit(scan, S, S, ArrayType((3,), f64), error=TypeError, **loop(recurrence, 1, 1, S, S, S))
misfit(scan, S, V, ArrayType((4,), f64), error=TypeError, **loop(recurrence, 1, 1, S, S, S))
misfit(scan, S, ArrayType((4,), f64), error=TypeError, **loop(lambda y, x: [e.convert(y, dtype=f32), x], 0, 1, S, S))


def repeat(condition: Callable[..., Any], body: Callable[..., Any], counts: tuple[int, int], *types: ArrayType) -> Any:
    """The parameters of a while loop over a carry, of functions that take so many constants first."""
    of_cond, of_body = counts
    carry = types[of_cond + of_body :]
    return {
        "cond": traced(condition, *types[:of_cond], *carry),
        "body": traced(body, *types[of_cond : of_cond + of_body], *carry),
        "cond_consts": of_cond,
        "body_consts": of_body,
    }


def below(n: Any, i: Any, x: Any) -> Any:
    return [e.lt(i, n)]


def damped(a: Any, i: Any, x: Any) -> Any:
    return [e.add(i, literals.full((), 1, i64)), e.mul(e.sin(x), a)]


def large(x: Any) -> Any:
    return [e.gt(x, full(0.5))]


def halved(x: Any) -> Any:
    return [e.mul(x, full(0.5))]


params = repeat(below, damped, (1, 1), N, S, N, S)
for steps in (integers(1, 5, ()), given(0, i64)):
    sample(while_, steps, normal(()), given(0, i64), normal(()), note="counted", **params)
params = repeat(large, halved, (0, 0), S)
sample(while_, uniform(2.1, 3.9, ()), note="halved", **params)
misfit(while_, V, error=TypeError, **params)
misfit(while_, S, error=TypeError, **repeat(lambda x: [x], halved, (0, 0), S))
misfit(while_, S, error=TypeError, **repeat(large, lambda x: [e.convert(x, dtype=f32)], (0, 0), S))


def there_and_back(loop: Any, back: Callable[..., Any], fixed: int, *types: ArrayType, **reverse: Any) -> Any:
    """The parameters of a while loop with a sweep back of `back`, of constants, states and a carry of such types."""
    return {
        "cond": loop["cond"],
        "body": loop["body"],
        "back": traced(back, *types[:fixed], *loop["body"].out_types, *types[fixed:]),
        "cond_consts": loop["cond_consts"],
        "body_consts": loop["body_consts"],
        "back_consts": fixed,
        "states": len(loop["body"].outputs),
        "max_steps": reverse.get("max_steps"),
        "checkpoints": reverse.get("checkpoints"),
    }


def backwards(v: Any, i: Any, x: Any, c: Any, d: Any) -> Any:
    return [e.add(e.mul(e.cos(x), c), e.mul(v, d)), e.mul(e.mul(x, x), d)]


def doubled(x: Any, c: Any) -> Any:
    return [e.mul(x, c)]


for steps in (integers(1, 5, ()), given(0, i64)):
    for reverse in ({}, {"checkpoints": 1}, {"max_steps": 5}):
        params = there_and_back(repeat(below, damped, (1, 1), N, S, N, S), backwards, 1, S, S, S, **reverse)
        operands = (steps, *[normal(())] * 2, given(0, i64), *[normal(())] * 3)
        sample(rewind, *operands, note="counted", **params)
params = there_and_back(repeat(large, halved, (0, 0), S), doubled, 0, S)
sample(rewind, uniform(2.1, 3.9, ()), normal(()), note="halved", **params)
misfit(rewind, V, S, error=TypeError, **params)
misfit(rewind, S, V, error=TypeError, **params)


def unseeing(*values: Any) -> None:
    """Sees, and does nothing."""


sample(watch, normal((3,)), see=unseeing, passed=1, sparsely=False)
sample(watch, normal((3,)), integers(0, 9, ()), normal(()), see=unseeing, passed=2, sparsely=False)
sample(watch, normal((3,)), integers(0, 999, ()), see=unseeing, passed=1, sparsely=True)
misfit(watch, V, S, error=TypeError, see=unseeing, passed=1, sparsely=True)
misfit(watch, V, error=TypeError, see=unseeing, passed=1, sparsely=True)


def sums(x: Any, n: Any) -> list[Any]:
    return [np.sin(x) * n, np.sum(x), n]


SUMS = Code("sums", sums, [V, S, N], "it is a sample")
sample(black_box, normal((3,)), integers(0, 9, ()), code=SUMS, batches=(), outs=(0, 1, 2), smooth=False)
sample(black_box, normal((3,)), integers(0, 9, ()), code=SUMS, batches=(), outs=(2, 0), smooth=False)
sample(
    black_box,
    normal((4, 2, 3)),
    integers(0, 9, (2,)),
    code=SUMS,
    batches=(Batch(4, (True, False)), Batch(2, (True, True))),
    outs=(0, 1),
    smooth=False,
)
failure(black_box, np.ones(2), 1, code=SUMS, batches=(), outs=(0,), error=TypeError)

# JAX code: an optimizer's update, as it were.
UPDATE = JaxCode("an update", lambda x, n: [x - 0.5 * x.sum(), n + 1])
sample(call_jax, normal((3,)), integers(0, 9, ()), code=UPDATE, smooth=False)
sample(call_jax, normal((2, 3)), integers(0, 9, (2,)), code=UPDATE, smooth=False, note="of_matrices")

sample(final, normal((3,)), of="f", smooth=False)

sample(tap, normal((3,)), name="x", leaf=0, structure=tree.LEAF)
sample(tap, integers(0, 9, (3,)), name="n", leaf=1, structure=tree.LEAF)
sample(shard, normal((4, 3)), mesh=ft.mesh({"data": 1}), spec=ft.P(None, "data"))
sample(shard, integers(0, 9, (4,)), mesh=ft.mesh({"data": 1}), spec=ft.P())


# Solvers


def times_matrix(a: Any, x: Any) -> Any:
    return [contractions.dot_general(a, x, contract=((1,), (0,)), batch=((), ()))]


def scaled_by(d: Any, x: Any) -> Any:
    return [e.mul(d, x)]


def cubic(a: Any, c: Any, x: Any) -> Any:
    turned = contractions.dot_general(a, x, contract=((1,), (0,)), batch=((), ()))
    return [e.sub(e.add(turned, e.mul(x, e.mul(x, x))), c)]


M = ArrayType((3, 3), f64)
matvec, jacobi = traced(times_matrix, M, V), traced(scaled_by, V, V)
for name, kind in (("gmres", invertible(3, 3)), ("bicgstab", positive_definite(3, 3)), ("cg", positive_definite(3, 3))):
    method = LinearMethod(name, name == "cg", 1e-14 if name != "bicgstab" else 1e-12, 0.0, 50, 30)
    hermitian = (0,) if name == "cg" else ()
    plain = {"matvec": matvec, "preconditioner": None, "method": method, "hermitian": hermitian, "looseness": 100.0}
    sample(linear_solve, kind, normal((3,)), differentiated=(0, 1), note=name, **plain)
    plain["preconditioner"] = jacobi
    scale = uniform(0.9, 1.1, (3,))
    sample(linear_solve, kind, scale, normal((3,)), differentiated=(0, 2), note=f"{name} preconditioned", **plain)
misfit(linear_solve, M, S, error=TypeError, matvec=matvec, preconditioner=None, method=method)
misfit(linear_solve, V, error=TypeError, matvec=traced(lambda x: [e.convert(x, dtype=f32)], V), preconditioner=None,
       method=method)  # fmt: skip

equations = traced(cubic, M, V, V)
problem = (positive_definite(3, 3), normal((3,)))
krylov = LinearMethod("gmres", False, 1e-14, 0.0, 50, 30)
for linear in (None, krylov):
    search = Search("root", "newton", 1e-12, 1e-13, 50, linear=linear)
    sample(root, *problem, normal((3,)), differentiated=(0, 1), residual=equations, guide=None, search=search,
           looseness=100.0, note="dense" if linear is None else "gmres")  # fmt: skip
misfit(root, M, V, S, error=TypeError, residual=equations, guide=None, search=search)
misfit(root, M, V, ArrayType((3,), f32), error=TypeError, residual=equations, guide=None, search=search)
misfit(root, S, error=TypeError, residual=traced(lambda x: [x], S), guide=None, search=search)
misfit(root, M, V, S, V, error=TypeError, residual=equations, guide=jacobi, search=search)

message = "{iterations} and {residual}"
for holds in (True, [True, True]):
    lanes = np.shape(holds)
    fixed = (given(holds, boolean), integers(0, 9, lanes), normal(lanes))
    sample(required, normal((*lanes, 3)), *fixed, differentiated=(0,), message=message)
    sample(derivative_required, normal((*lanes, 3)), fixed[0], differentiated=(0,), message="no derivative")
failure(required, np.ones(3), np.bool_(False), np.int64(3), 0.5, error=ConvergenceError, message=message)
misfit(required, V, S, N, S, error=TypeError, message=message)
misfit(derivative_required, V, S, error=TypeError, message=message)


# Rules of derivatives: of sin(x) y w + n, where w is captured and n has no derivative.


def wave(x: Any, y: Any, n: Any, w: Any) -> Any:
    return [e.mul(e.mul(e.sin(x), y), w), n]


def wave_fwd(x: Any, y: Any, n: Any, w: Any) -> Any:
    return [*wave(x, y, n, w), x, e.mul(y, w), e.mul(e.sin(x), w), n]


def wave_bwd(x: Any, yw: Any, slope: Any, n: Any, ct: Any) -> Any:
    return [e.mul(e.mul(ct, e.cos(x)), yw), e.mul(ct, slope)]


def wave_jvp(x: Any, y: Any, n: Any, w: Any, dx: Any, dy: Any) -> Any:
    along = e.add(e.mul(e.mul(dx, e.cos(x)), y), e.mul(e.sin(x), dy))
    return [*wave(x, y, n, w), e.mul(along, w)]


def wave_tangent(x: Any, yw: Any, slope: Any, n: Any, dx: Any, dy: Any) -> Any:
    return [e.add(e.mul(e.mul(e.cos(x), dx), yw), e.mul(slope, dy))]


primal, fwd = traced(wave, V, V, N, V), traced(wave_fwd, V, V, N, V)
bwd, pushed = traced(wave_bwd, V, V, V, N, V), traced(wave_jvp, V, V, N, V, V, V)
for stated, note in [
    (Derivatives(fwd, bwd, None), "by_vjp"),
    (Derivatives(None, None, pushed), "by_jvp"),
    (Derivatives(fwd, bwd, pushed), "by_both"),
]:
    rule = Rule(Name("wave", "reverse", None, None), primal, 3)
    rule.define(stated)
    operands = (normal((3,)), normal((3,)), integers(0, 9, ()), normal((3,)))
    sample(custom, *operands, program=primal, rule=rule, outs=(0, 1), note=note)
    sample(custom, *operands, program=fwd, rule=rule, outs=(0, 1), note=f"{note}_with_residuals")
misfit(custom, V, V, N, S, error=TypeError, program=primal, rule=rule, outs=(0, 1))
misfit(custom, V, V, N, V, error=TypeError, program=primal, rule=rule, outs=(1, 0))

tangent = traced(wave_tangent, V, V, V, N, V, V)
names = {"residuals": 4, "name": Name("wave", "reverse", None, None)}
for forward, backward in ((None, bwd), (tangent, None), (tangent, bwd)):
    sample(
        linear_call,
        *(normal((3,)), normal((3,)), normal((3,)), integers(0, 9, ()), normal((3,)), normal((3,))),
        forward=forward,
        backward=backward,
        # Residuals are not linear operands: nothing but the tangents can be differentiated in reverse mode alone.
        note="and".join(p.name for p in (forward, backward) if p is not None),
        **names,
    )
misfit(linear_call, V, V, V, N, V, S, error=TypeError, forward=tangent, backward=None, **names)
misfit(linear_call, V, V, V, N, V, S, error=TypeError, forward=None, backward=bwd, **names)
misfit(linear_call, V, V, V, N, V, V, error=TypeError, forward=tangent, backward=traced(waves, V, V), **names)


# Programs that run if a flag is set


def products(flag: Any, x: Any, y: Any) -> list[Any]:
    return [e.mul(e.sin(x), y), e.exp(x)]


PRODUCTS = traced(products, ArrayType((), boolean), ArrayType((3,), f64), ArrayType((3,), f64))
for flag in (True, False):
    sample(if_needed, given(flag, boolean), normal((3,)), normal((3,)), program=PRODUCTS, note=str(flag))
misfit(if_needed, ArrayType((), boolean), ArrayType((2,), f64), ArrayType((3,), f64), error=TypeError, program=PRODUCTS)
