"""Module: a mutable object with parameters and a `forward`, which transformations of `ftrans.nn` accept as it is."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, Self

import numpy as np

from ..autograd.hooks import Handle
from ..base.source import at_line, scope, user_line
from ..core.cell import Cell
from ..core.eager import Eager
from ..core.trace import Tracer, current_builder
from ..numpy.torch_names import add_hint
from . import epoch
from .array_cell import ArrayCell, reading
from .cells import Parameter
from .constants import is_constant, is_same
from .contents import REMEMBERED, Contents, joined
from .filling import Filling, filling, given_modules, holding_tensors
from .hooks import add_hook, call_with_hooks
from .nested import attributes, walk

# Paths of the modules whose forward code runs, the outermost first.
_running: ContextVar[tuple[Module, ...]] = ContextVar("running modules", default=())


class Module(Contents):
    """Base class of neural networks and their layers.

    A subclass assigns parameters (`Parameter`), buffers (`Buffer`), streams of random numbers (`RngState`) and other
    modules to its attributes, directly or in lists, tuples, dicts and dataclasses, and computes in `forward`.  Calling
    the module runs it.  All else among the attributes is a constant of the forward code.  Compiled functions look at
    these constants in each call: at numbers, texts, functions and arrays, also in containers, and at attributes of the
    class.  What other objects hold, they see only while they are traced.

    Attributes:
        training: whether layers behave as in training, which dropout and batch normalization look at.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> class Model(nn.Module):
        ...     def __init__(self):
        ...         self.layer = nn.Linear(3, 2)
        ...     def forward(self, x):
        ...         return np.tanh(self.layer(x))
        >>> Model()(np.ones(3, np.float32)).shape
        (2,)
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        from .backward import overrides_backward
        from .pytrees import register

        if cls.__dict__.get("__slots__"):
            raise TypeError(
                f"{cls.__name__} has __slots__, in which no parameter would be found; leave them out"
                + at_line(user_line())
            )
        for name, x in vars(cls).items():
            if isinstance(x, Cell):
                raise TypeError(
                    f"{cls.__name__}.{name} is an attribute of the class, where all its instances would share one "
                    f"{type(x).__name__} and none would list it; assign self.{name} in __init__{at_line(user_line())}"
                )
        register(cls)
        cls._overrides_backward = overrides_backward(cls)

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        held = self.__dict__.get(name)
        if isinstance(held, ArrayCell) and not isinstance(value, Cell) and value is not None:
            if isinstance(held, Parameter):
                raise TypeError(
                    f"{joined(self.path, name)} is a Parameter; to change what it holds, write "
                    f"{name}.value = array, and to replace it, assign an nn.Parameter{at_line(user_line())}"
                )
            held.value = value
            return
        if held is value and (value is not None or name in self.__dict__) and value.__class__ not in (list, dict):
            return
        if holds_traced(value) or (current_builder() is not None and id(self) in given_modules.get()):
            if not is_constant(value) or (held is not None and not is_same(held, value)):
                raise self._not_a_cell(name, value)
            if held is not None:
                return
        if isinstance(value, property):
            raise TypeError(f"{name} of a module cannot be a property of the instance")
        object.__setattr__(self, name, value)
        self._adopt(name, value)
        epoch.bump()

    def _not_a_cell(self, name: str, value: Any) -> TypeError:
        what = "a traced value" if holds_traced(value) else type(value).__name__
        if is_constant(value):
            what = f"another {what} than the one it has"
        return TypeError(
            f"the attribute {joined(self.path, name)} was assigned {what} in forward code that is being traced, and "
            f"would not follow later calls; make it a Buffer: self.{name} = nn.Buffer(initial array) in __init__, "
            f"after which self.{name} = array in forward() changes what it holds{at_line(user_line())}"
        )

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        epoch.bump()

    def _adopt(self, name: str, value: Any) -> None:
        """Tell cells and modules where they are, for messages; the first owner counts."""
        if name in self._borrowed:
            return
        for where, x in walk(name, value):
            if isinstance(x, ArrayCell):
                if x.owner is None or x.owner() is None:
                    x.owner, x.name = weakref.ref(self), where
            elif isinstance(x, Module):
                parent = x.__dict__.get("_parent")
                if parent is None or parent() is None:
                    object.__setattr__(x, "_parent", weakref.ref(self))
                    object.__setattr__(x, "_name", where)

    @property
    def path(self) -> str:
        """Where it is in the outermost module, such as `encoder.0`; empty for that one."""
        parent = self.__dict__.get("_parent")
        above = None if parent is None else parent()
        return "" if above is None else joined(above.path, self.__dict__["_name"])

    # Calling

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every subclass defines it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward(self, ...), which says what it computes{at_line(user_line())}"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if reading.get() is None:
            # What is noted for the code inside is gone with the context, whatever happens.
            return copy_context().run(self._call_outermost, args, kwargs)
        running = _running.get()
        inner = _running.set((*running, self))
        try:
            name = self.__dict__.get("_name") if running else None
            with scope(name or type(self).__name__):
                return self._call(args, kwargs)
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

    def _call_outermost(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same, where no other module runs."""
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
        return Module.__call__(self, *args, **kwargs)

    def _call_on_tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        reading.set("tensors")
        holding, around = Filling(), filling.get()
        filling.set(holding)
        holding_tensors.set(holding)
        try:
            return Module.__call__(self, *args, **kwargs)
        finally:
            # What was put into cells is there for all to see, without its graph.
            filling.set(around)
            for found in holding.values():
                x = found.held
                found.cell.array = np.array(x.concrete()) if isinstance(x, Eager) else x

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward code and its hooks, under the eyes of whoever wants to see the modules run."""
        around = capturing.get()
        if around is None:
            return self._call_with_hooks(args, kwargs)
        return around(self, lambda: self._call_with_hooks(args, kwargs))

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "_hooks" not in self.__dict__ and not self._overrides_backward:
            return self.forward(*args, **kwargs)
        return call_with_hooks(self, args, kwargs)

    # Attributes with modules that belong to somebody else, so that their paths do not begin here.
    _borrowed: tuple[str, ...] = ()
    # Whether the subclass defines `backward` beside `forward`.
    _overrides_backward = False

    def described(self) -> str:
        """Where it is and what it is, for messages: `encoder.0: Linear(in_features=3, out_features=2)`."""
        path, what = self.path, f"{type(self).__name__}({self.extra_repr()})"
        return f"{path}: {what}" if path else what

    # Hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call a function before the forward code.

        Args:
            hook: takes `(module, args)`; what it returns, unless None, replaces the arguments (a tuple, or the one).
            prepend: put it before the hooks that are there already.
            with_kwargs: call `hook(module, args, kwargs)`, which returns None or `(args, kwargs)`.

        Returns:
            A handle, whose `remove()` takes the hook away.
        """
        return add_hook(self, "forward_pre", hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call a function after the forward code.

        Args:
            hook: takes `(module, args, output)`; what it returns, unless None, is the result.
            prepend: put it before the hooks that are there already.
            with_kwargs: call `hook(module, args, kwargs, output)`.

        Returns:
            A handle, whose `remove()` takes the hook away.
        """
        return add_hook(self, "forward", hook, prepend, with_kwargs)

    def register_full_backward_hook(self, hook: Callable[..., Any], *, prepend: bool = False) -> Handle:
        """Call a function when the gradients of the arguments have been computed, which it may replace.

        After `backward` of a tensor it is called with tensors.  In `ft.grad`, `nn.value_and_grad` and compiled
        functions it is traced, like the function of `ft.grad_hook`, and the forward code is, too, once more.

        Args:
            hook: takes `(module, grad_input, grad_output)`: tuples with the gradient of each positional argument and of
                each result, None for what has none.  What it returns, unless None, takes the place of `grad_input`;
                an entry that is None stays what it was.
            prepend: put it before the hooks that are there already.

        Returns:
            A handle, whose `remove()` takes the hook away.

        Example:
            >>> import numpy as np, ftrans as ft
            >>> from ftrans import nn
            >>> layer = nn.ReLU()
            >>> handle = layer.register_full_backward_hook(lambda module, grad_in, grad_out: (10 * grad_in[0],))
            >>> ft.grad(lambda x: layer(x).sum())(np.array([1.0, -1.0]))
            array([10.,  0.])
        """
        return add_hook(self, "backward", hook, prepend)

    # Print, copies

    def extra_repr(self) -> str:
        """What is shown of the module itself in `repr`; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        lines = []
        for name, module in self.named_children():
            first, *rest = repr(module).split("\n")
            lines += [f"  ({name}): {first}", *("  " + line for line in rest)]
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        return "\n".join([f"{type(self).__name__}({extra}", *lines, ")"])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in attributes(self).items() if name not in REMEMBERED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name, value in state.items():
            self._adopt(name, value)
        epoch.bump()

    def __copy__(self) -> Self:
        """A module with attributes of its own, which are the cells, modules and containers of this one."""
        new = self.__class__.__new__(self.__class__)
        state = self.__getstate__()
        if "_hooks" in state:
            state["_hooks"] = {kind: dict(hooks) for kind, hooks in state["_hooks"].items()}
        new.__setstate__(state)
        return new


# What runs each module, while somebody wants to see it: takes the module and the call, and returns its result.
capturing: ContextVar[Callable[[Module, Callable[[], Any]], Any] | None] = ContextVar("capturing", default=None)


def holds_traced(value: Any) -> bool:
    """Whether a value is a traced one, or a container of such."""
    return value.__class__ is Tracer or any(x.__class__ is Tracer for _, x in walk("", value))


def _has_tensor(xs: Any) -> bool:
    return any(
        [
            isinstance(x, Eager)
            or (x.__class__ in (list, tuple) and _has_tensor(x))
            or (x.__class__ is dict and _has_tensor(x.values()))
            for x in xs
        ]
    )
