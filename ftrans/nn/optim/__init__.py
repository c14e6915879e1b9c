"""Optimizers under the names of torch.optim, with their hyperparameters, defaults and updates."""

from ..torch_hints import missing as _missing
from . import lr_scheduler
from .groups import ParamGroup
from .lbfgs import LBFGS
from .optimizers import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lion,
    NAdam,
    RAdam,
    RMSprop,
    Rprop,
)

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "NAdam",
    "ParamGroup",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]


def __getattr__(name: str) -> object:
    raise _missing("nn.optim", name)


def __dir__() -> list[str]:
    return sorted(__all__)
