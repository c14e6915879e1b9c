"""The graph of the operations that led to tensors.

A node stands for one operation, and has an edge for each argument that a gradient flows to: to the node that made the
argument, or to the tensor itself where it is a leaf.  Nodes refer only to earlier nodes, so a graph is freed with
the last reference to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from ..base.cell import Eager
from ..base.source import Line, at_line
from .hooks import Hooks
from .memory import Memory, Watched

next_order = count().__next__


# Where the cotangent of an argument goes: the node that made the argument, or the leaf; and which result it is.
Edge = tuple[Any, int]
Flags = tuple[bool, ...]


class Node:
    """One operation of a graph, and how cotangents go back through it.

    Attributes:
        name: its name in print, without "Backward".
        line: the user's line of the operation.
        edges: where the cotangents of its active arguments go.
        order: increases from node to node, so that a node comes after those it uses.
        result_count: number of results of the operation.
        hooks: functions that are called with the cotangents of results.
    """

    __slots__ = ("__weakref__", "edges", "hooks", "line", "name", "order", "result_count")

    def __init__(self, name: str, edges: Sequence[Edge], line: Line | None, result_count: int) -> None:
        self.name = name
        self.edges = edges
        self.line = line
        self.order = next_order()
        self.result_count = result_count
        self.hooks: Hooks | None = None

    def pull(self, cotangents: list[Any], needed: Flags | None) -> tuple[Sequence[Any], Iterable[bool]]:
        """A cotangent (or None) for each edge, and whether each is an array of its own.

        Args:
            cotangents: an array, or None for zero, for each result.
            needed: which edges need one; None for all.
        """
        raise NotImplementedError

    def pull_tensors(self, cotangents: list[Any], needed: Flags | None) -> Sequence[Any]:
        """The same for tensors, recorded."""
        raise NotImplementedError

    def release(self, is_root: bool) -> None:
        """Release what is kept; a second backward pass is an error, even if the root of the first kept nothing."""

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that this one passes gradients to, each with the index of a result of it."""
        return tuple(
            (target if isinstance(target, Node) else AccumulateGrad(target), output) for target, output in self.edges
        )

    @property
    def metadata(self) -> dict[str, Any]:
        """Where the node comes from: the user's line as `file:line: code`."""
        return {"line": self.line.describe() if self.line is not None else None}

    def __repr__(self) -> str:
        return f"<{self.name}Backward>"


class AccumulateGrad:
    """The end of a graph: a leaf, which accumulates its gradient in `grad`."""

    __slots__ = ("variable",)

    next_functions: tuple[tuple[Any, int], ...] = ()

    def __init__(self, variable: Eager) -> None:
        self.variable = variable

    def __repr__(self) -> str:
        return "<AccumulateGrad>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)


class KeepingNode(Node):
    """A node that keeps values for the backward pass.

    Attributes:
        kept: the values; None once they are released.
        watched: memories of kept values, and their versions at that time.
    """

    __slots__ = ("kept", "watched")

    kept: Sequence[Any] | None
    watched: Sequence[tuple[Memory | Watched, int | bytes]]

    def checked(self, is_watched: bool = True) -> Sequence[Any]:
        """The kept values.

        Args:
            is_watched: whether changes of arguments or results matter.

        Raises:
            RuntimeError: they were released, or changed in place.
        """
        kept = self.kept
        if kept is None:
            raise RuntimeError(
                f"backward came a second time through {self!r}, whose graph has been freed{at_line(self.line)}\n"
                "  To go back twice, write retain_graph=True in the first call of backward or grad."
            )
        for memory, version in self.watched if is_watched else ():
            if memory.look() != version:
                raise self._changed(memory)
        return kept

    def _changed(self, memory: Memory | Watched) -> RuntimeError:
        where = memory.line.describe() if memory.line is not None else "a line that wrote to the NumPy array itself"
        used = f" used at {self.line.describe()}" if self.line is not None else ""
        return RuntimeError(
            f"the gradient of {self!r} needs a value{used}\n"
            f"  but it was changed in place at {where}\n"
            "  Write x = x + ... in place of x += ..., or change a copy (x.clone())."
        )

    def release(self, is_root: bool) -> None:
        if self.kept or is_root:
            self.kept, self.watched = None, ()
