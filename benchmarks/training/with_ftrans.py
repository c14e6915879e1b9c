"""The models and their steps in ftrans.nn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optax

from ftrans import nn
from ftrans.nn import functional as F

from . import shapes as s


class MLP(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(s.PIXELS, s.HIDDEN)
        self.second = nn.Linear(s.HIDDEN, s.HIDDEN)
        self.last = nn.Linear(s.HIDDEN, s.CLASSES)

    def forward(self, x: Any) -> Any:
        return self.last(F.relu(self.second(F.relu(self.first(x)))))


class CNN(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Conv2d(1, s.CHANNELS[0], 3, padding=1)
        self.second = nn.Conv2d(s.CHANNELS[0], s.CHANNELS[1], 3, padding=1)
        self.last = nn.Linear(s.CHANNELS[1] * (s.IMAGE // 4) ** 2, s.CLASSES)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.first(x)), 2)
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        return self.last(x.reshape(len(x), -1))


class Block(nn.Module):
    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(s.WIDTH), nn.LayerNorm(s.WIDTH)
        self.qkv, self.out = nn.Linear(s.WIDTH, 3 * s.WIDTH), nn.Linear(s.WIDTH, s.WIDTH)
        self.up, self.down = nn.Linear(s.WIDTH, 4 * s.WIDTH), nn.Linear(4 * s.WIDTH, s.WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        heads = self.qkv(self.norm1(x)).reshape(batch, length, 3, s.HEADS, width // s.HEADS)
        q, k, v = np.moveaxis(heads, (2, 3), (0, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(np.moveaxis(mixed, 1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self) -> None:
        self.tokens = nn.Embedding(s.VOCABULARY, s.WIDTH)
        self.places = nn.Embedding(s.LENGTH, s.WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(s.LAYERS)))
        self.norm = nn.LayerNorm(s.WIDTH)
        self.head = nn.Linear(s.WIDTH, s.VOCABULARY, bias=False)

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places(np.arange(x.shape[1])))))


class LSTM(nn.Module):
    def __init__(self) -> None:
        self.lstm = nn.LSTM(s.FEATURES, s.STATES, batch_first=True)
        self.last = nn.Linear(s.STATES, s.CLASSES)

    def forward(self, x: Any) -> Any:
        return self.last(self.lstm(x)[0][:, -1])


MODELS = {"mlp": MLP, "cnn": CNN, "gpt": GPT, "lstm": LSTM}


def loss(model: Any, x: Any, y: Any) -> Any:
    logits = model(x)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def trainer(name: str) -> Callable[[], float]:
    """A function that takes one step of training and returns the loss."""
    model = MODELS[name]()
    optimizer = nn.Optimizer(model, optax.adam(s.LEARNING_RATE))
    x, y = s.batch(name)

    @nn.jit(donate_argnums=(0, 1))
    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        value, gradients = nn.value_and_grad(loss)(model, x, y)
        optimizer.step(gradients)
        return value

    return lambda: float(step(model, optimizer, x, y))


class Sum(nn.Module):
    """A sum of elementwise products, which costs next to nothing but the handling of its parameters."""

    def __init__(self, count: int) -> None:
        self.factors = nn.ParameterList([np.ones(4, np.float32) for _ in range(count)])

    def forward(self, x: Any) -> Any:
        total = x
        for factor in self.factors:
            total = total + x * factor
        return total


def chain(count: int) -> Callable[[], float]:
    """A step of a model with so many parameter arrays."""
    model = Sum(count)
    optimizer = nn.Optimizer(model, optax.sgd(s.LEARNING_RATE))
    x = np.ones((2, 4), np.float32)

    @nn.jit(donate_argnums=(0, 1))
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        value, gradients = nn.value_and_grad(lambda model, x: (model(x) ** 2).mean())(model, x)
        optimizer.step(gradients)
        return value

    return lambda: float(step(model, optimizer, x))


def build_gpt() -> Any:
    return GPT()


def retraces(steps: int) -> int:
    """How often a step is traced that is called so many times, in training and in evaluation by turns."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 1))
    x = np.ones((2, 4), np.float32)
    traces = 0

    @nn.jit
    def step(model: Any, x: Any) -> Any:
        nonlocal traces
        traces += 1
        return model(x).sum()

    for i in range(steps):
        model.train(i % 2 == 0)
        step(model, x)
    return traces
