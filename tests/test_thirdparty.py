"""The light part of the collection in `thirdparty/`: programs that need SciPy alone, and small packages."""

from __future__ import annotations

import pytest
import tables
from thirdparty import ROWS
from thirdparty.outcomes import outcomes
from thirdparty.row import Row

# Packages of Python code that are installed in seconds.
SMALL = ("numpy_financial", "psychrolib", "pymap3d", "seawater", "thirdparty", "transforms3d")
LIGHT = [row for row in ROWS if row.package in SMALL]


def test_rows_have_names_of_their_own() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


@tables.each(lambda row: row.package, row=LIGHT)
def test_foreign_code_gives_right_derivatives_or_none(row: Row) -> None:
    if not row.is_installed():
        pytest.skip(f"{row.package} is not installed: `make test` does that")
    assert {outcome.status for outcome in outcomes(row).values()} <= {"right", "refused"}
