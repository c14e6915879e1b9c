"""Linear maps, normalization, attention, recurrent networks and distances, against formulas written out."""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.spatial.distance
import scipy.special

import ftrans as ft
import ftrans.nn.functional as F
from ftrans import autograd
from ftrans.nn import random
from ftrans.testing import check_grads

RNG = np.random.default_rng(0)
BF16 = ml_dtypes.bfloat16


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape)


def refused(call: Any, message: str, error: type[Exception] = ValueError) -> None:
    with pytest.raises(error, match=message) as found:
        call()
    assert __file__ in str(found.value)


# Linear maps and tables


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_linear(shape: tuple[int, ...]) -> None:
    x, w, b = normal(*shape), normal(5, 4), normal(5)
    expected = np.einsum("...i,oi->...o", x, w) + b
    np.testing.assert_allclose(F.linear(x, w, b), expected)
    np.testing.assert_allclose(ft.trace(F.linear)(x, w, b)(x, w, b)[0], expected)
    np.testing.assert_allclose(F.linear(x, w[0]), x @ w[0])
    check_grads(F.linear, x, w, b)
    assert F.linear(x.astype(BF16), w.astype(BF16), b.astype(BF16)).dtype == BF16
    tensor = autograd.tensor(w, requires_grad=True)
    np.sum(F.linear(x, tensor, b) ** 2).backward()
    assert tensor.grad is not None
    np.testing.assert_allclose(tensor.grad.numpy(), ft.grad(lambda w: np.sum(F.linear(x, w, b) ** 2))(w))


def test_the_gradient_of_weights_needs_no_transpose() -> None:
    g = ft.trace(ft.grad(lambda w, x: np.sum(np.tanh(F.linear(x, w)))))(normal(5, 4), normal(2, 3, 4))
    assert "transpose" not in {eqn.primitive.name for eqn in g.eqns}


def test_bilinear() -> None:
    x, y, w, b = normal(2, 3, 4), normal(2, 3, 5), normal(6, 4, 5), normal(6)
    np.testing.assert_allclose(F.bilinear(x, y, w, b), np.einsum("...i,kij,...j->...k", x, w, y) + b)
    check_grads(F.bilinear, x, y, w, b)


def test_embedding() -> None:
    w, i = normal(5, 3), np.array([[0, 4, 1], [1, 1, 0]])
    np.testing.assert_array_equal(F.embedding(i, w), w[i])
    for padding, counts in [(None, [2, 3, 0, 0, 1]), (1, [2, 0, 0, 0, 1]), (-1, [2, 3, 0, 0, 0])]:
        f = lambda w, p=padding: np.sum(F.embedding(i, w, p))  # noqa: E731
        np.testing.assert_array_equal(ft.grad(f)(w), np.outer(counts, np.ones(3)))
    check_grads(lambda w: F.embedding(i, w) ** 2, w)
    assert F.embedding(i, w.astype(BF16)).dtype == BF16
    f = ft.jit(lambda w, i: F.embedding(i, w, 0))
    np.testing.assert_array_equal(f(w, i), w[i])
    np.testing.assert_array_equal(np.isnan(f(w, np.array([[0, 5, -1], [1, 1, 0]])))[..., 0], [[0, 1, 1], [0, 0, 0]])


def test_one_hot() -> None:
    i = np.array([[2, 0], [1, 2]])
    np.testing.assert_array_equal(F.one_hot(i), np.eye(3)[i])
    assert F.one_hot(i, 5).dtype == np.int64
    np.testing.assert_array_equal(ft.trace(lambda i: F.one_hot(i, 4))(i)(i)[0], np.eye(4)[i])


