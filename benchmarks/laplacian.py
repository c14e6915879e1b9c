"""Laplacians and diagonals of Hessians: one call of ftrans against what a user of JAX writes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from .harness import Contender, Row, Table, time_side_by_side

# Numbers of inputs, and what a Laplacian may cost of the best other form.
SIZES = {10: 0.8, 100: 0.5}
WIDTH = 64
BATCH = 64


def run() -> Table:
    rows = [laplacian_row(size, batch=BATCH, at_most=at_most) for size, at_most in SIZES.items()]
    rows += [laplacian_row(size) for size in SIZES]
    rows.append(diagonal_row("logistic regression, n = 500", logistic, 500, at_most=0.03))
    rows.append(diagonal_row("Rosenbrock's chain, n = 1000", chain, 1000))
    return Table("laplacian: Laplacians of a network, and diagonals of Hessians, compiled", rows)


def laplacian_row(size: int, batch: int | None = None, at_most: float | None = None) -> Row:
    """The Laplacian of a network of `size` inputs, at one point or at a batch of them."""
    import jax
    import jax.numpy as jnp

    import ftrans as ft

    shape = (size,) if batch is None else (batch, size)
    x = numpy.random.default_rng(0).standard_normal(shape)
    mapped = ft.vmap if batch else lambda f: f
    calls = {"ftrans": ft.jit(mapped(ft.laplacian(functools.partial(network(size), numpy))))}
    own = {"ftrans": x}
    with jax.enable_x64(True):
        f = functools.partial(network(size), jnp)
        mapped = jax.vmap if batch else lambda f: f
        forms = {"jvp of jvp": by_nested_jvp(f), "jet": by_jet(f), "trace of hessian": by_hessian(f)}
        forms |= by_folx(f)
        calls |= {name: jax.jit(mapped(form)) for name, form in forms.items()}
        own |= dict.fromkeys(forms, jnp.asarray(x))
    timings = time_side_by_side(contenders(calls, own), reference="trace of hessian", seconds=4.0, patience=10.0)
    label = f"network, {size} inputs" + (f", {batch} points" if batch else "")
    verdicts = [timings.ratio("ftrans", name, at_most if name != "folx" else None) for name in forms]
    return Row(label, {name: timings.typical(name) for name in calls}, verdicts)


def diagonal_row(label: str, function: Callable[..., Any], size: int, at_most: float | None = None) -> Row:
    """The diagonal of the Hessian of a function of `size` numbers."""
    import jax
    import jax.numpy as jnp

    import ftrans as ft

    x = numpy.random.default_rng(0).standard_normal(size)
    calls = {"ftrans": ft.jit(ft.hessian_diagonal(functools.partial(function(size), numpy)))}
    own = {"ftrans": x}
    with jax.enable_x64(True):
        hessian = jax.hessian(functools.partial(function(size), jnp))
        calls["diagonal of hessian"] = jax.jit(lambda x: jnp.diagonal(hessian(x)))
        own["diagonal of hessian"] = jnp.asarray(x)
    timings = time_side_by_side(contenders(calls, own), reference="diagonal of hessian", seconds=4.0, patience=10.0)
    verdicts = [timings.ratio("ftrans", "diagonal of hessian", at_most)]
    return Row(label, {name: timings.typical(name) for name in calls}, verdicts)


def contenders(calls: dict[str, Any], own: dict[str, Any]) -> dict[str, Contender]:
    """Calls on their own arrays, with JAX in double precision."""
    import jax

    def ready(call: Any, x: Any) -> Any:
        result = call(x)
        return result.block_until_ready() if hasattr(result, "block_until_ready") else result

    return {
        name: Contender(functools.partial(ready, call, own[name]), lambda: jax.enable_x64(True))
        for name, call in calls.items()
    }


# What a user of JAX writes


def by_nested_jvp(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The sum of second derivatives along unit vectors, forwards twice."""
    import jax
    import jax.numpy as jnp

    def laplacian(x: Any) -> Any:
        def along(v: Any) -> Any:
            return jax.jvp(lambda y: jax.jvp(f, (y,), (v,))[1], (x,), (v,))[1]

        return jnp.sum(jax.vmap(along)(jnp.eye(x.size, dtype=x.dtype)))

    return laplacian


def by_jet(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The sum of second coefficients of Taylor series along unit vectors."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import jet

    def laplacian(x: Any) -> Any:
        def along(v: Any) -> Any:
            return jet.jet(f, (x,), ((v, jnp.zeros_like(v)),))[1][1]

        return jnp.sum(jax.vmap(along)(jnp.eye(x.size, dtype=x.dtype)))

    return laplacian


def by_hessian(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The trace of the Hessian."""
    import jax
    import jax.numpy as jnp

    hessian = jax.hessian(f)
    return lambda x: jnp.trace(hessian(x))


def by_folx(f: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    """The forward Laplacian of folx, where that is installed."""
    try:
        import folx
    except ModuleNotFoundError:
        return {}
    forward = folx.forward_laplacian(f, 0)
    return {"folx": lambda x: forward(x).laplacian}


# Functions


def network(size: int) -> Callable[..., Any]:
    """A network with three hidden layers and one result."""
    rng = numpy.random.default_rng(6)
    sizes = [(size, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH)]
    weights = [rng.standard_normal(s) / numpy.sqrt(s[0]) for s in sizes]
    biases = [0.1 * rng.standard_normal(WIDTH) for _ in sizes]
    last = rng.standard_normal(WIDTH) / numpy.sqrt(WIDTH)

    def f(np: Any, x: Any) -> Any:
        for weight, bias in zip(weights, biases, strict=True):
            x = np.tanh(x @ np.asarray(weight) + np.asarray(bias))
        return x @ np.asarray(last)

    return f


def logistic(size: int) -> Callable[..., Any]:
    """The loss of logistic regression of 2000 examples."""
    rng = numpy.random.default_rng(5)
    examples = rng.standard_normal((2000, size)) / numpy.sqrt(size)
    examples *= numpy.sign(rng.standard_normal(2000))[:, None]

    def f(np: Any, w: Any) -> Any:
        return np.sum(np.log1p(np.exp(-(np.asarray(examples) @ w)))) + 0.5 * np.sum(w * w)

    return f


def chain(size: int) -> Callable[..., Any]:
    """Rosenbrock's function, summed over neighbours."""

    def f(np: Any, x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return f
