"""Where an equation comes from: the user's line of code that asked for it, and the named scope that ran it.

The line is found by walking up the stack past this package, NumPy, SciPy and their like, and the standard library.
Equations that a transformation derives inherit the line of the equation they come from, through `attributed_to`, and
with it the scope.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import linecache
import os
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import CodeType, FrameType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .foreign import instruction_at

_NUMPY = os.path.dirname(os.path.abspath(np.__file__))
# Where other packages lie, perhaps within the folder of the standard library.
_INSTALLED = ("site-packages", "dist-packages")
_FOLDERS = [os.path.dirname(_NUMPY), *(os.path.abspath(folder) for folder in sys.path if folder.endswith(_INSTALLED))]
# The packages whose lines are not the user's; the last ones may not be imported.
_PACKAGES = {
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep: "ftrans",
    _NUMPY + os.sep: "numpy",
    **{
        os.path.join(folder, name) + os.sep: name
        for folder in _FOLDERS
        for name in ("astropy", "jax", "matplotlib", "numba", "pandas", "scipy", "torch", "xarray")
    },
}
_STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_is_internal: dict[str, bool] = {}
_MOST_LINES = 100_000
_MOST_SCOPES = 10_000

P = ParamSpec("P")
Result = TypeVar("Result")


class Line:
    """One place in the user's code: a code object and an instruction in it, and the named scope in which it ran.

    The line number is looked up only when somebody asks, because that costs more than recording an equation.

    Attributes:
        derivative_of: for an equation that belongs to the derivative of what the user wrote there, the name of the
            primitive that was differentiated.
        order: how often it was differentiated.
        written: the same place without `derivative_of`: what the user wrote.
    """

    __slots__ = ("_derivatives", "code", "derivative_of", "instruction", "order", "scope", "written")

    def __init__(self, code: CodeType, instruction: int, scope: str = "") -> None:
        self.code = code
        self.instruction = instruction
        self.scope = scope
        self.derivative_of: str | None = None
        self.order = 0
        self.written = self
        self._derivatives: dict[str, Line] | None = None

    def differentiated(self, primitive: str) -> Line:
        """The same place, for equations of the derivative of an equation there; equal ones are the same object."""
        if self._derivatives is None:
            self._derivatives = {}
        line = self._derivatives.get(primitive)
        if line is None:
            line = self._derivatives[primitive] = copy.copy(self)
            line._derivatives = None
            line.derivative_of = self.derivative_of or primitive
            line.order = self.order + 1
            line.written = self.written
        return line

    @property
    def filename(self) -> str:
        """Path of the file."""
        return self.code.co_filename

    @property
    def number(self) -> int:
        """Line number in the file, from 1."""
        for start, end, number in self.code.co_lines():
            if start <= self.instruction < end and number is not None:
                return number
        return self.code.co_firstlineno

    @property
    def text(self) -> str:
        """The line of code itself, or an empty string where the source is not at hand."""
        return linecache.getline(self.filename, self.number).strip()

    @property
    def expression(self) -> str:
        """The expression that the instruction computes, or an empty string where the source is not at hand."""
        positions = next(itertools.islice(self.code.co_positions(), self.instruction // 2, None), (None,) * 4)
        first, last, start, end = positions
        if first is None or last is None or start is None or end is None:
            return ""
        lines = [linecache.getline(self.filename, number).encode() for number in range(first, last + 1)]
        # Columns count bytes.  The end is cut first, because both may be on the same line.
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][start:]
        return " ".join(line.decode().strip() for line in lines)

    @property
    def _is_in_cell(self) -> bool:
        """Whether the file is a cell of a notebook, which has a temporary number for a name."""
        return "ipykernel" in self.filename or self.filename.startswith("<ipython")

    def __repr__(self) -> str:
        return f"{'cell' if self._is_in_cell else os.path.basename(self.filename)}:{self.number}"

    def describe(self) -> str:
        """`file:line: code`, for error messages."""
        text = self.text
        return f"{'cell' if self._is_in_cell else self.filename}:{self.number}" + (f": {text}" if text else "")


class RecordedLine(Line):
    """A line of which only the text is left, since its program was made in another process.

    Args:
        filename: path of the file.
        number: line number in the file.
        text: the line of code.
        expression: the expression that is computed.
        scope: the named scope in which it ran.
    """

    __slots__ = ("_expression", "_filename", "_number", "_text")

    def __init__(self, filename: str, number: int, text: str, expression: str, scope: str = "") -> None:
        super().__init__(_NO_CODE, 0, scope)
        self._filename, self._number, self._text, self._expression = filename, number, text, expression

    @property
    def filename(self) -> str:
        return self._filename

    @property
    def number(self) -> int:
        return self._number

    @property
    def text(self) -> str:
        return self._text

    @property
    def expression(self) -> str:
        return self._expression


_NO_CODE = compile("", "<elsewhere>", "exec")


class _Scope(dict[tuple[int, int], "Line"]):
    """The lines of a named scope, with the scopes inside it, so that equal ones are the same object."""

    __slots__ = ("inner", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.inner: dict[str, _Scope] = {}

    def enter(self, name: str) -> _Scope:
        found = self.inner.get(name)
        if found is None:
            if len(self.inner) > _MOST_SCOPES:
                self.inner.clear()
            found = self.inner[name] = _Scope(f"{self.path}/{name}" if self.path else name)
        return found


_attributed: ContextVar[Line | None] = ContextVar("attributed", default=None)
_scope: ContextVar[_Scope] = ContextVar("scope", default=_Scope(""))  # noqa: B039 - a place for lines, shared by all
# For lines traced by this thread or task while that is asked for, the user's places that led there.
_callers: ContextVar[dict[Line, tuple[Line, ...]] | None] = ContextVar("callers", default=None)


def of_package(filename: str) -> str | None:
    """Which of the packages between the user and a program a file belongs to, or None if it is the user's."""
    path = os.path.abspath(filename)
    found = next((name for folder, name in _PACKAGES.items() if path.startswith(folder)), None)
    if found is None and path.startswith(_STANDARD_LIBRARY) and not any(name in path for name in _INSTALLED):
        return "python"
    return found


