"""`scipy.sparse.linalg` with traced values: solutions by right-hand side and by entries, eigenvalues, exponentials.

    >>> import numpy as np, ftrans as ft
    >>> from ftrans.scipy import sparse
    >>> from ftrans.scipy.sparse import linalg
    >>> f = lambda d: np.sum(linalg.spsolve(sparse.diags_array(d, format="csc"), np.ones(3)))
    >>> ft.grad(f)(np.array([1.0, 2.0, 4.0]))
    array([-1.    , -0.25  , -0.0625])

Factorisations and ARPACK run on the host, compiled or not.  Iterative solvers are compiled; their derivatives are
solutions with the same tolerance.  Names that are not here are those of `scipy.sparse.linalg`.
"""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

import scipy.sparse.linalg as _linalg

from ....base.exports import exported as _exported
from .direct import *
from .functions import *
from .iterative import *
from .operators import LinearOperator as LinearOperator
from .untraced import FUNCTIONS as _FUNCTIONS


def __getattr__(name: str) -> _typing.Any:
    return _FUNCTIONS[name] if name in _FUNCTIONS else getattr(_linalg, name)


if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = _exported(globals())

    def __dir__() -> list[str]:
        return __all__
