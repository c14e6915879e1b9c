"""Linear maps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import functional as F
from .. import init
from ..modules.module import Module
from .arguments import empty, expect_last_axis, fill_uniformly, put

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Returns its input.

    Args:
        args: ignored, so that it can replace other layers.
        kwargs: ignored.

    Example:
        >>> from ftrans import nn
        >>> nn.Identity()(3.0)
        3.0
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Module):
    """A linear layer: `x @ weight.T + bias`; see `functional.linear`.

    Args:
        in_features: size of the last axis of the input.
        out_features: size of the last axis of the result.
        bias: whether to add a trained bias.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Attributes:
        weight: matrix of shape (out_features, in_features), initialized uniformly between ±1 / sqrt(in_features).
        bias: vector of shape (out_features,), initialized in the same way; or None.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.Linear(3, 2)
        >>> layer(np.ones((5, 3), np.float32)).shape
        (5, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = np.float32
    ) -> None:
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty((out_features, in_features), dtype)
        self.bias = empty((out_features,), dtype) if bias else None
        self.reset_parameters()
        put(self, device)

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        fill_uniformly(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        """An array (..., out_features) from an array (..., in_features)."""
        expect_last_axis(self, input, self.in_features)
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """`x1 @ weight[k] @ x2 + bias[k]` for every `k`; see `functional.bilinear`.

    Args:
        in1_features: size of the last axis of the first input.
        in2_features: size of the last axis of the second input.
        out_features: size of the last axis of the result.
        bias: whether to add a trained bias.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Attributes:
        weight: array of shape (out_features, in1_features, in2_features), initialized uniformly between
            ±1 / sqrt(in1_features).
        bias: vector of shape (out_features,), initialized in the same way; or None.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Bilinear(3, 4, 2)(np.ones((5, 3), np.float32), np.ones((5, 4), np.float32)).shape
        (5, 2)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty((out_features, in1_features, in2_features), dtype)
        self.bias = empty((out_features,), dtype) if bias else None
        self.reset_parameters()
        put(self, device)

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        bound = 1 / math.sqrt(max(self.in1_features, 1))
        for cell in (self.weight, self.bias):
            if cell is not None:
                init.uniform_(cell, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        """An array (..., out_features) from arrays (..., in1_features) and (..., in2_features)."""
        expect_last_axis(self, input1, self.in1_features, "first inputs")
        expect_last_axis(self, input2, self.in2_features, "second inputs")
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
