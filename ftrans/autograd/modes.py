"""Modes: whether operations on tensors are recorded, in this thread or asyncio task.

Each mode is a context manager and a decorator.  When it ends, also by an exception, the previous mode is restored.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar, overload

Function = TypeVar("Function", bound=Callable[..., Any])


class Mode(NamedTuple):
    """What happens when an operation meets a tensor.

    Attributes:
        records: whether operations on tensors that require a gradient are recorded for `backward`.
        infers: whether results are tensors that can never be recorded.
    """

    records: bool
    infers: bool = False


_RECORDING, _NOT_RECORDING, _INFERRING = Mode(True), Mode(False), Mode(False, True)
_mode: ContextVar[Mode] = ContextVar("mode", default=_RECORDING)

current_mode = _mode.get

_departures: ContextVar[watching_departures | None] = ContextVar("departures", default=None)


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require a gradient are currently recorded."""
    return _mode.get().records


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on."""
    return _mode.get().infers


class _Switch:
    """A mode to be switched to."""

    def __init__(self, target: Mode) -> None:
        self._target = target
        self._before: list[Mode] = []

    def __enter__(self) -> None:
        self._before.append(_mode.get())
        _mode.set(self._target)

    def __exit__(self, *_: object) -> None:
        _mode.set(self._before.pop())

    def __call__(self, function: Function) -> Function:
        """`function`, which runs in this mode."""
        target = self._target
        if inspect.isgeneratorfunction(function):
            return _generator_in(target, function)  # type: ignore[return-value]
        if inspect.isasyncgenfunction(function):
            return _asynchronous_generator_in(target, function)  # type: ignore[return-value]
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                with _Switch(target):
                    return await function(*args, **kwargs)

            return coroutine  # type: ignore[return-value]

        @functools.wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            with _Switch(target):
                return function(*args, **kwargs)

        return in_mode  # type: ignore[return-value]


def _generator_in(target: Mode, function: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function whose steps run in a mode; what happens between the steps does not."""

    @functools.wraps(function)
    def generator(*args: Any, **kwargs: Any) -> Any:
        steps = function(*args, **kwargs)
        resume: Callable[[], Any] = functools.partial(next, steps)
        while True:
            try:
                with _Switch(target):
                    item = resume()
            except StopIteration as end:
                return end.value
            try:
                sent = yield item
            except GeneratorExit:
                with _Switch(target):
                    steps.close()
                raise
            except BaseException as error:
                resume = functools.partial(steps.throw, error)
            else:
                resume = functools.partial(steps.send, sent)

    return generator


def _asynchronous_generator_in(target: Mode, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for an asynchronous generator function."""

    @functools.wraps(function)
    async def generator(*args: Any, **kwargs: Any) -> Any:
        steps = function(*args, **kwargs)
        resume: Callable[[], Any] = steps.__anext__
        while True:
            try:
                with _Switch(target):
                    item = await resume()
            except StopAsyncIteration:
                return
            try:
                sent = yield item
            except GeneratorExit:
                with _Switch(target):
                    await steps.aclose()
                raise
            except BaseException as error:
                resume = functools.partial(steps.athrow, error)
            else:
                resume = functools.partial(steps.asend, sent)

    return generator


class watching_departures:
    """Within this block, see whether values of tensors leave as arrays or numbers, where no gradient can follow them.

    Attributes:
        seen: whether any did.
    """

    __slots__ = ("_token", "seen")

    def __enter__(self) -> watching_departures:
        self.seen = False
        self._token = _departures.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _departures.reset(self._token)


def note_departure() -> None:
    """The value of a tensor leaves as an array or a number, or as a gradient that is not recorded."""
    watching = _departures.get()
    if watching is not None and _mode.get().records:
        watching.seen = True


_in_forward: ContextVar[bool] = ContextVar("in forward", default=False)
# Whether the `forward` of a Function is being traced, whose derivative is stated apart.
is_in_forward = _in_forward.get


class in_forward(_Switch):
    """The mode of a `forward` that is traced."""

    def __init__(self) -> None:
        super().__init__(_NOT_RECORDING)

    def __enter__(self) -> None:
        super().__enter__()
        self._token = _in_forward.set(True)

    def __exit__(self, *_: object) -> None:
        _in_forward.reset(self._token)
        super().__exit__()


@overload
def no_grad(function: None = None) -> _Switch: ...
@overload
def no_grad(function: Function) -> Function: ...
def no_grad(function: Callable[..., Any] | None = None) -> Any:
    """Disable recording: a context manager, and a decorator with or without parentheses.

    Args:
        function: the function to decorate.

    Returns:
        The context manager, or the decorated function.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor(2.0, requires_grad=True)
        >>> with ft.autograd.no_grad():
        ...     y = x * 3
        >>> y.requires_grad
        False
    """
    return _entered(_NOT_RECORDING, function)


@overload
def enable_grad(function: None = None) -> _Switch: ...
@overload
def enable_grad(function: Function) -> Function: ...
def enable_grad(function: Callable[..., Any] | None = None) -> Any:
    """Enable recording inside `no_grad`: a context manager, and a decorator with or without parentheses.

    Args:
        function: the function to decorate.

    Returns:
        The context manager, or the decorated function.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor(2.0, requires_grad=True)
        >>> with ft.autograd.no_grad(), ft.autograd.enable_grad():
        ...     y = x * 3
        >>> y.requires_grad
        True
    """
    return _entered(_RECORDING, function)


@overload
def inference_mode(mode: bool = True) -> _Switch: ...
@overload
def inference_mode(mode: Function) -> Function: ...
def inference_mode(mode: bool | Callable[..., Any] = True) -> Any:
    """Disable recording, and create tensors that are never recorded, even after the mode has ended.

    Args:
        mode: whether to enable the mode; False has no effect.  Or the function to decorate.

    Returns:
        A context manager, which is also a decorator; or the decorated function.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor(2.0, requires_grad=True)
        >>> with ft.autograd.inference_mode():
        ...     y = x * 3
        >>> y.is_inference()
        True
    """
    if callable(mode):
        return _entered(_INFERRING, mode)
    return _Switch(_INFERRING if mode else _mode.get())


def _entered(target: Mode, function: Callable[..., Any] | None) -> Any:
    switch = _Switch(target)
    return switch if function is None else switch(function)


class set_grad_enabled(_Switch):
    """Enable or disable recording: from now on or, as a context manager, until its block ends.

    Args:
        mode: whether to record.

    Example:
        >>> import ftrans as ft
        >>> with ft.autograd.set_grad_enabled(False):
        ...     ft.autograd.is_grad_enabled()
        False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(_RECORDING if mode else _NOT_RECORDING)
        self._outer = _mode.get()
        _mode.set(self._target)

    def __enter__(self) -> None:
        # The mode is on already; what comes back is the one before this object was made.
        self._before.append(self._outer)
        _mode.set(self._target)

    def __call__(self, function: Function) -> Function:
        """`function`, which runs in this mode; the mode of the caller stays what it was."""
        _mode.set(self._outer)
        return super().__call__(function)
