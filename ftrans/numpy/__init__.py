"""NumPy's face: the functions of `numpy`, on arrays and on traced values alike.

Every function here is NumPy's own on arrays, and the traced form of it on traced values; `numpy` itself calls the
same traced forms.  So either namespace may be used, except that only `ftrans.numpy` can make arrays (`zeros`, `full`,
`array`) that traced values can be assigned into.
"""

# ruff: noqa: F401, F403 - what is imported here is what is exported

import types as _types
import typing as _typing

import numpy as _numpy
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

from . import array_api as _array_api
from . import dispatch as _dispatch
from . import fft, linalg
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

_install()

__array_api_version__ = _array_api.VERSION
__array_namespace_info__ = _array_api.Info


def __getattr__(name: str) -> _typing.Any:
    """What has nothing to do with traced values (`random`, `save`, `testing`, ...) is NumPy's own."""
    if name == "special":
        # An extension of the array API standard that is proposed, and that SciPy looks for already.
        return _dispatch.ENTERED_LATER["scipy.special"]()
    try:
        return getattr(_numpy, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}, nor has numpy") from None


if not _typing.TYPE_CHECKING:
    # What each file exports is read by type checkers as it stands there.
    __all__ = sorted(
        name
        for name, value in globals().items()
        if not name.startswith("_") and (not isinstance(value, _types.ModuleType) or name in ("fft", "linalg"))
    )


def __dir__() -> list[str]:
    return __all__
