"""ftrans: write NumPy, get exact derivatives of any order, dense or sparse, compiled by XLA."""

from . import numpy
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
