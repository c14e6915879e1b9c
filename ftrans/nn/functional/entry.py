"""The entry to the functions of `ftrans.nn.functional`: cells are read, and JAX arrays are left to JAX.

A function of bfloat16 arrays returns bfloat16.  To NumPy the dtype is foreign: it promotes a bfloat16 array and a
Python number to float32 or float64.  Functions with constants of their own compute in that dtype, and their result is
rounded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from ...base import tree
from ...base.cell import Cell, read
from ...base.forward_code import in_forward, plain, speaking
from ...base.source import at_line, user_line
from ...core.types import is_inexact
from ...run.places import place_of_arguments

Function = TypeVar("Function", bound=Callable[..., Any])


def functional(f: Function) -> Function:
    """Let a function take whatever represents an array: of NumPy or JAX, traced values, tensors, and cells."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        calls_user = speaking.get()
        values, is_usual = _read(args)
        if kwargs:
            found, are_usual = _read(kwargs.values())
            kwargs, is_usual = dict(zip(kwargs, found, strict=True)), is_usual and are_usual
        if not calls_user:
            return f(*values, **kwargs) if is_usual else anywhere(values, kwargs)
        # The arrays of forward code are plain ones meanwhile.
        speaking.set(False)
        try:
            return in_forward(f(*values, **kwargs) if is_usual else anywhere(values, kwargs))
        finally:
            speaking.set(True)

    def anywhere(args: list[Any], kwargs: dict[str, Any]) -> Any:
        if args and args[0] is None:
            raise _nothing_given(call.__name__)
        place = place_of_arguments(args, kwargs)
        if place.is_jax:
            return place.call(call, tuple(args), kwargs)
        narrow = _narrow_dtype([*args, *kwargs.values()], call.__name__)
        out = f(*args, **kwargs)
        return out if narrow is None else tree.map_leaves(lambda y: y.astype(narrow) if is_inexact(y.dtype) else y, out)

    return call  # type: ignore[return-value]


_USUAL = frozenset((int, float, bool, str))


def _read(args: Iterable[Any]) -> tuple[list[Any], bool]:
    """Arguments with what cells hold in their place, and whether all are arrays of NumPy and numbers of Python."""
    values: list[Any] = []
    is_usual = True
    for x in args:
        cls = type(x)
        if cls is not np.ndarray and cls not in _USUAL:
            x = x.read() if isinstance(x, Cell) else read(x)
            cls = type(x)
            if cls is not np.ndarray:
                x = plain(x)
                cls = type(x)
        if cls is np.ndarray:
            is_usual = is_usual and x.dtype.kind not in "OV"
        elif cls not in _USUAL and (x is not None or not values):
            is_usual = False
        values.append(x)
    return values, is_usual


def _narrow_dtype(given: list[Any], what: str) -> Any:
    """The dtype bfloat16, if all floating-point arrays among the arguments have it, else None.

    Raises:
        TypeError: an array is from another library.
    """
    found = None
    for x in given:
        dtype = getattr(x, "dtype", None)
        # A dtype may itself be an argument, and the classes of NumPy's scalars have an attribute of that name.
        kind = getattr(dtype, "kind", None)
        if kind is not None and kind in "Vfc":
            if kind != "V":
                return None
            found = dtype
        elif kind is None and dtype is not None and not isinstance(x, type):
            raise TypeError(
                f"{what} was given a {type(x).__name__} of {type(x).__module__.split('.')[0]}, whose operations are "
                f"not recorded here; pass a NumPy array, such as x.numpy(){at_line(user_line())}"
            )
    return found


def _nothing_given(what: str) -> TypeError:
    return TypeError(
        f"{what} was given None instead of an array; perhaps the forward code that computed it has no return statement"
        + at_line(user_line())
    )
