"""nn.checkpoint: reverse mode keeps less of code that calls modules, whose changes are taken out of its trace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from ..api import checkpoint as api
from ..api.call import has_active, name_of
from ..base.contexts import in_own_context
from ..core.trace import Builder, current_builder
from .array_cell import ArrayCell, reading, taking_changes
from .filling import Filling, Held, filling
from .module import Module
from .roots import in_places, with_places


def checkpoint(
    f: Callable[..., Any] | None = None,
    *,
    policy: api.GivenPolicy = "nothing",
    memory_budget: int | None = None,
) -> Any:
    """Make reverse mode keep less of a function that calls modules, or of a module, and compute the rest again.

    It is `ft.checkpoint`, and buffers and streams of random numbers that the function changes come out as without it.
    What is computed again meets the same random numbers, so the gradient is the same, too.

    Args:
        f: the function, which may close over modules or take them as arguments; or a module.  Without it, a decorator
            is returned.
        policy: what is kept, as for `ft.checkpoint`: "nothing" but arguments and parameters, "dots", ...
        memory_budget: a number of bytes, in place of a policy.

    Returns:
        A function of the same arguments with the same results; of a module, a module that holds it as `module`.

    Raises:
        TypeError: as `ft.checkpoint`.
        ValueError: as `ft.checkpoint`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans import nn
        >>> model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
        >>> x = np.ones((8, 4), np.float32)
        >>> kept = ft.residuals(lambda model, x: model(x).sum(), argnums=0)(model, x).total
        >>> less = ft.residuals(lambda model, x: nn.checkpoint(model)(x).sum(), argnums=0)(model, x).total
        >>> less < kept
        True
    """
    if f is None:
        return functools.partial(checkpoint, policy=policy, memory_budget=memory_budget)
    api.as_policy(policy, memory_budget)
    if isinstance(f, Module):
        return Checkpointed(f, policy, memory_budget)
    function = f

    @functools.wraps(function)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        changes = Changes()

        def pure(*new_args: Any, **new_kwargs: Any) -> Any:
            return changes.collected(lambda: function(*in_places(new_args, modules), **in_places(new_kwargs, modules)))

        pure.__name__ = name_of(function)
        modules: list[Module] = []
        plain_args, plain_kwargs = with_places((args, kwargs), modules)
        run = api.checkpoint(pure, policy=policy, memory_budget=memory_budget)
        out, new = _reading_tensors(run, plain_args, plain_kwargs)
        changes.make(new)
        return out

    return checkpointed


@in_own_context
def _reading_tensors(run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function whose modules read tensors from their cells if there are tensors among the arguments."""
    if reading.get() is None and current_builder() is None and has_active((args, kwargs)):
        reading.set("tensors")
    return run(*args, **kwargs)


class Checkpointed(Module):
    """A module of which reverse mode keeps less: what `nn.checkpoint` makes of one.

    Args:
        module: the module.
        policy: as for `nn.checkpoint`.
        memory_budget: as for `nn.checkpoint`.
    """

    def __init__(self, module: Module, policy: api.GivenPolicy = "nothing", memory_budget: int | None = None) -> None:
        self.module = module
        self.policy = policy if isinstance(policy, str) or callable(policy) else tuple(policy)
        self.memory_budget = memory_budget

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the module."""
        run = checkpoint(self.module.__call__, policy=self.policy, memory_budget=self.memory_budget)
        return run(*args, **kwargs)

    def extra_repr(self) -> str:
        return f"policy={self.policy!r}" if self.memory_budget is None else f"memory_budget={self.memory_budget}"


class Changes:
    """What a function that is traced on its own changes in cells that belong to the trace around it.

    What is put into the cells is there while the inner trace runs; it leaves that as a result, and is put in again
    outside.
    """

    def __init__(self) -> None:
        self._outer = current_builder()
        self._around: Any = taking_changes.get()
        self._inner: Builder | None = None
        self._taken = Filling()

    def collected(self, f: Callable[[], Any]) -> tuple[Any, list[Any]]:
        """The result of a function that is called inside of the inner trace, and what the changed cells hold then."""

        def call() -> Any:
            filling.set(self._taken)
            taking_changes.set(self)
            return f(), [found.held for found in self._taken.values()]

        self._inner = current_builder()
        self._taken = Filling()
        return copy_context().run(call)

    def take(self, cell: ArrayCell) -> bool:
        """Let a cell be changed in the running trace, if that is the inner one; return whether it may be."""
        place = cell.place()
        if current_builder() is not self._inner or not self._reaches(place.home):
            return False
        self._taken[id(cell)] = Held(cell, place.held, self._inner, isinstance(place, Held) and place.is_given)
        return True

    def _reaches(self, home: Builder | None) -> bool:
        """Whether a change can be taken out to a trace, by this and by what takes it further."""
        around = self._around
        return home is self._outer or (around is not None and around._inner is self._outer and around._reaches(home))

    def make(self, values: list[Any]) -> None:
        """Put what has left the inner trace into the cells."""
        for found, x in zip(self._taken.values(), values, strict=True):
            found.cell.value = x
