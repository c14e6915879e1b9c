"""nn.checkpoint: recompute instead of keep, for code that calls modules; their changes are carried out of its trace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from ...api import checkpoint as api
from ...api.call import has_active, name_of
from ...base.contexts import in_own_context
from ...base.forward_code import reading
from ...base.type_variables import Params, Result
from ...core.trace import current_builder
from ..modules.calls import call_taking
from ..modules.module import Module
from ..modules.roots import in_places, with_places


@overload
def checkpoint(
    f: Callable[Params, Result],
    *,
    policy: api.GivenPolicy = "nothing",
    memory_budget: int | None = None,
) -> Callable[Params, Result]: ...
@overload
def checkpoint(
    f: None = None,
    *,
    policy: api.GivenPolicy = "nothing",
    memory_budget: int | None = None,
) -> Callable[[Callable[Params, Result]], Callable[Params, Result]]: ...
def checkpoint(
    f: Callable[..., Any] | None = None,
    *,
    policy: api.GivenPolicy = "nothing",
    memory_budget: int | None = None,
) -> Any:
    """Make reverse mode keep fewer values of a module, or of a function that calls modules, and recompute the others.

    It is `ft.checkpoint` for code with state: buffers and random streams change as they do without it.  Recomputation
    draws the same random numbers, so the gradient is the same, too.

    Args:
        f: the function, which may close over modules or take them as arguments; or a module.  If omitted, a decorator
            is returned.
        policy: what to keep besides arguments and parameters, as for `ft.checkpoint`: "nothing", "dots", ...
        memory_budget: number of bytes to keep at most, in place of a policy.

    Returns:
        A function of the same arguments with the same results; for a module, a module that holds it as `module`.

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
        home = current_builder()
        cells: list[Any] = []

        def pure(*args: Any, **kwargs: Any) -> Any:
            out, changed = call_taking(home, lambda: function(*in_places(args, modules), **in_places(kwargs, modules)))
            cells[:] = [held.cell for held in changed]
            return out, [held.held for held in changed]

        pure.__name__ = name_of(function)
        modules: list[Module] = []
        plain_args, plain_kwargs = with_places((args, kwargs), modules)
        run = api.checkpoint(pure, policy=policy, memory_budget=memory_budget)
        out, new = _reading_tensors(run, plain_args, plain_kwargs)
        for cell, x in zip(cells, new, strict=True):
            cell.value = x
        return out

    return checkpointed


@in_own_context
def _reading_tensors(run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function; if there are tensors among its arguments, its modules read tensors from their cells."""
    if reading.get() is None and current_builder() is None and has_active((args, kwargs)):
        reading.set("tensors")
    return run(*args, **kwargs)


class Checkpointed(Module):
    """A module of which reverse mode keeps fewer values: what `nn.checkpoint(module)` returns.

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
