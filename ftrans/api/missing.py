"""Names that people look for in `ftrans` and that it does not have, and what to write instead."""

from __future__ import annotations

import numpy as np

from ..base.source import at_line, user_line

_GRAD = "ft.grad(f)(x)"
_EACH = "ft.vmap(ft.grad(f))(x), the derivative at each element of x"

_OF_AUTOGRAD = ("Tensor", "backward", "cuda", "device", "enable_grad", "no_grad", "tensor")
_OF_NN = ("Linear", "Module", "Parameter", "fit", "functional", "manual_seed", "optim")
_OF_SCIPY = ("fft", "integrate", "interpolate", "linalg", "optimize", "signal", "sparse", "special", "stats")
_SOLVER = "from ftrans.scipy import optimize, which has SciPy's functions"

INSTEAD = {
    # Derivatives, as other libraries and textbooks call them.
    "gradient": _GRAD,
    "derivative": _GRAD,
    "differentiate": _GRAD,
    "diff": f"{_GRAD}, or {_EACH}",
    "elementwise_grad": _EACH,
    "jac": "ft.jacobian(f)(x)",
    "hess": "ft.hessian(f)(x)",
    "value_and_jac": "ft.value_and_jacobian(f)(x)",
    "hessian_vector_product": "ft.hvp(f, (x,), (v,))",
    "make_vjp": "ft.vjp(f, x)",
    "make_jvp": "ft.jvp(f, (x,), (v,))",
    "jtimes": "ft.jvp(f, (x,), (v,))",
    # Of NumPy and JAX.
    "vectorize": "ft.vmap(f)",
    "pmap": "ft.jit(f, in_shardings=...), see docs/scale.md",
    "compile": "ft.jit(f)",
    "make_jaxpr": "ft.trace(f)(x)",
    "lax": "ft.cond, ft.scan, ft.while_loop, ft.fori_loop, or if and for",
    "random": "numpy.random, or ft.nn.random with the keys of JAX",
    "remat": "ft.checkpoint(f)",
    "tree": "jax.tree: its containers are those of ftrans",
    "tree_util": "jax.tree_util: its containers are those of ftrans",
    # Of torch.
    **{name: f"ft.autograd.{name}" for name in _OF_AUTOGRAD},
    **{name: f"ft.nn.{name}" for name in _OF_NN},
    "save": "ft.nn.save(path, model), or pickle",
    "load": "ft.nn.load(path), or pickle",
    # Of SciPy.
    **{name: f"from ftrans.scipy import {name}" for name in _OF_SCIPY},
    "minimize": _SOLVER,
    "least_squares": _SOLVER,
    "curve_fit": _SOLVER,
    "func": "ft.grad, ft.vmap, ft.jacobian, which are those of torch.func",
}


def missing(name: str) -> AttributeError:
    """The error for a name that `ftrans` does not have."""
    instead = INSTEAD.get(name) or (f"np.{name}" if not name.startswith("_") and hasattr(np, name) else None)
    hint = f"; write {instead}{at_line(user_line())}" if instead else ""
    return AttributeError(f"module 'ftrans' has no attribute {name!r}{hint}")
