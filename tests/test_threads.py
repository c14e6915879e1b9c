"""Threads, tasks and processes: what one of them does to a model or a function is seen by no other.

Where it matters, the schedule is fixed: one thread waits inside of the user's function, while it is traced or runs,
until another one has done what is asked about.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import make_dataclass
from typing import Any

import numpy as np
import pytest
import tqdm

import ftrans as ft
from ftrans import nn
from ftrans.api.progress import Bar, open_bars
from ftrans.ops.host import as_host_call

X = np.ones((2, 3), np.float32)
OTHER = {"weight": np.zeros(3, np.float32)}
SECONDS = 60


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What functions return that are called in threads which begin together."""
    barrier = threading.Barrier(len(calls))
    found: list[Any] = [None] * len(calls)

    def run(index: int, call: Callable[[], Any]) -> None:
        try:
            barrier.wait(SECONDS)
            found[index] = call()
        except BaseException as error:
            found[index] = error

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    for x in found:
        if isinstance(x, BaseException):
            raise x
    return found


@pytest.fixture
def switching() -> Any:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


# Models


class Net(nn.Module):
    """A model with a parameter, a buffer and a stream; `look` runs in its forward code, in the thread that made it."""

    def __init__(self, look: Callable[[], Any] = lambda: None) -> None:
        self.weight = nn.Parameter(np.full(3, 2.0, np.float32))
        self.count = nn.Buffer(np.zeros((), np.float32))
        self.rng = nn.RngState(0)
        self.look = look
        self.thread = threading.get_ident()

    def forward(self, x: Any) -> Any:
        self.count.value = self.count + 1
        self.rng.next_key()
        out = (x * self.weight).sum()
        if threading.get_ident() == self.thread:
            self.look()
        return out


class Layer(nn.Module):
    def __init__(self, net: Net) -> None:
        self.net = net

    def forward(self, x: Any) -> Any:
        return x + self.net(x)


def loss(model: Net, x: Any) -> Any:
    return model(x) ** 2


WAYS: dict[str, Callable[[Net], Any]] = {
    "grad": lambda model: nn.grad(loss)(model, X),
    "in another dtype": lambda model: nn.autocast("bfloat16")(nn.value_and_grad(loss))(model, X),
    "functional_call": lambda model: nn.functional_call(model, OTHER, X),
    "functional_call on tensors": lambda model: nn.functional_call(model, OTHER, ft.autograd.tensor(X)),
    "gradient of a state": lambda model: ft.grad(lambda s: nn.functional_call(model, s, X)[0])(OTHER),
    "jit": lambda model: nn.jit(loss)(model, X),
    "jit of grad": lambda model: nn.jit(nn.grad(loss))(model, X),
    "vmap": lambda model: nn.vmap(lambda model, x: model(x), in_axes=(None, 0))(model, X),
    "scan": lambda model: nn.scan([Layer(model), Layer(model)], X),
    "checkpoint": lambda model: nn.grad(lambda model, x: nn.checkpoint(model)(x))(model, X),
    "summary": lambda model: nn.summary(model, X),
}


