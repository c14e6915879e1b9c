"""What `ft.patch` costs where nothing is traced: the gallery as plain NumPy and single calls, patched and as they were.

Each function of `examples/numpy_gallery` is imported twice, and one of the two is patched.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from .gallery import GALLERY
from .harness import Contender, Row, Table, time_side_by_side

Function = Callable[..., Any]

CALLS = '''"""Calls of functions that have another form while a trace runs."""

import math

import numpy as np
from numpy import asarray as as_array

X, SMALL = np.ones(1000), np.ones(3)


def zeros():
    return np.zeros(3)


def sine():
    return math.sin(0.5)


def converted():
    return as_array(X, dtype=float)


def ufunc():
    return np.exp(SMALL)


def element(i=1):
    return SMALL[i]


def method():
    return X.sum()


def number():
    return float("1.5")
'''


def run() -> Table:
    import ftrans as ft

    names = sorted(path.stem for path in GALLERY.glob("*.py") if path.stem != "__main__")
    with imported_twice(names) as modules, ft.patch(*[patched for _, patched in modules.values()]):
        rows = []
        for name, (plain, patched) in modules.items():
            if name == "calls":
                singles = [n for n, x in vars(plain).items() if inspect.isfunction(x)]
                rows += [row(n, getattr(plain, n), getattr(patched, n), (), 3e-7) for n in singles]
            else:
                f, args = plain.example()
                rows.append(row(name, f, patched.example()[0], args))
    return Table("patching: functions of the gallery on plain arrays, then single calls", rows)


def row(name: str, plain: Function, patched: Function, args: tuple[Any, ...], most: float | None = None) -> Row:
    print(f"  {name}", file=sys.stderr)
    times = time_side_by_side(
        {"plain": Contender(lambda: plain(*args)), "patched": Contender(lambda: patched(*args))},
        reference="plain",
        seconds=0.5,
    )
    if most is None:
        verdict = times.ratio("patched", "plain", 1.1)
    else:
        verdict = replace(times.excess("patched", "plain", most), show=lambda s: f"{s * 1e6:+.2f} us")
    return Row(name, {label: times.typical(label) for label in ("plain", "patched")}, [verdict])


@contextmanager
def imported_twice(names: list[str]) -> Iterator[dict[str, tuple[ModuleType, ModuleType]]]:
    """Each file of the gallery, and the single calls, as two modules."""
    sources = {name: (GALLERY / f"{name}.py").read_text().replace("ftrans.numpy", "numpy") for name in names}
    sources = {name: text.replace("from ftrans.scipy", "from scipy") for name, text in sources.items()} | {
        "calls": CALLS
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            for kind in ("plain", "patched"):
                (Path(folder) / f"{kind}_{name}.py").write_text(text)
        sys.path.insert(0, folder)
        try:
            yield {
                name: (importlib.import_module(f"plain_{name}"), importlib.import_module(f"patched_{name}"))
                for name in sources
            }
        finally:
            sys.path.remove(folder)