def test_what_linear_maps_refuse() -> None:
    x, w = normal(3, 4), normal(5, 4)
    refused(lambda: F.linear(x, w.T), r"weight f64\[4,5\], which is \(out, in\), takes input of shape \(\.\.\., 5\)")
    refused(lambda: ft.grad(lambda x: F.linear(x, w, np.ones(4)).sum())(x), r"bias of linear .* shape \(5,\)")
    refused(lambda: F.bilinear(x, x, w), "bilinear takes arrays")
    refused(lambda: F.embedding(np.array([1, 7]), w), r"input\[1\] of embedding is 7, .* from 0 to 4", IndexError)
    refused(lambda: F.embedding(np.array([-1]), w), "from 0 to 4", IndexError)
    refused(lambda: F.embedding(np.array([1.0]), w), "must be integers", TypeError)
    refused(lambda: F.embedding(np.array([1]), w, 9), "padding_idx=9 of embedding is no row")
    refused(lambda: F.one_hot(np.array([3]), 3), "from 0 to 2", IndexError)
    refused(lambda: ft.jit(F.one_hot)(np.array([3])), "needs num_classes", TypeError)


# Normalization


def standardized(x: Any, axes: tuple[int, ...], eps: float = 1e-5) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def test_layer_norm() -> None:
    x, w, b = normal(2, 3, 4), normal(3, 4), normal(3, 4)
    np.testing.assert_allclose(F.layer_norm(x, 4), standardized(x, (2,)))
    np.testing.assert_allclose(F.layer_norm(x, (3, 4), w, b, eps=0.1), standardized(x, (1, 2), 0.1) * w + b)
    check_grads(lambda x, w, b: F.layer_norm(x, (3, 4), w, b), x, w, b)
    assert F.layer_norm(x.astype(np.float32), 4).dtype == np.float32
    assert F.layer_norm(x.astype(BF16), 4).dtype == BF16
    assert np.isfinite(ft.grad(lambda x: F.layer_norm(x, 4)[0, 0, 0])(np.ones((2, 3, 4)))).all()


def test_rms_norm() -> None:
    x, w = normal(2, 3, 4), normal(4)
    np.testing.assert_allclose(F.rms_norm(x, 4, w, 0.1), x / np.sqrt((x**2).mean(-1, keepdims=True) + 0.1) * w)
    check_grads(lambda x, w: F.rms_norm(x, 4, w), x, w)
    assert np.isfinite(ft.grad(lambda x: F.rms_norm(x, 4)[0])(np.zeros(4))).all()


def test_group_and_instance_norm() -> None:
    x, w, b = normal(2, 6, 4), normal(6), normal(6)
    grouped = standardized(x.reshape(2, 3, 8), (2,)).reshape(x.shape)
    np.testing.assert_allclose(F.group_norm(x, 3, w, b), grouped * w[:, None] + b[:, None])
    np.testing.assert_allclose(F.instance_norm(x, weight=w, bias=b), standardized(x, (2,)) * w[:, None] + b[:, None])
    check_grads(lambda x, w, b: F.group_norm(x, 3, w, b), x, w, b)
    check_grads(lambda x: F.instance_norm(x), x)


def test_batch_norm() -> None:
    x, w, b, mean, var = normal(5, 3, 2), normal(3), normal(3), normal(3), RNG.uniform(1, 2, 3)
    by_channel = (slice(None), None)
    expected = standardized(x, (0, 2)) * w[by_channel] + b[by_channel]
    np.testing.assert_allclose(F.batch_norm(x, mean, var, w, b, training=True), expected)
    fixed = (x - mean[by_channel]) / np.sqrt(var[by_channel] + 1e-5) * w[by_channel] + b[by_channel]
    np.testing.assert_allclose(F.batch_norm(x, mean, var, w, b), fixed)
    out, new_mean, new_var = F.batch_norm_with_statistics(x, mean, var, w, b, momentum=0.3)
    np.testing.assert_allclose(out, expected)
    np.testing.assert_allclose(new_mean, 0.7 * mean + 0.3 * x.mean((0, 2)))
    np.testing.assert_allclose(new_var, 0.7 * var + 0.3 * x.var((0, 2), ddof=1))
    assert F.batch_norm_with_statistics(x, None, None)[1:] == (None, None)
    check_grads(lambda x, w, b: F.batch_norm(x, mean, var, w, b, training=True), x, w, b)
    check_grads(lambda x, m, v: F.batch_norm(x, m, v, w), x, mean, var)
    single: list[Any] = [v.astype(np.float32) for v in (x, mean, var, w, b)]
    assert {v.dtype.name for v in F.batch_norm_with_statistics(*single)} == {"float32"}


