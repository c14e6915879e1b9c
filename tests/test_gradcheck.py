"""gradcheck and gradgradcheck of functions of tensors: right ones pass, wrong ones fail and are named."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import ftrans as ft
from ftrans.autograd import Function, Tensor, gradcheck, gradgradcheck, no_grad, tensor
from ftrans.testing import GradientError

bfloat16 = np.dtype(ml_dtypes.bfloat16)


def leaf(dtype: Any = np.float64) -> Tensor:
    return tensor(np.array([0.5, 1.25, -0.75], dtype), requires_grad=True)


class Cube(Function):
    """x**3."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x * x * 3


class WrongCube(Cube):
    """Its gradient is wrong by 0.2 %."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return (g * x * x * 3.006).astype(x.dtype)


class WrongSecond(Cube):
    """The gradient is right, the gradient of that is not."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x * ft.stop_gradient(x)


class Erf(Function):
    """By SciPy, which cannot be traced."""

    factor = 1.0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return tensor(scipy.special.erf(x.numpy()))

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * (2 * cls.factor / np.sqrt(np.pi)) * np.exp(-(x**2))


class WrongErf(Erf):
    factor = 1.002


def in_place(x: Any) -> Any:
    y = x * 1
    y[0] = y[1] * x[2]
    y *= 2
    return y


RIGHT: dict[str, tuple[Any, Any]] = {
    "operators": (lambda x: np.sin(x) * x, leaf()),
    "function": (Cube.apply, leaf()),
    "in place": (in_place, leaf()),
    "views": (lambda x: x[:2] * x[1:], leaf()),
    "several": (lambda x, y: (x * y, {"b": np.sin(x)}, 3), (leaf(), leaf())),
    "one of two": (lambda x, y: x * y, (leaf(), tensor([1.0, 2.0, 3.0]))),
    "an array": (lambda x, y: x * y, (leaf(), np.array([1.0, 2.0, 3.0]))),
    "linear": (lambda x: x.sum(), leaf()),
    "complex": (lambda x: x**2, tensor([1 + 1j], requires_grad=True)),
    "empty": (lambda x: x * 2, tensor(np.zeros(0), requires_grad=True)),
    "a matrix": (lambda a: np.linalg.inv(a), tensor([[2.0, 0.5], [0.0, 1.0]], requires_grad=True)),
    "grad inside": (ft.grad(lambda x: np.sum(np.sin(x) ** 2)), leaf()),
    "scan": (lambda x: ft.scan(lambda c, v: (c * np.sin(v), c), x[0], x), leaf()),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_pass(name: str) -> None:
    f, inputs = RIGHT[name]
    assert gradcheck(f, inputs)
    assert gradgradcheck(f, inputs)


def test_the_same_tensor_may_be_given_twice() -> None:
    x = leaf()
    assert gradcheck(lambda a, b: a * b, (x, x))


def test_what_cannot_be_traced_is_checked() -> None:
    assert gradcheck(Erf.apply, leaf())
    with pytest.raises(GradientError, match=r"WrongErf\.apply is wrong") as caught:
        gradcheck(WrongErf.apply, leaf())
    (culprit,) = caught.value.culprits
    assert culprit.operation == "the derivative rule of WrongErf"
    assert culprit.rule_line is not None
    assert "cls.factor" in culprit.rule_line.text


def test_a_gradient_that_is_wrong_by_a_little_is_named_with_its_line() -> None:
    with pytest.raises(GradientError) as caught:
        gradcheck(lambda x: np.sin(WrongCube.apply(x * 2)), leaf())
    (culprit,) = caught.value.culprits
    assert culprit.operation == "the derivative rule of WrongCube"
    assert culprit.line is not None
    assert "WrongCube.apply(x * 2)" in culprit.line.text
    assert culprit.rule_line is not None
    assert "3.006" in culprit.rule_line.text
    assert abs(culprit.failure.relative_error - 0.002) < 1e-6
    assert "shrinks like h^1.0" in str(caught.value)


def test_a_failure_can_be_a_result() -> None:
    assert gradcheck(WrongCube.apply, leaf(), raise_exception=False) is False
    assert gradcheck(WrongCube.apply, leaf(), raise_exception=False, check_forward_ad=False) is False
    assert gradcheck(WrongCube.apply, leaf(), raise_exception=False, check_backward_ad=False) is False


def test_tolerances_count() -> None:
    assert gradcheck(WrongCube.apply, leaf(), rtol=0.01)


@pytest.mark.filterwarnings("ignore:argument 0 .* is a small step")
@pytest.mark.parametrize("dtype", [np.float32, bfloat16])
def test_low_precision(dtype: Any) -> None:
    assert gradcheck(Cube.apply, leaf(dtype))
    assert gradcheck(lambda x: np.sin(x) * x, leaf(dtype))
    with pytest.raises(GradientError, match="the derivative rule of WrongCube"):
        gradcheck(WrongCube.apply, leaf(dtype))


def test_a_step_too_small_for_the_precision_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"f32\[3\], for which eps=1e-06 is a small step.*float64") as caught:
        assert gradcheck(Cube.apply, leaf(np.float32))
    assert caught[0].filename == __file__


