"""Testing derivatives: `check_grads`, for every function that can be differentiated."""

from .checking import check_grads
from .failures import GradientError

__all__ = ["GradientError", "check_grads"]


def __dir__() -> list[str]:
    return sorted(__all__)
