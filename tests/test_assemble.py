"""Blocks of a matrix united: each place is in one block, once, with the sum of all values."""

from __future__ import annotations

from typing import Any

import numpy as np
from test_emission import program_of
from test_index_map import each_random, moved

from ftrans.base.index_map import IndexMap, matches, places
from ftrans.structure.elimination.assemble import Block, entries_of, united

HEIGHT, WIDTH = 12, 8


def random_lanes(rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows and columns of a band, a block, a diagonal, or places of no order."""
    kind = rng.integers(4)
    if kind == 0:
        chosen = moved(rng, np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH))
    elif kind == 1:
        chosen = np.arange(WIDTH - 1) * (WIDTH + 1) + rng.integers(3)
    elif kind == 2:
        chosen = rng.integers(0, HEIGHT * WIDTH, 6)
    else:
        chosen = np.arange(HEIGHT)[rng.integers(4) :, None] * WIDTH + np.arange(rng.integers(1, WIDTH))
    return np.divmod(chosen.reshape(-1), WIDTH)


@each_random(800)
def test_united_blocks_have_the_same_sum(seed: range) -> None:
    for rng in map(np.random.default_rng, seed):
        lanes = [random_lanes(rng) for _ in range(rng.integers(1, 5))]
        values = [rng.normal(size=rows.size) for rows, _ in lanes]
        expected = np.zeros((HEIGHT, WIDTH))
        for (rows, cols), value in zip(lanes, values, strict=True):
            np.add.at(expected, (rows, cols), value)
        np.testing.assert_allclose(assembled(lanes, values), expected, atol=1e-13)


def assembled(lanes: list[tuple[Any, Any]], values: list[Any]) -> Any:
    where: list[Any] = []

    def entries(*vectors: Any) -> Any:
        blocks = [
            Block(IndexMap.of(rows, HEIGHT), IndexMap.of(cols, WIDTH), vector)
            for (rows, cols), vector in zip(lanes, vectors, strict=True)
        ]
        rows, cols, vector = entries_of(united(blocks), np.float64)
        where.extend((rows, cols))
        return vector

    vector = program_of(entries, *values)(*values)[0]
    rows, cols = where
    assert np.unique(rows * WIDTH + cols).size == rows.size == vector.size
    found = np.zeros((HEIGHT, WIDTH))
    found[rows, cols] = vector
    return found


def test_overlapping_diagonals_are_added_as_slices() -> None:
    n = 1000
    first, last = (IndexMap.affine((n - 1,), start, (1,), n) for start in (0, 1))

    def diagonals(x: Any, y: Any) -> Any:
        return entries_of(united([Block(first, first, x), Block(last, last, y)]), np.float64)[2]

    program = program_of(diagonals, np.ones(n - 1), np.ones(n - 1))
    assert {eqn.primitive.name for eqn in program.eqns} == {"slice", "add_slice", "concatenate"}
    assert program(np.ones(n - 1), np.ones(n - 1))[0].sum() == 2 * (n - 1)


@each_random()
def test_places_are_rows_and_columns(seed: range) -> None:
    for rng in map(np.random.default_rng, seed):
        rows, cols = random_lanes(rng)
        by_row, by_col = IndexMap.of(rows, HEIGHT), IndexMap.of(cols, WIDTH)
        found = places(by_row, by_col)
        assert found.space == HEIGHT * WIDTH
        np.testing.assert_array_equal(found.table(), rows * WIDTH + cols)
        shifted = by_row.shifted(3, HEIGHT + 5)
        assert shifted is IndexMap.of(rows + 3, HEIGHT + 5)
        others = np.setdiff1d(np.arange(HEIGHT), rows)
        missing = by_row.missing()
        np.testing.assert_array_equal([] if missing is None else missing.table(), others)


def test_places_of_a_large_matrix_are_matched_without_an_array_of_it() -> None:
    n = 10**7
    rng = np.random.default_rng(0)
    rows, cols = (rng.integers(0, n, 50) for _ in range(2))
    found = places(IndexMap.of(rows, n), IndexMap.of(cols, n))
    some = places(IndexMap.of(rows[[7, 3, 3]], n), IndexMap.of(cols[[7, 3, 3]], n))
    assert found.is_injective
    assert not some.is_injective
    pairs = matches(some, found)
    assert pairs is not None
    np.testing.assert_array_equal(pairs[0].table(), [0, 1, 2])
    np.testing.assert_array_equal(pairs[1].table(), [7, 3, 3])
