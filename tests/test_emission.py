"""Equations that take, put and add elements by maps: the same as NumPy's indices, and slices where slices will do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_index_map import SHAPES, a_map, each_random

import ftrans as ft
from ftrans.base.index_map import IndexMap
from ftrans.core.program import Program
from ftrans.core.trace import Builder, building
from ftrans.core.types import type_of
from ftrans.ops.elementwise import add
from ftrans.structure.graph.emission import put, summed_at, take
from ftrans.transforms.simplify import simplify

INDEXED = {"gather", "scatter_add"}


def program_of(f: Callable[..., Any], *arrays: Any) -> Program:
    builder = Builder([type_of(x) for x in arrays])
    with building(builder):
        return simplify(builder.finish([f(*builder.inputs())], "emitted"))


def emitted(f: Callable[..., Any], *arrays: Any) -> Any:
    return program_of(f, *arrays)(*arrays)[0]


def names(program: Program) -> set[str]:
    return {eqn.primitive.name for eqn in program.eqns}


@each_random()
def test_emission_is_indexing(seed: range) -> None:
    for rng in map(np.random.default_rng, seed):
        shape = SHAPES[rng.integers(len(SHAPES))]
        x = rng.normal(size=shape)
        elements = a_map(rng, x.size, shape)
        check_emission(x, elements, rng.normal(size=elements.shape))


def check_emission(x: Any, elements: Any, values: Any) -> None:
    by = IndexMap.of(elements, x.size)
    for found in (emitted(lambda x: take(x, by), x), take(x, by)):
        np.testing.assert_array_equal(np.broadcast_to(found, elements.shape), x.reshape(-1)[elements], strict=True)
    sums = added(np.zeros(x.shape), elements, values)
    for found in (
        emitted(lambda v: put(type_of(x), v, by), values),
        emitted(lambda v: put(x.size, v, by), values).reshape(x.shape),
        put(type_of(x), values, by),
    ):
        np.testing.assert_allclose(found, sums, rtol=1e-13, atol=1e-13, strict=True)
    for found in (
        emitted(lambda x, v: summed_at(x, v, by), x, values),
        emitted(lambda x: summed_at(x, values, by), x),
        emitted(lambda v: summed_at(x, v, by), values),
        summed_at(x, values, by),
    ):
        np.testing.assert_allclose(found, x + sums, rtol=1e-13, atol=1e-13, strict=True)
    counts = added(np.zeros(x.shape), elements, 1.0)
    np.testing.assert_array_equal(put(x.size, 1.0, by).reshape(x.shape), counts)
    np.testing.assert_array_equal(emitted(lambda x: summed_at(x, 1.0, by), x), x + counts)


def added(base: Any, elements: Any, values: Any) -> Any:
    np.add.at(base.reshape(-1), elements, values)
    return base


def labels(*shape: int) -> Any:
    return np.arange(np.prod(shape)).reshape(shape)


SLICED: dict[str, tuple[tuple[int, ...], Any]] = {
    "slice": ((7,), labels(7)[1:-1]),
    "stride": ((7,), labels(7)[::3]),
    "reversed": ((7,), labels(7)[::-2]),
    "inner": ((5, 6), labels(5, 6)[1:-1, ::2]),
    "inner, flat": ((5, 6), labels(5, 6)[1:-1, ::2].reshape(-1)),
    "inner of a flat one": ((30,), labels(5, 6)[1:-1, 2:]),
    "inner of another shape": ((6, 5), labels(5, 6)[1:-1, 2:]),
    "turned": ((3, 4, 5), labels(3, 4, 5).transpose(2, 0, 1)[::-1, 1:]),
    "diagonal": ((4, 4), labels(16)[::5]),
    "rows": ((4, 4), np.broadcast_to(labels(4, 4)[:, None, ::2], (4, 3, 2))),
    "column": ((4, 4), np.broadcast_to(labels(4, 4)[:, 2, None], (4, 3))),
    "one": ((4, 4), np.full((2, 3), 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", SLICED)
def test_affine_maps_are_slices(name: str) -> None:
    shape, elements = SLICED[name]
    x = np.linspace(0, 1, np.prod(shape)).reshape(shape)
    by = IndexMap.of(elements, x.size)
    values = np.ones(elements.shape)
    type = type_of(x)
    for f, arrays in (
        (lambda x: take(x, by), (x,)),
        (lambda v: put(type, v, by), (values,)),
        (lambda x, v: summed_at(x, v, by), (x, values)),
    ):
        program = program_of(f, *arrays)
        assert not names(program) & INDEXED
        np.testing.assert_allclose(ft.jit(f)(*arrays), program(*arrays)[0], rtol=1e-13)


def test_a_few_runs_are_joined_from_slices() -> None:
    x = np.linspace(0, 1, 100)
    runs = IndexMap.of(np.r_[90:100, 0:5, 20:10:-1], 100)
    program = program_of(lambda x: take(x, runs), x)
    assert names(program) == {"slice", "reverse", "concatenate"}
    np.testing.assert_array_equal(program(x)[0], x[runs.table()])


def test_tables_are_read_by_constant_indices() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    mixed = IndexMap.of(rng.permutation(100)[:50], 100)
    program = program_of(lambda x: add(take(x, mixed), take(x, mixed)), x)
    # Equal reads are one.
    assert [eqn.primitive.name for eqn in program.eqns] == ["gather", "add"]
    np.testing.assert_array_equal(program(x)[0], 2 * x[mixed.table()])
    np.testing.assert_array_equal(ft.jit(lambda x: take(x, mixed))(x), x[mixed.table()])
    # What is put at distinct elements is read by all of them; only sums are scattered.
    assert "scatter_add" not in names(program_of(lambda v: put(100, v, mixed), x[:50]))
    twice = IndexMap.of(np.r_[mixed.table(), mixed.table()], 100)
    assert "scatter_add" in names(program_of(lambda v: put(100, v, twice), x))


def test_numbers_are_taken_as_they_are() -> None:
    assert take(2.5, IndexMap.identity((3,))) == 2.5
    assert isinstance(take(np.arange(3.0), IndexMap.identity((3,))), np.ndarray)
