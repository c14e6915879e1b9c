"""What a primitive is where there is no ftrans: a plain function, for source that is written out.

Most rules `numpy` are such functions, and can be written out as they are.  A primitive that holds programs, or looks at
types, says what is to be written in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..core.program import Params, Program
from ..core.types import ArrayType


class Function(NamedTuple):
    """The function of a program, which takes arrays and returns a list of them; it may write to the inputs in `own`."""

    program: Program
    own: tuple[int, ...] = ()


class Written(NamedTuple):
    """What is called in place of the rule `numpy`.

    Attributes:
        function: a function of Python, or that of a program.
        params: its keyword arguments: what Python can write down, functions, and `Function`s.
    """

    function: Callable[..., Any] | Function
    params: Params


@runtime_checkable
class StandsAlone(Protocol):
    """A primitive whose rule `numpy` cannot be written out as it is."""

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        """What means the same, given the types of the operands and the parameters of an equation."""
