"""Calls of transformed functions with arrays of other libraries: taken as arrays, and given back as what they were.

Tensors of torch are taken by `to_torch`, so torch can differentiate what comes back.  Arrays of other libraries, such
as cupy, are exchanged by DLPack, through the functions `from_dlpack` of NumPy or JAX and of their own library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.call import name_of
from ..base import tree
from ..base.foreign_arrays import is_foreign, is_tensor, numpy_of
from ..base.lookalikes import refuse_lookalike
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import current_builder
from ..xla import from_dlpack, is_jax
from .to_torch import to_torch

Function = Callable[..., Any]
# The type of a device that is the host, in DLPack.
_HOST = 1


def take(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], returns_function: bool) -> Any:
    """The result of a transformed function for arguments with foreign arrays, with foreign arrays in it.

    Args:
        function: the function.
        args: its arguments.
        kwargs: its keyword arguments.
        returns_function: whether its result is a tuple, whose second item is a linear function.

    Raises:
        TypeError: arrays of several libraries are among the arguments.
    """
    foreign = [x for x in tree.flatten((args, kwargs))[0] if is_foreign(x)]
    if current_builder() is not None:
        return function(*tree.map_leaves(_constant, args), **tree.map_leaves(_constant, kwargs))
    convert = _on_tensors if is_tensor(foreign[0]) else _on_arrays_of(foreign[0])
    kinds = {_library(x) for x in foreign}
    if len(kinds) > 1:
        raise TypeError(
            f"{name_of(function)} was called with arrays of {' and '.join(sorted(kinds))}; give all arrays in one "
            f"library{at_line(user_line())}"
        )
    if not returns_function:
        return convert(function)(*args, **kwargs)

    def without_function(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return (result[0], *result[2:])

    value, *more = convert(without_function)(*args, **kwargs)
    applied = convert(lambda args, kwargs, given: function(*args, **kwargs)[1](*given))
    return (value, lambda *given: applied(args, kwargs, given), *more)


def _library(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


def _constant(x: Any) -> Any:
    """A foreign array in a running trace, of which it is a constant."""
    if not is_foreign(x):
        return x
    if is_tensor(x):
        if x.requires_grad:
            refuse_lookalike(x)
        return numpy_of(x)
    return _taken(x)


def _on_tensors(function: Function) -> Function:
    return to_torch(function)


def _on_arrays_of(example: Any) -> Callable[[Function], Function]:
    """What makes a function of arrays a function of arrays of another library."""

    def given_back(x: Any) -> Any:
        if is_plain(x, np.ndarray | np.generic) or is_jax(x):
            return _namespace(example).from_dlpack(x if is_jax(x) else np.asarray(x))
        return x

    def on_arrays(function: Function) -> Function:
        def on_others(*args: Any, **kwargs: Any) -> Any:
            result = function(*tree.map_leaves(_taken, args), **tree.map_leaves(_taken, kwargs))
            return tree.map_leaves(given_back, result)

        return on_others

    return on_arrays


def _namespace(x: Any) -> Any:
    """The module with the functions of the library that an array is of."""
    if hasattr(x, "__array_namespace__"):
        return x.__array_namespace__()
    return sys.modules[_library(x)]


def _taken(x: Any) -> Any:
    """A foreign array as one of NumPy if it is on the host, otherwise of JAX; others as they are."""
    if not is_foreign(x):
        return x
    return np.from_dlpack(x) if x.__dlpack_device__()[0] == _HOST else from_dlpack(x)
