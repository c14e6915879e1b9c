"""Rewrites: each rule is applied in its samples, and changes neither results nor derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from random_programs import random_arguments, random_program
from rewriting import counting_rewrites, without_rewrites

import ftrans as ft
from ftrans.rewrites.table import RULES
from ftrans.transforms.differentiate import gradient
from ftrans.transforms.simplify import for_compiler, simplify

X = np.linspace(-1.0, 1.5, 12)
M = X.reshape(3, 4)


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


SAMPLES = [
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
    Sample("added in a row", lambda x: ft.vmap(lambda r: r[np.arange(2, 6)])(x.reshape(1, 12)) ** 2),
    Sample("set in a row", filled),
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
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
    ft.testing.check_grads(sample.function, sample.argument, order=2)


def test_each_rule_has_a_sample() -> None:
    assert {s.rule for s in SAMPLES} == {rule.name for rule in RULES}


@pytest.mark.parametrize("seed", range(60))
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
    assert len(simplify(gradient(program, (True,), False)).eqns) <= 2_800
    np.testing.assert_allclose(ft.grad(minors)(matrix), np.linalg.det(matrix) * np.linalg.inv(matrix).T, rtol=1e-10)
