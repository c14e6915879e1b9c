"""State: the arrays of a module by path, which functions take and return."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...api.call import type_name
from ...base.cell import read
from ...base.lookalikes import refuse_lookalike
from ...base.source import at_line, user_line
from ...base.tracebacks import short_tracebacks
from ...xla import is_deleted, is_traced
from ..cells.array_cell import ArrayCell, deleted_error
from ..cells.inplace import require_numbers
from .calls import call_filled, settled
from .graph import Graph, graph_of
from .loading import as_numpy
from .module import Module
from .paths import all_paths, tied
from .structure import Structure, structure_of


def state_of(module: Module) -> dict[str, Any]:
    """The arrays of all cells of a module: parameters, buffers and streams of random numbers.

    Args:
        module: the module.

    Returns:
        Arrays by path: of NumPy, in a transformation traced values.  Tied cells appear once.

    Example:
        >>> from ftrans import nn
        >>> sorted(nn.state_of(nn.Linear(2, 3)))
        ['bias', 'weight']
    """
    graph = graph_of(module)
    return {path: cell.value for path, cell in zip(graph.paths, graph.cells, strict=True)}


@short_tracebacks
def functional_call(model: Module, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
    """Call a module with other arrays in its cells, without changing it.

    Args:
        model: the module.
        state: arrays by path, for some or all cells; `state_of(model)` gives all.  A cell with several paths, such as a
            tied weight, may be given under any of them, and under several if the array is the same.
        args: arguments of the module.
        kwargs: keyword arguments of the module.

    Returns:
        `(out, new_state)`: the result, and `state` with the changes that the forward code has made, such as running
        means and streams of random numbers.

    Raises:
        KeyError: a path in `state` does not exist.
        TypeError: a value in `state` is not an array of numbers; the arguments are given as a tuple, as in torch; or
            the result is lazy, as a generator is.
        ValueError: an array does not have the shape of its cell, or two paths of one cell have different arrays.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> state = {"weight": np.ones((1, 2)), "bias": np.zeros(1)}
        >>> ft.grad(lambda s: nn.functional_call(model, s, np.array([3.0, 4.0]))[0].sum())(state)["weight"]
        array([[3., 4.]])
    """
    _require_arguments(model, args, kwargs)
    graph = graph_of(model)
    names = _names_in(graph, model, state)
    out, new = call_with_state(graph, model, {names[path]: x for path, x in state.items()}, args, kwargs)
    given = {path: new[name] for path, name in names.items()}
    return out, given | {name: x for name, x in new.items() if name not in names.values()}


def _require_arguments(model: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise if the arguments are given as a tuple, as in torch.

    If the module does not take as many arguments as the tuple has arrays, the tuple is one argument.
    """
    if not args or kwargs or type(args[0]) is not tuple or not all(hasattr(x, "dtype") for x in args[0]):
        return
    by_name = args[1] if len(args) == 2 and type(args[1]) is dict else {}
    if len(args) > 1 and args[1:] != (by_name,):
        return
    try:
        inspect.signature(model.forward).bind(*args[0], **by_name)
    except (TypeError, ValueError):
        return
    raise TypeError(
        "functional_call takes the arguments of the module one by one: write functional_call(m, state, *args, "
        "**kwargs), which returns the result and the new state, or torch's form, which returns the result: "
        "nn.utils.stateless.functional_call(m, state, args, kwargs); if a tuple is one argument, pass it by name or as "
        f"a list{at_line(user_line())}"
    )


def _names_in(graph: Graph, model: Module, state: Mapping[str, Any]) -> dict[str, str]:
    """For each path of a state, the path that the graph has for the same cell."""
    if all([graph.place(path) is not None for path in state]):
        return {path: path for path in state}
    cells = {path: cell for path, cell in all_paths(model) if path in state}
    for first, path in tied(cells):
        if not _is_same(state[first], state[path]):
            raise ValueError(
                f"{first} and {path} are the same cell of the module, but were given different arrays; give one of them"
                + at_line(user_line())
            )
    paths = {id(cell): path for path, cell in zip(graph.paths, graph.cells, strict=True)}
    return {path: paths[id(cells[path])] if path in cells else path for path in state}


def _is_same(x: Any, y: Any) -> bool:
    """Whether two values are equal, as far as that is known without looking at traced ones."""
    if x is y:
        return True
    if is_traced(x) or is_traced(y):
        return False
    x, y = as_numpy(x), as_numpy(y)
    return np.array_equal(x, y, equal_nan=x.dtype.kind in "fc" and y.dtype.kind in "fc")


def call_with_state(
    graph: Graph, f: Any, state: Mapping[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The result of `f`, called with `state` in the cells of the graph, and the new state."""
    places = {path: _place(graph, path) for path in state}
    given = {place: fitting(path, graph.cells[place], state[path]) for path, place in places.items()}
    out, changed = call_filled(graph, given, lambda: settled(f(*args, **kwargs)))
    return out, {**state, **{graph.paths[i]: x for i, x in changed.items()}}


def _place(graph: Graph, path: str) -> int:
    place = graph.place(path)
    if place is None:
        raise KeyError(f"the module has nothing at {path!r}; it has {', '.join(graph.paths)}{at_line(user_line())}")
    return place


def fitting(path: str, cell: ArrayCell, x: Any) -> Any:
    """An array to put into a cell, with checked shape."""
    x = read(x)
    if is_deleted(x):
        raise deleted_error(path)
    require_numbers(x, path)
    array = x
    if not hasattr(x, "dtype"):
        array = np.asarray(x)
        require_numbers(array, path)
    if tuple(array.shape) != cell.shape:
        raise ValueError(
            f"{path} is {cell.type}, which an array of shape {tuple(array.shape)} does not fit" + at_line(user_line())
        )
    return array


def split(model: Module) -> tuple[Structure, dict[str, Any]]:
    """Split a module into its structure and its state.

    Args:
        model: the module.

    Returns:
        `(structure, state)`, as `merge` takes them.  The structure is hashable; the state is `state_of(model)`.

    Example:
        >>> from ftrans import nn
        >>> structure, state = nn.split(nn.Linear(2, 3))
        >>> nn.merge(structure, state)
        Linear(in_features=2, out_features=3, bias=True)
    """
    return structure_of(model), state_of(model)


def merge(structure: Structure, state: Mapping[str, Any]) -> Any:
    """Make a new module from a structure and a state.

    Args:
        structure: from `split`.
        state: arrays by path, one for each cell.

    Returns:
        The module.

    Raises:
        TypeError: `structure` is not from `split`, or an array is masked, a matrix, or sparse.
        KeyError: paths are missing or unexpected.
    """
    if not isinstance(structure, Structure):
        raise TypeError(
            f"merge takes a structure and a state, as returned by split, but the first is {type_name(structure)}"
            + at_line(user_line())
        )
    if set(state) != set(structure.paths):
        missing = [p for p in structure.paths if p not in state]
        unexpected = [p for p in state if p not in structure.paths]
        raise KeyError(
            f"merge needs exactly the paths of the structure; missing: {', '.join(missing) or 'none'}; "
            f"unexpected: {', '.join(unexpected) or 'none'}{at_line(user_line())}"
        )
    for path in structure.paths:
        refuse_lookalike(state[path])
    return structure.build([state[path] for path in structure.paths])
