"""Containers: modules that hold modules or parameters in order, or by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from ...api.call import name_of
from ...base.source import at_line, user_line
from ..cells.kinds import Parameter
from .module import Module
from .nested import attributes


class _Numbered(Module):
    """Modules or parameters as attributes "0", "1", ..."""

    _holds: tuple[type, ...] = (Module,)

    def __init__(self, items: Iterable[Any] = ()) -> None:
        for i, x in enumerate(items):
            self._put(str(i), x)

    def _put(self, name: str, x: Any) -> None:
        if x is not None and not isinstance(x, self._holds):
            raise _not_held(self, x)
        setattr(self, name, x)

    def _names(self) -> list[str]:
        return [name for name in attributes(self) if name.isdigit()]

    def _items(self) -> list[Any]:
        return [self.__dict__[name] for name in self._names()]

    def _renumber(self, items: Iterable[Any]) -> None:
        found = list(items)
        for name in self._names():
            delattr(self, name)
        for i, x in enumerate(found):
            self._put(str(i), x)

    def __len__(self) -> int:
        return len(self._names())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items())

    def __bool__(self) -> bool:
        return True

    def __contains__(self, x: object) -> bool:
        return any(y is x for y in self._items())

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        items = self._items()
        if isinstance(index, slice):
            return self._like(items[index])
        if not -len(items) <= index < len(items):
            raise IndexError(
                f"{type(self).__name__} has {len(items)} entries, and no index {index}{at_line(user_line())}"
            )
        return items[index]

    def _like(self, items: Iterable[Any]) -> Any:
        """A container of the same kind, with other entries."""
        return type(self)(items)

    def __setitem__(self, index: int, x: Any) -> None:
        self._put(str(range(len(self))[index]), x)

    def __delitem__(self, index: int) -> None:
        items = self._items()
        del items[index]
        self._renumber(items)

    def append(self, x: Any) -> Any:
        """Add an entry at the end; return the container."""
        self._put(str(len(self)), x)
        return self

    def extend(self, items: Iterable[Any]) -> Any:
        """Add several entries at the end; return the container."""
        for x in items:
            self.append(x)
        return self

    def insert(self, index: int, x: Any) -> None:
        """Put an entry before the one at `index`."""
        items = self._items()
        items.insert(index, x)
        self._renumber(items)

    def pop(self, index: int = -1) -> Any:
        """Take an entry out and return it."""
        items = self._items()
        x = items.pop(index)
        self._renumber(items)
        return x


class Sequential(_Numbered):
    """Modules that run one after the other, each on the result of the one before.

    Args:
        args: the modules; or one dictionary of modules by name.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        >>> model(np.ones((5, 3), np.float32)).shape
        (5, 2)
    """

    def __init__(self, *args: Any) -> None:
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            super().__init__(args)

    def _names(self) -> list[str]:
        return [name for name, x in attributes(self).items() if isinstance(x, Module)]

    def _like(self, items: Iterable[Any]) -> Any:
        return type(self)(*items)

    def forward(self, input: Any) -> Any:
        """The result of the last module.

        Args:
            input: what the first module takes.
        """
        for module in self._items():
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules.  It has no forward code: index it, or iterate over it.

    Args:
        modules: the modules.

    Example:
        >>> from ftrans import nn
        >>> len(nn.ModuleList([nn.Linear(2, 2) for _ in range(3)]))
        3
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__(modules or ())

    def __repr__(self) -> str:
        # Equal modules next to each other are shown once.
        runs = [(shown, len(list(run))) for shown, run in itertools.groupby(map(repr, self))]
        lines, place = [], 0
        for shown, count in runs:
            where = f"({place})" if count == 1 else f"({place}-{place + count - 1})"
            first, *rest = (shown if count == 1 else f"{count} x {shown}").split("\n")
            lines += [f"  {where}: {first}", *("  " + line for line in rest)]
            place += count
        return "\n".join([f"{type(self).__name__}(", *lines, ")"]) if lines else f"{type(self).__name__}()"


class ParameterList(_Numbered):
    """A list of parameters.

    Args:
        values: parameters, or arrays to make parameters of.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> sum(p.size for p in nn.ParameterList([np.zeros(2), np.zeros(3)]).parameters())
        5
    """

    _holds = (Parameter,)

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__(x if isinstance(x, Parameter) else Parameter(x) for x in values or ())


class _Named(Module):
    """Modules or parameters by name."""

    _holds: tuple[type, ...] = (Module,)

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        self.update(items or {})

    def _entries(self) -> dict[str, Any]:
        return {name: x for name, x in attributes(self).items() if isinstance(x, self._holds)}

    def __getitem__(self, name: str) -> Any:
        found = self._entries()
        if name not in found:
            raise KeyError(f"{type(self).__name__} has no {name!r}; it has {', '.join(found)}{at_line(user_line())}")
        return found[name]

    def __setitem__(self, name: str, x: Any) -> None:
        if not isinstance(x, self._holds):
            raise _not_held(self, x)
        if name not in self.__dict__ and hasattr(type(self), name):
            raise KeyError(
                f"{type(self).__name__} already has an attribute {name!r}; choose another name{at_line(user_line())}"
            )
        setattr(self, name, x)

    def __delitem__(self, name: str) -> None:
        self[name]
        delattr(self, name)

    def __len__(self) -> int:
        return len(self._entries())

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __contains__(self, name: object) -> bool:
        return name in self._entries()

    def keys(self) -> Any:
        """The names."""
        return self._entries().keys()

    def values(self) -> Any:
        """The entries."""
        return self._entries().values()

    def items(self) -> Any:
        """Pairs of names and entries."""
        return self._entries().items()

    def update(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add entries, replacing those with the same name."""
        for name, x in items.items() if isinstance(items, Mapping) else items:
            self[name] = x

    def pop(self, name: str) -> Any:
        """Remove an entry; return it."""
        x = self[name]
        del self[name]
        return x


class ModuleDict(_Named):
    """A dictionary of modules.

    Args:
        modules: the modules by name.

    Example:
        >>> from ftrans import nn
        >>> nn.ModuleDict({"in": nn.Linear(2, 3)})["in"]
        Linear(in_features=2, out_features=3, bias=True)
    """


class ParameterDict(_Named):
    """A dictionary of parameters.

    Args:
        parameters: parameters by name, or arrays to make parameters of.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ParameterDict({"scale": np.ones(2)})["scale"].shape
        (2,)
    """

    _holds = (Parameter,)

    def __setitem__(self, name: str, x: Any) -> None:
        super().__setitem__(name, x if isinstance(x, Parameter) else Parameter(x))


def _not_held(container: Any, x: Any) -> TypeError:
    """The error for an entry of another kind."""
    if isinstance(x, type):
        given = f"the class {x.__name__}; make an object of it, {x.__name__}(...)"
    elif isinstance(x, list | tuple) and isinstance(container, Sequential):
        given = f"a {type(x).__name__}; write Sequential(*modules)"
    elif callable(x):
        given = f"the function {name_of(x)}; take a layer for it, such as nn.Tanh(), or a Module with a forward"
    else:
        given = type(x).__name__
    held = " or ".join(c.__name__ for c in container._holds)
    return TypeError(f"{type(container).__name__} holds {held} objects, not {given}{at_line(user_line())}")
