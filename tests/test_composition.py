"""Every cell of the table of what composes, un-jitted and compiled, and the table in the docs."""

from __future__ import annotations

import numpy as np
import pytest
from composition import NAMES, PAGE, ROWS, Row, cell, with_table

import ftrans as ft

CELLS = [pytest.param(row, name, id=f"{row}-{name}") for row in ROWS for name in NAMES]


@pytest.mark.parametrize("how", ["un-jitted", "compiled"])
@pytest.mark.parametrize(("row", "name"), CELLS)
def test_cell(row: Row, name: str, how: str) -> None:
    f, argument, expected = cell(row, name)
    f = ft.jit(f) if how == "compiled" else f
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


def test_the_table_in_the_docs_is_this_one() -> None:
    page = PAGE.read_text()
    assert with_table(page) == page, "run `python tests/composition.py`"
