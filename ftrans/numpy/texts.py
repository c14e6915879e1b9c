"""The text of a traced value: what it shows where somebody reads it, and a guard where code may go on with it.

An f-string may become a key, a name of a file or another number, so it is what NumPy makes of the actual value, and a
guard as `int(x)` is.  A `print(x)` in a function under `jit` must not make another compiled path of each value, though:
there `str(x)` and `repr(x)` are no guards, and their text is plainly no number.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core.source import at_line, user_line
from ..core.trace import ConcretizationError, Tracer, leak_error
from .dispatch import implements
from .promotion import asarray


class _Formatted(NamedTuple):
    """How a format specification shows a number."""

    spec: str

    def __call__(self, value: Any) -> str:
        return format(np.asarray(value)[()], self.spec)


def representation(x: Tracer) -> str:
    """`Traced(f64[] = 2.)`, or without the value where there is none."""
    value = x.builder.witness(x) if x.builder.is_open else None
    if value is None:
        return f"Traced({x.type})"
    text = np.array2string(np.asarray(value), separator=", ", prefix=f"Traced({x.type} = ")
    return f"Traced({x.type} = {text})"


def text(x: Tracer) -> str:
    """What NumPy prints, where the value is known and no program is compiled; else the representation."""
    return _text_by(str, x)


def formatted(x: Tracer, spec: str) -> str:
    """The number in an f-string.

    Raises:
        TypeError: the specification is for a number, and this is an array.
        ConcretizationError: it asks for the digits of a number that is not known.
    """
    if x.ndim:
        if spec:
            raise TypeError(f"a format such as {spec!r} is for one number, not for {x.type}{at_line(user_line())}")
        return text(x)
    if not x.builder.is_open:
        raise leak_error(x)
    show = _Formatted(spec)
    try:
        return show(x.builder.concretize(x, "the text of", show))
    except ConcretizationError as error:
        if not spec:
            return representation(x)
        error.add_note("  To look at what is known of it, write print(x).")
        raise


def _printer(function: Callable[..., str]) -> Callable[..., str]:
    """The traced form of a function of NumPy that makes text of an array, its first argument."""
    signature = inspect.signature(function)

    def call(*args: Any, **kwargs: Any) -> str:
        given = signature.bind(*args, **kwargs)
        name, a = next(iter(given.arguments.items()))

        def show(value: Any) -> str:
            given.arguments[name] = value
            return function(*given.args, **given.kwargs)

        return _text_by(show, a)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return implements(function, constant=True)(call)


array_repr = _printer(np.array_repr)
array_str = _printer(np.array_str)
array2string = _printer(np.array2string)


def _text_by(show: Callable[[Any], str], x: Any) -> str:
    x = x if x.__class__ is Tracer else asarray(x)
    if not x.builder.is_open or x.builder.is_compiled():
        return representation(x)
    try:
        value = x.builder.concretize(x, "the text of")
    except ConcretizationError:
        return representation(x)
    return show(np.asarray(value)[()] if show is str else np.asarray(value))
