"""Methods of tensors for traced values, so that code written for tensors can be traced.

What would give the array itself away, such as `numpy()` or `item()`, and what only a graph has, such as `backward`, has
no meaning for a traced value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.derivatives import stop_gradient
from ..core.trace import Tracer
from ..numpy.methods import name_methods, ufuncs_by_name
from ..numpy.promotion import same_value
from .methods import TORCH_UFUNCS
from .modes import is_in_forward
from .tensor import Tensor

_NAMES = (
    "clone", "norm", "to", "float", "double", "int", "long", "bool", "clamp", "zero_", "fill_", "copy_", "dim", "numel",
    "t", "contiguous", "cpu", "permute", "unsqueeze", "expand", "sigmoid", "relu",
)  # fmt: skip


def _detach(self: Any) -> Any:
    """The value, without derivative; in the `forward` of a Function it has none to lose."""
    return same_value(self) if is_in_forward() else stop_gradient(self)


def _applied(ufunc: np.ufunc) -> Callable[..., Any]:
    return lambda self, *others, **options: ufunc(self, *others, **options)


def install_on_traced_values() -> None:
    """Give traced values the methods of tensors that they do not have yet."""
    methods: dict[str, Any] = {"detach": _detach}
    methods |= {name: _applied(ufunc) for name, ufunc in TORCH_UFUNCS.items()}
    shared, ufuncs = vars(Tensor), ufuncs_by_name() | TORCH_UFUNCS
    methods |= {name: shared[name] for name in (*_NAMES, *(f"{n}_" for n in ufuncs)) if name in shared}
    for name, method in methods.items():
        if name not in vars(Tracer):
            setattr(Tracer, name, method)
    name_methods(Tracer, methods)
