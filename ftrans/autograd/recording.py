"""Recording: what happens when a function of NumPy, or a program, is applied to tensors.

NumPy computes the values at once.  If recording is on and a tensor among the arguments requires a gradient, the results
also get a node, and with it a place in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import tree
from ..core.interpret import evaluate
from ..core.observe import current_observer
from ..core.primitive import MissingRule
from ..core.program import Program
from ..core.source import Line, at_line, user_line
from ..core.straightline import warnings_at_user_line
from ..core.types import ArrayType
from ..transforms.simplify import simplify
from .derivation import Derivative, OfProgram
from .graph import Edge, Memory, Node, OperationNode, Watched, may_be_written, protected
from .modes import current_mode
from .operations import PLACE, Call, Operation, filled, mapped, node_name, operation_for, operation_of, stripped
from .tensor import Tensor, inference_error
from .tracing import Note, current_notes
from .windows import Fixed, Path, Step, Window, through_path

# Functions that change their first argument.
_CHANGING = {np.copyto, np.put, np.putmask, np.place, np.put_along_axis, np.fill_diagonal}


def apply(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """The result of a function of NumPy on tensors, as tensors.

    Args:
        function: the function.
        args: its arguments, with tensors among them or in lists among them.
        kwargs: its keyword arguments.
        name: what nodes of it are called.
    """
    mode = current_mode()
    key: Any = None
    if mode.records and not kwargs:
        key, values = _quick_key(function, args)
        if key is not None:
            derivative = _quick.get(key)
            if derivative is not None:
                array = _run(function, args, kwargs, values, kwargs, name)
                result = Tensor(array, derivative.program.out_types[0])
                connect(name, derivative, [x for x in args if x.__class__ is Tensor], (result,))
                return result
    if "out" in kwargs and kwargs["out"] is not None:
        return _apply_to_out(function, args, kwargs, name)
    if function in _CHANGING:
        return change(function, args[0], (PLACE, *args[1:]), kwargs, name)
    if function is np.nan_to_num and not (args[1] if len(args) > 1 else kwargs.get("copy", True)):
        change(function, args[0], (PLACE, *args[1:]), kwargs, name)
        return args[0]
    # Leave to overwrite the input need not be taken.
    kwargs = {k: x for k, x in kwargs.items() if k != "overwrite_input"}
    tensors: list[Tensor] = []
    plain_args, plain_kwargs = stripped((args, kwargs), tensors)
    result = _run(function, args, kwargs, plain_args, plain_kwargs, name)
    arrays, structure = ([result], tree.LEAF) if result.__class__ is np.ndarray else tree.flatten(result)
    if mode.records and any([x.requires_grad for x in tensors]):
        call = Call(function, args, kwargs)
        operation = operation_for(call, name)
        results = record(operation, [*call.leaves, *operation.numbers(call), *operation.constants], arrays)
        if key is not None and structure is tree.LEAF and operation.is_simple:
            _enter_quick(key, operation, results[0])
    else:
        results = [_unrecorded(x, mode.infers) for x in arrays]
    for index, (x, array) in enumerate(zip(results, arrays, strict=True)):
        if isinstance(x, Tensor) and isinstance(array, np.ndarray):
            base = _base_of(array, tensors)
            if base is not None:
                step = _step(function, args, kwargs, None if structure is tree.LEAF else index)
                _make_view(x, base, step, not mode.records)
            elif (array.base is not None or structure is not tree.LEAF) and _is_lent(array, (args, kwargs)):
                x.shared_memory().lend(array)
    return tree.unflatten(structure, results)


def _run(function: Callable[..., Any], args: Any, kwargs: Any, plain_args: Any, plain_kwargs: Any, name: str) -> Any:
    """What NumPy computes; `plain_args` are `args` with arrays for tensors."""
    with warnings_at_user_line():
        observer = current_observer()
        if observer is None:
            return function(*plain_args, **plain_kwargs)
        arrays = [x for x in plain_args if isinstance(x, np.ndarray | np.generic)]
        try:
            program = operation_for(Call(function, args, kwargs), name).program
        except MissingRule:
            return function(*plain_args, **plain_kwargs)
        return observer.operation(name, program, arrays, lambda: function(*plain_args, **plain_kwargs))


# Derivatives of frequent calls: those whose arguments are tensors and numbers, and whose result is one new array.
_quick: dict[Any, Derivative] = {}
_MOST_QUICK = 10_000


def _quick_key(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """What such a call is known by, and its arguments with arrays for tensors; None for another call."""
    key: list[Any] = [function]
    values: list[Any] = []
    for x in args:
        cls = x.__class__
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
    if not isinstance(array, np.ndarray | np.generic):
        return array
    x = Tensor.of(array)
    x.is_inferred = infers
    return x


def record(operation: Operation, operands: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """Tensors for the results of an operation, with a node for it.

    Args:
        operation: the operation.
        operands: what it was given: tensors, arrays and numbers.
        arrays: its results, as NumPy computed them.
    """
    derivative = operation.derivative(tuple([isinstance(x, Tensor) and x.requires_grad for x in operands]))
    results = [Tensor.of(x) if isinstance(x, np.ndarray | np.generic) else x for x in arrays]
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
        name: what the node is called.
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
            node = x.node
            edges.append(Edge(x, 0) if node is None else Edge(node, x.output))
        if x.__class__ is Tensor and x.is_inferred:
            raise inference_error()
    watched: list[tuple[Memory | Watched, int]] = []
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


def _kept(x: Any, watched: list[tuple[Memory | Watched, int]]) -> Any:
    if not isinstance(x, Tensor):
        return protected(x, watched)
    if x.array.__class__ is np.ndarray:
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
        name: what its node is called; as the program by default.
    """
    run = compiled or (lambda program, args: evaluate(simplify(program), args))
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


