"""What bad input gets: the right exception, with the user's line and the way out."""

from __future__ import annotations

import array
import ctypes
import decimal
import functools
import json
import math
import pickle
import re
import statistics
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.special
import scipy.stats
from matplotlib.figure import Figure

import ftrans as ft
import ftrans.scipy.optimize
from ftrans.core.primitive import MissingRule
from ftrans.core.trace import TracerLeak
from ftrans.core.witness import ConcretizationError

X = np.array([1.0, 2.0, 3.0])
N = np.array([1, 2, 3])
LINE = r"test_errors\.py:\d+"


def into_a_plain_array(x: Any) -> Any:
    out = np.zeros(3)
    out[0] = x[0]
    return np.sum(out)


def into_part_of_a_plain_array(x: Any) -> Any:
    out = np.zeros(3)
    out[1:] = x[1:]
    return np.sum(out)


@functools.lru_cache
def cached(x: Any) -> Any:
    return 2 * x


class Keeping:
    """An object whose method keeps its results."""

    @functools.lru_cache  # noqa: B019 - what is tested
    def cost(self, x: Any) -> Any:
        return 2 * x


keeping = Keeping()


def half(x: Any) -> Any:
    return np.sum(x) / 2


class CPUDispatcher:
    """Stands for a function that numba has compiled, which asks an array how it lies in memory."""

    __module__ = "numba.core.registry"
    py_func = staticmethod(half)

    def __call__(self, x: Any) -> Any:
        return self.typeof_pyval(x)

    def typeof_pyval(self, value: Any) -> Any:
        return value.flags["C_CONTIGUOUS"]


class DUFunc:
    """Stands for a ufunc that numba has compiled."""

    __module__ = "numba.np.ufunc.dufunc"
    __name__ = "half"

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("non-precise type pyobject")


compiled, compiled_ufunc = CPUDispatcher(), DUFunc()


def leaked() -> Any:
    kept: list[Any] = []
    ft.grad(lambda x: (kept.append(x), x)[1])(1.0)
    return kept[0]


def leaking() -> Any:
    kept = []
    ft.grad(lambda x: (kept.append(np.sin(x)), x)[1])(1.0)
    return kept[0] * 2


def sin_of_torch(x: Any) -> Any:
    """What PyTorch says to an argument that is no tensor, which it tells by its class."""
    raise TypeError(f"sin(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")


def branching(x: Any) -> Any:
    if x > 0:
        return x
    return -x


