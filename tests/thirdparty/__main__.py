"""The whole collection: `python -m thirdparty [NAME ...]`, in `tests/`, with what each row gave in each mode."""

from __future__ import annotations

import sys
from collections import Counter

from . import ROWS
from .outcomes import not_as_said, outcomes, patched, reference
from .row import MODES


def main(names: list[str]) -> int:
    """Run the rows whose names contain one of the given texts, or all; return the exit status."""
    rows = [row for row in ROWS if not names or any(name in row.name for name in names)]
    lacking = sorted({row.package for row in rows if not row.is_installed()})
    if lacking:
        print("not installed:", *lacking)
        return 1
    references = [reference(row) for row in rows]
    counts: dict[str, Counter[str]] = {mode: Counter() for mode in MODES}
    differing: list[str] = []
    with patched(rows):
        for row, plain in zip(rows, references, strict=True):
            found = outcomes(row, plain)
            for mode in MODES:
                counts[mode][found[mode].status] += 1
            print(f"{row.name:60}", *(f"{found[mode].status:8}" for mode in MODES), flush=True)
            differing += not_as_said(row, found)
    print(f"\n{len(rows)} functions of {len({row.package for row in rows})} packages")
    for mode in MODES:
        print(f"{mode:10}", ", ".join(f"{status}: {count}" for status, count in counts[mode].most_common()))
    if differing:
        print("\nNot as the rows say:", *differing, sep="\n  ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
