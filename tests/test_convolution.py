"""Convolutions of `ftrans.nn.functional`, against plain loops, SciPy, and their own transposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import signal

import ftrans as ft
import ftrans.nn.functional as F
from ftrans.ops.convolution import convolution
from ftrans.testing import check_grads

CONVOLUTIONS: tuple[Callable[..., Any], ...] = (F.conv1d, F.conv2d, F.conv3d)
TRANSPOSED: tuple[Callable[..., Any], ...] = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
# Axes of space, stride, padding, dilation, groups
CASES = [
    (1, 1, 0, 1, 1),
    (1, 2, 1, 2, 2),
    (2, 1, 1, 1, 1),
    (2, (2, 1), (1, 0), (1, 2), 2),
    (2, 1, 1, 1, 4),
    (3, 2, 1, 1, 1),
]


def operands(count: int, groups: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, 4, *(6, 5, 4)[:count]))
    return x, rng.standard_normal((8, 4 // groups, *(3, 2, 2)[:count])), rng.standard_normal(8)


def each_axis(value: Any, count: int) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,) * count


def by_loops(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    count = x.ndim - 2
    strides, around, rates = (each_axis(v, count) for v in (stride, padding, dilation))
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in around)])
    sizes = [
        (n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], weight.shape[2:], strides, rates, strict=True)
    ]
    out = np.zeros((x.shape[0], weight.shape[0], *sizes))
    per_group, out_per_group = weight.shape[1], weight.shape[0] // groups
    for o in range(weight.shape[0]):
        first = o // out_per_group * per_group
        for place in np.ndindex(*sizes):
            window = tuple(
                slice(i * s, i * s + (k - 1) * d + 1, d)
                for i, s, k, d in zip(place, strides, weight.shape[2:], rates, strict=True)
            )
            part = x[(slice(None), slice(first, first + per_group), *window)]
            out[(slice(None), o, *place)] = (part * weight[o]).reshape(x.shape[0], -1).sum(1) + bias[o]
    return out


@pytest.mark.parametrize(("count", "stride", "padding", "dilation", "groups"), CASES)
def test_convolution_is_a_loop(count: int, stride: Any, padding: Any, dilation: Any, groups: int) -> None:
    x, weight, bias = operands(count, groups)
    f = CONVOLUTIONS[count - 1]
    expected = by_loops(x, weight, bias, stride, padding, dilation, groups)
    np.testing.assert_allclose(f(x, weight, bias, stride, padding, dilation, groups), expected, atol=1e-12)
    np.testing.assert_allclose(f(x[0], weight, bias, stride, padding, dilation, groups), expected[0], atol=1e-12)
    narrow = f(*(v.astype(np.float32) for v in (x, weight, bias)), stride, padding, dilation, groups)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, expected, atol=1e-4)


@pytest.mark.parametrize(("count", "stride", "padding", "dilation", "groups"), CASES)
def test_derivatives(count: int, stride: Any, padding: Any, dilation: Any, groups: int) -> None:
    x, weight, bias = operands(count, groups)

    def f(x: Any, weight: Any, bias: Any) -> Any:
        return np.sum(np.sin(CONVOLUTIONS[count - 1](x, weight, bias, stride, padding, dilation, groups)))

    check_grads(f, x, weight, bias)


@pytest.mark.parametrize(("count", "stride", "padding", "dilation", "groups"), CASES)
def test_transposed_convolution_is_the_transpose(
    count: int, stride: Any, padding: Any, dilation: Any, groups: int
) -> None:
    x, weight, _ = operands(count, groups)
    y = CONVOLUTIONS[count - 1](x, weight, None, stride, padding, dilation, groups)
    ct = np.random.default_rng(1).standard_normal(y.shape)
    missing = [
        (n + 2 * p - d * (k - 1) - 1) % s
        for n, k, s, p, d in zip(
            x.shape[2:], weight.shape[2:], *(each_axis(v, count) for v in (stride, padding, dilation)), strict=True
        )
    ]
    back = TRANSPOSED[count - 1](ct, weight, None, stride, padding, tuple(missing), groups, dilation)
    assert back.shape == x.shape
    assert np.sum(back * x) == pytest.approx(np.sum(ct * y))


def test_same_padding_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    x, kernel = rng.standard_normal((7, 6)), rng.standard_normal((3, 5))
    expected = signal.correlate2d(x, kernel, "same")
    np.testing.assert_allclose(F.conv2d(x[None], kernel[None, None], padding="same")[0], expected, atol=1e-12)
    valid = signal.correlate2d(x, kernel, "valid")
    np.testing.assert_allclose(F.conv2d(x[None], kernel[None, None], padding="valid")[0], valid, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 4])
def test_compiled_gradients_for_each_sample(groups: int) -> None:
    x, weight, bias = operands(2, groups)

    def loss(weight: Any, x: Any) -> Any:
        return np.sum(F.conv2d(x, weight, bias, padding=1, groups=groups) ** 2)

    each = ft.vmap(ft.grad(loss), in_axes=(None, 0))
    expected = np.stack([ft.grad(loss)(weight, sample) for sample in x])
    np.testing.assert_allclose(each(weight, x), expected, atol=1e-10)
    np.testing.assert_allclose(ft.jit(each)(weight, x), expected, atol=1e-10)


def test_hessian_ways_agree() -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((1, 5)), rng.standard_normal((1, 1, 3))

    def f(weight: Any) -> Any:
        return np.sum(F.conv1d(F.conv1d(x, weight, padding=1) ** 2, weight) ** 2)

    forward_over_reverse = ft.jacfwd(ft.grad(f))(weight)
    np.testing.assert_allclose(ft.jacrev(ft.grad(f))(weight), forward_over_reverse, atol=1e-9)
    np.testing.assert_allclose(ft.jacrev(ft.jacfwd(f))(weight), forward_over_reverse, atol=1e-9)
    np.testing.assert_allclose(ft.jit(ft.hessian(f))(weight), forward_over_reverse, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, w: F.conv2d(x[0, 0], w), ["conv2d", "channel, height, width", "2 axes"]),
        (lambda x, w: F.conv2d(x, w[0]), ["weight", "out channel", "3 axes"]),
        (lambda x, w: F.conv2d(x[:, :3], w), ["must have 4 channels", "got 3"]),
        (lambda x, w: F.conv2d(x, w[:3, :2], groups=2), ["3 output channels", "2 groups"]),
        (lambda x, w: F.conv2d(x[:, :, :2], w), ["3 x 2", "2 x 5", "padded input"]),
        (lambda x, w: F.conv2d(x, w, np.ones(3)), ["bias", "(8,)"]),
        (lambda x, w: F.conv2d(x, w, stride=2, padding="same"), ["padding='same'", "stride=1"]),
        (lambda x, w: F.conv2d(x, w, padding="full"), ["'full'"]),
        (lambda x, w: F.conv2d(x, w, stride=(1, 1, 1)), ["stride", "2 axes"]),
        (lambda x, w: F.conv2d(x, w, padding=-1), ["padding", "at least 0"]),
        (lambda x, w: F.conv_transpose2d(x, w), ["takes 8 channels", "has 4"]),
        (lambda x, w: F.conv_transpose2d(x, w[:4], output_padding=1), ["output_padding", "smaller than stride"]),
        (lambda x, w: F.conv_transpose2d(x, w[:4], padding=9), ["padding", "removes all"]),
    ],
)
def test_errors_say_what_was_expected(call: Callable[..., Any], words: list[str]) -> None:
    x, weight, _ = operands(2, 1)
    with pytest.raises(ValueError, match="test_convolution") as caught:
        call(x, weight)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize(
    "options",
    [
        {"stride": 2},
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"stride": (3, 1), "padding": (2, 0), "dilation": (1, 2), "output_padding": (2, 1)},
        {"stride": 2, "groups": 2},
    ],
    ids=str,
)
def test_kernels_of_transposed_convolutions_have_the_derivative_of_a_linear_map(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    x, w, v = rng.normal(size=(3, 4, 5, 6)), rng.normal(size=(4, 3, 4, 3)), rng.normal(size=(4, 3, 4, 3))
    weights = rng.normal(size=F.conv_transpose2d(x, w, **options).shape)

    def f(w: Any) -> Any:
        return (weights * F.conv_transpose2d(x, w, **options)).sum()

    np.testing.assert_allclose((ft.grad(f)(w) * v).sum(), f(v), rtol=1e-12)
    np.testing.assert_allclose((ft.jit(ft.grad(f))(w) * v).sum(), f(v), rtol=1e-12)


@pytest.mark.parametrize(
    ("space", "kernel", "options"),
    [
        ((12,), (9,), {"strides": (1,)}),
        ((14,), (9,), {"strides": (2,)}),
        ((8, 9), (6, 7), {"strides": (1, 1)}),
        ((9, 9), (7, 7), {"strides": (1, 2), "padding": ((0, 1), (2, -1))}),
        ((14, 9), (6, 7), {"strides": (1, 1), "rhs_dilation": (2, 1)}),
        ((5, 5, 6), (4, 4, 5), {"strides": (1, 1, 1)}),
    ],
)
def test_kernels_larger_than_their_windows(space: Any, kernel: Any, options: dict[str, Any]) -> None:
    # As those of derivatives are: with few samples by windows, with many by shifted arrays, which copies less.
    params = {"padding": ((0, 0),) * len(space), **options}
    rng = np.random.default_rng(0)
    for samples in (1, 24):
        x, weights = rng.normal(size=(samples, 3, *space)), rng.normal(size=(4, 3, *kernel))
        compiled = ft.jit(lambda x, weights: convolution(x, weights, **params))(x, weights)
        np.testing.assert_allclose(compiled, convolution(x, weights, **params), rtol=1e-10, atol=1e-10)
