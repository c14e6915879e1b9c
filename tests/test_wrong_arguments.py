"""Wrong arguments to the public functions: no error of the inside reaches the user, and each names the user's line."""

from __future__ import annotations

import inspect
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftrans as ft

X = np.array([1.0, 2.0, 3.0])


def square(x: Any) -> Any:
    return np.sum(x**2)


# A good call of each function.
CALLS: dict[str, tuple[Any, ...]] = {
    "argmin": (lambda x, a: np.sum((x - a) ** 2), X, X),
    "associative_scan": (np.add, X),
    "bilaplacian": (square,),
    "checkpoint": (square,),
    "clip_gradient": (X, -1.0, 1.0),
    "coloring": (np.eye(3),),
    "cond": (True, np.sin, np.cos, X),
    "curl": (np.sin,),
    "custom_jvp": (square,),
    "custom_vjp": (square,),
    "directional_derivative": (square, X, X),
    "divergence": (np.sin,),
    "explain": (square, X),
    "explain_zero": (square,),
    "export": (square, X),
    "fixed_point": (lambda x, a: np.cos(x) * a, 1.0, 1.0),
    "fori_loop": (0, 3, lambda i, c: c * 2.0, 1.0),
    "from_torch": (np.sin,),
    "gauss_newton": (np.sin,),
    "grad": (square,),
    "grad_hook": (X, lambda g: g),
    "hessian": (square,),
    "hessian_diagonal": (square,),
    "hessian_sparsity": (square,),
    "hvp": (square, (X,), (X,)),
    "jacfwd": (np.sin,),
    "jacobian": (np.sin,),
    "jacobian_sparsity": (np.sin,),
    "jacrev": (np.sin,),
    "jet": (np.sin, (X,), ([X, X],)),
    "from_jax": (square,),
    "jit": (square,),
    "jvp": (np.sin, (X,), (X,)),
    "initialize_processes": (),
    "keep_memory": (),
    "lagrangian_hessian": (square, np.sin),
    "laplacian": (square,),
    "linear_solve": (np.eye(3), X),
    "linear_transpose": (lambda x: 2 * x, X),
    "linearize": (np.sin, X),
    "load_exported": (__file__,),
    "map": (np.sin, X),
    "matmul_precision": ("highest",),
    "mesh": ((1,), ("data",)),
    "nlp": (square, np.sin),
    "odeint": (lambda y, t: -y, 1.0, X),
    "residuals": (square,),
    "reverse_gradient": (X,),
    "patch": (),
    "patched": (),
    "root": (lambda x: x**2 - 2, 1.0),
    "scale_gradient": (X, 2.0),
    "scan": (lambda c, x: (c, x), 1.0, X),
    "set_cache_dir": (None,),
    "shard": (X, ft.P("data"), ft.mesh({"data": 1})),
    "show_progress": (None,),
    "sparse_hessian": (square,),
    "sparse_jacobian": (np.sin,),
    "stop_gradient": (X,),
    "straight_through": (X, X),
    "switch": (0, [np.sin, np.cos], X),
    "tap": ("a", X),
    "taylor": (np.sin, X, X, 2),
    "to_onnx": (square, X),
    "to_torch": (square,),
    "trace": (square,),
    "use_mesh": (ft.mesh({"data": 1}),),
    "value_and_grad": (square,),
    "value_and_jacobian": (np.sin,),
    "value_and_sparse_hessian": (square,),
    "value_and_sparse_jacobian": (np.sin,),
    "vhp": (square, (X,), (X,)),
    "vjp": (np.sin, X),
    "vmap": (np.sin,),
    "while_loop": (lambda c: c < 3, lambda c: c + 1, 0.0, 5),
}
# What is called with X when it has been made.
MAKERS = {
    "grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "value_and_jacobian", "hessian", "jit", "trace", "vmap",
    "checkpoint", "residuals", "explain_zero", "custom_jvp", "custom_vjp", "sparse_jacobian", "sparse_hessian",
    "value_and_sparse_jacobian", "value_and_sparse_hessian", "jacobian_sparsity", "hessian_sparsity", "gauss_newton",
    "laplacian", "hessian_diagonal", "divergence", "curl", "bilaplacian",
}  # fmt: skip
# They call a function of the user directly where nothing is traced, so that NumPy's own errors come through.
DIRECT = {"associative_scan", "checkpoint", "cond", "custom_jvp", "custom_vjp", "switch"}