def seen(model: Net) -> list[Any]:
    """What a model gives: what its cells hold, its result, and gradients."""
    state = {path: np.array(x) for path, x in nn.state_of(model).items()}
    (of_tensors,) = ft.autograd.grad((model.weight * X).sum(), list(model.parameters()))
    out = nn.functional_call(model, {}, X)[0]
    gradient = ft.grad(lambda w: nn.functional_call(model, {"weight": w}, X)[0])(state["weight"])
    return [*state.values(), of_tensors.numpy(), out, gradient, repr(model.weight)]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_others_see_the_model_itself_while_its_cells_are_filled(way: Callable[[Net], Any]) -> None:
    found: list[Any] = []
    model = Net(look=lambda: found.append(at_once(lambda: seen(model))[0]))
    expected = seen(Net())
    way(model)
    assert found
    for row in found:
        for a, b in zip(row, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    assert isinstance(np.asarray(model.weight.held), np.ndarray)
    assert np.all(model.weight.value == 2)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_others_take_gradients_while_its_cells_are_filled(way: Callable[[Net], Any]) -> None:
    found: list[Any] = []

    def others() -> Any:
        (gradient,) = nn.grad(loss)(model, X).values()
        compiled = nn.jit(lambda model, x: nn.grad(loss)(model, x))(model, X)
        return gradient, compiled["weight"]

    model = Net(look=lambda: found.append(at_once(others)[0]))
    way(model)
    for pair in found:
        for gradient in pair:
            np.testing.assert_array_equal(gradient, np.full(3, 2 * 12 * 2))
    assert model.weight.value.dtype == np.float32


class Spread(nn.Module):
    """A model that computes in threads of its own, in its context or not."""

    def __init__(self, in_context: bool, pool: ThreadPoolExecutor | None = None) -> None:
        self.layer = nn.Linear(3, 2)
        self.in_context = in_context
        self.pool = pool

    def forward(self) -> Any:
        run = [contextvars.copy_context().run] if self.in_context else []
        if self.pool is not None:
            return self.pool.submit(*run, self.layer, X).result(SECONDS)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(*run, self.layer, X).result(SECONDS)


SPREAD: dict[str, Callable[[Any], Any]] = {
    "grad": lambda model: nn.grad(lambda model: model().sum())(model)["layer.weight"],
    "jit": lambda model: nn.jit(lambda model: model())(model),
    "functional_call": lambda model: nn.functional_call(model, {"layer.bias": np.ones(2, np.float32)})[0],
}


@pytest.mark.parametrize("way", SPREAD.values(), ids=SPREAD)
@pytest.mark.parametrize("is_warm", [False, True])
def test_forward_code_in_other_threads_needs_its_context(way: Callable[[Any], Any], is_warm: bool) -> None:
    pool = ThreadPoolExecutor(1) if is_warm else None
    if pool is not None:
        pool.submit(lambda: None).result(SECONDS)
    model = Spread(False, pool)
    with pytest.raises(RuntimeError, match=r"layer\.weight was read only by another thread.*copy_context\(\)\.run"):
        way(model)
    model.in_context = True
    expected = {"grad": np.full((2, 3), 2.0), "jit": model.layer(X)}
    found = way(model)
    for name, x in expected.items():
        if way is SPREAD[name]:
            np.testing.assert_allclose(found, x, rtol=1e-6)
    if pool is not None:
        pool.shutdown()


@pytest.mark.parametrize("way", ["old", "new"])
def test_others_may_use_a_model_of_which_a_transformation_uses_a_part(way: str) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: None).result(SECONDS)

        def loss(model: Any) -> Any:
            if way == "old":
                pool.submit(model, X).result(SECONDS)
                return model[0](X).sum()
            at_once(lambda: model(X), model.state_dict)
            return model(X).sum()

        gradients = nn.grad(loss)(model)
    assert np.any(gradients["0.weight"] != 0)
    assert np.any(gradients["1.bias"] != 0) == (way == "new")


def test_others_see_no_tensors_that_forward_code_has_put_into_a_cell() -> None:
    class Running(nn.Module):
        def __init__(self) -> None:
            self.mean = nn.Buffer(np.zeros(()))

        def forward(self, x: Any) -> Any:
            self.mean.value = 0.5 * self.mean + x.mean()
            found.extend(at_once(lambda: self.mean.held, lambda: self.mean.value))
            return self.mean * 1.0

    found: list[Any] = []
    model, x = Running(), ft.autograd.tensor(np.ones(2), requires_grad=True)
    model(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.5, 0.5])
    assert [type(y) for y in found] == [np.ndarray] * 2
    assert found == [0.0, 0.0]
    assert model.mean.value == 1.0


def test_tasks_that_outlive_a_call_see_the_model_itself() -> None:
    tasks: list[Any] = []

    async def read(model: Net) -> Any:
        return np.array(model.weight.value)

    async def main() -> Any:
        model = Net(look=lambda: tasks.append(asyncio.get_running_loop().create_task(read(model))))
        nn.functional_call(model, OTHER, X)
        nn.jit(lambda model, x: model(x))(model, X)
        return await asyncio.gather(*tasks)

    found = asyncio.run(main())
    assert len(found) == 2
    np.testing.assert_array_equal(found, np.full((2, 3), 2.0))


def test_steps_of_compiled_functions_are_not_mixed(switching: Any) -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            self.first = nn.Buffer(np.zeros(4))
            self.second = nn.Buffer(np.zeros(4))

    def change(pair: Pair) -> None:
        pair.first.value, pair.second.value = pair.first + 1, pair.second + 1

    pair = Pair()
    outer = nn.ModuleList([pair])
    inner, around = nn.jit(change, donate_argnums=0), nn.jit(lambda outer: change(outer[0]))
    difference = nn.jit(lambda pair: pair.first - pair.second)

    def look() -> None:
        for _ in range(50):
            assert not difference(pair).any()

    def repeat(step: Callable[[Any], None], model: Any) -> None:
        for _ in range(50):
            step(model)

    at_once(*[lambda: repeat(inner, pair)] * 3, *[lambda: repeat(around, outer)] * 3, look, look)
    np.testing.assert_array_equal(pair.first.value, 300.0)
    np.testing.assert_array_equal(pair.second.value, 300.0)


