"""`scipy.linalg` on arrays and traced values."""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

from scipy.linalg import LinAlgError as LinAlgError
from scipy.linalg import LinAlgWarning as LinAlgWarning
from scipy.linalg import dft as dft
from scipy.linalg import hadamard as hadamard
from scipy.linalg import helmert as helmert
from scipy.linalg import hilbert as hilbert
from scipy.linalg import invhilbert as invhilbert
from scipy.linalg import invpascal as invpascal
from scipy.linalg import pascal as pascal

from ...base.exports import exported as _exported
from .banded import *
from .control import *
from .equations import *
from .factorisations import *
from .matrix_functions import *
from .norms import *
from .special_matrices import *
from .subspaces import *
from .untraced import FUNCTIONS as _FUNCTIONS


def __getattr__(name: str) -> _typing.Any:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = _exported(globals())

    def __dir__() -> list[str]:
        return __all__
