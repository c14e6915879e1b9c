"""SciPy's face: the functions of `scipy.special`, `scipy.linalg` and `scipy.stats`, on arrays and traced values alike.

The ufuncs of `scipy.special` reach traced values by themselves, so `scipy.special.gammaln(x)` needs no other import.
NumPy's protocols do not carry SciPy's other functions, which are therefore mirrored here under their names:

    from ftrans.scipy import linalg, special, stats
"""

import importlib as _importlib
import typing as _typing

from . import linalg, special

if _typing.TYPE_CHECKING:
    from . import stats

__all__ = ["linalg", "special", "stats"]


def __getattr__(name: str) -> _typing.Any:
    # SciPy's own takes a second to import.
    if name == "stats":
        return _importlib.import_module(".stats", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
