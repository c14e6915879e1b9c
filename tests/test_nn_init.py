"""Initial values: their distributions, the factors of their layers, and the generator that draws them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ftrans import nn
from ftrans.nn import init


def parameter(*shape: int, dtype: Any = np.float32) -> nn.Parameter:
    return nn.Parameter(np.full(shape, np.nan, dtype))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# A weight with 40 * 6 inputs for each output, and 50 * 6 outputs for each input.
SHAPE = (50, 40, 3, 2)
FAN_IN, FAN_OUT = 240, 300
KAIMING = math.sqrt(2 / (1 + 0.2**2))


def by_variance(std: float) -> Any:
    return stats.uniform(-math.sqrt(3) * std, 2 * math.sqrt(3) * std)


FILLS: dict[str, tuple[Callable[..., Any], Any]] = {
    "uniform": (lambda p, **k: init.uniform_(p, -1, 3, **k), stats.uniform(-1, 4)),
    "normal": (lambda p, **k: init.normal_(p, 1, 2, **k), stats.norm(1, 2)),
    "truncated": (lambda p, **k: init.trunc_normal_(p, 1, 2, 0, 4, **k), stats.truncnorm(-0.5, 1.5, 1, 2)),
    "upper tail": (lambda p, **k: init.trunc_normal_(p, 0, 1, 9, 11, **k), stats.truncnorm(9, 11)),
    "lower tail": (lambda p, **k: init.trunc_normal_(p, 0, 1, -9, -7, **k), stats.truncnorm(-9, -7)),
    "xavier_uniform": (
        lambda p, **k: init.xavier_uniform_(p, 2, **k),
        by_variance(2 * math.sqrt(2 / (FAN_IN + FAN_OUT))),
    ),
    "xavier_normal": (
        lambda p, **k: init.xavier_normal_(p, **k),
        stats.norm(0, math.sqrt(2 / (FAN_IN + FAN_OUT))),
    ),
    "kaiming_uniform": (
        lambda p, **k: init.kaiming_uniform_(p, 0.2, **k),
        by_variance(KAIMING / math.sqrt(FAN_IN)),
    ),
    "kaiming_normal": (
        lambda p, **k: init.kaiming_normal_(p, mode="fan_out", nonlinearity="relu", **k),
        stats.norm(0, math.sqrt(2 / FAN_OUT)),
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FILLS)
def test_distribution(name: str, dtype: Any) -> None:
    fill, distribution = FILLS[name]
    weight = parameter(*SHAPE, dtype=dtype)
    assert fill(weight, rng=rng()) is weight
    assert (weight.value.dtype, weight.shape) == (np.dtype(dtype), SHAPE)
    x = weight.value.ravel().astype(np.float64)
    assert stats.kstest(x, distribution.cdf).pvalue > 1e-3
    assert x.std() == pytest.approx(distribution.std(), rel=0.05)


def test_small_dtypes() -> None:
    weight = init.kaiming_uniform_(parameter(3, 4, dtype=np.float16), rng=rng())
    assert weight.value.dtype == np.float16
    assert np.isfinite(weight.value).all()


def test_constants() -> None:
    assert init.constant_(parameter(2), 0.5).value.tolist() == [0.5, 0.5]
    assert init.ones_(parameter(2)).value.tolist() == [1, 1]
    assert init.zeros_(parameter(2, 0)).value.shape == (2, 0)
    np.testing.assert_array_equal(init.eye_(parameter(2, 3)).value, np.eye(2, 3))
    assert init.zeros_(nn.Buffer(np.arange(3))).value.tolist() == [0, 0, 0]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kernel", [(3,), (3, 5), (1, 3, 3)])
def test_dirac_preserves_the_input(kernel: tuple[int, ...], groups: int) -> None:
    weight = init.dirac_(parameter(4, 2, *kernel), groups).value
    center = tuple(n // 2 for n in kernel)
    expected = np.concatenate([np.eye(4 // groups, 2)] * groups)
    np.testing.assert_array_equal(weight[(slice(None), slice(None), *center)], expected)
    assert weight.sum() == expected.sum()


@pytest.mark.parametrize("shape", [(6, 6), (3, 8), (8, 3), (2, 3, 2), (5, 0)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    q = init.orthogonal_(parameter(*shape, dtype=np.float64), 2.0, rng=rng()).value
    assert q.shape == shape
    matrix = q.reshape(shape[0], math.prod(shape[1:]))
    product = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(min(matrix.shape)), atol=1e-12)


def test_orthogonal_has_no_preferred_sign() -> None:
    generator = rng()
    first = [init.orthogonal_(parameter(2, 2), rng=generator).value for _ in range(400)]
    assert abs(np.mean([q[0, 0] > 0 for q in first]) - 0.5) < 0.1
    assert abs(np.mean([np.linalg.det(q) > 0 for q in first]) - 0.5) < 0.1


def test_sparse() -> None:
    x = init.sparse_(parameter(10, 2000), 0.25, std=0.1, rng=rng()).value
    assert ((x == 0).sum(0) == 3).all()
    # Each row is as likely to be zero as the others.
    assert stats.chisquare((x == 0).sum(1)).pvalue > 1e-3
    assert x[x != 0].std() == pytest.approx(0.1, rel=0.05)


def test_gains() -> None:
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu", 0.2) == KAIMING
    assert init.calculate_gain("leaky_relu") == init.calculate_gain("leaky_relu", 0.01)
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("conv_transpose2d") == 1
    assert init.calculate_gain("selu") == 0.75


def test_same_gains_as_torch() -> None:
    torch = pytest.importorskip("torch")
    for name in ("linear", "conv2d", "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name), rel=1e-12)


def test_manual_seed() -> None:
    def values() -> Any:
        return init.normal_(parameter(5)).value

    nn.manual_seed(1)
    first, second = values(), values()
    nn.manual_seed(1)
    np.testing.assert_array_equal(values(), first)
    assert (first != second).all()
    # A generator that is given leaves that of the library alone.
    init.normal_(parameter(5), rng=rng())
    np.testing.assert_array_equal(values(), second)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: init.normal_(np.ones(3)), TypeError, "fills a parameter.*nn.Parameter"),
        (lambda: init.normal_(nn.Buffer(np.arange(3))), TypeError, "real floating-point numbers, not of int64"),
        (lambda: init.normal_(parameter(3), rng=7), TypeError, "generator of NumPy"),
        (lambda: init.normal_(parameter(3), rng=nn.random.key(0)), TypeError, "generator of NumPy"),
        (lambda: init.trunc_normal_(parameter(3), a=1, b=1), ValueError, "a below b"),
        (lambda: init.xavier_normal_(parameter(3)), ValueError, "at least 2 axes"),
        (lambda: init.kaiming_normal_(parameter(3, 3), nonlinearity="gauss"), ValueError, "known are.*relu"),
        (lambda: init.kaiming_uniform_(parameter(3, 3), mode="out"), ValueError, "fan_in"),
        (lambda: init.orthogonal_(parameter(3)), ValueError, "at least 2 axes"),
        (lambda: init.eye_(parameter(3)), ValueError, "matrices"),
        (lambda: init.sparse_(parameter(3, 3, 3), 0.5), ValueError, "matrices"),
        (lambda: init.dirac_(parameter(3, 3)), ValueError, "3, 4 or 5 axes"),
        (lambda: init.dirac_(parameter(3, 3, 3), 2), ValueError, "groups=2"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
