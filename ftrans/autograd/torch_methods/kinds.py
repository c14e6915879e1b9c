"""Dtypes, places and new arrays like one: methods of torch's tensors as functions of any value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...api.derivatives import stop_gradient
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import is_inexact
from ...numpy.promotion import asarray, same_value
from ..modes import is_in_forward
from ..tensor import Tensor
from .arguments import sizes_of

_DEVICES = ("cpu", "cuda", "gpu", "tpu", "mps", "meta", "xpu")


def to(x: Any, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, **kept: Any) -> Any:
    """The array in another dtype, or itself where it has this dtype.

    Args:
        x: the array.
        args: a dtype, another array, whose dtype is taken, or "cpu", where arrays are.
        dtype: the dtype.
        device: "cpu".
        copy: whether to copy where nothing changes.
        kept: `non_blocking` and `memory_format`, which change nothing here.
    """
    for name in kept.keys() - {"non_blocking", "memory_format"}:
        raise TypeError(f"to() got an unexpected keyword argument {name!r}{at_line(user_line())}")
    for y in args:
        if isinstance(y, str) and y.split(":")[0] in _DEVICES:
            device = y
        elif y is not None and not isinstance(y, bool):
            dtype = y if isinstance(y, type) else getattr(y, "dtype", y)
    require_host(device)
    if dtype is not None and np.dtype(dtype) != x.dtype:
        return x.astype(dtype)
    return x.copy() if copy else x


def require_host(device: Any) -> None:
    """Raise for a device that arrays cannot be put on.

    Raises:
        TypeError: it is another one than the host's.
    """
    if device is not None and str(device).split(":")[0] != "cpu":
        raise TypeError(
            f"tensors are in the memory of the host, and cannot be put on {device!r}; compiled functions (ft.jit, "
            f"nn.jit) run on JAX's default device{at_line(user_line())}"
        )


def of_type(x: Any, dtype: Any = None, **options: Any) -> Any:
    """The array in another dtype."""
    if dtype is None:
        raise TypeError(f"type() without a dtype is a name in torch; write x.dtype{at_line(user_line())}")
    if isinstance(dtype, str) and dtype.startswith("torch."):
        raise TypeError(f"{dtype!r} is a name in torch; write a dtype, such as np.float32{at_line(user_line())}")
    return to(x, dtype, **options)


def type_as(x: Any, other: Any) -> Any:
    """The array in the dtype of another one."""
    return to(x, other.dtype)


def _in_dtype(name: str) -> Callable[..., Any]:
    def convert(x: Any, memory_format: Any = None) -> Any:
        return to(x, np.dtype(name))

    convert.__doc__ = f"The array in the dtype {name}."
    return convert


def bfloat16(x: Any, memory_format: Any = None) -> Any:
    """The array in the dtype bfloat16."""
    import ml_dtypes

    return to(x, ml_dtypes.bfloat16)


def is_floating_point(x: Any) -> bool:
    """Whether the dtype is real floating-point."""
    return is_inexact(x.dtype) and x.dtype.kind != "c"


def is_complex(x: Any) -> bool:
    """Whether the dtype is complex."""
    return bool(x.dtype.kind == "c")


def is_signed(x: Any) -> bool:
    """Whether the dtype has negative numbers."""
    return bool(x.dtype.kind in "ifcV")


def element_size(x: Any) -> int:
    """Bytes of one element."""
    return int(x.dtype.itemsize)


def clone(x: Any, *, memory_format: Any = None) -> Any:
    """A copy, through which gradients flow."""
    return np.copy(x)


def detach(x: Any) -> Any:
    """The value, without derivative; of an array, which has none, itself."""
    if type(x) is Tracer:
        # In the `forward` of a Function it has none to lose.
        return same_value(x) if is_in_forward() else stop_gradient(x)
    return x.detach() if isinstance(x, Tensor) else x


def cpu(x: Any, *args: Any, **kwargs: Any) -> Any:
    """The array itself, which is in the memory of the host."""
    return x


def requires_grad(x: Any) -> bool:
    """Whether it may be differentiated: an array is not, and a traced value of floating-point numbers may be."""
    return type(x) is Tracer and is_inexact(x.dtype)


def new_full(
    x: Any, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """An array of a number, of the dtype of `x` by default."""
    require_host(device)
    found = np.full_like(x, fill_value, dtype=dtype, shape=tuple(size))
    return _leaf(found.detach() if isinstance(found, Tensor) else found, requires_grad)


def _leaf(x: Any, requires_grad: bool) -> Any:
    return x.requires_grad_() if requires_grad else x


def new_zeros(x: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Zeros, of the dtype of `x` by default."""
    return new_full(x, sizes_of(size), 0, dtype=dtype, device=device, requires_grad=requires_grad)


def new_ones(x: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Ones, of the dtype of `x` by default."""
    return new_full(x, sizes_of(size), 1, dtype=dtype, device=device, requires_grad=requires_grad)


def new_tensor(x: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """An array of other data, of the dtype of `x` by default."""
    require_host(device)
    given = np.array(data, dtype or x.dtype)
    if isinstance(x, Tensor):
        return _leaf(Tensor.of(given), requires_grad)
    return _leaf(asarray(given) if type(x) is Tracer else given, requires_grad)


_DTYPES = {
    "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
    "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
METHODS: dict[str, Callable[..., Any]] = {
    **{name: _in_dtype(dtype) for name, dtype in _DTYPES.items()}, "bfloat16": bfloat16, "to": to, "type": of_type,
    "type_as": type_as, "is_floating_point": is_floating_point, "is_complex": is_complex, "is_signed": is_signed,
    "element_size": element_size, "clone": clone, "detach": detach, "cpu": cpu, "new_full": new_full,
    "new_zeros": new_zeros, "new_ones": new_ones, "new_empty": new_zeros, "new_tensor": new_tensor,
}  # fmt: skip
