"""Arrays that are divided over processes: which of them this process can read, and how it gets the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..base.interrupts import uninterrupted
from .execute import about_to_run
from .kinds import is_jax, is_jax_tracer


@contextmanager
def in_64_bits() -> Iterator[None]:
    """A block in which other libraries make arrays of JAX of any dtype."""
    about_to_run()
    import jax

    with jax.enable_x64(True):
        yield


def is_readable(x: Any) -> bool:
    """Whether this process can read all elements of an array without the others."""
    return not is_jax(x) or is_jax_tracer(x) or x.is_fully_addressable or x.is_fully_replicated


@uninterrupted
def gathered(x: Any) -> np.ndarray[Any, Any]:
    """A copy of all elements of an array; all processes that hold parts of it must call this."""
    if is_readable(x):
        return np.array(x)
    from jax.experimental import multihost_utils

    with in_64_bits():
        return np.array(multihost_utils.process_allgather(x, tiled=True))


@uninterrupted
def copied(x: Any, dtype: Any) -> Any:
    """A copy of an array of JAX in a dtype, on the same devices."""
    with in_64_bits():
        return x.copy() if x.dtype == dtype else x.astype(dtype)


@uninterrupted
def are_equal(x: Any, y: Any) -> bool:
    """Whether two arrays hold the same, NaN included; all processes that hold parts of them must call this."""
    if is_readable(x) and is_readable(y):
        x, y = np.asarray(x), np.asarray(y)
        return np.array_equal(x, y, equal_nan=x.dtype.kind in "fc" and y.dtype.kind in "fc")
    import jax

    with in_64_bits():
        is_inexact = jax.numpy.issubdtype(x.dtype, jax.numpy.inexact)
        return bool(jax.jit(jax.numpy.array_equal, static_argnames="equal_nan")(x, y, equal_nan=is_inexact))
