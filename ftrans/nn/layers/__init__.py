"""The layers of `ftrans.nn`, under the names and argument names of `torch.nn`."""

# ruff: noqa: F403 - what is imported here is what is exported

import types as _types
import typing as _typing

from .activations import *
from .adaptive_softmax import *
from .attention import *
from .convolution import *
from .dropout import *
from .embeddings import *
from .lazy import *
from .linear import *
from .losses import *
from .normalization import *
from .pooling import *
from .recurrent import *
from .resizing import *
from .rotary import *
from .shaping import *
from .transformer import *

if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = sorted(
        name
        for name, value in globals().items()
        if not name.startswith("_") and not isinstance(value, _types.ModuleType)
    )

    def __dir__() -> list[str]:
        return __all__
