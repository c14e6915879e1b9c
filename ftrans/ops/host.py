"""Computing on the host: how a compiled program calls Python on NumPy arrays, for what XLA has no operation for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from typing import Any

import numpy as np

from ..base.surroundings import require_host
from ..core.types import ArrayType

_in_host_call: ContextVar[bool] = ContextVar("in a host call", default=False)

# Whether the code that runs was called by a compiled program.
in_host_call = _in_host_call.get


def as_host_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that a compiled program calls, which may ask whether one does."""

    def marked(*args: Any) -> Any:
        _in_host_call.set(True)
        return function(*args)

    return lambda *args: copy_context().run(marked, *args)


def on_host(function: Callable[..., Sequence[Any]], types: Sequence[ArrayType], *arrays: Any) -> list[Any]:
    """JAX arrays of these types, which a pure function of NumPy arrays computes whenever the compiled program runs."""
    import jax

    require_host()
    given = [(x.shape, np.dtype(x.dtype)) for x in arrays]

    def call(*words: Any) -> list[Any]:
        return [_in_words(y, t) for y, t in zip(function(*from_words(words, given)), types, strict=True)]

    shapes = [jax.ShapeDtypeStruct(w.shape, w.dtype) for w in (_in_words(None, t) for t in types)]
    words = jax.pure_callback(as_host_call(call), shapes, *map(to_words, arrays), vmap_method="sequential")
    return [_of_words(w, t.dtype) for w, t in zip(words, types, strict=True)]


def to_words(x: Any) -> Any:
    """A JAX array as one of words of at most 32 bits, which bring their precision to a callback.

    JAX runs callbacks in a thread of its own, where 64-bit types are switched off.
    """
    from jax import lax, numpy

    if x.dtype == np.complex128:
        x = numpy.stack([x.real, x.imag], axis=-1)
    return lax.bitcast_convert_type(x, np.uint32) if x.dtype.itemsize == 8 and x.dtype != np.complex64 else x


def from_words(words: Sequence[Any], given: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> list[Any]:
    """The NumPy arrays of these shapes and dtypes that a callback was given as words.  They may be written to."""
    flat = [np.array(w).reshape(-1) for w in words]
    return [w.view(dtype).reshape(shape)[()] for w, (shape, dtype) in zip(flat, given, strict=True)]


def _in_words(x: Any, type: ArrayType) -> Any:
    """An array of a type (or zeros) as one of words of at most 32 bits, as `to_words` makes of JAX's arrays."""
    array = np.ascontiguousarray(np.zeros(type.shape, type.dtype) if x is None else x).reshape(type.shape)
    if type.dtype == np.complex128:
        return array.reshape(-1).view(np.uint32).reshape(*type.shape, 2, 2)
    if type.dtype.itemsize == 8 and type.dtype != np.complex64:
        return array.reshape(-1).view(np.uint32).reshape(*type.shape, 2)
    return array


def _of_words(words: Any, dtype: np.dtype[Any]) -> Any:
    """The JAX array of a dtype that words stand for."""
    from jax import lax

    if dtype == np.complex128:
        parts = lax.bitcast_convert_type(words, np.float64)
        return lax.complex(parts[..., 0], parts[..., 1])
    return words if words.dtype == dtype else lax.bitcast_convert_type(words, dtype)
