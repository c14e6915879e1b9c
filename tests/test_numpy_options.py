"""Functions of NumPy on traced values, with the options that they have: the values are NumPy's, in every dtype."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import tables
from checks import assert_close
from folding import Loop

import ftrans as ft
import ftrans.numpy as fnp
from ftrans.base import tree

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 5))
WITH_NAN = np.where(X > 0.9, np.nan, X)
INTEGERS = RNG.integers(0, 7, (3, 5))
MASK = RNG.integers(0, 2, (3, 5)).astype(bool)
COMPLEX = X + 1j * X[::-1]
ANGLES = np.cumsum(RNG.normal(size=(2, 7)) * 3, 1)
WEIGHTS = RNG.uniform(0.5, 2, 5)
UFUNCS = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "hypot",
    "arctan2", "power", "copysign", "fmod", "remainder", "floor_divide", "heaviside", "logical_and", "logical_or",
    "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm",
)  # fmt: skip
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip

# NumPy's own types of errors, and what is as good.
ERRORS_OF_NUMPY = {np._core._exceptions.UFuncTypeError: TypeError}

Call = Callable[..., Any]


class Case(NamedTuple):
    """A call, its operands, and a name for it."""

    name: str
    call: Call
    operands: tuple[Any, ...]


CASES: list[Case] = []


def case(name: str, call: Call, *operands: Any) -> None:
    """Add a call that has to give what NumPy gives."""
    kinds = "-".join(np.asarray(x).dtype.name for x in operands)
    CASES.append(Case(f"{name}-{kinds}", call, operands))


def outcome(call: Call, operands: tuple[Any, ...]) -> list[Any] | Exception:
    """The results of NumPy, or the error that it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return [np.asarray(y) for y in tree.flatten(call(*(np.array(x) for x in operands)))[0]]
        except Exception as error:
            return error


# Methods of ufuncs

for name in UFUNCS:
    ufunc = getattr(np, name)
    loop = Loop(ufunc)
    for array in (np.abs(X), np.abs(X).astype(np.float32), INTEGERS + 1, MASK):
        if isinstance(outcome(ufunc.reduce, (array,)), Exception):
            continue
        for options in (
            {},
            {"axis": 1, "keepdims": True},
            {"axis": None},
            {"initial": 2, "axis": -1},
            {"initial": 1, "where": MASK},
            {"where": MASK},
        ):
            case(f"{name}.reduce {list(options)}", lambda x, f=loop, o=options: f.reduce(x, **o), array)
        case(f"{name}.accumulate", lambda x, f=loop: f.accumulate(x, axis=1), array)
        case(f"{name}.reduceat", lambda x, f=loop: f.reduceat(x, [0, 2, 1, 1, 4], axis=1), array)
        case(f"{name}.outer", lambda x, f=ufunc: f.outer(x[0], x), array)
        case(f"{name}.reduce of none", lambda x, f=loop: f.reduce(x[:0]), array)
case("less.reduce", np.less.reduce, MASK)
case("less.reduce", np.less.reduce, X)
for name in ("add", "maximum", "logaddexp", "subtract"):
    for axis in (None, (0,), (1,), (0, 1), -1, 7):
        ufunc = getattr(np, name)
        case(f"{name}.accumulate axis={axis}", lambda x, f=ufunc, a=axis: f.accumulate(x[0], axis=a), X)
        case(f"{name}.accumulate axis={axis}", lambda x, f=ufunc, a=axis: f.accumulate(x, axis=a), X)
        case(f"{name}.reduceat axis={axis}", lambda x, f=ufunc, a=axis: f.reduceat(x[0], [0, 2], axis=a), X)
for bias in (None, False, True, 0, 1):
    case(f"cov bias={bias}", lambda x, b=bias: np.cov(x, bias=b), X)
case("var mean=None", lambda x: (np.var(x, mean=None), np.std(x, 1, mean=None)), X)
for rcond in (None, -1, 0, 1e-6, 0.5, 1, 2):
    case(f"lstsq rcond={rcond}", lambda x, r=rcond: np.linalg.lstsq(x.T, x[0], rcond=r)[0], X)


def at(ufunc: np.ufunc, index: Any) -> Call:
    """`ufunc.at` on a copy of the first operand."""

    def call(x: Any, *values: Any) -> Any:
        y = x.copy()
        ufunc.at(y, index, *values)
        return y

    return call


MANY = RNG.integers(0, 3, 40)
for name in ("add", "multiply", "maximum", "fmin", "logaddexp", "power", "arctan2", "subtract", "hypot", "divide"):
    ufunc = getattr(np, name)
    case(f"{name}.at", at(ufunc, ([0, 2, 0, 0], [1, 0, 1, 2])), np.abs(X), np.abs(X[0, :4]))
    case(f"{name}.at rows", at(ufunc, [0, 2, 0]), np.abs(X), np.abs(X[:1]) + 1)
    case(f"{name}.at many times", at(ufunc, MANY), np.abs(X[:, 0]), RNG.uniform(0.8, 1.2, 40))
