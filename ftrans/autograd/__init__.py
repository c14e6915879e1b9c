"""Define-by-run differentiation: tensors that remember how they were computed, and functions with a context object."""

from ..api.anomaly import detect_anomaly, set_detect_anomaly
from ..api.anomaly.report import AnomalyError
from . import functional
from .backward import backward, grad
from .context import Context
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
from .function import Function, once_differentiable
from .gradcheck import gradcheck, gradgradcheck
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
from .traced_methods import install_on_arrays, install_on_traced_values

install()
install_on_traced_values()
install_on_arrays()

__all__ = [
    "AnomalyError",
    "Context",
    "Function",
    "Handle",
    "Node",
    "Tensor",
    "arange",
    "as_tensor",
    "backward",
    "default_generator",
    "detect_anomaly",
    "empty",
    "empty_like",
    "enable_grad",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "linspace",
    "manual_seed",
    "no_grad",
    "once_differentiable",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "set_detect_anomaly",
    "set_grad_enabled",
    "tensor",
    "zeros",
    "zeros_like",
]


def __dir__() -> list[str]:
    return sorted(__all__)
