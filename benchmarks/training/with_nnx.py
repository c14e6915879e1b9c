"""The models and their steps in flax.nnx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from . import shapes as s


class MLP(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(s.PIXELS, s.HIDDEN, rngs=rngs)
        self.second = nnx.Linear(s.HIDDEN, s.HIDDEN, rngs=rngs)
        self.last = nnx.Linear(s.HIDDEN, s.CLASSES, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(nnx.relu(self.second(nnx.relu(self.first(x)))))


class CNN(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        first, second = s.CHANNELS
        self.first = nnx.Conv(1, first, (3, 3), rngs=rngs)
        self.second = nnx.Conv(first, second, (3, 3), rngs=rngs)
        self.last = nnx.Linear(second * (s.IMAGE // 4) ** 2, s.CLASSES, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = jnp.moveaxis(x, 1, -1)
        for layer in (self.first, self.second):
            x = nnx.max_pool(nnx.relu(layer(x)), (2, 2), (2, 2))
        return self.last(x.reshape(len(x), -1))


class Block(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm1, self.norm2 = nnx.LayerNorm(s.WIDTH, rngs=rngs), nnx.LayerNorm(s.WIDTH, rngs=rngs)
        self.qkv = nnx.Linear(s.WIDTH, 3 * s.WIDTH, rngs=rngs)
        self.out = nnx.Linear(s.WIDTH, s.WIDTH, rngs=rngs)
        self.up = nnx.Linear(s.WIDTH, 4 * s.WIDTH, rngs=rngs)
        self.down = nnx.Linear(4 * s.WIDTH, s.WIDTH, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, length, 3, s.HEADS, width // s.HEADS)
        mixed = jax.nn.dot_product_attention(*jnp.moveaxis(qkv, 2, 0), is_causal=True)
        x = x + self.out(mixed.reshape(batch, length, width))
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class GPT(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.tokens = nnx.Embed(s.VOCABULARY, s.WIDTH, rngs=rngs)
        self.places = nnx.Embed(s.LENGTH, s.WIDTH, rngs=rngs)
        self.blocks = nnx.Sequential(*(Block(rngs) for _ in range(s.LAYERS)))
        self.norm = nnx.LayerNorm(s.WIDTH, rngs=rngs)
        self.head = nnx.Linear(s.WIDTH, s.VOCABULARY, use_bias=False, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places(jnp.arange(x.shape[1])))))


class LSTM(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.lstm = nnx.RNN(nnx.OptimizedLSTMCell(s.FEATURES, s.STATES, rngs=rngs))
        self.last = nnx.Linear(s.STATES, s.CLASSES, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(self.lstm(x)[:, -1])


class Sum(nnx.Module):
    def __init__(self, count: int) -> None:
        for i in range(count):
            setattr(self, f"factor{i}", nnx.Param(jnp.ones(4)))
        self.count = count

    def __call__(self, x: Any) -> Any:
        total = x
        for i in range(self.count):
            total = total + x * getattr(self, f"factor{i}")[...]
        return total


MODELS: dict[str, Any] = {"mlp": MLP, "cnn": CNN, "gpt": GPT, "lstm": LSTM}


def stepper(model: Any, value: Callable[..., Any], transformation: Any, batch: Any) -> Callable[[], float]:
    """A function that takes one step of training and returns the loss."""
    optimizer = nnx.Optimizer(model, transformation, wrt=nnx.Param)

    @nnx.jit
    def step(model: Any, optimizer: Any, *batch: Any) -> Any:
        loss, gradients = nnx.value_and_grad(value)(model, *batch)
        optimizer.update(model, gradients)
        return loss

    return lambda: float(step(model, optimizer, *batch))


def trainer(name: str) -> Callable[[], float]:
    def loss(model: Any, x: Any, y: Any) -> Any:
        logits = model(x)
        flat = logits.reshape(-1, logits.shape[-1])
        return optax.softmax_cross_entropy_with_integer_labels(flat, y.reshape(-1)).mean()

    return stepper(MODELS[name](nnx.Rngs(0)), loss, optax.adam(s.LEARNING_RATE), s.batch(name))


def chain(count: int) -> Callable[[], float]:
    batch = (np.ones((2, 4), np.float32),)
    return stepper(Sum(count), lambda model, x: (model(x) ** 2).mean(), optax.sgd(s.LEARNING_RATE), batch)


def build_gpt() -> Any:
    return GPT(nnx.Rngs(0))