for name in ("bitwise_xor", "gcd", "multiply"):
    case(f"{name}.at", at(getattr(np, name), (slice(None), [0, 0, 1])), INTEGERS, np.array([3, 4, 6]))
case("negative.at", at(np.negative, [0, 2, 0]), X)
case("negative.at mask", at(np.negative, MASK), X)
case("logical_or.at", at(np.logical_or, [0, 0]), MASK, MASK[1])

# Order

for array in (X, WITH_NAN, X.astype(np.float32), INTEGERS):
    for method in METHODS:
        for q in (0.0, 0.4, [0.1, 0.5, 1.0]):
            case(f"quantile {method} {q}", lambda x, m=method, q=q: np.quantile(x, q, axis=1, method=m), array)
            case(f"nanquantile {method} {q}", lambda x, m=method, q=q: np.nanquantile(x, q, axis=0, method=m), array)
    for axis in (None, 0, (0, 1)):
        case(f"median {axis}", lambda x, a=axis: np.median(x, a, keepdims=True), array)
        case(f"nanmedian {axis}", lambda x, a=axis: np.nanmedian(x, a, keepdims=True), array)
        case(f"percentile {axis}", lambda x, a=axis: np.percentile(x, 30, a), array)
    for q in (0.0, 0.37, [0.2, 1.0]):
        case(
            f"quantile weights {q}",
            lambda x, w, q=q: np.quantile(x, q, axis=1, method="inverted_cdf", weights=w),
            array,
            WEIGHTS,
        )
        case(
            f"nanquantile weights {q}",
            lambda x, w, q=q: np.nanquantile(x, q, method="inverted_cdf", weights=w),
            array,
            np.tile(WEIGHTS, (3, 1)),
        )
    case("nanargmax", lambda x: np.nanargmax(x, axis=1, keepdims=True), array)
    case("nanargmin", np.nanargmin, array)
    case("sort_complex", np.sort_complex, array)
    case("lexsort", np.lexsort, array)
    case("lexsort axis", lambda x: np.lexsort((x, x[::-1]), axis=0), array)
    case("digitize", lambda x: np.digitize(x, [-1.0, 0.0, 2.0]), array)
    case("digitize decreasing", lambda x, e: np.digitize(x, e, right=True), array, np.array([2.0, 0.0, -1.0]))
PARTS = np.array([1 + 1j, np.nan + 1j, complex(1, np.nan), 1 - 1j, 5j, complex(np.nan, 0), complex(0, np.nan)])
for array in (COMPLEX, PARTS):
    case("sort", np.sort, array)
    case("argsort", lambda x: np.argsort(x, stable=True), array)
    case("sort_complex", np.sort_complex, array)
case("median", lambda x: np.median(x, 1), COMPLEX)
case("quantile", lambda x: np.quantile(x, 0.5), COMPLEX)

# Histograms

for array in (X, X.astype(np.float32), INTEGERS):
    for bins in (4, [-1.0, 0.0, 0.5, 2.0], "sturges"):
        for limits in (None, (-1, 2)):
            for density in (False, array is X):
                case(
                    f"histogram {bins} {limits} {density}",
                    lambda x, b=bins, r=limits, d=density: np.histogram(x, b, r, d),
                    array,
                )
case("histogram traced edges", lambda x, e, w: np.histogram(x, e, weights=w), X, np.array([-1.0, 0.0, 1.0]), np.abs(X))
case("histogram of one value", lambda x: np.histogram(x, 3), np.full(4, 2.0))
for bins in (3, (3, 4), [[-1, 0, 1], [-2, 0, 0.5, 2]], [[-1.0, 0.0, 1.0], 4]):
    for limits in (None, [(-1, 1), (-2, 2)]):
        case(
            f"histogramdd {bins} {limits}",
            lambda x, w, b=bins, r=limits: np.histogramdd(x, b, r, True, w),
            X[:, :2],
            WEIGHTS[:3],
        )
        case(f"histogram2d {bins} {limits}", lambda x, y, b=bins, r=limits: np.histogram2d(x, y, b, r), X[0], X[1])

# Joining, padding, places

for axis in (None, 0, 1):
    for where in (0, -1, [1, 2], [1, 1, 3], slice(0, 3, 2), [2], [-1, 0], []):
        for values in (7.5, X[0, :1], X[0, :2], X[:, :1], X[:1], X[0]):
            case(
                f"insert {axis} {where} {np.shape(values)}",
                lambda x, v, a=axis, w=where: np.insert(x, w, v, a),
                X,
                np.asarray(values),
            )
        case(f"delete {axis} {where}", lambda x, a=axis, w=where: np.delete(x, w, a), X)
    case(f"append {axis}", lambda x, y, a=axis: np.append(x, y, a), X, X[:, :2])
