"""The graph that led to tensors, as one program.

Each node has the program of its operation, and the program of a graph is their concatenation.  Operands that no
gradient flows to and no derivative needs are not kept; in a picture they are inputs.  To run a graph again, let
`noting_operands` keep them while it is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..api.anomaly import current_checks
from ..base.source import attributed_to
from ..core.program import Program, Var
from ..core.trace import Builder, NoWitness, building
from ..core.types import ArrayType
from ..core.witness import CodeBuilder
from .graph import Edge, Node, next_order
from .memory import Memory, Watched, protected
from .operation_node import OperationNode
from .tensor import Tensor


class Note(NamedTuple):
    """What an operation was given for one of its arguments.

    Attributes:
        value: the array or number.
        memory: what is known of later changes of it; None where it cannot change.
        version: the version of the memory at the time.
    """

    value: Any
    memory: Memory | Watched | None
    version: int

    @classmethod
    def of(cls, x: Any) -> Note:
        """A note of an operand."""
        watched: list[tuple[Memory | Watched, int | bytes]] = []
        if not isinstance(x, Tensor):
            value = protected(x, watched)
        else:
            value = x.array
            if x.array_type.ndim:
                memory = x.shared_memory()
                watched.append((memory, memory.look()))
        return cls(value, *(watched[0] if watched else (None, 0)))


class Notes(WeakKeyDictionary[Node, list[Note]]):
    """What operations were given for their arguments, as long as somebody holds their nodes.

    Attributes:
        since: the order from which on all nodes are operations that are noted; None where others may be among them.
    """

    def __init__(self, since: int | None = None) -> None:
        super().__init__()
        self.since = since


_notes: ContextVar[Notes | None] = ContextVar("notes", default=None)
_functions_as_programs: ContextVar[bool] = ContextVar("functions as programs", default=False)
# Whether a `Function` is to be traced where it is applied to tensors.
functions_are_programs = _functions_as_programs.get

# What operations are given while anomalies are detected.
noted_in_mode = Notes()


def current_notes() -> Notes | None:
    """Where operations are to note what they are given; None where they need not."""
    notes = _notes.get()
    return noted_in_mode if notes is None and current_checks() is not None else notes


class noting_operands:
    """Note what the operations recorded in this block are given, so that their graph can be run again.

    Args:
        functions_as_programs: whether a `Function` is traced, so that it is part of the program of the graph as well.
    """

    __slots__ = ("_functions_as_programs", "_tokens")

    def __init__(self, functions_as_programs: bool = False) -> None:
        self._functions_as_programs = functions_as_programs

    def __enter__(self) -> Notes:
        notes = Notes(next_order())
        self._tokens = _notes.set(notes), _functions_as_programs.set(self._functions_as_programs)
        return notes

    def __exit__(self, *_: object) -> None:
        notes, functions_as_programs = self._tokens
        _notes.reset(notes)
        _functions_as_programs.reset(functions_as_programs)


class Unknown:
    """Stands for the value of an input of a program that nothing has kept."""

    def __init__(self, type: ArrayType) -> None:
        self.shape = type.shape
        self.dtype = type.dtype


class NoProgram(Exception):
    """A graph that is no program: it has hooks or rules in Python, or an operand has changed since."""


def program_of(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor] | None = None, notes: Notes | None = None
) -> tuple[Program, list[Any]]:
    """The program of the graph that led to tensors.

    Args:
        outputs: the tensors.
        inputs: the tensors that its first inputs are; all leaves by default.
        notes: what the operations were given, of `noting_operands`; the program then goes back as far as these.

    Returns:
        The program, and the values of its inputs, first those asked for: tensors where they are in the graph, arrays,
        and `Unknown` where nothing has kept them.

    Raises:
        NoProgram: there are notes, but the graph cannot be run from them as it was recorded.
    """
    cut = None if inputs is None else [_place(x) for x in inputs]
    nodes = _nodes_behind([_place(x) for x in outputs], cut or [], notes)
    if notes is not None and any(target.hooks is not None for target, _ in cut or ()):
        raise NoProgram("an input has hooks")
    if inputs is None:
        inputs = _leaves(nodes, outputs)
    # Programs that are to run are found again when the same graph is recorded anew.
    reason = NoWitness("a graph is turned into a program without its values")
    builder = CodeBuilder([x.array_type for x in inputs], reason, shared=notes is not None)
    with building(builder):
        places: dict[tuple[int, int], Any] = {}
        for x, tracer in zip(inputs, builder.inputs(), strict=True):
            places.setdefault(_key(_place(x)), tracer)
        for node in nodes:
            results = _replayed(node, places, notes, builder)
            for index, result in enumerate(results):
                # A result that is an input keeps to be one.
                places.setdefault((id(node), index), result)
        name = outputs[0].node.name if len(outputs) == 1 and outputs[0].node is not None else "graph"
        program = builder.finish([places.get(_key(_place(x)), x) for x in outputs], name)
    return program, [*inputs, *builder.captures.values]


def _place(x: Tensor) -> Edge:
    return (x, 0) if not x.requires_grad or x.node is None else (x.node, x.output)


def _key(place: Edge) -> tuple[int, int]:
    target, output = place
    return id(target), output


def _nodes_behind(ends: Sequence[Edge], cut: Sequence[Edge], notes: Notes | None) -> list[OperationNode]:
    """The nodes that lead from `cut`, or from leaves, to some places, in the order in which they were recorded."""
    known = {_key(place) for place in cut}
    found: dict[Any, None] = {}
    pending = list(ends)
    while pending:
        place = pending.pop()
        node = place[0]
        if not isinstance(node, Node) or _key(place) in known or node in found:
            continue
        if notes is None:
            if not isinstance(node, OperationNode):
                continue
        elif node not in notes:
            if notes.since is not None and node.order > notes.since:
                raise NoProgram(f"{node!r} is a rule in Python")
            continue
        elif node.hooks is not None or not isinstance(node, OperationNode):
            raise NoProgram(f"{node!r} has hooks")
        found[node] = None
        pending += node.edges
    return sorted(found, key=lambda node: node.order)


def _leaves(nodes: Sequence[OperationNode], outputs: Sequence[Tensor]) -> list[Tensor]:
    targets = [target for node in nodes for target, _ in node.edges] + [_place(x)[0] for x in outputs]
    return list(dict.fromkeys(x for x in targets if isinstance(x, Tensor)))


def _replayed(
    node: OperationNode, places: dict[tuple[int, int], Any], notes: Notes | None, builder: Builder
) -> list[Any]:
    """Record the operation of a node; return its results."""
    derivative = node.derivative
    program = derivative.program
    noted = None if notes is None else notes[node]
    edges = iter(node.edges)
    values: dict[Var, Any] = {}
    for number, (var, is_active) in enumerate(zip(program.inputs, derivative.active, strict=True)):
        if is_active:
            edge = next(edges)
            if _key(edge) not in places:
                places[_key(edge)] = _from_outside(edge, var.type, noted[number] if noted is not None else None)
            values[var] = places[_key(edge)]
        elif noted is not None:
            values[var] = _unchanged(noted[number])
        elif node.kept is not None and number in derivative.inputs:
            values[var] = node.kept[derivative.inputs.index(number)]
        else:
            values[var] = Unknown(var.type)
    for eqn in program.eqns:
        operands = [values[a] if isinstance(a, Var) else a for a in eqn.operands]
        with attributed_to(eqn.line or node.line):
            results = builder.record(eqn.primitive, operands, eqn.params)
        values.update(zip(eqn.outputs, results, strict=True))
    return [values[a] if isinstance(a, Var) else a for a in program.outputs]


def _from_outside(edge: Edge, type: ArrayType, note: Note | None) -> Any:
    """A value that was computed before the graph began."""
    if note is None:
        return edge[0] if isinstance(edge[0], Tensor) else Unknown(type)
    return Tensor.at(_unchanged(note), *edge)


def _unchanged(note: Note) -> Any:
    if note.memory is not None and note.memory.look() != note.version:
        raise NoProgram("an operand has been changed in place")
    return note.value
