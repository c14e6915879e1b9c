"""Mixed precision: products and convolutions of rounded numbers, in every mode, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import optax
import pytest
import tables

import ftrans as ft
from ftrans import nn
from ftrans.nn import functional as F

rng = np.random.default_rng(0)
DTYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16), "float16": np.dtype(np.float16)}


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return rng.normal(size=shape).astype(np.float32)


A, B, V, IMAGE, KERNEL = normal(4, 5), normal(5, 3), normal(5), normal(2, 3, 6, 6), normal(4, 3, 3, 3)
STACK, MATRICES = normal(2, 4, 5), normal(2, 5, 3)

# What is rounded, wherever it is computed.
ROUNDED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "linear": (lambda x, w: F.linear(x, w.T), (A, B)),
    "bilinear": (lambda x, w: F.bilinear(x, x, w), (A, normal(2, 5, 5))),
    "conv": (lambda x, w: F.conv2d(x, w, padding=1), (IMAGE, KERNEL)),
    "conv_transpose": (F.conv_transpose2d, (normal(2, 4, 5, 5), KERNEL)),
    "attention": (lambda q, k: F.scaled_dot_product_attention(q, k, k), (STACK, normal(2, 7, 5))),
    "rnn_cell": (lambda x, w: F.rnn_cell(x, x, w, w), (A, normal(5, 5))),
}
# What is rounded where it is recorded; of plain arrays it is NumPy's.
RECORDED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "@": (lambda x, y: x @ y, (A, B)),
    "stacked @": (lambda x, y: x @ y, (STACK, MATRICES)),
    "einsum": (lambda x, y: np.einsum("nij,njk->ik", x, y), (STACK, MATRICES)),
    "tensordot": (lambda x, y: np.tensordot(x, y, 1), (A, B)),
    "inner": (lambda x, y: np.inner(x, y), (A, V)),
    "dot": (lambda x, y: np.dot(x, y), (A, V)),
}
# What stays exact.
EXACT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sum": (lambda x, y: (x * y[0, 0]).sum(0), (A, B)),
    "softmax": (lambda x, y: F.softmax(x, -1) + y[0, 0], (A, B)),
    "layer_norm": (lambda x, y: F.layer_norm(x, (5,)) + y[0, 0], (A, B)),
    "adaptive_avg_pool2d": (lambda x, y: F.adaptive_avg_pool2d(x, 4) + y[0, 0, 0, 0], (IMAGE, KERNEL)),
    "another dtype": (lambda x, y: x.astype(np.float64) @ y, (A, B)),
}


def on_tensors(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: f(*map(ft.autograd.tensor, xs)).numpy()


MODES: dict[str, Callable[..., Any]] = {
    "un-jitted": lambda f: f,
    "jit": ft.jit,
    "vmap": lambda f: lambda x, y: ft.vmap(lambda x: f(x, y), 0)(x[None])[0],
    "tensors": on_tensors,
}


def close(x: Any, y: Any, rtol: float) -> None:
    np.testing.assert_allclose(x, y, rtol=0, atol=rtol * np.abs(y).max())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_are_those_of_rounded_numbers(mode: str, dtype: str) -> None:
    rows = ROUNDED if mode == "un-jitted" else {**ROUNDED, **RECORDED}
    for name, (f, args) in rows.items():
        with nn.autocast(dtype):
            found = MODES[mode](f)(*args)
        assert found.dtype == np.float32, name
        exact = f(*(x.astype(np.float64) for x in args))
        eps = float(ml_dtypes.finfo(DTYPES[dtype]).eps)
        close(found, exact, 4 * eps)
        assert np.abs(found - exact).max() > eps / 100 * np.abs(exact).max(), name
        if name in ("linear", "conv", "@", "einsum"):
            close(found, f(*(x.astype(DTYPES[dtype]).astype(np.float64) for x in args)), eps / 2)
    for name, (f, args) in EXACT.items():
        plain = MODES[mode](f)(*args)
        with nn.autocast(dtype):
            np.testing.assert_array_equal(MODES[mode](f)(*args), plain, err_msg=name)


class Net(nn.Module):
    """A convolution, a normalization that keeps statistics, and a product that is written out."""

    def __init__(self) -> None:
        nn.manual_seed(0)
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.first = nn.Linear(64, 16)
        self.last = nn.Parameter(np.sin(np.arange(48, dtype=np.float32)).reshape(16, 3) / 4)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.norm(self.conv(x)))
        return F.relu(self.first(x.reshape(x.shape[0], 64))) @ self.last


def data(count: int) -> tuple[Any, Any]:
    """Pictures of three kinds."""
    kinds = np.arange(count) % 3
    images = (
        np.random.default_rng(1).normal(size=(count, 1, 6, 6)) + (np.arange(6) // 2 == kinds[:, None])[:, None, None]
    )
    return images.astype(np.float32), kinds


def loss(model: Any, x: Any, y: Any) -> Any:
    return F.cross_entropy(model(x), y)


def test_gradients_and_buffers_stay_float32() -> None:
    x, y = data(12)
    block = nn.autocast()
    found = []
    for wrap in (lambda f: f, nn.jit):
        model = Net()
        with block:
            value, gradients = wrap(nn.value_and_grad(loss))(model, x, y)
        found.append((value, *gradients.values(), model.norm.running_var.value))
    model = Net()
    with block:
        out = loss(model, ft.autograd.tensor(x), y)
    out.backward()
    found.append((out.detach().numpy(), *(p.grad.numpy() for p in model.parameters()), model.norm.running_var.value))
    exact, of_exact = nn.value_and_grad(loss)(Net(), x, y)
    for figures in found:
        assert {a.dtype for a in figures} == {np.dtype(np.float32)}
        assert 0 < abs(figures[0] - exact) < 0.01 * exact
        for name, g, h in zip(of_exact, figures[1:], of_exact.values(), strict=False):
            if name != "conv.bias":  # Which is zero, but for rounding, before a normalization.
                close(g, h, 0.03)


def test_a_compiled_function_has_a_program_for_each_precision() -> None:
    f, g = ft.jit(lambda x, y: x @ y), nn.jit(lambda model, x: model(x))
    model = Net().eval()
    x = data(2)[0]
    exact = f(A, B), g(model, x)
    for _ in range(2):
        for dtype, rounding in DTYPES.items():
            with nn.autocast(dtype):
                expected = A.astype(rounding).astype(np.float64) @ B.astype(rounding).astype(np.float64)
                close(f(A, B), expected, float(ml_dtypes.finfo(rounding).eps) / 2)
                assert (g(model, x) != exact[1]).any()
        np.testing.assert_array_equal(f(A, B), exact[0])
        np.testing.assert_array_equal(g(model, x), exact[1])


def test_blocks_nest_and_belong_to_their_thread() -> None:
    block, product = nn.autocast(), ft.jit(lambda x, y: x @ y)
    exact = product(A, B)
    with block, block:
        rounded = product(A, B)
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(product(A, B)))
        thread.start()
        thread.join()
        with nn.autocast("float32"):
            seen.append(product(A, B))
        with nn.autocast(enabled=False):
            seen.append(product(A, B))
        np.testing.assert_array_equal(product(A, B), rounded)
        with pytest.raises(ZeroDivisionError), nn.autocast("float16"):
            1 / 0  # noqa: B018
        np.testing.assert_array_equal(product(A, B), rounded)
    seen.append(product(A, B))
    for x in seen:
        np.testing.assert_array_equal(x, exact)
    assert (rounded != exact).any()
    np.testing.assert_array_equal(nn.autocast("bfloat16")(product)(A, B), rounded)
    assert repr(block) == "autocast('bfloat16', enabled=True)"


@pytest.mark.parametrize(
    ("given", "text"),
    [("cuda", "so name no device"), ("bf16", "write 'bfloat16'"), ("float64", "not 'float64'"), (3, "not 3")],
)
def test_wrong_precisions(given: Any, text: str) -> None:
    for make in (nn.autocast, lambda given: nn.fit(Net(), [], loss=F.cross_entropy, precision=given)):
        with pytest.raises(ValueError, match=rf"is one of 'bfloat16', 'float16', 'float32', .*{text}"):
            make(given)


def test_names_of_torch() -> None:
    with pytest.raises(AttributeError, match=r"'GradScaler'; write nn\.LossScale\(\)"):
        nn.GradScaler()
    with pytest.raises(AttributeError, match=r"'amp'; write nn\.autocast\(\) and nn\.LossScale"):
        nn.amp.autocast()


# nn.fit


def train(precision: Any, model: Any = None, **options: Any) -> Any:
    model = model or Net()
    optimizer = nn.Optimizer(model, optax.adam(3e-3))
    batches = nn.batches(*data(48), batch_size=16, seed=0)
    options = {"epochs": 4, "validation": batches, "progress": False, "precision": precision, **options}
    return nn.fit(model, batches, loss=F.cross_entropy, optimizer=options.pop("optimizer", optimizer), **options), model


def test_losses_of_fit_are_close_to_those_of_float32() -> None:
    exact, _ = train(None)
    for precision in DTYPES if tables.whole else ["bfloat16"]:
        history, model = train(precision)
        for name in ("loss", "val_loss"):
            np.testing.assert_allclose(history[name], exact[name], rtol=0.01)
        assert history["loss"] != exact["loss"]
        with nn.autocast(precision):
            assert train(None)[0]["loss"] == history["loss"]
        assert {p.dtype for p in model.parameters()} == {np.dtype(np.float32)}


def gpt_losses(precision: str, steps: int) -> Any:
    """Losses of a small GPT that is trained on a text of two alternating letters and noise."""
    nn.manual_seed(0)
    model, vocabulary, length = nn.ModuleDict(), 6, 16
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, "gelu", batch_first=True, norm_first=True)
    model["tokens"], model["blocks"] = nn.Embedding(vocabulary, 16), nn.TransformerEncoder(layer, 1, nn.LayerNorm(16))
    model["head"] = nn.Linear(16, vocabulary)
    draw = np.random.default_rng(0)
    text = np.where(draw.random((64, length + 1)) < 0.8, np.arange(length + 1) % 2, draw.integers(6, size=(64, 1)))

    def objective(model: Any, x: Any, y: Any) -> Any:
        logits = model["head"](model["blocks"](model["tokens"](x), is_causal=True))
        return F.cross_entropy(logits.reshape(-1, vocabulary), y.reshape(-1))

    batches = nn.batches(text[:, :-1], text[:, 1:], batch_size=16, seed=0)
    options = {"optimizer": optax.adam(3e-3), "epochs": steps // 4, "progress": False, "precision": precision}
    return nn.fit(model, batches, objective=objective, **options)["loss"]


@pytest.mark.skipif(not tables.whole, reason="takes seconds")
@pytest.mark.parametrize("precision", DTYPES)
def test_losses_of_a_gpt_are_close_to_those_of_float32(precision: str) -> None:
    np.testing.assert_allclose(gpt_losses(precision, 80), gpt_losses("float32", 80), rtol=0.01)


def test_float16_scales_the_loss_and_resumes(tmp_path: Any) -> None:
    model = Net()
    optimizer = nn.Optimizer(model, optax.adam(3e-3))
    # The first steps overflow, and are left out.
    optimizer.loss_scale = nn.LossScale(2.0**40, growth_interval=4)
    whole, _ = train("float16", model, optimizer=optimizer, directory=tmp_path)
    scale = float(optimizer.loss_scale.scale.value)
    assert 2.0**5 < scale < 2.0**35
    assert np.isfinite(whole["loss"]).all()
    again = Net()
    optimizer = nn.Optimizer(again, optax.adam(3e-3))
    history, _ = train("float16", again, optimizer=optimizer, directory=tmp_path, resume=True)
    assert history["loss"] == whole["loss"]
    assert float(optimizer.loss_scale.scale.value) == scale


def test_float16_is_not_for_searches_along_a_line() -> None:
    model = Net()
    with pytest.raises(TypeError, match="LBFGS evaluates the loss itself, without the scale that float16 needs"):
        train("float16", model, optimizer=nn.optim.LBFGS(model))


def test_float16_adds_up_gradients() -> None:
    model = Net()
    optimizer = nn.Optimizer(model, optax.adam(3e-3))
    optimizer.loss_scale = nn.LossScale(2.0**40, growth_interval=1000)
    history, _ = train("float16", model, optimizer=optimizer, accumulate=3)
    assert np.isfinite(history["loss"]).all()
    assert float(optimizer.loss_scale.scale.value) == 2.0**36


def test_float16_says_when_no_scale_helps() -> None:
    model = Net()
    model.last.value = np.full((16, 3), 1e5, np.float32)
    with pytest.raises(FloatingPointError):
        train("float16", model)
