"""A module with its own `backward`: an operation whose derivative is given, and completed where it is left out.

The module becomes a `ftrans.autograd.Function` of everything that its forward code may read: the arrays in its cells,
and its arguments.  So the same rule serves tensors, `ftrans.grad` and similar functions, compiled programs, and code
that cannot be traced.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...api.derivatives import stop_gradient
from ...autograd.context import Context, as_tuple, place_of
from ...autograd.function import Function
from ...autograd.function_rule import in_black_box
from ...autograd.tensor import Tensor
from ...base import tree
from ...base.source import at_line, user_line
from ...control.rules.black_box import Code
from ...core.trace import Tracer, current_builder
from ...core.types import is_inexact
from ...numpy.promotion import asarray
from ...xla import is_jax
from ..cells.kinds import RngState, collecting_gradients
from .bare import BareModule, capturing
from .calls import call_filled
from .derived import Derived, ModuleContext, Rule
from .graph import Graph, graph_of
from .structure import copy_with_cells_of_its_own

_CONTEXT_NAMES = ("ctx", "_ctx", "context", "_")


def overrides_backward(cls: type[BareModule]) -> bool:
    """Whether a class of modules defines its derivative.

    Raises:
        TypeError: it defines `backward`, but its `forward` takes no context.
    """
    backward = getattr(cls, "backward", None)
    if backward is None or cls.forward is BareModule.forward:
        return False
    names = list(inspect.signature(cls.forward).parameters)
    if len(names) < 2 or names[1] not in _CONTEXT_NAMES:
        raise TypeError(
            f"{cls.__name__} defines backward{place_of(backward)}, but its forward({', '.join(names)})"
            f"{place_of(cls.forward)} takes no context; modules with a custom backward are written as\n"
            "    def forward(self, ctx, x): ...\n    def backward(self, ctx, grad_output): ...\n"
            "  Rename the method if it is not a derivative rule."
        )
    return True


def call_with_backward(module: BareModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a module that defines `backward`."""
    cls = type(module)

    def rule() -> Rule:
        return Rule(
            cls.__name__,
            lambda module, ctx, *args, **kwargs: module.forward(ctx, *args, **kwargs),
            lambda module, ctx, *grads: module.backward(ctx, *grads),
            cls.forward,
            cls.backward,  # type: ignore[attr-defined]
        )

    if kwargs:
        args, kwargs = _positional(module, args, kwargs)
    return operation_of(module, "backward", rule)(args, kwargs)


