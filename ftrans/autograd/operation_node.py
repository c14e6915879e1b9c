"""The node of an operation whose derivative follows from its program.

It holds the `Derivative` of the operation, and the values that the backward pass needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..base.observe import current_observer
from ..base.source import Line
from .derivation import Derivative
from .graph import Edge, Flags, KeepingNode, next_order
from .memory import Memory, Watched
from .tensor import Tensor


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
        # All in one place: this runs for each operation.
        self.name = name
        self.edges = edges
        self.line = line
        self.order = next_order()
        self.result_count = derivative.result_count
        self.hooks = None
        self.derivative = derivative
        self.kept = kept
        self.watched = watched

    def pull(self, cotangents: list[Any], needed: Flags | None) -> tuple[Sequence[Any], Iterable[bool]]:
        derivative = self.derivative
        kept = self.checked(derivative.uses_arguments)
        # If there is one only, it has arrived, or the way would not lead here.
        is_one = len(cotangents) == 1
        pull = derivative.only_pull() if is_one else derivative.pull(tuple([ct is not None for ct in cotangents]))
        if needed is not None:
            pull = pull.part(needed)
        args = [kept[i] for i in pull.takes]
        args += cotangents if is_one else [ct for ct in cotangents if ct is not None]
        function = pull.function or pull.compiled()
        observer = current_observer()
        if observer is None:
            outs = function(*args)
        else:
            outs = observer.operation(f"{self.name}Backward", pull.program, args, lambda: function(*args), self.line)
        if len(outs) == len(self.edges):
            return outs, pull.is_fresh
        found = iter(zip(outs, pull.is_fresh, strict=True))
        rows = [next(found) if a else (None, True) for a in pull.in_active]
        return [x for x, _ in rows], [f for _, f in rows]

    def pull_tensors(self, cotangents: list[Any], needed: Flags | None) -> Sequence[Any]:
        self.checked()
        derivative = self.derivative
        present = (True,) if len(cotangents) == 1 else tuple([ct is not None for ct in cotangents])
        pull = derivative.recorded_pull(present)
        if needed is not None:
            pull = pull.part(needed)
        given = [self._kept_tensor(i) for i in pull.takes]
        given += [ct for ct in cotangents if ct is not None]
        if pull.passes_on is not None:
            found = [given[i] for i in pull.passes_on]
        else:
            found = Tensor.apply_program(pull.program, given, name=f"{self.name}Backward")
        if len(found) == len(self.edges):
            return found
        outs = iter(found)
        return [next(outs) if a else None for a in pull.in_active]

    def _kept_tensor(self, position: int) -> Any:
        """What is kept, as a tensor with its place in the graph."""
        assert self.kept is not None
        derivative = self.derivative
        value = self.kept[position]
        if position < len(derivative.inputs):
            number = derivative.inputs[position]
            if not derivative.active[number]:
                return value
            target, index = self.edges[derivative.edge_of[number]]
            type = derivative.program.inputs[number].type
        elif position < len(derivative.inputs) + len(derivative.outputs):
            index = derivative.outputs[position - len(derivative.inputs)]
            if not derivative.out_active[index]:
                return value
            target, type = self, derivative.out_types[index]
        else:
            return value
        if isinstance(target, Tensor):
            return target
        found = Tensor(value, type)
        found.node, found.output = target, index
        return found
