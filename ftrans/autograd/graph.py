"""The graph: what tensors remember of the operations that made them.

A node stands for one operation.  It holds the program of the operation by its `Derivative`, the values that the way
back needs, and an edge for each argument that a gradient flows to: to the node that made the argument, or to the
tensor itself where it is a leaf.  Nodes point only back, so a graph goes with the last reference to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.checksum import checksum
from ..base.source import Line, at_line, user_line
from ..core.observe import current_observer

if TYPE_CHECKING:
    from .derivation import Derivative
    from .hooks import Hooks
    from .tensor import Tensor

next_order = count().__next__

# A plain array up to this size is copied when it is kept; a larger one is watched by a checksum.
_COPY_BYTES = 1 << 12


_SINGLE = (True,)


class Memory:
    """The memory that some tensors share, and how often it has been changed in place.

    Attributes:
        version: counts the changes.
        line: the user's line of the last one.
    """

    __slots__ = ("_lent", "_seen", "line", "version")

    def __init__(self) -> None:
        self.version = 0
        self.line: Line | None = None
        self._lent: Any = None
        self._seen = b""

    def change(self) -> None:
        """Count a change."""
        self.version += 1
        self.line = user_line()
        if self._lent is not None:
            self._seen = checksum(self._lent)

    def lend(self, array: Any) -> None:
        """Somebody was given the array itself, and may write to it at any time."""
        if array is self._lent:
            return
        if self._lent is not None:
            # What has been written so far counts; several views are seen through the array that owns the memory.
            self.look()
            while isinstance(array.base, np.ndarray):
                array = array.base
        if array is not self._lent:
            self._lent, self._seen = array, checksum(array)

    def look(self) -> int:
        """The version, after a look at an array that was lent."""
        if self._lent is not None:
            seen = checksum(self._lent)
            if seen != self._seen:
                self.version, self.line, self._seen = self.version + 1, None, seen
        return self.version


class Watched:
    """The memory of a plain array, which is known by its contents only."""

    __slots__ = ("_array",)

    line = None

    def __init__(self, array: Any) -> None:
        self._array = array

    def look(self) -> bytes:
        """What tells apart what the array holds at two times."""
        return checksum(self._array)


def may_be_written(array: Any) -> bool:
    """Whether somebody can write to the memory of an array, be it through another array that this is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False


def protected(array: Any, watched: list[tuple[Memory | Watched, int | bytes]]) -> Any:
    """A plain array to be kept: as it is, watched, or as a copy."""
    if not isinstance(array, np.ndarray):
        return array
    array = np.asarray(array)
    if not may_be_written(array):
        return array
    if array.nbytes <= _COPY_BYTES:
        return array.copy()
    memory = Watched(array)
    watched.append((memory, memory.look()))
    return array


class Edge(NamedTuple):
    """Where the cotangent of an argument goes.

    Attributes:
        target: the node that made the argument, or the leaf.
        output: which result of the node it is.
    """

    target: Any
    output: int


class Node:
    """One operation of a graph, which says how cotangents go back through it.

    Attributes:
        name: what it is called in print, without "Backward".
        line: the user's line of the operation.
        edges: where the cotangents of its active arguments go.
        order: grows from node to node, so that a node comes after those it uses.
        result_count: how many results the operation has.
        hooks: what is called with the cotangents of results.
    """

    __slots__ = ("__weakref__", "edges", "hooks", "line", "name", "order", "result_count")

    def __init__(self, name: str, edges: Sequence[Edge], line: Line | None, result_count: int) -> None:
        self.name = name
        self.edges = edges
        self.line = line
        self.order = next_order()
        self.result_count = result_count
        self.hooks: Hooks | None = None

    def pull(self, cotangents: list[Any]) -> tuple[Sequence[Any], Sequence[bool]]:
        """A cotangent (or None) for each edge, and whether each is an array of its own.

        Args:
            cotangents: an array, or None for zero, for each result.
        """
        raise NotImplementedError

    def pull_tensors(self, cotangents: list[Any]) -> Sequence[Any]:
        """The same for tensors, recorded."""
        raise NotImplementedError

    def release(self, is_root: bool) -> None:
        """Let go of what is kept; a second way back is an error, also where the root of the first kept nothing."""

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that this one passes gradients to, each with the index of a result of it."""
        return tuple(
            (e.target if isinstance(e.target, Node) else AccumulateGrad(e.target), e.output) for e in self.edges
        )

    @property
    def metadata(self) -> dict[str, Any]:
        """What is worth knowing of the node: its user's line as `file:line: code`."""
        return {"line": self.line.describe() if self.line is not None else None}

    def __repr__(self) -> str:
        return f"<{self.name}Backward>"


