"""Second derivatives that solvers ask for: lagrangian_hessian and gauss_newton."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import tree
from ..base.source import at_line, user_line
from .call import as_argnums, check_function, name_of, normalize_argnums
from .derivatives import Argnums, Function, jvp
from .sparse import Format, HessianMethod, Triangle, as_function, is_lower
from .sparse_call import Given, Options, SparseDerivative


def lagrangian_hessian(
    f: Function | None,
    g: Function | None,
    *,
    format: Format = "csr",
    method: HessianMethod = "auto",
    triangle: Triangle = "lower",
) -> Function:
    """The Hessian of the Lagrangian function sigma f(x) + multipliers @ g(x), as interior-point solvers ask for it.

    Args:
        f: the objective, a function of one argument whose result is a real scalar; None for none.
        g: the constraints, a function of the same argument that returns an array or a container of arrays; None for
            none.
        format: as for `sparse_jacobian`.
        method: as for `sparse_hessian`.
        triangle: "lower" for the entries on and below the diagonal only, or "full".

    Returns:
        A function `(x, multipliers, sigma=1.0)`, with multipliers like the result of `g`, that returns the matrix.  It
        has the methods of `sparse_hessian(f)`, for the same arguments.

    Raises:
        TypeError: `x` is not floating-point, or the result of `f` is not a real scalar.
        ValueError: the multipliers are not like the result of `g`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> hessian = ft.lagrangian_hessian(lambda x: np.sum(x**2), lambda x: x[1:] * x[:-1])
        >>> hessian(np.ones(3), np.array([5.0, 7.0]), 0.5).toarray()
        array([[1., 0., 0.],
               [5., 1., 0.],
               [0., 7., 1.]])
    """
    for function, name in ((f, "f"), (g, "g")):
        if function is not None:
            check_function(function, "lagrangian_hessian", name)
    options = Options(True, format, method, None, None, False, False, is_lower(triangle))
    return as_function(SparseDerivative(_Lagrangian(f, g), 0, options, "lagrangian_hessian", hessian_of_lagrangian))


def hessian_of_lagrangian(x: Any, multipliers: Any, sigma: Any = 1.0) -> Given:
    return (x, multipliers, sigma), {}


class _Lagrangian:
    """The Lagrangian function of an objective and constraints."""

    def __init__(self, f: Function | None, g: Function | None) -> None:
        self.f, self.g = f, g
        self.__name__ = f"lagrangian({', '.join(name_of(x) for x in (f, g) if x is not None)})"

    def __call__(self, x: Any, multipliers: Any, sigma: Any) -> Any:
        total = 0.0 if self.f is None else sigma * self.f(x)
        if self.g is None:
            return total
        values, structure = tree.flatten(self.g(x))
        weights, given = tree.flatten(multipliers)
        shapes = [np.shape(y) for y in values]
        if given != structure or [np.shape(w) for w in weights] != shapes:
            raise ValueError(
                f"lagrangian_hessian takes multipliers like the result of {name_of(self.g)}, arrays of the shapes "
                f"{', '.join(map(str, shapes))}, but they have {', '.join(str(np.shape(w)) for w in weights)}"
                + at_line(user_line())
            )
        for w, y in zip(weights, values, strict=True):
            total = total + np.sum(w * y)
        return total


def gauss_newton(
    residuals: Function,
    argnums: Argnums = 0,
    *,
    format: Format = "csr",
    method: HessianMethod = "auto",
    triangle: Triangle = "full",
) -> Function:
    """The Gauss-Newton matrix J'J of a function of residuals, where J is its Jacobian, without forming J.

    It is the Hessian of half the sum of squares of the residuals, without their second derivatives.

    Args:
        residuals: the function, which returns a real array or a container of them.
        argnums: as for `sparse_jacobian`.
        format: as for `sparse_jacobian`.
        method: as for `sparse_hessian`.
        triangle: as for `sparse_hessian`.

    Returns:
        A function of the same arguments that returns the matrix.  It has the methods of `sparse_hessian(f)`;
        `operator(x)` computes products J'(J v) without the matrix.

    Raises:
        TypeError: the argument or the residuals are not real and floating-point.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.gauss_newton(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0])).toarray()
        array([[ 4.,  2.,  0.],
               [ 2., 10.,  6.],
               [ 0.,  6.,  4.]])
    """
    check_function(residuals, "gauss_newton", "residuals")
    argnums = as_argnums(argnums, "gauss_newton")
    options = Options(True, format, method, None, None, False, False, is_lower(triangle))
    squares = _LinearizedSquares(residuals, argnums)
    return as_function(SparseDerivative(squares, 0, options, "gauss_newton", squares.arguments))


class _LinearizedSquares:
    """Half the sum of squares of J t, a function of tangents t and the arguments at which J is taken."""

    def __init__(self, residuals: Function, argnums: int | tuple[int, ...]) -> None:
        self.residuals, self.argnums = residuals, argnums
        self.__name__ = name_of(residuals)

    def arguments(self, *args: Any, **kwargs: Any) -> Given:
        """The arguments with tangents in front; the matrix does not depend on their values."""
        positions = normalize_argnums(self.argnums, len(args), self.residuals)
        chosen = args[positions[0]] if isinstance(self.argnums, int) else tuple(args[i] for i in positions)
        return (chosen, *args), kwargs

    def __call__(self, tangents: Any, *args: Any, **kwargs: Any) -> Any:
        positions = normalize_argnums(self.argnums, len(args), self.residuals)
        given = (tangents,) if isinstance(self.argnums, int) else tuple(tangents)

        def residuals(*chosen: Any) -> Any:
            new = dict(zip(positions, chosen, strict=True))
            return self.residuals(*(new.get(i, x) for i, x in enumerate(args)), **kwargs)

        moved = jvp(residuals, tuple(args[i] for i in positions), given)[1]
        total = 0.0
        for t in tree.flatten(moved)[0]:
            total = total + np.sum(t * t)
        return 0.5 * total
