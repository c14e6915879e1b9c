"""What functions and layers say of arguments that do not fit: what was given, where, and what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ftrans as ft
import ftrans.nn.functional as F
from ftrans import nn
from ftrans.nn import torch_hints

NAMES: dict[str, Any] = {"F": F, "ft": ft, "nn": nn, "np": np, "key": nn.random.key(0)}
IMAGE, PLACES = np.ones((1, 2, 4, 5)), np.zeros((1, 2, 4, 5), np.int64)

# A call of the arrays x (an image) and i (indices of the same shape), and words of the message.
ROWS: list[tuple[str, str]] = [
    # Pooling
    ("F.lp_pool2d(x, 0, 2)", "norm_type of lp_pool2d must be a number other than 0"),
    ("F.lp_pool2d(x, x, 2)", r"norm_type .* not f64\[1,2,4,5\]"),
    ("F.lp_pool1d(x, 2, 2)", "lp_pool1d takes input with the axes"),
    ("F.max_unpool2d(x, i[0], 2)", r"indices are i64\[2,4,5\]; max_pool2d\(..., return_indices=True\)"),
    ("F.max_unpool2d(x, x, 2)", r"indices of max_unpool2d must be integers, .*astype\(np.int64\)"),
    ("F.max_unpool2d(x, i + 80, 2)", r"indices\[0, 0, 0, 0\] of max_unpool2d is 80, but must be from 0 to 79"),
    ("F.max_unpool2d(x, i, 2, output_size=(8, 12))", r"output_size of max_unpool2d .* from \(7, 9\) to \(9, 11\)"),
    ("ft.grad(lambda x: F.fractional_max_pool2d(x, 2, 3).sum())(x)", "fractional_max_pool2d needs rng"),
    ("F.fractional_max_pool2d(x, 2, rng=key)", "either output_size or output_ratio"),
    ("F.fractional_max_pool2d(x, 2, output_ratio=2.0, rng=key)", "between 0 and 1, one number or 2, not 2.0"),
    ("F.fractional_max_pool2d(x, 2, 4, rng=key)", r"can have sizes from 1 to \(3, 4\), not \(4, 4\)"),
    ("F.fractional_max_pool2d(x, 2, 2, _random_samples=x)", r"_random_samples .* of shape \(1, 2, 2\)"),
    ("nn.FractionalMaxPool2d(2)", "either output_size or output_ratio"),
    # Images
    ("F.channel_shuffle(x, 3)", "channels in multiples of groups=3"),
    ("F.interpolate(x, 2, antialias=True)", "antialias of interpolate applies to the modes"),
    ("F.affine_grid(x, (1, 2, 3, 4))", r"affine_grid takes theta \(N, 2, 3\)"),
    ("F.grid_sample(x, x)", r"grid_sample takes input \(N, C, H, W\) with grid"),
    ("F.grid_sample(x, np.ones((1, 3, 3, 2)), 'linear')", "mode of grid_sample must be one of 'bilinear'"),
    ("F.grid_sample(x, np.ones((1, 3, 3, 2)), padding_mode='wrap')", "padding_mode of grid_sample must be one of"),
    # Tables
    ("F.embedding_bag(i[0, 0, 0], x[0, 0])", "without offsets"),
    ("F.embedding_bag(i[0, 0], x[0, 0], i[0, 0, 0])", "with offsets"),
    (
        "F.embedding_bag(i[0, 0], x[0, 0], mode='min')",
        "mode of embedding_bag must be 'mean', 'sum' or 'max', not 'min'",
    ),
    ("F.embedding_bag(i[0, 0], x[0, 0], per_sample_weights=x[0, 0])", "need mode='sum', not 'mean'"),
    ("F.embedding_bag(i[0, 0], x[0, 0], mode='sum', per_sample_weights=x)", "must have the shape of input"),
    ("F.embedding_bag(i[0, 0] + 4, x[0, 0])", r"input\[0, 0\] of embedding_bag is 4, but must be from 0 to 3"),
    ("nn.EmbeddingBag(3, 2, mode='min')", "mode of EmbeddingBag"),
    ("nn.EmbeddingBag(3, 2, padding_idx=3)", "out of range for the 3 vectors of EmbeddingBag"),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 9, [5, 5])", "cutoffs .* must increase from at least 1 to at most 8"),
    ("nn.AdaptiveLogSoftmaxWithLoss(5, 9, [5])(x[0, 0], i[0, 0])", r"takes input \(N, in_features\) and target"),
    ("nn.ConvTranspose2d(1, 1, 2, padding_mode='reflect')", "padding_mode of ConvTranspose2d can be 'zeros' only"),
    # Attention
    ("F.rotary_embedding(x)", r"rotates an even number of the E elements, not 5 of f64\[1,2,4,5\]"),
    ("F.rotary_embedding(x[..., :4], np.arange(3))", r"must broadcast to \(1, 2, 4\), not i64\[3\]"),
    ("F.lstm(x[0], None, [(x, x, x)])", "weight_hr of lstm must be"),
    ("F.lstm(x[0], None, [(x,)])", r"and weight_hr behind them if states are projected"),
    # Names of torch
    ("nn.DataParallel(x)", r"has no attribute 'DataParallel'; write nn.data_parallel\(model\)"),
    ("F.relu_(x)", r"no attribute 'relu_'; write x = F.relu\(x\)"),
    ("F.max_pool2d_with_indices(x, 2)", r"write F.max_pool2d\(x, ..., return_indices=True\)"),
    # Losses
    ("F.triplet_margin_with_distance_loss(x, x, x, margin=0)", "margin of triplet_margin_with_distance_loss"),
]


@pytest.mark.parametrize(("text", "words"), ROWS, ids=[text for text, _ in ROWS])
def test_calls(text: str, words: str) -> None:
    call = eval(compile(f"lambda x, i: {text}", __file__, "eval"), NAMES)
    with pytest.raises((ValueError, TypeError, IndexError, AttributeError), match=words) as caught:
        call(IMAGE, PLACES)
    assert "test_nn_refusals.py" in str(caught.value)


@pytest.mark.parametrize("module", torch_hints.INSTEAD)
def test_names_of_torch_that_are_missing_say_what_to_write(module: str) -> None:
    home = eval(module, NAMES)
    for name, instead in torch_hints.INSTEAD[module].items():
        with pytest.raises(AttributeError) as error:
            getattr(home, name)
        assert f"; write {instead}\n" in str(error.value)


def test_functions_of_torch_that_numpy_has_are_named() -> None:
    for name, instead in (("isin", "np.isin"), ("celu", "nn.functional.celu"), ("var_mean", r"x\.var\(dim")):
        with pytest.raises(AttributeError, match=f"write {instead}"):
            getattr(ft.autograd, name)
