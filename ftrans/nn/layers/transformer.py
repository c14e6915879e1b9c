"""Transformers: layers of attention and position-wise feed-forward networks (Vaswani et al., 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from .. import functional as F
from .. import init
from ..cells.kinds import RngState
from ..modules.containers import ModuleList
from ..modules.module import Module
from ..random import stream
from .arguments import put
from .attention import KeyValueCache, MultiheadAttention
from .dropout import Dropout
from .linear import Linear
from .normalization import LayerNorm

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip

Activation = str | Callable[[Any], Any]


def _activation(activation: Activation) -> Callable[[Any], Any]:
    known: dict[str, Callable[[Any], Any]] = {"relu": F.relu, "gelu": F.gelu}
    if isinstance(activation, str):
        if activation not in known:
            raise ValueError(
                f"activation must be 'relu', 'gelu' or a function, not {activation!r}{at_line(user_line())}"
            )
        return known[activation]
    return activation


def _copies(layer: Module, count: int) -> ModuleList:
    """Copies of a layer: with equal initial values, as in torch, but with separate streams of random numbers."""
    copies = ModuleList([copy.deepcopy(layer) for _ in range(count)])
    for _, cell in copies.named_cells():
        if isinstance(cell, RngState):
            cell.value = stream()
    return copies


class _Layer(Module):
    """Shared by encoder and decoder layers."""

    self_attn: MultiheadAttention
    activation: Callable[[Any], Any]
    linear1: Linear
    dropout: Dropout
    linear2: Linear

    def _network(self, x: Any) -> Any:
        """The feed-forward network, up to the last dropout."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def new_cache(self, batch_size: int, max_length: int) -> KeyValueCache:
        """An empty cache for this layer; see `KeyValueCache`."""
        return self.self_attn.new_cache(batch_size, max_length)


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, with residual connections, dropout and layer normalization.

    Args:
        d_model: size E of each position.
        nhead: number of heads; must divide E.
        dim_feedforward: size of the hidden layer of the feed-forward network.
        dropout: dropout probability in training.
        activation: activation of the feed-forward network: "relu", "gelu", or a function.
        layer_norm_eps: `eps` of the layer normalizations.
        batch_first: whether arrays are of shape (N, L, E) instead of (L, N, E).
        norm_first: whether to normalize before attention and feed-forward network (pre-norm) instead of after.
        bias: whether linear layers and normalizations have biases.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
        >>> layer(np.ones((3, 5, 8), np.float32), is_causal=True).shape
        (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)
        put(self, device)

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Any:
        """An array of the shape of `src`.

        Args:
            src: array of shape (L, N, E), with `batch_first` (N, L, E), or (L, E).
            src_mask: attention mask, as `attn_mask` of `MultiheadAttention`.
            src_key_padding_mask: positions to ignore, as `key_padding_mask`.
            is_causal: whether each position attends only to those up to itself.
            cache: from `new_cache`: `src` holds the next positions of the sequences.
        """

        def attention(x: Any) -> Any:
            y, _ = self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal, cache=cache)
            return self.dropout1(y)

        x = src
        if self.norm_first:
            x = x + attention(self.norm1(x))
            return x + self.dropout2(self._network(self.norm2(x)))
        x = self.norm1(x + attention(x))
        return self.norm2(x + self.dropout2(self._network(x)))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the output of an encoder, and a feed-forward network.

    Args:
        d_model: size E of each position.
        nhead: number of heads; must divide E.
        dim_feedforward: size of the hidden layer of the feed-forward network.
        dropout: dropout probability in training.
        activation: activation of the feed-forward network: "relu", "gelu", or a function.
        layer_norm_eps: `eps` of the layer normalizations.
        batch_first: whether arrays are of shape (N, L, E) instead of (L, N, E).
        norm_first: whether to normalize before attention and feed-forward network (pre-norm) instead of after.
        bias: whether linear layers and normalizations have biases.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
        >>> layer(np.ones((3, 5, 8), np.float32), np.ones((3, 7, 8), np.float32), tgt_is_causal=True).shape
        (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)
        put(self, device)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Any:
        """An array of the shape of `tgt`.

        Args:
            tgt: array of shape (L, N, E), with `batch_first` (N, L, E), or (L, E).
            memory: output of an encoder, of shape (S, N, E), laid out in the same way.
            tgt_mask: attention mask within `tgt`, as `attn_mask` of `MultiheadAttention`.
            memory_mask: attention mask from `tgt` to `memory`.
            tgt_key_padding_mask: positions of `tgt` to ignore, as `key_padding_mask`.
            memory_key_padding_mask: positions of `memory` to ignore.
            tgt_is_causal: whether each position of `tgt` attends only to those up to itself.
            memory_is_causal: whether position i of `tgt` attends only to positions of `memory` up to i.
            cache: from `new_cache`: `tgt` holds the next positions of the sequences.
        """

        def attention(x: Any) -> Any:
            y, _ = self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal, cache=cache)
            return self.dropout1(y)

        def attention_to_memory(x: Any) -> Any:
            masks = (memory_key_padding_mask, False, memory_mask)
            y, _ = self.multihead_attn(x, memory, memory, *masks, is_causal=memory_is_causal)
            return self.dropout2(y)

        x = tgt
        if self.norm_first:
            x = x + attention(self.norm1(x))
            x = x + attention_to_memory(self.norm2(x))
            return x + self.dropout3(self._network(self.norm3(x)))
        x = self.norm1(x + attention(x))
        x = self.norm2(x + attention_to_memory(x))
        return self.norm3(x + self.dropout3(self._network(x)))