PADDED = np.pad(X, ((1, 2), (0, 3)))
if np.lib.NumpyVersion(np.__version__) >= "2.2.0":
    for axis in (None, 0, 1):
        case(f"trim_zeros {axis}", lambda x, a=axis: np.trim_zeros(x, "fb", a), PADDED)
        case(f"trim_zeros back {axis}", lambda x, a=axis: np.trim_zeros(x, "b", a), PADDED)
case("trim_zeros of zeros", np.trim_zeros, np.zeros(3))
PAD_MODES: list[tuple[str, dict[str, Any]]] = [
    ("constant", {"constant_values": ((1, 2), (3, 4))}),
    ("edge", {}),
    ("linear_ramp", {"end_values": (5, -4)}),
    ("maximum", {"stat_length": ((1, 2), (2, 2))}),
    ("minimum", {}),
    ("mean", {"stat_length": 2}),
    ("median", {}),
    ("reflect", {}),
    ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {}),
    ("symmetric", {"reflect_type": "odd"}),
    ("wrap", {}),
    ("edge", {"stat_length": 1}),
]
for array in (X, INTEGERS, X[:1]):
    for width in (1, ((1, 2), (3, 0)), ((7, 9), (6, 5))):
        for mode, options in PAD_MODES:
            case(
                f"pad {width} {mode} {list(options)}",
                lambda x, w=width, m=mode, o=options: np.pad(x, w, m, **o),
                array,
            )
for order in "CF":
    case(f"ravel_multi_index {order}", lambda i, o=order: np.ravel_multi_index((i, i), (7, 8), order=o), INTEGERS)
    case(f"unravel_index {order}", lambda i, o=order: np.unravel_index(i, (2, 4), order=o), INTEGERS)
    for mode in ("wrap", "clip", ("wrap", "clip")):
        case(
            f"ravel_multi_index {mode} {order}",
            lambda i, o=order, m=mode: np.ravel_multi_index((i, i), (4, 5), m, o),
            INTEGERS - 3,
        )
case("diag_indices_from", lambda x: np.diag_indices_from(x[:, :3]), X)
case("tril_indices_from", lambda x: np.tril_indices_from(x, 1), X)
case("triu_indices_from", np.triu_indices_from, X)

# Sets

for name in ("intersect1d", "setdiff1d", "setxor1d", "union1d"):
    function = getattr(np, name)
    case(name, function, np.array([3.0, 1.0, 3.0, 2.5]), np.array([2.5, 4.0, 1.0]))
    case(name, function, INTEGERS, INTEGERS[:2] + 2)
    if name != "union1d":
        case(f"{name} unique", lambda x, y, f=function: f(x, y, True), np.array([3.0, 1.0]), np.array([1.0, 4.0]))
case("intersect1d indices", lambda x, y: np.intersect1d(x, y, return_indices=True), INTEGERS, INTEGERS[1])
REPEATED = np.array([3.0, 1.0, 3.0, np.nan, 2.0, np.nan])
case("unique_all", lambda x: tuple(np.unique_all(x)), REPEATED)
case("unique_counts", lambda x: tuple(np.unique_counts(x)), REPEATED)
case("unique_inverse", lambda x: tuple(np.unique_inverse(x)), INTEGERS)
case("unique_values", lambda x: np.sort(np.unique_values(x)), REPEATED)

# Statistics and signals

for options in (
    {},
    {"bias": True},
    {"ddof": 2},
    {"fweights": [1, 2, 3, 1, 2]},
    {"aweights": WEIGHTS},
    {"fweights": [1, 2, 3, 1, 2], "aweights": WEIGHTS, "ddof": 0},
    {"fweights": [1.5] * 5},
    {"aweights": [-1.0] * 5},
    {"aweights": [1.0]},
    {"ddof": 0.5},
    {"fweights": [1] * 5, "ddof": 7},
    {"rowvar": False},
    {"dtype": np.float32},
):
    for array in (X, COMPLEX, INTEGERS):
        if "dtype" in options and array is COMPLEX:
            continue
        case(f"cov {list(options)}", lambda x, o=options: np.cov(x, **o), array)
        case(f"cov y {list(options)}", lambda x, y, o=options: np.cov(x, y, **o), array, X[:1])
for array in (X, COMPLEX, INTEGERS, X[0]):
    case("corrcoef", np.corrcoef, array)
    for axis, weights in ((None, None), (1, WEIGHTS), (-1, WEIGHTS), (None, WEIGHTS), (0, WEIGHTS)):
        case(f"average {axis}", lambda x, a=axis, w=weights: np.average(x, a, w, True), array)
for period in (2 * np.pi, 4, 3.5, 5):
    for array in (ANGLES, ANGLES.astype(np.float32), np.round(2 * ANGLES).astype(int)):
        case(f"unwrap {period}", lambda x, p=period: np.unwrap(x, period=p), array)
        case(f"unwrap discont {period}", lambda x, p=period: np.unwrap(x, 3, 0, period=p), array)
