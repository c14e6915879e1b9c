"""The models and their steps in jax and optax alone: functions of dictionaries of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from . import shapes as s
from .images_with_jax import gan_trainer, unet_trainer

__all__ = ["build_gpt", "chain", "gan_trainer", "trainer", "unet_trainer"]

Parameters = dict[str, Any]


def weights(rng: np.random.Generator, *shape: int, fan: int) -> Any:
    bound = 1 / np.sqrt(fan)
    return jnp.asarray(rng.uniform(-bound, bound, shape).astype(np.float32))


def dense(rng: np.random.Generator, name: str, inputs: int, outputs: int, bias: bool = True) -> Parameters:
    made = {f"{name}.w": weights(rng, inputs, outputs, fan=inputs)}
    return {**made, f"{name}.b": weights(rng, outputs, fan=inputs)} if bias else made


def mlp(rng: np.random.Generator) -> Parameters:
    return {
        **dense(rng, "first", s.PIXELS, s.HIDDEN),
        **dense(rng, "second", s.HIDDEN, s.HIDDEN),
        **dense(rng, "last", s.HIDDEN, s.CLASSES),
    }


def linear(p: Parameters, name: str, x: Any) -> Any:
    return x @ p[f"{name}.w"] + p[f"{name}.b"]


def run_mlp(p: Parameters, x: Any) -> Any:
    return linear(p, "last", jax.nn.relu(linear(p, "second", jax.nn.relu(linear(p, "first", x)))))


def cnn(rng: np.random.Generator) -> Parameters:
    first, second = s.CHANNELS
    return {
        "first.w": weights(rng, first, 1, 3, 3, fan=9),
        "first.b": weights(rng, first, fan=9),
        "second.w": weights(rng, second, first, 3, 3, fan=9 * first),
        "second.b": weights(rng, second, fan=9 * first),
        **dense(rng, "last", second * (s.IMAGE // 4) ** 2, s.CLASSES),
    }


def run_cnn(p: Parameters, x: Any) -> Any:
    for name in ("first", "second"):
        x = jax.lax.conv_general_dilated(x, p[f"{name}.w"], (1, 1), "SAME") + p[f"{name}.b"][:, None, None]
        x = jax.lax.reduce_window(jax.nn.relu(x), -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return linear(p, "last", x.reshape(len(x), -1))


def gpt(rng: np.random.Generator) -> Parameters:
    made: Parameters = {
        "tokens": jnp.asarray(rng.normal(size=(s.VOCABULARY, s.WIDTH)).astype(np.float32)),
        "places": jnp.asarray(rng.normal(size=(s.LENGTH, s.WIDTH)).astype(np.float32)),
        "norm.w": jnp.ones(s.WIDTH),
        "norm.b": jnp.zeros(s.WIDTH),
        **dense(rng, "head", s.WIDTH, s.VOCABULARY, bias=False),
    }
    for i in range(s.LAYERS):
        for norm in ("norm1", "norm2"):
            made |= {f"{i}.{norm}.w": jnp.ones(s.WIDTH), f"{i}.{norm}.b": jnp.zeros(s.WIDTH)}
        made |= dense(rng, f"{i}.qkv", s.WIDTH, 3 * s.WIDTH) | dense(rng, f"{i}.out", s.WIDTH, s.WIDTH)
        made |= dense(rng, f"{i}.up", s.WIDTH, 4 * s.WIDTH) | dense(rng, f"{i}.down", 4 * s.WIDTH, s.WIDTH)
    return made


def layer_norm(p: Parameters, name: str, x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p[f"{name}.w"] + p[f"{name}.b"]


def run_gpt(p: Parameters, x: Any) -> Any:
    batch, length = x.shape
    x = p["tokens"][x] + p["places"][:length]
    for i in range(s.LAYERS):
        qkv = linear(p, f"{i}.qkv", layer_norm(p, f"{i}.norm1", x))
        q, k, v = jnp.moveaxis(qkv.reshape(batch, length, 3, s.HEADS, s.WIDTH // s.HEADS), 2, 0)
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(p, f"{i}.out", mixed.reshape(batch, length, s.WIDTH))
        x = x + linear(p, f"{i}.down", jax.nn.gelu(linear(p, f"{i}.up", layer_norm(p, f"{i}.norm2", x))))
    return layer_norm(p, "norm", x) @ p["head.w"]


def lstm(rng: np.random.Generator) -> Parameters:
    return {
        "inputs": weights(rng, s.FEATURES, 4 * s.STATES, fan=s.STATES),
        "states": weights(rng, s.STATES, 4 * s.STATES, fan=s.STATES),
        "bias": weights(rng, 4 * s.STATES, fan=s.STATES),
        **dense(rng, "last", s.STATES, s.CLASSES),
    }


def run_lstm(p: Parameters, x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        h, c = carry
        i, f, g, o = jnp.split(row + h @ p["states"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    rows = jnp.swapaxes(x @ p["inputs"] + p["bias"], 0, 1)
    start = jnp.zeros((len(x), s.STATES))
    (h, _), _ = jax.lax.scan(step, (start, start), rows)
    return linear(p, "last", h)


MODELS: dict[str, tuple[Callable[..., Parameters], Callable[..., Any]]] = {
    "mlp": (mlp, run_mlp),
    "cnn": (cnn, run_cnn),
    "gpt": (gpt, run_gpt),
    "lstm": (lstm, run_lstm),
}


def stepper(value: Callable[..., Any], transformation: Any, parameters: Parameters, batch: Any) -> Callable[[], float]:
    """A function that takes one step of training and returns the loss."""

    def step(parameters: Any, state: Any, *batch: Any) -> Any:
        loss, gradients = jax.value_and_grad(value)(parameters, *batch)
        updates, state = transformation.update(gradients, state, parameters)
        return loss, optax.apply_updates(parameters, updates), state

    compiled = jax.jit(step, donate_argnums=(0, 1))
    state = transformation.init(parameters)

    def call() -> float:
        nonlocal parameters, state
        loss, parameters, state = compiled(parameters, state, *batch)
        return float(loss)

    return call


def trainer(name: str) -> Callable[[], float]:
    make, run = MODELS[name]

    def loss(p: Parameters, x: Any, y: Any) -> Any:
        logits = run(p, x)
        flat = logits.reshape(-1, logits.shape[-1])
        return optax.softmax_cross_entropy_with_integer_labels(flat, y.reshape(-1)).mean()

    return stepper(loss, optax.adam(s.LEARNING_RATE), make(np.random.default_rng(0)), s.batch(name))


def chain(count: int) -> Callable[[], float]:
    def loss(p: Parameters, x: Any) -> Any:
        total = x
        for factor in p.values():
            total = total + x * factor
        return (total**2).mean()

    parameters = {f"factors.{i}": jnp.ones(4) for i in range(count)}
    return stepper(loss, optax.sgd(s.LEARNING_RATE), parameters, (np.ones((2, 4), np.float32),))


def build_gpt() -> Any:
    return gpt(np.random.default_rng(0))
