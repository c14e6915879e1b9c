"""The models and their steps in equinox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from . import shapes as s


class MLP(eqx.Module):
    layers: list[Any]

    def __init__(self, key: Any) -> None:
        sizes = (s.PIXELS, s.HIDDEN, s.HIDDEN, s.CLASSES)
        keys = jax.random.split(key, 3)
        self.layers = [eqx.nn.Linear(a, b, key=k) for a, b, k in zip(sizes, sizes[1:], keys, strict=False)]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


class CNN(eqx.Module):
    layers: list[Any]

    def __init__(self, key: Any) -> None:
        first, second = s.CHANNELS
        keys = jax.random.split(key, 3)
        self.layers = [
            eqx.nn.Conv2d(1, first, 3, padding=1, key=keys[0]),
            eqx.nn.Conv2d(first, second, 3, padding=1, key=keys[1]),
            eqx.nn.Linear(second * (s.IMAGE // 4) ** 2, s.CLASSES, key=keys[2]),
        ]

    def __call__(self, x: Any) -> Any:
        pool = eqx.nn.MaxPool2d(2, 2)
        for layer in self.layers[:-1]:
            x = pool(jax.nn.relu(layer(x)))
        return self.layers[-1](x.reshape(-1))


class Block(eqx.Module):
    norms: list[Any]
    layers: list[Any]

    def __init__(self, key: Any) -> None:
        keys = jax.random.split(key, 4)
        sizes = ((s.WIDTH, 3 * s.WIDTH), (s.WIDTH, s.WIDTH), (s.WIDTH, 4 * s.WIDTH), (4 * s.WIDTH, s.WIDTH))
        self.norms = [eqx.nn.LayerNorm(s.WIDTH) for _ in range(2)]
        self.layers = [eqx.nn.Linear(a, b, key=k) for (a, b), k in zip(sizes, keys, strict=True)]

    def __call__(self, x: Any) -> Any:
        qkv, out, up, down = map(jax.vmap, self.layers)
        first, second = map(jax.vmap, self.norms)
        heads = qkv(first(x)).reshape(len(x), 3, s.HEADS, s.WIDTH // s.HEADS)
        mixed = jax.nn.dot_product_attention(*jnp.moveaxis(heads, 1, 0), is_causal=True)
        x = x + out(mixed.reshape(len(x), s.WIDTH))
        return x + down(jax.nn.gelu(up(second(x))))


class GPT(eqx.Module):
    tokens: Any
    places: Any
    blocks: list[Any]
    norm: Any
    head: Any

    def __init__(self, key: Any) -> None:
        keys = jax.random.split(key, s.LAYERS + 3)
        self.tokens = eqx.nn.Embedding(s.VOCABULARY, s.WIDTH, key=keys[0])
        self.places = eqx.nn.Embedding(s.LENGTH, s.WIDTH, key=keys[1])
        self.head = eqx.nn.Linear(s.WIDTH, s.VOCABULARY, use_bias=False, key=keys[2])
        self.blocks = [Block(k) for k in keys[3:]]
        self.norm = eqx.nn.LayerNorm(s.WIDTH)

    def __call__(self, x: Any) -> Any:
        x = jax.vmap(self.tokens)(x) + jax.vmap(self.places)(jnp.arange(len(x)))
        for block in self.blocks:
            x = block(x)
        return jax.vmap(self.head)(jax.vmap(self.norm)(x))


class LSTM(eqx.Module):
    cell: Any
    last: Any

    def __init__(self, key: Any) -> None:
        first, second = jax.random.split(key)
        self.cell = eqx.nn.LSTMCell(s.FEATURES, s.STATES, key=first)
        self.last = eqx.nn.Linear(s.STATES, s.CLASSES, key=second)

    def __call__(self, x: Any) -> Any:
        start = (jnp.zeros(s.STATES), jnp.zeros(s.STATES))
        (h, _), _ = jax.lax.scan(lambda carry, row: (self.cell(row, carry), None), start, x)
        return self.last(h)


class Sum(eqx.Module):
    factors: list[Any]

    def __call__(self, x: Any) -> Any:
        total = x
        for factor in self.factors:
            total = total + x * factor
        return total


MODELS: dict[str, Any] = {"mlp": MLP, "cnn": CNN, "gpt": GPT, "lstm": LSTM}


def stepper(model: Any, value: Callable[..., Any], transformation: Any, batch: Any) -> Callable[[], float]:
    """A function that takes one step of training and returns the loss."""
    state = transformation.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit(donate="all-except-first")
    def step(batch: Any, model: Any, state: Any) -> Any:
        loss, gradients = eqx.filter_value_and_grad(value)(model, *batch)
        updates, state = transformation.update(gradients, state, model)
        return loss, eqx.apply_updates(model, updates), state

    def call() -> float:
        nonlocal model, state
        loss, model, state = step(batch, model, state)
        return float(loss)

    return call


def trainer(name: str) -> Callable[[], float]:
    def loss(model: Any, x: Any, y: Any) -> Any:
        logits = jax.vmap(model)(x)
        flat = logits.reshape(-1, logits.shape[-1])
        return optax.softmax_cross_entropy_with_integer_labels(flat, y.reshape(-1)).mean()

    return stepper(MODELS[name](jax.random.key(0)), loss, optax.adam(s.LEARNING_RATE), s.batch(name))


def chain(count: int) -> Callable[[], float]:
    batch = (np.ones((2, 4), np.float32),)
    model = Sum([jnp.ones(4) for _ in range(count)])
    return stepper(model, lambda model, x: (model(x) ** 2).mean(), optax.sgd(s.LEARNING_RATE), batch)


def build_gpt() -> Any:
    return GPT(jax.random.key(0))
