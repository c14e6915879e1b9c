"""A training in several processes: what they must have in common, and what they agree on between steps.

All processes make the same steps, each on its part of the batch.  So what the loop decides by, such as whether there is
another batch, whether to stop, and whether an epoch was the best, must be the same in all of them: they say it to one
another once a window of steps, and at the end of each epoch.  Only the first process shows progress and writes files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from types import CodeType
from typing import Any

import numpy as np

from ...api.call import name_of
from ...base.source import at_line, user_line
from ...xla import differences, digest, from_all, gathered, is_across, is_readable, this_process, watch
from ..cells.array_cell import ArrayCell
from ..cells.kinds import RngState
from ..modules.graph import graph_of
from ..modules.module import Module
from .callbacks import FitState
from .data import PlacedBatch, leaves_of, samples_in
from .steps import WINDOW

_MOST_NAMED = 5


class Together:
    """The processes of a training; all of it does nothing where there is one.

    Attributes:
        here: this process.
        is_first: whether this is the process that shows progress and writes files.
        is_stopping: whether all have agreed to stop in the middle of an epoch.
    """

    def __init__(self) -> None:
        self.here = this_process()
        self.is_first = self.here.index == 0
        self.is_stopping = False

    @property
    def is_alone(self) -> bool:
        """Whether there is one process only."""
        return self.here.count == 1

    # At the start

    def require_same(self, model: Module, settings: Mapping[str, Any], functions: Iterable[Any]) -> None:
        """Compare what must be the same in all processes.

        Args:
            model: the model.
            settings: numbers and texts by name.
            functions: what the step calls, whose code is compared.

        Raises:
            ValueError: something differs; the message names it, in all processes.
        """
        if self.is_alone:
            return
        facts = {name: str(value) for name, value in settings.items()}
        facts.update({f"the versions of {name}": text for name, text in _versions().items()})
        facts.update(_codes(model, functions))
        facts.update({_name(path, cell): _content(cell) for path, cell in model.named_cells()})
        found = differences(facts)
        if not found:
            return
        process = found[0][0]
        named = [_difference(name, first, other) for index, name, first, other in found if index == process]
        more = f"\n  and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        raise ValueError(
            f"process {process} would not train the same as process 0. All processes run the same script, with the "
            "same seeds (nn.manual_seed, seed=), settings and numbers of batches; what differs:"
            + "".join(f"\n  {text}" for text in named[:_MOST_NAMED])
            + more
            + at_line(user_line())
        )

    def require_divided(self, model: Module, batch: Any) -> None:
        """Raise if nothing is divided over the processes, each of which would train a model of its own."""
        arrays = [*leaves_of(batch), *(cell.array for _, cell in model.named_cells())]
        if not self.is_alone and not any(map(is_across, arrays)):
            raise ValueError(
                f"{self.here} would train a model of its own: nothing is divided over the processes. Pass "
                "mesh=ft.mesh({'data': len(jax.devices())}) to nn.fit, which divides batches of NumPy over all of them"
                + at_line(user_line())
            )

    # Between steps

    def windows(self, batches: Iterator[Any], what: str, state: FitState | None = None) -> Iterator[Any]:
        """The batches of an epoch, until a process asks to stop, which is then noted in all of them.

        Args:
            batches: those of this process.
            what: name of the data, for messages.
            state: the state of the training; None where nobody may ask to stop.

        Raises:
            ValueError: the processes have different numbers of batches, or of samples in a batch.
            RuntimeError: the data of another process has raised an error.
        """
        if self.is_alone:
            yield from batches
            return
        while True:
            window: list[Any] = []
            error: Exception | None = None
            try:
                with watch.waiting_for(f"the next batches of {what}", is_own=True):
                    window.extend(islice(batches, WINDOW))
            except Exception as raised:
                error = raised
            stopping = None if state is None else state.stopping
            said = self._exchange([[samples_in(x) for x in window], stopping, _text_of_error(error)])
            if error is not None:
                raise error
            self._require_none_failed([text for _, _, text in said], what)
            reason = next((text for _, text, _ in said if text is not None), None)
            if state is not None and reason is not None:
                state.stop(reason)
                self.is_stopping = True
                return
            sizes = [found for found, _, _ in said]
            counts = [len(found) for found in sizes]
            if len(set(counts)) > 1:
                raise ValueError(
                    f"the processes have different numbers of batches in {what}: of the next {WINDOW}, "
                    + ", ".join(f"process {i} has {count}" for i, count in enumerate(counts))
                    + "; give all of them equally many, or steps_per_epoch"
                    + at_line(user_line())
                )
            _require_equal_sizes(sizes, what)
            yield from window
            if len(window) < WINDOW:
                return

    def stops(self, state: FitState) -> bool:
        """Whether the training stops in the middle of an epoch: at once where there is one process only."""
        return state.stopping is not None if self.is_alone else self.is_stopping

    def agreed(self, reason: str | None) -> str | None:
        """The reason to stop of the first process that has one."""
        if self.is_alone:
            return reason
        return next((x for x in self._exchange(reason) if x is not None), None)

    def of_first(self, value: Any) -> Any:
        """What process 0 has found: numbers, texts, lists and dictionaries."""
        return value if self.is_alone else self._exchange(value)[0]

    def _exchange(self, value: Any) -> list[Any]:
        return [json.loads(text) for text in from_all(json.dumps(value), "an agreement of all processes in nn.fit")]

    def _require_none_failed(self, failed: list[str | None], what: str) -> None:
        for process, text in enumerate(failed):
            if text is not None:
                raise RuntimeError(f"process {process} has failed in {what}: {text}{at_line(user_line())}")

    @contextmanager
    def on_host(self, model: Module, batch: Any) -> Iterator[Any]:
        """A block in which all of a model is in the memory of this process; gives the batch there, too."""
        cells = [cell for _, cell in model.named_cells() if not is_readable(cell.array)]
        before = [cell.array for cell in cells]
        try:
            for cell in cells:
                cell.array = gathered(cell.array)
            yield _gathered(batch)
        finally:
            for cell, array in zip(cells, before, strict=True):
                cell.array = array


def _require_equal_sizes(sizes: list[list[int]], what: str) -> None:
    """Raise unless each of the next batches has equally many samples in all processes."""
    for process, found in enumerate(sizes):
        for first, other in zip(sizes[0], found, strict=True):
            if first != other:
                raise ValueError(
                    f"a batch of {what} has {first} samples in process 0 and {other} in process {process}; each gives "
                    "equally many, as nn.batches does: leave out what is left over, or repeat some samples"
                    + at_line(user_line())
                )


def _text_of_error(error: Exception | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {error}"


def _gathered(batch: Any) -> Any:
    if isinstance(batch, PlacedBatch):
        return _gathered(batch.arrays)
    if isinstance(batch, dict):
        return {name: _gathered(x) for name, x in batch.items()}
    if isinstance(batch, tuple):
        return tuple(map(_gathered, batch))
    return batch if is_readable(batch) else gathered(batch)


# What is compared


def _name(path: str, cell: ArrayCell) -> str:
    return f"the stream of random numbers {path}" if isinstance(cell, RngState) else f"{path} of the model"


def _content(cell: ArrayCell) -> str:
    """Type and content of a cell, as far as this process can read it."""
    array = cell.array
    return f"{cell.type}|{digest(np.asarray(array)) if is_readable(array) else array.sharding}"


def _difference(name: str, first: str, other: str) -> str:
    """What to say of a fact: the text before a bar is for people."""
    if not first or not other:
        return f"{name} is in one of them only"
    shown = [text.partition("|")[0] for text in (first, other)]
    return f"{name}: {shown[0]} and {shown[1]}" if shown[0] != shown[1] else f"{name}: other values"


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {"Python": sys.version.split()[0], **{name: version(name) for name in ("jax", "numpy")}}


def _codes(model: Module, functions: Iterable[Any]) -> dict[str, str]:
    """Digests of the code of a model's classes and of functions."""
    found = {f"the code of {name_of(f)}": _code(f) for f in functions if f is not None}
    for cls in {type(module) for module in graph_of(model).modules.values()}:
        methods = [f for c in cls.__mro__ for f in vars(c).values() if hasattr(f, "__code__")]
        found[f"the code of {cls.__name__}"] = "|" + digest("".join(map(_code, methods)))
    return found


def _code(f: Any) -> str:
    code = getattr(f, "__code__", None)
    if code is None:
        return "|" + digest("".join(_code(g) for g in vars(type(f)).values() if hasattr(g, "__code__")))
    return "|" + digest(_text_of(code))


def _text_of(code: Any) -> str:
    """A text that differs for different code."""
    if isinstance(code, frozenset):
        # Their order differs from process to process.
        return str(sorted(map(repr, code)))
    if not isinstance(code, CodeType):
        return repr(code)
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {[*map(_text_of, code.co_consts)]}"
