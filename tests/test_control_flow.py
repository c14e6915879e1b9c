"""Control flow: every transformation of cond, switch, scan, map, while_loop and fori_loop, against plain Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from checks import assert_all_close, assert_close
from tables import crossed

import ftrans as ft
from ftrans.api.call import trace_flat
from ftrans.base import tree
from ftrans.control.cond import cond as cond_primitive
from ftrans.control.loops import motion
from ftrans.control.loops.scan import scan as scan_primitive
from ftrans.core.program import Program
from ftrans.core.trace import NoWitness, TracerLeak
from ftrans.core.types import type_of
from ftrans.core.witness import ConcretizationError
from ftrans.transforms.differentiate import pullback
from ftrans.transforms.simplify import simplify

# The same functions in plain Python.


def python_scan(
    f: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> Any:
    leaves, structure = tree.flatten(xs)
    steps = range(leaves[0].shape[0] if leaves else length or 0)
    carry, rows = init, {}
    for i in reversed(steps) if reverse else steps:
        carry, rows[i] = f(carry, tree.unflatten(structure, [x[i] for x in leaves]))
    columns = zip(*(tree.flatten(rows[i])[0] for i in steps), strict=True)
    return carry, tree.unflatten(tree.flatten(rows[0])[1], [np.stack(list(c)) for c in columns])


def python_while(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init: Any) -> Any:
    while bool(cond_fun(init)):
        init = body_fun(init)
    return init


def python_fori(lower: int, upper: int, body: Callable[..., Any], init: Any) -> Any:
    for i in range(lower, upper):
        init = body(i, init)
    return init


PYTHON = SimpleNamespace(
    cond=lambda pred, true_fn, false_fn, *xs: (true_fn if bool(pred) else false_fn)(*xs),
    switch=lambda index, branches, *xs: branches[min(max(int(index), 0), len(branches) - 1)](*xs),
    scan=python_scan,
    map=lambda f, xs: python_scan(lambda _, x: (None, f(x)), None, xs)[1],
    while_loop=python_while,
    fori_loop=python_fori,
)

W = np.array([[0.5, -0.3, 0.2], [0.1, 0.4, -0.6], [0.3, 0.2, 0.7]])
X = np.array([[0.3, -0.2, 0.9], [1.1, 0.4, -0.5], [0.2, 0.8, 0.1], [-0.7, 0.5, 0.6]])
V = np.array([0.7, -1.2, 0.4])


def total(x: Any) -> Any:
    return np.sum(np.sin(x) * 1.3)


class Case(NamedTuple):
    """A function of one argument written against either set of functions."""

    name: str
    function: Callable[[Any, Any], Any]
    argument: Any

    def __call__(self, flow: Any) -> Callable[[Any], Any]:
        return lambda p: self.function(flow, p)


CASES: list[Case] = []
# Apart, because they end for some arguments only.
WHILE_LOOPS: list[Case] = []


def case(*arguments: Any, into: list[Case] = CASES) -> Callable[..., Any]:
    """Enter a function once for each argument."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for number, argument in enumerate(arguments):
            name = function.__name__ + (f"_{number}" if len(arguments) > 1 else "")
            into.append(Case(name, function, argument))
        return function

    return enter


@case((W, V, X))
def recurrence(flow: Any, p: Any) -> Any:
    w, h, xs = p

    def step(h: Any, x: Any) -> Any:
        h = np.tanh(w @ h + x)
        return h, h * x

    h, ys = flow.scan(step, h, xs)
    return total(h) + total(ys)


@case((W, V, X))
def recurrence_reversed(flow: Any, p: Any) -> Any:
    w, h, xs = p
    h, ys = flow.scan(lambda h, x: (np.tanh(w @ h + x), h * x), h, xs, reverse=True)
    return total(h) + total(ys)


