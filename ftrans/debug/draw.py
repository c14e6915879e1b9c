"""draw(): a picture of a program, as text for Graphviz, as the picture that it draws, and in notebooks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..base import html
from ..base.names import printable
from ..base.source import at_line, user_line
from ..core.program import Program
from ..core.types import is_inexact
from .dot import has_graphviz, render, require_graphviz, to_dot
from .graph import Graph, graph_of, graph_with_backward, number, part_of

_TEXTS = ("dot", "gv")
_FORMATS = (*_TEXTS, "svg", "png", "pdf")


class Drawing:
    """A drawing of a program, as text in DOT, the language of Graphviz; `print` shows the text.

    A notebook displays it as a picture if Graphviz is installed.

    Attributes:
        program: the program; printed, it has the same variable names.
        graph: the nodes and edges.
        dot: the text.
    """

    def __init__(self, graph: Graph) -> None:
        self.program = graph.program
        self.graph = graph
        self.dot = to_dot(graph)

    @cached_property
    def svg(self) -> str:
        """The picture as SVG, drawn by Graphviz.

        Raises:
            RuntimeError: Graphviz is not installed.
        """
        return render(self.dot, "svg").decode()

    def save(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> Path:
        """Write the text or the picture to a file.

        Args:
            path: the file, with the suffix .dot, .gv, .svg, .png or .pdf.
            scale: pixels per point of a PNG; text is about 12 points high.

        Returns:
            The path.

        Raises:
            ValueError: the suffix is unknown.
            RuntimeError: the file is a picture, and Graphviz is not installed.
        """
        path = Path(path)
        form = _format_of(path)
        if form in _TEXTS:
            path.write_text(self.dot, encoding="utf-8")
        else:
            path.write_bytes(render(self.dot, form, scale if form == "png" else 1.0))
        return path

    def _repr_svg_(self) -> str | None:
        return self.svg if has_graphviz() else None

    def _repr_html_(self) -> str:
        if not has_graphviz():
            head = f"<b>{html.escaped(repr(self))}</b>: install Graphviz to see it"
            return html.page(head, html.details("the text that Graphviz draws", html.block(self.dot)))
        # White paper in dark notebooks too; a picture that is too large is moved, not shrunk until nobody can read it.
        svg = self.svg[self.svg.index("<svg") :]
        return f'<div style="overflow:auto;max-height:90vh;background:#ffffff">{svg}</div>'

    def __str__(self) -> str:
        return self.dot

    def __repr__(self) -> str:
        return f"<drawing of {self.graph.name}: {number(len(self.program.eqns), 'equation')}>"


def draw(
    what: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    backward: bool = False,
    argnums: int | Sequence[int] | None = None,
    names: Sequence[str] = (),
    expand: bool = False,
    part: slice | None = None,
    max_eqns: int = 1000,
) -> Drawing:
    """Draw a program: a box for each equation, and a line from each value to the equations that use it.

    A box shows the equation with the variable names of the printed program, the type of its result, and the user's
    line; its tooltip has the full equation.  Equations that only rearrange or convert values are drawn small.  A value
    that many equations use has lines to the first 20 of them.

    Args:
        what: a `Program`, as returned by `ft.trace(f)(*args)`; a tensor, for the graph that led to it; or another
            object with a method `__ftrans_program__` that returns a program and its default of `argnums`.
        path: a file to write: .dot or .gv for the text, .svg, .png or .pdf for a picture drawn by Graphviz.
        backward: whether to draw the backward pass too, in a second column that flows up.  Dashed lines between the
            columns are residuals: values that the forward pass keeps for the backward pass.
        argnums: the inputs to differentiate with respect to; by default all floating-point ones, for a tensor the
            leaves.
        names: names of the inputs, in order; letters by default.
        expand: whether to draw the programs of loops, branches and custom rules too, below their equations.
        part: the equations to draw, as a slice; all by default.
        max_eqns: maximum number of equations to draw.

    Returns:
        A `Drawing`: `print` shows its text in DOT, `.save(path)` writes it to a file, and a notebook displays it.

    Raises:
        TypeError: `what` is not a program.
        ValueError: there are more than `max_eqns` equations, or nothing to differentiate.
        RuntimeError: `path` is a picture, and Graphviz is not installed.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> program = ft.trace(lambda w, x: np.sum(np.tanh(w @ x)))(np.ones((2, 3)), np.ones(3))
        >>> drawing = ft.debug.draw(program, backward=True, names=["w", "x"])
        >>> drawing
        <drawing of lambda: 8 equations>
        >>> print(drawing)
        digraph "lambda" {
        ...
    """
    program, own_argnums = _program(what)
    if path is not None:
        _format_of(Path(path))
    if part is not None:
        program = _part(program, part)
    _check_size(program, max_eqns)
    if len(names) > len(program.inputs):
        raise ValueError(
            f"{len(names)} names were given for the {len(program.inputs)} inputs of {program.name}"
            + at_line(user_line())
        )
    if backward:
        graph = graph_with_backward(
            program, _active(program, own_argnums if argnums is None else argnums), names, expand
        )
        _check_size(graph.program, max_eqns)
    else:
        graph = graph_of(program, names, expand)
    drawing = Drawing(graph)
    if path is not None:
        drawing.save(path)
    return drawing


def _program(what: Any) -> tuple[Program, Sequence[int] | None]:
    """The program to be drawn, and which of its inputs get gradients, if the object says so."""
    if isinstance(what, Program):
        return what, None
    hook = getattr(type(what), "__ftrans_program__", None)
    if hook is not None:
        found: tuple[Program, Sequence[int] | None] = hook(what)
        return found
    name = str(getattr(what, "__name__", ""))
    given = printable(name or type(what).__name__)
    instead = (
        f"a function is drawn for given arguments: draw(ft.trace({name if name.isidentifier() else 'f'})(*args))"
        if callable(what)
        else "give it a program, as ft.trace(f)(*args) returns"
    )
    raise TypeError(f"draw takes a program, not {given}; {instead}{at_line(user_line())}")


def _format_of(path: Path) -> str:
    """The format that a suffix says, if it can be written here."""
    form = path.suffix.lower()[1:]
    if form not in _FORMATS:
        raise ValueError(
            f"cannot draw to {path.name!r}: the suffix says the format, and is one of .{', .'.join(_FORMATS)}"
            + at_line(user_line())
        )
    if form not in _TEXTS:
        require_graphviz(form)
    return form


def _part(program: Program, part: slice) -> Program:
    count = len(program.eqns)
    if not isinstance(part, slice):
        raise TypeError(f"part is a slice of the equations, such as slice(0, 50), not {part!r}{at_line(user_line())}")
    if not program.eqns[part]:
        raise ValueError(f"{part} holds none of the {count} equations of {program.name}{at_line(user_line())}")
    return part_of(program, part)


def _check_size(program: Program, most: int) -> None:
    count = len(program.eqns)
    if count > most:
        raise ValueError(
            f"{program.name} has {count} equations, too many for a readable picture; draw a part of them "
            f"(part=slice(0, {min(most, 50)})), trace a part of the function, or ask for all by max_eqns={count}"
            + at_line(user_line())
        )


def _active(program: Program, argnums: int | Sequence[int] | None) -> tuple[bool, ...]:
    count = len(program.inputs)
    if argnums is None:
        return tuple(is_inexact(t.dtype) for t in program.in_types)
    chosen = [argnums] if isinstance(argnums, int) else list(argnums)
    for index in chosen:
        if not -count <= index < count:
            raise ValueError(
                f"argnums has {index}, and {program.name} has inputs 0 to {count - 1}{at_line(user_line())}"
            )
        if not is_inexact(program.in_types[index].dtype):
            raise ValueError(
                f"argnums has {index}, and input {index} of {program.name} is {program.in_types[index]}, "
                f"which has no derivative{at_line(user_line())}"
            )
    return tuple(i in chosen or i - count in chosen for i in range(count))
