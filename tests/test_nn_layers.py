"""Layers: each eager, compiled, differentiated, batched and define-by-run; and what each of them is to do."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from layer_samples import ROWS, Row

import ftrans as ft
from ftrans import autograd, nn
from ftrans.nn.layers.function_layer import FunctionLayer
from ftrans.testing import check_grads


def leaves(x: Any) -> list[Any]:
    """The arrays in a result."""
    if isinstance(x, tuple | list):
        return [leaf for y in x for leaf in leaves(y)]
    return [] if x is None else [x]


def total(out: Any) -> Any:
    """A number that depends on all floating-point elements of a result."""
    return sum(np.sum(np.sin(leaf)) for leaf in leaves(out) if leaf.dtype.kind == "f")


def close(a: Any, b: Any, tolerance: float = 1e-5) -> None:
    """Compare results."""
    first, second = leaves(a), leaves(b)
    assert len(first) == len(second)
    for x, y in zip(first, second, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


def close_dicts(a: dict[str, Any], b: dict[str, Any], tolerance: float = 1e-5) -> None:
    """Compare states or gradients."""
    assert list(a) == list(b)
    for path in a:
        np.testing.assert_allclose(a[path], b[path], rtol=tolerance, atol=tolerance, err_msg=path)


@pytest.fixture(autouse=True)
def _seed() -> None:
    nn.manual_seed(0)


def families() -> dict[str, list[Row]]:
    """The rows by the file of the class."""
    found = defaultdict(list)
    for row in ROWS:
        found[getattr(nn, row.name).__module__.rsplit(".", 1)[1]].append(row)
    return found


# All layers


@pytest.mark.parametrize("family", families())
def test_compiled_steps_are_eager_ones(family: str) -> None:
    rows = [row for row in families()[family] if row.compiled]
    inputs = [row.arrays() for row in rows]
    eager = nn.ModuleList([row.make() for row in rows] + [nn.Linear(1, 1)])
    compiled = copy.deepcopy(eager)

    def outputs(models: Any, inputs: Any) -> Any:
        return [model(*xs) for model, xs in zip(models, inputs, strict=False)]

    def step(models: Any, inputs: Any) -> Any:
        def loss(models: Any) -> Any:
            out = outputs(models, inputs)
            return total(out) + total([models[-1].weight]), out

        return nn.value_and_grad(loss, has_aux=True)(models)

    jitted = nn.jit(step)
    for _ in range(2):
        (_, out), gradients = step(eager, inputs)
        (_, out_compiled), gradients_compiled = jitted(compiled, inputs)
        close(out_compiled, out)
        close_dicts(gradients_compiled, gradients, 3e-5)
        close_dicts(nn.state_of(compiled), nn.state_of(eager))
        assert {leaf.dtype for leaf in leaves(out) if leaf.dtype.kind == "f"} == {np.dtype(np.float32)}
        assert {g.dtype for g in gradients.values()} == {np.dtype(np.float32)}


# Layers whose gradient is by convention not that of their values.
CONVENTIONS = ("max_norm", "scale_grad_by_freq")


@pytest.mark.parametrize(
    "row", [r for r in ROWS if not any(word in r.text for word in CONVENTIONS)], ids=lambda row: row.text
)
def test_derivatives(row: Row) -> None:
    model = row.make().double()
    state, inputs = nn.state_of(model), row.arrays(np.float64)
    check_grads(lambda state, xs: total(nn.functional_call(model, state, *xs)[0]), state, inputs, order=1)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text)
def test_tensors_give_the_same_gradients(row: Row) -> None:
    model, inputs = row.make(), row.arrays()
    functional = copy.deepcopy(model)
    floats = [i for i, x in enumerate(inputs) if x.dtype.kind == "f"]
    given = [autograd.tensor(x, requires_grad=i in floats) for i, x in enumerate(inputs)]
    out = total(model(*given))
    out.backward()

    def loss(state: Any, xs: Any) -> Any:
        every = list(inputs)
        for i, x in zip(floats, xs, strict=True):
            every[i] = x
        out, new = nn.functional_call(functional, {**nn.state_of(functional), **state}, *every)
        return total(out), new

    parameters = {path: p.value for path, p in functional.named_parameters()}
    (value, new), gradients = ft.value_and_grad(loss, argnums=(0, 1), has_aux=True)(
        parameters, [inputs[i] for i in floats]
    )
    np.testing.assert_allclose(out.detach().numpy(), value, rtol=1e-5)
    for path, parameter in model.named_parameters():
        close(parameter.grad, gradients[0][path])
    for i, g in zip(floats, gradients[1], strict=True):
        close(given[i].grad, g)
    close_dicts(nn.state_of(model), {path: new[path] for path in nn.state_of(model)})


@pytest.mark.parametrize("row", [row for row in ROWS if row.batched], ids=lambda row: row.text)
def test_vmap_over_samples_is_the_batch(row: Row) -> None:
    model, inputs = row.make().eval(), row.arrays()
    state = nn.state_of(model)

    def of_sample(*xs: Any) -> Any:
        out, _ = nn.functional_call(model, state, *(x[None] for x in xs))
        return [leaf[0] for leaf in leaves(out)]

    close(ft.vmap(of_sample)(*inputs), leaves(model(*inputs)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text)
def test_copies(row: Row) -> None:
    model, inputs = row.make(), row.arrays()
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), nn.merge(*nn.split(model))]
    other = row.make()
    other.load_state_dict(model.state_dict(rng=True))
    out = model(*inputs)
    for x in (*others, other):
        close(x(*inputs), out, 0)
        assert repr(x) == repr(model)
    assert not any(path.endswith("rng") for path in model.state_dict())


def test_every_layer_has_a_row_and_is_documented() -> None:
    rows = {row.name for row in ROWS}
    for name in nn.layers.__all__:
        assert getattr(nn, name).__doc__, name
        family = name.rstrip("123d")
        assert name == "KeyValueCache" or name.startswith("Lazy") or any(row.startswith(family) for row in rows), name


# What torch calls them.  Names are in the order of torch, too.
STATES: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    ("Linear(3, 4)", {"weight": (4, 3), "bias": (4,)}),
    ("Bilinear(3, 4, 5)", {"weight": (5, 3, 4), "bias": (5,)}),
    ("Embedding(7, 3)", {"weight": (7, 3)}),
    ("PReLU(3)", {"weight": (3,)}),
    ("Conv1d(4, 6, 3, groups=2)", {"weight": (6, 2, 3), "bias": (6,)}),
    ("Conv2d(4, 6, (3, 2), bias=False)", {"weight": (6, 4, 3, 2)}),
    ("ConvTranspose2d(4, 6, 3, groups=2)", {"weight": (4, 3, 3, 3), "bias": (6,)}),
    (
        "BatchNorm2d(3)",
        {"weight": (3,), "bias": (3,), "running_mean": (3,), "running_var": (3,), "num_batches_tracked": ()},
    ),
    ("BatchNorm1d(3, affine=False, track_running_stats=False)", {}),
    ("InstanceNorm1d(3)", {}),
    ("LayerNorm((3, 4))", {"weight": (3, 4), "bias": (3, 4)}),
    ("RMSNorm(3)", {"weight": (3,)}),
    ("GroupNorm(2, 4)", {"weight": (4,), "bias": (4,)}),
    ("Dropout()", {}),
    (
        "MultiheadAttention(6, 2)",
        {"in_proj_weight": (18, 6), "in_proj_bias": (18,), "out_proj.weight": (6, 6), "out_proj.bias": (6,)},
    ),
    (
        "MultiheadAttention(6, 2, kdim=4, vdim=3)",
        {
            "q_proj_weight": (6, 6),
            "k_proj_weight": (6, 4),
            "v_proj_weight": (6, 3),
            "in_proj_bias": (18,),
            "out_proj.weight": (6, 6),
            "out_proj.bias": (6,),
        },
    ),
    (
        "TransformerEncoder(TransformerEncoderLayer(4, 2, 8), 1, LayerNorm(4))",
        {
            "layers.0.self_attn.in_proj_weight": (12, 4),
            "layers.0.self_attn.in_proj_bias": (12,),
            "layers.0.self_attn.out_proj.weight": (4, 4),
            "layers.0.self_attn.out_proj.bias": (4,),
            "layers.0.linear1.weight": (8, 4),
            "layers.0.linear1.bias": (8,),
            "layers.0.linear2.weight": (4, 8),
            "layers.0.linear2.bias": (4,),
            "layers.0.norm1.weight": (4,),
            "layers.0.norm1.bias": (4,),
            "layers.0.norm2.weight": (4,),
            "layers.0.norm2.bias": (4,),
            "norm.weight": (4,),
            "norm.bias": (4,),
        },
    ),
    (
        "LSTM(3, 4, num_layers=2, bidirectional=True)",
        {
            f"{name}_l{layer}{direction}": shape
            for layer, size in enumerate((3, 8))
            for direction in ("", "_reverse")
            for name, shape in (
                ("weight_ih", (16, size)),
                ("weight_hh", (16, 4)),
                ("bias_ih", (16,)),
                ("bias_hh", (16,)),
            )
        },
    ),
    ("GRU(3, 4, bias=False)", {"weight_ih_l0": (12, 3), "weight_hh_l0": (12, 4)}),
    ("RNNCell(3, 4)", {"weight_ih": (4, 3), "weight_hh": (4, 4), "bias_ih": (4,), "bias_hh": (4,)}),
    ("CrossEntropyLoss(weight=[1.0, 2.0])", {"weight": (2,)}),
]


@pytest.mark.parametrize(("text", "expected"), STATES, ids=[text for text, _ in STATES])
def test_state_dict(text: str, expected: dict[str, tuple[int, ...]]) -> None:
    state = Row(text, ()).make().state_dict()
    assert [(path, x.shape) for path, x in state.items()] == list(expected.items())
    for path, x in state.items():
        assert x.dtype == (np.int64 if path == "num_batches_tracked" else np.float64 if "Loss" in text else np.float32)


@pytest.mark.parametrize(
    "text",
    [
        "Linear(in_features=3, out_features=4, bias=True)",
        "Conv2d(3, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)",
        "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
        "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
        "Dropout(p=0.5, inplace=False)",
        "LSTM(3, 4, num_layers=2, batch_first=True, dropout=0.1, bidirectional=True)",
        "GELU(approximate='none')",
        "ReLU()",
    ],
)
def test_repr(text: str) -> None:
    assert repr(Row(text, ()).make()) == text


OF_FUNCTIONS = [cls for cls in (getattr(nn, name) for name in nn.layers.__all__) if issubclass(cls, FunctionLayer)]


@pytest.mark.parametrize("cls", OF_FUNCTIONS, ids=lambda cls: cls.__name__)
def test_layers_of_functions_have_their_defaults_and_docstrings(cls: Any) -> None:
    of = inspect.signature(cls._function).parameters
    found = inspect.signature(cls).parameters
    assert {name: x.default for name, x in found.items() if name in of} == {
        name: of[name].default for name in found if name in of
    }
    text = inspect.getdoc(cls)
    assert text.splitlines()[0] == inspect.getdoc(cls._function).splitlines()[0]
    for name in [*found, *list(inspect.signature(cls.forward).parameters)[1:]]:
        assert f"    {name}: " in text
    assert f">>> nn.{cls.__name__}(" in text or f"nn.{cls.__name__}(" in text.partition("Example:")[2]


@pytest.mark.parametrize("name", nn.layers.__all__)
def test_every_layer_shows_an_example(name: str) -> None:
    assert ">>> " in inspect.getdoc(getattr(nn, name)).partition("Example:")[2]


def test_layers_of_functions_say_what_they_take() -> None:
    with pytest.raises(TypeError, match=r"Threshold\(threshold, value, .*\): missing .* 'value'\n  at .*py:\d"):
        nn.Threshold(1.0)
    with pytest.raises(TypeError, match=r"GaussianNLLLoss.*too many positional"):
        nn.GaussianNLLLoss(True)


def test_arguments_of_the_function_are_no_inputs_of_the_layer() -> None:
    x = np.ones((2, 3))
    for call in (
        lambda: nn.LogSoftmax(1)(x, dtype=np.float32),
        lambda: nn.MSELoss()(x, x, reduction="sum"),
        lambda: nn.MSELoss()(x, x, None),
        lambda: nn.MSELoss()(x),
    ):
        words = r"^\w+\.forward\(input.*\): (missing|got|too many).*\n  at .*test_nn_layers\.py:\d"
        with pytest.raises(TypeError, match=words):
            call()
    assert nn.MSELoss()(target=x, input=x + 2.0) == 4.0


# Initial values


def test_initial_values() -> None:
    model = nn.Linear(100, 400)
    assert np.abs(model.weight.value).max() <= 0.1
    np.testing.assert_allclose(model.weight.value.std(), 0.1 / math.sqrt(3), rtol=0.02)
    np.testing.assert_allclose(model.bias.value.std(), 0.1 / math.sqrt(3), rtol=0.2)
    np.testing.assert_allclose(nn.Conv2d(4, 99, 5).weight.value.std(), 0.1 / math.sqrt(3), rtol=0.05)
    np.testing.assert_allclose(nn.ConvTranspose2d(99, 4, 5).weight.value.std(), 0.1 / math.sqrt(3), rtol=0.05)
    np.testing.assert_allclose(nn.Embedding(100, 100).weight.value.std(), 1, rtol=0.03)
    np.testing.assert_allclose(nn.LSTM(20, 25).weight_hh_l0.value.std(), 0.2 / math.sqrt(3), rtol=0.05)
    attention = nn.MultiheadAttention(64, 4)
    np.testing.assert_allclose(attention.in_proj_weight.value.std(), math.sqrt(2 / 256), rtol=0.05)
    assert not attention.in_proj_bias.value.any()
    assert not attention.out_proj.bias.value.any()
    assert not nn.Embedding(5, 3, padding_idx=1).weight.value[1].any()


def test_seeds_make_models_reproducible() -> None:
    models = []
    for seed in (3, 3, 4):
        nn.manual_seed(seed)
        models.append(nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.LSTM(4, 5)))
    first, second, third = (nn.state_of(model) for model in models)
    close_dicts(first, second, 0)
    assert not np.array_equal(first["1.rng"], third["1.rng"])
    assert not np.array_equal(first["0.weight"], third["0.weight"])


def test_dtype() -> None:
    model = nn.TransformerEncoderLayer(4, 2, 8, dtype=np.float64)
    assert {p.dtype for p in model.parameters()} == {np.dtype(np.float64)}
    assert {x.dtype for x in nn.BatchNorm1d(3, dtype=np.float64).state_dict().values()} == {
        np.dtype(np.float64),
        np.dtype(np.int64),
    }


# Normalization


@pytest.mark.parametrize("momentum", [0.1, 0.6, None])
def test_running_statistics(momentum: float | None) -> None:
    rng = np.random.default_rng(0)
    batches = rng.normal(2.0, 3.0, (4, 5, 3, 2))
    model = nn.BatchNorm1d(3, momentum=momentum, dtype=np.float64)
    mean, var = np.zeros(3), np.ones(3)
    for count, x in enumerate(batches, 1):
        share = 1 / count if momentum is None else momentum
        rows = x.transpose(0, 2, 1).reshape(-1, 3)
        mean = (1 - share) * mean + share * rows.mean(0)
        var = (1 - share) * var + share * rows.var(0, ddof=1)
        y = model(x)
        np.testing.assert_allclose(y.mean((0, 2)), 0, atol=1e-12)
        np.testing.assert_allclose(y.var((0, 2)), 1, rtol=1e-4)
    np.testing.assert_allclose(model.running_mean.value, mean)
    np.testing.assert_allclose(model.running_var.value, var)
    assert int(model.num_batches_tracked) == 4
    x = batches[0]
    expected = (x - mean[:, None]) / np.sqrt(var + 1e-5)[:, None]
    np.testing.assert_allclose(model.eval()(x), expected)
    assert int(model.num_batches_tracked) == 4
    model.reset_running_stats()
    close_dicts(model.state_dict(), nn.BatchNorm1d(3, dtype=np.float64).state_dict())


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_of_bfloat16(momentum: float | None) -> None:
    narrow = pytest.importorskip("ml_dtypes").bfloat16
    model = nn.BatchNorm1d(3, momentum=momentum, dtype=narrow)
    assert model(np.arange(12.0).reshape(4, 3).astype(narrow)).dtype == narrow
    assert {model.running_mean.dtype, model.running_var.dtype} == {np.dtype(narrow)}


def test_running_statistics_of_compiled_training() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.BatchNorm1d(4, momentum=None))
    other = copy.deepcopy(model)
    x = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    step = nn.value_and_grad(lambda model, x: total(model(x)))
    compiled = nn.jit(step)
    for _ in range(3):
        _, gradients = step(model, x)
        _, of_compiled = compiled(other, x)
        x = x * 1.5
    assert list(gradients) == ["0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias"]
    close_dicts(of_compiled, gradients, 1e-4)
    close_dicts(other.state_dict(), model.state_dict())
    assert int(other[3].num_batches_tracked) == 3
    close(nn.jit(other.eval())(x), model.eval()(x))


def test_running_statistics_of_instances() -> None:
    x = np.random.default_rng(0).normal(size=(4, 3, 5))
    model = nn.InstanceNorm1d(3, track_running_stats=True, dtype=np.float64)
    model(x)
    np.testing.assert_allclose(model.running_mean.value, 0.1 * x.mean((0, 2)))
    np.testing.assert_allclose(model.running_var.value, 0.9 + 0.1 * x.var(2, ddof=1).mean(0))
    np.testing.assert_allclose(model(x[0]), model(x)[0])


def test_statistics_of_the_batch_without_running_ones() -> None:
    x = np.random.default_rng(0).normal(size=(4, 3))
    model = nn.BatchNorm1d(3, affine=False, track_running_stats=False).eval()
    np.testing.assert_allclose(model(x), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5))


# Dropout


def test_dropout_drops_and_scales() -> None:
    model, x = nn.Dropout(0.25), np.ones((100, 100), np.float32)
    y = model(x)
    np.testing.assert_allclose(np.unique(y), [0, 4 / 3], rtol=1e-6)
    np.testing.assert_allclose((y == 0).mean(), 0.25, atol=0.02)
    assert (model(x) != y).any()
    assert model.eval()(x) is x


def test_dropout_is_the_same_compiled() -> None:
    x = np.ones((5, 7), np.float32)
    eager = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5))
    other = copy.deepcopy(eager)
    compiled = nn.jit(lambda model, x: model(x))
    for _ in range(3):
        np.testing.assert_array_equal(eager(x), compiled(other, x))
    out, new = nn.functional_call(eager, nn.state_of(eager), x)
    np.testing.assert_array_equal(out, eager(x))
    close_dicts(new, nn.state_of(eager), 0)


def test_copied_layers_draw_different_numbers() -> None:
    layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 3).layers
    assert len({layer.dropout.rng.value.tobytes() for layer in layers}) == 3
    np.testing.assert_array_equal(layers[0].linear1.weight.value, layers[1].linear1.weight.value)


# Linear maps and convolutions


@pytest.mark.parametrize("mode", ["arrays", "tensors", "jit"])
def test_rows_of_a_table_are_scaled_down(mode: str) -> None:
    table = np.array([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]], np.float32)
    model = nn.Embedding.from_pretrained(table, freeze=False, max_norm=1.0)
    indices = np.array([0, 1, 0])
    loss = lambda model, i: np.sum(model(i) * np.float32([[1], [2], [3]]))  # noqa: E731
    if mode == "tensors":
        loss(model, autograd.tensor(indices)).backward()
        gradient = model.weight.grad.numpy()
    else:
        step = nn.grad(loss) if mode == "arrays" else nn.jit(nn.grad(loss))
        gradient = step(model, indices)["weight"]
    # Made with torch.
    close(model.weight.value, np.float32([[0.6, 0.8], [0.3, 0.4], [6, 8]]))
    close(gradient, np.float32([[4, 4], [2, 2], [0, 0]]))


@pytest.mark.parametrize("text", ["Linear(3, 2, {})", "Conv1d(3, 2, 2, {})", "BatchNorm1d(3, {})", "LSTM(3, 2, {})"])
def test_device_and_dtype_of_new_layers(text: str) -> None:
    made = Row(text.format("device='cpu', dtype=None"), ()).make()
    assert {str(p.array.devices()) for p in made.parameters()} == {"{CpuDevice(id=0)}"}
    assert {p.dtype for p in made.parameters()} == {np.dtype(np.float32)}
    with pytest.raises(ValueError, match="there is no device 'moon' here"):
        Row(text.format("device='moon'"), ()).make()


def test_padding_is_not_trained() -> None:
    model = nn.Embedding(4, 2, padding_idx=0)
    gradients = nn.grad(lambda model: np.sum(model(np.array([0, 1, 1]))))(model)
    np.testing.assert_array_equal(gradients["weight"], [[0, 0], [2, 2], [0, 0], [0, 0]])
    table = np.ones((3, 2))
    assert not next(nn.Embedding.from_pretrained(table).parameters()).requires_grad
    assert nn.Embedding.from_pretrained(table, freeze=False)(np.array(1)).tolist() == [1, 1]


def test_convolution_by_loops() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 4, 7, 6))
    model = nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2, dtype=np.float64)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)))
    y = model(x)
    expected = np.zeros(y.shape)
    for n, o, i, j in np.ndindex(y.shape):
        window = padded[n, 2 * (o // 3) : 2 * (o // 3) + 2, 2 * i : 2 * i + 3, j : j + 3 : 2]
        expected[n, o, i, j] = np.sum(window * model.weight.value[o]) + model.bias.value[o]
    np.testing.assert_allclose(y, expected)
    np.testing.assert_allclose(model(x[0]), y[0])


def test_transposed_convolution_is_the_transpose() -> None:
    rng = np.random.default_rng(0)
    forward = nn.Conv1d(3, 4, 3, stride=2, padding=1, bias=False, dtype=np.float64)
    back = nn.ConvTranspose1d(4, 3, 3, stride=2, padding=1, bias=False, dtype=np.float64)
    back.load_state_dict(forward.state_dict())
    for length in (7, 8):
        x = rng.normal(size=(1, 3, length))
        y = rng.normal(size=forward(x).shape)
        np.testing.assert_allclose(np.sum(forward(x) * y), np.sum(x * back(y, output_size=(length,))))
    with pytest.raises(ValueError, match=r"output_size .* from \(7,\) to \(8,\)"):
        back(y, output_size=(9,))


# Attention


def test_attention_by_loops() -> None:
    rng = np.random.default_rng(0)
    model = nn.MultiheadAttention(6, 2, kdim=5, vdim=4, batch_first=True, dtype=np.float64)
    q, k, v = (rng.normal(size=(2, n, d)) for n, d in ((3, 6), (4, 5), (4, 4)))
    blocked = np.zeros((2, 4), bool)
    blocked[1, 3] = True
    y, weights = model(q, k, v, key_padding_mask=blocked, average_attn_weights=False)
    biases = np.split(model.in_proj_bias.value, 3)
    matrices = (model.q_proj_weight, model.k_proj_weight, model.v_proj_weight)
    projected = [x @ w.value.T + b for x, w, b in zip((q, k, v), matrices, biases, strict=True)]
    found = np.zeros((2, 3, 6))
    for n, head, i in np.ndindex(2, 2, 3):
        part = slice(3 * head, 3 * head + 3)
        scores = projected[1][n, :, part] @ projected[0][n, i, part] / math.sqrt(3)
        share = np.exp(scores) * ~blocked[n]
        share /= share.sum()
        np.testing.assert_allclose(weights[n, head, i], share, atol=1e-12)
        found[n, i, part] = share @ projected[2][n, :, part]
    np.testing.assert_allclose(y, found @ model.out_proj.weight.value.T + model.out_proj.bias.value)
    averaged = model(q, k, v, key_padding_mask=blocked)[1]
    np.testing.assert_allclose(averaged, weights.mean(1))
    assert model(q, k, v, need_weights=False)[1] is None


@pytest.mark.parametrize("batch_first", [True, False])
def test_decoding_step_by_step_is_the_full_pass(batch_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first, norm_first=True)
    model = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)).eval()
    x = np.random.default_rng(0).normal(size=(3, 6, 8)).astype(np.float32)
    steps = [x[:, :3], x[:, 3:4], x[:, 4:6]]
    swap = (lambda x: x) if batch_first else (lambda x: np.swapaxes(x, 0, 1))
    full = swap(model(swap(x), is_causal=True))
    caches = model.new_cache(batch_size=3, max_length=7)
    parts = [swap(model(swap(part), cache=caches)) for part in steps]
    close(np.concatenate(parts, 1), full)
    assert [int(c.length) for c in caches] == [6, 6]
    assert not caches.state_dict()
    with pytest.raises(ValueError, match="holds max_length=7 positions, 6 of which are in use, so 2 more"):
        model(swap(x[:, :2]), cache=caches)
    assert int(caches[0].length) == 6
    for cache in caches:
        cache.reset()
    first = autograd.tensor(swap(x[:, :2]), requires_grad=True)
    out = model(first, cache=caches)
    close(swap(out.detach().numpy()), full[:, :2])
    out.sum().backward()
    expected = ft.grad(lambda x: nn.functional_call(model, {}, x, is_causal=True)[0].sum())(swap(x[:, :2]))
    close(first.grad, expected)


def test_decoding_compiled() -> None:
    layer = nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True)
    model = nn.TransformerDecoder(layer, 2).eval()
    rng = np.random.default_rng(0)
    x, memory = (rng.normal(size=(2, n, 8)).astype(np.float32) for n in (4, 3))
    full = model(x, memory, tgt_is_causal=True)
    caches = model.new_cache(2, 4)
    step = nn.jit(lambda model, caches, x, memory: model(x, memory, cache=caches))
    parts = [step(model, caches, x[:, i : i + 1], memory) for i in range(4)]
    close(np.concatenate(parts, 1), full)
    assert np.isnan(step(model, caches, x[:, :1], memory)).all()


def test_causal_attention_sees_no_future() -> None:
    model = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True, dtype=np.float64)
    x = np.random.default_rng(0).normal(size=(1, 5, 4))
    jacobian = ft.jacobian(lambda x: model(x[None], is_causal=True)[0])(x[0])
    moved = np.abs(np.asarray(jacobian)).sum((1, 3))
    np.testing.assert_array_equal(moved > 0, np.tri(5, dtype=bool))
    mask = nn.Transformer.generate_square_subsequent_mask(5, np.float64)
    close(model(x, src_mask=mask), model(x, is_causal=True), 1e-12)
    close(model(x, src_mask=mask == -np.inf), model(x, is_causal=True), 1e-12)


# Recurrent layers


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers_are_their_cells_in_a_loop(kind: str) -> None:
    rng = np.random.default_rng(0)
    model = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True, dtype=np.float64)
    x = rng.normal(size=(5, 2, 3))
    output, last = model(x)
    inputs, ends = x, []
    for layer in range(2):
        outputs = []
        for ending in (f"_l{layer}", f"_l{layer}_reverse"):
            cell = getattr(nn, kind + "Cell")(inputs.shape[-1], 4, dtype=np.float64)
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            cell.load_state_dict({name: getattr(model, name + ending) for name in names})
            state, found = None, []
            for row in inputs[::-1] if "reverse" in ending else inputs:
                state = cell(row, state)
                found.append(state[0] if kind == "LSTM" else state)
            outputs.append(found[::-1] if "reverse" in ending else found)
            ends.append(state)
        inputs = np.concatenate(outputs, -1)
    np.testing.assert_allclose(output, inputs)
    states = [np.stack(x) for x in zip(*ends, strict=True)] if kind == "LSTM" else np.stack(ends)
    close(last, states, 1e-12)
    first = getattr(nn, kind)(3, 4, 2, bidirectional=True, batch_first=True, dtype=np.float64)
    first.load_state_dict(model.state_dict())
    close(first(x.swapaxes(0, 1))[0].swapaxes(0, 1), output, 1e-12)
    close(model(x[:, 0])[0], output[:, 0], 1e-12)


def test_dropout_between_recurrent_layers() -> None:
    model, x = nn.LSTM(3, 50, num_layers=2, dropout=0.5), np.ones((4, 2, 3), np.float32)
    first, second = model(x)[0], model(x)[0]
    assert np.abs(first - second).max() > 1e-3
    other = copy.deepcopy(model)
    close(nn.jit(other)(x), model(x))
    model.eval()
    close(model(x), model(x), 0)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers_of_other_dtypes(kind: str) -> None:
    model = getattr(nn, kind)(3, 4)
    x = np.arange(12).reshape(2, 2, 3) % 3
    first = np.ones((1, 2, 4))
    expected = model(x.astype(np.float64))[0]
    assert expected.dtype == np.float64
    close(model(x)[0], expected, 1e-6)
    mixed = model(x.astype(np.float32), (first, first) if kind == "LSTM" else first)[0]
    assert mixed.dtype == np.float64
    cell = getattr(nn, kind + "Cell")(3, 4)
    for y in (cell(x[0]), cell(x[0].astype(np.float64))):
        assert (y[0] if kind == "LSTM" else y).dtype == np.float64


def test_groups_of_no_sample() -> None:
    assert nn.GroupNorm(1, 4)(np.ones((0, 4), np.float32)).shape == (0, 4)


def test_rotated_products_depend_on_differences_of_positions() -> None:
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 6)), rng.normal(size=(2, 6))
    for options in ({}, {"interleaved": True}, {"dim": 4}):
        layer = nn.RotaryEmbedding(**options)
        products = [layer(q, at) @ layer(k, at).T for at in (np.array([0, 3]), np.array([7, 10]))]
        close(products[0], products[1], 1e-12)
        close(layer(q)[0], q[0], 0)
        close(layer(q, np.array([0, 1])), layer(q), 0)
    # Elements i and i + 3 of the one are elements 2 i and 2 i + 1 of the other.
    order = [0, 3, 1, 4, 2, 5]
    close(nn.RotaryEmbedding()(q)[:, order], nn.RotaryEmbedding(interleaved=True)(q[:, order]), 1e-12)


# Lazy layers

LAZY = [
    ("Linear", "2, bias=False", (4, 3)),
    *((f"Conv{n}d", "4, 2, stride=2", (2, 3, *(5,) * n)) for n in (1, 2, 3)),
    *((f"ConvTranspose{n}d", "4, 2", (2, 3, *(4,) * n)) for n in (1, 2, 3)),
    *((f"BatchNorm{n}d", "momentum=0.3", (2, 3, *(4,) * n)) for n in (1, 2, 3)),
    *((f"InstanceNorm{n}d", "affine=True", (3, *(4,) * n)) for n in (1, 2, 3)),
]


@pytest.mark.parametrize(("name", "options", "shape"), LAZY, ids=[row[0] for row in LAZY])
def test_lazy_layers_become_others_in_their_first_call(name: str, options: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    plain = Row(f"{name}(3, {options}, dtype='float64')", ()).make()
    nn.manual_seed(0)
    lazy = nn.Sequential(Row(f"Lazy{name}({options})", ()).make()).double()
    copies = [copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy))]
    assert isinstance(lazy[0], type(plain))
    close(lazy(autograd.tensor(x)).detach().numpy(), plain(x), 1e-12)
    assert type(lazy[0]) is type(plain)
    assert repr(lazy[0]) == repr(plain)
    assert {p.path for p in lazy.parameters()} == {path for path, _ in lazy.named_parameters()}
    assert {p.dtype for p in lazy.parameters()} <= {np.dtype(np.float64)}
    for other in copies:
        assert other(x).shape == plain(x).shape


def test_what_lazy_layers_refuse() -> None:
    model = nn.Sequential(nn.LazyConv2d(2, 3, groups=2)).requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"0: LazyConv2d\(out.*call the model once with arrays, model\(x\)"):
        nn.jit(lambda model, x: model(x))(model, np.ones((1, 2, 4, 4), np.float32))
    with pytest.raises(ValueError, match="takes arrays with 4 or 3 axes"):
        model(np.ones((4, 4), np.float32))
    with pytest.raises(ValueError, match="groups=2 of Conv2d must divide in_channels=3"):
        model(np.ones((1, 3, 4, 4), np.float32))
    assert model[0].has_uninitialized_params()
    model(np.ones((1, 2, 4, 4), np.float32))
    assert not any(p.requires_grad for p in model.parameters())
    with pytest.raises(TypeError, match=r"LazyLinear\(out_features, .*missing a required argument"):
        nn.LazyLinear()


# Errors


@pytest.mark.parametrize(
    ("text", "inputs", "words"),
    [
        (
            "Linear(3, 2)",
            [(5, 4)],
            r"Linear\(in_features=3, .*\) expects .* last axis has 3 .*got f32\[5,4\]",
        ),
        ("Linear(3, 2)", [()], "last axis has 3 elements"),
        ("Bilinear(3, 4, 2)", [(5, 3), (5, 5)], "second inputs whose last axis has 4 elements"),
        ("Conv2d(3, 4, 3)", [(2, 4, 8, 8)], r"Conv2d\(3, 4, .*\(N, C, H, W\) or \(C, H, W\) with C = 3 channels"),
        ("Conv1d(3, 4, 3)", [(2, 2, 3, 8)], r"expects inputs of shape \(N, C, L\).*got f32\[2,2,3,8\]"),
        ("ConvTranspose1d(3, 4, 3)", [(2, 4, 8)], "with C = 3 channels"),
        ("BatchNorm2d(3)", [(2, 3)], r"expects inputs of shape \(N, C, H, W\) with C = 3"),
        ("BatchNorm1d(3)", [(2, 4)], r"\(N, C\) or \(N, C, L\) with C = 3 channels, got f32\[2,4\]"),
        ("BatchNorm1d(3)", [(1, 3)], "more than one value for each channel"),
        ("LayerNorm((3, 4))", [(5, 4, 3)], r"LayerNorm.* last axes have \(3, 4\) elements, got f32\[5,4,3\]"),
        ("GroupNorm(2, 4)", [(5, 3, 2)], "with C = 4 channels"),
        ("MultiheadAttention(4, 2)", [(5, 2, 4), (5, 2, 3), (5, 2, 4)], "expects keys whose last axis has 4"),
        ("MultiheadAttention(4, 2)", [(5, 2, 4), (5, 1, 4), (5, 1, 4)], r"query \(L, N, E\), key \(S, N, K\)"),
        ("Upsample(scale_factor=0.2)", [(1, 1, 4)], "is empty"),
        ("Upsample(2, align_corners=True)", [(1, 1, 4)], "omit it"),
        ("Unfold(3)", [(1, 1, 2, 4)], "kernel_size of unfold spans 3 x 3"),
        ("Fold(3, 2)", [(1, 4, 3)], r"takes input of shape \(..., channels \* 4, 4\)"),
        ("LSTM(3, 4)", [(5, 2, 4)], r"LSTM\(3, 4\) expects inputs whose last axis has 3 elements"),
        ("GRUCell(3, 4)", [(5, 2)], r"GRUCell\(3, 4\) expects inputs whose last axis has 3 elements"),
        ("Flatten(2, 1)", [(2, 3, 4)], "empty range of axes"),
        ("Unflatten(1, (2, 2))", [(4, 6)], "cannot be divided into"),
    ],
)
def test_inputs_that_do_not_fit(text: str, inputs: list[tuple[int, ...]], words: str) -> None:
    model = nn.Sequential(nn.Identity(), Row(text, ()).make())
    with pytest.raises(ValueError, match=words) as caught:
        model[1](*(np.ones(shape, np.float32) for shape in inputs))
    assert any("1: " in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Conv2d(3, 4, 3, groups=2)", "groups=2 of Conv2d must divide in_channels=3"),
        ("Conv2d(3, 4, (3, 3, 3))", "kernel_size must be an integer or 2 of them"),
        ("Conv2d(3, 4, 3, padding='some')", "'valid' or 'same'"),
        ("Conv2d(3, 4, 3, padding='same', stride=2)", "stride 1"),
        ("Conv2d(3, 4, 3, padding_mode='mirror')", "padding_mode must be one of 'zeros'"),
        ("Linear(-1, 2)", "negative size"),
        ("Embedding(3, 2, padding_idx=3)", "out of range for the 3 vectors"),
        ("Dropout(1.5)", "p=1.5 of Dropout"),
        ("GroupNorm(2, 3)", "cannot divide 3 channels into 2 groups"),
        ("MultiheadAttention(5, 2)", "num_heads=2 does not divide embed_dim=5"),
        ("TransformerEncoderLayer(4, 2, activation='swish')", "'relu', 'gelu' or a function"),
        ("RNN(3, 4, nonlinearity='sigmoid')", "'tanh' or 'relu'"),
        ("LSTM(3, 4, proj_size=4)", "proj_size=4 of LSTM must be less than hidden_size=4"),
        ("LSTM(3, 0)", "hidden_size must be at least 1"),
        ("Conv2d(3, 4, 3, stride=(1, 0))", "stride must be at least 1"),
        ("ConvTranspose1d(3, 4, 0)", "kernel_size must be at least 1"),
        ("Upsample(2, mode='cubic')", "mode of Upsample must be one of 'nearest'"),
        ("MSELoss(reduction='avg')", "reduction of MSELoss must be one of 'none', 'mean', 'sum', not 'avg'"),
    ],
)
def test_settings_that_do_not_fit(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Row(text, ()).make()


def test_a_cache_with_masks() -> None:
    model, x = nn.MultiheadAttention(6, 2, batch_first=True), np.random.default_rng(0).normal(size=(2, 5, 6))
    x = x.astype(np.float32)
    # The second sequence begins with two places of padding; of the others, one is not looked at by all.
    padding, mask = np.zeros((2, 8), bool), np.zeros((5, 8), np.float32)
    padding[1, :2], mask[3, 1] = True, -math.inf
    expected, _ = model(x, x, x, padding[:, :5], attn_mask=mask[:, :5], is_causal=True)
    for step in (lambda m, x, **options: m(x, x, x, **options)[0], nn.jit(lambda m, x, **o: m(x, x, x, **o)[0])):
        cache = model.new_cache(2, 8)
        parts = [
            step(model, x[:, i : i + 1], key_padding_mask=padding, attn_mask=mask[i : i + 1], cache=cache)
            for i in range(5)
        ]
        close(np.concatenate(parts, axis=1), expected)
    with pytest.raises(ValueError, match=r"key_padding_mask must be of shape \(2, 8\)"):
        model(x, x, x, padding[:, :5], cache=model.new_cache(2, 8))
    added = nn.MultiheadAttention(6, 2, add_zero_attn=True, batch_first=True)
    with pytest.raises(ValueError, match="takes no cache"):
        added(x, x, x, cache=added.new_cache(2, 8))


def test_a_cache_of_another_size() -> None:
    model, x = nn.MultiheadAttention(4, 2, batch_first=True), np.ones((1, 1, 4), np.float32)
    cache = model.new_cache(1, 4)
    with pytest.raises(ValueError, match="for 1 sequences"):
        model(*(np.ones((2, 1, 4), np.float32),) * 3, cache=cache)
    with pytest.raises(ValueError, match="one cache for each layer"):
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)(x, cache=[cache])
