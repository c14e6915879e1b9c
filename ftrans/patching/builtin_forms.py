"""Python's own functions that make numbers of their arguments, or ask for types, on traced values."""

from __future__ import annotations

import builtins
import functools
import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..core.trace import Tracer
from ..numpy.promotion import asarray, cast, has_tracer


def number(x: Any, dtype: Any) -> Any:
    """A traced value of one element as a traced number of Python, of NumPy's dtype for it."""
    x = asarray(x)
    if x.ndim:
        # NumPy says whether an array of one element is a number.
        float(np.ones(x.shape))
    found = cast(x.reshape(()), np.dtype(dtype))
    # Python's numbers take the dtype of an array that they meet.
    return Tracer(found.builder, found.builder.atom(found), weak=True)


def to_float(x: Any = 0.0, /) -> Any:
    """`float(x)`."""
    return number(x, np.float64) if has_tracer(x) else float(x)


def to_complex(*args: Any, **kwargs: Any) -> Any:
    """`complex(real, imag)`."""
    given = (*args, *kwargs.values())
    if not any(map(has_tracer, given)):
        return complex(*args, **kwargs)
    parts = dict(zip(("real", "imag"), args, strict=False)) | kwargs
    return number(parts.get("real", 0.0) + 1j * parts.get("imag", 0.0), np.complex128)


def type_of(*args: Any, **kwargs: Any) -> Any:
    """`type(x)`: of a traced value the class that it has in a call without tracing."""
    if len(args) == 1 and isinstance(args[0], Tracer):
        return args[0].__class__
    return type(*args, **kwargs)


def with_forms(call: Callable[..., Any], form: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function that takes functions, as one that takes their forms."""

    @functools.wraps(call, updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        return call(*map(form, args), **{name: form(x) for name, x in kwargs.items()})

    return called


# Functions whose arguments are called, by code that is not patched.
CALLERS: Iterable[Any] = (
    map, filter, sorted, min, max, functools.reduce, functools.partial, itertools.starmap, itertools.accumulate,
    operator.methodcaller,
)  # fmt: skip

BUILTINS: dict[Any, Any] = {float: to_float, complex: to_complex, builtins.type: type_of}