class _Stack(Module):
    """A sequence of layers, followed by a normalization."""

    layers: ModuleList
    norm: Module | None

    def _set_up(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        self.layers = _copies(layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def new_cache(self, batch_size: int, max_length: int) -> ModuleList:
        """Empty caches for all layers; see `KeyValueCache`."""
        return ModuleList([layer.new_cache(batch_size, max_length) for layer in self.layers])

    def _with_caches(self, caches: Any) -> Any:
        """Pairs of a layer and its cache."""
        if caches is None:
            return [(layer, None) for layer in self.layers]
        if len(caches) != self.num_layers:
            raise ValueError(
                f"{type(self).__name__} of {self.num_layers} layers takes one cache for each layer, not {len(caches)}; "
                f"new_cache makes them{at_line(user_line())}"
            )
        return zip(self.layers, caches, strict=True)


class TransformerEncoder(_Stack):
    """A stack of encoder layers.  With `is_causal=True` it is the body of a GPT.

    Args:
        encoder_layer: the layer to copy.
        num_layers: number of copies.
        norm: normalization of the result.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
        >>> nn.TransformerEncoder(layer, num_layers=2)(np.ones((3, 5, 8), np.float32)).shape
        (3, 5, 8)
    """

    def __init__(self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None) -> None:
        self._set_up(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
        cache: Sequence[KeyValueCache] | ModuleList | None = None,
    ) -> Any:
        """An array of the shape of `src`.

        Args:
            src: array of shape (L, N, E), with `batch_first` (N, L, E), or (L, E).
            mask: attention mask, as `attn_mask` of `MultiheadAttention`.
            src_key_padding_mask: positions to ignore, as `key_padding_mask`.
            is_causal: whether each position attends only to those up to itself.
            cache: from `new_cache`: `src` holds the next positions of the sequences.
        """
        x = src
        for layer, of_layer in self._with_caches(cache):
            x = layer(x, mask, src_key_padding_mask, bool(is_causal), of_layer)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(_Stack):
    """A stack of decoder layers.

    Args:
        decoder_layer: the layer to copy.
        num_layers: number of copies.
        norm: normalization of the result.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
        >>> decoder = nn.TransformerDecoder(layer, num_layers=2)
        >>> decoder(np.ones((3, 5, 8), np.float32), np.ones((3, 7, 8), np.float32)).shape
        (3, 5, 8)
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        self._set_up(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
        cache: Sequence[KeyValueCache] | ModuleList | None = None,
    ) -> Any:
        """An array of the shape of `tgt`; arguments as for `TransformerDecoderLayer`."""
        x = tgt
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        for layer, of_layer in self._with_caches(cache):
            x = layer(x, memory, *masks, bool(tgt_is_causal), memory_is_causal, of_layer)
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder, and a decoder that attends to its output.

    Args:
        d_model: size E of each position.
        nhead: number of heads; must divide E.
        num_encoder_layers: number of layers of the encoder.
        num_decoder_layers: number of layers of the decoder.
        dim_feedforward: size of the hidden layers of the feed-forward networks.
        dropout: dropout probability in training.
        activation: activation of the feed-forward networks: "relu", "gelu", or a function.
        layer_norm_eps: `eps` of the layer normalizations.
        batch_first: whether arrays are of shape (N, L, E) instead of (L, N, E).
        norm_first: whether to normalize before attention and feed-forward networks (pre-norm) instead of after.
        bias: whether linear layers and normalizations have biases.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
        >>> model(np.ones((3, 7, 8), np.float32), np.ones((3, 5, 8), np.float32), tgt_is_causal=True).shape
        (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        norms = [LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype) for _ in range(2)]
        self.encoder = TransformerEncoder(TransformerEncoderLayer(*settings, dtype=dtype), num_encoder_layers, norms[0])
        self.decoder = TransformerDecoder(TransformerDecoderLayer(*settings, dtype=dtype), num_decoder_layers, norms[1])
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
        put(self, device)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """An array of the shape of `tgt`; arguments as for `TransformerEncoder` and `TransformerDecoder`."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
        """A causal mask of shape (sz, sz): -inf where a position must not attend to a later one, else 0."""
        return np.triu(np.full((sz, sz), -np.inf, dtype), 1)
