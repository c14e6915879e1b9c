"""Linear maps, and embeddings."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from ...base.source import at_line, user_line
from .. import functional as F
from .. import init
from ..cells import Parameter
from ..module import Module
from .arguments import empty, expect_last_axis, fill_uniformly

__all__ = ["Bilinear", "Embedding", "Identity", "Linear"]


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
    """`x @ weight.T + bias`; see `functional.linear`.

    Args:
        in_features: size of the last axis of the input.
        out_features: size of the last axis of the result.
        bias: whether to add a trained bias.
        dtype: dtype of the parameters.

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

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = np.float32) -> None:
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty((out_features, in_features), dtype)
        self.bias = empty((out_features,), dtype) if bias else None
        self.reset_parameters()

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
        dtype: dtype of the parameters.

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
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, dtype: Any = np.float32
    ) -> None:
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty((out_features, in1_features, in2_features), dtype)
        self.bias = empty((out_features,), dtype) if bias else None
        self.reset_parameters()

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


class Embedding(Module):
    """A table of vectors that are looked up by index; see `functional.embedding`.

    Args:
        num_embeddings: number of vectors.
        embedding_dim: size of the vectors.
        padding_idx: index of a vector that is initialized with zeros and not trained.
        dtype: dtype of the table.

    Attributes:
        weight: matrix of shape (num_embeddings, embedding_dim), initialized with standard normal numbers.

    Raises:
        ValueError: `padding_idx` is out of range.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Embedding(10, 3)(np.array([[1, 2, 2]])).shape
        (1, 3, 3)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, dtype: Any = np.float32
    ) -> None:
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(
                f"padding_idx={padding_idx} is out of range for the {num_embeddings} vectors of "
                f"Embedding{at_line(user_line())}"
            )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = empty((num_embeddings, embedding_dim), dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight[self.padding_idx] = 0.0

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None) -> Self:
        """Make a layer from a given table.

        Args:
            embeddings: matrix whose rows are the vectors.
            freeze: whether the table is excluded from training.
            padding_idx: index of a vector that is not trained.
        """
        table = np.array(embeddings)
        if table.ndim != 2:
            raise ValueError(
                f"from_pretrained takes a matrix, not an array of shape {table.shape}{at_line(user_line())}"
            )
        layer = cls(table.shape[0], table.shape[1], padding_idx)
        layer.weight = Parameter(table, requires_grad=not freeze)
        return layer

    def forward(self, input: Any) -> Any:
        """An array of shape (*shape, embedding_dim) from integers of any shape."""
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
