"""Interpolators of `scipy.interpolate` under their names, with derivatives by points, data and breakpoints.

    >>> import ftrans as ft
    >>> import numpy as np
    >>> from ftrans.scipy.interpolate import CubicSpline
    >>> x = np.linspace(0.0, 2.0, 5)
    >>> spline = CubicSpline(x, np.sin(x))
    >>> print(ft.grad(spline)(0.7).round(4), spline(0.7, 1).round(4))
    0.7651 0.7651

An interpolator of plain data is SciPy's object, which takes traced points, too.  One of traced data has SciPy's
attributes and methods as far as they have derivatives.  Values are SciPy's; the derivative at a breakpoint is that of
the piece that SciPy takes there.
"""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

import scipy.interpolate as _scipy

from ...base.exports import exported as _exported
from .between import *
from .bsplines import *
from .cubic import *
from .fitpack import *
from .grids import *
from .pieces import *
from .polynomials import *
from .radial import *
from .scattered import *
from .surfaces import *
from .untraced import FUNCTIONS as _FUNCTIONS


def __getattr__(name: str) -> _typing.Any:
    return _FUNCTIONS[name] if name in _FUNCTIONS else getattr(_scipy, name)


if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = _exported(globals())

    def __dir__() -> list[str]:
        return __all__
