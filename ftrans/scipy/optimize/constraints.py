"""Constraints with their derivatives: SciPy's own objects, with what was left out of them filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import BFGS
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator

from ...numpy.dispatch import TABLE
from ...numpy.promotion import asarray, has_tracer
from ..derivatives import DENSE_BELOW, FEW, hessian_of, jacobian_of, product_of, sparse_hessian_of, vector
from ..supplied import Account, Function, attempt


class LeftOut(str):
    """A default of SciPy that can be told from the same word when somebody writes it."""

    __slots__ = ()


TWO_POINT = LeftOut("2-point")
# What may be chosen about the updates that SciPy makes by default.
_OF_BFGS = ("exception_strategy", "min_curvature", "init_scale")


class Bounds(scipy.optimize.Bounds):
    """`scipy.optimize.Bounds`, whose limits may be traced."""

    def __init__(self, lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> None:
        if has_tracer([lb, ub]):
            self.lb, self.ub, self.keep_feasible = asarray(lb), asarray(ub), keep_feasible
        else:
            super().__init__(lb, ub, keep_feasible)


class LinearConstraint(scipy.optimize.LinearConstraint):
    """`scipy.optimize.LinearConstraint`, whose matrix and limits may be traced."""

    def __init__(self, A: Any, lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> None:
        if has_tracer([A, lb, ub]):
            self.A = np.atleast_2d(asarray(A.toarray() if issparse(A) else A))
            self.lb, self.ub, self.keep_feasible = asarray(lb), asarray(ub), keep_feasible
        else:
            super().__init__(A, lb, ub, keep_feasible)


TABLE.update({scipy.optimize.Bounds: Bounds, scipy.optimize.LinearConstraint: LinearConstraint})


class NonlinearConstraint(scipy.optimize.NonlinearConstraint):
    """`scipy.optimize.NonlinearConstraint`; `minimize` fills in the `jac` and `hess` that are left out.

    Example:
        >>> import numpy as np
        >>> from ftrans.scipy.optimize import NonlinearConstraint, minimize
        >>> circle = NonlinearConstraint(lambda x: x[0] ** 2 + x[1] ** 2, 1.0, 1.0)
        >>> result = minimize(lambda x: x[0] + x[1], [-1.0, 0.5], method="trust-constr", constraints=circle)
        >>> print(np.round(result.x, 5))
        [-0.70711 -0.70711]
    """

    def __init__(
        self,
        fun: Function,
        lb: Any,
        ub: Any,
        jac: Any = TWO_POINT,
        hess: Any = None,
        keep_feasible: Any = False,
        finite_diff_rel_step: Any = None,
        finite_diff_jac_sparsity: Any = None,
    ) -> None:
        super().__init__(fun, lb, ub, jac, hess, keep_feasible, finite_diff_rel_step, finite_diff_jac_sparsity)
        self.has_hess = hess is not None


def with_derivatives(
    constraints: Any, x: np.ndarray, is_trust_constr: bool, account: Account, compile: bool | None
) -> tuple[Any, bool]:
    """Constraints of `minimize` with derivatives for one of its methods, and whether a Jacobian is sparse.

    Args:
        constraints: as SciPy takes them; what SciPy would refuse is left to it.
        x: the start.
        is_trust_constr: whether the method is trust-constr, which takes Hessians and sparse Jacobians; SLSQP takes
            neither.
        account: what is used for each of them is entered here.
        compile: as for `minimize`.
    """
    one = isinstance(constraints, Mapping) or not isinstance(constraints, list | tuple)
    filled = []
    for index, constraint in enumerate([constraints] if one else constraints):
        name = "constraint" if one else f"constraint {index}"
        if isinstance(constraint, scipy.optimize.NonlinearConstraint):
            constraint = _filled(constraint, x, is_trust_constr, account, name, compile)
        elif isinstance(constraint, Mapping) and callable(constraint.get("fun")):
            constraint = _dictionary(constraint, x, is_trust_constr, account, name, compile)
        filled.append(constraint)
    return filled[0] if one else filled, any(
        used.entries is not None for key, used in account.items() if "jac of" in key
    )


def _filled(
    given: Any, x: np.ndarray, is_trust_constr: bool, account: Account, name: str, compile: bool | None
) -> scipy.optimize.NonlinearConstraint:
    """A constraint with the derivatives that were left out of it."""
    f = vector(given.fun)
    jac, hess = given.jac, given.hess
    if _leaves_out_jac(given):
        dense_below = DENSE_BELOW if given.finite_diff_jac_sparsity is None else 0
        made = attempt(
            account,
            f"jac of {name}",
            lambda used: jacobian_of(f, (x,), used, is_trust_constr, compile, dense_below),
        )
        jac = made or jac
    if is_trust_constr and _leaves_out_hess(given):
        hess = _hessian(f, given.fun, x, account, name, compile) or hess
    return scipy.optimize.NonlinearConstraint(
        given.fun,
        given.lb,
        given.ub,
        jac,
        hess,
        given.keep_feasible,
        given.finite_diff_rel_step,
        given.finite_diff_jac_sparsity,
    )


def _leaves_out_jac(constraint: Any) -> bool:
    """Whether a constraint has SciPy's default for its Jacobian, and no step, which asks for differences."""
    if constraint.finite_diff_rel_step is not None:
        return False
    if isinstance(constraint, NonlinearConstraint):
        return isinstance(constraint.jac, LeftOut)
    return isinstance(constraint.jac, str) and constraint.jac == "2-point"


