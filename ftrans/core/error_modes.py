"""Whether code that is being traced waits for floating-point errors: `np.errstate(...)` or filters of warnings in it.

A program runs when that code is over, and the place that waits for its errors with it.  So a trace looks at each
equation whether anything has been set since it began.  NumPy keeps its modes in a context variable, whose object is
another one after each setting, and Python makes another list of filters in each `warnings.catch_warnings()`: comparing
both costs a few hundredths of a microsecond, and `np.geterr()` most of one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any, NamedTuple

import numpy as np

# The modes in which something happens where the error is.  "print" and "warn" only tell.
_TAKEN = ("raise", "call", "log")


def _variable() -> ContextVar[Any] | None:
    """The context variable that NumPy keeps its modes in: the one that changes with them, if there is one."""

    def context(mode: Any) -> Context:
        with np.errstate(divide=mode):
            return copy_context()

    before, after = context("warn"), context("ignore")
    found = [v for v in after if before.get(v) is not after[v]]
    return found[0] if len(found) == 1 else None


_variable_of_modes = _variable()
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


def reaction_since(modes: Any) -> Reaction | None:
    """What code does about floating-point errors now that it did not when there were other modes and filters."""
    now, before = _meaning(current_modes()), _meaning(modes)
    for kind, mode in now.items():
        if mode in _TAKEN and before[kind] not in _TAKEN:
            handler = "`except FloatingPointError`" if mode == "raise" else "what is to be called"
            return Reaction(f"np.errstate({kind}={mode!r})", handler)
    if "warn" in now.values() and _action() in ("error", "always"):
        return Reaction(f"warnings.simplefilter({_action()!r})", "what waits for the warning")
    return None


def _action() -> str:
    """What is done about the warnings that NumPy gives."""
    for action, _, category, *_ in warnings.filters:
        if issubclass(RuntimeWarning, category):
            return action
    return "default"
