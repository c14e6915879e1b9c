"""Functions that make text of arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.trace import Tracer
from .dispatch import implements


def _printer(function: Callable[..., str]) -> Callable[..., str]:
    """The traced form of a function that prints: a value without numbers to look at is named by its type."""
    signature = inspect.signature(function)

    def call(*args: Any, **kwargs: Any) -> str:
        given = signature.bind(*args, **kwargs)
        name, a = next(iter(given.arguments.items()))
        value = a.builder.witness(a) if isinstance(a, Tracer) and a.builder.is_open else None
        if value is None:
            return repr(a)
        given.arguments[name] = np.asarray(value)
        return function(*given.args, **given.kwargs)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return implements(function, constant=True)(call)


array_repr = _printer(np.array_repr)
array_str = _printer(np.array_str)
array2string = _printer(np.array2string)