def _internal(filename: str) -> bool:
    # Cython names the files that it compiled, which are no lines of Python; nor are those that came with Python.
    internal = of_package(filename) is not None or filename.endswith(".pyx") or filename.startswith("<frozen ")
    _is_internal[filename] = internal
    return internal


@functools.cache
def is_of_users(filename: str) -> bool:
    """Whether a file is neither of the packages between the user and a program nor of another installed package."""
    return of_package(filename) is None and not any(name in filename for name in _INSTALLED)


def attributed_line() -> Line | None:
    """The line that the present work is done for, if a transformation is at work."""
    return _attributed.get()


# Attribute what follows to a line, or to nothing: for code in a context of its own, where it need not be taken back.
attribute = _attributed.set


def user_line(skipped: int = 1) -> Line | None:
    """The line of user code that runs now, or the one that the present work is attributed to.

    Args:
        skipped: how many frames below it are known to be of this package; to look at one takes a tenth of a
            microsecond.
    """
    line = _attributed.get()
    if line is not None:
        return line
    frame: FrameType | None = sys._getframe(skipped)
    while frame is not None:
        filename = frame.f_code.co_filename
        internal = _is_internal.get(filename)
        if not (_internal(filename) if internal is None else internal):
            code = frame.f_code
            key = (id(code), frame.f_lasti)
            scope = _scope.get()
            line = scope.get(key)
            if line is None:
                if len(scope) > _MOST_LINES:
                    scope.clear()
                place = instruction_at(code, frame.f_lasti)
                line = scope.setdefault((id(code), place), Line(code, place, scope.path))
                scope[key] = line
            callers = _callers.get()
            if callers is not None:
                callers[line] = _places_above(frame)
            return line
        frame = frame.f_back
    return None


