"""The derivative of order n by nesting n gradients: what each further order costs."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy

from .harness import Row, Table, Verdict, time_side_by_side
from .libraries import Library, autograd, available, ftrans, jax_on

ORDERS = (1, 2, 4, 6, 8, 10)
# Each order takes the other libraries about three times as long as the one before.
MOST_FOR_OTHERS = 6


def run() -> Table:
    import jax

    cpu = jax.devices("cpu")[0]
    libraries = available({"ftrans": ftrans, "jax": functools.partial(jax_on, cpu), "autograd": autograd})
    rows: list[Row] = []
    first = None
    for order in ORDERS:
        present = {name: x for name, x in libraries.items() if name == "ftrans" or order <= MOST_FOR_OTHERS}
        timings = time_side_by_side(
            {
                name: nested(library, order).contender(witch_of_agnesi, (numpy.float64(0.7),))
                for name, library in present.items()
            },
            reference="jax" if "jax" in present else None,
            patience=30.0,
        )
        own = timings.typical("ftrans")
        verdicts = [timings.ratio("ftrans", name) for name in present if name != "ftrans"]
        if isinstance(own, float):
            first = own if first is None else first
            verdicts.append(Verdict(own / first, "order 1", float(order**2), "{:.1f}x".format))
        rows.append(Row(f"order {order}", {name: timings.typical(name) for name in libraries}, verdicts))
    return Table("high_orders: un-jitted derivatives of 1 / (1 + x * x), nested n times", rows)


def nested(library: Library, order: int) -> Library:
    """The library with the derivative of an order in the place of the gradient."""
    return dataclasses.replace(
        library, gradient=lambda f: functools.reduce(lambda g, _: library.gradient(g), range(order), f)
    )


def witch_of_agnesi(np: Any, x: Any) -> Any:
    return 1 / (1 + x * x)
