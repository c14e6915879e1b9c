"""State dictionaries of optimizers in the form of torch: arrays by the number of the parameter, and groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ..modules.loading import array_of, as_numpy, converted

# Choices of torch between implementations of the same update, and what else it writes into groups.
NO_UPDATE = ("foreach", "capturable", "fused", "differentiable", "param_names")


def state_dict(optimizer: Any) -> dict[str, Any]:
    """The state and the hyperparameters of an optimizer."""
    state: dict[int, dict[str, Any]] = {}
    groups, number = [], 0
    for cells, group in _cells(optimizer):
        numbers = range(number, number := number + len(group.params))
        groups.append({**{k: x for k, x in group.items() if k != "params"}, "params": [*numbers]})
        for i, of_one in zip(numbers, cells, strict=True):
            # As in torch, what has never been updated has no state.
            if of_one and float(of_one["step"][0].value[of_one["step"][1]]) > 0:
                state[i] = {
                    name: array_of(cell) if place is None else np.asarray(cell.value[place])
                    for name, (cell, place) in of_one.items()
                }
    return {"state": state, "param_groups": groups}


def _cells(optimizer: Any) -> list[tuple[list[dict[str, tuple[Any, int | None]]], Any]]:
    """For each group its parameters' state: cells by name, with a place in those that several parameters share."""
    found = []
    for number, group in enumerate(optimizer.param_groups):
        counters, slots = optimizer.names_of_state(group)
        of_group = []
        for path in group.paths:
            cells: dict[str, tuple[Any, int | None]] = {}
            if path in optimizer.paths:
                cells |= {name: (optimizer.state[f"{name}.{number}"], group.clocks[path]) for name in counters}
                cells |= {slot: (optimizer.state[f"{slot}.{path}"], None) for slot in slots}
            of_group.append(cells)
        found.append((of_group, group))
    return found


def load(optimizer: Any, given: Mapping[str, Any]) -> None:
    """Overwrite the state and the hyperparameters of an optimizer.

    Raises:
        ValueError: it is of another optimizer, or of other parameters; nothing has been changed.
    """
    groups, sizes = given["param_groups"], [len(group.params) for group in optimizer.param_groups]
    if [len(group["params"]) for group in groups] != sizes:
        raise ValueError(
            f"the state has groups of {[len(group['params']) for group in groups]} parameters, but the optimizer has "
            f"groups of {sizes}{at_line(user_line())}"
        )
    absent = sorted({name for values in groups for name in optimizer.hyperparameters - values.keys()})
    if absent:
        raise ValueError(
            f"the state is of another optimizer than this {type(optimizer).__name__}: its groups have no "
            f"{', '.join(absent)}{at_line(user_line())}"
        )
    with optimizer.kept():
        for group, values in zip(optimizer.param_groups, groups, strict=True):
            group.update({name: x for name, x in values.items() if name != "params" and name not in NO_UPDATE})
        optimizer.complete()
        problems: list[str] = []
        new: list[tuple[Any, Any]] = []
        counters: list[dict[str, tuple[float, ...]]] = []
        for values, (cells, group) in zip(groups, _cells(optimizer), strict=True):
            counters.append({})
            for path, i, of_one in zip(group.paths, values["params"], cells, strict=True):
                row = _match(i, of_one, dict(given["state"].get(i, {})), optimizer.first_counter, new, problems)
                if path in group.clocks:
                    counters[-1][path] = row
        if problems:
            raise ValueError(
                f"the state is of another optimizer, or of other parameters than this {type(optimizer).__name__}:"
                + "".join(f"\n  {problem}" for problem in problems)
                + at_line(user_line())
            )
        for cell, array in new:
            cell.value = converted(array, cell.dtype)
        for number, rows in enumerate(counters):
            if rows:
                optimizer.set_counters(number, rows)


def _match(
    i: int,
    cells: dict[str, tuple[Any, int | None]],
    given: dict[str, Any],
    first: Callable[[str], float],
    new: list[tuple[Any, Any]],
    problems: list[str],
) -> tuple[float, ...]:
    """The counters of one parameter.  Adds to `new` what is to be put into cells, and to `problems` what is wrong."""
    if given and not cells:
        problems.append(f"parameter {i} has a state, but requires no gradient here")
        return ()
    # Where an update does not depend on the number of the step, torch counts none.
    arrays = {"step": np.array(1.0)} if given else {}
    arrays |= {name: as_numpy(x) for name, x in given.items() if x is not None}
    problems += [f"parameter {i} has {name}, for which there is no place" for name in arrays if name not in cells]
    row = []
    for name, (cell, place) in cells.items():
        if given and name not in arrays:
            problems.append(f"parameter {i} has no {name}")
        elif place is not None:
            row.append(float(arrays[name]) if given else first(name))
        else:
            array = arrays[name] if given else np.zeros(cell.shape)
            if array.shape != cell.shape:
                problems.append(f"{name} of parameter {i} has the shape {array.shape}, but the parameter {cell.shape}")
            new.append((cell, array))
    return tuple(row)
