"""checkpoint and residuals: choose, and list, what reverse mode keeps between its forward and its backward pass."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from ..base import tree
from ..base.displayed import Displayed
from ..base.source import Line, at_line, user_line
from ..base.tables import aligned
from ..base.tracebacks import short_tracebacks
from ..base.type_questions import is_plain
from ..base.type_variables import Params, Result
from ..control.checkpoints.checkpoint import checkpoint as checkpoint_primitive
from ..control.checkpoints.recompute import POLICIES, Budget, Named, Policy
from ..control.loops.scan import scan
from ..control.loops.while_loop import while_
from ..control.rules.tap import tap
from ..core.program import Atom, Eqn, Program, Var
from ..core.trace import Tracer, current_builder
from ..core.types import ArrayType, is_inexact, type_of
from ..numpy.promotion import asarray, has_tracer, is_weak
from ..run.places import JAX, JAX_TRACE, TRACE, place_of_argument
from ..transforms.differentiate import pruned, pullback
from . import lending
from .call import call_on_recorded, check_function, has_active, name_of, named, normalize_argnums, trace_flat, type_name
from .targets import is_target

Function = Callable[..., Any]
GivenPolicy = str | Sequence[str] | Callable[[str, tuple[ArrayType, ...], dict[str, Any]], bool]


@overload
def checkpoint(
    f: Callable[Params, Result], *, policy: GivenPolicy = "nothing", memory_budget: int | None = None
) -> Callable[Params, Result]: ...
@overload
def checkpoint(
    f: None = None, *, policy: GivenPolicy = "nothing", memory_budget: int | None = None
) -> Callable[[Callable[Params, Result]], Callable[Params, Result]]: ...
def checkpoint(f: Function | None = None, *, policy: GivenPolicy = "nothing", memory_budget: int | None = None) -> Any:
    """Make reverse mode keep fewer values of a function, and recompute the others in the backward pass.

    Values and derivatives of all orders and in all modes stay the same.  With the policy "nothing" the function runs
    once more in the backward pass, so a gradient takes about 4/3 of the time.  Recomputing a function needs the memory
    of all its values, so checkpoint parts of a function (the layers of a network) rather than the whole.  With a
    budget, values are recomputed one by one as the backward pass needs them, so you can checkpoint a whole function.

    The budget covers everything that `residuals` lists for the checkpointed function: intermediate values, and those
    arguments and closed-over arrays that the backward pass needs.  The backward pass takes further memory for the
    values that it is recomputing, and for cotangents.  The budget applies to the first derivative; for higher ones, the
    two passes of the first keep their inputs.  In `vmap(grad(f))` it applies to each example, in `grad` of a vmapped
    function to the whole batch.

    Args:
        f: the function.  If omitted, a decorator is returned.  Arguments that are not traced are passed on unchanged.
        policy: what to keep.  "nothing": only the arguments.  "everything": all values that the backward pass needs, as
            without `checkpoint`.  "dots": the arguments and the results of matrix products.  A sequence of names: the
            arguments, and the values that `tap(name, x)` names so.  Or a function of the name of a primitive, the types
            of its results and its parameters, which returns whether to keep these results if the backward pass needs
            them.
        memory_budget: instead of a policy, the largest number of bytes to keep.  The values are chosen so that the
            estimated cost of recomputing the others is minimal.  Finding them takes about thirty minimum cuts, once for
            each program.

    Returns:
        A function of the same arguments with the same results.

    Raises:
        TypeError: the policy is none of these, both a policy and a budget are given, the budget is not an integer, or
            `f` assigns to an argument in place.
        ValueError: there is no policy of that name; or, when the function is differentiated, the budget cannot be met;
            the message gives the smallest possible budget.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> layer = ft.checkpoint(lambda x: np.sin(np.exp(x)))
        >>> ft.grad(lambda x: layer(layer(x)))(0.5).round(9)
        np.float64(0.315936209)
    """
    if f is None:
        return functools.partial(checkpoint, policy=policy, memory_budget=memory_budget)
    check_function(f, "checkpoint")
    function, chosen = f, as_policy(policy, memory_budget)

    @functools.wraps(function)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if current_builder() is None:
            if has_active((args, kwargs)):
                return call_on_recorded(checkpointed, args, kwargs)
            return lending.called_directly(function, *args, **kwargs)
        leaves, structure = tree.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if has_tracer(x)]
        values = [asarray(leaves[i]) for i in places]
        given: list[Tracer] = []

        def call(tracers: list[Tracer]) -> Any:
            given[:] = tracers
            given_leaves = [lending.lent(x) for x in leaves]
            for i, x in zip(places, tracers, strict=True):
                given_leaves[i] = x
            new_args, new_kwargs = tree.unflatten(structure, given_leaves)
            return function(*new_args, **new_kwargs)

        traced, _ = trace_flat(function, [x.type for x in values], call, values, [x.weak for x in values])
        for i, x, var in zip(places, given, traced.program.inputs, strict=False):
            if x.atom is not var:
                raise TypeError(
                    f"{name_of(function)} assigns to its argument{_path((args, kwargs), i)} in place, which the caller "
                    "of a checkpointed function would not see; assign to a copy and return it" + at_line(user_line())
                )
        outs = checkpoint_primitive.apply(traced.program, [*values, *traced.captured], chosen)
        return tree.unflatten(traced.structure, outs)

    return checkpointed


def _path(arguments: Any, index: int) -> str:
    """The path of a leaf of `(args, kwargs)`, for messages."""
    return f" {tree.paths(arguments)[index][3:]}"


def as_policy(policy: GivenPolicy, memory_budget: int | None = None) -> Policy:
    """The checked arguments of `checkpoint`, in the form that programs hold."""
    if memory_budget is not None:
        if policy != "nothing":
            raise TypeError(f"checkpoint takes a policy or a memory_budget, not both{at_line(user_line())}")
        if not isinstance(memory_budget, int | np.integer) or memory_budget < 0:
            raise TypeError(
                f"memory_budget of checkpoint is a number of bytes, a positive integer, not {memory_budget!r}"
                + at_line(user_line())
            )
        return Budget(int(memory_budget))
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise ValueError(
                f"checkpoint knows no policy {policy!r}, only {', '.join(map(repr, POLICIES))}; to keep what tap has "
                f"given that name, write policy=[{policy!r}]{at_line(user_line())}"
            )
        return policy
    if isinstance(policy, Sequence) and all(isinstance(name, str) for name in policy):
        return Named(tuple(policy))
    if callable(policy):
        return policy
    raise TypeError(
        f"the policy of checkpoint is one of {', '.join(map(repr, POLICIES))}, a list of names, or a function of the "
        f"name of a primitive, the types of its results and its parameters, not {type_name(policy)}"
        + at_line(user_line())
    )


class Residual(NamedTuple):
    """One array that reverse mode keeps between its forward and its backward pass.

    Attributes:
        name: the path of the argument that it is; the name that `tap` gave it; "closed over" for an array that the
            function closes over; otherwise empty.
        shape: its shape.
        dtype: its dtype.
        nbytes: its size in bytes.
        primitive: the primitive that computed it; empty for arguments.  Inside a loop it is kept for all steps.
        line: the user's line that computed it, or None for arguments.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int
    primitive: str
    line: Line | None


