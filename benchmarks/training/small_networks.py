"""The first steps of small networks: each loss is written once, and differentiated and compiled by ftrans and by JAX.

    python -m benchmarks.training.small_networks [NAME ...]

Processor time of the first step, tracing and compiling included, each in a process of its own, the least of a few.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy

STARTS = 3


class Library(NamedTuple):
    """What a loss is written with: functions of arrays, `grad` and `vmap`."""

    np: Any
    grad: Callable[..., Any]
    vmap: Callable[..., Any]


class Network(NamedTuple):
    """A small network.

    Attributes:
        sizes: the widths of each of its perceptrons, which have tanh between their layers.
        shapes: the shapes of the arrays of a batch.
        loss: from a library, the perceptrons as functions, and the batch.
    """

    sizes: list[tuple[int, ...]]
    shapes: list[tuple[int, ...]]
    loss: Callable[..., Any]


def vae(library: Library, nets: Sequence[Any], x: Any, noise: Any) -> Any:
    """A variational autoencoder of images in [0, 1]."""
    np, (encode, mean, spread, decode) = library.np, nets
    hidden = np.tanh(encode(x))
    m, s = mean(hidden), spread(hidden)
    logits = decode(m + np.exp(0.5 * s) * noise)
    entropy = np.maximum(logits, 0) - logits * x + np.log1p(np.exp(-np.abs(logits)))
    return entropy.sum(1).mean() - 0.5 * (1 + s - m**2 - np.exp(s)).sum(1).mean()


def critic(library: Library, nets: Sequence[Any], real: Any, fake: Any) -> Any:
    """The critic of a Wasserstein GAN with its gradient penalty."""
    np, (judge,) = library.np, nets
    slopes = library.grad(lambda x: judge(x).sum())(0.3 * real + 0.7 * fake)
    penalty = ((np.sqrt((slopes**2).sum(1) + 1e-12) - 1) ** 2).mean()
    return judge(fake).mean() - judge(real).mean() + 0.1 * penalty


def flow(library: Library, nets: Sequence[Any], x: Any) -> Any:
    """A RealNVP flow in two dimensions."""
    np, total = library.np, 0.0
    for i in range(0, len(nets), 2):
        mask = numpy.array([i // 2 % 2, 1 - i // 2 % 2], numpy.float32)
        scale, shift = np.tanh(nets[i](x * mask)) * (1 - mask), nets[i + 1](x * mask) * (1 - mask)
        x, total = x * mask + (1 - mask) * (x * np.exp(scale) + shift), total + scale.sum(1)
    return (0.5 * (x**2).sum(1) - total).mean()


def neural_ode(library: Library, nets: Sequence[Any], y: Any, expected: Any) -> Any:
    """A neural differential equation, ten steps of Runge and Kutta."""
    (net,), h, total = nets, 0.025, 0.0
    for i in range(10):
        k1 = net(y**3)
        k2 = net((y + h / 2 * k1) ** 3)
        k3 = net((y + h / 2 * k2) ** 3)
        k4 = net((y + h * k3) ** 3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        total = total + library.np.abs(y - expected[i]).mean()
    return total


def pinn(library: Library, nets: Sequence[Any], points: Any) -> Any:
    """The residual of Burgers' equation, by nested derivatives at each point."""
    np, grad, (net,) = library.np, library.grad, nets

    def u(t: Any, x: Any) -> Any:
        return net(np.stack([t, x]))[0]

    def residual(point: Any) -> Any:
        t, x = point[0], point[1]
        slope = grad(u, argnums=1)
        return grad(u)(t, x) + u(t, x) * slope(t, x) - 0.01 / numpy.pi * grad(slope, argnums=1)(t, x)

    return (library.vmap(residual)(points) ** 2).mean()


NETWORKS = {
    "VAE": Network([(256, 128), (128, 8), (128, 8), (8, 128, 256)], [(64, 256), (64, 8)], vae),
    "WGAN-GP": Network([(2, 64, 64, 1)], [(256, 2), (256, 2)], critic),
    "RealNVP": Network([(2, 64, 2)] * 12, [(256, 2)], flow),
    "neural ODE": Network([(2, 50, 2)], [(20, 2), (10, 20, 2)], neural_ode),
    "PINN": Network([(2, 20, 20, 20, 1)], [(256, 2)], pinn),
}


def batch(network: Network) -> list[numpy.ndarray]:
    rng = numpy.random.default_rng(0)
    return [rng.uniform(0, 1, shape).astype(numpy.float32) for shape in network.shapes]


def step_of_ftrans(network: Network) -> Callable[[], float]:
    import ftrans as ft
    from ftrans import nn

    library = Library(numpy, ft.grad, ft.vmap)

    class Perceptron(nn.Module):
        def __init__(self, sizes: tuple[int, ...]) -> None:
            self.layers = nn.ModuleList([nn.Linear(*pair) for pair in itertools.pairwise(sizes)])

        def forward(self, x: Any) -> Any:
            for layer in self.layers[:-1]:
                x = numpy.tanh(layer(x))
            return self.layers[-1](x)

    nets = nn.ModuleList([Perceptron(sizes) for sizes in network.sizes])
    optimizer = nn.optim.Adam(nets, lr=1e-3)

    @nn.jit
    def step(nets: Any, optimizer: Any, *data: Any) -> Any:
        value, gradients = nn.value_and_grad(lambda nets: network.loss(library, list(nets), *data))(nets)
        optimizer.step(gradients)
        return value

    return lambda: float(step(nets, optimizer, *batch(network)))


def step_of_jax(network: Network) -> Callable[[], float]:
    import jax
    import jax.numpy as jnp
    import optax

    library, rng = Library(jnp, jax.grad, jax.vmap), numpy.random.default_rng(0)

    def perceptron(layers: Any) -> Callable[[Any], Any]:
        def net(x: Any) -> Any:
            for w, b in layers[:-1]:
                x = jnp.tanh(x @ w + b)
            return x @ layers[-1][0] + layers[-1][1]

        return net

    def drawn(n: int, m: int) -> tuple[Any, Any]:
        return jnp.asarray(rng.uniform(-1, 1, (n, m)) / n**0.5, jnp.float32), jnp.zeros(m, jnp.float32)

    parameters = [[drawn(n, m) for n, m in itertools.pairwise(sizes)] for sizes in network.sizes]
    optimizer = optax.adam(1e-3)
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters: Any, state: Any, *data: Any) -> Any:
        def loss(parameters: Any) -> Any:
            return network.loss(library, [*map(perceptron, parameters)], *data)

        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradients, state)
        return value, optax.apply_updates(parameters, updates), state

    return lambda: float(step(parameters, state, *batch(network))[0])


STEPS = {"ftrans": step_of_ftrans, "jax": step_of_jax}


def seconds(library: str, name: str) -> float:
    """Processor time of one first step in this process, without imports and what JAX does when it starts."""
    import jax

    jax.jit(lambda x: x + 1)(numpy.ones(3, numpy.float32)).block_until_ready()
    step = STEPS[library](NETWORKS[name])
    start = time.process_time()
    step()
    return time.process_time() - start


def started(library: str, name: str) -> float:
    """The same in a process of its own."""
    code = f"from benchmarks.training.small_networks import seconds; print(seconds({library!r}, {name!r}))"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    return float(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    for name in sys.argv[1:] or NETWORKS:
        times = [(started("ftrans", name), started("jax", name)) for _ in range(STARTS)]
        ours, theirs = map(min, zip(*times, strict=True))
        print(f"{name}: {ours:.2f} s, {ours / theirs:.2f}x of JAX")
