"""RotaryEmbedding: positions of queries and keys as rotations."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .function_layer import FunctionLayer

__all__ = ["RotaryEmbedding"]


class RotaryEmbedding(FunctionLayer, of=F.rotary_embedding):
    """
    >>> nn.RotaryEmbedding()(np.array([[1.0, 0.0], [1.0, 0.0]])).round(4)
    array([[1.    , 0.    ],
           [0.5403, 0.8415]])
    """

    base: float = 10000.0
    interleaved: bool = False
    dim: int | None = None

    def forward(self, input: Any, positions: Any = None) -> Any:
        """An array of the shape of the input."""
        return F.rotary_embedding(input, positions, self.base, self.interleaved, self.dim)
