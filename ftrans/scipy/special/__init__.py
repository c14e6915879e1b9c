"""`scipy.special` on arrays and traced values, in files by family, each of which says what it exports."""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

from ...base.exports import exported as _exported
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
    __all__ = _exported(globals())

    def __dir__() -> list[str]:
        return __all__
