"""Squares of lengths: their derivatives exist also where those of the length do not, as at the length zero."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ...core.primitive import Tangent
from ...core.program import Eqn
from ...core.trace import Tracer
from ...ops.elementwise import Elementwise
from ...ops.elementwise.family import combined
from ...transforms.jvp import is_square


class SquaredLength(Elementwise):
    """The square of a length, of which only the derivatives are asked for."""

    def __init__(self, length: Elementwise) -> None:
        super().__init__(f"squared_{length.name}", length.numpy, length.xla)
        self._length = length

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        assert self._length.square is not None
        return primals[0], combined(self._length.square(*primals), tangents)


squared_length = functools.cache(SquaredLength)


def squared(eqn: Eqn, length: Eqn) -> Eqn | None:
    """The equation that has the derivatives of the square of a length, if `eqn` squares the result of `length`."""
    if not is_square(eqn):
        return None
    return Eqn(squared_length(length.primitive), length.operands, length.params, eqn.outputs, eqn.line)
