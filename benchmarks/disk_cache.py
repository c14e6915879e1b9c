"""The first call of a compiled function in a process, where an earlier one has left what it compiled on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from .harness import Row, Table, Verdict

ROUNDS = 3
_TIMED = """
import json, time
{prepare}
start = time.perf_counter()
call()
print(json.dumps(time.perf_counter() - start))
"""
PREPARE = {
    "step of a GPT": """
from benchmarks.training import with_ftrans
call = with_ftrans.trainer("gpt")
""",
    "gradient of 300 terms": """
import numpy as np, ftrans as ft
rng = np.random.default_rng(0)
terms = [f"np.{rng.choice(['sin', 'cos', 'tanh'])}({rng.random():.3f} * x) * x[{rng.integers(20)}]" for _ in range(300)]
gradient = ft.jit(ft.grad(eval(f"lambda x: np.sum({' + '.join(terms)})", {"np": np})))
x = np.linspace(0.1, 1.0, 20)
call = lambda: gradient(x)
""",
    "many small gradients": """
import numpy as np, ftrans as ft
functions = [ft.jit(ft.grad(lambda x, k=k: np.sum(np.tanh(x * k) ** 2))) for k in range(2, 22)]
x = np.linspace(0.1, 1.0, 20)
call = lambda: [f(x) for f in functions]
""",
}


def run() -> Table:
    return Table(
        "disk_cache: the first call in a process, with and without a folder of compiled programs",
        [row(name) for name in PREPARE],
    )


def row(name: str) -> Row:
    """The fastest of a few processes without a folder, with an empty one, and with what that has left there."""
    times: dict[str, list[float]] = {"off": [], "first process": [], "second process": []}
    for _ in range(ROUNDS):
        times["off"].append(started(name, ""))
        with tempfile.TemporaryDirectory() as folder:
            times["first process"].append(started(name, folder))
            times["second process"].append(started(name, folder))
    best = {column: min(seconds) for column, seconds in times.items()}
    ratios = [
        Verdict(best["second process"] / best["off"], "off, second", 0.5, "{:.2f}x".format),
        Verdict(best["first process"] / best["off"], "off, first", 1.1, "{:.2f}x".format),
    ]
    return Row(name, best, ratios)


def started(name: str, folder: str) -> float:
    """Seconds of the first call in a process of its own."""
    environment = {**os.environ, "FTRANS_CACHE_DIR": folder}
    code = _TIMED.format(prepare=PREPARE[name])
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return float(json.loads(done.stdout.splitlines()[-1]))
