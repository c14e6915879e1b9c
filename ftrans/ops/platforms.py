"""What differs between platforms, such as a CPU and a GPU: lowerings, and the precision of products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.surroundings import exported_for


def by_platform(*arrays: Any, default: Callable[..., Any], **branches: Callable[..., Any]) -> Any:
    """The result of the branch for the platform that a program runs on, or else of `default`.

    If the program is lowered for one platform, only the branch of that is traced.

    Args:
        arrays: JAX arrays or tracers.
        default: a function of them, for the platforms without a branch.
        branches: functions of them, by the name of a platform.
    """
    from jax import lax

    platforms = exported_for()
    if platforms is not None and len(platforms) == 1:
        return branches.get(platforms[0], default)(*arrays)
    return lax.platform_dependent(*arrays, default=default, **branches)


def precision_of(dtype: Any) -> Any:
    """The precision of products of arrays of a dtype, for JAX: the highest, but of 32 bits what is set, if it is."""
    import jax

    config: Any = jax.config
    is_set = config.jax_default_matmul_precision is not None
    return None if is_set and dtype in (np.float32, np.complex64) else jax.lax.Precision.HIGHEST
