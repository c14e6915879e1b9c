"""Pickling by name: what Python's own pickle can find again, and what to do about what it cannot."""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar

from .source import at_line, user_line
from .tracebacks import leave_out_frames

P = ParamSpec("P")
Result = TypeVar("Result")

# Modules that take objects apart otherwise: they copy, or keep the code of functions.
_OTHERS = frozenset(("copy", "copyreg", "cloudpickle", "dill"))


def is_plain_pickle() -> bool:
    """Whether it is Python's own pickle that asks an object for its parts."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "ftrans":
        frame = frame.f_back
    return frame is None or _OTHERS.isdisjoint(frame.f_globals.get("__name__", "").split("."))


def require_importable(what: str, values: Iterable[Any]) -> None:
    """Raise if a function among the values cannot be found by its name, which is all that pickle keeps of it.

    Raises:
        PicklingError: there is one.
    """
    for f in values:
        if type(f) is FunctionType and is_plain_pickle() and importable(f) is not f:
            raise pickle.PicklingError(
                f"{what} is pickled by the name of its function, but {f.__qualname__} of {f.__module__} is not found "
                f"by it: it is a lambda, is defined inside of another function, or another object has its name. "
                f"Define it by def at the top of a module, or pickle by cloudpickle{at_line(user_line())}"
            )


def importable(f: Any) -> Any:
    """What the name of a function stands for in its module; None if that is nothing."""
    found: Any = sys.modules.get(getattr(f, "__module__", None) or "")
    for part in getattr(f, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found


class Made:
    """A function that a transformation has made of others; pickle keeps the transformation and its arguments.

    Args:
        function: the function.
        make: the transformation.
        args: its arguments.
        kwargs: the same by name.
    """

    # What wraps this function takes over all that is in its dictionary.
    __slots__ = ("__dict__", "__weakref__", "_args", "_function", "_kwargs", "_make")

    def __init__(
        self, function: Callable[..., Any], make: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.__dict__.update(vars(function))
        functools.update_wrapper(self, function, updated=())
        self._function, self._make, self._args, self._kwargs = function, make, args, kwargs

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
        except BaseException as error:
            leave_out_frames(error)
            raise

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<function {self.__name__} of {self.__module__}>"  # type: ignore[attr-defined]

    def __copy__(self) -> Made:
        return self

    def __deepcopy__(self, memo: Any) -> Made:
        return self

    def __reduce__(self) -> Any:
        if importable(self) is self:
            # A decorated function has a name of its own.
            return self.__qualname__
        name: str = self.__name__  # type: ignore[attr-defined]
        require_importable(name, (*self._args, *self._kwargs.values()))
        return _made_again, (self._make, self._args, self._kwargs)


def _made_again(make: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return make(*args, **kwargs)


def makes_picklable(make: Callable[P, Result]) -> Callable[P, Result]:
    """Let a transformation return functions that pickle if those that they are made of do."""

    @functools.wraps(make)
    def making(*args: P.args, **kwargs: P.kwargs) -> Any:
        try:
            made: Any = make(*args, **kwargs)
        except BaseException as error:
            leave_out_frames(error)
            raise
        return Made(made, making, args, kwargs) if type(made) is FunctionType else made

    return making
