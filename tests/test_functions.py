"""Functions of NumPy and SciPy, on every row of the tables in rows_*.py."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.special
import tables
from checks import DIFFERENCES, assert_all_close, assert_close, differences, inner, magnitude
from function_rows import DOUBLE, Row, rows
from sampling import directions
from tables import covering, in_chunks, naming

import ftrans as ft
from ftrans.core.types import is_complex, is_inexact, type_of
from ftrans.core.witness import ConcretizationError

LANES = 2
# How far derivatives of functions of 32-bit numbers may be off: those of most lose a few digits.
COARSE = 1e-4


def is_there(row: Row) -> bool:
    """Whether the installed NumPy or SciPy has the function: those of newer versions are left out in older ones."""
    try:
        row.function(traced=False)
    except (AttributeError, ImportError):
        import scipy

        if np.lib.NumpyVersion(np.__version__) >= "2.4.0" and np.lib.NumpyVersion(scipy.__version__) >= "1.17.0":
            raise
        return False
    return True


ROWS = [r for r in rows() if is_there(r)]
VARIANTS = [v for r in ROWS for v in r.variants()]


each = functools.partial(tables.each, lambda row: row.name)


def is_primitive(row: Row) -> bool:
    """Whether the function is one primitive, so that tests of the primitive are tests of the function."""
    module, _, name = row.name.rpartition(".")
    return module == "scipy.special" and isinstance(getattr(scipy.special, name), np.ufunc)


def one_of_each(rows: list[Row]) -> list[Row]:
    """A row of each function, real and complex: further options lead to the primitives that test_rules.py tests."""
    if not tables.whole:
        rows = [row for row in rows if not is_primitive(row)]
    return covering(rows, lambda row: (row.name, any(is_complex(x.dtype) for x in row.draw())))


def as_arrays(values: Sequence[Any]) -> list[Any]:
    """Results as arrays or NumPy's scalars; numbers of Python among them have NumPy's dtypes."""
    return [np.asarray(x)[()] for x in values]


def at_places(row: Row, operands: Sequence[Any]) -> list[Any]:
    """The operands that are differentiated."""
    return [operands[i] for i in row.places]


def of_places(row: Row, operands: Sequence[Any]) -> Callable[..., list[Any]]:
    """The results on traced values, as a function of the operands that are differentiated."""
    function = row.function(traced=True)

    def results(*xs: Any) -> list[Any]:
        full = list(operands)
        for i, x in zip(row.places, xs, strict=True):
            full[i] = x
        return function(*full)

    return results


def inexact(results: Sequence[Any]) -> list[Any]:
    """The results that have derivatives."""
    return [y for y in results if is_inexact(type_of(y).dtype)]


def total(row: Row, operands: Sequence[Any]) -> Callable[..., tuple[Any, list[Any]]]:
    """One real number, and the results: each is in a linear and a quadratic term, with random weights of order one."""
    values = inexact(row.reference(operands))
    scales = [max(1.0, float(np.max(np.abs(y[np.isfinite(y)]), initial=0.0))) for y in map(np.asarray, values)]
    weights = [(w / s).astype(w.dtype) for w, s in zip(directions(values, seed=3), scales, strict=True)]
    function = of_places(row, operands)

    def number(*xs: Any) -> Any:
        results = function(*xs)
        terms = [y * w for y, w in zip(inexact(results), weights, strict=True)]
        return sum(np.sum(z + z * z / 2).real for z in terms), results

    return number


def gradient(row: Row, operands: Sequence[Any]) -> Callable[..., list[Any]]:
    """Of `total`, with respect to all operands that are differentiated."""
    number = total(row, operands)
    return lambda *xs: list(ft.grad(lambda *xs: number(*xs)[0], argnums=tuple(range(len(xs))))(*xs))


def results_and_gradient(row: Row, operands: Sequence[Any]) -> Callable[..., list[Any]]:
    """The results, and the gradient of `total`, in one trace."""
    number = total(row, operands)

    def both(*xs: Any) -> list[Any]:
        slopes, results = ft.grad(number, argnums=tuple(range(len(xs))), has_aux=True)(*xs)
        return [*results, *slopes]

    return both


def curvature(row: Row, operands: Sequence[Any]) -> Callable[[Sequence[Any], Sequence[Any]], list[Any]]:
    """The Hessian of `total` times a vector, forward over reverse."""
    slope = gradient(row, operands)
    return lambda xs, ts: list(ft.jvp(slope, tuple(xs), tuple(ts))[1])


@each(row=[v for v in VARIANTS if v.is_double])
def test_value_and_first_derivatives(row: Row) -> None:
    operands = row.draw()
    xs, tangents = at_places(row, operands), row.tangents(operands, seed=1)
    assert xs, "the row has no operand to differentiate"

    def f(*xs: Any) -> tuple[list[Any], list[Any]]:
        results = of_places(row, operands)(*xs)
        return inexact(results), results

    def reference(*xs: Any) -> list[Any]:
        full = list(operands)
        for i, x in zip(row.places, xs, strict=True):
            full[i] = x
        return inexact(row.reference(full))

    values, pushed = ft.jvp(lambda *xs: f(*xs)[0], tuple(xs), tuple(tangents))
    assert values, "the function has no result to differentiate"
    expected = differences(reference, xs, tangents)
    assert_all_close(as_arrays(pushed), expected, tolerance=DIFFERENCES, looseness=row.looseness)
    cotangents = directions(as_arrays(values), seed=2)
    _, pull, results = ft.vjp(f, *xs, has_aux=True)
    assert_all_close(as_arrays(results), row.reference(operands), looseness=row.looseness)
    pulled = pull(cotangents)
    assert [type_of(x) for x in pulled] == [type_of(x) for x in xs]
    scale = magnitude(cotangents, pushed)
    tolerance = 1e-12 * row.looseness * scale
    assert inner(cotangents, pushed) == pytest.approx(inner(pulled, tangents), abs=tolerance)


@each(row=[r for r in ROWS if r.analytic])
def test_complex_step(row: Row) -> None:
    operands = row.draw()
    xs, tangents = at_places(row, operands), row.tangents(operands, seed=1)
    full = list(operands)
    for i, x, t in zip(row.places, xs, tangents, strict=True):
        full[i] = x + 1e-30j * t
    expected = [y.imag / 1e-30 for y in inexact(row.reference(full))]
    pushed = ft.jvp(lambda *xs: inexact(of_places(row, operands)(*xs)), tuple(xs), tuple(tangents))[1]
    assert_all_close(as_arrays(pushed), expected, looseness=10 * row.looseness)


def half(rows: list[Row], which: int) -> list[Row]:
    """The rows of every second function."""
    names = list(dict.fromkeys(row.name for row in rows))[which::2]
    return rows if tables.whole else [row for row in rows if row.name in names]


# Functions lead to primitives, whose second derivatives and batches are tested in all forms, so half of them will do.
@each(row=half(one_of_each([v for v in VARIANTS if v.is_double and v.order > 1]), 0))
def test_second_derivatives(row: Row) -> None:
    operands = row.draw()
    xs, tangents = at_places(row, operands), row.tangents(operands, seed=4)
    found = curvature(row, operands)(xs, tangents)
    expected = differences(ft.trace(gradient(row, operands))(*xs), xs, tangents)
    assert_all_close(found, expected, tolerance=10 * DIFFERENCES, looseness=row.looseness)


def derivatives(row: Row, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Results, and derivatives: those in reverse, then those forward."""
    xs = at_places(row, operands)
    found = results_and_gradient(row, operands)(*xs)
    results, pulled = found[: len(found) - len(xs)], found[len(found) - len(xs) :]
    assert [type_of(x) for x in pulled] == [type_of(x) for x in xs]
    pushed = ft.jvp(lambda *xs: inexact(of_places(row, operands)(*xs)), tuple(xs), tuple(tangents))[1]
    return results, [*pulled, *as_arrays(pushed)]


