"""What XLA makes of programs on arrays that are divided over devices: values, how results are divided, messages.

A row says which collectives the compiled program has.  Where a result is whole on each device, or there is a collective
more than the mathematics asks for, `docs/scale.md` says why.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
import scipy.special
import tables
from jax.sharding import NamedSharding

import ftrans as ft
from ftrans import nn
from ftrans.ops.random_bits import random_bits

P = ft.P
MESH = ft.mesh({"d": 8})
EXPLICIT = jax.make_mesh((8,), ("d",))
COLLECTIVE = re.compile(r" (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(")

rng = np.random.default_rng(0)
X, M, W = rng.normal(size=16), rng.normal(size=(16, 8)), rng.normal(size=(8, 3))
SORTED = np.sort(rng.uniform(size=16))
BLOCKS = rng.normal(size=(16, 3, 3))
DEFINITE = BLOCKS @ BLOCKS.transpose(0, 2, 1) + 3 * np.eye(3)
SQUARE = rng.normal(size=(16, 16)) + 8 * np.eye(16)
IMAGE, IMAGES, KERNEL = rng.normal(size=(2, 1, 16, 4)), rng.normal(size=(16, 1, 4, 4)), rng.normal(size=(2, 1, 3, 3))
IN_ROWS = (IMAGE, P(None, None, "d"))
PLACES = np.array([3, 1, 2, 7, 5, 0, 15, 11])
LABELS = np.arange(16) % 8
ORDER = np.argsort(M, axis=1)


class Row(NamedTuple):
    """A program, where its arguments are, where its results are, and what the devices tell each other.

    Attributes:
        f: the program.
        args: arrays, divided along the first axis; those in a tuple with a spec are divided like that.
        spec: how its first result is divided.
        collectives: how many of each kind there are.
    """

    f: Callable[..., Any]
    args: tuple[Any, ...]
    spec: tuple[Any, ...] = ("d",)
    collectives: Mapping[str, int] = MappingProxyType({})


def loss(w: Any, m: Any) -> Any:
    return np.mean(np.tanh(m @ w) ** 2)


def checkpointed_loss(w: Any, m: Any) -> Any:
    return np.mean(ft.checkpoint(lambda m, w: np.tanh(m @ w))(m, w) ** 2)


def cubic(a: Any) -> Any:
    return ft.root(lambda x, a: x**3 + x - a, np.zeros(np.shape(a)), a)


def sensitivity(k: Any) -> Any:
    def slope(y: Any, t: Any, k: Any) -> Any:
        return np.stack([y[1] - k * y[0], -k * y[1]])

    return ft.grad(lambda k: ft.odeint(slope, np.array([1.0, 0.5]), np.array([0.0, 1.0]), k)[-1, 0])(k)


def noise(key: Any, x: Any) -> Any:
    return x * (random_bits(key, key, shape=x.shape) % 7)


def on_host(x: Any) -> Any:
    return scipy.special.kv(1.5, x)


def growth(x: Any) -> Any:
    return ft.while_loop(lambda c: np.sum(c) < 99, lambda c: c * 1.5 + 1, x)


def same_size(x: Any, k: Any) -> Any:
    return nn.functional.conv2d(x, k, padding=1)


def squares(k: Any, x: Any) -> Any:
    return np.sum(nn.functional.conv2d(x, k) ** 2)


def whole(x: Any) -> tuple[Any, Any]:
    return x, P()


ONE_SUM, ONE_GATHER, ONE_SHIFT = {"all-reduce": 1}, {"all-gather": 1}, {"collective-permute": 1}
# XLA divides the transform since JAX 0.12.
OF_FFT = ONE_GATHER if jax.__version_info__ < (0, 12) else {}
ROWS = {
    # Nothing is told
    "elementwise": Row(lambda x: np.sin(x) * x + 1, (X,)),
    "sines of many": Row(np.sin, (np.linspace(-9, 9, 8192),)),
    "product": Row(lambda m, w: m @ w, (M, whole(W))),
    "vmap of grad": Row(ft.vmap(ft.grad(loss), in_axes=(None, 0)), (whole(W), M[:, None])),
    "solve": Row(np.linalg.solve, (DEFINITE, BLOCKS)),
    "cholesky": Row(np.linalg.cholesky, (DEFINITE,)),
    "eigh": Row(lambda a: np.linalg.eigh(a)[0], (DEFINITE,)),
    "svd": Row(lambda a: np.linalg.svd(a)[1], (DEFINITE,)),
    "inv": Row(np.linalg.inv, (DEFINITE,)),
    "eig": Row(lambda a: np.abs(np.linalg.eigvals(a)), (DEFINITE,)),
    "qr": Row(lambda a: np.linalg.qr(a)[1], (DEFINITE,)),
    "slogdet": Row(lambda a: np.linalg.slogdet(a)[1], (DEFINITE,)),
    "interp": Row(lambda x: np.interp(x, np.linspace(0, 1, 5), np.arange(5.0)), (SORTED,)),
    "searchsorted": Row(lambda x: np.searchsorted(np.linspace(0, 1, 5), x), (SORTED,)),
    "sort along another axis": Row(lambda m: np.sort(m, axis=1), (M,)),
    "cumsum along another axis": Row(lambda m: np.cumsum(m, axis=1), (M,)),
    "scan along another axis": Row(lambda m: ft.scan(lambda c, r: (c + np.sin(r), None), np.zeros(16), m.T)[0], (M,)),
    "erf": Row(scipy.special.erf, (X,)),
    "ndtr": Row(scipy.special.ndtr, (X,)),
    "gammaln": Row(scipy.special.gammaln, (np.abs(X),)),
    "random numbers": Row(noise, (whole(np.array([1, 2], np.uint32)), X)),
    "take_along_axis": Row(lambda m, i: np.take_along_axis(m, i, 1), (M, ORDER)),
    "grad of take_along_axis": Row(ft.grad(lambda m, i: np.sum(np.take_along_axis(m, i, 1) ** 2)), (M, ORDER)),
    "one of each row": Row(lambda m, i: m[np.arange(16), i], (M, LABELS)),
    "vmap of grad of an element": Row(ft.vmap(ft.grad(lambda m, i: m[i] ** 2)), (M, LABELS)),
    "columns by indices": Row(ft.grad(lambda m: np.sum(m[:, [0, 0, 3]] ** 2)), (M,)),
    "elements by divided indices": Row(lambda t, i: t[i], (whole(M), PLACES)),
    "vmap of root": Row(ft.vmap(cubic), (X,), ("d",), {"all-reduce": 2}),
    # The mathematics asks for it: whether a loop goes on, and which lane stands in for those that are done
    "vmap of an ODE's sensitivity": Row(ft.vmap(sensitivity), (SORTED,), ("d",), {"all-gather": 10, "all-reduce": 9}),
    "grad of a mean loss": Row(ft.grad(loss), (whole(W), M), (), ONE_SUM),
    "grad through a checkpoint": Row(ft.grad(checkpointed_loss), (whole(W), M), (), ONE_SUM),
    "contracted product": Row(lambda m: m.T @ m, (M,), (), ONE_SUM),
    "grad of a kernel": Row(ft.grad(squares), (whole(KERNEL), IMAGES), (), ONE_SUM),
    "grad of cross entropy": Row(ft.grad(nn.functional.cross_entropy), (M, LABELS), collectives=ONE_SUM),
    "grad of an embedding": Row(ft.grad(lambda t, i: np.sum(t[i] ** 2)), (whole(M), PLACES), (), ONE_SUM),
    "predicate of while": Row(growth, (X,), ("d",), ONE_SUM),
    "predicate of cond": Row(lambda x: ft.cond(np.sum(x) > 0, np.sin, np.cos, x), (X,), collectives=ONE_SUM),
    "convolution": Row(same_size, (IN_ROWS, whole(KERNEL)), (None, None, "d"), {"collective-permute": 2}),
    "roll": Row(lambda x: np.roll(x, 1), (X,), collectives=ONE_SHIFT),
    # The result is whole on each device
    "sort": Row(np.sort, (X,), (), ONE_GATHER),
    "argsort": Row(np.argsort, (X,), (), ONE_GATHER),
    "median": Row(np.median, (X,), (), ONE_GATHER),
    "cumsum": Row(np.cumsum, (X,), (), ONE_GATHER),
    "cumprod": Row(np.cumprod, (X,), (), ONE_GATHER),
    "scan": Row(lambda x: ft.scan(lambda c, r: (c + np.sin(r), c), 0.0, x)[1], (X,), (), ONE_GATHER),
    "slice": Row(lambda x: x[2:9], (X,), (), {"collective-permute": 2, "all-gather": 1}),
    "diff": Row(np.diff, (X,), (), {"collective-permute": 1, "all-gather": 1}),
    "unbatched solve": Row(np.linalg.solve, (SQUARE, whole(X)), (), ONE_GATHER),
    "elements by indices": Row(lambda x: x[PLACES], (X,), (), ONE_SUM),
    "grad of elements by indices": Row(ft.grad(lambda x: np.sum(x[PLACES] ** 2)), (X,), (), ONE_SUM),
    "fft": Row(lambda m: np.abs(np.fft.fft(m, axis=1)), (M,), ("d",), OF_FFT),
    "root": Row(cubic, (X,), (), {"all-gather": 3}),
    "function on the host": Row(on_host, (np.abs(X),), (), {"all-gather": 1, "all-reduce": 1}),
}  # fmt: skip
# Rows that fail on arrays with Explicit axes if nothing is done about it; with `--all`, all rows are tried.
WITH_EXPLICIT_AXES = ["contracted product", "sort", "grad through a checkpoint"]
# It takes as long to compile as many others.
LONG = {"vmap of root", "vmap of an ODE's sensitivity"}


def placed(mesh: Any, row: Row) -> list[Any]:
    """The arguments of a row on a mesh."""
    pairs = [x if isinstance(x, tuple) else (x, P("d")) for x in row.args]
    with jax.enable_x64(True):
        return [jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in pairs]


def check(row: Row, result: Any) -> None:
    """Compare with NumPy, and with what the row says about devices."""
    expected = row.f(*[x[0] if isinstance(x, tuple) else x for x in row.args])
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-9, atol=1e-12)
    spec = [*result.sharding.spec]
    while spec and spec[-1] is None:
        spec.pop()
    assert tuple(spec) == row.spec


@pytest.mark.parametrize("name", ROWS if tables.whole else [name for name in ROWS if name not in LONG])
def test_collectives(name: str) -> None:
    row = ROWS[name]
    args = placed(MESH, row)
    compiled = ft.jit(row.f).lower(*args).compile()
    assert Counter(COLLECTIVE.findall(compiled.as_text())) == row.collectives
    check(row, compiled(*args)[0])


@pytest.mark.parametrize("name", ROWS if tables.whole else WITH_EXPLICIT_AXES)
def test_explicit_axes(name: str) -> None:
    row = ROWS[name]
    result = ft.jit(row.f)(*placed(EXPLICIT, row))
    assert result.sharding.mesh == EXPLICIT
    check(row, result)
