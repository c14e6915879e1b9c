"""Placing: which devices hold which parts of an array that is divided over a mesh of them.

`Placement` is JAX's `NamedSharding`: a mesh, and for each axis of the array the axes of the mesh that divide it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.interrupts import uninterrupted
from ..core.types import ArrayType
from .execute import about_to_run
from .kinds import is_jax, is_jax_tracer, seen_anew
from .meshes import with_auto_axes

Placement = Any


def placement_of(x: Any) -> Placement | None:
    """Where an array is, if that is on a mesh of devices."""
    if not is_jax(x) or is_jax_tracer(x):
        return None
    import jax

    found = x.sharding
    return placement(found.mesh, found.spec) if isinstance(found, jax.sharding.NamedSharding) else None


def placement(mesh: Any, spec: Any) -> Placement:
    """The placement by a mesh and a specification of its axes, in a form in which equal ones compare equal.

    Axes of the mesh become `Auto`: the compiler, and not the types of arrays, says where intermediate values are.
    """
    import jax

    entries = list(spec)
    while entries and entries[-1] is None:
        entries.pop()
    return jax.sharding.NamedSharding(with_auto_axes(mesh), jax.sharding.PartitionSpec(*entries))


def parts_along(placement: Placement) -> tuple[tuple[tuple[str, ...], int], ...]:
    """For each axis of an array: the axes of the mesh that divide it, and the number of parts that they make."""
    found = []
    for entry in placement.spec:
        names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        found.append((names, int(np.prod([placement.mesh.shape[name] for name in names], dtype=np.int64))))
    return tuple(found)


def bytes_on_each(placement: Placement, type: ArrayType) -> int:
    """The bytes that each device holds of an array of a type."""
    return math.prod(placement.shard_shape(type.shape)) * type.dtype.itemsize


@uninterrupted
def place(x: Any, placement: Placement) -> Any:
    """An array at a placement; of a NumPy array each device is sent its part alone.

    All processes of the mesh call it, with equal arrays.
    """
    about_to_run()
    import jax

    if is_jax(x) and x.sharding == placement:
        return x
    with jax.enable_x64(True):
        if is_jax(x) or placement.is_fully_addressable:
            return jax.device_put(seen_anew([x])[0], placement)
        array = np.asarray(x)
        return jax.make_array_from_callback(array.shape, placement, lambda index: array[index])


@uninterrupted
def place_local(x: Any, placement: Placement) -> Any:
    """An array of data at a placement; with several processes, each gives the part of its own devices."""
    about_to_run()
    import jax

    if placement.is_fully_addressable or placement_of(x) is not None:
        return place(x, placement)
    with jax.enable_x64(True):
        return jax.make_array_from_process_local_data(placement, np.asarray(x))


def parts_here(parts: int, placement: Placement) -> int:
    """Of so many parts of an array of one axis, the number of those on devices of this process."""
    return len({str(index) for index in placement.addressable_devices_indices_map((parts,)).values()})
