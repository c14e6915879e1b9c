"""The page of an object, whatever it is."""

from __future__ import annotations

from typing import Any

from ...api.checkpoint import Residuals
from ...api.explain_zero import ZeroGradients
from ...api.sparsity import Sparsity
from ...core.program import Program
from ...testing.failures import GradientError
from .programs import page_of_program
from .reports import page_of_error, page_of_residuals, page_of_sparsity, page_of_zeros


def page_of(x: Any) -> str:
    """The HTML of an object."""
    if isinstance(x, Program):
        return page_of_program(x)
    if isinstance(x, Sparsity):
        return page_of_sparsity(x)
    if isinstance(x, Residuals):
        return page_of_residuals(x)
    if isinstance(x, ZeroGradients):
        return page_of_zeros(x)
    assert isinstance(x, GradientError)
    return page_of_error(x)
