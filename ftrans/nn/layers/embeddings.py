"""Tables of vectors that are looked up by index, one by one or in bags."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ...api.derivatives import stop_gradient
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from .. import functional as F
from .. import init
from ..cells.kinds import Parameter
from ..functional.arguments import array, concrete
from ..functional.embeddings import MODES, with_rows_scaled_down
from ..modules.module import Module
from .arguments import empty, put

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """A table of vectors."""

    weight: Parameter
    max_norm: float | None
    norm_type: float

    def _set_up(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, dtype: Any) -> None:
        what = type(self).__name__
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(
                f"padding_idx={padding_idx} is out of range for the {num_embeddings} vectors of "
                f"{what}{at_line(user_line())}"
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
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, *args: Any, **kwargs: Any) -> Self:
        """Make a layer from a given table.

        Args:
            embeddings: matrix whose rows are the vectors.
            freeze: whether the table is excluded from training.
            args: further arguments of the layer, from the third one on.
            kwargs: further arguments of the layer, by name.
        """
        table = np.array(embeddings)
        if table.ndim != 2:
            raise ValueError(
                f"from_pretrained takes a matrix, not an array of shape {table.shape}{at_line(user_line())}"
            )
        make: Any = cls
        layer = make(table.shape[0], table.shape[1], *args, **kwargs)
        layer.weight = Parameter(table, requires_grad=not freeze)
        return layer

    def _scaled_down(self, input: Any) -> Any:
        """The table, whose rows at the indices have at most the norm `max_norm` from now on."""
        if self.max_norm is None:
            return self.weight
        before = self.weight.read()
        if type(before) is not Tracer:
            known = concrete(array(input))
            places = input if known is None else known
            self.weight.value = with_rows_scaled_down(self.weight.value, places, self.max_norm, self.norm_type)
            return self.weight
        fixed = stop_gradient(before)
        # As in torch the table is what the gradient is with respect to, after this.
        self.weight.value = before + (with_rows_scaled_down(fixed, input, self.max_norm, self.norm_type) - fixed)
        return self.weight

    def _shown(self) -> list[str]:
        shown = [f"{self.num_embeddings}, {self.embedding_dim}"]
        shown += [] if self.max_norm is None else [f"max_norm={self.max_norm}"]
        return shown + ([] if self.norm_type == 2 else [f"norm_type={self.norm_type}"])


class Embedding(_Table):
    """A table of vectors that are looked up by index; see `functional.embedding`.

    Args:
        num_embeddings: number of vectors.
        embedding_dim: size of the vectors.
        padding_idx: index of a vector that is initialized with zeros and not trained.
        max_norm: vectors that are looked up and have a greater norm are scaled down to it, in the table.
        norm_type: order of that norm.
        scale_grad_by_freq: whether the gradient of a vector is divided by how often it is looked up.
        sparse: accepted as in torch, without effect: gradients are dense.
        device: where the table is put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the table; float32 for None.

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
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._set_up(num_embeddings, embedding_dim, padding_idx, dtype)
        put(self, device)

    def forward(self, input: Any) -> Any:
        """An array of shape (*shape, embedding_dim) from integers of any shape."""
        table = self._scaled_down(input)
        return F.embedding(input, table, self.padding_idx, scale_grad_by_freq=self.scale_grad_by_freq)

    def extra_repr(self) -> str:
        size, *norms = self._shown()
        shown = [size, *([] if self.padding_idx is None else [f"padding_idx={self.padding_idx}"]), *norms]
        shown += [f"{name}=True" for name in ("scale_grad_by_freq", "sparse") if getattr(self, name)]
        return ", ".join(shown)


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of vectors that are looked up by index; see `functional.embedding_bag`.

    Args:
        num_embeddings: number of vectors.
        embedding_dim: size D of the vectors.
        max_norm: vectors that are looked up and have a greater norm are scaled down to it, in the table.
        norm_type: order of that norm.
        scale_grad_by_freq: whether the gradient of a vector is divided by how often it is looked up.
        mode: "mean", "sum" or "max".
        sparse: accepted as in torch, without effect: gradients are dense.
        include_last_offset: whether offsets have one element more, the end of the last bag.
        padding_idx: index that is left out of the bags.
        device: where the table is put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the table; float32 for None.

    Attributes:
        weight: matrix of shape (num_embeddings, embedding_dim), initialized with standard normal numbers.

    Raises:
        ValueError: `padding_idx` is out of range, or `mode` is unknown.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> bags = nn.EmbeddingBag(10, 3, mode="sum")
        >>> bags(np.array([1, 2, 4, 5, 4]), np.array([0, 3])).shape
        (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode of EmbeddingBag must be 'mean', 'sum' or 'max', not {mode!r}{at_line(user_line())}")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._set_up(num_embeddings, embedding_dim, padding_idx, dtype)
        put(self, device)

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """An array of shape (B, D) from integers of shape (B, N), or of shape (N,) with offsets.

        Args:
            input: the indices.
            offsets: where each bag begins, for indices of shape (N,).
            per_sample_weights: factors of the vectors, with mode "sum".
        """
        return F.embedding_bag(
            input,
            self._scaled_down(input),
            offsets,
            scale_grad_by_freq=self.scale_grad_by_freq,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self) -> str:
        shown = self._shown()
        shown += ["scale_grad_by_freq=True"] if self.scale_grad_by_freq else []
        shown += [f"mode={self.mode!r}"]
        return ", ".join(shown + ([] if self.padding_idx is None else [f"padding_idx={self.padding_idx}"]))
