"""CalledModule: what happens around the forward code when a module is called."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

import numpy as np

from ...autograd.hooks import Handle
from ...base.cell import Eager
from ...base.forward_code import ArrayContainer, in_forward, plain_arguments, reading, speaking
from ...base.source import scope
from ...base.tracebacks import leave_out_frames
from ...base.tree import LEAVES
from ...core.trace import current_builder
from ...numpy.torch_names import add_hint
from ..cells.filling import Filling, filling
from .bare import BareModule, capturing
from .crossing import entering, give_back, leaving
from .hooks import add_hook, call_with_hooks
from .nested import parts_of

# Paths of the modules whose forward code runs, the outermost first.
_running: ContextVar[tuple[BareModule, ...]] = ContextVar("running modules", default=())


class CalledModule(BareModule):
    """The part of a module that runs its forward code and hooks."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if reading.get() is None:
            # What is noted for the code inside is gone with the context, whatever happens.
            try:
                return copy_context().run(self._call_outermost, args, kwargs)
            except BaseException as error:
                leave_out_frames(error)
                raise
        running, calls_user = _running.get(), speaking.get()
        inner = _running.set((*running, self))
        borrowed: list[Any] = []
        # Hooks are the user's, too.
        is_of_user = self._is_of_user or "_hooks" in self.__dict__
        if is_of_user is not calls_user:
            speaking.set(is_of_user)
        try:
            if is_of_user:
                args = entering(args, borrowed)
                kwargs = dict(zip(kwargs, entering(kwargs.values(), borrowed), strict=True)) if kwargs else kwargs
            elif calls_user:
                args = tuple(plain_arguments(args))
                kwargs = dict(zip(kwargs, plain_arguments(kwargs.values()), strict=True)) if kwargs else kwargs
            name = self.__dict__.get("_name") if running else None
            with scope(name or type(self).__name__):
                out = self._call(args, kwargs)
            if is_of_user is calls_user:
                return out
            return in_forward(out) if calls_user else leaving(out)
        except Exception as error:
            if not hasattr(error, "__ftrans_module__"):
                # The innermost module says where the error is.
                try:
                    error.__ftrans_module__ = True  # type: ignore[attr-defined]
                    add_hint(error)
                    error.add_note(f"  in the module {self.described()}")
                except AttributeError:
                    pass
            raise
        finally:
            _running.reset(inner)
            speaking.set(calls_user)
            if borrowed:
                give_back(borrowed)

    def _call_outermost(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same, where no other module is running."""
        around = filling.get()
        if around is not None:
            around.runs_module = True
        if current_builder() is not None:
            reading.set("traced")
        # Without arguments, it is computed from parameters only, by hand as it were.
        elif (args or kwargs) and not _has_tensor(args) and not _has_tensor(kwargs.values()):
            reading.set("arrays")
        else:
            return self._call_on_tensors(args, kwargs)
        return CalledModule.__call__(self, *args, **kwargs)

    def _call_on_tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        reading.set("tensors")
        holding, around = Filling(), filling.get()
        holding.tensors = holding
        filling.set(holding)
        try:
            return CalledModule.__call__(self, *args, **kwargs)
        finally:
            # What was put into cells is there for all to see, without its graph.
            filling.set(around)
            for found in holding.values():
                x = found.held
                found.cell.array = np.array(x.concrete()) if isinstance(x, Eager) else x

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run forward code and hooks, through whoever captures calls of modules."""
        around = capturing.get()
        if around is None:
            return self._call_with_hooks(args, kwargs)
        return around(self, lambda: self._call_with_hooks(args, kwargs))

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "_hooks" not in self.__dict__ and not self._overrides_backward:
            return self.forward(*args, **kwargs)
        return call_with_hooks(self, args, kwargs)

    # Hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Register a function that is called before the forward code.

        Args:
            hook: called as `hook(module, args)`; unless it returns None, its result replaces the arguments (a tuple, or
                a single argument).
            prepend: whether to run it before the existing hooks.
            with_kwargs: whether to call it as `hook(module, args, kwargs)`; it then returns None or `(args, kwargs)`.

        Returns:
            A handle whose `remove()` unregisters the hook.
        """
        return add_hook(self, "forward_pre", hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Register a function that is called after the forward code.

        Args:
            hook: called as `hook(module, args, output)`; unless it returns None, its result replaces the output.
            prepend: whether to run it before the existing hooks.
            with_kwargs: whether to call it as `hook(module, args, kwargs, output)`.

        Returns:
            A handle whose `remove()` unregisters the hook.
        """
        return add_hook(self, "forward", hook, prepend, with_kwargs)

    def register_full_backward_hook(self, hook: Callable[..., Any], *, prepend: bool = False) -> Handle:
        """Register a function that is called with the gradients of the arguments, and may replace them.

        After `backward` of a tensor it is called with tensors.  In `ft.grad`, `nn.value_and_grad` and compiled
        functions it is traced, like the function of `ft.grad_hook`, and the forward code is traced once more.

        Args:
            hook: called as `hook(module, grad_input, grad_output)`, with tuples of the gradients of positional
                arguments and of results, None where there is no gradient.  Unless it returns None, its result replaces
                `grad_input`; entries that are None leave the gradient unchanged.
            prepend: whether to run it before the existing hooks.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Example:
            >>> import numpy as np, ftrans as ft
            >>> from ftrans import nn
            >>> layer = nn.ReLU()
            >>> handle = layer.register_full_backward_hook(lambda module, grad_in, grad_out: (10 * grad_in[0],))
            >>> ft.grad(lambda x: layer(x).sum())(np.array([1.0, -1.0]))
            array([10.,  0.])
        """
        return add_hook(self, "backward", hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False) -> Handle:
        """Register a function that is called with the gradients of the results, before they go through the module.

        Args:
            hook: called as `hook(module, grad_output)`, with a tuple of the gradients of results, None where there is
                no gradient.  Unless it returns None, its result replaces them.
            prepend: whether to run it before the existing hooks.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Example:
            >>> import numpy as np, ftrans as ft
            >>> from ftrans import nn
            >>> layer = nn.ReLU()
            >>> handle = layer.register_full_backward_pre_hook(lambda module, grad_out: (10 * grad_out[0],))
            >>> ft.grad(lambda x: layer(x).sum())(np.array([1.0, -1.0]))
            array([10.,  0.])
        """
        return add_hook(self, "backward_pre", hook, prepend)


def _has_tensor(xs: Any) -> bool:
    return any([isinstance(x, Eager) or (type(x) not in LEAVES and _holds_tensor(x)) for x in xs])


def _holds_tensor(x: Any) -> bool:
    """Whether a container holds a tensor."""
    if isinstance(x, ArrayContainer):
        return _has_tensor(x.arrays())
    parts = parts_of(x)
    return parts is not None and _has_tensor([part for _, part in parts])
