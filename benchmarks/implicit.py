"""Second derivatives through the solution of equations: a Hessian-vector product through a matrix-free root.

The equations are x + tanh(B x) * p = 1, and the product is of the Hessian of sum(w x^2) by p.  All contenders find the
root by Newton steps, each computed by GMRES to 1e-6, and solve the linear equations of the derivatives by GMRES to
1e-10.  By hand it takes three of these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from .harness import Contender, Row, Table, time_side_by_side

TOLERANCE, STEP_TOLERANCE, RESTART = 1e-10, 1e-6, 30


def run() -> Table:
    return Table("implicit: Hessian-vector product through a root, matrix-free GMRES, compiled", [row(200), row(1000)])


def row(size: int) -> Row:
    import jax

    random = numpy.random.default_rng(0)
    matrix = random.normal(size=(size, size)) / (2 * size**0.5)
    weights, vector = random.normal(size=(2, size))
    parameters = random.uniform(0.5, 1.0, size)
    contenders = {}
    for name, make in PEERS.items():
        try:
            with jax.enable_x64(True):
                call = make(matrix, weights)
        except ModuleNotFoundError:
            continue
        contenders[name] = Contender(
            functools.partial(call, parameters, vector), functools.partial(jax.enable_x64, True)
        )
    contenders["ftrans"] = Contender(functools.partial(by_ftrans(matrix, weights), parameters, vector))
    timings = time_side_by_side(contenders, reference="by hand", seconds=8.0, patience=5.0)
    names = ("ftrans", *PEERS)
    return Row(
        f"{size} unknowns",
        {name: timings.typical(name) for name in names},
        [timings.ratio("ftrans", "by hand", at_most=1.2), timings.ratio("ftrans", "optimistix")],
    )


Product = Callable[[Any, Any], Any]


def by_ftrans(matrix: Any, weights: Any) -> Product:
    import ftrans as ft

    start = numpy.zeros(len(weights))

    def loss(p: Any) -> Any:
        x = ft.root(lambda x: x + numpy.tanh(matrix @ x) * p - 1.0, start, linear_solver="gmres", tol=TOLERANCE)
        return numpy.sum(weights * x**2)

    return ft.jit(lambda p, v: ft.jvp(ft.grad(loss), (p,), (v,))[1])


def equations(matrix: Any) -> Callable[[Any, Any], Any]:
    import jax.numpy as jnp

    return lambda x, p: x + jnp.tanh(matrix @ x) * p - 1.0


def gmres(product: Any, right: Any, tolerance: float = TOLERANCE) -> Any:
    from jax.scipy.sparse.linalg import gmres as solver

    return solver(product, right, tol=tolerance, restart=RESTART, solve_method="incremental")[0]


def newton(f: Callable[[Any], Any], start: Any) -> Any:
    """Full Newton steps until the last one is small, as ftrans takes them here."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def step(state: Any) -> Any:
        x, _ = state
        value, product = jax.linearize(f, x)
        change = gmres(product, -value, STEP_TOLERANCE)
        return x + change, jnp.linalg.norm(change) > TOLERANCE * jnp.linalg.norm(x)

    return lax.while_loop(lambda state: state[1], step, (start, True))[0]


def by_hand(matrix: Any, weights: Any) -> Product:
    import jax
    import jax.numpy as jnp

    f = equations(matrix)

    def product(p: Any, v: Any) -> Any:
        x = newton(lambda x: f(x, p), jnp.zeros_like(p))
        _, push = jax.linearize(f, x, p)
        pull = jax.linear_transpose(push, x, p)
        zero = jnp.zeros_like(p)
        adjoint = gmres(lambda u: pull(u)[0], 2 * weights * x)
        dx = gmres(lambda u: push(u, zero), -push(zero, v))
        # The change of the pulled-back adjoint along (dx, v), at a fixed adjoint.
        _, (by_x, by_p) = jax.jvp(lambda x, p: jax.vjp(f, x, p)[1](adjoint), (x, p), (dx, v))
        change = gmres(lambda u: pull(u)[0], 2 * weights * dx - by_x)
        return -by_p - pull(change)[1]

    return blocking(jax.jit(product))


def by_optimistix(matrix: Any, weights: Any) -> Product:
    import jax
    import jax.numpy as jnp
    import lineax
    import optimistix

    f = equations(matrix)
    precise = lineax.GMRES(TOLERANCE, TOLERANCE, restart=RESTART)
    steps = lineax.GMRES(STEP_TOLERANCE, STEP_TOLERANCE, restart=RESTART)
    solver = optimistix.Newton(rtol=TOLERANCE, atol=TOLERANCE, linear_solver=steps)

    def loss(p: Any) -> Any:
        adjoint = optimistix.ImplicitAdjoint(linear_solver=precise)
        x = optimistix.root_find(f, solver, jnp.zeros_like(p), args=p, adjoint=adjoint).value
        return jnp.sum(weights * x**2)

    return blocking(jax.jit(lambda p, v: jax.jvp(jax.grad(loss), (p,), (v,))[1]))


def blocking(product: Product) -> Product:
    return lambda p, v: product(p, v).block_until_ready()


PEERS = {"by hand": by_hand, "optimistix": by_optimistix}