# (what happens, a call, the exception, phrases of its message in order)
CASES: list[tuple[str, Callable[[], Any], type[Exception], list[str]]] = [
    # Gradients of what has none
    ("grad of integers", lambda: ft.grad(np.sum)(N), TypeError, ["argument 0", r"i64\[3\]", r"astype\(float\)"]),
    ("grad of bools", lambda: ft.grad(np.sum)(N > 1), TypeError, [r"bool\[3\]", "astype"]),
    ("grad of an integer leaf", lambda: ft.grad(lambda p: p["w"][0])({"w": [N]}), TypeError, [r"\['w'\]\[0\]", "i64"]),
    ("jacobian of integers", lambda: ft.jacobian(np.sin)(N), TypeError, ["jacobian", r"i64\[3\]"]),
    ("jvp of integers", lambda: ft.jvp(np.sin, (N,), (N,)), TypeError, ["jvp", r"i64\[3\]"]),
    ("vjp of integers", lambda: ft.vjp(np.sin, N), TypeError, ["vjp", r"i64\[3\]"]),
    ("hessian of integers", lambda: ft.hessian(np.sum)(N), TypeError, [r"i64\[3\]"]),
    ("grad of an array", lambda: ft.grad(np.sin)(X), TypeError, [r"f64\[3\]", "jacobian", "sum"]),
    ("grad of one element", lambda: ft.grad(lambda x: x[:1])(X), TypeError, [r"f64\[1\]", "jacobian"]),
    ("grad of a container", lambda: ft.grad(lambda x: (x[0], x[1]))(X), TypeError, ["2 arrays", "has_aux", "jacobian"]),
    ("grad of nothing", lambda: ft.grad(lambda x: None)(X), TypeError, ["no array", "`return` missing"]),
    ("grad of each element", lambda: ft.grad(np.sin)(X), TypeError, [r"ft\.vmap\(ft\.grad\(f\)\)\(x\)"]),
    ("power of a list", lambda: ft.grad(lambda x: np.sum(x**2))([1.0, 2.0]), TypeError, ["'list'", r"np\.array\("]),
    ("power of rows", lambda: ft.grad(lambda x: np.sum(x**2))([[1.0], [2.0]]), TypeError, ["'list'", r"np\.array\("]),
    ("half of a list", lambda: ft.grad(lambda x: np.sum(x * 0.5))([1.0, 2.0]), TypeError, [r"np\.array\("]),
    ("sum of a list", lambda: ft.grad(lambda x: x.sum())([1.0, 2.0]), AttributeError, ["'sum'", r"np\.array\("]),
    ("column of a list", lambda: ft.grad(lambda x: x[:, 0])([1.0, 2.0]), TypeError, ["indices", r"np\.array\("]),
    ("list and one", lambda: ft.grad(lambda x: np.sum(x + 1))([1.0, 2.0]), TypeError, ["concat", r"np\.array\("]),
    ("point in place of argnums", lambda: ft.hessian(np.sum, X)(X), TypeError, [r"hessian\(f\)\(x\)"]),
    ("name of another library", lambda: ft.gradient(np.sum)(X), AttributeError, [r"write ft\.grad\(f\)\(x\)"]),
    ("name of torch", lambda: ft.no_grad(), AttributeError, [r"write ft\.autograd\.no_grad"]),
    ("name of SciPy", lambda: ft.optimize, AttributeError, ["from ftrans.scipy import optimize"]),
    ("name of nn", lambda: ft.nn.no_grad(), AttributeError, [r"write ft\.autograd\.no_grad"]),
    ("name of its functions", lambda: ft.nn.relu(X), AttributeError, [r"write nn\.functional\.relu"]),
    ("assignment of JAX", lambda: ft.grad(lambda x: x.at[0].set(1.0))(X), AttributeError, [r"x = x\.copy\(\)"]),
    ("save of torch", lambda: ft.nn.save({"a": X}, "a.safetensors"), TypeError, [r"nn\.save\(path, model\)"]),
    ("name of NumPy", lambda: ft.zeros(3), AttributeError, [r"write np\.zeros"]),
    ("hessian of an integer result", lambda: ft.hessian(np.argmax)(X), TypeError, [r"i64\[\]", "zero", "has_aux"]),
    ("hessian of a complex result", lambda: ft.hessian(lambda x: x * 1j)(X), TypeError, [r"c128\[3\]", "real", "holo"]),
    ("a hessian too large", lambda: ft.hessian(np.sum)(np.zeros(10**8)), MemoryError, ["GiB", "sparse_hessian", "hvp"]),
    ("a jacobian too large", lambda: ft.jacobian(np.sin)(np.zeros(10**8)), MemoryError, ["GiB", "sparse_jacobian"]),
    ("hessian at complex numbers", lambda: ft.hessian(lambda x: np.sum(abs(x)))(X + 1j), TypeError, ["half", "holo"]),
    ("grad of an integer result", lambda: ft.grad(np.argmax)(X), TypeError, [r"i64\[\]", "zero"]),
    ("grad of a bool result", lambda: ft.grad(lambda x: x[0] > 0)(X), TypeError, [r"bool\[\]"]),
    ("grad of a complex result", lambda: ft.grad(lambda x: x[0] * 1j)(X), TypeError, [r"c128\[\]", "real", "abs"]),
    # Types that do not match
    ("shapes", lambda: ft.grad(lambda x: np.sum(x + np.ones(4)))(X), ValueError, [r"f64\[3\]", r"f64\[4\]"]),
    ("matmul", lambda: ft.grad(lambda x: np.sum(np.ones((2, 2)) @ x))(X), ValueError, [r"f64\[2,2\]", r"f64\[3\]"]),
    ("reshape", lambda: ft.grad(lambda x: np.sum(x.reshape(2, 2)))(X), ValueError, ["3", "2, 2"]),
    ("concatenate", lambda: ft.grad(lambda x: np.concatenate([x, np.ones((2, 2))]).sum())(X), ValueError, []),
    ("axis", lambda: ft.grad(lambda x: np.sum(np.sum(x, axis=1)))(X), ValueError, ["axis 1"]),
    ("index", lambda: ft.grad(lambda x: x[5])(X), IndexError, ["5", "3"]),
    ("too many indices", lambda: ft.grad(lambda x: x[0, 0])(X), IndexError, []),
    ("bits of floats", lambda: ft.grad(lambda x: np.sum(x & x))(X), TypeError, ["bitwise_and"]),
    ("tangent shape", lambda: ft.jvp(np.sin, (X,), (np.ones(2),)), TypeError, [r"f64\[3\]", r"f64\[2\]"]),
    ("tangent dtype", lambda: ft.jvp(np.sin, (X,), (X * 1j,)), TypeError, [r"f64\[3\]", r"c128\[3\]"]),
    ("tangent structure", lambda: ft.jvp(np.sin, (X,), ((X, X),)), TypeError, ["structure", "primals"]),
    ("cotangent shape", lambda: ft.vjp(np.sin, X)[1](1.0), TypeError, [r"f64\[3\]", r"f64\[\]"]),
    ("cotangent structure", lambda: ft.vjp(np.sin, X)[1]((X,)), TypeError, ["structure", "result"]),
    ("linearize", lambda: ft.linearize(np.sin, X)[1](np.ones(2)), TypeError, [r"f64\[3\]", r"f64\[2\]"]),
    ("hvp", lambda: ft.hvp(np.sum, (X,), (np.ones(2),)), TypeError, [r"f64\[3\]", r"f64\[2\]"]),
    # Functions without a rule
    ("no rule", lambda: ft.grad(lambda x: np.packbits(x))(X), MissingRule, [r"numpy\.packbits", "no rule", "bits"]),
    ("ufunc", lambda: ft.grad(lambda x: np.sum(np.isnat(x)))(X), MissingRule, ["isnat", "no rule"]),
    ("not linear", lambda: ft.linear_transpose(np.sin, X), TypeError, ["linear"]),
    ("affine", lambda: ft.linear_transpose(lambda x: x + 1.0, X), TypeError, ["linear"]),
    # Tracers where none may be
    ("leak", leaking, TracerLeak, [r"f64\[\]", LINE, r"np\.sin\(x\)", "had returned"]),
    ("leak into math", lambda: math.sin(leaked()), TracerLeak, ["had returned", "clear what was stored"]),
    ("float", lambda: ft.grad(lambda x: float(x) * x)(1.0), TypeError, [r"float\(\)", r"f64\[\]", "derivative"]),
    ("complex", lambda: ft.grad(lambda x: complex(x).real * x)(1.0), TypeError, ["derivative"]),
    ("math", lambda: ft.grad(lambda x: math.sin(x))(1.0), TypeError, [r"math\.sin asks.*np\.sin\(x\)"]),
    ("asarray", lambda: ft.grad(lambda x: np.sum(np.asarray(x, dtype=float)))(X), TypeError, [r"astype\(float\)"]),
    ("asarray of a scalar", lambda: ft.grad(lambda x: np.asarray(x, float))(1.0), TypeError, [r"astype\(float\)"]),
    ("assignment", lambda: ft.grad(into_a_plain_array)(X), TypeError, ["out is a plain", r"ftrans\.numpy\.zeros\(3\)"]),
    ("slice assignment", lambda: ft.grad(into_part_of_a_plain_array)(X), TypeError, [r"ftrans\.numpy\.zeros\(3\)"]),
    ("object array", lambda: ft.grad(lambda x: np.sum(np.sin(np.array([x, 1.0]))))(2.0), TypeError,
     ["array of Python objects", r"ftrans\.numpy\.array", "stack"]),
    ("object array of two", lambda: ft.grad(lambda x: np.sum(np.arctan2(np.array([x, 1.0]), 1.0)))(2.0), TypeError,
     ["array of Python objects", r"ftrans\.numpy\.array"]),
    ("object array in a test", lambda: ft.grad(lambda x: x * np.isfinite(np.array([x, 1.0])).all())(2.0), TypeError,
     ["array of Python objects", r"ftrans\.numpy\.array"]),
    ("truth", lambda: ft.grad(lambda x: x if x > 0 else -x)(X), ValueError, ["3 elements", "any", "all", r"np\.where"]),
    ("range", lambda: ft.grad(lambda x: sum(x for _ in range(x)))(2.0), TypeError, [r"f64\[\]"]),
    ("vmap branch", lambda: ft.jit(ft.vmap(branching))(X - 1.5), ConcretizationError,
     ["vmap", r"if x > 0", "where", "cond"]),
    ("plain array indexed", lambda: ft.jit(ft.vmap(lambda i: X[i]))(N - 1), ConcretizationError,
     [r"X\[i\]", "leave this part outside"]),
    ("scan branch", lambda: ft.scan(lambda c, x: (branching(c), x), 1.0, X), ConcretizationError, ["where", "cond"]),
    ("len", lambda: ft.grad(lambda x: x * len(x))(1.0), TypeError, ["unsized"]),
    ("iteration", lambda: ft.grad(lambda x: sum(x))(1.0), TypeError, ["0-d"]),
    ("hash", lambda: ft.grad(lambda x: {x: x}[x])(1.0), TypeError,
     ["cannot be a key", r"table\[int\(n\)\]", r"ftrans\.numpy\.take", "unhashable"]),
    ("key", lambda: ft.trace(lambda n: {1: 2.0}[n])(1), TypeError, ["cannot be a key", r"table\[int\(n\)\]"]),
    ("in a set", lambda: ft.grad(lambda x: x * (x in {1.0, 2.0}))(1.0), TypeError,
     ["cannot be a key", r"write x in \[1\.0, 2\.0\]"]),
    ("set of", lambda: ft.grad(lambda x: len(set(x)) * x[0])(X), TypeError, ["cannot be a key"]),
    ("cached", lambda: ft.grad(functools.cache(lambda x: x))(1.0), TypeError, ["lru_cache"]),
    ("cached helper", lambda: ft.grad(lambda x: cached(x))(1.0), TypeError, ["cached keeps", r"cached\.__wrapped__"]),
    ("cached method", lambda: ft.grad(lambda x: keeping.cost(x))(1.0), TypeError, ["cost keeps", "Remove the cache"]),
    ("numba", lambda: ft.grad(lambda x: compiled(x))(X), TypeError,
     [r"half is compiled by numba", r"call half\.py_func", r"ftrans\.patch\(__name__\)"]),
    ("numba ufunc", lambda: ft.grad(lambda x: compiled_ufunc(x))(X), TypeError, ["numba", "remove the decorator"]),
    ("unknown attribute", lambda: ft.grad(lambda x: x.foo)(X), AttributeError, [r"f64\[3\]", "no attribute 'foo'"]),
    ("attribute nearby", lambda: ft.grad(lambda x: x.shpe)(X), AttributeError, ["did you mean 'shape'"]),
    ("singular values", lambda: ft.grad(lambda x: x.pinv())(X), AttributeError, [r"write np\.linalg\.pinv\(x\)"]),
    ("bytes of", lambda: ft.grad(lambda x: x.tobytes())(X), AttributeError,
     ["no memory", "return the value", "remove the cache"]),
    ("unknown option", lambda: ft.grad(lambda x: x.sum(bogus=1))(X), TypeError, ["bogus"]),
    ("unknown option of numpy", lambda: ft.grad(lambda x: ft.numpy.sum(x, bogus=1))(X), TypeError, ["bogus"]),
    ("axis of torch to numpy", lambda: ft.grad(lambda x: np.concatenate([x, x], dim=0)[0])(X), TypeError,
     ["'dim'", "dim= axis="]),
    ("axis of torch, plain", lambda: ft.grad(lambda x: x[0] * X.mean(dim=0))(X), TypeError, ["'dim'", "dim= axis="]),
    ("size of torch, plain", lambda: ft.grad(lambda x: x[0] * X.size())(X), TypeError, [r"x\.shape for size\(\)"]),
    ("method of torch, plain", lambda: ft.grad(lambda x: x[0] * X.maximum(0)[0])(X), AttributeError,
     [r"instead of maximum: np\.maximum\(x, y\)"]),
    ("view of other bytes", lambda: ft.grad(lambda x: x.view(np.int64)[0])(X), TypeError, [r"\.astype"]),
    ("attribute set", lambda: ft.grad(lambda x: setattr(x.T, "foo", 1))(X), AttributeError,
     ["traced value takes no attributes", "traced value has no attribute 'foo'"]),
    ("dtype set", lambda: ft.grad(lambda x: setattr(x, "dtype", float))(X), AttributeError, ["astype", "no setter"]),
    ("attribute deleted", lambda: ft.grad(lambda x: delattr(x, "T"))(X), AttributeError, ["takes no", "no deleter"]),
    ("unknown option of tensors", lambda: ft.autograd.tensor(X).sum(bogus=1), TypeError, [r"^sum\(\) got", "'bogus'"]),
    ("memoryview of a tensor", lambda: ft.grad(lambda x: memoryview(ft.autograd.tensor(X)))(X), TypeError,
     ["has no|bytes-like", r"x\.detach\(\)\.numpy\(\)"]),
    ("memoryview", lambda: ft.grad(lambda x: memoryview(x))(X), TypeError, ["has no bytes", "Return it"]),
    ("struct", lambda: ft.grad(lambda x: struct.pack("d", x))(1.0), TypeError,
     [r"float\(\)", "derivative", r"struct\.pack asks", r"ftrans\.tap"]),
    ("ctypes", lambda: ft.grad(lambda x: ctypes.c_double(x).value)(1.0), TypeError, [r"float\(\)", "derivative"]),
    ("array.array", lambda: ft.grad(lambda x: array.array("d", x))(X), TypeError,
     [r"float\(\)", "derivative", r"array\.array asks", r"ftrans\.tap"]),
    ("pickle", lambda: ft.grad(lambda x: pickle.dumps(x))(X), TypeError, ["cannot be pickled", "Return it"]),
    ("json", lambda: ft.grad(lambda x: json.dumps({"x": x}))(1.0), TypeError, ["JSON", "tap"]),
    ("json of a list", lambda: ft.grad(lambda x: json.dumps(x.tolist()))(X), TypeError, ["JSON"]),
    ("statistics", lambda: ft.grad(lambda x: statistics.mean(list(x)))(X), TypeError, ["statistics", r"np\.mean"]),
    ("decimal", lambda: ft.grad(lambda x: decimal.Decimal(x))(1.0), TypeError, ["Decimal"]),
    ("called", lambda: ft.grad(lambda x: x(1.0))(1.0), TypeError, ["no function", "not callable"]),
    ("plus text", lambda: ft.grad(lambda x: x + "a")(1.0), TypeError, ["neither an array nor a number", "'str'"]),
    ("plus None", lambda: ft.grad(lambda x: x + None)(1.0), TypeError, ["without `return`", "'NoneType'"]),
    ("compared to text", lambda: ft.grad(lambda x: x * (x < "a"))(1.0), TypeError, ["compared", "'str'"]),
    ("matmul of a number", lambda: ft.grad(lambda x: x @ 3)(X), ValueError, ["at least one axis"]),
    ("list indexed", lambda: ft.grad(lambda x: [1, 2][x])(1.0), TypeError, [r"int\(x\)", r"astype\(int\)"]),
    ("list of numbers", lambda: ft.grad(lambda x: bytes(x))(X), TypeError, [r"int\(x\)"]),
    ("jax", lambda: ft.grad(lambda x: jnp.sin(x))(1.0), TypeError, ["functions of JAX", r"np\.sin in place of jnp"]),
    ("jax.lax", lambda: ft.grad(lambda x: jax.lax.sin(x))(1.0), TypeError, ["functions of JAX"]),
    ("jnp.asarray", lambda: ft.grad(lambda x: jnp.asarray(x))(1.0), TypeError, ["functions of JAX"]),
    ("jnp.array", lambda: ft.grad(lambda x: jnp.array([x[0], x[1]]))(X), TypeError, ["functions of JAX"]),
    ("jax.jit", lambda: ft.grad(lambda x: jax.jit(jnp.sin)(x))(1.0), TypeError, ["functions of JAX"]),
    ("matplotlib", lambda: ft.grad(lambda x: (Figure().subplots().plot(x), np.sum(x))[1])(X), TypeError,
     ["matplotlib draws numbers", "Return it", "tap"]),
    ("torch", lambda: ft.grad(sin_of_torch)(1.0), TypeError, ["its own tensors", r"np\.sin in place of torch\.sin"]),
    ("shuffled", lambda: ft.grad(lambda x: np.random.default_rng(0).permutation(x)[0])(X), TypeError,
     [r"x\[rng\.permutation\(len\(x\)\)\]"]),
    ("shuffled rows", lambda: ft.trace(lambda x: np.random.default_rng(0).shuffle(x.copy()))(np.eye(4)), TypeError,
     [r"x = x\[rng\.permutation\(len\(x\)\)\]"]),
    ("shuffled rows, once more", lambda: ft.trace(lambda x: np.random.shuffle(x.copy()))(np.eye(4)), TypeError,
     [r"x = x\[rng\.permutation\(len\(x\)\)\]"]),
    ("like", lambda: ft.grad(lambda x: np.zeros(3, like=x)[0])(X), MissingRule, ["like=", r"ftrans\.numpy\.zeros"]),
    ("wrong arity", lambda: ft.grad(lambda x, y: x)(1.0), TypeError, ["missing 1 required positional argument"]),
    # Inputs that are not arrays
    ("string", lambda: ft.grad(lambda p: p["w"])({"w": 1.0, "n": "a"}), TypeError,
     [r"argument 0\['n'\]", "the str 'a'", "argnums"]),
    ("object", lambda: ft.grad(lambda x: x)(object()), TypeError, ["argument 0", "object", "argnums"]),
    ("text array", lambda: ft.grad(lambda x: x)(np.array(["a"])), TypeError, ["argument 0"]),
    ("jit of a string", lambda: ft.jit(lambda p: p)({"a": [1.0, "b"]}), TypeError,
     [r"\['a'\]\[1\]", "static_argnames"]),
    ("vmap of a string", lambda: ft.vmap(lambda x, y: x)(X, {"k": "b"}), TypeError, [r"\['k'\]", "in_axes=None"]),
    ("trace of a string", lambda: ft.trace(lambda x: x)("b"), TypeError, ["the str 'b'", "close over"]),
    ("result", lambda: ft.jit(lambda x: {"a": [x, "text"]})(X), TypeError, ["str", r"result\['a'\]\[1\]"]),
    ("object result", lambda: ft.jacobian(lambda x: object())(X), TypeError, ["returned object"]),
    # Options that make no sense
    ("argnums", lambda: ft.grad(lambda x: x, argnums=2)(1.0), TypeError, ["argument 2", "1 positional"]),
    *(
        (f"argnums {wrong!r}", lambda wrong=wrong: ft.grad(lambda x: x, argnums=wrong)(1.0), TypeError,
         ["argnums of grad is the position of an argument"])
        for wrong in ("x", ("x",), 0.0, True, None, (0, 0.5), np.array(0.0))
    ),
    ("argnums twice", lambda: ft.grad(lambda x, y: x, argnums=(0, -2))(1.0, 1.0), TypeError, ["twice"]),
    ("argnums of jacobian", lambda: ft.jacobian(lambda x: x, argnums="x"), TypeError, ["argnums of jacobian"]),
    ("static_argnums", lambda: ft.jit(lambda x: x, static_argnums="x"), TypeError, ["static_argnums of jit"]),
    ("static_argnames", lambda: ft.jit(lambda x: x, static_argnames=0), TypeError, ["static_argnames of jit", "name"]),
    ("called too early", lambda: ft.grad(np.sum(X))(X), TypeError, ["takes a function", r"f in place of f\(x\)"]),
    ("value for a function", lambda: ft.vmap(X)(X), TypeError, ["vmap takes a function", "f is an array"]),
    ("text for a function", lambda: ft.jit("f")(X), TypeError, ["jit takes a function", "the str 'f'"]),
    ("branch", lambda: ft.cond(True, X, np.sin, X), TypeError, ["cond takes a function", "true_fn is an array"]),
    ("branches", lambda: ft.switch(0, [np.sin, 1.0], X), TypeError, [r"branches\[1\]"]),
    ("branches of one", lambda: ft.switch(0, np.sin, X), TypeError, ["branches of switch is a list of functions"]),
    ("jvp without tuples", lambda: ft.jvp(np.sin, X, X), TypeError, ["primals of jvp must be a tuple", r"\(x,\)"]),
    ("hvp without tuples", lambda: ft.hvp(np.sum, (X,), X), TypeError, ["tangents of hvp must be a tuple"]),
    ("in_axes", lambda: ft.vmap(np.sin, in_axes="x")(X), TypeError, ["in_axes of vmap", "'x'"]),
    ("out_axes", lambda: ft.vmap(np.sin, out_axes=[0, 0])(X), ValueError, ["out_axes", "does not fit"]),
    ("out_axes too far", lambda: ft.vmap(np.sin, out_axes=1)(X), ValueError, ["mapped axis at 1", "1 axes"]),
    ("axis_size", lambda: ft.vmap(np.sin, axis_size=[3])(X), TypeError, ["axis_size", "list"]),
    ("length", lambda: ft.scan(lambda c, x: (c, x), 1.0, X, length=X), TypeError, ["length of scan", "integer"]),
    ("no argument", lambda: ft.grad(lambda x: x)(x=1.0), TypeError, ["0 positional", "by name"]),
    ("empty argnums", lambda: ft.grad(lambda x: x, argnums=())(1.0), TypeError, ["no argument"]),
    ("has_aux", lambda: ft.grad(lambda x: x, has_aux=True)(1.0), TypeError, ["has_aux", "pair"]),
    ("mode", lambda: ft.jacobian(np.sin, mode="sideways"), ValueError, ["forward", "reverse", "sideways"]),
    ("chunk_size", lambda: ft.jacobian(np.sin, chunk_size=0), ValueError, ["chunk_size", "positive"]),
]  # fmt: skip


