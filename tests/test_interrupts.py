"""Interrupts: after Ctrl-C at any moment a model is as before or as after a step, and nothing is left switched on.

Python raises KeyboardInterrupt where a call has returned or a function begins.  A profile function is called at just
these places, so each test raises the signal at the first of them, the second, and so on, of everything that runs: of
this library, of NumPy and of JAX.  Where that is much, it is some of them, and more of them with `--all`.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import optax
import pytest
import tables

import ftrans as ft
from ftrans import nn
from ftrans.base import interrupts
from ftrans.base.source import attributed_line
from ftrans.core.trace import current_builder
from ftrans.nn.cells.array_cell import reading
from ftrans.nn.cells.filling import filling

# Where Python itself closes a generator, it can raise nothing, and says that it did not.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
X = np.ones((2, 3), np.float32)


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_at(place: int, f: Callable[[], Any], number: int = signal.SIGINT) -> bool:
    """Call a function, with Ctrl-C or another signal at the place of this number; return whether it got there."""
    count = 0

    def look(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        if event in ("call", "c_return"):
            count += 1
            if count == place:
                signal.raise_signal(number)

    try:
        sys.setprofile(look)
        f()
    except KeyboardInterrupt:
        assert count >= place
    except SystemError as error:
        # NumPy asks arguments for their class before it calls `__array_function__`, and overlooks an exception there.
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
    finally:
        sys.setprofile(None)
    return count >= place


def at_every_place(
    f: Callable[[], Any], check: Callable[[], None], stride: int = 1, number: int = signal.SIGINT
) -> int:
    """Interrupt a function at one place after another, and check what it leaves; return how many there were."""
    if tables.whole:
        stride = max(stride // 20, 1)
    place = 1
    while interrupted_at(place, f, number):
        check()
        nothing_is_left()
        place += stride
    return place


def nothing_is_left() -> None:
    assert current_builder() is None
    assert attributed_line() is None
    assert reading.get() is None
    assert filling.get() is None
    assert ft.autograd.is_grad_enabled()
    assert gc.isenabled()
    assert not jax.config.jax_enable_x64
    assert jax.numpy.ones(1).dtype == np.float32
    assert interrupts._process.handler is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Model(nn.Module):
    """Cells that each step adds one to: the gradient of the loss is -1."""

    def __init__(self) -> None:
        self.weights = [nn.Parameter(np.zeros(3, np.float32)) for _ in range(3)]
        self.count = nn.Buffer(np.zeros(3, np.float32))

    def forward(self) -> Any:
        self.count.value = self.count + 1
        return -sum((w * 1).sum() for w in self.weights)


def state_of(*modules: nn.Module) -> float:
    """The number of steps that modules have seen, the same in all of their cells."""
    values = {float(x) for module in modules for _, cell in module.named_cells() for x in cell.numpy().ravel()}
    assert len(values) == 1, values
    return values.pop()


def add(model: Model) -> Any:
    value, gradients = nn.value_and_grad(lambda model: model())(model)
    for path, p in model.named_parameters():
        p.value = p - gradients[path]
    return value


@pytest.mark.parametrize("donated", [(), (0,)], ids=["kept", "donated"])
def test_a_compiled_step_happens_or_does_not(donated: tuple[int, ...]) -> None:
    model, step = Model(), nn.jit(add, donate_argnums=donated)
    step(model)
    step(model)
    last = state_of(model)

    def check() -> None:
        nonlocal last
        now = state_of(model)
        assert now in (last, last + 1)
        last = now

    # It is raised at the end of what must not be interrupted at the latest, and never lost.
    assert at_every_place(lambda: step(model), check) > 10
    step(model)
    assert state_of(model) == last + 2


@pytest.mark.parametrize("donated", [(), (0,)], ids=["kept", "donated"])
def test_the_first_call_of_a_compiled_step(donated: tuple[int, ...]) -> None:
    model = Model()
    last = 0.0

    def check() -> None:
        nonlocal last
        now = state_of(model)
        assert now in (last, last + 1)
        last = now

    at_every_place(lambda: nn.jit(add, donate_argnums=donated)(model), check, stride=997)


@pytest.mark.parametrize("donated", [(), (0, 1)], ids=["kept", "donated"])
def test_a_step_of_an_optimizer_happens_or_does_not(donated: tuple[int, ...]) -> None:
    model = Model()
    # Its state is the number of steps.
    optimizer = nn.Optimizer(model, optax.sgd(lambda count: 1.0))

    def train(model: Any, optimizer: Any) -> None:
        optimizer.step(nn.grad(lambda model: model())(model))

    step = nn.jit(train, donate_argnums=donated)
    step(model, optimizer)
    step(model, optimizer)
    last = 2.0

    def check() -> None:
        nonlocal last
        now = state_of(model, optimizer)
        assert now in (last, last + 1)
        last = now

    assert at_every_place(lambda: step(model, optimizer), check) > 10


WAYS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "forward": (lambda model: model(X), 1),
    "tensors": (lambda model: model(ft.autograd.tensor(X)), 7),
    "backward": (lambda model: model(ft.autograd.tensor(X)).sum().backward(), 29),
    "value_and_grad": (lambda model: nn.value_and_grad(lambda model, x: model(x).sum())(model, X), 47),
    "functional_call": (lambda model: nn.functional_call(model, {"0.bias": np.ones(3)}, X), 1),
    "vmap": (lambda model: nn.vmap(lambda model, x: model(x), in_axes=(None, 0))(model, X), 47),
    "scan": (lambda model: nn.scan([model, model], X), 47),
    "checkpoint": (lambda model: ft.grad(lambda x: nn.checkpoint(model)(x).sum())(X), 47),
    "compiled": (lambda model: nn.jit(lambda model, x: model(x))(model, X), 1499),
}


@pytest.mark.parametrize(("way", "stride"), WAYS.values(), ids=WAYS)
def test_a_model_is_whole_after_an_interrupt(way: Callable[[Any], Any], stride: int) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    before = {path: np.array(x) for path, x in nn.state_of(model).items()}
    expected = np.tanh(X @ before["0.weight"].T + before["0.bias"])

    def check() -> None:
        for path, x in nn.state_of(model).items():
            assert type(x) is np.ndarray
            np.testing.assert_array_equal(x, before[path])
        assert isinstance(model[0].weight * 1, ft.autograd.Tensor)
        np.testing.assert_allclose(model(X), expected, rtol=1e-6)

    assert at_every_place(lambda: way(model), check, stride) > stride


def test_plain_functions_are_whole_after_an_interrupt() -> None:
    def f(x: Any) -> Any:
        return ft.scan(lambda y, x: (np.sin(y) * x, None), 1.0, x)[0]

    x = np.linspace(1.0, 2.0, 3)
    double = ft.jit(lambda x: 2.0 * x)
    double(x)

    def run() -> None:
        ft.grad(lambda x: f(x) * x.sum())(x)
        double(x)

    slopes = ft.jacfwd(f)(x)
    at_every_place(run, lambda: np.testing.assert_allclose(ft.grad(f)(x), slopes, rtol=1e-12), stride=53)


def test_compiled_functions_leave_the_types_of_jax_as_they_are() -> None:
    model, x = nn.Linear(3, 1), np.ones(3)
    double, forward = ft.jit(lambda x: 2.0 * x), nn.jit(lambda model, x: model(x))

    def run() -> None:
        double(x)
        forward(model, X)

    run()
    assert at_every_place(run, lambda: None) > 20


# Holding off


@interrupts.uninterrupted
def held_off(f: Callable[[], Any]) -> Any:
    return f()


def control_c() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_that_was_held_off_comes_at_the_end() -> None:
    done = []

    def work() -> None:
        held_off(lambda: (control_c(), done.append(1)))
        control_c()
        done.append(2)

    with pytest.raises(KeyboardInterrupt):
        held_off(work)
    assert done == [1, 2]
    held_off(lambda: done.append(3))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_user_is_called_at_the_end_as_it_would_have_been() -> None:
    calls = []

    def mine(number: int, frame: Any) -> None:
        calls.append((number, frame.f_code.co_name))

    def work() -> None:
        control_c()
        control_c()
        assert not calls

    signal.signal(signal.SIGINT, mine)
    held_off(work)
    control_c()
    assert calls == [(signal.SIGINT, "control_c")] * 3
    assert signal.getsignal(signal.SIGINT) is mine


@pytest.mark.parametrize("where", ["before", "inside"])
def test_handlers_that_are_saved_chained_and_put_back(where: str) -> None:
    calls = []

    def change() -> None:
        old = signal.getsignal(signal.SIGINT)

        def mine(number: int, frame: Any) -> None:
            calls.append(number)
            old(number, frame)

        signal.signal(signal.SIGINT, mine)

    if where == "before":
        held_off(lambda: None)
        change()
        held_off(lambda: None)
    else:
        held_off(change)
    for number in range(1, 3):
        with pytest.raises(KeyboardInterrupt):
            control_c()
        assert len(calls) == number
        with pytest.raises(KeyboardInterrupt):
            held_off(control_c)
        calls.pop()
    # The idiom of programs that finish something first.
    old = signal.signal(signal.SIGINT, lambda *_: calls.append(0))
    held_off(control_c)
    signal.signal(signal.SIGINT, old)
    assert calls.pop() == 0
    with pytest.raises(KeyboardInterrupt):
        control_c()


def test_a_handler_is_seen_however_late_it_is_set() -> None:
    model, step = Model(), nn.jit(add, donate_argnums=0)
    step(model)

    def run() -> None:
        step(model)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        step(model)

    def check() -> None:
        assert state_of(model) >= 1

    assert at_every_place(run, check, 3) > 20


def test_other_signals_that_raise_leave_nothing_held_off() -> None:
    class TimedOut(KeyboardInterrupt):
        pass

    def time_out(*_: Any) -> None:
        raise TimedOut

    def check() -> None:
        with pytest.raises(KeyboardInterrupt):
            control_c()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGALRM, time_out)
    try:
        assert at_every_place(lambda: held_off(lambda: None), check, number=signal.SIGALRM) > 10
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("in_main", [True, False])
def test_a_child_that_is_forked_meanwhile_holds_off_nothing_for_ever(in_main: bool) -> None:
    def child() -> int:
        pid = os.fork()
        if pid == 0 and not in_main:
            # The code says what has failed.
            os._exit(is_held_off())
        return pid

    def is_held_off() -> int:
        try:
            control_c()
        except KeyboardInterrupt:
            return int(signal.getsignal(signal.SIGINT) is not signal.default_int_handler)
        return 2

    def in_thread() -> int:
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(child()))
        thread.start()
        thread.join(60)
        return found[0]

    pid = held_off(child if in_main else in_thread)
    if pid == 0:
        os._exit(is_held_off())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_where_there_are_no_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise ValueError("signal only works in main thread of the main interpreter")

    monkeypatch.setattr(signal, "signal", refuse)
    try:
        assert held_off(lambda: 3) == 3
        assert interrupts._process.handler is None
    finally:
        monkeypatch.undo()


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_signal_that_is_no_matter_of_python_stays_so(handler: Any) -> None:
    signal.signal(signal.SIGINT, handler)
    held_off(control_c if handler is signal.SIG_IGN else lambda: None)
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_training_leaves_the_handler_as_it_was() -> None:
    model = nn.Linear(3, 1)

    class Interrupting(nn.Callback):
        saved: Any = None

        def on_step_end(self, state: Any) -> None:
            self.saved = signal.getsignal(signal.SIGINT)
            control_c()

    callback = Interrupting()
    for _ in range(2):
        history = nn.fit(
            model,
            nn.batches(X, np.ones((2, 1), np.float32)),
            objective=lambda model, x, y: ((model(x) - y) ** 2).mean(),
            optimizer=nn.Optimizer(model, optax.sgd(0.1)),
            epochs=3,
            progress=False,
            callbacks=[callback],
        )
        assert history.stopped == "interrupted"
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(KeyboardInterrupt):
            callback.saved(signal.SIGINT, None)


def test_other_threads_hold_nothing_off() -> None:
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        inside.set()
        assert done.wait(60)

    thread = threading.Thread(target=held_off, args=(other,))
    thread.start()
    assert inside.wait(60)
    with pytest.raises(KeyboardInterrupt):
        control_c()
    done.set()
    thread.join(60)