# Views


def _base_of(array: np.ndarray[Any, Any], tensors: Sequence[Tensor]) -> Tensor | None:
    """The tensor of which a result is a view."""
    for x in tensors:
        if array is x.array or (array.base is not None and np.may_share_memory(array, x.array)):
            return x
    return None


def _is_lent(array: np.ndarray[Any, Any], arguments: Any) -> bool:
    """Whether a result is a view of a plain array among the arguments, which its owner may write to."""
    found: list[Any] = []
    mapped(arguments, lambda x: found.append(x) if isinstance(x, np.ndarray) else None)
    return any(may_be_written(x) and np.may_share_memory(array, x) for x in found)


def _step(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], index: int | None
) -> Step | None:
    """The call of a view as a step from its base; None where it depends on more than its base."""
    call = Call(function, args, kwargs)
    return Step(call, index) if call.key is not None and len(call.leaves) == 1 else None


def _make_view(x: Tensor, base: Tensor, step: Step | None, is_detached: bool) -> None:
    memory = x.memory = base.shared_memory()
    window = base.window
    x.is_inferred = x.is_inferred or base.is_inferred
    if window is None:
        path = None if step is None else Path(step)
        x.window = Window(base, path, memory.version, is_detached)
    else:
        path = None if step is None or window.path is None else window.path.then(step)
        x.window = Window(window.base, path, memory.version, is_detached or window.is_detached)


def settle(x: Tensor) -> None:
    """Give a view its place in the graph anew, if its memory has been changed since it got it."""
    window = x.window
    assert window is not None
    if x.memory is None or window.version == x.memory.version:
        return
    window.version = x.memory.version
    if window.is_detached:
        return
    base = window.base
    if base.memory is not x.memory:
        raise _unknown_view_error(x)
    if not base.requires_grad:
        x.node = None
    elif window.path is None or x.asked is not False:
        raise _unknown_view_error(x)
    else:
        operation = operation_for(Call(through_path, (base, window.path, Fixed(_same), ((PLACE,), {})), {}), "view")
        node, output = x.node, x.output
        connect("View", operation.derivative((True,)), [base], [x])
        _follow(x, node, output)


def _follow(x: Tensor, node: Node | None, output: int) -> None:
    """Leave the gradient in the `grad` of a tensor where it is now, if that was asked for where it was before."""
    if node is not None and node.hooks is not None:
        node.hooks.follow(x, output)


def _same(x: Any) -> Any:
    return x


def _unknown_view_error(x: Tensor) -> RuntimeError:
    return RuntimeError(
        f"a tensor ({x.array_type}) shares its memory with another one in a way that the graph cannot follow, and one "
        f"of them was changed in place; take a copy: x.clone(){at_line(user_line())}"
    )


# Changes in place


