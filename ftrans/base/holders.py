"""Holders: objects of other libraries that hold an array, and compute with traced values by a protocol of the library.

Such an object is a container, like a tuple or a dict: its array is a leaf, and its labels belong to the structure.  The
library is not imported: its classes are known by their names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .cell import Holder
from .columns import Column, column, numbers_of
from .source import at_line, user_line


class Frame:
    """What a holder is besides its elements: labels, name and attributes.

    Attributes:
        template: a holder with these.
        shape: its shape.
    """

    def __init__(self, template: Any) -> None:
        self.template = template
        self.shape: tuple[int, ...] = template.shape

    def filled(self, leaf: Any) -> Any:
        """The holder with other elements; where these have further axes, as blocks of a Jacobian, they alone."""
        shape = getattr(leaf, "shape", None)
        if shape == self.shape:
            return self._with_elements(leaf)
        if shape is not None and len(shape) < len(self.shape):
            kind = type(self.template).__name__
            raise TypeError(
                f"a {kind} of shape {self.shape} cannot be mapped along an axis, which would lose its labels; pass its "
                f"numbers, x.to_numpy(), and make a {kind} in the function{at_line(user_line())}"
            )
        return leaf

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, Frame)
            and (self.shape, self.template.name) == (other.shape, other.template.name)
            and self._has_labels_of(other.template)
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.template.name))

    def __repr__(self) -> str:
        return f"{type(self.template).__name__}{self.shape}"

    def _with_elements(self, leaf: Any) -> Any:
        raise NotImplementedError

    def _has_labels_of(self, template: Any) -> bool:
        raise NotImplementedError


class _OfDataArray(Frame):
    def _with_elements(self, leaf: Any) -> Any:
        return self.template.copy(data=leaf)

    def _has_labels_of(self, template: Any) -> bool:
        mine, others = self.template, template
        return mine.dims == others.dims and bool(mine.coords.to_dataset().identical(others.coords.to_dataset()))


class _OfSeries(Frame):
    def __init__(self, template: Any, dtype: Any) -> None:
        super().__init__(template)
        # NumPy's dtypes are those of the elements; others, such as categories, come back.
        self.dtype = None if isinstance(dtype, np.dtype) else dtype

    def _with_elements(self, leaf: Any) -> Any:
        index, name = self.template.index, self.template.name
        if hasattr(leaf, "atom"):
            return type(self.template)(column(leaf), index=index, name=name)
        return type(self.template)(leaf, index=index, name=name, dtype=self.dtype)

    def _has_labels_of(self, template: Any) -> bool:
        return bool(self.template.index.equals(template.index))


def _of_data_array(x: Any) -> tuple[tuple[Any], Frame]:
    # The structure may live longer than the elements.
    return (x.data,), _OfDataArray(x.copy(data=np.broadcast_to(0.0, x.shape)))


def _of_series(x: Any) -> tuple[tuple[Any], Frame]:
    frame = type(x)(np.zeros(len(x), bool), index=x.index, name=x.name)
    if isinstance(x.array, Column):
        return (x.array.values,), _OfSeries(frame, np.dtype(float))
    return (numbers_of(x).to_numpy(),), _OfSeries(frame, x.dtype)


class _OfLiteral(Frame):
    """Nothing but the number: JAX hands numbers to rules of the user as objects that know a dtype."""

    def __init__(self) -> None:
        self.shape = ()

    def filled(self, leaf: Any) -> Any:
        return leaf

    def __eq__(self, other: object) -> bool:
        return type(other) is _OfLiteral

    def __hash__(self) -> int:
        return hash(_OfLiteral)

    def __repr__(self) -> str:
        return "literal"


def _of_literal(x: Any) -> tuple[tuple[Any], Frame]:
    return (np.asarray(x, x.dtype),), _OfLiteral()


_FLATTENED: dict[tuple[str, str], Callable[[Any], tuple[tuple[Any], Frame]]] = {
    ("xarray", "DataArray"): _of_data_array,
    ("pandas", "Series"): _of_series,
    ("jax", "TypedFloat"): _of_literal,
    ("jax", "TypedInt"): _of_literal,
    ("jax", "TypedComplex"): _of_literal,
}
# Other classes with operators for traced values; a DataArray has a Variable within.
_OPERANDS = (("xarray", "Variable"), ("pandas", "DataFrame"))


def _known_names(cls: type) -> list[tuple[str, str]]:
    return [(base.__module__.partition(".")[0], base.__name__) for base in cls.__mro__]


@lru_cache(maxsize=1000)
def _flattening(cls: type) -> Callable[[Any], tuple[tuple[Any], Frame]] | None:
    return next((_FLATTENED[name] for name in _known_names(cls) if name in _FLATTENED), None)


@lru_cache(maxsize=1000)
def has_operators(cls: type) -> bool:
    """Whether operators with traced values are the business of a class, which computes with them by itself."""
    is_known = _flattening(cls) is not None or any(name in _OPERANDS for name in _known_names(cls))
    return is_known or takes_over(cls, "__array_ufunc__") or _is_number_of_others(cls)


@lru_cache(maxsize=1000)
def takes_over(cls: type, protocol: str) -> bool:
    """Whether a class of another library has a protocol of NumPy, by which it computes with arrays, as units do."""
    return not issubclass(cls, np.ndarray | np.generic | Holder) and callable(getattr(cls, protocol, None))


def _is_number_of_others(cls: type) -> bool:
    """Whether a class has operators that take it for a number, such as the parameter of a fit; no type of an array."""
    has_type = hasattr(cls, "dtype") or issubclass(cls, np.ndarray | np.generic | Holder)
    return not has_type and hasattr(cls, "__rmul__") and cls.__eq__ is not object.__eq__


def is_class_of_holders(cls: type) -> bool:
    """Whether objects of a class are containers."""
    return _flattening(cls) is not None


def register(cls: Any, namespace: str) -> None:
    """Make a class of holders known to optree."""
    import optree

    flattening: Any = _flattening(cls)
    optree.register_pytree_node(cls, flattening, _filled, namespace=namespace)


def _filled(frame: Any, leaves: Any) -> Any:
    return frame.filled(leaves[0])
