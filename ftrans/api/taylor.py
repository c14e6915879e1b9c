"""Derivatives of high order along a line: Taylor coefficients, and derivatives along several directions."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from ..base import tree
from ..base.pickles import makes_picklable
from ..base.source import at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_variables import Params
from ..core.program import Program
from ..structure.taylor.bilaplacian import bilaplacian as bilaplacian_program
from ..structure.taylor.taylor import taylor as taylor_program
from .call import Arguments, Traced, as_argnums, as_tuple, check_flag, check_function, named, run, type_name
from .derivatives import Argnums, Function, active_inputs, checked_like, trace_at
from .laplacians import trace_real


@short_tracebacks
def taylor(f: Function, x: Any, v: Any, order: int) -> list[Any]:
    """The Taylor coefficients of a function along a line.

    They are the numbers `c[k]` with `f(x + t * v) = c[0] + c[1] * t + ... + c[order] * t**order + ...`, so that
    `c[k]` times the factorial of `k` is the derivative of order `k` along `v`.  All of them together cost about
    `order**2` evaluations of `f` at most, where derivatives of derivatives would cost `2**order`.

    Args:
        f: the function.
        x: where the line begins: the argument of `f`, or a tuple of several arguments.
        v: its direction, of the same structure, shapes and dtypes.
        order: up to which order coefficients are wanted, at least 0.

    Returns:
        A list of `order + 1` coefficients, each like the result of `f`.

    Raises:
        TypeError: an argument is not floating-point, or the direction does not match.
        ValueError: the order is negative.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.taylor(np.exp, 0.0, 1.0, 3)
        [np.float64(1.0), np.float64(1.0), np.float64(0.5), np.float64(0.16666666666666666)]
    """
    check_function(f, "taylor")
    count = _as_order(order, "taylor")
    args, directions = _as_arguments(x), _as_arguments(v)
    chosen, traced, _ = trace_at(f, args, {}, tuple(range(len(args))), "taylor", False)
    given = checked_like(directions, chosen.structure, chosen.types, "the direction", "the arguments")
    rows = _rows(chosen, traced, [given] if count else [], count, derivatives=False)
    return [tree.unflatten(traced.structure, [row[k] for row in rows]) for k in range(count + 1)]


@short_tracebacks
def jet(
    fun: Function, primals: Sequence[Any], series: Sequence[Sequence[Any]], factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """The derivatives of a function along a curve, as `jax.experimental.jet.jet` gives them.

    Args:
        fun: the function.
        primals: tuple of its arguments: where the curve is at time 0.
        series: for each argument, a list with the derivatives of the curve at time 0, from the first; all lists are
            of one length, the order up to which derivatives are wanted.
        factorial_scaled: whether derivatives are given and returned; otherwise Taylor coefficients, which are these
            divided by the factorial of their order.

    Returns:
        `(out, terms)`: the result, and the same with a list of derivatives of this order in the place of each array.

    Raises:
        TypeError: an argument is not floating-point, or the derivatives do not match.
        ValueError: lists differ in length.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.jet(np.exp, (0.0,), ([1.0, 0.0, 0.0],))
        (np.float64(1.0), [np.float64(1.0), np.float64(1.0), np.float64(1.0)])
    """
    check_function(fun, "jet")
    args, terms = as_tuple(primals, "jet", "primals"), as_tuple(series, "jet", "series")
    if not all(isinstance(row, tuple | list) for row in terms):
        raise TypeError(
            "series of jet has a list of derivatives for each argument: for one argument of derivatives d1 and d2 "
            f"write ([d1, d2],), not {series!r}{at_line(user_line())}"
        )
    lengths = [len(row) for row in terms]
    if len(terms) != len(args) or len(set(lengths)) > 1:
        raise ValueError(
            f"series of jet has a list of derivatives for each argument, all of one length, but for {len(args)} "
            f"arguments it has lists of the lengths {lengths}; derivatives that are zero are given, too"
            + at_line(user_line())
        )
    chosen, traced, _ = trace_at(fun, args, {}, tuple(range(len(args))), "jet", False)
    count = lengths[0] if lengths else 0
    given = [
        checked_like(
            tuple([row[k] for row in terms]), chosen.structure, chosen.types, f"derivative {k + 1}", "the primals"
        )
        for k in range(count)
    ]
    check_flag(factorial_scaled, "jet", "factorial_scaled")
    rows = _rows(chosen, traced, given, count, derivatives=factorial_scaled)
    structure = traced.structure
    return tree.unflatten(structure, [row[0] for row in rows]), tree.unflatten(structure, [row[1:] for row in rows])


@short_tracebacks
def directional_derivative(f: Function, x: Any, *vs: Any) -> Any:
    """The derivative of a function along several directions, one after the other: `D^k f(x)[v1, ..., vk]`.

    Equal directions, that is the same arrays, are taken together as one Taylor series.

    Args:
        f: the function.
        x: the point: the argument of `f`, or a tuple of several arguments.
        vs: the directions, each of the same structure, shapes and dtypes; the derivative is of the order of their
            number.

    Returns:
        The derivative, like the result of `f`; the result itself if there are no directions.

    Raises:
        TypeError: an argument is not floating-point, or a direction does not match.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> e1, e2 = np.eye(2)
        >>> ft.directional_derivative(lambda x: x[0]**2 * x[1]**3, np.array([1.0, 2.0]), e1, e2, e2)
        np.float64(24.0)
    """
    check_function(f, "directional_derivative")
    args = _as_arguments(x)
    chosen, traced, _ = trace_at(f, args, {}, tuple(range(len(args))), "directional_derivative", False)
    directions: list[tuple[list[Any], int]] = []
    for v in vs:
        leaves = checked_like(_as_arguments(v), chosen.structure, chosen.types, "a direction", "the arguments")
        for i, (other, times) in enumerate(directions):
            if all(a is b for a, b in zip(leaves, other, strict=True)):
                directions[i] = other, times + 1
                break
        else:
            directions.append((leaves, 1))
    count = len(chosen.leaves)
    program = traced.program
    for _, times in directions:
        program = _along(program, count, times)
    given = [leaf for leaves, _ in directions for leaf in leaves]
    return tree.unflatten(traced.structure, run(program, [*chosen.leaves, *traced.captured, *given]))


def _along(program: Program, count: int, times: int) -> Program:
    """The derivative of an order along one direction, which the program takes behind its inputs."""
    given = tuple([(1,) if i < count else () for i in range(len(program.inputs))])

    def make() -> Program:
        outputs = len(program.outputs)
        derived = taylor_program(program, given, times, (True,) * outputs, derivatives=True).program
        last = derived.outputs[outputs + times - 1 :: times]
        return Program(derived.name, derived.inputs, derived.eqns, last)

    return program.derive(("along", given, times), make)


def _as_arguments(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _as_order(order: Any, what: str) -> int:
    try:
        found = operator.index(order)
    except TypeError:
        raise TypeError(
            f"the order of {what} is the highest power that is wanted, an int, not {type_name(order)}"
            + at_line(user_line())
        ) from None
    if found < 0:
        raise ValueError(f"the order of {what} is the highest power that is wanted, not {found}{at_line(user_line())}")
    return found


def _rows(
    chosen: Arguments, traced: Traced, given: Sequence[Sequence[Any]], order: int, derivatives: bool
) -> list[list[Any]]:
    """For each result, its coefficients from 0 to `order`, where `given` has those of the arguments from 1."""
    program = traced.program
    orders = tuple(range(1, len(given) + 1))
    ins = tuple([orders if i < len(chosen.leaves) else () for i in range(len(program.inputs))])
    count = len(program.outputs)
    derived = taylor_program(program, ins, order, (True,) * count, derivatives=derivatives).program
    by_argument = [row[i] for i in range(len(chosen.leaves)) for row in given]
    outs = run(derived, [*chosen.leaves, *traced.captured, *by_argument])
    return [[outs[i], *outs[count + i * order : count + (i + 1) * order]] for i in range(count)]


@makes_picklable
def bilaplacian(
    f: Callable[Params, Any], argnums: Argnums = 0, has_aux: bool = False, *, chunk_size: int | None = None
) -> Callable[Params, Any]:
    """The bilaplacian of a function: the Laplacian of its Laplacian, `sum_ij d^4 f / dx_i^2 dx_j^2`.

    It is exact up to rounding, and takes a Taylor series of order 4 along each of `n**2` directions for `n` elements of
    the argument.

    Args:
        f: the function.  Its results may have any shape, and be complex; the argument is real.
        argnums: the position of the argument, or a sequence of positions, whose elements all count.
        has_aux: whether `f` returns a pair `(out, aux)`, of which only `out` is differentiated.
        chunk_size: along how many directions to differentiate at once, which bounds the memory; all by default.

    Returns:
        A function of the same arguments.  It returns a bilaplacian of the shape and dtype of each result, and the
        auxiliary result if `has_aux`.

    Raises:
        TypeError: the argument is not real floating-point, or a result is not floating-point.
        ValueError: the chunk size is not positive.

    Source:
        Griewank, Utke and Walther, Evaluating higher derivative tensors by forward propagation of univariate Taylor
        series, Mathematics of Computation 69 (2000).

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.bilaplacian(lambda x: np.sum(x**2) ** 2)(np.array([1.0, 2.0, 3.0]))
        np.float64(120.0)
    """
    check_function(f, "bilaplacian")
    argnums = as_argnums(argnums, "bilaplacian")
    if chunk_size is not None and (not isinstance(chunk_size, Integral) or chunk_size < 1):
        raise ValueError(
            f"chunk_size of bilaplacian is a number of directions, not {chunk_size!r}{at_line(user_line())}"
        )

    @short_tracebacks
    @functools.wraps(f)
    def bilaplacian_of_f(*args: Any, **kwargs: Any) -> Any:
        chosen, traced, rebuild_aux = trace_real(f, args, kwargs, argnums, "bilaplacian", has_aux)
        width, total = traced.structure.num_leaves, len(traced.program.outputs)
        program = bilaplacian_program(traced.program, active_inputs(chosen, traced), width, chunk_size)
        outs = run(program, [*chosen.leaves, *traced.captured])
        result = tree.unflatten(traced.structure, outs[total:])
        return (result, rebuild_aux(outs[width:total])) if has_aux else result

    return named(bilaplacian_of_f, f, "bilaplacian")
