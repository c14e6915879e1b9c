"""NumPy's functions on traced values, held against NumPy itself: values, shapes and dtypes.

Each case is an expression.  It is evaluated by NumPy on arrays, and traced with tracers in place of these arrays,
through `numpy` as well as through the namespace `ftrans.numpy`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tables
from checks import assert_all_close

import ftrans
import ftrans.numpy
from ftrans.core.primitive import MissingRule
from ftrans.core.trace import building
from ftrans.core.types import type_of
from ftrans.core.witness import CodeBuilder
from ftrans.numpy.dispatch import TABLE
from ftrans.numpy.promotion import asarray, has_tracer
from ftrans.numpy.vectorizing import vectorize

random = np.random.default_rng(0)

# What the expressions may name; these are traced.  Lower-case names in CONSTANTS are not.
SAMPLES: dict[str, Any] = {
    "A": random.normal(size=(3, 4)),
    "B": random.normal(size=(4, 5)),
    "C": random.normal(size=(3, 4)) + 1j * random.normal(size=(3, 4)),
    "D": random.uniform(0.1, 0.9, size=(3, 4)),
    "E": np.array([0.0, -0.0, 1.0, -1.5, 2.5, 3.5, np.inf, -np.inf, np.nan]),
    "F": random.normal(size=(3, 4)).astype(np.float32),
    "G": random.normal(size=4).astype(np.float16),
    "H": np.array([-7, -3, 0, 2, 5, 9], dtype=np.int8),
    "I": random.integers(-5, 6, size=(3, 4)),
    "J": random.integers(1, 4, size=(3, 4)),
    "K": np.array([2, 0, 1, 0]),
    "L": np.array([0.0, 0.5, 1.0, 1.0, 2.0]),
    "M": random.uniform(size=(3, 4)) < 0.5,
    "N": np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, -2.0]]),
    "P": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]),
    "Q": random.normal(size=(2, 3, 3)),
    "S": np.float64(0.7),
    "T": random.normal(size=(2, 3, 4)),
    "U": np.array([3, 200, 7], dtype=np.uint8),
    "V": random.normal(size=4),
    "W": random.normal(size=3),
    "X": random.normal(size=(1, 3, 1)),
    "Z": np.zeros((2, 3)),
}
CONSTANTS: dict[str, Any] = {
    "mask": SAMPLES["M"].copy(),
    "row": np.array([True, False, True]),
    "idx": np.array([2, 0, -1]),
    "grid": np.array([[0, 1], [2, -1]]),
    "const": random.normal(size=(3, 4)),
}

UNARY = [
    "absolute", "negative", "positive", "exp", "exp2", "expm1", "sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh",
    "arcsinh", "square", "cbrt", "sign", "floor", "ceil", "trunc", "rint", "isfinite", "isnan", "isinf", "signbit",
    "fabs", "deg2rad", "rad2deg", "degrees", "radians", "logical_not", "conjugate", "reciprocal", "sinc", "isposinf",
    "isneginf", "nan_to_num", "real", "imag", "angle", "iscomplex", "isreal", "round",
]  # fmt: skip
DOMAIN = ["log", "log2", "log10", "log1p", "sqrt", "arcsin", "arccos", "arctanh"]
BINARY = [
    "add", "subtract", "multiply", "divide", "true_divide", "maximum", "minimum", "fmax", "fmin", "arctan2", "hypot",
    "logaddexp", "logaddexp2", "copysign", "nextafter", "floor_divide", "remainder", "mod", "fmod", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "heaviside", "float_power",
]  # fmt: skip
INTEGER = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]
REDUCTIONS = ["sum", "prod", "max", "min", "amax", "amin", "mean", "var", "std", "any", "all", "ptp", "count_nonzero"]
NAN_REDUCTIONS = ["sum", "prod", "max", "min", "mean", "var", "std", "cumsum", "cumprod"]
REDUCED_UFUNCS = ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "logaddexp"]
AXES = ["A", "I", "F", "T, 1", "T, (0, 2)", "A, -1", "A, axis=0", "T, None"]

UFUNCS = [
    *(f"np.{f}({x})" for f in UNARY for x in "AEFH" if (f, x) not in {("reciprocal", "H")}),
    *(f"np.{f}(G)" for f in UNARY if f != "nan_to_num"),
    *(f"np.{f}({x})" for f in DOMAIN for x in ("D", "D.astype(np.float32)", "J - 1 > 1")),
    *(f"np.{f}(C)" for f in ("exp", "sin", "sqrt", "log", "absolute", "conjugate", "sign", "square", "real", "imag")),
    "np.arccosh(D + 1.5)", "np.invert(I)", "np.invert(M)", "np.angle(C, deg=True)", "np.real_if_close(C)",
    *(f"np.{f}({x})" for f in BINARY for x in ("A, D", "A, 2.0", "3, A", "A, F", "F, 2", "F, V", "E, E[::-1]", "X, A")),
    *(f"np.{f}(I, J)" for f in BINARY if f not in ("hypot", "nextafter")), *(f"np.{f}(H, 3)" for f in BINARY),
    *(f"np.{f}({x})" for f in INTEGER for x in ("J, I", "I, J", "J, 2", "I, U[0]")), "np.bitwise_and(M, mask)",
    "M | mask", "M ^ True", "~M", "M & True", "M + mask", "M * mask", "np.maximum(M, mask)", "A ** 2", "A ** 3",
    "A ** -2", "D ** 0.5", "D ** 2.5", "2.0 ** A", "D ** A", "I ** 2", "2 ** J", "F ** 2", "J ** 3.0", "F ** 2.0",
    "F ** np.float64(2)", "np.power(J, 3)", "C ** 2", "A ** 100", "S ** 2", "2 ** S", "pow(A, 2)", "A + 1", "1 - A",
    "A * True", "A / 3", "3 / D", "A // 0.3", "A % 0.3", "-A", "+A", "abs(A)", "I + 1.5", "F + 1",
    "F * np.float64(2)", "F * S", "H + 1", "U + 1", "U * 2", "I / J", "I // J", "I % J", "H / 2", "M + 1", "G * 2.0",
    "A < V", "A >= 0", "A == A", "I != 2", "A + [1.0, 2.0, 3.0, 4.0]", "[1.0, 2.0, 3.0, 4.0] * A", "A @ B", "V @ B",
    "divmod(A, 0.3)", "divmod(7, J)", "np.divmod(I, J)", "np.modf(E[:6])", "np.modf(A)", "np.ldexp(A, J)",
    "np.ldexp(F, 3)", "np.add(A, D, dtype=np.float32)", "np.add(A, D, out=np.zeros_like(A))",
    "np.sin(F, dtype=np.float64)", "np.divide(A, I, out=np.zeros_like(A), where=I != 0)",
    "np.log(A, out=np.ones_like(A), where=A > 0)", "round(S)", "np.round(A, 1)", "np.round(I, -1)", "np.round(F, 2)",
    "np.around(C, 1)", "A.round(1)", "np.add.outer(V, W)", "np.multiply.outer(A, W)", "np.subtract.outer(I, 2.0)",
]  # fmt: skip

CHOICES = [
    "np.where(M, A, D)", "np.where(mask, A, 0.0)", "np.where(A > 0, 1, A)", "np.where(M, F, 2)",
    "np.where(A > V, V, S)", "np.where(I, A, C)", "np.where(M, 1, 0)", "np.where(mask, A, np.nan)", "np.where(M)",
    "np.where(row, W, 1)", "np.select([A > 1, A > 0], [A, 2 * A], 5.0)", "np.select([M, ~M], [I, A])",
    "np.select([A > 1, A > 0], [1, 2])", "np.clip(A, -0.5, 0.5)", "np.clip(A, None, D)", "np.clip(A, 0.1, None)",
    "A.clip(0, 1)", "np.clip(I, -1, 2)", "np.clip(F, 0, 1)", "np.clip(A, a_min=0.0, a_max=None)",
    "np.piecewise(V, [V < 0, V >= 0], [lambda v: -v, lambda v: v * 2])",
    "np.piecewise(V, [V < 0], [lambda v: v ** 2, 7.0])", "np.nan_to_num(E, nan=1.0, posinf=2.0)", "np.nan_to_num(I)",
    "np.isclose(A, A + 1e-9)", "np.isclose(E, E, equal_nan=True)", "np.allclose(A, A)", "np.array_equal(A, A)",
    "np.array_equal(A, B)", "np.array_equiv(A, A[None])", "np.isclose(I, J)", "np.interp(D, L[:3], V[:3])",
    "np.interp(A, [-1.0, 0.0, 1.0], W)", "np.interp(A, [-1.0, 0.5], [0.0, 2.0], left=-9.0)", "np.interp(S, L[:3], W)",
    "np.interp(A * 5, [1.0, 2.0, 3.5], W, period=4.0)", "np.unwrap(np.cumsum(A * 3, 1))", "np.unwrap(V * 9)",
    "np.polyval(W, V)", "np.polyval([1, 2, 3], A)", "np.gradient(V)", "np.gradient(A, 0.5)", "np.gradient(A, axis=1)",
    "np.gradient(A, 0.5, 2.0)", "np.sinc(A * 0.01)", "np.heaviside(E, 0.5)", "np.choose(K, [V, 2 * V, 3 * V])",
    "np.choose(J - 1, [A, 1.0, D])", "np.choose(K + 2, [V, V], mode='wrap')",
]  # fmt: skip

REDUCED = [
    *(f"np.{f}({x})" for f in REDUCTIONS for x in AXES), *(f"np.{f}(T, axis=1, keepdims=True)" for f in REDUCTIONS),
    *(f"np.{f}(A, keepdims=True)" for f in REDUCTIONS),
    *(f"np.{f}(S)" for f in ("sum", "prod", "max", "mean", "any", "var")),
    *(f"np.{f}(H)" for f in ("sum", "prod", "mean", "var", "max", "cumsum", "cumprod")),
    *(f"np.{f}(U)" for f in ("sum", "prod", "mean", "cumsum")),
    *(f"np.{f}(M)" for f in ("sum", "prod", "mean", "max", "cumsum", "all", "any", "argmax", "std")),
    *(f"np.{f}(G)" for f in ("sum", "mean", "var", "std", "max", "cumsum")),
    *(f"np.{f}(C, 0)" for f in ("sum", "prod", "mean", "var", "std", "cumsum", "any")),
    *(f"np.{f}(E[:6])" for f in ("sum", "max", "min", "argmax")), "np.max(E)", "np.min(E)", "np.argmax(E)",
    "np.argmin(N)", "np.sum(A, dtype=np.float32)", "np.sum(H, dtype=np.int8)", "np.sum(F, dtype=np.float64)",
    "np.prod(M, dtype=bool)", "np.sum(M, dtype=bool)", "np.mean(I, dtype=np.float32)", "np.var(A, ddof=1)",
    "np.std(A, 1, ddof=1)", "np.var(A, axis=0, correction=1)", "np.var(A, 1, mean=np.mean(A, 1, keepdims=True))",
    "np.sum(A, initial=5.0)", "np.max(A, initial=9.0)", "np.min(A, 0, initial=0.0)", "np.prod(A, 1, initial=2.0)",
    "np.sum(A, where=M)", "np.sum(A, 1, where=mask)", "np.sum(A, 0, where=row[:, None])", "np.prod(A, where=M)",
    "np.mean(A, where=M)", "np.mean(A, 1, where=mask | True)", "np.var(A, where=M)",
    "np.max(A, where=M, initial=-9.0)", "np.any(A > 2, where=M)", "np.all(A > 2, 0, where=M)", "np.sum(Z[:, :0])",
    "np.prod(Z[:0])", "np.sum(Z[:0], 0)", "np.all(Z[:0])", "np.sum(A, ())", "np.max(Z[:0], 0, initial=1.0)",
    "np.mean(A, (0, 1))", "np.sum(A, out=np.zeros_like(S))", "np.any(C)", "np.argmax(A)", "np.argmax(A, 0)",
    "np.argmin(A, -1)", "np.argmax(A, 1, keepdims=True)", "np.argmin(T, keepdims=True)", "np.argmax(I, 1)",
    "np.cumsum(A)", "np.cumsum(A, 1)", "np.cumsum(I, 0)", "np.cumprod(A, -1)", "np.cumprod(A)",
    "np.cumsum(H, dtype=np.float64)", "np.cumsum(S)", "np.diff(A)", "np.diff(A, axis=0)", "np.diff(V, 2)",
    "np.diff(M)", "np.diff(V, prepend=0.0, append=[1.0, 2.0])", "np.diff(A, axis=0, prepend=1.0)", "np.diff(A, 0)",
    "np.ediff1d(A)", "np.ediff1d(V, to_end=9.0, to_begin=[1.0, 2.0])", "np.trapezoid(A)",
    "np.trapezoid(A, dx=0.1, axis=0)", "np.trapezoid(A, V)", "np.trapezoid(A, A * 2)", "np.trapezoid(I)",
    "np.average(A)", "np.average(A, 0, W)", "np.average(A, weights=D)", "np.average(A, 1, V, returned=True)",
    "np.average(I, 1)", "np.average(A, 0, returned=True)", "np.average(T, (0, 2), random_weights)",
    "np.average(A, 1, weights=V, keepdims=True)", "np.average(F, weights=F)",
    *(f"np.nan{f}({x})" for f in NAN_REDUCTIONS for x in ("N", "N, 0", "N, axis=1", "I, 1", "F, 0")),
    "np.nanmean(N, 1, keepdims=True)", "np.nanvar(N, 1, ddof=1)", "np.median(A)", "np.median(A, 0)",
    "np.median(A, 1)", "np.median(T, (0, 2), keepdims=True)", "np.median(I)", "np.median(E)", "np.median(F, 1)",
    "np.quantile(A, 0.3)", "np.quantile(A, [0.0, 0.25, 1.0], axis=1)", "np.quantile(F, 0.3)", "np.quantile(A, S, 0)",
    "np.percentile(A, 40)", "np.percentile(T, [10, 60], axis=(0, 2))",
    "np.percentile(F, 40.0, axis=0, keepdims=True)", "np.quantile(I, 0.5)",
    "np.quantile(A, [[0.1, 0.2], [0.3, 0.4]], axis=0)", "np.cov(A)", "np.cov(V, V ** 2)", "np.cov(A, rowvar=False)",
    "np.cov(A, ddof=0)", "np.cov(A, aweights=D[0])", "np.cov(A, fweights=K)", "np.corrcoef(A)", "np.cov(V)",
    *(f"np.{f}.reduce({x})" for f in REDUCED_UFUNCS for x in ("A", "A, 1", "A, axis=None", "T, (0, 1)", "I", "F, 0")),
    "np.logaddexp.reduce(E[[0, 3, 7]])", "np.logaddexp.reduce(np.where(mask, A, -np.inf), 0)",
    "np.logaddexp2.reduce(A)", "np.logaddexp.reduce(E[7:8])", "np.logaddexp.reduce(A * 1000)",
    "np.logaddexp.reduce(Z[:0])", "np.logaddexp.reduce(E)", "np.bitwise_and.reduce(M)", "np.add.reduce(M)",
    "np.add.reduce(A, initial=2.0, where=M)", "np.maximum.reduce(A, dtype=np.float32)",
    *(f"np.{f}.accumulate({x})" for f in REDUCED_UFUNCS[:4] for x in ("A", "A, 1", "I", "H", "F")),
    "np.logaddexp.accumulate(A, 1)", "np.logaddexp.accumulate(V)",
]  # fmt: skip
CONSTANTS["random_weights"] = random.uniform(size=(2, 4))

SHAPES = [
    "np.reshape(A, (4, 3))", "np.reshape(A, -1)", "np.reshape(T, (2, -1))", "A.reshape(2, 6)", "A.reshape((6, -1))",
    "np.reshape(A, (4, 3), order='F')", "A.reshape(12, order='F')", "S.reshape(1, 1)", "np.ravel(A)", "A.ravel()",
    "np.ravel(T, order='F')", "A.flatten()", "A.flatten('F')", "np.transpose(A)", "A.T", "T.T",
    "np.transpose(T, (1, 2, 0))", "T.transpose(1, 0, 2)", "T.transpose((1, 0, -1))", "T.mT", "np.matrix_transpose(T)",
    "np.swapaxes(T, 0, -1)", "V.T", "np.moveaxis(T, 0, -1)", "np.moveaxis(T, [0, 1], [-1, 0])", "np.rollaxis(T, 2)",
    "np.rollaxis(T, 0, 3)", "np.concatenate([A, D])", "np.concatenate((A, D), axis=1)",
    "np.concatenate([A, I, F], 0)", "np.concatenate([A, D], None)", "np.concatenate([A, const], -1)",
    "np.concatenate([V, [1.0, 2.0]])", "np.concatenate([F, F])", "np.concatenate(T)",
    "np.concatenate([A, D], dtype=np.float32)", "np.concatenate([U, H])", "np.stack([A, D])", "np.stack([A, D], -1)",
    "np.stack([V, V, V], axis=1)", "np.stack([S, 1.0, 2])", "np.vstack([V, V])", "np.vstack([A, V])",
    "np.hstack([V, W])", "np.hstack([A, D])", "np.dstack([A, D])", "np.dstack([V, V])", "np.column_stack([W, A, W])",
    "np.append(A, D, 0)", "np.append(V, 3)", "np.block([[A, A], [A, A]])",
    "np.block([[P, np.ones((3, 2))], [np.zeros((1, 3)), 2.0 * Z[:1, :2]]])", "np.block([V, W])", "np.split(V, 2)",
    "np.split(A, [1], axis=1)", "np.array_split(V, 3)", "np.array_split(A, [1, 3], 1)", "np.hsplit(A, 2)",
    "np.vsplit(A, 3)", "np.dsplit(T, 2)", "np.hsplit(V, 2)", "np.unstack(A)", "np.unstack(A, axis=1)", "np.pad(A, 1)",
    "np.pad(A, ((1, 2), (0, 3)))", "np.pad(V, (2, 1), constant_values=5.0)", "np.pad(I, 1, constant_values=7)",
    "np.pad(A, ((1, 0), (2, 1)), constant_values=((1.0, 2.0), (3.0, 4.0)))",
    "np.pad(V, (2, 1), constant_values=(1.0, 2.0))", "np.pad(V, 2, 'edge')", "np.pad(A, 2, mode='reflect')",
    "np.pad(V, (5, 6), 'wrap')", "np.pad(V, 3, 'symmetric')", "np.pad(A, {0: 1, -1: (2, 0)})", "np.pad(F, 1)",
    "np.tile(V, 3)", "np.tile(A, (2, 2))", "np.tile(V, (2, 1))", "np.tile(A, 2)", "np.tile(S, 3)",
    "np.tile(T, (2, 1, 3))", "np.repeat(A, 2)", "np.repeat(A, 3, axis=1)", "np.repeat(W, [1, 0, 2])",
    "A.repeat([2, 1, 0], axis=0)", "np.repeat(S, 3)", "np.broadcast_to(V, (3, 4))", "np.broadcast_to(S, (2, 2))",
    "np.broadcast_to(X, (2, 3, 4))", "np.broadcast_arrays(A, V)", "np.broadcast_arrays(X, V, S)", "np.flip(A)",
    "np.flip(A, 0)", "np.flip(T, (0, 2))", "np.fliplr(A)", "np.flipud(A)",
    *(f"np.rot90(A, {k})" for k in range(-1, 4)), "np.rot90(T, 1, (1, 2))", "np.rot90(T, 3, (0, 2))", "np.roll(A, 1)",
    "np.roll(A, -2, axis=1)", "np.roll(T, (1, 2), axis=(0, 2))", "np.roll(A, 5, 0)", "np.roll(V, 0)", "np.squeeze(X)",
    "np.squeeze(X, 0)", "X.squeeze((0, -1))", "np.expand_dims(A, 0)", "np.expand_dims(A, (0, -1))",
    "np.atleast_1d(S)", "np.atleast_2d(V)", "np.atleast_3d(V)", "np.atleast_3d(A)", "np.atleast_3d(S)",
    "np.atleast_1d(S, A)", "np.meshgrid(V, W)", "np.meshgrid(V, W, indexing='ij')", "np.meshgrid(V, W, sparse=True)",
    "np.meshgrid(V)", "np.meshgrid(V, W, [1.0, 2.0])", "np.tril(A)", "np.triu(A, 1)", "np.tril(T, -1)", "np.tril(V)",
    "np.triu(I)", "np.diag(V)", "np.diag(V, 2)", "np.diag(W, -1)", "np.diag(A)", "np.diag(A, 1)", "np.diag(A, -2)",
    "np.diag(A, 7)", "np.diagonal(T)", "np.diagonal(T, 1, 1, 2)", "T.diagonal(axis1=2, axis2=0)", "np.diagflat(A)",
    "np.diagflat(W, 1)", "np.trace(A)", "np.trace(T, 1, 1, 2)", "A.trace(offset=-1)", "np.trace(I)",
    "np.trace(H.reshape(2, 3))", "np.kron(A, P)", "np.kron(V, W)", "np.kron(A, V)", "np.kron(S, A)",
    "np.delete(A, 1, axis=0)", "np.delete(V, [0, 2])", "np.delete(A, slice(0, 2), 1)", "np.delete(V, -1)",
    "np.insert(V, 1, 9.0)", "np.insert(A, 1, W, axis=1)", "np.insert(V, [0, 2], [1.0, 2.0])",
    "np.insert(A, 1, 5.0, axis=0)", "np.insert(A, [1, 1], 5.0, axis=0)", "np.resize(V, (2, 5))", "np.resize(A, 5)",
    "np.trim_zeros(L)", "np.apply_along_axis(lambda v: v / v.sum(), 1, D)", "np.apply_along_axis(np.sum, 0, T)",
    "np.apply_along_axis(np.diag, 0, A)", "np.shape(A)", "np.ndim(T)", "np.size(A)", "np.size(A, 0)", "len(A)",
    "np.copy(A)", "A.copy()", "A.astype(np.float32)", "A.astype(int)", "M.astype(float)", "I.astype('c16')",
    "A.tolist()", "np.astype(A, np.float32)", "np.can_cast(I.dtype, float)", "np.iscomplexobj(C)", "np.isrealobj(C)",
    "A.itemsize", "A.nbytes", "A.size", "A.shape", "C.real", "C.imag", "A.real", "A.imag", "A.flat[3]", "A.flat[2:5]",
    "np.vander(W)", "np.vander(W, 2, increasing=True)", "np.concat([A, D])", "np.permute_dims(T, (2, 0, 1))",
]  # fmt: skip

CREATED = [
    "np.zeros_like(A)", "np.ones_like(I)", "np.full_like(A, 3)", "np.full_like(I, 2.7)", "np.full_like(A, S)",
    "np.empty_like(A) * 0", "np.zeros_like(A, dtype=int)", "np.zeros_like(A, shape=(2, 2))", "np.full_like(F, V)",
    "np.linspace(S, 3.0, 5)", "np.linspace(0, W, 4)", "np.linspace(V, 2 * V, 3, axis=1)",
    "np.linspace(S, 2, 5, endpoint=False)", "np.linspace(S, 2.0, 4, retstep=True)", "np.linspace(S, 2.0, 1)",
    "np.linspace(F[0], F[1], 3)", "np.logspace(S, 2.0, 4)", "np.geomspace(S, 10.0, 4)", "np.array([V[0], 2.0 * S])",
    "np.logspace(0, 1, 3, base=D[0])",
    "np.array([[S, 1.0], [0.0, V[1]]])", "np.array([V, 2 * V])", "np.array([S, 1.0]) * 2 + V[0]",
    "np.array([[np.cos(S), -np.sin(S)], [np.sin(S), np.cos(S)]]) @ V[:2]", "V[:2] @ np.array([[S, 1.0], [0.0, 2.0]])",
    "np.sum(np.array([S, S ** 2]))", "np.array([[S, 0.0], [0.0, 1.0]]).dot(V[:2])",
    "np.concatenate([np.array([S, 1.0]), V])", "np.stack([np.array([S, 2.0]), V[:2]])",
    "np.array([F[0, 0], 1.0]) + F[0, :2]",
]  # fmt: skip

PRODUCTS = [
    "np.dot(A, B)", "np.dot(V, V)", "np.dot(A, V)", "np.dot(V, B)", "np.dot(T, B)", "np.dot(A, np.swapaxes(T, 1, 2))",
    "np.dot(S, A)", "np.dot(2.0, A)", "A.dot(B)", "np.dot(I, I.T)", "np.dot(F, B)", "np.vdot(A, D)", "np.vdot(C, C)",
    "np.vdot(C, A)", "np.inner(V, V)", "np.inner(A, D)", "np.inner(T, A)", "np.inner(A, V)", "np.inner(S, A)",
    "np.outer(V, W)", "np.outer(A, W)", "np.matmul(A, B)", "T @ B", "T @ V", "W @ T", "np.matmul(Q, Q)",
    "Q[:, None] @ P", "P @ Q", "np.matmul(Q[:, None], Q[None])", "P @ P @ W", "const @ B", "[[1.0, 2.0, 3.0]] @ A",
    "I @ J.T", "F @ B", "M @ mask.T", "Z[:0] @ P", "Z @ P[:, :0]", "A @ const.T", "np.tensordot(A, B, 1)",
    "np.tensordot(T, A, 2)", "np.tensordot(T, T, ([0, 1], [0, 1]))", "np.tensordot(V, W, 0)",
    "np.tensordot(T, A, axes=([2, 1], [1, 0]))", "np.tensordot(A, B, (1, 0))", "np.tensordot(A, B, (-1, 0))",
    "np.vecdot(A, V)", "np.vecdot(C, C)", "np.vecdot(A, D, axis=0)", "np.matvec(T, V)", "np.vecmat(W, T)",
    "np.vecmat(C[:, :3], P)", "np.cross(W, W[::-1])", "np.cross(P, W)", "np.cross(P, P.T, axis=0)", "np.cross(Q, W)",
    "np.linalg.cross(P, W)", "np.trace(P @ P)", "np.convolve(V, W)", "np.convolve(V, W, 'same')",
    "np.convolve(W, V, 'valid')", "np.convolve(A[0], [1.0, 2.0], 'same')", "np.correlate(V, W)",
    "np.correlate(V, W, 'full')", "np.correlate(V, W, 'same')", "np.correlate(C[0], C[1, :2])",
    "np.correlate(W, V, 'full')", "np.convolve(I[0], J[0])", "np.einsum('ij,jk->ik', A, B)",
    "np.einsum('ij,jk', A, B)", "np.einsum('ij->ji', A)", "np.einsum('ij->', A)", "np.einsum('ij->j', A)",
    "np.einsum('ii', P)", "np.einsum('ii->i', P)", "np.einsum('bii->b', Q)", "np.einsum('ba', A)",
    "np.einsum('i,i', V, V)", "np.einsum('i,j->ij', V, W)", "np.einsum('i,j->ji', V, W)",
    "np.einsum('ij,ij->ij', A, D)", "np.einsum('bij,bjk->bik', Q, Q)", "np.einsum('...ij,...jk', Q, P)",
    "np.einsum('...i->...', T)", "np.einsum('...,...', A, V)", "np.einsum('i...->...', T)",
    "np.einsum('ij...,jk...->ik...', A, B)", "np.einsum('ij,jk,k->i', A, B, B[0])",
    "np.einsum('ij,jk,kl,l->', A, B, B.T, V)", "np.einsum('ij,jk,kl,l->', A, B, B.T, V, optimize=True)",
    "np.einsum('ij,jk,kl,l->', A, B, B.T, V, optimize=False)", "np.einsum(A, [0, 1], B, [1, 2])",
    "np.einsum(A, [0, 1], B, [1, 2], [2, 0])", "np.einsum(T, [Ellipsis, 0], [Ellipsis])",
    "np.einsum('ij,kl->', A, B)", "np.einsum('ij,i->j', X[0], W)", "np.einsum('iij->j', np.stack([P, P, P]))",
    "np.einsum(',ij', 2.0, A)", "np.einsum('ij,ij,ij->i', A, D, A)", "np.einsum('ij,jk->ik', I, J.T)",
    "np.einsum('ij,j->i', F, V)", "np.einsum('ij,jk->ik', F, F.T)", "np.einsum('ij,ij->i', C, A)",
    "np.einsum(' i j , j k -> i k ', A, B)", "np.einsum('ik,kj', A, B)", "np.einsum('aB,Bc', A, B)",
    "np.linalg.multi_dot([A, B, B.T, V])", "np.linalg.multi_dot([V, B, B.T])", "np.linalg.matrix_power(P, 3)",
    "np.linalg.matrix_power(P, 0)", "np.linalg.matrix_power(Q, 2)", "np.linalg.matrix_power(P, -2)",
    "np.linalg.matrix_power(I[:, :3], 5)", "np.linalg.outer(V, W)", "np.linalg.vecdot(A, D)",
    "np.linalg.matmul(A, B)", "np.linalg.tensordot(A, B, axes=1)", "np.linalg.trace(Q)", "np.linalg.diagonal(Q)",
    "np.linalg.matrix_transpose(T)",
]  # fmt: skip

LINALG = [
    "np.linalg.solve(P, W)", "np.linalg.solve(P, A)", "np.linalg.solve(Q, W)", "np.linalg.solve(P, Q)",
    "np.linalg.solve(Q, Q)", "np.linalg.inv(P)", "np.linalg.inv(Q)", "np.linalg.det(P)", "np.linalg.det(Q)",
    "np.linalg.slogdet(P)", "np.linalg.slogdet(Q)[1]", "np.linalg.cholesky(P)", "np.linalg.cholesky(P, upper=True)",
    "np.linalg.solve(J[:, :3] + 5 * np.eye(3), W)", "np.linalg.inv(P.astype(np.float32))", "np.linalg.norm(A)",
    "np.linalg.norm(V)", "np.linalg.norm(A, axis=0)",
    *(f"np.linalg.norm(V, {o})" for o in ("1", "2", "3", "0", "np.inf", "-np.inf", "0.5", "-1")),
    *(f"np.linalg.norm(A, {o})" for o in ("'fro'", "1", "-1", "np.inf", "-np.inf")), "np.linalg.norm(T, axis=(0, 2))",
    "np.linalg.norm(T, 1, axis=(2, 0))", "np.linalg.norm(T, np.inf, axis=(0, 2), keepdims=True)",
    "np.linalg.norm(A, 3, axis=1, keepdims=True)", "np.linalg.norm(I)", "np.linalg.norm(C)",
    "np.linalg.norm(C, 1, 0)", "np.linalg.norm(T)", "np.linalg.norm(F)", "np.linalg.vector_norm(A)",
    "np.linalg.vector_norm(A, axis=1, ord=3)", "np.linalg.matrix_norm(Q)",
    "np.linalg.matrix_norm(Q, ord=1, keepdims=True)", "np.linalg.norm(A, keepdims=True)", "np.linalg.norm(Z)",
    "np.linalg.eigvalsh(P)", "np.linalg.eigvalsh(A[:, :3], 'U')", "np.abs(np.linalg.eigh(P)[1])",
]  # fmt: skip

SORTED = [
    "np.sort(A)", "np.sort(A, 0)", "np.sort(A, None)", "np.sort(I, kind='stable')", "np.sort(E)", "np.argsort(A)",
    "np.argsort(A, 0)", "np.argsort(I, axis=1, stable=True)", "np.argsort(K, kind='stable')", "np.sort(F, -1)",
    "A.argsort(axis=None)", "np.partition(A, 2)[:, 2]", "np.searchsorted(L, D)", "np.searchsorted(L, D, 'right')",
    "np.searchsorted(L, S)", "np.searchsorted([1, 2, 3], I)", "L.searchsorted([0.5, 1.0])",
    "np.digitize(A, [-1.0, 0.0, 1.0])", "np.digitize(A, [1.0, 0.0])", "np.digitize(A, [-1.0, 0.0, 1.0], right=True)",
    "np.isin(I, [1, 2])", "np.isin(I, J, invert=True)", "np.nonzero(M)", "np.flatnonzero(I)", "np.argwhere(M)",
    "np.unique(I)", "np.unique(K, return_index=True)", "np.unique(J, return_counts=True)", "np.bincount(K)",
    "np.bincount(K, weights=V, minlength=5)", "np.bincount([0, 2, 2, 1], V)", "np.histogram(A, [-1.0, 0.0, 2.0])",
    "np.histogram(A, 4, (-1.0, 1.0), density=True)", "np.histogram(A, 4, (-1.0, 1.0), weights=D)",
]  # fmt: skip

MATRIX_BASIC = [
    "0", "-1", "1, 2", "-3, -4", "1:", ":-1", ":, 0", "::2", "::-1", ":, ::-2", "2:0:-1", "5:", "1:1", "...",
    "..., 0", "0, ...", "()", ":", "None", "None, 0", ":, None", "0, None, 1", "..., None", "1:3, None, ::2",
    "np.int64(1)", "0, 1, ...", "-2:, -3:-1",
]  # fmt: skip
CUBE_BASIC = [
    "0", ":, 1", "..., -1", "1, ..., 2", ":, ::-1, 1:3", "None, 0, :, None, 2", "1, 2, 3", "..., None, ::2",
    "-1, -1:, -1", "..., ::-1, 0",
]  # fmt: skip
MATRIX_ADVANCED = [
    "idx", "[0, 2]", "idx, idx", "idx[:, None], [0, 1]", "grid", ":, idx", ":, grid", "1:, idx", "::-1, idx",
    "idx, 1:3", "idx, 0", "0, idx", "idx, None", "None, idx", "idx, ..., None", "[[0, 1]]", "[]", "np.array(1)",
    "mask", "row", "row, 1:", ":, [True, False, True, True]", "row, idx[:2]", "np.array([], dtype=int)", "~mask",
    "row, 0", "..., idx", "(0, 1), (1, 2)", "range(2)", "np.ix_([0, 2], [1, 3])", "True", "False", "np.uint8(1)",
    "idx.astype(np.int8)", "mask & False", "K[:3], K[1:]", "K[0]", "K[0]:, 1", "J - 1", "-J", ":, K", "1:, K[None]",
    "K[1], idx", "M", "A > 0", "M[:, 0]", "I % 3",
]  # fmt: skip
CUBE_ADVANCED = [
    "idx[:2] % 2", ":, idx", ":, idx, idx", ":, idx, 0", "0, :, idx", "0, idx", "idx % 2, :, idx", "..., idx",
    "grid % 2, :, 0", ":, 0, idx", "[1, 0], :, [2, 3]", "1:, None, idx, 1", "0, None, idx", ":, mask", "mask[:2, :3]",
    "..., mask[0]", "row[:2], :, 1", "None, idx % 2, :, None", "K % 2", ":, K", "K % 2, :, K", "0, ..., K",
    "K[1], :, idx % 2", ":, None, grid", "np.arange(2)[:, None], idx % 3", "K[1]", ":, K[1]", "..., K[0]",
]  # fmt: skip
INDEXED = [
    *(f"A[{i}]" for i in MATRIX_BASIC), *(f"T[{i}]" for i in CUBE_BASIC), *(f"A[{i}]" for i in MATRIX_ADVANCED),
    *(f"T[{i}]" for i in CUBE_ADVANCED), "B[K]", "B[K[1:], 2]", "V[K]", "V[K[0]]", "V[K > 0]", "I[idx]", "M[1]",
    "M[idx]", "C[1, ::2]", "S[()]", "S[None]", "S[...]", "W[-1]", "V[np.argmax(V)]",
    "A[np.arange(3), np.argmax(A, 1)]", "A[np.argsort(A[:, 0])]", "V[H[3]]", "V[U[0]]", "np.take(A, 5)",
    "np.take(A, [0, -1])", "np.take(A, idx, axis=0)", "np.take(A, K, 1)", "np.take(A, grid, axis=1)",
    "A.take(1, axis=1)", "np.take(A, [0, 5], 1, mode='wrap')", "np.take(A, [-9, 5], 1, mode='clip')",
    "np.take(V, K + 2, mode='clip')", "np.take_along_axis(A, np.argsort(A, 1), 1)",
    "np.take_along_axis(A, np.array([[0], [1], [2]]), 1)", "np.take_along_axis(A, K[None], 0)",
    "np.take_along_axis(A, np.array([3, 1]), None)", "np.take_along_axis(T, np.array([[[1]], [[0]]]), axis=1)",
    "np.compress([True, False, True], A, axis=0)", "np.compress(mask[0], V)", "np.extract(mask, A)",
    "A.compress(row, 0)", "[x for x in W]", "[x + 1 for x in P]", "list(A[0])", "0.5 in V", "sum(V)",
    "max(V[0], V[1])", "sorted(W)[0]",
]  # fmt: skip

REDUCING_METHODS = [
    "sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "argmax", "argmin", "cumsum", "cumprod",
]  # fmt: skip
METHODS = [
    *(f"A.{f}({x})" for f in REDUCING_METHODS for x in ("", "axis=0")), "A.sum(1, keepdims=True)", "A.std(ddof=1)",
    "A.argsort(0)", "A.clip(-1, 1)", "A.round(2)", "A.conj()", "C.conj()", "C.conjugate()", "A.dot(V)",
    "A.take([1, 2])", "A.repeat(2, axis=1)", "A.diagonal()", "A.trace()", "A.swapaxes(0, 1)", "X.squeeze()",
    "A.nonzero()",
    "L.searchsorted(S)", "A.ravel('F')", "A.flatten()", "A.copy()", "A.tolist()", "I.item(3)", "I[0, 0].item()",
    "M[1, 1].item()", "K.choose([V, -V, V])", "A.compress([True, False], 0)", "A.max(axis=1)", "A.T.mT", "int(I[0, 0])",
    "int(S * 10)", "bool(M[0, 0])", "range(K[0])", "[0, 1, 2][K[0]]", "float(3) * S", "A.argpartition(1)[:, 1]",
    "C.real", "C.imag", "C.real * 2", "A.flat[:3]", "2 in I", "list(reversed(W))", "divmod(S, 2)",
    "np.concatenate([V[V > 0], W])", "np.stack([A[M], D[M]])", "A[M] * D[M] + 1", "np.sin(V[V > 0])", "len(V[V > 0])",
    "[2 * x for x in V[V > 0]]", "V[V > 0][0]", "np.sum([S, V[0]])", "np.max([S, V[0]])", "f'{S:.2f}'",
]  # fmt: skip

CASES = [*METHODS, *UFUNCS, *CHOICES, *REDUCED, *SHAPES, *CREATED, *PRODUCTS, *LINALG, *SORTED, *INDEXED]
IS_OLD_NUMPY = tuple(map(int, np.__version__.split(".")[:2])) < (2, 2)
NEW = re.compile(r"matvec|vecmat|unstack|np\.astype|np\.pad\(A, \{|F \*\* np\.float64")


def flat(value: Any) -> list[Any]:
    """The arrays and numbers in a nested result."""
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def evaluated(expression: str, namespace: Any, samples: dict[str, Any]) -> list[Any]:
    """The results of an expression, where `np` stands for a namespace."""
    with np.errstate(all="ignore"):
        return flat(eval(expression, {"np": namespace, **CONSTANTS, **samples}))


def traced(expression: str, namespace: Any) -> list[Any]:
    """The results of an expression by way of a program."""
    names = sorted(set(re.findall(r"\b[A-Z]\b", expression)) & SAMPLES.keys())
    arguments = [SAMPLES[name] for name in names]
    builder = CodeBuilder([type_of(x) for x in arguments], arguments, shared=True)
    with building(builder):
        results = evaluated(expression, namespace, dict(zip(names, builder.inputs(), strict=True)))
        is_traced = [has_tracer(x) for x in results]
        outputs = [asarray(x) for x, t in zip(results, is_traced, strict=True) if t]
        program = builder.finish(outputs, "f").check()
    with np.errstate(all="ignore"):
        values = iter(program(*arguments, *builder.captures.values))
    return [next(values) if t else x for t, x in zip(is_traced, results, strict=True)]


def as_arrays(values: list[Any]) -> list[Any]:
    """Results as NumPy gives them, with Python's numbers as arrays."""
    return [np.asarray(x)[()] for x in values]


