"""Laplacians, diagonals of Hessians, divergences, curls: against Hessians and Jacobians, and against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from test_finite import GROUPS

import ftrans as ft

rng = np.random.default_rng(0)
W1, B1, W2 = rng.normal(size=(4, 6)), rng.normal(size=6), rng.normal(size=(6, 6))
POINTS = rng.normal(size=(5, 3))
VECTOR = rng.normal(size=4)
MATRIX = rng.normal(size=(3, 3)) + 3 * np.eye(3)


class Row(NamedTuple):
    """A function of one array, and a point where it has second derivatives."""

    name: str
    f: Callable[[Any], Any]
    x: Any


@ft.custom_jvp
def doubled_sine(x: Any) -> Any:
    return np.sin(x)


@doubled_sine.defjvp
def _doubled_sine_jvp(primals: Any, tangents: Any) -> Any:
    return doubled_sine(primals[0]), 2 * np.cos(primals[0]) * tangents[0]


def network(x: Any) -> Any:
    return np.sum(np.tanh(np.tanh(x @ W1 + B1) @ W2) @ W2[:, 0])


def coulomb(x: Any) -> Any:
    d = x[:, None, :] - x[None, :, :]
    eye = np.eye(len(x))
    return np.sum(np.where(eye > 0, 0.0, 1 / np.sqrt(np.sum(d * d, -1) + eye)))


def chain(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def looped(x: Any) -> Any:
    return ft.fori_loop(0, 3, lambda i, c: np.sin(c) * x.sum() + c * x, x).sum()


def scanned(x: Any) -> Any:
    carry, ys = ft.scan(lambda c, a: (np.sin(c + a) * a, c * a), x[0], x)
    return carry * np.sum(ys)


def while_below(x: Any) -> Any:
    return ft.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, np.sin(s[1]) * s[1].sum()), (0, x))[1].sum()


FUNCTIONS = [
    Row("squares", lambda x: np.sum(x**2), VECTOR),
    Row("linear", lambda x: np.sum(3 * x), VECTOR),
    Row("constant", lambda x: 1.0, VECTOR),
    Row("a number", lambda x: np.sin(x) * x, 0.3),
    Row("elementwise chain", lambda x: np.sum(np.log1p(np.exp(np.sin(x) / (1 + x * x)))), VECTOR),
    Row("powers", lambda x: np.sum(np.abs(x) ** 2.5 + x**3 - x**-2.0), VECTOR),
    Row("two arguments of a function", lambda x: np.arctan2(x[0], x[1]) * np.hypot(x[2], x[3]), VECTOR),
    Row("logsumexp", lambda x: np.log(np.sum(np.exp(2 * x))), VECTOR),
    Row("product", np.prod, VECTOR),
    Row("cumulative sum", lambda x: np.prod(np.cumsum(x) ** 2), VECTOR),
    Row("outer product", lambda x: np.sum(np.sin(np.outer(x, x))), VECTOR),
    Row("outer product, summed over one axis", lambda x: np.sum(np.sin(np.outer(x, x).sum(0))), VECTOR),
    Row("outer product times a matrix", lambda x: np.sum(np.sin(np.outer(x, x) @ W1)), VECTOR),
    Row("reversed", lambda x: np.sum(x[::-1] * x**2), VECTOR),
    Row("joined", lambda x: np.sum(np.concatenate([x, x[:2] ** 2, np.ones(3)]) ** 3), VECTOR),
    Row("padded", lambda x: np.sum(np.pad(x, (1, 2))[:-1] * np.pad(x, (2, 1))[1:]), VECTOR),
    Row("indexed", lambda x: np.sum(x[np.array([0, 2, 2])] ** 3 * x[1]), VECTOR),
    Row("assigned", lambda x: np.sum(_assigned(x) ** 3), VECTOR),
    Row("sorted", lambda x: np.max(x) * np.sum(np.sort(x)[:2] ** 3), VECTOR),
    Row("network", network, VECTOR),
    Row("network of particles", lambda x: np.sum(np.tanh(np.tanh(x @ W1[:3]) @ W2) ** 2), POINTS),
    Row("network of scaled inputs", lambda x: network((x - 1) / VECTOR), VECTOR + 2),
    Row("particles", coulomb, POINTS),
    Row("log of a sum over particles", lambda x: np.log(5 + coulomb(x) ** 2), POINTS),
    Row("differences of neighbours", chain, VECTOR),
    Row("exponential of a chain", lambda x: np.exp(-chain(x) / 100), VECTOR),
    Row("quadratic form", lambda x: np.einsum("i,ij,j,i->", x, W2[:4, :4], x, x), VECTOR),
    Row("determinant and inverse", lambda x: np.linalg.det(x) * np.sum(np.linalg.inv(x)), MATRIX),
    Row("solution", lambda x: np.sum(np.linalg.solve(4 * np.eye(4) + np.outer(x, x), x**2)), VECTOR),
    Row("eigenvalues", lambda x: np.sum(np.linalg.eigvalsh(x @ x.T) ** 1.5), MATRIX),
    Row("norm", lambda x: np.linalg.norm(x - 1), VECTOR),
    Row("Fourier transform", lambda x: np.sum(np.abs(np.fft.fft(x**2)) ** 2), VECTOR),
    Row("masked square root", lambda x: np.sum(np.sqrt(np.where(x > 1, x - 1, 0))), np.array([0.0, 1.0, 2.0, 3.0])),
    Row("square of a norm at 0", lambda x: np.linalg.norm(x) ** 2, np.zeros(3)),
    Row("loop", looped, VECTOR),
    Row("scan", scanned, VECTOR),
    Row("while", while_below, VECTOR),
    Row("cond", lambda x: ft.cond(x[0] > 0, lambda x: np.sum(x**3), lambda x: np.prod(np.sin(x)), x), VECTOR),
    Row("checkpoint", lambda x: ft.checkpoint(network)(x) ** 2, VECTOR),
    Row("jitted", lambda x: np.sin(ft.jit(network)(x)) * x[0], VECTOR),
    Row("custom_jvp", lambda x: np.prod(doubled_sine(x * x)), VECTOR),
    Row("root", lambda x: ft.root(lambda y: y**3 + y - np.sum(x**2), 0.5) * x[0], VECTOR),
    Row("float32", lambda x: network(x.astype(np.float64)), VECTOR.astype(np.float32)),
]


def _assigned(x: Any) -> Any:
    y = np.zeros(6) + x[0]
    y[1:5] = x * x
    y[2] += x[3]
    return y


def hessian(row: Row) -> Any:
    size = np.size(row.x)
    return np.asarray(ft.hessian(row.f)(row.x)).reshape(size, size)


@pytest.mark.parametrize("row", FUNCTIONS, ids=[row.name for row in FUNCTIONS])
def test_second_derivatives(row: Row) -> None:
    diagonal = np.diag(hessian(row))
    close = {"rtol": 1e-4 if row.name == "float32" else 1e-9, "atol": 1e-9 * max(1, np.abs(diagonal).max())}
    np.testing.assert_allclose(ft.laplacian(row.f)(row.x), diagonal.sum(), **close)
    np.testing.assert_allclose(np.ravel(ft.hessian_diagonal(row.f)(row.x)), diagonal, **close)
    np.testing.assert_allclose(ft.divergence(ft.grad(row.f))(row.x), diagonal.sum(), **close)
    assert ft.laplacian(row.f)(row.x).dtype == np.asarray(row.f(row.x)).dtype
    assert np.shape(ft.hessian_diagonal(row.f)(row.x)) == np.shape(row.x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("group", GROUPS)
def test_finite_where_the_hessian_is(group: str) -> None:
    for row in GROUPS[group]:
        if row.hessian is None:
            continue
        x = np.asarray(row.x, float)[()]
        diagonal = np.diag(np.asarray(row.hessian, float)) if np.ndim(x) else np.asarray(row.hessian, float)
        scale = np.max(np.abs(diagonal), initial=0.0, where=np.isfinite(diagonal))
        close = {"rtol": 1e-10, "atol": 1e-12 * scale, "err_msg": row.name}
        np.testing.assert_allclose(ft.hessian_diagonal(row.f)(x), diagonal, **close)
        np.testing.assert_allclose(ft.laplacian(row.f)(x), np.sum(diagonal), **close)
