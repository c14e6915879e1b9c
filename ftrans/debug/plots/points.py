"""Points: arguments that are containers of arrays, as vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...api.call import check_function, name_of, type_name
from ...base import tree
from ...base.source import at_line, user_line


class Point(NamedTuple):
    """An argument as a vector.

    Attributes:
        vector: all elements, one after the other.
        rebuild: makes the argument from such a vector, traced or not.
    """

    vector: Any
    rebuild: Callable[[Any], Any]


def point_of(x: Any, what: str) -> Point:
    """An argument as a vector.

    Args:
        x: an array, or a container of arrays.
        what: the function that is called, for messages.

    Raises:
        TypeError: it holds something other than floating-point arrays.
    """
    leaves, structure = tree.flatten(x)
    arrays = []
    for leaf in leaves:
        array = np.asarray(leaf) if np.isscalar(leaf) or hasattr(leaf, "__array__") else None
        if array is None or array.dtype.kind != "f":
            raise TypeError(
                f"{what} takes floating-point arrays, or containers of them, not {type_name(leaf)}"
                + at_line(user_line())
            )
        arrays.append(array)
    ends = np.cumsum([a.size for a in arrays])

    def rebuild(vector: Any) -> Any:
        parts = [vector[end - a.size : end].reshape(a.shape) for a, end in zip(arrays, ends, strict=True)]
        return tree.unflatten(structure, parts)

    return Point(np.concatenate([a.reshape(-1) for a in arrays]) if arrays else np.zeros(0), rebuild)


def scalar_function(f: Callable[..., Any], x: Any, what: str) -> tuple[Callable[[Any], Any], Point]:
    """A function of one argument as a function of a vector, and where it is looked at.

    Raises:
        TypeError: it is not a function, or its result is not a real number.
    """
    check_function(f, what)
    point = point_of(x, what)
    value = np.asarray(f(point.rebuild(point.vector)))
    if value.shape != () or value.dtype.kind != "f":
        raise TypeError(
            f"{what} takes a function whose result is a real number, but that of {name_of(f)} is an array of shape "
            f"{value.shape} and dtype {value.dtype}; take a sum or a mean{at_line(user_line())}"
        )
    return lambda vector: f(point.rebuild(vector)), point
