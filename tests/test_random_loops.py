"""Random loops mean what Python's loop over the same body means, whatever is moved out of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from checks import assert_all_close
from random_loops import FTRANS, PYTHON, RandomLoop, is_inexact

import ftrans as ft
from ftrans.base import tree
from ftrans.control.loops import motion, residuals, results

LANES = 2
Pair = tuple[Callable[..., Any], Callable[..., Any]]


def move_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small arrays be treated as large ones are."""
    monkeypatch.setattr(motion, "_LARGE_BYTES", 0)
    monkeypatch.setattr(motion, "_SMALLER", 0)
    monkeypatch.setattr(motion, "_ONE_OPERATION_BYTES", 0)


def keep_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hardly anything be small enough."""
    monkeypatch.setattr(motion, "_MOST_BYTES", 0)
    monkeypatch.setattr(results, "_MOST_BYTES", 16)
    for module in (motion, residuals):
        monkeypatch.setattr(module, "SMALL_BYTES", 0)


def close(found: Any, expected: Any) -> None:
    found, expected = tree.flatten(found)[0], tree.flatten(expected)[0]
    assert_all_close(found, [np.asarray(y)[()] for y in expected], looseness=1e4)


def directions(xs: Any) -> list[Any]:
    """One for each array; zeros for those that have none."""
    return [np.cos(x + i) if is_inexact(x) else np.zeros_like(x) for i, x in enumerate(xs)]


def ways(case: RandomLoop) -> dict[str, Pair]:
    """Functions of the arguments, for the scan and for Python's loop."""
    f, g = (case.results(c) for c in (FTRANS, PYTHON))
    every = tuple(range(len(case.args)))
    df, dg = (ft.grad(case.loss(c), every) for c in (FTRANS, PYTHON))
    tangents = tuple(directions(case.args))
    cotangents = directions(g(*case.args))

    def lanes(g: Callable[..., Any]) -> Callable[..., Any]:
        def looped(*xs: Any) -> Any:
            rows = [tree.flatten(g(*(x[i] for x in batch(xs))))[0] for i in range(LANES)]
            return [np.stack(column) for column in zip(*rows, strict=True)]

        return looped

    def batch(xs: Any) -> list[Any]:
        return [np.stack([x * (1.0 - 0.3 * i) for i in range(LANES)]) for x in xs]

    return {
        "value": (f, g),
        "jvp": (lambda *xs: ft.jvp(f, xs, tangents), lambda *xs: ft.jvp(g, xs, tangents)),
        "vjp": (lambda *xs: ft.vjp(f, *xs)[1](cotangents), lambda *xs: ft.vjp(g, *xs)[1](cotangents)),
        "second": (lambda *xs: ft.jvp(df, xs, tangents), lambda *xs: ft.jvp(dg, xs, tangents)),
        "batched": (lambda *xs: ft.vmap(f)(*batch(xs)), lanes(g)),
        "batched gradient": (lambda *xs: ft.vmap(df)(*batch(xs)), lanes(dg)),
    }


def keep_defaults(_: pytest.MonkeyPatch) -> None:
    """Change nothing."""


# Other seeds, because a program that has been simplified stays as it is.
@pytest.mark.parametrize(("thresholds", "first"), [(keep_defaults, 0), (move_everything, 40), (keep_everything, 80)])
def test_values_and_derivatives(
    thresholds: Callable[[pytest.MonkeyPatch], None], first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    thresholds(monkeypatch)
    for seed in range(first, first + 12):
        case = RandomLoop(seed)
        for found, expected in ways(case).values():
            close(found(*case.args), expected(*case.args))


def test_compiled() -> None:
    for seed in range(120, 129):
        case = RandomLoop(seed)
        found, expected = ways(case)["vjp" if seed % 2 else "value"]
        close(ft.jit(found)(*case.args), expected(*case.args))
