"""`scipy.ndimage` on arrays and traced values.

>>> import ftrans as ft
>>> import numpy as np
>>> from ftrans.scipy import ndimage
>>> def roughness(image, sigma):
...     return np.sum(ndimage.gaussian_gradient_magnitude(image, sigma) ** 2)
>>> image = np.array([[1.0, 2.0, 4.0], [0.0, 1.0, 3.0], [1.0, 1.0, 1.0]])
>>> print(np.round(ft.grad(roughness, argnums=1)(image, 0.5), 6))
30.983419
"""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

import scipy.ndimage as _scipy_ndimage

from ...base.exports import exported as _exported
from .filters import *
from .interpolation import *
from .order import *
from .untraced import FUNCTIONS as _FUNCTIONS


def __getattr__(name: str) -> _typing.Any:
    return _FUNCTIONS[name] if name in _FUNCTIONS else getattr(_scipy_ndimage, name)


if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = _exported(globals())

    def __dir__() -> list[str]:
        return __all__