def test_a_wrong_second_derivative_is_found() -> None:
    assert gradcheck(WrongSecond.apply, leaf())
    with pytest.raises(GradientError, match="derivative of gradient of WrongSecond"):
        gradgradcheck(WrongSecond.apply, leaf())
    assert not gradgradcheck(WrongSecond.apply, leaf(), raise_exception=False)
    assert not gradgradcheck(WrongSecond.apply, leaf(), check_forward_ad=False, raise_exception=False)


@pytest.mark.parametrize("given", [np.ones(3), tensor([1.0, 2.0, 3.0]), [np.ones(3)]])
def test_grad_outputs_of_gradgradcheck(given: Any) -> None:
    assert gradgradcheck(lambda x: np.sin(x) * x, leaf(), given)


def test_results_that_change_from_call_to_call() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(GradientError, match=r"gives different results each time(.|\n)*random numbers"):
        gradcheck(lambda x: x * rng.normal(), leaf())
    sizes = iter([1, 2, 3])
    assert not gradcheck(lambda x: x[: next(sizes)], leaf(), raise_exception=False)


def test_small_changes_are_accepted_by_nondet_tol() -> None:
    counter = iter(range(100))
    with pytest.raises(GradientError, match="differ by"):
        gradcheck(lambda x: x * 2 + 1e-12 * next(counter), leaf())
    assert gradcheck(lambda x: x * 2 + 1e-12 * next(counter), leaf(), nondet_tol=1e-9)


def test_kinks_and_nan() -> None:
    with pytest.raises(GradientError, match=r"has no derivative here(.|\n)*kink"):
        gradcheck(lambda x: np.abs(x), tensor([0.0], requires_grad=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(GradientError, match=r"is nan at the point"):
            gradcheck(lambda x: np.log(x), tensor([-1.0], requires_grad=True))


def test_hooks_are_refused() -> None:
    def hooked(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: g * 2)
        return y

    with pytest.raises(ValueError, match=r"operations of hooked once more.*has hooks(.|\n)*hooked, "):
        gradcheck(hooked, leaf())


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"at least one input that requires a gradient(.|\n)*test_gradcheck"):
        gradcheck(lambda x: x, tensor([0.0]))
    with pytest.raises(ValueError, match="at least one input"):
        gradcheck(lambda x: x, np.ones(3))
    with pytest.raises(ValueError, match=r"found no tensor that requires a gradient(.|\n)*no_grad"):
        gradcheck(lambda x: np.ones(3), leaf())
    with pytest.raises(ValueError, match="nothing to check"):
        gradcheck(lambda x: x, leaf(), check_forward_ad=False, check_backward_ad=False)

    @no_grad()
    def unrecorded(x: Any) -> Any:
        return x * 2

    with pytest.raises(ValueError, match="found no tensor that requires a gradient"):
        gradcheck(unrecorded, leaf())


def test_inputs_stay_as_they_are() -> None:
    x = leaf()
    with no_grad():
        assert gradcheck(lambda x: x * x, x)
        assert gradgradcheck(lambda x: x * x, x)
    assert x.grad is None
    np.testing.assert_array_equal(x.numpy() if not x.requires_grad else x.detach().numpy(), [0.5, 1.25, -0.75])
