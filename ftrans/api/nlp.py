"""Nonlinear programs: an objective and constraints with the sparse derivatives that interior-point solvers ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.pickles import require_importable
from ..base.source import at_line, user_line
from ..numpy.promotion import asarray
from .call import check_function, name_of
from .derivatives import Function, grad
from .jit import jit
from .lagrangian import lagrangian_hessian
from .prepared import Prepared
from .sparse import sparse_jacobian

# With so many entries, compiled derivatives are ahead by more than compiling costs.
_MANY = 100_000

Structure = tuple[np.ndarray, np.ndarray]


def nlp(
    objective: Function,
    constraints: Function | None = None,
    *,
    intermediate: Callable[..., Any] | None = None,
    compile: bool | None = None,
) -> NonlinearProgram:
    """A nonlinear program with the methods that cyipopt's `Problem` calls.

    Args:
        objective: a function from a vector to a number.
        constraints: a function from that vector to another one, whose elements are bounded by the solver's `cl` and
            `cu`; None for a problem with bounds on the variables only.
        intermediate: what the solver is to call after each iteration.
        compile: whether derivatives are compiled; None compiles where the matrices have more than 100,000 entries.  For
            smaller ones NumPy is done with the problem before they are compiled.

    Returns:
        A `NonlinearProgram`.  Patterns are fixed when it is prepared for a point: `nlp(f, g).prepare(x0)`, or else with
        the first point that it is given.

    Raises:
        TypeError: `objective` or `constraints` is not a function.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> def constraints(x):
        ...     return np.array([x[0] * x[1], x[1] ** 2])
        >>> problem = ft.nlp(lambda x: x[0] ** 2 + x[1], constraints, compile=False).prepare(np.ones(2))
        >>> x, multipliers = np.array([1.0, 2.0]), np.array([3.0, 4.0])
        >>> problem.objective(x), problem.gradient(x)
        (3.0, array([2., 1.]))
        >>> J = np.zeros((2, 2))
        >>> J[problem.jacobianstructure()] = problem.jacobian(x)
        >>> J
        array([[2., 1.],
               [0., 4.]])
        >>> H = np.zeros((2, 2))
        >>> H[problem.hessianstructure()] = problem.hessian(x, multipliers, 1.0)
        >>> H
        array([[2., 0.],
               [3., 8.]])

        With cyipopt, `cyipopt.Problem(n=2, m=2, problem_obj=problem, lb=lb, ub=ub, cl=cl, cu=cu).solve(x0)`.
    """
    check_function(objective, "nlp", "objective")
    if constraints is not None:
        check_function(constraints, "nlp", "constraints")
    return NonlinearProgram(objective, constraints, intermediate, compile)


class NonlinearProgram:
    """An objective and constraints with their derivatives, under the names of cyipopt's problem class.

    `ft.nlp` makes one.

    Attributes:
        n: the number of variables.
        m: the number of constraints.
    """

    n: int
    m: int
    _jacobian: Prepared
    _hessian: Prepared

    def __init__(
        self,
        objective: Function,
        constraints: Function | None,
        intermediate: Callable[..., Any] | None,
        compile: bool | None,
    ) -> None:
        self._functions = objective, constraints
        self._compile = compile
        self._ready = False
        self._point: Any = None
        if intermediate is not None:
            # A solver looks whether there is such a method.
            self.intermediate = intermediate

    def __reduce__(self) -> tuple[Any, ...]:
        intermediate = getattr(self, "intermediate", None)
        require_importable("a nonlinear program", (*self._functions, intermediate))
        return _made_again, (*self._functions, intermediate, self._compile, self._point)

    def prepare(self, x: Any) -> NonlinearProgram:
        """Find the patterns, and make the derivatives, for points like `x`; returns the problem itself.

        Args:
            x: a point: a vector of real numbers.

        Raises:
            TypeError: a function cannot be differentiated.
            ValueError: the point is no vector.
        """
        objective, constraints = self._functions
        x = np.asarray(x, float)
        if x.ndim != 1:
            raise ValueError(
                f"a nonlinear program is prepared for a vector, not for an array of shape {x.shape}; let the functions "
                f"take it apart{at_line(user_line())}"
            )

        self._point = x

        def f(x: Any) -> Any:
            return np.reshape(asarray(objective(x)), ())

        def g(x: Any) -> Any:
            return x[:0] if constraints is None else np.reshape(asarray(constraints(x)), (-1,))

        f.__name__ = name_of(objective)
        g.__name__ = "no constraints" if constraints is None else name_of(constraints)
        first: Any = sparse_jacobian(g)
        second: Any = lagrangian_hessian(f, None if constraints is None else g)

        def derivatives(compile: bool) -> tuple[Prepared, Prepared]:
            found = first.prepare(x, compile=compile)
            multipliers = np.ones(found.shape[0])
            return found, second.prepare(x, multipliers, np.float64(1), compile=compile)

        self._jacobian, self._hessian = derivatives(bool(self._compile))
        compile = self._compile
        if compile is None:
            compile = self._jacobian.nnz + self._hessian.nnz > _MANY
            if compile:
                self._jacobian, self._hessian = derivatives(True)
        self._objective, self._gradient = objective, grad(f)
        if compile:
            self._objective, self._gradient = jit(f), jit(self._gradient)
        self._constraints = g if constraints is None else jit(g) if compile else constraints
        self.n, self.m = x.size, self._jacobian.shape[0]
        self._ready = True
        return self

    # What a solver calls

    def objective(self, x: Any) -> float:
        """The objective, a number."""
        return float(np.reshape(self._at(x)._objective(np.asarray(x, float)), ()))

    def gradient(self, x: Any) -> np.ndarray:
        """The gradient of the objective, of shape (n,)."""
        return self._at(x)._gradient(np.asarray(x, float))

    def constraints(self, x: Any) -> np.ndarray:
        """The constraints, of shape (m,)."""
        return np.reshape(self._at(x)._constraints(np.asarray(x, float)), (-1,))

    def jacobian(self, x: Any) -> np.ndarray:
        """The entries of the Jacobian of the constraints, in the order of `jacobianstructure`."""
        return self._at(x)._jacobian.values(np.asarray(x, float))

    def jacobianstructure(self) -> Structure:
        """Rows and columns of the entries of the Jacobian."""
        self._require_ready()
        return self._jacobian.rows, self._jacobian.cols

    def hessian(self, x: Any, lagrange: Any, obj_factor: Any) -> np.ndarray:
        """The entries of the lower triangle of the Hessian of `obj_factor * objective + lagrange @ constraints`.

        Args:
            x: the point.
            lagrange: the multipliers, of shape (m,).
            obj_factor: the factor of the objective.
        """
        found = self._at(x)._hessian
        return found.values(np.asarray(x, float), np.asarray(lagrange, float)[: self.m], np.float64(obj_factor))

    def hessianstructure(self) -> Structure:
        """Rows and columns of the entries of the Hessian, with rows >= columns."""
        self._require_ready()
        return self._hessian.rows, self._hessian.cols

    def explain(self) -> str:
        """How the entries of both matrices are computed, as text for people."""
        self._require_ready()
        return f"{self._jacobian.explain()}\n\n{self._hessian.explain()}"

    def __repr__(self) -> str:
        names = ", ".join(name_of(f) for f in self._functions if f is not None)
        size = f"{self.n} variables, {self.m} constraints" if self._ready else "not prepared yet"
        return f"<NonlinearProgram {names}: {size}>"

    def _at(self, x: Any) -> NonlinearProgram:
        return self if self._ready else self.prepare(x)

    def _require_ready(self) -> None:
        if not self._ready:
            raise ValueError(
                f"the patterns of the nonlinear program of {name_of(self._functions[0])} depend on the number of "
                f"variables, which is not known yet; prepare it for a point, ft.nlp(...).prepare(x0)"
                + at_line(user_line())
            )


def _made_again(objective: Any, constraints: Any, intermediate: Any, compile: bool | None, point: Any) -> Any:
    """A problem like one that was pickled, prepared for the same point if it was."""
    problem = NonlinearProgram(objective, constraints, intermediate, compile)
    return problem if point is None else problem.prepare(point)