class AccumulateGrad:
    """What stands at the end of a graph: a leaf, which adds up what arrives in its `grad`."""

    __slots__ = ("variable",)

    next_functions: tuple[tuple[Any, int], ...] = ()

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def __repr__(self) -> str:
        return "<AccumulateGrad>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)


class KeepingNode(Node):
    """An operation that keeps values for its way back.

    Attributes:
        kept: the values; None when they have been let go of.
        watched: memories of kept values, and the versions that they were kept in.
    """

    __slots__ = ("kept", "watched")

    kept: Sequence[Any] | None
    watched: Sequence[tuple[Memory | Watched, int | bytes]]

    def checked(self, is_watched: bool = True) -> Sequence[Any]:
        """What is kept.

        Args:
            is_watched: whether it matters that arguments or results have been changed.

        Raises:
            RuntimeError: it has been let go of, or has been changed in place.
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


class OperationNode(KeepingNode):
    """An operation whose derivative follows from its program.

    Attributes:
        derivative: how cotangents go back.
        kept: the values that this needs, in the order in which the derivative lists them.
    """

    __slots__ = ("derivative",)

    def __init__(
        self,
        name: str,
        edges: Sequence[Edge],
        line: Line | None,
        derivative: Derivative,
        kept: Sequence[Any],
        watched: Sequence[tuple[Memory | Watched, int | bytes]],
    ) -> None:
        super().__init__(name, edges, line, len(derivative.out_active))
        self.derivative = derivative
        self.kept = kept
        self.watched = watched

    def pull(self, cotangents: list[Any]) -> tuple[Sequence[Any], Sequence[bool]]:
        kept = self.checked(self.derivative.uses_arguments)
        if len(cotangents) == 1:
            # The one that there is has arrived, or the way would not lead here.
            pull = self.derivative.pull(_SINGLE)
            args = [*[kept[i] for i in pull.takes], cotangents[0]]
        else:
            pull = self.derivative.pull(tuple([ct is not None for ct in cotangents]))
            args = [*[kept[i] for i in pull.takes], *[ct for ct in cotangents if ct is not None]]
        observer = current_observer()
        if observer is None:
            outs = pull(*args)
        else:
            outs = observer.operation(f"{self.name}Backward", pull.program, args, lambda: pull(*args), self.line)
        if len(outs) == len(self.edges):
            return outs, pull.is_fresh
        found = iter(zip(outs, pull.is_fresh, strict=True))
        rows = [next(found) if a else (None, True) for a in pull.in_active]
        return [x for x, _ in rows], [f for _, f in rows]

    def pull_tensors(self, cotangents: list[Any]) -> Sequence[Any]:
        from .tensor import Tensor

        self.checked()
        derivative = self.derivative
        pull = derivative.recorded_pull(tuple([ct is not None for ct in cotangents]))
        given = [self._kept_tensor(i) for i in pull.takes]
        given += [ct for ct in cotangents if ct is not None]
        outs = iter(Tensor.apply_program(pull.program, given, name=f"{self.name}Backward"))
        return [next(outs) if a else None for a in pull.in_active]

    def _kept_tensor(self, position: int) -> Any:
        """What is kept, as a tensor with its place in the graph."""
        from .tensor import Tensor

        assert self.kept is not None
        derivative = self.derivative
        value = self.kept[position]
        if position < len(derivative.inputs):
            number = derivative.inputs[position]
            if not derivative.active[number]:
                return value
            target, index = self.edges[derivative.active[:number].count(True)]
        elif position < len(derivative.inputs) + len(derivative.outputs):
            index = derivative.outputs[position - len(derivative.inputs)]
            if not derivative.out_active[index]:
                return value
            target = self
        else:
            return value
        return Tensor.at(value, target, index)
