"""The compiled evaluator: programs lowered to XLA through public JAX calls.

Importing this does not import JAX, nor the files that only compiled programs need.
"""

import importlib as _importlib
import typing as _typing

from .kinds import is_deleted, is_jax, is_jax_tracer, is_traced
from .traces import is_in_trace, outside_of_traces

if _typing.TYPE_CHECKING:
    from .compiled import Compiled, Costs, Division, OtherTypes
    from .divided import are_equal, copied, gathered, in_64_bits, is_readable
    from .execute import (
        about_to_run,
        accelerator,
        device_arrays,
        from_dlpack,
        jax_leaves,
        put_on_device,
        run_function,
        run_program,
        to_numpy,
    )
    from .fusion import usual_limit
    from .meshes import is_mesh, with_auto_axes
    from .on_disk import disk_cache, made
    from .placing import Placement, bytes_on_each, parts_along, parts_here, place, place_local, placement, placement_of
    from .precision import Precision
    from .processes import UnequalArguments, differences, digest, from_all, is_across, join, lost, this_process
    from .tune import fastest
    from .watching import watch

__all__ = [
    "Compiled",
    "Costs",
    "Division",
    "OtherTypes",
    "Placement",
    "Precision",
    "UnequalArguments",
    "about_to_run",
    "accelerator",
    "are_equal",
    "bytes_on_each",
    "copied",
    "device_arrays",
    "differences",
    "digest",
    "disk_cache",
    "fastest",
    "from_all",
    "from_dlpack",
    "gathered",
    "in_64_bits",
    "is_across",
    "is_deleted",
    "is_in_trace",
    "is_jax",
    "is_jax_tracer",
    "is_mesh",
    "is_readable",
    "is_traced",
    "jax_leaves",
    "join",
    "lost",
    "made",
    "outside_of_traces",
    "parts_along",
    "parts_here",
    "place",
    "place_local",
    "placement",
    "placement_of",
    "put_on_device",
    "run_function",
    "run_program",
    "this_process",
    "to_numpy",
    "usual_limit",
    "watch",
    "with_auto_axes",
]

_FILES = {
    "compiled": (
        "Compiled",
        "Costs",
        "Division",
        "OtherTypes",
    ),
    "divided": (
        "are_equal",
        "copied",
        "gathered",
        "in_64_bits",
        "is_readable",
    ),
    "execute": (
        "about_to_run",
        "accelerator",
        "device_arrays",
        "from_dlpack",
        "jax_leaves",
        "put_on_device",
        "run_function",
        "run_program",
        "to_numpy",
    ),
    "fusion": ("usual_limit",),
    "meshes": (
        "is_mesh",
        "with_auto_axes",
    ),
    "on_disk": (
        "disk_cache",
        "made",
    ),
    "placing": (
        "Placement",
        "bytes_on_each",
        "parts_along",
        "parts_here",
        "place",
        "place_local",
        "placement",
        "placement_of",
    ),
    "precision": ("Precision",),
    "processes": (
        "UnequalArguments",
        "differences",
        "digest",
        "from_all",
        "is_across",
        "join",
        "lost",
        "this_process",
    ),
    "tune": ("fastest",),
    "watching": ("watch",),
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names}

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> _typing.Any:
        if name not in _FILE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(_importlib.import_module(f".{_FILE_OF[name]}", __name__), name)
        return found
