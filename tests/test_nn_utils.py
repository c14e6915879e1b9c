"""nn.utils against figures of torch, in every mode: on arrays, compiled, define-by-run; and what it refuses."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
import tables
from nn_utils_rows import FIGURES, LENGTHS, ROWS, Row, leaves, total

import ftrans as ft
from ftrans import nn
from ftrans.nn.utils import rnn

STORED = json.loads(FIGURES.read_text())


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-8, atol=1e-8)


def check(row: Row, out: Any, inputs: Any, gradients: dict[str, Any], model: Any) -> None:
    """Compare with the figures of torch."""
    stored = STORED[row.name]
    for found, expected in zip(leaves(out), stored["out"], strict=True):
        close(found, expected)
    for found, expected in zip(inputs, stored["inputs"], strict=True):
        close(found, expected)
    assert set(stored["gradients"]) <= set(gradients)
    for path, expected in stored["gradients"].items():
        close(gradients[path], expected)
    assert list(model.state_dict()) == list(stored["state"])
    for path, expected in stored["state"].items():
        close(model.state_dict()[path], expected)


def differentiated(row: Row, model: Any, compiled: bool) -> tuple[Any, Any, Any]:
    """Results, and gradients of inputs and parameters, by `nn.value_and_grad`."""

    def loss(model: Any, *xs: Any) -> Any:
        out = row.forward(nn, model, *xs)
        return total(out, np.sin), out

    f = nn.value_and_grad(loss, argnums=tuple(range(1 + len(row.inputs))), has_aux=True)
    (_, out), (gradients, *inputs) = (nn.jit(f) if compiled else f)(model, *row.arrays())
    return out, inputs, gradients


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_equals_torch(row: Row) -> None:
    model = row.build(nn)
    copied = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    check(row, *differentiated(row, model, compiled=False), model)
    check(row, *differentiated(row, copied, compiled=row.compiled or tables.whole), copied)
    recorded = row.build(nn)
    inputs = [ft.autograd.tensor(x, requires_grad=True) for x in row.arrays()]
    out = row.forward(nn, recorded, *inputs)
    total(out, np.sin).backward()
    gradients = {path: p.grad.numpy() for path, p in recorded.named_parameters() if p.grad is not None}
    check(row, [x.detach() if hasattr(x, "detach") else x for x in leaves(out)], [x.grad.numpy() for x in inputs],
          gradients, recorded)  # fmt: skip


# Packed sequences


def packed_loss(model: Any, x: Any, lengths: Any) -> Any:
    out, _ = model(rnn.pack_padded_sequence(x, lengths, enforce_sorted=False))
    return (rnn.pad_packed_sequence(out)[0] ** 2).sum()


def test_lengths_as_arguments_need_one_program() -> None:
    model, traced = nn.GRU(2, 3, bidirectional=True), []
    x = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)

    def loss(model: Any, x: Any, lengths: Any) -> Any:
        traced.append(lengths)
        return packed_loss(model, x, lengths)

    step = nn.jit(nn.value_and_grad(loss))
    for lengths in (LENGTHS, [4, 4, 4], [1, 2, 3]):
        value, gradients = step(model, x, np.array(lengths))
        expected, others = nn.value_and_grad(packed_loss)(model, x, lengths)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        for path, g in others.items():
            np.testing.assert_allclose(gradients[path], g, rtol=1e-4, atol=1e-5)
    assert len(traced) == 1
    each = nn.vmap(packed_loss, in_axes=(None, None, 0))(model, x, np.array([LENGTHS, [1, 2, 3]]))
    np.testing.assert_allclose(each[0], packed_loss(model, x, LENGTHS), rtol=1e-5)


def test_packed_sequences_as_arguments_and_results() -> None:
    x = np.random.default_rng(0).normal(size=(4, 3, 2))
    packed = rnn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    doubled = nn.jit(lambda p: p._replace(data=2 * p.data))(packed)
    np.testing.assert_array_equal(doubled.data, 2 * packed.data)
    assert doubled.sorted_indices.tolist() == packed.sorted_indices.tolist()
    gradient = ft.grad(lambda p: (p.data**2).sum())(packed)
    np.testing.assert_array_equal(gradient.data, 2 * packed.data)
    # When the function that traced the lengths has returned, they are known.
    returned = nn.jit(lambda x, n: rnn.pack_padded_sequence(x, n, enforce_sorted=False))(x, np.array(LENGTHS))
    for a, b in zip(returned, packed, strict=True):
        np.testing.assert_array_equal(a, b)
    assert packed.float().data.dtype == np.float32
    again = pickle.loads(pickle.dumps(packed))
    np.testing.assert_array_equal(again.data, packed.data)
    assert repr(again).startswith("PackedSequence(data=")


def test_padding_has_no_influence() -> None:
    """Whatever the padding holds."""
    model = nn.LSTM(2, 3, num_layers=2, bidirectional=True)
    x = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)
    expected = nn.value_and_grad(packed_loss, argnums=(0, 1))(model, x, LENGTHS)
    for i, length in enumerate(LENGTHS):
        x[length:, i] = np.nan
    for given in (LENGTHS, np.array(LENGTHS)):
        f = nn.value_and_grad(packed_loss, argnums=(0, 1))
        found = (nn.jit(f) if given is not LENGTHS else f)(model, x, given)
        for a, b in zip(ft.base.tree.flatten(found)[0], ft.base.tree.flatten(expected)[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


X = np.ones((4, 3, 2), np.float32)
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: rnn.pack_padded_sequence(X, [2, 4, 1]), ValueError, "enforce_sorted=False"),
    (lambda: rnn.pack_padded_sequence(X, [5, 1, 1]), ValueError, r"from 1 to the 4 steps .* not \[5, 1, 1\]"),
    (lambda: rnn.pack_padded_sequence(X, [4, 1, 0]), ValueError, "leave out empty sequences"),
    (lambda: rnn.pack_padded_sequence(X, [4, 1]), ValueError, "3 integers, one for each sequence"),
    (lambda: rnn.pack_padded_sequence(X, [4.0, 1.0, 1.0]), ValueError, r"not f64\[3\]"),
    (lambda: rnn.pack_padded_sequence(X[0, 0], [1]), ValueError, r"\(T, N, ...\), not f32\[2\]"),
    (lambda: rnn.pad_packed_sequence(X), TypeError, "takes a PackedSequence"),
    (lambda: rnn.pad_packed_sequence(rnn.pack_padded_sequence(X, [4, 1, 1]), total_length=3), ValueError, "at least"),
    (lambda: rnn.pad_sequence([]), ValueError, "an empty list"),
    (lambda: rnn.pad_sequence([X, X[0]]), ValueError, "differ in axis 0 only"),
    (lambda: rnn.pad_sequence([X], padding_side="top"), ValueError, "'left' or 'right', not 'top'"),
    (lambda: rnn.PackedSequence(X, [1, 2]), ValueError, r"\[1, 2\] for f32\[4,3,2\]"),
    (lambda: nn.GRU(3, 4)(rnn.pack_padded_sequence(X, [4, 1, 1])), ValueError, "last axis has 3 elements"),
    (lambda: nn.functional.gru(X, None, [(X[0], X[0, :, :1])], lengths=[1, 2, 9]), ValueError, "from 1 to T=4"),
    (lambda: ft.jit(lambda n: rnn.pack_padded_sequence(X, n).data)(np.array([4, 1, 1])), TypeError, "compute with the"),
    (lambda: ft.jit(lambda n: rnn.unpad_sequence(X, n))(np.array([4, 1, 1])), TypeError, "a mask"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "error", "message"), REFUSED)
def test_refused(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        f()
    assert __file__ in str(caught.value)
