"""Functions of tensors that have been recorded: what `ftrans.autograd.functional` computes derivatives from.

A function is recorded once, on tensors of its own.  Derivatives then go back through its graph, or turn the graph into
a program that the transformations of the core take over.  Nothing is left in the `grad` of any tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ..api.call import name_of, run
from ..base.source import at_line, user_line
from ..core.program import Program
from ..core.types import is_complex, is_inexact
from ..structure.dense import dense
from ..transforms.jvp import jvp as jvp_program
from .backward import grad
from .graph import Node
from .modes import enable_grad, set_grad_enabled
from .tensor import Tensor, held
from .tracing import NoProgram, Notes, noting_operands, program_of

Function = Callable[..., Any]
Tensors = Tensor | tuple[Tensor, ...]
Strategy = Literal["reverse-mode", "forward-mode"]


class Recorded(NamedTuple):
    """A function that has been recorded.

    Attributes:
        inputs: the tensors that it was called with.
        outputs: its results.
        notes: what its operations were given.
        is_tuple_in: whether the user gave a tuple of inputs.
        is_tuple_out: whether the function returned a tuple.
        what: what the user called, and `function`, for whom, for messages.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    notes: Notes
    is_tuple_in: bool
    is_tuple_out: bool
    what: str
    function: Function

    def like_inputs(self, items: Sequence[Any]) -> Any:
        """One item for each input, as a tuple where there was one."""
        return tuple(items) if self.is_tuple_in else items[0]

    def like_outputs(self, items: Sequence[Any]) -> Any:
        """One item for each output, likewise."""
        return tuple(items) if self.is_tuple_out else items[0]

    def results(self, create_graph: bool) -> Any:
        """The results of the function, for the user."""
        return self.like_outputs([x if create_graph else x.detach() for x in self.outputs])


def record(func: Function, inputs: Any, create_graph: bool, what: str) -> Recorded:
    """Call a function on tensors of its own, and record it.

    Args:
        func: the function.
        inputs: what the user gave: a tensor, or a tuple of tensors.
        create_graph: whether derivatives are to be a part of the graph of the inputs.
        what: what the user called, for messages.
    """
    given = _checked(inputs, "inputs", what)
    with enable_grad(), noting_operands() as notes:
        # With a graph, what happens to the inputs stays a part of it.
        own = [x.clone() if create_graph and x.requires_grad else x.detach().requires_grad_() for x in given]
        out = func(*own)
    results = out if isinstance(out, tuple) else (out,)
    for x in results:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{what} takes a function that returns a tensor or a tuple of tensors, but {name_of(func)} returned "
                f"{type(x).__name__}{at_line(user_line())}"
            )
    return Recorded(tuple(own), results, notes, isinstance(inputs, tuple), isinstance(out, tuple), what, func)


def _checked(tensors: Any, name: str, what: str) -> tuple[Tensor, ...]:
    found = tuple([held(x) for x in tensors]) if isinstance(tensors, tuple) else (held(tensors),)
    for x in found:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{name} of {what} is a tensor or a tuple of tensors, but it holds {type(x).__name__}; make it one by "
                f"ftrans.autograd.tensor(x){at_line(user_line())}"
            )
    return found


def vectors_like(v: Any, like: Sequence[Tensor], name: str, what: str) -> list[Tensor]:
    """The vector that a matrix is multiplied with, checked against the tensors that it must be like."""
    if v is None:
        if len(like) != 1 or like[0].size != 1:
            raise RuntimeError(
                f"{what} needs v, of the shape of the {name}: only for a scalar it is 1 by default"
                + at_line(user_line())
            )
        return [Tensor.of(np.ones(like[0].shape, like[0].dtype))]
    found = _checked(v, "v", what)
    if [x.shape for x in found] != [x.shape for x in like]:
        raise RuntimeError(
            f"v of {what} must have the shapes of the {name}: {_shapes(like)}, not {_shapes(found) or 'nothing'}"
            + at_line(user_line())
        )
    return [x if x.dtype == y.dtype else x.astype(y.dtype) for x, y in zip(found, like, strict=True)]


def _shapes(tensors: Sequence[Tensor]) -> str:
    return ", ".join(str(x.shape) for x in tensors)


def _require_number(recorded: Recorded) -> None:
    """Raise unless a function returned a real scalar."""
    if recorded.is_tuple_out or recorded.outputs[0].size != 1:
        given = f"{len(recorded.outputs)} tensors" if recorded.is_tuple_out else str(recorded.outputs[0].array_type)
        raise RuntimeError(
            f"{recorded.what} is for functions that return a scalar, but {name_of(recorded.function)} returned "
            f"{given}; reduce it, for instance by .sum(), or take jacobian of jacobian{at_line(user_line())}"
        )
    if is_complex(recorded.outputs[0].dtype):
        raise RuntimeError(
            f"{recorded.what} is for functions that return a real number, but {name_of(recorded.function)} returned "
            f"{recorded.outputs[0].array_type}; take .real, .imag or abs() of it{at_line(user_line())}"
        )