@case({"a": np.float64(0.3), "b": np.float64(-0.8), "x": V, "y": V[::-1].copy()})
def containers(flow: Any, p: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        following = {"a": np.sin(c["a"]) + x[0] * c["b"], "b": c["b"] * 0.9 + x[1]}
        return following, (c["a"] * c["b"], {"q": x[0] ** 2, "n": None})

    c, (y, z) = flow.scan(step, {"a": p["a"], "b": p["b"]}, (p["x"], p["y"]))
    return total(c["a"]) + total(c["b"]) + total(y) + total(z["q"])


@case(V)
def without_sequences(flow: Any, p: Any) -> Any:
    c, ys = flow.scan(lambda c, _: (np.sin(c) * p, c * c), p, length=5)
    return total(c) + total(ys)


@case(V)
def integer_carry(flow: Any, p: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        return (c[0] + 1, np.sin(c[1] * x) * (c[0] + 1.0)), c[1] * c[0]

    c, ys = flow.scan(step, (0, p[0]), p)
    return total(c[1]) + total(ys) + c[0]


@case((W, V))
def invariants(flow: Any, p: Any) -> Any:
    w, x = p
    c, ys = flow.scan(lambda c, x: (np.tanh(np.exp(w * 0.1) @ c + np.sin(w).sum() * x), np.cos(w)), x, X)
    return total(c) + total(ys)


@case((W, V))
def scan_in_scan(flow: Any, p: Any) -> Any:
    w, h = p

    def outer(h: Any, x: Any) -> Any:
        inner, ys = flow.scan(lambda g, v: (np.tanh(g * v + w @ h), g * v), h, X[:2] * x)
        return inner, np.sum(ys)

    h, ys = flow.scan(outer, h, X)
    return total(h) + total(ys)


@case(X)
def tangent_from_zero(flow: Any, p: Any) -> Any:
    return total(flow.scan(lambda c, x: (c + x * np.sin(c + 0.5), None), np.zeros(3), p)[0])


@case(np.array(0.9))
def tangent_arrives_late(flow: Any, p: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        a, b, d = c
        return (np.sin(a) * x, a * x + 0.1, b * b), d + b

    c, ys = flow.scan(step, (p, np.array(0.3), np.array(0.2)), V)
    return total(c[0]) + total(c[1]) + total(c[2]) + total(ys)


@case(V)
def constant_carry(flow: Any, p: Any) -> Any:
    c, ys = flow.scan(lambda c, x: ((c[0], c[1] * c[0] + x), np.ones(3) * x), (p, p * 2), X)
    return total(c[0] * c[1]) + total(ys)


@case(V)
def repeated_results(flow: Any, p: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        z = np.cos(c) * x
        return z, (z, z, x, c, 2.0)

    c, ys = flow.scan(step, p, X)
    return total(c) + total(ys[0]) * 0.3 + total(ys[1]) + total(ys[2] * ys[3]) + total(ys[4])


@case((W, V))
def sums_of_products(flow: Any, p: Any) -> Any:
    w, v = p

    def step(c: Any, x: Any) -> Any:
        h, outer, sums = c
        h = np.tanh(w @ h + w.T @ x)
        return (h, outer + np.outer(h, x) - (x[:, None] * h).T, sums + w @ x), None

    c, _ = flow.scan(step, (v, W, np.zeros(3)), X)
    return sum(map(total, c))


@case(V)
def one_step(flow: Any, p: Any) -> Any:
    c, ys = flow.scan(lambda c, x: (np.sin(c) * x, c * x), p, X[:1])
    return total(c) + total(ys)


@case((W, V))
def fori(flow: Any, p: Any) -> Any:
    w, v = p
    return total(flow.fori_loop(1, 5, lambda i, c: np.tanh(w @ c * i) + v, v))


@case(X)
def rows(flow: Any, p: Any) -> Any:
    return total(flow.map(lambda x: {"a": np.sin(x) * V, "b": np.sum(x)}, p)["a"])


@case(V + 1, V - 1)
def either_branch(flow: Any, p: Any) -> Any:
    return total(flow.cond(np.sum(p) > 0, lambda q: np.sin(q) * q, lambda q: q**2, p)) + total(p)


@case((W, V + 1), (W, V - 1))
def closures(flow: Any, p: Any) -> Any:
    w, x = p
    y, z, n = flow.cond(np.sum(x) > 0, lambda: (w @ x, x * 2.0, 1.0), lambda: (x * x, np.cos(x), 2.0))
    return total(y) + total(z) * n


@case((V + 1, V), (V - 1, V))
def unlike_residuals(flow: Any, p: Any) -> Any:
    u, v = flow.cond(
        np.sum(p[0]) > 0,
        lambda a, b: (np.sin(np.exp(a) * b), a * b),
        lambda a, b: (a, np.tanh(a * np.sin(b)) * b),
        *p,
    )
    return total(u * v) + total(u)


@case(np.array(-1.5), np.array(-0.5), np.array(0.5), np.array(1.5))
def cond_in_cond(flow: Any, p: Any) -> Any:
    return flow.cond(
        p > 0,
        lambda: flow.cond(p > 1, lambda: np.sin(p), lambda: p * p * p),
        lambda: flow.cond(p > -1, lambda: np.cos(p), lambda: p * 2),
    )


@case(V)
def switch_by_values(flow: Any, p: Any) -> Any:
    branches = [lambda x: np.sin(x), lambda x: x * p, lambda x: x * 0.0 + 2.0]
    index = np.sum(p > 0)
    return total(flow.switch(index - 1, branches, p) + flow.switch(index * 5, branches, p * 2))


@case(V)
def cond_in_scan(flow: Any, p: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        c = flow.cond(np.sum(x) > 0.6, lambda c: np.sin(c) * x + p, lambda c: c * np.exp(x * 0.1) * p, c)
        return c, c * x

    c, ys = flow.scan(step, p, X)
    return total(c) + total(ys)


@case(V, V + 3)
def scan_in_cond(flow: Any, p: Any) -> Any:
    looped = lambda: total(flow.scan(lambda c, x: (np.sin(c * x) + p, None), p, X)[0])  # noqa: E731
    return flow.cond(np.sum(p) > 5, lambda: total(p), looped)


@case(np.array(2.0), into=WHILE_LOOPS)
def newton(flow: Any, p: Any) -> Any:
    return flow.while_loop(lambda x: np.abs(x * x - p) > 1e-10, lambda x: (x + p / x) / 2, p)


@case((W, V), into=WHILE_LOOPS)
def counted_while(flow: Any, p: Any) -> Any:
    w, h = p

    def body(c: Any) -> Any:
        i, a, b, d = c
        return i + 1, np.tanh(w @ a + b), b * 0.5 + d, d

    i, a, b, d = flow.while_loop(lambda c: c[0] < 4, body, (0, h, np.zeros(3), 0.25))
    return total(a) + total(b) + i * d


@case(V, into=WHILE_LOOPS)
def while_by_values(flow: Any, p: Any) -> Any:
    def body(c: Any) -> Any:
        return {"x": c["x"] * 1.5 + p, "n": c["n"] + 1}

    c = flow.while_loop(lambda c: np.sum(c["x"] ** 2) < 30.0, body, {"x": p * 0.7, "n": 0})
    return total(c["x"]) * c["n"]


@case(V, into=WHILE_LOOPS)
def no_trip(flow: Any, p: Any) -> Any:
    return total(flow.while_loop(lambda c: np.sum(c) > 1e9, lambda c: c * 2, p) * p)


@case(V, into=WHILE_LOOPS)
def while_in_while(flow: Any, p: Any) -> Any:
    def body(c: Any) -> Any:
        inner = flow.while_loop(
            lambda d: np.sum(d[1] * d[1]) < 4.0, lambda d: (d[0] + 1, d[1] * 1.3 + p * 0.1), (0, c[1])
        )
        return c[0] + 1, np.sin(inner[1]) * p

    return total(flow.while_loop(lambda c: c[0] < 3, body, (0, p))[1])


# Comparison


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Program]]:
    """The programs that a test has made, each of which has to be valid."""
    programs: list[Program] = []
    init = Program.__init__

    def remember(self: Program, *args: Any) -> None:
        init(self, *args)
        programs.append(self)

    monkeypatch.setattr(Program, "__init__", remember)
    yield programs
    # Checking a program checks those inside it.
    inside = {p for program in programs for p in program.subprograms()}
    for program in programs:
        if program not in inside:
            program.check()


def like(p: Any, seed: int) -> Any:
    """Random numbers in the shape of `p`."""
    random = np.random.default_rng(seed)
    return tree.map_leaves(lambda x: random.normal(size=np.shape(x))[()], p)


def agree(actual: Any, expected: Any) -> None:
    """Assert that two containers hold the same values."""
    (a, mine), (b, theirs) = tree.flatten(actual), tree.flatten(expected)
    assert mine == theirs
    assert_all_close(a, b, 1e-10)


def product(a: Any, b: Any) -> Any:
    return sum(np.sum(x * y) for x, y in zip(tree.flatten(a)[0], tree.flatten(b)[0], strict=True))


def pushed(f: Callable[..., Any], t: Any) -> Callable[..., Any]:
    return lambda p: ft.jvp(f, (p,), (t,))[1]


FORWARD: dict[str, Callable[..., Any]] = {
    "value": lambda f, p, t, u: f(p),
    "jvp": lambda f, p, t, u: ft.jvp(f, (p,), (t,)),
    "jvp of jvp": lambda f, p, t, u: ft.jvp(lambda q: ft.jvp(f, (q,), (t,)), (p,), (u,)),
    "linearize": lambda f, p, t, u: ft.linearize(f, p)[1](t),
    "jacfwd": lambda f, p, t, u: ft.jacfwd(f)(p),
}
REVERSE: dict[str, Callable[..., Any]] = {
    "grad": lambda f, p, t, u: ft.grad(f)(p),
    "vjp": lambda f, p, t, u: ft.vjp(f, p)[1](1.5),
    "forward over reverse": lambda f, p, t, u: pushed(ft.grad(f), t)(p),
    "reverse over forward": lambda f, p, t, u: ft.grad(pushed(f, t))(p),
    "reverse over reverse": lambda f, p, t, u: ft.grad(lambda q: product(ft.grad(f)(q), t))(p),
    "hessian": lambda f, p, t, u: ft.hessian(f)(p),
    "third": lambda f, p, t, u: pushed(pushed(ft.grad(f), t), u)(p),
}


@crossed(times=3, example=CASES + WHILE_LOOPS, how=FORWARD)
def test_forward(example: Case, how: str) -> None:
    p, t, u = example.argument, like(example.argument, 1), like(example.argument, 2)
    agree(FORWARD[how](example(ft), p, t, u), FORWARD[how](example(PYTHON), p, t, u))


@crossed(times=3, example=CASES + WHILE_LOOPS, how=REVERSE)
def test_reverse(example: Case, how: str) -> None:
    p, t, u = example.argument, like(example.argument, 1), like(example.argument, 2)
    agree(REVERSE[how](example(ft), p, t, u), REVERSE[how](example(PYTHON), p, t, u))


# A transformation of the batched function, and what each lane has to give.
BATCHED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "vmap": (lambda f, ps, t: ft.vmap(f)(ps), lambda f, p, t: f(p)),
    "vmap of jvp": (lambda f, ps, t: ft.vmap(pushed(f, t))(ps), lambda f, p, t: pushed(f, t)(p)),
    "jvp of vmap": (lambda f, ps, t: pushed(ft.vmap(f), thrice(t))(ps), lambda f, p, t: pushed(f, t)(p)),
    "vmap of grad": (lambda f, ps, t: ft.vmap(ft.grad(f))(ps), lambda f, p, t: ft.grad(f)(p)),
    "grad of vmap": (lambda f, ps, t: ft.grad(lambda q: np.sum(ft.vmap(f)(q)))(ps), lambda f, p, t: ft.grad(f)(p)),
    "vmap of hvp": (lambda f, ps, t: ft.vmap(pushed(ft.grad(f), t))(ps), lambda f, p, t: pushed(ft.grad(f), t)(p)),
}


def thrice(p: Any) -> Any:
    return tree.map_leaves(lambda x: np.stack([x] * 3), p)


def lanes(p: Any, scales: tuple[float, ...]) -> tuple[list[Any], Any]:
    """Several arguments like `p`, and the batch of them."""
    each = [tree.map_leaves(lambda x, k=k: x * k, p) for k in scales]
    return each, tree.map_leaves(lambda *xs: np.stack(xs), *each)


@crossed(times=3, example=CASES, how=BATCHED)
def test_batched(example: Case, how: str) -> None:
    t = like(example.argument, 1)
    each, batch = lanes(example.argument, (1.0, 0.5, -1.0))
    run, reference = BATCHED[how]
    expected = [reference(example(PYTHON), p, t) for p in each]
    agree(run(example(ft), batch, t), tree.map_leaves(lambda *xs: np.stack(xs), *expected))


@pytest.mark.parametrize("how", BATCHED)
@pytest.mark.parametrize("example", WHILE_LOOPS, ids=lambda c: c.name)
def test_batched_while(example: Case, how: str) -> None:
    t = like(example.argument, 1)
    each, batch = lanes(example.argument, (1.0, 0.5, 1.7))
    run, reference = BATCHED[how]
    expected = [reference(example(PYTHON), p, t) for p in each]
    agree(run(example(ft), batch, t), tree.map_leaves(lambda *xs: np.stack(xs), *expected))


@pytest.mark.parametrize("example", [c for c in CASES if c.name[-2:] not in ("_1", "_2", "_3")], ids=lambda c: c.name)
def test_compiled(example: Case) -> None:
    f, p = example(ft), example.argument
    agree(ft.jit(ft.value_and_grad(f))(p), ft.value_and_grad(f)(p))


@pytest.mark.parametrize("example", WHILE_LOOPS, ids=lambda c: c.name)
def test_compiled_while(example: Case) -> None:
    f, (_, batch) = example(ft), lanes(example.argument, (1.0, 1.7))
    t = like(example.argument, 1)
    for run in (ft.vmap(pushed(f, t)), ft.vmap(ft.grad(f))):
        agree(ft.jit(run)(batch), run(batch))


@pytest.mark.parametrize("example", [c for c in CASES if c.name in ("scan_in_scan", "cond_in_scan", "closures_1")])
def test_compiled_batches(example: Case) -> None:
    f, (_, batch) = ft.vmap(ft.grad(example(ft))), lanes(example.argument, (1.0, 0.5, -1.0))
    agree(ft.jit(f)(batch), f(batch))


@pytest.mark.parametrize("example", [CASES[0], WHILE_LOOPS[0]], ids=lambda c: c.name)
def test_jax_arrays(example: Case) -> None:
    f, p = example(ft), example.argument
    with jax.enable_x64(True):
        q = tree.map_leaves(jax.numpy.asarray, p)
        t = tree.map_leaves(np.ones_like, p)
        for run in (pushed(f, t), jax.jit(pushed(f, t))):
            y = run(q)
            assert isinstance(y, jax.Array)
            assert_close(np.asarray(y)[()], pushed(f, t)(p), 1e-10)


@pytest.mark.parametrize("unroll", [1, 3])
def test_against_jax(unroll: int) -> None:
    def loss(np: Any, scan: Any, w: Any) -> Any:
        h, ys = scan(lambda h, x: (np.tanh(w @ h + x), np.sin(h)), np.ones(3), np.asarray(X), unroll=unroll)
        return np.sum(h) + np.sum(ys**2)

    with jax.enable_x64(True):
        expected = jax.jit(jax.hessian(lambda w: loss(jax.numpy, jax.lax.scan, w)))(W)
    actual = ft.jit(ft.hessian(lambda w: loss(np, ft.scan, w)))(W)
    assert_close(actual, np.asarray(expected), 1e-10)


# Types of carries and results


X32 = np.arange(3, dtype=np.float32)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda: ft.scan(lambda c, x: (c + x, c), 0.0, X32), (np.float32(3), np.array([0, 0, 1], np.float32))),
        (lambda: ft.scan(lambda c, x: (c + x, None), 0, X32), (np.float32(3), None)),
        (lambda: ft.scan(lambda c, x: ((c[1], c[1] + x), None), (0, 0), X32)[0], (np.float32(1), np.float32(3))),
        (lambda: ft.scan(lambda c, x: (c * 0.5 + x, None), 1, X32)[0], np.float32(2.625)),
        (lambda: ft.scan(lambda c, x: (0.0, c), np.float32(2), X32)[1], np.array([2, 0, 0], np.float32)),
        (lambda: ft.while_loop(lambda c: np.sum(c) < 10, lambda c: c + np.ones(3), 0.0), np.full(3, 4.0)),
        (lambda: ft.while_loop(lambda c: ~c[0], lambda c: (c[1] > 3, c[1] + 1), (False, 0)), (np.True_, np.int64(5))),
        (lambda: ft.fori_loop(0, 3, lambda i, c: c * i + X32, 1), X32 * 5),
        (lambda: ft.fori_loop(5, 2, lambda i, c: c * 2, 1.5), np.float64(1.5)),
        (lambda: ft.fori_loop(-2, 3, lambda i, c: c + i * i, 0), np.int64(10)),
        (lambda: ft.scan(lambda c, x: (None, x * 2), None, X32), (None, X32 * 2)),
        (lambda: ft.scan(lambda c, x: (c + x, (x * 2, c)), np.zeros(2), np.zeros((0, 2))),
         (np.zeros(2), (np.zeros((0, 2)), np.zeros((0, 2))))),
        (lambda: ft.grad(lambda x: ft.cond(x > 0, lambda: x * x, lambda: 0))(np.float32(3)), np.float32(6)),
        (lambda: ft.grad(lambda x: ft.cond(x, lambda: x * x, lambda: x))(3.0), np.float64(6)),
    ],
)  # fmt: skip
def test_types(run: Callable[[], Any], expected: Any) -> None:
    agree(run(), expected)