# Methods of torch, which traced values have as soon as `ftrans.autograd` has been imported.
BEFORE_TORCH: list[tuple[str, Callable[[], Any], type[Exception], list[str]]] = [
    ("function of numpy", lambda: ft.grad(lambda x: x.nansum())(X), AttributeError, [r"Instead: np\.nansum\(x"]),
    ("axis of torch", lambda: ft.grad(lambda x: x.mean(dim=0))(X), TypeError, ["'dim'", "dim= axis="]),
    ("size of torch", lambda: ft.grad(lambda x: x[0] * x.size(0))(X), TypeError, ["not callable", r"x\.shape\[i\]"]),
    ("view of another shape", lambda: ft.grad(lambda x: x.view(3, 1)[0, 0])(X), TypeError, [r"x\.reshape\(3, 1\)"]),
    ("view of three axes", lambda: ft.grad(lambda x: x.view(1, 3, 1))(X), TypeError, [r"x\.reshape\(1, 3, 1\)"]),
    ("view of one axis", lambda: ft.grad(lambda x: x.view(-1)[0])(X), TypeError, [r"x\.reshape\(-1\)"]),
]  # fmt: skip


def check(call: Any, error: type[Exception], phrases: list[str]) -> None:
    with pytest.raises(error) as caught:
        call()
    message = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    place = 0
    for phrase in phrases:
        found = re.compile(phrase).search(message, place)
        assert found, f"{phrase!r} is not in {message[place:]!r}"
        place = found.start()
    assert "test_errors.py:" in message, message