def _leaves_out_hess(constraint: Any) -> bool:
    """Whether a constraint has SciPy's default for its Hessian."""
    if isinstance(constraint, NonlinearConstraint):
        return not constraint.has_hess
    found, default = constraint.hess, BFGS()
    return type(found) is BFGS and all(getattr(found, name, None) == getattr(default, name, None) for name in _OF_BFGS)


def _hessian(
    f: Function, fun: Function, x: np.ndarray, account: Account, name: str, compile: bool | None
) -> Function | None:
    """The Hessian of the constraints' sum with multipliers, as SciPy calls it; None if it is not to be had."""

    def weighted(x: Any, multipliers: Any) -> Any:
        return np.sum(multipliers * f(x))

    label = f"hess of {name}"
    try:
        at = x, np.ones(np.size(fun(x)))
    except Exception:  # SciPy calls it next, and the user sees the error from there
        return None
    if x.size <= FEW:
        return attempt(account, label, lambda used: hessian_of(weighted, at, used, compile))
    sparse = attempt(account, label, lambda used: sparse_hessian_of(weighted, at, used, compile))
    if sparse is not None:
        return sparse
    product = attempt(account, label, lambda used: product_of(weighted, at, used, compile))
    if product is None:
        return None
    n = x.size
    return lambda x, v: LinearOperator((n, n), matvec=lambda p: product(x, v, np.ravel(p)), dtype=x.dtype)


def _dictionary(
    given: Mapping[str, Any], x: np.ndarray, is_trust_constr: bool, account: Account, name: str, compile: bool | None
) -> Any:
    """A constraint in a dictionary with its Jacobian; for trust-constr, an object with its Hessian, too."""
    args = given.get("args", ())
    fun = given["fun"]
    known = given.get("type")
    kind = known.lower() if isinstance(known, str) else ""
    if is_trust_constr and kind in ("eq", "ineq") and "jac" not in given:
        with_args = (lambda x: fun(x, *args)) if args else fun
        return _filled(
            NonlinearConstraint(with_args, 0.0, 0.0 if kind == "eq" else np.inf), x, True, account, name, compile
        )
    if given.get("jac") is not None:
        return given
    f = vector(lambda x: fun(x, *args))
    made = attempt(account, f"jac of {name}", lambda used: jacobian_of(f, (x,), used, False, compile))
    return given if made is None else {**given, "jac": lambda x, *_: made(x)}