# What the installed NumPy does.
POSSIBLE = [c for c in CASES if not (IS_OLD_NUMPY and NEW.search(c))]


@tables.each(lambda expression: re.split(r"[([]", expression)[0], expression=POSSIBLE)
def test_traced_functions_agree_with_numpy(expression: str) -> None:
    expected = as_arrays(evaluated(expression, np, SAMPLES))
    for namespace in (np, ftrans.numpy):
        results = as_arrays(traced(expression, namespace))
        assert len(results) == len(expected)
        if any(x.dtype.kind in "OUV" for x in expected):
            assert [str(x) for x in results] == [str(x) for x in expected]
        else:
            assert_all_close(results, expected)
    assert_all_close_or_equal(as_arrays(evaluated(expression, ftrans.numpy, SAMPLES)), expected)


def assert_all_close_or_equal(results: list[Any], expected: list[Any]) -> None:
    """Assert that `ftrans.numpy` on arrays is NumPy itself."""
    for x, y in zip(results, expected, strict=True):
        np.testing.assert_array_equal(x, y)


# (a function of one array, the array, its gradient): where the maths leaves a choice, or formulas divide by zero
GRADIENTS: list[tuple[Callable[[Any], Any], list[float], list[float]]] = [
    (np.linalg.norm, [0.0, 0.0], [0.0, 0.0]),
    (lambda x: np.linalg.norm(x, 3), [0.0, 0.0], [0.0, 0.0]),
    (lambda x: np.linalg.norm(x, 1), [0.0, -2.0], [0.0, -1.0]),
    (np.linalg.vector_norm, [0.0, 0.0], [0.0, 0.0]),
    (np.std, [1.0, 1.0], [0.0, 0.0]),
    (np.logaddexp.reduce, [-np.inf, -np.inf], [0.0, 0.0]),
    (np.logaddexp.reduce, [-np.inf, 3.0], [0.0, 1.0]),
    (np.logaddexp.reduce, [1000.0, 1000.0], [0.5, 0.5]),
    (lambda x: np.sum(np.sinc(x)), [0.0, 1.0], [0.0, -1.0]),
    (np.max, [2.0, 2.0], [0.5, 0.5]),
    (lambda x: np.sum(np.clip(x, 0, 1)), [0.0, 0.5], [0.5, 1.0]),
    (lambda x: np.sum(np.abs(x)), [0.0, -3.0], [0.0, -1.0]),
    (np.prod, [0.0, 3.0], [3.0, 0.0]),
    (np.nanmean, [np.nan, 3.0], [0.0, 1.0]),
    (np.nanvar, [np.nan, 3.0], [0.0, 0.0]),
    (np.nanmax, [np.nan, 3.0], [0.0, 1.0]),
    (lambda x: np.sum(np.nan_to_num(x)), [np.inf, 3.0], [0.0, 1.0]),
    (lambda x: np.sum(np.log(x, out=np.zeros_like(x), where=x > 0)), [0.0, 2.0], [0.0, 0.5]),
    (lambda x: np.sum(np.divide(1.0, x, out=np.zeros_like(x), where=x != 0)), [0.0, 2.0], [0.0, -0.25]),
    (lambda x: np.sum(np.heaviside(x, 0.5)), [0.0, 2.0], [0.0, 0.0]),
    (lambda x: np.sum(x**2.5), [0.0, 1.0], [0.0, 2.5]),
    (lambda x: np.sum(x**0.0), [0.0, 1.0], [0.0, 0.0]),
    (np.median, [1.0, 5.0], [0.5, 0.5]),
    (lambda x: np.sort(x)[0], [5.0, 1.0], [0.0, 1.0]),
    (lambda x: np.interp(0.25, [0.0, 1.0], x), [5.0, 1.0], [0.75, 0.25]),
]


