"""Sparse matrices of JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.interrupts import uninterrupted
from .execute import about_to_run


@uninterrupted
def bcoo(values: Any, rows: Any, cols: Any, shape: tuple[int, int]) -> Any:
    """A matrix of JAX's format BCOO.

    Args:
        values: its entries, in row-major order.
        rows: their rows.
        cols: their columns.
        shape: its shape.
    """
    import jax
    from jax.experimental.sparse import BCOO

    about_to_run()
    with jax.enable_x64(True):
        indices = jax.numpy.asarray(np.stack([rows, cols], axis=1).astype(np.int32))
        return BCOO((jax.numpy.asarray(values), indices), shape=shape, indices_sorted=True, unique_indices=True)
