"""`Sparsity` and `coloring`: sets of positions, other forms, files, pictures, and mistakes that are explained."""

from __future__ import annotations

import pickle
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ftrans as ft
from ftrans.api.sparsity_pictures import cells

RNG = np.random.default_rng(0)
DENSE = RNG.random((7, 9)) < 0.3
OTHER = RNG.random((7, 9)) < 0.3
PATTERN = ft.Sparsity.from_dense(DENSE)


def dense(pattern: ft.Sparsity) -> Any:
    """The pattern as a matrix of booleans."""
    return pattern.to_scipy().toarray()


def large(count: int = 1_000_000) -> ft.Sparsity:
    """A large random pattern."""
    rng = np.random.default_rng(1)
    return ft.Sparsity(rng.integers(0, 200_000, count), rng.integers(0, 300_000, count), (200_000, 300_000))


def test_positions_are_in_row_major_order_and_there_once() -> None:
    pattern = ft.Sparsity([2, 0, 2, 0], [1, 3, 1, 0], (3, 4))
    assert pattern.rows.tolist() == [0, 0, 2]
    assert pattern.cols.tolist() == [0, 3, 1]
    assert pattern.rows.dtype == pattern.cols.dtype == np.int64
    assert (pattern.nnz, pattern.shape, pattern.density) == (3, (3, 4), 0.25)
    assert ft.Sparsity([], [], (0, 4)).density == 0.0
    assert ft.Sparsity([], [], (3, 0)).T.shape == (0, 3)


def test_sets() -> None:
    other = ft.Sparsity.from_dense(OTHER)
    np.testing.assert_array_equal(dense(PATTERN | other), DENSE | OTHER)
    np.testing.assert_array_equal(dense(PATTERN & other), DENSE & OTHER)
    np.testing.assert_array_equal(dense(PATTERN - other), DENSE & ~OTHER)
    np.testing.assert_array_equal(dense(PATTERN.T), DENSE.T)
    np.testing.assert_array_equal(dense(PATTERN.lower()), np.tril(DENSE))
    assert PATTERN.union(other, other.union()) == PATTERN | other
    assert PATTERN.union() == PATTERN
    assert (PATTERN | other).covers(PATTERN)
    assert not PATTERN.covers(PATTERN | other)
    assert PATTERN.T.T == PATTERN
    assert hash(PATTERN.T.T) == hash(PATTERN)
    assert other not in (PATTERN, "pattern")
    assert len({PATTERN, PATTERN.T.T, other}) == 2


def test_membership() -> None:
    i, j = np.indices(DENSE.shape)
    np.testing.assert_array_equal(PATTERN.contains(i, j), DENSE)
    assert not PATTERN.contains([-1, 7, 0, 0], [0, 0, -1, 9]).any()
    assert ((0, 0) in PATTERN) == DENSE[0, 0]
    assert (0, 100) not in PATTERN


def test_bandwidth() -> None:
    from scipy.linalg import bandwidth

    for size in (1, 4, 9):
        x = np.random.default_rng(size).random((size, size)) < 0.3
        assert ft.Sparsity.from_dense(x).bandwidth == bandwidth(x.astype(float))
    assert ft.Sparsity([], [], (3, 3)).bandwidth == (0, 0)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
def test_scipy(format: str) -> None:
    found = PATTERN.to_scipy(format)
    assert found.format == format
    assert isinstance(found, sp.sparray)
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found.toarray(), DENSE)
    values = np.arange(1.0, PATTERN.nnz + 1)
    expected = np.zeros(DENSE.shape)
    expected[DENSE] = values
    np.testing.assert_array_equal(PATTERN.to_scipy(format, values).toarray(), expected)
    assert ft.Sparsity.from_scipy(found) == PATTERN
    assert ft.Sparsity.from_scipy(sp.csr_matrix(expected)) == PATTERN


