"""What it costs in time to keep less for the backward pass."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy

from .harness import Contender, Row, Table, time_side_by_side

LAYERS, ROWS, WIDTH = 40, 2048, 128
Function = Callable[..., Any]


def network(weights: Any, x: Any) -> Any:
    for w in weights:
        x = numpy.tanh(x @ w)
    return numpy.sum(x * x)


def run(device: Any) -> Table:
    return Table(
        f"checkpoint: gradient of {LAYERS} layers with a memory budget, on {device.device_kind}",
        [row(part, device) for part in (2, 4)],
    )


def row(part: int, device: Any) -> Row:
    """The memory that is divided is what the compiled gradient takes for temporary values without a checkpoint.

    What is left of it is more than the budget: a segment that is computed again, and the cotangents, take some too.
    """
    import jax

    import ftrans as ft

    print(f"  1/{part} of the memory", file=sys.stderr)
    random = numpy.random.default_rng(1)
    weights = [random.normal(size=(WIDTH, WIDTH)) / numpy.sqrt(WIDTH) for _ in range(LAYERS)]
    with jax.enable_x64(True):
        own = jax.device_put((weights, random.normal(size=(ROWS, WIDTH))), device)
    before, plain = compiled(ft, network, own)
    inputs = sum(w.nbytes for w in weights) + own[1].nbytes
    after, checkpointed = compiled(ft, ft.checkpoint(network, memory_budget=before // part + inputs), own)
    timings = time_side_by_side({"all kept": plain, "checkpoint": checkpointed}, reference="all kept", seconds=6.0)
    return Row(
        f"{before >> 20} MiB to {after >> 20} MiB",
        {name: timings.typical(name) for name in ("all kept", "checkpoint")},
        [timings.ratio("checkpoint", "all kept", at_most=1.35)],
    )


def compiled(ft: Any, f: Function, arguments: tuple[Any, ...]) -> tuple[int, Contender]:
    """Bytes that the compiled gradient takes for temporary values, and a call of it."""
    import jax

    gradient = ft.jit(ft.grad(f))
    memory = gradient.lower(*arguments).compile().memory_analysis().temp_size_in_bytes
    return memory, Contender(lambda: jax.block_until_ready(gradient(*arguments)))
