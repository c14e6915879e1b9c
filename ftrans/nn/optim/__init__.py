"""Optimizers under the names of torch.optim, with their hyperparameters, defaults and updates."""

from ...base.source import at_line, user_line
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

# What torch.optim has beside these, and what to write for it.
_INSTEAD = {
    "Adafactor": "nn.Optimizer(model, optax.adafactor(...))",
    "Muon": "nn.Optimizer(model, optax.contrib.muon(...))",
    "SparseAdam": "nn.optim.Adam, since gradients here are dense",
    "swa_utils": "nn.EMA(model) for averages of parameters, and nn.optim.lr_scheduler.LambdaLR for the rate",
}


def __getattr__(name: str) -> object:
    if name in _INSTEAD:
        raise AttributeError(f"nn.optim has no {name}; write {_INSTEAD[name]}{at_line(user_line())}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
