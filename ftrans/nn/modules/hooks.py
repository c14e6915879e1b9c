"""Hooks: functions that are called around the forward code of a module, and with its gradients.

On tensors, backward hooks see the gradients that arrive at two nodes of the graph, before and after the module.  In a
trace, a module with backward hooks is one whose `backward` edits the automatic derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...api.rule_checks import matched
from ...autograd.context import Context, as_tuple, place_of
from ...autograd.function import Function
from ...autograd.hooks import Handle
from ...base import tree
from ...base.cell import Eager
from ...base.source import at_line, user_line
from ...core.trace import current_builder
from ...core.types import type_of
from ..cells import epoch
from .backward import call_with_backward, operation_of
from .bare import BareModule
from .derived import Rule
from .graph import graph_of

_numbers = iter(range(1 << 62))

# Around the forward code, around the backward pass, and around saving and loading.
_KINDS = ("forward_pre", "forward", "backward_pre", "backward", "state_pre", "state", "load_pre", "load")


def add_hook(
    module: BareModule, kind: str, hook: Callable[..., Any], prepend: bool = False, with_kwargs: bool = False
) -> Handle:
    """Add a hook of one of the kinds."""
    if not callable(hook):
        raise TypeError(f"a hook must be a function, not {type(hook).__name__}{at_line(user_line())}")
    kinds = module.__dict__.get("_hooks")
    if kinds is None:
        kinds = {kind: {} for kind in _KINDS}
        object.__setattr__(module, "_hooks", kinds)
    hooks, key = kinds[kind], next(_numbers)
    others = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    hooks[key] = (hook, with_kwargs)
    hooks |= others
    epoch.bump()
    return _ModuleHandle(module, hooks, key)


def hooks_of(module: BareModule, kind: str) -> list[Callable[..., Any]]:
    """The hooks of a kind that a module has."""
    kinds = module.__dict__.get("_hooks")
    return [] if kinds is None else [hook for hook, _ in kinds[kind].values()]


class _ModuleHandle(Handle):
    """Removes a hook of a module."""

    def __init__(self, module: BareModule, hooks: dict[int, Any], key: int) -> None:
        super().__init__(hooks, key)
        self._module = module

    def remove(self) -> None:
        super().remove()
        # Without hooks, a module has the structure that it had before the first one.
        if not any(self._module.__dict__.get("_hooks", {}).values()):
            self._module.__dict__.pop("_hooks", None)
        epoch.bump()


def call_with_hooks(module: BareModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a module that has hooks, or its own `backward`."""
    hooks = module.__dict__.get("_hooks") or {kind: {} for kind in _KINDS}
    for hook, with_kwargs in list(hooks["forward_pre"].values()):
        if with_kwargs:
            new = hook(module, args, kwargs)
            if new is not None:
                args, kwargs = _pair(new)
        else:
            new = hook(module, args)
            if new is not None:
                args = new if isinstance(new, tuple) else (new,)
    has_backward = hooks["backward"] or hooks["backward_pre"]
    out = _with_backward_hooks(module, args, kwargs) if has_backward else _forward(module, args, kwargs)
    for hook, with_kwargs in list(hooks["forward"].values()):
        new = hook(module, args, kwargs, out) if with_kwargs else hook(module, args, out)
        if new is not None:
            out = new
    return out


