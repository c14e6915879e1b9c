"""The graph of a program: what a picture of it shows.

A node is an input, an equation or a result; an edge leads from the node that defines a variable to one that uses it.
Constants are written into the equations that use them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..base.names import Names
from ..base.source import Line
from ..core.program import Atom, Const, Eqn, Program, Var, format_const, format_param, programs_in
from ..ops.elementwise import conj, convert
from ..ops.parts import slice_
from ..ops.shapes import StructuralPrimitive
from ..transforms.differentiate import with_pullback
from ..transforms.simplify import simplify

Part = Literal["forward", "backward"]

# Parameters that the type of the result shows already.
_SHOWN_BY_TYPE = ("shape", "dtype", "dims")
# Parameters that say how to run an equation, or how its operands are divided.
_SHOWN_IN_TOOLTIP = ("unroll", "consts", "carries", "message")
_MOST_OPERANDS = 5
_MOST_ELEMENTS = 3
_LONGEST_OPERAND = 16
_LONGEST_PARAMS = 34
_LONGEST_INLINE = 18
_LONGEST_TYPES = 36
_LONGEST_FILE = 22


@dataclass(eq=False)
class Node:
    """A box of the picture.

    Attributes:
        kind: what it stands for.
        part: whether it belongs to the forward pass, or depends on the incoming gradient.
        title: the first line, as (text before the name, name, text after it); the name is printed bold.
        lines: further lines.
        tooltip: the equation in full, with the user's line.
        eqn: the equation, if it is one.
    """

    kind: Literal["input", "equation", "plumbing", "result"]
    part: Part
    title: tuple[str, str, str]
    lines: tuple[str, ...] = ()
    tooltip: str = ""
    eqn: Eqn | None = None

    @property
    def holds_programs(self) -> bool:
        """Whether the equation has sub-programs."""
        return self.eqn is not None and any(True for _ in programs_in(self.eqn.params))


class Edge(NamedTuple):
    """A variable that leads from one node to another, both given by their positions in the graph.

    Attributes:
        source: the node that defines it.
        target: a node that uses it.
        var: the variable.
        is_residual: whether the forward pass keeps it for the backward pass.
    """

    source: int
    target: int
    var: Var
    is_residual: bool


@dataclass(eq=False)
class Graph:
    """What a picture shows of one program.

    Attributes:
        program: the program.
        name: what it is called.
        nodes: inputs, then equations, then results, each in the order of the program.
        edges: from each variable's node to all that use it, once each.
        subgraphs: graphs of the sub-programs, if asked for, each with the number of the node that runs it.
        way: whether it runs in the forward or in the backward pass.
    """

    program: Program
    name: str
    nodes: list[Node]
    edges: list[Edge]
    subgraphs: list[tuple[int, Graph]] = field(default_factory=list)
    way: Part = "forward"

    @property
    def has_backward(self) -> bool:
        """Whether it has a backward pass."""
        return any(node.part == "backward" for node in self.nodes)


class Reverse(NamedTuple):
    """A program and its backward pass, as one program.

    Attributes:
        program: takes the inputs, then gradients with respect to results; returns the results, then gradients with
            respect to inputs.
        seeds: which results the further inputs belong to.
        gradients: which inputs the further outputs belong to.
    """

    program: Program
    seeds: list[int]
    gradients: list[int]


def forward_and_backward(program: Program, active: tuple[bool, ...]) -> Reverse:
    """The program with its backward pass to the active inputs, which is linear in the gradients that it takes.

    Raises:
        ValueError: no result depends on an active input.
    """
    whole = with_pullback(program, active, program.name)
    seeds = [i for i, a in enumerate(whole.out_active) if a]
    if not seeds:
        raise ValueError(
            f"there is no backward pass to draw: no floating-point result of {program.name} depends on a "
            "floating-point input that it is differentiated with respect to; leave out backward=True, or choose "
            "other argnums"
        )
    inputs_back = iter(whole.in_active)
    gradients = [i for i, a in enumerate(active) if a and next(inputs_back)]
    return Reverse(simplify(whole.program), seeds, gradients)


def part_of(program: Program, part: slice) -> Program:
    """Some of the equations as a program: it takes what they need from outside, and returns what is used elsewhere."""
    eqns = program.eqns[part]
    made = {v for eqn in eqns for v in eqn.outputs}
    inputs = dict.fromkeys(a for eqn in eqns for a in eqn.operands if isinstance(a, Var) and a not in made)
    inside = set(map(id, eqns))
    elsewhere = {a for eqn in program.eqns if id(eqn) not in inside for a in eqn.operands}
    elsewhere.update(program.outputs)
    outputs = [v for eqn in eqns for v in eqn.outputs if v in elsewhere]
    start, stop, _ = part.indices(len(program.eqns))
    return Program(f"{program.name}, equations {start} to {stop - 1}", list(inputs), eqns, outputs)


def graph_of(program: Program, names: Sequence[str] = (), expand: bool = False) -> Graph:
    """The graph of a program.

    Args:
        program: the program.
        names: what its first inputs are called; letters, as in print, by default.
        expand: whether to make graphs of the sub-programs too.
    """
    return _Drawn(program, names, None).graph(expand)


def graph_with_backward(
    program: Program, active: tuple[bool, ...], names: Sequence[str] = (), expand: bool = False
) -> Graph:
    """The graph of a program and its backward pass to the active inputs."""
    return _Drawn(program, names, forward_and_backward(program, active)).graph(expand)


class _Drawn:
    """Writes the boxes of one program."""

    def __init__(self, program: Program, names: Sequence[str], reverse: Reverse | None) -> None:
        self.name = program.name
        self.program = program if reverse is None else reverse.program
        self.reverse = reverse or Reverse(program, [], [])
        self.input_count = len(program.inputs)
        self.result_count = len(program.outputs)
        self.called: dict[Atom, str] = dict(zip(self.program.inputs, names, strict=False))
        # In the order of the printed program, so that both have the same letters where no names are given.
        letters = Names()
        for var in (*self.program.inputs, *(v for eqn in self.program.eqns for v in eqn.outputs)):
            name = letters.fresh()
            while name in names:
                name = letters.fresh()
            self.called.setdefault(var, name)
        self.backward: set[Atom] = set(self.program.inputs[self.input_count :])
        self.maker: dict[Var, int] = {}
        self.nodes: list[Node] = []
        self.edges: dict[Edge, None] = {}

    def graph(self, expand: bool) -> Graph:
        """The graph."""
        for index, var in enumerate(self.program.inputs):
            self.maker[var] = self._add(self._input(index, var))
        for eqn in self.program.eqns:
            is_backward = not self.backward.isdisjoint(eqn.operands)
            if is_backward:
                self.backward.update(eqn.outputs)
            at = self._add(self._equation(eqn, "backward" if is_backward else "forward"), eqn.operands)
            self.maker.update(dict.fromkeys(eqn.outputs, at))
        for index, atom in enumerate(self.program.outputs):
            self._add(self._result(index, atom), [atom])
        subgraphs = []
        if expand:
            for index, node in enumerate(self.nodes):
                for program in programs_in(node.eqn.params) if node.eqn is not None else ():
                    subgraph = graph_of(program, expand=True)
                    subgraph.way = node.part
                    subgraph.name = f"{program.name}, in {node.title[0]}{node.title[1]}(...)"
                    subgraphs.append((index, subgraph))
        return Graph(self.program, self.name, self.nodes, list(self.edges), subgraphs)

    def _add(self, node: Node, operands: Sequence[Atom] = ()) -> int:
        at = len(self.nodes)
        self.nodes.append(node)
        for atom in operands:
            if isinstance(atom, Var):
                source = self.maker[atom]
                self.edges[Edge(source, at, atom, self.nodes[source].part != node.part)] = None
        return at

    def _call(self, atom: Atom) -> str:
        return _shortened(_constant(atom), _LONGEST_OPERAND) if isinstance(atom, Const) else self.called[atom]

    def _input(self, index: int, var: Var) -> Node:
        if index < self.input_count:
            return Node("input", "forward", ("", self._call(var), ""), (str(var.type),), f"input {index}: {var.type}")
        result = self._call(self.program.outputs[self.reverse.seeds[index - self.input_count]])
        tooltip = f"the gradient of what follows with respect to {result}; 1 where {result} is the end"
        return Node(
            "input", "backward", (f"{self._call(var)} = ", f"gradient of {result}", ""), (str(var.type),), tooltip
        )

    def _result(self, index: int, atom: Atom) -> Node:
        if index < self.result_count:
            return Node("result", "forward", ("return ", self._call(atom), ""), (str(atom.type),), f"result {index}")
        input_index = self.reverse.gradients[index - self.result_count]
        name = self._call(self.program.inputs[input_index])
        title = ("", f"gradient of {name}", f" = {self._call(atom)}")
        return Node("result", "backward", title, (str(atom.type),), f"gradient with respect to input {input_index}")

    def _in_full(self, eqn: Eqn) -> str:
        left = ", ".join(f"{self.called[v]}: {v.type}" for v in eqn.outputs)
        operands = [format_const(a) if isinstance(a, Const) else self.called[a] for a in eqn.operands]
        params = [f"{key}={format_param(value)}" for key, value in eqn.params.items()]
        text = f"{left} = {eqn.primitive.name}({', '.join(operands + params)})"
        return f"{text}\n{eqn.line.describe()}" if eqn.line is not None else text

    def _equation(self, eqn: Eqn, part: Part) -> Node:
        name = eqn.primitive.name
        left = ", ".join(map(self._call, eqn.outputs[:_MOST_OPERANDS]))
        if len(eqn.outputs) > _MOST_OPERANDS:
            left += ", ..."
        operands = [self._call(a) for a in eqn.operands]
        if len(operands) > _MOST_OPERANDS:
            operands[_MOST_OPERANDS - 2 : -1] = ["..."]
        tooltip = self._in_full(eqn)
        types = _shortened(", ".join(str(v.type) for v in eqn.outputs), _LONGEST_TYPES)
        # Equations that only rearrange or convert what others compute are drawn small.
        if isinstance(eqn.primitive, StructuralPrimitive) or eqn.primitive in (conj, convert):
            right = _subscript(**eqn.params) if eqn.primitive is slice_ else ""
            title = (f"{left} = ", name, f" {', '.join(operands)}{right}")
            return Node("plumbing", part, title, (types,), tooltip, eqn)
        params = _params(eqn)
        lines = []
        if params and len(params) <= _LONGEST_INLINE:
            operands.append(params)
        elif params:
            lines.append(params)
        lines += [
            f"{key}: {' + '.join(number(len(p.eqns), 'equation') for p in programs)}"
            for key, value in eqn.params.items()
            if (programs := list(programs_in({key: value})))
        ]
        lines.append(f"{types} · {_place(eqn.line)}" if eqn.line is not None else types)
        if eqn.line is not None and eqn.line.scope:
            lines.append(f"in {eqn.line.scope}")
        return Node("equation", part, (f"{left} = ", name, f"({', '.join(operands)})"), tuple(lines), tooltip, eqn)


def number(count: int, what: str) -> str:
    """`1 equation`, `2 equations`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _constant(const: Const) -> str:
    """A constant in few characters."""
    if not const.is_splat and const.value.size > _MOST_ELEMENTS:
        return f"const{list(const.type.shape)}".replace(" ", "")
    value = const.value.item() if const.is_splat or const.value.ndim == 0 else None
    return f"{value:.6g}" if isinstance(value, float) and len(repr(value)) > 8 else format_const(const)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _place(line: Line) -> str:
    """`file:line`."""
    name, _, number = repr(line).rpartition(":")
    return f"{_shortened(name, _LONGEST_FILE)}:{number}"


def _subscript(start: Sequence[int], limit: Sequence[int], strides: Sequence[int]) -> str:
    """A slice as Python writes it."""
    return (
        "["
        + ", ".join(f"{a}:{b}" + (f":{s}" if s != 1 else "") for a, b, s in zip(start, limit, strides, strict=True))
        + "]"
    )


def _params(eqn: Eqn) -> str:
    """The parameters that a reader wants: without sub-programs, functions, and what is unset or seen from the type."""
    shown = []
    for key, value in eqn.params.items():
        is_hidden = key in _SHOWN_BY_TYPE or key.endswith(_SHOWN_IN_TOOLTIP)
        if is_hidden or value is None or value is False or callable(value) or any(programs_in({key: value})):
            continue
        # Options are called by their name; (1,) is written as 1.
        text = str(getattr(value, "name", format_param(value)))
        text = re.sub(r"\((\w+),\)", r"\1", text).replace(" ", "")
        if text not in ("()", "((),())"):
            shown.append(f"{key}={text}")
    return _shortened(", ".join(shown), _LONGEST_PARAMS)
