"""Products of stacks of matrices in any order of axes: compiled programs compute what un-jitted ones do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rewriting import counting_rewrites, without_rewrites

import ftrans as ft
from ftrans.transforms.differentiate import gradient
from ftrans.transforms.simplify import for_compiler, simplify

SIZES = {"k": 9, "n": 31, "i": 17, "j": 5, "l": 3, "m": 4}
OPERATIONS = [np.sin, lambda x: 0.5 * x, np.tanh, lambda x: x**2, lambda x: -x, lambda x: x - 1.5]


def array(rng: np.random.Generator, axes: str) -> Any:
    return rng.normal(size=[SIZES[a] for a in axes])


def random_function(seed: int) -> tuple[Callable[..., Any], list[Any]]:
    """A product with shared axes in random orders, operations on its elements, a second product and sums."""
    rng = np.random.default_rng(seed)
    shared, free = ("k", "ln") if seed % 2 else ("lk", "n")
    mixed = ["".join(rng.permutation([*axes])) for axes in (shared + "ij", shared + free + "j", shared + "i" + free)]
    out = mixed[2]
    second = "".join(rng.permutation([*shared, "i", "m"]))
    last = "".join(rng.permutation([*shared, *free, "m"]))
    chosen = [OPERATIONS[i] for i in rng.integers(len(OPERATIONS), size=3)]
    factor, both = array(rng, out[-1]), rng.integers(2)
    axes = tuple(int(i) for i in np.flatnonzero(rng.integers(2, size=len(last))))

    def f(a: Any, b: Any, c: Any, d: Any) -> Any:
        x = np.einsum(f"{mixed[0]},{mixed[1]}->{out}", a, b - d if both else b)
        x = chosen[0](x) * factor
        x = chosen[1](x) + x * np.mean(x)
        y = np.einsum(f"{out},{second}->{last}", x, c)
        return np.sum(chosen[2](y), axes)

    return f, [array(rng, mixed[0]), array(rng, mixed[1]), array(rng, second), array(rng, mixed[1][-1])]


@pytest.mark.parametrize("seed", range(60))
def test_random_products(seed: int) -> None:
    f, arguments = random_function(seed)

    def results() -> list[Any]:
        program = ft.trace(f)(*arguments)
        derived = gradient(ft.trace(lambda *xs: np.sum(np.sin(f(*xs))))(*arguments), (True,) * 4, True)
        return [x for form in (program, derived) for x in for_compiler(form).check()(*arguments)]

    program = ft.trace(f)(*arguments)
    np.testing.assert_allclose(simplify(program).check()(*arguments)[0], f(*arguments), rtol=1e-9, atol=1e-9)
    with without_rewrites():
        expected = results()
    for a, b in zip(results(), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.max(np.abs(b)))


def test_most_random_products_are_rewritten() -> None:
    with counting_rewrites() as count:
        for seed in range(60):
            f, arguments = random_function(seed)
            for_compiler(ft.trace(f)(*arguments))
    for name in ("transposed product", "operation on a transposed array", "product of transposed arrays"):
        assert count[name] > 15, count


def test_no_transpose_is_left_between_products_of_stacks() -> None:
    def f(roots: Any, means: Any, points: Any) -> Any:
        between = points[:, None, :] - means
        return np.sum(np.exp(-np.sum(np.einsum("kij,nkj->nki", roots, between) ** 2, 2)))

    arguments = np.ones((9, 5, 5)), np.ones((9, 5)), np.ones((500, 5))
    program = gradient(ft.trace(f)(*arguments), (True, True, False), True)
    assert "transpose" not in [eqn.primitive.name for eqn in for_compiler(program).eqns]
