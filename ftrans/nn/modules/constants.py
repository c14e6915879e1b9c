"""Constants that forward code stores in attributes of its module on its first run, such as a mask.

    if self.mask is None:
        self.mask = np.tril(np.ones((n, n)))

A trace may do so, too: what depends on no traced value is the same in each call.  It may fill an empty attribute, and
store an equal value again.  A different value would be fixed to that of the trace, so it is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.type_questions import is_plain


def is_constant(x: Any) -> bool:
    """Whether a value is a NumPy array, or a tuple of arrays."""
    if type(x) is tuple:
        return bool(x) and all([is_constant(y) for y in x])
    return is_plain(x, np.ndarray) and x.dtype != object


def is_same(x: Any, y: Any) -> bool:
    """Whether two constants are equal in type and value."""
    if type(x) is not type(y):
        return False
    if type(x) is tuple:
        return len(x) == len(y) and all(map(is_same, x, y))
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
