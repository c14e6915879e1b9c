"""Loops inside programs: scan, map, while_loop, fori_loop.

The functions given to them are traced to sub-programs.  Arrays and traced values that these close over become operands,
so derivatives with respect to them exist.  Outside of a trace the loops run at once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ..base import tree
from ..base.source import at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_variables import Array, Scalar, Value
from ..control.checkpoints.recompute import Policy
from ..control.checkpoints.segments import checkpointed, scan_in_segments
from ..control.loops.scan import scan as scan_primitive
from ..control.loops.steps import with_step_limit
from ..control.loops.while_loop import while_
from ..control.subprograms import cut, rewired
from ..core.trace import NoWitness, Tracer
from ..core.types import ArrayType, type_of
from ..numpy.promotion import is_weak, operand, result_dtype
from ..ops.elementwise import add
from ..ops.literals import full, full_like, iota
from .bodies import Body, Function, Leaves, described, integer_of, is_array, known_value, trace_body
from .call import check_function, name_of, record_or_run, trace_flat
from .checkpoint import GivenPolicy, as_policy
from .progress import Bar, bar_of

Checkpoint = GivenPolicy | int | None


@short_tracebacks
def scan(
    f: Callable[[Any, Any], tuple[Value, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    checkpoint: Checkpoint = None,
    progress: bool | str = False,
) -> tuple[Value, Any]:
    """Loop over the leading axis of arrays, carrying values from step to step.

    Equivalent to this, but `f` is traced only once::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys)

    Reverse mode keeps the residuals of every step, so its memory grows with the length n.  With `checkpoint` it keeps
    less, and recomputes the rest in the backward pass:

    - True: the carry of every step (and `xs`).  `f` runs once more.
    - a policy, as for `ft.checkpoint`: the values that the policy names.
    - an integer k: the carry of every k-th step.  `f` runs once more, for one segment of k steps at a time, which takes
      the memory of n / k carries and of the residuals of k steps.
    - "sqrt": the same with k = sqrt(n); the memory grows with the square root of n.

    Args:
        f: `(carry, x) -> (carry, y)`.  Carry and `y` may be containers, and `y` may be None.
        init: the first carry.  Each later carry must have its structure, shapes and dtypes; Python numbers in `init`
            take the types that `f` returns for them.
        xs: array, or container of arrays, of shapes (length, ...): `x` is one element along the leading axis.  With
            None, `x` is None too, and `length` must be given.
        length: number of steps; needed only without `xs`.
        reverse: whether to run from the last index to the first.  Results keep the order of `xs`.
        unroll: number of steps that XLA compiles into one iteration.
        checkpoint: what reverse mode keeps; None or False for everything that it needs.
        progress: whether to show a progress bar on stderr, or a string to show next to the bar.  Needs tqdm.

    Returns:
        `(carry, ys)`: the last carry, and for each array of shape s in `y` an array of shape (length, *s).

    Raises:
        TypeError: `f` does not return a pair, or the carry that it returns differs from `init` in structure or type
            (both are shown, by path).
        ValueError: the leading axes of `xs` and `length` disagree, or `checkpoint` is less than 1 or an unknown policy.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.scan(lambda total, x: (total + x, total * x), 0.0, np.array([1.0, 2.0, 3.0]))
        (np.float64(6.0), array([0., 2., 9.]))
    """
    elements = Leaves.of(xs, "xs", "scan")
    length = _length(elements, _count_of(length, "length", "scan", 0))
    unroll = _count_of(unroll, "unroll", "scan", 1) or 1

    check_function(f, "scan")
    how = _checkpointing(checkpoint, length)

    def step(carry: Any, values: list[Tracer]) -> tuple[Any, Any]:
        out = f(carry, tree.unflatten(elements.structure, values))
        if not isinstance(out, tuple) or len(out) != 2:
            raise TypeError(
                f"the function of scan must return a pair (carry, y), but {name_of(f)} returned {described(out)}"
                + at_line(user_line())
            )
        return out

    first = Leaves.of(init, "init", "scan")
    x_types = [t.with_shape(t.shape[1:]) for t in elements.types]
    body = trace_body("scan", f, step, first, x_types)
    bar = bar_of(progress, "scan", length)
    return _run_scan(body, first, elements.leaves, lambda xs: xs, length, bool(reverse), unroll, how, bar)


@overload
def map(
    f: Callable[[Any], Array[Scalar] | Scalar], xs: Any, checkpoint: Checkpoint = None, progress: bool | str = False
) -> Array[Scalar]: ...
@overload
def map(
    f: Callable[[Any], float], xs: Any, checkpoint: Checkpoint = None, progress: bool | str = False
) -> Array[Any]: ...
@overload
def map(f: Callable[[Any], Any], xs: Any, checkpoint: Checkpoint = None, progress: bool | str = False) -> Any: ...
@short_tracebacks
def map(f: Function, xs: Any, checkpoint: Checkpoint = None, progress: bool | str = False) -> Any:
    """Apply `f` to each element along the leading axis, one after the other.

    It takes less memory than `vmap(f)(xs)`, and more time.

    Args:
        f: a function of one argument.
        xs: array, or container of arrays, of shapes (length, ...).
        checkpoint: what reverse mode keeps of each call, as in `scan`; with True, only `xs`.
        progress: whether to show a progress bar, as in `scan`.

    Returns:
        For each array of shape s in the result of `f`, an array of shape (length, *s).

    Raises:
        ValueError: the leading axes of `xs` disagree.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.map(lambda row: np.sum(row**2), np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([ 5., 25.])
    """
    check_function(f, "map")
    return scan(lambda _, x: (None, f(x)), None, xs, checkpoint=checkpoint, progress=progress)[1]


@overload
def while_loop(
    cond_fun: Callable[[Value], Any],
    body_fun: Callable[[Value], Value],
    init: Value,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    progress: bool | str = False,
) -> Value: ...
@overload
def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Value],
    init: Any,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    progress: bool | str = False,
) -> Value: ...
@short_tracebacks
def while_loop(
    cond_fun: Function,
    body_fun: Function,
    init: Any,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    progress: bool | str = False,
) -> Any:
    """Repeat a function as long as a condition holds.

    Equivalent to this, but each function is traced only once::

        carry = init
        while cond_fun(carry):
            carry = body_fun(carry)
        return carry

    Under `vmap` the loop runs until the condition is false for the whole batch; elements that are done keep their
    values.

    Reverse mode needs the carry of every step, in reverse order.  You choose how many are kept:

    - With `max_steps`, the carries of all steps are kept, or their residuals if these take at most 32 MB in all.
      Compiled code keeps them in buffers of length `max_steps`, so memory, and the time to fill the buffers, grow with
      `max_steps`; all other time grows with the number of steps that run.
    - Without `max_steps`, compiled code keeps `checkpoints` carries at a time, 64 by default, whatever the number n of
      steps, and the residuals of as many steps.  It recomputes the others (Stumm and Walther, 2010; Griewank and
      Walther, 2000). Up to n = `checkpoints` nothing is recomputed; with 64 checkpoints, each step runs on average at
      most once more up to n = 1,000, twice up to 20,000, three times up to 200,000 and four times up to 2,000,000.
    - Un-jitted without `max_steps`, the carries of all steps are kept, up to 256 MB.  Beyond that, or with
      `checkpoints`, the rule for compiled code without `max_steps` applies.

    Args:
        cond_fun: `carry -> bool`, a scalar.
        body_fun: `carry -> carry`.
        init: the first carry: an array, a number or a container.  Each later carry must have its structure, shapes and
            dtypes; Python numbers in `init` take the types that `body_fun` returns for them.
        max_steps: maximum number of steps; the loop stops there even if the condition still holds.
        checkpoints: number of carries that reverse mode keeps at a time.  It takes precedence over `max_steps`.
        progress: whether to count the steps on stderr, or a string to show next to the count.  Needs tqdm.

    Returns:
        The first carry for which `cond_fun` is false, or that of step `max_steps`.

    Raises:
        TypeError: the carry that `body_fun` returns differs from `init` in structure or type (both are shown, by path);
            `cond_fun` does not return a bool; or `max_steps` or `checkpoints` is not an integer.
        ValueError: `max_steps` is negative, or `checkpoints` is not positive.

    Example:
        >>> import ftrans as ft
        >>> newton = lambda a: ft.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)
        >>> ft.grad(newton)(2.0).round(9)
        np.float64(0.353553391)
    """
    max_steps = _count_of(max_steps, "max_steps", "while_loop", 0)
    checkpoints = _count_of(checkpoints, "checkpoints", "while_loop", 1)
    check_function(cond_fun, "while_loop", "cond_fun")
    check_function(body_fun, "while_loop", "body_fun")
    first = Leaves.of(init, "init", "while_loop")
    body = trace_body("while_loop", body_fun, lambda carry, _: (body_fun(carry), None), first)

    def test(tracers: list[Tracer]) -> Any:
        holds = cond_fun(tree.unflatten(first.structure, tracers))
        if not is_array(holds) or type_of(holds) is not ArrayType((), np.bool_):
            raise TypeError(
                f"the condition of while_loop must return one bool, but {name_of(cond_fun)} returned "
                f"{described(holds)}{at_line(user_line())}"
            )
        return holds

    reason = NoWitness("the condition of while_loop runs before every step, so a branch inside it has no single value")
    condition, _ = trace_flat(cond_fun, body.types, test, reason, body.weak)
    # The condition may have overwritten what the body captured.
    body.builder.captures.check()
    carries, cond_consts, body_consts = len(body.types), len(condition.captured), len(body.captured)

    def record(tracers: list[Tracer]) -> list[Tracer]:
        of_cond, of_body, leaves = cut(tracers, cond_consts, body_consts)
        carry = [operand(x, t.dtype, t.shape) for x, t in zip(leaves, body.types, strict=True)]
        test = rewired(condition.program, [*range(carries, carries + cond_consts), *range(carries)])
        step = rewired(body.program, [*range(carries, carries + body_consts), *range(carries)])
        if max_steps is not None:
            test, step = with_step_limit(test, step, cond_consts, body_consts, max_steps)
            carry = [full((), 0, np.int64), *carry]
        if bar is not None:
            test, step, (of_cond, of_body, carry) = bar.in_while(test, step, (of_cond, of_body, carry))
        outs = while_.apply(test, step, of_cond, of_body, carry, max_steps, checkpoints)
        outs = outs if bar is None else bar.after_while(outs)
        return outs if max_steps is None else outs[1:]

    bar = bar_of(progress, "while_loop", None)
    outs = record_or_run("while_loop", record, [*condition.captured, *body.captured, *first.leaves])
    return tree.unflatten(first.structure, outs)


@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body: Callable[[int, Value], Value],
    init: Value,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    progress: bool | str = False,
) -> Value: ...
@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body: Callable[[Any, Any], Value],
    init: Any,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    progress: bool | str = False,
) -> Value: ...
@short_tracebacks
def fori_loop(
    lower: Any,
    upper: Any,
    body: Function,
    init: Any,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    progress: bool | str = False,
) -> Any:
    """Loop over the integers from `lower` up to, but not including, `upper`.

    With Python integers as bounds it is a `scan`, and reverse mode keeps the residuals of every step.  With traced
    bounds, or where `checkpoints` is given, it is a `while_loop`: see there for what reverse mode costs.

    Args:
        lower: first index, an integer.
        upper: the integer after the last index.
        body: `(index, carry) -> carry`.
        init: the first carry, as in `while_loop`.
        max_steps: maximum number of steps.
        checkpoints: number of carries that reverse mode keeps at a time, as in `while_loop`.
        progress: whether to show a progress bar on stderr, or a string to show next to the bar.  Needs tqdm.

    Returns:
        The last carry; `init` if `upper <= lower`.

    Raises:
        TypeError: a bound, `max_steps` or `checkpoints` is not an integer; or the carry that `body` returns differs
            from `init` in structure or type (both are shown, by path).
        ValueError: `max_steps` is negative, or `checkpoints` is not positive.

    Example:
        >>> import ftrans as ft
        >>> power = lambda x: ft.fori_loop(0, 5, lambda i, y: y * x, 1.0)
        >>> ft.value_and_grad(power)(2.0)
        (np.float64(32.0), np.float64(80.0))
    """
    lower, upper = (integer_of(x, name, "fori_loop") for x, name in ((lower, "lower"), (upper, "upper")))
    max_steps = _count_of(max_steps, "max_steps", "fori_loop", 0)
    checkpoints = _count_of(checkpoints, "checkpoints", "fori_loop", 1)
    check_function(body, "fori_loop", "body")
    start, stop = known_value(lower), known_value(upper)
    if start is None or stop is None or checkpoints is not None:
        onwards = lambda pair: (pair[0] + 1, body(*pair))  # noqa: E731
        return while_loop(lambda pair: pair[0] < upper, onwards, (lower, init), max_steps, checkpoints, progress)[1]
    first = Leaves.of(init, "init", "fori_loop")
    index = ArrayType((), result_dtype(lower, upper))
    weak = is_weak(lower) and is_weak(upper)
    length = max(stop - start, 0) if max_steps is None else min(max(stop - start, 0), max_steps)

    def step(carry: Any, values: list[Tracer]) -> tuple[Any, Any]:
        return body(values[0], carry), None

    def indices(_: list[Tracer]) -> list[Tracer]:
        numbers = iota(shape=(length,), axis=0, dtype=index.dtype)
        return [add(numbers, full_like(numbers, start)) if start else numbers]

    traced = trace_body("fori_loop", body, step, first, [index], [weak])
    bar = bar_of(progress, "fori_loop", length)
    return _run_scan(traced, first, [], indices, length, False, 1, bar=bar)[0]


def _count_of(x: Any, name: str, what: str, least: int) -> int | None:
    """`x`, if it is None or a plain integer that is large enough."""
    if x is None:
        return None
    try:
        number = operator.index(x)
    except TypeError:
        raise TypeError(f"{name} of {what} must be a plain integer or None, not {x!r}{at_line(user_line())}") from None
    if number < least:
        raise ValueError(f"{name} of {what} must be at least {least}, not {number}{at_line(user_line())}")
    return number


def _length(xs: Leaves, length: int | None) -> int:
    """The number of steps of a scan."""
    lengths: dict[int, str] = {} if length is None else {operator.index(length): "length"}
    for index, t in enumerate(xs.types):
        if not t.ndim:
            raise ValueError(
                f"{xs.path(index)} of scan is a scalar ({t}), which has no leading axis; make it an array"
                + at_line(user_line())
            )
        lengths.setdefault(t.shape[0], f"{xs.path(index)} ({t})")
    if not lengths:
        raise ValueError(f"scan without xs needs length, the number of steps{at_line(user_line())}")
    if len(lengths) > 1:
        found = ", ".join(f"{n} by {source}" for n, source in lengths.items())
        raise ValueError(f"scan is asked for different numbers of steps: {found}{at_line(user_line())}")
    (found_length,) = lengths
    if found_length < 0:
        raise ValueError(f"the length of scan cannot be {found_length}{at_line(user_line())}")
    return found_length


def _checkpointing(given: Checkpoint, length: int) -> Policy | int | None:
    """What reverse mode of a scan keeps: a policy for each step, a number of steps per carry, or None for all."""
    if given is None or given is False:
        return None
    if given is True:
        return "nothing"
    if given == "sqrt":
        return max(math.isqrt(length), 1)
    if isinstance(given, int | np.integer):
        if given < 1:
            raise ValueError(f"checkpoint of scan must be at least 1 step, not {given}{at_line(user_line())}")
        return int(given)
    return as_policy(given)


def _run_scan(
    body: Body,
    first: Leaves,
    sequences: Sequence[Any],
    xs_of: Callable[[list[Tracer]], list[Tracer]],
    length: int,
    reverse: bool,
    unroll: int,
    checkpoint: Policy | int | None = None,
    bar: Bar | None = None,
) -> tuple[Any, Any]:
    consts, carries = len(body.captured), len(body.types)
    count = len(body.program.inputs) - consts
    program = rewired(body.program, [*range(count, count + consts), *range(count)])

    if checkpoint is not None and not isinstance(checkpoint, int):
        program = checkpointed(program, checkpoint)

    def record(tracers: list[Tracer]) -> list[Tracer]:
        fixed, carry, sequences = cut(tracers, consts, carries)
        carry = [operand(x, t.dtype, t.shape) for x, t in zip(carry, body.types, strict=True)]
        xs, step = xs_of(sequences), program
        if bar is not None:
            step, (fixed, carry, xs) = bar.in_scan(program, (fixed, carry, xs), length, reverse)
        if isinstance(checkpoint, int) and checkpoint < length:
            return scan_in_segments(step, fixed, carry, xs, length, reverse, unroll, checkpoint)
        return scan_primitive.apply(step, fixed, carry, xs, length, reverse, unroll)

    outs = record_or_run("scan", record, [*body.captured, *first.leaves, *sequences])
    return tree.unflatten(first.structure, outs[:carries]), tree.unflatten(body.more, outs[carries:])
