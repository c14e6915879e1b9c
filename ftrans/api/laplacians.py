"""Sums of derivatives along all directions: laplacian, hessian_diagonal, divergence and curl."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ..base import tree
from ..base.pickles import makes_picklable
from ..base.source import at_line, user_line
from ..base.type_variables import Params
from ..core.program import Program
from ..core.trace import Tracer
from ..core.types import is_complex, is_inexact
from ..numpy.promotion import cast
from ..structure.choice import key_of
from ..structure.laplacian import laplacian as structure
from .call import Arguments, Traced, as_argnums, check_function, name_of, named, require_scalar, run, type_name
from .derivatives import Argnums, Function, active_inputs, trace_at
from .foreign_arrays import takes_foreign_arrays
from .sparse_call import known_captures, without_values

Estimator = Literal["hutchinson"] | None

_MASK = 0xFFFFFFFF
# Programs for as many different values of captured indices are made of one function.
_MOST_INDICES = 4


@makes_picklable
def laplacian(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    estimator: Estimator = None,
    samples: int = 1,
    seed: Any = 0,
) -> Callable[Params, Any]:
    """The Laplacian of a function: the sum of its second derivatives by each element of its argument.

    It is computed forwards: values, their gradients and their Laplacians go through the program together, at the cost
    of one first derivative for each element of the argument, and of less where values depend on few elements.

    Args:
        f: the function.  Its results may have any shape, and be complex; the argument is real.
        argnums: the position of the argument, or a sequence of positions, whose elements all count.
        has_aux: whether `f` returns a pair `(out, aux)`, of which only `out` is differentiated.
        estimator: None for the exact Laplacian; "hutchinson" for the mean of the second derivatives along random
            directions of elements 1 and -1, whose expectation is the Laplacian.
        samples: number of random directions of the estimator.
        seed: an integer, possibly traced, that determines the directions.

    Returns:
        A function of the same arguments.  It returns a Laplacian of the shape and dtype of each result, and the
        auxiliary result if `has_aux`.

    Raises:
        TypeError: the argument is not real, or a result is not floating-point.
        ValueError: the estimator is unknown.

    Source:
        Li et al., A computational framework for neural network-based variational Monte Carlo with Forward Laplacian,
        Nature Machine Intelligence 6 (2024); Hutchinson, A stochastic estimator of the trace of the influence matrix
        for Laplacian smoothing splines, Communications in Statistics 18 (1989).

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.laplacian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
        np.float64(18.0)
    """
    check_function(f, "laplacian")
    argnums = as_argnums(argnums, "laplacian")
    count = _checked_samples("laplacian", estimator, samples)

    @functools.wraps(f)
    def laplacian_of_f(*args: Any, **kwargs: Any) -> Any:
        chosen, traced, rebuild_aux = trace_real(f, args, kwargs, argnums, "laplacian", has_aux)
        width = traced.structure.num_leaves
        program = structure.laplacian(
            traced.program, active_inputs(chosen, traced), width, _known(chosen, traced), count
        )
        aux, found = _run(program, chosen, traced, count, seed)
        result = tree.unflatten(traced.structure, found)
        return (result, rebuild_aux(aux)) if has_aux else result

    return named(takes_foreign_arrays(laplacian_of_f), f, "laplacian")


@makes_picklable
def hessian_diagonal(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    estimator: Estimator = None,
    samples: int = 1,
    seed: Any = 0,
) -> Callable[Params, Any]:
    """The diagonal of the Hessian: the second derivatives of a function by each element of its argument.

    Args:
        f: the function.  For the estimator, its result is a real scalar.
        argnums: the position of the argument, or a sequence of positions.
        has_aux: whether `f` returns a pair `(out, aux)`, of which only `out` is differentiated.
        estimator: None for the exact diagonal; "hutchinson" for the mean of `v * (H @ v)` over random directions `v` of
            elements 1 and -1, whose expectation is the diagonal.
        samples: number of random directions of the estimator.
        seed: an integer, possibly traced, that determines the directions.

    Returns:
        A function of the same arguments.  For a scalar result it returns an array of the shape of the argument, or a
        container like the argument; for a result of shape `s`, arrays of shape `s + t` for arguments of shape `t`.

    Raises:
        TypeError: the argument is not real, or a result is not floating-point.
        ValueError: the estimator is unknown.

    Source:
        Bekas, Kokiopoulou and Saad, An estimator for the diagonal of a matrix, Applied Numerical Mathematics 57 (2007).

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.hessian_diagonal(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
        array([ 6., 12.])
    """
    check_function(f, "hessian_diagonal")
    argnums = as_argnums(argnums, "hessian_diagonal")
    count = _checked_samples("hessian_diagonal", estimator, samples)

    @functools.wraps(f)
    def hessian_diagonal_of_f(*args: Any, **kwargs: Any) -> Any:
        chosen, traced, rebuild_aux = trace_real(f, args, kwargs, argnums, "hessian_diagonal", has_aux)
        width, size = traced.structure.num_leaves, len(chosen.leaves)
        active = active_inputs(chosen, traced)
        if count is None:
            program = structure.hessian_diagonal(traced.program, active, width, _known(chosen, traced))
        else:
            require_scalar(traced.program, f, "hessian_diagonal by an estimator", "the exact one, without estimator")
            program = structure.sampled_diagonal(traced.program, active, count)
        aux, blocks = _run(program, chosen, traced, count, seed)
        rows = [tree.unflatten(chosen.structure, blocks[j * size : (j + 1) * size]) for j in range(width)]
        result = tree.unflatten(traced.structure, rows)
        return (result, rebuild_aux(aux)) if has_aux else result

    return named(takes_foreign_arrays(hessian_diagonal_of_f), f, "hessian_diagonal")


@makes_picklable
def divergence(
    f: Callable[Params, Any], argnums: Argnums = 0, *, estimator: Estimator = None, samples: int = 1, seed: Any = 0
) -> Callable[Params, Any]:
    """The divergence of a vector field: the sum of the derivatives of each element by the same element of the argument.

    Args:
        f: the field.  Its result has the containers and shapes of the argument; it may be complex.
        argnums: the position of the argument, or a sequence of positions.
        estimator: None for the exact divergence; "hutchinson" for the mean of `v @ (J @ v)` over random directions `v`
            of elements 1 and -1, whose expectation is the divergence.
        samples: number of random directions of the estimator.
        seed: an integer, possibly traced, that determines the directions.

    Returns:
        A function of the same arguments that returns a scalar.

    Raises:
        TypeError: the argument is not real, or the result is not like the argument.
        ValueError: the estimator is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.divergence(lambda x: x**2)(np.array([1.0, 2.0, 3.0]))
        np.float64(12.0)
    """
    check_function(f, "divergence")
    argnums = as_argnums(argnums, "divergence")
    count = _checked_samples("divergence", estimator, samples)

    @functools.wraps(f)
    def divergence_of_f(*args: Any, **kwargs: Any) -> Any:
        chosen, traced, _ = trace_real(f, args, kwargs, argnums, "divergence", False)
        _require_field(f, chosen, traced)
        program = structure.divergence(traced.program, active_inputs(chosen, traced), _known(chosen, traced), count)
        return _run(program, chosen, traced, count, seed)[1][0]

    return named(takes_foreign_arrays(divergence_of_f), f, "divergence")


@makes_picklable
def curl(f: Callable[Params, Any], argnums: int = 0) -> Callable[Params, Any]:
    """The curl of a vector field in two or three dimensions.

    Args:
        f: the field, a function of an array of 2 or 3 elements that returns as many.
        argnums: the position of that argument.

    Returns:
        A function of the same arguments.  In three dimensions it returns the vector
        `(df2/dx1 - df1/dx2, df0/dx2 - df2/dx0, df1/dx0 - df0/dx1)`, in two the scalar `df1/dx0 - df0/dx1`.

    Raises:
        TypeError: the argument or the result is not a vector of 2 or 3 numbers.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.curl(lambda x: np.array([-x[1], x[0], 0.0]))(np.array([1.0, 2.0, 3.0]))
        array([0., 0., 2.])
    """
    check_function(f, "curl")
    position = as_argnums(argnums, "curl")

    @functools.wraps(f)
    def curl_of_f(*args: Any, **kwargs: Any) -> Any:
        chosen, traced, _ = trace_real(f, args, kwargs, position, "curl", False)
        types = [*chosen.types, *traced.program.out_types]
        if len(types) != 2 or types[0].shape != types[1].shape or types[0].shape not in ((2,), (3,)):
            raise TypeError(
                f"curl is for functions of 2 numbers with 2 results and of 3 numbers with 3 results, arrays of shape "
                f"(2,) or (3,), but {name_of(f)} has {', '.join(map(str, types))} for arguments and results; put "
                f"components together by np.stack, and for many points use vmap{at_line(user_line())}"
            )
        program = structure.curl(traced.program, active_inputs(chosen, traced))
        return _run(program, chosen, traced, None, None)[1][0]

    return named(takes_foreign_arrays(curl_of_f), f, "curl")


def trace_real(
    f: Function, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums, what: str, has_aux: bool
) -> tuple[Arguments, Traced, Any]:
    """The traced function, which has real arguments and floating-point results.

    Raises:
        TypeError: it has others.
    """
    chosen, traced, rebuild_aux = trace_at(f, args, kwargs, argnums, what, has_aux)
    for t in chosen.types:
        if is_complex(t.dtype):
            raise TypeError(
                f"{what} sums over real directions, but {name_of(f)} was called with {t}; make it a function of the "
                f"real and the imaginary part{at_line(user_line())}"
            )
    for t in traced.program.out_types[: traced.structure.num_leaves]:
        if not is_inexact(t.dtype):
            raise TypeError(
                f"{what} needs floating-point results, but {name_of(f)} returned {t}, whose derivative is zero "
                f"everywhere or does not exist{at_line(user_line())}"
            )
    return chosen, traced, rebuild_aux


def _known(chosen: Arguments, traced: Traced) -> dict[int, Any]:
    """The captured integers, which say which elements are used; none where they are others on each call."""
    known = known_captures(traced, len(chosen.leaves))
    met: set[Any] = traced.program.derive("indices met", set)
    key = key_of(known)
    if key not in met and len(met) == _MOST_INDICES:
        return {}
    met.add(key)
    return known


def _require_field(f: Function, chosen: Arguments, traced: Traced) -> None:
    """Raise unless the result of a function has the containers and shapes of its argument."""
    results = traced.program.out_types[: traced.structure.num_leaves]
    if traced.structure != chosen.structure or [t.shape for t in results] != [t.shape for t in chosen.types]:
        raise TypeError(
            f"the divergence is that of a vector field, whose result is like its argument, but {name_of(f)} takes "
            f"{', '.join(map(str, chosen.types))} and returns {', '.join(map(str, results))}; for other derivatives "
            f"use jacobian{at_line(user_line())}"
        )


# The estimator


def _checked_samples(what: str, estimator: Any, samples: Any) -> int | None:
    """The number of random directions; None for the exact result.

    Raises:
        ValueError: the estimator is unknown, or the number is not positive.
    """
    if estimator not in (None, "hutchinson"):
        raise ValueError(f'estimator of {what} must be None or "hutchinson", not {estimator!r}{at_line(user_line())}')
    if not (isinstance(samples, int | np.integer) and samples > 0):
        raise ValueError(f"samples of {what} must be a positive integer, not {samples!r}{at_line(user_line())}")
    return None if estimator is None else int(samples)


def _run(
    program: Program, chosen: Arguments, traced: Traced, samples: int | None, seed: Any
) -> tuple[list[Any], list[Any]]:
    """The auxiliary results of a traced function, and what a program made of it has more.

    If there are samples, the program takes a key for its random directions at the end.
    """
    width = traced.structure.num_leaves
    key = [] if samples is None else [_key(seed)]
    outs = run(without_values(program, width), [*chosen.leaves, *traced.captured, *key])
    count = len(traced.program.outputs) - width
    return outs[:count], outs[count:]


def _key(seed: Any) -> Any:
    """The key of random bits for a seed.

    Raises:
        TypeError: the seed is not an integer.
    """
    if isinstance(seed, Tracer) and seed.shape == () and seed.dtype.kind in "iu":
        wide = cast(seed, np.dtype(np.uint64))
        return np.stack([wide >> 32, wide & _MASK]).astype(np.uint32)
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"seed must be an integer, not {type_name(seed)}{at_line(user_line())}") from None
    return np.array([number >> 32 & _MASK, number & _MASK], np.uint32)