def test_local_response_norm() -> None:
    x = normal(2, 5, 3)
    for size in (1, 2, 3, 4):
        total = np.zeros_like(x)
        for c in range(5):
            start = c - size // 2
            total[:, c] = sum(x[:, i] ** 2 for i in range(max(start, 0), min(start + size, 5)))
        expected = x / (2.0 + 0.5 / size * total) ** 0.6
        np.testing.assert_allclose(F.local_response_norm(x, size, alpha=0.5, beta=0.6, k=2.0), expected)
    check_grads(lambda x: F.local_response_norm(x, 3, alpha=0.5), x)


def test_what_normalization_refuses() -> None:
    x = normal(2, 6, 4)
    refused(lambda: F.layer_norm(x, 5), r"normalized_shape \(5,\) takes input of shape \(\.\.\., 5\)")
    refused(lambda: F.layer_norm(x, 4, np.ones(3)), r"weight of layer_norm must have shape \(4,\)")
    refused(lambda: F.group_norm(x, 4), "cannot divide the 6 channels")
    refused(lambda: F.batch_norm(x, np.ones(5), np.ones(6)), r"running_mean of batch_norm must have shape \(6,\)")
    refused(lambda: F.batch_norm(x, None, None), "training=True")
    refused(lambda: F.batch_norm(x[:1, :, 0], None, None, training=True), "more than one value for each channel")
    refused(lambda: F.instance_norm(x[..., :1]), "more than one position")
    refused(lambda: F.instance_norm(x[0]), r"\(N, C, L, \.\.\.\)")
    refused(lambda: F.local_response_norm(x, 0), "at least 1")


# Attention

QUERY, KEY, VALUE = normal(2, 3, 4, 5), normal(2, 3, 6, 5), normal(2, 3, 6, 2)
MASK = RNG.random((4, 6)) > 0.3
MASK[1] = False


def attention(q: Any, k: Any, v: Any, added: Any = 0.0, scale: float = 5**-0.5) -> Any:
    with np.errstate(all="ignore"):
        weights = scipy.special.softmax(np.einsum("...le,...se->...ls", q, k) * scale + added, axis=-1)
    return np.nan_to_num(weights) @ v


@pytest.mark.parametrize(
    ("options", "added"),
    [
        ({}, 0.0),
        ({"is_causal": True}, np.where(np.tri(4, 6), 0, -np.inf)),
        ({"attn_mask": MASK}, np.where(MASK, 0, -np.inf)),
        ({"attn_mask": np.where(MASK, 0.5, -np.inf)}, np.where(MASK, 0.5, -np.inf)),
    ],
    ids=["plain", "causal", "boolean", "added"],
)
def test_attention(options: dict[str, Any], added: Any) -> None:
    f = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options)  # noqa: E731
    np.testing.assert_allclose(f(QUERY, KEY, VALUE), attention(QUERY, KEY, VALUE, added))
    # Some derivatives are 0, and known to rounding only.
    check_grads(f, QUERY, KEY, VALUE, order=1, atol=1e-11)
    for dtype in (np.float32, BF16):
        assert f(*(x.astype(dtype) for x in (QUERY, KEY, VALUE))).dtype == dtype
    gradient = ft.grad(lambda q: np.sum(f(q, KEY, VALUE) ** 2))
    np.testing.assert_allclose(ft.jit(gradient)(QUERY), gradient(QUERY), rtol=1e-9, atol=1e-12)