def _apply_to_out(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """A call whose result is put into an array that is given."""
    out = kwargs["out"]
    if out.__class__ is tuple:
        if len(out) != 1:
            raise TypeError(f"out= of {name} takes one tensor{at_line(user_line())}")
        (out,) = out
    if isinstance(out, Tensor):
        change(function, out, args, {**kwargs, "out": PLACE}, name)
        return out
    tensors: list[Tensor] = []
    plain = stripped((args, kwargs), tensors)
    if current_mode().records and any(x.requires_grad for x in tensors):
        raise TypeError(
            f"{name} cannot put the result of a tensor that requires a gradient into a NumPy array, which would lose "
            f"it; leave out=, or give a tensor: ftrans.autograd.empty_like(x){at_line(user_line())}"
        )
    function(*plain[0], **plain[1])
    return out


def change(function: Callable[..., Any], target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """Call a function that changes `target` in place; return what it returns.

    Args:
        function: the function.
        target: what it changes.
        args: its arguments, with `PLACE` for the target.
        kwargs: its keyword arguments, likewise.
        name: what nodes of it are called.
    """
    tensors: list[Tensor] = []
    plain_args, plain_kwargs = stripped((args, kwargs), tensors)
    if "out" in kwargs and not isinstance(function, np.ufunc):
        # Some functions write while they still read.
        plain_args = mapped(plain_args, lambda x: x.copy() if _overlaps(x, target) else x)

    def run() -> Any:
        array = target.owned_array() if isinstance(target, Tensor) else target
        given, plain = filled((args, kwargs), target), filled((plain_args, plain_kwargs), array)
        return _run(function, given[0], given[1], plain[0], plain[1], name)

    mode = current_mode()
    if not isinstance(target, Tensor):
        if mode.records and any(x.requires_grad for x in tensors):
            raise TypeError(
                f"{name} cannot put a tensor that requires a gradient into a NumPy array, which would lose it; make "
                f"the array a tensor: ftrans.autograd.tensor(a){at_line(user_line())}"
            )
        return run()
    window = target.window
    is_recorded = mode.records and (target.requires_grad or any([x.requires_grad for x in tensors]))
    if target.is_inferred and not mode.infers:
        raise inference_error()
    if not is_recorded:
        return _written(target, run)
    root = target if window is None else window.base
    _check_changeable(target, root, name)
    if window is None:
        call = Call(function, *filled((args, kwargs), target))
    else:
        assert window.path is not None
        call = Call(through_path, (root, window.path, Fixed(function), (args, kwargs)), {})
    operation = operation_for(call, name)
    operands = [*call.leaves, *operation.numbers(call), *operation.constants]
    derivative = operation.derivative(tuple([isinstance(x, Tensor) and x.requires_grad for x in operands]))
    if len(operation.mutated) != 1 or operands[operation.mutated[0]] is not root:
        raise _unknown_view_error(target)
    keeps_all = derivative.extras is not None or current_notes() is not None
    operands = [_as_before(x, root) if keeps_all or i in derivative.inputs else x for i, x in enumerate(operands)]
    result = _written(target, run)
    node, output = root.node, root.output
    if any(derivative.out_active):
        connect(operation.name, derivative, operands, [root])
        _follow(root, node, output)
    else:
        root.node, root.output = None, 0
    return result


def _as_before(x: Any, root: Tensor) -> Any:
    """An operand that keeps its value while the memory of `root` is written to."""
    array = x.array if isinstance(x, Tensor) else x
    if x is not root and not _overlaps(array, root):
        return x
    if not isinstance(x, Tensor):
        return array.copy()
    before = Tensor.of(array.copy())
    before.node, before.output, before.asked, before.is_inferred = x.node, x.output, x.asked, x.is_inferred
    return before


def _overlaps(array: Any, target: Tensor) -> bool:
    return isinstance(array, np.ndarray) and np.may_share_memory(array, target.array)


def _written(target: Tensor, write: Callable[[], Any]) -> Any:
    """Write to the memory of a tensor, and count it."""
    if target.window is None and target.memory is None:
        target.owned_array()
    result = write()
    if target.memory is not None:
        target.memory.change()
    return result


def _check_changeable(target: Tensor, root: Tensor, name: str) -> None:
    window = target.window
    if root.node is None and root.asked is not False:
        asked = f"\n  its gradient was asked for at {root.asked.describe()}" if isinstance(root.asked, Line) else ""
        of = "a leaf" if root is target else "a view of a leaf"
        raise RuntimeError(
            f"{name} changes {of} that requires a gradient in place{at_line(user_line())}{asked}\n"
            "  Write x = x + ... in place of x += ..., or, to update a parameter, change it under no_grad()."
        )
    if window is not None and (window.is_detached or window.path is None or root.memory is not target.memory):
        if window.is_detached:
            raise RuntimeError(
                f"{name} would be recorded for a tensor that shares memory with another one by detach() or no_grad(), "
                f"whose gradient would then be wrong; take a copy: x.clone(){at_line(user_line())}"
            )
        raise _unknown_view_error(target)
