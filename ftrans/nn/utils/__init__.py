"""Tools for modules and their parameters, under the names of `torch.nn.utils`."""

from ..torch_hints import missing as _missing
from . import parametrizations, parametrize, prune, rnn, stateless
from .clipping import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
from .norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from .skipping import skip_init
from .vectors import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    raise _missing("nn.utils", name)
