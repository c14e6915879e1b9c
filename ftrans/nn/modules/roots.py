"""The modules among the arguments of a call, and placeholders for them in the containers of arrays that remain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...api.call import type_name
from ...base import tree
from ...base.source import at_line, user_line
from ..cells.kinds import RngState
from .graph import Graph, graph_of
from .module import Module
from .nested import parts_of, rebuilt

# Graphs of several modules together that the first of them remembers.
_MOST_GRAPHS = 8


class Place:
    """The placeholder of a module: a container without leaves, so that it is part of the structure."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def require_module(x: Any, what: str) -> None:
    """Raise unless `x` is a module; `what` begins the message, such as "nn.summary takes".

    Raises:
        TypeError: it is not.
    """
    if isinstance(x, Module):
        return
    is_class = isinstance(x, type) and issubclass(x, Module)
    given = f"the class {x.__name__}; make an object of it, {x.__name__}(...)" if is_class else type_name(x)
    raise TypeError(f"{what} a module, but the argument is {given}{at_line(user_line())}")


def modules_in(x: Any) -> Iterator[Module]:
    """The modules in an argument, also in containers."""
    if isinstance(x, Module):
        yield x
    else:
        for _, part in parts_of(x) or ():
            yield from modules_in(part)


def graph_of_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
    """The graph of all modules among the arguments; with one module, paths start there."""
    return graph_of_roots([*modules_in((args, kwargs))])


def graph_of_roots(modules: Sequence[Module]) -> Graph:
    """The graph of some modules, cached in the first of them until something changes."""
    if len(modules) == 1:
        return graph_of(modules[0])
    if not modules:
        return Graph(())
    known: dict[Any, Graph] = modules[0].__dict__.setdefault("_graphs", {})
    key = tuple([id(module) for module in modules])
    graph = known.get(key)
    if graph is None or not graph.is_current():
        if len(known) >= _MOST_GRAPHS:
            known.clear()
        graph = known[key] = Graph([(f"{type(m).__name__}[{i}]", m) for i, m in enumerate(modules)])
    return graph


def without_modules(x: Any, replaced: Callable[[Module], Any] = lambda module: None) -> Any:
    """An argument with modules replaced, by None by default."""
    if isinstance(x, Module):
        return replaced(x)
    if isinstance(x, RngState):
        raise TypeError(
            f"{x.path} was passed directly to a transformation of nn, which takes modules and arrays; pass the module "
            f"that holds the stream, or its next key, rng.next_key(){at_line(user_line())}"
        )
    if parts_of(x) is None:
        return x
    return rebuilt(x, lambda part: without_modules(part, replaced))


def with_modules(new: Any, old: Any) -> Any:
    """An argument with the modules of the old one put back."""
    if isinstance(old, Module):
        return old
    if parts_of(old) is None:
        return new
    modules = iter([part for _, part in parts_of(old) or ()])
    return rebuilt(new, lambda part: with_modules(part, next(modules)))


def with_places(x: Any, modules: list[Module]) -> Any:
    """An argument with placeholders for its modules, which are appended to the list."""

    def place(module: Module) -> Place:
        modules.append(module)
        return Place(len(modules) - 1)

    return without_modules(x, place)


def in_places(x: Any, modules: Sequence[Any]) -> Any:
    """An argument with its placeholders replaced by modules, or by another value for each of them."""
    if type(x) is Place:
        return modules[x.number]
    if parts_of(x) is None:
        return x
    return rebuilt(x, lambda part: in_places(part, modules))


def _register() -> None:
    import optree

    def flatten(place: Any) -> tuple[tuple[()], int]:
        return (), place.number

    def unflatten(number: Any, _: Any) -> Any:
        return Place(number)

    cls: Any = Place
    optree.register_pytree_node(cls, flatten, unflatten, namespace=tree.NAMESPACE)


_register()
