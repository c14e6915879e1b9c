"""The names by which primitives, records and dtypes are written down, and what they stand for.

The tables are made of what ftrans defines, so a new primitive needs no entry.  They are also the list of what a text
may ask for: a name that is not in them is refused, and none is ever imported or looked up elsewhere.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from .. import control, ops, solvers, spectral, structure
from ..control.rules.host_call import UserCode
from ..control.rules.jax_code import CallJax
from ..core.primitive import Primitive

# The folders in which primitives are defined.
_FOLDERS = (ops, control, spectral, structure, solvers)
_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip


def name_of_primitive(primitive: Primitive) -> str:
    """The name of a primitive, such as `Elementwise.add`."""
    return f"{type(primitive).__name__}.{primitive.name}"


@lru_cache(maxsize=1)
def primitives() -> dict[str, Primitive]:
    """The primitives of ftrans by their names, but for those that call Python functions of the user."""
    found = (x for module in _modules() for x in vars(module).values() if isinstance(x, Primitive))
    return {name_of_primitive(x): x for x in found if not isinstance(x, UserCode | CallJax)}


@lru_cache(maxsize=1)
def records() -> dict[str, type[Any]]:
    """The named tuples that ftrans defines beside its primitives, which parameters of equations consist of."""
    return {
        x.__name__: x
        for module in _modules()
        for x in vars(module).values()
        if isinstance(x, type) and issubclass(x, tuple) and hasattr(x, "_fields") and x.__module__ == module.__name__
    }


def _modules() -> Iterator[ModuleType]:
    for folder in _FOLDERS:
        for info in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}."):
            yield importlib.import_module(info.name)


def dtype_named(name: Any) -> np.dtype[Any]:
    """The dtype of a name.

    Raises:
        ValueError: arrays in programs do not have it.
    """
    if name not in _DTYPES:
        raise ValueError(f"{name!r:.100} is no dtype that programs have")
    if name == "bfloat16":
        from ml_dtypes import bfloat16

        return np.dtype(bfloat16)
    return np.dtype(name)


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype can be written down."""
    return dtype.name in _DTYPES