@pytest.mark.parametrize(("call", "error", "phrases"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
@pytest.mark.filterwarnings("ignore:you are shuffling")
def test_message(call: Any, error: type[Exception], phrases: list[str]) -> None:
    check(call, error, phrases)


def test_messages_where_torch_is_not_spoken() -> None:
    code = "import test_errors as t\nfor case in t.BEFORE_TORCH: t.check(*case[1:])"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True)


@pytest.mark.parametrize("name", ["no rule", "not linear", "float", "leak"])
def test_no_internal_errors_in_the_chain(name: str) -> None:
    call, error = next(c[1:3] for c in CASES if c[0] == name)
    with pytest.raises(error) as caught:
        call()
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("scipy.special.polygamma", lambda x: scipy.special.polygamma(1, x)),
        ("scipy.special.factorial", lambda x: scipy.special.factorial(x)),
        ("scipy.special.spherical_jn", lambda x: scipy.special.spherical_jn(1, x)),
        ("scipy.special.zeta", lambda x: scipy.special.zeta(x)),
        ("scipy.linalg.solve", lambda x: scipy.linalg.solve(np.diag(x), x)),
        ("scipy.stats.norm.logpdf", lambda x: scipy.stats.norm.logpdf(x)),
        ("scipy.stats.norm.logpdf", lambda x: scipy.stats.norm(0.0, 1.0).logpdf(x)),
        ("scipy.stats.multivariate_normal.logpdf", lambda x: scipy.stats.multivariate_normal.logpdf(x, [0.0, 1.0])),
        ("scipy.stats.multivariate_normal.logpdf", lambda x: scipy.stats.multivariate_normal([0.0, 1.0]).logpdf(x)),
        ("scipy.stats.gaussian_kde", lambda x: scipy.stats.gaussian_kde(x)(0.0)),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_functions_of_scipy_that_are_mirrored(name: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(
        TypeError, match=rf"(?s)^{name} cannot.*from ftrans\.scipy\.\w+ import \w+`.*test_errors\.py"
    ) as caught:
        ft.grad(lambda x: np.sum(call(x)))(np.array([2.0, 3.0]))
    assert "site-packages" not in str(caught.value)


def test_methods_of_objects_of_scipy() -> None:
    estimate = scipy.stats.gaussian_kde([0.0, 1.0, 3.0])
    with pytest.raises(
        TypeError, match=r"gaussian_kde\.evaluate cannot.*from ftrans\.scipy\.stats import gaussian_kde`"
    ):
        ft.grad(lambda x: estimate(x)[0])(1.0)
    spline = scipy.interpolate.CubicSpline([0.0, 1.0, 3.0], [0.0, 2.0, 1.0])
    with pytest.raises(TypeError, match=r"from ftrans\.scipy\.interpolate import CubicSpline`"):
        ft.grad(lambda x: spline(x))(1.0)
    with pytest.raises(TypeError, match=r"scipy\.linalg\.schur cannot.*the Schur form has no derivative"):
        ft.grad(lambda x: np.sum(scipy.linalg.schur(x)[0]))(np.eye(2))


def test_functions_of_scipy_whose_decorator_fails() -> None:
    """As some do from SciPy 1.18 on, where what they were given becomes an array of objects."""
    source = """
def decorated(f):
    def wrapper(x):
        if hasattr(x, "dtype"):
            raise TypeError("dtype=object")
        return f(x)
    return wrapper
"""
    namespace: dict[str, Any] = {"__name__": "scipy._decorators"}
    exec(compile(source, str(Path(scipy.__file__).with_name("_decorators.py")), "exec"), namespace)
    schur = namespace["decorated"](scipy.linalg.schur)
    with pytest.raises(TypeError, match=r"scipy\.linalg\.schur cannot.*the Schur form has no derivative"):
        ft.grad(lambda x: np.sum(schur(x)[0]))(np.eye(2))


def test_functions_of_scipy_that_are_not_mirrored() -> None:
    with pytest.raises(TypeError, match=r"scipy\.stats\.levy\.pdf cannot.*no such function"):
        ft.grad(lambda x: scipy.stats.levy.pdf(x))(2.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.take(np.arange(3.0), x.astype(int)), r"write ftrans\.numpy\.take"),
        (lambda x: np.max(np.arange(3.0), initial=x), r"write ftrans\.numpy\.max"),
        (lambda x: np.piecewise(np.arange(3.0), [[True] * 3], [lambda y: x * y]), r"write ftrans\.numpy\.piecewise"),
        (lambda x: np.random.default_rng(0).normal(x), r"mean \+ deviation \* rng\.standard_normal"),
        (lambda x: np.random.poisson(x), "numpy.random draws"),
        (lambda x: np.polynomial.polynomial.polyroots([x, 1.0, 2.0]), "polyroots cannot be applied.*np.roots"),
        (lambda x: np.polynomial.polynomial.polyfit([x, 1.0, 2.0], [1.0, 2.0, 4.0], 1), "polyfit cannot.*np.polyfit"),
        (lambda x: scipy.integrate.quad(lambda t: t * x, 0, 1)[0], r"from ftrans\.scipy\.integrate import quad`"),
        (lambda x: scipy.optimize.fsolve(lambda t: t - x, 1.0)[0], r"from ftrans\.scipy\.optimize import fsolve`"),
        (
            lambda x: scipy.optimize.minimize(lambda t: (t - x) ** 2, 1.0).x,
            r"from ftrans\.scipy\.optimize import minimize`",
        ),
        (
            lambda x: scipy.integrate.solve_ivp(lambda t, y: -x * y, (0, 1), [1.0]).y,
            r"from ftrans\.scipy\.integrate import solve_ivp`",
        ),
        (lambda x: scipy.fft.fft([x, 1.0]), r"write numpy\.fft\.fft"),
    ],
)
def test_functions_that_hide_a_traced_value(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message) as info:
        ft.trace(call)(1.5)
    assert "test_errors.py" in str(info.value)


def test_functions_of_the_user_may_have_arguments_as_in_torch() -> None:
    def mine(x: Any) -> Any:
        return x

    with pytest.raises(TypeError, match="got an unexpected keyword argument 'dim'") as caught:
        ft.grad(lambda x: mine(x, dim=1))(1.0)  # type: ignore[call-arg]
    assert not getattr(caught.value, "__notes__", [])


def test_errors_of_functions_that_scipy_calls_are_kept() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("of my own")

    with pytest.raises(ValueError, match="of my own"):
        ft.grad(lambda x: scipy.optimize.approx_fprime(np.ones(2), fails)[0] * x)(1.0)


def test_a_line_of_a_notebook_is_in_a_cell() -> None:
    # A kernel compiles cells under temporary names, which say nothing to the reader.
    namespace: dict[str, Any] = {}
    exec(compile("import numpy as np\ndef f(x):\n    return float(x)", "/tmp/ipykernel_1234/567.py", "exec"), namespace)
    with pytest.raises(TypeError, match="float") as caught:
        ft.grad(namespace["f"])(1.0)
    assert "at cell:3" in str(caught.value)
    assert "ipykernel" not in str(caught.value)
