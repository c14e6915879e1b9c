"""Anomaly detection on graphs of tensors: which operation is blamed for a gradient that is not finite."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.autograd import Function, Tensor, grad, tensor
from ftrans.autograd.tracing import noted_in_mode
from ftrans.debug import AnomalyError, detect_anomaly, set_detect_anomaly

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")


def leaf(*values: float) -> Tensor:
    return tensor(np.array(values, float), requires_grad=True)


def error_of(f: Callable[[], Any]) -> AnomalyError:
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        f()
    return caught.value


# A function of a tensor, where it is taken; what is blamed, and whether that is in the derivative.
KINDS: dict[str, tuple[Callable[[Any], Any], list[float], str, str, bool]] = {
    "sqrt'": (lambda x: np.sum(np.sqrt(x)), [1, 0], "np.sqrt(x)", "sqrt'(0)", True),
    "log": (lambda x: np.sum(np.log(x - 3)), [4, 2], "np.log(x - 3)", "logarithm of a negative number", False),
    "0 / 0": (lambda x: np.sum(x / np.abs(x)), [1, 0], "x / np.abs(x)", "0 / 0", False),
    "exp": (lambda x: np.sum(np.exp(x) ** 2), [1, 800], "np.exp(x)", "overflow", False),
    "power": (lambda x: np.sum(x**-1.5), [1, 0], "x**-1.5", "zero to a negative power", False),
    "arccos'": (lambda x: np.sum(np.arccos(x)), [0.5, 1], "np.arccos(x)", "arccos'(±1)", True),
    "method": (lambda x: (x * 2).sqrt().sum(), [1, 0], "(x * 2).sqrt()", "sqrt'(0)", True),
    "compiled": (ft.jit(lambda x: np.sum(np.sqrt(x))), [1, 0], "np.sqrt(x)", "sqrt'(0)", True),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_operation_is_named(name: str) -> None:
    f, at, expression, kind, in_derivative = KINDS[name]
    x = leaf(*at)
    error = error_of(lambda: f(x).backward())
    assert error.kind == kind
    assert error.line is not None
    assert (error.line.expression, error.line.filename) == (expression, __file__)
    assert error.in_derivative is in_derivative
    where = "the gradient of the leaf of test_" if in_derivative else "the tensor that backward starts"
    assert str(error).partition("\n")[0].partition(" in ")[2].startswith(where)
    assert x.grad is None


def test_a_nan_that_is_masked_away_is_no_anomaly() -> None:
    x = leaf(4.0, 0.0, -1.0)
    with detect_anomaly():
        safe = np.where(x > 0, x, 1.0)
        np.where(x > 0, np.sqrt(safe), 0.0).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.25, 0, 0])
    y = leaf(1.0, -1.0)
    with detect_anomaly():
        np.where(y > 0, np.log(y), 0.0).sum().backward()
    np.testing.assert_array_equal(y.grad.numpy(), [1, 0])


def test_a_choice_is_not_put_off_from_operation_to_operation() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(x), 0.0))

    error = error_of(lambda: f(leaf(1, 0)).backward())
    assert "safe = np.where(ok, x, 1.0)" in str(error)
    assert __file__ in str(error)
    np.testing.assert_array_equal(ft.grad(f)(np.array([1.0, 0.0])), [0.5, 0.0])


def test_finite_gradients_are_those_without_the_mode() -> None:
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    np.sin(x).sum().backward()
    with detect_anomaly():
        np.sin(y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.grad.numpy())


def test_the_step_of_a_python_loop() -> None:
    x = leaf(2.0)

    def run() -> None:
        y: Any = x
        for _ in range(5):
            y = np.sqrt(y - 1.0)
        y.sum().backward()

    error = error_of(run)
    assert error.kind == "square root of a negative number"
    assert error.operands == (-1.0,)


def test_gradients_of_tensors_on_the_way() -> None:
    def with_grad() -> None:
        y = leaf(1.0, 0.0) * 2
        grad(np.sqrt(y).sum(), y)

    def with_backward() -> None:
        y = leaf(1.0, 0.0) * 2
        np.sqrt(y).sum().backward(inputs=[y])

    assert error_of(with_grad).kind == error_of(with_backward).kind == "sqrt'(0)"


def test_a_recorded_way_back() -> None:
    with detect_anomaly():
        x = leaf(1.0, 2.0)
        (slope,) = grad((x**3).sum(), x, create_graph=True)
        slope.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [6, 12])

    def second() -> None:
        x = leaf(1.0, 0.0)
        (slope,) = grad((x**1.5).sum(), x, create_graph=True)
        slope.sum().backward()

    error = error_of(second)
    assert error.line is not None
    assert error.line.expression == "x**1.5"
    assert error.in_derivative


def test_changes_in_place() -> None:
    def run() -> None:
        y = leaf(1.0, 0.0) * 1
        z = np.sqrt(y).sum()
        y[0] = 7.0
        z.backward()

    assert error_of(run).kind == "sqrt'(0)"


@pytest.mark.parametrize("call", [ft.grad, ft.value_and_grad, ft.jacobian, ft.jacfwd])
def test_transformations_of_tensors(call: Any) -> None:
    error = error_of(lambda: call(lambda v: np.sum(np.sqrt(v)))(leaf(1.0, 0.0)))
    assert error.kind == "sqrt'(0)"


def test_what_was_bad_from_the_beginning() -> None:
    error = error_of(lambda: (leaf(1.0, np.nan) * 2).sum().backward())
    assert error.kind == "NaN in an argument"
    assert "the leaf of test_tensor_anomalies.py" in str(error)
    error = error_of(lambda: (leaf(1.0, 2.0) * 2).backward(np.array([1.0, np.inf])))
    assert "a gradient given to backward" in str(error)
    error = error_of(lambda: (leaf(1.0, 2.0) * np.array([1.0, np.nan])).sum().backward())
    assert "an array, f64[2], is nan" in str(error)


class Bad(Function):
    """Its gradient is NaN."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * np.nan


