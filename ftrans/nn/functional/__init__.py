"""Pure functions for neural networks, under the names and argument names of `torch.nn.functional`."""

# ruff: noqa: F403 - what is imported here is what is exported

import types as _types
import typing as _typing

from ..torch_hints import missing as _missing
from .activations import *
from .adaptive_pooling import *
from .attention import *
from .classification import *
from .convolution import *
from .ctc import *
from .distances import *
from .dropout import *
from .embeddings import *
from .fractional_pooling import *
from .images import *
from .linear import *
from .losses import *
from .normalization import *
from .patches import *
from .pooling import *
from .power_pooling import *
from .recurrent import *
from .rotary import *
from .sampling import *
from .softmax import *
from .unpooling import *

if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = sorted(
        name
        for name, value in globals().items()
        if not name.startswith("_") and not isinstance(value, _types.ModuleType)
    )

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> _typing.Any:
        raise _missing("nn.functional", name)
