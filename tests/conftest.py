"""What holds for all tests: how much of the tables is run, and that JAX runs on eight devices of a CPU, compiles
fast and forgets.

Results do not depend on the machine then.  Most compiled programs of the tests run once, on a few numbers, so what
LLVM could do for their speed takes longer than it saves.
"""

import gc
import importlib.metadata
import os
import sys
from collections.abc import Iterator

import planted_faults
import pytest
import tables

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# A test that fails shows where in the library.
os.environ.setdefault("FTRANS_FULL_TRACEBACKS", "1")
# SciPy's BLAS wakes threads for a matrix of three rows, which takes 500 times as long as the work where CPUs are busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What is not divided over devices runs on the first, as it does where there is one.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
FAST = "--xla_backend_optimization_level=0"
# Compiling takes half as long by the older of XLA's two code generators, and when it is not divided among threads.
# How XLA makes code is not ours to test; with `--all` it does as it does for users.  JAX 0.10 knows these switches.
FASTER = f"{FAST} --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run whole tables, and 10,000 random programs")
    parser.addoption(
        "--programs", type=int, help="how many random programs of views and writes run in each mode: 150, or 10,000"
    )
    parser.addoption(
        "--fault", help="plant the fault of this name, as in planted_faults.py, before the library is read"
    )


def pytest_configure(config: pytest.Config) -> None:
    tables.whole = config.getoption("all")
    is_new = not importlib.metadata.version("jax").startswith("0.10.")
    os.environ.setdefault("XLA_FLAGS", FAST if tables.whole or is_new else FASTER)
    if fault := config.getoption("fault"):
        planted_faults.plant(fault)


def pytest_collection_finish() -> None:
    """What has been collected stays until the end, so the garbage collector need not walk through it again.

    What tests make is walked through less often than by default, which takes a tenth of the time of tracing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 50)


@pytest.fixture(autouse=True, scope="module")
def _compiled_programs_are_forgotten() -> Iterator[None]:
    """Each compiled program takes a megabyte, and hardly any is used by two files."""
    yield
    if jax := sys.modules.get("jax"):
        jax.clear_caches()
