"""Sharding: meshes of devices, and how arguments, values and results of functions are divided over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from numbers import Integral
from typing import Any, NamedTuple

from ..base import tree
from ..base.cell import Cell
from ..base.source import at_line, user_line
from ..core.trace import Tracer, current_builder
from ..core.types import ArrayType, type_of
from ..numpy.promotion import asarray
from ..ops.sharding import shard as shard_primitive
from ..xla import is_jax
from ..xla.meshes import is_mesh, make_mesh, partition_spec, put, sharding_for, using_mesh
from .call import name_of, type_name

_MESH_EXAMPLE = "write ft.mesh({'data': 8}), or ft.mesh((4, 2), ('data', 'model'))"


def __getattr__(name: str) -> Any:
    if name == "P":
        return partition_spec()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def mesh(sizes: Any, names: Sequence[str] | None = None, *, devices: Sequence[Any] | None = None) -> Any:
    """A grid of devices with named axes, over which arrays can be divided.

    This is `jax.make_mesh` with Auto axes: XLA decides how the values of a program are divided, from how its arguments
    are and from what `ft.shard` says.

    Args:
        sizes: a dict from names of axes to their sizes, or a sequence of sizes.  One size may be -1: as many as there
            are devices.
        names: the names, if `sizes` is a sequence.
        devices: the devices, as from `jax.devices()`; by default all.

    Returns:
        A `jax.sharding.Mesh`.

    Raises:
        TypeError: sizes are not integers, or names not strings.
        ValueError: there are fewer devices, or the numbers of sizes and names differ.

    Example:
        >>> import ftrans as ft
        >>> ft.mesh({"data": 1}).axis_names
        ('data',)
    """
    if isinstance(sizes, Mapping):
        if names is not None:
            raise TypeError(f"ft.mesh got names twice, in a dict and beside it; {_MESH_EXAMPLE}{at_line(user_line())}")
        names, sizes = [*sizes], [*sizes.values()]
    if not _is_sequence(sizes) or not all(isinstance(n, Integral) and not isinstance(n, bool) for n in sizes):
        raise TypeError(
            f"ft.mesh takes sizes that are integers, not {type_name(sizes)}; {_MESH_EXAMPLE}{at_line(user_line())}"
        )
    if names is None or not _is_sequence(names) or not all(isinstance(n, str) for n in names):
        raise TypeError(
            f"ft.mesh takes a name for each axis, not {type_name(names)}; {_MESH_EXAMPLE}{at_line(user_line())}"
        )
    sizes, names = [int(n) for n in sizes], list(names)
    if len(sizes) != len(names) or len(set(names)) != len(names) or not names:
        raise ValueError(
            f"ft.mesh got {len(sizes)} sizes and the names {names}, but each axis has a size and a name of its own; "
            f"{_MESH_EXAMPLE}{at_line(user_line())}"
        )
    if sizes.count(-1) > 1 or any(n < 1 and n != -1 for n in sizes):
        raise ValueError(
            f"the sizes of a mesh are positive, and at most one is -1, but they are {sizes}; {_MESH_EXAMPLE}"
            + at_line(user_line())
        )
    return make_mesh(sizes, names, devices)


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def use_mesh(mesh: Any) -> AbstractContextManager[Any]:
    """A context in which specs without a mesh are of this one.

    They are those of `ft.shard`, and of `in_shardings` and `out_shardings` of `ft.jit`, which compiles a function once
    for each mesh.

    Args:
        mesh: the mesh, of `ft.mesh` or of JAX.

    Returns:
        A context manager; `with ... as mesh` gives the mesh.

    Raises:
        TypeError: it is no mesh.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> with ft.use_mesh(ft.mesh({"data": 1})):
        ...     y = ft.jit(np.sin, out_shardings=ft.P("data"))(np.ones(8))
        >>> y.sharding.spec == ft.P("data")
        True
    """
    if not is_mesh(mesh):
        raise TypeError(f"ft.use_mesh takes a mesh, not {type_name(mesh)}; {_MESH_EXAMPLE}{at_line(user_line())}")
    return using_mesh(mesh)


def shard(x: Any, spec: Any, mesh: Any = None) -> Any:
    """The same array, divided over the devices of a mesh.

    In compiled functions it tells XLA how a value is to be divided; what is computed from it follows.  Elsewhere it
    copies a JAX array to the devices.  NumPy arrays stay as they are.  Derivatives are divided as the values are.
    Under `vmap` the axis of the batch is left to XLA.

    Args:
        x: array, or a container of arrays.
        spec: a `ft.P` with, for each axis of the array, the name of an axis of the mesh, several, or None for an axis
            that is not divided; or a sharding of JAX, or a container of these, of which each stands for what it is at
            the place of.
        mesh: the mesh of the spec; by default that of `ft.use_mesh`.

    Returns:
        `x`, with its elements in other places.

    Raises:
        TypeError: `x` is no array, or `spec` no spec.
        ValueError: there is no mesh, or the spec does not fit the mesh or the array.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> mesh = ft.mesh({"data": 1})
        >>> f = ft.jit(lambda x: np.sum(ft.shard(np.sin(x), ft.P("data"), mesh)))
        >>> round(float(f(np.ones(8))), 3)
        6.732
    """
    if mesh is not None and not is_mesh(mesh):
        raise TypeError(f"the mesh of ft.shard is {type_name(mesh)}; {_MESH_EXAMPLE}{at_line(user_line())}")
    leaves, structure = tree.flatten(x)
    wanted = _spread(spec, x, "the spec of ft.shard", "the value")
    return tree.unflatten(
        structure,
        [y if s is None else _sharded(y, s, mesh) for y, s in zip(leaves, wanted, strict=True)],
    )


def _sharded(x: Any, spec: Any, mesh: Any) -> Any:
    x = x.read() if isinstance(x, Cell) else x
    try:
        type = type_of(x)
    except TypeError:
        raise TypeError(f"ft.shard takes arrays, but it was given {type_name(x)}{at_line(user_line())}") from None
    sharding = sharding_for(spec, mesh, type, "the array", "ft.shard")
    if isinstance(x, Tracer) or (current_builder() is not None and not is_jax(x)):
        return recorded(x, sharding)
    return put(x, sharding) if is_jax(x) else x


def recorded(x: Any, sharding: Any) -> Any:
    """A value in the running trace, divided like this."""
    return shard_primitive(asarray(x), mesh=sharding.mesh, spec=sharding.spec)


def _spread(prefix: Any, container: Any, what: str, of: str) -> list[Any]:
    """One sharding for each leaf of a container; None for a leaf about which nothing is said."""
    leaves, structure = tree.flatten(container)
    # Errors show the container, but no elements.
    container = tree.unflatten(structure, list(range(len(leaves))))
    try:
        found = tree.broadcast_prefix(prefix, container)
        places = tree.broadcast_prefix(container, container)
    except ValueError as error:
        raise ValueError(f"{what}, {prefix!r}, is no container like {of}: {error}{at_line(user_line())}") from None
    return [s for s, x in zip(found, places, strict=True) if x is not None]


class Shardings(NamedTuple):
    """What the user of `jit` says about how arguments and results are divided.

    Attributes:
        f: the function.
        arguments: a sharding for all arguments, or one for each; None for those that they have.
        results: the same for the result; None to leave it to XLA.
    """

    f: Callable[..., Any]
    arguments: Any
    results: Any

    def of_arguments(self, args: tuple[Any, ...], kwargs: Any, types: Sequence[ArrayType]) -> list[Any] | None:
        """The shardings of the leaves of arguments, without static ones; None if nothing is said about any."""
        if self.arguments is None:
            return None
        if kwargs:
            raise TypeError(
                f"in_shardings of ft.jit are those of positional arguments, but {name_of(self.f)} was called with "
                f"{', '.join(kwargs)} by name; give all arguments by position{at_line(user_line())}"
            )
        prefix = tuple(self.arguments) if isinstance(self.arguments, list) else self.arguments
        return self._resolved(prefix, args, types, "in_shardings", "argument")

    def of_results(self, structure: tree.Structure, types: Sequence[ArrayType]) -> list[Any] | None:
        """The shardings of the leaves of the result; None if nothing is said about any."""
        if self.results is None:
            return None
        return self._resolved(
            self.results, tree.unflatten(structure, list(range(len(types)))), types, "out_shardings", "result"
        )

    def _resolved(self, prefix: Any, container: Any, types: Sequence[ArrayType], name: str, leaf: str) -> list[Any]:
        f, call = name_of(self.f), f"{name} of ft.jit"
        of = f"the arguments of {f}, a tuple of {len(container)}" if leaf == "argument" else f"the results of {f}"
        wanted = _spread(prefix, container, call, of)
        names = [f"{leaf} {path} of {f}" if path else f"the {leaf} of {f}" for path in tree.paths(container)]
        return [
            None if s is None else sharding_for(s, None, t, what, call)
            for s, t, what in zip(wanted, types, names, strict=True)
        ]


def divided(x: Any, sharding: Any) -> Any:
    """A value in the running trace, divided like this; as it is if nothing is said."""
    return x if sharding is None else recorded(x, sharding)
