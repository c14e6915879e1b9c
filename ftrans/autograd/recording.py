"""Recording: what happens when a function of NumPy, or a program, is applied to tensors.

NumPy computes the values at once.  If recording is on and a tensor among the arguments requires a gradient, the results
also get a node, and with it a place in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import tree
from ..base.cell import holds_cell, read
from ..base.floating_point import warnings_at_user_line
from ..base.narrow_products import exact_products, product_dtype, rounded
from ..base.observe import current_observer
from ..base.source import user_line
from ..base.type_questions import is_plain
from ..core.primitive import MissingRule
from ..core.program import Program
from ..run.places import NUMPY
from .derivation import Derivative, OfProgram
from .frequent import add_to_key, enter, kept_array, known
from .graph import Edge
from .memory import Memory, Watched, protected
from .modes import current_mode
from .operation_node import OperationNode
from .operations import Call, Operation, node_name, operation_for, operation_of, stripped
from .tensor import Tensor, inference_error
from .tracing import Note, current_notes
from .views import enter_view

# The functions that `nn.autocast` is about.
PRODUCTS = frozenset(
    [
        np.matmul, np.dot, np.inner, np.vdot, np.tensordot, np.einsum, np.vecdot, np.linalg.matmul,
        np.linalg.tensordot, np.linalg.vecdot, np.linalg.multi_dot,
    ]
)  # fmt: skip


def apply(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """The result of a function of NumPy on tensors, as tensors.

    Args:
        function: the function.
        args: its arguments, with tensors among them or in lists among them.
        kwargs: its keyword arguments.
        name: name of its nodes.
    """
    if function in PRODUCTS and product_dtype() is not None:
        args = rounded(read(args))
        with exact_products():
            return apply(function, args, kwargs, name)
    mode = current_mode()
    tensors: list[Tensor] = []
    plain_args: Any = []
    plain_kwargs: Any = kwargs
    parts: list[Any] = [function]
    numbers: list[Any] = []
    is_known, is_recorded = True, False
    for x in args:
        if type(x) is Tensor:
            if x.window is not None:
                x._settle()
            is_active = (x.node is not None or x.asked is not False) and mode.records
            is_recorded = is_recorded or is_active
            tensors.append(x)
            plain_args.append(x.array)
            parts.append(x.array_type)
            parts.append(is_active)
            is_known = is_known and not x.is_inferred
        else:
            plain_args.append(x)
            is_known = is_known and add_to_key(x, parts, numbers)
    for option, x in kwargs.items():
        parts.append(option)
        is_known = is_known and add_to_key(x, parts, numbers)
    if not is_known:
        if holds_cell((args, kwargs)):
            return apply(function, read(args), read(kwargs), name)
        tensors = []
        plain_args, plain_kwargs = stripped((args, kwargs), tensors)
        is_recorded = mode.records and any([x.requires_grad for x in tensors])
    key = tuple(parts)
    if is_recorded and is_known:
        kinds = known(key)
        if kinds is not None and current_observer() is None and current_notes() is None:
            kind = kinds.exact.get(tuple(numbers)) or kinds.general
            if kind is not None:
                return kind.record(tensors, plain_args, kwargs, numbers)
    result = run_numpy(function, args, kwargs, plain_args, plain_kwargs, name)
    arrays, structure = ([result], tree.LEAF) if type(result) is np.ndarray else tree.flatten(result)
    if is_recorded:
        call = Call(function, args, kwargs)
        operation = operation_for(call, name)
        operands = [*call.leaves, *operation.numbers(call), *operation.constants]
        results = record(operation, operands, arrays)
        if is_known and structure is tree.LEAF and _is_frequent(operation, args, results[0]):
            enter(key, tuple(numbers), function, operation, [x.requires_grad for x in tensors])
    else:
        results = [_unrecorded(x, mode.infers) for x in arrays]
    for index, (x, array) in enumerate(zip(results, arrays, strict=True)):
        if isinstance(x, Tensor) and is_plain(array, np.ndarray):
            place = None if structure is tree.LEAF else index
            enter_view(x, array, tensors, function, args, kwargs, place, not mode.records)
    return tree.unflatten(structure, results)


def _is_frequent(operation: Operation, args: tuple[Any, ...], result: Any) -> bool:
    """Whether calls that were recorded as an operation are described by it completely."""
    if operation.constants or operation.mutated or not isinstance(result, Tensor) or result.node is None:
        return False
    is_view_of_first = type(args[0]) is Tensor and len(operation.program.inputs) == 1
    return result.array_type is operation.program.out_types[0] and (operation.makes_array or is_view_of_first)


def run_numpy(
    function: Callable[..., Any], args: Any, kwargs: Any, plain_args: Any, plain_kwargs: Any, name: str
) -> Any:
    """What NumPy computes; `plain_args` are `args` with arrays for tensors."""
    with warnings_at_user_line():
        observer = current_observer()
        if observer is None:
            return function(*plain_args, **plain_kwargs)
        arrays = [x for x in plain_args if is_plain(x, np.ndarray | np.generic)]
        try:
            program = operation_for(Call(function, args, kwargs), name).program
        except MissingRule:
            return function(*plain_args, **plain_kwargs)
        return observer.operation(name, program, arrays, lambda: function(*plain_args, **plain_kwargs))


def _unrecorded(array: Any, infers: bool) -> Any:
    if not is_plain(array, np.ndarray | np.generic):
        return array
    x = Tensor.of(array)
    x.is_inferred = infers
    return x


def record(operation: Operation, operands: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """Wrap the results of an operation in tensors, with a node for it.

    Args:
        operation: the operation.
        operands: what it was given: tensors, arrays and numbers.
        arrays: its results, as NumPy computed them.
    """
    derivative = operation.derivative(tuple([isinstance(x, Tensor) and x.requires_grad for x in operands]))
    results = [Tensor.of(x) if is_plain(x, np.ndarray | np.generic) else x for x in arrays]
    connect(operation.name, derivative, operands, results)
    return results


def connect(
    name: str,
    derivative: Derivative,
    operands: Sequence[Any],
    results: Sequence[Any],
    extras: Sequence[Any] = (),
) -> None:
    """Give the results of an operation their place in the graph, by a node that keeps what its derivative needs.

    Args:
        name: name of the node.
        derivative: the derivative of the operation.
        operands: what the operation was given.
        results: its results.
        extras: what else is kept, if it has been computed already.
    """
    out_active = derivative.out_active
    if True not in out_active:
        return
    edges: list[Edge] = []
    for x, is_active in zip(operands, derivative.active, strict=True):
        if is_active:
            edges.append((x, 0) if x.node is None else (x.node, x.output))
        if type(x) is Tensor and x.is_inferred:
            raise inference_error()
    watched: list[tuple[Memory | Watched, int | bytes]] = []
    kept: list[Any] = []
    for i in derivative.inputs:
        x = operands[i]
        kept.append(kept_array(x, watched) if type(x) is Tensor else protected(x, watched))
    for i in derivative.outputs:
        x = results[i]
        kept.append(kept_array(x, watched) if type(x) is Tensor else protected(x, watched))
    if derivative.extras is not None:
        extras = derivative.extras(*[x.array if isinstance(x, Tensor) else x for x in (*operands, *results)])
    kept += extras
    node = OperationNode(name, edges, user_line(), derivative, kept, watched)
    notes = current_notes()
    if notes is not None:
        notes[node] = [Note.of(x) for x in operands]
    for index, x in enumerate(results):
        if out_active[index]:
            x.node = node
            x.output = index


# Programs


def apply_program(
    program: Program, args: Sequence[Any], compiled: Callable[..., Any] | None = None, name: str | None = None
) -> list[Any]:
    """The results of a program on tensors, as tensors.

    Args:
        program: the program.
        args: tensors, arrays and numbers.
        compiled: what runs a program on arrays, where that is not the NumPy evaluator.
        name: name of its node; that of the program by default.
    """
    values: list[Any] = []
    requiring: list[bool] = []
    for x in args:
        if isinstance(x, Tensor):
            if x.window is not None:
                x._settle()
            values.append(x.array)
            requiring.append(x.node is not None or x.asked is not False)
        else:
            values.append(x)
            requiring.append(False)
    mode, active = current_mode(), tuple(requiring)
    if not (mode.records and True in active):
        return [_unrecorded(np.asarray(x)[()], mode.infers) for x in (compiled or NUMPY.run)(program, values)]
    operation = operation_of(program, compiled)
    derivative = operation.derivative(active)
    assert isinstance(derivative, OfProgram)
    outs = derivative.run_forward(values)
    results = [Tensor(x, type) for x, type in zip(outs, derivative.out_types, strict=False)]
    connect(node_name(name) if name else operation.name, derivative, args, results, outs[len(results) :])
    return results
