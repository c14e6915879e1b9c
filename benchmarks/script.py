"""A whole script, from the start of the process to the printed gradient: what a user waits for."""

from __future__ import annotations

import functools
import importlib.util
import json
from typing import Any

from .harness import Contender, Row, Table, time_side_by_side
from .import_time import python

IMPORTS = {
    "ftrans": "import numpy as np; from ftrans import grad",
    "jax": "import jax, jax.numpy as np; from jax import grad; jax.config.update('jax_enable_x64', True)",
    "autograd": "import autograd.numpy as np; from autograd import grad",
    "torch": "import torch as np; from torch.func import grad; np.set_default_dtype(np.float64)",
}

SCRIPT = """
def f(x):
    y = np.sin(x[1:]) * x[:-1]
    z = np.exp(-(y**2))
    a = np.tanh(z) / (1.0 + y**2)
    b = np.sqrt(1.0 + a * z)
    c = np.log(1.0 + np.abs(b - y))
    d = np.dot(c, z)
    e = np.sum(np.where(y > 0.0, a, b))
    w = np.outer(a, b) @ c
    g = np.mean(w * b)
    return d + e * g

print(grad(f)(np.linspace(-1.0, 1.0, 20)).tolist())
"""


def run() -> Table:
    scripts = {
        name: Contender(functools.partial(printed_gradient, f"{imports}\n{SCRIPT}"))
        for name, imports in IMPORTS.items()
        if importlib.util.find_spec(name)
    }
    timings = time_side_by_side(scripts, reference="jax", seconds=15.0, patience=20.0)
    verdicts = [timings.ratio("ftrans", "jax", at_most=0.35), timings.ratio("ftrans", "autograd", at_most=1.2)]
    return Table(
        "script: a whole process that imports, takes one gradient of a 10-line function, prints it",
        [Row("whole process", {name: timings.typical(name) for name in IMPORTS}, verdicts)],
    )


def printed_gradient(script: str) -> Any:
    return json.loads(python(script))
