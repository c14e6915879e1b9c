"""NumPy's face: the functions of `numpy`, on arrays and on traced values alike.

Every function here is NumPy's own on arrays, and the traced form of it on traced values; `numpy` itself calls the
same traced forms.  So either namespace may be used, except that only `ftrans.numpy` can make arrays (`zeros`, `full`,
`array`) that traced values can be assigned into.
"""

# ruff: noqa: F401, F403 - what is imported here is what is exported

import importlib as _importlib
import typing as _typing

import numpy as _numpy

from ..base.exports import exported as _exported
from . import array_api as _array_api
from . import dispatch as _dispatch
from .methods import install as _install

if _typing.TYPE_CHECKING:
    # Functions of the same names, arguments and results.
    from numpy import *
else:
    from numpy import (
        bartlett,
        blackman,
        bool,
        bool_,
        broadcast_shapes,
        c_,
        complex64,
        complex128,
        diag_indices,
        dtype,
        e,
        einsum_path,
        errstate,
        euler_gamma,
        finfo,
        float16,
        float32,
        float64,
        fromfunction,
        geterr,
        hamming,
        hanning,
        iinfo,
        indices,
        inf,
        int8,
        int16,
        int32,
        int64,
        intp,
        isdtype,
        isscalar,
        issubdtype,
        kaiser,
        mask_indices,
        mgrid,
        min_scalar_type,
        nan,
        ndarray,
        ndindex,
        newaxis,
        ogrid,
        pi,
        printoptions,
        promote_types,
        r_,
        s_,
        set_printoptions,
        seterr,
        tril_indices,
        triu_indices,
        uint8,
        uint16,
        uint32,
        uint64,
    )

    from .array_api import *
    from .creation import *
    from .einsum import *
    from .histograms import *
    from .joining import *
    from .manipulation import *
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

_install()

# `special` is an extension of the array API standard that is proposed, and that SciPy looks for already.
_LATER = {"emath": "numpy.lib.scimath", "fft": "numpy.fft", "linalg": "numpy.linalg", "special": "scipy.special"}
_dispatch.ENTERED_LATER["numpy.lib.scimath"] = lambda: _importlib.import_module(".emath", __name__)
_dispatch.ENTERED_LATER["numpy.fft"] = lambda: _importlib.import_module(".fft", __name__)
_dispatch.ENTERED_LATER["numpy.linalg"] = lambda: _importlib.import_module(".linalg", __name__)

if not _typing.TYPE_CHECKING:
    __array_api_version__ = _array_api.VERSION
    __array_namespace_info__ = _array_api.Info
    __all__ = sorted([*_exported(globals()), "emath", "fft", "linalg"])

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> _typing.Any:
        """What has nothing to do with traced values (`random`, `save`, `testing`, ...) is NumPy's own."""
        if name in _LATER:
            return _dispatch.ENTERED_LATER[_LATER[name]]()
        try:
            return getattr(_numpy, name)
        except AttributeError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}, nor has numpy") from None
