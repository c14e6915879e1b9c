"""How much of the large tables is run, and how many of their rows are one test.

`--all` (`make test-all`) runs whole tables, each row as a test of its own.  Without it tests are quick enough to be run
at every change:

    each        rows that belong together are one test: a test costs pytest more than most rows take
    in_chunks   many rows are compiled as one program: a program costs XLA more than most rows take
    covering    of a product of tables, only so many cells are run that everything in the tables is met;
    crossed     the same for the arguments of a test

None of it is left to chance: the same table gives the same tests.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import pytest

# Whether whole tables are run.  conftest.py sets it before it reads any test.
whole = False

Aspect = Callable[[Any], Any]


def covering(cells: Sequence[Any], *aspects: Aspect, times: int = 1) -> list[Any]:
    """Cells among which each value of each aspect that any cell has is met, `times` times if there are as many.

    Args:
        cells: all of them.
        aspects: functions of a cell.  Cells that agree in all aspects stand for each other.
        times: how often each value is wanted.
    """
    if whole:
        return list(cells)

    def values(cell: Any) -> list[tuple[int, str]]:
        return [(place, str(aspect(cell))) for place, aspect in enumerate(aspects)]

    # An order without a pattern, in which a new cell does not change the places of the others.
    places = sorted(range(len(cells)), key=lambda i: (zlib.crc32(repr(values(cells[i])).encode()), i))
    met: Counter[tuple[int, str]] = Counter()
    kept = []
    for place in places:
        found = values(cells[place])
        if any(met[value] < times for value in found):
            met.update(found)
            kept.append(place)
    return [cells[i] for i in sorted(kept)]


def label(row: Any) -> str:
    """What a row is called; a cell of a product is a tuple of rows."""
    if type(row) is tuple:
        return "-".join(map(label, row))
    # A row that is a named tuple begins with its name.
    return str(row[0]) if isinstance(row, tuple) else getattr(row, "__name__", str(row))


@contextmanager
def naming(row: Any) -> Iterator[None]:
    """An error within this block says for which row it is."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        error.add_note(f"in the row {label(row)}; `pytest --all` runs it alone")
        raise


# How many values of `by` are one test in `each`.
TOGETHER = 8


def each(by: Aspect, **rows: Sequence[Any]) -> Any:
    """Run a test for each row, given as the argument of that name; rows for which `by` is the same are one test.

    A test has the rows of eight values, and all of them in its name, so that `-k` finds it by any.
    """
    ((name, items),) = rows.items()
    if whole:
        return pytest.mark.parametrize(name, items, ids=label)
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(str(by(item)), []).append(item)
    values = list(groups)
    parts = [values[i : i + TOGETHER] for i in range(0, len(values), TOGETHER)]
    lists = [[item for value in part for item in groups[value]] for part in parts]

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def test_all(**arguments: Any) -> None:
            for row in arguments.pop(name):
                with naming(row):
                    test(**{name: row}, **arguments)

        return pytest.mark.parametrize(name, lists, ids=[", ".join(part) for part in parts])(test_all)

    return decorate


def in_chunks(size: int, **rows: Sequence[Any]) -> Any:
    """Run a test for lists of so many rows, given as the argument of that name."""
    ((name, items),) = rows.items()
    size = 1 if whole else size
    chunks = [items[i : i + size] for i in range(0, len(items), size)]
    return pytest.mark.parametrize(name, chunks, ids=[_ends(chunk) for chunk in chunks])


def _ends(chunk: Sequence[Any]) -> str:
    return label(chunk[0]) if len(chunk) == 1 else f"{label(chunk[0])} to {label(chunk[-1])}"


def crossed(times: int = 1, **tables: Iterable[Any]) -> Any:
    """Run a test for cells of the product of tables, given as the arguments of these names; see `covering`."""
    entries = [list(table) for table in tables.values()]
    places = itertools.product(*(range(len(table)) for table in entries))
    kept = covering(list(places), *(itemgetter(axis) for axis in range(len(entries))), times=times)
    cells = [tuple(table[i] for table, i in zip(entries, cell, strict=True)) for cell in kept]
    return pytest.mark.parametrize(list(tables), cells, ids=label)
