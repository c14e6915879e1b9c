"""Where arrays live: NumPy in and out, JAX in and out, inside of JAX's own transformations, threads, imports."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checks import assert_close

import ftrans as ft
import ftrans.numpy as fnp

X = np.array([1.0, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def _configuration_of_jax_stays() -> Iterator[None]:
    before = {name: getattr(jax.config, name) for name in ("jax_enable_x64", "jax_numpy_dtype_promotion")}
    yield
    assert before == {name: getattr(jax.config, name) for name in before}


def on_jax(x: Any) -> Any:
    """A float64 JAX array."""
    with jax.enable_x64(True):
        return jnp.asarray(x)


def assert_jax(actual: Any, expected: Any) -> None:
    """Assert that a JAX array has the type and values of a NumPy array."""
    assert isinstance(actual, jax.Array)
    assert_close(np.asarray(actual)[()], np.asarray(expected)[()])


def energy(x: Any) -> Any:
    return np.sum(np.sin(x) * x**2)


def slope(x: Any) -> Any:
    return np.cos(x) * x**2 + 2 * np.sin(x) * x


def run_script(script: str) -> str:
    """Run Python code in a process of its own; return what it prints."""
    command = [sys.executable, "-W", "error", "-c", script]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


# Imports


def test_import_does_not_import_jax() -> None:
    script = "import sys, ftrans; print([m for m in sys.modules if m.split('.')[0] in ('jax', 'jaxlib', 'scipy')])"
    assert run_script(script).strip() == "[]"


def test_a_gradient_imports_no_more_than_it_needs() -> None:
    script = """
import sys
import numpy as np
import ftrans as ft
ft.grad(lambda x: np.sum(np.sin(x) ** 2))(np.ones(3))
print({m.split(".")[1] for m in sys.modules if m.startswith("ftrans.")})
print("ftrans.control.loops" in sys.modules, "ftrans.numpy.linalg" in sys.modules)
"""
    folders, rest = run_script(script).splitlines()
    assert set(ast.literal_eval(folders)) == {
        "api",
        "base",
        "control",
        "core",
        "numpy",
        "ops",
        "rewrites",
        "run",
        "transforms",
        "xla",
    }
    assert rest == "False False"


def test_derivatives_of_numpy_arrays_do_not_import_jax() -> None:
    script = """
import sys
import numpy as np
import ftrans as ft
x = np.array([1.0, 2.0])
f = lambda x: np.sum(np.linalg.solve(np.outer(x, x) + np.eye(2), np.sort(x)) ** 2) if x[0] > 0 else 0.0
ft.grad(f)(x), ft.hessian(f)(x), ft.vmap(np.sin)(x), ft.jacobian(np.cumsum)(x), ft.hvp(f, (x,), (x,))
ft.scan(lambda c, x: (c * x, c), 1.0, x)
print("jax" in sys.modules)
"""
    assert run_script(script).strip() == "False"


def test_jit_leaves_the_configuration_of_jax_alone() -> None:
    script = """
