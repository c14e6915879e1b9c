"""Meshes: grids of devices with named axes, and how arrays are divided over them.

All is JAX's.  Programs are divided by XLA (GSPMD), so the axes of a mesh are `Auto` here: XLA finds the sharding of
each value.  JAX's own default, `Explicit`, makes the sharding a part of an array's type, which the lowered programs do
not say; arrays with such axes are relabelled when they come in, which copies nothing, and results when they go out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from ..base.source import at_line, user_line
from ..core.types import ArrayType
from .kinds import is_jax, is_jax_tracer
from .starting import start

_current: ContextVar[Any] = ContextVar("mesh", default=None)

# The mesh of `use_mesh`; None outside of it.
current_mesh = _current.get


@contextmanager
def using_mesh(mesh: Any) -> Iterator[Any]:
    """Specs without a mesh are of this one."""
    token = _current.set(mesh)
    try:
        yield mesh
    finally:
        _current.reset(token)


def make_mesh(sizes: Sequence[int], names: Sequence[str], devices: Sequence[Any] | None) -> Any:
    """A mesh with Auto axes; a size of -1 stands for as many as there are devices.

    Raises:
        TypeError: `devices` are no devices.
        ValueError: there are fewer devices.
    """
    start()
    import jax

    try:
        found = jax.devices() if devices is None else list(devices)
        is_right = all(isinstance(d, jax.Device) for d in found)
    except TypeError:
        is_right = False
    if not is_right:
        raise TypeError(
            f"the devices of a mesh are a list of JAX's, as from jax.devices(), not {devices!r}{at_line(user_line())}"
        )
    fixed = math.prod(n for n in sizes if n > 0)
    sizes = [n if n > 0 else max(len(found) // fixed, 1) for n in sizes]
    count = math.prod(sizes)
    if count > len(found):
        shape = " x ".join(map(str, sizes))
        raise ValueError(
            f"a mesh of {shape} devices needs {count}, but there are {len(found)}. A CPU becomes several devices by "
            f'JAX_NUM_CPU_DEVICES={count} in the environment, or jax.config.update("jax_num_cpu_devices", {count}) '
            f"before JAX is first used{at_line(user_line())}"
        )
    types = (jax.sharding.AxisType.Auto,) * len(sizes)
    return jax.make_mesh(tuple(sizes), tuple(names), axis_types=types, devices=devices and found)


def is_mesh(x: Any) -> bool:
    """Whether `x` is a mesh of JAX."""
    import jax

    return isinstance(x, jax.sharding.Mesh)


def partition_spec() -> Any:
    """The class `jax.sharding.PartitionSpec`."""
    start()
    from jax.sharding import PartitionSpec

    return PartitionSpec


@functools.lru_cache(maxsize=256)
def with_auto_axes(mesh: Any) -> Any:
    """The same mesh with Auto axes."""
    from jax.sharding import AxisType, Mesh

    types = (AxisType.Auto,) * len(mesh.axis_names)
    return mesh if mesh.axis_types == types else Mesh(mesh.devices, mesh.axis_names, axis_types=types)


def sharding_for(wanted: Any, mesh: Any, type: ArrayType, what: str, call: str) -> Any:
    """What a user wrote as a JAX sharding, checked against the type of the array.

    Args:
        wanted: a `PartitionSpec`, or a sharding of JAX.
        mesh: the mesh of specs; None for that of `use_mesh`.
        type: type of the array.
        what: the array, for messages.
        call: what takes the spec, for messages.

    Raises:
        TypeError: it is neither.
        ValueError: it has no mesh, or does not fit the mesh or the array.
    """
    from jax.sharding import NamedSharding, PartitionSpec, Sharding

    if isinstance(wanted, PartitionSpec):
        mesh = current_mesh() if mesh is None else mesh
        if mesh is None:
            raise ValueError(
                f"{call} got {wanted} without a mesh; call it in `with ft.use_mesh(mesh):`, or give "
                f"NamedSharding(mesh, {wanted}), where mesh = ft.mesh({{'data': 8}}){at_line(user_line())}"
            )
        spec = wanted
    elif isinstance(wanted, NamedSharding):
        mesh, spec = wanted.mesh, wanted.spec
    elif isinstance(wanted, Sharding):
        return wanted
    else:
        raise TypeError(
            f"{call} takes specs such as ft.P('data') or ft.P(None, 'data'), or shardings of JAX, not {wanted!r}"
            + at_line(user_line())
        )
    _check(spec, mesh, type, what, call)
    return NamedSharding(with_auto_axes(mesh), spec)


def _check(spec: Any, mesh: Any, type: ArrayType, what: str, call: str) -> None:
    """Check that a spec fits a mesh and an array."""
    if len(spec) > type.ndim:
        raise ValueError(
            f"{call}: {spec} has {len(spec)} entries, but {what} is {type}; a spec has at most one entry for each axis "
            f"of the array: write ft.P({', '.join(map(repr, tuple(spec)[: type.ndim]))})" + at_line(user_line())
        )
    for axis, entry in enumerate(spec):
        names = names_in(entry)
        for name in names:
            if name not in mesh.shape:
                known = ", ".join(map(repr, mesh.axis_names))
                raise ValueError(
                    f"{call}: {spec} names the axis {name!r}, but the mesh has {known}; write one of these, or None "
                    f"for an axis that is not divided{at_line(user_line())}"
                )
        parts = math.prod(mesh.shape[name] for name in names)
        if type.shape[axis] % parts:
            over = " * ".join(map(repr, names))
            raise ValueError(
                f"{call}: axis {axis} of {what} has {type.shape[axis]} elements, which {over} = {parts} devices cannot "
                f"share equally; pad it to {-(-type.shape[axis] // parts) * parts}, or write None for this axis in "
                f"{spec}{at_line(user_line())}"
            )


def names_in(entry: Any) -> tuple[str, ...]:
    """The axes of the mesh in one entry of a spec."""
    if isinstance(entry, str):
        return (entry,)
    return entry if isinstance(entry, tuple) else ()


def put(x: Any, sharding: Any) -> Any:
    """A JAX array divided like this; in what JAX traces, a constraint."""
    import jax

    if is_jax_tracer(x):
        return jax.lax.with_sharding_constraint(x, sharding)
    return jax.device_put(x, sharding)


def is_on_several_devices(x: Any) -> bool:
    """Whether `x` is a JAX array on several devices."""
    return is_jax(x) and not is_jax_tracer(x) and len(x.sharding.device_set) > 1


def mesh_of(arrays: Sequence[Any]) -> Any:
    """The mesh that JAX tracers are divided over, without its devices; None if there is none.

    In code of JAX for each device (`jax.shard_map`), nothing is left to be divided.
    """
    import jax
    from jax.sharding import AxisType

    for x in arrays:
        mesh = jax.typeof(x).sharding.mesh
        if not mesh.empty:
            return mesh if set(mesh.axis_types) == {AxisType.Auto} else None
    return None


def replicated(arrays: Sequence[Any], mesh: Any) -> list[Any]:
    """JAX tracers, each of them whole on all devices of a mesh."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    whole = NamedSharding(mesh, PartitionSpec())
    return [jax.lax.with_sharding_constraint(x, whole) for x in arrays]


