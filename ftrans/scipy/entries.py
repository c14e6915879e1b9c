"""How a function of ftrans enters the table as the traced form of SciPy's function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from ..base.source import at_line, user_line
from ..numpy.dispatch import implements, refused

Function = TypeVar("Function", bound=Callable[..., Any])


def entering(module: ModuleType) -> Callable[[Function], Function]:
    """A decorator: enter a function as the traced form of the function of `module` of the same name.

    A function that the installed version of SciPy lacks is left as it is.
    """

    def enter(function: Function) -> Function:
        original = getattr(module, function.__name__, None)
        return function if original is None else implements(original)(function)

    return enter


def refused_functions(module: ModuleType, reasons: dict[str, str]) -> dict[str, Any]:
    """The public forms of functions of `module` that have no traced one, by name.

    Args:
        module: a module of SciPy.
        reasons: why a function has none and what to write instead, by names that are separated by spaces.
    """
    return {
        name: refused(getattr(module, name), f"{module.__name__}.{name}", why)
        for names, why in reasons.items()
        for name in names.split()
        if hasattr(module, name)
    }


def bad_argument(message: str) -> ValueError:
    """An error about an argument, with the user's line."""
    return ValueError(message + at_line(user_line()))
