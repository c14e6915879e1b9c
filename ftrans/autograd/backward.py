"""Backward: cotangents flow from results to leaves, through each node once.

A node is older than the nodes that use it.  So taking the youngest waiting node, again and again, visits each one after
all cotangents of its results have arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, ValuesView
from heapq import heappop, heappush
from itertools import repeat
from typing import Any

import numpy as np

from ..api import anomaly
from ..base.contexts import in_own_context
from ..base.floating_point import warnings_at_user_line
from ..base.source import Line, at_line, attribute, attributed_line, user_line
from ..base.type_questions import is_plain
from ..core.types import is_complex
from .anomalies import check_gradients, check_rule
from .graph import Edge, Node
from .hooks import Hooks
from .modes import note_departure, set_grad_enabled
from .repeats import repeated
from .tensor import Argument, Tensor, as_tensor, held

Tensors = Tensor | Sequence[Tensor]


# What has arrived somewhere: for each result, the sum of the cotangents (an array, or a tensor if the backward pass is
# recorded; None for nothing), followed by whether nobody else holds the array.
_Sums = list[Any]


def _add(sums: _Sums, place: int, ct: Any, is_fresh: bool) -> None:
    """Add a cotangent to what has arrived."""
    total = sums[place]
    if total is None:
        sums[place], sums[place + 1] = ct, is_fresh
    elif sums[place + 1] and type(total) is np.ndarray and total.ndim:
        total += ct
    else:
        sums[place], sums[place + 1] = total + ct, True


class _Sweep:
    """One backward pass through a graph, which runs in a context of its own.

    Attributes:
        leaves: the leaves that were reached, by `id`, each with the sum of what arrived.
        inner: the same for other tensors that a gradient is asked for, by node and result.
    """

    def __init__(self, create_graph: bool, retain_graph: bool, inputs: Sequence[Tensor] | None) -> None:
        self._create_graph = create_graph
        self._retain_graph = retain_graph
        self._inputs = inputs
        self._wanted: set[int] | None = None
        self._heap: list[tuple[int, Node]] = []
        self._waiting: dict[Node, _Sums] = {}
        self.leaves: dict[int, tuple[Tensor, _Sums]] = {}
        self.inner: dict[tuple[Node, int], Any] = {}

    def run(self, roots: Sequence[tuple[Edge, Any]]) -> None:
        """Carry cotangents back from the places of the results."""
        edges, given = [edge for edge, _ in roots], [ct for _, ct in roots]
        root_nodes = {target for target, _ in edges if isinstance(target, Node)}
        wanted = None
        if self._inputs is not None:
            wanted = self._wanted = _leading_to(self._inputs, root_nodes)
            self.inner = {(x.node, x.output): None for x in self._inputs if x.node is not None}
        heap, waiting, outer = self._heap, self._waiting, attributed_line()
        checks = anomaly.is_anomaly_enabled()
        fresh: Iterable[bool] = repeat(False)
        self._arrive(edges, given, fresh)
        while heap:
            node = heappop(heap)[1]
            cts = waiting.pop(node)[::2]
            if node.hooks is not None or self.inner:
                attribute(outer)
                self._show(node, cts)
            needed = None
            if wanted is not None:
                needed = tuple([id(target) in wanted for target, _ in node.edges])
                if True not in needed:
                    # It is an input itself, and nothing behind it is asked for.
                    continue
                needed = needed if False in needed else None
            attribute(node.line or outer)
            try:
                if self._create_graph:
                    outs, fresh = node.pull_tensors(cts, needed), repeat(False)
                else:
                    outs, fresh = node.pull(cts, needed)
            except np.linalg.LinAlgError as error:
                error.add_note(f"  in the backward pass through {node!r}{at_line(node.line)}")
                raise
            if checks:
                check_rule(node, cts, outs)
            if not self._retain_graph:
                node.release(node in root_nodes)
            del cts
            self._arrive(node.edges, outs, fresh)
        attribute(outer)

    def repeat(self, root: Edge, cotangent: Any) -> bool:
        """Carry the cotangent of one result back to all leaves if the graph repeats; whether it does."""
        known = repeated(*root)
        if known is None:
            return False
        way, found = known
        self.leaves = way.go(found, cotangent, not self._retain_graph, attributed_line())
        return True

    def _arrive(self, edges: Sequence[Edge], cts: Sequence[Any], fresh: Iterable[bool]) -> None:
        """Take cotangents to where edges lead."""
        wanted, waiting = self._wanted, self._waiting
        for (target, index), ct, is_fresh in zip(edges, cts, fresh, strict=False):
            if ct is None or (wanted is not None and id(target) not in wanted):
                continue
            sums = waiting.get(target)
            if sums is not None:
                _add(sums, 2 * index, ct, is_fresh)
            elif isinstance(target, Node):
                if target.result_count == 1:
                    waiting[target] = [ct, is_fresh]
                else:
                    waiting[target] = sums = [None] * (2 * target.result_count)
                    sums[2 * index], sums[2 * index + 1] = ct, is_fresh
                heappush(self._heap, (-target.order, target))
            elif id(target) in self.leaves:
                _add(self.leaves[id(target)][1], 0, ct, is_fresh)
            else:
                self.leaves[id(target)] = target, [ct, is_fresh]

    def _show(self, node: Node, cts: list[Any]) -> None:
        """Show the cotangents of the results of a node to its hooks, and keep those that are asked for."""
        if node.hooks is not None:
            for index, ct in enumerate(cts):
                if ct is not None:
                    cts[index] = _hooked(node.hooks, index, ct)
        for place in self.inner:
            if place[0] is node and cts[place[1]] is not None:
                self.inner[place] = cts[place[1]]

    def gradient(self, x: Tensor) -> Tensor | None:
        """What arrived at a tensor, as a tensor of its own."""
        if x.node is not None:
            total, is_fresh = self.inner.get((x.node, x.output)), False
        else:
            arrived = self.leaves.get(id(x))
            if arrived is None:
                return None
            total, is_fresh = arrived[1]
            if x.hooks is not None:
                total, is_fresh = _hooked(x.hooks, 0, total), False
        if total is None or isinstance(total, Tensor):
            return total
        return Tensor(total.copy() if is_plain(total, np.ndarray) and not is_fresh else total, x.array_type)


def _hooked(hooks: Hooks, output: int, gradient: Any) -> Any:
    """What hooks make of the gradient of a result, an array or a tensor.

    Raises:
        RuntimeError: a hook returns something that does not fit.
    """
    # Others may hold the gradient itself, so hooks and `grad` get a copy.
    is_tensor = isinstance(gradient, Tensor)
    current: Any = gradient.clone() if is_tensor else Tensor.of(gradient.copy())
    for hook, line in hooks.at(output):
        new = hook(current)
        if new is not None:
            current = _replacement(new, current, line)
    x = hooks.retaining(output)
    if x is not None:
        x.add_grad(current)
    return current if is_tensor else current.array


def _replacement(new: Any, current: Tensor, line: Line | None) -> Tensor:
    """What a hook returned, as a gradient."""
    try:
        found = new if isinstance(new, Tensor) else as_tensor(new)
    except (TypeError, ValueError):
        found = None
    if found is None or found.shape != current.shape or found.dtype.kind not in "biufc":
        given = f"{type(new).__name__}" if found is None else f"a gradient of shape {found.shape}"
        raise RuntimeError(
            f"a hook returned {given} in place of a gradient of shape {current.shape}; return an array of that shape, "
            f"or None to leave the gradient as it is{at_line(line)}"
        )
    return found if found.dtype == current.dtype else found.astype(current.dtype)


def _leading_to(inputs: Sequence[Tensor], roots: Iterable[Any]) -> set[int]:
    """The nodes and leaves, by `id`, through which a cotangent gets to one of the inputs; the inputs among them."""
    wanted = {id(x) if x.node is None else id(x.node) for x in inputs}
    nodes: dict[Node, None] = {}
    pending = [x for x in roots if isinstance(x, Node)]
    while pending:
        node = pending.pop()
        if node not in nodes:
            nodes[node] = None
            pending += [target for target, _ in node.edges if isinstance(target, Node)]
    for node in sorted(nodes, key=lambda n: n.order):
        if any([id(target) in wanted for target, _ in node.edges]):
            wanted.add(id(node))
    return wanted


def _swept(
    tensors: Sequence[Tensor],
    cotangents: Sequence[Any],
    inputs: Sequence[Tensor] | None,
    create_graph: bool,
    retain_graph: bool | None,
) -> _Sweep:
    if not create_graph:
        note_departure()
    sweep = _Sweep(create_graph, create_graph if retain_graph is None else retain_graph, inputs)
    roots: list[tuple[Edge, Any]] = []
    for x, ct in zip(tensors, cotangents, strict=True):
        seed = _seed(x, ct)
        edge = (x, 0) if x.node is None else (x.node, x.output)
        roots.append((edge, seed if create_graph else seed.array))
    checks = anomaly.is_anomaly_enabled()
    with set_grad_enabled(create_graph), anomaly.without_warnings() if checks else warnings_at_user_line():
        if len(roots) != 1 or checks or create_graph or inputs is not None or not sweep.repeat(*roots[0]):
            sweep.run(roots)
    if checks:
        found = [*(arrived[0] for _, arrived in sweep.leaves.values()), *sweep.inner.values()]
        check_gradients(tensors, [ct for _, ct in roots], [x for x in found if x is not None])
    return sweep


def _seed(x: Tensor, given: Any) -> Tensor:
    """The cotangent to start with."""
    if not isinstance(x, Tensor):
        raise TypeError(f"backward starts from tensors, not from {type(x).__name__}{at_line(user_line())}")
    if not x.requires_grad:
        raise RuntimeError(
            f"this tensor ({x.array_type}) does not require a gradient: it was not computed from one that does, or in "
            "a way whose derivative is zero everywhere, such as np.sign or x**0; create the leaf by tensor(..., "
            f"requires_grad=True), and compute outside of no_grad(){at_line(user_line())}"
        )
    if given is None:
        if x.array_type.size != 1:
            raise RuntimeError(
                f"backward of a tensor that is not a scalar ({x.array_type}) needs the gradient of the objective with "
                "respect to it: write y.backward(gradient) with an array of the same shape, or reduce it first, "
                f"for instance by y.sum().backward(){at_line(user_line())}"
            )
        if is_complex(x.dtype):
            raise RuntimeError(
                f"backward starts from a real number, not from {x.array_type}; take .real, .imag or abs() of it"
                + at_line(user_line())
            )
        return Tensor.of(np.ones(x.shape, x.dtype)[()])
    ct = as_tensor(given)
    if ct.shape != x.shape:
        raise RuntimeError(
            f"the gradient of a tensor has its shape: {x.shape}, but one of shape {ct.shape} was given"
            + at_line(user_line())
        )
    if is_complex(ct.dtype) and not is_complex(x.dtype):
        raise RuntimeError(f"the gradient of a real tensor is real, not {ct.array_type}{at_line(user_line())}")
    return ct if ct.dtype == x.dtype else ct.astype(x.dtype)


def _as_list(x: Any) -> list[Any]:
    return [held(y) for y in x] if isinstance(x, list | tuple | Iterator | ValuesView) else [held(x)]


def _paired(tensors: Any, cotangents: Any, what: str) -> list[Any]:
    """A cotangent, or None, for each tensor."""
    count = len(_as_list(tensors))
    if cotangents is None:
        return [None] * count
    # One tensor may come with its gradient, or with a sequence of one gradient.
    is_sequence = isinstance(cotangents, tuple | list)
    if isinstance(tensors, Tensor) and not (is_sequence and np.shape(cotangents[0]) == tensors.shape):
        return [cotangents]
    given = list(cotangents) if is_sequence else [cotangents]
    if len(given) != count:
        raise RuntimeError(f"{count} tensors need as many {what}, not {len(given)}{at_line(user_line())}")
    return given


@in_own_context
def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Compute the gradients of tensors with respect to the leaves of their graph, and accumulate them in `grad`.

    Args:
        tensors: one tensor, or several, whose gradients are summed.
        grad_tensors: for each of them, the gradient of the objective with respect to it, of the same shape; may be
            left out, or None, for a tensor of one element.
        retain_graph: whether to keep the graph for another backward pass; by default only if `create_graph`.
        create_graph: whether to record the backward pass, so that the gradients can be differentiated.
        inputs: the tensors, or parameters of modules, whose `grad` to compute; all leaves by default.

    Raises:
        RuntimeError: a tensor requires no gradient, or has several elements and no gradient is given; the graph has
            been freed, or a value that it needs was changed in place.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor([1.0, 2.0], requires_grad=True)
        >>> ft.autograd.backward((x * x).sum())
        >>> x.grad
        tensor([2., 4.])
    """
    targets = None if inputs is None else _checked_inputs(_as_list(inputs))
    roots = _as_list(tensors)
    sweep = _swept(roots, _paired(tensors, grad_tensors, "grad_tensors"), targets, create_graph, retain_graph)
    reached = [x for x, _ in sweep.leaves.values()] if targets is None else {id(x): x for x in targets}.values()
    with set_grad_enabled(create_graph):
        for x in reached:
            if x.node is not None and x.node.hooks is not None and x.node.hooks.retains(x):
                # Its gradient has been left there on the way.
                continue
            gradient = sweep.gradient(x)
            if gradient is not None:
                # A recorded gradient may be that of other tensors as well, or what the user gave.
                x.add_grad(gradient.clone() if create_graph else gradient)


