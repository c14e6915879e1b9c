"""Whether results on a device are finite, found out there: what comes back is one boolean."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..base.interrupts import uninterrupted
from .execute import about_to_run


@uninterrupted
def is_finite_on_device(x: Any) -> bool:
    """Whether no element of a JAX array is NaN or infinite."""
    import jax

    about_to_run()
    with jax.enable_x64(True):
        return bool(_test()(x))


@functools.cache
def _test() -> Callable[[Any], Any]:
    import jax

    # Compiled, so that the flags of all elements are never stored.
    return jax.jit(lambda x: jax.numpy.isfinite(x).all())
