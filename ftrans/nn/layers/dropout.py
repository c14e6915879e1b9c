"""Dropout: layers that set elements or whole channels to zero at random, in training only."""

from __future__ import annotations

from typing import Any

from ...base.source import at_line, user_line
from .. import functional as F
from ..cells import RngState
from ..module import Module


class _Dropout(Module):
    """Layers with a probability and a stream of random numbers, which is part of the state."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(
                f"p={p} of {type(self).__name__} is the probability of dropping, which is from 0 to 1"
                + at_line(user_line())
            )
        self.p = p
        self.inplace = inplace
        self.rng = RngState()

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, each element is zero with probability `p`, and else multiplied by `1 / (1 - p)`.

    Args:
        p: the probability of zero.
        inplace: has no effect, since no layer overwrites its input.

    Attributes:
        rng: the stream of random numbers, which each call in training moves on.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Dropout(0.5).eval()(np.ones(3))
        array([1., 1., 1.])
    """

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.dropout(input, self.p, self.training, rng=self.rng)


class Dropout1d(_Dropout):
    """`Dropout` of whole channels of arrays of shape (N, C, L) or (C, L); the arguments are those of `Dropout`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.dropout1d(input, self.p, self.training, rng=self.rng)


class Dropout2d(_Dropout):
    """`Dropout` of whole channels of arrays of shape (N, C, H, W); the arguments are those of `Dropout`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.dropout2d(input, self.p, self.training, rng=self.rng)


class Dropout3d(_Dropout):
    """`Dropout` of whole channels of arrays of shape (N, C, D, H, W) or (C, D, H, W); see there for arguments."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.dropout3d(input, self.p, self.training, rng=self.rng)


class AlphaDropout(_Dropout):
    """`Dropout` for networks of `SELU`, which keeps mean 0 and variance 1; the arguments are those of `Dropout`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.alpha_dropout(input, self.p, self.training, rng=self.rng)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels of arrays of shape (N, C, ...); the arguments are those of `Dropout`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.feature_alpha_dropout(input, self.p, self.training, rng=self.rng)
