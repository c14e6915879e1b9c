"""Tools for modules and their parameters, under the names of `torch.nn.utils`."""

from . import rnn

__all__ = ["rnn"]


def __dir__() -> list[str]:
    return sorted(__all__)
