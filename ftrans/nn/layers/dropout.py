"""Dropout: layers that set elements or whole channels to zero at random, in training only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...base.source import at_line, user_line
from .. import functional as F
from ..cells.kinds import RngState
from ..modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    """Layers with a dropout probability, and a stream of random numbers that is part of their state."""

    _function: ClassVar[Callable[..., Any]]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(
                f"p={p} of {type(self).__name__} must be a probability, from 0 to 1" + at_line(user_line())
            )
        self.p = p
        self.inplace = inplace
        self.rng = RngState()

    def forward(self, input: Any) -> Any:
        """An array of the same shape."""
        return type(self)._function(input, self.p, self.training, rng=self.rng)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, set elements to zero with probability `p`, and scale the others by `1 / (1 - p)`.

    Args:
        p: probability of an element to be zeroed.
        inplace: accepted as in torch, without effect: no layer overwrites its input.

    Attributes:
        rng: the stream of random numbers, which every call in training advances.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Dropout(0.5).eval()(np.ones(3))
        array([1., 1., 1.])
    """

    _function = staticmethod(F.dropout)


class Dropout1d(_Dropout):
    """`Dropout` of whole channels of arrays of shape (N, C, L) or (C, L); arguments as for `Dropout`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Dropout1d(1.0)(np.ones((1, 2, 3)))
        array([[[0., 0., 0.],
                [0., 0., 0.]]])
    """

    _function = staticmethod(F.dropout1d)


class Dropout2d(_Dropout):
    """`Dropout` of whole channels of arrays of shape (N, C, H, W); arguments as for `Dropout`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Dropout2d(0.5).eval()(np.ones((1, 2, 3, 3))).sum()
        np.float64(18.0)
    """

    _function = staticmethod(F.dropout2d)


class Dropout3d(_Dropout):
    """`Dropout` of whole channels of arrays of shape (N, C, D, H, W) or (C, D, H, W); arguments as for `Dropout`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Dropout3d(0.5).eval()(np.ones((1, 2, 3, 3, 3))).sum()
        np.float64(54.0)
    """

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_Dropout):
    """`Dropout` for networks with `SELU`, which preserves mean 0 and variance 1; arguments as for `Dropout`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.AlphaDropout(0.5).eval()(np.ones(3))
        array([1., 1., 1.])
    """

    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels of arrays of shape (N, C, ...); arguments as for `Dropout`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.FeatureAlphaDropout(0.5).eval()(np.ones((1, 2, 3))).sum()
        np.float64(6.0)
    """

    _function = staticmethod(F.feature_alpha_dropout)
