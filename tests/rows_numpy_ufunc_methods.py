"""Rows of `numpy`: the methods of ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from function_rows import row
from sampling import c128, distinct, f32, given, normal, uniform

MASK = np.array([[True, False, True], [True, True, False]])
BOTH: dict[str, Any] = {"dtypes": (f32, c128)}


def at(index: Any) -> Callable[..., Any]:
    """`ufunc.at` on a copy of the first operand."""

    def call(f: Any, x: Any, *values: Any) -> Any:
        y = x.copy()
        f(y, index, *values)
        return y

    return call


# Those that a primitive computes at once

for name in ("add", "multiply", "logaddexp"):
    row(f"numpy.{name}.reduceat", normal((4, 2)), indices=[0, 2, 1, 1, 3], dtypes=())
row("numpy.logaddexp.reduce", normal((2, 3)), axis=1, keepdims=True, where=MASK)
row("numpy.subtract.reduce", normal((2, 3)), axis=1, initial=2.0, where=MASK, **BOTH)
for name in ("fmax", "fmin"):
    row(f"numpy.{name}.reduce", distinct((2, 3)), axis=0, initial=0.1, where=MASK)
    row(f"numpy.{name}.accumulate", distinct((2, 4)), axis=1)
row("numpy.fmax.reduce", given([[np.nan, 1.0, 2.0], [np.nan, np.nan, np.nan]]), axis=None, note="NaN")
row("numpy.fmin.accumulate", given([np.nan, 1.0, np.nan, 0.5]), note="NaN", call=lambda f, x: f(x)[1:])
row("numpy.logaddexp2.reduce", normal((2, 3)), axis=(0, 1))
row("numpy.logaddexp2.accumulate", normal((4,)))
row("numpy.maximum.reduceat", distinct((5,)), indices=[0, 3])

# Those that are folded

row("numpy.hypot.reduce", uniform(0.5, 1.5, (2, 3)), axis=(0, 1), initial=2.0)
row("numpy.hypot.accumulate", uniform(0.5, 1.5, (5,)))
row("numpy.divide.reduce", uniform(0.5, 1.5, (2, 3)), axis=1, initial=1.5, where=MASK, dtypes=(f32, c128))
row("numpy.divide.accumulate", uniform(0.5, 1.5, (2, 3)), axis=1)
row("numpy.arctan2.reduce", uniform(0.5, 1.5, (3, 2)))
row("numpy.power.accumulate", uniform(0.5, 1.5, (4,)))
row("numpy.divide.reduceat", uniform(0.5, 1.5, (5,)), indices=[0, 3])
row("numpy.power.reduce", uniform(0.9, 1.1, (20,)), note="by a loop")
row("numpy.divide.accumulate", uniform(0.9, 1.1, (20,)), note="by a loop")

# Pairs

row("numpy.arctan2.outer", normal((2,)), uniform(0.5, 1.5, (2, 2)))

# In place at indices

REPEATED = [0, 2, 0, 0]
ROWS_AND_COLUMNS = ([0, 1, 0, 0], [1, 2, 1, 1])
row("numpy.subtract.at", normal((2, 3)), normal(()), call=at((slice(None), [0, 0])), note="columns")
row("numpy.multiply.at", normal((2, 3)), normal((4,)), call=at(ROWS_AND_COLUMNS), **BOTH)
row("numpy.divide.at", normal((3, 2)), uniform(0.5, 1.5, (2,)), call=at(REPEATED), note="rows")
row("numpy.power.at", uniform(0.5, 1.5, (3,)), uniform(0.5, 1.5, (4,)), call=at(REPEATED))
row("numpy.multiply.at", normal((2,)), uniform(0.8, 1.2, (12,)), call=at([0, 0, 1] * 4), note="many times")
row("numpy.exp.at", normal((2, 3)), call=at(MASK), note="mask")
