"""The structure epoch: a number that changes whenever the structure of any module changes.

A list of the cells of a module is valid as long as the epoch has not changed.  Values of cells are not part of the
structure; their shapes and dtypes are.
"""

from __future__ import annotations

from itertools import count

# Threads that change modules at once never give two epochs the same number.
_next = count(1).__next__
_epoch = 0


def now() -> int:
    """The current epoch."""
    return _epoch


def bump() -> None:
    """Note that the structure of a module has changed."""
    global _epoch
    _epoch = _next()
