"""Taylor coefficients along a line, compiled, beside `jax.experimental.jet` and nested derivatives of JAX."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy

from .harness import Contender, Row, Table, Verdict, clock, time_side_by_side

ORDERS = (2, 4, 6)
# Each order takes nested derivatives about twice as long as the one before.
MOST_FOR_NESTED = 4
FEATURES, WIDTH, POINTS = 100, 64, 256
FIRST_CALLS = 3

Coefficients = Callable[..., Any]


def run() -> Table:
    rows = [row for order in ORDERS for row in (calls(order, 1), calls(order, POINTS), first_calls(order))]
    return Table("taylor: coefficients of a network of three hidden layers along a line, compiled", rows)


def calls(order: int, points: int) -> Row:
    """The time of a call for some points at once."""
    random = numpy.random.default_rng(0)
    weights = network(random)
    arguments = tuple(random.standard_normal((2, points, FEATURES)))
    makers = {"ftrans": ftrans, "jet": jet, **({"nested": nested} if order <= MOST_FOR_NESTED else {})}
    contenders = {}
    for name, maker in makers.items():
        compiled = maker(functools.partial(value, weights), order)
        contenders[name] = Contender(functools.partial(compiled, *arguments), scope_of(name))
    timings = time_side_by_side(contenders, reference="jet", seconds=6.0)
    targets = {"jet": 1.0, "nested": None}
    verdicts = [timings.ratio("ftrans", name, targets[name]) for name in makers if name != "ftrans"]
    return Row(
        f"order {order}, {points} point{'s' if points > 1 else ''}",
        {name: timings.typical(name) for name in makers},
        verdicts,
    )


def first_calls(order: int) -> Row:
    """The time of the first call of a function that was never compiled."""
    arguments = tuple(numpy.random.default_rng(0).standard_normal((2, 1, FEATURES)))
    found = {}
    for name, maker in {"ftrans": ftrans, "jet": jet}.items():
        fresh = [functools.partial(value, network(numpy.random.default_rng(1 + i))) for i in range(FIRST_CALLS)]
        with scope_of(name)():
            found[name] = min(clock(functools.partial(first_call, maker, f, order, arguments), 1) for f in fresh)
    verdict = Verdict(found["ftrans"] / found["jet"], "jet", 1.0, "{:.2f}x".format)
    return Row(f"order {order}, first call", found, [verdict])


def first_call(maker: Callable[..., Coefficients], f: Coefficients, order: int, arguments: Any) -> None:
    maker(f, order)(*arguments)


def scope_of(name: str) -> Callable[[], AbstractContextManager[Any]]:
    import jax

    return nullcontext if name == "ftrans" else lambda: jax.enable_x64(True)


def network(random: numpy.random.Generator) -> list[numpy.ndarray]:
    sizes = [FEATURES, WIDTH, WIDTH, WIDTH, 1]
    return [random.standard_normal((a, b)) / math.sqrt(a) for a, b in itertools.pairwise(sizes)]


def value(weights: list[numpy.ndarray], np: Any, x: Any) -> Any:
    for w in weights[:-1]:
        x = np.tanh(x @ w)
    return np.sum(x @ weights[-1], axis=-1)


def ftrans(f: Coefficients, order: int) -> Coefficients:
    import ftrans as ft

    return ft.jit(lambda x, v: ft.taylor(functools.partial(f, numpy), x, v, order))


def jet(f: Coefficients, order: int) -> Coefficients:
    import jax
    import jax.numpy as jnp
    from jax.experimental.jet import jet

    def coefficients(x: Any, v: Any) -> Any:
        series = [v, *[jnp.zeros_like(v)] * (order - 1)]
        out, terms = jet(functools.partial(f, jnp), (x,), (series,), factorial_scaled=False)
        return [out, *terms]

    compiled = jax.jit(coefficients)
    return lambda *arguments: jax.block_until_ready(compiled(*arguments))


def nested(f: Coefficients, order: int) -> Coefficients:
    import jax
    import jax.numpy as jnp

    def coefficients(x: Any, v: Any) -> Any:
        def along(t: Any) -> Any:
            return f(jnp, x + t * v)

        found = []
        for k in range(order + 1):
            found.append(along(0.0) / math.factorial(k))
            along = functools.partial(lambda g, t: jax.jvp(g, (t,), (1.0,))[1], along)
        return found

    compiled = jax.jit(coefficients)
    return lambda *arguments: jax.block_until_ready(compiled(*arguments))