@in_own_context
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Compute the gradients of tensors with respect to others, and return them; no `grad` is changed.

    Args:
        outputs: one tensor, or several, whose gradients are summed.
        inputs: the tensors to differentiate with respect to: leaves, intermediate tensors, or parameters of a module,
            such as `list(model.parameters())`.
        grad_outputs: for each output, the gradient of the objective with respect to it, of the same shape; may be left
            out, or None, for a tensor of one element.
        retain_graph: whether to keep the graph for another backward pass; by default only if `create_graph`.
        create_graph: whether to record the backward pass, so that the gradients can be differentiated.
        only_inputs: True; `backward` is what accumulates gradients in other leaves.
        allow_unused: whether to return None for an input that the outputs do not depend on, instead of raising.
        materialize_grads: whether to return zeros for such an input.

    Returns:
        A tuple with one gradient for each input.

    Raises:
        RuntimeError: as `backward`; or the outputs do not depend on an input.
        ValueError: `only_inputs` is False.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor(3.0, requires_grad=True)
        >>> (first,) = ft.autograd.grad(x**3, x, create_graph=True)
        >>> ft.autograd.grad(first, x)
        (tensor(18.),)
    """
    if not only_inputs:
        raise ValueError(
            "grad returns gradients and accumulates none, so only_inputs is True; write outputs.backward() to "
            f"accumulate the gradients of all leaves{at_line(user_line())}"
        )
    targets = _checked_inputs(_as_list(inputs))
    roots = _as_list(outputs)
    sweep = _swept(roots, _paired(outputs, grad_outputs, "grad_outputs"), targets, create_graph, retain_graph)
    gradients: list[Tensor | None] = []
    # What is recorded may pass through as it is: what the user gave, or the gradient of another input.
    seen = {id(x) for x in ([] if grad_outputs is None else _as_list(grad_outputs))}
    with set_grad_enabled(create_graph):
        for index, x in enumerate(targets):
            gradient = sweep.gradient(x)
            if gradient is None and materialize_grads:
                gradient = Tensor.of(np.zeros(x.shape, x.dtype))
            if gradient is None and not allow_unused:
                raise RuntimeError(
                    f"the outputs do not depend on input {index} ({x.array_type}); leave it out, or write "
                    f"allow_unused=True to get None for it{at_line(user_line())}"
                )
            if gradient is not None and id(gradient) in seen:
                gradient = gradient.clone()
            seen.add(id(gradient))
            gradients.append(gradient)
    return tuple(gradients)


def _checked_inputs(inputs: Sequence[Any]) -> list[Tensor]:
    if not inputs:
        raise RuntimeError(f"inputs is empty: there is nothing to differentiate with respect to{at_line(user_line())}")
    # What a Function has saved of its arguments stands for them.
    inputs = [x.window.original if isinstance(x, Tensor) and isinstance(x.window, Argument) else x for x in inputs]
    for index, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            raise TypeError(f"input {index} is not a tensor but of type {type(x).__name__}{at_line(user_line())}")
        if not x.requires_grad:
            raise RuntimeError(
                f"input {index} ({x.array_type}) does not require a gradient; create it with requires_grad=True"
                + at_line(user_line())
            )
    return inputs
