"""Loading: arrays from outside, checked and put into the cells of a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.cell import Holder
from ...base.foreign_arrays import numpy_of
from ...base.interrupts import uninterrupted
from ...base.source import at_line, user_line
from ...core.types import is_inexact
from ...xla import are_equal, copied, gathered, is_jax, is_readable, placement_of
from ..cells.array_cell import ArrayCell
from ..cells.inplace import require_numbers
from ..cells.kinds import RngState
from .bare import BareModule
from .paths import all_paths, is_saved, tied


class LoadResult(tuple[list[str], list[str]]):
    """The result of `load_state_dict`: a pair (missing_keys, unexpected_keys)."""

    def __new__(cls, missing: list[str], unexpected: list[str]) -> LoadResult:
        return super().__new__(cls, (missing, unexpected))

    @property
    def missing_keys(self) -> list[str]:
        """Paths of the module that were not given."""
        return self[0]

    @property
    def unexpected_keys(self) -> list[str]:
        """Given paths that the module does not have."""
        return self[1]


def put_arrays(
    module: BareModule,
    arrays: Mapping[str, Any],
    strict: bool,
    what: str,
    origins: Mapping[str, str],
    known_problems: Sequence[str] = (),
) -> LoadResult:
    """Overwrite cells of a module: all of them, or none if something does not match or an interrupt comes.

    Args:
        module: the module.
        arrays: arrays by path.
        strict: whether missing and unexpected paths are errors.
        what: the function that was called, for messages.
        origins: what paths were called where the arrays come from, if it was something else.
        known_problems: what is already known not to match; such entries are not among the arrays.

    Raises:
        ValueError: entries do not match; all of them are listed.
    """

    def called(path: str) -> str:
        origin = origins.get(path, path)
        return path if origin == path else f"{path} (from {origin})"

    cells = saved_cells(module)
    # Another cell under a second path is the same array, which one path is enough for.
    given_cells = {id(cells[path]) for path in arrays if path in cells}
    missing = [path for path, cell in cells.items() if id(cell) not in given_cells and not isinstance(cell, RngState)]
    unexpected = [path for path in arrays if path not in cells]
    found = {path: checked_array(path, x) for path, x in arrays.items() if path in cells}
    wrong = [f"{called(path)}: {why}" for path, x in found.items() if (why := _misfit(x, cells[path]))]
    wrong += [
        f"{called(first)} and {called(path)} are the same cell of the module, but were given different values"
        for first, path in tied({path: cells[path] for path in found})
        if not are_equal(found[first], found[path])
    ]
    missing = [path for path in missing if path not in origins]
    problems = [
        *known_problems,
        *([f"missing: {', '.join(missing)}"] if strict and missing else []),
        *([f"unexpected: {', '.join(map(called, unexpected))}"] if strict and unexpected else []),
        *wrong,
    ]
    if problems:
        hint = "; strict=False ignores missing and unexpected paths" if strict and (missing or unexpected) else ""
        raise ValueError(
            f"{what} of {type(module).__name__} was given entries that do not match{hint}:"
            + "".join(f"\n  {problem}" for problem in problems)
            + at_line(user_line())
        )
    _put({path: (cells[path], converted(x, cells[path].dtype)) for path, x in found.items()})
    return LoadResult(missing, unexpected)


@uninterrupted
def _put(arrays: Mapping[str, tuple[ArrayCell, Any]]) -> None:
    """Put arrays into cells: all, or none if one cannot be put there."""
    before = [(cell, cell.array) for cell, _ in arrays.values()]
    try:
        for cell, x in arrays.values():
            cell.value = x
    except BaseException:
        for cell, old in before:
            cell.array = old
        raise


def saved_cells(module: BareModule) -> dict[str, ArrayCell]:
    """The cells of the state dictionary of a module by all of their paths, streams of random numbers included."""
    return {path: cell for path, cell in all_paths(module) if is_saved(cell, rng=True)}


def converted(x: Any, dtype: np.dtype[Any]) -> Any:
    """A copy of an array in another dtype, on the same devices."""
    return copied(x, dtype) if is_jax(x) else np.array(x, dtype)


def checked_array(path: str, x: Any) -> Any:
    """A value of a state dictionary as an array: of NumPy, or on a mesh of devices."""
    if hasattr(x, "detach"):
        # Tensors of torch are refused where they would lose a gradient, which numbers to be loaded do not have.
        x = as_numpy(x)
    require_numbers(x, path)
    if placement_of(x) is not None:
        return x
    array = as_numpy(x)
    require_numbers(array, path)
    return array


def _misfit(x: Any, cell: ArrayCell) -> str | None:
    """Why an array cannot be put into a cell, or None if it can.

    Floating-point numbers may be rounded, as from float64 to float32.  Values that the dtype cannot represent are
    refused: imaginary parts, fractions in integers, numbers that overflow.
    """
    if tuple(x.shape) != cell.shape:
        return f"the module has {cell.type}, given was an array of shape {x.shape}"
    if x.dtype == cell.dtype:
        return None
    if x.dtype.kind == "c" and cell.dtype.kind != "c":
        return f"the module has {cell.type}, given were complex numbers; take .real of them if that is meant"
    if not is_readable(x):
        return f"the module has {cell.type}, given was an array of {x.dtype} whose parts are in several processes"
    x = as_numpy(x)
    with np.errstate(all="ignore"):
        held = x.astype(cell.dtype)
        is_kept = np.isfinite(held) == np.isfinite(x) if is_inexact(cell.dtype) else held == x
    return None if np.all(is_kept) else f"the module has {cell.type}, in which values of the given {x.dtype} do not fit"


def array_of(cell: ArrayCell, gather: bool = False) -> Any:
    """A copy of the array of a cell for a state dictionary."""
    array = cell.array
    if is_readable(array):
        return np.array(cell.value)
    return gathered(array) if gather else copied(array, array.dtype)


def as_numpy(x: Any) -> np.ndarray[Any, Any]:
    """An array of this library or of torch as a NumPy array."""
    if isinstance(x, Holder):
        return np.asarray(x.concrete())
    return numpy_of(x) if hasattr(x, "detach") and hasattr(x, "cpu") else np.asarray(x)
