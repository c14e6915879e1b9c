"""The trie of programs: edges are equations, and a node stands for all equations recorded up to it.

Programs with the same beginning share a path, so tracing a function again follows an existing path and ends at the same
`Program` object, with everything that has been derived from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..base.source import Line, attributed_line, user_line
from .program import Atom, Const, Eqn, Params, Program, Var
from .tape import Tape, new_eqn
from .types import ArrayType

_MOST_NODES = 200_000
# Derived programs take about as much memory as this many nodes for each equation of the original.
_DERIVED_NODES = 8
# A scalar at one place of a program is a literal until it has been seen with more values than this.
_MOST_SCALARS = 4


class Node:
    """A node of the trie: all that was recorded up to one equation (or capture)."""

    __slots__ = ("children", "eqn", "parent", "programs", "scalars", "var")

    def __init__(self, parent: Node | None, eqn: Eqn | None = None, var: Var | None = None) -> None:
        self.parent = parent
        self.eqn = eqn
        self.var = var
        self.children: dict[Any, Node] = {}
        self.programs: dict[Any, Program] | None = None
        self.scalars: dict[Const | Line | None, int] | None = None


class Root(Node):
    """The root of all programs with the same input types.

    Attributes:
        inputs: their inputs.
        definitions: the equations of all these programs, by the variables that they define.
        was_spared: whether it was kept when the trie was last cleared.
    """

    __slots__ = ("definitions", "inputs", "was_spared")

    def __init__(self, types: Iterable[ArrayType]) -> None:
        super().__init__(None)
        self.inputs = tuple([Var(t) for t in types])
        self.definitions: dict[Atom, Eqn] = {}
        self.was_spared = False


class Trie:
    """The roots of traced programs, cleared together when they have grown too large.

    Attributes:
        roots: the roots, by the types of the explicit inputs.
        count: the size of all that they hold, in nodes.
    """

    def __init__(self) -> None:
        self.roots: dict[tuple[ArrayType, ...], Root] = {}
        self.count = 0
        self._count_before = 0

    def root(self, types: tuple[ArrayType, ...], is_outermost: bool) -> Root:
        """The root for these types of inputs; `is_outermost` says that no trace is running."""
        # Not within a trace, where equal sub-programs of one program must stay one object.
        if is_outermost:
            # A large program that is used repeatedly is kept: only roots that still grow are cleared.
            if self.count > self._count_before > _MOST_NODES:
                self._throw_away(types)
            self._count_before = self.count
        root = self.roots.get(types)
        if root is None:
            root = self.roots[types] = Root(types)
        return root

    def _throw_away(self, types: tuple[ArrayType, ...]) -> None:
        """Clear all roots except the one about to be used, which may be the one that has just grown large."""
        root = self.roots.get(types)
        if root is None or root.was_spared:
            self.roots, self.count = {}, 0
        else:
            root.was_spared = True
            self.roots, self.count = {types: root}, self.count - self._count_before


trie = Trie()


class TrieTape(Tape):
    """A path through the trie; nodes that do not exist yet are created.

    Args:
        types: types of the explicit inputs.
        is_outermost: whether no trace is running.
    """

    is_shared = True

    def __init__(self, types: Iterable[ArrayType], is_outermost: bool) -> None:
        root = trie.root(tuple(types), is_outermost)
        self.inputs = root.inputs
        self._definitions = root.definitions
        self._node: Node = root

    def add(self, primitive: Any, atoms: Sequence[Atom], params: Params, line: Line | None) -> Eqn:
        key = (primitive, line, *atoms, *params.items())
        node = self._node.children.get(key)
        if node is None:
            node = self._extend(key, Node(self._node, eqn=new_eqn(primitive, atoms, params, line)))
            self._definitions.update(dict.fromkeys(node.eqn.outputs, node.eqn))  # type: ignore[union-attr,arg-type]
        self._node = node
        return node.eqn  # type: ignore[return-value]

    def definition(self, atom: Atom) -> Eqn | None:
        return self._definitions.get(atom)

    def repeat(self, eqn: Eqn, atoms: Sequence[Atom]) -> Eqn:
        return self.add(eqn.primitive, atoms, eqn.params, eqn.line or user_line())

    def capture(self, type: ArrayType) -> Var:
        key = ("capture", type)
        node = self._node.children.get(key) or self._extend(key, Node(self._node, var=Var(type)))
        self._node = node
        assert node.var is not None
        return node.var

    def _extend(self, key: Any, node: Node) -> Node:
        # Another thread may have created the node meanwhile.
        trie.count += 1
        return self._node.children.setdefault(key, node)

    def varies(self, number: Const) -> bool:
        if attributed_line() is not None:
            return False
        seen = self._node.scalars
        if seen is None:
            seen = self._node.scalars = {}
        if number not in seen:
            # Counted by line, because functions with the same beginning share a node.
            line = user_line()
            count = seen.get(line, 0)
            if count >= _MOST_SCALARS:
                return True
            seen[line] = count + 1
            seen[number] = 1
        return False

    def eqns(self) -> Sequence[Eqn]:
        return list(self.backwards())[::-1]

    def backwards(self) -> Iterator[Eqn]:
        node: Node | None = self._node
        while node is not None:
            if node.eqn is not None:
                yield node.eqn
            node = node.parent

    def program(self, name: str, captured: Sequence[Var], outputs: tuple[Atom, ...]) -> Program:
        programs = self._node.programs
        if programs is None:
            programs = self._node.programs = {}
        key = (name, outputs)
        program = programs.get(key)
        if program is None:
            made = Program(name, (*self.inputs, *captured), self.eqns(), outputs)
            program = programs.setdefault(key, made)
            trie.count += _DERIVED_NODES * len(made.eqns)
        return program
