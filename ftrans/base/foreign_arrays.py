"""Foreign arrays: arrays of libraries that ftrans does not compute with, such as tensors of torch and arrays of cupy.

A program knows the arrays of NumPy and of JAX.  The package `interop` converts others by DLPack at the edge of the API,
and says here how it takes a call with such arrays among its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .cell import Holder

# How the names of the packages begin whose arrays ftrans computes with.
_OWN = ("ftrans", "jax", "numpy")


class ForeignArrays(TypeError):
    """A foreign array came where arrays of NumPy or JAX are computed with.

    Attributes:
        take: calls a transformed function that has such arrays among its arguments, given the function, its arguments,
            its keyword arguments, and whether the second item of its result is a function.
    """

    take: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], bool], Any]


@lru_cache(maxsize=1000)
def is_class_of_tensors(cls: Any) -> bool:
    """Whether objects of a class are tensors of torch, which need not be imported for this question."""
    return any(base.__name__ == "Tensor" and base.__module__.partition(".")[0] == "torch" for base in cls.__mro__)


@lru_cache(maxsize=1000)
def is_foreign_class(cls: Any) -> bool:
    """Whether objects of a class are foreign arrays: they share memory by DLPack, or are tensors of torch."""
    if is_class_of_tensors(cls):
        return True
    if issubclass(cls, np.ndarray | np.generic | Holder) or cls.__module__.startswith(_OWN):
        return False
    return callable(getattr(cls, "__dlpack__", None))


def is_foreign(x: Any) -> bool:
    """Whether `x` is a foreign array."""
    cls: Any = type(x)
    return is_foreign_class(cls)


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor of torch."""
    cls: Any = type(x)
    return is_class_of_tensors(cls)


def numpy_of(tensor: Any) -> np.ndarray[Any, Any]:
    """A tensor of torch as a NumPy array, which shares its memory if it is on the host."""
    if str(tensor.dtype) != "torch.bfloat16":
        return np.asarray(tensor.numpy(force=True))
    import ml_dtypes
    import torch

    return np.asarray(tensor.detach().view(torch.int16).numpy(force=True).view(ml_dtypes.bfloat16))


def tensor_of_numpy(array: np.ndarray[Any, Any]) -> Any:
    """A NumPy array as a tensor of torch, which shares its memory if torch can read it as it lies."""
    import torch

    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.writeable or any([stride < 0 or stride % array.itemsize for stride in array.strides]):
        array = array.copy()
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