def test_what_scipy_stores_is_an_entry() -> None:
    stored = sp.csr_array((np.array([0.0, 1.0]), (np.array([0, 1]), np.array([1, 1]))), (2, 2))
    assert ft.Sparsity.from_scipy(stored).nnz == 2
    assert ft.Sparsity.from_dense(np.array([[0.0, np.nan]])).nnz == 1


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "pattern.npz"
    for pattern in (PATTERN, ft.Sparsity([], [], (0, 3))):
        pattern.save(path)
        assert ft.Sparsity.load(path) == pattern
    assert pickle.loads(pickle.dumps(PATTERN)) == PATTERN


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, rows=np.arange(3), cols=np.arange(3))
    with pytest.raises(ValueError, match=r"not a file that Sparsity\.save"):
        ft.Sparsity.load(path)
    np.savez(path, rows=np.array([0, 5]), cols=np.array([0, 0]), shape=np.array([2, 2]))
    with pytest.raises(ValueError, match="row 5"):
        ft.Sparsity.load(path)
    np.savez(path, rows=np.array([0, Path()], object), cols=np.array([0, 0]), shape=np.array([2, 2]))
    with pytest.raises(ValueError, match="allow_pickle"):
        ft.Sparsity.load(path)
    np.savez(path, rows=np.array([0.5]), cols=np.array([0]), shape=np.array([2, 2]))
    with pytest.raises(ValueError, match="integers"):
        ft.Sparsity.load(path)
    for content in (b"", b"text", b"PK\x03\x04 nothing"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"not a file that Sparsity\.save"):
            ft.Sparsity.load(path)
    np.save(tmp_path / "array.npy", np.arange(3))
    with pytest.raises(ValueError, match=r"not a file that Sparsity\.save"):
        ft.Sparsity.load(tmp_path / "array.npy")
    with pytest.raises(FileNotFoundError):
        ft.Sparsity.load(tmp_path / "missing.npz")


def test_nothing_can_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        PATTERN.shape = (1, 1)
    with pytest.raises(AttributeError, match="immutable"):
        del PATTERN.rows
    with pytest.raises(ValueError, match="read-only"):
        PATTERN.rows[0] = 3
    rows = np.array([0, 1])
    pattern = ft.Sparsity(rows, [0, 0], (2, 2))
    rows[0] = 1
    assert pattern.rows.tolist() == [0, 1]
    with pytest.raises(TypeError, match="nnz"):
        bool(PATTERN)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ft.Sparsity([0, 1], [0], (2, 2)), "2 rows and 1 columns"),
        (lambda: ft.Sparsity([0, 2], [0, 0], (2, 2)), "entry 1 is in row 2.*rows 0 to 1"),
        (lambda: ft.Sparsity([0], [-1], (2, 2)), "entry 0 is in column -1"),
        (lambda: ft.Sparsity([0.0], [0], (2, 2)), "rows must be integers, not float64"),
        (lambda: ft.Sparsity([[0]], [0], (2, 2)), "from_dense"),
        (lambda: ft.Sparsity([0], [0], 2), "numbers of rows and of columns"),  # type: ignore[arg-type]
        (lambda: ft.Sparsity([0], [0], (2, 2.0)), "numbers of rows and of columns"),  # type: ignore[arg-type]
        (lambda: ft.Sparsity([0], [0], (2**32, 2**32)), "positions"),
        (lambda: ft.Sparsity.from_dense([1.0]), "two axes"),
        (lambda: ft.Sparsity.from_scipy(np.eye(2)), "from_dense"),
        (lambda: PATTERN | PATTERN.T, "shape"),
        (lambda: PATTERN.covers(DENSE), "another Sparsity"),  # type: ignore[arg-type]
        (lambda: PATTERN.to_scipy("hdf"), "format must be one of csr"),
        (lambda: PATTERN.to_scipy("csr", [1.0]), "values must have the shape"),
        (lambda: ft.coloring(PATTERN, "columns"), "kind must be one of"),  # type: ignore[arg-type]
        (lambda: ft.coloring(PATTERN, order="best"), "order must be one of"),  # type: ignore[arg-type]
        (lambda: ft.coloring(PATTERN, "star"), "symmetric"),
        (lambda: ft.coloring("pattern"), "a Sparsity, a sparse matrix"),
    ],
)
def test_mistakes_are_explained(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        make()
    assert "test_sparsity.py" in str(caught.value)


def test_other_operands_are_python_errors() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        PATTERN | DENSE  # type: ignore[operator]


# Pictures


def test_small_patterns_show_each_position() -> None:
    lines = str(PATTERN).splitlines()
    assert lines[-1] == f"7 x 9, {PATTERN.nnz} entries ({100 * PATTERN.density:.3g}%)"
    shown = np.array([[c == "●" for c in line.split(" ")] for line in lines[:-1]])
    np.testing.assert_array_equal(shown, DENSE)
    assert repr(PATTERN) == f"Sparsity(shape=(7, 9), nnz={PATTERN.nnz}, density={100 * PATTERN.density:.3g}%)"
    assert str(ft.Sparsity([], [], (0, 3))) == "0 x 3, 0 entries (0%)"


def test_braille_has_a_dot_where_there_are_entries() -> None:
    x = np.random.default_rng(2).random((50, 70)) < 0.1
    lines = str(ft.Sparsity.from_dense(x)).splitlines()[1:-2]
    # The eight dots of a character, in the order of their bits.
    places = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (3, 0), (3, 1)]
    shown = np.zeros((4 * len(lines), 2 * (len(lines[0]) - 2)), bool)
    for i, line in enumerate(lines):
        for j, character in enumerate(line[1:-1]):
            for bit, (down, right) in enumerate(places):
                shown[4 * i + down, 2 * j + right] = ord(character) - 0x2800 >> bit & 1
    np.testing.assert_array_equal(shown[:50, :70], x)
    assert not shown[50:].any()
    assert not shown[:, 70:].any()


