"""`python -m ftrans doctor`: what is installed, whether it works, and what makes it slower than it need be.

A report is a dictionary of plain values, which `--json` prints as it is; bug reports should have it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from ..base.memory_size import memory_of_machine
from ..base.version import __version__

_PACKAGES = ("numpy", "scipy", "optree")
_EXTRAS = ("optax", "rich", "safetensors", "matplotlib", "tqdm", "orbax-checkpoint", "torch")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "XLA_FLAGS")
# Settings of JAX, XLA and Python that are for looking for mistakes, and what each of them costs.
_SLOW_SETTINGS = {
    "JAX_DISABLE_JIT": "nothing is compiled",
    "JAX_DEBUG_NANS": "every result is looked at",
    "JAX_ENABLE_CHECKS": "JAX checks what it does",
    "JAX_LOG_COMPILES": "every compilation is logged",
    "PYTHONDEVMODE": "Python checks what it does",
    "PYTHONMALLOC": "Python does not use its own allocator",
}
_SLOW_FLAGS = {
    "--xla_dump_to": "every compiled program is written to a file",
    "--xla_backend_optimization_level=0": "compiled code is not optimized",
    "--xla_llvm_disable_expensive_passes=true": "compiled code is optimized less",
    "--xla_cpu_multi_thread_eigen=false": "products of matrices use one thread",
}


class Advice(NamedTuple):
    """Something that makes this set-up slower or smaller than it could be, and what to do about it."""

    finding: str
    write: str


def report() -> dict[str, Any]:
    """All that `doctor` says, with a list of advice at the end."""
    found: dict[str, Any] = {
        "versions": _versions(),
        "machine": _machine(),
        "settings": {name: os.environ[name] for name in sorted(os.environ) if _is_setting(name)},
        "cache": _cache(),
        "devices": _devices(),
        "check": _check(),
    }
    found["advice"] = [advice._asdict() for advice in _advice(found)]
    return found


def _is_setting(name: str) -> bool:
    return name in _THREADS or name in _SLOW_SETTINGS or name.startswith(("JAX_", "FTRANS_", "CUDA_VISIBLE", "XLA_"))


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"ftrans": __version__, "python": platform.python_version()}
    found |= {name: _version(name) for name in (*_PACKAGES, *_EXTRAS)}
    # JAX comes in parts, which are those of one release: its compiled part, and one for each kind of GPU.
    return found | {d.name: d.version for d in metadata.distributions() if (d.name or "").startswith("jax")}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _machine() -> dict[str, Any]:
    import numpy as np

    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return {
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "usable processors": processors(),
        "memory": memory_of_machine(),
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "graphviz": shutil.which("dot"),
    }


def _cache() -> dict[str, Any]:
    folder = os.environ.get("FTRANS_CACHE_DIR") or os.environ.get("JAX_COMPILATION_CACHE_DIR")
    if not folder or not Path(folder).is_dir():
        return {"folder": folder or None, "files": 0, "bytes": 0, "writable": None}
    sizes = [path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()]
    return {"folder": folder, "files": len(sizes), "bytes": sum(sizes), "writable": os.access(folder, os.W_OK)}


def _devices() -> dict[str, Any]:
    try:
        import jax

        devices = [f"{device.platform} {device.id}: {device.device_kind}" for device in jax.devices()]
        return {"backend": jax.default_backend(), "devices": devices, "error": None}
    except Exception as error:
        # Whatever it is, the rest of the report helps to see why.
        return {"backend": None, "devices": [], "error": f"{type(error).__name__}: {error}"}


def _check() -> dict[str, Any]:
    """A gradient, un-jitted and compiled."""
    import numpy as np

    from ..api.derivatives import grad
    from ..api.jit import jit

    def f(x: Any) -> Any:
        return np.sum(np.sin(x) ** 2)

    x = np.linspace(0.0, 1.0, 5)
    begun = time.perf_counter()
    try:
        right = bool(np.allclose(grad(f)(x), np.sin(2 * x)) and np.allclose(jit(grad(f))(x), np.sin(2 * x)))
        error = None
    except Exception as raised:
        right, error = False, f"{type(raised).__name__}: {raised}"
    return {"gradients are right": right, "seconds with compilation": time.perf_counter() - begun, "error": error}


def _unset(name: str) -> str:
    """How a variable of the environment is taken away in the shell of this system."""
    return f"unset {name}" if os.name == "posix" else f"set {name}="


def _advice(found: dict[str, Any]) -> list[Advice]:
    settings, machine, cache = found["settings"], found["machine"], found["cache"]
    advice = [
        Advice(f"{name}={settings[name]}: {cost}", _unset(name))
        for name, cost in _SLOW_SETTINGS.items()
        if settings.get(name, "").lower() not in ("", "0", "false")
    ]
    flags = settings.get("XLA_FLAGS", "").split()
    advice += [
        Advice(f"XLA_FLAGS has {flag}: {cost}", "leave it out of XLA_FLAGS")
        for flag, cost in _SLOW_FLAGS.items()
        if any([given.startswith(flag) for given in flags])
    ]
    if sys.dont_write_bytecode:
        advice.append(Advice("Python compiles the library at each start", _unset("PYTHONDONTWRITEBYTECODE")))
    if cache["folder"] is None:
        set_folder = (
            "export FTRANS_CACHE_DIR=$HOME/.cache/ftrans"
            if os.name == "posix"
            else r"setx FTRANS_CACHE_DIR %LOCALAPPDATA%\ftrans"
        )
        advice.append(Advice("each process compiles anew", set_folder))
    elif cache["writable"] is False:
        advice.append(Advice(f"{cache['folder']} cannot be written to", "choose another FTRANS_CACHE_DIR"))
    threads = settings.get("OMP_NUM_THREADS", "")
    if threads.isdigit() and int(threads) < machine["usable processors"]:
        advice.append(
            Advice(
                f"OMP_NUM_THREADS={threads} of {machine['usable processors']} processors for products of matrices",
                f"{_unset('OMP_NUM_THREADS')}, unless many processes share the machine",
            )
        )
    if found["devices"]["backend"] == "cpu" and shutil.which("nvidia-smi"):
        advice.append(Advice("there is a GPU that JAX does not use", "pip install 'ftrans[gpu]'"))
    if found["devices"]["error"]:
        advice.append(Advice(f"JAX does not start: {found['devices']['error']}", "pip install --upgrade jax"))
    return advice


def as_text(found: dict[str, Any]) -> str:
    """A report for people."""
    lines = []
    for title, part in found.items():
        if title == "advice":
            continue
        lines.append(title)
        lines += [f"  {name:<26}{_shown(name, value)}" for name, value in part.items()] or ["  none"]
    lines.append("what makes it slower, and what to write")
    lines += [f"  {advice['finding']}\n      {advice['write']}" for advice in found["advice"]] or [
        "  nothing was found"
    ]
    return "\n".join(lines)


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in ("memory", "bytes"):
        return f"{value / 2**20:,.1f} MiB"
    if isinstance(value, list):
        return "; ".join(value) or "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def run(as_json: bool) -> int:
    """Print the report; return 0, or 1 if this installation does not compute right gradients."""
    found = report()
    print(json.dumps(found, indent=2) if as_json else as_text(found))
    return 0 if found["check"]["gradients are right"] else 1