WRONG: dict[str, Any] = {
    "None": None,
    "text": "x",
    "texts": ["a", "b"],
    "function": np.sin,
    "function of two": lambda a, b: a,
    "function of none": lambda: 1.0,
    "function that returns nothing": lambda *args: None,
    "function that returns text": lambda *args: "text",
    "function that returns a list": lambda *args: list(args),
    "array": X,
    "matrix": np.ones((2, 3)),
    "integers": np.array([1, 2]),
    "no elements": np.zeros(0),
    "array of text": np.array(["a"]),
    "array of objects": np.array([None, 1], object),
    "ragged list": [[1, 2], [3]],
    "no argument": (),
    "dict": {"a": "b"},
    "object": object(),
    "class": float,
    "NaN": float("nan"),
    "negative": -1,
    "complex": 1j,
    "set": {1.0},
    "module": np,
    "pair": (X, X),
}
INTERNAL = (AssertionError, KeyError, NameError, RecursionError, UnboundLocalError, NotImplementedError)


def wrong_calls(name: str) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Calls with one argument replaced, with one too few or too many, and with a wrong option."""
    args = CALLS[name]
    for place in range(len(args)):
        for what, wrong in WRONG.items():
            yield f"{place}: {what}", (*args[:place], wrong, *args[place + 1 :]), {}
    if args:
        yield "one too few", args[:-1], {}
    yield "too many", (*args, X, X, X), {}
    parameters = inspect.signature(getattr(ft, name)).parameters.values()
    for option in [p.name for p in parameters if p.default is not p.empty]:
        for what in ("None", "text", "texts", "function", "NaN", "negative", "dict", "object"):
            try:
                inspect.signature(getattr(ft, name)).bind(*args, **{option: WRONG[what]})
            except TypeError:
                continue
            if option != "progress":
                yield f"{option}: {what}", args, {option: WRONG[what]}


def test_every_public_function_is_called() -> None:
    functions = {name for name in ft.__all__ if inspect.isfunction(getattr(ft, name))}
    assert functions == CALLS.keys()


@pytest.mark.parametrize(
    ("name", "option"), [("jit", "roll"), ("jit", "tune"), ("nn.jit", "roll"), ("trace", "rolled")]
)
@pytest.mark.parametrize("given", [1, "no", None, X], ids=str)
def test_flags_are_bools(name: str, option: str, given: Any) -> None:
    maker = ft.nn.jit if name == "nn.jit" else getattr(ft, name)
    with pytest.raises(TypeError, match=rf"{option} of {name} is True or False, not .*\n.*test_wrong_arguments.py"):
        maker(square, **{option: given})
    maker(square, **{option: np.bool_(True)})(X)


@pytest.mark.parametrize("option", ["compile", "tune"])
def test_flags_of_prepare_are_bools(option: str) -> None:
    with pytest.raises(TypeError, match=rf"{option} of prepare is True or False, not 'fast'\n.*test_wrong_arguments"):
        ft.sparse_jacobian(np.sin).prepare(X, **{option: "fast"})


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for what is written to the path "x"."""
    monkeypatch.chdir(tmp_path)
    yield
    ft.set_cache_dir(None)


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("name", CALLS)
def test_no_internal_error(name: str) -> None:
    for what, args, options in wrong_calls(name):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = getattr(ft, name)(*args, **options)
                if name in MAKERS:
                    result(X)
                continue
            except Exception as error:
                found = error
        assert not isinstance(found, INTERNAL), (what, found)
        is_named = "test_wrong_arguments.py" in "".join([str(found), *getattr(found, "__notes__", ())])
        # A public function may be called by another one with the same arguments.
        around = ("taking", "making", "f_of_user")
        frames = [f for f in traceback.extract_tb(found.__traceback__) if f.name not in around]
        is_here = frames[-1].filename == __file__
        assert is_named or is_here or name in DIRECT, (what, found)