def test_large_pictures_are_small() -> None:
    pattern = large()
    lines = str(pattern).splitlines()
    assert len(lines) <= 33
    assert max(map(len, lines)) <= 63
    assert len(pattern.to_svg()) < 200_000
    thin = ft.Sparsity(np.arange(200_000), np.zeros(200_000, int), (200_000, 2))
    assert max(map(len, str(thin).splitlines()[:-1])) <= 63
    assert len(str(thin).splitlines()) <= 33


def test_cells_count_all_entries() -> None:
    for shape, most in [((7, 9), (7, 9)), ((7, 9), (3, 4)), ((100, 3), (10, 10)), ((1, 50), (5, 5)), ((0, 4), (5, 5))]:
        count = 30 if all(shape) else 0
        rng = np.random.default_rng(3)
        rows, cols = (rng.integers(0, max(n, 1), count) for n in shape)
        found = cells(rows, cols, shape, most)
        assert found.sum() == count
        assert found.shape[0] <= most[0]
        assert found.shape[1] <= most[1]


def test_svg(tmp_path: Path) -> None:
    pattern = ft.Sparsity.from_dense(np.eye(4) + np.eye(4, k=1))
    text = pattern.to_svg(tmp_path / "pattern.svg")
    assert (tmp_path / "pattern.svg").read_text(encoding="utf-8") == text
    root = ET.fromstring(text)
    (path,) = root.findall("{http://www.w3.org/2000/svg}path")
    assert path.get("d") == "m0 0h2v1h-2zm1 1h2v1h-2zm1 1h2v1h-2zm1 1h1v1h-1z"
    for other in (PATTERN, large(1000), ft.Sparsity([], [], (0, 0)), ft.Sparsity([], [], (3, 5))):
        ET.fromstring(other._repr_svg_())


def test_plot() -> None:
    from matplotlib.figure import Figure

    axes = PATTERN.plot()
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array() > 0, DENSE)
    mine = Figure().subplots()
    assert large(1000).plot(mine, cmap="gray") is mine
    assert mine.images[0].get_cmap().name == "gray"
    ft.Sparsity([], [], (0, 3)).plot()


def test_plot_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"ftrans\[plot\].*to_svg"):
        PATTERN.plot()


# Colourings


@pytest.mark.parametrize("kind", ["column", "row", "bidirectional", "star", "acyclic"])
def test_coloring(kind: Any) -> None:
    rng = np.random.default_rng(4)
    for density in (0.0, 0.1, 0.4, 1.0):
        x = rng.random((10, 10)) < density
        pattern = ft.Sparsity.from_dense(x | x.T)
        for order in ("natural", "largest_first", "smallest_last", "random"):
            found = ft.coloring(pattern, kind, order, seed=5)
            found.check()
            assert repr(found) == f"Coloring(kind={kind!r}, colors={found.count}, shape=(10, 10))"
            assert (found.rows is None) == (kind in ("column", "star", "acyclic"))
            assert (found.columns is None) == (kind == "row")
    assert ft.coloring(sp.eye_array(4), kind).count == 1
    assert ft.coloring(np.zeros((3, 3)), kind).count == 0


def test_what_is_no_coloring_is_found() -> None:
    path = ft.Sparsity.from_dense(np.eye(4) + np.eye(4, k=1) + np.eye(4, k=-1))
    ring = path | ft.Sparsity([0, 3], [3, 0], (4, 4))
    two = [0, 1, 0, 1]
    ft.Coloring(path, "acyclic", None, two).check()
    for pattern, kind, rows, columns in [
        (path, "column", None, two),
        (path, "row", two, None),
        (path, "bidirectional", [-1] * 4, two),
        (path, "bidirectional", [0, -1, -1, -1], [-1, 0, 1, 2]),
        (path, "star", None, two),
        (path, "star", None, [0, 0, 1, 2]),
        (ring, "acyclic", None, two),
        (path, "acyclic", None, [0, 0, 1, 2]),
        (path, "acyclic", None, [0, 1, 2, -1]),
    ]:
        with pytest.raises(ValueError, match=rf"no product shows the entry \(\d, \d\): this is no {kind}"):
            ft.Coloring(pattern, kind, rows, columns).check()  # type: ignore[arg-type]
