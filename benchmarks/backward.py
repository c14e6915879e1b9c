"""Define-by-run: recording and going back, against torch's eager mode on one thread and autograd; memory of graphs."""

from __future__ import annotations

import gc
import importlib.util
import os
from collections.abc import Callable
from typing import Any

import numpy

from .harness import Contender, Row, Table, time_side_by_side
from .import_time import python

LAYERS, BATCH, UNITS = 8, 64, 256
LIBRARIES = ("ftrans", "torch", "autograd")


def run() -> Table:
    rows = [
        row("3 operations on 3 elements", small, at_most=1.0),
        row(f"MLP, {LAYERS} layers of {UNITS}, batch {BATCH}, tanh", lambda library: mlp(library, "tanh"), at_most=1.0),
        row(f"MLP, {LAYERS} layers of {UNITS}, batch {BATCH}, relu", lambda library: mlp(library, "relu"), at_most=1.0),
    ]
    sizes = {library: memory(library) for library in LIBRARIES[:2] if importlib.util.find_spec(library)}
    notes = [
        f"graph of {graph}: " + ", ".join(f"{library} {found[i] / 1000:.2f} kB" for library, found in sizes.items())
        for i, graph in enumerate(GRAPHS)
    ]
    return Table("backward: record and go back; " + "; ".join(notes), rows)


def row(label: str, problem: Callable[[str], Callable[[], Any]], at_most: float) -> Row:
    contenders = {name: Contender(problem(name)) for name in LIBRARIES if importlib.util.find_spec(name)}
    timings = time_side_by_side(contenders, reference="autograd", seconds=6.0)
    columns = {name: timings.typical(name) for name in contenders}
    return Row(label, columns, [timings.ratio("ftrans", "torch", at_most), timings.ratio("ftrans", "autograd")])


def small(library: str) -> Callable[[], Any]:
    """The gradient of the sum of the sines of three squares."""
    values = numpy.array([0.1, 0.2, 0.3])
    if library == "autograd":
        import autograd
        from autograd import numpy as np

        gradient = autograd.grad(lambda x: np.sum(np.sin(x * x)))
        return lambda: gradient(values)
    x = leaf(library, values)

    def step() -> Any:
        x.grad = None
        (x * x).sin().sum().backward()
        return x.grad

    return step


def mlp(library: str, activation: str) -> Callable[[], Any]:
    """The gradients of a mean square of the outputs with respect to all weights and biases."""
    parameters, data = mlp_arrays()
    if library == "autograd":
        import autograd
        from autograd import numpy as np

        act = np.tanh if activation == "tanh" else lambda x: np.maximum(x, np.float32(0))

        def loss(parameters: Any) -> Any:
            h = data
            for weights, bias in parameters:
                h = act(h @ weights + bias)
            return np.mean(h * h)

        gradient = autograd.grad(loss)
        return lambda: [x for pair in gradient(parameters) for x in pair]
    leaves = [(leaf(library, weights), leaf(library, bias)) for weights, bias in parameters]
    batch = constant(library, data)

    def step() -> Any:
        for weights, bias in leaves:
            weights.grad = bias.grad = None
        forward(leaves, batch, activation).backward()
        return [x.grad for pair in leaves for x in pair]

    return step


def mlp_arrays() -> tuple[list[Any], numpy.ndarray]:
    random = numpy.random.default_rng(0)
    scale = numpy.float32(UNITS**-0.5)
    parameters = [
        (random.standard_normal((UNITS, UNITS), numpy.float32) * scale, numpy.zeros(UNITS, numpy.float32))
        for _ in range(LAYERS)
    ]
    return parameters, random.standard_normal((BATCH, UNITS), numpy.float32)


def forward(leaves: Any, h: Any, activation: str) -> Any:
    for weights, bias in leaves:
        h = h @ weights + bias
        h = h.tanh() if activation == "tanh" else h.relu()
    return (h * h).mean()


def leaf(library: str, values: numpy.ndarray) -> Any:
    if library == "torch":
        import torch

        torch.set_num_threads(1)
        return torch.tensor(values, requires_grad=True)
    import ftrans as ft

    return ft.autograd.tensor(values, requires_grad=True)


def constant(library: str, values: numpy.ndarray) -> Any:
    return leaf(library, values).detach()


# Memory


GRAPHS = ("3 operations", "MLP, tanh", "MLP, relu")


def memory(library: str) -> list[float]:
    """Bytes that each recorded graph holds."""
    code = "from benchmarks.backward import graph_bytes; print(graph_bytes({!r}, {!r}))"
    return [float(python(code.format(library, graph))) for graph in GRAPHS]


def graph_bytes(library: str, graph: str) -> float:
    """Bytes that a recorded graph holds, from the growth of this process while it keeps many of them."""
    record, count = recorder(library, graph)
    for _ in range(20):
        record()
    gc.collect()
    before = resident()
    graphs = [record() for _ in range(count)]
    return (resident() - before) / len(graphs)


def recorder(library: str, graph: str) -> tuple[Callable[[], Any], int]:
    """What records a graph, and how many of them to keep."""
    if graph == "3 operations":
        x = leaf(library, numpy.array([0.1, 0.2, 0.3]))
        return lambda: (x * x).sin().sum(), 20_000
    parameters, data = mlp_arrays()
    leaves = [(leaf(library, weights), leaf(library, bias)) for weights, bias in parameters]
    batch = constant(library, data)
    return lambda: forward(leaves, batch, graph.split(", ")[1]), 200


def resident() -> int:
    """Bytes of memory that this process has now."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
