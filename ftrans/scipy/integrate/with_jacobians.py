"""`solve_ivp` and `solve_bvp` on plain values: SciPy's algorithms, given the exact Jacobians that they can use."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.integrate

from ...api.jacobians import jacobian
from ...core.trace import current_builder
from ...numpy.dispatch import REFUSED, implements, missing
from ...numpy.promotion import asarray
from ..derivatives import jacobian_of, vector
from ..supplied import Account, Function, Supplied, Used, attempt, solving
from . import initial_value
from .integrands import FoundTraced, is_traced, plainly

__all__ = ["solve_bvp", "solve_ivp"]

# Whether a method takes a sparse Jacobian, for those that take one.
_METHODS = {"Radau": True, "BDF": True, "LSODA": False}


def solve_ivp(
    fun: Function,
    t_span: Sequence[float],
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Sequence[Any] | None = None,
    *,
    compile: bool | None = None,
    progress: bool | str = False,
    **options: Any,
) -> Any:
    """`scipy.integrate.solve_ivp`; the implicit methods Radau, BDF and LSODA are given the exact Jacobian.

    For Radau and BDF it is a sparse array if it is sparse and has at least 10,000 elements.  The other methods take
    none.  Complex states are left to SciPy's differences.

    Where a trace runs, the states are differentiable by `y0`, `t_span`, `t_eval`, `args` and whatever `fun` closes
    over, in every mode and of every order.  Their derivatives are states of the variational equations, which the same
    method solves with the same tolerances; steps in between have no derivative.  States must be real.  `fun` may have
    branches on the time and on the state; where it jumps at a time that the state or a parameter decides, there is no
    derivative.  Times of events, and states there, are differentiable.  Reverse mode solves for as many tangents as
    there are numbers to derive by.

    Args:
        fun: as for SciPy.
        t_span: as for SciPy.
        y0: as for SciPy.
        method: as for SciPy.
        t_eval: as for SciPy.
        dense_output: as for SciPy.
        events: as for SciPy.
        vectorized: as for SciPy.
        args: as for SciPy.
        compile: whether the Jacobian is compiled; None compiles it when its evaluations have cost as much as that.
        progress: whether to show a progress bar that counts evaluations of `fun`, or its description.
        options: as for SciPy.  A `jac` is used as it is; a `jac_sparsity` is not needed, since the pattern is found.

    Returns:
        SciPy's result.  `result.ftrans["jac"]` says what was used.

    Raises:
        ValueError: as SciPy; where a trace runs, also if an option is traced, or if there are `events` under `vmap`.
        ConvergenceError: the solution is derived, and `fun` jumps where the state decides.

    Example:
        >>> import numpy as np
        >>> from ftrans.scipy.integrate import solve_ivp
        >>> solution = solve_ivp(lambda t, y, k: -k * (y - np.cos(t)), (0, 1), [0.0], "Radau", args=(50.0,), rtol=1e-8)
        >>> print(np.round(solution.y[:, -1], 4))
        [0.5569]
    """
    if current_builder() is not None:
        return initial_value.solve_ivp(
            fun, t_span, y0, method, t_eval, dense_output, events, vectorized, args, **options
        )
    account: Account = {}
    takes = [name for name in _METHODS if method == name or _is_solver(method, getattr(scipy.integrate, name))]
    if takes and options.get("jac") is None and options.get("lband") is options.get("uband") is None:
        found = attempt(
            account, "jac", lambda used: _jacobian(fun, t_span, y0, args, vectorized, used, _METHODS[takes[0]], compile)
        )
        if found is not None:
            options["jac"] = lambda t, y, *_: found(y, np.float64(t))
    with solving("solve_ivp", fun, account, progress) as shown:
        result = scipy.integrate.solve_ivp(
            shown, t_span, y0, method, t_eval, dense_output, events, vectorized, args, **options
        )
    result.ftrans = account
    return result


def _is_solver(method: Any, solver: type) -> bool:
    return inspect.isclass(method) and issubclass(method, solver)


def _jacobian(
    fun: Function,
    t_span: Sequence[float],
    y0: Any,
    args: Sequence[Any] | None,
    vectorized: bool,
    used: Used,
    sparse: bool,
    compile: bool | None,
) -> Supplied:
    """The Jacobian by the state, a function of the state and the time."""
    start = _real(y0)

    def slopes(y: Any, t: Any) -> Any:
        return fun(t, y[:, np.newaxis] if vectorized else y, *(args or ()))

    return jacobian_of(vector(slopes), (start, np.float64(t_span[0])), used, sparse, compile)


def solve_bvp(
    fun: Function,
    bc: Function,
    x: Any,
    y: Any,
    p: Any = None,
    S: Any = None,
    fun_jac: Any = None,
    bc_jac: Any = None,
    tol: float = 1e-3,
    max_nodes: int = 1000,
    verbose: int = 0,
    bc_tol: float | None = None,
    *,
    compile: bool | None = None,
    progress: bool | str = False,
) -> Any:
    """`scipy.integrate.solve_bvp` with exact Jacobians of the equations and of the boundary conditions.

    Args:
        fun: as for SciPy.
        bc: as for SciPy.
        x: as for SciPy.
        y: as for SciPy.
        p: as for SciPy.
        S: as for SciPy.
        fun_jac: as for SciPy; None is for the exact Jacobian.
        bc_jac: as for SciPy; None is for the exact Jacobian.
        tol: as for SciPy.
        max_nodes: as for SciPy.
        verbose: as for SciPy.
        bc_tol: as for SciPy.
        compile: whether Jacobians are compiled, once for each mesh; they are not by default.
        progress: as for `solve_ivp`.

    Returns:
        SciPy's result.  `result.ftrans` has entries "fun_jac" and "bc_jac" that say what was used.

    Raises:
        ValueError: as SciPy.
        MissingRule: an argument is traced.

    Example:
        >>> import numpy as np
        >>> from ftrans.scipy.integrate import solve_bvp
        >>> mesh = np.linspace(0, 1, 5)
        >>> solution = solve_bvp(lambda x, y: np.vstack([y[1], -np.exp(y[0])]), lambda ya, yb: np.array([ya[0], yb[0]]),
        ...                      mesh, np.zeros((2, 5)))
        >>> print(round(float(solution.sol(0.5)[0]), 3))
        0.141
    """
    if current_builder() is not None:
        return _solve_bvp(fun, bc, x, y, p, S, fun_jac, bc_jac, tol, max_nodes, verbose, bc_tol)
    account: Account = {}
    if fun_jac is None:
        fun_jac = attempt(account, "fun_jac", lambda used: _equations(fun, x, y, p, used, bool(compile)))
    if bc_jac is None:
        bc_jac = attempt(account, "bc_jac", lambda used: _conditions(bc, y, p, used, bool(compile)))
    with solving("solve_bvp", fun, account, progress) as shown:
        result = scipy.integrate.solve_bvp(shown, bc, x, y, p, S, fun_jac, bc_jac, tol, max_nodes, verbose, bc_tol)
    result.ftrans = account
    return result


REFUSED["scipy.integrate.solve_bvp"] = (
    "its mesh depends on values; find the missing part of the first state with ftrans.root, so that the "
    "conditions hold for the states that ftrans.scipy.integrate.solve_ivp returns"
)


@implements(scipy.integrate.solve_bvp, takes_functions=True)
def _solve_bvp(fun: Function, bc: Function, *args: Any, **options: Any) -> Any:
    """SciPy's function where a trace runs, as long as nothing in it is traced."""
    if not is_traced(args, options):
        try:
            return scipy.integrate.solve_bvp(plainly(fun), plainly(bc), *args, **options)
        except FoundTraced:
            pass
    raise missing("scipy.integrate.solve_bvp")


