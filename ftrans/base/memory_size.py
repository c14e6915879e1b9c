"""How large an array this machine can hold."""

from __future__ import annotations

import os

from .source import at_line, user_line

# An array that takes more than this part of the memory leaves too little for what is computed from it.
_SHARE = 0.8


def physical_memory() -> int | None:
    """The bytes of memory of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def require_fits(nbytes: int, what: str, instead: str) -> None:
    """Raise if an array is too large for this machine.

    Args:
        nbytes: its size.
        what: what it is, with its shape.
        instead: what to write instead.

    Raises:
        MemoryError: it takes more than four fifths of the memory.
    """
    memory = physical_memory()
    if memory is not None and nbytes > _SHARE * memory:
        raise MemoryError(
            f"{what} would take {nbytes / 1e9:.1f} GB, and this machine has {memory / 1e9:.1f} GB of memory; "
            f"{instead}{at_line(user_line())}"
        )