# Arrays with Explicit axes


class ExplicitAxes(TypeError):
    """A program meets arrays with Explicit axes, or runs where a mesh with such axes is the one in use."""

    def __init__(self) -> None:
        super().__init__(
            "a function of ftrans is called by a JAX transformation on arrays that are divided over Explicit axes of a "
            "mesh; make the mesh by ft.mesh, or by jax.make_mesh(..., axis_types=(AxisType.Auto,)), or call it in "
            f"jax.sharding.auto_axes{at_line(user_line())}"
        )


def _is_explicit(mesh: Any) -> bool:
    from jax.sharding import AxisType

    return AxisType.Explicit in mesh.axis_types


def require_auto_axes(tracers: Sequence[Any]) -> None:
    """Raise ExplicitAxes if a program that JAX traces has to say how its values are divided."""
    import jax

    meshes = [jax.typeof(x).sharding.mesh for x in tracers]
    if any(map(_is_explicit, [jax.sharding.get_abstract_mesh(), *meshes])):
        raise ExplicitAxes


class Relabelled:
    """Arrays as a program takes them, where some have Explicit axes.

    Attributes:
        arrays: the arrays, with Auto axes.
        context: in which to run the program on them.
    """

    def __init__(self, arrays: Sequence[Any]) -> None:
        import jax

        self._explicit: Any = None
        self.context: AbstractContextManager[Any] = nullcontext()
        if _is_explicit(jax.sharding.get_abstract_mesh()) and not any(map(is_jax_tracer, arrays)):
            self._explicit = jax.sharding.get_mesh()
            self.context = jax.set_mesh(with_auto_axes(self._explicit))
        self.arrays = [*map(self._relabel, arrays)]

    def _relabel(self, x: Any) -> Any:
        import jax
        from jax.sharding import NamedSharding

        if not is_jax(x) or is_jax_tracer(x):
            return x
        sharding = x.sharding
        if not isinstance(sharding, NamedSharding) or not _is_explicit(sharding.mesh):
            return x
        self._explicit = sharding.mesh
        return jax.device_put(x, NamedSharding(with_auto_axes(sharding.mesh), sharding.spec))

    def back(self, results: Sequence[Any]) -> list[Any]:
        """Results with Explicit axes, as the arguments had."""
        import jax
        from jax.sharding import NamedSharding

        if self._explicit is None:
            return list(results)
        auto = with_auto_axes(self._explicit)
        return [
            jax.device_put(y, NamedSharding(self._explicit, y.sharding.spec))
            if isinstance(y.sharding, NamedSharding) and y.sharding.mesh == auto
            else y
            for y in results
        ]


