"""The DCGAN and the U-Net in jax and optax alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from . import shapes as s

Parameters = dict[str, Any]
MOMENTUM = 0.1


def kernel(rng: np.random.Generator, *shape: int) -> Any:
    return jnp.asarray(rng.normal(scale=0.05, size=shape).astype(np.float32))


def conv(x: Any, w: Any, stride: int = 1, padding: int = 0) -> Any:
    return jax.lax.conv_general_dilated(x, w, (stride, stride), [(padding, padding)] * 2)


def transposed(x: Any, w: Any, stride: int, padding: int) -> Any:
    """With a kernel of shape (in, out, *space)."""
    around = [(w.shape[2] - 1 - padding,) * 2] * 2
    turned = jnp.swapaxes(w[:, :, ::-1, ::-1], 0, 1)
    return jax.lax.conv_general_dilated(x, turned, (1, 1), around, lhs_dilation=(stride, stride))


def normalized(p: Parameters, name: str, x: Any, statistics: Parameters) -> Any:
    """Batch normalization; the running statistics go to `statistics`."""
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    for kind, new in (("mean", mean), ("var", variance)):
        old = statistics[f"{name}.{kind}"]
        statistics[f"{name}.{kind}"] = old * (1 - MOMENTUM) + MOMENTUM * jax.lax.stop_gradient(new)
    columns = [v[:, None, None] for v in (mean, jax.lax.rsqrt(variance + 1e-5), p[f"{name}.w"], p[f"{name}.b"])]
    return (x - columns[0]) * columns[1] * columns[2] + columns[3]


def norm(name: str, size: int) -> tuple[Parameters, Parameters]:
    """Parameters and running statistics."""
    parameters = {f"{name}.w": jnp.ones(size), f"{name}.b": jnp.zeros(size)}
    return parameters, {f"{name}.mean": jnp.zeros(size), f"{name}.var": jnp.ones(size)}


def pooled(x: Any) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


# The U-Net


def unet() -> tuple[Parameters, Parameters]:
    rng = np.random.default_rng(0)
    a, b, c = s.UNET
    p: Parameters = {
        "up2.w": kernel(rng, c, b, 2, 2),
        "up1.w": kernel(rng, b, a, 2, 2),
        "last.w": kernel(rng, 1, a, 1, 1),
    }
    p |= {"up2.b": jnp.zeros(b), "up1.b": jnp.zeros(a), "last.b": jnp.zeros(1)}
    statistics: Parameters = {}
    pairs = {"down1": (3, a), "down2": (a, b), "bottom": (b, c), "side2": (2 * b, b), "side1": (2 * a, a)}
    for name, (inputs, outputs) in pairs.items():
        for i, count in enumerate((inputs, outputs)):
            p |= {f"{name}.{i}.k": kernel(rng, outputs, count, 3, 3), f"{name}.{i}.c": jnp.zeros(outputs)}
            of_norm, of_statistics = norm(f"{name}.{i}", outputs)
            p, statistics = p | of_norm, statistics | of_statistics
    return p, statistics


def run_unet(p: Parameters, statistics: Parameters, x: Any) -> Any:
    def twice(name: str, x: Any) -> Any:
        for i in range(2):
            x = conv(x, p[f"{name}.{i}.k"], padding=1) + p[f"{name}.{i}.c"][:, None, None]
            x = jax.nn.relu(normalized(p, f"{name}.{i}", x, statistics))
        return x

    def up(name: str, x: Any) -> Any:
        return transposed(x, p[f"{name}.w"], 2, 0) + p[f"{name}.b"][:, None, None]

    first = twice("down1", x)
    second = twice("down2", pooled(first))
    x = up("up2", twice("bottom", pooled(second)))
    x = up("up1", twice("side2", jnp.concatenate([x, second], 1)))
    x = twice("side1", jnp.concatenate([x, first], 1))
    return conv(x, p["last.w"]) + p["last.b"][:, None, None]


def unet_trainer() -> Callable[[], float]:
    """A function that takes one step of training and returns the loss."""
    optimizer = optax.adam(s.LEARNING_RATE)
    batch = s.unet_batch()

    def loss(p: Parameters, statistics: Parameters, images: Any, masks: Any) -> Any:
        statistics = dict(statistics)
        logits = run_unet(p, statistics, images)
        return optax.sigmoid_binary_cross_entropy(logits, masks).mean(), statistics

    def step(p: Any, statistics: Any, state: Any, images: Any, masks: Any) -> Any:
        (value, statistics), gradients = jax.value_and_grad(loss, has_aux=True)(p, statistics, images, masks)
        updates, state = optimizer.update(gradients, state, p)
        return value, optax.apply_updates(p, updates), statistics, state

    compiled = jax.jit(step, donate_argnums=(0, 1, 2))
    p, statistics = unet()
    held = [p, statistics, optimizer.init(p)]

    def call() -> float:
        value, *held[:] = compiled(*held, *batch)
        return float(value)

    return call


# The DCGAN


def gan() -> tuple[Parameters, Parameters, Parameters]:
    """Parameters of the generator and of the discriminator, and the running statistics of both."""
    rng, c = np.random.default_rng(0), s.GENERATOR
    sizes = (s.NOISE, 4 * c, 2 * c, c, 3)
    made = {f"g{i}.k": kernel(rng, a, b, 4, 4) for i, (a, b) in enumerate(pairwise(sizes))}
    sizes = (3, c, 2 * c, 4 * c, 1)
    judge = {f"d{i}.k": kernel(rng, b, a, 4, 4) for i, (a, b) in enumerate(pairwise(sizes))}
    statistics: Parameters = {}
    for of, name, size in (
        (made, "g0", 4 * c),
        (made, "g1", 2 * c),
        (made, "g2", c),
        (judge, "d1", 2 * c),
        (judge, "d2", 4 * c),
    ):
        parameters, running = norm(name, size)
        of |= parameters
        statistics |= running
    return made, judge, statistics


def generate(p: Parameters, statistics: Parameters, x: Any) -> Any:
    for i in range(3):
        x = transposed(x, p[f"g{i}.k"], 2 if i else 1, 1 if i else 0)
        x = jax.nn.relu(normalized(p, f"g{i}", x, statistics))
    return jnp.tanh(transposed(x, p["g3.k"], 2, 1))


def judged(p: Parameters, statistics: Parameters, x: Any) -> Any:
    x = jax.nn.leaky_relu(conv(x, p["d0.k"], 2, 1), 0.2)
    for i in (1, 2):
        x = jax.nn.leaky_relu(normalized(p, f"d{i}", conv(x, p[f"d{i}.k"], 2, 1), statistics), 0.2)
    return conv(x, p["d3.k"]).reshape(-1)


def gan_trainer() -> Callable[[], float]:
    """The same for both networks of the DCGAN."""
    optimizer = optax.adam(2e-4, b1=0.5)
    images, noise = s.gan_batch()

    def of_judge(judge: Parameters, statistics: Parameters, images: Any, false: Any) -> Any:
        statistics = dict(statistics)
        true = jax.nn.softplus(-judged(judge, statistics, images)).mean()
        return true + jax.nn.softplus(judged(judge, statistics, false)).mean(), statistics

    def of_made(made: Parameters, judge: Parameters, statistics: Parameters, noise: Any) -> Any:
        statistics = dict(statistics)
        false = generate(made, statistics, noise)
        return jax.nn.softplus(-judged(judge, statistics, false)).mean(), statistics

    def step(made: Any, judge: Any, statistics: Any, states: Any, images: Any, noise: Any) -> Any:
        statistics = dict(statistics)
        false = generate(made, statistics, noise)
        (value, statistics), gradients = jax.value_and_grad(of_judge, has_aux=True)(judge, statistics, images, false)
        updates, second = optimizer.update(gradients, states[1], judge)
        judge = optax.apply_updates(judge, updates)
        gradients, statistics = jax.grad(of_made, has_aux=True)(made, judge, statistics, noise)
        updates, first = optimizer.update(gradients, states[0], made)
        return value, optax.apply_updates(made, updates), judge, statistics, (first, second)

    compiled = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    made, judge, statistics = gan()
    held = [made, judge, statistics, (optimizer.init(made), optimizer.init(judge))]

    def call() -> float:
        value, *held[:] = compiled(*held, images, noise)
        return float(value)

    return call
