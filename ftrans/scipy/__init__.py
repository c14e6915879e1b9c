"""SciPy's face: its functions and objects under their names on traced values, and differentiable solvers.

The ufuncs of `scipy.special` reach traced values by themselves, so `scipy.special.gammaln(x)` needs no other import.
NumPy's protocols do not carry SciPy's other functions, which are therefore mirrored here under their names:

    from ftrans.scipy import interpolate, linalg, special, stats

Solvers of `scipy.optimize` and `scipy.integrate` are here, too, and are given the derivatives that they can use.
"""

import importlib as _importlib
import typing as _typing

from . import linalg, special

if _typing.TYPE_CHECKING:
    from . import fft, integrate, interpolate, ndimage, optimize, signal, sparse, spatial, stats

__all__ = [
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]


def __getattr__(name: str) -> _typing.Any:
    # SciPy's own take a second to import.
    if name in __all__:
        return _importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