class Residuals(list[Residual], Displayed):
    """The arrays that reverse mode keeps: a list that prints as a table, with a total."""

    @property
    def total(self) -> int:
        """Bytes of all residuals."""
        return sum(r.nbytes for r in self)

    def __repr__(self) -> str:
        rows = [("name", "type", "bytes", "made by", "line")]
        for r in self:
            line = "" if r.line is None else f"{os.path.basename(r.line.filename)}:{r.line.number}: {r.line.text}"
            rows.append((r.name, repr(ArrayType(r.shape, r.dtype)), f"{r.nbytes:,}", r.primitive, line))
        rows.append(("total", "", f"{self.total:,}", "", ""))
        return "\n".join(aligned(rows, left=(0, 1, 3, 4), texts=4))


def residuals(f: Callable[Params, Any], argnums: int | Sequence[int] | None = None) -> Callable[Params, Residuals]:
    """List what reverse mode keeps of a function between its forward and its backward pass.

    Args:
        f: the function.
        argnums: positions of the arguments that it is differentiated with respect to; all floating-point arrays among
            the arguments by default.

    Returns:
        A function of the same arguments, which traces `f` but does not run it.  It returns a list of `Residual`
        (`name`, `shape`, `dtype`, `nbytes`, `primitive`, `line`), which prints as a table, and has a `total`.

    Raises:
        TypeError: a position in `argnums` does not exist.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> kept = ft.residuals(lambda w, x: np.sum(np.tanh(x @ w)), argnums=0)(np.ones((3, 2)), np.ones((4, 3)))
        >>> [(r.name or r.primitive, r.shape) for r in kept], kept.total
        ([('x', (4, 3)), ('sech_square', (4, 2))], 160)
    """

    check_function(f, "residuals")

    @short_tracebacks
    @functools.wraps(f)
    def residuals_of_f(*args: Params.args, **kwargs: Params.kwargs) -> Residuals:
        leaves, structure = tree.flatten((args, kwargs))
        names, wanted = _names(f, args, kwargs), _wanted(f, args, kwargs, argnums)
        places = [i for i, (x, w) in enumerate(zip(leaves, wanted, strict=True)) if _is_traced(x, w)]
        values = [asarray(leaves[i]) if has_tracer(leaves[i]) else leaves[i] for i in places]
        types = [type_of(x) for x in values]
        active = [wanted[i] and is_inexact(t.dtype) for i, t in zip(places, types, strict=True)]

        def call(tracers: list[Tracer]) -> Any:
            for i, x in zip(places, tracers, strict=True):
                leaves[i] = x
            new_args, new_kwargs = tree.unflatten(structure, leaves)
            return f(*new_args, **new_kwargs)

        traced, _ = trace_flat(f, types, call, values, [is_weak(x) for x in values])
        active += [False] * len(traced.captured)
        sources = [names[i] for i in places] + ["closed over"] * len(traced.captured)
        return _residuals(traced.program, tuple(active), sources)

    return named(residuals_of_f, f, "residuals")


