"""`scipy.fft` on arrays and traced values.

>>> import ftrans as ft
>>> import numpy as np
>>> from ftrans.scipy import fft
>>> def roughness(x):
...     return np.sum(np.arange(4) ** 2 * fft.dct(x, norm="ortho") ** 2)
>>> print(np.round(ft.grad(roughness)(np.array([1.0, 2.0, 4.0, 8.0])), 6))
[ -3.544156  -1.857864 -10.142136  15.544156]
"""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

from scipy.fft import fftfreq as fftfreq
from scipy.fft import fhtoffset as fhtoffset
from scipy.fft import get_workers as get_workers
from scipy.fft import next_fast_len as next_fast_len
from scipy.fft import rfftfreq as rfftfreq
from scipy.fft import set_workers as set_workers

from ...base.exports import exported as _exported
from .cosines import *
from .fourier import *

if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = _exported(globals())

    def __dir__() -> list[str]:
        return __all__
