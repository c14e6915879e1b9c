"""Functions of each element that are one primitive, of arrays, traced values and eager values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.primitive import SingleResult
from ..core.trace import Tracer
from ..core.types import is_inexact
from ..numpy.promotion import cast
from ..run.places import place_of_argument
from .call import record_or_run


def apply_elementwise(primitive: SingleResult, x: Any) -> Any:
    """Apply a primitive with one operand to an array, a traced value or a tensor."""
    if type(x) is np.ndarray and x.dtype.kind == "f":
        return primitive.numpy(x)
    if place_of_argument(x).holds_arrays:
        x = np.asarray(x)
        return primitive.numpy(x if is_inexact(x.dtype) else x.astype(np.float64))[()]
    (y,) = record_or_run(primitive.name, lambda xs: [primitive(_as_inexact(xs[0]))], [x])
    if type(x) is Tracer:
        y.weak = x.weak
    return y


def _as_inexact(x: Tracer) -> Any:
    return x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64))
