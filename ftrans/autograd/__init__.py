"""Define-by-run differentiation: tensors that remember how they were computed, and functions with a context object."""

from .backward import backward, grad
from .creation import (
    arange,
    default_generator,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    manual_seed,
    ones,
    ones_like,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    tensor,
    zeros,
    zeros_like,
)
from .function import Context, Function
from .graph import Node
from .hooks import Handle
from .methods import install
from .modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .tensor import Tensor, as_tensor

install()

__all__ = [
    "Context",
    "Function",
    "Handle",
    "Node",
    "Tensor",
    "arange",
    "as_tensor",
    "backward",
    "default_generator",
    "empty",
    "empty_like",
    "enable_grad",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "linspace",
    "manual_seed",
    "no_grad",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "set_grad_enabled",
    "tensor",
    "zeros",
    "zeros_like",
]