# Dependence, for `strict`


def require_dependence(recorded: Recorded, what: str = "output") -> None:
    """Raise unless each output depends on each input; `what` an output is called."""
    for j, y in enumerate(recorded.outputs):
        reached = _reached(y)
        for i, x in enumerate(recorded.inputs):
            if id(x if x.node is None else x.node) not in reached:
                raise RuntimeError(
                    f"{what} {j} of {name_of(recorded.function)} does not depend on input {i}, which strict=True does "
                    f"not allow{at_line(user_line())}"
                )


def _reached(y: Tensor) -> set[int]:
    """The nodes and leaves, by `id`, that a tensor was computed from."""
    found: set[int] = set()
    pending: list[Any] = [(y if y.node is None else y.node)] if y.requires_grad else []
    while pending:
        target = pending.pop()
        if id(target) not in found:
            found.add(id(target))
            pending += [t for t, _ in target.edges] if isinstance(target, Node) else []
    return found


def require_graph(derivatives: Sequence[Tensor], recorded: Recorded, kind: str) -> None:
    """Raise unless derivatives that were recorded depend on something."""
    for x in derivatives:
        if not x.requires_grad:
            raise RuntimeError(
                f"the {kind} of {name_of(recorded.function)} does not depend on the inputs, which strict=True does not "
                f"allow{at_line(user_line())}"
            )


# Both ways through a graph


def pulled(
    outputs: Sequence[Tensor], cotangents: Sequence[Any], inputs: Sequence[Tensor], create_graph: bool
) -> list[Tensor]:
    """Cotangents of the inputs, which are zeros where nothing arrives."""
    roots = [(y, ct) for y, ct in zip(outputs, cotangents, strict=True) if y.requires_grad]
    if not roots:
        return [_zeros(x) for x in inputs]
    with set_grad_enabled(create_graph):
        found: Any = grad(
            [y for y, _ in roots],
            inputs,
            [ct for _, ct in roots],
            retain_graph=True,
            create_graph=create_graph,
            materialize_grads=True,
        )
    return list(found)


def _zeros(x: Tensor) -> Tensor:
    return Tensor.of(np.zeros(x.shape, x.dtype))