def test_known_conditions_call_their_function() -> None:
    assert ft.cond(True, lambda: "yes", lambda: "no") == "yes"
    assert ft.cond(np.bool_(False), lambda: "yes", lambda: "no") == "no"
    assert [ft.switch(i, [lambda: "a", lambda: "b"]) for i in (-3, 0, 1, 9)] == ["a", "a", "b", "b"]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_switch_clamps_every_integer(dtype: Any) -> None:
    index = np.array([0, 1, 2, 127], dtype)
    f = ft.vmap(lambda i: ft.switch(i, [lambda: 10, lambda: 11, lambda: 12]))
    assert_close(f(index), np.array([10, 11, 12, 12]))
    if dtype != np.uint8:
        assert_close(f(-index), np.array([10, 10, 10, 10]))


def test_fori_loop_with_traced_bounds() -> None:
    f = ft.jit(lambda n, x: ft.fori_loop(0, n, lambda i, c: c * x + i, 1.0))
    assert_close(f(5, 2.0), np.float64(58))
    assert_close(ft.jvp(lambda x: f(5, x), (2.0,), (1.0,))[1], np.float64(103))


def test_lanes_that_do_not_take_a_branch_get_no_derivative_from_it() -> None:
    f = ft.vmap(lambda x: ft.cond(x > 0, np.sqrt, lambda x: x * 0.0, x))
    assert_close(ft.grad(lambda x: np.sum(f(x)))(np.array([0.0, 4.0])), np.array([0.0, 0.25]))
    assert_close(pushed(f, np.ones(2))(np.array([0.0, 4.0])), np.array([0.0, 0.25]))