SINGLE = [v for v in VARIANTS if not v.is_double]
SINGLE_DERIVED = one_of_each(SINGLE)


@each(row=SINGLE)
def test_low_precision_is_high_precision_rounded(row: Row) -> None:
    operands = row.draw()
    if row not in SINGLE_DERIVED:
        results = ft.vjp(of_places(row, operands), *at_places(row, operands))[0]
        assert_all_close(as_arrays(results), row.reference(operands), looseness=row.looseness)
        return
    wide = [x.astype(DOUBLE.get(x.dtype.name, x.dtype))[()] for x in operands]
    tangents = row.tangents(operands, seed=1)
    wide_tangents = [t.astype(DOUBLE.get(t.dtype.name, t.dtype))[()] for t in tangents]
    results, pulled_and_pushed = derivatives(row, operands, tangents)
    assert_all_close(as_arrays(results), row.reference(operands), looseness=row.looseness)
    for found, expected in zip(pulled_and_pushed, derivatives(row, wide, wide_tangents)[1], strict=True):
        assert_close(found, np.asarray(expected).astype(found.dtype)[()], tolerance=COARSE, looseness=row.looseness)


@each(row=half(one_of_each([v for v in VARIANTS if v.is_double]), 1))
def test_vmap_is_a_loop(row: Row) -> None:
    operands = row.draw()
    lanes = [at_places(row, row.draw(seed)) for seed in range(LANES)]
    both = results_and_gradient(row, operands)
    stacked = [np.stack(xs) for xs in zip(*lanes, strict=True)]
    looped = [both(*xs) for xs in lanes]
    if len({tuple(map(np.shape, ys)) for ys in looped}) > 1:
        assert row.asks
        with pytest.raises(ValueError, match="different shapes"):
            ft.vmap(both)(*stacked)
        return
    found = ft.vmap(both)(*stacked)
    expected = [np.stack(ys) for ys in zip(*looped, strict=True)]
    assert_all_close(as_arrays(found), expected, looseness=10 * row.looseness)