def pushed(recorded: Recorded, tangents: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    """Tangents of the outputs."""
    try:
        program, values = program_of(recorded.outputs, recorded.inputs, recorded.notes)
    except NoProgram:
        return _pushed_backwards(recorded, tangents, create_graph)
    count = len(recorded.inputs)
    active = (True,) * count + (False,) * (len(values) - count)
    derived = jvp_program(program, active, (True,) * len(program.outputs)).program
    only = Program(derived.name, derived.inputs, derived.eqns, derived.outputs[len(program.outputs) :])
    return _run(derived.derive("tangents", lambda: only), [*values, *tangents], create_graph)


def _pushed_backwards(recorded: Recorded, tangents: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    """The same in reverse mode only: what comes back is linear in the cotangents, so its transpose goes forward."""
    with enable_grad():
        cotangents = [_zeros(y).requires_grad_() for y in recorded.outputs if is_inexact(y.dtype)]
        outputs = [y for y in recorded.outputs if is_inexact(y.dtype)]
        back = pulled(outputs, cotangents, recorded.inputs, True)
        found = iter(pulled(back, tangents, cotangents, create_graph))
    return [next(found) if is_inexact(y.dtype) else _zeros(y) for y in recorded.outputs]


def _run(program: Program, values: Sequence[Any], create_graph: bool) -> list[Tensor]:
    """The results of a program as tensors, recorded where a graph is wanted."""
    with set_grad_enabled(create_graph):
        if not create_graph:
            values = [x.array if isinstance(x, Tensor) else x for x in values]
        return [x if isinstance(x, Tensor) else Tensor.of(x) for x in run(program, values)]


def gradient_of(func: Function, inputs: Any, create_graph: bool, strict: bool, what: str) -> tuple[Recorded, Recorded]:
    """A function that returns a scalar, recorded, and its gradient as a recorded function of the same inputs."""
    recorded = record(func, inputs, create_graph, what)
    _require_number(recorded)
    if strict:
        require_dependence(recorded)
    with enable_grad(), noting_operands() as notes:
        found = pulled(recorded.outputs, [np.ones(y.shape, y.dtype) for y in recorded.outputs], recorded.inputs, True)
    # The graph of the gradient goes through that of the function.
    notes.update(recorded.notes)
    notes.since = recorded.notes.since
    return recorded, recorded._replace(outputs=tuple(found), notes=notes, is_tuple_out=True)


# Jacobians


def blocks_of(
    recorded: Recorded, create_graph: bool, strict: bool, vectorize: bool, strategy: Strategy
) -> list[list[Tensor]]:
    """For each output, for each input, a block of the shape of the output followed by that of the input."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f'strategy is "reverse-mode" or "forward-mode", not {strategy!r}{at_line(user_line())}')
    forward = strategy == "forward-mode"
    tensors, kind, other = (
        (recorded.inputs, "forward mode with complex inputs", "reverse")
        if forward
        else (recorded.outputs, "reverse mode with complex outputs", "forward")
    )
    if any(is_complex(x.dtype) for x in tensors):
        raise TypeError(
            f'{recorded.what} by {kind} would lose half of the derivative; use strategy="{other}-mode", or '
            f"differentiate the real and imaginary parts{at_line(user_line())}"
        )
    if strict:
        require_dependence(recorded)
    blocks = None
    if vectorize:
        blocks = _at_once(recorded, create_graph, forward)
    if blocks is None:
        blocks = _by_columns(recorded, create_graph) if forward else _by_rows(recorded, create_graph)
    if strict and create_graph:
        require_graph([x for row in blocks for x in row], recorded, recorded.what)
    return blocks


def _at_once(recorded: Recorded, create_graph: bool, forward: bool) -> list[list[Tensor]] | None:
    """All blocks in one batched pass through the program of the graph; None where the graph is no program."""
    try:
        program, values = program_of(recorded.outputs, recorded.inputs, recorded.notes)
    except NoProgram:
        return None
    width, count = len(recorded.inputs), len(recorded.outputs)
    active = (True,) * width + (False,) * (len(values) - width)
    derived = dense.jacobian(program, active, count, "forward" if forward else "reverse", None)
    only = Program(derived.name, derived.inputs, derived.eqns, derived.outputs[count:])
    found = _run(derived.derive("blocks", lambda: only), values, create_graph)
    return [
        [_typed(found[j * width + i], x, y, create_graph) for i, x in enumerate(recorded.inputs)]
        for j, y in enumerate(recorded.outputs)
    ]


def _typed(block: Tensor, x: Tensor, y: Tensor, create_graph: bool) -> Tensor:
    """A block in the dtype of the input, or of the output where only that is complex."""
    dtype = y.dtype if is_complex(y.dtype) else x.dtype
    if block.dtype == dtype:
        return block
    with set_grad_enabled(create_graph):
        return block.astype(dtype)


def _by_rows(recorded: Recorded, create_graph: bool) -> list[list[Tensor]]:
    """One backward pass for each element of the outputs."""
    blocks: list[list[Tensor]] = []
    for y in recorded.outputs:
        rows = [pulled([y], [unit], recorded.inputs, create_graph) for unit in _units(y)] if y.requires_grad else []
        blocks.append([_stacked([row[i] for row in rows], y, x, create_graph) for i, x in enumerate(recorded.inputs)])
    return blocks


def _by_columns(recorded: Recorded, create_graph: bool) -> list[list[Tensor]]:
    """One way forward for each element of the inputs."""
    blocks: list[list[Tensor]] = [[] for _ in recorded.outputs]
    for i, x in enumerate(recorded.inputs):
        columns = []
        for unit in _units(x):
            tangents = [unit if k == i else _zeros(other) for k, other in enumerate(recorded.inputs)]
            columns.append(pushed(recorded, tangents, create_graph))
        for j, y in enumerate(recorded.outputs):
            turned = _stacked([column[j] for column in columns], x, y, create_graph)
            with set_grad_enabled(create_graph):
                axes = (*range(x.ndim, x.ndim + y.ndim), *range(x.ndim))
                blocks[j].append(_typed(turned.transpose(axes), x, y, create_graph))
    return blocks


def _units(x: Tensor) -> list[Tensor]:
    """The unit vectors of the space of a tensor."""
    rows = np.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape)
    return [Tensor.of(row) for row in rows]


def _stacked(rows: Sequence[Tensor], outer: Tensor, inner: Tensor, create_graph: bool) -> Tensor:
    shape = (*outer.shape, *inner.shape)
    if not rows:
        return Tensor.of(np.zeros(shape, inner.dtype))
    with set_grad_enabled(create_graph):
        stacked: Any = np.stack(rows)
        return stacked.reshape(shape)
