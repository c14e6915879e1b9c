"""nn.shard: models on a mesh of devices, divided by rules.

Everything else follows from where cells are: XLA divides what is computed from them, and puts in the collectives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from ...api.call import type_name
from ...base.source import at_line, user_line
from ...xla import differences, digest, is_across, is_mesh, is_readable, place, placement, with_auto_axes
from ..cells.array_cell import ArrayCell
from ..modules.graph import Graph, graph_of
from ..modules.module import Module
from ..modules.roots import require_module
from .sharding_rules import DataParallel, Fsdp, Rule, TensorParallel, as_rules

AnyModule = TypeVar("AnyModule", bound=Module)


def shard(model: AnyModule, mesh: Any, rules: Any = None) -> AnyModule:
    """Put a model on a mesh of devices, each array divided as a rule says, in place.

    From then on its cells stay where they are, whatever is assigned to them; optimizers (`nn.Optimizer`) and averages
    (`nn.EMA`) that are made for it are divided like its parameters; and compiled functions of it run on all devices of
    the mesh, with the same results as on one.

    Args:
        model: the model; or an optimizer or an average, which is placed together with its model.
        mesh: a mesh of JAX, such as `ft.mesh({"data": 8})`.
        rules: how arrays are divided, in order; the first that says something of an array holds.  Each is a pair of a
            pattern and a spec (`ft.P`, which is `jax.sharding.PartitionSpec`), or one of `nn.fsdp()`,
            `nn.data_parallel()` and `nn.tensor_parallel()`.  A pattern is a regular expression that is looked for in
            the path of a cell (`re.search`, as in other libraries on JAX): "weight" is found in all weights,
            "^head[.]weight$" in one path.  What no rule speaks of is whole on every device.

    Returns:
        The model.

    Raises:
        ValueError: a rule matches nothing, an axis of an array cannot be divided evenly, the mesh has no axis of a
            name, the model is on another mesh, or processes that share the mesh have models of other values.
        TypeError: `model` is not a module, `mesh` not a mesh, or a rule not a rule.

    Example:
        >>> import ftrans as ft
        >>> from ftrans import nn
        >>> mesh = ft.mesh({"data": 1})
        >>> model = nn.shard(nn.Linear(4, 8), mesh, [("weight", ft.P("data", None))])
        >>> tuple(model.weight.sharding.spec)
        ('data',)
    """
    require_module(model, "nn.shard places")
    mesh = require_mesh(mesh, "nn.shard")
    _require_on_no_other(graph_of(model), mesh)
    # An optimizer, or an average, is placed with the model that it was made for.
    lent = [x for name in model._borrowed if (x := getattr(model, name)) is not None]
    graph = graph_of(lent[0] if lent else model)
    # All rules have been looked at before anything moves.
    places = planned(graph, mesh, rules)
    if any(map(is_across, places)):
        _require_same(graph)
    for cell, where in zip(graph.cells, places, strict=True):
        cell.move(place(cell.array, where))
    if lent:
        place_state(model, graph.trained_parameters())
    return model


def planned(graph: Graph, mesh: Any, rules: Any) -> list[Any]:
    """Where the cells of a graph are to be, by rules."""
    found: dict[int, Any] = {}
    for rule in as_rules(rules):
        found = {**rule.entries(graph, mesh), **found}
    return [placement(mesh, found.get(id(cell), ())) for cell in graph.cells]


def place_state(module: Module, parameters: Mapping[str, ArrayCell]) -> None:
    """Put cells of a module, such as an optimizer, where the parameters are that their names end with.

    Args:
        module: the module.
        parameters: the parameters by path, on a mesh.
    """
    mesh = mesh_of(parameters.values())
    known = {id(cell) for cell in parameters.values()}
    paths = sorted(parameters, key=len, reverse=True)
    for name, cell in module.named_cells():
        if id(cell) in known or (cell.sharding is not None and cell.sharding.mesh == mesh):
            continue
        path = next((p for p in paths if name.endswith(f".{p}") and parameters[p].shape == cell.shape), None)
        sharding = None if path is None else parameters[path].sharding
        cell.move(place(cell.array, placement(mesh, ()) if sharding is None else sharding))


def _require_on_no_other(graph: Graph, mesh: Any) -> None:
    for path, cell in zip(graph.paths, graph.cells, strict=True):
        if cell.sharding is not None and cell.sharding.mesh != mesh:
            raise ValueError(
                f"{path} is on another mesh already, {shown(cell.sharding.mesh)}, not on {shown(mesh)}; write "
                f"model.to('cpu') first, which gathers the model on one device{at_line(user_line())}"
            )


def _require_same(graph: Graph) -> None:
    """Raise unless all processes have the same model, of which each is about to keep its parts."""
    cells = zip(graph.paths, graph.cells, strict=True)
    found = differences({path: digest(np.asarray(cell.array)) for path, cell in cells if is_readable(cell.array)})
    if not found:
        return
    process = found[0][0]
    paths = [path for index, path, _, _ in found if index == process]
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    raise ValueError(
        f"process {process} has other values than process 0 in {', '.join(paths[:3])}{more}, but the parts that "
        "processes put on a mesh are to be those of one model: seed all by the same number (nn.manual_seed), or load "
        f"the same file{at_line(user_line())}"
    )


def fsdp(axis: str = "data", min_size: int = 1024) -> Rule:
    """A rule for `nn.shard`: each parameter is divided along its largest axis that can be divided evenly.

    The devices hold a part of the parameters, their gradients and the state of the optimizer each, and send one another
    the weights of a layer when it is computed (fully sharded data parallel, ZeRO stage 3).

    Args:
        axis: the axis of the mesh; batches are divided over it, too.
        min_size: parameters of fewer elements are whole on every device.

    Returns:
        The rule.

    Example:
        >>> from ftrans import nn
        >>> nn.fsdp("data")
        fsdp('data', min_size=1024)
    """
    return Fsdp(axis, min_size)


def data_parallel(axis: str = "data") -> Rule:
    """A rule for `nn.shard`: the whole model is on every device, and batches are divided over them.

    Args:
        axis: the axis of the mesh that batches are divided over.

    Returns:
        The rule.

    Example:
        >>> from ftrans import nn
        >>> nn.data_parallel("data")
        data_parallel('data')
    """
    return DataParallel(axis)


def tensor_parallel(axis: str = "model") -> Rule:
    """A rule for `nn.shard`: the features of layers are divided over devices.

    In `Linear`, convolutions, attention and recurrent layers each device computes some of the features; the second of
    two linear layers that follow one another in a `Sequential`, in a transformer's feed-forward part, or after
    attention takes the divided features, and the devices add up (Shoeybi et al., arXiv:1909.08053).  An `Embedding` is
    divided along its features.  Normalization layers are whole, and so are layers whose features cannot be divided
    evenly.

    Args:
        axis: the axis of the mesh.

    Returns:
        The rule.

    Example:
        >>> from ftrans import nn
        >>> nn.tensor_parallel("model")
        tensor_parallel('model')
    """
    return TensorParallel(axis)


def placement_beside(cells: Mapping[str, ArrayCell]) -> Callable[[tuple[Any, ...], Any], Any] | None:
    """Where values that belong to cells are to be: with the cell of the same name and shape, others on every device.

    Returns:
        A function of the keys that lead to a value, and its type; None if the cells are on no mesh.
    """
    mesh = mesh_of(cells.values())
    if mesh is None:
        return None

    def placement_of_value(keys: tuple[Any, ...], x: Any) -> Any:
        for key in reversed(keys):
            cell = cells.get(key) if isinstance(key, str) else None
            if cell is not None and cell.shape == tuple(x.shape) and cell.sharding is not None:
                return cell.sharding
        return placement(mesh, ())

    return placement_of_value


def mesh_of(cells: Iterable[ArrayCell]) -> Any:
    """The mesh that cells are on; None if they are on none."""
    return next((cell.sharding.mesh for cell in cells if cell.sharding is not None), None)


def require_mesh(mesh: Any, what: str) -> Any:
    """A mesh with automatic axes.

    Raises:
        TypeError: it is no mesh.
    """
    if not is_mesh(mesh):
        raise TypeError(
            f"{what} takes a mesh of JAX, such as ft.mesh({{'data': 8}}), not {type_name(mesh)}" + at_line(user_line())
        )
    return with_auto_axes(mesh)


def shown(mesh: Any) -> str:
    """A mesh, in messages."""
    return f"({', '.join(f'{name}={size}' for name, size in mesh.shape.items())}) of {mesh.size} devices"
