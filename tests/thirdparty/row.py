"""One function of a published package: how it is called, at which point, and what is known not to work."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MODES = ("value", "grad", "jit(grad)", "hessian", "vmap(grad)")

# The packages that a package calls.
CALLED = {
    "chemicals": ("fluids",),
    "geopy": ("geographiclib",),
    "ht": ("chemicals", "fluids"),
    "metpy": ("pint",),
    "pykalman": ("skbase",),
    "pypfopt": ("cvxpy",),
    "thermo": ("chemicals", "fluids"),
    "vollib": ("cody_special", "py_lets_be_rational", "py_vollib"),
}
# The programs of this collection are patched by their module, as a user patches a script.
SCRIPTS = (f"{__package__}.scripts",)


@dataclass(frozen=True)
class Row:
    """A function that was not written for differentiation, as a function of one argument with one number as result.

    Attributes:
        name: where it is imported from.  A method is named with its class.
        call: called with what the name stands for (of a method the class) and the argument.
        at: the argument: a number, or the elements of an array.
        reasons: for each mode in which it is refused, why.
    """

    name: str
    call: Callable[[Any, Any], Any]
    at: float | list[Any]
    reasons: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @property
    def package(self) -> str:
        """The package that is installed, by the name under which it is imported."""
        return self.name.partition(".")[0]

    @property
    def patched(self) -> tuple[str, ...]:
        """What is patched for it: the package, and those whose code it runs."""
        return SCRIPTS if self.package == __package__ else (self.package, *CALLED.get(self.package, ()))

    def is_installed(self) -> bool:
        """Whether the package is there."""
        return importlib.util.find_spec(self.package) is not None

    def function(self) -> Callable[[Any], Any]:
        """The function of one argument."""
        found = resolve(self.name)
        return lambda x: self.call(found, x)


def everywhere(reason: str) -> dict[str, str]:
    """The same reason for all modes."""
    return dict.fromkeys(MODES, reason)


SUBCLASS = everywhere("a subclass of NumPy's array holds the numbers, which cannot be traced")
MASK = {"jit(grad)": "a mask decides on a shape, of which a compiled program has only one"}


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
