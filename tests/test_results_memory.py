"""Whose memory the results of compiled functions are in: their own, and they can be written to."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn

LARGE = 150_000
CAPTURED = np.arange(float(LARGE))
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "computed": lambda x, y: (x * y, x + y),
    "itself": lambda x, y: x,
    "twice": lambda x, y: (x, x, y),
    "computed twice": lambda x, y: ((z := x * y), z),
    "the same again": lambda x, y: (x * y, x * y),
    "reshaped": lambda x, y: (x.reshape(2, -1), (x * y).reshape(-1, 2), x * y),
    "no change": lambda x, y: (x + 0.0, x * 1.0, x[:], np.copy(x), x.astype(float)),
    "parts": lambda x, y: (x[: LARGE - 1], np.concatenate([x, y])[:LARGE]),
    "constant": lambda x, y: (np.zeros(LARGE), np.arange(float(LARGE)), x),
    "captured": lambda x, y: (CAPTURED + 0 * x, np.asarray(CAPTURED), x),
    "chosen": lambda x, y: np.where(x > -1, x, y),
    "called": lambda x, y: ft.jit(lambda a: a)(x),
    "loop": lambda x, y: ft.fori_loop(0, 3, lambda i, c: c, (x, y)),
    "branch": lambda x, y: ft.cond(x[0] >= 0, lambda a: a, lambda a: 2 * a, x),
    "checkpoint": lambda x, y: ft.checkpoint(lambda a: a)(x),
    "integers": lambda x, y: (x > 1, x.astype(np.int32), x.astype(complex), x.astype(np.float32)),
    "container": lambda x, y: {"a": [x * 2], "n": None, "s": x.sum()},
}


def arrays_of(x: Any) -> list[np.ndarray]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, list | tuple):
        return [array for part in x for array in arrays_of(part)]
    return [x] if isinstance(x, np.ndarray) else []


def aligned(count: int) -> np.ndarray:
    """An array at an address for which XLA computes on it where it is."""
    memory = np.zeros(8 * count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + 8 * count].view(float)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_have_memory_of_their_own(name: str) -> None:
    f = FUNCTIONS[name]
    compiled = ft.jit(f)
    x, y = aligned(LARGE), aligned(LARGE)
    x[:], y[:] = np.arange(LARGE), 2.0
    before = x.copy(), y.copy(), CAPTURED.copy()
    expected = [array.copy() for array in arrays_of(f(x, y))]
    kept: list[np.ndarray] = []
    for _ in range(3):
        results = arrays_of(compiled(x, y))
        assert len(results) == len(expected)
        for result, right in zip(results, expected, strict=True):
            assert result.flags.writeable
            assert result.dtype == right.dtype
            np.testing.assert_array_equal(result, right)
            assert not any(np.may_share_memory(result, other) for other in (x, y, CAPTURED, *kept))
            # Nothing else may change with it.
            result[...] = 1
            kept.append(result)
        # Of what has just been made, that is, in a process that may hold millions of objects.
        gc.collect(0)
        for array, was in zip((x, y, CAPTURED), before, strict=True):
            np.testing.assert_array_equal(array, was)
    assert all(np.all(array == 1) for array in kept)


def test_a_large_result_is_not_copied() -> None:
    f = ft.jit(lambda x: 2 * x)
    assert f(np.ones(LARGE)).base is not None
    assert f(np.ones(3)).base is None


def test_results_of_modules() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(np.ones(LARGE))

        def forward(self, x: Any) -> Any:
            self.weight.value = 2 * self.weight
            return self.weight * x, self.weight.value

    model, step = Scale(), nn.jit(lambda model, x: model(x))
    for n in range(1, 5):
        product, weight = step(model, np.ones(LARGE))
        np.testing.assert_array_equal(product, np.full(LARGE, 2.0**n))
        product[...] = weight[...] = 7
        np.testing.assert_array_equal(model.weight.numpy(), np.full(LARGE, 2.0**n))
