"""How JAX starts: in processes of their own, since XLA reads its options once."""

import importlib.metadata
import os
import subprocess
import sys

import pytest

import ftrans as ft

PROGRAM = """
import os
{before}
import ftrans as ft, numpy as np
x = np.linspace(0.0, 1.0, 200)
f = ft.jit(lambda x: ft.fori_loop(0, 50, lambda i, x: x + 0.01 * np.tanh(x), x))
result = f(x)
for _ in range(50):
    x = x + 0.01 * np.tanh(x)
np.testing.assert_allclose(result, x, rtol=1e-14)
print("xla_cpu_small_call" in f.lower(x).compile().as_text(), os.environ.get("XLA_FLAGS"))
"""
needs_option = pytest.mark.skipif(
    not importlib.metadata.version("jax").startswith(("0.10.", "0.11.")), reason="XLA does it by itself"
)


def _run(before="", flags=None):
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | ({"XLA_FLAGS": flags} if flags else {})
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)], env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


@needs_option
def test_loops_over_small_arrays_are_one_kernel():
    assert _run() == "True None"


@needs_option
def test_the_flags_of_the_user_stay():
    flags = "--xla_backend_optimization_level=1"
    assert _run(flags=flags) == f"True {flags}"
    flags = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1024"
    assert _run(flags=flags) == f"False {flags}"


@needs_option
def test_jax_that_runs_already_is_left_alone():
    assert _run(before="import jax") == "False None"


def test_memory_is_kept():
    # In a process of its own, since the settings last.
    code = "import ftrans as ft; print(ft.keep_memory())"
    kept = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert kept.strip() == str(os.confstr("CS_GNU_LIBC_VERSION") is not None if sys.platform == "linux" else False)


def test_no_c_library(monkeypatch):
    def missing(_):
        raise OSError

    monkeypatch.setattr("ctypes.CDLL", missing)
    assert not ft.keep_memory()
