"""Rule `local`: which elements of results depend on which of operands, against Jacobians of the table's rows."""

from __future__ import annotations

from typing import Any

import control_samples  # noqa: F401
import linalg_samples  # noqa: F401
import numpy as np
import pytest
import samples
from sampling import SAMPLES, Sample
from tables import covering, each

import ftrans as ft
from ftrans.api.call import trace_flat
from ftrans.base.index_map import Piece
from ftrans.core.types import is_inexact, type_of
from ftrans.ops.elementwise import Elementwise
from ftrans.structure.patterns import held_patterns
from ftrans.structure.patterns.detect import jacobian_pattern
from ftrans.transforms.jvp import jvp

# Results whose elements all depend on what the pieces say, for some values.
EXACT = {
    "reshape", "transpose", "broadcast", "reverse", "slice", "pad", "concatenate", "reduce_sum", "reduce_prod",
    "cumsum", "cumprod", "cumlogsumexp", "dot_general", "gather", "scatter_add", "scatter_set", "set_slice",
    "add_slice", "dynamic_slice", "dynamic_set", "dynamic_add", "solve", "inv", "det", "convolution", "window_sum",
    "rfft", "tap", "required", "derivative_required",
}  # fmt: skip

assert samples
# Jacobians of larger rows take seconds.
_MOST_ELEMENTS = 1000


def has_small_jacobian(sample: Sample) -> bool:
    by = [t for t, is_active in zip(sample.types, sample.active, strict=True) if is_active]
    return sample.smooth and bool(by) and all(t.size <= _MOST_ELEMENTS for t in by)


ALL_ROWS = [s for s in SAMPLES if has_small_jacobian(s) and any(is_inexact(t.dtype) for t in s.out_types)]
ROWS = [s for s in ALL_ROWS if not isinstance(s.primitive, Elementwise)]
ELEMENTWISE = covering([s for s in ALL_ROWS if isinstance(s.primitive, Elementwise)], lambda s: s.primitive.name)

EXACT_ROWS = [s for s in ROWS if s.primitive.name in EXACT and s.types[0].dtype.name == "float64" and not s.note]


def pieces_of(sample: Sample, known: list[Any]) -> Any:
    """Pieces for each result and operand; None where the rule says nothing."""
    found = sample.primitive.local(sample.types, sample.out_types, known, sample.params)
    return found if found is None or sample.primitive.multiple_results else [found]


def jacobians(sample: Sample, operands: list[Any], operand: int) -> list[Any]:
    """The derivatives of the results along each element of an operand; complex ones are along the real axis."""
    derived = jvp(sample.program(), tuple(i == operand for i in range(len(operands))))
    type = sample.types[operand]
    columns: list[list[Any]] = [[] for _ in sample.out_types]
    for unit in np.eye(type.size, dtype=type.dtype):
        outs = iter(derived.program(*operands, unit.reshape(type.shape))[len(columns) :])
        for column, t, is_active in zip(columns, sample.out_types, derived.out_active, strict=True):
            column.append(np.reshape(next(outs), -1) if is_active else np.zeros(t.size, t.dtype))
    shapes = [(t.size, type.size) for t in sample.out_types]
    return [np.stack(c, 1) if c else np.zeros(s) for c, s in zip(columns, shapes, strict=True)]


def total(pieces: list[Piece], shape: tuple[int, ...], factors: bool) -> Any:
    """The matrix of pieces: sums of their factors, or how often elements are met."""
    found = np.zeros(shape)
    for piece in pieces:
        assert piece.rows.shape == piece.cols.shape
        assert (piece.rows.space, piece.cols.space) == shape
        value = piece.factor if factors else 1.0
        np.add.at(found, (piece.rows.table().reshape(-1), piece.cols.table().reshape(-1)), value)
    return found


def check(sample: Sample, are_known: bool, seed: int = 0) -> Any:
    """Compare pieces with Jacobians; return for each pair whether its elements are met, and where it is not zero."""
    operands = sample.draw(seed)
    active = sample.active
    known = [x if are_known and not a else None for x, a in zip(operands, active, strict=True)]
    found = pieces_of(sample, known)
    if found is None:
        return []
    pairs = []
    for operand in np.flatnonzero(active):
        for result, jacobian in enumerate(jacobians(sample, operands, operand)):
            if not is_inexact(sample.out_types[result].dtype):
                continue
            pieces = found[result][operand]
            met = total(pieces, jacobian.shape, factors=False)
            tiny = 1e-10 if sample.types[operand].dtype.itemsize >= 8 else 1e-3
            is_used = np.abs(jacobian) > tiny * np.max(np.abs(jacobian), initial=0)
            assert not (is_used & (met == 0)).any(), (result, operand)
            if all(piece.factor is not None for piece in pieces):
                np.testing.assert_allclose(jacobian, total(pieces, jacobian.shape, factors=True), rtol=0, atol=0)
            else:
                assert met.max(initial=0) <= 1
            pairs.append((met > 0, is_used))
    return pairs


@each(lambda s: s.primitive.name, sample=[*ROWS, *ELEMENTWISE])
def test_pieces_cover_jacobians(sample: Sample) -> None:
    check(sample, are_known=False)
    check(sample, are_known=True)


