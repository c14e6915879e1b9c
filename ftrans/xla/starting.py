"""How JAX starts where ftrans is the first to use it, with an option of XLA that makes loops faster on a CPU."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

from ..base.foreign import options_for_loops
from .on_disk import disk_cache

_FLAGS = "XLA_FLAGS"
_lock = threading.Lock()


def start(before_devices: Callable[[], None] | None = None) -> bool:
    """Start JAX, unless the program has, and tell it where compiled programs are kept.

    Args:
        before_devices: what to do between importing JAX and its first device.

    Returns:
        Whether JAX was started.
    """
    is_started = "jax" not in sys.modules and _start(before_devices)
    if not disk_cache.is_settled:
        disk_cache.settle()
    return is_started


def _start(before_devices: Callable[[], None] | None) -> bool:
    """Start JAX with the option, unless the program has imported it, or the user has set options of this kind.

    XLA reads the environment once, when JAX makes its first device, so the environment is as it was afterwards.
    """
    with _lock:
        before, options = os.environ.get(_FLAGS), options_for_loops()
        name = options.partition("=")[0]
        if "jax" in sys.modules or not name or name in (before or ""):
            return False
        os.environ[_FLAGS] = f"{before or ''} {options}"
        try:
            import jax

            if before_devices is not None:
                before_devices()
            jax.devices()
        finally:
            if before is None:
                del os.environ[_FLAGS]
            else:
                os.environ[_FLAGS] = before
    return True
