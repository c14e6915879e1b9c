"""The modules among the arguments of a call, and what stands for them in the containers of arrays that are left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..api.call import type_name
from ..base.source import at_line, user_line
from ..core import tree
from .cells import RngState
from .graph import Graph, graph_of
from .module import Module
from .nested import parts_of, rebuilt

# Graphs of several modules together that the first of them remembers.
_MOST_GRAPHS = 8


class Place:
    """Stands for the module of a number: a container without leaves, so that it is part of a structure."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def require_module(x: Any, what: str) -> None:
    """Raise unless `x` is a module; `what` is who takes one, such as "nn.summary takes".

    Raises:
        TypeError: it is something else.
    """
    if isinstance(x, Module):
        return
    is_class = isinstance(x, type) and issubclass(x, Module)
    given = f"the class {x.__name__}; make an object of it, {x.__name__}(...)" if is_class else type_name(x)
    raise TypeError(f"{what} a module, but what was given is {given}{at_line(user_line())}")


def modules_in(x: Any) -> Iterator[Module]:
    """The modules in an argument, also in containers."""
    if isinstance(x, Module):
        yield x
    else:
        for _, part in parts_of(x) or ():
            yield from modules_in(part)


def graph_of_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
    """The graph of all modules among the arguments; paths of one module are those in it."""
    return graph_of_roots([*modules_in((args, kwargs))])


def graph_of_roots(modules: Sequence[Module]) -> Graph:
    """The graph of some modules, remembered until something changes, and no longer than the first of them lives."""
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
    """An argument with something else in place of modules, None by default."""
    if isinstance(x, Module):
        return replaced(x)
    if isinstance(x, RngState):
        raise TypeError(
            f"{x.path} was given by itself to a transformation of nn, which takes modules, and arrays; pass the module "
            f"that holds the stream, or the next key of it, rng.next_key(){at_line(user_line())}"
        )
    if parts_of(x) is None:
        return x
    return rebuilt(x, lambda part: without_modules(part, replaced))


def with_modules(new: Any, old: Any) -> Any:
    """An argument with the modules of the old one in their places again."""
    if isinstance(old, Module):
        return old
    if parts_of(old) is None:
        return new
    modules = iter([part for _, part in parts_of(old) or ()])
    return rebuilt(new, lambda part: with_modules(part, next(modules)))


def with_places(x: Any, modules: list[Module]) -> Any:
    """An argument with places for its modules, which are added to the list."""

    def place(module: Module) -> Place:
        modules.append(module)
        return Place(len(modules) - 1)

    return without_modules(x, place)


def in_places(x: Any, modules: Sequence[Any]) -> Any:
    """An argument with modules, or what else there is for each of them, in their places."""
    if x.__class__ is Place:
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
