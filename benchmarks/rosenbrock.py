"""The un-jitted gradient of a small function: how fast a library is when nothing is compiled."""

from __future__ import annotations

import functools

import numpy

from .harness import Contender, Row, Table, time_side_by_side
from .libraries import Library, autograd, available, ftrans, jax_on, torch_on
from .problems import rosenbrock


def run() -> Table:
    import jax

    cpu = jax.devices("cpu")[0]
    libraries = available(
        {
            "ftrans": ftrans,
            "jax": functools.partial(jax_on, cpu),
            "autograd": autograd,
            "torch": functools.partial(torch_on, cpu),
        }
    )
    x = numpy.linspace(-1.0, 1.0, 10)
    repeated = {name: library.contender(rosenbrock, (x,)) for name, library in libraries.items()}
    renewed = {f"{name}, new lambda": with_new_lambda(library, x) for name, library in libraries.items()}
    timings = time_side_by_side(repeated | renewed, reference="jax", seconds=6.0)
    names = ("ftrans", "jax", "autograd", "torch")
    return Table(
        "rosenbrock: un-jitted gradient of the 10-dimensional Rosenbrock function",
        [
            Row(
                "repeated",
                {name: timings.typical(name) for name in names},
                [timings.ratio("ftrans", "autograd", at_most=1.0), timings.ratio("ftrans", "jax")],
            ),
            Row(
                "a new lambda each call",
                {name: timings.typical(f"{name}, new lambda") for name in names},
                [timings.ratio("ftrans, new lambda", "ftrans", at_most=1.5)],
            ),
        ],
    )


def with_new_lambda(library: Library, x: numpy.ndarray) -> Contender:
    with library.scope():
        own = library.array(x)
    return Contender(lambda: library.ready(library.gradient(lambda x: rosenbrock(library.np, x))(own)), library.scope)
