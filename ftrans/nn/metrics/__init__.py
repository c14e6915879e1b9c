"""Metrics: figures of outputs and targets that are accumulated over batches on the device, under usual names."""

from .classification import Accuracy, ConfusionMatrix, F1Score, Precision, Recall, TopKAccuracy
from .metric import Metric
from .ranking import AUROC
from .regression import (
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    R2Score,
    RootMeanSquaredError,
)
from .text import Perplexity

__all__ = [
    "AUROC",
    "Accuracy",
    "ConfusionMatrix",
    "F1Score",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "Metric",
    "Perplexity",
    "Precision",
    "R2Score",
    "Recall",
    "RootMeanSquaredError",
    "TopKAccuracy",
]


def __dir__() -> list[str]:
    return sorted(__all__)