def test_a_query_without_keys_gets_nothing() -> None:
    g = ft.grad(lambda q, k, v: np.sum(F.scaled_dot_product_attention(q, k, v, attn_mask=MASK)), (0, 1, 2))
    for gradient in (*g(QUERY, KEY, VALUE), *ft.jit(g)(QUERY, KEY, VALUE)):
        assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(g(QUERY, KEY, VALUE)[0][:, :, 1], 0)
    np.testing.assert_array_equal(F.scaled_dot_product_attention(QUERY, KEY, VALUE, MASK)[:, :, 1], 0)


def test_attention_adds_masks_that_are_learnt_and_scales() -> None:
    bias = normal(4, 6)
    f = lambda b: F.scaled_dot_product_attention(QUERY, KEY, VALUE, b, scale=0.3)  # noqa: E731
    np.testing.assert_allclose(f(bias), attention(QUERY, KEY, VALUE, bias, 0.3))
    check_grads(f, bias)


def test_groups_of_queries_share_keys() -> None:
    q = normal(2, 6, 4, 5)
    k, v = (np.repeat(x, 2, axis=1) for x in (KEY, VALUE))
    f = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)  # noqa: E731
    np.testing.assert_allclose(f(q, KEY, VALUE), attention(q, k, v))
    check_grads(f, q, KEY, VALUE)


def test_dropout_of_attention() -> None:
    q, k, v = np.zeros((1, 1)), np.zeros((4000, 1)), np.ones((4000, 1))
    f = lambda: F.scaled_dot_product_attention(q, k, v, dropout_p=0.25, rng=random.key(0))  # noqa: E731
    assert abs(f()[0, 0] - 1) < 0.03
    assert f() == f() != 1
    attend = ft.jit(lambda q: F.scaled_dot_product_attention(q, k, v, dropout_p=0.25))
    refused(lambda: attend(q), "needs rng", TypeError)


def test_what_attention_refuses() -> None:
    f = F.scaled_dot_product_attention
    refused(lambda: f(QUERY, KEY[..., :4], VALUE), r"key \(\.\.\., S, E\)")
    refused(lambda: f(QUERY, KEY, VALUE, MASK, is_causal=True), "either attn_mask or is_causal")
    refused(lambda: f(QUERY, KEY, VALUE, MASK.T), r"broadcast to \(2, 3, 4, 6\)")
    refused(lambda: f(QUERY, KEY, VALUE, MASK.astype(int)), "booleans or floating-point")
    refused(lambda: f(QUERY, KEY[:, :2], VALUE[:, :2], enable_gqa=True), "takes query")


def heads_one_by_one(q: Any, k: Any, v: Any, heads: int, weights: Any, added: Any) -> tuple[Any, Any]:
    """Multi-head attention of batches (N, L, E) by loops."""
    w, b, w_out, b_out = weights
    size = q.shape[-1] // heads
    qs, ks, vs = (x @ m.T + c for x, m, c in zip((q, k, v), np.split(w, 3), np.split(b, 3), strict=True))
    out, shares = np.zeros_like(q), np.zeros((len(q), heads, q.shape[1], k.shape[1]))
    for n, h in np.ndindex(len(q), heads):
        part = slice(h * size, (h + 1) * size)
        scores = qs[n, :, part] @ ks[n, :, part].T / math.sqrt(size) + added[n]
        shares[n, h] = scipy.special.softmax(scores, -1)
        out[n, :, part] = shares[n, h] @ vs[n, :, part]
    return out @ w_out.T + b_out, shares


