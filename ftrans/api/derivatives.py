"""First derivatives: grad, value_and_grad, jvp, vjp, linearize, linear_transpose and stop_gradient."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Concatenate, Literal, overload

import numpy as np

from ..base import tree
from ..base.foreign_arrays import is_foreign
from ..base.lookalikes import refuse_lookalike
from ..base.pickles import makes_picklable
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..base.type_variables import Aux, First, Params, Primals, Result, Second, Value
from ..control.subprograms import cut
from ..core.program import Program, literal
from ..core.trace import Tracer, current_builder
from ..core.types import ArrayType, is_complex, type_of
from ..numpy.promotion import asarray
from ..transforms import differentiate as d
from ..transforms.jvp import jvp as jvp_program
from ..xla import is_jax_tracer
from .anomaly import residuals_of
from .call import (
    Arguments,
    Traced,
    as_argnums,
    as_tuple,
    call_on_recorded,
    check_function,
    is_recorded,
    name_of,
    named,
    require_scalar,
    run,
    select_arguments,
    trace_flat,
)
from .foreign_arrays import returns_linear_function, takes_foreign_arrays
from .targets import flatten_like

Function = Callable[..., Any]
Argnums = int | Sequence[int]


def trace_at(
    f: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: Argnums,
    what: str,
    has_aux: bool,
    rolls: bool = True,
) -> tuple[Arguments, Traced, Any]:
    """The arguments to differentiate with respect to, the traced function, and how to rebuild its auxiliary result."""
    chosen = select_arguments(f, args, kwargs, argnums, what)
    traced, rebuild_aux = trace_flat(
        f, chosen.types, chosen.call, chosen.leaves, chosen.weak, has_aux=has_aux, rolls=rolls
    )
    return chosen, traced, rebuild_aux


def active_inputs(chosen: Arguments, traced: Traced) -> tuple[bool, ...]:
    """Which inputs of a traced function are differentiated: the chosen arguments, not what it captured."""
    count = len(chosen.leaves)
    return (True,) * count + (False,) * (len(traced.program.inputs) - count)


@overload
def grad(
    f: Callable[Concatenate[First, Params], Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[First, Params], First]: ...
@overload
def grad(
    f: Callable[Concatenate[First, Params], tuple[Any, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[Concatenate[First, Params], tuple[First, Aux]]: ...
@overload
def grad(
    f: Callable[Concatenate[First, Second, Params], Any],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[First, Second, Params], Second]: ...
@overload
def grad(
    f: Callable[Concatenate[First, Second, Params], Any],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[First, Second, Params], tuple[First, Second]]: ...
@overload
def grad(
    f: Callable[Params, Any], argnums: Sequence[int], has_aux: Literal[False] = False, holomorphic: bool = False
) -> Callable[Params, tuple[Any, ...]]: ...
@overload
def grad(
    f: Callable[Params, Any], argnums: Argnums, has_aux: bool = False, holomorphic: bool = False
) -> Callable[Params, Any]: ...
@makes_picklable
def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """Return a function that computes the gradient of a function whose result is a real scalar.

    Args:
        f: the function, written with NumPy.  Its result (with `has_aux`, the first of the two) is a floating-point
            scalar.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        has_aux: whether `f` returns a pair `(out, aux)`, of which only `out` is differentiated.
        holomorphic: whether `f` is a holomorphic function of complex arguments, which is not checked.  The gradient
            then holds its complex derivatives.

    Returns:
        A function of the same arguments.  It returns an array of the shape and dtype of the argument (or a container of
        them like the argument; a tuple if `argnums` is a sequence).  With `has_aux` it returns `(gradient, aux)`.  For
        a complex argument z = x + iy of a real function it is df/dx - i df/dy, whose conjugate points uphill.

    Raises:
        TypeError: the argument is not floating-point, or the result is not a real scalar; with `holomorphic`, one of
            them is not complex.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0, 3.0]))
        array([2., 4., 6.])
    """

    check_function(f, "grad")
    argnums = as_argnums(argnums, "grad")

    @functools.wraps(f)
    def grad_of_f(*args: Any, **kwargs: Any) -> Any:
        chosen, traced, rebuild_aux = trace_at(f, args, kwargs, argnums, "grad", has_aux)
        _require_single(chosen, traced, f, "grad", holomorphic)
        program = d.gradient(traced.program, active_inputs(chosen, traced), with_value=False)
        outs = run(program, [*chosen.leaves, *traced.captured])
        gradients = tree.unflatten(chosen.structure, outs[len(outs) - len(chosen.leaves) :])
        return (gradients, rebuild_aux(outs[: len(outs) - len(chosen.leaves)])) if has_aux else gradients

    return named(takes_foreign_arrays(grad_of_f), f, "grad")


def _require_single(chosen: Arguments, traced: Traced, f: Function, what: str, holomorphic: bool) -> None:
    if not tree.is_one_array(traced.structure):
        if traced.structure.num_leaves == 0:
            raise TypeError(
                f"{what} is for functions with a scalar result, but {name_of(f)} returned no array: is a `return` "
                f"missing?{at_line(user_line())}"
            )
        raise TypeError(
            f"{what} is for functions with a scalar result, but {name_of(f)} returned a container with "
            f"{traced.structure.num_leaves} arrays; return a scalar, or use has_aux=True for a pair (scalar, more), "
            f"or jacobian{at_line(user_line())}"
        )
    require_scalar(traced.program, f, what, "jacobian", holomorphic)
    if holomorphic:
        require_complex(chosen, traced, f, what)


def require_complex(chosen: Arguments, traced: Traced, f: Function, what: str) -> None:
    """Raise unless all arguments and results of a function that was called holomorphic are complex.

    Raises:
        TypeError: one of them is not.
    """
    results = traced.program.out_types[: traced.structure.num_leaves]
    for role, types in (("arguments", chosen.types), ("results", results)):
        for type in types:
            if not is_complex(type.dtype):
                raise TypeError(
                    f"{what} with holomorphic=True is for functions from complex numbers to complex numbers, but "
                    f"{name_of(f)} has {type} among its {role}; leave it out, or convert by .astype(complex)"
                    + at_line(user_line())
                )


@overload
def value_and_grad(  # type: ignore[overload-overlap]
    f: Callable[Concatenate[First, Params], Result],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    taps: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[First, Params], tuple[Result, First]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[First, Params], tuple[Result, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    taps: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[First, Params], tuple[tuple[Result, Aux], First]]: ...
@overload
def value_and_grad(  # type: ignore[overload-overlap]
    f: Callable[Concatenate[First, Second, Params], Result],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
    taps: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[First, Second, Params], tuple[Result, Second]]: ...
@overload
def value_and_grad(  # type: ignore[overload-overlap]
    f: Callable[Concatenate[First, Second, Params], Result],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    taps: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[First, Second, Params], tuple[Result, tuple[First, Second]]]: ...
@overload
def value_and_grad(
    f: Callable[Params, Result],
    argnums: Sequence[int],
    has_aux: Literal[False] = False,
    taps: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Params, tuple[Result, tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    f: Callable[Params, Any],
    argnums: Argnums,
    has_aux: bool = False,
    taps: bool = False,
    holomorphic: bool = False,
) -> Callable[Params, tuple[Any, Any]]: ...
@overload
def value_and_grad(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    taps: Literal[True],
    holomorphic: bool = False,
) -> Callable[Params, tuple[Any, Any]]: ...
@makes_picklable
def value_and_grad(
    f: Function, argnums: Argnums = 0, has_aux: bool = False, taps: bool = False, holomorphic: bool = False
) -> Function:
    """Return a function that computes the value of a function and its gradient, in one evaluation.

    Args:
        f: as for `grad`.
        argnums: as for `grad`.
        has_aux: as for `grad`.
        taps: whether to collect the intermediate values that `f` names with `tap`, in a dictionary from each name to
            `(value, gradient)`, where `gradient` is that of the result with respect to the value.
        holomorphic: as for `grad`.

    Returns:
        A function of the same arguments that returns `(value, gradient)`, or `((value, aux), gradient)`.  With `taps`,
        the dictionary is added to the value: `((value, taps), gradient)` or `((value, aux, taps), gradient)`.

    Raises:
        TypeError: as `grad`.
        ValueError: two taps have the same name.
        NotImplementedError: a tap is inside a `while_loop` or a function with a custom derivative rule.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
        (np.float64(5.0), array([2., 4.]))
    """

    check_function(f, "value_and_grad")
    argnums = as_argnums(argnums, "value_and_grad")

    @functools.wraps(f)
    def value_and_grad_of_f(*args: Any, **kwargs: Any) -> Any:
        chosen, traced, rebuild_aux = trace_at(f, args, kwargs, argnums, "value_and_grad", has_aux)
        _require_single(chosen, traced, f, "value_and_grad", holomorphic)
        if taps:
            return _with_taps(chosen, traced, rebuild_aux)
        program = d.gradient(traced.program, active_inputs(chosen, traced), with_value=True)
        value, *outs = run(program, [*chosen.leaves, *traced.captured])
        gradients = tree.unflatten(chosen.structure, outs[len(outs) - len(chosen.leaves) :])
        if has_aux:
            return (value, rebuild_aux(outs[: len(outs) - len(chosen.leaves)])), gradients
        return value, gradients

    return named(takes_foreign_arrays(value_and_grad_of_f), f, "value_and_grad")


def _with_taps(chosen: Arguments, traced: Traced, rebuild_aux: Any) -> Any:
    """Run the gradient of a traced function together with that of its taps."""
    from .taps import collect, gradient_with_taps

    program, places = gradient_with_taps(traced.program, active_inputs(chosen, traced))
    outs = run(program, [*chosen.leaves, *traced.captured])
    (value, *aux), values, gradients, of_taps = cut(outs, len(traced.program.outputs), len(places), len(chosen.leaves))
    collected = collect(places, values, of_taps)
    of_arguments = tree.unflatten(chosen.structure, gradients)
    return ((value, collected) if rebuild_aux is None else (value, rebuild_aux(aux), collected)), of_arguments


def all_arguments(primals: Sequence[Any]) -> tuple[int, ...]:
    return tuple(range(len(primals)))


def zeros_of(types: Sequence[ArrayType]) -> list[Any]:
    """An array of zeros of each type."""
    return [np.zeros(t.shape, t.dtype) for t in types]


def with_zeros(given: Iterator[Any], is_given: Sequence[bool], types: Sequence[ArrayType]) -> list[Any]:
    """The next given tangent or cotangent where there is one, zeros of the type elsewhere."""
    return [next(given) if g else np.zeros(t.shape, t.dtype) for g, t in zip(is_given, types, strict=True)]


def checked_like(given: Any, structure: tree.Structure, types: Sequence[ArrayType], what: str, like: str) -> list[Any]:
    """The leaves of a tangent or cotangent, checked against the types that it must have."""
    leaves, given_structure = flatten_like(structure, given)
    if given_structure != structure:
        raise TypeError(
            f"{what} must have the structure of {like}: expected {structure}, got {given_structure}"
            + at_line(user_line())
        )
    checked = []
    for index, (x, type) in enumerate(zip(leaves, types, strict=True)):
        if is_plain(x, int | float | complex) and type.shape == ():
            x = np.asarray(x, type.dtype)[()]
        actual = type_of(x)
        if actual.shape != type.shape or not np.can_cast(actual.dtype, type.dtype, "same_kind"):
            raise TypeError(
                f"{what}{tree.paths(given)[index]} must have the type of {like}: expected {type}, got {actual}"
                + at_line(user_line())
            )
        checked.append(x if actual is type else x.astype(type.dtype))
    return checked


@overload
def jvp(
    f: Callable[..., tuple[Result, Aux]], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[True]
) -> tuple[Result, Result, Aux]: ...
@overload
def jvp(
    f: Callable[..., Result], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False
) -> tuple[Result, Result]: ...
@takes_foreign_arrays
def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]:
    """Compute the value of a function and its directional derivative (forward mode).

    Args:
        f: the function.
        primals: tuple of its arguments.
        tangents: the direction: a tuple of the same structure, shapes and dtypes.
        has_aux: whether `f` returns a pair `(out, aux)`, of which only `out` is differentiated.

    Returns:
        `(out, tangent)`, both like the result of `f`; `(out, tangent, aux)` if `has_aux`.

    Raises:
        TypeError: a primal is not floating-point, or the tangents do not match the primals.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.jvp(np.sin, (0.0,), (2.0,))
        (np.float64(0.0), np.float64(2.0))
    """
    check_function(f, "jvp")
    primals, tangents = as_tuple(primals, "jvp", "primals"), as_tuple(tangents, "jvp", "tangents")
    chosen, traced, rebuild_aux = trace_at(f, primals, {}, all_arguments(primals), "jvp", has_aux)
    given = checked_like(tangents, chosen.structure, chosen.types, "tangents", "the primals")
    program, out_active = _pushforward(traced.program, active_inputs(chosen, traced))
    outs = run(program, [*chosen.leaves, *traced.captured, *given])
    count = traced.structure.num_leaves
    out = tree.unflatten(traced.structure, outs[:count])
    tangent = tree.unflatten(traced.structure, outs[len(out_active) : len(out_active) + count])
    return (out, tangent, rebuild_aux(outs[count : len(out_active)])) if has_aux else (out, tangent)


def _pushforward(program: Program, active: tuple[bool, ...]) -> tuple[Program, tuple[bool, ...]]:
    """The jvp program, with zeros for absent tangents."""

    def make() -> tuple[Program, tuple[bool, ...]]:
        derived = jvp_program(program, active)
        count = len(program.outputs)
        given = iter(derived.program.outputs[count:])
        tangents = [
            next(given) if a else literal(0, x.type) for a, x in zip(derived.out_active, program.outputs, strict=True)
        ]
        full = Program(
            derived.program.name,
            derived.program.inputs,
            derived.program.eqns,
            (*derived.program.outputs[:count], *tangents),
        )
        return full, derived.out_active

    return program.derive(("pushforward", active), make)


@overload
def vjp(
    f: Callable[..., tuple[Result, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[Result, Callable[[Result], tuple[Any, ...]], Aux]: ...
@overload
def vjp(
    f: Callable[[*Primals], Result], *primals: *Primals, has_aux: Literal[False] = False
) -> tuple[Result, Callable[[Result], tuple[*Primals]]]: ...
@overload
def vjp(
    f: Callable[..., Result], *primals: Any, has_aux: Literal[False] = False
) -> tuple[Result, Callable[[Result], tuple[Any, ...]]]: ...
@returns_linear_function  # type: ignore[misc]
def vjp(f: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Compute the value of a function, and a function that pulls cotangents back through it (reverse mode).

    Args:
        f: the function.
        primals: its arguments.
        has_aux: whether `f` returns a pair `(out, aux)`, of which only `out` is differentiated.

    Returns:
        `(out, vjp_fn)`, or `(out, vjp_fn, aux)`.  `vjp_fn(cotangent)`, with a cotangent like `out`, returns a tuple
        with a cotangent for each argument.  You can call it any number of times.  It keeps the arrays that `residuals`
        lists.

    Raises:
        TypeError: a primal is not floating-point, or later the cotangent does not match the result.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> out, vjp_fn = ft.vjp(np.multiply, 2.0, 3.0)
        >>> vjp_fn(1.0)
        (np.float64(3.0), np.float64(2.0))
    """
    check_function(f, "vjp")
    chosen, traced, rebuild_aux = trace_at(f, primals, {}, all_arguments(primals), "vjp", has_aux)
    parts = without_unused_residuals(d.pullback(traced.program, active_inputs(chosen, traced)))
    inputs = [*chosen.leaves, *traced.captured]
    count, total = traced.structure.num_leaves, len(traced.program.outputs)
    outs = run(parts.values, inputs, wanted=total)
    made = residuals_of(parts.values, inputs, total)
    residuals = outs[total:]
    out_types = traced.program.out_types[:count]

    def vjp_fn(cotangent: Any) -> Any:
        given = checked_like(cotangent, traced.structure, out_types, "the cotangent", "the result")
        # Auxiliary results follow the differentiated ones; their cotangents are zero.
        wanted = [ct for ct, a in zip(given, parts.out_active, strict=False) if a]
        wanted += [
            np.zeros(t.shape, t.dtype)
            for t, a in zip(traced.program.out_types[count:], parts.out_active[count:], strict=True)
            if a
        ]
        cts = iter(run(parts.linear, [*residuals, *wanted], residuals=made))
        has_ct = with_zeros(cts, parts.in_active, chosen.types)
        return tree.unflatten(chosen.structure, has_ct)

    out = tree.unflatten(traced.structure, outs[:count])
    return (out, vjp_fn, rebuild_aux(outs[count:total])) if has_aux else (out, vjp_fn)


def without_unused_residuals(parts: d.Linear) -> d.Linear:
    """The two halves of a derivative, without residuals that the second does not use; a trace is pruned later."""
    return d.pruned(parts) if current_builder() is None else parts


def stop_gradient(x: Value) -> Value:
    """`x` itself, as a constant to every derivative.

    Args:
        x: an array, or a container of arrays.

    Returns:
        The same values.

    Raises:
        TypeError: `x` is a tensor of torch, whose gradient only torch can stop.

    Example:
        >>> import ftrans as ft
        >>> ft.grad(lambda x: x * ft.stop_gradient(x))(3.0)
        np.float64(3.0)
    """
    from ..ops.elementwise import stop_gradient as primitive

    if current_builder() is None and is_recorded(x):
        return call_on_recorded(stop_gradient, (x,), {})

    def stopped(y: Any) -> Any:
        if isinstance(y, Tracer) or is_jax_tracer(y):
            return primitive(asarray(y))
        if is_foreign(y):
            refuse_lookalike(y)
        return y

    return tree.map_leaves(stopped, x)
