"""`scipy.signal` on arrays and traced values.

>>> import ftrans as ft
>>> import numpy as np
>>> from ftrans.scipy import signal
>>> b, a = signal.butter(2, 0.3)
>>> def energy(x):
...     return np.sum(signal.lfilter(b, a, x) ** 2)
>>> print(np.round(ft.grad(energy)(np.array([1.0, 0.0, 2.0, 0.0])), 6))
[1.064292 1.199423 0.80944  0.234744]
"""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

import scipy.signal as _scipy_signal

from ...base.exports import exported as _exported
from . import windows as windows
from .convolution import *
from .design import *
from .filtering import *
from .resampling import *
from .responses import *
from .smoothing import *
from .spectra import *
from .untraced import FUNCTIONS as _FUNCTIONS


def __getattr__(name: str) -> _typing.Any:
    return _FUNCTIONS[name] if name in _FUNCTIONS else getattr(_scipy_signal, name)


if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = _exported(globals())

    def __dir__() -> list[str]:
        return __all__
