"""Neural networks: a mutable `Module` over pure transformations, with layers, losses and a training loop."""

import importlib as _importlib
import sys as _sys
import typing as _typing

from ..autograd.elsewhere import PROVIDED as _PROVIDED
from . import callbacks, data, functional, init, layers, metrics, optim, random, utils
from .cells.kinds import Buffer, Parameter, RngState
from .devices.placing import data_parallel, fsdp, shard, tensor_parallel
from .init import generator, manual_seed
from .layers import *  # noqa: F403
from .mixed_precision.autocast import autocast
from .mixed_precision.loss_scale import LossScale, all_finite, clip_grad_norm, global_norm
from .modules.containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .modules.module import Module
from .modules.stacks import scan, stack_modules, unstack_modules
from .modules.state import functional_call, merge, split, state_of
from .modules.summary import summary
from .optim import LBFGS
from .optim.averaging import EMA
from .optim.optimizer import Optimizer
from .pretrained.generation import generate
from .pretrained.weights import from_torch, to_torch
from .torch_hints import TorchUtils as _TorchUtils
from .torch_hints import missing as _missing
from .training import (
    Callback,
    FitState,
    History,
    batches,
    evaluate,
    find_learning_rate,
    fit,
    load,
    predict,
    profile_step,
    save,
)
from .transformations.checkpoint import checkpoint
from .transformations.gradients import grad, value_and_grad
from .transformations.jit import jit
from .transformations.vectorize import vmap
from .utils import clip_grad_norm_
from .utils.vectors import parameters_to_vector, vector_to_parameters

__all__ = [
    "EMA",
    "LBFGS",
    "Buffer",
    "Callback",
    "FitState",
    "History",
    "LossScale",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Optimizer",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RngState",
    "Sequential",
    "all_finite",
    "autocast",
    "batches",
    "callbacks",
    "checkpoint",
    "clip_grad_norm",
    "clip_grad_norm_",
    "data",
    "data_parallel",
    "distributions",
    "evaluate",
    "find_learning_rate",
    "fit",
    "from_torch",
    "fsdp",
    "functional",
    "functional_call",
    "generate",
    "generator",
    "global_norm",
    "grad",
    "init",
    "jit",
    "load",
    "manual_seed",
    "merge",
    "metrics",
    "optim",
    "parameters_to_vector",
    "predict",
    "profile_step",
    "random",
    "save",
    "scan",
    "shard",
    "split",
    "stack_modules",
    "state_of",
    "summary",
    "tensor_parallel",
    "to_torch",
    "unstack_modules",
    "utils",
    "value_and_grad",
    "vector_to_parameters",
    "vmap",
]
__all__ += layers.__all__

# Where `ftrans.autograd` is their torch, programs of torch write torch.nn, torch.optim and torch.utils.data.
_PROVIDED.update(
    nn=lambda: _sys.modules[__name__],
    optim=lambda: optim,
    utils=lambda: _TorchUtils(data),
    distributions=lambda: _importlib.import_module(".distributions", __name__),
)
if _typing.TYPE_CHECKING:
    from . import distributions
else:

    def __getattr__(name: str) -> _typing.Any:
        # SciPy takes a second to import; models without distributions do without.
        if name == "distributions":
            return _importlib.import_module(".distributions", __name__)
        raise _missing("nn", name)


def __dir__() -> list[str]:
    return sorted(__all__)
