"""The text of a traced value: what it shows where somebody reads it, and a guard where code may go on with it.

An f-string may become a key, a name of a file or another number, so it is what NumPy makes of the actual value, and a
guard as `int(x)` is.  A `print(x)` in a function under `jit` must not make another compiled path of each value, though:
there `str(x)` and `repr(x)` are no guards, and their text is plainly no number.  The text of `str(x)` is for showing
only: code that compares it, looks it up, or takes it apart would be wrong in silence, and gets an error.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer, leak_error
from ..core.witness import ConcretizationError, concretize, known_value, refuse
from .dispatch import implements
from .promotion import asarray

__all__ = ["array2string", "array_repr", "array_str"]


class _Formatted(NamedTuple):
    """How a format specification shows a number."""

    spec: str

    def __call__(self, value: Any) -> str:
        return format(np.asarray(value)[()], self.spec)


class Shown(str):
    """A text that stands for a value that it does not say, as long as the trace lasts.

    It can be printed, written, put into columns, and joined to other texts by `+`.  What becomes part of another text
    in `"x = %s" % x` and `", ".join(...)` is a plain text.
    """

    __slots__ = ("_builder", "_code")

    @classmethod
    def of(cls, x: Tracer) -> Shown:
        """The representation of a traced value as such a text."""
        line = user_line()
        return cls._made(representation(x), weakref.ref(x.builder), None if line is None else line.code)

    @classmethod
    def _made(cls, text: str, builder: Any, code: Any) -> Shown:
        made = cls(text)
        made._builder, made._code = builder, code
        return made

    def _require_shown(self) -> None:
        """Raise if the trace goes on, but in a stream that is written in Python, which may take apart what it gets."""
        builder = self._builder()
        if builder is None or not builder.is_open:
            return
        frame = sys._getframe(2)
        while frame is not None and frame.f_code is not self._code:
            if frame.f_code.co_name == "write":
                return
            frame = frame.f_back  # type: ignore[assignment]
        raise refuse(
            ConcretizationError(
                f"str() of a traced value gives a text to print here, {str.__repr__(self)}, which says what it is and "
                "not what NumPy would write"
                + at_line(user_line())
                + '\n  To go on with the text of the value where there is one, under jit say, write f"{x}": each text '
                "is a compiled path then. For an integer write int(x)."
            )
        )

    def __str__(self) -> str:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str.__str__(self),)

    def __hash__(self) -> int:
        self._require_shown()
        return str.__hash__(self)

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, str):
            return NotImplemented
        return Shown._made(str.__add__(other, self), self._builder, self._code)


def _refusing(name: str) -> Callable[..., Any]:
    method = getattr(str, name)

    def call(self: Shown, *args: Any, **kwargs: Any) -> Any:
        self._require_shown()
        return method(self, *args, **kwargs)

    return call


def _showing(name: str) -> Callable[..., Any]:
    method = getattr(str, name)

    def call(self: Shown, *args: Any, **kwargs: Any) -> Any:
        text = method(self, *args, **kwargs)
        return Shown._made(text, self._builder, self._code) if isinstance(text, str) else text

    return call


# What lays a text out, and what tells of its contents or takes it apart.
_LAYING_OUT = ("__add__", "__format__", "__mul__", "__rmul__", "center", "expandtabs", "ljust", "rjust")
_TELLING = (
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__getitem__", "__iter__", "__len__"),
    *("__mod__", "__rmod__"),
    *(name for name in vars(str) if name[0] != "_" and name not in (*_LAYING_OUT, "encode", "maketrans")),
)
for _name in _LAYING_OUT:
    setattr(Shown, _name, _showing(_name))
for _name in _TELLING:
    setattr(Shown, _name, _refusing(_name))


def representation(x: Tracer) -> str:
    """`Traced(f64[] = 2.)`, or without the value where there is none."""
    value = known_value(x) if x.builder.is_open else None
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
        return show(concretize(x, "the text of", show))
    except ConcretizationError as error:
        if not spec:
            return Shown.of(x)
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

    call.__signature__ = signature
    return implements(function, constant=True)(call)


array_repr = _printer(np.array_repr)
array_str = _printer(np.array_str)
array2string = _printer(np.array2string)


def _text_by(show: Callable[[Any], str], x: Any) -> str:
    x = x if type(x) is Tracer else asarray(x)
    if not x.builder.is_open or x.builder.is_compiled():
        return Shown.of(x)
    try:
        value = concretize(x, "the text of")
    except ConcretizationError:
        return Shown.of(x)
    return show(np.asarray(value)[()] if show is str else np.asarray(value))
