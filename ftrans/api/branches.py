"""Branches inside programs: cond and switch.

The functions given to them are traced to sub-programs.  Arrays and traced values that these close over become operands,
so derivatives with respect to them exist.  Outside of a trace the chosen sub-program runs at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from ..base import tree
from ..base.source import at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_questions import is_plain
from ..base.type_variables import Primals, Result
from ..control.cond import cond as primitive
from ..control.subprograms import rewired
from ..core.program import Program
from ..core.trace import Builder, NoWitness, Tracer
from ..core.types import ArrayType, type_of
from ..core.witness import example_of
from ..numpy.promotion import cast, is_weak, result_dtype
from ..ops.elementwise import convert, maximum, minimum, ne
from ..ops.literals import full_like
from . import lending
from .bodies import Function, Leaves, integer_of, known_value, scalar_of, tracers_of
from .call import check_function, record_or_run, trace_flat, type_name


@overload
def cond(
    pred: Any,
    true_fn: Callable[[*Primals], Result],
    false_fn: Callable[[*Primals], Result],
    *operands: *Primals,
) -> Result: ...
@overload
def cond(pred: Any, true_fn: Callable[..., Result], false_fn: Callable[..., Result], *operands: Any) -> Result: ...
@short_tracebacks  # type: ignore[misc]
def cond(pred: Any, true_fn: Function, false_fn: Function, *operands: Any) -> Any:
    """Call one of two functions, chosen by a condition that may be traced.

    Only the chosen function runs.  Under `vmap` with a condition for each element of the batch, a function that at
    least one element chooses runs on the whole batch at once.  Elements that do not choose it are replaced by one that
    does, so the function never gets operands that were not meant for it.  A function that no element chooses does not
    run.  With a Python bool as condition, the function is called directly.

    Args:
        pred: a bool, or a bool array of shape ().  A number is true unless it is zero.
        true_fn: called with the operands if `pred` is true.
        false_fn: called with the operands if `pred` is false.  Its result must have the structure, shapes and dtypes of
            that of `true_fn`; Python numbers take the dtype of their counterpart.
        operands: arrays, numbers and containers of them.

    Returns:
        What the chosen function returns.

    Raises:
        TypeError: the results of the functions differ in structure or type (both are shown, by path), or `pred` is not
            a scalar.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> f = lambda x: ft.cond(x > 0, np.sin, lambda x: x**2, x)
        >>> ft.grad(f)(-1.5)
        np.float64(-3.0)
    """
    check_function(true_fn, "cond", "true_fn")
    check_function(false_fn, "cond", "false_fn")
    pred = scalar_of(pred, "pred", "cond")
    known = known_value(pred)
    if known is not None:
        return _called(true_fn if known else false_fn, operands)

    def index_of(tracer: Tracer) -> Tracer:
        holds = tracer if tracer.dtype.kind == "b" else ne(tracer, full_like(tracer, 0))
        return convert(holds, dtype=np.dtype(np.int64))

    return _choose("cond", pred, index_of, [false_fn, true_fn], ["false_fn", "true_fn"], operands)


@overload
def switch(index: Any, branches: Sequence[Callable[[*Primals], Result]], *operands: *Primals) -> Result: ...
@overload
def switch(index: Any, branches: Sequence[Callable[..., Result]], *operands: Any) -> Result: ...
@short_tracebacks  # type: ignore[misc]
def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """Call one of several functions, chosen by an index that may be traced.

    Args:
        index: an integer, or an integer array of shape ().  It is clamped to the range of valid indices.
        branches: the functions, each called with the operands.  Their results must agree in structure,
            shapes and dtypes, as for `cond`.
        operands: arrays, numbers and containers of them.

    Returns:
        What `branches[index]` returns.

    Raises:
        TypeError: the results of the functions differ in structure or type (both are shown, by path), or `index` is not
            an integer scalar.
        ValueError: there are no branches.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> f = lambda i, x: ft.switch(i, [np.sin, np.cos, lambda x: x**2], x)
        >>> ft.vmap(f, in_axes=(0, None))(np.array([2, 9, -1]), 3.0)
        array([9.        , 9.        , 0.14112001])
    """
    if not isinstance(branches, list | tuple):
        raise TypeError(f"branches of switch is a list of functions, not {type_name(branches)}{at_line(user_line())}")
    if not branches:
        raise ValueError(f"switch needs at least one branch{at_line(user_line())}")
    for place, branch in enumerate(branches):
        check_function(branch, "switch", f"branches[{place}]")
    index = integer_of(index, "index", "switch")
    last = len(branches) - 1
    known = known_value(index)
    if known is not None or last == 0:
        return _called(branches[min(max(int(known or 0), 0), last)], operands)

    def index_of(tracer: Tracer) -> Tracer:
        tracer = minimum(tracer, full_like(tracer, min(last, np.iinfo(tracer.dtype).max)))
        tracer = convert(tracer, dtype=np.dtype(np.int64))
        return maximum(tracer, full_like(tracer, 0))

    return _choose("switch", index, index_of, branches, [f"branch {i}" for i in range(last + 1)], operands)


def _called(branch: Function, operands: Sequence[Any]) -> Any:
    """The result of a directly called branch, without memory shared with its arguments."""
    result = lending.called(branch, *operands)
    return tree.map_leaves(lambda y: y.copy() if is_plain(y, np.ndarray) else y, result)


class _Branch(NamedTuple):
    """A traced branch: its program, its captured values, and the structure of its result."""

    program: Program
    captured: list[Any]
    out: Any
    structure: tree.Structure
    returned: list[Tracer]
    builder: Builder


def _trace_branch(what: str, f: Function, given: Leaves, dtypes: Sequence[Any] | None = None) -> _Branch:
    returned: list[Any] = []

    def rebuild(tracers: list[Tracer]) -> list[Tracer]:
        out = f(*tree.unflatten(given.structure, tracers))
        leaves, structure = tracers_of(out, what, f)
        returned.extend((out, structure, leaves))
        return leaves if dtypes is None else [cast(y, d) for y, d in zip(leaves, dtypes, strict=True)]

    reason = f"a branch of {what} is traced for every value that its operands may have"
    witnesses = [NoWitness(reason, functools.partial(example_of, x)) for x in given.leaves]
    traced, _ = trace_flat(f, given.types, rebuild, witnesses, [is_weak(x) for x in given.leaves])
    out, structure, leaves = returned
    return _Branch(traced.program, traced.captured, out, structure, leaves, traced.builder)


def _choose(
    what: str,
    selector: Any,
    index_of: Callable[[Tracer], Tracer],
    branches: Sequence[Function],
    names: Sequence[str],
    operands: tuple[Any, ...],
) -> Any:
    """Trace the branches and record the choice between them."""
    given = Leaves.of(operands, "operands", what)
    traces = [_trace_branch(what, f, given) for f in branches]
    first = traces[0]
    for trace, name in zip(traces, names, strict=True):
        if trace.structure != first.structure:
            raise TypeError(
                f"the branches of {what} must return the same structure, but {names[0]} returned {first.structure} "
                f"and {name} returned {trace.structure}{at_line(user_line())}"
            )
    columns = list(zip(*(t.returned for t in traces), strict=True))
    dtypes = [result_dtype(*column) for column in columns]
    wrong = [
        f"\n  result{path}: " + ", ".join(f"{y.type} from {name}" for y, name in zip(column, names, strict=True))
        for path, column, dtype in zip(tree.paths(first.out), columns, dtypes, strict=True)
        if not all(y.shape == column[0].shape and (y.weak or y.dtype == dtype) for y in column)
    ]
    if wrong:
        raise TypeError(
            f"the branches of {what} must return the same shapes and dtypes:{''.join(wrong)}{at_line(user_line())}"
        )
    for number, trace in enumerate(traces):
        if any(y.dtype != d for y, d in zip(trace.returned, dtypes, strict=True)):
            traces[number] = _trace_branch(what, branches[number], given, dtypes)
    for trace in traces:
        # Functions traced later may have overwritten values that it captured.
        trace.builder.captures.check()
    programs = tuple(_with_all_captures(traces, number, len(given.leaves)) for number in range(len(traces)))

    def record(tracers: list[Tracer]) -> list[Tracer]:
        index, *rest = tracers
        return primitive(index_of(index), *rest, branches=programs)

    captured = [x for trace in traces for x in trace.captured]
    return tree.unflatten(first.structure, record_or_run(what, record, [selector, *given.leaves, *captured]))


def _with_all_captures(traces: Sequence[_Branch], number: int, count: int) -> Program:
    """The program of a branch with inputs for the captured values of all branches."""
    inputs: list[int | ArrayType] = list(range(count))
    for other, trace in enumerate(traces):
        mine = other == number
        inputs += [count + i if mine else type_of(x) for i, x in enumerate(trace.captured)]
    return rewired(traces[number].program, inputs)
