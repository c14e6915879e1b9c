"""Probability distributions, under the names and argument names of `torch.distributions`.

    >>> from ftrans import nn
    >>> from ftrans.nn import distributions as D
    >>> weather = D.Categorical([0.7, 0.3])
    >>> float(weather.entropy().round(4))
    0.6109

They are functions of their parameters: densities and samples (by `rsample`) are differentiated in every mode, and work
on arrays, traced values and tensors.  Random numbers come from `rng`, a key or an `nn.RngState`.
"""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

from ...base.exports import exported as _exported
from ..torch_hints import missing as _missing
from . import constraints  # noqa: F401
from .array_transforms import *
from .bijections import *
from .categorical import *
from .compound import *
from .discrete import *
from .distribution import *
from .half_line import *
from .interval import *
from .kl import *
from .location_scale import *
from .matrices import *
from .transform_parts import *
from .transforms import *
from .vectors import *

if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = sorted([*_exported(globals()), "constraints"])

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> object:
        raise _missing("nn.distributions", name)
