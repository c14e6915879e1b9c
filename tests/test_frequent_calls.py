"""Calls on tensors that have been recorded before: the same results and gradients as the first time, in every mode."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.autograd import Tensor, enable_grad, grad, inference_mode, no_grad, tensor
from ftrans.base.observe import Observer, observing

VALUES = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]])

# Calls of one tensor and a number that changes from step to step.
CALLS: dict[str, Callable[[Any, int], Any]] = {
    "a factor that changes": lambda x, n: x * (0.5 + n),
    "a factor that stays": lambda x, n: 2.0 * x * 2,
    "a zero of either sign": lambda x, n: np.copysign(x, 0.0 if n % 2 else -0.0),
    "an index": lambda x, n: x[n % 2],
    "an index from the end": lambda x, n: x[-1 - n % 2],
    "an element": lambda x, n: x[n % 2, n % 3] * 1.5,
    "a slice": lambda x, n: x[:, n % 2 : 3],
    "a step": lambda x, n: x[:: 1 + n % 2, ::-1],
    "a new axis": lambda x, n: x[None, ..., n % 3],
    "an axis": lambda x, n: x.sum(n % 2),
    "axes kept": lambda x, n: np.sum(x, axis=n % 2, keepdims=bool(n % 3)),
    "a power": lambda x, n: x ** (n % 3 + 1),
    "a shape": lambda x, n: x.reshape((3, 2) if n % 2 else (6,)) * 3.0,
    "a transpose": lambda x, n: x.T.reshape(6),
    "a view of a view": lambda x, n: x[n % 2][1:],
    "twice the same": lambda x, n: x * x[n % 2] - x @ x.T @ x,
    "masks": lambda x, n: np.maximum(x, 0.1 * n),
    "another dtype": lambda x, n: x.astype(np.float32 if n % 2 else np.float64),
    "no gradient": lambda x, n: x * np.sign(x) + (x > 0.1 * n) * x,
    "several results": lambda x, n: np.concatenate(np.split(x, 3, axis=1)[: 1 + n % 3], axis=1),
    "a result that is kept": lambda x, n: np.tanh(x) * np.exp(x),
    "a plain array": lambda x, n: x * np.full(3, n + 1.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_give_the_same_again(name: str) -> None:
    call = CALLS[name]
    for n in 2 * list(range(7)):
        x = tensor(VALUES.copy(), requires_grad=True)
        y = call(x, n)
        y.sum().backward()

        def plain(x: Any, n: int = n) -> Any:
            return call(x, n).sum()

        assert np.array_equal(y.detach().numpy(), call(VALUES, n)), n
        np.testing.assert_allclose(x.grad.numpy(), ft.grad(plain)(VALUES), rtol=1e-6)


def test_changes_of_views_are_seen_again() -> None:
    for n in range(8):
        x = tensor(VALUES.copy(), requires_grad=True)
        y = x * 1.0
        row = y[n % 2]
        row *= 3.0
        y[n % 2] += 1.0
        part = row[1:]
        part += y[1 - n % 2][:2]
        y.sum().backward()
        expected = np.ones((2, 3))
        expected[n % 2] = 3.0
        expected[1 - n % 2, :2] += 1.0
        np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_changes_in_place_are_noticed_again() -> None:
    for _ in range(3):
        x = tensor(VALUES.copy(), requires_grad=True)
        y = x * 2.0
        z = y * y
        y += 1.0
        with pytest.raises(RuntimeError, match="changed in place"):
            z.sum().backward()
        y = x * 2.0
        z, whole = np.exp(y), y.detach()
        whole += 1.0
        z.sum().backward()
        kept = np.exp(x * 2.0)
        kept.detach().numpy()[0, 0] = 7.0
        with pytest.raises(RuntimeError, match="changed in place"):
            kept.sum().backward()


def test_modes_decide_again() -> None:
    x = tensor(VALUES, requires_grad=True)
    for _ in range(3):
        assert (x * 2.0).requires_grad
        with no_grad():
            y = x * 2.0
            assert not y.requires_grad
            with enable_grad():
                assert (x * 2.0).requires_grad
        with inference_mode():
            z = x * 2.0
        assert z.is_inference()
        assert not (y * 2.0).requires_grad
        with pytest.raises(RuntimeError, match="inference_mode"):
            x * z
        assert not (x.detach() * 2.0).requires_grad


def test_warnings_are_given_at_the_line_again() -> None:
    x = tensor([0.0, 1.0], requires_grad=True)
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match=r"divide by zero encountered in `y = np.log\(x\)`") as found:
            y = np.log(x)
        assert found[0].filename == __file__
        with pytest.warns(RuntimeWarning, match=r"divide by zero encountered in `y = np.log\(x\)`"):
            y.sum().backward()
        with np.errstate(divide="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            np.log(x)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            np.log(x)
        assert np.geterr()["divide"] == "warn"


def test_lines_are_those_of_each_call() -> None:
    x = tensor(VALUES, requires_grad=True)
    first = x * 2.0
    second = x * 2.0
    assert "first = " in first.grad_fn.metadata["line"]
    assert "second = " in second.grad_fn.metadata["line"]


def test_hooks_between_calls() -> None:
    x = tensor(VALUES, requires_grad=True)
    for factor in (1.0, 10.0, 100.0):
        y = x * 2.0
        y.register_hook(lambda ct, factor=factor: factor * ct)
        (slope,) = grad((y * 3.0).sum(), x, retain_graph=True)
        assert (slope.numpy() == 6.0 * factor).all()


def test_second_derivatives_of_calls_met_before() -> None:
    for _ in range(3):
        x = tensor(VALUES, requires_grad=True)
        (first,) = grad((np.tanh(x) * x[0]).sum(), x, create_graph=True)
        (second,) = grad(first.sum(), x)

        def f(x: Any) -> Any:
            return (np.tanh(x) * x[0]).sum()

        np.testing.assert_allclose(second.numpy(), ft.grad(lambda x: ft.grad(f)(x).sum())(VALUES), rtol=1e-12)


def test_only_the_gradients_that_are_asked_for_are_computed() -> None:
    class Seen(Observer):
        def __init__(self) -> None:
            self.programs: list[str] = []

        def operation(self, name: str, program: Any, operands: Any, run: Any, line: Any = None) -> Any:
            self.programs += [f"{name}: {eqn.primitive.name}" for eqn in program.eqns if name.endswith("Backward")]
            return run()

    x, w = tensor(VALUES, requires_grad=True), tensor(VALUES.T.copy(), requires_grad=True)
    both = grad((x @ w).sum(), (x, w))
    for inputs, expected in ((x, both[0]), (w, both[1])):
        y, seen = (x @ w).sum(), Seen()
        with observing(seen):
            (found,) = grad(y, inputs, retain_graph=True)
        (recorded,) = grad(y, inputs, create_graph=True)
        assert seen.programs.count("MatmulBackward: dot_general") == 1
        assert np.array_equal(found.numpy(), expected.numpy())
        assert np.array_equal(recorded.detach().numpy(), expected.numpy())


def test_recorded_gradients_are_tensors_of_their_own() -> None:
    x, y = tensor(VALUES, requires_grad=True), tensor(VALUES, requires_grad=True)
    given = tensor(np.ones_like(VALUES), requires_grad=True)
    found = grad(x + y, (x, y), given, create_graph=True)
    assert len({id(given), *map(id, found)}) == 3
    (first,) = grad((found[0] * 2.0 + found[1]).sum(), given)
    assert (first.numpy() == 3.0).all()


def test_errors_of_calls_met_before() -> None:
    x = tensor(VALUES, requires_grad=True)
    for n in range(6):
        assert x[n % 2].shape == (3,)
        with pytest.raises(IndexError):
            x[n + 2]
    assert x[0].shape == (3,)


def test_threads_record_the_same_calls() -> None:
    found: list[Any] = []

    def work() -> None:
        x = tensor(VALUES, requires_grad=True)
        for n in range(50):
            x.grad = None
            (x[n % 2] * (n + 0.5)).sum().backward()
            found.append((x.grad.numpy()[n % 2] == n + 0.5).all())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200
    assert all(found)


def test_kinds_hold_no_arrays() -> None:
    for _ in range(2):
        x = tensor(np.ones((17, 5)), requires_grad=True)
        base = x * 2.0
        y: Tensor = base[3:, 1]
        held = weakref.ref(base)
        del x, base, y
        gc.collect()
        assert held() is None
