"""Callbacks for `nn.fit`: loggers, early stopping, further checkpoints, and the learning rate of each epoch."""

from ..training.callbacks import Callback
from .checkpoints import ModelCheckpoint
from .loggers import CSVLogger, TensorBoardLogger, WandbLogger
from .rates import LearningRateMonitor
from .stopping import EarlyStopping

__all__ = [
    "CSVLogger",
    "Callback",
    "EarlyStopping",
    "LearningRateMonitor",
    "ModelCheckpoint",
    "TensorBoardLogger",
    "WandbLogger",
]


def __dir__() -> list[str]:
    return sorted(__all__)
