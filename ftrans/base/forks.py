"""Forks: locks that a forked child finds free, whoever held them in the parent."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _thread import RLock


def lock() -> RLock:
    """A lock of the process, for a moment at a time: whoever forks waits until it is free."""
    new = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=new.acquire, after_in_parent=new.release, after_in_child=new.release)
    return new
