"""Entries that are computed block by block, and without unit axes: the same as all at once."""

import numpy as np
import pytest

import ftrans as ft
from benchmarks.structured_problems import bundle_adjustment
from ftrans.control.lanes import in_blocks as blocks
from ftrans.control.lanes.in_blocks import in_blocks, in_blocks_call
from ftrans.control.lanes.unit_axes import without_unit_axes
from ftrans.transforms.simplify import for_compiler
from ftrans.xla import Compiled

LANES = 5_003  # XLA makes loops over fewer lanes single kernels, without barriers
RANDOM = np.random.default_rng(0)
SIDE = RANDOM.normal(size=(LANES, 3))
PLACES = RANDOM.integers(9, size=LANES)


def gathered(x):
    a, b = x[:9][PLACES], x[9 : 9 + LANES]
    return np.stack([np.sin(a * b), np.exp(a) / (2.0 + np.cos(b))], 1)


def with_axes(x):
    """What is held constant is a sum over products of rows."""
    factor = np.sum(np.tanh(SIDE * ft.stop_gradient(x[:3])), 1)
    return np.stack([x[:LANES] ** 2 * factor, np.sin(x[:LANES]) * factor], 1)


def coupled(x):
    """A sum over the lanes is needed for each of them again."""
    y = np.sin(x[:LANES]) * x[LANES : 2 * LANES]
    return np.stack([y * x[:LANES], np.exp(-y)], 1) / np.sum(np.arange(3.0))


def with_columns(x):
    column = np.reshape(x[:LANES], (LANES, 1))
    return np.sin(column) * np.reshape(x[LANES : 2 * LANES], (LANES, 1)) / (column * column + 2.0)


FUNCTIONS = [gathered, with_axes, coupled, with_columns]


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(blocks, "_FEWEST_EQNS", 1)


def program_of(function, x):
    return for_compiler(ft.sparse_jacobian(function).prepare(x, compile=False)._program)


def inputs_of(prepared, x):
    return [x, *prepared._constants]


def same(program, other, args):
    for a, b in zip(program(*args), other(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("with_value", [False, True])
def test_blocks_give_the_same_entries(short, function, with_value):
    x = RANDOM.normal(size=2 * LANES)
    derivative = ft.value_and_sparse_jacobian if with_value else ft.sparse_jacobian
    prepared = derivative(function).prepare(x, compile=False)
    program, args = for_compiler(prepared._program), inputs_of(prepared, x)
    flat = without_unit_axes(program)
    flat.check()
    same(program, flat, args)
    for form in (program, flat):
        divided = in_blocks(form, 700)
        divided.check()
        assert any(eqn.primitive is in_blocks_call for eqn in divided.eqns)
        same(program, divided, args)
    for limit in (None, 4.0):
        for a, b in zip(program(*args), Compiled(divided, limit=limit)(*args), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("size", [613, 1250, 5003 // 4])
def test_blocks_that_divide_the_lanes_or_do_not(short, size):
    x = RANDOM.normal(size=2 * LANES)
    prepared = ft.sparse_jacobian(gathered).prepare(x, compile=False)
    program, args = for_compiler(prepared._program), inputs_of(prepared, x)
    (expected,), (found,) = program(*args), Compiled(in_blocks(program, size), limit=8.0)(*args)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_large_problems_are_computed_in_blocks():
    problem = bundle_adjustment(9_000)
    prepared = ft.sparse_jacobian(lambda z: problem.function(np, z)).prepare(problem.start)
    assert any(eqn.primitive is in_blocks_call for eqn in prepared._compiled.program.eqns)
    plain = ft.sparse_jacobian(lambda z: problem.function(np, z)).prepare(problem.start, compile=False)
    np.testing.assert_allclose(prepared.values(problem.start), plain.values(problem.start), rtol=1e-10, atol=1e-12)
    # The order of the format is an affine one.
    from scipy import sparse

    shape, values = prepared.shape, prepared.values(problem.start)
    expected = sparse.coo_array((values, (prepared.rows, prepared.cols)), shape=shape)
    for format in ("csr", "csc", "coo"):
        found = ft.sparse_jacobian(lambda z: problem.function(np, z), format=format).prepare(problem.start)
        assert abs(found(problem.start) - expected).max() == 0.0


def test_what_is_not_for_each_lane_stays_as_it_is(short):
    x = RANDOM.normal(size=2 * LANES)
    # Running sums, entries of one lane only, and a matrix of another shape.
    for function in (lambda x: np.cumsum(x[:30]), lambda x: x[1:] * x[:-1] * x[0], lambda x: np.sin(x[:3])):
        program = program_of(function, x)
        assert in_blocks(program, 700) is program
    # Too few lanes, or equations.
    program = program_of(gathered, x)
    assert in_blocks(program, LANES) is program


def test_few_equations_stay_as_they_are():
    program = program_of(gathered, RANDOM.normal(size=2 * LANES))
    assert in_blocks(program, 700) is program
