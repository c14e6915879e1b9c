"""A script of a user: tensors that remember how they were computed, with types."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import ftrans as ft
from ftrans import autograd as torch
from ftrans.autograd import Context, Function, Tensor, no_grad, tensor


class Cube(Function):
    """A function with a rule for its derivative."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.power = 3
        return x**3

    @staticmethod
    def backward(ctx: Context, grad_output: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return ctx.power * x**2 * grad_output


def energy(x: Tensor, y: Tensor) -> Tensor:
    return ((x @ y - 1.0) ** 2).sum() + 0.5 * (x * x).mean() - abs(-y).sum()


def check_operators(x: Tensor, y: Tensor) -> None:
    """Operators and methods of tensors give tensors."""
    assert_type(x + y, Tensor)
    assert_type(2.0 * x - 1, Tensor)
    assert_type(1.0 / x, Tensor)
    assert_type(-(x**2), Tensor)
    assert_type(x @ y, Tensor)
    assert_type(x[0], Tensor)
    assert_type(x > y, Tensor)
    assert_type(x == y, Tensor)
    assert_type(x.exp().sum(dim=0), Tensor)
    assert_type(x.reshape(3, 1).T, Tensor)
    assert_type(x.relu().clamp(min=0.5), Tensor)
    assert_type(list(x), list[Tensor])
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.numpy(force=True), np.ndarray[Any, Any])
    assert_type(x.grad, Tensor | None)
    assert_type(float(x.sum()), float)
    assert_type(len(x), int)


def check_functions(x: Tensor) -> None:
    """Functions of tensors give tensors, those of arrays what NumPy gives."""
    assert_type(torch.zeros(3), Tensor)
    assert_type(torch.randn(3, 2), Tensor)
    assert_type(torch.ones_like(x), Tensor)
    assert_type(torch.exp(x), Tensor)
    assert_type(torch.where(x > 0, x, -x), Tensor)
    assert_type(torch.stack([x, x], dim=1), Tensor)
    assert_type(torch.einsum("i,i->", x, x), Tensor)
    assert_type(torch.max(x), Tensor)
    assert_type(torch.max(x, dim=0).indices, Tensor)
    assert_type(torch.unbind(x), tuple[Tensor, ...])
    assert_type(torch.numel(x), int)
    assert_type(torch.exp(np.ones(3)), Any)
    assert_type(torch.float32, np.dtype[Any])
    assert_type(x.max(dim=0).values, Tensor)
    assert_type(x.topk(2)[0], Tensor)
    assert_type(x.max(), Tensor)
    assert_type(x.size(), tuple[int, ...])
    assert_type(x.size(0), int)
    assert x.size == 3
    assert x.device.type == "cpu"


@no_grad()
def evaluated(x: Tensor, power: int) -> Tensor:
    return x**power


@torch.inference_mode
def inferred(x: Tensor) -> Tensor:
    return x + 1


def descend(x: Tensor, y: Tensor, steps: int) -> NDArray[Any]:
    for _ in range(steps):
        energy(x, y).backward()
        gradient = x.grad
        assert gradient is not None
        with no_grad():
            x -= 0.1 * gradient
        x.grad = None
    return x.numpy(force=True)


def check_mistakes(x: Tensor) -> None:
    """Wrong uses are errors for the type checker: none of these runs."""
    x.summ()  # type: ignore[attr-defined]
    x.requires_grad_("yes")  # type: ignore[arg-type]
    tensor()  # type: ignore[call-arg]
    torch.tensr([1.0])  # type: ignore[attr-defined]
    evaluated(x, power="two")  # type: ignore[arg-type]
    inferred(x, x)  # type: ignore[call-arg]


def main() -> None:
    x = tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = tensor([0.5, 0.5, 0.1])
    check_operators(x, y)
    check_functions(x)
    assert_type(evaluated(x, power=2), Tensor)
    assert_type(inferred(x), Tensor)
    descend(x, y, 3)
    (gradient,) = ft.autograd.grad(Cube.apply(x).sum(), x)
    assert gradient is not None
    assert np.allclose(gradient, 3 * x.numpy(force=True) ** 2)


if __name__ == "__main__":
    main()