def _positional(module: BareModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Positional arguments, including those that were given by name, since `backward` returns gradients by position."""
    try:
        bound = inspect.signature(module.forward).bind(None, *args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{type(module).__name__}.forward: {error}{at_line(user_line())}") from None
    return bound.args[1:], bound.kwargs


def operation_of(module: BareModule, kind: str, rule: Callable[[], Rule]) -> Operation:
    """A module as an operation, cached while its structure does not change."""
    graph = graph_of(module)
    found = graph.operations.get(kind)
    if found is None:
        found = graph.operations[kind] = Operation(module, rule())
    found.graph = graph
    return found


class Operation:
    """A module as a `Function` of its keyword arguments, the arrays in its cells, and its arguments.

    Attributes:
        graph: its cells.
        rule: how it computes.
        function: the Function.
        refusals: host code that raises for an unknown gradient, by cell and type.
    """

    def __init__(self, module: BareModule, rule: Rule) -> None:
        self.module = module
        self.rule = rule
        self.graph = graph_of(module)
        self.refusals: dict[Any, Code] = {}
        self._copy: BareModule | None = None
        self._lock = threading.RLock()

        def forward(ctx: Context, kwargs: dict[str, Any], *operands: Any) -> Any:
            return self._forward(ctx, kwargs, operands)

        def backward(ctx: Context, cotangent: Any, _: Any) -> Any:
            return self._backward(ctx, cotangent)

        # Messages name the lines of the methods.
        vars(forward)["__wrapped__"] = rule.forward_method
        vars(backward)["__wrapped__"] = rule.backward_method
        backward.is_final = getattr(rule.backward_method, "is_final", False)  # type: ignore[attr-defined]
        members = {
            "forward": staticmethod(forward),
            "backward": staticmethod(backward),
            "trial_value": getattr(module, "trial_value", None),
        }
        self.function: type[Function] = type(rule.name, (Function,), members)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        graph = self.graph
        if current_builder() is None and any(map(is_jax, tree.flatten((args, kwargs))[0])):
            # Nothing is differentiated, and arrays of JAX do not mix with tensors.
            ctx = ModuleContext((False,) * len(args))
            return self.rule.forward(self.module, ctx, *args, **kwargs)
        out, changed = self.function.apply(kwargs, *[cell.read() for cell in graph.cells], *args)
        for place, x in changed.items():
            graph.cells[place].value = x
        return out

    def _forward(self, ctx: Context, kwargs: dict[str, Any], operands: tuple[Any, ...]) -> Any:
        count = len(self.graph.cells)
        cells, args = operands[:count], operands[count:]
        own = ModuleContext(ctx.needs_input_grad[1 + count :])
        out, changed = self.call_filled(cells, lambda module: self.rule.forward(module, own, *args, **kwargs))
        vars(ctx).update(own.left())
        ctx._materializes = own._materializes
        # Where this is not traced, what was saved is also what the graph lets go of, once it has been used.
        ctx._saved = (*own._saved, *(x for x in operands if isinstance(x, Tensor)))
        ctx._of_user = slice(0, len(own._saved))
        ctx._operands = (kwargs, cells, args)
        ctx._changed = changed
        new = {place: _another(x) for place, x in changed.items()}
        ctx._marked = (*own._marked, *new.values())
        return out, new

    def _backward(self, ctx: Context, cotangent: Any) -> tuple[Any, ...]:
        left = ctx.left()
        kwargs, cells, args = left.pop("_operands")
        changed, of_user = left.pop("_changed"), left.pop("_of_user")
        left["_saved"] = left["_saved"][of_user]
        needs = ctx.needs_input_grad
        with self._at_hand() as (module, graph):
            derived = Derived(self, module, graph, (kwargs, list(cells), list(args)), cotangent)
            own = ModuleContext(needs[1 + len(cells) :], derived)
            vars(own).update(left)
            own._materializes = ctx._materializes
            with collecting_gradients(graph.cells) as set_gradients:
                held = _fitting(graph, [changed.get(i, x) for i, x in enumerate(cells)])
                found, changed = call_filled(graph, held, lambda: self.rule.backward(module, own, *as_tuple(cotangent)))
            if changed:
                names = ", ".join(graph.paths[i] for i in changed)
                raise RuntimeError(
                    f"{self.rule.described} changes {names}; backward sets "
                    "gradients (self.weight.grad = ...) and must not change parameters or buffers; update buffers "
                    f"in forward{at_line(user_line())}"
                )
            set_by_place = {derived.place_of_cell(i): set_gradients[id(cell)] for i, cell in enumerate(graph.cells)}
            returned = derived.by_place(self._gradients_of_arguments(args, found))
            return derived.completed(set_by_place | returned, needs)

    def _gradients_of_arguments(self, args: Sequence[Any], found: Any) -> tuple[Any, ...]:
        """What `backward` returned: a gradient, or None, for each argument."""
        if found is None:
            return (None,) * len(args)
        gradients, count = as_tuple(found), len(args)
        if len(gradients) < count or any(g is not None for g in gradients[count:]):
            raise RuntimeError(
                f"{self.rule.described} returned {len(gradients)} gradient{'s' * (len(gradients) != 1)}, but forward "
                f"was given {count} argument{'s' * (count != 1)}; return one for each of them, None for those to be "
                f"derived automatically{at_line(user_line())}"
            )
        return gradients[:count]

    # The module that the code of the user runs on

    @contextmanager
    def _at_hand(self) -> Iterator[tuple[BareModule, Graph]]:
        """A module whose cells may be filled, and its graph.

        Host code of a compiled program may run on another thread, so it gets a copy.
        """
        if not in_black_box.get():
            yield self.module, self.graph
            return
        with self._lock:
            if self._copy is None:
                self._copy = copy_with_cells_of_its_own(self.module)
            yield self._copy, graph_of(self._copy)

    def call_filled(self, arrays: Sequence[Any], f: Callable[[BareModule], Any]) -> tuple[Any, dict[int, Any]]:
        """Call a function of the module while its cells hold other arrays; return the result, and changes of cells."""
        with self._at_hand() as (module, graph):

            def call() -> Any:
                # What goes on inside is part of a rule, which cannot be looked into.
                capturing.set(None)
                return f(module)

            return call_filled(graph, _fitting(graph, arrays), call)


def _fitting(graph: Graph, arrays: Sequence[Any]) -> dict[int, Any]:
    """What the cells of a graph are to hold, by place."""
    held = {}
    for i, (cell, x) in enumerate(zip(graph.cells, arrays, strict=True)):
        # What has no derivative, such as the state of a stream of random numbers, need be no tensor.
        array = np.asarray(x.array) if isinstance(x, Tensor) and not is_inexact(x.dtype) else x
        # A trace takes such a state as an operand, since it is another one for each call.
        held[i] = asarray(array) if isinstance(cell, RngState) and current_builder() is not None else array
    return held


def _another(x: Any) -> Any:
    """A value as another object, to tell it from a result that may be the same."""
    if isinstance(x, Tracer):
        return stop_gradient(x)
    return x.detach() if isinstance(x, Tensor) else np.array(x)
