"""Compressed evaluation: Jacobians and Hessians from products, against the dense ones."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ftrans as ft
from ftrans.api.call import trace_flat
from ftrans.api.products import Products
from ftrans.api.sparse_call import matrix_of
from ftrans.api.sparse_check import Wrong, find_wrong
from ftrans.core.types import type_of
from ftrans.run.places import place_of
from ftrans.structure import plans
from ftrans.structure.colouring.compressed import Colouring, hessian_by_colours, jacobian_by_colours
from ftrans.structure.entries import Entries, NotStructured
from ftrans.structure.patterns.detect import hessian_pattern, jacobian_pattern
from ftrans.structure.plans import Plan, best_plan, jacobian_plans

N = 12


def program_of(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The program of a function of arrays, and the arrays that it closes over."""
    traced, _ = trace_flat(f, [type_of(x) for x in args], lambda tracers: f(*tracers), args)
    return traced.program, traced.captured


def jacobian_of(
    f: Callable[..., Any], args: tuple[Any, ...], method: Any, chunk: int | None = None, wanted: int = 1
) -> tuple[Entries, Any]:
    """The entries of a Jacobian by all arguments, and the whole as a dense matrix."""
    program, captured = program_of(f, args)
    active = (True,) * len(args) + (False,) * len(captured)
    known = {len(args) + i: x for i, x in enumerate(captured) if np.asarray(x).dtype.kind in "iub"}
    pattern = jacobian_pattern(program, active, wanted, known)
    found = jacobian_by_colours(program, active, wanted, pattern, method, chunk)
    return found, whole(found, [*args, *captured])


def hessian_of(
    f: Callable[..., Any], args: tuple[Any, ...], method: Any, chunk: int | None = None, lower: bool = False
) -> tuple[Entries, Any]:
    """The entries of a Hessian by all arguments, and the whole as a dense matrix."""
    program, captured = program_of(f, args)
    active = (True,) * len(args) + (False,) * len(captured)
    pattern = hessian_pattern(program, active, {})
    found = hessian_by_colours(program, active, pattern, method, chunk, lower)
    return found, whole(found, [*args, *captured])


def whole(entries: Entries, args: list[Any]) -> Any:
    """The matrix of which a program computes the entries, each of which is there once."""
    keys = entries.rows * entries.shape[1] + entries.cols
    assert entries.rows.dtype == entries.cols.dtype == np.int64
    assert len(np.unique(keys)) == len(keys)
    *_, values = place_of(args).run(entries.program, args)
    return sp.coo_array((values, (entries.rows, entries.cols)), entries.shape).toarray()


def stencil(x: Any) -> Any:
    """Second differences and a product of neighbours."""
    return np.concatenate([x[:1] ** 2, x[2:] - 2.0 * x[1:-1] * x[:-2] + np.sin(x[1:-1]), x[-1:] * x[0]])


def full_row(x: Any) -> Any:
    """A full row and a full column."""
    return np.concatenate([np.sum(x * x)[None], x[1:] ** 2 * x[0]])


