"""Colourings: against their definitions, against the smallest numbers of colours, and against known numbers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ftrans.structure.colouring import colour
from ftrans.structure.colouring.orders import ORDERS, order_of_vertices, without_diagonal
from ftrans.structure.colouring.recovery import forest_of, in_rows

SIZES = [1, 2, 3, 5, 8, 12]


def patterns(symmetric: bool) -> list[Any]:
    """Random dense boolean matrices of all densities."""
    rng = np.random.default_rng(0)
    found = []
    for size, density in itertools.product(SIZES, [0.0, 0.1, 0.25, 0.5, 0.8, 1.0]):
        x = rng.random((size, size if symmetric else int(rng.integers(1, 12)))) < density
        found.append(x | x.T if symmetric else x)
    return found


def csr(x: Any) -> Any:
    """A dense matrix of booleans as the colourings take it."""
    return sp.csr_array(x)


def paths(x: Any, length: int) -> Any:
    """Paths of distinct vertices along the entries of a symmetric matrix that are not on its diagonal."""
    for path in itertools.permutations(range(len(x)), length):
        if all(x[a, b] for a, b in itertools.pairwise(path)):
            yield path


def is_of_columns(x: Any, colours: Any) -> bool:
    return all(len({*colours[row]} - {-1}) == row.sum() for row in x)


def is_star(x: Any, colours: Any) -> bool:
    if any(colours[a] == colours[b] for a, b in paths(x, 2)):
        return False
    return all(len({colours[v] for v in path}) > 2 for path in paths(x, 4))


def is_acyclic(x: Any, colours: Any) -> bool:
    if any(colours[a] == colours[b] for a, b in paths(x, 2)):
        return False
    for pair in itertools.combinations(set(colours.tolist()), 2):
        among = np.flatnonzero(np.isin(colours, pair))
        part = x[np.ix_(among, among)] & ~np.eye(len(among), dtype=bool)
        trees = sp.csgraph.connected_components(csr(part), directed=False)[0]
        if part.sum() // 2 != len(among) - trees:
            return False
    return True


def is_bidirectional(x: Any, rows: Any, columns: Any) -> bool:
    """By the definition of a star bicolouring, with -1 for what has no colour."""
    for i, j in np.argwhere(x):
        if rows[i] < 0 and columns[j] < 0:
            return False
    for i in np.flatnonzero(rows < 0):
        if not is_of_columns(x[[i]], columns):
            return False
    for j in np.flatnonzero(columns < 0):
        if not is_of_columns(x.T[[j]], rows):
            return False
    height, width = x.shape
    for (i, k), (j, m) in itertools.product(
        itertools.permutations(range(height), 2), itertools.permutations(range(width), 2)
    ):
        # The path j - i - m - k: column, row, column, row.
        if x[i, j] and x[i, m] and x[k, m] and columns[j] == columns[m] >= 0 and rows[i] == rows[k] >= 0:
            return False
    return True


@pytest.mark.parametrize("order", ORDERS)
def test_columns_of_one_colour_share_no_row(order: Any) -> None:
    for x in patterns(symmetric=False):
        assert is_of_columns(x, colour.column_colours(csr(x), order, 1))


@pytest.mark.parametrize("order", ORDERS)
def test_two_colours_form_stars(order: Any) -> None:
    for x in patterns(symmetric=True):
        if len(x) <= 8:
            colours = colour.star_colours(csr(x | np.eye(len(x), dtype=bool)), order, 1)
            assert is_star(x, colours)


@pytest.mark.parametrize("order", ORDERS)
def test_two_colours_form_trees(order: Any) -> None:
    for x in patterns(symmetric=True):
        assert is_acyclic(x, colour.acyclic_colours(csr(x | np.eye(len(x), dtype=bool)), order, 1))


@pytest.mark.parametrize("order", ORDERS)
def test_rows_and_columns_show_all_entries(order: Any) -> None:
    for x in patterns(symmetric=False):
        if len(x) <= 8:
            found = colour.bidirectional_colours(csr(x), order, 1)
            assert is_bidirectional(x, found.rows, found.columns)
    for seed in range(3):
        x = np.eye(8, dtype=bool) | (np.random.default_rng(seed).random((8, 8)) < 0.04)
        x[2] = x[:, 1] = True
        found = colour.bidirectional_colours(csr(x), order, 1)
        assert found.total < 8
        assert is_bidirectional(x, found.rows, found.columns)


def test_full_rows_and_columns_are_coloured_from_both_sides() -> None:
    rng = np.random.default_rng(1)
    for size in (8, 30):
        x = np.eye(size, dtype=bool) | (rng.random((size, size)) < 0.02)
        x[[1, 5]] = x[:, [0, 3]] = True
        found = colour.bidirectional_colours(csr(x))
        alone = in_rows(*np.nonzero(x), found.columns) | in_rows(*np.nonzero(x)[::-1], found.rows)
        assert alone.all()
        assert found.total < size
        assert is_bidirectional(x, found.rows, found.columns)


def smallest(x: Any, is_valid: Any) -> int:
    """The smallest number of colours, by trying all assignments up to their names."""
    width = x.shape[1]

    def extended(colours: list[int], most: int) -> bool:
        if len(colours) == width:
            return bool(is_valid(x, np.array(colours)))
        return any(extended([*colours, c], most) for c in range(min(max(colours, default=-1) + 2, most)))

    return next(most for most in itertools.count(1) if extended([], most))


def test_few_more_colours_than_the_smallest_number() -> None:
    rng = np.random.default_rng(2)
    excess = {"columns": 0, "star": 0, "acyclic": 0}
    for _ in range(12):
        x = rng.random((6, 6)) < rng.uniform(0.1, 0.6)
        x = x | x.T | np.eye(6, dtype=bool)
        for name, greedy, is_valid in [
            ("columns", colour.column_colours, is_of_columns),
            ("star", colour.star_colours, is_star),
            ("acyclic", colour.acyclic_colours, is_acyclic),
        ]:
            found = int(greedy(csr(x)).max()) + 1
            best = smallest(x, is_valid)
            assert best <= found <= best + 2
            excess[name] += found - best
    assert max(excess.values()) <= 5, excess


def banded(size: int, width: int) -> Any:
    """A band with `width` diagonals on each side of the main one."""
    offsets = range(-width, width + 1)
    return sp.diags_array([np.ones(size - abs(k)) for k in offsets], offsets=list(offsets)).tocsr().astype(bool)


def grid(side: int) -> Any:
    """The stencil of five points on a square grid."""
    line, one = banded(side, 1).astype(float), sp.eye_array(side)
    return (sp.kron(line, one) + sp.kron(one, line)).tocsr().astype(bool)


def arrow(size: int) -> Any:
    """A full row and a full column, and the diagonal."""
    x = np.eye(size, dtype=bool)
    x[0] = x[:, 0] = True
    return csr(x)


def count(colours: Any) -> int:
    return int(colours.max()) + 1


def test_known_numbers() -> None:
    assert count(colour.column_colours(banded(50, 1))) == 3
    assert count(colour.column_colours(banded(50, 3))) == 7
    assert count(colour.star_colours(banded(50, 1))) == 3
    assert count(colour.acyclic_colours(banded(50, 1))) == 2
    assert count(colour.column_colours(arrow(50))) == 50
    assert count(colour.star_colours(arrow(50))) == 2
    assert count(colour.acyclic_colours(arrow(50))) == 2
    assert colour.bidirectional_colours(arrow(50)).total == 3
    dense = csr(np.ones((9, 9), bool))
    for colours in (colour.column_colours(dense), colour.star_colours(dense), colour.acyclic_colours(dense)):
        assert count(colours) == 9
    diagonal = csr(np.eye(9, dtype=bool))
    assert count(colour.column_colours(diagonal)) == count(colour.star_colours(diagonal)) == 1
    # No row has more than five entries; a grid has a star colouring with five colours, and an acyclic one with three.
    assert 5 <= count(colour.column_colours(grid(30))) <= 8
    assert 5 <= count(colour.star_colours(grid(30))) <= 7
    assert 3 <= count(colour.acyclic_colours(grid(30))) <= 4


def test_empty_rows_and_columns_need_no_colour() -> None:
    x = np.zeros((3, 4), bool)
    assert colour.column_colours(csr(x)).tolist() == [-1] * 4
    x[1, 2] = True
    assert colour.column_colours(csr(x)).tolist() == [-1, -1, 0, -1]
    assert colour.star_colours(csr(np.zeros((3, 3), bool))).tolist() == [-1] * 3
    assert colour.bidirectional_colours(csr(x)).total == 1
    assert colour.column_colours(csr(np.zeros((0, 0), bool))).tolist() == []


def test_orders_follow_their_definitions() -> None:
    rng = np.random.default_rng(3)
    for density in (0.1, 0.3, 0.6):
        x = rng.random((20, 20)) < density
        x = (x | x.T) & ~np.eye(20, dtype=bool)
        graph = without_diagonal(csr(x))
        for order in ORDERS:
            found = order_of_vertices(graph, order, 1)
            assert sorted(found) == list(range(20))
            degrees = [int(x[v].sum()) for v in found]
            for place, v in enumerate(found):
                earlier, later = found[:place], found[place:]
                if order == "largest_first":
                    assert degrees[place] == max(degrees[place:])
                elif order == "smallest_last":
                    ahead = found[: place + 1]
                    assert x[v, ahead].sum() == min(x[w, ahead].sum() for w in ahead)
                elif order == "dynamic_largest_first":
                    assert x[v, later].sum() == max(x[w, later].sum() for w in later)
                elif order == "incidence_degree":
                    assert x[v, earlier].sum() == max(x[w, earlier].sum() for w in later)
    assert order_of_vertices(graph, "random", 1) != order_of_vertices(graph, "random", 2)


def test_full_rows_leave_the_graph_of_columns_unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    from ftrans.structure.colouring import orders

    monkeypatch.setattr(orders, "_MOST_PAIRS", 10)
    for x in patterns(symmetric=False):
        assert is_of_columns(x, colour.column_colours(csr(x), "smallest_last"))


def test_a_forest_is_one() -> None:
    # A path and a star, in two colours; then a cycle.
    rows, cols = np.array([0, 1, 2, 4, 4]), np.array([1, 2, 3, 5, 6])
    forest = forest_of(rows, cols, np.array([0, 1, 0, 1, 0, 1, 1]))
    assert forest is not None
    assert forest.depth <= 3
    assert sorted(forest.place_of) == sorted(set(forest.place_of))
    assert (forest.parents[forest.place_of] != forest.place_of).all()
    assert forest_of(np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]), np.array([0, 1, 0, 1])) is None
