"""The allocator: whether memory that arrays leave behind is kept for the next ones."""

from __future__ import annotations

import ctypes

# Parameters of `mallopt` (malloc.h of glibc).
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8
_LARGEST = 2**31 - 1
_PAD = 1 << 26


def keep_memory() -> bool:
    """Keep the memory of freed arrays for new arrays, until the process ends.

    By default, the C library returns the memory of large arrays to the operating system, and a new array costs a page
    fault for each 4 kB, which can take longer than computing with it.  With this setting, programs with temporary
    arrays of megabytes run 1.2 to 2.2 times faster, compiled or not.  But the process stays as large as it has ever
    been, and all threads share one heap.  Call it at the start of a program that has the machine for itself.

    Returns:
        Whether the C library accepts the settings: glibc does (on Linux), other libraries do not.

    Example:
        >>> import ftrans as ft
        >>> is_kept = ft.keep_memory()  # doctest: +SKIP
    """
    try:
        set_parameter = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return False
    settings = {_MMAP_MAX: 0, _TRIM_THRESHOLD: _LARGEST, _TOP_PAD: _PAD, _ARENA_MAX: 1}
    return all([set_parameter(parameter, value) == 1 for parameter, value in settings.items()])