PLACES, POINTS = np.array([-0.5, 0.2, 1.7, 3.9, 5.0]), np.array([0.0, 1.0, 2.5, 4.0])
for values in (X[0, :4], COMPLEX[0, :4], INTEGERS[0, :4], X[0, :4].astype(np.float32)):
    for options in ({}, {"left": -1, "right": 3.0}, {"period": 3.3}, {"period": 0}, {"left": 1j}):
        case(f"interp {options}", lambda x, p, f, o=options: np.interp(x, p, f, **o), PLACES, POINTS, values)
    case("interp one point", np.interp, PLACES, POINTS[:1], values[:1])
for edge_order in (1, 2):
    for array in (X, INTEGERS, INTEGERS.astype(np.uint8), X.astype(np.float32), COMPLEX):
        case(f"gradient {edge_order}", lambda x, e=edge_order: np.gradient(x, edge_order=e), array)
        case(
            f"gradient coordinates {edge_order}",
            lambda x, e=edge_order: np.gradient(x, 0.5, [0, 1, 3, 3.5, 5], edge_order=e),
            array,
        )
for left, right in ((X[:, :3], X[:, 1:4]), (X[:, :2], X[:, 1:4]), (X[:, :3], X[:, :2]), (X[:, :2], X[:, 1:3])):
    # Vectors of two elements are deprecated, and newer versions refuse them.
    if not isinstance(outcome(np.cross, (left, right)), Exception):
        case(f"cross {left.shape[1]} {right.shape[1]}", np.cross, left, right)

# Parts of numbers, polynomials

for array in (X, INTEGERS, np.array([0.0, -0.0, np.inf, np.nan, 5e-324, 1e308, -3.0])):
    case("frexp", np.frexp, array)
    case("i0", np.i0, array)
case("spacing", np.spacing, np.array([0.0, -0.0, np.inf, np.nan, 5e-324, 1e308, -3.0]))
case("gcd", np.gcd, INTEGERS, INTEGERS[0])
case("lcm", np.lcm, INTEGERS, INTEGERS[0])
case("bitwise_count", np.bitwise_count, INTEGERS - 3)
for first, second in (([1.0, -2.5, 0.5, 0.7], [2.0, 0.3]), ([1, 2, 3], [2, 1]), ([0.0, 1.0], [0.0, 3.0, 0.0])):
    for name in ("polyadd", "polysub", "polymul", *(["polydiv"] if first[0] else [])):
        case(name, getattr(np, name), np.array(first), np.array(second))
        case(name, getattr(np, name), np.array(second), np.array(first))
for array in (np.array([1.0, 2.0, 2.0]), np.array([1 + 1j, 1 - 1j, 2]), np.array([1, 2]), X[:, :3], np.zeros(0)):
    case("poly", np.poly, array)
for array in (np.zeros(3), np.array([2.0]), np.array([0.0, 2.0, 3.0, 0.0]), np.array([1, 2, 3])):
    case("roots", lambda p: np.sort_complex(np.roots(p)), array)
for order in (0, 1, 2, 4):
    case(f"polyder {order}", lambda p, m=order: np.polyder(p, m), np.array([1, 2, 3]))
    case(f"polyint {order}", lambda p, m=order: np.polyint(p, m, 2.0), np.array([1, 2, 3]))

# Sequences

for start, stop in ((1.0, 8.0), (-1.0, -8.0), (-1.0, 1.0), (0.0, 2.0), (2, 0), ([1.0, 2.0], [3, -3])):
    for options in ({}, {"num": 1}, {"endpoint": False, "axis": -1}, {"dtype": np.complex128}):
        case(
            f"geomspace {start} {stop} {list(options)}",
            lambda x, y, o=options: np.geomspace(x, y, **{"num": 4, **o}),
            np.array(start),
            np.array(stop),
        )
case("geomspace to infinity", lambda x, y: np.geomspace(x, y, 4), np.array(1.0), np.array(np.inf))
for start, stop in ((np.float32(1.5), 2), (np.float16(1.5), np.uint8(2)), (np.complex64(1j), True), (np.int32(1), 4)):
    for num in (0, 1, 3):
        case(
            f"linspace {num} {type(start).__name__}",
            lambda x, y, n=num: np.linspace(x, y, n, retstep=True),
            np.array(start),
            np.array(stop),
        )

# Numbers as lines of one element, arrays without elements

NUMBER, NOTHING = np.array(2.0), np.zeros((0, 3), np.float32)
for axis in (0, -1, 1):
    for name in (
        "sum", "prod", "max", "min", "ptp", "any", "all", "count_nonzero", "argmax", "argmin", "argsort", "cumsum",
        "nansum", "nanmean", "nanvar", "nanargmax", "squeeze", "mean", "sort", "median",
    ):  # fmt: skip
        function = getattr(np, name)
        case(f"{name} {axis}", lambda x, f=function, a=axis: f(x, axis=a), NUMBER)
    case(f"maximum.reduce {axis}", lambda x, a=axis: np.maximum.reduce(x, a), NUMBER)
    case(f"take {axis}", lambda x, a=axis: np.take(x, [0, 0], a), NUMBER)
    case(f"repeat {axis}", lambda x, a=axis: np.repeat(x, 3, a), NUMBER)
    case(f"compress {axis}", lambda x, a=axis: np.compress([True], x, a), NUMBER)
    for name in ("median", "nanmedian", "mean", "sum", "trapezoid", "partition", "quantile", "nanquantile"):
        function, more = getattr(np, name), {"partition": (1,), "quantile": (0.3,), "nanquantile": (0.3,)}.get(name, ())
        case(f"{name} {axis}", lambda x, f=function, a=axis, m=more: f(x, *m, axis=a), NOTHING)
