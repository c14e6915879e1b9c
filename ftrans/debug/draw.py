"""draw(): a picture of a program, as SVG, PNG or PDF, and in notebooks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..base.source import at_line, user_line
from ..core.printer import printable
from ..core.program import Program
from ..core.types import is_inexact
from .graph import Graph, graph_of, graph_with_backward, part_of
from .picture import picture_of
from .shapes import save_with_matplotlib, to_svg

_FORMATS = (".svg", ".png", ".pdf")


class Drawing:
    """A picture of a program.  The last expression of a notebook's cell shows itself.

    Attributes:
        program: what is drawn; print it to read the same letters as text.
        graph: the nodes and edges.
        picture: shapes and sizes.
    """

    def __init__(self, graph: Graph) -> None:
        self.program = graph.program
        self.graph = graph
        self.picture = picture_of(graph)

    @cached_property
    def svg(self) -> str:
        """The picture as SVG text."""
        return to_svg(self.picture)

    def save(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> Path:
        """Write the picture to a file.

        Args:
            path: the file; its suffix, .svg, .png or .pdf, says the format.
            scale: pixels of a PNG per unit of length, of which a letter is about 12 high.

        Returns:
            The path.

        Raises:
            ValueError: the suffix is another one.
            ImportError: PNG and PDF need matplotlib, the extra `plot`.
        """
        path = Path(path)
        _check_format(path)
        if path.suffix.lower() == ".svg":
            path.write_text(self.svg, encoding="utf-8")
        else:
            save_with_matplotlib(self.picture, path, scale)
        return path

    def _repr_html_(self) -> str:
        # White paper in dark notebooks too; a picture that is too large is moved, not shrunk until nobody can read it.
        return f'<div style="overflow:auto;max-height:90vh;background:#ffffff">{self.svg}</div>'

    def __repr__(self) -> str:
        return f"<drawing of {self.graph.name}: {len(self.program.eqns)} equations>"


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
    """A picture of a program: a box for each equation, a line for each value on its way.

    A box says the equation in the letters of the printed program, the type of its result and the user's line; resting
    the pointer on it shows all of it.  What only arranges or retypes values is drawn small.

    Args:
        what: a `Program`, as `ft.trace(f)(*args)` returns; a tensor, for the graph that led to it; or another object
            with a method `__ftrans_program__` that returns a program and its default of `argnums`.
        path: a file to write too: .svg, .png or .pdf.
        backward: whether to draw the way back too, in a column that flows up beside the one that flows down.  Dashed
            lines between them are the values that are kept on the way forward for the way back.
        argnums: which inputs of the program the way back leads to; by default all of floating dtype, of a tensor the
            leaves.
        names: what the inputs are called, in their order; letters by default.
        expand: whether to draw the programs of loops, branches and custom rules too, below.
        part: which equations to draw, as a slice of those of the program; all by default.
        max_eqns: refuse more equations than this.

    Returns:
        A `Drawing`: it shows itself in a notebook, `.svg` is its text and `.save(path)` writes it.  It takes a second
        for some hundred equations.

    Raises:
        TypeError: `what` is no program.
        ValueError: there are more than `max_eqns` equations, or nothing to differentiate.
        ImportError: PNG and PDF need matplotlib, the extra `plot`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> program = ft.trace(lambda w, x: np.sum(np.tanh(w @ x)))(np.ones((2, 3)), np.ones(3))
        >>> drawing = ft.debug.draw(program, backward=True, names=["w", "x"])
        >>> drawing
        <drawing of lambda: 8 equations>
        >>> drawing.svg[:4]
        '<svg'
    """
    program, own_argnums = _program(what)
    if path is not None:
        _check_format(Path(path))
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
    """The program to be drawn, and which of its inputs the way back leads to, if the object says so."""
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


def _check_format(path: Path) -> None:
    if path.suffix.lower() not in _FORMATS:
        raise ValueError(
            f"cannot draw to {path.name!r}: the suffix says the format, and is one of {', '.join(_FORMATS)}"
            + at_line(user_line())
        )


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
            f"{program.name} has {count} equations, of which nobody could read a picture; draw a part of them "
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
                f"argnums has {index}, and input {index} of {program.name} is {program.in_types[index]}, of which "
                f"there are no derivatives{at_line(user_line())}"
            )
    return tuple(i in chosen or i - count in chosen for i in range(count))
