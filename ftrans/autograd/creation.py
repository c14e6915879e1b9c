"""Functions that create tensors.

A shape is one tuple or several integers.  The default dtype is float64, as in NumPy, until `set_default_dtype` is
called.  In forward code of a module they make what its other values are: arrays where it was called with arrays, traced
values in a trace.  `device` is "cpu", where tensors are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.cell import Holder, read
from ..base.forward_code import ForwardArray, in_forward, reading, speaking
from ..base.lookalikes import refuse_lookalike
from ..base.source import at_line, user_line
from ..core.trace import Tracer, current_builder
from ..core.types import type_of
from ..numpy.array_api import Device
from ..numpy.promotion import asarray, same_value
from .default_dtype import by_default, get_default_dtype
from .modes import current_mode
from .tensor import Tensor, held
from .tensor import as_tensor as tensor_of
from .torch_methods.kinds import detach, require_host, to


def device(type: Any, index: int | None = None) -> Device:
    """The device of a name, which is "cpu": tensors are in the memory of the host.

    Args:
        type: "cpu", or a device.
        index: accepted as in torch, without effect.

    Raises:
        TypeError: it is another device.

    Example:
        >>> from ftrans import autograd as torch
        >>> place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        >>> torch.ones(2).to(place), place.type
        (tensor([1., 1.]), 'cpu')
    """
    require_host(type)
    return Device("cpu")


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Tensor:
    """Create a tensor from a copy of the data.

    Args:
        data: a number, an array, a tensor (which is detached from its graph), or nested lists of these.
        dtype: dtype of the tensor; by default the one that NumPy infers.
        requires_grad: whether `backward` accumulates a gradient in the attribute `grad` of the tensor.
        device: "cpu".

    Returns:
        A leaf tensor.

    Raises:
        TypeError: the data is not numeric.
        RuntimeError: `requires_grad` is set, but the dtype is not floating-point or complex.

    Example:
        >>> import ftrans as ft
        >>> ft.autograd.tensor([1.0, 2.0], requires_grad=True)
        tensor([1., 2.], requires_grad=True)
    """
    require_host(device)
    data = held(data)
    if type(data) is Tracer:
        copied: Any = np.copy(to(detach(data), dtype=dtype))
        return copied
    array = np.array(_detached(data), dtype)
    return leaf(by_default(array, data, dtype), requires_grad)


def _detached(data: Any) -> Any:
    data = held(data)
    if isinstance(data, Tensor):
        return data.array
    if isinstance(data, list | tuple):
        return [_detached(x) for x in data]
    refuse_lookalike(data)
    return data


def _is_forward_code() -> bool:
    """Whether forward code runs on something else than tensors."""
    return speaking.get() and reading.get() != "tensors"


def leaf(array: Any, requires_grad: bool) -> Any:
    try:
        type_of(array)
    except TypeError:
        raise TypeError(
            f"a tensor holds numbers, but NumPy makes an array of dtype {array.dtype} of these data; are the lists of "
            f"different lengths?{at_line(user_line())}"
        ) from None
    if not requires_grad and _is_forward_code():
        # A copy in a trace may be assigned to.
        return in_forward(array) if current_builder() is None else same_value(asarray(array))
    found = Tensor.of(array)
    found.is_inferred = current_mode().infers
    return found.requires_grad_() if requires_grad else found


def as_tensor(data: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Convert data to a tensor, without a copy where possible.

    Args:
        data: a tensor, which is returned unchanged if its dtype matches; an array, a number, or nested lists.
        dtype: dtype of the tensor; by default that of the data.
        device: "cpu".

    Raises:
        TypeError: the data is of a class whose arithmetic differs from that of arrays, such as `numpy.matrix`.
    """
    require_host(device)
    is_in_forward = _is_forward_code()
    data = read(data) if is_in_forward else held(data)
    if isinstance(data, Tracer | ForwardArray):
        return to(data, dtype=dtype)
    if not isinstance(data, Tensor) and not hasattr(data, "dtype"):
        data = by_default(np.asarray(_detached(data), dtype), data, dtype)
    if is_in_forward and not isinstance(data, Tensor):
        refuse_lookalike(data)
        return leaf(np.asarray(data, dtype), False)
    return tensor_of(data, dtype)


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """Create a tensor that shares memory with an array: each sees what is written to the other.

    Args:
        array: the array.

    Raises:
        TypeError: it is of a class whose arithmetic differs from that of arrays, such as `numpy.matrix`.
    """
    if _is_forward_code():
        refuse_lookalike(array)
        return leaf(np.asarray(array), False)
    return sharing(array)


