"""Training: the loop `fit`, batches of data, checkpoints, files of arrays, learning curves and callbacks."""

from .callbacks import Callback, FitState
from .data import batches
from .fit import fit
from .history import History
from .saving import load, save

__all__ = ["Callback", "FitState", "History", "batches", "fit", "load", "save"]


def __dir__() -> list[str]:
    return sorted(__all__)
