"""What one call of a compiled function costs when there is next to nothing to compute, by what it is given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from .harness import Contender, Row, Table, Timings, time_side_by_side
from .libraries import available, ftrans_jit, ftrans_jit_on, jax_jit, jax_jit_on

PARAMETERS = 64
_AT_MOST = 10e-6


def run() -> Table:
    import jax

    cpu = jax.devices("cpu")[0]
    libraries = available(
        {
            "ftrans jit": ftrans_jit,
            "jax jit": jax_jit,
            "ftrans jit on JAX arrays": functools.partial(ftrans_jit_on, cpu),
            "jax jit on JAX arrays": functools.partial(jax_jit_on, cpu),
        }
    )
    x = numpy.linspace(-1.0, 1.0, 10)
    contenders = {name: library.contender(small, (x,)) for name, library in libraries.items()}
    timings = time_side_by_side(contenders, reference="jax jit", seconds=4.0)
    in_and_out = [
        timings.ratio("ftrans jit", "jax jit", at_most=2.0),
        timings.ratio("ftrans jit", "jax jit on JAX arrays", at_most=2.0),
    ]
    on_arrays = [timings.ratio("ftrans jit on JAX arrays", "jax jit on JAX arrays")]
    rows = [
        Row("one array: NumPy in and out", typical(timings, ""), in_and_out),
        Row("one array: JAX arrays in and out", typical(timings, " on JAX arrays"), on_arrays),
    ]
    for name, (function, given) in several().items():
        contenders = {key: library.contender(function, (given,)) for key, library in libraries.items()}
        timings = time_side_by_side(contenders, reference="jax jit", seconds=4.0)
        for kind in ("", " on JAX arrays"):
            over = timings.excess(f"ftrans jit{kind}", f"jax jit{kind}", at_most=_AT_MOST)
            rows.append(Row(f"{name}: {'JAX arrays' if kind else 'NumPy'} in and out", typical(timings, kind), [over]))
    timings = time_side_by_side(modules(), reference="jax jit", seconds=4.0)
    over = timings.excess("ftrans jit", "jax jit", at_most=_AT_MOST)
    rows.append(Row(f"a module of {PARAMETERS} parameters", typical(timings, ""), [over]))
    return Table("dispatch: one call of a compiled gradient of a small function", rows)


def typical(timings: Timings, kind: str) -> dict[str, float | str]:
    """The columns of a row."""
    return {name: timings.typical(f"{name}{kind}") for name in ("ftrans jit", "jax jit")}


def several() -> dict[str, tuple[Callable[..., Any], Any]]:
    """Functions of several arrays, and what they are given."""
    x = numpy.linspace(-1.0, 1.0, 200)
    layers = tuple({"weight": x[:100].reshape(10, 10) / i, "bias": x[:10] / i} for i in (1.0, 2.0))
    return {
        "three arrays": (lambda np, xs: np.sum(xs[0] * xs[1] + xs[2]), (x[:10], x[10:20], x[20:30])),
        "a dict of 20 arrays": (squares, {f"w{i}": x[10 * i : 10 * i + 10] for i in range(20)}),
        "two layers": (two_layers, layers),
    }


def modules() -> dict[str, Contender]:
    """A module and the list of its arrays, which are JAX arrays, as after a step of training."""
    import jax

    def product(arrays: Any, x: Any) -> Any:
        for array in arrays:
            x = x * array
        return x

    x = numpy.linspace(0.5, 1.5, 10)
    with jax.enable_x64(True):
        arrays = [jax.numpy.asarray(x) for _ in range(PARAMETERS)]
    jitted = jax.jit(product)
    contenders = {"jax jit": Contender(lambda: numpy.asarray(jitted(arrays, x)), lambda: jax.enable_x64(True))}
    try:
        from ftrans import nn
    except ModuleNotFoundError:
        return contenders

    class Product(nn.Module):
        def __init__(self) -> None:
            for number, array in enumerate(arrays):
                setattr(self, f"w{number}", nn.Parameter(array))

        def forward(self, x: Any) -> Any:
            return product(self.parameters(), x)

    model, call = Product(), nn.jit(lambda model, x: model(x))
    return contenders | {"ftrans jit": Contender(lambda: call(model, x))}


def small(np: Any, x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def squares(np: Any, arrays: Any) -> Any:
    return sum(np.sum(x * x) for x in arrays.values())


def two_layers(np: Any, layers: Any) -> Any:
    x = np.linspace(-1.0, 1.0, 10)
    for layer in layers:
        x = np.tanh(layer["weight"] @ x + layer["bias"])
    return np.sum(x)
