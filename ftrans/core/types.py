"""ArrayType: the static type of an array, its shape and dtype.

Types are interned: two equal types are one object, so comparing and hashing them is as cheap as comparing
addresses.  Tracing relies on that.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..base.forks import lock
from ..base.lookalikes import refuse_lookalike
from ..base.source import at_line, user_line

Shape = tuple[int, ...]

_SHORT_NAMES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip

_PYTHON_SCALAR_DTYPES: dict[type, np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


class ArrayType:
    """Shape and dtype of an array.

    Args:
        shape: tuple of sizes.
        dtype: anything NumPy accepts as a dtype.

    Example:
        >>> ArrayType((3,), "float64")
        f64[3]
    """

    __slots__ = ("__weakref__", "dtype", "ndim", "shape", "size")

    shape: Shape
    dtype: np.dtype[Any]
    ndim: int
    size: int

    def __new__(cls, shape: Shape, dtype: Any) -> ArrayType:
        key = (shape, dtype)
        known = _recent.get(key)
        if known is not None:
            return known
        shape, dtype = tuple(int(n) for n in shape), np.dtype(dtype)
        if not dtype.isnative:
            dtype = dtype.newbyteorder("=")
        with _interning:
            self = _interned.get((shape, dtype))
            if self is None:
                self = object.__new__(cls)
                object.__setattr__(self, "shape", shape)
                object.__setattr__(self, "dtype", dtype)
                object.__setattr__(self, "ndim", len(shape))
                object.__setattr__(self, "size", math.prod(shape))
                _interned[shape, dtype] = self
        if len(_recent) >= _MOST_RECENT:
            _recent.clear()
        _recent[key] = self
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an ArrayType is immutable; cannot set {name!r}")

    def __reduce__(self) -> tuple[type, tuple[Shape, str]]:
        return ArrayType, (self.shape, self.dtype.name)

    @property
    def nbytes(self) -> int:
        """Size in bytes of an array of this type."""
        return self.size * self.dtype.itemsize

    def with_shape(self, shape: Shape) -> ArrayType:
        """The same dtype with another shape."""
        return ArrayType(shape, self.dtype)

    def with_dtype(self, dtype: Any) -> ArrayType:
        """The same shape with another dtype."""
        return ArrayType(self.shape, dtype)

    def __repr__(self) -> str:
        return f"{short_name(self.dtype)}[{','.join(map(str, self.shape))}]"


# All types in use, and a cache from recent arguments to types.
_interned: WeakValueDictionary[tuple[Shape, np.dtype[Any]], ArrayType] = WeakValueDictionary()
_recent: dict[tuple[Any, Any], ArrayType] = {}
_MOST_RECENT = 10_000
_interning = lock()


def short_name(dtype: np.dtype[Any]) -> str:
    """Short name of a dtype, as printed in programs: `f64`, `i32`, `bool`."""
    return _SHORT_NAMES.get(dtype.name, dtype.name)


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is real or complex floating point, so that derivatives exist."""
    return dtype.kind in "fc" or dtype.name == "bfloat16"


def is_complex(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is complex."""
    return dtype.kind == "c"


def type_of(value: Any) -> ArrayType:
    """The type of an array, a NumPy scalar or a Python number.

    Raises:
        TypeError: `value` is none of these, or an array of a class with arithmetic of its own, such as `numpy.matrix`.
    """
    cls = type(value)
    if cls is np.ndarray or issubclass(cls, np.ndarray | np.generic):
        refuse_lookalike(value)
        if value.dtype.kind not in "biufc" and value.dtype.name != "bfloat16":
            raise TypeError(f"arrays of dtype {value.dtype} cannot be traced{at_line(user_line())}")
        return ArrayType(value.shape, value.dtype)
    dtype = _PYTHON_SCALAR_DTYPES.get(cls)
    if dtype is not None:
        return ArrayType((), dtype)
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, ModuleType):
        refuse_lookalike(value)
        return ArrayType(tuple(value.shape), value.dtype)
    raise TypeError(f"{cls.__name__} is not an array or a number{at_line(user_line())}")
