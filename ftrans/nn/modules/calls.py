"""Calls of forward code while the cells of its modules hold other arrays, and what the code has put into them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import lru_cache
from operator import attrgetter
from threading import get_ident
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.trace import Builder, Tracer, current_builder
from ...core.types import type_of
from ...numpy.promotion import asarray, has_tracer
from ..cells.array_cell import ArrayCell
from ..cells.filling import Filling, Held, Taking, filling, running
from .graph import Graph, fitted
from .nested import parts_of, rebuilt

_held_by = attrgetter("held")


def call_filled(
    graph: Graph, arrays: Mapping[int, Any], f: Callable[[], Any], keep_types: bool = False
) -> tuple[Any, dict[int, Any]]:
    """Call a function while the cells of a graph hold other arrays, which the function may change.

    Args:
        graph: the cells, all of which the function may change.
        arrays: what they hold, by place; the others hold what they held.
        f: the function.
        keep_types: whether what it puts into cells must fit the types of `arrays`, and is converted to them.

    Returns:
        Its result, and what the cells hold that it has changed, by place.

    Raises:
        TypeError: what it has put into a cell does not fit.
    """
    types = {i: type_of(x) for i, x in arrays.items()} if keep_types else {}
    # A context of its own is left whole, whatever happens inside, be it an interrupt.
    out, changed = copy_context().run(_call, graph, arrays, f)
    return out, {i: fitted(graph, i, x, types[i]) for i, x in changed.items()} if keep_types else changed


def _call(graph: Graph, arrays: Mapping[int, Any], f: Callable[[], Any]) -> tuple[Any, dict[int, Any]]:
    builder = current_builder()
    mine = Filling(map(id, graph.modules.values()))
    threads = {thread.ident for thread in threading.enumerate()}
    before = []
    for i, cell in enumerate(graph.cells):
        x = arrays.get(i, cell.array)
        mine[id(cell)] = Held(cell, x, builder)
        # Assigning to elements of a traced value changes what it stands for.
        before.append((x, x.atom if type(x) is Tracer else None))
    filling.set(mine)
    running[id(mine)] = mine, get_ident()
    try:
        out = f()
        _require_own_reads(graph, mine, threads)
        changed = {}
        for i, (held, (x, atom)) in enumerate(zip(mine.values(), before, strict=True)):
            now = held.held
            if now is not x or (atom is not None and now.atom is not atom):
                changed[i] = now
    finally:
        running.pop(id(mine), None)
        # A task that outlives the call has a copy of its context.
        mine.clear()
    return out, changed


def call_taking(home: Builder | None, f: Callable[[], Any]) -> tuple[Any, list[Held]]:
    """Call a function in a trace of its own, where it may change cells that belong to the trace around it.

    Args:
        home: the trace around it.
        f: the function.

    Returns:
        Its result, and what it has put into such cells, which hold that in the inner trace only.
    """

    def call() -> Any:
        mine = Taking(home)
        filling.set(mine)
        return f(), [*mine.values()]

    return copy_context().run(call)


def _require_own_reads(graph: Graph, mine: Filling, threads: set[int | None]) -> None:
    """Raise if the code of a call has left the reading of cells to other threads, which do not see what they hold.

    Other threads may use the model on their own account.  What tells them apart is that the code of the call has never
    read the cell itself, and that the thread was started during the call, or that forward code has read no parameter.

    Raises:
        RuntimeError: it has.
    """
    values = [*mine.values()]
    missed = [i for i, held in enumerate(values) if held.others and not held.is_read]
    if not missed:
        return
    reads_none = mine.runs_module and not any([values[i].is_read for i in graph.trained])
    for i in missed:
        if reads_none or not threads.issuperset(values[i].others):
            raise RuntimeError(
                f"{graph.paths[i]} was read only by another thread while a transformation or functional_call had put "
                "something else into it, which that thread does not see: gradients and new values would be lost. "
                "Where forward code starts threads, run their functions in its context: write "
                f"executor.submit(contextvars.copy_context().run, f, x) for executor.submit(f, x){at_line(user_line())}"
            )


def read_cells(cells: Sequence[ArrayCell]) -> list[Any]:
    """What cells hold here."""
    if filling.get() is None:
        return [*map(_held_by, cells)]
    return [cell.array for cell in cells]


def write_cells(cells: Sequence[ArrayCell], places: Sequence[int], values: Sequence[Any]) -> None:
    """Put values into the cells at these places: all of them, or none if an interrupt comes."""
    has_own = filling.get() is None
    changed = [cells[place] for place in places]
    if has_own:
        for cell, x in zip(changed, values, strict=True):
            cell.require_kept(x)
    before = [*map(_held_by, changed)] if has_own else [cell.array for cell in changed]
    try:
        if has_own:
            for cell, x in zip(changed, values, strict=True):
                cell.held = x
        else:
            for cell, x in zip(changed, values, strict=True):
                cell.array = x
    except BaseException:
        for cell, x in zip(changed, before, strict=True):
            cell.array = x
        raise


def settled(x: Any) -> Any:
    """A result of forward code, with what its cells hold now in their places.

    Raises:
        TypeError: it is or holds what would run when the call is over and the cells hold something else.
    """
    if isinstance(x, ArrayCell):
        return x.value if x.is_given else x.read()
    if type(x) is np.ndarray and x.dtype == object:
        return asarray(x) if current_builder() is not None and has_tracer(x) else x
    if parts_of(x) is not None:
        return rebuilt(x, settled)
    cls: Any = type(x)
    if _runs_later(cls):
        how = "await it inside" if hasattr(x, "__await__") else "write list(...)"
        if inspect.iscoroutine(x):
            # Nobody will await it.
            x.close()
        raise TypeError(
            f"the result is or holds an object of type {type(x).__name__}, which would run after the call, when the "
            f"cells no longer hold these arrays; {how}{at_line(user_line())}"
        )
    return x


@lru_cache(maxsize=1000)
def _runs_later(cls: type) -> bool:
    """Whether objects of a class compute only when they are asked, as generators, iterators and coroutines do."""
    is_lazy = any(hasattr(cls, name) for name in ("__next__", "__anext__", "__await__"))
    return is_lazy and not hasattr(cls, "named_cells")