case("trapezoid of none", lambda x: np.trapezoid(x, x), NOTHING[:, 0])
case("histogram of none", np.histogram, NOTHING)
case("nan_to_num of a strong number", lambda x, y: np.nan_to_num(x, nan=y), WITH_NAN.astype(np.float32), NUMBER)
case("diff 0", lambda x: np.diff(x, 0), NUMBER)

# Dtypes of steps in between, and of Python numbers that are operands of products

for array in (X.astype(np.float32), COMPLEX, INTEGERS):
    for dtype in (np.float32, np.complex64):
        case("var dtype", lambda x, t=dtype: np.var(x, dtype=t), array)
        case("std dtype", lambda x, t=dtype: np.std(x, dtype=t), array)
    case("dot number", lambda x: (np.dot(x, 2), np.inner(2, x), np.einsum("...,->...", x, 2)), array)
    case("quantile of an integer", lambda x: (np.quantile(x, 1), np.quantile(x, True)), array)
    case("einsum casting", lambda x: np.einsum("ij,ij->i", x, x, dtype=np.float32), array)
    case("einsum unsafe", lambda x: np.einsum("ij,ij->i", x, x, dtype=np.float32, casting="unsafe"), array)
case("nanquantile of a line", lambda x: np.nanquantile(x, np.float32(0.3)), X[0].astype(np.float32))
for less in (1, 3, 4):
    case(f"nanvar {less}", lambda x, d=less: (np.nanvar(x, 0, ddof=d), np.nanstd(x, 0, ddof=d)), WITH_NAN)
case("pad mean", lambda x: np.pad(x, 1, "mean"), MASK)
case("vecdot keepdims", lambda x: np.vecdot(x, x, keepdims=True), X)
case("piecewise of a number", lambda x: np.piecewise(x, x > 0, [lambda v: v * 3, 1]), NUMBER)

# What is wrong in NumPy is wrong here

ZEROS, LINE = np.zeros(5), np.arange(5.0)
case("average", lambda x, w: np.average(x, weights=w), LINE, ZEROS)
case("average in part", lambda x, w: np.average(x, 1, weights=w), X, np.where(MASK[:, :1], 0, np.ones((3, 5))))
case("average of plain weights", lambda x: np.average(x, 1, np.zeros(5)), X)
case("cov", lambda x, w: np.cov(x, aweights=w), LINE, ZEROS)
case("quantile", lambda x, w: np.quantile(x, 0.5, weights=w, method="inverted_cdf"), LINE, -WEIGHTS)
for q in (-0.1, 1.1, np.nan):
    case("quantile", np.quantile, LINE, np.array(q))
case("percentile", np.percentile, LINE, np.array([20.0, 120.0]))
case("var", lambda x: np.var(x, ddof=1, correction=1), LINE)
case("nanmean", lambda x: np.nanmean(x, dtype=int), LINE)
case("cumulative_sum", np.cumulative_sum if hasattr(np, "cumulative_sum") else np.cumsum, X)
case("ediff1d", lambda x: np.ediff1d(x, to_end=1.5), INTEGERS)
case("ediff1d", np.ediff1d, MASK)
case("bincount", np.bincount, np.array([0, -1]))
case("bincount", np.bincount, np.array([0, 1]), np.array([1.0]))
case("bincount", np.bincount, np.array([0, 1]), np.array([1j, 1.0]))
case("digitize", lambda x: np.digitize(x, [0, 2, 1]), LINE)
case("histogram", np.histogram, WITH_NAN)
case("vander", np.vander, X)
case("interp", np.interp, COMPLEX, LINE, LINE)
case("interp", np.interp, X, LINE, LINE[:4])
case("interp", np.interp, X, LINE[:0], LINE[:0])
case("reshape", lambda x: np.reshape(x, (-1, -1)), LINE[:1])
case("vsplit", lambda x: np.vsplit(x, 1), LINE)
case("dsplit", lambda x: np.dsplit(x, 1), X)
case("insert", lambda x: np.insert(x, 0, 1j), LINE)
case("choose", lambda x: np.choose([0, 2], [x, x]), LINE[:2])
case("correlate", np.correlate, NUMBER, LINE)


@pytest.mark.filterwarnings("ignore")
@tables.each(lambda case: case.name.partition("-")[0], case=CASES)
def test_values_are_those_of_numpy(case: Case) -> None:
    _, call, operands = case
    expected = outcome(call, operands)
    if isinstance(expected, Exception):
        with pytest.raises(ERRORS_OF_NUMPY.get(type(expected), type(expected))):
            ft.trace(call)(*operands)(*operands)
        return
    with np.errstate(all="ignore"):
        found = ft.trace(call)(*operands)(*operands)
    assert len(found) == len(expected)
    for y, z in zip(found, expected, strict=True):
        assert_close(y, z[()])


