"""Training: the loop `fit`, its data, checkpoints, curves and callbacks; evaluation; files of arrays."""

from .callbacks import Callback, FitState
from .data import batches
from .evaluating import evaluate, predict
from .fit import fit
from .history import History
from .saving import load, save
from .search import find_learning_rate
from .step_profile import profile_step

__all__ = [
    "Callback", "FitState", "History", "batches", "evaluate", "find_learning_rate", "fit", "load", "predict",
    "profile_step", "save",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
