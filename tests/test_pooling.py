"""Pooling and resizing of `ftrans.nn.functional`, against plain loops and written-out values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
import ftrans.nn.functional as F
from ftrans.testing import check_grads

X = np.random.default_rng(0).permutation(70).reshape(2, 1, 7, 5) / 10.0
NAN, INF = np.nan, np.inf
CUBIC = [0.9039999999999995, 1.2439999999999976, 2.0, 3.295999999999998, 4.192000000000001]


def windows_of(n: int, size: int, stride: int, padding: int, ceil_mode: bool) -> list[slice]:
    """The windows along an axis, without padding: those that fit, and perhaps one that begins inside."""
    found, end = [], 0
    for start in range(-padding, n, stride):
        if end < n + padding and (start + size <= n + padding or ceil_mode):
            end = start + size
            found.append(slice(max(start, 0), min(end, n)))
    return found


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(("size", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (2, 3, 1), (3, 1, 0), (3, 3, 1)])
def test_pooling_is_a_loop(size: int, stride: int, padding: int, ceil_mode: bool) -> None:
    axes = [windows_of(n, size, stride, padding, ceil_mode) for n in (7, 5)]
    parts = [[X[..., rows, columns] for columns in axes[1]] for rows in axes[0]]
    largest = np.array([[p.max((2, 3)) for p in row] for row in parts]).transpose(2, 3, 0, 1)
    means = np.array([[p.mean((2, 3)) for p in row] for row in parts]).transpose(2, 3, 0, 1)
    np.testing.assert_array_equal(F.max_pool2d(X, size, stride, padding, 1, ceil_mode), largest)
    found, index = F.max_pool2d(X, size, stride, padding, 1, ceil_mode, return_indices=True)
    np.testing.assert_array_equal(np.take_along_axis(X.reshape(2, 35), index.reshape(2, -1), 1), found.reshape(2, -1))
    np.testing.assert_allclose(F.avg_pool2d(X, size, stride, padding, ceil_mode, False), means)
    check_grads(lambda x: F.max_pool2d(x, size, stride, padding, 1, ceil_mode), X)
    check_grads(lambda x: F.avg_pool2d(x, size, stride, padding, ceil_mode) ** 2, X)


def test_the_first_maximum_gets_the_gradient() -> None:
    x = np.array([[[1.0, 3.0, 3.0], [3.0, 0.0, -INF], [NAN, NAN, -INF]]])

    def total(x: Any) -> Any:
        return np.sum(F.max_pool2d(x, 2, 1))

    expected = [[[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]]
    for transformed in (ft.grad(total), ft.jit(ft.grad(total))):
        np.testing.assert_array_equal(transformed(x), expected)
    lowest = np.full((1, 3), -INF)
    np.testing.assert_array_equal(ft.grad(lambda x: np.sum(F.max_pool1d(x, 2, 2, 1)))(lowest), [[1.0, 1.0, 0.0]])
    assert np.isnan(F.max_pool2d(x, 3)).all()


@pytest.mark.parametrize("size", [1, 2, 3, (7, 2), (None, 4)])
def test_adaptive_pooling_is_a_loop(size: Any) -> None:
    given = size if isinstance(size, tuple) else (size, size)
    sizes = [n if m is None else m for m, n in zip(given, (7, 5), strict=True)]
    bounds = [[slice(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip((7, 5), sizes, strict=True)]
    for pool, reduce in ((F.adaptive_avg_pool2d, np.mean), (F.adaptive_max_pool2d, np.max)):
        parts = [[reduce(X[..., r, c], (2, 3)) for c in bounds[1]] for r in bounds[0]]
        np.testing.assert_allclose(pool(X, size), np.array(parts).transpose(2, 3, 0, 1))
        check_grads(lambda x, pool=pool: pool(x, size), X)
    found, index = F.adaptive_max_pool2d(X, size, return_indices=True)
    np.testing.assert_array_equal(np.take_along_axis(X.reshape(2, 35), index.reshape(2, -1), 1), found.reshape(2, -1))


def test_pooling_of_one_and_three_axes() -> None:
    line = np.array([[1.0, 5.0, 2.0, 4.0]], np.float32)
    np.testing.assert_array_equal(F.max_pool1d(line, 2), [[5.0, 4.0]])
    assert F.avg_pool1d(line, 3, 1).dtype == np.float32
    np.testing.assert_allclose(F.avg_pool1d(line, 3, 1), [[8 / 3, 11 / 3]], rtol=1e-6)
    volume = np.arange(27.0).reshape(1, 3, 3, 3)
    np.testing.assert_array_equal(F.max_pool3d(volume, 2, 1)[0, 1, 1], [25.0, 26.0])
    np.testing.assert_allclose(F.avg_pool3d(volume, 3, divisor_override=13), [[[[27.0]]]])
    np.testing.assert_allclose(F.adaptive_avg_pool3d(volume, 1), [[[[13.0]]]])


def test_mapped_gradients() -> None:
    def f(x: Any) -> Any:
        return np.sum(F.max_pool2d(x, 3, 2, 1) ** 3)

    expected = np.stack([ft.grad(f)(x) for x in X])
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(X), expected)
    np.testing.assert_allclose(ft.jit(ft.vmap(ft.grad(f)))(X), expected)
    np.testing.assert_allclose(ft.grad(lambda x: np.sum(ft.vmap(f)(x)))(X), expected)


def test_pad_and_interpolate() -> None:
    x = np.array([[[1.0, 2.0, 4.0]]])
    np.testing.assert_array_equal(F.pad(x, (1, 2))[0, 0], [0, 1, 2, 4, 0, 0])
    np.testing.assert_array_equal(F.pad(x, (-1, 1), value=9.0)[0, 0], [2, 4, 9])
    np.testing.assert_array_equal(F.pad(x, (2, 1), "reflect")[0, 0], [4, 2, 1, 2, 4, 2])
    np.testing.assert_array_equal(F.pad(x, (2, 1), "replicate")[0, 0], [1, 1, 1, 2, 4, 4])
    np.testing.assert_array_equal(F.pad(x, (2, 1), "circular")[0, 0], [2, 4, 1, 2, 4, 1])
    np.testing.assert_array_equal(F.interpolate(x, scale_factor=2)[0, 0], [1, 1, 2, 2, 4, 4])
    np.testing.assert_allclose(F.interpolate(x, 5, mode="linear", align_corners=True)[0, 0], [1, 1.5, 2, 3, 4])
    check_grads(lambda x: F.interpolate(x, scale_factor=(1.7, 2), mode="bilinear") ** 2, X)
    check_grads(lambda x: F.pad(x, (1, 2, 3, 0), "reflect") ** 2, X)
    # Written down from torch 2.13.
    cubic = F.interpolate(np.array([[[[1.0, 2.0, 4.0]]]]), (1, 5), mode="bicubic")[0, 0, 0]
    np.testing.assert_allclose(cubic, CUBIC)
    check_grads(lambda x: F.interpolate(x, (3, 8), mode="bicubic", align_corners=True) ** 2, X)
    # An axis that keeps its size stays as it is.
    np.testing.assert_array_equal(F.interpolate(x, scale_factor=1.3, mode="linear"), x)
    image = np.arange(32.0).reshape(1, 8, 2, 2)
    np.testing.assert_array_equal(
        F.pixel_shuffle(image, 2)[0, 0], [[0, 4, 1, 5], [8, 12, 9, 13], [2, 6, 3, 7], [10, 14, 11, 15]]
    )
    np.testing.assert_array_equal(F.pixel_unshuffle(F.pixel_shuffle(image, 2), 2), image)


@pytest.mark.parametrize("settings", [(2,), ((3, 2), 1, 1, 2), ((2, 1), (2, 1), (0, 1), (1, 3))])
def test_patches(settings: tuple[Any, ...]) -> None:
    x = X.reshape(2, 1, 7, 5)
    size, dilation, padding, stride = (np.broadcast_to(v, 2) for v in (*settings, *(1, 0, 1)[len(settings) - 1 :]))
    padded = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    ends = [n - (k - 1) * d for n, k, d in zip(padded.shape[2:], size, dilation, strict=True)]
    columns = [
        padded[:, :, i : i + size[0] * dilation[0] : dilation[0], j : j + size[1] * dilation[1] : dilation[1]]
        for i in range(0, ends[0], stride[0])
        for j in range(0, ends[1], stride[1])
    ]
    patches = F.unfold(x, *settings)
    np.testing.assert_array_equal(patches, np.stack([c.reshape(2, -1) for c in columns], axis=2))
    np.testing.assert_array_equal(F.unfold(x[0], *settings), patches[0])
    # The transpose of the other one as a linear map.
    np.testing.assert_allclose(
        F.fold(patches, (7, 5), *settings), ft.grad(lambda x: np.sum(F.unfold(x, *settings) ** 2) / 2)(x)
    )
    np.testing.assert_allclose(F.fold(patches[1], (7, 5), *settings), F.fold(patches, (7, 5), *settings)[1])
    check_grads(lambda p: F.fold(p, (7, 5), *settings) ** 2, patches)
    check_grads(lambda x: F.unfold(x, *settings) ** 2, x)


def test_patches_keep_infinite_elements_apart() -> None:
    x = np.array([[[1.0, INF], [NAN, 2.0]]])
    np.testing.assert_array_equal(F.fold(F.unfold(x, 1), 2, 1), x)


def test_last_windows_that_reach_over_the_end() -> None:
    x = np.array([[1.0, 3.0]])
    np.testing.assert_array_equal(F.max_pool1d(x, 3, ceil_mode=True), [[3.0]])
    np.testing.assert_array_equal(F.avg_pool1d(x, 3, ceil_mode=True), [[2.0]])
    np.testing.assert_array_equal(F.max_pool1d(x, 3, 2, 1, 2, ceil_mode=True), [[3.0]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: F.max_pool2d(X[0, 0], 2), ["max_pool2d", "2 axes"]),
        (lambda: F.max_pool2d(X, 6), ["6 x 6", "7 x 5"]),
        (lambda: F.max_pool2d(X, 2, padding=2), ["half of the kernel_size"]),
        (lambda: F.avg_pool2d(X, 2, divisor_override=0), ["divisor_override"]),
        (lambda: F.adaptive_avg_pool2d(X, (1, 2, 3)), ["output_size"]),
        (lambda: F.pad(X, (1, 2, 3)), ["two numbers for each axis"]),
        (lambda: F.pad(X, (5, 0), "reflect"), ["reflect", "4"]),
        (lambda: F.interpolate(X), ["size or scale_factor"]),
        (lambda: F.interpolate(X, 2, mode="linear"), ["'bilinear'"]),
        (lambda: F.interpolate(X, scale_factor=(2, 2, 2)), ["one for each of the 2 axes"]),
        (lambda: F.interpolate(X, scale_factor=0.1), ["has no element", "(0, 0)"]),
        (lambda: F.interpolate(X, 2, align_corners=True), ["not for 'nearest'"]),
        (lambda: F.unfold(X[0, 0], 2), ["unfold", "2 axes"]),
        (lambda: F.unfold(X, 6), ["6 x 6", "7 x 5"]),
        (lambda: F.fold(np.ones((4, 3)), 3, 2), ["(..., channels * 4, 4)", "f64[4,3]"]),
        (lambda: F.fold(np.ones((4, 3)), 1, 2), ["fit into"]),
        (lambda: F.pixel_shuffle(X, 2), ["multiples of 2 ** 2"]),
    ],
)
def test_errors_say_what_was_expected(call: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match="test_pooling") as caught:
        call()
    assert all(word in str(caught.value) for word in words)