@pytest.mark.parametrize("compiled", [False, True])
def test_operands_of_a_branch_that_no_lane_takes_get_no_derivative_from_it(compiled: bool) -> None:
    def f(x: Any, wanted: Any) -> Any:
        return np.sum(ft.vmap(lambda w: ft.cond(w, lambda: np.sqrt(x), lambda: x * 2.0))(wanted))

    gradient = ft.jit(ft.grad(f)) if compiled else ft.grad(f)
    assert_close(gradient(0.0, np.array([False, False])), np.float64(4))
    assert_close(gradient(4.0, np.array([True, False])), np.float64(2.25))


@pytest.mark.parametrize("compiled", [False, True])
def test_lanes_do_not_run_a_branch_that_would_fail_or_not_end_for_them(compiled: bool) -> None:
    def root(x: Any) -> Any:
        return ft.cond(x < 0, lambda x: ft.while_loop(lambda y: y >= 0, lambda y: y, x), np.sqrt, x)

    f = ft.vmap(root)
    f = ft.jit(f) if compiled else f
    assert_close(f(np.array([-1.0, 4.0])), np.array([-1.0, 2.0]))
    assert_close(f(np.array([9.0, 4.0])), np.array([3.0, 2.0]))
    if not compiled:
        inverse = ft.vmap(lambda a: ft.cond(a[0, 0] > 0, np.linalg.inv, lambda a: a, a))
        singular = np.array([[[0.0, 1.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]])
        assert_close(inverse(singular), np.array([[[0.0, 1.0], [0.0, 1.0]], [[0.5, 0.0], [0.0, 0.5]]]))
        assert_close(inverse(singular[:1]), singular[:1])


def test_python_control_flow_on_captured_values() -> None:
    def f(p: Any) -> Any:
        return ft.scan(lambda c, x: (c * x if p > 0 else c, x), p, np.array([3.0, -1.0]))[0]

    assert_close(ft.grad(f)(2.0), np.float64(-3))
    assert_close(ft.grad(f)(-2.0), np.float64(1))
    compiled = ft.jit(ft.grad(f))
    assert [float(compiled(x)) for x in (2.0, -2.0, 3.0)] == [-3.0, 1.0, -3.0]


# What bad input gets


def branch_on_element(c: Any, x: Any) -> Any:
    return (c + x, x) if x > 0 else (c, x)


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ft.scan(lambda c, x: ({"h": c["h"].astype(np.float32)}, x), {"h": V}, X32), TypeError,
     r"init\['h'\]: f64\[3\] came in, f32\[3\] was returned"),
    (lambda: ft.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1][:2]), (0, V)), TypeError,
     r"init\[1\]: f64\[3\] came in, f64\[2\] was returned"),
    (lambda: ft.fori_loop(0, 3, lambda i, c: c * 1.5, np.int64(1)), TypeError, r"init: i64\[\] came in, f64\[\]"),
    (lambda: ft.scan(lambda c, x: ((c, c), x), 0.0, X32), TypeError, "must keep its structure"),
    (lambda: ft.scan(lambda c, x: c + x, 0.0, X32), TypeError, "must return a pair"),
    (lambda: ft.scan(lambda c, x: (c, "s"), 0.0, X32), TypeError, "the str 's'"),
    (lambda: ft.scan(lambda c, x: (c, x), "abc", X32), TypeError, "init is the str 'abc'"),
    (lambda: ft.scan(lambda c, x: (c, x), 0.0), ValueError, "needs length"),
    (lambda: ft.scan(lambda c, x: (c, x), 0.0, X32, length=4), ValueError, r"4 by length, 3 by xs \(f32\[3\]\)"),
    (lambda: ft.map(lambda x: x, (V, X)), ValueError, r"3 by xs\[0\] \(f64\[3\]\), 4 by xs\[1\] \(f64\[4,3\]\)"),
    (lambda: ft.scan(lambda c, x: (c, x), 0.0, {"a": 1.0}), ValueError, r"xs\['a'\] of scan is a scalar"),
    (lambda: ft.scan(lambda c, x: (c, x), 0.0, X32, unroll=0), ValueError, "unroll"),
    (lambda: ft.grad(lambda x: ft.cond(x > 0, lambda: {"a": x, "b": V}, lambda: {"a": x, "b": V[:2]})["a"])(1.0),
     TypeError, r"result\['b'\]: f64\[2\] from false_fn, f64\[3\] from true_fn"),
    (lambda: ft.vmap(lambda i: ft.switch(i, [lambda: V, lambda: X]))(np.arange(2)), TypeError,
     r"f64\[3\] from branch 0, f64\[4,3\] from branch 1"),
    (lambda: ft.grad(lambda x: ft.cond(x > 0, lambda: (x, x), lambda: x))(1.0), TypeError, "the same structure"),
    (lambda: ft.cond(V > 0, lambda: 1, lambda: 2), TypeError, r"the shape \(\), not bool\[3\]"),
    (lambda: ft.cond("a", lambda: 1, lambda: 2), TypeError, "must be a number, not the str 'a'"),
    (lambda: ft.switch(1.0, [lambda: 1]), TypeError, "must be an integer"),
    (lambda: ft.switch(1, []), ValueError, "at least one branch"),
    (lambda: ft.fori_loop(0.0, 3, lambda i, c: c, 1.0), TypeError, "lower of fori_loop must be an integer"),
    (lambda: ft.while_loop(lambda c: c, lambda c: c + 1, 0.0), TypeError, r"one bool, but .* returned f64\[\]"),
    (lambda: ft.while_loop(lambda c: c < 3, lambda c: c + 1, 0, max_steps=2.0), TypeError, "max_steps .* plain int"),
    (lambda: ft.while_loop(lambda c: c < 3, lambda c: c + 1, 0, checkpoints=0), ValueError, "checkpoints .* least 1"),
    (lambda: ft.fori_loop(0, 3, lambda i, c: c, 1.0, max_steps=-1), ValueError, "max_steps of fori_loop .* not -1"),
    (lambda: ft.scan(branch_on_element, 0.0, V), ConcretizationError, "runs once for every step"),
    (lambda: ft.grad(lambda x: ft.cond(x > 0, lambda y: y if y > 1 else -y, lambda y: y, x))(2.0),
     ConcretizationError, "traced for every value"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "error", "message"), BAD)
