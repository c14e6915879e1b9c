"""The command: `python -m benchmarks [NAME ...] [--device gpu] [--json FILE]`."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from . import (
    anomaly,
    backward,
    checkpoint,
    compiled,
    dense_jacobians,
    disk_cache,
    dispatch,
    first_call,
    gallery,
    gmm,
    high_orders,
    implicit,
    import_time,
    in_place,
    laplacian,
    lowering,
    odeint,
    patching,
    plain,
    progress,
    rolling,
    rosenbrock,
    scan,
    script,
    small_programs,
    solvers,
    structure,
    taylor,
    training,
    while_loop,
)

MEASURES = {
    "import": import_time.run,
    "script": script.run,
    "gallery": gallery.run,
    "rosenbrock": rosenbrock.run,
    "dispatch": dispatch.run,
    "backward": backward.run,
    "small_programs": small_programs.run,
    "in_place": in_place.run,
    "first_call": first_call.run,
    "disk_cache": disk_cache.run,
    "lowering": lowering.run,
    "dense_jacobians": dense_jacobians.run,
    "high_orders": high_orders.run,
    "taylor": taylor.run,
    "implicit": implicit.run,
    "laplacian": laplacian.run,
    "while_loop": while_loop.run,
    "odeint": odeint.run,
    "progress": progress.run,
    "anomaly": anomaly.run,
    "solvers": solvers.run,
    "structure": structure.run,
    "patching": patching.run,
    "plain": plain.run,
    "rolling": rolling.run,
    "training": training.run,
}
DEVICE_MEASURES = {"compiled": compiled.run, "gmm": gmm.run, "scan": scan.run, "checkpoint": checkpoint.run}


def main() -> int:
    options = parse_arguments()
    if options.device == "cpu":
        # The processes that are timed inherit it: none of them is to spend its time on starting a GPU.
        os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    try:
        device = jax.devices(options.device)[0]
    except RuntimeError:
        print("There is no GPU that JAX can use on this machine: nothing was run.")
        return 0
    report: dict[str, Any] = {"machine": machine(device), "measures": {}}
    print(f"{json.dumps(report['machine'])}\n")
    failures = []
    for name in options.names:
        print(f"measuring {name}", file=sys.stderr)
        table = DEVICE_MEASURES[name](device) if name in DEVICE_MEASURES else MEASURES[name]()
        print(table, flush=True)
        failures += table.failures
        report["measures"][name] = table.as_json()
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if failures else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time ftrans side by side with jax, autograd and those other libraries that are installed.",
        epilog="The exit status is 1 if a library failed or gave another value than jax; a missed target is not one.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*MEASURES, *DEVICE_MEASURES])}")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where compiled and gmm run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures, in seconds, to FILE")
    options = parser.parse_args()
    known = {**MEASURES, **DEVICE_MEASURES} if options.device == "cpu" else DEVICE_MEASURES
    options.names = options.names or list(known)
    for name in options.names:
        if name not in known:
            parser.error(f"no measure {name!r} on the {options.device}; there are {', '.join(known)}")
    return options


def machine(device: Any) -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "device": device.device_kind,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{
            name: version(name)
            for name in ("ftrans", "numpy", "jax", "autograd", "torch", "asdex", "casadi", "sparsejac")
        },
    }


def version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
