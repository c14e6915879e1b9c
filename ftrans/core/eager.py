"""Eager: a concrete value that is more than an array, to which whole programs can be applied.

The tensors of `ftrans.autograd` are such values.  The layers below know only this class: a program that is to run with
an eager value among its arguments is handed to the class of that value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .program import Program


class Eager:
    """Base class of concrete values that are no plain arrays.  They have `shape` and `dtype`."""

    __slots__ = ()

    def concrete(self) -> Any:
        """The value as a NumPy array, for looking at."""
        raise NotImplementedError

    def is_active(self) -> bool:
        """Whether what is computed from it now is recorded, to be differentiated."""
        raise NotImplementedError

    @classmethod
    def apply_program(
        cls, program: Program, args: Sequence[Any], compiled: Callable[..., Any] | None = None, name: str | None = None
    ) -> list[Any]:
        """The results of `program`, as values of this class.

        Args:
            program: the program.
            args: arrays, numbers and values of this class.
            compiled: what runs a program on arrays, where that is not the NumPy evaluator.
            name: what the operation is called in print; as the program by default.
        """
        raise NotImplementedError

    @classmethod
    def apply_function(cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a function that takes arrays and traced values, with a value of this class for each array."""
        raise NotImplementedError
