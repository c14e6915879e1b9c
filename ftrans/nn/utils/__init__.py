"""Tools for modules and their parameters, under the names of `torch.nn.utils`."""

from . import parametrizations, parametrize, rnn
from .norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

__all__ = [
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "weight_norm",
]


def __dir__() -> list[str]:
    return sorted(__all__)
