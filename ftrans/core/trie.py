"""The trie of programs: its edges are equations, and a place in it is all that was recorded up to there.

Programs that begin alike share a path, so tracing a function again walks along what is there already, and ends at the
same `Program` object.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base.source import Line
from .program import Const, Eqn, Program, Var
from .types import ArrayType

_MOST_NODES = 200_000
# What is derived from a program takes about as much memory as this many nodes for each of its equations.
_DERIVED_NODES = 8


class Node:
    """A place in the trie of programs: all that was recorded up to one equation (or capture)."""

    __slots__ = ("children", "eqn", "parent", "programs", "scalars", "var")

    def __init__(self, parent: Node | None, eqn: Eqn | None = None, var: Var | None = None) -> None:
        self.parent = parent
        self.eqn = eqn
        self.var = var
        self.children: dict[Any, Node] = {}
        self.programs: dict[Any, Program] | None = None
        self.scalars: dict[Const | Line | None, int] | None = None

    def eqns(self) -> list[Eqn]:
        """The equations on the path to this place."""
        found: list[Eqn] = []
        node: Node | None = self
        while node is not None:
            if node.eqn is not None:
                found.append(node.eqn)
            node = node.parent
        found.reverse()
        return found


class Root(Node):
    """Where programs of the same input types begin.

    Attributes:
        inputs: their inputs.
        was_spared: whether it was kept when others were thrown away.
    """

    __slots__ = ("inputs", "was_spared")

    def __init__(self, types: Iterable[ArrayType]) -> None:
        super().__init__(None)
        self.inputs = tuple(Var(t) for t in types)
        self.was_spared = False


class Trie:
    """The shared roots of traced programs, thrown away together when they have grown too large.

    Attributes:
        roots: the roots, by the types of the explicit inputs.
        count: how much hangs on them, in nodes.
    """

    def __init__(self) -> None:
        self.roots: dict[tuple[ArrayType, ...], Root] = {}
        self.count = 0
        self._count_before = 0

    def root(self, types: tuple[ArrayType, ...], is_outermost: bool) -> Root:
        """The root for these types of inputs; `is_outermost` says that no trace is running."""
        # Not within a trace: equal sub-programs of one program are to be one object.
        if is_outermost:
            # One large program that is used again and again is kept: only what still grows is thrown away.
            if self.count > self._count_before > _MOST_NODES:
                self._throw_away(types)
            self._count_before = self.count
        root = self.roots.get(types)
        if root is None:
            root = self.roots[types] = Root(types)
        return root

    def _throw_away(self, types: tuple[ArrayType, ...]) -> None:
        """Forget the roots, but for the one that is about to be used: its program may be what has just grown large."""
        root = self.roots.get(types)
        if root is None or root.was_spared:
            self.roots, self.count = {}, 0
        else:
            root.was_spared = True
            self.roots, self.count = {types: root}, self.count - self._count_before

    def count_program(self, program: Program) -> None:
        """Count what will be derived from a new program."""
        self.count += _DERIVED_NODES * len(program.eqns)


trie = Trie()