@pytest.mark.parametrize(("function", "x", "expected"), GRADIENTS)
def test_derivatives_are_finite_where_the_maths_is(
    function: Callable[[Any], Any], x: list[float], expected: list[float]
) -> None:
    np.testing.assert_allclose(ftrans.grad(function)(np.array(x)), expected, atol=1e-15)


# (what happens, a function of a 3 by 4 matrix, the exception, phrases of its message in order)
ERRORS: list[tuple[str, Callable[[Any], Any], type[Exception], str]] = [
    ("no rule", lambda x: np.packbits(x > 0), MissingRule, r"packbits has no rule in ftrans.*bits"),
    ("no rule for a ufunc", lambda x: np.isnat(x), MissingRule, "isnat has no rule in ftrans"),
    (
        "reduction to another dtype",
        lambda x: np.less.reduce(x),
        TypeError,
        r"less of f64\[3,4\] gives results of another",
    ),
    ("reduction in order", lambda x: np.arctan2.reduce(x, axis=(0, 1)), ValueError, "'arctan2' is not reorderable"),
    ("reduction of no elements", lambda x: np.power.reduce(x[:0]), ValueError, "power which has no identity"),
    ("segment out of range", lambda x: np.add.reduceat(x, [4]), IndexError, r"index 4 out-of-bounds in add\.reduceat"),
    ("in place at indices", lambda x: np.divide.at(x.astype(int), 0, 2), TypeError, r"Cannot cast.*\.astype"),
    ("transform of complex numbers", lambda x: np.fft.rfft(x * 1j), TypeError, r"c128\[3,4\]; write np\.fft\.fft"),
    ("transform of no points", lambda x: np.fft.fft(x, 0), ValueError, r"number of FFT data points \(0\)"),
    ("quantile by a method", lambda x: np.quantile(x, 0.5, method="best"), ValueError, "not a valid method.*hazen"),
    ("quantile out of range", lambda x: np.percentile(x, 101), ValueError, r"in the range \[0, 100\]"),
    ("quantile with weights", lambda x: np.quantile(x, 0.5, weights=x), ValueError, "'inverted_cdf' supports weights"),
    ("vectorize", lambda x: vectorize(lambda a: a if a > 1 else 0)(x), TypeError, r"first result.*give otypes="),
    ("degree of a fit", lambda x: np.polyfit(x[0], x[1], -1), ValueError, "expected deg >= 0"),
    ("partition", lambda x: np.partition(x, 4), ValueError, r"kth\(=4\) out of bounds \(4\)"),
    ("no attribute", lambda x: x.tobytes(), AttributeError, r"numpy\.ndarray\.tobytes"),
    ("broadcast", lambda x: x + np.ones(3), ValueError, r"operands of add.*f64\[3,4\] and f64\[3\]"),
    ("where", lambda x: np.where(x > 0, x, np.ones(3)), ValueError, r"operands of where.*f64\[3\]"),
    ("matmul", lambda x: x @ x, ValueError, r"matmul.*f64\[3,4\] and f64\[3,4\] do not fit"),
    ("dot", lambda x: np.dot(x, x), ValueError, r"dot.*f64\[3,4\] and f64\[3,4\] do not fit"),
    ("inner", lambda x: np.inner(x, x[0, :3]), ValueError, r"inner.*f64\[3,4\] and f64\[3\] do not fit"),
    ("tensordot", lambda x: np.tensordot(x, x, 1), ValueError, r"shape-mismatch.*f64\[3,4\]"),
    ("cross", lambda x: np.cross(x, x), ValueError, r"2 or 3 elements, not f64\[3,4\]"),
    ("solve", lambda x: np.linalg.solve(x, x), np.linalg.LinAlgError, r"square matrices.*f64\[3,4\]"),
    ("solve, sides", lambda x: np.linalg.solve(x[:, :3], x[0]), ValueError, r"right-hand sides.*f64\[3,3\]"),
    ("einsum sizes", lambda x: np.einsum("ij,jk", x, x), ValueError, "'j' stands for axes of sizes 4 and 3"),
    ("einsum result", lambda x: np.einsum("ij->ik", x), ValueError, "a subscript that no operand has: 'k'"),
    ("einsum subscripts", lambda x: np.einsum("i->i", x), ValueError, r"do not fit an operand of f64\[3,4\]"),
    ("einsum character", lambda x: np.einsum("i!->i", x), ValueError, "'!'.*is no letter"),
    ("einsum twice", lambda x: np.einsum("ij->ii", x), ValueError, "a subscript twice"),
    ("axis", lambda x: np.sum(x, 2), ValueError, "axis 2 is out of bounds for array of dimension 2"),
    ("axis twice", lambda x: np.sum(x, (0, -2)), ValueError, "duplicate value in 'axis'"),
    ("reshape", lambda x: x.reshape(5, -1), ValueError, r"cannot reshape array of shape \(3, 4\) into shape \(5, 2\)"),
    ("concatenate", lambda x: np.concatenate([x, x[:, :2]]), ValueError, r"must agree.*f64\[3,4\], f64\[3,2\]"),
    ("concatenate scalars", lambda x: np.concatenate([x[0, 0], x[0, 1]]), ValueError, r"use np\.stack"),
    ("stack", lambda x: np.stack([x[0], x[:, 0]]), ValueError, r"same shape; got \[\(3,\), \(4,\)\]"),
    ("split", lambda x: np.split(x, 2), ValueError, "equal division: 3 elements in 2 parts"),
    ("squeeze", lambda x: np.squeeze(x, 0), ValueError, r"not equal to one: axis 0 of f64\[3,4\]"),
    ("repeat", lambda x: np.repeat(x, [1, 2], 0), ValueError, r"counts.*axis 0|axis 0 of f64\[3,4\]"),
    ("pad", lambda x: np.pad(x, 1, "mirror"), ValueError, "mode 'mirror' is not supported"),
    ("no elements", lambda x: np.max(x[:0]), ValueError, "maximum which has no identity"),
    ("no elements, position", lambda x: np.argmax(x[:0]), ValueError, "empty sequence"),
    ("order of complex numbers", lambda x: np.searchsorted(x[0] * 1j, 1), TypeError, "takes real numbers"),
    ("bits of floats", lambda x: x & 1, TypeError, "bitwise_and is not defined for operands of dtype float64, int"),
    ("out of range for a dtype", lambda x: x.astype(np.uint8) + 300, OverflowError, "300 out of bounds for uint8"),
    (
        "integers to negative powers",
        lambda x: x.astype(int) ** -1,
        ValueError,
        r"negative integer powers.*x \*\* -1\.0",
    ),
    ("casting", lambda x: x.astype(int, casting="safe"), TypeError, "according to the rule 'safe'"),
    ("truth of an array", lambda x: x and 1, ValueError, r"12 elements is ambiguous; use \.any\(\) or \.all\(\)"),
    ("length of a number", lambda x: len(x[0, 0]), TypeError, r"len\(\) of unsized object"),
    ("iteration over a number", lambda x: list(x[0, 0]), TypeError, "iteration over a 0-d"),
    ("item of an array", lambda x: x.item(), ValueError, "can only convert an array of size 1"),
    ("float as a length", lambda x: range(x[0, 0]), TypeError, "integer scalar can be an index"),
    ("bins", lambda x: np.histogram(x, 0), ValueError, "`bins` must be positive"),
    ("sequence into an operator", lambda x: x + "a", TypeError, "unsupported operand"),
]


