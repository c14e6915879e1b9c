"""The sample table: one row per case of a primitive, which drives all tests of primitives.

A new primitive adds rows here, and no test function.

    sample    operands that a primitive takes; `smooth` ones lie where derivatives exist, away from kinks and ties
    kink      the derivative that is chosen by convention at a kink, a tie or a removable singularity
    misfit    operand types that a primitive must refuse
    failure   operands with which computing fails
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sampling import (
    FAILURES,
    KINKS,
    MISFITS,
    SAMPLES,
    apart,
    bf16,
    boolean,
    c64,
    c128,
    distinct,
    f16,
    f32,
    f64,
    failure,
    given,
    i8,
    i32,
    i64,
    increasing,
    integers,
    invertible,
    kink,
    misfit,
    normal,
    positive_definite,
    sample,
    separated,
    triangular,
    u8,
    u32,
    uniform,
)

from ftrans.control.extrema import by_index as extrema
from ftrans.core.primitive import Primitive
from ftrans.core.types import ArrayType, is_inexact
from ftrans.ops import (
    contractions,
    convolution,
    fft,
    indexing,
    linalg,
    linear_filter,
    literals,
    moving_slices,
    parts,
    reductions,
    shapes,
    slices,
    sorting,
    sparse,
    windows,
)
from ftrans.ops import elementwise as e
from ftrans.ops.broadcast import broadcast, reduce_sum
from ftrans.ops.elementwise import representation
from ftrans.ops.logsumexp import exp_from, logsumexp
from ftrans.ops.random_bits import random_bits
from ftrans.spectral import eigh

__all__ = ["FAILURES", "KINKS", "MISFITS", "SAMPLES"]

INF, NAN = math.inf, math.nan
EDGES = given([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 1e-300, 1e300, -1e300, INF, -INF, NAN])
PAIRS = [0.0, -0.0, 1.0, -1.0, 2.5, -3.5, 1e300, INF, -INF, NAN]
EDGES_X = given(np.repeat(PAIRS, len(PAIRS)))
EDGES_Y = given(np.tile(PAIRS, len(PAIRS)))
COMPLEX = np.array([0, 1 + 1j, 1 - 1j, -1 + 1j, complex(NAN, 1), complex(1, NAN)])
COMPLEX_X = given(np.repeat(COMPLEX, len(COMPLEX)), c128)
COMPLEX_Y = given(np.tile(COMPLEX, len(COMPLEX)), c128)
ON_CUTS = given([complex(x, zero) for x in (-2.0, -0.5, 0.5, 2.0) for zero in (0.0, -0.0)]
                + [complex(zero, y) for y in (-2.0, -0.5, 0.5, 2.0) for zero in (0.0, -0.0)], c128)  # fmt: skip
FINITE_X = given(np.repeat([7.0, -7.0, 7.5, -7.5, 0.0], 4))
FINITE_Y = given(np.tile([2.0, -2.0, 2.5, -0.75], 5))


# Elementwise, of one operand: primitive, bounds within which it is smooth, other dtypes that it takes

SMOOTH_UNARY: list[tuple[Primitive, float, float, tuple[np.dtype[Any], ...]]] = [
    (e.exp, -2, 2, (f32, f16, bf16, c128, c64)),
    (e.exp2, -2, 2, (f32, f16, bf16, c128)),
    (e.expm1, -2, 2, (f32, f16, bf16, c128)),
    (e.log, 0.2, 3, (f32, f16, bf16, c128, c64)),
    (e.log2, 0.2, 3, (f32, f16, bf16, c128)),
    (e.log10, 0.2, 3, (f32, f16, bf16, c128)),
    (e.log1p, -0.7, 3, (f32, f16, bf16, c128)),
    (e.sqrt, 0.2, 3, (f32, f16, bf16, c128, c64)),
    (e.cbrt, 0.2, 3, (f32, f16, bf16)),
    (e.root, 0.2, 3, (f32, f16, bf16)),
    (e.sin, -3, 3, (f32, f16, bf16, c128, c64)),
    (e.cos, -3, 3, (f32, f16, bf16, c128, c64)),
    (e.tan, -1.2, 1.2, (f32, f16, bf16, c128)),
    (e.arcsin, -0.9, 0.9, (f32, f16, bf16, c128)),
    (e.arccos, -0.9, 0.9, (f32, f16, bf16, c128)),
    (e.arctan, -3, 3, (f32, f16, bf16, c128)),
    (e.sinh, -2, 2, (f32, f16, bf16, c128)),
    (e.cosh, -2, 2, (f32, f16, bf16, c128)),
    (e.tanh, -2, 2, (f32, f16, bf16, c128)),
    (e.sech_square, -2, 2, (f32, f16, bf16)),
    (e.one_minus_square, -2, 2, (f32, f16, bf16)),
    (e.arcsinh, -2, 2, (f32, f16, bf16, c128)),
    (e.arccosh, 1.2, 4, (f32, f16, bf16, c128)),
    (e.arctanh, -0.9, 0.9, (f32, f16, bf16, c128)),
    (e.square, -2, 2, (f32, f16, bf16, c128, i64, u8)),
    (e.reciprocal, 0.3, 2, (f32, f16, bf16, c128)),
    (e.neg, -2, 2, (f32, f16, bf16, c128, i64, u8)),
    (e.sign, 0.2, 2, (f32, bf16, i64)),
    (e.floor, 0.2, 0.8, (f32, bf16)),
    (e.ceil, 0.2, 0.8, (f32, bf16)),
    (e.trunc, 0.2, 0.8, (f32, bf16)),
    (e.rint, 0.6, 1.4, (f32, bf16)),
    (e.abs_, 0.2, 2, (f32, f16, bf16, c128, c64, i64, i8)),
    (e.conj, -2, 2, (f32, c128, c64)),
    (e.relu, 0.2, 2, (f32, f16, bf16, i64, u8)),
    (e.logistic, -2, 2, (f32, f16, bf16)),
    (e.softplus, -2, 2, (f32, f16, bf16)),
    (e.softsign, 0.2, 2, (f32, f16, bf16)),
]
for primitive, low, high, dtypes in SMOOTH_UNARY:
    sample(primitive, uniform(low, high))
    sample(primitive, uniform(low, high, ()))
    sample(primitive, uniform(low, high, (0, 2)))
    sample(primitive, EDGES, smooth=False, note="edges")
    for dtype in dtypes:
        sample(primitive, uniform(low, high, (5,), dtype) if is_inexact(dtype) else normal((5,), dtype))

for primitive in (e.cbrt, e.reciprocal, e.sign, e.abs_):
    sample(primitive, uniform(-2, -0.3), note="negative")
for primitive in (e.sqrt, e.log, e.arcsin, e.arccos, e.arctan, e.arcsinh, e.arccosh, e.arctanh):
    sample(primitive, ON_CUTS, smooth=False, note="branch cuts")
for primitive in (e.floor, e.ceil, e.trunc, e.rint):
    sample(primitive, uniform(-0.8, -0.6), note="negative")
    sample(primitive, given([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e20]), smooth=False, note="halves")

for exponent in (-3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 10):
    sample(e.integer_pow, apart(normal(), 0.3), exponent=exponent)
    sample(e.integer_pow, EDGES, smooth=False, note="edges", exponent=exponent)
for exponent in (2, 3, 4, 5):
    sample(e.integer_pow, normal((5,), i64), exponent=exponent)
    sample(e.integer_pow, normal((5,), f32), exponent=exponent)
    sample(e.integer_pow, normal((5,), c128), exponent=exponent)
sample(e.integer_pow, apart(normal((5,), bf16), 0.3), exponent=-2)
sample(e.integer_pow, normal((0,)), exponent=3)
sample(e.integer_pow, normal(()), exponent=3)
misfit(e.integer_pow, ArrayType((2,), i64), error=ValueError, exponent=-1)

for primitive in (e.isfinite, e.isnan, e.isinf, e.signbit):
    sample(primitive, EDGES, smooth=False, note="edges")
    sample(primitive, given([0, 1, INF, -INF, NAN], f32), smooth=False)
    sample(primitive, normal(()))

for dtype in (i64, i32, u8, boolean):
    sample(e.bitwise_not, normal((5,), dtype))
    for primitive in (e.bitwise_and, e.bitwise_or, e.bitwise_xor):
        sample(primitive, normal((5,), dtype), normal((5,), dtype))
for dtype in (i64, i32, i8, u8):
    bits = 8 * dtype.itemsize
    for primitive in (e.left_shift, e.right_shift):
        sample(primitive, normal((5,), dtype), integers(0, bits, (5,), dtype))
        sample(primitive, given([1, 5, 100], dtype), given([bits - 1, bits, bits + 3], dtype), note="far")

for primitive in (e.real, e.imag):
    sample(primitive, normal((2, 3), c128))
    sample(primitive, normal((), c64))
    misfit(primitive, ArrayType((2,), f64), error=TypeError)
sample(e.complex_, normal(), normal())
sample(e.complex_, normal((3,), f32), normal((3,), f32))
sample(e.complex_, given([1.0, INF, NAN]), given([NAN, 2.0, INF]), smooth=False, note="edges")
sample(e.sign, apart(normal((4,), c128), 0.1))
sample(e.stop_gradient, normal(), smooth=False)
sample(e.stop_gradient, normal((3,), i32), smooth=False)
sample(e.with_value, normal(), normal(), smooth=False)
sample(e.singular_slope, normal())
sample(e.placeholder, normal(), reversible=False)
sample(e.placeholder, normal((3,), i32), smooth=False)

for primitive in (e.exp, e.sin, e.log, e.sqrt, e.tanh):
    misfit(primitive, ArrayType((2,), i64), error=TypeError)
for primitive in (e.floor, e.ceil, e.trunc):
    misfit(primitive, ArrayType((2,), c128), error=TypeError)
misfit(e.bitwise_and, ArrayType((2,), f64), ArrayType((2,), f64), error=TypeError)
misfit(e.left_shift, ArrayType((2,), boolean), ArrayType((2,), boolean), error=TypeError)

# What numbers are made of

for primitive in (representation.gcd, representation.lcm):
    sample(primitive, integers(-12, 13), integers(-12, 13))
    sample(primitive, integers(0, 5, (6,), u8), integers(0, 5, (6,), u8))
for dtype in (i64, i8, u32, boolean):
    sample(representation.bitwise_count, normal((5,), dtype))
for dtype in (f64, f32):
    sample(representation.exponent, normal((5,), dtype))
    sample(representation.spacing, normal((5,), dtype))
sample(representation.exponent, EDGES, smooth=False, note="edges")
sample(representation.spacing, EDGES, smooth=False, note="edges")


# Conversions

for source_dtype, target in [
    (f64, f32), (f64, f16), (f64, bf16), (f32, f64), (f16, f32), (bf16, f32), (f64, c128), (c128, f64), (c128, c64),
    (c64, f32), (i64, f64), (i64, i32), (i32, i8), (i8, u8), (u8, i64), (boolean, f64), (boolean, i32), (i64, boolean),
    (f64, boolean), (c128, boolean), (f64, i64), (f32, i32), (f64, u8), (bf16, i32), (i64, bf16), (f64, f64),
]:  # fmt: skip
    sample(e.convert, uniform(1, 100, (5,), source_dtype) if target == u8 else normal((5,), source_dtype), dtype=target)
sample(e.convert, given([1e300, -1e300, INF, NAN, -0.0, 1e-300]), smooth=False, note="edges", dtype=f32)
sample(e.convert, given([-2.7, -0.5, 0.5, 2.7, 3e9]), smooth=False, note="edges", dtype=i64)
sample(e.convert, given([0.0, -0.0, NAN, INF, 0.1]), smooth=False, note="edges", dtype=boolean)
sample(e.convert, given([300, -300, 2**40 + 5], i64), note="wraps", dtype=i8)

# Elementwise, of two operands

for primitive in (e.add, e.sub, e.mul):
    for shape in [(2, 3), (), (0, 2)]:
        sample(primitive, normal(shape), normal(shape))
    for dtype in (f32, f16, bf16, c128, c64, i64, i32, u8):
        sample(primitive, normal((5,), dtype), normal((5,), dtype))
    sample(primitive, EDGES_X, EDGES_Y, smooth=False, note="edges")
    sample(primitive, given([127, -128, -128], i8), given([1, -1, -128], i8), note="wraps")
    misfit(primitive, ArrayType((2,), f64), ArrayType((3,), f64), error=TypeError)
    misfit(primitive, ArrayType((2,), f64), ArrayType((2,), f32), error=TypeError)
sample(e.add, normal((5,), boolean), normal((5,), boolean))
sample(e.mul, normal((5,), boolean), normal((5,), boolean))

DIVISOR = apart(normal(), 0.3)
for shape in [(2, 3), (), (0, 2)]:
    sample(e.div, normal(shape), apart(normal(shape), 0.3))
for dtype in (f32, f16, bf16):
    sample(e.div, normal((5,), dtype), apart(normal((5,), dtype), 0.3))
sample(e.div, normal((5,), c128), apart(normal((5,), c128), 0.3))
sample(e.div, EDGES_X, EDGES_Y, smooth=False, note="edges")
misfit(e.div, ArrayType((2,), i64), ArrayType((2,), i64), error=TypeError)

sample(e.power, uniform(0.3, 3), normal())
sample(e.power, uniform(0.3, 3, ()), normal(()))
sample(e.power, uniform(0.3, 3, (0,)), normal((0,)))
sample(e.power, uniform(-2, -0.3, (4,)), given([2.0, -3.0, 0.0, 1.0]), differentiated=(0,), note="negative base")
sample(e.power, given([0.0, 0.0, 0.0]), given([2.0, 3.0, 1.5]), differentiated=(1,), note="zero base")
for dtype in (f32, f16, bf16):
    sample(e.power, uniform(0.3, 3, (5,), dtype), normal((5,), dtype))
sample(e.power, uniform(0.3, 3, (5,), c128), normal((5,), c128), looseness=10)
sample(e.power, normal((5,), i64), integers(0, 5, (5,)))
sample(e.power, EDGES_X, EDGES_Y, smooth=False, note="edges")

for shape in [(2, 3), (), (0, 2)]:
    sample(e.arctan2, apart(normal(shape), 0.3), apart(normal(shape), 0.3))
    sample(e.hypot, apart(normal(shape), 0.3), apart(normal(shape), 0.3))
    sample(e.cosine, apart(normal(shape), 0.3), apart(normal(shape), 0.3))
    sample(e.logaddexp, normal(shape), normal(shape))
    sample(e.logaddexp2, normal(shape), normal(shape))
for primitive in (e.arctan2, e.hypot, e.cosine, e.logaddexp, e.logaddexp2):
    for dtype in (f32, f16, bf16):
        sample(primitive, apart(normal((5,), dtype), 0.3), apart(normal((5,), dtype), 0.3))
    sample(primitive, EDGES_X, EDGES_Y, smooth=False, note="edges")
    misfit(primitive, ArrayType((2,), c128), ArrayType((2,), c128), error=TypeError)
sample(e.hypot, given([1e200, 1e-200]), given([1e200, 1e-200]), smooth=False, note="extreme")

for primitive in (e.maximum, e.minimum):
    for shape in [(2, 3), (), (0, 2)]:
        sample(primitive, apart(normal(shape), 1.0), uniform(-0.9, 0.9, shape))
    for dtype in (f32, f16, bf16, i64, u8, boolean):
        sample(primitive, normal((5,), dtype), normal((5,), dtype))
    sample(primitive, EDGES_X, EDGES_Y, smooth=False, note="edges")
    sample(primitive, COMPLEX_X, COMPLEX_Y, smooth=False, note="complex")
    kink(primitive, [1.0, 1.0], [1.0, 1.0], along=[[1.0, 0.0], [0.0, 1.0]], gives=[0.5, 0.5])

for primitive in (e.copysign, e.nextafter):
    sample(primitive, apart(normal(), 0.3), apart(normal(), 0.3))
    sample(primitive, apart(normal((5,), f32), 0.3), apart(normal((5,), f32), 0.3))
    sample(primitive, apart(normal(()), 0.3), apart(normal(()), 0.3))
sample(e.copysign, EDGES_X, EDGES_Y, smooth=False, note="edges")
sample(e.nextafter, given([1.0, 1.0, INF, NAN, 0.5]), given([2.0, -2.0, 0.0, 1.0, 0.5]), smooth=False, note="edges")

for primitive in (e.floor_divide, e.remainder, e.fmod):
    sample(primitive, uniform(2.2, 2.8), uniform(1.05, 1.09))
    sample(primitive, uniform(-2.8, -2.2, ()), uniform(1.05, 1.09, ()))
    sample(primitive, uniform(2.2, 2.8, (0,)), uniform(1.05, 1.09, (0,)))
    sample(primitive, uniform(2.2, 2.8, (5,), f32), uniform(-1.09, -1.05, (5,), f32))
    sample(primitive, uniform(2.2, 2.8, (5,), bf16), uniform(1.05, 1.09, (5,), bf16))
    sample(primitive, FINITE_X, FINITE_Y, smooth=False, note="signs")
    sample(primitive, EDGES_X, EDGES_Y, smooth=False, note="edges")
    for dtype in (i64, i32):
        sample(primitive, given([7, -7, 7, -7, 0, 6, -6], dtype), given([2, 2, -2, -2, 3, 3, -3], dtype), note="signs")
        sample(primitive, given([7, -7, 0], dtype), given([0, 0, 0], dtype), note="by zero")
    sample(primitive, given([7, 200, 0], u8), given([2, 3, 3], u8))

# Comparisons

for primitive in (e.eq, e.ne, e.lt, e.le, e.gt, e.ge):
    sample(primitive, EDGES_X, EDGES_Y, smooth=False, note="edges")
    sample(primitive, distinct(), distinct((2, 3)), smooth=False)
    sample(primitive, normal(()), given(0.0))
    sample(primitive, normal((0,)), normal((0,)))
    for dtype in (f32, bf16, i64, u8, boolean):
        sample(primitive, normal((5,), dtype), normal((5,), dtype), smooth=False)
    sample(primitive, COMPLEX_X, COMPLEX_Y, smooth=False, note="complex")

# Choice

for shape in [(2, 3), (), (0, 2)]:
    sample(e.select, normal(shape, boolean), normal(shape), normal(shape))
for dtype in (f32, bf16, c128, i64, boolean):
    sample(e.select, normal((5,), boolean), normal((5,), dtype), normal((5,), dtype))
sample(e.select, given([True, False], boolean), given([1.0, NAN]), given([INF, 2.0]), smooth=False, note="edges")
misfit(e.select, ArrayType((2,), f64), ArrayType((2,), f64), ArrayType((2,), f64), error=TypeError)
misfit(e.select, ArrayType((2,), boolean), ArrayType((2,), f64), ArrayType((3,), f64), error=TypeError)

kink(e.abs_, [0.0, -0.0], along=[[1.0, 1.0]], gives=[0.0, 0.0])
kink(e.abs_, 0j, along=[1 + 1j], gives=0.0)
kink(e.hypot, 0.0, 0.0, along=[1.0, 1.0], gives=0.0)
kink(e.cosine, 0.0, 0.0, along=[1.0, 1.0], gives=0.0)
kink(e.arctan2, 0.0, 0.0, along=[1.0, 1.0], gives=0.0)
kink(e.power, [0.0, 0.0, 0.0], [0.0, 1.0, 2.0], along=[[1.0, 1.0, 1.0], None], gives=[0.0, 1.0, 0.0])
kink(e.power, [0.0, 0.0], [1.0, 2.0], along=[None, [1.0, 1.0]], gives=[0.0, 0.0])
kink(e.power, INF, -1.0, along=[1.0, 1.0], gives=0.0)
kink(e.root, [0.0, 4.0], along=[[1.0, 1.0]], gives=[0.0, 0.25])
kink(e.integer_pow, 0.0, along=[1.0], gives=1.0, exponent=1)
kink(e.integer_pow, 0.0, along=[1.0], gives=0.0, exponent=2)
kink(e.logaddexp, [-INF, INF, INF], [-INF, 0.0, INF], along=[[1.0] * 3, [0.0] * 3], gives=[0.0, 1.0, 0.5])
kink(e.logaddexp, [1000.0, -1000.0], [0.0, 0.0], along=[[1.0, 1.0], None], gives=[1.0, 0.0])
kink(e.sqrt, INF, along=[1.0], gives=0.0)
kink(e.tanh, [INF, -INF, 1000.0], along=[[1.0, 1.0, 1.0]], gives=[0.0, 0.0, 0.0])
kink(e.relu, [-1.0, -0.0, 0.0, 1.0], along=[[1.0] * 4], gives=[0.0, 0.0, 0.0, 1.0])
kink(e.logistic, [INF, -INF, 1000.0, -1000.0], along=[[1.0] * 4], gives=[0.0] * 4)
kink(e.softplus, [INF, -INF, 1000.0, -1000.0], along=[[1.0] * 4], gives=[1.0, 0.0, 1.0, 0.0])
for dtype in (f64, f32, f16, bf16):
    sample(e.lerp, normal((5,), dtype), normal((5,), dtype), given([0.0, 0.3, 0.5, 0.8, 1.0], dtype))
sample(e.lerp, normal(()), normal(()), uniform(0.1, 0.4, ()))
kink(e.lerp, [1.0, 1.0], [3.0, 3.0], [0.25, 0.75], along=[[INF, 1.0], [2.0, 1.0], [1.0, 1.0]], gives=[INF, 3.0])
misfit(e.lerp, ArrayType((3,), i64), ArrayType((3,), i64), ArrayType((3,), i64), error=TypeError)
kink(e.softsign, [INF, -INF, 0.0, 1e20], along=[[1.0] * 4], gives=[0.0, 0.0, 1.0, 1e-40])
kink(e.stop_gradient, 2.0, along=[1.0], gives=0.0)
kink(e.with_value, 2.0, 3.0, along=[5.0, 1.0], gives=5.0)
kink(e.select, True, 1.0, 2.0, along=[None, 3.0, 5.0], gives=3.0)

# Shapes

for shape, new in [((2, 3), (3, 2)), ((6,), (1, 6)), ((2, 3), (6,)), ((1,), ()), ((), (1, 1)), ((0, 3), (3, 0))]:
    sample(shapes.reshape, normal(shape), shape=new)
for axes in [(1, 0), (0, 1)]:
    sample(shapes.transpose, normal(), axes=axes)
for axes in [(2, 0, 1), (1, 2, 0), (0, 2, 1)]:
    sample(shapes.transpose, normal((2, 3, 4)), axes=axes)
sample(shapes.transpose, normal(()), axes=())
sample(shapes.transpose, normal((0, 2)), axes=(1, 0))
for shape, new, dims in [
    ((), (2, 3), ()), ((3,), (2, 3), (1,)), ((2,), (2, 3), (0,)), ((2, 3), (2, 4, 3), (0, 2)), ((3,), (3,), (0,)),
    ((2,), (0, 2), (1,)), ((0,), (2, 0), (1,)), ((1,), (1, 3), (0,)),
]:  # fmt: skip
    sample(broadcast, normal(shape), shape=new, dims=dims)
for axes in [(0,), (1,), (0, 1), ()]:
    sample(shapes.reverse, normal(), axes=axes)
sample(shapes.reverse, normal((0, 2)), axes=(1,))
for shape, start, limit, strides in [
    ((5,), (1,), (4,), (1,)), ((5,), (0,), (5,), (2,)), ((5,), (1,), (5,), (3,)), ((5,), (2,), (2,), (2,)),
    ((4, 5), (1, 0), (3, 5), (1, 2)), ((), (), (), ()), ((0, 3), (0, 1), (0, 3), (1, 1)), ((6,), (0,), (5,), (4,)),
]:  # fmt: skip
    sample(parts.slice_, normal(shape), start=start, limit=limit, strides=strides)
for shape, before, after, interior in [
    ((3,), (1,), (2,), (0,)), ((3,), (0,), (0,), (2,)), ((2, 3), (1, 0), (0, 2), (1, 1)), ((), (), (), ()),
    ((0,), (1,), (1,), (2,)), ((1,), (0,), (1,), (3,)), ((2, 3), (0, 0), (0, 0), (0, 0)),
]:  # fmt: skip
    sample(parts.pad, normal(shape), normal(()), before=before, after=after, interior=interior)
for dtype in (f32, bf16, c128, i64, boolean):
    sample(shapes.reshape, normal((2, 3), dtype), shape=(3, 2))
    sample(shapes.transpose, normal((2, 3), dtype), axes=(1, 0))
    sample(broadcast, normal((3,), dtype), shape=(2, 3), dims=(1,))
    sample(shapes.reverse, normal((2, 3), dtype), axes=(1,))
    sample(parts.slice_, normal((5,), dtype), start=(1,), limit=(4,), strides=(2,))
    sample(parts.pad, normal((3,), dtype), normal((), dtype), before=(1,), after=(0,), interior=(1,))
    sample(parts.concatenate, normal((2,), dtype), normal((3,), dtype), axis=0)
sample(parts.concatenate, normal((2, 3)), normal((2, 1)), normal((2, 0)), axis=1)
sample(parts.concatenate, normal((2, 3)), axis=0)
sample(parts.concatenate, normal((0, 3)), normal((0, 3)), axis=0)
for dtype in (i64, i32, f64, bf16, c128):
    sample(literals.iota, shape=(3,), axis=0, dtype=dtype)
sample(literals.iota, shape=(2, 3), axis=0, dtype=i64)
sample(literals.iota, shape=(2, 3), axis=1, dtype=i64)
sample(literals.iota, shape=(0, 3), axis=0, dtype=i64)

V3, M23 = ArrayType((3,), f64), ArrayType((2, 3), f64)
misfit(shapes.reshape, M23, error=ValueError, shape=(4,))
misfit(shapes.transpose, M23, error=ValueError, axes=(0, 0))
misfit(broadcast, V3, error=ValueError, shape=(2, 4), dims=(1,))
misfit(parts.slice_, V3, error=ValueError, start=(1,), limit=(4,), strides=(1,))
misfit(parts.slice_, V3, error=ValueError, start=(0,), limit=(3,), strides=(0,))
misfit(parts.pad, V3, ArrayType((), f32), error=TypeError, before=(1,), after=(1,), interior=(0,))
misfit(parts.pad, V3, V3, error=TypeError, before=(1,), after=(1,), interior=(0,))
misfit(parts.concatenate, V3, M23, error=ValueError, axis=0)
misfit(parts.concatenate, V3, ArrayType((3,), f32), error=ValueError, axis=0)

# Reductions

r = reductions
for axes in [(), (0,), (1,), (0, 1)]:
    sample(reduce_sum, normal(), axes=axes)
    sample(r.reduce_prod, normal(), axes=axes)
    sample(r.reduce_max, distinct(), axes=axes)
    sample(r.reduce_min, distinct(), axes=axes)
    sample(r.reduce_and, normal((2, 3), boolean), axes=axes)
    sample(r.reduce_or, normal((2, 3), boolean), axes=axes)
for primitive in (reduce_sum, r.reduce_prod):
    sample(primitive, normal((2, 3, 4)), axes=(0, 2))
    sample(primitive, normal((0, 3)), axes=(0,))
    sample(primitive, normal((0, 3)), axes=(1,))
    sample(primitive, normal((2, 0)), axes=(0, 1))
    sample(primitive, normal(()), axes=())
    for dtype in (f32, f16, bf16, c128, c64, i64, i32, u8):
        sample(primitive, uniform(0.5, 1.5, (5,), dtype) if is_inexact(dtype) else normal((5,), dtype), axes=(0,))
    sample(primitive, given([100, 100, 100], i8), axes=(0,), note="wraps")
    for values in ([1.0, NAN], [INF, 1.0], [INF, -INF], [INF, 0.0], [1e300, 1e300], [-0.0, -0.0]):
        sample(primitive, given(values), smooth=False, note=f"edges{values}", axes=(0,))
    misfit(primitive, ArrayType((2,), boolean), error=TypeError, axes=(0,))
sample(r.reduce_prod, given([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]]), axes=(1,), note="zeros")
sample(r.reduce_prod, normal((7,)), axes=(0,))
sample(r.reduce_prod, normal((1,)), axes=(0,))
for primitive in (r.reduce_max, r.reduce_min, extrema.reduce_max, extrema.reduce_min):
    sample(primitive, distinct((2, 3, 2)), axes=(0, 2))
    sample(primitive, distinct((0, 3)), axes=(1,))
    for dtype in (f32, f16, bf16, i64, u8, boolean):
        sample(primitive, distinct((5,), dtype) if is_inexact(dtype) else normal((5,), dtype), axes=(0,))
    for values in ([1.0, NAN], [INF, -INF], [2.0, 2.0]):
        sample(primitive, given(values), smooth=False, note=f"edges{values}", axes=(0,))
    misfit(primitive, ArrayType((0, 3), f64), error=ValueError, axes=(0,))
for primitive in (r.reduce_and, r.reduce_or):
    sample(primitive, normal((0, 3), boolean), axes=(0,))
    misfit(primitive, V3, error=TypeError, axes=(0,))
misfit(reduce_sum, V3, error=ValueError, axes=(1,))
for module in (r, extrema):
    kink(module.reduce_max, [1.0, 3.0, 3.0], along=[[1.0, 2.0, 4.0]], gives=3.0, axes=(0,))
    kink(module.reduce_min, [1.0, 1.0, 3.0], along=[[1.0, 2.0, 4.0]], gives=1.5, axes=(0,))

for axes in [(), (0,), (1,), (0, 1)]:
    sample(logsumexp, normal(), axes=axes)
for shape in ((2, 0), (1, 4), (200, 60)):
    sample(logsumexp, normal(shape), axes=(0,))
sample(logsumexp, normal((0, 3)), smooth=False, axes=(0,))
for dtype in (f32, f16, bf16):
    sample(logsumexp, normal((5,), dtype), axes=(0,))
for values in ([0.0, -50.0], [1e4, 1e4, -1e4], [-1e300, -1e300], [3.0]):
    sample(logsumexp, given(values), smooth=values[0] > -1e300, note=f"extreme{values}", axes=(0,))
for values in ([1.0, NAN], [INF, 1.0, INF], [INF, -INF], [-INF, -INF], [-INF, 1.0]):
    sample(logsumexp, given(values), smooth=False, note=f"edges{values}", axes=(0,))
misfit(logsumexp, ArrayType((3,), i64), error=TypeError, axes=(0,))
misfit(logsumexp, V3, error=ValueError, axes=(1,))
kink(logsumexp, [-INF, -INF], along=[[1.0, 1.0]], gives=0.0, axes=(0,))
kink(logsumexp, [-INF, 2.0], along=[[1.0, 3.0]], gives=3.0, axes=(0,))
kink(logsumexp, [INF, 1.0, INF], along=[[1.0, 5.0, 2.0]], gives=1.5, axes=(0,))
sample(exp_from, normal(), normal())
sample(exp_from, normal((5,), f32), normal((5,), f32))
sample(exp_from, EDGES_X, EDGES_Y, smooth=False, note="edges")
misfit(exp_from, V3, ArrayType((3,), f32), error=TypeError)

for primitive in (r.argmax, r.argmin):
    sample(primitive, distinct(), axis=0)
    sample(primitive, distinct(), axis=1)
    sample(primitive, distinct((0, 3)), axis=1)
    for dtype in (f32, bf16, i64, u8, boolean):
        sample(primitive, normal((5,), dtype), smooth=False, axis=0)
    for values in ([1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, NAN, NAN], [INF, -INF, INF], [-0.0, 0.0, 0.0]):
        sample(primitive, given(values), smooth=False, note=f"edges{values}", axis=0)
    misfit(primitive, ArrayType((0,), f64), error=ValueError, axis=0)
    misfit(primitive, ArrayType((2,), c128), error=TypeError, axis=0)

CUMULATIVE = (r.cumsum, r.cumprod, r.cummax, r.cummin, r.cumlogsumexp)
for primitive in CUMULATIVE:
    for reverse in (False, True):
        for axis in (0, 1):
            sample(primitive, distinct((3, 4)), axis=axis, reverse=reverse)
        sample(primitive, distinct((0, 3)), axis=0, reverse=reverse)
        sample(primitive, distinct((1,)), axis=0, reverse=reverse)
        sample(primitive, distinct((5,), f32), axis=0, reverse=reverse)
        sample(primitive, given([1.0, INF, 2.0, NAN, 3.0]), smooth=False, note="edges", axis=0, reverse=reverse)
        sample(primitive, given([-INF, -INF, 2.0, INF]), smooth=False, note="infinite", axis=0, reverse=reverse)
    sample(primitive, distinct((5,), bf16), axis=0, reverse=False)
    misfit(primitive, V3, error=ValueError, axis=1, reverse=False)
    misfit(primitive, ArrayType((3,), boolean), error=TypeError, axis=0, reverse=False)
for primitive in (r.cumsum, r.cumprod, r.cummax, r.cummin):
    for dtype in (i64, u8):
        sample(primitive, normal((5,), dtype), axis=0, reverse=False)
for primitive in (r.cumsum, r.cumprod):
    sample(primitive, normal((5,), c128), axis=0, reverse=True)
sample(r.cumprod, given([2.0, 0.0, 3.0, 0.0, 4.0]), axis=0, reverse=False, note="zeros")
sample(r.cumlogsumexp, given([1000.0, -1000.0, 1000.5]), axis=0, reverse=False, note="extreme")
misfit(r.cumlogsumexp, ArrayType((3,), i64), error=TypeError, axis=0, reverse=False)
kink(r.cummax, [2.0, 2.0, 1.0], along=[[1.0, 3.0, 9.0]], gives=[1.0, 2.0, 2.0], axis=0, reverse=False)
kink(r.cummin, [2.0, 2.0, 3.0], along=[[1.0, 3.0, 9.0]], gives=[1.0, 2.0, 2.0], axis=0, reverse=False)
for along, gives in [([INF, 1.0, 2.0], [INF, 1.0, 2.0]), ([3.0, INF, 2.0], [3.0, INF, 2.0])]:
    kink(r.cummax, [1.0, 2.0, 3.0], along=[along], gives=gives, axis=0, reverse=False)
    kink(r.cummin, [1.0, 2.0, 3.0], along=[along[::-1]], gives=gives[::-1], axis=0, reverse=True)
kink(r.cumlogsumexp, [-INF, -INF], along=[[1.0, 1.0]], gives=[0.0, 0.0], axis=0, reverse=False)

for reverse in (False, True):
    for shape, axis in [((5,), 0), ((4, 3), 0), ((3, 4), 1), ((1,), 0), ((0, 2), 0), ((2, 0), 0)]:
        sample(r.linear_recurrence, normal(shape), normal(shape), axis=axis, reverse=reverse)
    sample(r.linear_recurrence, normal((6,), f32), normal((6,), f32), axis=0, reverse=reverse)
    sample(r.linear_recurrence, normal((6,), c128), normal((6,), c128), axis=0, reverse=reverse)
    sample(r.linear_recurrence, normal((6, 2), boolean), normal((6, 2)), axis=0, reverse=reverse)
    sample(r.linear_recurrence, normal((2, 7), boolean), normal((2, 7), f32), axis=1, reverse=reverse)
sample(r.linear_recurrence, given([1.0, 0.0, 2.0, 0.0]), normal((4,)), axis=0, reverse=False, note="zeros")
sample(
    r.linear_recurrence,
    given([True, True, False, True], boolean),
    given([INF, 1.0, 2.0, NAN]),
    smooth=False,
    axis=0,
    reverse=False,
    note="infinite",
)
misfit(r.linear_recurrence, V3, M23, error=TypeError, axis=0, reverse=False)

# Products of arrays

for x_shape, y_shape, contract, batch in [
    ((3,), (3,), ((0,), (0,)), ((), ())),
    ((3,), (2,), ((), ()), ((), ())),
    ((2, 3), (3,), ((1,), (0,)), ((), ())),
    ((2, 3), (2,), ((0,), (0,)), ((), ())),
    ((3,), (2, 3), ((0,), (1,)), ((), ())),
    ((2, 3), (3, 4), ((1,), (0,)), ((), ())),
    ((2, 3), (4, 3), ((1,), (1,)), ((), ())),
    ((3, 2), (3, 4), ((0,), (0,)), ((), ())),
    ((3, 2), (4, 3), ((0,), (1,)), ((), ())),
    ((2, 3), (2, 3), ((0, 1), (0, 1)), ((), ())),
    ((2, 3), (3, 2), ((0, 1), (1, 0)), ((), ())),
    ((2, 3), (2, 3), ((1,), (1,)), ((0,), (0,))),
    ((2, 3), (2, 3), ((), ()), ((0,), (0,))),
    ((2, 3), (2, 3), ((), ()), ((0, 1), (0, 1))),
    ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
    ((3, 2, 4), (4, 2, 5), ((2,), (0,)), ((1,), (1,))),
    ((2, 3, 4), (4, 5), ((2,), (0,)), ((), ())),
    ((2, 3, 4), (5, 4, 3), ((1, 2), (2, 1)), ((), ())),
    ((2, 3, 4, 2), (3, 2, 2, 5), ((3,), (2,)), ((0, 1), (1, 0))),
    ((0, 3), (3, 2), ((1,), (0,)), ((), ())),
    ((2, 0), (0, 3), ((1,), (0,)), ((), ())),
    ((), (), ((), ()), ((), ())),
    ((), (3,), ((), ()), ((), ())),
]:
    sample(contractions.dot_general, normal(x_shape), normal(y_shape), contract=contract, batch=batch)
MATRICES: dict[str, Any] = {"contract": ((1,), (0,)), "batch": ((), ())}
for dtype in (f32, f16, bf16, c128, c64, i64, u8, boolean):
    sample(contractions.dot_general, normal((2, 3), dtype), normal((3, 2), dtype), **MATRICES)
sample(contractions.dot_general, given([[1.0, NAN], [INF, 0.0]]), given([[1.0], [0.0]]), smooth=False, **MATRICES)
misfit(contractions.dot_general, M23, M23, error=ValueError, **MATRICES)
misfit(contractions.dot_general, M23, ArrayType((3, 2), f32), error=TypeError, **MATRICES)

# Indexing

for x_shape, index_shape, count, axis in [
    ((5,), (3,), 1, 0), ((5,), (), 1, 0), ((5,), (2, 2), 1, 0), ((4, 3), (5,), 1, 0), ((4, 3), (5,), 1, 1),
    ((4, 3), (), 1, 1), ((4, 3), (), 2, 0), ((4, 3), (5,), 2, 0), ((2, 4, 3), (2, 2), 2, 1), ((4, 3, 2), (), 2, 0),
    ((4, 3), (0,), 1, 0), ((4, 0), (2,), 1, 0),
]:  # fmt: skip
    places = [integers(-n, n, index_shape) for n in x_shape[axis : axis + count]]
    out = (*x_shape[:axis], *index_shape, *x_shape[axis + count :])
    note = f"{count} indices"
    sample(indexing.gather, normal(x_shape), *places, note=note, axis=axis)
    sample(indexing.scatter_add, normal(x_shape), normal(out), *places, note=note, axis=axis)
    sample(indexing.scatter_set, normal(x_shape), normal(out), *places, note=note, axis=axis, unique=False)
for dtype in (f32, bf16, c128, i64, boolean):
    sample(indexing.gather, normal((5,), dtype), integers(0, 5, (3,)), axis=0)
    sample(indexing.scatter_set, normal((5,), dtype), normal((2,), dtype), given([3, 1], i64), axis=0, unique=True)
for dtype in (f32, bf16, c128, i64):
    sample(indexing.scatter_add, normal((5,), dtype), normal((3,), dtype), given([3, 1, 3], i64), axis=0)
for dtype in (i32, u8):
    sample(indexing.gather, normal((5,)), integers(0, 5, (3,), dtype), axis=0)
    sample(indexing.scatter_add, normal((5,)), normal((3,)), integers(0, 5, (3,), dtype), axis=0)
sample(indexing.scatter_set, normal((5,)), normal((2,)), given([-1, 0], i64), axis=0, unique=True)
FLOATS, PLACES = ArrayType((5,), f64), ArrayType((3,), i64)
misfit(indexing.gather, FLOATS, ArrayType((3,), f64), error=TypeError, axis=0)
misfit(indexing.gather, FLOATS, PLACES, PLACES, error=TypeError, axis=0)
misfit(indexing.gather, ArrayType((5, 5), f64), PLACES, ArrayType((2,), i64), error=TypeError, axis=0)
misfit(indexing.scatter_add, FLOATS, ArrayType((2,), f64), PLACES, error=TypeError, axis=0)
misfit(indexing.scatter_set, FLOATS, ArrayType((3,), f32), PLACES, error=TypeError, axis=0, unique=False)
failure(indexing.gather, np.ones(3), np.array([0, 3]), error=IndexError, axis=0)
failure(indexing.gather, np.ones(3), -4, error=IndexError, axis=0)
failure(indexing.scatter_add, np.ones(3), 1.0, 3, error=IndexError, axis=0)
failure(indexing.scatter_set, np.ones(3), 1.0, 3, error=IndexError, axis=0, unique=True)

# Sparse matrices

ENTRY_ROWS, ENTRY_COLS = given([0, 2, 1, 0, 2], i64), given([0, 1, 2, 0, 3], i64)
for x_shape in [(4,), (4, 2)]:
    sample(sparse.sparse_product, normal((5,)), normal(x_shape), ENTRY_ROWS, ENTRY_COLS, height=3)
for dtype in (f32, c128):
    sample(sparse.sparse_product, normal((5,), dtype), normal((4, 2), dtype), ENTRY_ROWS, ENTRY_COLS, height=3)
sample(sparse.sparse_product, normal((0,)), normal((4,)), given([], i64), given([], i64), height=3)
ENTRIES, ENTRY_PLACES = ArrayType((5,), f64), ArrayType((5,), i64)
misfit(sparse.sparse_product, ENTRIES, ArrayType((4,), f32), ENTRY_PLACES, ENTRY_PLACES, error=TypeError, height=3)
misfit(sparse.sparse_product, ENTRIES, ArrayType((4,), f64), PLACES, PLACES, error=ValueError, height=3)
misfit(sparse.sparse_product, ENTRIES, ArrayType((4,), f64), ENTRIES, ENTRIES, error=TypeError, height=3)

# Slices

for x_shape, start, limit, strides in [
    ((5,), (1,), (4,), (1,)), ((5,), (0,), (5,), (2,)), ((5,), (1,), (5,), (3,)), ((5,), (0,), (5,), (1,)),
    ((4, 5), (1, 0), (3, 5), (1, 2)), ((4, 5), (2, 0), (3, 5), (1, 1)), ((5,), (2,), (2,), (1,)), ((), (), (), ()),
]:  # fmt: skip
    out = tuple(-(-(b - a) // s) for a, b, s in zip(start, limit, strides, strict=True))
    sample(slices.set_slice, normal(x_shape), normal(out), start=start, limit=limit, strides=strides)
    sample(slices.add_slice, normal(x_shape), normal(out), start=start, limit=limit, strides=strides)
for dtype in (f32, bf16, c128, i64, boolean):
    sample(slices.set_slice, normal((5,), dtype), normal((2,), dtype), start=(0,), limit=(4,), strides=(2,))
sample(slices.add_slice, normal((9,), c128), normal((2,), c128), start=(1,), limit=(3,), strides=(1,))
misfit(slices.set_slice, FLOATS, FLOATS, error=TypeError, start=(0,), limit=(3,), strides=(1,))
misfit(slices.add_slice, FLOATS, FLOATS, error=TypeError, start=(0,), limit=(3,), strides=(1,))

for x_shape, out in [
    ((5,), (2,)), ((5,), (1,)), ((5,), (5,)), ((5,), (0,)), ((), ()), ((4, 3), (2, 3)), ((4, 3), (4, 1)),
    ((4, 5), (2, 2)), ((3, 4, 2), (1, 3, 2)), ((2, 5, 3), (2, 2, 3)),
]:  # fmt: skip
    # Some of these places are out of range.
    places = [integers(-1, n + 1, ()) for n in x_shape]
    sample(moving_slices.dynamic_slice, normal(x_shape), *places, sizes=out)
    sample(moving_slices.dynamic_set, normal(x_shape), normal(out), *places)
    sample(moving_slices.dynamic_add, normal(x_shape), normal(out), *places)
for dtype in (f32, bf16, c128, i64, boolean):
    sample(moving_slices.dynamic_slice, normal((5,), dtype), given(3, i64), sizes=(2,))
    sample(moving_slices.dynamic_set, normal((5,), dtype), normal((2,), dtype), given(3, i64))
for dtype in (f32, bf16, c128, i64):
    sample(moving_slices.dynamic_add, normal((5,), dtype), normal((2,), dtype), given(1, i64))
FLOATS, PART, PLACE = ArrayType((5,), f64), ArrayType((3,), f64), ArrayType((), i64)
misfit(moving_slices.dynamic_slice, FLOATS, PLACE, error=TypeError, sizes=(6,))
misfit(moving_slices.dynamic_slice, FLOATS, ArrayType((), i32), error=TypeError, sizes=(3,))
misfit(moving_slices.dynamic_slice, FLOATS, error=TypeError, sizes=(3,))
misfit(moving_slices.dynamic_set, FLOATS, ArrayType((3,), f32), PLACE, error=TypeError)
misfit(moving_slices.dynamic_add, FLOATS, PART, PLACE, PLACE, error=TypeError)

# Sorting

for primitive, params in [
    (sorting.sort, {}),
    (sorting.argsort, {"stable": True}),
    (sorting.argsort, {"stable": False}),
]:
    for axis in (0, 1):
        sample(primitive, distinct((3, 4)), axis=axis, **params)
    sample(primitive, distinct((0, 3)), axis=0, **params)
    sample(primitive, distinct((1,)), axis=0, **params)
    for dtype in (f32, f16, bf16):
        sample(primitive, distinct((5,), dtype), axis=0, **params)
    sample(primitive, given([3, 1, 2], i64), axis=0, **params)
    misfit(primitive, ArrayType((3,), f64), error=ValueError, axis=1, **params)
sample(sorting.sort, given([NAN, 1.0, -INF, 0.0, -0.0, INF]), smooth=False, note="edges", axis=0)
sample(sorting.sort, normal((5,), boolean), axis=0)
sample(sorting.argsort, given([NAN, 1.0, 1.0, -INF, INF, NAN]), smooth=False, note="ties", axis=0, stable=True)
sample(sorting.argsort, given([-0.0, 0.0, -0.0]), smooth=False, note="zeros", axis=0, stable=True)
kink(sorting.sort, [1.0, 0.0, 1.0], along=[[1.0, 2.0, 3.0]], gives=[2.0, 1.0, 3.0], axis=0)

for side in ("left", "right"):
    sample(sorting.searchsorted, increasing((5,)), normal((2, 3)), side=side)
    sample(sorting.searchsorted, increasing((5,)), normal(()), side=side)
    sample(sorting.searchsorted, increasing((2, 5)), normal((2, 3)), side=side)
    sample(sorting.searchsorted, increasing((0,)), normal((3,)), side=side)
    sample(sorting.searchsorted, given([1, 2, 2, 3], i64), given([0, 1, 2, 3, 4], i64), note="ties", side=side)
    edges = given([NAN, INF, -INF, 2.0])
    sample(sorting.searchsorted, given([1.0, 2.0, NAN]), edges, smooth=False, note="edges", side=side)
misfit(sorting.searchsorted, ArrayType((), f64), FLOATS, error=TypeError, side="left")
misfit(sorting.searchsorted, FLOATS, ArrayType((3,), f32), error=TypeError, side="left")
misfit(sorting.searchsorted, FLOATS, FLOATS, error=ValueError, side="middle")

# Linear algebra


def signs_chosen(results: list[Any]) -> list[Any]:
    """Eigenvectors with the phase that makes their largest element positive."""
    values, vectors = results
    largest = np.take_along_axis(vectors, np.argmax(np.abs(vectors), -2)[..., None, :], -2)
    return [values, (vectors * (np.conj(largest) / np.abs(largest))).astype(vectors.dtype)]


for transpose_a in (False, True):
    sample(linalg.solve, invertible(3, 3), normal((3, 2)), transpose_a=transpose_a)
    sample(linalg.solve, invertible(2, 3, 3), normal((2, 3, 1)), transpose_a=transpose_a)
    sample(linalg.solve, invertible(3, 3, dtype=f32), normal((3, 2), f32), transpose_a=transpose_a)
    sample(linalg.solve, invertible(3, 3, dtype=c128), normal((3, 2), c128), transpose_a=transpose_a)
    for lower in (False, True):
        for unit_diagonal in (False, True):
            triangle: dict[str, Any] = {"lower": lower, "transpose_a": transpose_a, "unit_diagonal": unit_diagonal}
            sample(linalg.triangular_solve, triangular(3, 3), normal((3, 2)), **triangle)
        sample(linalg.triangular_solve, triangular(2, 3, 3), normal((2, 3, 1)), **triangle)
        sample(linalg.triangular_solve, triangular(3, 3, dtype=c128), normal((3, 2), c128), **triangle)
TRIANGLE: dict[str, Any] = {"lower": True, "transpose_a": False, "unit_diagonal": False}
sample(linalg.solve, normal((0, 0)), normal((0, 2)), transpose_a=False)
sample(linalg.solve, given([[1.0]]), normal((1, 1)), transpose_a=False)
sample(linalg.triangular_solve, triangular(3, 3, dtype=f32), normal((3, 2), f32), **TRIANGLE)
LARGE = given(np.eye(150) + np.random.default_rng(0).uniform(-0.05, 0.05, (150, 150)))
for lower in (False, True):
    sample(
        linalg.triangular_solve, LARGE, normal((150, 1)), smooth=False, note="halves", **{**TRIANGLE, "lower": lower}
    )
for shape in [(1, 1), (2, 2), (3, 3), (4, 4), (2, 3, 3)]:
    sample(linalg.inv, invertible(*shape), looseness=10)
    sample(linalg.det, invertible(*shape))
    sample(linalg.slogdet, invertible(*shape))
    sample(linalg.cholesky, positive_definite(*shape), hermitian=(0,))
    sample(linalg.cofactors, invertible(*shape), looseness=10)
for dtype in (f32, c128):
    sample(linalg.inv, invertible(3, 3, dtype=dtype), looseness=10)
    sample(linalg.det, invertible(3, 3, dtype=dtype))
    sample(linalg.det, invertible(4, 4, dtype=dtype))
    sample(linalg.slogdet, invertible(3, 3, dtype=dtype))
    sample(linalg.cholesky, positive_definite(3, 3, dtype=dtype), hermitian=(0,))
    sample(linalg.cofactors, invertible(4, 4, dtype=dtype), looseness=10)
for shape in [(1, 1), (3, 3), (2, 3, 3)]:
    sample(eigh, separated(*shape), hermitian=(0,), canonical=signs_chosen, looseness=10)
sample(eigh, separated(3, 3, dtype=f32), hermitian=(0,), canonical=signs_chosen, looseness=10)
# The phase of a complex eigenvector is free, so only what does not depend on it has a derivative.
sample(eigh, separated(3, 3, dtype=c128), smooth=False, canonical=signs_chosen, looseness=10)
for primitive in (linalg.inv, linalg.det, linalg.slogdet, linalg.cholesky, eigh, linalg.cofactors):
    misfit(primitive, ArrayType((2, 3), f64), error=ValueError)
    misfit(primitive, ArrayType((3,), f64), error=ValueError)
    misfit(primitive, ArrayType((3, 3), i64), error=TypeError)
MATRIX, SINGULAR = ArrayType((3, 3), f64), np.ones((2, 2))
misfit(linalg.solve, MATRIX, FLOATS, error=TypeError, transpose_a=False)
misfit(linalg.solve, MATRIX, ArrayType((3, 2), f32), error=TypeError, transpose_a=False)
misfit(linalg.triangular_solve, MATRIX, ArrayType((2, 3), f64), error=TypeError, **TRIANGLE)
failure(linalg.solve, SINGULAR, np.ones((2, 1)), error=np.linalg.LinAlgError, transpose_a=False)
failure(linalg.inv, SINGULAR, error=np.linalg.LinAlgError)
failure(linalg.cholesky, -np.eye(2), error=np.linalg.LinAlgError)
kink(linalg.det, [[1.0, 2.0], [2.0, 4.0]], along=[[[1.0, 1.0], [1.0, 1.0]]], gives=1.0)
kink(linalg.det, np.diag([1.0, 2.0, 3.0, 0.0]), along=[np.eye(4)], gives=6.0)
kink(linalg.det, np.diag([1.0, 2.0, 0.0, 0.0]), along=[np.eye(4)], gives=0.0)

# Fourier transforms

for inverse, norm in ((False, "backward"), (True, "ortho")):
    sample(fft.fft, normal((3, 4), c128), axes=(1,), inverse=inverse, norm=norm)
sample(fft.fft, normal((2, 3, 5), c64), axes=(2, 0), inverse=True, norm="forward")
sample(fft.fft, normal((2, 1, 2, 3), c128), axes=(0, 1, 2, 3), inverse=False, norm="ortho")
sample(fft.fft, normal((0, 3), c128), axes=(1,), inverse=False, norm="backward")
for n in (1, 2, 5):
    sample(fft.rfft, normal((2, n)), axis=1, norm="backward")
    sample(fft.irfft, normal((n // 2 + 1, 2), c128), axis=0, n=n, norm="backward")
sample(fft.rfft, normal((6, 2), f32), axis=0, norm="ortho")
sample(fft.irfft, normal((2, 4), c64), axis=1, n=6, norm="forward")
sample(fft.rfft, normal((0, 3)), axis=1, norm="forward")
sample(fft.irfft, normal((0, 2), c128), axis=1, n=3, norm="ortho")
misfit(fft.fft, ArrayType((3,), f64), error=TypeError, axes=(0,), inverse=False, norm="backward")
misfit(fft.fft, ArrayType((3,), c128), error=ValueError, axes=(1,), inverse=False, norm="backward")
misfit(fft.rfft, ArrayType((3,), c128), error=TypeError, axis=0, norm="backward")
misfit(fft.rfft, ArrayType((0,), f64), error=ValueError, axis=0, norm="backward")
misfit(fft.irfft, ArrayType((3,), c128), error=ValueError, axis=0, n=3, norm="backward")
misfit(fft.irfft, ArrayType((3,), c128), error=ValueError, axis=0, n=4, norm="both")


# Random numbers

for shape in [(), (2,), (2, 3), (41,), (0, 2)]:
    sample(random_bits, integers(0, 1 << 32, (2,), u32), integers(0, 1 << 32, (2,), u32), shape=shape)
sample(random_bits, integers(0, 1 << 32, (2, 3, 2), u32), integers(0, 1 << 32, (2, 3, 2), u32), shape=(5,))
sample(random_bits, integers(0, 1 << 32, (0, 2), u32), integers(0, 1 << 32, (0, 2), u32), shape=(3,))
KEY = ArrayType((2,), u32)
misfit(random_bits, ArrayType((2,), i64), KEY, error=TypeError, shape=(3,))
misfit(random_bits, KEY, ArrayType((), u32), error=TypeError, shape=(3,))
misfit(random_bits, ArrayType((3, 2), u32), KEY, error=TypeError, shape=(3,))
misfit(random_bits, KEY, KEY, error=ValueError, shape=(1 << 32, 3))

# Convolutions and windows

for x_shape, kernel_shape, strides, padding, lhs_dilation, rhs_dilation, groups in [
    ((2, 1, 5), (1, 1, 3), (1,), ((0, 0),), (1,), (1,), 1),
    ((2, 3, 6), (4, 3, 2), (2,), ((1, 1),), (1,), (2,), 1),
    ((2, 2, 5), (3, 2, 4), (1,), ((0, 0),), (1,), (1,), 1),
    ((2, 2, 4), (3, 2, 3), (2,), ((2, -1),), (2,), (1,), 1),
    ((2, 2, 6), (1, 2, 2), (3,), ((-1, 0),), (1,), (1,), 1),
    ((1, 2, 4, 5), (2, 2, 3, 2), (1, 2), ((1, 1), (0, 1)), (1, 1), (1, 1), 1),
    ((1, 1, 4, 4), (2, 1, 4, 4), (1, 1), ((1, 0), (0, 0)), (1, 1), (1, 1), 1),
    ((1, 1, 3, 2, 3), (2, 1, 2, 2, 2), (1, 1, 1), ((0, 0), (0, 1), (0, 0)), (1, 1, 2), (1, 1, 1), 1),
    ((2, 4, 5), (6, 2, 3), (1,), ((1, 1),), (1,), (1,), 2),
    ((2, 2, 5), (4, 1, 3), (1,), ((0, 1),), (1,), (1,), 2),
    ((2, 4, 5), (2, 2, 4), (1,), ((0, 0),), (1,), (1,), 2),
    ((2, 4, 5), (4, 2, 4), (1,), ((0, 0),), (1,), (1,), 2),
    ((0, 2, 5), (3, 2, 3), (1,), ((0, 0),), (1,), (1,), 1),
]:
    sample(
        convolution.convolution,
        normal(x_shape),
        normal(kernel_shape),
        strides=strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        groups=groups,
    )
LINE: dict[str, Any] = {
    "strides": (1,), "padding": ((1, 0),), "lhs_dilation": (1,), "rhs_dilation": (1,), "groups": 1,
}  # fmt: skip
for dtype in (f32, f16, bf16, i32):
    sample(convolution.convolution, normal((2, 2, 5), dtype), normal((3, 2, 3), dtype), **LINE)
sample(convolution.convolution, given([[[1.0, NAN, INF, 0.0]]]), given([[[1.0, 0.0]]]), smooth=False, **LINE)
misfit(convolution.convolution, ArrayType((1, 1, 2), f64), ArrayType((1, 1, 4), f64), error=ValueError, **LINE)
misfit(convolution.convolution, ArrayType((1, 3, 4), f64), ArrayType((1, 2, 2), f64), error=ValueError, **LINE)
misfit(convolution.convolution, ArrayType((1, 1, 4), f64), ArrayType((1, 1, 2), f32), error=TypeError, **LINE)
misfit(convolution.convolution, ArrayType((1, 4), f64), ArrayType((1, 1, 2), f64), error=TypeError, **LINE)

for lanes, of_coefficients, count, order in [
    ((), (), 5, 2),
    ((2, 2), (), 3, 1),
    ((2,), (2,), 4, 3),
    ((), (), 1, 2),
    ((2,), (), 0, 1),
]:
    sample(
        linear_filter.linear_filter,
        normal((*of_coefficients, order + 1)),
        uniform(-0.5, 0.5, (*of_coefficients, order)),
        normal((*lanes, count)),
        normal((*lanes, order)),
        smooth=count > 0,
    )
for dtype in (f32, c128):
    operands = (normal(shape, dtype) for shape in ((3,), (2,), (4,), (2,)))
    sample(linear_filter.linear_filter, *operands)
FILTERED = [ArrayType((n,), f64) for n in (3, 2, 5)]
misfit(linear_filter.linear_filter, *FILTERED, ArrayType((3,), f64), error=ValueError)
misfit(linear_filter.linear_filter, *FILTERED, ArrayType((2,), f32), error=TypeError)

for shape, size, strides, padding, dilation in [
    ((6,), (2,), (2,), ((0, 0),), (1,)),
    ((2, 7), (3,), (2,), ((1, 1),), (1,)),
    ((2, 7), (2,), (1,), ((0, 0),), (2,)),
    ((2, 4, 6), (2, 3), (2, 3), ((0, 0), (0, 0)), (1, 1)),
    ((2, 5, 4), (2, 2), (2, 2), ((1, 0), (0, 0)), (1, 1)),
    ((1, 2, 5, 5), (3, 2), (1, 2), ((1, 1), (0, -1)), (1, 1)),
]:
    WINDOWS: dict[str, Any] = {"window": size, "strides": strides, "padding": padding, "dilation": dilation}
    sample(windows.window_max, distinct(shape), **WINDOWS)
    sample(windows.window_argmax, distinct(shape), smooth=False, **WINDOWS)
    found = windows.window_max.type_rule(ArrayType(shape, f64), **WINDOWS).shape
    places = integers(0, math.prod(size), found, i32)
    sample(windows.window_take, normal(shape), places, **WINDOWS)
    sample(windows.window_put, normal(found), places, shape=shape[len(shape) - len(size) :], **WINDOWS)
    if not any(map(any, padding)):
        sample(windows.window_sum, normal(shape), window=size, strides=strides, dilation=dilation)
TILES: dict[str, Any] = {"window": (2,), "strides": (2,), "padding": ((1, 0),), "dilation": (1,)}
for dtype in (f32, bf16, i64, u8):
    sample(windows.window_max, normal((2, 5), dtype), smooth=False, **TILES)
    sample(windows.window_argmax, normal((2, 5), dtype), smooth=False, **TILES)
    sample(windows.window_sum, normal((2, 5), dtype), window=(3,), strides=(1,), dilation=(1,))
for values in ([1.0, 1.0, 2.0, 2.0, 1.0], [NAN, 1.0, NAN, NAN, -INF], [-INF, -INF, -INF, INF, INF]):
    sample(windows.window_max, given(values), smooth=False, note=f"edges{values}", **TILES)
    sample(windows.window_argmax, given(values), smooth=False, note=f"edges{values}", **TILES)
kink(windows.window_max, [3.0, 1.0, 1.0, 2.0, 2.0], along=[[1.0, 2.0, 4.0, 8.0, 16.0]], gives=[1.0, 2.0, 8.0], **TILES)
misfit(windows.window_max, ArrayType((4,), c128), error=TypeError, **TILES)
misfit(windows.window_max, ArrayType((0,), f64), error=ValueError, **TILES)
misfit(windows.window_max, ArrayType((), f64), error=TypeError, **TILES)
misfit(windows.window_take, ArrayType((5,), f64), ArrayType((2,), i32), error=TypeError, **TILES)
misfit(windows.window_put, ArrayType((2,), f64), ArrayType((2,), i32), error=TypeError, shape=(5,), **TILES)
misfit(windows.window_sum, ArrayType((4,), boolean), error=TypeError, window=(2,), strides=(1,), dilation=(1,))
