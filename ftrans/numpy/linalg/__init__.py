"""`numpy.linalg` on arrays and traced values."""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

from ...base.exports import exported as _exported
from ..manipulation import matrix_diagonal as _matrix_diagonal
from ..manipulation import matrix_transpose as matrix_transpose
from ..products import matmul as matmul
from ..products import matrix_trace as _matrix_trace
from ..products import tensordot as tensordot
from ..products import vecdot as vecdot
from ..products import vector_cross as _vector_cross
from ..products import vector_outer as _vector_outer
from .chains import *
from .decompositions import *
from .equations import *
from .norms import *
from .operands import LinAlgError as LinAlgError

diagonal, trace, cross, outer = _matrix_diagonal, _matrix_trace, _vector_cross, _vector_outer

if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = _exported(globals())

    def __dir__() -> list[str]:
        return __all__
