"""A Function on tensors: `forward` runs at once, and a node calls `backward` in the backward pass.

The graph holds what `forward` left on its context.  For a second derivative `backward` is called with tensors that have
their places in the graph.  That needs all that it uses to be arguments and results; where `forward` left other values,
the Function is traced for it instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, TypeGuard

import numpy as np

from ..api.derivatives import vjp
from ..base import tree
from ..base.cell import CellOwner
from ..base.contexts import in_own_context
from ..base.source import Line, at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import recording_in
from ..core.types import ArrayType, is_inexact
from .context import CONSTANT, Context, FunctionClass, Wanted, as_tuple, in_place_error, place_of
from .function_rule import is_final, without_black_boxes
from .graph import Edge, Flags, KeepingNode, Node
from .memory import Memory, Watched, protected
from .modes import current_mode, in_forward, no_grad, watching_departures
from .tensor import Argument, Tensor, inference_error


@in_own_context
def apply_to_tensors(function: FunctionClass, args: tuple[Any, ...]) -> Any:
    """The result of a Function outside of a trace, with a node for it where a gradient may be asked for.

    `forward` sees tensors also where all arguments are arrays; then so are the results.
    """
    mode = current_mode()
    # A module is what it is, as in torch: gradients are for its parameters that are arguments themselves.
    flat = [([x], tree.LEAF) if isinstance(x, Tensor | CellOwner) else tree.flatten(x) for x in args]
    leaves = [x for part, _ in flat for x in part]
    active = [isinstance(x, Tensor) and x.is_active() for x in leaves]
    seen = [_seen(x) for x in leaves]
    before = [x.memory.look() if a else 0 for x, a in zip(seen, active, strict=True)]
    remaining = iter(seen)
    given = tuple([tree.unflatten(s, [next(remaining) for _ in part]) for part, s in flat])
    flags = iter(active)
    ctx = Context(tuple([any([next(flags) for _ in part]) for part, _ in flat]))
    with nullcontext() if mode.infers else no_grad():
        out = function._forward(ctx, given)
    if any(a and x.memory.look() != v for x, a, v in zip(seen, active, before, strict=True)):
        raise in_place_error(f"{function.__name__}.forward{place_of(function.forward)} changes an argument")
    raw, structure = tree.flatten(out)
    if not _holds_tensor(leaves):
        return tree.unflatten(structure, [_plain(x) for x in raw])
    results = _results(raw, [x.array for x in leaves if isinstance(x, Tensor)])
    differentiable = [
        index
        for index, (x, y) in enumerate(zip(raw, results, strict=True))
        if isinstance(y, Tensor) and is_inexact(y.dtype) and not any(x is m for m in ctx._marked)
    ]
    if any(active) and differentiable:
        if any(isinstance(x, Tensor) and x.is_inferred for x in leaves):
            raise inference_error()
        node = FunctionNode(
            function, flat, leaves, active, seen, ctx, raw, structure, results, differentiable, user_line()
        )
        for index in differentiable:
            results[index].node, results[index].output = node, index
    return tree.unflatten(structure, results)


def apply_to_constants(function: FunctionClass, args: tuple[Any, ...]) -> Any:
    """The result of a Function in a trace whose values are no arguments of it, but may be closed over."""
    try:
        with in_forward():
            out = function._forward(Context((False,) * len(args)), args)
        return out if _holds_tensor(args) else tree.map_leaves(_plain, out)
    except Exception:
        # It may be written for tensors.
        with recording_in(None):
            return apply_to_tensors(function, args)


def _holds_tensor(container: Any) -> bool:
    return any(isinstance(x, Tensor) for x in tree.flatten(container)[0])


def _plain(x: Any) -> Any:
    return x.array if isinstance(x, Tensor) else x


def _seen(x: Any) -> Any:
    """An argument as `forward` sees it."""
    if isinstance(x, Tensor):
        found = x.detach()
        if found.window is not None:
            found.window = Argument(found.window, x)
        return found
    return Tensor.of(x) if _is_array(x) else x


def _is_array(x: Any) -> bool:
    """Whether something is an array of numbers."""
    return is_plain(x, np.ndarray | np.generic) and (x.dtype.kind in "biufc" or is_inexact(x.dtype))


def _results(raw: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """What `forward` returned, as tensors that share no memory with its arguments or with each other."""
    results: list[Any] = []
    taken = list(arguments)
    infers = current_mode().infers
    for x in raw:
        if isinstance(x, Tensor):
            array = x.array
            is_shared = any(np.may_share_memory(array, a) for a in taken)
            y = Tensor.of(array.copy() if is_shared else array)
            if not is_shared:
                # What `forward` left on its context sees the changes of what it returned.
                y.memory = x.shared_memory()
        elif _is_array(x) or is_plain(x, float | complex):
            y = Tensor.of(np.array(x)[()])
        else:
            results.append(x)
            continue
        y.is_inferred = infers
        taken.append(y.array)
        results.append(y)
    return results


class FunctionNode(KeepingNode):
    """One application of a Function.

    What it keeps is the context.
    """

    __slots__ = (
        "_active",
        "_arguments",
        "_function",
        "_places",
        "_structure",
        "_types",
        "_wanted",
        "_watched_arguments",
    )

    def __init__(
        self,
        function: FunctionClass,
        flat: Sequence[tuple[Sequence[Any], tree.Structure]],
        leaves: Sequence[Any],
        active: Sequence[bool],
        seen: Sequence[Any],
        ctx: Context,
        raw: Sequence[Any],
        structure: tree.Structure,
        results: Sequence[Any],
        differentiable: Sequence[int],
        line: Line | None,
    ) -> None:
        edges = [(x, 0) if x.node is None else (x.node, x.output) for x, a in zip(leaves, active, strict=True) if a]
        super().__init__(function.__name__, edges, line, len(raw))
        self._function = function
        self._active = active
        self._wanted = Wanted(function, flat)
        self._structure = structure
        self._types: list[ArrayType | None] = [y.array_type if isinstance(y, Tensor) else None for y in results]
        watched: list[tuple[Memory | Watched, int | bytes]] = []
        ctx._saved, ctx._marked = tuple([_kept(x, watched) for x in ctx._saved]), ()
        without_modules = [x for x in ctx.left().values() if not isinstance(x, CellOwner)]
        left = [x for x in tree.flatten(without_modules)[0] if not is_plain(x, (int, *CONSTANT))]
        for x in left:
            _watch(x, watched)
        self.kept = (ctx,)
        self.watched = watched
        # Where in the graph what is left on the context has its place: by an edge, or as a result of this node.
        numbers = iter(range(len(edges)))
        places: dict[int, tuple[Any, int | None, int | None]] = {
            id(x): (x, None, index) for index, x in enumerate(raw) if isinstance(x, Tensor) and index in differentiable
        }
        places |= {id(x): (x, next(numbers) if a else None, None) for x, a in zip(seen, active, strict=True)}
        self._places = {id(x): places[id(x)] for x in left if id(x) in places}
        # Where something else is left, all arguments are needed again.
        is_complete = all(id(x) in places or _has_no_derivative(x) for x in left)
        self._arguments = None if is_complete else tuple(seen)
        self._watched_arguments: list[tuple[Memory | Watched, int | bytes]] = []
        for x in self._arguments or ():
            _watch(x, self._watched_arguments)

    def pull(self, cotangents: list[Any], needed: Flags | None) -> tuple[Sequence[Any], Sequence[bool]]:
        (ctx,) = self.checked()
        # A gradient that was broadcast cannot be written to, which other people's code may not accept.
        given = [None if ct is None else Tensor.of(np.require(ct, requirements="W")) for ct in cotangents]
        found = [x.array if isinstance(x, Tensor) else x for x in self._called(ctx, given)]
        return found, [False] * len(found)

    def pull_tensors(self, cotangents: list[Any], needed: Flags | None) -> Sequence[Any]:
        (ctx,) = self.checked()
        name = f"{self.name}.backward{place_of(self._function.backward)}"
        if is_final(self._function):
            reason = f"{name} is marked by once_differentiable"
        elif self._arguments is not None:
            try:
                return self._traced(self._arguments, cotangents)
            except Exception as error:
                reason = (
                    f"forward saved more than arguments and results, so {self.name} has to be traced for a second "
                    f"derivative, which failed: {error}"
                )
        else:
            left = ctx.left().items()
            placed = ctx.with_left(
                {k: x if isinstance(x, CellOwner) else tree.map_leaves(self._placed, x) for k, x in left}
            )
            try:
                with watching_departures() as departures:
                    found = self._called(
                        placed, [x if x is None else Tensor.at(x.array, *_place(x)) for x in cotangents]
                    )
                given = any(ct is not None and ct.requires_grad for ct in cotangents)
                if not departures.seen and not (given and any(map(_is_cut_off, found))):
                    return [x if x is None or isinstance(x, Tensor) else Tensor.of(x) for x in found]
                reason = f"{name} takes values out of the graph as arrays, numbers or gradients without create_graph"
            except Exception as error:
                reason = f"{name} could not be recorded: {error}"
        return self._once(ctx, cotangents, reason)

    def _called(self, ctx: Context, given: list[Any]) -> list[Any]:
        """What `backward` returns, for each edge: a tensor or an array, or None."""
        for index, (ct, type) in enumerate(zip(given, self._types, strict=True)):
            if ct is None and type is not None and ctx._materializes:
                given[index] = Tensor.of(np.zeros(type.shape, type.dtype))
        before = [None if ct is None else ct.shared_memory().look() for ct in given]
        found = self._function.backward(ctx, *as_tuple(tree.unflatten(self._structure, given)))
        if any(ct is not None and ct.memory.look() != v for ct, v in zip(given, before, strict=True)):
            raise in_place_error(
                f"{self.name}.backward{place_of(self._function.backward)} changes the gradient that it is given"
            )
        return self._wanted.checked(found, self._active, self.line)

    def _placed(self, x: Any) -> Any:
        """What is left on the context, as a tensor with its place in the graph."""
        _, edge, output = self._places.get(id(x), (None, None, None))
        if edge is not None:
            return Tensor.at(x.array, *self.edges[edge])
        return x if output is None else Tensor.at(x.array, self, output)

    def _traced(self, seen: Sequence[Any], cotangents: list[Any]) -> Sequence[Any]:
        """Gradients that can be differentiated, by tracing the Function."""
        for memory, version in self._watched_arguments:
            if memory.look() != version:
                raise self._changed(memory)
        edges = iter(self.edges)
        placed = [Tensor.at(x.array, *next(edges)) for x, a in zip(seen, self._active, strict=True) if a]

        def call(*active: Any) -> list[Any]:
            remaining = iter(active)
            leaves = iter([next(remaining) if a else x for x, a in zip(seen, self._active, strict=True)])
            out = self._function.apply(*self._wanted.rebuilt(leaves))
            return [x for x, t in zip(tree.flatten(out)[0], self._types, strict=True) if _is_differentiable(t)]

        call.__name__ = self.name
        given = [
            Tensor.of(np.zeros(t.shape, t.dtype)) if ct is None else ct
            for ct, t in zip(cotangents, self._types, strict=True)
            if _is_differentiable(t)
        ]
        with without_black_boxes():
            pull = vjp(call, *placed)[1]
        return pull(given)

    def _once(self, ctx: Context, cotangents: list[Any], reason: str) -> Sequence[Any]:
        """Gradients whose own derivative is an error."""
        with no_grad():
            found = self._called(ctx, [None if ct is None else ct.detach() for ct in cotangents])
        more = [_place(ct) for ct in cotangents if ct is not None and ct.requires_grad]
        node = OnceNode(f"{self.name}Backward", [*self.edges, *more], self.line, len(found), reason)
        results: list[Any] = []
        for index, x in enumerate(found):
            y = None if x is None else Tensor.at(np.array(x.array if isinstance(x, Tensor) else x)[()], node, index)
            results.append(y)
        return results

    def release(self, is_root: bool) -> None:
        # What is set as an attribute goes with the graph.
        if self.kept is not None and (self.kept[0]._saved or is_root):
            self.kept, self.watched, self._arguments, self._watched_arguments = None, (), None, []
            self._places = {}


def _kept(x: Any, watched: list[tuple[Memory | Watched, int | bytes]]) -> Any:
    return x if isinstance(x, Tensor) else protected(x, watched)


def _place(x: Tensor) -> tuple[Any, int]:
    """The place of a tensor in the graph."""
    return (x, 0) if x.node is None else (x.node, x.output)


def _watch(x: Any, watched: list[tuple[Memory | Watched, int | bytes]]) -> None:
    if is_plain(x, Tensor | np.ndarray):
        memory = x.shared_memory() if isinstance(x, Tensor) else Watched(x)
        watched.append((memory, memory.look()))


def _is_differentiable(type: ArrayType | None) -> TypeGuard[ArrayType]:
    return type is not None and is_inexact(type.dtype)


def _has_no_derivative(x: Any) -> bool:
    return is_plain(x, Tensor | np.ndarray | np.generic) and not is_inexact(x.dtype)


def _is_cut_off(gradient: Any) -> bool:
    """Whether the gradient lost its graph although the incoming one has one."""
    if gradient is None or (isinstance(gradient, Tensor) and gradient.requires_grad):
        return False
    return bool(np.any(gradient.array if isinstance(gradient, Tensor) else gradient))


class OnceNode(Node):
    """The gradients of a Function that has no second derivative."""

    __slots__ = ("_reason",)

    def __init__(self, name: str, edges: Sequence[Edge], line: Line | None, result_count: int, reason: str) -> None:
        super().__init__(name, edges, line, result_count)
        self._reason = reason

    def pull(self, cotangents: list[Any], needed: Flags | None) -> tuple[Sequence[Any], Sequence[bool]]:
        raise RuntimeError(f"this Function has no second derivative: {self._reason}{at_line(self.line)}")

    def pull_tensors(self, cotangents: list[Any], needed: Flags | None) -> Sequence[Any]:
        return self.pull(cotangents, needed)[0]