def test_the_first_use_of_a_model_in_many_threads(switching: Any) -> None:
    for _ in range(40):
        model = nn.Sequential(*[nn.Linear(3, 3) for _ in range(6)])
        calls: list[Callable[..., Any]] = [
            lambda m: nn.grad(lambda m: m(X).sum())(m),
            lambda m: nn.functional_call(m, {}, X),
            lambda m: m.state_dict(),
            lambda m: list(m.named_parameters()),
            lambda m: m(X),
            lambda m: repr(copy.copy(m)),
        ]
        at_once(*[functools.partial(call, model) for call in calls])


def test_compiled_functions_run_while_others_make_modules() -> None:
    class Options(dict[str, int]):
        def items(self) -> Any:
            # As if another thread did so, whenever the model is looked at.
            nn.Linear(1, 1)
            return super().items()

    model = nn.Linear(3, 3)
    model.options = Options(scale=2)
    step = nn.jit(lambda model, x: model(x) * model.options["scale"])
    for _ in range(2):
        np.testing.assert_allclose(at_once(lambda: step(model, X))[0], 2 * model(X), rtol=1e-6)
    model.options["scale"] = 3
    np.testing.assert_allclose(at_once(lambda: step(model, X))[0], 3 * model(X), rtol=1e-6)


@pytest.mark.parametrize("donated", [(), (0,)])
def test_what_others_write_while_a_function_is_traced_is_not_lost(donated: tuple[int, ...]) -> None:
    class Count(nn.Module):
        def __init__(self) -> None:
            self.value = nn.Buffer(np.zeros(2))

    def add(model: Count) -> None:
        model.value = model.value + 1.0

    def add_while_others_do(model: Count) -> None:
        if threading.get_ident() == here:
            at_once(lambda: quick(model))
        add(model)

    here = threading.get_ident()
    model, quick = Count(), nn.jit(add, donate_argnums=donated)
    quick(model)
    slow = nn.jit(add_while_others_do, donate_argnums=donated)
    slow(model)
    slow(model)
    np.testing.assert_array_equal(model.value.value, 4.0)


def test_reading_waits_for_a_step_that_has_overwritten_the_array() -> None:
    model = nn.Linear(3, 3)
    step = nn.jit(lambda model: setattr(model.bias, "value", model.bias + 1), donate_argnums=0)
    step(model)
    old = model.bias.held
    with model.bias.transaction:
        step(model)
        # As it is between the call of the compiled program and the write.
        new, model.bias.held = model.bias.held, old
        assert old.is_deleted()
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(np.array(model.bias.value)))
        thread.start()
        thread.join(0.05)
        model.bias.held = new
    thread.join(SECONDS)
    np.testing.assert_array_equal(found[0], np.asarray(new))


# Gradients


def test_gradients_of_all_threads_are_added_up(switching: Any) -> None:
    layer = nn.Linear(3, 1, bias=False)
    leaf = ft.autograd.tensor(np.zeros(3), requires_grad=True)
    inner = leaf * 1.0
    inner.retain_grad()

    def go() -> None:
        for _ in range(40):
            layer(ft.autograd.tensor(X)).sum().backward()
            (leaf * 3.0).sum().backward()
            inner.sum().backward(retain_graph=True)

    at_once(*[go] * 8)
    np.testing.assert_array_equal(layer.weight.grad.numpy(), np.full((1, 3), 8 * 40 * 2.0))
    np.testing.assert_array_equal(leaf.grad.numpy(), np.full(3, 8 * 40 * 4.0))
    np.testing.assert_array_equal(inner.grad.numpy(), np.full(3, 8 * 40 * 1.0))


# First uses


def test_a_dataclass_that_threads_meet_at_once() -> None:
    def product(p: Any) -> Any:
        return p.x * p.y

    for _ in range(20):
        point = make_dataclass("Point", ["x", "y"])(2.0, 3.0)
        found = at_once(*[functools.partial(ft.grad(product), point)] * 8)
        assert [(p.x, p.y) for p in found] == [(3.0, 2.0)] * 8


def test_the_first_call_of_one_compiled_function_in_many_threads() -> None:
    f = ft.jit(lambda x: (x * 2).sum() if x.sum() > 0 else x.sum())
    inputs = [np.full(4, sign * n) for n in (1.0, 2.0) for sign in (1, -1)]
    found = at_once(*[lambda x=x: f(x) for x in inputs])
    np.testing.assert_array_equal(found, [8.0, -4.0, 16.0, -8.0])


