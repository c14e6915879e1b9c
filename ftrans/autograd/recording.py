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
from ..core.types import ArrayType
from ..run.places import NUMPY
from .derivation import Derivative, OfProgram
from .graph import Edge
from .memory import Memory, Watched, protected
from .modes import current_mode
from .operation_node import OperationNode
from .operations import Call, Operation, node_name, operation_for, operation_of, stripped
from .tensor import Tensor, inference_error
from .tracing import Note, current_notes
from .views import enter_view

# The functions that `nn.autocast` is about.
_PRODUCTS = frozenset(
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
    if function in _PRODUCTS and product_dtype() is not None:
        args = rounded(read(args))
        with exact_products():
            return apply(function, args, kwargs, name)
    mode = current_mode()
    key: Any = None
    if mode.records and not kwargs:
        key, values = _quick_key(function, args)
        if key is not None:
            derivative = _quick.get(key)
            if derivative is not None:
                array = run_numpy(function, args, kwargs, values, kwargs, name)
                result = Tensor(array, derivative.out_types[0])
                connect(name, derivative, [x for x in args if type(x) is Tensor], (result,))
                return result
    if holds_cell((args, kwargs)):
        return apply(function, read(args), read(kwargs), name)
    tensors: list[Tensor] = []
    plain_args, plain_kwargs = stripped((args, kwargs), tensors)
    result = run_numpy(function, args, kwargs, plain_args, plain_kwargs, name)
    arrays, structure = ([result], tree.LEAF) if type(result) is np.ndarray else tree.flatten(result)
    if mode.records and any([x.requires_grad for x in tensors]):
        call = Call(function, args, kwargs)
        operation = operation_for(call, name)
        operands = [*call.leaves, *operation.numbers(call), *operation.constants]
        results = record(operation, operands, arrays)
        if key is not None and structure is tree.LEAF and operation.is_simple:
            _enter_quick(key, operation, results[0])
    else:
        results = [_unrecorded(x, mode.infers) for x in arrays]
    for index, (x, array) in enumerate(zip(results, arrays, strict=True)):
        if isinstance(x, Tensor) and is_plain(array, np.ndarray):
            place = None if structure is tree.LEAF else index
            enter_view(x, array, tensors, function, args, kwargs, place, not mode.records)
    return tree.unflatten(structure, results)


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


# Derivatives of frequent calls: those whose arguments are tensors and numbers, and whose result is one new array.
_quick: dict[Any, Derivative] = {}
_MOST_QUICK = 10_000


def _quick_key(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The key of such a call, and its arguments with arrays for tensors; the key is None for another call."""
    key: list[Any] = [function]
    values: list[Any] = []
    for x in args:
        cls = type(x)
        if cls is Tensor:
            key.append(x.array_type)
            key.append(x.requires_grad)
            values.append(x.array)
        elif (cls is float or cls is int) and x:
            key.append(cls)
            key.append(x)
            values.append(x)
        else:
            return None, values
    return tuple(key), values


def _enter_quick(key: Any, operation: Operation, result: Any) -> None:
    if isinstance(result, Tensor) and result.array_type is operation.program.out_types[0]:
        if len(_quick) > _MOST_QUICK:
            _quick.clear()
        _quick[key] = operation.derivative(tuple(key[i + 1] for i, x in enumerate(key) if isinstance(x, ArrayType)))


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
    edges = []
    for x, is_active in zip(operands, derivative.active, strict=True):
        if is_active:
            edges.append(Edge(x, 0) if x.node is None else Edge(x.node, x.output))
        if type(x) is Tensor and x.is_inferred:
            raise inference_error()
    watched: list[tuple[Memory | Watched, int | bytes]] = []
    kept = [_kept(operands[i], watched) for i in derivative.inputs]
    for j in derivative.outputs:
        kept.append(_kept(results[j], watched))
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


def _kept(x: Any, watched: list[tuple[Memory | Watched, int | bytes]]) -> Any:
    if not isinstance(x, Tensor):
        return protected(x, watched)
    if type(x.array) is np.ndarray:
        memory = x.memory
        if memory is None:
            memory = x.memory = Memory()
            watched.append((memory, 0))
        else:
            watched.append((memory, memory.look()))
    return x.array


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
    run = compiled or NUMPY.run
    values = [x.array if isinstance(x, Tensor) else x for x in args]
    mode = current_mode()
    if not (mode.records and any([isinstance(x, Tensor) and x.requires_grad for x in args])):
        return [_unrecorded(np.asarray(x)[()], mode.infers) for x in run(program, values)]
    operation = operation_of(program, compiled)
    derivative = operation.derivative(tuple([isinstance(x, Tensor) and x.requires_grad for x in args]))
    assert isinstance(derivative, OfProgram)
    outs = run(derivative.forward, values)
    count = len(program.outputs)
    results = [Tensor.of(x) for x in outs[:count]]
    connect(node_name(name) if name else operation.name, derivative, args, results, outs[count:])
    return results
