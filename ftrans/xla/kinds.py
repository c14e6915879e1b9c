"""Which values are JAX's.  Importing this does not import JAX."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.trace import Tracer


def is_jax(x: Any) -> bool:
    """Whether `x` is a JAX array or one of JAX's own tracers."""
    jax = sys.modules.get("jax")
    try:
        return jax is not None and isinstance(x, jax.Array)
    except AttributeError:
        # Another thread is about to import it.
        return False


def is_jax_tracer(x: Any) -> bool:
    """Whether `x` stands for an array inside a JAX transformation."""
    jax = sys.modules.get("jax")
    try:
        return jax is not None and isinstance(x, jax.core.Tracer)
    except AttributeError:
        return False


def is_deleted(x: Any) -> bool:
    """Whether `x` is a JAX array that was donated to a program that has run."""
    return is_jax(x) and not is_jax_tracer(x) and bool(x.is_deleted())


def is_traced(x: Any) -> bool:
    """Whether `x` stands for an array in a trace, be it one of JAX, so that its value is not known."""
    return isinstance(x, Tracer) or is_jax_tracer(x)


def seen_anew(arrays: Sequence[Any]) -> list[Any]:
    """The same arrays, those of NumPy as objects that JAX has not met.

    JAX keeps the form in which it has divided a NumPy array over devices with the object, as long as the result lives,
    and takes it again where 64-bit types are switched otherwise: as f32 in place of f64, or the reverse.
    """
    return [x[...] if type(x) is np.ndarray else x for x in arrays]
