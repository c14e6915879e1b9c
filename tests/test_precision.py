"""The precision of products and convolutions, as XLA is asked for it."""

from __future__ import annotations

import re
import threading
from typing import Any

import jax
import numpy as np
import pytest

import ftrans as ft

A = np.eye(2, dtype=np.float32)
IMAGE, KERNEL = np.ones((1, 1, 400, 400), np.float32), np.ones((1, 1, 200, 200), np.float32)


def precisions(f: Any, *args: Any) -> set[str]:
    """The precisions of all products in the StableHLO of a function."""
    text = f.lower(*args).as_text()
    return set(re.findall("HIGHEST|HIGH|DEFAULT", text))


def product(a: Any) -> Any:
    return a @ a


def convolution(x: Any, kernel: Any) -> Any:
    return ft.nn.functional.conv2d(x, kernel)


def test_products_have_the_highest_precision_unless_another_one_is_set() -> None:
    f, g = ft.jit(product), ft.jit(ft.grad(lambda a: np.sin(a @ a).sum()))
    assert precisions(f, A) == precisions(g, A) == {"HIGHEST"}
    for name in ("high", "default", "highest"):
        with ft.matmul_precision(name):
            assert precisions(f, A) == precisions(g, A) == {name.upper()}
    assert precisions(f, A) == {"HIGHEST"}


def test_convolutions_obey() -> None:
    f = ft.jit(convolution)
    assert precisions(f, IMAGE, KERNEL) == {"HIGHEST"}
    with ft.matmul_precision("high"):
        assert precisions(f, IMAGE, KERNEL) == {"HIGH"}
        # A small kernel is a product of matrices on a CPU, and a convolution elsewhere.
        assert precisions(f, IMAGE[..., :6, :6], KERNEL[..., :3, :3]) == {"HIGH"}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_double_precision_is_left_alone(dtype: Any) -> None:
    with ft.matmul_precision("default"):
        assert precisions(ft.jit(product), A.astype(dtype)) == {"HIGHEST"}


def test_complex_numbers_of_single_precision_obey() -> None:
    with ft.matmul_precision("default"):
        assert precisions(ft.jit(product), A.astype(np.complex64)) == {"DEFAULT"}


class Compilations:
    """Counts what JAX lowers."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, event: str, seconds: float, **options: Any) -> None:
        self.count += event == "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def compilations() -> Any:
    counter = Compilations()
    jax.monitoring.register_event_duration_secs_listener(counter)
    yield counter
    jax.monitoring.unregister_event_duration_listener(counter)


@pytest.mark.parametrize("make", [ft.jit, lambda f: ft.jit(ft.vmap(f))], ids=["jit", "vmap"])
def test_a_compiled_function_is_compiled_again_for_another_precision(make: Any, compilations: Compilations) -> None:
    f, a = make(product), np.ones((3, 2, 2), np.float32)
    f(a), f(a)
    assert compilations.count == 1
    with ft.matmul_precision("high"):
        f(a), f(a)
        assert compilations.count == 2
    f(a)
    assert compilations.count == 2


def test_what_jax_compiles_around_it_is_compiled_again() -> None:
    loop = jax.jit(lambda x: ft.scan(lambda c, _: (c @ c, None), x, length=2)[0])
    slope = jax.jit(jax.grad(lambda x: ft.jit(lambda x: np.sin(x @ x).sum())(x)))
    for name in ("highest", "default", "high"):
        with ft.matmul_precision(name):
            assert precisions(loop, A) == precisions(slope, A) == {name.upper()}


def test_it_is_for_the_process_without_a_block() -> None:
    f = ft.jit(product)
    found: list[set[str]] = []
    before = jax.config.jax_default_matmul_precision
    try:
        ft.matmul_precision("high")
        thread = threading.Thread(target=lambda: found.append(precisions(f, A)))
        thread.start()
        thread.join()
        with ft.matmul_precision("default"):
            thread = threading.Thread(target=lambda: found.append(precisions(f, A)))
            thread.start()
            thread.join()
            found.append(precisions(f, A))
        found.append(precisions(f, A))
    finally:
        jax.config.update("jax_default_matmul_precision", before)
    assert found == [{"HIGH"}, {"HIGH"}, {"DEFAULT"}, {"HIGH"}]


def test_blocks_nest_and_can_be_entered_again() -> None:
    f, high = ft.jit(product), ft.matmul_precision("high")
    for _ in range(2):
        with high, high, ft.matmul_precision("default"):
            assert precisions(f, A) == {"DEFAULT"}
        assert precisions(f, A) == {"HIGHEST"}
    assert jax.config.jax_default_matmul_precision is None


def test_results_are_the_same_on_a_cpu() -> None:
    a = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    f = ft.jit(product)
    with ft.matmul_precision("default"):
        np.testing.assert_allclose(f(a), a @ a, rtol=1e-6)


@pytest.mark.parametrize("wrong", ["HIGH", "tf32", ""])
def test_unknown_names_are_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r'write "highest", "high" or "default"[\s\S]*test_precision\.py'):
        ft.matmul_precision(wrong)


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="takes the name of a precision, not"):
        ft.matmul_precision(jax.lax.Precision.HIGH)  # type: ignore[arg-type]


def test_blocks_of_several_threads_leave_no_setting() -> None:
    """Both threads have made theirs before one opens its block."""
    f = ft.jit(product)
    first, second = ft.matmul_precision("default"), ft.matmul_precision("high")
    with first:
        assert precisions(f, A) == {"DEFAULT"}
        with second:
            assert precisions(f, A) == {"HIGH"}
    assert jax.config.jax_default_matmul_precision is None


def test_it_is_refused_while_a_function_is_traced() -> None:
    def within(a: Any) -> Any:
        with ft.matmul_precision("default"):
            return a @ a

    with pytest.raises(TypeError, match=r"matmul_precision .*being traced.*around the call[\s\S]*test_precision\.py"):
        ft.jit(within)(A)
