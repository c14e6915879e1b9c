"""`scipy.sparse` with traced values: products of plain sparse arrays, and sparse arrays with traced entries.

A plain sparse array multiplies traced values as it is, without this module.  One with traced entries is made here, by
the functions of SciPy's names:

    >>> import numpy as np, ftrans as ft
    >>> from ftrans.scipy import sparse
    >>> rows, columns = np.array([0, 1, 1]), np.array([0, 0, 1])
    >>> def f(entries, x):
    ...     return np.sum(sparse.csr_array((entries, (rows, columns))) @ x)
    >>> ft.grad(f)(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0]))
    array([4., 4., 5.])

Where the entries are must be known.  Names that are not here are those of `scipy.sparse`.
"""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

import scipy.sparse as _sparse

from ...base.exports import exported as _exported
from . import linalg as linalg
from .construct import *


def __getattr__(name: str) -> _typing.Any:
    return getattr(_sparse, name)


if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = sorted([*_exported(globals()), "linalg"])

    def __dir__() -> list[str]:
        return __all__