@pytest.mark.parametrize(("batch_first", "same"), list(itertools.product([True, False], repeat=2)))
def test_multi_head_attention(batch_first: bool, same: bool) -> None:
    q, memory = normal(2, 3, 6), normal(2, 4, 6)
    weights = normal(18, 6), normal(18), normal(6, 6), normal(6)
    padding = np.array([[False, False, True, True], [False, True, False, False]])[:, : 3 if same else 4]
    future = np.array([[False, False, True, True]] + [[False] * 4] * 2)[:, : 3 if same else 4]
    banned = padding[:, None, :] | future
    k = v = q if same else memory
    expected, shares = heads_one_by_one(q, k, v, 2, weights, np.where(banned, -np.inf, 0))

    def f(q: Any, k: Any, *weights: Any, **options: Any) -> Any:
        q, k = (x if batch_first else np.swapaxes(x, 0, 1) for x in (q, k))
        out, shares = F.multi_head_attention_forward(
            q, q if same else k, q if same else k, 2, *weights,
            key_padding_mask=padding, attn_mask=future, batch_first=batch_first, **options,
        )  # fmt: skip
        return out if batch_first else np.swapaxes(out, 0, 1), shares

    out, average = f(q, k, *weights)
    np.testing.assert_allclose(out, expected)
    np.testing.assert_allclose(average, shares.mean(1))
    np.testing.assert_allclose(f(q, k, *weights, average_attn_weights=False)[1], shares)
    assert f(q, k, *weights, need_weights=False)[1] is None
    # The bias of keys shifts all scores of a query alike, so its derivative is 0, which is known to rounding only.
    check_grads(lambda q, k, *w: f(q, k, *w)[0], q, k, *weights, order=1, atol=1e-11)


def test_multi_head_attention_without_a_batch_and_of_other_sizes() -> None:
    q, k, v, added = normal(3, 6), normal(4, 5), normal(4, 7), normal(2, 3, 4)
    b, w_out, single = normal(18), normal(6, 6), (normal(6, 6), normal(6, 5), normal(6, 7))
    out, shares = F.multi_head_attention_forward(
        q, k, v, 2, None, b, w_out, None, attn_mask=added, average_attn_weights=False,
        q_proj_weight=single[0], k_proj_weight=single[1], v_proj_weight=single[2],
    )  # fmt: skip
    qs, ks, vs = (x @ m.T + c for x, m, c in zip((q, k, v), single, np.split(b, 3), strict=True))
    parts = [slice(0, 3), slice(3, 6)]
    heads = [
        attention(qs[:, part], ks[:, part], vs[:, part], mask, 3**-0.5) for part, mask in zip(parts, added, strict=True)
    ]
    np.testing.assert_allclose(out, np.concatenate(heads, -1) @ w_out.T)
    assert shares.shape == (2, 3, 4)
    weights = normal(18, 6), None, w_out, None
    causal, _ = F.multi_head_attention_forward(q, q, q, 2, *weights, is_causal=True)
    masked, _ = F.multi_head_attention_forward(q, q, q, 2, *weights, attn_mask=~np.tri(3, dtype=bool))
    np.testing.assert_allclose(causal, masked)
    f = F.multi_head_attention_forward
    refused(lambda: f(q, q, q, 4, *weights), "num_heads=4 does not divide")
    refused(lambda: f(q, k, v, 2, *weights), "give q_proj_weight")
    refused(lambda: f(q, k, v, 2, None, None, w_out, None), "needs in_proj_weight")
    refused(lambda: f(q, q, q, 2, *weights, attn_mask=np.ones((2, 2))), "attn_mask must be of shape")
    refused(lambda: f(q, q, q, 2, *weights, key_padding_mask=np.ones(2)), "key_padding_mask must be of shape")


# Recurrent networks


def expit(x: Any) -> Any:
    return scipy.special.expit(x)


def rnn_step(x: Any, state: Any, w: Any) -> Any:
    return (np.tanh(x @ w[0].T + w[2] + state[0] @ w[1].T + w[3]),)


def lstm_step(x: Any, state: Any, w: Any) -> Any:
    i, f, g, o = np.split(x @ w[0].T + w[2] + state[0] @ w[1].T + w[3], 4, -1)
    c = expit(f) * state[1] + expit(i) * np.tanh(g)
    return expit(o) * np.tanh(c), c


