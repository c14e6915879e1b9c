"""Programs with convolutions, which XLA on a CPU computes with channels last: results are those of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import ftrans as ft
from ftrans.base.channels import axis_with_channels_last, channels_last, channels_second
from ftrans.nn import functional as F
from ftrans.ops import broadcast as broadcasts
from ftrans.ops import elementwise, parts, shapes, windows
from ftrans.ops.convolution import convolution

IMAGE = (2, 3, 4, 5)
SPACES = {1: (9,), 2: (8, 7), 3: (5, 6, 4)}


def assert_close(found: Any, expected: Any, rtol: float) -> None:
    np.testing.assert_allclose(found, expected, rtol, rtol * np.max(np.abs(expected)))


def network(count: int) -> tuple[Callable[..., Any], list[Any]]:
    """Convolutions of `count` axes, and between them all that goes on with channels last, and some that does not."""
    rng = np.random.default_rng(count)
    conv, transposed, pool, mean_pool = (
        getattr(F, f"{name}{count}d") for name in ("conv", "conv_transpose", "max_pool", "avg_pool")
    )
    space = tuple(range(2, 2 + count))
    extra = [(0, 0), (1, 0), (1, 2), *[(0, 0)] * (count - 1)]

    def f(x: Any, kernel: Any, second: Any, bias: Any) -> Any:
        y = conv(x, kernel, bias, padding=1)
        y = np.tanh(y) + np.reshape(bias, (6, *[1] * count)) * y.mean(axis=(0, *space), keepdims=True)
        y = y + 0.1 * y * np.sum(y, axis=1, keepdims=True) + np.sum(y, axis=0) + np.sum(y, axis=space, keepdims=True)
        y = np.concatenate([y[:, ::2], np.flip(y, 1)[:, :3], np.flip(y, 2)[:, 1:2]], 1)
        y = np.where(y > 0, y, np.expm1(np.minimum(y, 0)))[:, :6]
        z = np.pad(transposed(pool(y, 2) + mean_pool(y, 2), second, stride=2), extra)
        return (z**2).mean() + 0.1 * np.max(y, axis=1).sum() + 0.1 * (y.reshape(2, -1) @ np.ones(y[0].size))[0]

    shapes_of = [(2, 4, *SPACES[count]), (6, 4, *[3] * count), (6, 2, *[2] * count), (6,)]
    return f, [rng.normal(size=shape) for shape in shapes_of]


@pytest.mark.parametrize("count", SPACES)
def test_networks_and_their_gradients(count: int) -> None:
    f, arguments = network(count)
    derived = ft.value_and_grad(f, argnums=(0, 1, 2, 3))
    (value, slopes), (expected, expected_slopes) = ft.jit(derived)(*arguments), derived(*arguments)
    for a, b in zip([value, *slopes], [expected, *expected_slopes], strict=True):
        assert_close(a, b, rtol=1e-9)


def test_maps_over_kernels_and_second_derivatives() -> None:
    f, (x, kernel, second, bias) = network(1)
    mapped = ft.vmap(f, in_axes=(None, 0, None, None))
    kernels = np.stack([kernel, 2 * kernel])
    assert_close(ft.jit(mapped)(x, kernels, second, bias), mapped(x, kernels, second, bias), rtol=1e-9)
    twice = ft.grad(lambda x, kernel: (ft.grad(f, 1)(x, kernel, second, bias) ** 2).sum())
    assert_close(ft.jit(twice)(x, kernel), twice(x, kernel), rtol=1e-8)


def test_barriers_and_half_precision() -> None:
    f, arguments = network(1)
    assert_close(ft.jit(ft.grad(f), tune=True)(*arguments), ft.grad(f)(*arguments), rtol=1e-9)
    small = [x.astype(np.float16) for x in arguments]
    assert_close(ft.jit(f)(*small), f(*arguments), rtol=0.02)


DENSE = {"dilation": (1, 1)}
FORMS = [
    (convolution, [IMAGE, (4, 3, 2, 2)], {"strides": (1, 2), "padding": ((1, 0), (0, 1)), "rhs_dilation": (2, 1)}),
    (convolution, [(2, 4, 4, 5), (2, 2, 13, 13)], {"strides": (1, 1), "padding": ((9, 13), (12, 8)), "groups": 2}),
    (windows.window_max, [IMAGE], {"window": (2, 3), "strides": (1, 2), "padding": ((1, 0), (0, 0)), **DENSE}),
    (windows.window_sum, [IMAGE], {"window": (2, 2), "strides": (2, 1), **DENSE}),
    (broadcasts.broadcast, [(3,)], {"shape": IMAGE, "dims": (1,)}),
    (broadcasts.broadcast, [(2, 3)], {"shape": IMAGE, "dims": (0, 1)}),
    (broadcasts.broadcast, [(3, 5)], {"shape": IMAGE, "dims": (1, 3)}),
    (broadcasts.reduce_sum, [IMAGE], {"axes": (0, 2, 3)}),
    (broadcasts.reduce_sum, [IMAGE], {"axes": (2,)}),
    (broadcasts.reduce_sum, [IMAGE], {"axes": (1,)}),
    (parts.slice_, [IMAGE], {"start": (0, 1, 2, 0), "limit": (2, 3, 4, 5), "strides": (1, 1, 1, 3)}),
    (parts.pad, [IMAGE, ()], {"before": (0, 1, 2, 0), "after": (1, 0, 0, 3), "interior": (0, 2, 0, 1)}),
    (parts.concatenate, [IMAGE, (2, 1, 4, 5)], {"axis": 1}),
    (parts.concatenate, [IMAGE, (2, 3, 2, 5)], {"axis": 2}),
    (shapes.reverse, [IMAGE], {"axes": (1, 3)}),
    (elementwise.mul, [IMAGE, IMAGE], {}),
]  # fmt: skip


@pytest.mark.parametrize(("primitive", "given", "params"), FORMS, ids=lambda p: getattr(p, "name", ""))
def test_the_form_with_channels_last_is_the_other_one(primitive: Any, given: Any, params: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    operands = [rng.normal(size=shape).astype(np.float32) for shape in given]
    params = (
        {"lhs_dilation": (1, 1), "rhs_dilation": (1, 1), "groups": 1, **params} if primitive is convolution else params
    )
    expected = primitive.numpy(*operands, **params)
    most = max(expected.ndim, *(x.ndim for x in operands))

    def moved(x: Any) -> Any:
        return np.ascontiguousarray(x.transpose(channels_last(range(x.ndim)))) if x.ndim == most else x

    found = primitive.xla_channels_last(*[jax.numpy.asarray(moved(x)) for x in operands], **params)
    assert_close(np.asarray(found), moved(expected), rtol=1e-5)


def test_orders_of_axes() -> None:
    assert channels_last("ncdhw") == tuple("ndhwc")
    assert channels_second("ndhwc") == tuple("ncdhw")
    assert [axis_with_channels_last(i, 4) for i in range(4)] == [0, 3, 1, 2]


def test_nothing_is_moved_between_layers() -> None:
    def f(x: Any, kernel: Any, second: Any, bias: Any) -> Any:
        y = F.max_pool2d(F.relu(F.conv2d(x, kernel, bias)), 2)
        y = F.batch_norm(y, bias, bias, training=True)
        return F.conv2d(np.concatenate([y, y], 1), second)

    arguments = [np.ones(shape, np.float32) for shape in ((2, 3, 12, 12), (8, 3, 3, 3), (4, 16, 3, 3), (8,))]
    text = ft.jit(f).lower(*arguments).as_text()
    # The images, and the result; kernels are small.
    moved = [line for line in text.splitlines() if "stablehlo.transpose" in line and "tensor<2x" in line]
    assert len(moved) == 2, moved