def chain(x: Any) -> Any:
    """A function whose Hessian has three diagonals."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + np.exp(x[:-1]))


def hub(x: Any) -> Any:
    """A function whose Hessian is an arrow."""
    return np.sum(x[1:] ** 3 * x[0] ** 2)


@pytest.mark.parametrize("method", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("f", [stencil, full_row, np.sin, lambda x: x[::2] * 3.0, lambda x: x * 0.0 + 1.0])
def test_jacobians(f: Any, method: Any) -> None:
    x = np.random.default_rng(0).standard_normal(N)
    for chunk in (None, 2):
        _, found = jacobian_of(f, (x,), method, chunk)
        np.testing.assert_allclose(found, ft.jacobian(f)(x), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("method", ["star", "acyclic"])
@pytest.mark.parametrize("f", [chain, hub, lambda x: np.sum(x**3), lambda x: np.sum(x) * x[3], lambda x: x[0] * 2.0])
def test_hessians(f: Any, method: Any) -> None:
    x = np.random.default_rng(0).standard_normal(N)
    dense = ft.hessian(f)(x)
    for chunk in (None, 2):
        found, matrix = hessian_of(f, (x,), method, chunk)
        np.testing.assert_allclose(matrix, dense, rtol=1e-12, atol=1e-12)
        assert (matrix == matrix.T).all()
        found, matrix = hessian_of(f, (x,), method, chunk, lower=True)
        assert (found.rows >= found.cols).all()
        np.testing.assert_allclose(matrix, np.tril(dense), rtol=1e-12, atol=1e-12)


def test_random_hessians_by_substitution() -> None:
    rng = np.random.default_rng(1)
    for size, terms in [(6, 4), (15, 20), (40, 60), (40, 300)]:
        i, j = rng.integers(0, size, (2, terms))
        weights = rng.standard_normal(terms)

        def f(x: Any, i: Any = i, j: Any = j, weights: Any = weights) -> Any:
            return np.sum(weights * np.sin(x[i]) * x[j])

        x = rng.standard_normal(size)
        program, captured = program_of(f, (x,))
        active = (True, *(False for _ in captured))
        rows, cols = np.append(i, np.arange(size)), np.append(j, np.arange(size))
        pattern = sp.coo_array((np.ones(len(rows), bool), (rows, cols)), (size, size)).tocsr()
        for method in ("star", "acyclic"):
            entries = hessian_by_colours(program, active, pattern, method)  # type: ignore[arg-type]
            matrix = whole(entries, [x, *captured])
            np.testing.assert_allclose(matrix, ft.hessian(f)(x), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("method", ["forward", "reverse", "bidirectional"])
def test_several_arguments_and_results(method: Any) -> None:
    x, y, z = np.arange(1.0, 4.0), np.float64(2.0), np.arange(6.0).reshape(2, 3)

    def f(x: Any, y: Any, z: Any) -> Any:
        return x * y, np.sum(z * x, axis=1), np.float64(3.0), z[0] ** 2

    entries, found = jacobian_of(f, (x, y, z), method, wanted=3)
    blocks = ft.jacobian(f, (0, 1, 2))(x, y, z)
    expected = np.block([[np.reshape(b, (size, -1)) for b in blocks[k]] for k, size in enumerate((3, 2, 1))])
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert entries.shape == (6, 10)
    outs = entries.program(x, y, z)
    for value, expected_value in zip(outs, f(x, y, z), strict=False):
        np.testing.assert_array_equal(value, expected_value)


def test_hessians_by_several_arguments() -> None:
    x, y = np.arange(1.0, 4.0), np.array([[0.5, 2.0]])

    def f(x: Any, y: Any) -> Any:
        return np.sum(x**3) * y[0, 0] + y[0, 1] ** 2, x

    blocks = ft.hessian(lambda x, y: f(x, y)[0], (0, 1))(x, y)
    expected = np.block([[np.reshape(b, (n, -1)) for b in row] for row, n in zip(blocks, (3, 2), strict=True)])
    for method in ("star", "acyclic"):
        entries, found = hessian_of(f, (x, y), method)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        value, aux, _ = entries.program(x, y)
        np.testing.assert_allclose(value, f(x, y)[0])
        np.testing.assert_array_equal(aux, x)


def test_products_that_sum_nothing() -> None:
    x, y = np.zeros((2, 0)), np.zeros((0, 3))
    z = np.ones((3, 2))

    def f(x: Any, y: Any, z: Any) -> Any:
        return np.sum(np.sin(x @ y @ z)) + np.sum(z**3)

    for method in ("star", "acyclic"):
        _, found = hessian_of(f, (x, y, z), method)
        np.testing.assert_allclose(found, 6 * np.eye(6))
    assert ft.hessian_sparsity(f, (0, 1))(x, y, z).shape == (0, 0)
    np.testing.assert_allclose(ft.sparse_hessian(f, 2, method="elimination")(x, y, z).toarray(), 6 * np.eye(6))


def test_float32_stays() -> None:
    x = np.linspace(0.5, 1.0, N, dtype=np.float32)
    for method in ("forward", "reverse", "bidirectional"):
        entries, found = jacobian_of(stencil, (x,), method)
        assert entries.program.out_types[-1].dtype == np.float32
        np.testing.assert_allclose(found, ft.jacobian(stencil)(x), rtol=1e-5)
    for kind in ("star", "acyclic"):
        entries, found = hessian_of(chain, (x,), kind)
        assert entries.program.out_types[-1].dtype == np.float32
        np.testing.assert_allclose(found, ft.hessian(chain)(x), rtol=1e-3, atol=1e-3)


def test_complex_numbers() -> None:
    x = np.linspace(0.5, 1.0, N)

    def waves(x: Any) -> Any:
        return np.exp(1j * x) * x[::-1]

    _, found = jacobian_of(waves, (x,), "forward")
    np.testing.assert_allclose(found, ft.jacobian(waves)(x), rtol=1e-14)
    with pytest.raises(NotStructured, match="half of the derivative"):
        jacobian_of(waves, (x,), "reverse")

    def lengths(z: Any) -> Any:
        return np.abs(z) ** 2

    z = x + 0.5j
    _, found = jacobian_of(lengths, (z,), "reverse")
    np.testing.assert_allclose(found, ft.jacobian(lengths, mode="reverse")(z), rtol=1e-14)
    with pytest.raises(NotStructured, match="half of the derivative"):
        jacobian_of(lengths, (z,), "forward")
    for method in ("forward", "reverse", "bidirectional"):
        _, found = jacobian_of(stencil, (z,), method)
        np.testing.assert_allclose(found, ft.jacobian(stencil, holomorphic=True)(z), rtol=1e-13, atol=1e-13)
    with pytest.raises(NotStructured, match="half of the second derivatives"):
        hessian_of(lambda z: np.sum(np.abs(z) ** 2), (z,), "star")


def test_values_that_are_not_chosen_have_no_influence() -> None:
    x = np.array([0.5, 2.0, -1.0, 3.0])

    def f(x: Any) -> Any:
        return np.where(x > 1, np.sqrt(np.where(x > 1, x - 1, 0.0)), 0.0) * x[::-1]

    for method in ("forward", "reverse"):
        _, found = jacobian_of(f, (x,), method)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, ft.jacobian(f)(x), rtol=1e-14)


def test_compiled_and_differentiated_again() -> None:
    x = np.random.default_rng(2).standard_normal(N)
    for entries, dense in [
        (jacobian_of(stencil, (x,), "forward")[0], ft.jacobian(stencil)),
        (jacobian_of(full_row, (x,), "bidirectional", 2)[0], ft.jacobian(full_row)),
        (hessian_of(chain, (x,), "star")[0], ft.hessian(chain)),
        (hessian_of(chain, (x,), "acyclic")[0], ft.hessian(chain)),
    ]:
        places = (entries.rows, entries.cols)

        def values(x: Any, entries: Entries = entries) -> Any:
            return place_of([x]).run(entries.program, [x])[-1]

        np.testing.assert_allclose(ft.jit(values)(x), dense(x)[places], rtol=1e-12, atol=1e-12)
        again = ft.jit(ft.jacobian(values))(x)
        np.testing.assert_allclose(again, ft.jacobian(dense)(x)[places], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(ft.jacrev(values)(x), again, rtol=1e-11, atol=1e-11)


def test_what_is_told_about_an_engine() -> None:
    x = np.ones(N)
    entries, _ = jacobian_of(stencil, (x,), "forward")
    assert entries.how[0] == "engine: colouring, forward products"
    assert entries.how[1].startswith("colours: 3 of columns") or entries.how[1].startswith("colours: 4 of columns")


# A pattern of the user's own is checked before it is trusted


def without(pattern: Any, row: int, col: int) -> Any:
    """A pattern without one of its entries."""
    entries = pattern.tocoo()
    rows, cols = entries.coords
    kept = (rows != row) | (cols != col)
    return sp.csr_array((entries.data[kept], (rows[kept], cols[kept])), pattern.shape)


def wrong_in(entries: Entries, program: Any, args: list[Any], of_hessian: bool = False, lower: bool = False) -> Any:
    """What is wrong about entries at a point."""
    active = (True, *(False for _ in args[1:]))
    vector = place_of(args).run(entries.program, args)[-1]
    return find_wrong(Products(program, active, 1, args, of_hessian), matrix_of(entries, vector, lower))


@pytest.mark.parametrize("method", ["forward", "reverse", "bidirectional"])
def test_entries_that_a_pattern_misses_are_found(method: Any) -> None:
    x = np.random.default_rng(3).standard_normal(N)
    for f in (stencil, full_row):
        program, _ = program_of(f, (x,))
        pattern = jacobian_pattern(program, (True,), 1, {})
        assert wrong_in(jacobian_by_colours(program, (True,), 1, pattern, method), program, [x]) is None
        dense = ft.jacobian(f)(x)
        for row, col in zip(*pattern.tocoo().coords, strict=True):
            entries = jacobian_by_colours(program, (True,), 1, without(pattern, row, col), method)
            wrong = wrong_in(entries, program, [x])
            assert wrong == Wrong(row, col, 0, pytest.approx(dense[row, col]), True)


@pytest.mark.parametrize("method", ["star", "acyclic"])
def test_entries_that_a_symmetric_pattern_misses_are_found(method: Any) -> None:
    x = np.random.default_rng(4).standard_normal(N)
    for f in (chain, hub):
        program, _ = program_of(f, (x,))
        pattern = hessian_pattern(program, (True,), {})
        for lower in (False, True):
            good = hessian_by_colours(program, (True,), pattern, method, lower=lower)
            assert wrong_in(good, program, [x], True, lower) is None
            for row, col in zip(*sp.tril(pattern).tocoo().coords, strict=True):
                smaller = without(without(pattern, row, col), col, row)
                entries = hessian_by_colours(program, (True,), smaller, method, lower=lower)
                wrong = wrong_in(entries, program, [x], True, lower)
                assert wrong.is_missing
                assert {wrong.row, wrong.col} == {row, col}


def test_wrong_values_are_found() -> None:
    x = np.random.default_rng(5).standard_normal(N)
    program, _ = program_of(stencil, (x,))
    pattern = jacobian_pattern(program, (True,), 1, {})
    entries = jacobian_by_colours(program, (True,), 1, pattern, "forward")
    swapped = entries._replace(rows=entries.rows[::-1].copy(), cols=entries.cols[::-1].copy())
    wrong = wrong_in(swapped, program, [x])
    assert not wrong.is_missing
    assert wrong.exact == pytest.approx(ft.jacobian(stencil)(x)[wrong.row, wrong.col])


def test_small_entries_are_found_and_rounding_errors_are_none() -> None:
    x = np.random.default_rng(6).uniform(1.0, 2.0, N)

    def scales(x: Any) -> Any:
        return x * 1e6 + x[::-1] * 1e-3 + np.sin(x) ** 2 + np.cos(x) ** 2

    program, _ = program_of(scales, (x,))
    pattern = jacobian_pattern(program, (True,), 1, {})
    entries = jacobian_by_colours(program, (True,), 1, pattern, "forward")
    assert wrong_in(entries, program, [x]) is None
    entries = jacobian_by_colours(program, (True,), 1, without(pattern, 2, N - 3), "forward")
    assert wrong_in(entries, program, [x])[:2] == (2, N - 3)
    noise, _ = program_of(lambda x: np.sin(x) ** 2 + np.cos(x) ** 2, (x,))
    nothing = jacobian_by_colours(noise, (True,), 1, sp.csr_array((N, N), dtype=bool), "forward")
    assert wrong_in(nothing, noise, [x]) is None


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.filterwarnings("ignore:invalid value")
def test_checks_of_complex_functions_and_of_numbers_that_are_not_finite() -> None:
    x = np.linspace(0.5, 1.0, N)
    for f, at, method in [
        (lambda x: np.exp(1j * x) * x[::-1], x, "forward"),
        (lambda z: np.abs(z) ** 2 + z[::-1].imag, x + 0.5j, "reverse"),
        (stencil, x + 0.5j, "bidirectional"),
        (lambda x: np.sqrt(x - 0.5) * x[::-1], x, "forward"),
        (lambda x: x[1:] * x[:-1], x.astype(np.float32), "reverse"),
        (lambda x: x[1:] * x[:-1], x.astype(np.float16), "forward"),
    ]:
        program, captured = program_of(f, (at,))
        active = (True, *(False for _ in captured))
        pattern = jacobian_pattern(program, active, 1, {})
        entries = jacobian_by_colours(program, active, 1, pattern, method)  # type: ignore[arg-type]
        assert wrong_in(entries, program, [at, *captured]) is None
        smaller = without(pattern, 3, pattern[[3]].indices[0])
        entries = jacobian_by_colours(program, active, 1, smaller, method)  # type: ignore[arg-type]
        wrong = wrong_in(entries, program, [at, *captured])
        assert wrong.is_missing
        assert wrong[:2] == (3, pattern[[3]].indices[0])


def test_a_result_that_does_not_depend_on_the_argument() -> None:
    x = np.ones(3)
    program, captured = program_of(lambda x: np.arange(2.0), (x,))
    pattern = sp.csr_array(np.ones((2, 3), bool))
    for method in ("forward", "reverse", "bidirectional"):
        entries = jacobian_by_colours(program, (True, False), 1, pattern, method)  # type: ignore[arg-type]
        assert not whole(entries, [x, *captured]).any()
        assert wrong_in(entries, program, [x, *captured]) is None


def test_plans_that_cannot_pay_are_not_coloured() -> None:
    def refuse() -> Colouring:
        raise AssertionError("this colouring is not needed")

    def make() -> Colouring:
        return Colouring(np.full(3, -1), np.arange(4), "natural")

    good = Plan("forward", 4, 10.0, 0, make)
    chosen = best_plan([Plan("reverse", 4, 9.5, 0, make), good, Plan("bidirectional", 4, 10.5, 0, refuse)], inf)
    assert (chosen.plan and chosen.plan.name, chosen.time) == ("reverse", 38)
    assert best_plan([good._replace(colour=refuse)], 45.0).plan is None
    assert best_plan([good], 60.0).plan is good


def test_full_matrices_are_not_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise AssertionError("a colouring")

    for name in ("jacobian_colouring", "hessian_colouring"):
        monkeypatch.setattr(plans, name, refuse)
    x = np.linspace(0.5, 2, 60)
    for f in (np.sort, np.cumsum, lambda x: np.abs(np.fft.fft(x)), lambda x: x - np.mean(np.sin(x))):
        found = ft.sparse_jacobian(f)(x)
        np.testing.assert_allclose(found.toarray(), ft.jacobian(f)(x), atol=1e-12)
    found = ft.sparse_hessian(lambda x: np.var(np.sin(x)))(x)
    np.testing.assert_allclose(found.toarray(), ft.hessian(lambda x: np.var(np.sin(x)))(x), atol=1e-12)


def test_the_direction_with_fewer_products_is_taken() -> None:
    def sums(x: Any) -> Any:
        return np.sum(np.sin(x).reshape(40, 30), axis=1)

    def copies(x: Any) -> Any:
        return np.sin(np.outer(x, np.arange(1.0, 31)))

    for f, size, name, count in ((sums, 1200, "reverse", 1), (copies, 40, "forward", 1)):
        program, captured = program_of(f, (np.zeros(size),))
        active = (True, *(False for _ in captured))
        chosen = best_plan(jacobian_plans(program, active, 1, jacobian_pattern(program, active, 1, {})), inf)
        assert chosen.plan is not None
        assert chosen.colouring is not None
        assert (chosen.plan.name, chosen.colouring.total) == (name, count)
