"""ftrans: write NumPy, get exact derivatives of any order, dense or sparse, compiled by XLA."""

import importlib as _importlib
import typing as _typing

from . import numpy
from .api.associative_scan import associative_scan
from .api.branches import cond, switch
from .api.checkpoint import checkpoint, residuals
from .api.custom_rules import custom_jvp, custom_vjp
from .api.derivatives import grad, jvp, linear_transpose, linearize, stop_gradient, value_and_grad, vjp
from .api.explain_zero import explain_zero
from .api.gradient_edits import clip_gradient, grad_hook, reverse_gradient, scale_gradient, straight_through
from .api.jacobians import hessian, hvp, jacfwd, jacobian, jacrev, value_and_jacobian
from .api.jit import jit, trace
from .api.loops import fori_loop, map, scan, while_loop
from .api.taps import tap
from .api.vmap import vmap
from .control.convergence import ConvergenceError
from .numpy.dispatch import ENTERED_LATER as _ENTERED_LATER
from .solvers.argmin import argmin
from .solvers.implicit import fixed_point, root
from .solvers.linear import linear_solve
from .solvers.odeint import odeint

if _typing.TYPE_CHECKING:
    from . import autograd, debug, nn, scipy, testing

__all__ = [
    "ConvergenceError",
    "argmin",
    "associative_scan",
    "autograd",
    "checkpoint",
    "clip_gradient",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "explain_zero",
    "fixed_point",
    "fori_loop",
    "grad",
    "grad_hook",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linear_solve",
    "linear_transpose",
    "linearize",
    "map",
    "nn",
    "numpy",
    "odeint",
    "residuals",
    "reverse_gradient",
    "root",
    "scale_gradient",
    "scan",
    "scipy",
    "stop_gradient",
    "straight_through",
    "switch",
    "tap",
    "testing",
    "trace",
    "value_and_grad",
    "value_and_jacobian",
    "vjp",
    "vmap",
    "while_loop",
]

# What a script that takes gradients of functions can do without is imported when somebody asks for it.
_LATER = ("autograd", "debug", "nn", "scipy", "testing")


def __getattr__(name: str) -> _typing.Any:
    if name in _LATER:
        return _importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


# SciPy takes a second to import; programs that call none of its functions do without.
_ENTERED_LATER["scipy.special"] = lambda: _importlib.import_module(".scipy.special", __name__)