# Compiled, and where values are not known

WHOLE = (
    lambda x, i: np.lexsort((i, i[::-1])),
    lambda x, i: np.nanargmax(np.where(x > 0.5, np.nan, x), 1),
    lambda x, i: np.digitize(x, [1.0, 0.0, -1.0]),
    lambda x, i: np.histogram(x, [-1.0, 0.0, 1.0], weights=x)[0],
    lambda x, i: np.gcd(i, i[0]),
    lambda x, i: np.lcm.reduce(i + 1),
    lambda x, i: np.bitwise_count(i),
    lambda x, i: np.frexp(x),
    lambda x, i: np.bitwise_xor.accumulate(i, 1),
    lambda x, i: np.power.accumulate(np.abs(x) + 0.5, 1),
    lambda x, i: np.unravel_index(np.ravel_multi_index((i, i), (7, 7)), (7, 7)),
    lambda x, i: np.sort(x + 1j * x[::-1], 1),
    lambda x, i: np.pad(x, 2, "symmetric", reflect_type="odd"),
)


def test_compiled() -> None:
    def everything(x: Any, i: Any) -> Any:
        return [call(x, i) for call in WHOLE]

    found, expected = (tree.flatten(f(X, INTEGERS))[0] for f in (ft.jit(everything), everything))
    for y, z in zip(found, expected, strict=True):
        assert_close(y, np.asarray(z)[()], looseness=10)


def updated(x: Any, index: Any, values: Any) -> Any:
    """What is left of `x` after each of `values` has multiplied an element."""
    y = fnp.array(x)
    np.multiply.at(y, index, values)
    return y


def test_update_at_traced_places() -> None:
    places = np.array([[0, 2, 0, 0], [3, 3, 1, 0]])
    x, values = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 2.0, 0.0, 3.0])
    expected = [updated(x, p, values) for p in places]
    assert_close(ft.vmap(lambda p: updated(x, p, values))(places), np.stack(expected))

    def gradients(place: Any) -> Any:
        return ft.grad(lambda x, v: np.sum(updated(x, place, v) ** 2), argnums=(0, 1))(x, values)

    apart = [gradients(p) for p in places]
    # The third factor is 0, and so are the derivatives in all that it multiplies, but not its own.
    assert_close(apart[0][0], np.array([0.0, 4.0, 24.0, 8.0]))
    assert_close(apart[0][1], np.array([0.0, 36.0, 0.0, 0.0]))
    for y, z in zip(ft.jit(gradients)(places[0]), apart[0], strict=True):
        assert_close(y, z)
    for together in (ft.vmap(gradients), ft.jit(ft.vmap(gradients))):
        for y, z in zip(together(places), zip(*apart, strict=True), strict=True):
            assert_close(y, np.stack(z))


def test_product_with_zeros_at_one_place() -> None:
    gradient = ft.grad(lambda v: updated(np.ones(2) * v[0] / v[0], np.zeros(3, int), v)[0])
    np.testing.assert_allclose(gradient(np.array([2.0, 0.0, 5.0])), [0.0, 10.0, 0.0], atol=1e-15)


def test_long_fold_is_differentiated_to_any_order() -> None:
    x = RNG.uniform(0.95, 1.05, 20)

    def tower(x: Any) -> Any:
        return np.power.reduce(x)

    # ((x0 ** x1) ** x2) ... is x0 to the product of the others.
    expected = ft.hessian(lambda x: x[0] ** np.prod(x[1:]))(x)
    for hessian in (ft.hessian(tower), ft.jacrev(ft.grad(tower)), ft.jit(ft.jacfwd(ft.grad(tower)))):
        assert_close(hessian(x), expected, looseness=100)


# Functions of Python


def test_vectorize() -> None:
    calls: list[Any] = []

    @fnp.vectorize
    def ramp(a: Any, slope: Any = 1.0) -> Any:
        calls.append(a)
        return a * a * slope if a > 0 else 0.0 * a

    x = np.array([[-1.0, 2.0], [3.0, -4.0]])
    assert_close(ft.grad(lambda x: np.sum(ramp(x, slope=2.0)))(x), np.array([[0.0, 8.0], [12.0, 0.0]]))
    assert len(calls) == 4
    assert_close(ramp(x), np.array([[0.0, 4.0], [9.0, 0.0]]))
    split = fnp.vectorize(lambda a, n: (a**n, -a), otypes=[np.float32, float], excluded=[1])
    results = ft.trace(lambda x: split(x, 3))(x)(x)
    assert_close(results[0], (x**3).astype(np.float32))
    assert_close(results[1], -x)
    norms = fnp.vectorize(lambda v, w: np.linalg.norm(v) * w, signature="(n),()->()")
    assert_close(ft.jacobian(norms)(x, 2.0), ft.jacobian(lambda x: 2 * np.linalg.norm(x, axis=1))(x))
    with pytest.raises(ValueError, match="inconsistent size for core dimension 'n'"):
        ft.trace(fnp.vectorize(np.dot, signature="(n),(n)->()"))(x, np.ones(3))


