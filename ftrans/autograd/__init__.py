"""Define-by-run differentiation: tensors that remember how they were computed, and functions with a context object."""

import typing as _typing

from ..api.anomaly import detect_anomaly, set_detect_anomaly
from ..api.anomaly.report import AnomalyError
from . import cuda, functional
from .backward import backward, grad
from .context import Context
from .creation import (
    arange,
    as_tensor,
    device,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    is_tensor,
    linspace,
    logspace,
    ones,
    ones_like,
    tril_indices,
    triu_indices,
    zeros,
    zeros_like,
)
from .default_dtype import get_default_dtype, set_default_dtype
from .elsewhere import found_elsewhere as _found_elsewhere
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
from .random_numbers import (
    bernoulli,
    default_generator,
    install_random_methods,
    manual_seed,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
)
from .tensor import Tensor
from .torch_functions import CONSTANTS, DTYPES, FUNCTIONS
from .traced_methods import install_on_arrays, install_on_traced_values

# Behind what has the same name, the file of the class.
from .creation import tensor  # isort: skip

install()
install_random_methods()
install_on_traced_values()
install_on_arrays()

globals().update(FUNCTIONS | DTYPES | CONSTANTS)

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
    "bernoulli",
    "cuda",
    "default_generator",
    "detect_anomaly",
    "device",
    "empty",
    "empty_like",
    "enable_grad",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "functional",
    "get_default_dtype",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_tensor",
    "linspace",
    "logspace",
    "manual_seed",
    "multinomial",
    "no_grad",
    "normal",
    "once_differentiable",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "set_default_dtype",
    "set_detect_anomaly",
    "set_grad_enabled",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
]
if _typing.TYPE_CHECKING:
    from . import torch_names as _torch_names
    from .torch_names import *  # noqa: F403

    __all__ += _torch_names.__all__
else:
    __all__ += {**FUNCTIONS, **DTYPES, **CONSTANTS}.keys() - {*__all__}

    def __getattr__(name: str) -> _typing.Any:
        return _found_elsewhere(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