@pytest.mark.parametrize(
    ("function", "error", "message"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS]
)
def test_bad_calls_say_why(function: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        ftrans.trace(function)(SAMPLES["A"])
    if "unsupported operand" not in message:
        text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
        assert re.search(r"test_numpy_face\.py:\d+", text)


def test_every_public_function_is_one_of_numpy_and_documented() -> None:
    for name in ftrans.numpy.__all__:
        value = getattr(ftrans.numpy, name)
        assert hasattr(np, name) or IS_OLD_NUMPY, name
        assert not callable(value) or value.__doc__, name
    for name in ftrans.numpy.linalg.__all__:
        assert hasattr(np.linalg, name), name


def test_numpy_functions_have_their_traced_form_in_the_namespace() -> None:
    for theirs, ours in ((np, ftrans.numpy), (np.linalg, ftrans.numpy.linalg), (np.fft, ftrans.numpy.fft)):
        for name, function in vars(theirs).items():
            if not name.startswith("_") and callable(function) and not isinstance(function, type) and function in TABLE:
                assert getattr(ours, name) is not function, name


def test_bfloat16_is_promoted_as_arithmetic_promotes_it() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1.0, 2.0, 4.0], ml_dtypes.bfloat16)
    for f in (
        lambda x: 3.006 * x,
        lambda x: x + 3,
        lambda x: x * np.float32(2),
        lambda x: x - np.ones(3),
        lambda x: np.maximum(x, 1.5),
        lambda x: np.var(x),
        lambda x: np.std(x),
    ):
        (traced,), plain = ftrans.trace(f)(x)(x), f(x)
        assert traced.dtype == np.asarray(plain).dtype
        np.testing.assert_allclose(np.float64(traced), np.float64(plain), rtol=1e-2)


