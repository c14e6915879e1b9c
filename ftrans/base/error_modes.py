"""Whether code that is being traced waits for floating-point errors: `np.errstate(...)` or filters of warnings in it.

A program runs when that code is over, and the place that waits for its errors with it.  So a trace looks at each
equation whether anything has been set since it began.  NumPy keeps its modes in a context variable, whose object is
another one after each setting.  Python makes another list of filters in each `warnings.catch_warnings()`, and puts a
new filter at its front or, as the only place besides, at its end.  Comparing these costs about a tenth of a
microsecond, and `np.geterr()` most of one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .foreign import VARIABLE_OF_ERROR_MODES, receiver_of_warnings

# The modes in which something happens where the error is.  "print" and "warn" only tell.
_TAKEN = ("raise", "call", "log")


_variable_of_modes = VARIABLE_OF_ERROR_MODES
_known: dict[Any, Any] = {}


def _asked() -> Any:
    """The present modes, by their names: one object for equal ones."""
    modes = tuple(np.geterr().items())
    return _known.setdefault(modes, modes)


# An object that stands for the present modes.  A NumPy that keeps them elsewhere is asked for them, which takes longer.
current_modes: Callable[[], Any] = _asked if _variable_of_modes is None else _variable_of_modes.get


def _meaning(modes: Any) -> dict[str, Any]:
    """What an object that stood for the modes says, as `np.geterr` does."""
    if _variable_of_modes is None:
        return dict(modes)
    token = _variable_of_modes.set(modes)
    try:
        return {**np.geterr()}
    finally:
        _variable_of_modes.reset(token)


class Reaction(NamedTuple):
    """What has been set: how one writes it, and what it does not reach in a program that runs later."""

    written: str
    handler: str


class Handling:
    """What is done about floating-point errors at one time.

    Attributes:
        modes: stands for NumPy's modes.
    """

    __slots__ = ("_count", "_filters", "_first", "_receiver", "_show", "modes")

    def __init__(self) -> None:
        self.modes = current_modes()
        self._filters = filters = warnings.filters
        self._count = len(filters)
        self._first = filters[0] if filters else None
        self._show = warnings.showwarning
        self._receiver = receiver_of_warnings()

    def is_current(self) -> bool:
        """Whether nothing has been set since."""
        filters = warnings.filters
        return (
            filters is self._filters
            and current_modes() is self.modes
            and len(filters) == self._count
            and (not filters or filters[0] is self._first)
            and warnings.showwarning is self._show
        )

    def shows_warnings(self) -> bool:
        """Whether what becomes of a warning that is shown is now what it was."""
        return warnings.showwarning is self._show and receiver_of_warnings() is self._receiver


def reaction_since(earlier: Handling) -> Reaction | None:
    """What code does about floating-point errors now that it did not earlier."""
    now, before = _meaning(current_modes()), _meaning(earlier.modes)
    for kind, mode in now.items():
        if mode in _TAKEN and before[kind] not in _TAKEN:
            handler = "`except FloatingPointError`" if mode == "raise" else "what is to be called"
            return Reaction(f"np.errstate({kind}={mode!r})", handler)
    if "warn" not in now.values():
        return None
    actions = _actions()
    for action in ("error", "always"):
        if action in actions:
            return Reaction(f"a filter of warnings that says {action!r}", "what waits for the warning")
    if not earlier.shows_warnings() and actions != {"ignore"}:
        return Reaction("warnings.catch_warnings(record=True)", "what waits for the warning")
    return None


def _actions() -> set[str]:
    """What may be done about the warnings that NumPy gives: filters may be for some messages, modules or lines only."""
    found = set()
    for action, message, category, module, line in warnings.filters:
        if issubclass(RuntimeWarning, category):
            # Python 3.14 has another name for it.
            found.add("always" if action == "all" else action)
            if message is None and module is None and not line:
                return found
    return found | {"default"}
