"""Whether arrays that a program has seen are overwritten later."""

from __future__ import annotations

from typing import Any

import numpy as np

# How many words of 8 bytes are mixed at once, so that they stay in the cache; then how many stay of those.
_WIDTHS = 8192, 1024
# An odd number with its bits well mixed (2^64 divided by the golden ratio).
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
# How many words of 8 bytes are compared at once.
_COMPARED_WORDS = 1 << 17


def is_frozen(array: Any) -> bool:
    """Whether an array lies in the memory of `bytes`, which nobody can write to.

    Of an array that is read-only itself, there may be views from before that are not.
    """
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return isinstance(array, bytes)


def checksum(array: np.ndarray[Any, Any]) -> bytes:
    """What tells apart the contents of an array at two times: at most 8 KiB, and all of a smaller array.

    A change within one word of 8 bytes, so that of any one number, is seen for certain: each step of the mixing can
    be undone.  Of other changes, one in about 2^64 is not seen.
    """
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if flat.size <= 8 * _WIDTHS[-1]:
        return flat.tobytes()
    whole = flat.size // 8 * 8
    words = flat[:whole].view(np.uint64)
    for width in _WIDTHS:
        words = _mixed(words, width)
    return words.tobytes() + flat[whole:].tobytes()


def _mixed(words: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    """So many words, each made of those at its place in all rows of that width."""
    mixed = np.zeros(width, np.uint64)
    shifted = np.empty(width, np.uint64)
    for start in range(0, words.size, width):
        row = words[start : start + width]
        # A sum would do, were it not that two changes of the highest bit (two signs) add up to none.
        state, high = mixed[: row.size], shifted[: row.size]
        np.bitwise_xor(state, row, out=state)
        np.multiply(state, _FACTOR, out=state)
        np.right_shift(state, _SHIFT, out=high)
        np.bitwise_xor(state, high, out=state)
    return mixed


def has_same_bits(x: np.ndarray[Any, Any], copy: np.ndarray[Any, Any]) -> bool:
    """Whether an array is, bit by bit, what its copy is."""
    if x.shape != copy.shape or x.dtype != copy.dtype:
        return False
    mine, others = (np.ravel(a, order="K").view(np.uint8) for a in (x, copy))
    whole = mine.size // 8 * 8
    if not np.array_equal(mine[whole:], others[whole:]):
        return False
    mine, others = mine[:whole].view(np.uint64), others[:whole].view(np.uint64)
    # In blocks, which stay in the cache with what is found out of each.
    for start in range(0, mine.size, _COMPARED_WORDS):
        block = slice(start, start + _COMPARED_WORDS)
        if not np.array_equal(mine[block], others[block]):
            return False
    return True