import numpy as np
import ftrans as ft
y = ft.jit(lambda x: np.sin(x) * 2)(np.ones(3))
import jax
print(y.dtype, jax.config.jax_enable_x64, jax.numpy.ones(3).dtype)
"""
    assert run_script(script).split() == ["float64", "False", "float32"]


# NumPy in, NumPy out


@pytest.mark.parametrize("transform", [ft.grad, ft.jacfwd, ft.jacrev, lambda f: ft.jit(ft.grad(f)), ft.vmap])
def test_numpy_in_numpy_out(transform: Any) -> None:
    result = transform(energy)(X)
    assert type(result) is np.ndarray
    assert result.dtype == np.float64
    assert result.flags.writeable


def test_results_with_no_axes_are_numpy_scalars() -> None:
    for f in (energy, ft.jit(energy), ft.grad(lambda s: energy(s * X))):
        assert type(f(X) if f is energy or "jit" in f.__name__ else f(2.0)) is np.float64


def test_unusual_layouts() -> None:
    for x in (M.T, M[:, ::-1], np.asfortranarray(M), M[::2, 1:]):
        assert_close(ft.grad(energy)(x), slope(x))
        assert_close(ft.jit(ft.grad(energy))(x), slope(x))


def test_read_only_and_subclass_inputs() -> None:
    x = X.copy()
    x.flags.writeable = False
    assert_close(ft.grad(energy)(x), slope(X))
    assert_close(ft.jit(energy)(x), np.asarray(energy(X))[()])


def test_arrays_of_another_byte_order() -> None:
    x = X.astype(X.dtype.newbyteorder())
    assert_close(ft.grad(energy)(x), slope(X))
    assert_close(ft.jit(ft.grad(energy))(x), slope(X))
    assert_close(ft.jit(lambda y: y * x)(X), X * X)


def test_zero_dimensional_arrays() -> None:
    assert_close(ft.grad(energy)(np.array(2.0)), np.float64(slope(2.0)))
    assert_close(ft.grad(energy)(np.float64(2.0)), np.float64(slope(2.0)))


# JAX in, JAX out


@pytest.mark.parametrize("compiled", [False, True])
def test_jax_in_jax_out(compiled: bool) -> None:
    x, m = on_jax(X), on_jax(M)
    maybe_jit = ft.jit if compiled else lambda f: f
    assert_jax(maybe_jit(ft.grad(energy))(x), slope(X))
    assert_jax(maybe_jit(ft.hessian(energy))(x), ft.hessian(energy)(X))
    assert_jax(maybe_jit(ft.vmap(energy))(m), np.array([energy(row) for row in M]))
    value, gradient = maybe_jit(ft.value_and_grad(energy))(x)
    assert_jax(value, energy(X))
    assert_jax(gradient, slope(X))


def test_jax_arrays_in_other_functions() -> None:
    x = on_jax(X)
    out, pushed = ft.jvp(energy, (x,), (x,))
    assert_jax(out, energy(X))
    assert_jax(pushed, np.sum(slope(X) * X))
    out, pull = ft.vjp(np.sin, x)
    assert_jax(pull(x)[0], np.cos(X) * X)
    out, push = ft.linearize(np.sin, x)
    assert_jax(push(x), np.cos(X) * X)
    carry, ys = ft.scan(lambda c, x: (c + x, c * x), on_jax(0.0), x)
    assert_jax(carry, 6.0)
    assert_jax(ys, np.array([0.0, 2.0, 9.0]))


def test_one_jax_array_is_enough() -> None:
    assert_jax(ft.grad(lambda x, y: np.sum(x * y))(on_jax(X), X), X)
    assert_jax(ft.grad(lambda x, y: np.sum(x * y))(X, on_jax(X)), X)
    assert_jax(ft.jit(lambda x, y: x * y)(X, on_jax(X)), X * X)
    weights = on_jax(X)
    assert_jax(ft.grad(lambda x: np.sum(x * fnp.sin(weights)))(X), np.sin(X))
    assert_jax(ft.jit(lambda x: x * weights)(X), X * X)


def test_jax_float32_stays_float32() -> None:
    x = jnp.asarray(X, np.float32)
    assert ft.grad(energy)(x).dtype == np.float32
    assert ft.jit(ft.grad(energy))(x).dtype == np.float32


def test_bfloat16() -> None:
    x = jnp.ones(3, jnp.bfloat16)
    assert ft.grad(lambda x: np.sum(x * x * 1.5))(x).dtype == jnp.bfloat16
    assert ft.jit(ft.grad(lambda x: np.sum(x * x * 1.5)))(np.asarray(x)).dtype == jnp.bfloat16


def test_functions_of_the_numpy_face_on_jax_arrays() -> None:
    assert_jax(fnp.sin(on_jax(X)), np.sin(X))
    assert_jax(fnp.sum(on_jax(M), axis=0), M.sum(0))
    assert type(fnp.sin(X)) is np.ndarray


# Inside of JAX


def test_inside_of_jax_jit() -> None:
    with jax.enable_x64(True):
        assert_jax(jax.jit(ft.grad(energy))(X), slope(X))
        assert_jax(jax.jit(ft.jit(ft.hessian(energy)))(X), ft.hessian(energy)(X))
        assert_jax(jax.jit(lambda x: ft.vmap(ft.grad(energy))(x) + jnp.sin(x))(M), slope(M) + np.sin(M))


def test_inside_of_jax_vmap() -> None:
    with jax.enable_x64(True):
        assert_jax(jax.vmap(ft.grad(energy))(M), slope(M))
        assert_jax(jax.vmap(ft.jit(ft.grad(energy)))(M), slope(M))


def test_inside_of_jax_grad() -> None:
    with jax.enable_x64(True):
        assert_jax(jax.grad(ft.jit(energy))(on_jax(X)), slope(X))
        assert_jax(jax.jacobian(ft.grad(energy))(on_jax(X)), ft.hessian(energy)(X))


def test_a_branch_inside_of_jax_is_refused() -> None:
    f = ft.grad(lambda x: x**2 if x > 0 else -x)
    for g in (f, ft.jit(f)):
        with pytest.raises(TypeError, match=r"(?s)where.*cond.*test_arrays\.py:\d+"):
            jax.jit(g)(1.0)


# Threads


def test_two_threads_trace_at_once() -> None:
    start, results, errors = threading.Barrier(4), {}, []

    def work(k: int) -> None:
        try:
            start.wait()
            for n in range(40):
                f = lambda x: np.sum(np.sin(x * (k + 1)) ** (n % 5 + 1))  # noqa: E731, B023
                results[k, n] = ft.grad(f)(X)
            ft.jit(ft.grad(energy))(X * k)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for (k, n), result in results.items():
        x, power = X * (k + 1), n % 5 + 1
        np.testing.assert_allclose(result, (k + 1) * power * np.sin(x) ** (power - 1) * np.cos(x), rtol=1e-12)