def _pair(new: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(new, tuple) and len(new) == 2 and isinstance(new[0], tuple) and isinstance(new[1], dict):
        return new
    raise TypeError(
        f"a forward pre-hook with with_kwargs=True must return None or a pair (args, kwargs), not {type(new).__name__}"
        + at_line(user_line())
    )


def _forward(module: BareModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not module._overrides_backward:
        return module.forward(*args, **kwargs)
    return call_with_backward(module, args, kwargs)


# Backward hooks


def _with_backward_hooks(module: BareModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if current_builder() is None:
        return _on_tensors(module, args, kwargs)
    hooks = [*hooks_of(module, "backward_pre"), *hooks_of(module, "backward")]

    def rule() -> Rule:
        return Rule(
            type(module).__name__,
            lambda module, ctx, *args, **kwargs: _forward(module, args, kwargs),
            lambda module, ctx, *grads: _edited_derivative(module, ctx, grads),
            module.forward,
            hooks[-1],
        )

    return operation_of(module, "hooked", rule)(args, kwargs)


def _edited_derivative(module: BareModule, ctx: Any, grad_output: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients of the arguments, after the hooks."""
    edited = _before_backward(module, grad_output)
    found, of_parameters = ctx.vjp() if edited is grad_output else ctx.vjp(*edited)
    if edited is not grad_output:
        graph = graph_of(module)
        for path, cell in zip(graph.paths, graph.cells, strict=True):
            if path in of_parameters:
                cell.grad = of_parameters[path]  # type: ignore[attr-defined]
    grad_output = edited
    count = len(ctx.needs_input_grad)
    found = found if count != 1 else (found,)
    grad_input = tuple([g if n else None for g, n in zip(found, ctx.needs_input_grad, strict=True)])
    return _replaced(module, grad_input, grad_output)


def _before_backward(module: BareModule, grad_output: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients of the results after the hooks that come first; the same object if none has changed them."""
    for hook in hooks_of(module, "backward_pre"):
        new = hook(module, grad_output)
        if new is None:
            continue
        given = new if isinstance(new, tuple | list) else (new,)
        if len(given) != len(grad_output):
            raise RuntimeError(
                f"the backward pre-hook{place_of(hook)} of {module.described()} returned {len(given)} gradients in "
                f"place of {len(grad_output)}; return a tuple with one for each result, None to leave it unchanged"
                + at_line(user_line())
            )
        grad_output = tuple([_checked(module, hook, a, b) for a, b in zip(grad_output, given, strict=True)])
    return grad_output


def _replaced(module: BareModule, grad_input: tuple[Any, ...], grad_output: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients of the arguments after all hooks."""
    for hook in hooks_of(module, "backward"):
        new = hook(module, grad_input, grad_output)
        if new is None:
            continue
        given = new if isinstance(new, tuple | list) else (new,)
        if len(given) != len(grad_input):
            raise RuntimeError(
                f"the backward hook{place_of(hook)} of {module.described()} returned {len(given)} gradients in place "
                f"of {len(grad_input)}; return a tuple with one for each positional argument, None to leave it "
                "unchanged" + at_line(user_line())
            )
        grad_input = tuple([_checked(module, hook, a, b) for a, b in zip(grad_input, given, strict=True)])
    return grad_input


def _checked(module: BareModule, hook: Callable[..., Any], before: Any, new: Any) -> Any:
    if new is None or before is None:
        return before
    leaves, structure = tree.flatten(before)
    given, given_structure = tree.flatten(new)
    if structure != given_structure or [np.shape(x) for x in leaves] != [np.shape(x) for x in given]:
        raise RuntimeError(
            f"the backward hook{place_of(hook)} of {module.described()} returned a gradient of shape "
            f"{[np.shape(x) for x in given]} in place of {[str(type_of(x)) for x in leaves]}; a gradient must keep its "
            f"shape{at_line(user_line())}"
        )
    return new


class _Tensors:
    """The tensors that require a gradient among some values.

    Attributes:
        chosen: these tensors.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self._flat = [tree.flatten(x) for x in values]
        self._leaves = [x for leaves, _ in self._flat for x in leaves]
        self._places = [i for i, x in enumerate(self._leaves) if isinstance(x, Eager) and x.is_active()]
        self.chosen = [self._leaves[i] for i in self._places]
        # Only what the gradients look like is needed later.
        self._structures = [structure for _, structure in self._flat]

    def with_others(self, new: Sequence[Any]) -> tuple[Any, ...]:
        """The values with other tensors in them."""
        leaves = list(self._leaves)
        for i, x in zip(self._places, new, strict=True):
            leaves[i] = x
        self._leaves, self._flat = [None] * len(leaves), []
        return self._together(leaves)

    def gradients(self, cts: Sequence[Any]) -> tuple[Any, ...]:
        """Gradients like the values, None for all else."""
        leaves: list[Any] = [None] * len(self._leaves)
        for i, ct in zip(self._places, cts, strict=True):
            leaves[i] = ct
        return self._together(leaves)

    def taken(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients of the tensors among those of the values."""
        leaves: list[Any] = []
        for g, structure in zip(gradients, self._structures, strict=True):
            leaves += [g] if structure is tree.LEAF else matched(g, structure, "a backward hook", "the argument")
        return [leaves[i] for i in self._places]

    def _together(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        remaining = iter(leaves)
        return tuple([tree.unflatten(s, [next(remaining) for _ in range(s.num_leaves)]) for s in self._structures])


class _Relay:
    """State shared by the two nodes before and after a module in the backward pass."""

    def __init__(self, module: BareModule, inputs: _Tensors, outputs: _Tensors | None = None) -> None:
        self.module = module
        self.inputs = inputs
        self.outputs = outputs
        self.grad_output: tuple[Any, ...] = ()


def _on_tensors(module: BareModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    inputs = _Tensors(args)
    relay = _Relay(module, inputs)
    if inputs.chosen:
        args = inputs.with_others(_Before.apply(relay, *inputs.chosen))
    out = _forward(module, args, kwargs)
    relay.outputs = outputs = _Tensors(as_tuple(out))
    if not outputs.chosen:
        return out
    found = outputs.with_others(_Behind.apply(relay, *outputs.chosen))
    return type(out)(found) if type(out) in (tuple, list) else found[0]


class _Unchanged(Function):
    """Values as they are; in the backward pass, `relay` is there."""

    @staticmethod
    def forward(ctx: Context, relay: _Relay, *xs: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.relay = relay
        return xs


class _Behind(_Unchanged):
    """The results of a module; in the backward pass it notes their gradients."""

    @staticmethod
    def backward(ctx: Context, *cts: Any) -> Any:
        relay = ctx.relay
        relay.grad_output = _before_backward(relay.module, relay.outputs.gradients(cts))
        cts = tuple(relay.outputs.taken(relay.grad_output))
        if not relay.inputs.chosen:
            _replaced(relay.module, relay.inputs.gradients(()), relay.grad_output)
        return (None, *cts)


class _Before(_Unchanged):
    """The arguments of a module; in the backward pass it runs the hooks."""

    @staticmethod
    def backward(ctx: Context, *cts: Any) -> Any:
        relay = ctx.relay
        found = _replaced(relay.module, relay.inputs.gradients(cts), relay.grad_output)
        return (None, *relay.inputs.taken(found))
