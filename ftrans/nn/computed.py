"""Computed attributes of modules: those that follow from cells, such as a weight with a norm of its own.

Code that reads the attribute gets what a rule makes of the cells, in every mode, with derivatives.  A module with such
attributes has a subclass of its class, of the same name, so that other modules look up attributes as always.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

from ..base.forward_code import in_forward, speaking
from ..base.source import at_line, user_line
from . import epoch
from .module import Module


class Rule(Protocol):
    """How an attribute is computed.

    Rules are compared by value, as named tuples are: modules with equal rules share compiled functions.
    """

    def compute(self, module: Any, name: str) -> Any:
        """The value of the attribute."""

    def assign(self, module: Any, name: str, value: Any) -> None:
        """Change the cells so that the attribute has this value."""


class WithComputed:
    """The part of a class of modules that looks up computed attributes."""

    def __getattr__(self, name: str) -> Any:
        rule = rule_of(self, name)
        if rule is not None:
            found = rule.compute(self, name)
            return in_forward(found) if speaking.get() else found
        above = getattr(super(), "__getattr__", None)
        # What is missing, or fails as a property, raises the error of all objects.
        return object.__getattribute__(self, name) if above is None else above(name)

    def __setattr__(self, name: str, value: Any) -> None:
        rule = rule_of(self, name)
        if rule is None:
            super().__setattr__(name, value)
        else:
            rule.assign(self, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__dict__.get("_computed", ())})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _empty, (own_class(self),), self.__getstate__()


@cache
def _class_for(cls: Any) -> type[Any]:
    """The subclass for modules of a class with computed attributes."""
    return type(cls)(
        cls.__name__,
        (WithComputed, cls),
        {"__module__": __name__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__},
    )


def _empty(cls: Any) -> Any:
    return Module.__new__(_class_for(cls))


def own_class(module: Any) -> Any:
    """The class of a module, without what looks up computed attributes."""
    cls = type(module)
    return cls.__mro__[2] if issubclass(cls, WithComputed) else cls


def rule_of(module: Any, name: str) -> Any:
    """How an attribute is computed; None if it is not."""
    return module.__dict__.get("_computed", {}).get(name)


def compute_attribute(module: Module, name: str, rule: Rule) -> Any:
    """Let an attribute of a module be computed from now on.

    Returns:
        The cell that it was.

    Raises:
        AttributeError: the module has no such parameter or buffer.
    """
    cell = module.__dict__.pop(name)
    cell.owner = None
    object.__setattr__(module, "_computed", {**module.__dict__.get("_computed", {}), name: rule})
    object.__setattr__(module, "__class__", _class_for(own_class(module)))
    epoch.bump()
    return cell


def stop_computing(module: Module, name: str) -> None:
    """Leave out a computed attribute."""
    rules = {key: rule for key, rule in module.__dict__["_computed"].items() if key != name}
    object.__setattr__(module, "_computed", rules)
    if not rules:
        object.__delattr__(module, "_computed")
        object.__setattr__(module, "__class__", own_class(module))
    epoch.bump()


def cell_of(module: Module, name: str, what: str) -> Any:
    """The parameter or buffer that is about to be computed.

    Raises:
        TypeError: `module` is not a module.
        ValueError: there is no such cell, or it is computed already.
    """
    from .array_cell import ArrayCell

    if not isinstance(module, Module):
        raise TypeError(f"{what} takes a module, not {type(module).__name__}{at_line(user_line())}")
    if rule_of(module, name) is not None:
        raise ValueError(
            f"{name!r} of {module.described()} is already computed from other parameters, by "
            f"{type(rule_of(module, name)).__name__}; remove that first{at_line(user_line())}"
        )
    found = module.__dict__.get(name)
    if not isinstance(found, ArrayCell):
        cells = [key for key, x in module.__dict__.items() if isinstance(x, ArrayCell)]
        raise ValueError(
            f"{module.described()} has no parameter or buffer {name!r}; it has {', '.join(cells) or 'none'}"
            + at_line(user_line())
        )
    return found
