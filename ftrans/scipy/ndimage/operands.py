"""What the functions of `scipy.ndimage` ask of their arguments, and how arrays go on beyond their edges."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.ndimage

from ...core.trace import Tracer
from ...core.types import is_complex
from ...numpy.manipulation import normal_axes, normal_axis
from ...numpy.promotion import asarray, cast
from ..entries import bad_argument, entering

implemented = entering(scipy.ndimage)

# NumPy's names of the ways in which filters continue an array.
_PADDINGS = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "nearest": "edge", "mirror": "reflect", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip


def in_double_precision(x: Any) -> Any:
    """The operand in the precision that SciPy computes in."""
    x = asarray(x)
    return cast(x, np.dtype(np.complex128 if is_complex(x.dtype) else np.float64))


def delivered(result: Any, output: Any, like: Any) -> Any:
    """The result in the dtype that `output` says, by default that of the operand `like`, or written to `output`."""
    if type(output) is Tracer:
        output[...] = result.astype(output.dtype)
        return output
    if isinstance(output, np.ndarray):
        raise bad_argument("output= cannot be a plain array where the input is traced; leave it out")
    if output is None:
        dtype = asarray(like).dtype
        dtype = np.result_type(dtype, np.complex64) if is_complex(result.dtype) else dtype
    else:
        dtype = np.result_type(output, np.complex64) if is_complex(result.dtype) else np.dtype(output)
    return result if result.dtype == dtype else result.astype(dtype)


def one_for_each(value: Any, count: int) -> list[Any]:
    """A value for each axis, of one for all or a sequence of them."""
    if isinstance(value, str) or np.ndim(value) == 0:
        return [value] * count
    if len(value) != count:
        raise bad_argument(f"a sequence must have one value for each of {count} axes, not {len(value)}")
    return list(value)


def axes_of(x: Any, axes: Any) -> list[int]:
    """The axes that a filter works along, all by default."""
    return list(range(x.ndim)) if axes is None else list(normal_axes(axes, x.ndim))


def axis_of(x: Any, axis: Any) -> int:
    """An axis of `x`, which may be given from the end."""
    return normal_axis(axis, x.ndim)


def around(size: int, origin: Any) -> tuple[int, int]:
    """How many elements before and after the one in question a window of `size` has."""
    before = size // 2 + operator.index(origin)
    if not 0 <= before < size:
        raise bad_argument(f"invalid origin {origin}: a window of {size} elements must contain the one it is for")
    return before, size - 1 - before


def continued(x: Any, widths: list[tuple[int, int]], mode: Any, cval: Any) -> Any:
    """`x` with so many elements more before and after it along each axis."""
    if mode not in _PADDINGS:
        raise bad_argument(f"boundary mode {mode!r} is not supported: it is one of {', '.join(_PADDINGS)}")
    if not any(map(any, widths)):
        return x
    # An empty array has no elements to go on with.
    kind = _PADDINGS[mode] if x.size else "constant"
    return np.pad(x, widths, kind, constant_values=cval) if kind == "constant" else np.pad(x, widths, kind)
