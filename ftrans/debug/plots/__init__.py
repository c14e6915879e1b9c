"""Plots, drawn by matplotlib (`pip install 'ftrans[plot]'`): each function returns the axes that it draws in.

`.figure.savefig(path)` of the axes writes a file; a notebook shows `.figure`.
"""

from .curves import learning_curves
from .functions import loss_landscape, taylor
from .gradients import gradient_flow
from .matrices import hessian_spectrum, sparsity
from .profiles import flame

__all__ = ["flame", "gradient_flow", "hessian_spectrum", "learning_curves", "loss_landscape", "sparsity", "taylor"]


def __dir__() -> list[str]:
    return sorted(__all__)
