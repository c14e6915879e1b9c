"""Maps from lanes to elements: the affine forms agree with tables, whatever is asked of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ftrans.base.affine import affine, detected, values
from ftrans.base.index_map import IndexMap, by_way, count_matches, matches, where_equal, where_lower

SHAPES: list[tuple[int, ...]] = [(), (1,), (6,), (3, 4), (2, 3, 4), (4, 1, 3), (0, 3), (12, 5)]


def moved(rng: np.random.Generator, labels: Any) -> Any:
    """Labels after a few random slices, transposes, reversals, broadcasts and reshapes."""
    for _ in range(rng.integers(1, 4)):
        kind = rng.integers(6)
        if kind == 0 and labels.ndim:
            axis = rng.integers(labels.ndim)
            n = labels.shape[axis]
            first = rng.integers(max(n, 1))
            part = slice(first, rng.integers(first, n + 1), rng.integers(1, 3))
            labels = labels[(slice(None),) * axis + (part,)]
        elif kind == 1:
            labels = labels.transpose(rng.permutation(labels.ndim))
        elif kind == 2 and labels.ndim:
            labels = np.flip(labels, rng.integers(labels.ndim))
        elif kind == 3 and labels.ndim < 4:
            labels = np.broadcast_to(labels[..., None], (*labels.shape, 2))
        elif kind == 4:
            labels = labels.reshape(-1)
        elif kind == 5 and labels.ndim > 1:
            labels = labels.reshape(-1, labels.shape[-1]) if labels.size else labels
    return labels


def a_map(rng: np.random.Generator, space: int, shape: tuple[int, ...] | None = None) -> Any:
    """The elements of a random map to an array of this size, as an array."""
    if rng.integers(4) and space:
        shape = shape or SHAPES[rng.integers(len(SHAPES))]
        if np.prod(shape) == space:
            return moved(rng, np.arange(space).reshape(shape))
        return moved(rng, np.arange(space))
    size = rng.integers(8) if space else 0
    return rng.integers(0, max(space, 1), size)


def each_random(count: int = 400) -> Any:
    return pytest.mark.parametrize("seed", [range(i, i + 50) for i in range(0, count, 50)], ids=str)


@each_random()
def test_a_map_has_the_elements_it_is_made_of(seed: range) -> None:
    for rng in map(np.random.default_rng, seed):
        space = int(rng.choice([0, 1, 12, 24, 60]))
        elements = a_map(rng, space)
        made = IndexMap.of(elements, space)
        np.testing.assert_array_equal(made.table(), elements)
        assert made.table().dtype == np.int64
        assert (made.shape, made.size, made.space) == (elements.shape, elements.size, space)
        assert made is IndexMap.of(elements.copy(), space)
        assert made.is_injective == (np.unique(elements).size == elements.size)
        assert made.is_identity == np.array_equal(elements.reshape(-1), np.arange(space))
        np.testing.assert_array_equal(made.reshaped((elements.size,)).table(), elements.reshape(-1))
        inverse = made.inverse()
        assert (inverse is not None) == (np.array_equal(np.sort(elements, axis=None), np.arange(space)))
        if inverse is not None:
            assert inverse.after(made).is_identity
            assert made.after(inverse).is_identity


@each_random()
def test_maps_compose(seed: range) -> None:
    for rng in map(np.random.default_rng, seed):
        space = int(rng.choice([1, 12, 24, 60]))
        outer = a_map(rng, space)
        inner = a_map(rng, outer.size, outer.shape)
        composed = IndexMap.of(outer, space).after(IndexMap.of(inner, outer.size))
        expected = outer.reshape(-1)[inner]
        np.testing.assert_array_equal(composed.table(), expected)
        assert composed is IndexMap.of(expected, space)


@each_random(800)
def test_matches_are_the_pairs_with_one_element(seed: range) -> None:
    for rng in map(np.random.default_rng, seed):
        space = int(rng.choice([1, 12, 24, 60]))
        left, right = a_map(rng, space), a_map(rng, space)
        pairs = matches(IndexMap.of(left, space), IndexMap.of(right, space))
        expected = np.argwhere(left.reshape(-1)[:, None] == right.reshape(-1)[None])
        if pairs is None:
            assert not expected.size
            continue
        of_left, of_right = pairs
        assert count_matches(IndexMap.of(left, space), IndexMap.of(right, space)) == of_left.size
        assert of_left.shape == of_right.shape
        assert (of_left.space, of_right.space) == (left.size, right.size)
        found = np.stack([of_left.table().reshape(-1), of_right.table().reshape(-1)], 1)
        assert (np.diff(found[:, 0]) >= 0).all()
        np.testing.assert_array_equal(found[np.lexsort(found.T[::-1])], expected)
        if np.array_equal(found[:, 0], np.arange(left.size)):
            assert of_left.shape == left.shape


@each_random()
def test_lanes_are_compared(seed: range) -> None:
    for rng in map(np.random.default_rng, seed):
        left = a_map(rng, 24)
        right = rng.permutation(left.reshape(-1).copy()).reshape(left.shape) if rng.integers(2) else left.copy()
        if rng.integers(2) and left.size and left.min() > 0:
            right = right - 1
        a, b = IndexMap.of(left, 24), IndexMap.of(right, 24)
        for compare, reference in ((where_equal, left == right), (where_lower, left >= right)):
            found = compare(a, b)
            np.testing.assert_array_equal(np.broadcast_to(found, left.shape), reference)
            assert (found is True) == reference.all()
            assert (found is False) == (reference.size > 0 and not reference.any())


@each_random()
def test_lanes_by_way_of_a_middle_reach_the_same_pairs(seed: range) -> None:
    for rng in map(np.random.default_rng, seed):
        shape = tuple(rng.integers(1, 4, 3))
        strides = [tuple(int(n) for n in rng.integers(0, 3, 3) * (12, 4, 1)) for _ in range(2)]
        rows, cols = (IndexMap.affine(shape, 1, s, 100) for s in strides)
        expected = set(zip(rows.table().flat, cols.table().flat, strict=True))
        steps = by_way(rows, cols)
        if steps is None:
            continue
        to_cols, to_rows = ([m.table().reshape(-1) for m in maps] for maps in steps)
        reached = {
            (int(row), int(col))
            for row, middle in zip(*to_rows, strict=True)
            for other, col in zip(*to_cols, strict=True)
            if middle == other
        }
        assert reached == expected


def test_all_on_all_goes_by_way_of_one_element() -> None:
    rows, cols = IndexMap.affine((10**6, 10**6), 0, (1, 0), 10**6), IndexMap.affine((10**6, 10**6), 0, (0, 1), 10**6)
    steps = by_way(rows, cols)
    assert steps is not None
    assert [m.size for maps in steps for m in maps] == [10**6] * 4
    assert count_matches(rows, rows) == 10**18


CALLS: dict[str, Callable[[IndexMap, IndexMap], Any]] = {
    "identity": lambda rows, cols: IndexMap.identity((1000, 1000)).is_identity,
    "reshaped": lambda rows, cols: rows.reshaped((rows.size,)),
    "after": lambda rows, cols: rows.after(IndexMap.affine((998, 499), 1, (998, 2), rows.size)),
    "after reshaped": lambda rows, cols: rows.reshaped((rows.size,)).after(
        IndexMap.affine((998, 998), 0, (1, 998), rows.size)
    ),
    "matches": matches,
    "matches of all": lambda rows, cols: matches(IndexMap.identity((1000, 1000)), rows),
    "matches of rows": lambda rows, cols: matches(rows, IndexMap.affine((1000, 1000), 5, (1000, 0), 10**6)),
    "injective": lambda rows, cols: rows.is_injective and cols.is_injective,
    "inverse": lambda rows, cols: IndexMap.affine((1000, 1000), 999, (-1, 1000), 10**6).inverse(),
    "equal": where_equal,
    "lower": where_lower,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_affine_maps_touch_no_memory(name: str) -> None:
    rows = IndexMap.affine((998, 998), 1001, (1000, 1), 10**6)
    cols = IndexMap.affine((998, 998), 0, (1000, 1), 10**6)
    tracemalloc.start()
    try:
        result = CALLS[name](rows, cols)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result is not None
    assert peak < 100_000


def test_matches_of_neighbours_are_slices() -> None:
    here = IndexMap.affine((6, 8), 11, (10, 1), 100)
    right = IndexMap.affine((6, 8), 12, (10, 1), 100)
    pairs = matches(here, right)
    assert pairs is not None
    assert [m.form for m in pairs] == [affine(1, (6, 7), (8, 1)), affine(0, (6, 7), (8, 1))]


def test_a_broadcast_meets_a_sum() -> None:
    rows = IndexMap.affine((3, 4), 0, (1, 0), 3)
    pairs = matches(rows, rows)
    assert pairs is not None
    assert all(m.form is not None for m in pairs)
    np.testing.assert_array_equal(pairs[0].table(), np.repeat(np.arange(12), 4))
    np.testing.assert_array_equal(pairs[1].table(), np.arange(12).reshape(3, 1, 4).repeat(4, 1).reshape(-1))


def test_large_spaces_need_64_bits() -> None:
    space = 2**33
    last = IndexMap.of(np.array([space - 1, 5, 7]), space)
    np.testing.assert_array_equal(last.table(), [space - 1, 5, 7])
    assert (
        IndexMap.affine((2, 2), 3, (space // 2, 1), space).after(IndexMap.of(np.array([2]), 4)).table()
        == space // 2 + 3
    )


def test_an_element_outside_is_refused() -> None:
    for elements in ([3], [-1], [0, 2, 1, 3]):
        with pytest.raises(IndexError, match="outside"):
            IndexMap.of(np.array(elements), 3)
    with pytest.raises(IndexError, match="outside"):
        IndexMap.affine((2, 2), 1, (2, 1), 4)


def test_forms_are_found_in_tables() -> None:
    for sizes, strides in [((3, 4), (4, 1)), ((3, 4), (1, 3)), ((5,), (0,)), ((4, 3, 2), (0, 7, -1)), ((2, 3), (2, 3))]:
        form = affine(40, sizes, strides)
        assert detected(values(form)) == form
    assert detected(np.array([0, 1, 3])) is None
    assert detected(np.array([0, 1, 4, 6])) is None
    assert detected(np.array([0, 1, 5, 7, 10, 11, 15, 16])) is None
