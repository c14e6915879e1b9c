"""Changes in place: how a graph follows writes to the memory of a tensor.

An operation that changes a tensor makes a node for the new value, which the tensor refers to from then on.  An
operation that changes a view becomes one that changes its base, through the calls that lead to the view; the view is
then read from the base again when it is next used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.cell import read
from ..base.source import Line, at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from .graph import Node
from .modes import current_mode
from .operations import PLACE, Call, filled, mapped, operation_for, stripped
from .paths import Fixed, through_path
from .recording import apply, connect, run_numpy
from .tensor import Tensor, inference_error
from .tracing import current_notes

# Functions that change their first argument.
_CHANGING = {np.copyto, np.put, np.putmask, np.place, np.put_along_axis, np.fill_diagonal}


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """The result of a function of NumPy that may change its arguments, on tensors, as tensors.

    Args:
        function: the function.
        args: its arguments, with tensors among them or in lists among them.
        kwargs: its keyword arguments.
        name: name of its nodes.
    """
    if "out" in kwargs and kwargs["out"] is not None:
        return _apply_to_out(function, args, kwargs, name)
    if function in _CHANGING:
        return change(function, args[0], (PLACE, *args[1:]), kwargs, name)
    if function is np.nan_to_num and not (args[1] if len(args) > 1 else kwargs.get("copy", True)):
        change(function, args[0], (PLACE, *args[1:]), kwargs, name)
        return args[0]
    if "overwrite_input" in kwargs:
        # Leave to do that need not be taken.
        kwargs = {k: x for k, x in kwargs.items() if k != "overwrite_input"}
    return apply(function, args, kwargs, name)


def _apply_to_out(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """A call whose result is put into an array that is given."""
    out = kwargs["out"]
    if type(out) is tuple:
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
        name: name of its nodes.
    """
    args, kwargs = read(args), read(kwargs)
    if type(target) is Tracer:
        # The trace records it, captured tensors included.
        args, kwargs = filled((args, kwargs), target)
        return function(*args, **kwargs)
    tensors: list[Tensor] = []
    plain_args, plain_kwargs = stripped((args, kwargs), tensors)
    if "out" in kwargs and not isinstance(function, np.ufunc):
        # Some functions write while they still read.
        plain_args = mapped(plain_args, lambda x: x.copy() if _overlaps(x, target) else x)

    def run() -> Any:
        array = target.owned_array() if isinstance(target, Tensor) else target
        given, plain = filled((args, kwargs), target), filled((plain_args, plain_kwargs), array)
        return run_numpy(function, given[0], given[1], plain[0], plain[1], name)

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
    return is_plain(array, np.ndarray) and np.may_share_memory(array, target.array)


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


# Views that follow


def settle(x: Tensor) -> None:
    """Bring the place of a view in the graph up to date, if its memory has changed since it was last read."""
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
    """Keep the gradient of a tensor at its new place in the graph, if `retain_grad` asked for it at the old one."""
    if node is not None and node.hooks is not None:
        node.hooks.follow(x, output)


def _same(x: Any) -> Any:
    return x


def _unknown_view_error(x: Tensor) -> RuntimeError:
    return RuntimeError(
        f"a tensor ({x.array_type}) shares its memory with another one in a way that the graph cannot follow, and one "
        f"of them was changed in place; take a copy: x.clone(){at_line(user_line())}"
    )
