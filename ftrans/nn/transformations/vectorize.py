"""nn.vmap: map a function of modules and one element over a batch, or over an ensemble of modules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...api.by_values import Batched
from ...api.call import has_active, name_of, named
from ...api.vmap import Axes, axes_of_leaves, common_size, place, placed, run_batched
from ...base import tree
from ...base.contexts import in_own_context
from ...base.forward_code import reading
from ...base.source import at_line, user_line
from ...base.tracebacks import short_tracebacks
from ...core.trace import current_builder
from .. import random
from ..cells.array_cell import ArrayCell
from ..cells.kinds import RngState
from ..modules.calls import call_filled
from ..modules.graph import graph_of
from ..modules.module import Module
from ..modules.roots import graph_of_arguments, in_places, with_places


def vmap(
    f: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0, axis_size: int | None = None
) -> Callable[..., Any]:
    """Map a function of modules and arrays over an axis of its arguments, as one vectorised program.

    A module with None in `in_axes` is shared by all elements of the batch.  Its random numbers differ from element to
    element: element i draws from the stream of the key `nn.random.fold_in(key, i)`, where `key` is the next key of the
    module's own stream, which advances by one.  A buffer may change if its new value is the same for all elements;
    otherwise it is an error.

    A module with an integer in `in_axes` is an ensemble, as `nn.stack_modules` makes it: each of its cells has the
    mapped axis, and each element of the batch reads and changes its own slice.

    Args:
        f: the function of one element.
        in_axes: which axis of each argument to map over, as for `ft.vmap`.  An entry for a module is a number or None.
        out_axes: position of the mapped axis in the results.
        axis_size: size of the mapped axis, needed only if no argument is mapped.

    Returns:
        A function of the same arguments, with the mapped axis in arguments and results.

    Raises:
        ValueError: sizes of mapped axes differ, an array or a cell does not have the axis, or a mapped and a shared
            module have a cell in common.
        RuntimeError: elements of the batch assign different values to a cell of a shared module; the message names it.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> ensemble = nn.stack_modules([nn.Linear(3, 2) for _ in range(5)])
        >>> nn.vmap(lambda model, x: model(x), in_axes=(0, None))(ensemble, np.ones((4, 3), np.float32)).shape
        (5, 4, 2)
        >>> model, x = nn.Linear(3, 1), np.ones((4, 3), np.float32)
        >>> loss = lambda model, x: (model(x) ** 2).sum()
        >>> nn.vmap(nn.grad(loss), in_axes=(None, 0))(model, x)["weight"].shape  # the gradient of each sample
        (4, 1, 3)
    """

    @short_tracebacks
    @functools.wraps(f)
    def vmap_of_f(*args: Any, **kwargs: Any) -> Any:
        return _Call(f, in_axes, axis_size, args, kwargs).run(out_axes)

    return named(vmap_of_f, f, "vmap")


class _Slot:
    """Placeholder for a module, as a leaf, while the axes of the arguments are determined."""

    def __init__(self, module: Module) -> None:
        self.module = module


class _Call:
    """One call of a mapped function: which cells have the mapped axis, and at which position."""

    def __init__(
        self, f: Callable[..., Any], in_axes: Axes, axis_size: int | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.f = f
        self.modules: list[Module] = []
        self.plain_args, self.plain_kwargs = with_places((args, kwargs), self.modules)
        self.graph = graph_of_arguments(args, kwargs)
        in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        self.in_axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        slots = [_Slot(module) for module in self.modules]
        marked_args, marked_kwargs = in_places((self.plain_args, self.plain_kwargs), slots)
        axes = axes_of_leaves(f, in_axes, marked_args, marked_kwargs)
        leaves = tree.flatten((marked_args, marked_kwargs))[0]
        self.axes = self._axes_of_cells(
            [(x.module, axis) for x, axis in zip(leaves, axes, strict=True) if isinstance(x, _Slot)]
        )
        self.size = self._size(axis_size)

    def _axes_of_cells(self, modules: list[tuple[Module, int | None]]) -> list[int | None]:
        """The mapped axis of each cell, counted from the front; None if its module is shared."""
        found: dict[int, int | None] = {}
        paths = {id(cell): path for path, cell in zip(self.graph.paths, self.graph.cells, strict=True)}
        for module, axis in modules:
            for cell in graph_of(module).cells:
                if found.setdefault(id(cell), axis) != axis:
                    raise ValueError(
                        f"nn.vmap was given {paths[id(cell)]} twice, with in_axes {found[id(cell)]} and {axis}; a cell "
                        f"is either shared by the whole batch or mapped{at_line(user_line())}"
                    )
        for cell in self.graph.cells:
            axis = found[id(cell)]
            if axis is not None and not -cell.ndim <= axis < cell.ndim:
                raise ValueError(
                    f"nn.vmap was asked to map over axis {axis} of {paths[id(cell)]}, which is {cell.type}; give the "
                    "module in_axes=None if the whole batch shares it, or make an ensemble by nn.stack_modules([...])"
                    + at_line(user_line())
                )
        return [None if found[id(c)] is None else found[id(c)] % c.ndim for c in self.graph.cells]  # type: ignore[operator]

    def _size(self, axis_size: int | None) -> int:
        """The size of the mapped axis."""
        sizes = {
            path: cell.shape[axis]
            for path, cell, axis in zip(self.graph.paths, self.graph.cells, self.axes, strict=True)
            if axis is not None
        }
        if len(set(sizes.values())) > 1:
            listing = ", ".join(f"{path} has {n}" for path, n in sizes.items())
            raise ValueError(
                f"nn.vmap got cells with mapped axes of different sizes: {listing}; give a module that the whole batch "
                f"shares in_axes=None, and make an ensemble by nn.stack_modules([...]){at_line(user_line())}"
            )
        mine = next(iter(sizes.values()), None)
        leaves = tree.flatten((self.plain_args, self.plain_kwargs))[0]
        axes = axes_of_leaves(self.f, self.in_axes, self.plain_args, self.plain_kwargs)
        if axis_size is None and all([axis is None for axis in axes]):
            axis_size = mine
        found = common_size(self.f, self.plain_args, self.plain_kwargs, leaves, axes, axis_size)
        if mine is not None and found != mine:
            raise ValueError(
                f"nn.vmap got mapped axes of different sizes: {next(iter(sizes))} has {mine}, the other arguments have "
                f"{found}{at_line(user_line())}"
            )
        return found

    def run(self, out_axes: Axes) -> Any:
        """Return the result; cells that have changed hold the new values afterwards."""
        cells = self.graph.cells
        arrays = operands_of(cells, (self.plain_args, self.plain_kwargs))
        # All batch elements get one key of a shared stream, and each derives its own stream from it.
        streams = {
            i: random.advance(x)
            for i, (cell, axis, x) in enumerate(zip(cells, self.axes, arrays, strict=True))
            if axis is None and isinstance(cell, RngState)
        }
        for i, (key, _) in streams.items():
            arrays[i] = key
        changed: list[int] = []

        def pure(*given: Any, **kwargs: Any) -> Any:
            *args, lane, values = given
            for i in streams:
                values[i] = np.concatenate([random.fold_in(values[i], lane), np.zeros(1, np.uint32)])
            out, new = call_filled(
                self.graph,
                dict(enumerate(values)),
                lambda: self.f(*in_places(args, self.modules), **in_places(kwargs, self.modules)),
                keep_types=True,
            )
            changed[:] = new
            return out, [*new.values()]

        pure.__name__ = name_of(self.f)
        lanes = np.arange(self.size, dtype=np.uint32) if streams else None
        in_axes = (*self.in_axes, 0 if streams else None, list(self.axes))
        found = run_batched(pure, in_axes, (*self.plain_args, lanes, arrays), self.plain_kwargs, self.size)
        count = len(found.outs) - len(changed)
        differing = [i for i, is_batched in zip(changed, found.is_batched[count:], strict=True) if is_batched]
        self._check_shared([i for i in differing if i not in streams])
        out, _ = tree.unflatten(found.structure, found.outs)
        kept = Batched(found.outs[:count], found.is_batched[:count], tree.flatten(out)[1], self.size)
        result = placed(kept, out_axes)
        for i, x, is_batched in zip(changed, found.outs[count:], found.is_batched[count:], strict=True):
            axis = self.axes[i]
            if i in streams:
                cells[i].value = streams[i][1]
            else:
                cells[i].value = x if axis is None else place(x, is_batched, axis, self.size)
        return result

    def _check_shared(self, differing: list[int]) -> None:
        """Raise if batch elements have assigned different values to cells that they share."""
        paths = [self.graph.paths[i] for i in differing if self.axes[i] is None]
        if paths:
            raise RuntimeError(
                f"nn.vmap({name_of(self.f)}) assigns a different value to {', '.join(paths)} for each element of the "
                "batch, but they share the module (in_axes=None). Call model.eval() if buffers such as running means "
                "need not change; or give each element its own module: nn.stack_modules([...]) with in_axes=0"
                + at_line(user_line())
            )


@in_own_context
def operands_of(cells: list[ArrayCell], args: Any) -> list[Any]:
    """The values of cells for a call with these arguments: tensors if there are tensors among the arguments."""
    if reading.get() is None and current_builder() is None:
        reading.set("tensors" if has_active(args) else "arrays")
    return [cell.read() for cell in cells]
