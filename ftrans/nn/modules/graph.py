"""Graph: the cells and modules that are reachable from some modules, each once, with its path.

Transformations need the graph of the modules among their arguments on every call, so it is cached until the structure
epoch changes.  Its `key` identifies everything that the forward code may depend on besides the values of cells:
classes, flags, sizes, and which cells are the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import is_
from typing import Any, NamedTuple, cast

import numpy as np

from ...base.checksum import checksum
from ...base.forks import lock
from ...base.keys import Identity, exact_number
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...core.types import ArrayType, is_inexact, type_of
from ..cells import epoch
from ..cells.array_cell import ArrayCell
from ..cells.kinds import Cells, Parameter
from .bare import REMEMBERED, BareModule, joined
from .nested import attributes, is_mutable, parts_of

_giving_transactions = lock()
_PLAIN = (bool, int, str, bytes, type(None))


class ModuleKey(NamedTuple):
    """What forward code depends on in a module: its class and class attributes, its mode, its attributes."""

    cls: type[BareModule]
    of_class: Any
    training: bool | None
    parts: Any


class CellKey(NamedTuple):
    """What forward code depends on in a cell besides its value."""

    cls: type[ArrayCell]
    shape: Any
    dtype: Any
    sharding: Any
    requires_grad: bool
    hooks: Any


class Graph:
    """The cells and modules that are reachable from some modules.

    Attributes:
        roots: the modules to start from, with prefixes of their paths.
        cells: the cells, each once.
        paths: the path by which each cell was first reached.
        modules: the modules, each once, by path.
        key: what the forward code depends on besides the values of cells; hashable.
        trained: indices of the cells that gradients are computed for.
        numbers: the number of the key in each compiled function.
        operations: cache of the root module's operations with a rule.
    """

    def __init__(self, roots: Sequence[tuple[str, Any]]) -> None:
        self.roots = roots
        self.cells: list[ArrayCell] = []
        self.paths: list[str] = []
        self.modules: dict[str, Any] = {}
        self.epoch = epoch.now()
        self._seen: dict[int, int] = {}
        # Lists and sets, dicts and what has one, other containers, and arrays may change without our being told.
        self._lists: list[tuple[Any, Any]] = []
        self._dicts: list[tuple[Any, Any, Any]] = []
        self._others: list[tuple[Any, Any]] = []
        self._arrays: list[tuple[Any, Any]] = []
        self._inside: set[int] = set()
        self._classes: dict[type, Any] = {}
        self.key = tuple([self._entered(path, root) for path, root in roots])
        self.trained = [
            i for i, c in enumerate(self.cells) if isinstance(c, Parameter) and c.requires_grad and _is_inexact(c.array)
        ]
        self._by_path: dict[str, int] | None = None
        self.numbers: dict[object, int] = {}
        # What the root is without its arrays, made when it is asked for.
        self.structure: Any = None
        # What the root is as an operation with a rule, made when it is called.
        self.operations: dict[str, Any] = {}
        self._transactions: tuple[AbstractContextManager[Any], ...] | None = None

    def _entered(self, path: str, x: Any) -> Any:
        """Add a value of an attribute; return what the forward code depends on in it."""
        cls = type(x)
        if cls in _PLAIN:
            return (cls, x)
        if cls is float:
            return exact_number(x)
        if isinstance(x, ArrayCell):
            return self._cell(path, x)
        if isinstance(x, BareModule):
            number = self._seen.get(id(x))
            if number is not None:
                return ("module", number)
            self._seen[id(x)] = len(self._seen)
            self.modules[path] = x
            entered = [
                (name, self._entered(joined(path, name), value))
                for name, value in attributes(x).items()
                if name not in _NOT_STRUCTURE
            ]
            return ModuleKey(cls, self._class(cls), x.training, tuple(entered))
        parts = parts_of(x)
        if parts is not None:
            return self._container(path, x, parts)
        if isinstance(x, set | frozenset):
            self._lists.append((x, tuple(x)))
            return (cls, tuple(map(_static, x)))
        if is_plain(x, np.ndarray) and x.dtype != object:
            self._arrays.append((x, _fingerprint(x)))
            return (cls, x.shape, x.dtype, self._arrays[-1][1])
        return _static(x)

    def _container(self, path: str, x: Any, parts: Iterable[tuple[Any, Any]]) -> Any:
        if id(x) in self._inside:
            return ("the container around",)
        self._inside.add(id(x))
        # Nobody changes `Cells` once they are made.
        if is_mutable(x) and type(x) is not Cells:
            self._watch(x)
        entered = tuple([(_static(name), self._entered(joined(path, name), y)) for name, y in parts])
        self._inside.discard(id(x))
        return (type(x), entered)

    def _watch(self, x: Any) -> None:
        if isinstance(x, list):
            self._lists.append((x, tuple(x)))
        elif isinstance(x, dict) or hasattr(x, "__dict__"):
            self._watch_names(x if isinstance(x, dict) else vars(x))
        else:
            self._others.append((x, _contents(x)))

    def _watch_names(self, held: Mapping[Any, Any]) -> dict[Any, Any]:
        """Watch a dictionary, and return a copy, since other threads may modify it."""
        now = {**held}
        self._dicts.append((held, tuple(now), tuple(now.values())))
        return now

    def _class(self, cls: type[BareModule]) -> Any:
        """The attributes of a class and its bases, which user code may assign."""
        for owner in cls.__mro__:
            if owner not in self._classes and owner is not object and not owner.__module__.startswith("ftrans."):
                held = self._watch_names(vars(owner))
                self._classes[owner] = tuple([(name, _static(x)) for name, x in held.items()])
        return tuple([self._classes[owner] for owner in cls.__mro__ if owner in self._classes])

    def _cell(self, path: str, cell: ArrayCell) -> Any:
        number = self._seen.get(id(cell))
        if number is not None:
            return ("cell", number)
        self._seen[id(cell)] = len(self._seen)
        self.cells.append(cell)
        self.paths.append(path)
        hooks = tuple(map(_static, cell.hooks)) if isinstance(cell, Parameter) else ()
        requires_grad = isinstance(cell, Parameter) and cell.requires_grad
        return CellKey(type(cell), *_type_of_held(cell), cell.sharding, requires_grad, hooks)

    def is_current(self) -> bool:
        """Whether the structure has not changed since this was made."""
        if self.epoch != epoch.now():
            return False
        for x, before in self._lists:
            if len(x) != len(before) or not all(map(is_, x, before)):
                return False
        for x, names, before in self._dicts:
            if len(x) != len(names) or not all(map(is_, x, names)) or not all(map(is_, x.values(), before)):
                return False
        for x, before in self._others:
            if not all(map(is_, _contents(x), before)):
                return False
        return not self._arrays or all([_fingerprint(x) == before for x, before in self._arrays])

    def is_same(self, other: Graph) -> bool:
        """Whether a graph that was made later has the same structure, cells and modules."""
        return (
            self.key == other.key
            and all(map(is_, self.cells, other.cells))
            and all(map(is_, self.modules.values(), other.modules.values()))
        )

    def transactions(self) -> tuple[AbstractContextManager[Any], ...]:
        """The locks of the cells, each once, in a fixed order.

        Cells that a compiled function first meets together share a lock; a cell keeps its lock forever.
        """
        found = self._transactions
        if found is None:
            with _giving_transactions:
                new = threading.RLock()
                for cell in self.cells:
                    if cell.transaction is None:
                        cell.transaction = new
            found = self._transactions = tuple(sorted({cell.transaction for cell in self.cells}, key=id))
        return found

    def trained_parameters(self) -> dict[str, Parameter]:
        """The parameters that gradients are computed for, by path."""
        return {self.paths[i]: cast(Parameter, self.cells[i]) for i in self.trained}

    def place(self, path: str) -> int | None:
        """The index of the cell at a path."""
        if self._by_path is None:
            self._by_path = {path: i for i, path in enumerate(self.paths)}
        return self._by_path.get(path)


def _type_of_held(cell: ArrayCell) -> tuple[Any, Any]:
    """Shape and dtype of the content of a cell.

    In modules that are mapped over as containers, the content may be anything.
    """
    array = cell.array
    if hasattr(array, "shape") and hasattr(array, "dtype"):
        return tuple(array.shape), np.dtype(array.dtype)
    return type(array), None


def _is_inexact(array: Any) -> bool:
    return hasattr(array, "dtype") and is_inexact(np.dtype(array.dtype))


def without_types(key: Any) -> Any:
    """A key without the shapes, dtypes and places of cells."""
    if type(key) is CellKey:
        return key._replace(shape=None, dtype=None, sharding=None)
    if type(key) is ModuleKey:
        return key._replace(parts=without_types(key.parts))
    return tuple([without_types(part) for part in key]) if type(key) is tuple else key


_NOT_STRUCTURE = frozenset(("training", "_name", "_notes", *REMEMBERED))


# An array up to this size is compared byte by byte; of a larger one, a checksum is.
_SMALL_BYTES = 1 << 12


def _contents(x: Any) -> tuple[Any, ...]:
    return tuple([part for _, part in parts_of(x) or ()])


def _fingerprint(x: np.ndarray[Any, Any]) -> Any:
    """A key for the contents of an array that is a constant of the forward code."""
    return x.tobytes() if x.nbytes <= _SMALL_BYTES else (checksum(x), id(x))


def _static(x: Any) -> Any:
    """A key for a value that is neither a cell nor a module."""
    if is_plain(x, np.dtype | type | str | int):
        return (type(x), x)
    number = exact_number(x)
    if number is not None:
        return number
    if type(x) is tuple:
        return (tuple, tuple(map(_static, x)))
    return Identity(x)


def graph_of(module: BareModule) -> Graph:
    """The graph of one module, from its cache if nothing has changed."""
    graph = known = module.__dict__.get("_graph")
    if graph is None or not graph.is_current():
        graph = Graph([("", module)])
        if known is not None and known.key == graph.key:
            graph.operations = known.operations
        object.__setattr__(module, "_graph", graph)
    return graph


def fitted(graph: Graph, place: int, x: Any, wanted: ArrayType) -> Any:
    """A traced value that forward code has put into a cell, converted to the dtype of the cell.

    Raises:
        TypeError: it has another shape or kind of dtype, so that the next call would differ.
    """
    if tuple(x.shape) == wanted.shape and x.dtype == wanted.dtype:
        return x
    if tuple(x.shape) == wanted.shape and np.can_cast(x.dtype, wanted.dtype, "same_kind"):
        return x.astype(wanted.dtype)
    raise TypeError(
        f"forward code has put an array of type {type_of(x)} into {graph.paths[place]}, which is {wanted}; a "
        f"cell keeps its shape and dtype: convert the array with .astype, or reshape it{at_line(user_line())}"
    )
