"""Surroundings: what a rule that lowers an equation may ask of the program that the equation is in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_is_in_loop: ContextVar[bool] = ContextVar("is in loop", default=False)
_is_divided: ContextVar[bool] = ContextVar("is divided", default=False)
_platforms: ContextVar[tuple[str, ...] | None] = ContextVar("platforms", default=None)


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


def is_divided() -> bool:
    """Whether what is being lowered will be divided over several devices, where moving elements costs most."""
    return _is_divided.get()


@contextmanager
def divided(wanted: bool) -> Iterator[None]:
    """Lower a program that will be divided, or a part of one that is."""
    token = _is_divided.set(wanted or _is_divided.get())
    try:
        yield
    finally:
        _is_divided.reset(token)


def exported_for() -> tuple[str, ...] | None:
    """The platforms that an exported program is lowered for; None if it will run in this process."""
    return _platforms.get()


@contextmanager
def exporting(platforms: tuple[str, ...]) -> Iterator[None]:
    """Lower a program that will run elsewhere, on one of these platforms, where no Python code can be called."""
    token = _platforms.set(platforms)
    try:
        yield
    finally:
        _platforms.reset(token)


class NeedsHost(Exception):
    """A program that is being exported calls Python code.

    Attributes:
        eqn: the equation that does, once it is known.
    """

    eqn: Any = None


def require_host() -> None:
    """Note that what is being lowered calls Python code when it runs.

    Raises:
        NeedsHost: it will run elsewhere.
    """
    if exported_for() is not None:
        raise NeedsHost