def test_vectorize_of_numpy() -> None:
    x = np.array([-1.0, 2.0, 3.0])
    assert_close(ft.grad(lambda x: np.sum(np.vectorize(lambda a: a * a if a > 0 else a)(x)))(x), np.array([1.0, 4, 6]))
    doubled = np.frompyfunc(lambda a, b: a * b, 2, 1)
    assert_close(ft.grad(lambda x: np.sum(doubled(x, 2.0) * x))(x), 4 * x)


def test_functions_of_functions_that_use_traced_values() -> None:
    x = np.arange(5.0)

    def f(a: Any) -> Any:
        pieces = fnp.piecewise(x, [x > 1], [lambda y: a * y, 0.0])
        lines = fnp.apply_along_axis(lambda y: a * y, 0, x)
        elements = fnp.vectorize(lambda y: a * y if y > 2 else 0.0, otypes=[float])(x)
        assert isinstance(fnp.apply_along_axis(np.argsort, 0, x), np.ndarray)
        return np.sum(pieces) + np.sum(lines) + np.sum(elements)

    assert ft.grad(f)(1.5) == 9.0 + 10.0 + 7.0


def test_arrays_of_objects() -> None:
    def f(x: Any) -> Any:
        y = np.zeros((2, 2), object)
        y[0] += x
        y *= x[1]
        np.subtract(y, x, out=y)
        return np.sum(fnp.asarray(y) ** 2) + np.sum(np.array([1, 2.5], object) * x)

    def g(x: Any) -> Any:
        return np.sum((x * x[1] - x) ** 2) + np.sum(x**2) + np.sum(np.array([1, 2.5]) * x)

    x = np.array([1.5, -0.5])
    assert_close(ft.grad(f)(x), ft.grad(g)(x))


def test_nan_to_num_in_place() -> None:
    def f(z: Any) -> Any:
        y = z.copy()
        np.nan_to_num(y, copy=False)
        return y

    z = np.array([np.nan + 2j, 3.0])
    assert_close(ft.trace(f)(z)(z)[0], np.nan_to_num(z))


@pytest.mark.parametrize("name", ["polynomial.polyval", "chebyshev.chebval", "legendre.legval", "laguerre.lagval"])
@pytest.mark.parametrize("x", [np.array([0.3, -0.4]), 0.3], ids=["points", "a point"])
def test_several_polynomials_at_traced_points(name: str, x: Any) -> None:
    module, function = name.split(".")
    call = getattr(getattr(np.polynomial, module), function)
    c = np.arange(6.0).reshape(3, 2)
    assert_close(ft.trace(lambda x: fnp.asarray(call(x, c)))(x)(x)[0], call(x, c))
    assert_close(ft.trace(lambda x: fnp.asarray(call(x, c, tensor=False)))(x)(x)[0], call(x, c, tensor=False))
    assert_close(ft.trace(lambda c: fnp.asarray(call(x, c)))(c)(c)[0], call(x, c))


def test_polynomials_of_several_sets_of_roots_at_traced_points() -> None:
    x, r, call = np.array([0.3, -0.4, 0.5]), np.array([2.0, 1.0]), np.polynomial.polynomial.polyvalfromroots
    assert_close(ft.trace(lambda x: call(x, r[:, None]))(x)(x)[0], call(x, r[:, None]))


def test_polynomials_on_a_grid_of_traced_points() -> None:
    x, y, c, call = np.array([0.3, -0.4]), np.array([2.0, 1.0, 0.5]), np.eye(3, 2), np.polynomial.polynomial.polygrid2d
    assert_close(ft.trace(lambda x: fnp.asarray(call(x, y, c)))(x)(x)[0], call(x, y, c))


def test_mesh_of_indices() -> None:
    chosen = ft.jacobian(lambda x: x[np.ix_(x[:, 0] > 0, [0, 1])])(np.array([[1.0, 2.0], [-3.0, 4.0]]))
    assert_close(chosen, np.eye(4).reshape(2, 2, 2, 2)[:1])


# Derivatives where formulas differ


def test_characteristic_polynomial_of_a_multiple_eigenvalue() -> None:
    a = np.eye(3)
    jacobian = ft.jacobian(np.poly)(a)
    # The coefficients of det(t - a) at a = 1, whose derivative is -(t - 1)**2 on the diagonal.
    expected = -np.array([0.0, 1.0, -2.0, 1.0])[:, None, None] * np.eye(3)
    assert_close(jacobian, expected)
    assert np.all(np.isfinite(ft.hessian(lambda a: np.sum(np.poly(a)))(a)))


