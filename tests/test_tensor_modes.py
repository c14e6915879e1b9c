"""Modes of recording: nested, after exceptions, in threads and tasks, in generators and coroutines."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from checks import assert_close
from tensors import a, leaf, value

X = np.array([1.5, -2.0, 0.7])
ONE = leaf(1.0)


def records() -> bool:
    """Whether an operation is recorded now, and whether the mode says so."""
    found = (ONE * 2).requires_grad
    assert found == a.is_grad_enabled()
    return found


def test_contexts_nest_and_come_back() -> None:
    assert records()
    with a.no_grad():
        assert not records()
        with a.enable_grad():
            assert records()
            with a.set_grad_enabled(False):
                assert not records()
                with a.inference_mode():
                    assert not records()
                    assert a.is_inference_mode_enabled()
                    with a.enable_grad():
                        assert records()
                    with a.inference_mode(False):
                        assert a.is_inference_mode_enabled()
                assert not records()
                assert not a.is_inference_mode_enabled()
            assert records()
        assert not records()
    assert records()


@pytest.mark.parametrize("mode", [a.no_grad, a.inference_mode, lambda: a.set_grad_enabled(False)])
def test_modes_end_with_an_exception(mode: Any) -> None:
    with pytest.raises(ZeroDivisionError), mode():
        raise ZeroDivisionError
    assert records()

    @mode()
    def fail() -> None:
        assert not records()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert records()


def test_one_context_can_be_entered_again_and_inside_itself() -> None:
    mode = a.no_grad()
    for _ in range(2):
        with mode:
            with mode:
                assert not records()
            assert not records()
        assert records()


def test_decorators_with_and_without_parentheses() -> None:
    @a.no_grad
    def first(x: Any, factor: float = 2.0) -> Any:
        """What it does."""
        return x * factor

    @a.no_grad()
    def second(x: Any) -> Any:
        return x * 2

    @a.inference_mode
    def third(x: Any) -> Any:
        return x * 2

    @a.set_grad_enabled(False)
    def fourth(x: Any) -> Any:
        return x * 2

    assert records()
    assert first.__name__ == "first"
    assert first.__doc__ == "What it does."
    for f in (first, second, third, fourth):
        y = f(leaf(X))
        assert not y.requires_grad
        assert records()
        assert_close(value(y), 2 * X)
        assert y.is_inference() == (f is third)
    assert_close(value(first(leaf(X), factor=3.0)), 3 * X)

    @a.no_grad()
    @a.enable_grad()
    def inner() -> bool:
        return records()

    assert inner()


def test_set_grad_enabled_as_a_call_holds_until_it_is_called_again() -> None:
    try:
        a.set_grad_enabled(False)
        assert not records()
        with a.enable_grad():
            assert records()
        assert not records()
    finally:
        a.set_grad_enabled(True)
    assert records()


def test_recursion() -> None:
    @a.no_grad()
    def f(n: int) -> int:
        assert not records()
        return 0 if n == 0 else 1 + f(n - 1)

    assert f(20) == 20
    assert records()


def test_nothing_is_recorded() -> None:
    x = leaf(X)
    with a.no_grad():
        y = np.sin(x) * x
        y += x
        z = y[1:]
        z *= 2
    assert y.node is None
    assert z.node is None
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="does not require"):
        y.sum().backward()
    assert (y * x).requires_grad


def test_no_memory_is_held_without_recording() -> None:
    x = leaf(np.ones(10_000))

    def grows() -> int:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        y = x
        for _ in range(20):
            y = np.sin(y) * y
        return (tracemalloc.get_traced_memory()[0] - before) // x.nbytes

    tracemalloc.start()
    try:
        recorded = grows()
        with a.no_grad():
            assert grows() <= 1
        with a.inference_mode():
            assert grows() <= 1
        assert recorded >= 20
    finally:
        tracemalloc.stop()


def test_leaves_can_be_made_without_recording() -> None:
    with a.no_grad():
        x = a.tensor(X, requires_grad=True)
    assert x.requires_grad
    (x * 2).sum().backward()
    assert_close(value(x.grad), np.full(3, 2.0))


def test_backward_records_nothing_unless_asked_whatever_the_mode() -> None:
    x = leaf(X)
    y = (x**3).sum()
    with a.no_grad():
        (first,) = a.grad(y, x, retain_graph=True)
        (second,) = a.grad(y, x, create_graph=True)
        assert not a.is_grad_enabled()
    assert not first.requires_grad
    assert second.requires_grad
    (again,) = a.grad(second.sum(), x)
    assert_close(value(again), 6 * X)
    assert a.is_grad_enabled()


# Inference


def test_inference_tensors_cannot_be_recorded() -> None:
    x = leaf(X)
    with a.inference_mode():
        y = x * 2
        made = a.ones(3)
        assert y.is_inference()
        assert made.is_inference()
        assert not x.is_inference()
        y += 1
        part = y[1:]
    assert part.is_inference()
    assert y[1:].is_inference()
    for use in (
        lambda: x * y, lambda: y.requires_grad_(), lambda: y.__iadd__(1), lambda: np.sin(x) * made,
        lambda: np.stack([x, y]), lambda: part.__imul__(2), lambda: y.detach().requires_grad_(),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"(?s)inference_mode.*clone\(\)"):
            use()
    assert_close(value(x * y.clone()), X * (2 * X + 1))
    assert not (y * 2).requires_grad
    assert y.clone().requires_grad_().requires_grad
    assert_close(value((y + y).sum()), np.sum(4 * X + 2))


def test_values_from_inference_can_be_read() -> None:
    with a.inference_mode():
        y = a.tensor(X) * 2
    assert_close(y.numpy(), 2 * X)
    assert float(y[0]) == 3.0
    assert (a.tensor(X) * y).tolist() == (X * 2 * X).tolist()


# Threads and tasks


def test_each_thread_has_its_own_mode() -> None:
    inside, go = threading.Event(), threading.Event()
    found: list[bool] = []

    def other() -> None:
        found.append(records())
        with a.no_grad():
            inside.set()
            go.wait(10)
            found.append(records())
        found.append(records())

    thread = threading.Thread(target=other)
    with a.inference_mode():
        thread.start()
        inside.wait(10)
    assert records()
    go.set()
    thread.join()
    assert found == [True, False, True]


def test_threads_record_graphs_side_by_side() -> None:
    def one(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        x0, w0 = rng.normal(size=5), rng.normal(size=(4, 5))
        x, w = leaf(x0), leaf(w0)
        for i in range(20):
            (np.tanh(w @ x * (1 + i / 10)) ** 2).sum().backward()
        h = [np.tanh(w0 @ x0 * (1 + i / 10)) for i in range(20)]
        expected = sum(w0.T @ (2 * t * (1 - t * t) * (1 + i / 10)) for i, t in enumerate(h))
        assert_close(value(x.grad), expected)
        return seed

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(24))) == list(range(24))


def test_each_task_has_its_own_mode() -> None:
    async def one(off: bool) -> list[bool]:
        found = []
        with a.set_grad_enabled(not off):
            for _ in range(4):
                found.append(records())
                await asyncio.sleep(0)
        found.append(records())
        return found

    async def both() -> Any:
        return await asyncio.gather(one(True), one(False), one(True))

    found = asyncio.run(both())
    assert found == [[False] * 4 + [True], [True] * 5, [False] * 4 + [True]]
    assert records()


def test_decorated_coroutines_and_asynchronous_generators() -> None:
    @a.no_grad()
    async def work() -> bool:
        await asyncio.sleep(0)
        return records()

    @a.no_grad()
    async def stream() -> AsyncIterator[bool]:
        try:
            for _ in range(3):
                got = yield records()
                log.append(got)
                await asyncio.sleep(0)
        finally:
            log.append(("end", records()))

    async def main() -> Any:
        items = []
        async for item in stream():
            items.append((item, records()))
        steps = stream()
        await steps.__anext__()
        await steps.asend("sent")  # type: ignore[attr-defined]
        await steps.aclose()  # type: ignore[attr-defined]
        return await work(), records(), items

    log: list[Any] = []
    assert asyncio.run(main()) == (False, True, [(False, True)] * 3)
    assert log == [None, None, None, ("end", False), "sent", ("end", False)]


def test_decorated_generators_leave_the_mode_of_the_caller_alone() -> None:
    log: list[Any] = []

    @a.no_grad
    def steps() -> Iterator[Any]:
        try:
            got = yield records()
            log.append(got)
            with a.enable_grad():
                yield records()
            try:
                yield records()
            except KeyError as error:
                log.append(error.args[0])
            yield records()
        finally:
            log.append(("end", records()))
        return "result"

    def outer() -> Any:
        result = yield from steps()
        log.append(result)

    generator = outer()
    assert next(generator) is False
    assert records()
    assert generator.send("sent") is True
    assert records()
    assert next(generator) is False
    assert records()
    assert generator.throw(KeyError("thrown")) is False
    assert records()
    with pytest.raises(StopIteration):
        next(generator)
    assert log == ["sent", "thrown", ("end", False), "result"]
    log.clear()
    generator = steps()
    next(generator)
    generator.close()
    assert log == [("end", False)]
    assert records()