def test_a_rule_in_python_is_named_with_the_line_of_its_call() -> None:
    error = error_of(lambda: Bad.apply(leaf(1.0, 2.0)).sum().backward())
    assert "gradient 0 that the backward of <BadBackward> returned is not finite" in str(error)
    assert "Bad.apply" in str(error)


def test_hooks_keep_the_operation_from_being_found() -> None:
    def run() -> None:
        y = np.sqrt(leaf(1.0, 0.0))
        y.register_hook(lambda g: g * 2)
        y.sum().backward()

    assert "cannot be found by running the graph again, because <SqrtBackward> has hooks" in str(error_of(run))


def test_what_was_recorded_outside_of_the_mode_is_an_error_all_the_same() -> None:
    y = np.sqrt(leaf(1.0, 0.0)).sum()
    assert "recorded before anomaly detection was enabled" in str(error_of(y.backward))


def test_infinities_pass_where_only_nan_counts() -> None:
    x = leaf(1.0, 0.0)
    with detect_anomaly(check_inf=False):
        np.sqrt(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.5, np.inf])


def test_the_mode_can_be_off_inside() -> None:
    x = leaf(1.0, 0.0)
    with detect_anomaly(), set_detect_anomaly(False):
        np.sqrt(x).sum().backward()
    assert np.isinf(x.grad.numpy()).any()


def test_notes_go_with_the_graph() -> None:
    gc.collect()
    before = len(noted_in_mode)
    with detect_anomaly():
        x = leaf(1.0, 2.0)
        for _ in range(50):
            (x * 2).sum().backward()
    assert len(noted_in_mode) <= before + 4


def test_a_warning_in_backward_names_the_line_of_its_own_operation() -> None:
    fine, infinite = (tensor([x, 1.0], requires_grad=True) for x in (4.0, 0.0))
    np.sqrt(fine).sum().backward()
    root = np.sqrt(infinite)  # this line
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in `root = .*# this line`"):
        root.sum().backward()