def test_piecewise_without_values_takes_functions_of_each_element() -> None:
    def f(x: Any) -> Any:
        mean = np.mean(x)
        return np.piecewise(x, [x < 0, x >= 0], [lambda v: mean * v**2, np.sqrt])

    x = np.array([-1.0, 4.0, 9.0])
    np.testing.assert_allclose(ftrans.jit(f)(x), f(x))
    np.testing.assert_allclose(ftrans.vmap(f)(np.stack([x, -x])), [f(x), f(-x)])
    gradient = ftrans.grad(lambda x: np.sum(f(x)))
    np.testing.assert_allclose(ftrans.jit(gradient)(x), gradient(x))
    for mixing in (np.cumsum, lambda v: v - np.mean(v), np.max):
        np.testing.assert_allclose(
            ftrans.trace(lambda x, g=mixing: np.piecewise(x, [x > 0], [g]))(x)(x)[0], np.piecewise(x, [x > 0], [mixing])
        )
        with pytest.raises(TypeError, match="more than act on each element"):
            ftrans.jit(lambda x, g=mixing: np.piecewise(x, [x > 0], [g]))(x)


def test_correlate_of_a_shorter_with_a_longer_vector() -> None:
    x, y = np.array([1.0, 2.0 + 1j]), np.array([3.0, -1j, 5.0, 7.0])
    for mode in ("full", "same", "valid"):
        (found,) = ftrans.trace(lambda x, mode=mode: np.correlate(x, y, mode))(x)(x)
        np.testing.assert_allclose(found, np.correlate(x, y, mode))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("whole", [round, math.floor, math.ceil, math.trunc])
def test_integers_of_python(whole: Callable[[Any], int], dtype: Any) -> None:
    """They are integers, select elements, keep the dtype of what they meet, and have no derivative."""
    table = np.arange(10.0, dtype=dtype)

    def f(x: Any, number: Any) -> Any:
        return (x - whole(number)) ** 2 + table[whole(number)] * x

    for number in (2.5, 3.25, 0.75, 1.0):
        x = dtype(number)
        expected = f(x, number)
        for found in (ftrans.trace(lambda x: f(x, x))(x)(x)[0], ftrans.jit(lambda x: f(x, x))(x)):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected)
        np.testing.assert_allclose(ftrans.grad(lambda x: f(x, x))(x), 2 * (number - whole(number)) + whole(number))
