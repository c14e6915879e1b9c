"""ftrans: write NumPy, get exact derivatives of any order, dense or sparse, compiled by XLA."""

from . import numpy
from .api.control_flow import cond, fori_loop, map, scan, switch, while_loop
from .api.derivatives import (
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    stop_gradient,
    value_and_grad,
    value_and_jacobian,
    vjp,
)
from .api.jit import jit, trace
from .api.vmap import vmap

__all__ = [
    "cond",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "map",
    "numpy",
    "scan",
    "stop_gradient",
    "switch",
    "trace",
    "value_and_grad",
    "value_and_jacobian",
    "vjp",
    "vmap",
    "while_loop",
]
