"""Dense Hessians against JAX: of a small network, and of logistic regression."""

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


def run() -> Table:
    import jax

    import ftrans as ft

    cases = [
        ("Hessian of a network, n = 1,953", network, 1953, 0.25, ft.hessian, jax.hessian),
        ("Hessian of logistic regression, n = 500", logistic, 500, 0.5, ft.hessian, jax.hessian),
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
    return Table("dense_jacobians: dense second derivatives, compiled", rows)