def sharing(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor that shares memory with an array."""
    refuse_lookalike(array)
    found = Tensor.of(np.asarray(array))
    found.shared_memory().lend(found.array)
    return found


def sizes(shape: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    shape = shape if size is None else (size,)
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    return tuple(int(n) for n in given)


def zeros(*shape: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A tensor of zeros."""
    require_host(device)
    return leaf(np.zeros(sizes(shape, size), dtype or get_default_dtype()), requires_grad)


def ones(*shape: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A tensor of ones."""
    require_host(device)
    return leaf(np.ones(sizes(shape, size), dtype or get_default_dtype()), requires_grad)


def empty(*shape: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """An uninitialised tensor."""
    require_host(device)
    return leaf(np.empty(sizes(shape, size), dtype or get_default_dtype()), requires_grad)


def full(size: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Tensor:
    """A tensor filled with one number."""
    require_host(device)
    return leaf(by_default(np.full(size, _detached(fill_value), dtype), fill_value, dtype), requires_grad)


def arange(
    *range: Any,
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """`numpy.arange(start, end, step)`."""
    require_host(device)
    if end is not None:
        range = (*(range or (start,)), end, step)
    return leaf(by_default(np.arange(*range, dtype=dtype), range, dtype), requires_grad)


def linspace(
    start: Any, end: Any, steps: int = 50, dtype: Any = None, requires_grad: bool = False, *, device: Any = None
) -> Tensor:
    """`steps` evenly spaced numbers from `start` to `end`, inclusive."""
    require_host(device)
    return leaf(by_default(np.linspace(start, end, steps, dtype=dtype), start, dtype), requires_grad)


def logspace(
    start: Any, end: Any, steps: int = 50, base: float = 10.0, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """`steps` numbers from `base ** start` to `base ** end`, inclusive, whose logarithms are evenly spaced."""
    found = np.logspace(start, end, steps, base=base, dtype=dtype)
    return leaf(by_default(found, start, dtype), requires_grad)


def eye(
    rows: int, columns: int | None = None, dtype: Any = None, requires_grad: bool = False, *, device: Any = None
) -> Tensor:
    """A matrix with ones on the diagonal and zeros elsewhere."""
    require_host(device)
    return leaf(np.eye(rows, columns, dtype=dtype or get_default_dtype()), requires_grad)


def tril_indices(row: int, col: int, offset: int = 0, *, device: Any = None) -> Tensor:
    """The indices of the elements of a matrix on and below a diagonal, in two rows."""
    require_host(device)
    return leaf(np.stack(np.tril_indices(row, offset, col)), False)


def triu_indices(row: int, col: int, offset: int = 0, *, device: Any = None) -> Tensor:
    """The indices of the elements of a matrix on and above a diagonal, in two rows."""
    require_host(device)
    return leaf(np.stack(np.triu_indices(row, offset, col)), False)


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor, or what stands for one: a traced value, or an array inside forward code."""
    return isinstance(x, Holder | Tracer | ForwardArray)


def _like(x: Any) -> Any:
    """An array of the shape and dtype of `x`."""
    x = held(x)
    if type(x) is Tracer:
        return np.broadcast_to(np.zeros((), x.dtype), x.shape)
    return x.array if isinstance(x, Tensor) else np.asarray(x)


def zeros_like(x: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Tensor:
    """Zeros of the shape of `x`, and of its dtype by default."""
    require_host(device)
    return leaf(np.zeros_like(_like(x), dtype), requires_grad)


def ones_like(x: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Tensor:
    """Ones of the shape of `x`, and of its dtype by default."""
    require_host(device)
    return leaf(np.ones_like(_like(x), dtype), requires_grad)


def empty_like(x: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Tensor:
    """An uninitialised tensor of the shape of `x`, and of its dtype by default."""
    require_host(device)
    return leaf(np.empty_like(_like(x), dtype), requires_grad)


def full_like(x: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False, *, device: Any = None) -> Tensor:
    """A tensor filled with one number, of the shape of `x`, and of its dtype by default."""
    require_host(device)
    return leaf(np.full_like(_like(x), _detached(fill_value), dtype), requires_grad)
