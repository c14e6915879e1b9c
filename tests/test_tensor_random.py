"""Random numbers as programs of torch draw them: one seed for all, tensors that are filled, functions without a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans import autograd, nn
from ftrans.nn import functional as F

COUNT = 4000
# Methods that fill a tensor, with the mean and the standard deviation of what they draw.
DRAWS: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "uniform_": (lambda x: x.uniform_(-1, 3), 1, 4 / 12**0.5),
    "normal_": (lambda x: x.normal_(2, std=3), 2, 3),
    "log_normal_": (lambda x: x.log_normal_(0, 0.5), np.exp(0.125), np.exp(0.125) * np.expm1(0.25) ** 0.5),
    "exponential_": (lambda x: x.exponential_(4), 0.25, 0.25),
    "cauchy_": (lambda x: x.cauchy_(3, 0.5).atan_(), np.nan, np.nan),
    "geometric_": (lambda x: x.geometric_(0.25), 4, 12**0.5),
    "bernoulli_": (lambda x: x.bernoulli_(0.3), 0.3, 0.21**0.5),
    "bernoulli_ of an array": (lambda x: x.bernoulli_(autograd.full_like(x, 0.3)), 0.3, 0.21**0.5),
    "random_": (lambda x: x.random_(2, 7), 4, 2**0.5),
    "random_ from 0": (lambda x: x.random_(5), 2, 2**0.5),
    "random_ of a dtype": (lambda x: x.random_() / 2**24, 0.5, 12**-0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_tensors_are_filled(name: str) -> None:
    fill, mean, deviation = DRAWS[name]
    autograd.manual_seed(0)
    x = autograd.zeros(COUNT, dtype=np.float32)
    drawn = fill(x)
    assert drawn.dtype == np.float32
    if name == "cauchy_":
        assert abs(np.median(np.tan(drawn)) - 3) < 0.1
    else:
        assert abs(drawn.mean() - mean) < 5 * deviation / COUNT**0.5
        assert abs(np.std(drawn) / deviation - 1) < 0.15
    if drawn is x:
        assert (x.numpy() == drawn.numpy()).all()


def test_integers_fill_their_dtype() -> None:
    for dtype in (np.int8, np.uint8, np.int64):
        drawn = autograd.zeros(500, dtype=dtype).random_(generator=np.random.default_rng(0)).numpy()
        assert 0 <= drawn.min() < drawn.max() / 50
        assert drawn.max() > 0.98 * np.iinfo(dtype).max


def test_what_is_overwritten_has_no_gradient() -> None:
    x = autograd.ones(4, requires_grad=True)
    y = 2 * x
    y[:2].normal_(generator=np.random.default_rng(0))
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 2, 2]
    with pytest.raises(RuntimeError, match=r"changes a leaf (.*\n)*.*under no_grad"):
        x.uniform_()


def test_parameters_are_filled_through_data() -> None:
    layer = nn.Linear(50, 50)
    layer.weight.data.uniform_(5, 6)
    with autograd.no_grad():
        layer.bias.normal_(-9, 0.1)
    assert layer.weight.value.min() >= 5
    assert layer.bias.value.max() < -8
    assert layer.weight.requires_grad


def test_one_seed_is_for_all() -> None:
    def drawn() -> list[Any]:
        layer, x = nn.Linear(3, 3), autograd.ones(64)
        loader = nn.data.DataLoader(range(10), batch_size=10, shuffle=True)
        sample = nn.distributions.Normal(0.0, 1.0).sample((2,))
        found = [layer.weight.value, autograd.randn(3), F.dropout(x), nn.Dropout()(x), *loader, sample]
        return [np.asarray(x).tolist() for x in found]

    for seed in (autograd.manual_seed, nn.manual_seed):
        seed(3)
        first = drawn()
        assert first != drawn()
        seed(3)
        assert first == drawn()
    assert autograd.default_generator() is nn.generator()


# Functions that need a key where they are transformed or compiled.
WITHOUT_A_KEY: dict[str, Callable[[Any], Any]] = {
    "dropout": F.dropout,
    "alpha_dropout": lambda x: F.alpha_dropout(x, training=True),
    "dropout2d": F.dropout2d,
    "rrelu": lambda x: F.rrelu(-x, training=True),
    "gumbel_softmax": F.gumbel_softmax,
    "fractional_max_pool2d": lambda x: F.fractional_max_pool2d(x + np.arange(25.0).reshape(5, 5), 2, 3),
    "scaled_dot_product_attention": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
}


@pytest.mark.parametrize("name", WITHOUT_A_KEY)
def test_functions_draw_a_key_where_nothing_is_compiled(name: str) -> None:
    f, x = WITHOUT_A_KEY[name], np.ones((2, 3, 5, 5))
    results = []
    for seed in (0, 0, 1):
        nn.manual_seed(seed)
        results.append(np.asarray(f(x)))
    assert (results[0] == results[1]).all()
    assert (results[0] != results[2]).any()
    nn.manual_seed(0)
    t = autograd.tensor(x, requires_grad=True)
    y = f(t)
    assert (y.detach().numpy() == results[0]).all()
    y.sum().backward()
    assert t.grad.shape == x.shape
    for transformed in (ft.jit(f), ft.grad(lambda x: f(x).sum()), ft.vmap(f)):
        with pytest.raises(TypeError, match=rf"{name} needs rng in a function that is .* write rng=self.rng"):
            transformed(x)
