"""Arguments of torch's functions: sizes and axes, which may be given one by one or as one tuple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.types import is_inexact


class ValuesAndIndices(NamedTuple):
    """Elements of an array along an axis, and their indices."""

    values: Any
    indices: Any


def sizes_of(given: Sequence[Any]) -> tuple[Any, ...]:
    """Numbers that were given one by one, or as one tuple or list."""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], list | tuple) else tuple(given)


def in_dtype_of(x: Any, found: Any) -> Any:
    """A result in the dtype of an argument, where that is one of floating-point numbers."""
    return found.astype(x.dtype) if is_inexact(x.dtype) and found.dtype != x.dtype else found


def axes_of(dim: Any) -> Any:
    """An axis, a tuple of axes, or None for all of them, which in torch an empty tuple stands for, too."""
    return (tuple(dim) or None) if isinstance(dim, list | tuple) else dim
