"""What holds for all tests: JAX runs on the CPU, and compiles fast; and how many random programs are run.

Results do not depend on the machine then.  Most compiled programs of the tests run once, on a few numbers, so what
LLVM could do for their speed takes longer than it saves.
"""

import os

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--programs", type=int, default=150, help="how many random programs of views and writes run in each mode"
    )
