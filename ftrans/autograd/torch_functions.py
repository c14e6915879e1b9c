"""The functions of torch's namespace that take arrays: those of the table of methods, on values of any kind.

They always mean what torch means: `max(x, 1)` gives values and indices, and `std(x)` divides by n - 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.cell import read
from ..base.forward_code import in_forward, plain, speaking
from ..run.places import place_of_arguments
from . import torch_methods

# Methods that torch has as methods only.
_METHODS_ONLY = {
    "view", "view_as", "reshape_as", "expand", "expand_as", "repeat", "unfold", "dim", "ndimension", "nelement", "size",
    "contiguous", "is_contiguous", "sum_to_size", "to", "type", "type_as", "element_size", "cpu", "new_full",
    "new_zeros", "new_ones", "new_empty", "new_tensor", "float", "double", "half", "long", "int", "short", "char",
    "byte", "bool", "cfloat", "cdouble", "bfloat16",
}  # fmt: skip


def _of_any(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes cells, arrays of JAX and arrays inside forward code, too."""

    code = getattr(function, "__code__", None)
    names = () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = read(args), read(kwargs)
        is_heard = speaking.get()
        if is_heard:
            args, kwargs = plain(args), plain(kwargs)
        if "input" in kwargs and not args and "input" not in names:
            args = (kwargs.pop("input"),)
        for name, other in (("axis", "dim"), ("keepdims", "keepdim")):
            if name in kwargs and other in names:
                kwargs[other] = kwargs.pop(name)
        place = place_of_arguments(args, kwargs)
        found = place.call(function, args, kwargs) if place.is_jax else function(*args, **kwargs)
        return in_forward(found) if is_heard else found

    return call


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: _of_any(function)
    for name, function in (torch_methods.METHODS | torch_methods.FUNCTIONS).items()
    if name not in _METHODS_ONLY
}

DTYPES = {
    name: np.dtype(of_numpy)
    for name, of_numpy in (
        ("float16", "float16"), ("half", "float16"), ("float32", "float32"), ("float", "float32"),
        ("float64", "float64"), ("double", "float64"), ("int8", "int8"), ("int16", "int16"), ("short", "int16"),
        ("int32", "int32"), ("int", "int32"), ("int64", "int64"), ("long", "int64"), ("uint8", "uint8"),
        ("uint16", "uint16"), ("uint32", "uint32"), ("uint64", "uint64"), ("bool", "bool"),
        ("complex64", "complex64"), ("cfloat", "complex64"), ("complex128", "complex128"), ("cdouble", "complex128"),
    )
}  # fmt: skip
CONSTANTS = {
    "pi": np.pi,
    "e": np.e,
    "inf": np.inf,
    "nan": np.nan,
    "newaxis": None,
    "Size": tuple,
    "finfo": np.finfo,
    "iinfo": np.iinfo,
}
