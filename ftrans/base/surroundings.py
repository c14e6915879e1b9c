"""Surroundings: what a rule that lowers an equation may ask of the program that the equation is in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_in_loop: ContextVar[bool] = ContextVar("is in loop", default=False)


def is_in_loop() -> bool:
    """Whether what is being lowered belongs to a loop or a branch, which XLA does not fuse with what is around it."""
    return _is_in_loop.get()


@contextmanager
def in_loop() -> Iterator[None]:
    """Lower the body of a loop or a branch."""
    token = _is_in_loop.set(True)
    try:
        yield
    finally:
        _is_in_loop.reset(token)
