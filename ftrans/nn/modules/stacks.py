"""Stacks: modules of equal structure as one module whose cells have a leading axis, and layers that run as one loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...api.checkpoint import GivenPolicy
from ...api.loops import scan as loop
from ...base.source import at_line, user_line
from ...base.tracebacks import short_tracebacks
from ...base.type_questions import is_plain
from ..cells.kinds import Parameter
from ..transformations.traces import differences, share_constants
from ..transformations.vectorize import operands_of
from .calls import call_filled
from .containers import ModuleList, Sequential
from .graph import CellKey, Graph, ModuleKey, graph_of
from .module import Module
from .structure import structure_of

M = TypeVar("M", bound=Module)


def stack_modules(modules: Sequence[M]) -> M:
    """Stack modules of equal structure: an ensemble for `nn.vmap` with in_axes=0, or layers for `nn.scan`.

    Args:
        modules: the modules.

    Returns:
        A new module like the first, whose cells hold the stacked arrays of all modules: (len(modules), *shape).

    Raises:
        ValueError: the sequence is empty, or a module differs from the first; the message says where.

    Example:
        >>> from ftrans import nn
        >>> nn.stack_modules([nn.Linear(3, 2), nn.Linear(3, 2)]).weight.shape
        (2, 2, 3)
    """
    modules = list(modules)
    if not modules:
        raise ValueError(f"stack_modules needs at least one module{at_line(user_line())}")
    graphs = [graph_of(module) for module in modules]
    _check_equal(modules, graphs, "stack_modules", lambda key: key)
    arrays = [np.stack([cell.value for cell in row]) for row in zip(*(g.cells for g in graphs), strict=True)]
    return structure_of(modules[0]).build(arrays)


def unstack_modules(module: M) -> list[M]:
    """Split a stack into its modules: the inverse of `stack_modules`.

    Args:
        module: a module whose cells have a leading axis.

    Returns:
        New modules, one for each index of the leading axis.

    Raises:
        ValueError: the cells have leading axes of different sizes, or there are no cells.

    Example:
        >>> from ftrans import nn
        >>> first, second = nn.unstack_modules(nn.stack_modules([nn.Linear(3, 2), nn.Linear(3, 2)]))
        >>> first
        Linear(in_features=3, out_features=2, bias=True)
    """
    graph = graph_of(module)
    structure = structure_of(module)
    arrays = [cell.value for cell in graph.cells]
    return [
        structure.build([x[i].copy() if is_plain(x, np.ndarray) else x[i] for x in arrays])
        for i in range(_length(graph, "unstack_modules"))
    ]


@short_tracebacks
def scan(modules: Sequence[Module] | Module, x: Any, *args: Any, checkpoint: bool | GivenPolicy | int = False) -> Any:
    """Apply layers of equal structure one after another, as one loop whose body is traced and compiled once.

    Equivalent to::

        for module in modules:
            x = module(x, *args)
        return x

    Every layer uses its own parameters, buffers and random streams, and changes of them are written back.  The program
    stacks a copy of the parameters of all layers; for a module that is stacked already, it does not.

    Args:
        modules: an `nn.ModuleList`, `nn.Sequential` or list of layers of equal structure; or a stack, as made by
            `stack_modules`.  The layers may also change modules or cells that all of them share.
        x: input of the first layer: an array or a container.  Each layer returns the same structure, shapes and dtypes.
        args: further arguments, the same for all layers.
        checkpoint: True if reverse mode is to keep only the results of the layers and recompute the rest of each layer;
            or another policy of `ft.scan`.

    Returns:
        The result of the last layer, with the structure, shapes and dtypes of `x`.

    Raises:
        ValueError: a layer differs in structure from the first; the message says where.
        TypeError: a layer returns another structure, other shapes or dtypes than it takes.
        RuntimeError: a layer changes a cell that only some of the layers share.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(6)])
        >>> nn.scan(layers, np.ones((2, 4), np.float32)).shape
        (2, 4)
    """
    is_stack = isinstance(modules, Module) and not isinstance(modules, ModuleList | Sequential)
    layers: list[Any] = [modules] if is_stack else list(modules)  # type: ignore[arg-type]
    for i, layer in enumerate(layers):
        if not isinstance(layer, Module):
            raise TypeError(f"nn.scan runs modules, but layer {i} is a {type(layer).__name__}{at_line(user_line())}")
    if not layers:
        return x
    graphs = [graph_of(layer) for layer in layers]
    _check_equal(layers, graphs, "nn.scan", _without_gradients)
    return _Layers(layers, graphs, is_stack, args).run(x, checkpoint)


class _Layers:
    """Layers of equal structure, or a stack of them, and the further arguments of all of them.

    A row is one cell in each layer.  A cell that all layers share is not stacked: unless it is a parameter, it is
    carried from step to step, since each layer sees what the one before has assigned.
    """

    def __init__(self, layers: list[Module], graphs: list[Graph], is_stack: bool, args: tuple[Any, ...]) -> None:
        self.first, self.graph, self.others, self.args = layers[0], graphs[0], graphs[1:], args
        self.is_stack = is_stack
        self.rows = [list(row) for row in zip(*(g.cells for g in graphs), strict=True)]
        self.length = _length(self.graph, "nn.scan") if is_stack else len(layers)
        common = [j for j, row in enumerate(self.rows) if len(row) > 1 and all(c is row[0] for c in row)]
        self.stacked = [j for j in range(len(self.rows)) if j not in common]
        self.carried = [j for j in common if not isinstance(self.rows[j][0], Parameter)]
        self.constant = [j for j in common if isinstance(self.rows[j][0], Parameter)]

    def run(self, x: Any, checkpoint: Any) -> Any:
        """The result of the last layer; cells that have changed hold the new values afterwards."""
        held = [operands_of(row, (x, self.args)) for row in self.rows]
        xs = [held[j][0] if self.is_stack else np.stack(held[j]) for j in self.stacked]
        changed: list[int] = []

        def step(carry: Any, slices: list[Any]) -> Any:
            x, kept = carry
            given = dict(zip([*self.stacked, *self.carried], [*slices, *kept], strict=True))
            given |= {j: held[j][0] for j in self.constant}
            out, new = call_filled(self.graph, given, lambda: self.first(x, *self.args), keep_types=True)
            self._check_shared(new)
            changed[:] = new
            kept = [new.get(j, array) for j, array in zip(self.carried, kept, strict=True)]
            return (out, kept), [array for j, array in new.items() if j not in self.carried]

        step.__name__ = f"the layer {self.first.described()}"
        start = (x, [held[j][0] for j in self.carried])
        (out, kept), rows = loop(step, start, xs, length=self.length, checkpoint=checkpoint)
        share_constants(self.graph, self.others)
        for j, array in zip(self.carried, kept, strict=True):
            if j in changed:
                self.rows[j][0].value = array
        for j, array in zip([j for j in changed if j not in self.carried], rows, strict=True):
            if self.is_stack:
                self.rows[j][0].value = array
                continue
            for i, cell in enumerate(self.rows[j]):
                cell.value = array[i]
        return out

    def _check_shared(self, changed: Iterable[int]) -> None:
        """Raise if a changed cell is a parameter that all layers share, or a cell that only some of them share."""
        for j in changed:
            row = self.rows[j]
            if j in self.constant or (j in self.stacked and len({id(cell) for cell in row}) < len(row)):
                raise RuntimeError(
                    f"a layer of nn.scan changes {self.graph.paths[j]}, which it shares with other layers; give each "
                    f"layer a cell of its own, or write the loop in Python{at_line(user_line())}"
                )


def _length(graph: Graph, what: str) -> int:
    """The size of the leading axis of all cells of a stack."""
    sizes = {path: c.shape[0] if c.ndim else None for path, c in zip(graph.paths, graph.cells, strict=True)}
    if len(set(sizes.values())) == 1 and None not in sizes.values():
        return next(iter(sizes.values()))  # type: ignore[return-value]
    listing = ", ".join(f"{path} is {c.type}" for path, c in zip(graph.paths, graph.cells, strict=True))
    raise ValueError(
        f"{what} takes a stack, as nn.stack_modules makes it: a module whose cells all have a leading axis "
        f"of the same size; this one has {listing or 'no cells'}{at_line(user_line())}"
    )


def _check_equal(modules: Sequence[Module], graphs: list[Graph], what: str, comparable: Callable[[Any], Any]) -> None:
    """Raise if a module differs from the first in what its forward code depends on."""
    first = comparable(graphs[0].key)
    for i, graph in enumerate(graphs):
        key = comparable(graph.key)
        if key != first:
            found = [*differences(first, key)] or ["which cells and modules they share"]
            raise ValueError(
                f"{what} takes modules of equal structure, but number {i}, {modules[i].described()}, differs from the "
                f"first: {'; '.join(found[:4])}{at_line(user_line())}"
            )


def _without_gradients(key: Any) -> Any:
    """A key without the parts that matter only to gradients."""
    if type(key) is CellKey:
        return key._replace(requires_grad=True, hooks=())
    if type(key) is ModuleKey:
        return key._replace(parts=_without_gradients(key.parts))
    return tuple([_without_gradients(part) for part in key]) if type(key) is tuple else key
