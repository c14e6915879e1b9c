"""What `help` and `inspect.signature` say of public names, and of the functions that transformations return."""

import importlib
import inspect
import pydoc
from types import ModuleType

import numpy as np
import pytest
from test_layering import PUBLIC_MODULES

import ftrans as ft
from ftrans import nn

# What really takes any arguments and hands them on: to a function of the user, to a class, or to nobody.
HANDS_ON = {
    "apply_along_axis", "explain", "functional_call", "skip_init", "Identity", "KDTree", "LinearOperator", "piecewise",
    "max", "min", "Rbf", "splu", "StackDataset", "summary",
}  # fmt: skip


def loss(x, scale=1.0, *, shift=0.0):
    """The loss.

    It is small where `x` is.
    """
    return np.sum(scale * (x - shift) ** 2)


def callables(module):
    for name in module.__all__:
        x = getattr(module, name)
        is_ours = getattr(x, "__module__", None) is not None and x.__module__.startswith("ftrans")
        if callable(x) and is_ours and not isinstance(x, ModuleType):
            yield name, x


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_public_functions_say_what_they_take(name):
    for public, x in callables(importlib.import_module(name)):
        if isinstance(x, type) and issubclass(x, Exception | nn.distributions.Transform):
            continue
        assert inspect.getdoc(x), f"{public} has no docstring"
        if not inspect.isfunction(x) and not isinstance(x, type):
            continue
        kinds = [p.kind for p in inspect.signature(x).parameters.values()]
        takes_any = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= {*kinds}
        # Some of SciPy's functions do not say it either.
        assert not takes_any or public in HANDS_ON or public.endswith("_all"), public
        assert not getattr(x, "__name__", public).startswith("_"), public


ONE = [
    "bilaplacian", "curl", "divergence", "explain_zero", "grad", "hessian", "hessian_diagonal", "hessian_sparsity",
    "jacfwd", "jacobian", "jacobian_sparsity", "jacrev", "jit", "laplacian", "residuals", "sparse_hessian",
    "sparse_jacobian", "value_and_grad", "value_and_jacobian", "value_and_sparse_hessian",
    "value_and_sparse_jacobian", "vmap", "checkpoint", "custom_vjp", "custom_jvp",
]  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_transformed_functions_look_like_the_function(name):
    made = getattr(ft, name)(loss)
    assert inspect.signature(made) == inspect.signature(loss)
    assert inspect.getdoc(made) == inspect.getdoc(loss)
    assert made.__module__ == loss.__module__
    shown = "jacobian" if name in ("jacfwd", "jacrev") else name
    assert made.__name__ == ("loss" if name in ("checkpoint", "custom_vjp", "custom_jvp") else f"{shown}(loss)")
    assert "(x, scale=1.0, *, shift=0.0)\n    The loss." in pydoc.render_doc(made, renderer=pydoc.plaintext)


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jit", "vmap", "checkpoint"])
def test_functions_of_modules_look_like_the_function(name):
    made = getattr(nn, name)(loss)
    assert inspect.signature(made) == inspect.signature(loss)
    assert inspect.getdoc(made) == inspect.getdoc(loss)


def test_solvers_have_the_names_that_users_call_them_by():
    for name in ("minimize", "root", "fsolve", "least_squares", "curve_fit"):
        assert getattr(ft.scipy.optimize, name).__name__ == name
    with pytest.raises(TypeError, match=r"^minimize\(\) missing"):
        ft.scipy.optimize.minimize()
