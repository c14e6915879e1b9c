"""Contexts: work that leaves no context variable changed, whatever interrupts it.

What goes on inside of a transformation is in context variables: the builder that records, the mode, the line that work
is done for.  A `with` statement restores them, unless Ctrl-C comes at its very beginning or end.  A context of its own
is left as a whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")


def in_own_context(f: Callable[P, Result]) -> Callable[P, Result]:
    """A function that runs in a copy of the context of its caller."""

    @functools.wraps(f)
    def f_in_own_context(*args: P.args, **kwargs: P.kwargs) -> Result:
        return copy_context().run(f, *args, **kwargs)

    return f_in_own_context
