"""What one call of a compiled gradient costs when there is next to nothing to compute."""

from __future__ import annotations

import functools

import numpy

from .harness import Row, Table, time_side_by_side
from .libraries import available, ftrans_jit, ftrans_jit_on, jax_jit, jax_jit_on


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
    return Table(
        "dispatch: one call of a compiled gradient of a small function",
        [
            Row("NumPy in and out", {name: timings.typical(name) for name in ("ftrans jit", "jax jit")}, in_and_out),
            Row(
                "JAX arrays in and out",
                {name: timings.typical(f"{name} on JAX arrays") for name in ("ftrans jit", "jax jit")},
                on_arrays,
            ),
        ],
    )


def small(np, x):
    return np.sum(np.sin(x) * x)
