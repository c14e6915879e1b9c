"""Multi-head attention, and the cache of keys and values for decoding a sequence step by step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...autograd import tensor
from ...base.cell import Eager, read
from ...base.source import at_line, user_line
from .. import functional as F
from .. import init
from ..cells.kinds import Buffer, RngState
from ..functional.arguments import concrete, described, shape_of
from ..functional.attention import scores_mask
from ..modules.module import Module
from .arguments import empty, expect_last_axis, positive, put
from .linear import Linear

__all__ = ["KeyValueCache", "MultiheadAttention"]


class KeyValueCache(Module):
    """The keys and values that an attention layer has already computed, so that a new position costs one row, not all.

    It is a module: pass it to compiled functions beside the model, and it holds the new keys and values afterwards.
    Shapes stay the same in all steps, so that one compiled program serves all of them.

    Args:
        batch_size: number of sequences that are decoded together.
        max_length: maximum length of a sequence.
        num_heads: number of attention heads.
        head_dim: size of each head.
        dtype: dtype of keys and values.

    Attributes:
        key: a buffer of shape (batch_size, max_length, num_heads, head_dim), not part of `state_dict()`.
        value: the same for the values.
        length: a buffer with the number of positions so far.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> attention = nn.MultiheadAttention(4, 2, batch_first=True)
        >>> cache = attention.new_cache(batch_size=1, max_length=8)
        >>> for x in np.ones((3, 1, 1, 4), np.float32):
        ...     y, _ = attention(x, x, x, cache=cache)
        >>> int(cache.length)
        3
    """

    def __init__(
        self, batch_size: int, max_length: int, num_heads: int, head_dim: int, dtype: Any = np.float32
    ) -> None:
        self.key = Buffer(np.zeros((batch_size, max_length, num_heads, head_dim), dtype), persistent=False)
        self.value = Buffer(np.zeros((batch_size, max_length, num_heads, head_dim), dtype), persistent=False)
        self.length = Buffer(np.zeros((), np.int64), persistent=False)

    def reset(self) -> None:
        """Start new sequences."""
        self.length.value = np.zeros((), np.int64)

    def extend(self, key: Any, value: Any) -> tuple[Any, Any, Any]:
        """Append the keys and values of the next positions.

        Args:
            key: array of shape (batch_size, L, num_heads, head_dim).
            value: array of the same shape.

        Returns:
            `(keys, values, allowed)`: keys and values of all `max_length` positions; and booleans of shape (L,
            max_length), True where a new position may attend to a position: to those up to itself.

        Raises:
            ValueError: the cache is full, or shapes do not match.
        """
        batch_size, max_length, *rest = self.key.shape
        shape = shape_of(key)
        if len(shape) != 4 or (shape[0], *shape[2:]) != (batch_size, *rest):
            raise ValueError(
                f"this cache is for {batch_size} sequences and heads of shape {tuple(rest)}, so it takes keys "
                f"({batch_size}, L, {rest[0]}, {rest[1]}), not {described(key)}{at_line(user_line())}"
            )
        before = self.length.read()
        self.length = before + shape[1]
        known = concrete(before)
        if known is not None and known + shape[1] > max_length:
            self.length = before
            raise ValueError(
                f"this cache holds max_length={max_length} positions, {int(known)} of which are in use, so "
                f"{shape[1]} more do not fit; make a longer cache, or call reset(){at_line(user_line())}"
            )
        positions = before + np.arange(shape[1])
        keys, values = _put_in(self.key, positions, key), _put_in(self.value, positions, value)
        return keys, values, np.arange(max_length) <= positions[:, None]

    def extra_repr(self) -> str:
        batch_size, max_length, num_heads, head_dim = self.key.shape
        return f"batch_size={batch_size}, max_length={max_length}, num_heads={num_heads}, head_dim={head_dim}"


def _put_in(cell: Buffer, positions: Any, rows: Any) -> Any:
    """Overwrite rows of a buffer; return the whole."""
    if not isinstance(rows, Eager):
        cell[:, positions] = rows
        return cell.read()
    # The gradient of these rows is known; those of earlier calls are constants.
    whole: Any = tensor(cell.value)
    whole[:, positions] = rows
    cell.value = whole
    return whole


class MultiheadAttention(Module):
    """Multi-head attention; see `functional.multi_head_attention_forward`.

    Args:
        embed_dim: size E of queries and results.
        num_heads: number of heads; must divide E.
        dropout: dropout probability of attention weights in training.
        bias: whether the projections have biases.
        add_bias_kv: whether a trained key and value are added to those of each sequence.
        add_zero_attn: whether a key 0 with value 0 is added to those of each sequence.
        kdim: size of keys; E by default.
        vdim: size of values; E by default.
        batch_first: whether arrays are of shape (N, L, E) instead of (L, N, E).
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Attributes:
        in_proj_weight: stacked projection matrices of queries, keys and values, of shape (3 E, E); None if sizes
            differ.
        q_proj_weight: projection matrix of queries, of shape (E, E), if sizes differ; also `k_proj_weight` and
            `v_proj_weight`.
        in_proj_bias: vector of shape (3 E,), or None.
        bias_k: the key that is added, of shape (1, 1, E), or None; also `bias_v`, its value.
        out_proj: a `Linear` layer from E to E.
        rng: the stream of random numbers for dropout; None without dropout.

    Raises:
        ValueError: `num_heads` does not divide `embed_dim`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> attention = nn.MultiheadAttention(8, num_heads=2, batch_first=True)
        >>> x = np.ones((3, 5, 8), np.float32)
        >>> y, weights = attention(x, x, x, is_causal=True)
        >>> y.shape, weights.shape
        ((3, 5, 8), (3, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        positive(embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            raise ValueError(f"num_heads={num_heads} does not divide embed_dim={embed_dim}{at_line(user_line())}")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        packed = self.kdim == self.vdim == embed_dim
        self.in_proj_weight = empty((3 * embed_dim, embed_dim), dtype) if packed else None
        self.q_proj_weight = None if packed else empty((embed_dim, embed_dim), dtype)
        self.k_proj_weight = None if packed else empty((embed_dim, self.kdim), dtype)
        self.v_proj_weight = None if packed else empty((embed_dim, self.vdim), dtype)
        self.in_proj_bias = empty((3 * embed_dim,), dtype) if bias else None
        self.bias_k = empty((1, 1, embed_dim), dtype) if add_bias_kv else None
        self.bias_v = empty((1, 1, embed_dim), dtype) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype=dtype)
        self.rng = RngState() if dropout else None
        self._reset()
        put(self, device)

    def reset_parameters(self) -> None:
        """Draw new initial values: Xavier-uniform weights, zero biases."""
        self.out_proj.reset_parameters()
        self._reset()

    def _reset(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for added in (self.bias_k, self.bias_v):
            if added is not None:
                init.xavier_normal_(added)

    def new_cache(self, batch_size: int, max_length: int) -> KeyValueCache:
        """An empty cache for this layer; see `KeyValueCache`."""
        return KeyValueCache(batch_size, max_length, self.num_heads, self.head_dim, self.out_proj.weight.dtype)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> tuple[Any, Any]:
        """Attend to the values whose keys match the queries.

        Args:
            query: array of shape (L, N, E), with `batch_first` (N, L, E), or (L, E) without a batch.
            key: array of shape (S, N, kdim), laid out in the same way.
            value: array of shape (S, N, vdim), laid out in the same way.
            key_padding_mask: array of shape (N, S): True for keys to ignore, or numbers that are added to the scores.
            need_weights: whether to return the attention weights.
            attn_mask: array of shape (L, S) or (N H, L, S): True where a query must not attend to a key, or numbers
                that are added to the scores.
            average_attn_weights: whether returned weights are averaged over the heads.
            is_causal: whether query i may attend to the keys up to i only, in addition to the masks.
            cache: from `new_cache`: the arguments are the next positions, which attend to all positions so far and to
                those up to themselves.  Masks are for all positions of the cache then, S = max_length; no weights are
                returned.

        Returns:
            `(output, weights)`; see `functional.multi_head_attention_forward`.

        Raises:
            ValueError: shapes do not match; or the cache is full.  Compiled code, which cannot check that, returns NaN.
        """
        for name, x, size in (
            ("queries", query, self.embed_dim),
            ("keys", key, self.kdim),
            ("values", value, self.vdim),
        ):
            expect_last_axis(self, x, size, name)
        if cache is not None:
            return self._with_cache(query, key, value, cache, attn_mask, key_padding_mask), None
        drops = self.training and self.dropout > 0
        return F.multi_head_attention_forward(
            query,
            key,
            value,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.out_proj.weight,
            self.out_proj.bias,
            dropout_p=self.dropout if drops else 0.0,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            bias_k=self.bias_k,
            bias_v=self.bias_v,
            add_zero_attn=self.add_zero_attn,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            batch_first=self.batch_first,
            rng=self.rng.next_key() if drops and self.rng is not None else None,
        )

    def _with_cache(
        self, query: Any, key: Any, value: Any, cache: KeyValueCache, attn_mask: Any, key_padding_mask: Any
    ) -> Any:
        """The output for the next positions."""
        shape = shape_of(query)
        if len(shape) != 3 or shape_of(key)[:2] != shape[:2] or shape_of(value)[:2] != shape[:2]:
            raise ValueError(
                "attention with a cache takes queries, keys and values of the next positions, each with a batch "
                f"axis, not {', '.join(map(described, (query, key, value)))}{at_line(user_line())}"
            )
        if self.bias_k is not None or self.add_zero_attn:
            raise ValueError(
                "attention with add_bias_kv or add_zero_attn takes no cache; make the layer without them, or call it "
                f"with all positions and no cache{at_line(user_line())}"
            )
        batch = shape[0 if self.batch_first else 1]
        size = (batch, self.num_heads, shape[1 if self.batch_first else 0], cache.key.shape[1])
        mask = scores_mask(attn_mask, key_padding_mask, size, False)
        queries, keys, values = (self._heads(x, place) for place, x in enumerate((query, key, value)))
        keys, values, allowed = cache.extend(keys, values)
        drops = self.training and self.dropout > 0
        if mask is not None and mask.dtype.kind == "b":
            allowed = allowed & mask
        elif mask is not None:
            allowed = np.where(allowed, mask, -math.inf)
        found = F.scaled_dot_product_attention(
            np.swapaxes(queries, 1, 2),
            np.swapaxes(keys, 1, 2),
            np.swapaxes(values, 1, 2),
            attn_mask=allowed,
            dropout_p=self.dropout if drops else 0.0,
            rng=self.rng.next_key() if drops and self.rng is not None else None,
        )
        out = np.transpose(found, (0, 2, 1, 3) if self.batch_first else (2, 0, 1, 3))
        out = self.out_proj(np.reshape(out, (*shape[:2], self.embed_dim)))
        length = cache.length.read()
        return out if concrete(length) is not None else np.where(length > cache.key.shape[1], math.nan, out)

    def _heads(self, x: Any, place: int) -> Any:
        """Queries, keys or values (place 0, 1, 2), of shape (N, L, heads, head_dim)."""
        rows = slice(place * self.embed_dim, (place + 1) * self.embed_dim)
        single = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[place]
        weight = read(self.in_proj_weight)[rows] if self.in_proj_weight is not None else single
        bias = None if self.in_proj_bias is None else read(self.in_proj_bias)[rows]
        projected = F.linear(x, weight, bias)
        heads = np.reshape(projected, (*shape_of(projected)[:2], self.num_heads, self.head_dim))
        return heads if self.batch_first else np.swapaxes(heads, 0, 1)