# Compiling takes longest, and what functions lead to are primitives, which have compiled tests of their own.  So one
# row of every second function is compiled, with its complex form; and second derivatives of some of each module.
FIRST = {r.name: r for r in reversed(ROWS)}


def module_of(row: Row) -> str:
    """The namespace that a function is in."""
    return row.name.rpartition(".")[0]


# Functions of these lead to programs of hundreds of equations, in part for each choice of a method.
LARGE = ("integrate", "interpolate", "ndimage", "optimize", "signal", "sparse", "spatial")
COMPILABLE = [r for r in ROWS if r is FIRST[r.name] and not is_primitive(r) and not r.asks]
IN_LARGE = [r for r in COMPILABLE if r.name.startswith(tuple(f"scipy.{name}." for name in LARGE))]
IN_SMALL = [r for r in COMPILABLE if r not in IN_LARGE]
COMPILED = IN_SMALL[:: 1 if tables.whole else 2] + covering(IN_LARGE, module_of, times=2)
TWICE = covering([r for r in COMPILED if r.order > 1], module_of, times=4)


def everything(row: Row) -> tuple[Callable[[Any], list[list[Any]]], Any]:
    """A function that gives the values and the derivatives of a row and of its complex forms, and the argument."""
    variants = [row, *(row.with_dtype(d) for d in row.dtypes if is_complex(d))]
    drawn = [v.draw() for v in variants]
    args = [(at_places(v, xs), v.tangents(xs, seed=4)) for v, xs in zip(variants, drawn, strict=True)]
    functions = [results_and_gradient(v, xs) for v, xs in zip(variants, drawn, strict=True)]
    times = curvature(row, drawn[0])

    def results(args: Any) -> list[list[Any]]:
        found = [both(*xs) for both, (xs, _) in zip(functions, args, strict=True)]
        return [*found, times(*args[0])] if row in TWICE else found

    return results, args


@in_chunks(8, group=COMPILED)
def test_jit_changes_nothing(group: list[Row]) -> None:
    functions, args = zip(*map(everything, group), strict=True)

    def together(args: Any) -> list[list[list[Any]]]:
        found = []
        for row, function, xs in zip(group, functions, args, strict=True):
            with naming(row):
                found.append(function(xs))
        return found

    for row, found, expected in zip(group, ft.jit(together)(args), together(args), strict=True):
        with naming(row):
            for ys, wanted in zip(found, expected, strict=True):
                assert_all_close(as_arrays(ys), as_arrays(wanted), looseness=10 * row.looseness)


@each(row=[r for r in ROWS if r.asks])
def test_jit_refuses_shapes_that_depend_on_values(row: Row) -> None:
    function, args = everything(row)
    with pytest.raises(ConcretizationError):
        ft.jit(function)(args)
