"""The rows of the table of functions: a function of NumPy or SciPy, and operands that it is called with.

The rows stand in the files rows_*.py.  tests/test_functions.py runs each of them through every transformation, and
tests/test_coverage.py sees to it that no differentiable function is without one.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from folding import of_method
from sampling import Source, c64, c128, directions, f32

import ftrans as ft
from ftrans.base import tree
from ftrans.core.types import is_complex, is_inexact, type_of

SINGLE = {"float64": np.float32, "complex128": np.complex64}
DOUBLE = {"float32": np.float64, "complex64": np.complex128}


@dataclass(frozen=True, eq=False)
class Row:
    """A call of a function that is differentiable there.

    Attributes:
        name: the full name of the function.  "numpy.x" is called as itself, so that it meets traced values by NumPy's
            protocols; "scipy.x" is called through `ftrans.scipy`, and compared with SciPy.
        sources: one source per operand.
        params: keywords of the function.
        call: how the function is called, `call(function, *operands)`, where `function(*operands)` does not do.
        note: what is special about the row.
        differentiated: the operands with respect to which derivatives are taken; all inexact ones by default.
        dtypes: further dtypes of the inexact operands.  A real one is the precision of complex operands too.
        analytic: whether the function is analytic and takes complex numbers, so that the complex step applies.
        order: the highest derivative that exists.
        hermitian: the operands that are Hermitian matrices, so that their tangents are.
        canonical: takes and returns the list of results, made comparable where they are defined up to a choice, such
            as the sign of an eigenvector.  It is written in NumPy and differentiated with the function.
        asks: whether the shape of the result depends on values, so that `vmap` and `jit` refuse the function.
        looseness: how many times more than usual two ways to compute the same may differ.
    """

    name: str
    sources: tuple[Source, ...]
    params: dict[str, Any]
    call: Callable[..., Any] | None = None
    note: str = ""
    differentiated: tuple[int, ...] | None = None
    dtypes: tuple[Any, ...] = (f32,)
    analytic: bool = False
    order: int = 2
    hermitian: tuple[int, ...] = ()
    canonical: Callable[[list[Any]], list[Any]] = list
    asks: bool = False
    looseness: float = 1.0

    def __str__(self) -> str:
        types = [str(type_of(x)) for x in self.draw()]
        simple = (int, float, str, bool, tuple, np.dtype, type, type(None))
        words = [
            f"{key}={value.__name__ if isinstance(value, type) else value}"
            for key, value in self.params.items()
            if isinstance(value, simple)
        ]
        return "-".join([self.name, *types, *(w.replace(" ", "") for w in words), *([self.note] if self.note else [])])

    def draw(self, seed: int = 0) -> list[Any]:
        """The operands; other seeds give other operands of the same types."""
        rng = np.random.default_rng(seed)
        return [source(rng) for source in self.sources]

    @functools.cached_property
    def places(self) -> tuple[int, ...]:
        """The operands that are differentiated."""
        operands = self.draw()
        chosen = range(len(operands)) if self.differentiated is None else self.differentiated
        return tuple(i for i in chosen if is_inexact(operands[i].dtype))

    def tangents(self, operands: Sequence[Any], seed: int) -> list[Any]:
        """Random tangents of the operands that are differentiated."""
        found = directions(operands, seed)
        for i in self.hermitian:
            found[i] = (found[i] + np.conj(np.swapaxes(found[i], -1, -2))) / 2
        return [found[i] for i in self.places]

    def function(self, traced: bool) -> Callable[..., list[Any]]:
        """The flat list of results as a function of the operands.

        Args:
            traced: whether it is for traced values, or the reference for arrays.
        """
        found = resolve(self.name, traced)
        function = functools.partial(found, **self.params) if self.params else found
        call = function if self.call is None else functools.partial(self.call, function)

        def results(*operands: Any) -> list[Any]:
            return self.canonical([_as_one(y) for y in tree.flatten(call(*operands))[0]])

        return results

    def reference(self, operands: Sequence[Any]) -> list[Any]:
        """The results of NumPy or SciPy, as arrays or NumPy's scalars."""
        return [np.asarray(y)[()] for y in self.function(traced=False)(*(np.array(x)[()] for x in operands))]

    def with_dtype(self, dtype: Any) -> Row:
        """The row with other inexact operands."""
        return dataclasses.replace(self, sources=tuple(_with_dtype(s, np.dtype(dtype)) for s in self.sources))

    def variants(self) -> list[Row]:
        """The row, and the row in its further dtypes: complex numbers of 128 bits bring those of 64 with them."""
        more = (c64,) if c128 in self.dtypes and c64 not in self.dtypes else ()
        return [self, *map(self.with_dtype, (*self.dtypes, *more))]

    @functools.cached_property
    def is_double(self) -> bool:
        """Whether finite differences are accurate."""
        return all(x.dtype.name not in ("float16", *DOUBLE) for x in self.draw())


def resolve(name: str, traced: bool) -> Any:
    """The function of this full name; that of `ftrans.scipy` for traced values if it is SciPy's.

    For arrays, a method of a ufunc that combines elements is a loop.
    """
    parts = name.split(".")
    if traced and parts[0] == "scipy":
        parts = ["ftrans", *parts]
    found: Any = importlib.import_module(parts[0])
    for place, part in enumerate(parts[1:], start=1):
        if not traced and isinstance(found, np.ufunc):
            return of_method(found, part) or getattr(found, part)
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[: place + 1]))
        found = getattr(found, part)
    return found


def _as_one(y: Any) -> Any:
    """A result as one array: NumPy puts traced values into object arrays, which are one array to ftrans."""
    return ft.numpy.asarray(y) if isinstance(y, np.ndarray) and y.dtype == object else y


def _with_dtype(source: Source, dtype: np.dtype[Any]) -> Source:
    def draw(rng: np.random.Generator) -> Any:
        x = source(rng)
        if not is_inexact(x.dtype):
            return x
        if is_complex(dtype):
            return (x if is_complex(x.dtype) else x + 1j * source(rng)).astype(dtype)[()]
        return x.astype(SINGLE.get(x.dtype.name, dtype) if is_complex(x.dtype) else dtype)[()]

    return draw


def in_place(function: Callable[..., Any], x: Any, *args: Any) -> Any:
    """How a function is called that changes its first argument: on a copy, which is the result."""
    y = x.copy()
    function(y, *args)
    return y


def of_list(function: Callable[..., Any], *arrays: Any) -> Any:
    """How a function is called that takes a list of arrays."""
    return function(list(arrays))


ROWS: list[Row] = []


def row(name: str, *sources: Source, **options: Any) -> None:
    """Add a row to the table.  Options are attributes of `Row`, all others keywords of the function."""
    names = {f.name for f in dataclasses.fields(Row)} - {"name", "sources", "params"}
    params = {k: v for k, v in options.items() if k not in names}
    made = Row(name, sources, params, **{k: v for k, v in options.items() if k in names})
    assert made.order in (1, 2), "order= is that of derivatives; give a function's own in call="
    ROWS.append(made)


def rows() -> list[Row]:
    """All rows, of the files rows_*.py beside this one."""
    if not ROWS:
        for path in sorted(Path(__file__).parent.glob("rows_*.py")):
            importlib.import_module(path.stem)
    return ROWS
