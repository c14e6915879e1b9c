"""Dense Jacobians and Hessians against JAX: of a network, of logistic regression, and with few entries."""

from __future__ import annotations

import itertools

import numpy

from .harness import Contender, Row, Table, time_side_by_side

SIZES = [10, 32, 32, 16, 1]


def network(np, p):
    """The loss of a network with 1,953 parameters in one vector, on 64 samples."""
    random = numpy.random.default_rng(4)
    h, y, at = random.standard_normal((64, 10)), random.standard_normal((64, 1)), 0
    for layer, (a, b) in enumerate(itertools.pairwise(SIZES)):
        weights, at = p[at : at + a * b].reshape(a, b), at + a * b
        h, at = h @ weights + p[at : at + b], at + b
        if layer < len(SIZES) - 2:
            h = np.tanh(h)
    return np.sum((h - y) ** 2) / 64


def logistic(np, w):
    """The loss of a logistic regression with 500 features and 2,000 samples."""
    features = numpy.random.default_rng(5).standard_normal((2000, 500)) / numpy.sqrt(500)
    return np.sum(np.log1p(np.exp(-(features @ w)))) + 0.5 * np.sum(w * w)


def rosenbrock(np, x):
    """A chain in which each term has two neighbours."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def brusselator(np, y):
    """The right-hand side of two reactants that diffuse on a periodic square grid."""
    size = int((y.shape[0] / 2) ** 0.5)
    u, v = y.reshape(2, size, size)

    def diffusion(w):
        return 0.02 * size**2 * (sum(np.roll(w, shift, axis) for shift in (1, -1) for axis in (0, 1)) - 4.0 * w)

    reaction = u * u * v
    return np.stack([1.0 + reaction - 4.4 * u + diffusion(u), 3.4 * u - reaction + diffusion(v)]).ravel()


def run() -> Table:
    import jax

    import ftrans as ft

    cases = [
        ("Hessian of a network, n = 1,953", network, 1953, 0.25, ft.hessian, jax.hessian),
        ("Hessian of logistic regression, n = 500", logistic, 500, 0.5, ft.hessian, jax.hessian),
        ("Hessian of Rosenbrock's function, n = 1,000", rosenbrock, 1000, 1.0, ft.hessian, jax.hessian),
        ("Jacobian of the Brusselator, 512 x 512", brusselator, 512, 0.6, ft.jacobian, jax.jacfwd),
        ("Jacobian of the Brusselator, 2,048 x 2,048", brusselator, 2048, 0.6, ft.jacobian, jax.jacfwd),
    ]
    rows = []
    for label, f, size, at_most, ours, theirs in cases:
        x = 0.3 * numpy.random.default_rng(6).standard_normal(size)
        compiled = ft.jit(ours(lambda x, f=f: f(numpy, x)))
        peer = jax.jit(theirs(lambda x, f=f: f(jax.numpy, x)))
        scope = lambda: jax.enable_x64(True)  # noqa: E731
        contenders = {
            "ftrans": Contender(lambda call=compiled, x=x: call(x)),
            "jax": Contender(lambda call=peer, x=x: numpy.asarray(call(x)), scope),
        }
        timings = time_side_by_side(contenders, reference="jax", seconds=6.0, patience=3.0)
        rows.append(Row(label, {n: timings.typical(n) for n in contenders}, [timings.ratio("ftrans", "jax", at_most)]))
    return Table("dense_jacobians: dense matrices of derivatives, compiled", rows)
