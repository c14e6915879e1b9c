"""What the signatures of transformations are written with, so that type checkers know what `grad(f)` takes and returns.

The types are those that the user's function is annotated with: arrays and numbers, of which it is a function on its
face.  That it is called on traced values is nobody's business but ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    overload,
)

import numpy as np

# Arguments of a function: all of them; the first, and those behind it; positional ones.
Params = ParamSpec("Params")
Others = ParamSpec("Others")
First = TypeVar("First", bound=Any)
Second = TypeVar("Second", bound=Any)
Primals = TypeVarTuple("Primals")
# What it returns: the result, and what comes beside it with `has_aux`.
Result = TypeVar("Result")
Aux = TypeVar("Aux")
# The same, of a class of functions.
Covariant = TypeVar("Covariant", covariant=True)
# The class of the elements of an array, and an array of them: `numpy.typing.NDArray`, which takes 5 ms to import.
Scalar = TypeVar("Scalar", bound=np.generic)
Array: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[Scalar]]
# Results of which each element, or each pair of elements, makes an array: what `vmap` and `jacobian` know the type of.
Number: TypeAlias = float | complex | np.generic
# A value that is returned in the type that it came in.
Value = TypeVar("Value")

# What a dataset, a sampler or a loader gives, one after the other: `Dataset[tuple[Tensor, int]]`, or `Dataset` alone.
if TYPE_CHECKING:
    import typing_extensions

    Sample = typing_extensions.TypeVar("Sample", covariant=True, default=Any)
else:
    Sample = TypeVar("Sample", covariant=True)


class _Unknown:
    """The argument of functions whose arguments are unknown, and of no others."""


class Transformed(Protocol[Params, Covariant]):
    """A function of known arguments, which is a method where a class has it."""

    def __call__(self, *args: Params.args, **kwargs: Params.kwargs) -> Covariant: ...

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    # mypy takes the unknown arguments that it finds in `partial(jit, ...)` for none but `self`.
    @overload
    def __get__(
        self: Transformed[[_Unknown], Covariant], instance: object, owner: type | None = None
    ) -> Callable[..., Covariant]: ...
    @overload
    def __get__(
        self: Transformed[Concatenate[Any, Others], Covariant], instance: object, owner: type | None = None
    ) -> Callable[Others, Covariant]: ...
