"""Integrals and differential equations of `scipy.integrate` under their names, on plain and on traced values.

    >>> import ftrans as ft
    >>> import numpy as np
    >>> from ftrans.scipy import integrate
    >>> area = lambda width: integrate.fixed_quad(lambda x: np.exp(-((x / width) ** 2)), 0.0, width)[0]
    >>> print(round(float(ft.grad(area)(2.0)), 6))
    0.746824

Where nothing is traced, SciPy's own functions run; `solve_ivp` and `solve_bvp` are then given the exact Jacobians that
they can use.  Names that are not here are those of `scipy.integrate`.
"""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

import scipy.integrate as _original

from ...base.exports import exported as _exported
from .initial_value import *
from .multiple import *
from .quadrature import *
from .samples import *
from .vectors import *
from .with_jacobians import *


def __getattr__(name: str) -> _typing.Any:
    return getattr(_original, name)


if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = _exported(globals())

    def __dir__() -> list[str]:
        return __all__