def test_roots_move_as_the_implicit_function_theorem_says() -> None:
    p = np.array([1.0, -6.0, 11.0, -6.0])
    jacobian = ft.jacobian(lambda p: np.sort(np.roots(p).real))(p)
    roots = np.array([1.0, 2.0, 3.0])
    expected = -np.vander(roots, 4) / np.polyval(np.polyder(p), roots)[:, None]
    assert_close(jacobian, expected, looseness=1e3)


def test_edges_of_a_histogram_follow_the_extrema() -> None:
    jacobian = ft.jacobian(lambda x: np.histogram_bin_edges(x, 2))(np.array([3.0, 1.0, 2.0]))
    assert_close(jacobian, np.array([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]))


def test_elements_of_sets_keep_their_derivatives() -> None:
    x, y = np.array([3.0, 1.0, 2.0]), np.array([2.0, 5.0])
    of_x, of_y = ft.jacobian(np.union1d, argnums=(0, 1))(x, y)
    assert_close(of_x, np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 0]]))
    assert_close(of_y, np.array([[0.0, 0], [0, 0], [0, 0], [0, 1]]))
    shared = ft.grad(lambda x: np.intersect1d(x, y)[0] * 7)
    assert_close(shared(x), np.array([0.0, 0.0, 7.0]))
    with pytest.raises(TypeError, match=r"(?s)shape depends on the distinct elements.*np\.sort"):
        ft.jit(shared)(x)


def test_transform_into_an_array() -> None:
    def f(x: Any) -> Any:
        out = np.zeros_like(x, dtype=np.complex128)
        assert np.fft.fft(x, out=out) is out
        return np.sum(np.abs(out) ** 2)

    # Parseval's theorem.
    assert_close(ft.grad(f)(X[0]), 2 * 5 * X[0])


def test_fourier_matrix() -> None:
    n = 5
    matrix = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    assert_close(ft.jacobian(np.fft.fft)(X[0]), matrix)
    assert_close(ft.jacobian(np.fft.rfft)(X[0]), matrix[:3])


def test_sizes_without_axes_are_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="give axes="):
        ft.trace(lambda x: np.fft.fftn(x, (2, 2)))(X)


def filled(call: Call, *types: Any) -> Call:
    """The arrays that a function was given for its results, after the call."""

    def outs(x: Any) -> Any:
        arrays = tuple(np.zeros_like(x, dtype=t) for t in types)
        call(x, arrays)
        return arrays

    return outs


@pytest.mark.parametrize(
    "call",
    [
        filled(lambda x, out: np.modf(x, out=out), float, float),
        filled(lambda x, out: np.modf(x, *out), float, float),
        filled(lambda x, out: np.modf(x, out=out, where=x > 0), float, np.float32),
        filled(lambda x, out: np.frexp(x, out=out), float, np.int32),
        filled(lambda x, out: np.divmod(x, 0.3, out=(None, *out)), float),
        filled(lambda x, out: np.sin(x, out[0]), np.float32),
        filled(lambda x, out: np.add(x, 1, out=out[0], where=x > 0, casting="unsafe"), int),
        filled(lambda x, out: np.hypot.reduce(x, axis=1, out=out[0][:, 0]), float),
        filled(lambda x, out: np.power.accumulate(np.abs(x), out=out[0]), float),
        filled(lambda x, out: np.add.reduceat(x, [0, 2, 1], out=out[0]), float),
        filled(lambda x, out: np.multiply.outer(x[:, 0], x[0], out=out[0], where=x > 0), float),
        lambda x: np.exp(x, subok=False, dtype=np.float32),
    ],
)
def test_results_are_put_into_arrays(call: Call) -> None:
    found = ft.trace(call)(X)(X)
    for y, z in zip(found, tree.flatten(call(X))[0], strict=True):
        assert_close(y, z)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.modf(x, where=x > 0), "leaves the other elements undefined"),
        (lambda x: np.sin(x, order="F"), "does not take order='F'"),
        (lambda x: np.clip(x, 0, 1, min=2), "keyword argument when `a_min`"),
        (lambda x: np.quantile(x, 0.5, weights=0 * x, method="inverted_cdf"), "NaN, inf or were all zero"),
        (lambda x: np.quantile(x, 0.5, weights=np.nan * x, method="inverted_cdf"), "NaN, inf or were all zero"),
        (lambda x: np.ravel(x, "K"), "does not lie in memory in any order"),
        (lambda x: np.reshape(x, -1, order="A"), "does not lie in memory in any order"),
        (lambda x: np.vectorize(lambda a: a, otypes=[float])(x), "write ftrans.numpy.vectorize"),
        (lambda x: fnp.sin(x, x, x), "takes 1 operands and 1 results, 2 arrays"),
        (lambda x: np.sin(x, out=np.zeros(5)), "cannot put traced values into an array of type ndarray"),
        (lambda x: np.sin(x, out=np.zeros_like(x, dtype=int)), "Cannot cast ufunc 'sin'"),
    ],
)
def test_options_that_are_refused(call: Call, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ft.trace(call)(X)
