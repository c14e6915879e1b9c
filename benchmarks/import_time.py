"""What `import ftrans` costs a process that needs NumPy anyway, and that it leaves JAX alone."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys

from .harness import Contender, Row, Table, Verdict, time_side_by_side


def run() -> Table:
    modules = [name for name in ("numpy", "ftrans", "autograd", "jax", "torch") if importlib.util.find_spec(name)]
    imports = {name: Contender(functools.partial(python, f"import {name}")) for name in modules}
    timings = time_side_by_side(imports, seconds=12.0, patience=10.0)
    return Table(
        "import: a fresh process that imports one module",
        [
            Row(
                "whole process",
                {name: timings.typical(name) for name in ("numpy", "ftrans", "autograd", "jax", "torch")},
                [timings.excess("ftrans", "numpy", at_most=0.060)],
            ),
            Row("modules of JAX that are loaded", {}, [jax_modules()]),
        ],
    )


def jax_modules() -> Verdict:
    """How many modules of JAX `import ftrans` loads."""
    if not importlib.util.find_spec("ftrans"):
        return Verdict(None, "", 0, show_count)
    loaded = python("import sys, ftrans; print(sum(name.split('.')[0] in ('jax', 'jaxlib') for name in sys.modules))")
    return Verdict(int(loaded), "after ftrans", 0, show_count)


def show_count(count: float) -> str:
    return f"{count:.0f}"


def python(code: str) -> str:
    """What a fresh process prints that runs `code`."""
    # Installed libraries have their bytecode; one that is read from its source tree is to have it from its second run.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout
