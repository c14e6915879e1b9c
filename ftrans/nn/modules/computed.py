"""Computed attributes of modules: those that follow from cells, such as a weight with a norm of its own.

Code that reads the attribute gets what a rule makes of the cells, in every mode, with derivatives.  A module with such
attributes has a subclass of its class, of the same name, so that other modules look up attributes as always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Protocol

from ...base.forward_code import in_forward, speaking
from ...base.interrupts import uninterrupted
from ...base.source import at_line, user_line
from ..cells import epoch
from ..cells.array_cell import ArrayCell
from ..mixed_precision.autocast import autocast
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
            # It is a parameter, which mixed precision leaves exact.
            with autocast(enabled=False):
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


@uninterrupted
def exchange(module: Module, rules: Mapping[str, Any], gone: Iterable[str], new: Mapping[str, Any]) -> None:
    """Exchange attributes of a module, all of them, or none if one is refused.

    Args:
        module: the module.
        rules: for each name how that attribute is computed from now on; None if it is not computed any more.
        gone: names of attributes that are left out.
        new: new attributes by name.
    """
    before, cls = module.__dict__.copy(), type(module)
    computed = {**before.get("_computed", {}), **rules}
    computed = {name: rule for name, rule in computed.items() if rule is not None}
    try:
        for name in gone:
            del module.__dict__[name]
        module.__dict__.pop("_computed", None)
        if computed:
            module.__dict__["_computed"] = computed
        object.__setattr__(module, "__class__", _class_for(own_class(module)) if computed else own_class(module))
        for name, x in new.items():
            if isinstance(x, ArrayCell):
                # It may have been that of another path.
                x.owner = None
            setattr(module, name, x)
    except BaseException:
        module.__dict__.clear()
        module.__dict__.update(before)
        object.__setattr__(module, "__class__", cls)
        raise
    finally:
        epoch.bump()


def cell_of(module: Module, name: str, what: str) -> Any:
    """The parameter or buffer that is about to be computed.

    Raises:
        TypeError: `module` is not a module.
        ValueError: there is no such cell, or it is computed already.
    """
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
    if hasattr(type(module), name):
        raise ValueError(
            f"{type(module).__name__}.{name} is an attribute of the class, too, and would hide what is computed; "
            f"remove it from the class{at_line(user_line())}"
        )
    return found
