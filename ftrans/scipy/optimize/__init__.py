"""Solvers of `scipy.optimize` under their names, with the derivatives that they can use filled in.

    >>> import numpy as np
    >>> from ftrans.scipy import optimize
    >>> result = optimize.minimize(lambda x: np.sum((x - 1) ** 4 + (x - 1) ** 2), np.zeros(3), method="Newton-CG")
    >>> print(np.round(result.x, 6), result.ftrans["jac"].engine)
    [1. 1. 1.] gradient by reverse mode

The algorithms are SciPy's, and so are the results.  Names that are not here are those of `scipy.optimize`.

In a trace, solutions have derivatives, of any order, by all that is traced: further arguments, and what the functions
close over.  The value is what SciPy finds; its derivative is that of the exact solution, by the implicit function
theorem.  Where there is none, asking for it is an error, or NaN if it is compiled.

    >>> import ftrans as ft
    >>> ft.value_and_grad(lambda a: optimize.brentq(lambda x: x**2 - a, 0.0, 10.0))(4.0)
    (np.float64(2.0), np.float64(0.25))

For systems that are too large for matrices, `operator` of a sparse derivative is a linear operator for the solvers of
`scipy.sparse.linalg`, with exact products.  This is a Newton-Krylov method:

    >>> from scipy.sparse.linalg import gmres
    >>> def reaction(u):
    ...     return 2 * u - 0.5 * (np.roll(u, 1) + np.roll(u, -1)) - np.cos(u)
    >>> jacobian = ft.sparse_jacobian(reaction).prepare(np.zeros(1000), compile=False)
    >>> u = np.zeros(1000)
    >>> for _ in range(5):
    ...     u = u - gmres(jacobian.operator(u), reaction(u), rtol=1e-6)[0]
    >>> print(np.max(np.abs(reaction(u))) < 1e-12, np.round(u[0], 6))
    True 0.739085
"""

import typing as _typing

import scipy.optimize as _scipy_optimize
from scipy.optimize import BFGS as BFGS
from scipy.optimize import SR1 as SR1
from scipy.optimize import HessianUpdateStrategy as HessianUpdateStrategy
from scipy.optimize import OptimizeResult as OptimizeResult
from scipy.optimize import OptimizeWarning as OptimizeWarning

from ...base.exports import exported as _exported
from .constraints import Bounds as Bounds
from .constraints import LinearConstraint as LinearConstraint
from .constraints import NonlinearConstraint as NonlinearConstraint
from .curve_fit import curve_fit as curve_fit
from .differential_evolution import differential_evolution as differential_evolution
from .least_squares import least_squares as least_squares
from .linear_problems import linprog as linprog
from .linear_problems import lsq_linear as lsq_linear
from .linear_problems import nnls as nnls
from .minima import minimize_scalar as minimize_scalar
from .minimize import minimize as minimize
from .other_minima import FUNCTIONS as _REFUSED
from .other_minima import brent as brent
from .other_minima import direct as direct
from .other_minima import dual_annealing as dual_annealing
from .other_minima import fmin as fmin
from .other_minima import fmin_bfgs as fmin_bfgs
from .other_minima import fmin_cg as fmin_cg
from .other_minima import fmin_ncg as fmin_ncg
from .other_minima import fmin_powell as fmin_powell
from .other_minima import fminbound as fminbound
from .other_minima import golden as golden
from .other_minima import rosen as rosen
from .other_minima import rosen_der as rosen_der
from .other_minima import rosen_hess as rosen_hess
from .other_minima import rosen_hess_prod as rosen_hess_prod
from .other_minima import shgo as shgo
from .roots import anderson as anderson
from .roots import broyden1 as broyden1
from .roots import broyden2 as broyden2
from .roots import fsolve as fsolve
from .roots import newton_krylov as newton_krylov
from .roots import root as root
from .scalar_roots import bisect as bisect
from .scalar_roots import brenth as brenth
from .scalar_roots import brentq as brentq
from .scalar_roots import fixed_point as fixed_point
from .scalar_roots import newton as newton
from .scalar_roots import ridder as ridder
from .scalar_roots import root_scalar as root_scalar
from .scalar_roots import toms748 as toms748
from .squares import leastsq as leastsq


def __getattr__(name: str) -> _typing.Any:
    return _REFUSED.get(name) or getattr(_scipy_optimize, name)


if not _typing.TYPE_CHECKING:
    # Type checkers read what is imported above.
    __all__ = _exported(globals())

    def __dir__() -> list[str]:
        return __all__
