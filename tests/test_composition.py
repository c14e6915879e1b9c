"""Every cell of the table of what composes, some of them compiled, and the table in the docs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tables
from composition import NAMES, PAGE, ROWS, Row, cell, with_table
from tables import covering, label

import ftrans as ft

CELLS = [(row, name) for row in ROWS for name in NAMES]
# Compiling a cell takes ten times as long as running it.
COMPILED = covering(CELLS, lambda cell: cell[0], lambda cell: cell[1], times=2)


def check(row: Row, name: str, transform: Callable[[Any], Any]) -> None:
    f, argument, expected = cell(row, name)
    f = transform(f)
    assert np.all(np.isfinite(expected))
    assert np.any(expected)
    if name in row.refusals:
        with pytest.raises((TypeError, NotImplementedError)) as raised:
            f(argument)
        assert row.refusals[name] in str(raised.value)
    else:
        found = np.asarray(f(argument))
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=row.tolerance, atol=row.tolerance)


@tables.each(label, of=CELLS)
def test_cell(of: tuple[Row, str]) -> None:
    check(*of, lambda f: f)


@pytest.mark.parametrize(("row", "name"), COMPILED, ids=label)
def test_compiled_cell(row: Row, name: str) -> None:
    check(row, name, ft.jit)


def test_the_table_in_the_docs_is_this_one() -> None:
    page = PAGE.read_text()
    assert with_table(page) == page, "run `python tests/composition.py`"
