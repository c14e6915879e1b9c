"""SciPy's face: functions of `scipy.special`, `linalg` and `stats` on traced values, and solvers with derivatives.

The ufuncs of `scipy.special` reach traced values by themselves, so `scipy.special.gammaln(x)` needs no other import.
NumPy's protocols do not carry SciPy's other functions, which are therefore mirrored here under their names:

    from ftrans.scipy import linalg, special, stats

Solvers of `scipy.optimize` and `scipy.integrate` are here, too, and are given the derivatives that they can use.
"""

import importlib as _importlib
import typing as _typing

from . import linalg, special

if _typing.TYPE_CHECKING:
    from . import fft, integrate, optimize, sparse, stats

__all__ = ["fft", "integrate", "linalg", "optimize", "sparse", "special", "stats"]


def __getattr__(name: str) -> _typing.Any:
    # SciPy's own take a second to import.
    if name == "fft":
        return _importlib.import_module(".fft", __name__)
    if name == "integrate":
        return _importlib.import_module(".integrate", __name__)
    if name == "optimize":
        return _importlib.import_module(".optimize", __name__)
    if name == "sparse":
        return _importlib.import_module(".sparse", __name__)
    if name == "stats":
        return _importlib.import_module(".stats", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
