"""The compiled gradient of the solution of a differential equation, by the same method and tolerances everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from .harness import Contender, Row, Table, time_side_by_side

TOLERANCE = 1e-9
MOST_STEPS = 256
TIMES = numpy.linspace(0.0, 10.0, 5)
START = numpy.array([1.0, 0.5])
RATES = numpy.array([1.5, 1.0, 0.8, 1.0])


def run() -> Table:
    return Table(
        f"odeint: Lotka-Volterra to t = {TIMES[-1]:g} at {len(TIMES)} times, tolerances {TOLERANCE:g}",
        [
            row("solution", lambda f: f, lambda f: f),
            row("gradient", gradient_by_ftrans, gradient_by_jax),
        ],
    )


def row(label: str, by_ftrans: Callable[..., Any], by_jax: Callable[..., Any]) -> Row:
    contenders = {
        "ftrans": ftrans(by_ftrans),
        "ftrans max_steps": ftrans(by_ftrans, max_steps=MOST_STEPS),
        "ftrans continuous": ftrans(by_ftrans, adjoint="continuous"),
        "jax odeint": jax_odeint(by_jax),
    }
    try:
        contenders["diffrax"] = diffrax(by_jax)
    except ModuleNotFoundError as error:
        if error.name != "diffrax":
            raise
    timings = time_side_by_side(contenders, reference="jax odeint", seconds=3.0, patience=5.0)
    verdicts = [
        timings.ratio("ftrans", "diffrax"),
        timings.ratio("ftrans max_steps", "diffrax"),
        timings.ratio("ftrans continuous", "jax odeint"),
    ]
    return Row(label, {name: timings.typical(name) for name in contenders}, verdicts)


def field(np: Any, y: Any, rates: Any) -> Any:
    a, b, c, d = rates
    return np.stack([a * y[0] - b * y[0] * y[1], c * y[0] * y[1] - d * y[1]])


def gradient_by_ftrans(f: Callable[..., Any]) -> Callable[..., Any]:
    import ftrans as ft

    return ft.grad(f)


def gradient_by_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    import jax

    return jax.grad(f)


def ftrans(way: Callable[..., Any], **options: Any) -> Contender:
    """JAX arrays in and out, as for its peers."""
    import jax

    import ftrans as ft

    def loss(rates: Any) -> Any:
        ys = ft.odeint(
            lambda y, t, r: field(numpy, y, r), START, TIMES, rates, rtol=TOLERANCE, atol=TOLERANCE, **options
        )
        return numpy.sum(ys**2)

    compiled = ft.jit(way(loss))
    with jax.enable_x64(True):
        rates = jax.numpy.asarray(RATES)
    return Contender(lambda: jax.block_until_ready(compiled(rates)))


def jax_odeint(way: Callable[..., Any]) -> Contender:
    import jax
    from jax.experimental.ode import odeint

    def loss(rates: Any) -> Any:
        ys = odeint(
            lambda y, t, r: field(jax.numpy, y, r),
            jax.numpy.asarray(START), jax.numpy.asarray(TIMES), rates, rtol=TOLERANCE, atol=TOLERANCE,
        )  # fmt: skip
        return jax.numpy.sum(ys**2)

    compiled = jax.jit(way(loss))
    with jax.enable_x64(True):
        rates = jax.numpy.asarray(RATES)
    return Contender(lambda: jax.block_until_ready(compiled(rates)), lambda: jax.enable_x64(True))


def diffrax(way: Callable[..., Any]) -> Contender:
    import diffrax as dx
    import jax

    def loss(rates: Any) -> Any:
        solution = dx.diffeqsolve(
            dx.ODETerm(lambda t, y, r: field(jax.numpy, y, r)), dx.Dopri5(), TIMES[0], TIMES[-1], None,
            jax.numpy.asarray(START), rates,
            saveat=dx.SaveAt(ts=jax.numpy.asarray(TIMES)),
            stepsize_controller=dx.PIDController(rtol=TOLERANCE, atol=TOLERANCE),
            adjoint=dx.RecursiveCheckpointAdjoint(), max_steps=4096,
        )  # fmt: skip
        return jax.numpy.sum(solution.ys**2)

    compiled = jax.jit(way(loss))
    with jax.enable_x64(True):
        rates = jax.numpy.asarray(RATES)
    return Contender(lambda: jax.block_until_ready(compiled(rates)), lambda: jax.enable_x64(True))
