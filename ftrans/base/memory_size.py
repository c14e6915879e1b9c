"""How large an array this machine can hold."""

from __future__ import annotations

import os

from .source import at_line, user_line

# An array that takes more than this part of the memory leaves too little for what is computed from it.
_SHARE = 0.8


def memory_of_machine() -> int | None:
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
    memory = memory_of_machine()
    if memory is not None and nbytes > _SHARE * memory:
        raise MemoryError(
            f"{what} would take {nbytes / 2**30:,.1f} GiB, and this machine has {memory / 2**30:,.1f} GiB of "
            f"memory; {instead}{at_line(user_line())}"
        )