def test_bad_input(run: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        run()
    assert re.search(r"at .*test_control_flow\.py:\d+", str(caught.value))


def test_leaked_carry() -> None:
    kept: list[Any] = []

    def step(c: Any, x: Any) -> Any:
        kept.append(c)
        return c, x

    ft.scan(step, 0.0, V)
    with pytest.raises(TracerLeak):
        kept[0] + 1.0


def test_what_fails_in_a_body_names_its_line() -> None:
    def step(c: Any, x: Any) -> Any:
        return np.linalg.inv(c), x

    with pytest.raises(np.linalg.LinAlgError) as caught:
        ft.scan(step, np.zeros((2, 2)), V)
    assert "return np.linalg.inv(c), x" in "".join(caught.value.__notes__)
    with pytest.warns(RuntimeWarning, match=r"divide by zero encountered in `.*np\.log\(c\)"):
        ft.scan(lambda c, x: (np.log(c), x), 0.0, V[:1])


# Programs


def loops(program: Program) -> list[Any]:
    """The scans of a simplified program."""
    return [eqn for eqn in simplify(program).eqns if eqn.primitive is scan_primitive]


def gradient_loops(f: Callable[..., Any], x: Any) -> list[Any]:
    return loops(ft.trace(ft.grad(f))(x))


def test_a_repeated_call_derives_nothing_again(made: list[Program]) -> None:
    def run() -> Any:
        return ft.grad(lambda p: scan_in_scan(ft, p) + either_branch(ft, p[1]))((W, V))

    run()
    count = len(made)
    run()
    assert len(made) == count


def test_equal_loops_run_once() -> None:
    def f(x: Any) -> Any:
        return [ft.scan(lambda c, y: (c * y, c), x, X)[k] for k in (0, 1, 0)]

    traced, _ = trace_flat(f, [type_of(V)], lambda tracers: f(*tracers), NoWitness("nothing is computed"))
    assert len(loops(traced.program)) == 1


def test_invariants_leave_the_loop() -> None:
    program = ft.trace(lambda w: ft.scan(lambda c, x: (np.exp(w) * c + x, np.sin(w)), V, X))(V)
    (loop,) = loops(program)
    assert {eqn.primitive.name for eqn in loop.params["program"].eqns} == {"mul", "add"}
    assert len(loop.outputs) == 1


def test_unused_results_leave_the_loop() -> None:
    program = ft.trace(lambda v: ft.scan(lambda c, x: ((c[0] * x, np.sin(c[0] + c[1])), c[1]), (v, v), X)[0][0])(V)
    (loop,) = loops(program)
    assert [eqn.primitive.name for eqn in loop.params["program"].eqns] == ["mul"]


def test_residuals_are_not_copies() -> None:
    # Of each step reverse mode needs x, which is there, and the carry, which is the result anyway.
    f = ft.trace(lambda v: np.sum(ft.scan(lambda c, x: (c, (lambda z: (z * c, z))(np.exp(c) * x)), v, X)[1][0]))
    parts = pullback(f(V), (True,))
    (loop,) = loops(parts.values)
    assert len(loop.params["program"].outputs) <= 2

    def step(h: Any, x: Any) -> Any:
        h = np.tanh(h * x)
        return h, h

    forwards, backwards = gradient_loops(lambda v: np.sum(ft.scan(step, v, X)[1]), V)
    # Nothing but the states, which are the result: 1 - tanh(x) ** 2 is computed again.
    assert len(forwards.outputs) == 2
    assert backwards.params["reverse"]


def test_gradients_of_weights_are_one_product() -> None:
    forwards, backwards = gradient_loops(lambda w: recurrence(ft, (w, V, X)), W)
    assert forwards.params["carries"] == backwards.params["carries"] == 1


def test_large_products_move_before_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(motion, "_LARGE_BYTES", 0)
    monkeypatch.setattr(motion, "_SMALLER", 1)
    # Not the program of another test, which has its derived forms already.
    f = lambda w: total(ft.scan(lambda c, x: (np.cos(c) + w @ (x * 1.25), None), V, X)[0])  # noqa: E731
    g = lambda w: total(python_scan(lambda c, x: (np.cos(c) + w @ (x * 1.25), None), V, X)[0])  # noqa: E731
    (loop,) = loops(ft.trace(f)(W))
    assert "dot_general" not in {eqn.primitive.name for eqn in loop.params["program"].eqns}
    agree(f(W), g(W))
    agree(ft.hessian(f)(W), ft.hessian(g)(W))


def test_known_branches_are_inlined() -> None:
    program = simplify(ft.trace(lambda x: ft.cond(np.sum(np.zeros_like(x)) > 0, np.sin, np.cos, x))(V))
    assert [eqn.primitive.name for eqn in program.eqns] == ["cos"]


def test_what_branches_share_leaves_them() -> None:
    f = lambda x: ft.cond(x[0] > 0, lambda: (x, np.sin(x), 1.0), lambda: (x, np.cos(x), 1.0))  # noqa: E731
    (choice,) = (eqn for eqn in simplify(ft.trace(f)(V)).eqns if eqn.primitive is cond_primitive)
    assert len(choice.outputs) == 1