def _equations(fun: Function, x: Any, y: Any, p: Any, used: Used, compile: bool) -> Function:
    """The Jacobians of the equations at all nodes.

    The slopes at a node depend on the state at that node only, so adding one number to a component at all nodes tells
    the derivatives at each.
    """
    parameters = () if p is None else (np.asarray(p, float),)

    def moved(change: Any, x: Any, y: Any, *p: Any) -> Any:
        return asarray(fun(x, y + change[:, np.newaxis], *p))

    by = jacobian(moved, argnums=(0, 3) if parameters else 0)

    def jacobians(x: Any, y: Any, *p: Any) -> Any:
        change = np.zeros(y.shape[0])
        blocks = by(change, x, y, *p)
        # Components, nodes, and what they are differentiated by: SciPy has the nodes last.
        return tuple([b.swapaxes(1, 2) for b in blocks]) if p else blocks.swapaxes(1, 2)

    used.engine = "Jacobians of all nodes at once"
    at = (np.asarray(x, float), _real(y), *parameters)
    return Supplied(jacobians, used, at, compile, math.inf)


def _conditions(bc: Function, y: Any, p: Any, used: Used, compile: bool) -> Function:
    """The Jacobians of the boundary conditions by the states at both ends, and by the parameters."""
    parameters = () if p is None else (np.asarray(p, float),)
    start = _real(y)
    jacobians = jacobian(vector(bc), argnums=(0, 1, 2) if parameters else (0, 1))
    used.engine = "dense Jacobians"
    return Supplied(jacobians, used, (start[:, 0], start[:, -1], *parameters), compile, math.inf)


def _real(y: Any) -> np.ndarray:
    """A state as SciPy starts from it.

    Raises:
        TypeError: it is complex.
    """
    y = np.asarray(y)
    if y.dtype.kind not in "fiub":
        raise TypeError(f"the state has dtype {y.dtype}; Jacobians are filled in for real states")
    return y.astype(float)
