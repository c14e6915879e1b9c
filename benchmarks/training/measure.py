"""The measures: steps side by side in one process, and building and first steps in processes of their own."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import subprocess
import sys
from types import ModuleType
from typing import Any

from ..harness import Contender, Row, Table, Timings, Verdict, show_seconds, time_side_by_side

LIBRARIES = {"ftrans": "ftrans", "jax": "optax", "torch": "torch", "nnx": "flax", "equinox": "equinox"}
# Parameter arrays -> seconds that a step of ftrans may take beyond that of jax.
# What is started in processes of its own, and its name in the modules of the libraries.
STARTED = {
    "the network of two convolutions": "cnn",
    "the LSTM": "lstm",
    "the DCGAN": "gan",
    "the U-Net": "unet",
}
OVERHEAD = {6: 5e-6, 64: 20e-6, 256: 80e-6}
STARTS = 3


def run() -> Table:
    from ftrans import keep_memory

    from . import with_ftrans

    # For all libraries alike, as in a program that trains: before anything has started threads.
    keep_memory()
    libraries = {name: library(name) for name, needs in LIBRARIES.items() if importlib.util.find_spec(needs)}
    rows = [handling(libraries, count, at_most) for count, at_most in OVERHEAD.items()]
    rows.append(step(libraries, "MLP 784-256-256-10, batch 128", "mlp", {"jax": 1.03, "torch": None}))
    rows.append(step(libraries, "CNN, 28x28, batch 64", "cnn", {"torch": 1.2, "jax": None}))
    rows.append(step(libraries, "GPT, 4 layers of 128, 8x64", "gpt", {"jax": 1.0, "torch": 1.0}))
    rows.append(step(libraries, "LSTM, 100 steps of 128, batch 64", "lstm", {"torch": 1.0, "jax": None}))
    some = {name: libraries[name] for name in ("ftrans", "jax", "torch") if name in libraries}
    rows.append(step(some, "DCGAN, 32x32, batch 32", "gan", {"torch": 1.0, "jax": None}))
    rows.append(step(some, "U-Net, 64x64, batch 4", "unet", {"torch": 1.0, "jax": None}))
    rows += starts(list(libraries))
    rows += [first_step(label, name) for label, name in STARTED.items()] if "jax" in libraries else []
    traces = Verdict(with_ftrans.retraces(1000), "traces", 2, "{:.0f}".format)
    rows.append(Row("1,000 steps, training and evaluation by turns", {}, [traces]))
    return Table("training: a step with its optimizer, on the CPU", rows)


def library(name: str) -> ModuleType:
    return importlib.import_module(f".with_{name}", __package__)


def handling(libraries: dict[str, ModuleType], count: int, at_most: float) -> Row:
    """A step that costs little but the handling of its parameters."""
    timings = compared(libraries, lambda module: module.chain(count), f"{count} parameter arrays")
    verdicts = [over(timings, "jax", at_most), *(timings.ratio("ftrans", name) for name in ("nnx", "equinox"))]
    return Row(f"a step of {count} arrays of 4 numbers", {n: timings.typical(n) for n in LIBRARIES}, verdicts)


def over(timings: Timings, baseline: str, at_most: float) -> Verdict:
    found = timings.excess("ftrans", baseline).measured
    return Verdict(found, f"over {baseline}", at_most, lambda seconds: f"{seconds * 1e6:+.0f} us")


def step(libraries: dict[str, ModuleType], label: str, name: str, at_most: dict[str, float | None]) -> Row:
    timings = compared(libraries, lambda module: trainer(module, name), label, seconds=15.0)
    verdicts = [timings.ratio("ftrans", baseline, limit) for baseline, limit in at_most.items()]
    return Row(label, {n: timings.typical(n) for n in LIBRARIES}, verdicts)


def trainer(module: ModuleType, name: str) -> Any:
    """What trains a model: a function of its own, or one that is told which."""
    own = getattr(module, f"{name}_trainer", None)
    return module.trainer(name) if own is None else own()


def compared(libraries: dict[str, ModuleType], make: Any, label: str, seconds: float = 6.0) -> Timings:
    print(f"  {label}", file=sys.stderr)
    contenders: dict[str, Contender] = {}
    failures: dict[str, str] = {}
    for name, module in libraries.items():
        try:
            call = make(module)
            call()
            contenders[name] = Contender(functools.partial(called, call))
        except Exception as error:
            failures[name] = f"failed: {type(error).__name__}: {error}"
    timings = time_side_by_side(contenders, seconds=seconds)
    return Timings(timings.rounds, {**timings.failures, **failures})


def called(call: Any) -> tuple[()]:
    # Losses of different initial weights are not to be compared.
    call()
    return ()


def starts(libraries: list[str]) -> list[Row]:
    """What building the GPT and its first step take in a fresh process, the fastest of a few."""
    print("  starting the GPT", file=sys.stderr)
    found: dict[str, list[list[float]]] = {name: [] for name in libraries}
    for _ in range(STARTS):
        for name in libraries:
            found[name].append(started(name, "gpt"))
    best = {name: [min(column) for column in zip(*times, strict=True)] for name, times in found.items()}
    building = {name: times[0] for name, times in best.items()}
    first = {name: times[1] for name, times in best.items()}
    ratio = first["ftrans"] / first["jax"] if "jax" in first else None
    return [
        Row("building the GPT", building, [Verdict(building["ftrans"], "", 0.3, show_seconds)]),
        Row("first step of the GPT", first, [Verdict(ratio, "jax", 0.8, "{:.2f}x".format)]),
    ]


def first_step(label: str, model: str) -> Row:
    """What the first step of another model takes in a fresh process, tracing and compiling included."""
    print(f"  starting {label}", file=sys.stderr)
    found = {name: [started(name, model)[1] for _ in range(STARTS)] for name in ("ftrans", "jax")}
    best = {name: min(times) for name, times in found.items()}
    verdict = Verdict(best["ftrans"] / best["jax"], "jax", 1.0, "{:.2f}x".format)
    return Row(f"first step of {label}", best, [verdict])


_START = """
import json, time
from benchmarks.training import with_{name} as library
from benchmarks.training.measure import trainer
start = time.perf_counter()
library.build_gpt()
built = time.perf_counter()
step = trainer(library, "{model}")
ready = time.perf_counter()
step()
print(json.dumps([built - start, time.perf_counter() - ready]))
"""


def started(name: str, model: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", _START.format(name=name, model=model)], text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    times: list[float] = json.loads(done.stdout.splitlines()[-1])
    return times