def gru_step(x: Any, state: Any, w: Any) -> Any:
    of_x, of_h = np.split(x @ w[0].T + w[2], 3, -1), np.split(state[0] @ w[1].T + w[3], 3, -1)
    r, z = expit(of_x[0] + of_h[0]), expit(of_x[1] + of_h[1])
    return ((1 - z) * np.tanh(of_x[2] + r * of_h[2]) + z * state[0],)


KINDS = {"rnn": (F.rnn, rnn_step, 1), "lstm": (F.lstm, lstm_step, 4), "gru": (F.gru, gru_step, 3)}
STEPS, COUNT, SIZE, HIDDEN = 4, 2, 3, 5


def weights_of(gates: int, size: int, rng: Any) -> list[Any]:
    rows = gates * HIDDEN
    return [rng.normal(size=s) * 0.5 for s in ((rows, size), (rows, HIDDEN), (rows,), (rows,))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_layers_are_loops_over_cells(kind: str, bidirectional: bool) -> None:
    function, step, gates = KINDS[kind]
    rng, directions = np.random.default_rng(0), 1 + bidirectional
    sizes = [SIZE] * directions + [HIDDEN * directions] * directions
    weights = [weights_of(gates, size, rng) for size in sizes]
    x = rng.normal(size=(STEPS, COUNT, SIZE))
    first = [rng.normal(size=(len(weights), COUNT, HIDDEN)) for _ in range(1 + (kind == "lstm"))]

    ends, layer = [], x
    for start in range(0, len(weights), directions):
        columns = []
        for number in range(start, start + directions):
            state, outputs = tuple(s[number] for s in first), {}
            for t in range(STEPS) if number == start else reversed(range(STEPS)):
                state = step(layer[t], state, weights[number])
                outputs[t] = state[0]
            columns.append(np.stack([outputs[t] for t in range(STEPS)]))
            ends.append(state)
        layer = np.concatenate(columns, -1)

    def f(x: Any, first: Any, weights: Any, **options: Any) -> Any:
        hx = tuple(first) if kind == "lstm" else first[0]
        out, last = function(x, hx, weights, bidirectional=bidirectional, **options)  # type: ignore[operator]
        return out, list(last) if kind == "lstm" else [last]

    out, last = f(x, first, weights)
    np.testing.assert_allclose(out, layer)
    for found, expected in zip(last, zip(*ends, strict=True), strict=True):
        np.testing.assert_allclose(found, np.stack(expected))
    swapped, _ = f(np.swapaxes(x, 0, 1), first, weights, batch_first=True)
    np.testing.assert_allclose(swapped, np.swapaxes(layer, 0, 1))
    alone, ends_alone = f(x[:, 0], [s[:, 0] for s in first], weights)
    np.testing.assert_allclose(alone, layer[:, 0])
    np.testing.assert_allclose(ends_alone[0], last[0][:, 0])
    check_grads(f, x, first, weights, order=1)
    np.testing.assert_allclose(f(x, first, weights, between=lambda y: 0 * y)[1][0][:directions], last[0][:directions])


@pytest.mark.parametrize("kind", KINDS)
def test_cells(kind: str) -> None:
    _, step, gates = KINDS[kind]
    cell = {"rnn": F.rnn_cell, "lstm": F.lstm_cell, "gru": F.gru_cell}[kind]
    weights, x = weights_of(gates, SIZE, RNG), normal(COUNT, SIZE)
    state = tuple(normal(COUNT, HIDDEN) for _ in range(1 + (kind == "lstm")))
    found = cell(x, state if kind == "lstm" else state[0], *weights)  # type: ignore[operator]
    np.testing.assert_allclose(found if kind == "lstm" else [found], step(x, state, weights))
    zeros = tuple(np.zeros(HIDDEN) for _ in state)
    start = cell(x[0], None, *weights)  # type: ignore[operator]
    np.testing.assert_allclose(start if kind == "lstm" else [start], step(x[0], zeros, weights))
    check_grads(lambda x, s, *w: cell(x, s if kind == "lstm" else s[0], *w), x, state, *weights)  # type: ignore[operator]


def test_compiled_lstm() -> None:
    weights = [[w.astype(np.float32) for w in weights_of(4, SIZE, RNG)]]
    x = normal(STEPS, COUNT, SIZE).astype(np.float32)
    g = ft.value_and_grad(lambda w, x: np.sum(F.lstm(x, None, w)[0] ** 2))
    (value, gradients), (expected, wanted) = ft.jit(g)(weights, x), g(weights, x)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for found, gradient in zip(gradients[0], wanted[0], strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, gradient, rtol=1e-4, atol=1e-5)


def test_relu_and_missing_biases() -> None:
    w = normal(HIDDEN, SIZE), normal(HIDDEN, HIDDEN)
    x = normal(1, COUNT, SIZE)
    np.testing.assert_allclose(F.rnn(x, None, [w], "relu")[0], np.maximum(x @ w[0].T, 0))
    np.testing.assert_allclose(F.rnn_cell(x[0], None, *w, nonlinearity="relu"), np.maximum(x[0] @ w[0].T, 0))


def test_what_recurrent_networks_refuse() -> None:
    w, x = weights_of(4, SIZE, RNG), normal(STEPS, COUNT, SIZE)
    refused(lambda: F.lstm(x[0, 0], None, [w]), r"input of lstm must be \(T, N, D\)")
    refused(lambda: F.lstm(x, np.zeros((1, COUNT, HIDDEN)), [w]), "the pair", TypeError)
    refused(lambda: F.lstm(x, (np.zeros((2, COUNT, HIDDEN)),) * 2, [w]), r"must have shape \(layers \* directions, N")
    refused(lambda: F.lstm(x, None, [w], bidirectional=True), "weights of lstm hold arrays for 1 layers")
    refused(lambda: F.lstm(x, None, [w[:3]]), "not 3 arrays")
    refused(lambda: F.gru(x, None, [w]), r"weight_hh of gru must be \(3 \* H, H\), here \(15, 5\)")
    refused(lambda: F.lstm(x[..., :2], None, [w]), r"weight_ih of lstm must be \(4 \* H, D\), here \(20, 2\)")
    refused(lambda: F.rnn(x, None, [w], "sin"), "must be 'tanh' or 'relu'")


# Distances


@pytest.mark.parametrize("p", [1, 2, 3, 1.5, math.inf])
def test_distances(p: float) -> None:
    x, y = normal(4, 3), normal(4, 3)
    metric = {"metric": "chebyshev"} if p == math.inf else {"metric": "minkowski", "p": p}
    np.testing.assert_allclose(F.pdist(x, p), scipy.spatial.distance.pdist(x, **metric))
    np.testing.assert_allclose(F.pairwise_distance(x, y, p, eps=0.0), np.linalg.norm(x - y, p, axis=1))
    assert F.pairwise_distance(x, y[0], p, keepdim=True).shape == (4, 1)
    check_grads(lambda x: F.pdist(x, p), x)
    check_grads(lambda x, y: F.pairwise_distance(x, y, p), x, y)


def test_cosine_similarity() -> None:
    x, y = normal(2, 3, 4), normal(3, 4)
    lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=0)
    np.testing.assert_allclose(F.cosine_similarity(x, y), (x * y).sum(1) / lengths)
    check_grads(lambda x, y: F.cosine_similarity(x, y, dim=-1), x, y)
    value, gradient = ft.value_and_grad(lambda x: F.cosine_similarity(x, np.ones(3), dim=0))(np.zeros(3))
    assert value == 0
    assert np.isfinite(gradient).all()


def test_what_distances_refuse() -> None:
    x = normal(4, 3)
    refused(lambda: F.pdist(x[0]), "takes a matrix")
    refused(lambda: F.cosine_similarity(x, x[:, :2]), "do not fit together")
    refused(lambda: F.pairwise_distance(x, x[:3]), "do not fit together")
