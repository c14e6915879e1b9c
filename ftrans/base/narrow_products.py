"""Narrow products: the dtype that products of float32 numbers are computed in where `nn.autocast` says so.

It is a setting of the code that runs, in its thread or task.  In a trace it decides on what is recorded; so compiled
functions ask for it, as for the mesh in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

# The names of the dtypes that are set, the last one inside; None is float32.
settings: ContextVar[tuple[str | None, ...]] = ContextVar("dtypes of products", default=(None,))


def product_dtype() -> str | None:
    """The name of the dtype of products; None where they have that of their operands."""
    return settings.get()[-1]


@cache
def dtype_named(name: str) -> np.dtype[Any]:
    """The dtype of a name, bfloat16 among them."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def rounded(operands: Iterable[Any]) -> tuple[Any, ...]:
    """The operands of a product of arrays or tensors, rounded to the dtype of products, and still float32.

    NumPy has no products in these dtypes.  XLA adds the products of the rounded numbers up in float32, too.  If one
    has another dtype, such as float64, all are left alone.
    """
    given = tuple(operands)
    name = product_dtype()
    dtypes = [getattr(x, "dtype", None) for x in given]
    if name is None or any(dtype is not None and dtype != np.float32 for dtype in dtypes):
        return given
    return tuple(
        x if dtype is None else x.astype(dtype_named(name)).astype(np.float32)
        for x, dtype in zip(given, dtypes, strict=True)
    )


@contextmanager
def exact_products() -> Iterator[None]:
    """A block of code whose products have the dtype of their operands, whatever is set around it."""
    token = settings.set((None,))
    try:
        yield
    finally:
        settings.reset(token)
