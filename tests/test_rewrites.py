"""Rewrites: each rule is applied in its samples, and changes neither results nor derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import tables
from random_programs import random_arguments, random_program
from rewriting import counting_rewrites, without_rewrites

import ftrans as ft
from ftrans.rewrites.table import RULES
from ftrans.transforms.differentiate import gradient
from ftrans.transforms.simplify import for_compiler, simplify

X = np.linspace(-1.0, 1.5, 12)
M = X.reshape(3, 4)
SQUARE = np.sin(np.arange(9.0)).reshape(3, 3)
CUBE = np.sin(np.arange(60.0)).reshape(4, 3, 5)
LARGE = np.sin(np.arange(20_000.0)).reshape(200, 100)


WIDE, WEIGHTS = LARGE[:4, :90], LARGE[4:7, :90]


def skinned(m: Any) -> Any:
    """Points that several motions move, each with a share."""
    moved = 0.0
    for k in range(3):
        turned = np.roll(m, k, 1) @ WIDE + np.sin(m[:, k])[:, None]
        moved = moved + WEIGHTS[k] * turned
    return moved


def stirred(m: Any) -> Any:
    pairs = m.reshape(2, 2, 3)
    return np.tensordot(pairs, WIDE[:3], 1).transpose(1, 0, 2) * WEIGHTS[0] + np.sin(pairs) @ WIDE[1:]


def explained(m: Any) -> Any:
    factor = np.linalg.cholesky(m @ m.T + np.eye(3))
    return np.linalg.solve(factor, m) + np.linalg.solve(factor.T, np.cos(m))


CLOUD = np.sin(np.arange(1600.0)).reshape(400, 4)


def whitened(m: Any) -> Any:
    """Distances of points from several means, each by a matrix of its own."""
    roots = m[:, :, None] * CLOUD[:3, None, :] + np.eye(4)
    return np.sum(np.einsum("kij,nkj->nki", roots, CLOUD[:, None] - m) ** 2, 2)


class Sample(NamedTuple):
    """A function of one array in which a rule is applied."""

    rule: str
    function: Callable[[Any], Any]
    argument: Any = X


def filled(x: Any) -> Any:
    y = x * 1.0
    y[np.arange(1, 9, 2)] = np.sin(x[:4])
    return y * x


def raised(x: Any) -> Any:
    y = x * 1.0
    y[2:9:2] += np.sin(x[:4])
    y[3:] -= x[:9]
    return y * x


def assembled(m: Any) -> Any:
    y = m * 1.0
    y[np.ix_([1, 2], [0, 2])] += m[:2, 1:3]
    return y * m


def log_sum(x: Any, scale: float = 1.0) -> Any:
    m = np.max(x, axis=1, keepdims=True)
    return np.squeeze(m, 1) + np.log(np.sum(np.exp((x - m) / scale), axis=1)) * scale


def shares(m: Any) -> Any:
    e = np.exp(m - np.mean(m, 0))
    return e / np.sum(e, 0)


def attention(m: Any) -> Any:
    e = np.exp(m - np.max(m, 1, keepdims=True))
    return e @ np.cos(np.arange(8.0)).reshape(4, 2) / np.sum(e, 1)[:, None]


def scattered(m: Any) -> Any:
    y = m * 1.0
    y[np.ix_([2, 0], [0, 1, 3])] += np.sin(m[:2, :3])
    y[[0, 2], [3, 1]] += m[0, :2]
    return y * m


def scattered_in_a_loop(x: Any) -> Any:
    def step(i: Any, y: Any) -> Any:
        y[i * 3 % 12] += np.sin(x[i]) * y[i]
        return y

    return ft.fori_loop(0, 12, step, x * 1.0)


SAMPLES = [
    Sample("sum without its shift", log_sum, M),
    Sample("sum without its shift", lambda m: log_sum(m, 0.5), M),
    Sample("sum without its shift", lambda x: np.max(x) + np.log(np.sum(np.exp(-(np.max(x) - x)) * X**2))),
    Sample("sum without its shift", lambda x: np.sum(x) + np.log(np.cos(X) @ np.exp(x - np.sum(x)) / 12)),
    Sample("sum without its shift", lambda m: m[0] + np.log(np.mean(np.where(M > 0, np.exp(m - m[0]), 0), 0)), M),
    Sample("difference without its shift", lambda m: (y := m - m[:, :1]) - np.log(np.sum(np.exp(y), 1))[:, None], M),
    Sample("difference without its shift", lambda x: np.log(np.sum(np.exp(x - x[3]))) - (x - x[3])),
    Sample("quotient without its shift", shares, M),
    Sample("quotient without its shift", attention, M),
    Sample("product without its shift", lambda x: np.exp(x - x[3]) * (1 / np.sum(np.exp(x - x[3])))),
    Sample("part of a part", lambda x: np.sin(x[2:11:2])[1:] * x[1:][2:6]),
    Sample("part of a part", lambda m: m[1:, ::2][:, 1:] ** 2, M),
    Sample("part of a part", lambda x: np.concatenate([x, x**2])[13:17] * x[3:7]),
    Sample("part of a part", lambda x: np.concatenate([x[:3], np.sin(x), x[3:]])[3:15:3] * x[8:]),
    Sample("part of a part", lambda m: np.concatenate([m, m**2])[4][1:3] * np.concatenate([m, m**2], 1)[1, 5:7], M),
    Sample("joined parts", lambda x: np.concatenate([x[:5], x[5:]]) ** 2),
    Sample("joined parts", lambda x: np.concatenate([np.concatenate([x[:5], x[6:]])[2:], x]) ** 2),
    Sample("joined parts", lambda x: np.concatenate([np.concatenate([x[:5], x[6:]])[2:], x[:0], x[2:3], x[3:4]]) ** 2),
    Sample("joined parts", lambda m: np.delete(np.delete(np.delete(m, 1, 1), 0, 0), 2, 1) ** 2, X.reshape(2, 6)),
    Sample("joined parts", lambda m: np.concatenate([m[:, :2][1:], m[1:][:, 2:3]], 1) ** 2, M),
    Sample("read in a row", lambda x: x[np.arange(3, 9)] * x[[0, 2, 4, 6, 8, 10]]),
    Sample("read in a row", lambda x: x[np.array([-4, -3, -2])] ** 2),
    Sample("read in a row", lambda m: m[:, [0, 2]] * m[:, [1, 2]], M),
    Sample("read in a row", lambda m: m[np.ix_([1, 2], [0, 2])] ** 2, M),
    Sample("read in runs", lambda m: np.pad(m, 2, mode="edge") ** 2, X.reshape(1, 12)),
    Sample("read in runs", lambda x: np.pad(x, 4, mode="reflect") ** 2),
    Sample("read in runs", lambda x: x[[0, 2, 4, 6, 8, 8, 8, 8, -2, -4, -6, -8]] ** 2),
    Sample("set to sum", raised),
    Sample("set to sum", assembled, M),
    Sample("added side by side", lambda x: x * x - np.roll(x, 3) + 2 * x),
    Sample("added side by side", lambda m: m * m - 3 * np.roll(m, 1, 0) + np.roll(m, -1, 1) + 2 * m, M),
    Sample("set to sum at indices", scattered, M),
    Sample("set to sum at indices", scattered_in_a_loop),
    Sample("added in a row", lambda x: ft.vmap(lambda r: r[np.arange(2, 6)])(x.reshape(1, 12)) ** 2),
    Sample("set in a row", filled),
    Sample("sum of products", lambda m: np.sum(m[:, :, None] * np.sin(m).T[None], axis=1), M),
    Sample("sum of products", lambda m: np.sum(m[:, None, :] * np.sin(m)[None, :, :3], axis=2), M[:, :3]),
    Sample("sum of products", lambda m: np.sum(m[:, None, :] * np.sin(m)[None], (0, 2)), M[:, :3]),
    Sample("sum of products", lambda m: np.sum(m[:, :, None] * np.sin(m)[:, None, :], (0, 2)), M),
    Sample("sum of products", lambda m: 2 * np.sum(m[0, 0] * m[:, None, :] * np.cos(m)[:, :, None] * -2.0, axis=0), M),
    Sample("sum of products", lambda m: np.sum(m[:, 0, None, None] * m[:, None, :] * m[:, :, None], axis=0), M),
    Sample("sum of products", lambda m: np.sum(m[:, :, None] * np.cos(m)[:, None], axis=0) ** 2, M),
    Sample("sum of products", lambda x: np.sum(x * LARGE, axis=1), LARGE[0]),
    Sample("product of product", lambda x: LARGE.T @ LARGE @ np.outer(x, x) @ LARGE[3] @ x, LARGE[0] / 10),
    Sample("product of product", lambda m: (m @ SQUARE) @ m[0], M[:, :3]),
    Sample(
        "product of product", lambda m: np.tensordot(np.tensordot(m, CUBE, 1), m[:3, 0], ([1], [0])), LARGE[:12, :4]
    ),
    Sample("product of product", lambda m: np.tensordot(m[0], np.tensordot(CUBE, m[:, :3], ([1], [0])), ([0], [0])), M),
    Sample("product of product", lambda x: np.outer(x, np.sin(x)) @ np.cos(x) + x @ np.outer(np.cos(x), x)),
    Sample("product of product", lambda x: x @ (np.sin(x)[:, None] @ np.cos(x)[None]) @ SQUARE, X[:3]),
    Sample("product of product", lambda m: m[0] @ ((m @ SQUARE) @ m.T), M[:, :3]),
    Sample("sum of matrix products", skinned, M),
    Sample("sum of matrix products", stirred, M),
    Sample("solve by a factor", explained, M),
    Sample("transposed product", whitened, M),
    Sample("operation on a transposed array", whitened, M),
    Sample("sum of a transposed array", whitened, M),
    Sample("product of transposed arrays", whitened, M),
]


def compared(f: Callable[[Any], Any], argument: Any) -> list[Any]:
    """Results, compiled and not, and derivatives of a function."""

    def total(x: Any) -> Any:
        return np.sum(np.sin(f(x)) * np.cos(np.arange(np.size(f(x))).reshape(np.shape(f(x)))))

    gradient_of = ft.grad(total)
    return [
        ft.vmap(f)(argument[None]),
        ft.jit(f)(argument),
        gradient_of(argument),
        ft.jit(gradient_of)(argument),
        ft.hvp(total, (argument,), (np.cos(argument),)),
    ]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.rule)
def test_a_rule_changes_nothing(sample: Sample) -> None:
    with counting_rewrites() as count:
        found = compared(sample.function, sample.argument)
    assert count[sample.rule]
    with without_rewrites():
        expected = compared(sample.function, sample.argument)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    ft.testing.check_grads(sample.function, sample.argument, order=2)


def test_each_rule_has_a_sample() -> None:
    assert {s.rule for s in SAMPLES} == {rule.name for rule in RULES}


def test_writes_at_repeated_indices_are_no_sums() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y[np.array([1, 1])] += x[:2] ** 2
        return np.sum(y**3)

    expected = X.copy()
    expected[1] += X[1] ** 2
    slope = 3 * expected**2
    slope[1] *= 1 + 2 * X[1]
    np.testing.assert_allclose(ft.grad(f)(X), slope, rtol=1e-12)
    np.testing.assert_allclose(ft.jit(ft.grad(f))(X), slope, rtol=1e-12)


@pytest.mark.parametrize("seed", range(60 if tables.whole else 30))
def test_random_programs(seed: int) -> None:
    arguments = random_arguments(seed)

    def results() -> list[Any]:
        program = random_program(seed)
        derived = gradient(program, (True, True), True)
        forms = simplify(program), for_compiler(program), simplify(derived), for_compiler(derived)
        return [x for form in forms for x in form.check()(*arguments)]

    with without_rewrites():
        expected = results()
    for a, b in zip(results(), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


MATTERING = [
    lambda x: x[3] + np.log(np.sum(np.exp(x - 2 * x[3]))),
    lambda x: x[3] + np.log(1 + np.sum(np.exp(x - x[3]))),
    lambda x: x[3] + np.log(np.sum(np.exp(x - x[3])) * x[3] ** 2),
    lambda x: x[3] + np.log(np.sum(np.exp(x - x[3])) + np.exp(x[3])),
    lambda x: x[3] - np.log(np.sum(np.exp(x - x[3]))),
    lambda x: np.exp(x - x[3]) / np.sum(np.exp(x)),
    lambda x: np.exp(x - x[3]) / np.sum(np.exp(2 * (x - x[3]))),
    lambda x: ft.stop_gradient(x[3]) + np.log(np.sum(np.exp(x - x[3]))),
    lambda x: (y := x[:3].reshape(3, 1)) - np.log(np.sum(np.exp(x[:9].reshape(3, 3) - y[:, 0]), 1, keepdims=True) ** 2),
    lambda x: np.exp((y := x[:9].reshape(3, 3)) - y[0]) / np.sum(np.exp(y - y[0]), 1, keepdims=True),
    lambda x: np.sum(y := x[:3]) + np.log(np.sum(np.exp(x[:9].reshape(3, 3) - y))),
]


@pytest.mark.parametrize("f", MATTERING)
def test_a_shift_that_matters_stays(f: Callable[[Any], Any]) -> None:
    with counting_rewrites() as count:
        found = compared(f, X)
    assert not any("shift" in name for name in count if count[name])
    with without_rewrites():
        expected = compared(f, X)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def random_sum_of_exponentials(seed: int) -> Callable[[Any], Any]:
    """A function of a matrix made of exponentials that are shifted by something, which may cancel or not."""
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(2))
    shift = [np.max, np.min, np.mean, np.sum, np.take, np.std][rng.integers(6)]
    scale, wrong = rng.choice([1.0, 0.5, -2.0], p=[0.6, 0.2, 0.2]), rng.choice([0.0, 1.0], p=[0.8, 0.2])
    weights = rng.uniform(0.5, 1.5, size=(3, 4)) if rng.integers(2) else np.ones((3, 4))
    kind = int(rng.integers(4))

    def f(x: Any) -> Any:
        m = shift(x, 1, axis) if shift is np.take else shift(x, axis)
        m = np.expand_dims(m, axis)
        terms = weights * np.exp((x - m) * scale)
        total = np.sum(terms, axis, keepdims=True) + wrong
        if kind == 0:
            return m * scale + np.log(total)
        if kind == 1:
            return terms / total
        if kind == 2:
            return scale * (x - m) - np.log(total)
        return terms * (1 / total) + m

    return f


@pytest.mark.parametrize("seed", range(24 if tables.whole else 12))
def test_random_shifts(seed: int) -> None:
    f = random_sum_of_exponentials(seed)
    with without_rewrites():
        expected = compared(f, M)
    for a, b in zip(compared(f, M), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
    ft.testing.check_grads(f, M + 0.1 * np.sin(np.arange(12.0)).reshape(3, 4), order=2)


def test_a_shift_that_cannot_matter_keeps_infinities_and_single_precision() -> None:
    x = np.array([[-np.inf, 1.0, 2.0], [1e4, -1e4, 1e4]])
    share = np.exp(x - x.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    for dtype in (np.float64, np.float32):
        for transformed in (ft.grad, lambda f: ft.jit(ft.grad(f))):
            found = transformed(lambda x: np.sum(log_sum(x)))(x.astype(dtype))
            assert found.dtype == dtype
            np.testing.assert_allclose(found, share, rtol=10 * np.finfo(dtype).eps)


def minors(matrix: Any) -> Any:
    """The determinant, by cofactors."""
    if len(matrix) == 1:
        return matrix[0, 0]
    rest = np.delete(matrix, 0, 0)
    return sum((-1) ** j * matrix[0, j] * minors(np.delete(rest, j, 1)) for j in range(len(matrix)))


def test_equal_minors_are_one_value() -> None:
    matrix = np.random.default_rng(0).normal(size=(7, 7))
    program = ft.trace(minors)(matrix)
    assert len(program.eqns) <= 1_100
    derived = simplify(gradient(program, (True,), False))
    assert len(derived.eqns) <= 2_800
    np.testing.assert_allclose(derived(matrix)[0], np.linalg.det(matrix) * np.linalg.inv(matrix).T, rtol=1e-10)