def keep_callers(wanted: bool) -> None:
    """Choose whether it is noted who called the lines that this thread or task traces from now on."""
    if not wanted:
        _callers.set(None)
    elif _callers.get() is None:
        _callers.set({})


def callers_of(line: Line) -> tuple[Line, ...]:
    """The user's places that led to a line when it was traced last, the outermost first; none if nobody asked."""
    return (_callers.get() or {}).get(line.written, ())


def _places_above(frame: FrameType) -> tuple[Line, ...]:
    """The user's places above a frame, from the call that began to trace on."""
    found: list[Line] = []
    began = 0
    caller = frame.f_back
    while caller is not None:
        filename = caller.f_code.co_filename
        internal = _is_internal.get(filename)
        if _internal(filename) if internal is None else internal:
            began = len(found) + 1
        else:
            found.append(Line(caller.f_code, caller.f_lasti))
        caller = caller.f_back
    return tuple(reversed(found[:began]))


class attributed_to:
    """Attribute the equations recorded in this block to `line`, instead of the running code."""

    __slots__ = ("_line", "_token")

    def __init__(self, line: Line | None) -> None:
        self._line = line

    def __enter__(self) -> None:
        self._token = _attributed.set(self._line if self._line is not None else _attributed.get())

    def __exit__(self, *_: object) -> None:
        _attributed.reset(self._token)


class scope:
    """Give what is traced in this block a name, under which profiles and reports list it.

    A scope inside another one has a path, such as `"encoder/attention"`.  Equations that derivatives and other
    transformations make of an equation are in its scope, too.  Entering one takes about a microsecond.

    Args:
        name: the name.

    Returns:
        A context manager, which is a decorator as well.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> def f(x):
        ...     with ft.debug.scope("encoder"):
        ...         return np.sin(x)
        >>> ft.trace(f)(0.5).eqns[0].line.scope
        'encoder'
    """

    __slots__ = ("_tokens", "name")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"scope takes a name, such as 'encoder', not {name!r}{at_line(user_line())}")
        self.name = name
        self._tokens: list[Token[_Scope]] = []

    def __enter__(self) -> None:
        self._tokens.append(_scope.set(_scope.get().enter(self.name)))

    def __exit__(self, *_: object) -> None:
        _scope.reset(self._tokens.pop())

    def __call__(self, f: Callable[P, Result]) -> Callable[P, Result]:
        if inspect.isgeneratorfunction(f) or inspect.isasyncgenfunction(f) or inspect.iscoroutinefunction(f):
            raise TypeError(
                f"{f.__name__} is a generator or coroutine, whose body does not run when it is called; write "
                f"`with ft.debug.scope({self.name!r}):` inside of it{at_line(user_line())}"
            )

        @functools.wraps(f)
        def f_in_scope(*args: P.args, **kwargs: P.kwargs) -> Result:
            with scope(self.name):
                return f(*args, **kwargs)

        return f_in_scope


def line_of_error(error: BaseException) -> Line | None:
    """The innermost line of user code that an exception passed through."""
    found, trace = None, error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not _is_internal.get(code.co_filename, _internal(code.co_filename)):
            found = Line(code, trace.tb_lasti)
        trace = trace.tb_next
    return found


def at_line(line: Line | None) -> str:
    """`" (at file:line: code)"`, or nothing where the line is unknown: the end of an error message."""
    return f"\n  at {line.describe()}" if line is not None else ""


# What Python needs to show a warning once at each place, by file.
_registries: dict[str, dict[Any, Any]] = {}


def warn_at(line: Line | None, text: str, category: type[Warning]) -> None:
    """Warn at a line, once unless a filter says otherwise, as Python does; without a line, where the caller is called.

    Args:
        line: the line.
        text: the message.
        category: the class of the warning.
    """
    if line is None:
        warnings.warn(text, category, stacklevel=3)
    else:
        registry = _registries.setdefault(line.filename, {})
        warnings.warn_explicit(text, category, line.filename, line.number, registry=registry)