def run_python(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_import_of_jax_in_many_threads() -> None:
    out = run_python(
        """
import sys, threading
import numpy as np, ftrans as ft
assert "jax" not in sys.modules
sys.setswitchinterval(1e-6)
found = []
def compile():
    found.append(ft.jit(lambda x: x * 2)(np.ones(2)).tolist())
def stay_on_numpy():
    for _ in range(200):
        found.append((2 * ft.grad(lambda x: (x * x).sum())(np.ones(2)) / 2).tolist())
threads = [threading.Thread(target=f) for f in [compile, stay_on_numpy] * 4]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(found), found.count([2.0, 2.0]))
"""
    )
    assert out.split() == ["804", "804"]


# What belongs to the process


def test_the_collector_runs_again_after_threads_have_compiled() -> None:
    # In a process of its own: in this one, what earlier tests have left to do in the background may hold it off.
    run_python(
        """
import gc, threading
from ftrans.api.paths import without_collector
def one_in_the_other():
    entered, left = threading.Event(), threading.Event()
    def wait():
        entered.set()
        assert left.wait(60)
    threads = [
        threading.Thread(target=lambda: without_collector(wait)),
        threading.Thread(target=lambda: entered.wait(60) and without_collector(left.set)),
    ]
    [t.start() for t in threads]
    [t.join() for t in threads]
assert gc.isenabled()
one_in_the_other()
assert gc.isenabled()
gc.disable()
one_in_the_other()
assert not gc.isenabled()
"""
    )


class Screen:
    """Stands in for tqdm."""

    def __init__(self, total: Any, desc: Any, leave: bool, miniters: int) -> None:
        self.desc, self.leave, self.n, self.is_closed = desc, leave, 0, False

    def update(self, steps: int) -> None:
        assert not self.is_closed
        self.n += steps

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["numpy", "compiled"])
@pytest.mark.parametrize("fails", [False, True])
def test_bars_of_other_threads_stay_open(way: Callable[..., Any], fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tqdm, "tqdm", Screen)
    started, done = threading.Event(), threading.Event()
    screens: list[Any] = []

    def other() -> None:
        bar = Bar("other", 3)
        bar()
        screens.append(open_bars[-1].screen)
        started.set()
        assert done.wait(SECONDS)
        bar.report(3)
        bar.close()

    def body(y: Any, x: Any) -> Any:
        return (np.linalg.inv(y * x) if fails else y * x), None

    thread = threading.Thread(target=other)
    thread.start()
    assert started.wait(SECONDS)
    try:
        xs = np.zeros(4)
        if fails and way is not ft.jit:
            with pytest.raises(np.linalg.LinAlgError):
                ft.scan(body, np.eye(2), xs, progress=True)
        else:
            way(lambda y: ft.scan(body, y, xs, progress=True)[0])(np.eye(2))
        assert [shown.screen for shown in open_bars] == screens
        assert not screens[0].is_closed
    finally:
        done.set()
        thread.join(SECONDS)
    assert (screens[0].n, screens[0].is_closed, open_bars) == (3, True, [])


def test_a_run_closes_no_bars_but_those_of_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Bar("other", 3)

    class Opens(Screen):
        def update(self, steps: int) -> None:
            super().update(steps)
            if not any(shown.bar is other for shown in open_bars):
                other()

    monkeypatch.setattr(tqdm, "tqdm", Opens)
    # Whatever compiled programs call on the host, in whichever thread, shares the bars of one thread.
    run = as_host_call(lambda: ft.scan(lambda y, x: (y + x, None), 0.0, np.ones(4), progress=True)[0])
    assert run() == 4.0
    assert [(shown.bar, shown.screen.is_closed) for shown in open_bars] == [(other, False)]
    as_host_call(other.close)()
    assert open_bars == []


# Processes

FORK = """
import os, signal, sys, threading, warnings
import numpy as np, ftrans as ft
from ftrans import nn
warnings.simplefilter("ignore")
model = nn.Linear(2, 1)
step = nn.jit(lambda model, x: model(x).sum())
double = ft.jit(lambda x: x * 2)
def in_child(f):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            print(f(), flush=True)
        except RuntimeError as error:
            print("spawn" in str(error), flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
x = np.ones(2, np.float32)
def backward():
    model(ft.autograd.tensor(x)).sum().backward()
    return model.weight.grad.tolist()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_child_that_is_forked_before_jax_is_used_may_compile() -> None:
    assert run_python(FORK + "in_child(lambda: double(x).tolist())").split("\n")[:2] == ["[2.0, 2.0]", "0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_child_that_is_forked_later_says_so_and_runs_on_numpy() -> None:
    out = run_python(
        FORK
        + """
double(x), step(model, x)
in_child(lambda: double(x))
in_child(lambda: ft.jit(lambda x: x + 1)(x))
in_child(lambda: step(model, x))
in_child(lambda: ft.grad(lambda x: (x * x).sum())(x).tolist())
# A thread holds a lock at the time of the fork.
from ftrans.autograd.tensor import _adding
held, free = threading.Event(), threading.Event()
def hold():
    with _adding:
        held.set()
        free.wait(1)
threading.Thread(target=hold).start()
assert held.wait(60)
in_child(backward)
"""
    )
    assert out.split("\n")[:-1] == ["True", "0", "True", "0", "True", "0", "[2.0, 2.0]", "0", "[[1.0, 1.0]]", "0"]
