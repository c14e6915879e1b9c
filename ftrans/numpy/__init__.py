"""NumPy's face: the functions of `numpy`, on arrays and on traced values alike.

Every function here is NumPy's own on arrays, and the traced form of it on traced values; `numpy` itself calls the
same traced forms.  So either namespace may be used, except that only `ftrans.numpy` can make arrays (`zeros`, `full`,
`array`) that traced values can be assigned into.
"""

# ruff: noqa: F401, F403 - what is imported here is what is exported

import importlib as _importlib
import typing as _typing

import numpy as _numpy

# Type checkers take a name for exported that is imported `as` itself.
from numpy import bartlett as bartlett
from numpy import blackman as blackman
from numpy import bool as bool
from numpy import bool_ as bool_
from numpy import broadcast_shapes as broadcast_shapes
from numpy import c_ as c_
from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import diag_indices as diag_indices
from numpy import dtype as dtype
from numpy import e as e
from numpy import einsum_path as einsum_path
from numpy import errstate as errstate
from numpy import euler_gamma as euler_gamma
from numpy import finfo as finfo
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import fromfunction as fromfunction
from numpy import geterr as geterr
from numpy import hamming as hamming
from numpy import hanning as hanning
from numpy import iinfo as iinfo
from numpy import indices as indices
from numpy import inf as inf
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import intp as intp
from numpy import isdtype as isdtype
from numpy import isscalar as isscalar
from numpy import issubdtype as issubdtype
from numpy import kaiser as kaiser
from numpy import mask_indices as mask_indices
from numpy import mgrid as mgrid
from numpy import min_scalar_type as min_scalar_type
from numpy import nan as nan
from numpy import ndarray as ndarray
from numpy import ndindex as ndindex
from numpy import newaxis as newaxis
from numpy import ogrid as ogrid
from numpy import pi as pi
from numpy import printoptions as printoptions
from numpy import promote_types as promote_types
from numpy import r_ as r_
from numpy import s_ as s_
from numpy import set_printoptions as set_printoptions
from numpy import seterr as seterr
from numpy import tril_indices as tril_indices
from numpy import triu_indices as triu_indices
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64

from ..base.exports import exported as _exported
from . import array_api as _array_api
from . import dispatch as _dispatch
from .array_api import *
from .creation import *
from .einsum import *
from .histograms import *
from .joining import *
from .manipulation import *
from .methods import install as _install
from .padding import *
from .pointwise import *
from .polynomials import *
from .products import *
from .quantiles import *
from .reductions import *
from .selecting import *
from .sets import *
from .sorting import *
from .statistics import *
from .texts import *
from .ufuncs import *
from .vectorizing import *

if _typing.TYPE_CHECKING:
    from . import emath, fft, linalg

_install()

# `special` is an extension of the array API standard that is proposed, and that SciPy looks for already.
_LATER = {"emath": "numpy.lib.scimath", "fft": "numpy.fft", "linalg": "numpy.linalg", "special": "scipy.special"}
_dispatch.ENTERED_LATER["numpy.lib.scimath"] = lambda: _importlib.import_module(".emath", __name__)
_dispatch.ENTERED_LATER["numpy.fft"] = lambda: _importlib.import_module(".fft", __name__)
_dispatch.ENTERED_LATER["numpy.linalg"] = lambda: _importlib.import_module(".linalg", __name__)

__array_api_version__ = _array_api.VERSION
__array_namespace_info__ = _array_api.Info


def __getattr__(name: str) -> _typing.Any:
    """What has nothing to do with traced values (`random`, `save`, `testing`, ...) is NumPy's own."""
    if name in _LATER:
        return _dispatch.ENTERED_LATER[_LATER[name]]()
    try:
        return getattr(_numpy, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}, nor has numpy") from None


if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = sorted([*_exported(globals()), "emath", "fft", "linalg"])

    def __dir__() -> list[str]:
        return __all__
