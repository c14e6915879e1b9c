"""Cells: the only places in a module whose arrays change.

A `Parameter` is trained, a `Buffer` is updated by the forward code (running means, caches), an `RngState` is a stream
of random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...autograd.hooks import Handle
from ...autograd.tensor import Tensor
from ...base.cell import read
from ...base.forks import lock
from ...base.source import at_line, user_line
from ...core.types import is_inexact, type_of
from ...numpy.promotion import has_tracer
from ...xla import is_jax_tracer
from . import epoch
from .array_cell import ArrayCell

# Makes the leaf of a parameter one for all threads, where gradients are added up.
_making_leaves = lock()
# Gradients that the `backward` of a module sets, by the identity of its parameters, while it runs.
_set_gradients: ContextVar[dict[int, Any] | None] = ContextVar("gradients that backward sets", default=None)


class Parameter(ArrayCell):
    """An array of a module that is trained.

    Args:
        data: initial value: an array, which is not copied.
        requires_grad: whether gradients with respect to it are computed.

    Raises:
        TypeError: `requires_grad` is set, and the dtype is not floating-point or complex.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> scale = nn.Parameter(np.ones(3))
        >>> (scale * 2).sum()
        tensor(6., grad_fn=<SumBackward>)
        >>> scale.value
        array([1., 1., 1.])
    """

    __slots__ = ("_hooks", "_leaf", "_leaf_of", "_requires_grad")

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        super().__init__(data)
        self._leaf: Tensor | None = None
        self._leaf_of: Any = None
        self._hooks: dict[int, Callable[[Any], Any]] | None = None
        self._requires_grad = False
        self.requires_grad = requires_grad

    @property
    def requires_grad(self) -> bool:
        """Whether gradients with respect to it are computed."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and not is_inexact(self.dtype):
            raise TypeError(
                f"a parameter that requires a gradient must be floating-point or complex, not {self.type}; convert "
                f"it, or pass requires_grad=False{at_line(user_line())}"
            )
        if value != self._requires_grad:
            self._requires_grad = bool(value)
            if self._leaf is not None:
                self._leaf.requires_grad_(bool(value))
            epoch.bump()

    def requires_grad_(self, requires_grad: bool = True) -> Parameter:
        """Set `requires_grad`; return the parameter."""
        self.requires_grad = requires_grad
        return self

    def tensor(self) -> Tensor:
        """The parameter as a leaf tensor of `ftrans.autograd`, with the same `grad`."""
        leaf, held = self._leaf, self.held
        if leaf is not None and self._leaf_of is held:
            return leaf
        array = np.asarray(self._on_host(held))
        with _making_leaves:
            leaf = self._leaf
            if leaf is None or self._leaf_of is not held:
                leaf = self._leaf_for(leaf, array)
                self._leaf, self._leaf_of = leaf, held
        return leaf

    def _leaf_for(self, leaf: Tensor | None, array: np.ndarray[Any, Any]) -> Tensor:
        """A leaf tensor of the array: the existing one, unless the type has changed."""
        if leaf is not None and leaf.array_type is type_of(array):
            # The parameter has got another array since.
            leaf.data = array
            return leaf
        leaf = Tensor.of(array)
        leaf.requires_grad_(self._requires_grad)
        if self._hooks is not None and self._requires_grad:
            leaf.register_hook(self._hooked)
        return leaf

    def recorded(self) -> Any:
        return self.tensor() if self._requires_grad and not is_jax_tracer(self.held) else self.value

    def _is_trained(self) -> bool:
        return self._requires_grad

    def _check_held(self, value: Any) -> None:
        if self._requires_grad and not is_inexact(value.dtype):
            raise TypeError(
                f"{self.path} requires a gradient, and cannot hold {type_of(value)}, which has none; convert it with "
                f".astype({self.dtype}){at_line(user_line())}"
            )

    def _shared(self) -> Tensor:
        return self.tensor().detach()

    @property
    def grad(self) -> Any:
        """The gradient that `backward` has accumulated, a tensor; None if there is none.

        In the `backward` of a module it is the gradient of that call, and may be set.
        """
        found = _set_gradients.get()
        if found is not None and id(self) in found:
            return found[id(self)]
        return None if self._leaf is None else self._leaf.grad

    @grad.setter
    def grad(self, gradient: Any) -> None:
        found = _set_gradients.get()
        if found is not None:
            if id(self) not in found:
                raise RuntimeError(
                    f"backward sets the gradient of {self.path}, which is not a parameter of this module; "
                    f"gradients of other modules come from their own operations{at_line(user_line())}"
                )
            found[id(self)] = read(gradient)
            return
        if has_tracer(gradient):
            raise RuntimeError(
                f"the gradient of {self.path} was set to a traced value, which has no value outside of the "
                f"running transformation; return it from the transformed function instead{at_line(user_line())}"
            )
        if gradient is None and self._leaf is None:
            return
        self.tensor().grad = gradient

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradient: to None, or to zeros if there is one."""
        before = self.grad
        self.grad = None if set_to_none or before is None else np.zeros_like(before.detach())

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """`backward` of the leaf tensor."""
        self.tensor().backward(*args, **kwargs)

    def register_hook(self, hook: Callable[[Any], Any]) -> Handle:
        """Register a function that is called with the gradient whenever it is computed, and may replace it.

        Args:
            hook: takes the gradient (a tensor after `backward`, a traced value in `nn.grad` and similar functions) and
                returns a replacement, or None.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Raises:
            RuntimeError: the parameter requires no gradient.
        """
        if not self._requires_grad:
            raise RuntimeError(
                f"{self.path} requires no gradient, so a hook would never be called; write "
                f"{self.name or 'p'}.requires_grad_() first{at_line(user_line())}"
            )
        if self._hooks is None:
            self._hooks = {}
            if self._leaf is not None:
                self._leaf.register_hook(self._hooked)
        key = next(_hook_numbers)
        self._hooks[key] = hook
        epoch.bump()
        return StructureHandle(self._hooks, key)

    def _hooked(self, gradient: Any) -> Any:
        """A gradient after all hooks."""
        for hook in self.hooks:
            new = hook(gradient)
            gradient = gradient if new is None else new
        return gradient

    @property
    def hooks(self) -> tuple[Callable[[Any], Any], ...]:
        """The registered hooks."""
        return tuple((self._hooks or {}).values())

    def twin(self) -> Any:
        new = super().twin()
        new._leaf, new._leaf_of, new._requires_grad = None, None, self._requires_grad
        new._hooks = None if self._hooks is None else dict(self._hooks)
        return new

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "requires_grad": self._requires_grad}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Parameter.__init__(self, state["array"], state["requires_grad"])
        self.name = state["name"]


class StructureHandle(Handle):
    """Removes a hook, after which functions that were compiled with it are traced again."""

    def remove(self) -> None:
        super().remove()
        epoch.bump()


_hook_numbers = iter(range(1 << 62))


class collecting_gradients:
    """A block in which the gradients of certain parameters are those of one call of `backward`.

    Entering it returns the dictionary of gradients by the identity of the parameter.
    """

    __slots__ = ("_found", "_token")

    def __init__(self, cells: Iterable[ArrayCell]) -> None:
        self._found = {id(cell): None for cell in cells}

    def __enter__(self) -> dict[int, Any]:
        self._token = _set_gradients.set(self._found)
        return self._found

    def __exit__(self, *_: object) -> None:
        _set_gradients.reset(self._token)


class Buffer(ArrayCell):
    """An array of a module that the forward code updates, and that is not trained.

    Args:
        data: initial value.
        persistent: whether it is part of `state_dict()`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> count = nn.Buffer(np.zeros(()))
        >>> count.value = count + 1
        >>> count.value
        array(1.)
    """

    __slots__ = ("persistent",)

    def __init__(self, data: Any, persistent: bool = True) -> None:
        super().__init__(data)
        self.persistent = persistent

    def twin(self) -> Any:
        new = super().twin()
        new.persistent = self.persistent
        return new

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "persistent": self.persistent}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Buffer.__init__(self, state["array"], state["persistent"])
        self.name = state["name"]


class RngState(ArrayCell):
    """A stream of random numbers: a key and a counter, in an array of type u32[3].

    Args:
        seed: an integer; by default drawn from the generator that `nn.manual_seed` seeds.

    Example:
        >>> from ftrans import nn
        >>> stream = nn.RngState(0)
        >>> stream.next_key().shape
        (2,)
    """

    __slots__ = ()

    _instead_of_changing = (
        "take the key before, key = rng.next_key(), and use it inside, with nn.random.fold_in(key, i) for the step or "
        "the lane i"
    )

    def __init__(self, seed: int | None = None) -> None:
        from ..random import stream

        super().__init__(stream(seed))

    def next_key(self) -> Any:
        """Advance the stream; return its next key, an array of type u32[2], for the functions of `ftrans.nn.random`."""
        from ..random import advance

        key, self.value = advance(self.read())
        return key

    def __setstate__(self, state: dict[str, Any]) -> None:
        ArrayCell.__init__(self, state["array"])
        self.name = state["name"]


class Cells(dict[str, ArrayCell]):
    """Cells by name as an attribute of a module.  It is never modified, so unlike a dict it need not be watched."""
