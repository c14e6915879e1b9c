"""Attention: averages of values, weighted by how well keys match queries (Vaswani et al., 2017)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...api.derivatives import stop_gradient
from ...base.source import at_line, user_line
from ..random import key_of
from .arguments import array, described, matrix_product, shape_of
from .dropout import dropout
from .entry import functional
from .linear import linear

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    rng: Any = None,
) -> Any:
    """`softmax(q @ k.T * scale + mask) @ v`.

    A query that may attend to no key gives 0, with derivative 0.  Time and memory are proportional to L * S.

    Args:
        query: array of shape (..., L, E).
        key: array of shape (..., S, E).
        value: array of shape (..., S, V).
        attn_mask: array that broadcasts to (..., L, S): booleans, True where a query may attend to a key, or numbers
            that are added to the scores.
        dropout_p: dropout probability of the attention weights.
        is_causal: whether query i may attend to the keys up to i only.
        scale: factor of the scores; 1 / sqrt(E) by default.
        enable_gqa: whether queries may have a multiple of the heads (axis -3) of keys and values, each of which then
            serves several successive heads.
        rng: source of random numbers, as for `dropout`.

    Returns:
        An array of shape (..., L, V).

    Raises:
        ValueError: shapes do not match, or both `attn_mask` and `is_causal` are given.

    Example:
        >>> import ftrans.nn.functional as F
        >>> q, k, v = np.zeros((2, 1)), np.ones((2, 1)), np.array([[1.0], [3.0]])
        >>> F.scaled_dot_product_attention(q, k, v, is_causal=True)
        array([[1.],
               [2.]])
    """
    random = key_of(rng, "scaled_dot_product_attention", [query, key, value]) if dropout_p else None
    return _attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, random)


@functional
def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    random: Any,
) -> Any:
    what = "scaled_dot_product_attention"
    _check_shapes(query, key, value, enable_gqa)
    if is_causal and attn_mask is not None:
        raise ValueError(
            f"{what} takes either attn_mask or is_causal=True; for both, give attn_mask & np.tri(L, S, dtype=bool)"
            + at_line(user_line())
        )
    shape, groups = shape_of(query), 1
    if enable_gqa and len(shape) > 2 and shape[-3] != shape_of(key)[-3]:
        groups = shape[-3] // shape_of(key)[-3]
    weights, total = _weights(query, key, attn_mask, is_causal, scale, groups)
    weights = dropout(weights, dropout_p, rng=random)
    # Divided by the total after the product, which is smaller than the weights.
    out = _by_groups(weights, value, groups) / total
    return out if out.dtype == query.dtype else out.astype(query.dtype)


def _check_shapes(query: Any, key: Any, value: Any, enable_gqa: bool) -> None:
    q, k, v = map(shape_of, (query, key, value))
    fits = min(len(q), len(k), len(v)) >= 2 and q[-1] == k[-1] and k[-2] == v[-2]
    lead = [q[:-2], k[:-2], v[:-2]]
    if fits and enable_gqa and len(q) > 2 and len(k) == len(v) == len(q):
        fits = k[-3] == v[-3] and k[-3] > 0 and q[-3] % k[-3] == 0
        lead = [s[:-3] for s in (q, k, v)]
    try:
        np.broadcast_shapes(*lead)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            "scaled_dot_product_attention takes query (..., L, E), key (..., S, E) and value (..., S, V), not "
            f"{described(query)}, {described(key)} and {described(value)}{at_line(user_line())}"
        )


def _by_groups(x: Any, y: Any, groups: int) -> Any:
    """`x @ y`, where each matrix of `y` serves several successive ones of `x`; in the dtype of `y`."""
    x = x if x.dtype == y.dtype else x.astype(y.dtype)
    if groups == 1:
        return matrix_product(x, y)
    shape = shape_of(x)
    grouped = np.reshape(x, (*shape[:-3], shape[-3] // groups, groups, *shape[-2:]))
    product = matrix_product(grouped, np.expand_dims(y, -3))
    return np.reshape(product, (*shape[:-1], shape_of(product)[-1]))


def _weights(query: Any, key: Any, mask: Any, is_causal: bool, scale: float | None, groups: int) -> tuple[Any, Any]:
    """The unnormalized attention weights, and their sums."""
    factor = 1 / math.sqrt(shape_of(query)[-1]) if scale is None else scale
    scores = _by_groups(query * factor, np.swapaxes(key, -1, -2), groups)
    shape = shape_of(scores)
    if is_causal:
        scores = np.where(np.tri(*shape[-2:], dtype=np.bool_), scores, -math.inf)
    elif mask is not None:
        scores = _masked(scores, array(mask))
    greatest = np.max(stop_gradient(scores), axis=-1, keepdims=True)
    if mask is not None:
        greatest = np.where(greatest == -math.inf, 0, greatest)
    weights = np.exp(scores - greatest)
    total = np.sum(weights, axis=-1, keepdims=True)
    return weights, total if mask is None else np.where(total == 0, 1, total)


def _masked(scores: Any, mask: Any) -> Any:
    try:
        fits = np.broadcast_shapes(scores.shape, mask.shape) == tuple(scores.shape)
    except ValueError:
        fits = False
    if not fits or mask.dtype.kind in "iu":
        raise ValueError(
            f"attn_mask must hold booleans or floating-point numbers and broadcast to {tuple(scores.shape)}, the "
            f"shape (..., L, S) of the scores; {described(mask)} does not{at_line(user_line())}"
        )
    return np.where(mask, scores, -math.inf) if mask.dtype.kind == "b" else scores + mask.astype(scores.dtype)


def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    out_proj_weight: Any,
    out_proj_bias: Any,
    *,
    dropout_p: float = 0.0,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    bias_k: Any = None,
    bias_v: Any = None,
    add_zero_attn: bool = False,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    batch_first: bool = False,
    rng: Any = None,
) -> tuple[Any, Any]:
    """Multi-head attention: each head has its own projections of queries, keys and values.

    As in torch, boolean masks are True where a query must *not* attend to a key.  A query that may attend to no key
    gives the projection of 0.

    Args:
        query: array of shape (L, N, E), with `batch_first` (N, L, E), or (L, E) without a batch.
        key: array of shape (S, N, K), laid out in the same way.
        value: array of shape (S, N, V), laid out in the same way.
        num_heads: number of heads H; must divide E.
        in_proj_weight: stacked projection matrices of queries, keys and values, of shape (3 E, E); None if they are
            given separately.
        in_proj_bias: vector of shape (3 E,), or None.
        out_proj_weight: matrix of shape (E, E).
        out_proj_bias: vector of shape (E,), or None.
        dropout_p: dropout probability of the attention weights.
        key_padding_mask: array of shape (N, S), or (S,) without a batch: True for keys to ignore, or numbers that are
            added to the scores.
        need_weights: whether to return the attention weights.
        attn_mask: array of shape (L, S) or (N H, L, S): True where a query must not attend to a key, or numbers that
            are added to the scores.
        q_proj_weight: projection matrix of queries, of shape (E, E).
        k_proj_weight: projection matrix of keys, of shape (E, K).
        v_proj_weight: projection matrix of values, of shape (E, V).
        bias_k: a key that is added to those of each sequence, after projection, of shape (1, 1, E).
        bias_v: its value, of shape (1, 1, E); both are given or none.
        add_zero_attn: whether a key 0 with value 0 is added to those of each sequence.  Masks have no columns for added
            keys, to which every query may attend.
        average_attn_weights: whether returned weights are averaged over the heads.
        is_causal: whether query i may attend to the keys up to i only, in addition to the masks.
        batch_first: whether the batch is axis 0.
        rng: source of random numbers, as for `dropout`.

    Returns:
        `(output, weights)`: the output has the shape of `query`; the weights are of shape (N, L, S) if averaged, else
        (N, H, L, S), or the same without N, with S counting added keys; None if not wanted.

    Raises:
        ValueError: shapes do not match.
    """
    random = key_of(rng, "multi_head_attention_forward", [query, key, value]) if dropout_p else None
    return _multi_head_attention(
        query, key, value, num_heads, in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias, dropout_p,
        key_padding_mask, need_weights, attn_mask, (q_proj_weight, k_proj_weight, v_proj_weight),
        (bias_k, bias_v, add_zero_attn), average_attn_weights, is_causal, batch_first, random,
    )  # fmt: skip


@functional
def _multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    out_proj_weight: Any,
    out_proj_bias: Any,
    dropout_p: float,
    key_padding_mask: Any,
    need_weights: bool,
    attn_mask: Any,
    single: tuple[Any, Any, Any],
    added: tuple[Any, Any, bool],
    average_attn_weights: bool,
    is_causal: bool,
    batch_first: bool,
    random: Any,
) -> tuple[Any, Any]:
    batched = len(shape_of(query)) == 3
    _check_heads(query, key, value, num_heads, in_proj_weight, 0 if batch_first else 1)
    if not batched:
        query, key, value = (np.expand_dims(x, 0) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else np.expand_dims(key_padding_mask, 0)
    projected = _projections((query, key, value), in_proj_weight, in_proj_bias, single)
    # To (N, H, length, E / H).
    order = (0, 2, 1, 3) if batch_first or not batched else (1, 2, 0, 3)
    heads = [np.transpose(np.reshape(x, (*shape_of(x)[:2], num_heads, -1)), order) for x in projected]
    count, _, rows, _ = shape_of(heads[0])
    columns = shape_of(heads[1])[2]
    mask = scores_mask(attn_mask, key_padding_mask, (count, num_heads, rows, columns), is_causal)
    plainly_causal = is_causal and mask is None
    if any(x is not None and x is not False for x in added):
        mask = np.tri(rows, columns, dtype=np.bool_) if plainly_causal else mask
        heads, mask = _with_added(heads, mask, *added)
        plainly_causal = False
    weights, total = _weights(heads[0], heads[1], mask, plainly_causal, None, 1)
    kept = dropout(weights, dropout_p, rng=random)
    out = np.transpose(_by_groups(kept, heads[2], 1) / total, (0, 2, 1, 3) if order[0] == 0 else (2, 0, 1, 3))
    out = linear(np.reshape(out, (*shape_of(out)[:2], -1)), out_proj_weight, out_proj_bias)
    shares = kept / total if need_weights else None
    if shares is not None and average_attn_weights:
        shares = np.mean(shares, axis=1)
    if not batched:
        out, shares = out[0], None if shares is None else shares[0]
    return out, shares


def _with_added(heads: list[Any], mask: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool) -> tuple[list[Any], Any]:
    """Queries, keys and values of shape (N, H, length, E / H) and the mask, with what is added to keys and values."""
    count, num_heads, _, size = shape_of(heads[1])
    more: list[list[Any]] = [[], []]
    if (bias_k is None) != (bias_v is None) or any(
        x is not None and shape_of(x) != (1, 1, num_heads * size) for x in (bias_k, bias_v)
    ):
        raise ValueError(
            f"bias_k and bias_v must both be of shape (1, 1, {num_heads * size}), or None, not {described(bias_k)} and "
            f"{described(bias_v)}{at_line(user_line())}"
        )
    for rows, bias in zip(more, (bias_k, bias_v), strict=True):
        if bias is not None:
            rows.append(np.broadcast_to(np.reshape(bias, (1, num_heads, 1, size)), (count, num_heads, 1, size)))
        if add_zero_attn:
            rows.append(np.zeros((count, num_heads, 1, size), heads[1].dtype))
    new = [np.concatenate([x, *rows], axis=2) for x, rows in zip(heads[1:], more, strict=True)]
    if mask is not None:
        shape = (*shape_of(mask)[:-1], len(more[0]))
        free = np.ones(shape, np.bool_) if mask.dtype.kind == "b" else np.zeros(shape, mask.dtype)
        mask = np.concatenate([mask, free], axis=-1)
    return [heads[0], *new], mask


def _check_heads(query: Any, key: Any, value: Any, num_heads: int, packed: Any, batch_axis: int) -> None:
    shapes = q, k, v = [shape_of(x) for x in (query, key, value)]
    size = q[-1] if q else 0
    fits = len(q) in (2, 3) and len(k) == len(v) == len(q) and k[:-1] == v[:-1]
    if not fits or (len(q) == 3 and q[batch_axis] != k[batch_axis]):
        raise ValueError(
            "multi_head_attention_forward takes query (L, N, E), key (S, N, K) and value (S, N, V), with N first if "
            f"batch_first, or all without N, not {', '.join(map(described, (query, key, value)))}{at_line(user_line())}"
        )
    if num_heads < 1 or size % num_heads:
        raise ValueError(f"num_heads={num_heads} does not divide the size {size} of query{at_line(user_line())}")
    if packed is not None and (shape_of(packed) != (3 * size, size) or any(s[-1] != size for s in shapes)):
        raise ValueError(
            f"in_proj_weight must be (3 * {size}, {size}), for query, key and value of the same size {size}, not "
            f"{described(packed)}; for other sizes, give q_proj_weight, k_proj_weight and v_proj_weight"
            + at_line(user_line())
        )


def _projections(inputs: tuple[Any, Any, Any], packed: Any, bias: Any, single: tuple[Any, Any, Any]) -> list[Any]:
    """Queries, keys and values of all heads."""
    query, key, value = inputs
    if packed is not None and query is key and key is value:
        return list(np.split(linear(query, packed, bias), 3, axis=-1))
    if packed is None and any(w is None for w in single):
        raise ValueError(
            "multi_head_attention_forward needs in_proj_weight, or q_proj_weight, k_proj_weight and v_proj_weight"
            + at_line(user_line())
        )
    weights = single if packed is None else np.split(packed, 3)
    biases = (None,) * 3 if bias is None else np.split(bias, 3)
    return [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def scores_mask(attn_mask: Any, padding_mask: Any, shape: tuple[int, int, int, int], is_causal: bool) -> Any:
    """The masks combined to one, as `scaled_dot_product_attention` takes it."""
    count, heads, rows, columns = shape
    masks = []
    if padding_mask is not None:
        if shape_of(padding_mask) != (count, columns):
            raise ValueError(
                f"key_padding_mask must be of shape {(count, columns)}, a value for each key, not "
                f"{described(padding_mask)}{at_line(user_line())}"
            )
        masks.append(np.reshape(padding_mask, (count, 1, 1, columns)))
    if attn_mask is not None:
        if shape_of(attn_mask) not in ((rows, columns), (count * heads, rows, columns), (1, rows, columns)):
            raise ValueError(
                f"attn_mask must be of shape {(rows, columns)} or {(count * heads, rows, columns)}, not "
                f"{described(attn_mask)}{at_line(user_line())}"
            )
        is_common = shape_of(attn_mask)[0] == 1 or len(shape_of(attn_mask)) == 2
        masks.append(np.reshape(attn_mask, (1, 1, rows, columns) if is_common else shape))
    if not masks:
        return None
    # Where a key is allowed; and what is added to scores, if anything is.
    allowed: Any = np.tri(rows, columns, dtype=np.bool_) if is_causal else None
    summand: Any = None
    for mask in map(array, masks):
        if mask.dtype.kind == "b":
            allowed = ~mask if allowed is None else allowed & ~mask
        else:
            summand = mask if summand is None else summand + mask
    if summand is None or allowed is None:
        return allowed if summand is None else summand
    return np.where(allowed, summand, -math.inf)
