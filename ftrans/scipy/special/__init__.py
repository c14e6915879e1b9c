"""`scipy.special` on arrays and traced values, in files by family, each of which says what it exports."""

# ruff: noqa: F403 - what is imported here is what is exported

import types as _types
import typing as _typing

from .bessel import *
from .convenience import *
from .elliptic import *
from .errors import *
from .gamma import *
from .hypergeometric import *
from .polynomials import *
from .refused import *
from .statistics import *
from .sums import *
from .wave import *

if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = sorted(
        name
        for name, value in globals().items()
        if not name.startswith("_") and not isinstance(value, _types.ModuleType)
    )

    def __dir__() -> list[str]:
        return __all__
