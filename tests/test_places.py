"""Where values live, and that programs and functions run there."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import scipy.special

import ftrans as ft
import ftrans.numpy as fnp
import ftrans.scipy.special as special
from ftrans import nn
from ftrans.autograd import Tensor, tensor
from ftrans.core.trace import Tracer
from ftrans.run.places import CELLS, JAX, NUMPY, TRACE, place_of, place_of_argument, place_of_arguments

X = np.array([1.5, 2.5])
WAYS = {
    "numpy": lambda x: x,
    "number": lambda x: float(x[0]),
    "jax": lambda x: jax.numpy.asarray(x, np.float32),
    "tensor": lambda x: tensor(x, requires_grad=True),
    "cell": nn.Buffer,
}
each_kind = pytest.mark.parametrize("kind", WAYS)


def in_trace(f: Any) -> Any:
    """The result of a function of a traced value that is no part of what is traced."""
    found = []
    ft.trace(lambda x: found.append(f(x)) or x)(X)
    return found[0]


def kind_of(place: Any) -> str:
    return {NUMPY: "numpy", JAX: "jax", CELLS: "cell", TRACE: "trace"}.get(place, "tensor")


def test_the_first_that_applies_counts() -> None:
    def places(x: Tracer) -> Any:
        order = [X, WAYS["jax"](X), tensor(X), nn.Buffer(X), x]
        return [(kind_of(place_of(order[:n])), kind_of(place_of(order[:n][::-1]))) for n in range(1, 6)]

    assert in_trace(places) == [(kind, kind) for kind in ("numpy", "jax", "tensor", "cell", "trace")]


def test_arguments_in_lists() -> None:
    assert kind_of(place_of_arguments([[X, [1.0, tensor(X)]]], {})) == "tensor"
    assert kind_of(place_of_arguments([], {"a": (X, nn.Buffer(X))})) == "cell"
    # NumPy makes one array of a list.
    assert place_of_argument([WAYS["jax"](X)]) is NUMPY
    objects = np.array([None, 1.0])
    assert place_of_argument(objects) is NUMPY

    def traced(x: Tracer) -> Any:
        objects[0] = x
        return [kind_of(place_of_argument(y)) for y in ([1.0, [x]], objects, x[x > 2.0])]

    assert in_trace(traced) == ["trace"] * 3


@each_kind
def test_functions_run_where_their_arguments_live(kind: str) -> None:
    x = WAYS[kind](X)
    wanted = X[0] if kind == "number" else X
    kinds = {"jax": jax.Array, "tensor": Tensor}
    for f, reference in ((fnp.sin, np.sin), (special.gammaln, scipy.special.gammaln)):
        y = f(x)
        assert isinstance(y, kinds.get(kind, np.ndarray | np.generic))
        np.testing.assert_allclose(y.detach() if kind == "tensor" else y, reference(wanted), rtol=1e-4)


@each_kind
def test_programs_run_where_their_arguments_live(kind: str) -> None:
    x = WAYS[kind](X)
    program = ft.trace(lambda x: x * x)(X[0] if kind == "number" else X)
    (y,) = place_of([x]).run(program, [x])
    assert isinstance(y, {"jax": jax.Array, "tensor": Tensor}.get(kind, np.ndarray | np.generic | float))
    np.testing.assert_allclose(y.detach() if kind == "tensor" else y, X[0] ** 2 if kind == "number" else X * X)


def test_a_trace_records_functions_without_protocols_of_traced_values_and_others() -> None:
    given = tensor(X)
    found = ft.grad(lambda x: (special.beta(x, given) * nn.Buffer(X)).sum())(X)
    wanted = scipy.special.beta(X, X) * (scipy.special.digamma(X) - scipy.special.digamma(2 * X)) * X
    np.testing.assert_allclose(np.asarray(found.detach() if isinstance(found, Tensor) else found), wanted)


@pytest.mark.parametrize("held", [tensor(X), nn.Buffer(X)], ids=["tensor", "cell"])
def test_what_meets_a_value_that_jax_traces_is_seen_by_jax(held: Any) -> None:
    def f(x: Any) -> Any:
        return fnp.sum(fnp.multiply(x, held))

    def by_program(x: Any) -> Any:
        return ft.grad(lambda y: fnp.sum(fnp.multiply(y * y, held)))(x)

    x = jax.numpy.asarray(X, np.float32)
    np.testing.assert_allclose(jax.jit(f)(x), np.sum(X * X))
    np.testing.assert_allclose(jax.grad(f)(x), X)
    np.testing.assert_allclose(jax.vmap(lambda row: fnp.stack([row, row]))(x), np.stack([X, X], axis=1))
    np.testing.assert_allclose(jax.jit(by_program)(x), 2 * X * X)


def test_a_gradient_is_not_lost_to_jax() -> None:
    parameter = tensor(X, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"would lose it as a NumPy array"):
        jax.grad(lambda x: fnp.sum(fnp.multiply(x, parameter)))(jax.numpy.asarray(X, np.float32))