@each(lambda s: s.primitive.name, sample=EXACT_ROWS)
def test_pieces_have_no_elements_that_are_always_zero(sample: Sample) -> None:
    drawn = [check(sample, are_known=True, seed=seed) for seed in range(3)]
    for pairs in zip(*drawn, strict=True):
        met, used = (np.logical_or.reduce(list(flags)) for flags in zip(*pairs, strict=True))
        np.testing.assert_array_equal(met, used)


# What these move or add up is said without an array.
AFFINE = {
    "reshape", "transpose", "broadcast", "reverse", "slice", "pad", "concatenate", "add_slice", "dynamic_slice",
    "dynamic_add", "reduce_sum", "reduce_max", "dot_general", "window_sum", "sort", "fft", "inv",
}  # fmt: skip


@each(lambda s: s.primitive.name, sample=[s for s in ROWS if s.primitive.name in AFFINE])
def test_pieces_are_affine(sample: Sample) -> None:
    known = [x if i and np.ndim(x) == 0 else None for i, x in enumerate(sample.draw())]
    for of_result in pieces_of(sample, known):
        for piece in (p for of_operand in of_result for p in of_operand):
            assert piece.rows.form is not None
            assert piece.cols.form is not None


def test_what_is_exact_is_in_the_table() -> None:
    assert {s.primitive.name for s in EXACT_ROWS} == EXACT


# Loops and branches


def dependence_of(f: Any, x: Any) -> Any:
    """Which results of a function may depend on which elements of its argument."""
    return jacobian_pattern_of(f, x).toarray()


def jacobian_pattern_of(f: Any, x: Any) -> Any:
    traced, _ = trace_flat(f, [type_of(x)], lambda tracers: f(*tracers), [x])
    active = (True, *(False for _ in traced.captured))
    return jacobian_pattern(traced.program, active, len(traced.program.outputs), {})


def shifted(x: Any) -> Any:
    return np.concatenate([x[1:] * 2.0, x[:1]])


STEPS = 3
LOOPS: dict[str, Any] = {
    "sequence": lambda x: ft.map(lambda row: np.sin(row) * row[0], x.reshape(3, 4)),
    "rows so far": lambda x: ft.scan(lambda c, u: (c * 0.5 + np.sin(u), c * u), x[:2], x[2:].reshape(5, 2))[1],
    "rows from here": lambda x: ft.scan(
        lambda c, u: (c * 0.5 + np.sin(u), c * u), x[:2], x[2:].reshape(5, 2), reverse=True
    )[1],
    "last carry": lambda x: ft.scan(lambda c, u: (c + np.sin(u), None), x[:2], x[2:].reshape(5, 2))[0],
    "closure": lambda x: ft.scan(lambda c, u: (c, u * x[3]), 0.0, x)[1],
    "few steps": lambda x: ft.scan(lambda c, _: (c + shifted(c), None), x, None, length=STEPS)[0],
    "until": lambda x: ft.while_loop(lambda c: np.sum(c * c) > 1e-3, lambda c: 0.5 * np.sin(c), x),
    "branches": lambda x: ft.cond(x[0] > 0, np.sin, shifted, x) + ft.cond(x[0] > 0, shifted, np.sin, x),
    "checkpoint": lambda x: ft.checkpoint(lambda x: np.sin(x) * shifted(x))(x),
}  # fmt: skip


@pytest.mark.parametrize("most_steps", [2000, 0])
@pytest.mark.parametrize("name", LOOPS)
def test_dependence_through_loops_and_branches_is_that_of_the_jacobian(
    name: str, most_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_patterns, "_MOST_STEPS", most_steps)
    x = np.random.default_rng(0).uniform(0.5, 1.0, 12)
    jacobian = np.reshape(ft.jacobian(LOOPS[name])(x), (-1, 12))
    np.testing.assert_array_equal(dependence_of(LOOPS[name], x), jacobian != 0)


def test_long_loops_have_patterns() -> None:
    def recurrence(x: Any) -> Any:
        return ft.scan(lambda c, u: (0.5 * c + u, c[0]), np.zeros(2), x.reshape(-1, 2))[1]

    size = 2 * (held_patterns._MOST_STEPS + 1)
    found = jacobian_pattern_of(recurrence, np.ones(size))
    steps = size // 2
    assert found.nnz == steps * (steps - 1) // 2
    assert found[-1].nnz == steps - 1
    assert found[:, [1]].nnz == 0
    loop = ft.sparse_jacobian(lambda x: ft.while_loop(lambda c: c[0] < 100, lambda c: c * c, x))
    np.testing.assert_array_equal(loop(np.array([2.0, 1.0, 3.0])).nnz, 3)


def test_lags_are_told_apart_in_loops_that_are_not_long() -> None:
    def lagged(x: Any) -> Any:
        return ft.scan(lambda c, u: (np.stack([u, c[0]]), c[1]), np.zeros(2), x)[1]

    np.testing.assert_array_equal(dependence_of(lagged, np.ones(5)), np.eye(5, k=-2, dtype=bool))