def _is_traced(x: Any, wanted: bool) -> bool:
    """Whether a leaf of the arguments is an input of the program; Python numbers are if they are differentiated."""
    return (
        is_plain(x, np.ndarray | np.generic)
        or place_of_argument(x) in (JAX, JAX_TRACE, TRACE)
        or (wanted and type(x) in (float, complex))
    )


def _wanted(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any) -> list[bool]:
    """Which leaves of the arguments belong to those that are differentiated."""
    positions = range(len(args)) if argnums is None else normalize_argnums(argnums, len(args), f)
    mine = [i in positions and wanted for i, x in enumerate(args) for wanted in is_target(x)]
    return [*mine, *(argnums is None and wanted for wanted in is_target(kwargs))]


def _names(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """For each leaf of the arguments, its parameter and the path within it."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][: len(args)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    names += [f"{rest}[{i}]" for i in range(len(args) - len(names))]
    given = [*zip(names, args, strict=True), *sorted(kwargs.items())]
    return [name + path for name, x in given for path in tree.paths(x)]


def _residuals(program: Program, active: tuple[bool, ...], names: Sequence[str]) -> Residuals:
    parts = pruned(pullback(program, active))
    values, kept = parts.values, parts.values.outputs[len(program.outputs) :]
    arguments = dict(zip(values.inputs, names, strict=True))
    found = Residuals()
    for var in kept:
        if isinstance(var, Var):
            name, primitive, line = (arguments[var], "", None) if var in arguments else _origin(values, var)
            found.append(Residual(name, var.type.shape, var.type.dtype, var.type.nbytes, primitive, line))
    return found


def _origin(program: Program, var: Atom) -> tuple[str, str, Line | None]:
    """The name, the primitive and the line of a value; inside the sub-program, if one computes it."""
    eqn: Eqn = next(eqn for eqn in program.eqns if var in eqn.outputs)
    name = eqn.params["name"] if eqn.primitive is tap else ""
    inner = eqn.params.get("program")
    if inner is not None:
        atom = inner.outputs[eqn.outputs.index(var)]
        if any(atom in eqn.outputs for eqn in inner.eqns):
            name, primitive, line = _origin(inner, atom)
            if eqn.primitive in (scan, while_):
                primitive = f"{primitive} in {eqn.primitive.name}"
            return name, primitive, line
    return name, eqn.primitive.name, eqn.line
