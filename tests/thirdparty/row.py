"""One function of a published package: how it is called, and at which point."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MODES = ("value", "grad", "jit(grad)", "hessian", "vmap(grad)")


@dataclass(frozen=True)
class Row:
    """A function that was not written for differentiation, as a function of one argument with one number as result.

    Attributes:
        name: where it is imported from.  A method is named with its class.
        call: called with what the name stands for (of a method the class) and the argument.
        at: the argument: a number, or the elements of an array.
        packages: those whose code it runs, if not only that of its own.
    """

    name: str
    call: Callable[[Any, Any], Any]
    at: float | list[Any]
    packages: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def package(self) -> str:
        """The package that is installed, by the name under which it is imported."""
        return self.name.partition(".")[0]

    def is_installed(self) -> bool:
        """Whether all packages of the row are there."""
        return all(importlib.util.find_spec(p) for p in (self.package, *self.packages))

    def function(self) -> Callable[[Any], Any]:
        """The function of one argument."""
        found = resolve(self.name)
        return lambda x: self.call(found, x)


def resolve(name: str) -> Any:
    """What a dotted name stands for: a function, a class, or of a method the class."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        owner = None
        for part in parts[count:]:
            owner, found = found, getattr(found, part)
        return owner if inspect.isclass(owner) else found
    raise ModuleNotFoundError(name)
