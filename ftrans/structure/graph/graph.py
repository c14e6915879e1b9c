"""The graph of a program: its arrays as nodes, and between a result and each operand, edges that say which elements of
one depend on which of the other, and by which factor.

An edge has *lanes*.  For each lane it names an element of the result, an element of the operand, and the derivative of
the one by the other: a number, a known array, or a traced array of the shape of the lanes.  Functions of each element
have one edge to each operand, by their own jvp rule; what moves elements, and sums, say so by their rule `local`.
Everything else is linearized, and the linear program takes its place in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.index_map import IndexMap, Piece
from ...base.source import Line, attributed_to
from ...base.type_questions import is_plain
from ...control.subprograms import with_outputs
from ...core.interpret import inline, interpret
from ...core.primitive import MissingRule, Moving, ProgramHolder
from ...core.program import Atom, Const, Eqn, Program, Var
from ...core.trace import Builder, Tracer
from ...core.types import ArrayType, is_complex, is_inexact
from ...ops.elementwise import ne
from ...ops.literals import full_like
from ...transforms.differentiate import linearize
from ...transforms.jvp import jvp, prepared
from ..entries import NotStructured
from ..made_once import made_once
from .arithmetic import ONE, SOME, Masked, computed, constant, evaluated, known_value, masked, taken, total
from .lengths import squared
from .local_blocks import block_values
from .partials import OnElements, first_partials

# An edge with more lanes is left to other engines.
_MOST_LANES = 200_000_000
# Known arrays larger than this are not computed while the graph is built.
_MOST_COMPUTED = 10_000_000


class Node:
    """An array of the program.

    Attributes:
        type: shape and dtype.
        value: the array: traced, or of NumPy if it is known; None if there is none, as for a tangent.
        depends: whether it depends on an active input.
        order: its place in the program; inputs come first.
        line: the user's line that made it.
    """

    __slots__ = ("depends", "line", "order", "type", "value")

    def __init__(self, type: ArrayType, value: Any, depends: bool, order: int, line: Line | None = None) -> None:
        self.type = type
        self.value = value
        self.depends = depends
        self.order = order
        self.line = line

    @property
    def known(self) -> Any:
        """The array, if it is known."""
        return None if isinstance(self.value, Tracer) else self.value

    @property
    def is_active(self) -> bool:
        """Whether it has a derivative."""
        return self.depends and is_inexact(self.type.dtype)


class Edge(NamedTuple):
    """How a result depends on an operand, lane by lane.

    Attributes:
        rows: from lanes to elements of the result.
        cols: from lanes to elements of the operand.
        value: the derivative.
    """

    rows: IndexMap
    cols: IndexMap
    value: Masked


Edges = dict[Node, dict[Node, list[Edge]]]


class Curved(NamedTuple):
    """An equation that may be nonlinear: what second derivatives come from.

    Attributes:
        eqn: the equation.
        operands: its operands.
        results: its results.
    """

    eqn: Eqn
    operands: list[Node]
    results: list[Node]


Held = Callable[["Graph", Eqn, list[Node], bool], list[Node] | None]
PiecesOf = Callable[[Eqn, Sequence[Node]], Any]


class Graph:
    """The graph of a program.

    Args:
        program: the program.
        active: the inputs to differentiate with respect to.
        values: values of the inputs: traced, or of NumPy where they are known; None in a graph of patterns.
        builder: records the values of edges; None for a graph of patterns only.
        held: what finds the results of equations that hold programs, if it knows them.
        pieces_of: what finds the pieces of an equation, see `detect.local_pieces`.

    Attributes:
        inputs: nodes of the active inputs.
        outputs: nodes of all outputs.
        ins: for each node, the edges to its operands.
        curved: the equations that may be nonlinear, in order.
    """

    def __init__(
        self,
        program: Program,
        active: Sequence[bool],
        values: Sequence[Any],
        builder: Builder | None,
        held: Held,
        pieces_of: PiecesOf,
    ) -> None:
        self.builder = builder
        self.held = held
        self.pieces_of = pieces_of
        self.ins: Edges = {}
        self.curved: list[Curved] = []
        self._count = 0
        self._lengths: dict[Node, tuple[Eqn, list[Node]]] = {}
        nodes = [self.node(v.type, x, a) for v, x, a in zip(program.inputs, values, active, strict=True)]
        self.inputs = [node for node, a in zip(nodes, active, strict=True) if a]
        self.outputs = self.walk(prepared(program, tuple(active)), nodes)

    # Building

    def node(self, type: ArrayType, value: Any, depends: bool = False, line: Line | None = None) -> Node:
        """A new node."""
        self._count += 1
        return Node(type, value, depends, self._count, line)

    def edge(self, k: Node, j: Node, rows: IndexMap, cols: IndexMap, value: Masked) -> None:
        """Add an edge; edges with the same maps become one."""
        if value.is_number_equal_to(0.0) or not rows.size:
            return
        if rows.size > _MOST_LANES:
            raise NotStructured(f"{rows.size:,} elements of one array depend on those of another")
        known: Any = value.value
        if is_plain(known, np.ndarray) and not known.all():
            lanes = IndexMap.of(np.flatnonzero(known), rows.size)
            self.edge(k, j, rows.after(lanes), cols.after(lanes), taken(value, lanes))
            return
        edges = self.ins.setdefault(k, {}).setdefault(j, [])
        for i, other in enumerate(edges):
            if other.rows is rows and other.cols is cols and _fit(other.value, value):
                value = total(other.value, value, rows.shape, k.type.dtype)
                if value.is_number_equal_to(0.0):
                    del edges[i]
                else:
                    edges[i] = Edge(rows, cols, value)
                return
        edges.append(Edge(rows, cols, value))

    def walk(self, program: Program, inputs: Sequence[Node], is_linear: bool = False) -> list[Node]:
        """Add the equations of a program on these inputs; return the nodes of its outputs.

        With `is_linear`, the program is linear in the inputs that have no value.
        """
        nodes: dict[Atom, Node] = dict(zip(program.inputs, inputs, strict=True))

        def node(atom: Atom) -> Node:
            if isinstance(atom, Const):
                return self.node(atom.type, atom.value)
            return nodes[atom]

        for eqn in program.eqns:
            with attributed_to(eqn.line):
                results = self.results(eqn, [node(a) for a in eqn.operands], is_linear)
            nodes.update(zip(eqn.outputs, results, strict=True))
        return [node(a) for a in program.outputs]

    def results(self, eqn: Eqn, operands: list[Node], is_linear: bool) -> list[Node]:
        """The nodes of the results of an equation, with their edges."""
        primitive = eqn.primitive
        active = [x.is_active for x in operands]
        if not any(active) or not any(is_inexact(v.type.dtype) for v in eqn.outputs):
            return self._values(eqn, operands, any(x.depends for x in operands))
        if isinstance(primitive, ProgramHolder):
            program = eqn.params["program"]
            return self.walk(program if is_linear else prepared(program, tuple(active)), operands, is_linear)
        unknown = [x for x in operands if x.depends and x.value is None and not is_inexact(x.type.dtype)]
        if self.builder is not None and unknown:
            # For instance whether the solver of a linear system has converged, which is to be checked.
            raise NotStructured(f"{primitive.name} needs a value of the linear program")
        if self.builder is not None and has_complex(eqn):
            raise NotStructured(f"{primitive.name} computes with complex numbers")
        if isinstance(primitive, OnElements):
            return self._elementwise(eqn, operands, active, is_linear)
        results = self.held(self, eqn, operands, is_linear)
        if results is not None:
            self._note_curvature(eqn, operands, results)
            return results
        pieces = self.pieces_of(eqn, operands)
        if pieces is not None and not primitive.multiple_results:
            values = self._factors(eqn, operands, active, pieces)
            if values is not None:
                results = self._values(eqn, operands, True, is_linear)
                for j, is_active, of_operand, factors in zip(operands, active, pieces, values, strict=True):
                    for piece, factor in zip(of_operand if is_active else (), factors, strict=is_active):
                        self.edge(results[0], j, piece.rows, piece.cols, factor)
                self._note_curvature(eqn, operands, results)
                return results
        if is_linear:
            return self._unknown(eqn, operands, active, pieces)
        results = self._linearized(eqn, operands, active)
        self._note_curvature(eqn, operands, results)
        return results

    def _note_curvature(self, eqn: Eqn, operands: list[Node], results: list[Node]) -> None:
        """Remember an equation that is not linear in all of its active operands together."""
        linear = eqn.primitive.linear_in(len(operands), eqn.params)
        active = [i for i, x in enumerate(operands) if x.is_active]
        if not set(active) <= set(linear) and _is_curved(eqn, active):
            self.curved.append(Curved(eqn, operands, results))

    def _values(self, eqn: Eqn, operands: list[Node], depends: bool, is_linear: bool = False) -> list[Node]:
        """Nodes of the results, with values where the operands have them."""
        values: Sequence[Any] = [None] * len(eqn.outputs)
        if not is_linear and all(x.value is not None for x in operands):
            if not any(isinstance(x.value, Tracer) for x in operands):
                size = sum(v.type.size for v in eqn.outputs)
                if not eqn.primitive.multiple_results and size <= _MOST_COMPUTED:
                    values = evaluated(eqn, [_array(x) for x in operands])
                elif self.builder is not None:
                    values = computed(self.builder, eqn, [constant(_array(x)) for x in operands])
            elif self.builder is not None:
                values = computed(self.builder, eqn, [lifted(self.builder, x) for x in operands])
        return [self.node(v.type, y, depends, eqn.line) for v, y in zip(eqn.outputs, values, strict=True)]

    def _elementwise(self, eqn: Eqn, operands: list[Node], active: list[bool], is_linear: bool) -> list[Node]:
        results = self._values(eqn, operands, True, is_linear)
        (k,) = results
        if has_complex(eqn):
            # The derivative of a real part along 1 says nothing of the one along i.
            for j, is_active in zip(operands, active, strict=True):
                if is_active and not getattr(eqn.primitive, "is_constant", False):
                    self._diagonal(k, j, SOME)
            self._note_curvature(eqn, operands, results)
            return results
        length = self._lengths.get(operands[0])
        if getattr(eqn.primitive, "square", None) is not None:
            self._lengths[k] = eqn, operands
        smooth = None if length is None else squared(eqn, length[0])
        if smooth is not None and length is not None:
            eqn, operands = smooth, length[1]
            active = [x.is_active for x in operands]
        first = first_partials(eqn, active)
        values = self.partial_values(first.program, operands)
        for position, value in zip(first.wrt, values, strict=True):
            self._diagonal(k, operands[position], value)
        if not is_linear and first.wrt:
            self.curved.append(Curved(eqn, operands, results))
        return results

    def partial_values(self, program: Program, operands: Sequence[Node]) -> list[Masked]:
        """The results of a program of partial derivatives on the operands of its equation."""
        if self.builder is None:
            known = interpret(program, [x.known for x in operands], _evaluated, lambda const: const.value)
            return [SOME if y is None else Masked(known_value(y)) for y in known]
        xs = [lifted(self.builder, x) for x in operands]
        return [masked(y) for y in inline(program, xs)]

    def _diagonal(self, k: Node, j: Node, value: Masked) -> None:
        """Add the edge of an elementwise operation."""
        lanes = IndexMap.identity(k.type.shape)
        if value.mask is not None and isinstance(value.mask.atom, Const):
            chosen = IndexMap.of(np.flatnonzero(value.mask.atom.array()), k.type.size)
            lanes, value = chosen, taken(Masked(value.value), chosen)
        self.edge(k, j, lanes, lanes, value)

    def _factors(self, eqn: Eqn, operands: list[Node], active: list[bool], pieces: Any) -> list[list[Masked]] | None:
        """The values of the pieces of an equation with one result; None if they are not known from the equation."""
        found: list[list[Masked]] = []
        for i, (is_active, of_operand) in enumerate(zip(active, pieces, strict=True)):
            found.append([])
            for piece in of_operand if is_active else ():
                if piece.factor is not None:
                    found[-1].append(Masked(piece.factor))
                elif _multiplies_lanes(eqn) and operands[1 - i].value is not None:
                    other, shared = operands[1 - i], pieces[1 - i]
                    value = other.value if isinstance(other.value, Tracer) else _array(other)
                    found[-1].append(taken(Masked(value), shared[0].cols))
                elif self.builder is None:
                    found[-1].append(SOME)
                else:
                    return None
        return found

    def _linearized(self, eqn: Eqn, operands: list[Node], active: list[bool]) -> list[Node]:
        """The results of an equation whose linear program takes its place in the graph."""
        try:
            parts = linearize(alone(eqn), tuple(active))
        except MissingRule as error:
            raise NotStructured(f"{eqn.primitive.name} has no linear program ({error})") from None
        # Walked, not recorded as it is: a residual that is known, as one that only counts, stays known.
        values = self.walk(parts.values, [self.node(x.type, x.value) for x in operands])
        residuals = values[len(eqn.outputs) :]
        moved = [x for x in operands if x.is_active]
        tangents = iter(self.walk(parts.linear, [*residuals, *moved], is_linear=True))
        results = []
        for v, x, is_active in zip(eqn.outputs, values, parts.out_active, strict=False):
            result = self.node(v.type, x.value, is_active, eqn.line)
            if is_active:
                self._diagonal(result, next(tangents), ONE)
            results.append(result)
        return results

    def _unknown(self, eqn: Eqn, operands: list[Node], active: list[bool], pieces: Any) -> list[Node]:
        """The results of a linear equation whose factors have to be computed by applying it."""
        results = self._values(eqn, operands, True, is_linear=True)
        if pieces is None:
            pieces = [[_dense(v.type, x.type) for x in operands] for v in eqn.outputs]
        elif not eqn.primitive.multiple_results:
            pieces = [pieces]
        for r, (k, of_result) in enumerate(zip(results, pieces, strict=True)):
            if not is_inexact(k.type.dtype):
                continue
            for i, (j, of_operand) in enumerate(zip(operands, of_result, strict=True)):
                if not active[i] or not of_operand:
                    continue
                if self.builder is None:
                    values = [SOME] * len(of_operand)
                else:
                    known = [None if a else lifted(self.builder, x) for x, a in zip(operands, active, strict=True)]
                    values = block_values(self.builder, eqn, r, i, known, of_operand)
                    if isinstance(eqn.primitive, Moving) or any(x.type.dtype.kind == "b" for x in operands):
                        # What is not chosen for a place has no influence there, however steep it is.
                        values = [_chosen(value) for value in values]
                for piece, value in zip(of_operand, values, strict=True):
                    self.edge(k, j, piece.rows, piece.cols, value)
        return results


def alone(eqn: Eqn) -> Program:
    """The program of one equation."""
    inputs = [Var(a.type) for a in eqn.operands]
    outputs = [Var(v.type) for v in eqn.outputs]
    same = Eqn(eqn.primitive, tuple(inputs), eqn.params, tuple(outputs), eqn.line)
    return Program(eqn.primitive.name, inputs, [same], outputs)


def product_lanes(curved: Curved) -> tuple[Piece, Piece] | None:
    """The lanes of a sum of products: for each, an element of the result and of both operands."""
    eqn, operands, results = curved
    if not _multiplies_lanes(eqn):
        return None
    types = [x.type for x in operands]
    pieces = eqn.primitive.local(types, [x.type for x in results], [x.known for x in operands], eqn.params)
    # Sums of no products have no pieces.
    if pieces is None or not all(pieces[:2]):
        return None
    (left,), (right,), *_ = pieces
    return left, right


def _multiplies_lanes(eqn: Eqn) -> bool:
    """Whether each lane of the first two operands is a product of their elements."""
    return getattr(eqn.primitive, "multiplies_lanes", False)


def _is_curved(eqn: Eqn, active: Sequence[int]) -> bool:
    """Whether the derivative of an equation may depend on its active operands."""
    flags = tuple([i in active for i in range(len(eqn.operands))])

    def find() -> bool:
        values = linearize(alone(eqn), flags).values
        residuals = with_outputs(values, values.outputs[len(eqn.outputs) :])
        return any(jvp(residuals, flags).out_active)

    found: bool = made_once("is curved", eqn, flags, find)
    return found


def has_complex(eqn: Eqn) -> bool:
    """Whether an equation computes with complex numbers."""
    return any(is_complex(x.type.dtype) for x in (*eqn.operands, *eqn.outputs))


def _dense(result: ArrayType, operand: ArrayType) -> list[Piece]:
    """All elements of a result depend on all of an operand."""
    if not is_inexact(operand.dtype) or not result.size or not operand.size:
        return []
    shape = (result.size, operand.size)
    return [Piece(IndexMap.affine(shape, 0, (1, 0), result.size), IndexMap.affine(shape, 0, (0, 1), operand.size))]


def _fit(a: Masked, b: Masked) -> bool:
    """Whether two values may be added without making zeros that are not last."""
    return a.mask is b.mask or (a.mask is not None and b.mask is not None and a.mask.atom is b.mask.atom)


def _evaluated(eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
    """The results of an equation of functions of each element, where the operands are known; None elsewhere."""
    return [None] * len(eqn.outputs) if any(x is None for x in operands) else evaluated(eqn, operands)


def _chosen(x: Masked) -> Masked:
    """A value whose zeros are those of a choice."""
    assert isinstance(x.value, Tracer)
    return Masked(x.value, ne(x.value, full_like(x.value, 0)))


def _array(x: Node) -> Any:
    """The known array of a node, in its shape."""
    return np.broadcast_to(x.value, x.type.shape) if x.type.shape else np.asarray(x.value)[()]


def lifted(builder: Builder, x: Node) -> Tracer:
    """The value of a node as a traced array.  A tangent has none, and nothing depends on it."""
    if isinstance(x.value, Tracer):
        return x.value
    if x.value is None:
        return Tracer(builder, Const(x.type.dtype.type(0), x.type))
    if np.ndim(x.value) == 0:
        return Tracer(builder, Const(x.type.dtype.type(x.value), x.type))
    return constant(x.value)
