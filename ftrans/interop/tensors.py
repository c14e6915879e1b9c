"""Tensors of torch as arrays, and arrays as tensors.  Memory is shared where it can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..base.foreign_arrays import numpy_of, tensor_of_numpy
from ..base.source import at_line, user_line
from ..core.types import ArrayType
from ..xla import from_dlpack, is_jax

_DTYPES = {
    "float16", "float32", "float64", "complex64", "complex128", "bool",
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
}  # fmt: skip


def dtype_of(tensor: Any) -> np.dtype[Any] | None:
    """The dtype of a tensor as one of NumPy; None where it has none."""
    return _in_numpy(tensor.dtype)


@cache
def _in_numpy(dtype: Any) -> np.dtype[Any] | None:
    name = str(dtype).removeprefix("torch.")
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name) if name in _DTYPES else None


def dtype_in_torch(dtype: np.dtype[Any]) -> Any:
    """A dtype of NumPy as one of torch."""
    import torch

    return getattr(torch, dtype.name)


def type_of_tensor(tensor: Any) -> ArrayType:
    """Shape and dtype of a tensor that `check_tensors` has passed."""
    return ArrayType(tuple(tensor.shape), dtype_of(tensor))


def check_tensors(tensors: Sequence[Any], names: Callable[[], Sequence[str]], what: str) -> None:
    """Raise unless tensors can be arrays of one program.

    Args:
        tensors: the tensors.
        names: says what each is called in messages.
        what: the function that takes them.

    Raises:
        TypeError: one is sparse, has no values, or has a dtype that NumPy does not have.
        ValueError: they are on several devices.
    """
    for index, x in enumerate(tensors):
        problem = _problem(x)
        if problem is not None:
            raise TypeError(
                f"{what} takes tensors that can be arrays, but {names()[index]} is {problem}{at_line(user_line())}"
            )
    if len({x.device for x in tensors}) > 1:
        listing = ", ".join(f"{name} is on {x.device}" for name, x in zip(names(), tensors, strict=True))
        raise ValueError(
            f"{what} computes on one device, but {listing}; move tensors by x.to(device){at_line(user_line())}"
        )


def _problem(tensor: Any) -> str | None:
    """Why a tensor cannot be an array; None if it can."""
    import torch

    if tensor.layout is not torch.strided:
        return f"sparse ({tensor.layout}); arrays in a program are not, so pass x.to_dense()"
    if tensor.device.type == "meta":
        return "on the device 'meta', without values; pass a tensor with values"
    if dtype_of(tensor) is None:
        return f"of dtype {tensor.dtype}, which NumPy does not have; convert it, for instance by x.float()"
    return None


def array_of(tensor: Any) -> Any:
    """A tensor as an array: of NumPy, which shares its memory, or of JAX if it is not on the host.

    Raises:
        TypeError: JAX does not compute on its device.
    """
    tensor = tensor.detach()
    if tensor.device.type == "cpu":
        return numpy_of(tensor)
    return from_dlpack(tensor.resolve_conj().resolve_neg().contiguous())


def tensor_of(x: Any, device: Any = None) -> Any:
    """An array or a number as a tensor on a device, which shares its memory if the array is there."""
    import torch

    if is_jax(x):
        tensor = torch.from_dlpack(x)
        return tensor if device is None else tensor.to(device)
    tensor = tensor_of_numpy(np.asarray(x))
    return tensor if device is None or device.type == "cpu" else tensor.to(device)
