"""The text of a traced value: what it shows where somebody reads it, and a guard where code may go on with it.

An f-string may become a key, a name of a file or another number, so it is what NumPy makes of the actual value, and a
guard as `int(x)` is.  A `print(x)` in a function under `jit` must not make another compiled path of each value, though:
there `str(x)` and `repr(x)` are no guards, and their text is plainly no number.
"""

from __future__ import annotations

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


@implements(np.array_str, constant=True)
def array_str(a: Any, *args: Any, **kwargs: Any) -> str:
    """The array as it is printed."""
    return _text_by(np.array_str, a, *args, **kwargs)


@implements(np.array2string, constant=True)
def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    """The array as it is printed, in the way that is asked for."""
    return _text_by(np.array2string, a, *args, **kwargs)


@implements(np.array_repr, constant=True)
def array_repr(a: Any, *args: Any, **kwargs: Any) -> str:
    """The array as it is printed, with its dtype."""
    return _text_by(np.array_repr, a, *args, **kwargs)


def _text_by(show: Callable[..., str], x: Any, *args: Any, **kwargs: Any) -> str:
    x = x if x.__class__ is Tracer else asarray(x)
    if not x.builder.is_open or x.builder.is_compiled():
        return representation(x)
    try:
        value = x.builder.concretize(x, "the text of")
    except ConcretizationError:
        return representation(x)
    return show(np.asarray(value) if show is not str else np.asarray(value)[()], *args, **kwargs)