# Devices that do not fit


def other_devices(arrays: Sequence[Any]) -> ValueError | None:
    """The error for arrays that are bound to different devices; None if they are not."""
    bound = [x for x in arrays if is_jax(x) and not is_jax_tracer(x) and x.committed]
    groups = {frozenset(x.sharding.device_set): x for x in bound}
    if len(groups) < 2:
        return None
    one, *_, many = sorted(groups.values(), key=lambda x: len(x.sharding.device_set))
    return ValueError(
        f"arrays on different devices meet: one of shape {one.shape} is on {_where(one)}, one of shape {many.shape} on "
        f"{_where(many)}. ft.shard(x, ft.P(), mesh) puts a copy of the first on each device of the second's mesh, "
        f"ft.shard(x, ft.P('data'), mesh) divides it; NumPy arrays go where the others are{at_line(user_line())}"
    )


def other_division(arrays: Sequence[Any], wanted: Sequence[Any]) -> ValueError | None:
    """The error for arrays that are on the devices, but not divided as `in_shardings` says; None if all are."""
    for i, (x, s) in enumerate(zip(arrays, wanted, strict=False)):
        if s is None or not is_jax(x) or is_jax_tracer(x) or not x.committed:
            continue
        if not x.sharding.is_equivalent_to(s, x.ndim):
            return ValueError(
                f"array {i} of the arguments, of shape {x.shape}, is divided as {_spec(x.sharding)}, but in_shardings "
                f"says {_spec(s)}; divide it before by ft.shard(x, ft.{_spec(s)}, mesh), or write None in in_shardings "
                f"to take it as it is{at_line(user_line())}"
            )
    return None


def _spec(sharding: Any) -> Any:
    return getattr(sharding, "spec", sharding)


def _where(x: Any) -> str:
    devices = sorted(x.sharding.device_set, key=lambda d: d.id)
    return f"{devices[0]} alone" if len(devices) == 1 else f"{len(devices)} devices as {_spec(x.sharding)}"
