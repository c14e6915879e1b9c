"""`python -m ftrans doctor`: what is installed, whether it works, and what makes it slower than it need be.

A report is a dictionary of plain values, which `--json` prints as it is; bug reports should have it.  As text, each
part is printed before the next one is found out, since a wrong flag makes XLA end the process.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from ..base.memory_size import memory_of_machine
from ..base.version import __version__

_PACKAGES = ("numpy", "scipy", "optree")
_EXTRAS = ("optax", "rich", "safetensors", "matplotlib", "tqdm", "orbax-checkpoint", "torch")
# In the order in which OpenBLAS asks for them.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
# Settings that are named whether they are set or not.
_MAIN_SETTINGS = ("FTRANS_CACHE_DIR", "JAX_PLATFORMS", "OMP_NUM_THREADS", "XLA_FLAGS")
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
    return dict(parts())


def parts() -> Iterator[tuple[str, Any]]:
    """The parts of a report with their names, one after another."""
    found: dict[str, Any] = {}
    for name, look in _PARTS.items():
        found[name] = look()
        yield name, found[name]
    yield "advice", [advice._asdict() for advice in _advice(found)]


def _settings() -> dict[str, str]:
    return {name: os.environ[name] for name in sorted(os.environ) if _is_setting(name)}


def _is_setting(name: str) -> bool:
    return name in (*_THREADS, "MKL_NUM_THREADS", *_SLOW_SETTINGS) or name.startswith(
        ("JAX_", "FTRANS_", "CUDA_VISIBLE", "XLA_")
    )


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"ftrans": __version__, "python": platform.python_version()}
    found |= {name: _version(name) for name in (*_PACKAGES, *_EXTRAS)}
    # JAX comes in parts, which are those of one release: its compiled part, and one for each kind of GPU.
    jax = {d.name: d.version for d in metadata.distributions() if (d.name or "").startswith("jax")}
    return found | {"jax": None} | dict(sorted(jax.items()))


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
        "threads of NumPy's BLAS": _threads_of_blas(),
        "memory": memory_of_machine(),
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "graphviz": shutil.which("dot"),
    }


def _threads_of_blas() -> int:
    """How many threads products of matrices use, as far as the environment says."""
    given = next((os.environ[name] for name in _THREADS if os.environ.get(name, "").isdigit()), "0")
    return min(int(given) or processors(), processors())


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
        return {"backend": None, "devices": [], "error": _told(error)}


def _told(error: Exception) -> str:
    """An error in one line, without the place in this file that the line of a user is taken for."""
    return f"{type(error).__name__}: {error}".removesuffix(": ").split("\n  at ")[0]


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
        right, error = False, _told(raised)
    return {"gradients are right": right, "seconds with compilation": time.perf_counter() - begun, "error": error}


_PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "versions": _versions,
    "machine": _machine,
    "settings": _settings,
    "cache": _cache,
    "devices": _devices,
    "check": _check,
}


def _unset(name: str) -> str:
    """How a variable of the environment is taken away in the shell of this system."""
    return f"unset {name}" if os.name == "posix" else f"set {name}="


def _advice(found: dict[str, Any]) -> list[Advice]:
    settings, machine, cache = found["settings"], found["machine"], found["cache"]
    advice = _advice_on_errors(found)
    advice += [
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
    return advice


def _advice_on_errors(found: dict[str, Any]) -> list[Advice]:
    """What keeps anything from being compiled."""
    platforms, folder = found["settings"].get("JAX_PLATFORMS"), found["cache"]["folder"]
    error = found["devices"]["error"]
    if error:
        if platforms:
            return [Advice(f"JAX does not start with JAX_PLATFORMS={platforms}: {error}", _unset("JAX_PLATFORMS"))]
        return [Advice(f"JAX does not start: {error}", "pip install --upgrade jax")]
    error = found["check"]["error"]
    if not error:
        return []
    if folder and repr(folder) in error:
        return [Advice(f"nothing can be compiled: {error}", "choose another FTRANS_CACHE_DIR")]
    return [Advice(f"a gradient cannot be compiled: {error}", "pip install --upgrade ftrans jax")]


def section(name: str, part: Any) -> str:
    """One part of a report, for people."""
    if name == "advice":
        lines = [f"  {advice['finding']}\n      {advice['write']}" for advice in part]
        return "\n".join(["what is wrong or slow, and what to write", *(lines or ["  nothing was found"])])
    if name == "settings":
        part = dict.fromkeys(_MAIN_SETTINGS, "not set") | part
    missing = "not installed" if name == "versions" else "none"
    return "\n".join([name, *(f"  {key:<26}{_shown(key, value, missing)}" for key, value in part.items())])


def _shown(name: str, value: Any, missing: str) -> str:
    if value is None or value == []:
        return "not installed" if name == "graphviz" else missing
    if name == "memory":
        return f"{value / 2**30:,.1f} GiB"
    if name == "bytes":
        return f"{value / 2**20:,.1f} MiB"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "; ".join(value)
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def run(as_json: bool) -> int:
    """Print the report; return 0, or 1 if this installation does not compute right gradients."""
    found = {}
    for name, part in parts():
        found[name] = part
        if not as_json:
            print(section(name, part), flush=True)
    if as_json:
        print(json.dumps(found, indent=2))
    return 0 if found["check"]["gradients are right"] else 1
