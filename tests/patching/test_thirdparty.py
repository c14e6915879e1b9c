"""The light part of the collection in `thirdparty/`: programs that need SciPy alone, and small packages."""

from __future__ import annotations

import pytest
import tables
from thirdparty import ROWS, rows_scripts
from thirdparty.outcomes import not_as_said, outcomes, patched, reference
from thirdparty.row import MODES

# Packages of Python code that are installed in seconds.
SMALL = ("numpy_financial", "psychrolib", "thirdparty", "transforms3d")
# Programs around functions of SciPy that have tests of their own: run with --all.
LONG = {f"thirdparty.scripts.by_{name}" for name in rows_scripts.LONG}


def test_rows_have_names_of_their_own_and_reasons_for_modes() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(set(row.reasons) <= set(MODES) for row in ROWS)


@pytest.mark.parametrize("package", SMALL)
def test_foreign_code_is_differentiated(package: str) -> None:
    rows = [row for row in ROWS if row.package == package and (tables.whole or row.name not in LONG)]
    if not rows[0].is_installed():
        pytest.skip(f"{package} is not installed: `make test` does that")
    references = [reference(row) for row in rows]
    with patched(rows):
        found = [not_as_said(row, outcomes(row, plain)) for row, plain in zip(rows, references, strict=True)]
    assert not [text for texts in found for text in texts]
