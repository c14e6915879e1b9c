"""Patterns and elimination: on every sample of the table, on random programs, and on functions with known patterns."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import tables
from checks import assert_close
from random_programs import random_arguments, random_program
from sampling import Sample, dependence
from tables import covering
from test_finite import GROUPS, Row
from test_rules import DIFFERENTIABLE

import ftrans as ft
from ftrans import nn
from ftrans.api.derivatives import active_inputs, trace_at
from ftrans.core.interpret import inline
from ftrans.core.program import Program
from ftrans.core.trace import Builder, building
from ftrans.core.types import is_complex, is_inexact
from ftrans.ops.broadcast import reduce_sum
from ftrans.ops.elementwise import add, convert, placeholder, real, sin
from ftrans.run.evaluate import evaluate
from ftrans.structure.dense.dense import jacobian
from ftrans.structure.elimination.eliminate import ORDERS, jacobian_entries
from ftrans.structure.elimination.quadratic import Form, hessian_entries
from ftrans.structure.entries import Entries, NotStructured
from ftrans.structure.graph.graph import Node
from ftrans.structure.patterns.detect import hessian_pattern, jacobian_pattern
from ftrans.transforms.differentiate import gradient
from ftrans.transforms.simplify import simplify

Flags = tuple[bool, ...]

each = functools.partial(tables.each, lambda row: row.primitive.name)


def inexact_outputs(program: Program) -> Program:
    """The program with those results that have derivatives."""
    kept = [a for a in program.outputs if is_inexact(a.type.dtype)]
    return Program(program.name, program.inputs, program.eqns, kept)


def dense(program: Program, active: Flags, args: Sequence[Any]) -> Any:
    """The Jacobian of all results with respect to the active inputs, as one matrix."""
    count = len(program.outputs)
    blocks = iter(evaluate(simplify(jacobian(program, active, count, "forward", None)), args)[count:])
    sizes = [t.size for t, a in zip(program.in_types, active, strict=True) if a]
    rows = [[np.reshape(next(blocks), (y.type.size, n)) for n in sizes] for y in program.outputs]
    return np.block(rows)


def scalar(program: Program) -> Program:
    """A nonlinear function of all results."""
    builder = Builder(program.in_types)
    with building(builder):
        total = None
        for y in inline(program, builder.inputs()):
            part = sin(real(y) if is_complex(y.dtype) else y)
            part = convert(reduce_sum(part, axes=tuple(range(y.ndim))), dtype=np.dtype("float64"))
            total = part if total is None else add(total, part)
        return builder.finish([total], "scalar")


def matrix(entries: Entries, args: Sequence[Any]) -> Any:
    """The entries in a dense matrix, no place twice."""
    assert len({*zip(entries.rows.tolist(), entries.cols.tolist(), strict=True)}) == entries.rows.size
    values = np.asarray(evaluate(entries.program, args)[-1])
    found = np.zeros(entries.shape, values.dtype)
    found[entries.rows, entries.cols] = values
    return found


def known_of(args: Sequence[Any], active: Flags) -> dict[int, Any]:
    """The integers and booleans among the arguments."""
    pairs = enumerate(zip(map(np.asarray, args), active, strict=True))
    return {i: x for i, (x, a) in pairs if not a and x.dtype.kind in "biu"}


def assert_covers(pattern: Any, matrix: Any, rounding: float = 0.0) -> None:
    """What is not zero lies in the pattern."""
    assert not ((np.abs(matrix) > rounding) & ~pattern.toarray()).any()


def tolerance(program: Program) -> float:
    """How far two ways to compute may be apart: less in float64 than in smaller formats."""
    types = [t for t in (*program.in_types, *program.out_types) if is_inexact(t.dtype)]
    return 1e-9 if all(t.dtype.itemsize >= 8 for t in types) else 5e-2


def check_jacobian(
    program: Program, active: Flags, args: Sequence[Any], orders: Sequence[str] = ("greedy", "reverse")
) -> None:
    """Pattern and entries against the dense Jacobian, the first order with known integers and the others without."""
    expected = dense(program, active, args)
    count = len(program.outputs)
    for known, group in ((known_of(args, active), orders[:1]), ({}, orders[1:])):
        if group:
            assert_covers(jacobian_pattern(program, active, count, known), expected)
        for order in group:
            try:
                entries = jacobian_entries(program, active, count, known, order)
            except NotStructured:
                continue
            assert_close(matrix(entries, args), expected, tolerance(program))


def dense_hessian(program: Program, active: Flags, args: Sequence[Any]) -> Any:
    """The Jacobian of the gradient of a scalar function."""
    return dense(gradient(program, active, with_value=False), active, args)


# Each order of elimination, the whole matrix and its lower triangle.
HESSIANS_BY: list[tuple[str, bool]] = [("greedy", False), ("reverse", True)]
if tables.whole:
    HESSIANS_BY += [("reverse", False), ("greedy", True), ("auto", False)]


def check_hessian(program: Program, active: Flags, args: Sequence[Any], expected: Any) -> None:
    """Pattern and entries of a scalar function against its dense Hessian."""
    known = known_of(args, active)
    rounding = 1e-13 * max(1.0, float(np.abs(expected).max(initial=0)))
    assert_covers(hessian_pattern(program, active, known), expected, rounding)
    for order, lower in HESSIANS_BY:
        try:
            entries = hessian_entries(program, active, known, lower, order)
        except NotStructured:
            continue
        assert_close(matrix(entries, args), np.tril(expected) if lower else expected, 100 * tolerance(program))


# Every primitive


def has_real_operands(sample: Sample) -> bool:
    """Whether second derivatives of a real function of the row are real."""
    return not any(is_complex(t.dtype) for t in (*sample.types, *sample.out_types))


SMALL = [s for s in DIFFERENTIABLE if sum(t.size for t in s.types) <= 60]
ROWS = covering(covering(SMALL, lambda s: s.primitive.name), dependence, times=2)
# What nothing reads has a derivative in forward mode only.
CURVED = [s for s in ROWS if has_real_operands(s) and s.primitive is not placeholder]


@each(sample=ROWS)
def test_jacobians_of_primitives(sample: Sample) -> None:
    program = inexact_outputs(sample.program())
    with np.errstate(all="ignore"):
        check_jacobian(program, tuple(sample.active), sample.draw())


@each(sample=CURVED)
def test_hessians_of_primitives(sample: Sample) -> None:
    program, active, args = scalar(inexact_outputs(sample.program())), tuple(sample.active), sample.draw()
    with np.errstate(all="ignore"):
        try:
            expected = dense_hessian(program, active, args)
        except NotImplementedError:
            # There are no second derivatives.
            return
        check_hessian(program, active, args, expected)


# Random programs


@pytest.mark.parametrize("seed", range(300 if tables.whole else 16))
def test_random_programs(seed: int) -> None:
    program, args, active = random_program(seed), random_arguments(seed), (True, True)
    check_jacobian(program, active, args, ORDERS)
    check_jacobian(program, (False, True), args, ORDERS[:1])
    total = scalar(program)
    check_hessian(total, active, args, dense_hessian(total, active, args))


# Derivatives that are finite


@pytest.mark.parametrize("group", list(GROUPS))
def test_finite_derivatives(group: str) -> None:
    rows: list[Row] = GROUPS[group]
    for row in rows:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            check_finite(row)


def check_finite(row: Row) -> None:
    """Gradients and Hessians by elimination are what the table says, or refused."""
    x = np.asarray(row.x, float)
    program = traced(row.f, x)
    expected = np.asarray(row.gradient, float).reshape(1, -1)
    assert_covers(jacobian_pattern(program, (True,), 1, {}), expected)
    try:
        found = matrix(jacobian_entries(program, (True,), 1, {}), [x])
    except NotStructured:
        return
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-300, err_msg=row.name)
    if row.hessian is not None:
        hessian = np.asarray(row.hessian, float).reshape(x.size, x.size)
        try:
            found = matrix(hessian_entries(program, (True,), {}), [x])
        except NotStructured:
            return
        np.testing.assert_allclose(found, hessian, rtol=1e-7, atol=1e-300, err_msg=row.name)


def pattern_at(f: Callable[..., Any], x: Any) -> Any:
    """The pattern of a Jacobian, with the captured integers and conditions known."""
    chosen, found, _ = trace_at(f, (x,), {}, 0, "jacobian_sparsity", False)
    known = {i: c for i, c in enumerate(found.captured, 1) if np.asarray(c).dtype.kind in "biu"}
    return jacobian_pattern(found.program, active_inputs(chosen, found), 1, known)


def traced(f: Callable[..., Any], *args: Any) -> Program:
    """The program of a function that closes over no arrays but small ones."""
    return ft.trace(f)(*args)


# Known patterns


class Known(NamedTuple):
    """A function whose pattern is known.

    Attributes:
        name: the function in words.
        f: takes an array of six elements.
        pattern: rows of ones and zeros, as a matrix that is not zero where an element may depend on another.
    """

    name: str
    f: Callable[[Any], Any]
    pattern: Any


N = 6
EYE = np.eye(N)
LOWER = np.tril(np.ones((N, N)))
ALL = np.ones((N, N))
ORDER = np.array([3, 0, 5, 1, 4, 2])
BAND = np.eye(N) + np.eye(N, k=1) + np.eye(N, k=-1)
TABLE = np.arange(1.0, 7.0)
MATRIX = np.arange(1.0, 25.0).reshape(4, 6)
SPARSE = np.array([[1.0, 0, 0, 2, 0, 0], [0, 3.0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]])
BLOCKS = np.kron(np.eye(2), np.ones((3, 3)))


def banded_solve(b: Any) -> Any:
    """Solve a bidiagonal system by forward substitution, as a loop."""

    def step(previous: Any, right: Any) -> Any:
        x = (right - 0.5 * previous) / 2.0
        return x, x

    return ft.scan(step, 0.0, b)[1]


def written(x: Any) -> Any:
    """Every second element, written into an array."""
    y = np.zeros_like(x)
    y[::2] = np.sin(x[::2])
    return y


PATTERNS = [
    Known("each element", np.sin, EYE),
    Known("a product with itself cancelled", lambda x: x * 3.0 - x * 3.0, 0 * EYE),
    Known("a product with a table cancelled", lambda x: x * TABLE - x * TABLE, 0 * EYE),
    Known("the same value subtracted from itself", lambda x: x * np.sin(x) - x * np.sin(x), 0 * EYE),
    Known("nonlinear terms that cancel in another form stay", lambda x: np.sin(2 * x) - 2 * np.sin(x) * np.cos(x), EYE),
    Known("no dependence", lambda x: np.floor(x), 0 * EYE),
    Known("stopped", lambda x: ft.stop_gradient(x), 0 * EYE),
    Known("comparison", lambda x: (x > 0) * 1.0, 0 * EYE),
    Known("reversed", lambda x: x[::-1], EYE[::-1]),
    Known("rolled", lambda x: np.roll(x, 2), np.roll(EYE, 2, 0)),
    Known("sliced", lambda x: x[1:4] ** 2, EYE[1:4]),
    Known("strided", lambda x: x[::2], EYE[::2]),
    Known("picked", lambda x: x[ORDER], EYE[ORDER]),
    Known("picked twice", lambda x: x[[0, 0, 2]], EYE[[0, 0, 2]]),
    Known("permuted axes", lambda x: x.reshape(2, 3).T.reshape(-1), EYE[[0, 3, 1, 4, 2, 5]]),
    Known("padded", lambda x: np.pad(x, 1), np.pad(EYE, ((1, 1), (0, 0)))),
    Known("joined", lambda x: np.concatenate([x[3:], x[:3]]), np.roll(EYE, 3, 0)),
    Known("stacked", lambda x: np.stack([x, x * x]).reshape(-1), np.vstack([EYE, EYE])),
    Known("repeated", lambda x: np.repeat(x[:2], 2), EYE[[0, 0, 1, 1]]),
    Known("tiled", lambda x: np.tile(x[:2], 2), EYE[[0, 1, 0, 1]]),
    Known("differences", np.diff, EYE[:-1] + EYE[1:]),
    Known("a stencil", lambda x: x[2:] - 2 * x[1:-1] + x[:-2], BAND[1:-1]),
    Known("an outer product", lambda x: np.outer(x[:2], x[2:4]).reshape(-1),
          [[1, 0, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0], [0, 1, 1, 0, 0, 0], [0, 1, 0, 1, 0, 0]]),
    Known("sum", np.sum, ALL[:1]),
    Known("sums of rows", lambda x: x.reshape(2, 3).sum(1), [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]),
    Known("mean subtracted", lambda x: x - x.mean(), ALL),
    Known("maximum of rows", lambda x: x.reshape(2, 3).max(1), [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]),
    Known("a norm in every row", lambda x: x / np.linalg.norm(x), ALL),
    Known("cumulative sum", np.cumsum, LOWER),
    Known("cumulative product", np.cumprod, LOWER),
    Known("cumulative sum of rows", lambda x: np.cumsum(x.reshape(2, 3), 1).reshape(-1), LOWER * BLOCKS),
    Known("a matrix of data", lambda x: MATRIX @ x, ALL[:4]),
    Known("sorted", np.sort, ALL),
    Known("where", lambda x: np.where(x > 0, x, x[::-1]), EYE + EYE[::-1]),
    Known("where on a known mask", lambda x: np.where(np.arange(N) < 3, x, 2.0), np.diag([1, 1, 1, 0, 0, 0])),
    Known("gather by data", lambda x: x[np.argsort(x)], ALL),
    Known("written", written, np.diag([1, 0, 1, 0, 1, 0])),
    Known("a Fourier transform", lambda x: np.abs(np.fft.fft(x)), ALL),
    Known("a batch of solves", lambda x: np.linalg.solve(np.eye(3) + np.ones((3, 3)), x.reshape(2, 3, 1)).reshape(-1),
          BLOCKS),
    Known("a banded solve", banded_solve, LOWER),
    Known("a loop without a carry", lambda x: ft.map(np.sin, x), EYE),
    Known("a loop over rows", lambda x: ft.map(np.cumsum, x.reshape(2, 3)).reshape(-1), LOWER * BLOCKS),
    Known("a loop whose carry does not matter",
          lambda x: ft.scan(lambda c, y: (c + 1.0, c * y), 0.0, x)[1], EYE),
    Known("fori_loop", lambda x: ft.fori_loop(0, 2, lambda i, y: y[1:] * y[:-1] if False else y * y, x), EYE),
    Known("a branch", lambda x: ft.cond(x[0] > 0, np.sin, lambda y: y[::-1], x), EYE + EYE[::-1]),
    Known("a compiled function", lambda x: ft.jit(np.diff)(x), EYE[:-1] + EYE[1:]),
    Known("recomputed", lambda x: ft.checkpoint(np.sin)(x), EYE),
    Known("vmap", lambda x: ft.vmap(np.cumsum)(x.reshape(2, 3)).reshape(-1), LOWER * BLOCKS),
    Known("an inner derivative", lambda x: ft.grad(lambda y: np.sum(y[1:] * y[:-1]))(x), BAND - EYE),
]  # fmt: skip


@pytest.mark.parametrize("known", PATTERNS, ids=lambda known: known.name)
def test_known_patterns(known: Known) -> None:
    x = np.array([0.3, -1.2, 0.8, 2.1, -0.4, 1.5])
    pattern = pattern_at(known.f, x)
    np.testing.assert_array_equal(pattern.toarray(), np.atleast_2d(known.pattern) != 0)
    for seed in range(20):
        other = np.random.default_rng(seed).standard_normal(N)
        assert_covers(pattern, np.reshape(ft.jacobian(known.f)(other), pattern.shape))


HESSIANS = [
    Known("a chain", lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2), BAND),
    Known("separate terms", lambda x: np.sum(np.sin(x)), EYE),
    Known("linear", lambda x: TABLE @ x, 0 * EYE),
    Known("bilinear", lambda x: x[:3] @ x[3:], np.roll(EYE, 3, 0)),
    Known("an arrow", lambda x: x[0] * np.sum(x[1:] ** 2), None),
    Known("squares of a vector of sums", lambda x: np.sum(np.cumsum(x) ** 2), ALL),
    Known("pieces that are linear", lambda x: np.max(x) + np.sum(np.abs(x)), 0 * EYE),
    Known("a reversed product", lambda x: np.sum(x * x[::-1]), EYE[::-1]),
    Known("a loop", lambda x: np.sum(ft.map(lambda y: y**3, x)), EYE),
    Known("a branch", lambda x: ft.cond(x[0] > 0, lambda y: np.sum(y**2), lambda y: y[0] * y[1], x), None),
]


@pytest.mark.parametrize("known", HESSIANS, ids=lambda known: known.name)
def test_known_patterns_of_hessians(known: Known) -> None:
    x = np.array([0.3, -1.2, 0.8, 2.1, -0.4, 1.5])
    program = traced(known.f, x)
    pattern = hessian_pattern(program, (True,), {}).toarray()
    if known.pattern is not None:
        np.testing.assert_array_equal(pattern, np.asarray(known.pattern) != 0)
    for seed in range(20):
        other = np.random.default_rng(seed).standard_normal(N)
        assert not ((np.abs(ft.hessian(known.f)(other)) > 1e-14) & ~pattern).any()
    check_hessian(program, (True,), [x], dense_hessian(program, (True,), [x]))


def test_a_pattern_does_not_depend_on_the_point() -> None:
    program = traced(lambda x: x * x, np.zeros(3))
    np.testing.assert_array_equal(jacobian_pattern(program, (True,), 1, {}).toarray(), np.eye(3, dtype=bool))


def test_a_million_elements() -> None:
    size = 1_000_000
    program = traced(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2), np.zeros(size))
    entries = hessian_entries(program, (True,), {}, lower=True)
    assert entries.rows.size == 2 * size - 1
    x = np.linspace(-1.0, 1.0, size)
    values = evaluate(entries.program, [x])[-1]
    diagonal = values[entries.rows == entries.cols]
    order = np.argsort(entries.rows[entries.rows == entries.cols])
    expected = np.zeros(size)
    expected[1:] += 2.0
    expected[:-1] += 12 * x[:-1] ** 2 - 4 * x[1:]
    np.testing.assert_allclose(diagonal[order], expected, rtol=1e-12, atol=1e-12)


def test_the_greedy_order_looks_at_few_nodes_after_each_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    def unrolled(x: Any) -> Any:
        return sum((x[i + 1] - x[i] ** 2) ** 2 for i in range(len(x) - 1))

    asked: list[Node] = []
    cost = Form.cost
    monkeypatch.setattr(Form, "cost", lambda self, j: asked.append(j) or cost(self, j))
    counts = []
    for n in (20, 40):
        asked.clear()
        ft.sparse_hessian(unrolled)(np.arange(n) / n)
        counts.append(len(asked))
    # All nodes take elements of one array, which does not make them neighbours.
    assert counts[1] < 2.5 * counts[0]


def test_rows_that_are_sorted_apart_stay_apart() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4))
    entries = ft.sparse_jacobian(lambda x: np.sort(x, axis=1), method="elimination").prepare(x)
    assert len(entries.rows) == 3 * 4 * 4


@pytest.mark.parametrize("wrap", [ft.jit, ft.checkpoint])
def test_equal_eigenvalues_inside_a_called_function(wrap: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(np.linalg.eigvalsh(x[np.array([[0, 1], [1, 2]])])))

    called = wrap(f)
    # The trace of sin(A) at A = I: entries on the diagonal, and two for the one beside it.
    expected = -np.sin(1.0) * np.diag([1.0, 2.0, 1.0])
    for method in ("elimination", "star", "dense"):
        found = ft.sparse_hessian(lambda x: called(x), method=method)(np.array([1.0, 0.0, 1.0]))
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12, atol=1e-12)


def test_loops_take_elements_that_all_steps_share() -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.0, 6)
    program = traced(lambda x: ft.map(lambda row: np.sin(row) * x[:2], x.reshape(3, 2)).reshape(-1), x)
    found = jacobian_entries(program, (True,), 1, {}, "greedy")
    assert_close(matrix(found, [x]), dense(program, (True,), [x]), 1e-12)
    assert found.rows.size == 10


def test_jacobians_by_arrays_without_elements() -> None:
    x = np.ones((0, 2, 5))
    program = traced(lambda x: nn.functional.conv1d(x, np.ones((3, 2, 3))), x)
    assert dense(program, (True,), [x]).shape == (0, 0)
