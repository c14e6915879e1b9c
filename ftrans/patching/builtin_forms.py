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
from ..numpy.methods import BINARY, COMPARISONS, UNARY
from ..numpy.promotion import asarray, cast, has_tracer
from ..ops.elementwise import complex_


def number(x: Any, dtype: Any) -> Any:
    """A traced value of one element as a traced number of Python, of NumPy's dtype for it."""
    x = asarray(x)
    if x.shape:
        # NumPy says whether an array of one element is a number.
        float(np.ones(x.shape))
    found = cast(x.reshape(()) if x.shape else x, np.dtype(dtype))
    # Python's numbers take the dtype of an array that they meet.
    return Tracer(found.builder, found.builder.atom(found), weak=True)


def complex_number(real: Any, imag: Any) -> Any:
    """A traced complex number of Python, of parts of which one at least is traced."""
    parts = [number(x, np.float64) for x in (real, imag)]
    return number(complex_(*parts), np.complex128)


def to_float(*args: Any) -> Any:
    """`float(x)`."""
    return number(args[0], np.float64) if len(args) == 1 and has_tracer(args[0]) else float(*args)


def to_complex(*args: Any, **kwargs: Any) -> Any:
    """`complex(real, imag)`."""
    given = (*args, *kwargs.values())
    if not any(map(has_tracer, given)):
        return complex(*args, **kwargs)
    parts = dict(zip(("real", "imag"), args, strict=False)) | kwargs
    real, imag = parts.get("real", 0.0), parts.get("imag", 0.0)
    if any(np.iscomplexobj(x) for x in (real, imag)):
        return number(real + 1j * imag if "imag" in parts else real, np.complex128)
    return complex_number(real, imag)


def type_of(*args: Any, **kwargs: Any) -> Any:
    """`type(x)`: of a traced value the class that it has in a call without tracing."""
    if len(args) == 1 and isinstance(args[0], Tracer):
        return args[0].__class__
    return type(*args, **kwargs)


def _of_operator(method: Any) -> Callable[..., Any]:
    """An operator of Python's numbers by the name of its method, such as `float.__mul__`."""
    traced = getattr(Tracer, method.__name__)

    def called(*args: Any) -> Any:
        return traced(*map(asarray, args)) if has_tracer(args) else method(*args)

    return called


def with_forms(call: Callable[..., Any], form: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function that takes functions, as one that takes their forms.

    A class is a function where it comes first, or as `key`.  Elsewhere it may be handed on, to be asked for.
    """

    def other(x: Any) -> Any:
        return x if isinstance(x, type) else form(x)

    @functools.wraps(call, updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        named = {name: (form if name == "key" else other)(x) for name, x in kwargs.items()}
        return call(*map(form, args[:1]), *map(other, args[1:]), **named)

    return called


# Functions whose arguments are called, by code that is not patched.
CALLERS: Iterable[Any] = (
    map, filter, sorted, min, max, functools.reduce, functools.partial, itertools.starmap, itertools.accumulate,
    operator.methodcaller,
)  # fmt: skip

_OPERATORS = {f"__{prefix}{name}__" for name in BINARY for prefix in ("", "r")} | {
    f"__{name}__" for name in COMPARISONS | UNARY
}
BUILTINS: dict[Any, Any] = {float: to_float, complex: to_complex, builtins.type: type_of} | {
    method: _of_operator(method) for cls in (float, complex) for name, method in vars(cls).items() if name in _OPERATORS
}
