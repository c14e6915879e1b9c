"""What the functions of `scipy.linalg` ask of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.linalg

from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...numpy.dispatch import implements
from ...numpy.linalg.operands import LinAlgError, adjoint, check_matrices, check_square, matrices
from ...numpy.promotion import cast

Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = [
    "LinAlgError", "adjoint", "as_columns", "check_matrices", "check_square", "implemented", "in_double_precision",
    "matrices", "missing_option", "transposed",
]  # fmt: skip


def implemented(function: Function) -> Function:
    """Enter the decorated function as the traced form of the function of `scipy.linalg` of the same name."""
    return implements(getattr(scipy.linalg, function.__name__))(function)


def missing_option(function: str, option: str, advice: str) -> MissingRule:
    """The error for an option of a function of `scipy.linalg` without a traced form."""
    return MissingRule(f"scipy.linalg.{function} with {option} has no traced form: {advice}{at_line(user_line())}")


def in_double_precision(*xs: Any) -> list[Any]:
    """Operands of a function that SciPy computes in double precision, whatever the precision of its arguments."""
    return [cast(x, np.result_type(x.dtype, np.float64)) for x in matrices(*xs)]


def transposed(a: Any, trans: Any) -> Any:
    """The matrices that SciPy's argument `trans` means: as they are, transposed, or conjugated as well."""
    if trans in (0, "N"):
        return a
    if trans in (1, "T"):
        return np.swapaxes(a, -1, -2)
    if trans in (2, "C"):
        return adjoint(a)
    raise ValueError(f"trans must be 0, 1 or 2, or 'N', 'T' or 'C', not {trans!r}{at_line(user_line())}")


def as_columns(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Matrices and right-hand sides with the same leading axes, and whether the right-hand side was one vector."""
    is_vector = b.ndim == 1
    if is_vector:
        b = b[:, None]
    if b.ndim < 2 or b.shape[-2] != a.shape[-2]:
        raise ValueError(f"{name}: right-hand sides {b.type} do not fit the matrices {a.type}{at_line(user_line())}")
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.broadcast_to(a, (*lead, *a.shape[-2:])), np.broadcast_to(b, (*lead, *b.shape[-2:])), is_vector
