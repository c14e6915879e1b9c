"""`scipy.optimize.minimize`, with exact gradients, Hessians, and derivatives of constraints; also in traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from scipy.optimize import OptimizeResult

from ..derivatives import FEW, gradient_of, hessian_of, product_of, scalar, sparse_hessian_of
from ..supplied import Account, Function, attempt, solving
from .calls import entering
from .constraints import with_derivatives
from .minima import refuse_mapping, traced_minimize


class Takes(NamedTuple):
    """What a method of `minimize` makes use of.

    Attributes:
        in_pairs: whether it asks for the gradient wherever it asks for the value.
        matrix: whether it takes the Hessian as a matrix.
        products: whether it takes products of the Hessian with vectors instead.
        sparse: whether that matrix, and Jacobians of constraints, may be sparse.
        constraints: whether it uses Jacobians of constraints.
    """

    in_pairs: bool = False
    matrix: bool = False
    products: bool = False
    sparse: bool = False
    constraints: bool = False


# The methods that use derivatives.  The trust-region methods multiply a Hessian by np.dot, which no sparse array takes.
METHODS = {
    "cg": Takes(in_pairs=True),
    "bfgs": Takes(in_pairs=True),
    "l-bfgs-b": Takes(in_pairs=True),
    "tnc": Takes(in_pairs=True),
    "slsqp": Takes(constraints=True),
    "newton-cg": Takes(matrix=True, products=True, sparse=True),
    "trust-ncg": Takes(matrix=True, products=True),
    "trust-krylov": Takes(matrix=True, products=True),
    "trust-exact": Takes(matrix=True),
    "dogleg": Takes(matrix=True),
    "trust-constr": Takes(matrix=True, products=True, sparse=True, constraints=True),
}


def _minimize(
    fun: Function,
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    *,
    compile: bool | None = None,
    progress: bool | str = False,
) -> OptimizeResult:
    """`scipy.optimize.minimize` with the derivatives that its method can use: SciPy's algorithm, exact derivatives.

    What is left out of `jac`, `hess` or `hessp`, and of the constraints, is filled in; what is given is used as it is.

    | method | gradient | Hessian | of constraints |
    |---|---|---|---|
    | CG, BFGS, L-BFGS-B, TNC | exact | | |
    | SLSQP | exact | | dense Jacobians |
    | Newton-CG | exact | matrix, sparse where it is, or products with vectors | |
    | trust-ncg, trust-krylov | exact | dense matrix, or products with vectors, by a sparse matrix where it is | |
    | trust-exact, dogleg | exact | dense matrix | |
    | trust-constr | exact | matrix, sparse where it is, or products | Jacobians and Hessians, sparse where they are |
    | the others | none, and they take none | | |

    A function that cannot be traced, because it leaves NumPy, gets SciPy's finite differences; the result says why.

    Args:
        fun: the function, as for SciPy.
        x0: the start.
        args: further arguments of the functions.
        method: as for SciPy.
        jac: as for SciPy; None is for the exact gradient.
        hess: as for SciPy; None is for what the method can use.
        hessp: as for SciPy.
        bounds: as for SciPy.
        constraints: as for SciPy; `NonlinearConstraint` of `ftrans.scipy.optimize` tells what was left out.
        tol: as for SciPy.
        callback: as for SciPy.
        options: as for SciPy.
        compile: whether derivatives are compiled; None compiles those whose evaluations have cost as much as compiling
            them would.
        progress: whether to show a progress bar that counts evaluations of `fun`, or its description.

    Returns:
        SciPy's result.  `result.ftrans` is a dictionary with an entry for each derivative that says what was used.

    Raises:
        ValueError: as SciPy.
        TypeError: as SciPy; or `x0` is a dictionary.

    Example:
        >>> import numpy as np
        >>> from ftrans.scipy.optimize import minimize
        >>> result = minimize(lambda x: (x[0] - 1) ** 2 + (x[0] * x[1] - 2) ** 2, [3.0, 3.0], method="trust-exact")
        >>> print(np.round(result.x, 3), result.ftrans["hess"])  # doctest: +ELLIPSIS
        [1. 2.] dense Hessian, NumPy, ... evaluations
    """
    refuse_mapping(x0)
    given = args if isinstance(args, tuple) else (args,)
    takes = METHODS.get(_name(method, bounds, constraints))
    x = _start(x0)
    account: Account = {}
    options = dict(options or {})
    called = fun
    if takes is not None and x is not None:
        value = (lambda x: fun(x, *given)[0]) if jac is True else (lambda x: fun(x, *given))
        if hess is None and hessp is None and (takes.matrix or takes.products):
            hess, hessp = _second(scalar(value), x, takes, account, compile)
        if jac is None or jac is False:
            called, jac = _first(fun, given, x, takes, account, compile)
        if takes.constraints:
            constraints, has_sparse = with_derivatives(constraints, x, takes.sparse, account, compile)
            if has_sparse:
                options.setdefault("sparse_jacobian", True)
    with solving("minimize", called, account, progress) as shown:
        result = scipy.optimize.minimize(
            shown, x0, args, method, jac, hess, hessp, bounds, constraints, tol, callback, options
        )
    result.ftrans = account
    return result


def _name(method: Any, bounds: Any, constraints: Any) -> str:
    """The method, in small letters, as SciPy chooses it where none is given."""
    if method is None:
        return "slsqp" if constraints else "l-bfgs-b" if bounds is not None else "bfgs"
    return method.lower() if isinstance(method, str) else ""


def _start(x0: Any) -> np.ndarray | None:
    """The start as SciPy makes it a vector; None if SciPy will refuse it."""
    x = np.atleast_1d(np.asarray(x0))
    if x.ndim != 1 or x.dtype.kind not in "fiub":
        return None
    return x.astype(x.dtype if x.dtype.kind == "f" else float)


def _first(
    fun: Function, args: tuple[Any, ...], x: np.ndarray, takes: Takes, account: Account, compile: bool | None
) -> tuple[Function, Any]:
    """The function and its gradient as SciPy is to call them; no gradient if there is none."""
    found = attempt(account, "jac", lambda used: gradient_of(lambda x: fun(x, *args), (x,), used, compile))
    if found is None:
        return fun, None
    return (lambda x, *_: found.value(x)) if takes.in_pairs else fun, lambda x, *_: found.gradient(x)


def _second(
    f: Function, x: np.ndarray, takes: Takes, account: Account, compile: bool | None
) -> tuple[Function | None, Function | None]:
    """The Hessian, or its products with vectors, whichever is cheaper; neither if they are not to be had."""
    if not takes.products or x.size <= FEW:
        matrix = attempt(account, "hess", lambda used: hessian_of(f, (x,), used, compile))
        return matrix and (lambda x, *_: matrix(x)), None
    sparse = attempt(account, "hess", lambda used: sparse_hessian_of(f, (x,), used, compile))
    if sparse is not None:
        return (lambda x, *_: sparse(x), None) if takes.sparse else (None, _products(sparse))
    product = attempt(account, "hessp", lambda used: product_of(f, (x,), used, compile))
    return None, product and (lambda x, p, *_: product(x, p))


def _products(matrix: Function) -> Function:
    """Products with a matrix that depends on the point, for which it is computed once."""
    last: list[Any] = [None, None]

    def product(x: Any, p: Any, *_: Any) -> Any:
        if last[0] is None or not np.array_equal(last[0], x):
            last[:] = np.copy(x), matrix(x)
        return last[1] @ p

    return product


minimize = entering(scipy.optimize.minimize, _minimize)(traced_minimize)
