"""Random numbers by keys, and dropout: known values, distributions, and one meaning eager, compiled and mapped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ftrans as ft
import ftrans.nn.functional as F
from ftrans import autograd, nn
from ftrans.nn import random
from ftrans.ops.random_bits import encrypted, random_bits

KEY = random.key(2024)
MANY = 20_000


def u32(*numbers: int) -> Any:
    return np.array(numbers, np.uint32)


# Bits

# counter, key, result: from the test vectors that the authors of Threefry publish, for 20 rounds.
VECTORS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
@pytest.mark.parametrize("size", [2, 101, 70_001])
def test_published_vectors(counter: Any, key: Any, expected: Any, size: int) -> None:
    found = random_bits.numpy(u32(*key), u32(*counter), shape=(size,))
    assert (found[0], found[(size + 1) // 2]) == expected


def test_bits_are_encrypted_positions() -> None:
    k0, k1 = KEY.tolist()
    found = random.bits(KEY, (7, 11)).ravel()
    blocks = [encrypted(k0, k1, i, 0) for i in range(39)]
    expected = [b[0] for b in blocks] + [b[1] for b in blocks]
    assert found.tolist() == expected[:77]


def test_bits_are_the_same_eager_compiled_and_mapped() -> None:
    shape = (3, 41)
    keys = random.split(KEY, 4)
    looped = np.stack([random.bits(k, shape) for k in keys])
    np.testing.assert_array_equal(ft.vmap(lambda k: random.bits(k, shape))(keys), looped)
    np.testing.assert_array_equal(ft.jit(ft.vmap(lambda k: random.bits(k, shape)))(keys), looped)
    np.testing.assert_array_equal(ft.jit(lambda k: random.bits(k, shape))(keys[1]), looped[1])


def test_bits_look_random() -> None:
    words = random.bits(KEY, (MANY,))
    ones = np.unpackbits(words.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 4 * 0.5 / np.sqrt(32 * MANY)
    assert abs(np.corrcoef(words[:-1], words[1:])[0, 1]) < 4 / np.sqrt(MANY)
    # A key that differs by one bit changes half of all bits.
    changed = random.bits(KEY ^ u32(0, 1), (MANY,)) ^ words
    assert abs(np.unpackbits(changed.view(np.uint8)).mean() - 0.5) < 4 * 0.5 / np.sqrt(32 * MANY)


# Keys


@pytest.mark.parametrize("seed", [0, 7, -3, 2**40 + 5, 2**64 - 1])
def test_key_holds_the_seed(seed: int) -> None:
    high, low = random.key(seed).tolist()
    assert (high << 32 | low) == seed % 2**64
    if seed < 2**63:
        np.testing.assert_array_equal(ft.jit(random.key)(np.int64(seed)), random.key(seed))


def test_keys_differ() -> None:
    keys = [KEY, *random.split(KEY, 50), *(random.fold_in(KEY, i) for i in range(50)), *random.bits(KEY, (2, 2))]
    keys += [random.fold_in(random.fold_in(KEY, 1), i) for i in range(50)]
    keys += [random.fold_in(random.key(s), i) for s in range(5) for i in range(5)]
    # split and bits of one key are the same numbers; nothing else is.
    assert len({tuple(k.tolist()) for k in keys}) >= len(keys) - 2


def test_fold_in_of_traced_integers() -> None:
    expected = np.stack([random.fold_in(KEY, i) for i in (0, 5, -1)])
    data = np.array([0, 5, -1])
    np.testing.assert_array_equal(ft.vmap(lambda i: random.fold_in(KEY, i))(data), expected)
    np.testing.assert_array_equal(
        ft.jit(ft.vmap(random.fold_in, in_axes=(None, 0)))(KEY, data.astype(np.int32)), expected
    )


def test_streams() -> None:
    state = random.stream(3)
    compiled = ft.jit(random.advance)
    seen = []
    for i in range(3):
        key, new = random.advance(state)
        np.testing.assert_array_equal(key, random.fold_in(random.key(3), i))
        for found, expected in zip(compiled(state), (key, new), strict=True):
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == np.uint32
        state = new
        seen.append(tuple(key.tolist()))
    assert len(set(seen)) == 3
    assert random.advance(u32(1, 2, 0xFFFFFFFF))[1].tolist() == [1, 2, 0]
    cell = nn.RngState(3)
    assert [tuple(cell.next_key().tolist()) for _ in range(3)] == seen
    nn.manual_seed(5)
    first = random.stream()
    nn.manual_seed(5)
    np.testing.assert_array_equal(random.stream(), first)
    assert (random.stream() != first).any()


# Distributions

DRAWS: dict[str, tuple[Callable[..., Any], Any]] = {
    "uniform": (random.uniform, stats.uniform()),
    "uniform between": (lambda k, s, d: random.uniform(k, s, d, -1.0, 3.0), stats.uniform(-1, 4)),
    "normal": (random.normal, stats.norm()),
    "exponential": (random.exponential, stats.expon()),
    "gumbel": (random.gumbel, stats.gumbel_r()),
    "truncated": (lambda k, s, d: random.truncated_normal(k, -0.5, 2.0, s, d), stats.truncnorm(-0.5, 2.0)),
    "tail": (lambda k, s, d: random.truncated_normal(k, 2.0, 3.0, s, d), stats.truncnorm(2.0, 3.0)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", DRAWS)
def test_distribution(name: str, dtype: Any) -> None:
    draw, distribution = DRAWS[name]
    x = draw(KEY, (MANY,), dtype)
    assert x.dtype == dtype
    assert x.shape == (MANY,)
    assert np.isfinite(x).all()
    assert stats.kstest(x.astype(np.float64), distribution.cdf).pvalue > 1e-3
    assert abs(x.mean() - distribution.mean()) < 4 * distribution.std() / np.sqrt(MANY)
    assert x.std() == pytest.approx(distribution.std(), rel=0.05)
    low, high = distribution.support()
    assert (x >= low).all()
    assert (x <= high).all()


def test_bernoulli() -> None:
    for p in (0.0, 0.1, 0.5, 1.0):
        x = random.bernoulli(KEY, p, (MANY,))
        assert x.dtype == np.bool_
        assert abs(x.mean() - p) <= 4 * np.sqrt(p * (1 - p) / MANY)
        # A probability may be an array or traced, with the same result.
        np.testing.assert_array_equal(random.bernoulli(KEY, np.full(MANY, p)), x)
        np.testing.assert_array_equal(ft.vmap(lambda q: random.bernoulli(KEY, q, (9,)))(np.array([p]))[0].shape, (9,))


def test_integers() -> None:
    x = random.integers(KEY, -2, 5, (MANY,))
    assert x.dtype == np.int64
    counts = np.bincount(x + 2, minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts).pvalue > 1e-3
    wide = random.integers(KEY, -(2**63), 2**63 - 1, (1000,))
    assert stats.kstest(wide / 2.0**64 + 0.5, "uniform").pvalue > 1e-3
    each = random.integers(KEY, 0, np.array([1, 2, 3]), (500, 3), np.int32)
    assert each.dtype == np.int32
    assert each.max(0).tolist() == [0, 1, 2]


def test_categorical() -> None:
    p = np.array([0.1, 0.0, 0.6, 0.3])
    with np.errstate(divide="ignore"):
        logits = np.log(p)
    x = random.categorical(KEY, np.broadcast_to(logits[:, None], (4, MANY)), axis=0)
    counts = np.bincount(x, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[p > 0], MANY * p[p > 0]).pvalue > 1e-3


def test_permutation() -> None:
    keys = random.split(KEY, 3000)
    x = ft.vmap(lambda k: random.permutation(k, 3))(keys)
    assert (np.sort(x, 1) == np.arange(3)).all()
    assert stats.chisquare(np.unique(x @ [9, 3, 1], return_counts=True)[1]).pvalue > 1e-3
    assert random.permutation(KEY, 0).shape == (0,)


def several_kinds(key: Any) -> list[Any]:
    return [
        random.normal(key, (5,)),
        random.truncated_normal(key, -1.0, np.array([0.5, 1.0, 2.0]), (3,), np.float64),
        random.gumbel(key),
        random.bernoulli(key, 0.3, (9,)),
        random.integers(key, -3, 9, (4,)),
        random.categorical(key, np.zeros((3, 4), np.float32)),
        random.permutation(key, 6),
    ]


def assert_same_samples(found: Any, expected: Any) -> None:
    for x, y in zip(found, expected, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        tolerance = 0 if y.dtype.kind in "biu" else 1e-5 if y.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def test_compiled_and_mapped_samples_are_the_eager_ones() -> None:
    keys = random.split(KEY, 2)
    mapped = ft.jit(ft.vmap(several_kinds))(keys)
    assert_same_samples([x[1] for x in mapped], several_kinds(keys[1]))


def test_jax_keys() -> None:
    import jax
    import jax.numpy as jnp

    x = random.normal(jnp.asarray(KEY), (5,), np.float64)
    assert isinstance(x, jax.Array)
    assert_same_samples([np.asarray(x)], [random.normal(KEY, (5,), np.float64)])


def test_derivatives_with_respect_to_parameters() -> None:
    def draw(mean: Any, std: Any) -> Any:
        return (mean + std * random.normal(KEY, (4,), np.float64)).sum()

    d_mean, d_std = ft.grad(draw, argnums=(0, 1))(1.0, 2.0)
    assert d_mean == 4
    assert d_std == pytest.approx(random.normal(KEY, (4,), np.float64).sum())

    def cut(low: Any) -> Any:
        return random.truncated_normal(KEY, low, 2.0, (4,), np.float64).sum()

    step = 1e-6
    assert ft.grad(cut)(-1.0) == pytest.approx((cut(-1 + step) - cut(-1 - step)) / (2 * step), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: random.normal(7, (3,)), TypeError, r"bits takes a key.*random\.key\(0\)"),
        (lambda: random.normal(np.random.default_rng(0), (3,)), TypeError, "not Generator"),
        (lambda: random.normal(KEY.astype(np.int64)), TypeError, r"u32\[2\], not i64\[2\]"),
        (lambda: random.normal(random.stream(0), (3,)), TypeError, r"u32\[3\], which an RngState holds"),
        (lambda: random.normal(KEY, (3,), np.float16), TypeError, "float32 or float64"),
        (lambda: random.normal(KEY, 2.5), TypeError, "a shape must be"),
        (lambda: random.normal(KEY, (-1,)), ValueError, "negative"),
        (lambda: random.key(0.5), TypeError, "seed is an integer"),
        (lambda: random.key(2**64), ValueError, "64 bits"),
        (lambda: random.fold_in(KEY, 0.5), TypeError, "one integer"),
        (lambda: random.fold_in(KEY, np.arange(2)), TypeError, "one integer"),
        (lambda: random.bernoulli(KEY, 1.5), ValueError, "no probability"),
        (lambda: random.integers(KEY, 3, 3), ValueError, "no integer in the interval from low=3"),
        (lambda: random.integers(KEY, 0.5, 3), TypeError, "low of integers"),
        (lambda: random.integers(KEY, 0, 3, (), np.float32), TypeError, "dtype of integers"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_scipy_is_imported_late() -> None:
    code = "import sys, ftrans, ftrans.nn; assert 'scipy.special' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# The error function


def test_derivatives_of_erf() -> None:
    from ftrans.api.elementwise import apply_elementwise
    from ftrans.ops.special.errors import erf, erf_inv, erfc

    x = np.linspace(-2, 2, 9)
    bell = 2 / np.sqrt(np.pi) * np.exp(-(x**2))

    def total(primitive: Any) -> Callable[[Any], Any]:
        return lambda x: apply_elementwise(primitive, x).sum()

    np.testing.assert_allclose(ft.grad(total(erf))(x), bell, rtol=1e-14)
    np.testing.assert_allclose(ft.jit(ft.grad(total(erfc)))(x), -bell, rtol=1e-14)
    np.testing.assert_allclose(np.diag(ft.hessian(total(erf))(x)), -2 * x * bell, rtol=1e-13)
    third = ft.grad(lambda x: ft.grad(lambda x: ft.grad(total(erf))(x).sum())(x).sum())(x)
    np.testing.assert_allclose(third, (4 * x * x - 2) * bell, rtol=1e-12)
    inverse = ft.grad(lambda x: apply_elementwise(erf_inv, apply_elementwise(erf, x)).sum())(x)
    np.testing.assert_allclose(inverse, np.ones(9), rtol=1e-12)
    t = autograd.tensor(x, requires_grad=True)
    apply_elementwise(erf, t).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), bell, rtol=1e-14)
    assert apply_elementwise(erf, np.float32(0.5)).dtype == np.float32
    assert apply_elementwise(erf, 0) == 0


# Dropout

X = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)


def test_dropout() -> None:
    y = F.dropout(X, 0.3, rng=KEY)
    kept = random.bernoulli(KEY, 0.7, X.shape)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, np.where(kept, X / np.float32(0.7), 0), rtol=1e-6)
    np.testing.assert_array_equal(y == 0, ~kept)
    np.testing.assert_array_equal(ft.jit(lambda x, k: F.dropout(x, 0.3, rng=k))(X, KEY) == 0, ~kept)
    ones = F.dropout(np.ones(MANY), 0.9, rng=KEY)
    assert abs(ones.mean() - 1) < 4 * np.sqrt(9 / MANY)
    assert F.dropout(X.astype(np.float16), 0.5, rng=KEY).dtype == np.float16


def test_what_dropout_leaves_alone() -> None:
    for f in (F.dropout, F.alpha_dropout, F.dropout1d, F.feature_alpha_dropout):
        assert f(X, 0.0, training=True) is X
        assert f(X, 0.5, training=False) is X
        assert not f(X, 1.0, training=True, rng=KEY).any()
    holes = np.array([np.nan, np.inf, 1.0] * 20)
    y = F.dropout(holes, 0.5, rng=KEY)
    assert (y[~random.bernoulli(KEY, 0.5, (60,))] == 0).all()


def test_gradient_of_dropout() -> None:
    kept = random.bernoulli(KEY, 0.7, X.shape)
    expected = np.where(kept, 2 * X / 0.7**2, 0)

    def loss(x: Any, key: Any) -> Any:
        return (F.dropout(x, 0.3, rng=key) ** 2).sum()

    for gradient in (ft.grad(loss), ft.jit(ft.grad(loss))):
        np.testing.assert_allclose(gradient(X, KEY), expected, rtol=1e-5)
    t = autograd.tensor(X, requires_grad=True)
    (F.dropout(t, 0.3, rng=KEY) ** 2).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), expected, rtol=1e-5)
    hessian = ft.hessian(loss)(X[0], KEY)
    np.testing.assert_allclose(hessian, np.diag(np.where(random.bernoulli(KEY, 0.7, (50,)), 2 / 0.49, 0)), rtol=1e-5)
    keys = random.split(KEY, 3)
    mapped = ft.vmap(ft.grad(loss), in_axes=(None, 0))(X, keys)
    np.testing.assert_allclose(mapped, np.stack([ft.grad(loss)(X, k) for k in keys]), rtol=1e-6)


def test_checkpoint_repeats_the_mask() -> None:
    def layer(x: Any, key: Any) -> Any:
        return np.sin(F.dropout(np.exp(x), 0.5, rng=key))

    plain = ft.grad(lambda x: layer(x, KEY).sum())(X)
    repeated = ft.grad(lambda x: ft.checkpoint(layer)(x, KEY).sum())(X)
    np.testing.assert_allclose(repeated, plain, rtol=1e-6)


def test_dropout_takes_streams() -> None:
    stream = nn.RngState(9)
    first, second = (F.dropout(X, 0.5, rng=stream) for _ in range(2))
    assert (first != second).any()
    np.testing.assert_array_equal(first, F.dropout(X, 0.5, rng=random.fold_in(random.key(9), 0)))
    F.dropout(X, 0.5, training=False, rng=stream)
    assert stream.value.tolist() == [0, 9, 2]


CHANNELS: list[tuple[Callable[..., Any], tuple[int, ...], int]] = [
    (F.dropout1d, (30, 7), 1),
    (F.dropout1d, (5, 30, 7), 2),
    (F.dropout2d, (5, 30, 4), 2),
    (F.dropout2d, (5, 30, 4, 3), 2),
    (F.dropout3d, (30, 4, 3, 2), 1),
    (F.dropout3d, (5, 30, 4, 3, 2), 2),
]


@pytest.mark.parametrize(("f", "shape", "leading"), CHANNELS)
def test_channels_are_dropped_as_a_whole(f: Callable[..., Any], shape: tuple[int, ...], leading: int) -> None:
    y = f(np.ones(shape), 0.5, rng=KEY).reshape(*shape[:leading], -1)
    assert set(np.unique(y)) == {0.0, 2.0}
    assert (y == y[..., :1]).all()


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = np.random.default_rng(1).standard_normal((200, 300))
    for p in (0.1, 0.5):
        y = F.alpha_dropout(x, p, training=True, rng=KEY)
        assert abs(y.mean()) < 0.03
        assert y.var() == pytest.approx(1, abs=0.03)
        dropped = ~random.bernoulli(KEY, 1 - p, x.shape)
        assert len(np.unique(y[dropped])) == 1
        z = F.feature_alpha_dropout(x[..., None] + np.zeros(3), p, training=True, rng=KEY)
        np.testing.assert_array_equal(z[..., 0], z[..., 2])
        np.testing.assert_allclose(z[..., 0], y)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.dropout(X, 1.5, rng=KEY), ValueError, "p=1.5 of dropout"),
        (lambda: F.dropout(X, -0.1, training=False), ValueError, "probability"),
        (lambda: F.dropout(X, float("nan"), rng=KEY), ValueError, "probability"),
        (lambda: ft.vmap(F.dropout)(X), TypeError, "dropout needs rng.*RngState"),
        (lambda: F.dropout(X, rng=3), TypeError, "dropout takes a key"),
        (lambda: F.dropout(np.arange(3), rng=KEY), TypeError, "floating-point"),
        (lambda: F.dropout2d(X, rng=KEY), ValueError, "3 or 4 axes, not of"),
        (lambda: F.feature_alpha_dropout(X[0], training=True, rng=KEY), ValueError, "at least 2 axes"),
        (lambda: ft.grad(lambda p: F.dropout(X, p, rng=KEY).sum())(0.5), TypeError, "p of dropout is a number"),
    ],
)
def test_errors_of_dropout(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
