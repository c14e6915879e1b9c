"""Activation functions: values against closed forms, derivatives away from kinks, at kinks and far out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import ftrans as ft
import ftrans.nn.functional as F
from ftrans import autograd
from ftrans.nn import random
from ftrans.testing import check_grads

INF, NAN = math.inf, math.nan
# No kink of any function below is near one of these.
POINTS = np.array([-7.3, -3.4, -2.6, -1.2, -0.83, -0.31, 0.17, 0.72, 1.4, 2.7, 3.6, 6.9])
X = np.random.default_rng(0).normal(size=(3, 4))


def by_parts(low: Callable[[Any], Any], high: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that has one form where its argument is not positive, and another one where it is."""
    return lambda x: np.array([high(v) if v > 0 else low(v) for v in np.ravel(x)]).reshape(np.shape(x))


SELU = 1.0507009873554805, 1.6732632423543772
# Name, arguments, and the same function written differently.
REFERENCES: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
    ("relu", {}, by_parts(lambda v: 0.0, lambda v: v)),
    ("relu6", {}, lambda x: np.minimum(np.maximum(x, 0), 6)),
    ("leaky_relu", {"negative_slope": 0.3}, by_parts(lambda v: 0.3 * v, lambda v: v)),
    ("rrelu", {}, by_parts(lambda v: (1 / 8 + 1 / 3) / 2 * v, lambda v: v)),
    ("elu", {"alpha": 1.5}, by_parts(lambda v: 1.5 * math.expm1(v), lambda v: v)),
    ("selu", {}, by_parts(lambda v: SELU[0] * SELU[1] * math.expm1(v), lambda v: SELU[0] * v)),
    ("celu", {"alpha": 2.0}, by_parts(lambda v: 2 * math.expm1(v / 2), lambda v: v)),
    ("gelu", {}, lambda x: x * scipy.special.ndtr(x)),
    ("gelu", {"approximate": "tanh"}, lambda x: x * scipy.special.expit(1.5957691216057308 * (x + 0.044715 * x**3))),
    ("silu", {}, lambda x: x * scipy.special.expit(x)),
    ("mish", {}, lambda x: x * np.tanh(np.logaddexp(x, 0))),
    ("sigmoid", {}, scipy.special.expit),
    ("logsigmoid", {}, scipy.special.log_expit),
    ("tanh", {}, np.tanh),
    ("tanhshrink", {}, lambda x: x - np.tanh(x)),
    ("hardshrink", {"lambd": 1.0}, lambda x: x * (np.abs(x) > 1)),
    ("softshrink", {"lambd": 1.0}, lambda x: np.sign(x) * np.maximum(np.abs(x) - 1, 0)),
    ("hardtanh", {"min_val": -2.0, "max_val": 3.0}, lambda x: np.clip(x, -2, 3)),
    ("hardsigmoid", {}, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    ("hardswish", {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    ("softplus", {}, lambda x: np.logaddexp(x, 0)),
    ("softplus", {"beta": 2.0, "threshold": 100.0}, lambda x: np.logaddexp(2 * x, 0) / 2),
    ("softsign", {}, lambda x: x / (1 + np.abs(x))),
    ("threshold", {"threshold": 1.0, "value": 20.0}, lambda x: np.where(x > 1, x, 20.0)),
]
EACH = pytest.mark.parametrize(("name", "options", "reference"), REFERENCES, ids=lambda v: v if type(v) is str else "")


@EACH
def test_values(name: str, options: dict[str, Any], reference: Callable[[Any], Any]) -> None:
    f = lambda x: getattr(F, name)(x, **options)  # noqa: E731
    np.testing.assert_allclose(f(POINTS), reference(POINTS), rtol=1e-12, atol=1e-14)
    assert f(POINTS).dtype == np.float64
    assert f(POINTS.astype(np.float32)).dtype == np.float32
    program = ft.trace(f)(POINTS.astype(np.float32))
    assert {v.type.dtype.name for eqn in program.eqns for v in eqn.outputs} <= {"float32", "bool"}
    np.testing.assert_allclose(program(POINTS.astype(np.float32))[0], reference(POINTS), rtol=1e-5, atol=1e-6)
    narrow = POINTS.astype(ml_dtypes.bfloat16)
    for found in (f(narrow), ft.vmap(f)(narrow)):
        assert found.dtype == narrow.dtype
        np.testing.assert_allclose(found.astype(float), reference(narrow.astype(float)), rtol=0.02, atol=0.01)


@EACH
def test_derivatives(name: str, options: dict[str, Any], reference: Callable[[Any], Any]) -> None:
    f = lambda x: getattr(F, name)(x, **options)  # noqa: E731
    # Far below 0, the digits of gelu are those of its rounding.
    check_grads(f, POINTS[np.abs(POINTS) < 5] if name == "gelu" else POINTS, order=2)
    tensor = autograd.tensor(POINTS, requires_grad=True)
    np.sum(f(tensor)).backward()
    assert tensor.grad is not None
    np.testing.assert_allclose(tensor.grad.numpy(), ft.grad(lambda x: np.sum(f(x)))(POINTS), rtol=1e-12)


# Function, point, value, first derivative
KINKS: list[tuple[str, float, float, float]] = [
    ("relu", 0.0, 0.0, 0.0),
    ("relu", -0.0, 0.0, 0.0),
    ("relu", INF, INF, 1.0),
    ("relu", -INF, 0.0, 0.0),
    ("relu6", 0.0, 0.0, 0.0),
    ("relu6", 6.0, 6.0, 0.0),
    ("leaky_relu", 0.0, 0.0, 0.01),
    ("elu", 0.0, 0.0, 1.0),
    ("elu", 1000.0, 1000.0, 1.0),
    ("elu", -INF, -1.0, 0.0),
    ("selu", 0.0, 0.0, SELU[0] * SELU[1]),
    ("selu", 1000.0, 1000.0 * SELU[0], SELU[0]),
    ("celu", 0.0, 0.0, 1.0),
    ("celu", 1000.0, 1000.0, 1.0),
    ("hardshrink", 0.5, 0.0, 0.0),
    ("hardshrink", -0.5, 0.0, 0.0),
    ("softshrink", 0.5, 0.0, 0.0),
    ("softshrink", -0.5, 0.0, 0.0),
    ("hardtanh", -1.0, -1.0, 0.0),
    ("hardtanh", 1.0, 1.0, 0.0),
    ("hardsigmoid", 3.0, 1.0, 0.0),
    ("hardsigmoid", -3.0, 0.0, 0.0),
    ("hardswish", 3.0, 3.0, 1.0),
    ("hardswish", -3.0, 0.0, 0.0),
    ("hardswish", 1e200, 1e200, 1.0),
    ("softplus", 1000.0, 1000.0, 1.0),
    ("softplus", -1000.0, 0.0, 0.0),
    ("softplus", 0.0, math.log(2), 0.5),
    ("logsigmoid", 1000.0, 0.0, 0.0),
    ("logsigmoid", -1000.0, -1000.0, 1.0),
    ("logsigmoid", -INF, -INF, 1.0),
    ("logsigmoid", 0.0, -math.log(2), 0.5),
    ("sigmoid", 1000.0, 1.0, 0.0),
    ("sigmoid", -1000.0, 0.0, 0.0),
    ("sigmoid", -40.0, 4.248354255291589e-18, 4.248354255291589e-18),
    ("silu", 1000.0, 1000.0, 1.0),
    ("silu", -1000.0, 0.0, 0.0),
    ("silu", 0.0, 0.0, 0.5),
    ("mish", 1000.0, 1000.0, 1.0),
    ("mish", -1000.0, 0.0, 0.0),
    ("mish", 0.0, 0.0, 0.6),
    ("gelu", 0.0, 0.0, 0.5),
    ("gelu", 1000.0, 1000.0, 1.0),
    ("gelu", -1000.0, 0.0, 0.0),
    ("softsign", 0.0, 0.0, 1.0),
    ("tanhshrink", 1000.0, 999.0, 1.0),
]


@pytest.mark.parametrize(("name", "x", "value", "slope"), KINKS, ids=lambda v: str(v))
def test_kinks_and_extremes(name: str, x: float, value: float, slope: float) -> None:
    f = getattr(F, name)
    found = ft.value_and_grad(f)(x)
    np.testing.assert_allclose(found, (value, slope), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(ft.jvp(f, (x,), (1.0,))[1], slope, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(f(np.array([x])), [value], rtol=1e-12, atol=1e-300)
    assert np.isfinite(ft.grad(ft.grad(ft.grad(f)))(x))


def test_gelu_by_tanh_is_finite_where_squares_are_not() -> None:
    f = lambda x: F.gelu(x, "tanh")  # noqa: E731
    for x, value, slope in [(1e200, 1e200, 1.0), (-1e200, 0.0, 0.0)]:
        assert ft.value_and_grad(f)(x) == (value, slope)


def test_nan_stays_nan() -> None:
    for name in ("relu", "relu6", "leaky_relu", "elu", "hardtanh", "hardswish", "softshrink", "hardshrink", "softplus"):
        assert np.isnan(getattr(F, name)(np.array([NAN]))).all(), name


def test_compiled_values_are_those_of_numpy() -> None:
    names = [name for name, *_ in REFERENCES if name != "threshold"]

    def all_of(x: Any) -> Any:
        return np.stack([getattr(F, name)(x) for name in names])

    compiled = ft.jit(ft.value_and_grad(lambda x: np.sum(all_of(x) ** 2)))(POINTS)
    expected = ft.value_and_grad(lambda x: np.sum(all_of(x) ** 2))(POINTS)
    np.testing.assert_allclose(compiled[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(compiled[1], expected[1], rtol=1e-10, atol=1e-12)


# Over an axis


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(dim: int) -> None:
    np.testing.assert_allclose(F.softmax(X, dim), scipy.special.softmax(X, dim), rtol=1e-13)
    np.testing.assert_allclose(F.log_softmax(X, dim), scipy.special.log_softmax(X, dim), rtol=1e-13)
    np.testing.assert_allclose(F.softmin(X, dim), scipy.special.softmax(-X, dim), rtol=1e-13)
    for f in (F.softmax, F.log_softmax, F.softmin):
        check_grads(lambda x, f=f: f(x, dim), X)  # type: ignore[misc]
    assert F.softmax(X.astype(np.float32), dim).dtype == np.float32
    assert F.softmax(X, dim, dtype=np.float32).dtype == np.float32


def test_softmax_of_impossible_and_of_large_scores() -> None:
    x = np.array([-INF, 1000.0, 1000.0, 0.0])
    np.testing.assert_array_equal(F.softmax(x), [0, 0.5, 0.5, 0])
    np.testing.assert_allclose(F.log_softmax(x), [-INF, -math.log(2), -math.log(2), -1000 - math.log(2)])
    np.testing.assert_allclose(ft.jacobian(F.softmax)(x)[1], [0, 0.25, -0.25, 0])
    np.testing.assert_allclose(ft.jacobian(F.log_softmax)(x)[1], [0, 0.5, -0.5, 0])
    assert np.isfinite(ft.hessian(lambda x: F.log_softmax(x)[1])(x)).all()
    assert ft.value_and_grad(lambda x: F.softmax(x))(3.0) == (1.0, 0.0)


def test_softmax_needs_an_axis() -> None:
    with pytest.raises(TypeError, match=r"needs dim.*\n.*F.softmax\(np.zeros"):
        F.softmax(np.zeros((2, 3, 4)))
    with pytest.raises(IndexError, match="dim=2 of log_softmax is out of range"):
        F.log_softmax(X, 2)


def test_glu() -> None:
    np.testing.assert_allclose(F.glu(X), X[:, :2] * scipy.special.expit(X[:, 2:]))
    np.testing.assert_allclose(F.glu(X[:2], 0), X[:1] * scipy.special.expit(X[1:2]))
    check_grads(F.glu, X)
    with pytest.raises(ValueError, match="size must be even"):
        F.glu(X, 0)


def test_prelu() -> None:
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    slopes = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(F.prelu(x, slopes), np.where(x > 0, x, slopes[:, None] * x))
    np.testing.assert_allclose(F.prelu(x, np.array([0.5])), np.where(x > 0, x, 0.5 * x))
    assert ft.grad(F.prelu)(0.0, np.array([0.25])) == 0.25
    check_grads(F.prelu, x, slopes)
    with pytest.raises(ValueError, match="must hold 1 or 3 slopes"):
        F.prelu(x, np.ones(4))


@pytest.mark.parametrize("p", [1, 2, 3, 0.5, INF])
def test_normalize(p: float) -> None:
    norms = np.linalg.norm(X, p, axis=1, keepdims=True) if p != 0.5 else np.sum(np.sqrt(abs(X)), 1, keepdims=True) ** 2
    np.testing.assert_allclose(F.normalize(X, p), X / norms)
    check_grads(lambda x: F.normalize(x, p), X)


def test_normalize_a_vector_of_zeros() -> None:
    for p in (1, 2, 3, INF):
        np.testing.assert_array_equal(F.normalize(np.zeros((1, 3)), p), np.zeros((1, 3)))
        slopes = ft.jacobian(lambda x, p=p: F.normalize(x, p, dim=0))(np.zeros(3))  # type: ignore[misc]
        np.testing.assert_allclose(slopes, 1e12 * np.eye(3))
    assert np.isfinite(ft.hessian(lambda x: F.normalize(x, dim=0)[0])(np.zeros(2))).all()


def test_normalize_keeps_nan() -> None:
    assert np.isnan(F.normalize(np.array([[1.0, NAN]]))).all()
    assert np.isnan(F.cosine_similarity(np.array([[1.0, NAN]]), np.ones((1, 2)))).all()


def test_softmax_of_nothing() -> None:
    for f in (F.softmax, F.log_softmax):
        assert f(np.ones((2, 0)), dim=1).shape == (2, 0)
        assert f(np.ones((0, 2)), dim=1).shape == (0, 2)


@EACH
def test_lists_are_as_good_as_arrays(name: str, options: dict[str, Any], reference: Callable[[Any], Any]) -> None:
    f, x = getattr(F, name), [1.5, -2.0]
    np.testing.assert_array_equal(f(x, **options), f(np.array(x), **options))


# Random


def test_random_slopes() -> None:
    x = np.array([-1.0, 2.0] * 500)
    y = F.rrelu(x, 0.25, 0.5, training=True, rng=random.key(0))
    np.testing.assert_array_equal(y[1::2], x[1::2])
    assert (y[::2] <= -0.25).all()
    assert (y[::2] >= -0.5).all()
    assert abs(-y[::2].mean() - 0.375) < 0.02
    with pytest.raises(TypeError, match="rrelu needs rng"):
        ft.grad(lambda x: F.rrelu(x, training=True).sum())(x)
    with pytest.raises(ValueError, match="must not be greater than upper"):
        F.rrelu(x, 0.5, 0.25)


def test_gumbel_softmax() -> None:
    logits = np.log(np.tile([0.1, 0.3, 0.6], (4000, 1)))
    hard = F.gumbel_softmax(logits, hard=True, rng=random.key(0))
    np.testing.assert_allclose(hard.sum(1), 1)
    np.testing.assert_allclose(hard.mean(0), [0.1, 0.3, 0.6], atol=0.03)
    weights = np.array([1.0, 2.0, 4.0])

    def loss(x: Any, hard: bool) -> Any:
        return np.sum(F.gumbel_softmax(x, 0.5, hard, rng=random.key(1)) @ weights)

    np.testing.assert_allclose(ft.grad(loss)(logits[:5], True), ft.grad(loss)(logits[:5], False))
    check_grads(lambda x: F.gumbel_softmax(x, rng=random.key(1)), logits[:3])
    with pytest.raises(TypeError, match="gumbel_softmax needs rng"):
        ft.grad(lambda x: F.gumbel_softmax(x).sum())(logits)


def test_arguments_that_make_no_sense() -> None:
    for call, message in [
        (lambda: F.hardtanh(X, 1.0, -1.0), "above max_val"),
        (lambda: F.softshrink(X, -1.0), "cannot be negative"),
        (lambda: F.celu(X, 0.0), "cannot be 0"),
        (lambda: F.gelu(X, "exact"), "must be 'none' or 'tanh'"),  # type: ignore[arg-type]
    ]:
        with pytest.raises(ValueError, match=message):
            call()
