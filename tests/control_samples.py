"""Rows of the sample table for primitives that hold programs: control flow, custom rules, solvers.

The programs are traced from functions of tracers, written in primitives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sampling import f32, f64, given, i32, i64, integers, misfit, normal, sample, uniform

from ftrans.control.call import call
from ftrans.control.cond import cond
from ftrans.control.scan import scan
from ftrans.control.while_loop import while_
from ftrans.core.program import Program
from ftrans.core.trace import Builder, building
from ftrans.core.types import ArrayType
from ftrans.ops import contractions, reductions, shapes
from ftrans.ops import elementwise as e


def traced(f: Callable[..., Any], *types: ArrayType) -> Program:
    """The program of a function written in primitives."""
    builder = Builder(types)
    with building(builder):
        return builder.finish(f(*builder.inputs()), f.__name__)


def full(value: float) -> Any:
    """A scalar constant, inside of a traced function."""
    return shapes.full((), value, f64)


V, S, N = ArrayType((3,), f64), ArrayType((), f64), ArrayType((), i64)


def waves(x: Any, y: Any) -> Any:
    return [e.mul(e.sin(x), y), reductions.reduce_sum(x, axes=(0,))]


def product(x: Any, y: Any) -> Any:
    return [e.mul(x, y), full(2.0)]


def ignoring(x: Any, y: Any) -> Any:
    return [y, reductions.reduce_sum(e.exp(y), axes=(0,))]


def counted(x: Any, n: Any) -> Any:
    return [e.add(n, shapes.full((), 1, i64)), e.tanh(x), n]


for f in (waves, product):
    sample(call, normal((3,)), normal((3,)), program=traced(f, V, V), note=f.__name__)
sample(call, normal((3,)), integers(0, 9, ()), program=traced(counted, V, N), note="counted")

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
    return [e.add(n, shapes.full((), 1, i64)), e.add(y, e.mul(step, x)), e.mul(y, step), n]


def mixing(a: Any, y: Any, z: Any, x: Any) -> Any:
    turned = contractions.dot_general(a, y, contract=((1,), (0,)), batch=((), ()))
    return [e.tanh(e.add(turned, x)), e.add(z, reductions.reduce_sum(e.mul(y, x), axes=(0,))), e.cos(z)]


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
    return [e.add(i, shapes.full((), 1, i64)), e.mul(e.sin(x), a)]


def large(x: Any) -> Any:
    return [e.gt(x, full(0.5))]


def halved(x: Any) -> Any:
    return [e.mul(x, full(0.5))]


params = repeat(below, damped, (1, 1), N, S, N, S)
for steps in (integers(1, 5, ()), given(0, i64)):
    sample(while_, steps, normal(()), given(0, i64), normal(()), reversible=False, note="counted", **params)
params = repeat(large, halved, (0, 0), S)
sample(while_, uniform(2.1, 3.9, ()), reversible=False, note="halved", **params)
misfit(while_, V, error=TypeError, **params)
misfit(while_, S, error=TypeError, **repeat(lambda x: [x], halved, (0, 0), S))
misfit(while_, S, error=TypeError, **repeat(large, lambda x: [e.convert(x, dtype=f32)], (0, 0), S))
