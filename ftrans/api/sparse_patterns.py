"""Patterns of derivatives without their values: jacobian_sparsity and hessian_sparsity."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.pickles import makes_picklable
from ..base.source import at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_variables import Params
from ..core.trace import Tracer
from ..structure.entries import NotStructured
from ..structure.patterns.detect import hessian_pattern, jacobian_pattern
from .call import name_of, named
from .derivatives import Argnums, Function, active_inputs, trace_at
from .sparse_call import Options, SparseDerivative, known_values
from .sparsity import Sparsity


@makes_picklable
def jacobian_sparsity(f: Callable[Params, Any], argnums: Argnums = 0, at: Any = None) -> Callable[Params, Sparsity]:
    """The pattern of the Jacobian of a function: which elements of the result may depend on which of the argument.

    It is found from the program of `f`, without computing a derivative.  It holds for all values of the arguments for
    which Python code in `f` takes the same path, and may have an entry whose derivative happens to be zero.

    Args:
        f: the function.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        at: a point, for the pattern at that point: the argument, or a tuple of all arguments.  Conditions and indices
            are then those of the point, so that `where` has entries for the side that it chooses only.

    Returns:
        A function of the same arguments (of none, if `at` is given), of which only the types matter.  It returns a
        `Sparsity`, whose rows count the elements of the results one after the other, in row-major order, and whose
        columns count those of the arguments.

    Raises:
        TypeError: the argument or the result is not floating-point.
        ValueError: the pattern is too large.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> print(ft.jacobian_sparsity(lambda x: x[1:] * x[:-1])(np.ones(4)))
        ● ● · ·
        · ● ● ·
        · · ● ●
        3 x 4, 6 entries (50%)
        >>> ft.jacobian_sparsity(lambda x: np.where(x > 0, x, x[::-1]), at=np.array([1.0, 2.0, -1.0]))().nnz
        3
    """
    return _function(f, argnums, at, of_hessian=False)


@makes_picklable
def hessian_sparsity(f: Callable[Params, Any], argnums: Argnums = 0, at: Any = None) -> Callable[Params, Sparsity]:
    """The pattern of the Hessian of a function whose result is a real scalar.

    Args:
        f: the function.
        argnums: as for `jacobian_sparsity`.
        at: as for `jacobian_sparsity`.

    Returns:
        A function as for `jacobian_sparsity`, whose rows and columns count the elements of the arguments.

    Raises:
        TypeError: the argument is not floating-point, or the result is not a real scalar.
        ValueError: the pattern is too large.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> print(ft.hessian_sparsity(lambda x: np.sum(x[1:] * x[:-1] ** 2))(np.ones(3)))
        ● ● ·
        ● ● ●
        · ● ·
        3 x 3, 6 entries (66.7%)
    """
    return _function(f, argnums, at, of_hessian=True)


def _function(f: Function, argnums: Argnums, at: Any, of_hessian: bool) -> Function:
    name = "hessian_sparsity" if of_hessian else "jacobian_sparsity"
    options = Options(of_hessian, "csr", "auto", None, None, has_aux=False, with_value=False)
    derivative = SparseDerivative(f, argnums, options, name)

    @short_tracebacks
    @functools.wraps(f)
    def sparsity_of_f(*args: Any, **kwargs: Any) -> Sparsity:
        if at is not None:
            args = at if isinstance(at, tuple) else (at,)
        return _sparsity(derivative, args, kwargs, is_point=at is not None)

    return named(sparsity_of_f, f, name)


def _sparsity(derivative: SparseDerivative, args: tuple[Any, ...], kwargs: dict[str, Any], is_point: bool) -> Sparsity:
    chosen, traced, _ = trace_at(derivative.f, args, kwargs, derivative.argnums, derivative.name, False, rolls=False)
    derivative.require_differentiable(traced.program, chosen.types, traced.structure)
    inputs = [*chosen.leaves, *traced.captured]
    known = known_values(traced, len(chosen.leaves))
    if is_point:
        if any(isinstance(x, Tracer) for x in inputs):
            raise TypeError(
                f"{derivative.name} of {name_of(derivative.f)} is asked for at a point that is traced, whose values "
                f"are not known{at_line(user_line())}"
            )
        known = {i: np.asarray(x) for i, x in enumerate(inputs)}
    active = active_inputs(chosen, traced)
    try:
        if derivative.options.of_hessian:
            return Sparsity.from_scipy(hessian_pattern(traced.program, active, known))
        wanted = traced.structure.num_leaves
        return Sparsity.from_scipy(jacobian_pattern(traced.program, active, wanted, known))
    except NotStructured as error:
        raise ValueError(
            f"{derivative.name} of {name_of(derivative.f)} has found no pattern: {error.reason}{at_line(user_line())}"
        ) from None
