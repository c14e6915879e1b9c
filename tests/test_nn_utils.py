"""nn.utils against figures of torch, in every mode: on arrays, compiled, define-by-run; and what it refuses."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
import tables
from nn_utils_rows import CALLS, FIGURES, LENGTHS, ROWS, Row, leaves, total

import ftrans as ft
from ftrans import nn
from ftrans.nn.utils import rnn

STORED = json.loads(FIGURES.read_text())


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-8, atol=1e-8)


def check(row: Row, out: Any, inputs: Any, gradients: dict[str, Any], model: Any) -> None:
    """Compare with the figures of torch."""
    stored = STORED[row.name]
    for found, expected in zip(leaves(out), stored["out"], strict=True):
        close(found, expected)
    for found, expected in zip(inputs, stored["inputs"], strict=True):
        assert expected is not None or found is None or not found.any()
        if expected is not None:
            close(found, expected)
    assert set(stored["gradients"]) <= set(gradients)
    for path, expected in stored["gradients"].items():
        close(gradients[path], expected)
    assert list(model.state_dict()) == list(stored["state"])
    for path, expected in stored["state"].items():
        close(model.state_dict()[path], expected)


def differentiated(row: Row, model: Any, compiled: bool) -> tuple[Any, Any, Any]:
    """Results, and gradients of inputs and parameters, by `nn.value_and_grad`."""

    def loss(model: Any, *xs: Any) -> Any:
        out = row.forward(nn, model, *xs)
        return total(out, np.sin), out

    f = nn.value_and_grad(loss, argnums=tuple(range(1 + len(row.inputs))), has_aux=True)
    (_, out), (gradients, *inputs) = (nn.jit(f) if compiled else f)(model, *row.arrays())
    return out, inputs, gradients


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_equals_torch(row: Row) -> None:
    model = row.build(nn)
    copied = copy.deepcopy(model)
    copied = pickle.loads(pickle.dumps(copied)) if row.pickled else copied
    check(row, *differentiated(row, model, compiled=False), model)
    check(row, *differentiated(row, copied, compiled=row.compiled or tables.whole), copied)
    recorded = row.build(nn)
    inputs = [ft.autograd.tensor(x, requires_grad=True) for x in row.arrays()]
    out = row.forward(nn, recorded, *inputs)
    total(out, np.sin).backward()
    gradients = {path: p.grad.numpy() for path, p in recorded.named_parameters() if p.grad is not None}
    check(row, [x.detach() if hasattr(x, "detach") else x for x in leaves(out)], [x.grad for x in inputs],
          gradients, recorded)  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_functions_equal_torch(name: str) -> None:
    for found, expected in zip(CALLS[name](nn, ft.autograd.tensor), STORED["calls"][name], strict=True):
        assert (found is None) == (expected is None)
        if expected is not None:
            close(getattr(found, "data", found), expected)


# Packed sequences


def packed_loss(model: Any, x: Any, lengths: Any) -> Any:
    out, _ = model(rnn.pack_padded_sequence(x, lengths, enforce_sorted=False))
    return (rnn.pad_packed_sequence(out)[0] ** 2).sum()


def test_lengths_as_arguments_need_one_program() -> None:
    model, traced = nn.GRU(2, 3, bidirectional=True), []
    x = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)

    def loss(model: Any, x: Any, lengths: Any) -> Any:
        traced.append(lengths)
        return packed_loss(model, x, lengths)

    step = nn.jit(nn.value_and_grad(loss))
    for lengths in (LENGTHS, [4, 4, 4], [1, 2, 3]):
        value, gradients = step(model, x, np.array(lengths))
        expected, others = nn.value_and_grad(packed_loss)(model, x, lengths)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        for path, g in others.items():
            np.testing.assert_allclose(gradients[path], g, rtol=1e-4, atol=1e-5)
    assert len(traced) == 1
    each = nn.vmap(packed_loss, in_axes=(None, None, 0))(model, x, np.array([LENGTHS, [1, 2, 3]]))
    np.testing.assert_allclose(each[0], packed_loss(model, x, LENGTHS), rtol=1e-5)


def test_packed_sequences_as_arguments_and_results() -> None:
    x = np.random.default_rng(0).normal(size=(4, 3, 2))
    packed = rnn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    doubled = nn.jit(lambda p: p._replace(data=2 * p.data))(packed)
    np.testing.assert_array_equal(doubled.data, 2 * packed.data)
    assert doubled.sorted_indices.tolist() == packed.sorted_indices.tolist()
    gradient = ft.grad(lambda p: (p.data**2).sum())(packed)
    np.testing.assert_array_equal(gradient.data, 2 * packed.data)
    # When the function that traced the lengths has returned, they are known.
    returned = nn.jit(lambda x, n: rnn.pack_padded_sequence(x, n, enforce_sorted=False))(x, np.array(LENGTHS))
    for a, b in zip(returned, packed, strict=True):
        np.testing.assert_array_equal(a, b)
    assert packed.float().data.dtype == np.float32
    assert packed[0] is packed.data
    assert len(packed) == 4
    again = pickle.loads(pickle.dumps(packed))
    np.testing.assert_array_equal(again.data, packed.data)
    assert repr(again).startswith("PackedSequence(data=")


def test_padding_has_no_influence() -> None:
    """Whatever the padding holds."""
    model = nn.LSTM(2, 3, num_layers=2, bidirectional=True)
    x = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)
    expected = nn.value_and_grad(packed_loss, argnums=(0, 1))(model, x, LENGTHS)
    for i, length in enumerate(LENGTHS):
        x[length:, i] = np.nan
    for given in (LENGTHS, np.array(LENGTHS)):
        f = nn.value_and_grad(packed_loss, argnums=(0, 1))
        found = (nn.jit(f) if given is not LENGTHS else f)(model, x, given)
        for a, b in zip(ft.base.tree.flatten(found)[0], ft.base.tree.flatten(expected)[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


X = np.ones((4, 3, 2), np.float32)
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: rnn.pack_padded_sequence(X, [2, 4, 1]), ValueError, "enforce_sorted=False"),
    (lambda: rnn.pack_padded_sequence(X, [5, 1, 1]), ValueError, r"from 1 to the 4 steps .* not \[5, 1, 1\]"),
    (lambda: rnn.pack_padded_sequence(X, [4, 1, 0]), ValueError, "leave out empty sequences"),
    (lambda: rnn.pack_padded_sequence(X, [4, 1]), ValueError, "3 integers, one for each sequence"),
    (lambda: rnn.pack_padded_sequence(X, [4.0, 1.0, 1.0]), ValueError, r"not f64\[3\]"),
    (lambda: rnn.pack_padded_sequence(X[0, 0], [1]), ValueError, r"\(T, N, ...\), not f32\[2\]"),
    (lambda: rnn.pad_packed_sequence(X), TypeError, "takes a PackedSequence"),
    (lambda: rnn.pad_packed_sequence(rnn.pack_padded_sequence(X, [4, 1, 1]), total_length=3), ValueError, "at least"),
    (lambda: rnn.pad_sequence([]), ValueError, "an empty list"),
    (lambda: rnn.pad_sequence([X, X[0]]), ValueError, "differ in axis 0 only"),
    (lambda: rnn.pad_sequence([X], padding_side="top"), ValueError, "'left' or 'right', not 'top'"),
    (lambda: rnn.pack_padded_sequence(X, [4, 1, 1]).to("cuda"), TypeError, "before it is packed"),
    (lambda: nn.jit(lambda n: rnn.pack_padded_sequence(X, n))(np.array([5, 1, 1])).data, ValueError, "the 4 steps"),
    (lambda: rnn.PackedSequence(X, [1, 2]), ValueError, r"\[1, 2\] for f32\[4,3,2\]"),
    (lambda: nn.GRU(3, 4)(rnn.pack_padded_sequence(X, [4, 1, 1])), ValueError, "last axis has 3 elements"),
    (lambda: nn.functional.gru(X, None, [(X[0], X[0, :, :1])], lengths=[1, 2, 9]), ValueError, "from 1 to T=4"),
    (lambda: ft.jit(lambda n: rnn.pack_padded_sequence(X, n).data)(np.array([4, 1, 1])), TypeError, "static_argnums"),
    (lambda: ft.jit(lambda n: rnn.unpad_sequence(X, n))(np.array([4, 1, 1])), TypeError, "a mask"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "error", "message"), REFUSED)
def test_refused(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        f()
    assert __file__ in str(caught.value)


# Parametrizations

parametrize, parametrizations = nn.utils.parametrize, nn.utils.parametrizations


class Doubled(nn.Module):
    calls = 0

    def forward(self, x: Any) -> Any:
        Doubled.calls += 1
        return 2 * x

    def right_inverse(self, x: Any) -> Any:
        return x / 2


class Halved(Doubled):
    def forward(self, x: Any) -> Any:
        return super().forward(x)[:1]


class Softened(nn.Module):
    def forward(self, x: Any) -> Any:
        return np.log1p(np.exp(x))


def complex_layer() -> Any:
    layer = nn.Linear(2, 2)
    layer.weight = nn.Parameter(np.array([[1, 2j], [3, 4]], np.complex64))
    return layer


def double_linear() -> Any:
    return parametrize.register_parametrization(nn.Linear(3, 2), "weight", Doubled())


def test_a_parametrization_and_back() -> None:
    layer = nn.Linear(3, 2)
    weight, before = layer.weight, layer.weight.value
    assert parametrize.register_parametrization(layer, "weight", Doubled()) is layer
    assert parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert layer.parametrizations.weight.original is weight
    assert weight.path == "parametrizations.weight.original"
    np.testing.assert_allclose(layer.weight.detach(), before)
    np.testing.assert_allclose(weight.value, before / 2)
    layer.weight = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(weight.value, np.full((2, 3), 0.5))
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert isinstance(layer, nn.Linear)
    assert "weight" in dir(layer)
    assert layer.get_parameter("parametrizations.weight.original") is weight
    assert parametrize.remove_parametrizations(layer, "weight") is layer
    assert type(layer) is nn.Linear
    assert layer.weight is weight
    np.testing.assert_array_equal(weight.value, np.ones((2, 3)))
    assert list(layer.state_dict()) == ["bias", "weight"]
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    value = layer.weight.detach().numpy()
    parametrize.remove_parametrizations(layer, "weight")
    np.testing.assert_array_equal(layer.weight.value, value)
    assert layer.weight.requires_grad
    layer = double_linear()
    held = layer.parametrizations.weight.original.value
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    np.testing.assert_array_equal(layer.weight.value, held)


def test_values_are_kept_in_a_block() -> None:
    layer, x = double_linear(), np.ones((1, 3), np.float32)
    Doubled.calls = 0
    with parametrize.cached():
        first = layer(x)
        np.testing.assert_array_equal(layer(x), first)
        assert Doubled.calls == 1
        # What depends on other arrays, or is recorded, is computed anew.
        recorded = [layer(ft.autograd.tensor(x)) for _ in range(2)]
        assert Doubled.calls == 2
        sum(recorded).sum().backward()
        gradients = nn.grad(lambda m: m(x).sum())(layer)
        new, _ = nn.functional_call(layer, {"parametrizations.weight.original": np.zeros((2, 3), np.float32)}, x)
        np.testing.assert_array_equal(new[0], layer.bias.value)
        layer.parametrizations.weight.original.value = np.zeros((2, 3), np.float32)
        np.testing.assert_array_equal(layer(x)[0], layer.bias.value)
    np.testing.assert_allclose(
        layer.parametrizations.weight.original.grad.numpy(), 2 * gradients["parametrizations.weight.original"]
    )


def test_parametrized_modules_are_trained_and_copied() -> None:
    import optax

    model = nn.Sequential(parametrizations.orthogonal(nn.Linear(3, 3)), parametrizations.spectral_norm(nn.Linear(3, 2)))
    optimizer, traced = nn.Optimizer(model, optax.adam(0.1)), []
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

    @nn.jit
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        traced.append(x)
        loss, gradients = nn.value_and_grad(lambda model, x: ((model(x) - x[:, :2]) ** 2).mean())(model, x)
        optimizer.step(gradients)
        return loss

    losses = [float(step(model, optimizer, x)) for _ in range(5)]
    assert losses[-1] < losses[0]
    assert len(traced) == 1
    w = model[0].weight.detach().numpy()
    np.testing.assert_allclose(w @ w.T, np.eye(3), atol=1e-5)
    copied, model = copy.copy(model[0]), model.eval()
    np.testing.assert_array_equal(copied.weight.detach(), w)
    # A model of the same structure runs the same program, and nn.vmap takes several.
    other = copy.deepcopy(model)
    run = nn.jit(lambda m, x: (traced.append(x), m(x))[1])
    np.testing.assert_array_equal(run(model, x), run(other, x))
    assert len(traced) == 2
    stacked = nn.stack_modules([model, other])
    np.testing.assert_allclose(nn.vmap(lambda m, x: m(x), in_axes=(0, None))(stacked, x)[1], model(x), atol=1e-6)
    per_sample = nn.vmap(nn.grad(lambda m, x: m(x).sum()), in_axes=(None, 0))(model, x)
    assert per_sample["0.parametrizations.weight.original"].shape == (4, 3, 3)
    np.testing.assert_array_equal(nn.merge(*nn.split(model))(x), model(x))


def test_orthogonal_weights_may_be_assigned() -> None:
    rng = np.random.default_rng(0)
    for shape in ((3, 3), (2, 3), (3, 2)):
        q = np.linalg.qr(rng.normal(size=(max(shape), min(shape))))[0].astype(np.float32)
        q = q if shape[0] >= shape[1] else q.T
        for options in ({}, {"orthogonal_map": "householder", "use_trivialization": False}):
            layer = parametrizations.orthogonal(nn.Linear(*shape[::-1]), **options)
            layer.weight = q
            np.testing.assert_allclose(layer.weight.detach(), q, atol=1e-6)
    u = parametrizations.orthogonal(complex_layer()).weight.detach().numpy()
    np.testing.assert_allclose(u @ u.conj().T, np.eye(2), atol=1e-6)


def test_parametrizations_are_transferred() -> None:
    given, other = double_linear(), nn.Linear(3, 2)
    parametrize.transfer_parametrizations_and_params(given, other)
    np.testing.assert_array_equal(other.weight.detach(), given.weight.detach())
    assert other.parametrizations.weight[0] is given.parametrizations.weight[0]


def test_older_norms_are_removed() -> None:
    for name, more in (("weight_norm", 2), ("spectral_norm", 3)):
        layer = getattr(nn.utils, name)(nn.Linear(3, 2))
        value = layer.weight.detach().numpy()
        assert len(layer.state_dict()) == 1 + more
        getattr(nn.utils, f"remove_{name}")(layer)
        assert type(layer) is nn.Linear
        assert list(layer.state_dict()) == ["bias", "weight"]
        np.testing.assert_array_equal(layer.weight.value, value)
        assert "_hooks" not in vars(layer)


class Occupied(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Parameter(np.ones((2, 2)))

    @property
    def weight_v(self) -> int:
        return 0


def test_what_fails_changes_nothing() -> None:
    module = Occupied()
    weight = module.weight
    with pytest.raises(AttributeError, match="weight_v"):
        nn.utils.weight_norm(module)
    assert type(module) is Occupied
    assert vars(module).keys() == {"weight"}
    assert module.weight is weight
    layer = nn.Linear(3, 2)
    before = layer.weight.value
    with pytest.raises(ValueError, match="unsafe=True"):
        parametrize.register_parametrization(layer, "weight", Halved())
    np.testing.assert_array_equal(layer.weight.value, before)
    assert type(layer) is nn.Linear


class WithProperty(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Parameter(np.ones(2))

    @property
    def failing(self) -> Any:
        raise AttributeError("the reason")

    def __getattr__(self, name: str) -> Any:
        if name == "special":
            return 3
        raise AttributeError(f"nothing called {name}")


def test_other_attributes_are_looked_up_as_before() -> None:
    layer = double_linear()
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'wait'"):
        layer.wait  # noqa: B018
    own = parametrize.register_parametrization(WithProperty(), "weight", Doubled())
    assert own.special == 3
    with pytest.raises(AttributeError, match="nothing called other"):
        own.other  # noqa: B018


class Declared(nn.Module):
    weight: Any = None

    def __init__(self) -> None:
        self.weight = nn.Parameter(np.ones((2, 2)))


REFUSED_PARAMETRIZATIONS: list[tuple[Any, type[Exception], str]] = [
    (lambda: parametrize.register_parametrization(nn.Linear(3, 2), "w", Doubled()), ValueError, "it has weight, bias"),
    (lambda: parametrize.register_parametrization(Declared(), "weight", Doubled()), ValueError, "from the class"),
    (lambda: parametrize.register_parametrization(nn.Linear(3, 2), "weight", abs), TypeError, "takes a Module"),
    (lambda: parametrize.register_parametrization(nn.Linear(3, 2), "weight", nn.Flatten(0)), ValueError, "unsafe=True"),
    (lambda: parametrize.register_parametrization(double_linear(), "weight", nn.Flatten(0)), ValueError, "unsafe=True"),
    (lambda: parametrize.register_parametrization(nn.utils.weight_norm(nn.Linear(3, 2)), "weight", Doubled()),
     ValueError, "already computed"),
    (lambda: parametrize.remove_parametrizations(nn.Linear(3, 2), "weight"), ValueError, "has no parametrization"),
    (lambda: parametrize.remove_parametrizations(parametrizations.weight_norm(nn.Linear(3, 2)), "weight", False),
     ValueError, "2 arrays"),
    (lambda: setattr(parametrize.register_parametrization(nn.Linear(3, 2), "weight", Softened()), "weight", X),
     NotImplementedError, "has no right_inverse"),
    (lambda: setattr(double_linear(), "weight", X), ValueError, r"gives f32\[4,3,2\], where f32\[2,3\]"),
    (lambda: setattr(parametrizations.orthogonal(nn.Linear(3, 2)), "weight", X), ValueError, r"shape \(2, 3\)"),
    (lambda: setattr(nn.utils.weight_norm(nn.Linear(3, 2)), "weight", X), TypeError, "weight_g and weight_v"),
    (lambda: parametrizations.spectral_norm(nn.Linear(3, 2), "w"), ValueError, "no parameter 'w'"),
    (lambda: parametrizations.spectral_norm(nn.Linear(3, 2), n_power_iterations=0), ValueError, "at least 1"),
    (lambda: parametrizations.orthogonal(nn.Linear(3, 2), "bias"), ValueError, "at least two axes"),
    (lambda: parametrizations.orthogonal(nn.Linear(3, 2), orthogonal_map="qr"), ValueError, "'cayley' or"),
    (lambda: parametrizations.orthogonal(complex_layer(), orthogonal_map="householder"), ValueError,
     "pass orthogonal_map='matrix_exp'"),
    (lambda: setattr(parametrizations.orthogonal(nn.Linear(3, 3), use_trivialization=False), "weight", X[:3, :, 0]),
     NotImplementedError, "use_trivialization=False"),
    (lambda: nn.utils.remove_weight_norm(nn.Linear(3, 2)), ValueError, "was normalized by that function"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "error", "message"), REFUSED_PARAMETRIZATIONS)
def test_refused_parametrizations(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        f()
    assert __file__ in str(caught.value)


# Other functions


def test_gradients_in_a_dictionary_are_clipped() -> None:
    model, x = nn.Linear(3, 2), np.ones((4, 3), np.float32)

    def step(model: Any, x: Any) -> Any:
        gradients = nn.grad(lambda model, x: (model(x) ** 2).sum())(model, x)
        before = dict(gradients)
        norm = nn.utils.clip_grad_norm_(gradients, 0.5, error_if_nonfinite=True)
        nn.utils.clip_grad_value_(gradients, 0.2)
        return norm, before, gradients

    run = nn.jit(step)
    for f in (step, run):
        norm, before, after = f(model, x)
        np.testing.assert_allclose(norm, nn.global_norm(before), rtol=1e-6)
        for path, g in before.items():
            np.testing.assert_allclose(after[path], np.clip(g * 0.5 / norm, -0.2, 0.2), rtol=1e-5)
    for f in (step, run):
        with pytest.raises(RuntimeError, match=r"norm of order 2\.0 of the gradients is not finite"):
            f(model, x * np.float32(np.nan))
    # The norm has a derivative of its own.
    np.testing.assert_allclose(ft.grad(lambda x: nn.utils.get_total_norm({"a": x}))(np.array([3.0, 4.0])), [0.6, 0.8])


def test_initial_values_are_skipped() -> None:
    nn.manual_seed(0)
    expected = nn.Linear(3, 2).weight.value
    nn.manual_seed(0)
    skipped = nn.utils.skip_init(nn.Linear, 3, out_features=2)
    assert {path: p.shape for path, p in skipped.named_parameters()} == {"weight": (2, 3), "bias": (2,)}
    np.testing.assert_array_equal(nn.Linear(3, 2).weight.value, expected)


def test_fused_layers_compute_the_same() -> None:
    nn.manual_seed(0)
    x = np.random.default_rng(0).normal(size=(2, 4, 5)).astype(np.float32)
    for conv, transpose in ((nn.Conv1d(4, 6, 2, groups=2), False), (nn.ConvTranspose1d(4, 6, 2, groups=2), True)):
        model = nn.Sequential(conv, nn.BatchNorm1d(6))
        model(x)
        model.eval()
        made = nn.utils.fuse_conv_bn_eval(model[0], model[1], transpose=transpose)
        np.testing.assert_allclose(made(x), model(x), atol=1e-5)
        assert made.weight.requires_grad


REFUSED_OTHERS: list[tuple[Any, type[Exception], str]] = [
    (lambda: nn.utils.clip_grad_norm_(nn.Linear(3, 2), -1.0), ValueError, "must not be negative"),
    (lambda: nn.utils.clip_grads_with_norm_(nn.Linear(3, 2), -1.0, 1.0), ValueError, "must not be negative"),
    (lambda: nn.utils.clip_grad_value_(nn.Linear(3, 2), -1.0), ValueError, "must not be negative"),
    (lambda: nn.utils.clip_grad_value_({"a": np.array([1j])}, 1.0), TypeError, "take clip_grad_norm_"),
    (lambda: nn.utils.clip_grad_norm_([1.0], 1.0), TypeError, "or a dictionary of gradients by name, not float"),
    (lambda: nn.utils.skip_init(nn.functional.linear, 3, 2), TypeError, r"skip_init\(nn.Linear, 3, 2\)"),
    (lambda: nn.utils.fuse_conv_bn_eval(nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3)), ValueError, r"model.eval\(\) first"),
    (lambda: nn.utils.fuse_conv_bn_eval(nn.Conv1d(2, 3, 1).eval(), nn.BatchNorm1d(4).eval()), ValueError, "4 features"),
    (lambda: nn.utils.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(3, track_running_stats=False).eval()),
     ValueError, "no running statistics"),
    (lambda: nn.utils.stateless.functional_call(nn.Linear(3, 2), {}, X, strict=True), ValueError, "misses weight"),
    (lambda: nn.utils.stateless.functional_call(nn.Linear(3, 2), {}, X, tie_weights=False), ValueError, "one cell"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "error", "message"), REFUSED_OTHERS)
def test_refused_elsewhere(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        f()
    assert __file__ in str(caught.value)


# Pruning

prune = nn.utils.prune


def test_pruned_modules_are_trained_and_copied() -> None:
    import optax

    model, x = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)), np.ones((5, 4), np.float32)
    prune.random_unstructured(model[0], "weight", 5)
    prune.random_structured(model[1], "weight", 0.34, dim=1)
    assert prune.is_pruned(model)
    assert (model[0].weight_mask.value == 0).sum() == 5
    assert (model[1].weight_mask.value == 0).sum(axis=0).tolist().count(2) == 1
    assert list(model.state_dict()) == [
        f"{i}.{name}" for i in (0, 1) for name in ("bias", "weight_orig", "weight_mask")
    ]
    mask, traced = model[0].weight_mask.value, []
    optimizer = nn.Optimizer(model, optax.sgd(0.1))

    @nn.jit
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        traced.append(x)
        optimizer.step(nn.grad(lambda model, x: (model(x) ** 2).sum())(model, x))

    before = model[0].weight_orig.value
    step(model, optimizer, x)
    np.testing.assert_array_equal((model[0].weight_orig.value == before)[mask == 0], True)
    prune.l1_unstructured(model[0], "weight", 3)
    step(model, optimizer, x)
    # Pruning further compiles nothing.
    assert len(traced) == 1
    assert (model[0].weight_mask.value == 0).sum() == 8
    copied = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    np.testing.assert_array_equal(copied(x), model(x))
    expected = model(x)
    for layer in model:
        prune.remove(layer, "weight")
    assert not prune.is_pruned(model)
    np.testing.assert_allclose(model(x), expected, rtol=1e-6)
    assert {type(layer) for layer in model} == {nn.Linear}


class FirstHalf(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        mask = default_mask.clone()
        mask.view(-1)[: t.numel() // 2] = 0
        return mask


def test_own_methods_and_their_order() -> None:
    layer = nn.Linear(4, 2)
    FirstHalf.apply(layer, "weight")
    assert layer.weight_mask.value.tolist() == [[0] * 4, [1] * 4]
    FirstHalf.apply(layer, "weight")
    assert layer.weight_mask.value.tolist() == [[0] * 4, [0, 0, 1, 1]]
    methods = prune.PruningContainer(FirstHalf(), prune.Identity())
    assert (len(methods), [type(m) for m in methods]) == (2, [FirstHalf, type(methods[1])])
    assert prune.L1Unstructured(1).prune(np.array([2.0, 1.0])).tolist() == [2.0, 0.0]
    scored = prune.l1_unstructured(nn.Linear(2, 1), "weight", 1, importance_scores=np.array([[1.0, 2.0]]))
    assert scored.weight_mask.value.tolist() == [[0, 1]]
    nuclear = prune.ln_structured(nn.Conv1d(2, 3, 2), "weight", 1, n="nuc", dim=0)
    assert (nuclear.weight_mask.value == 0).sum() == 4


class OfNoType(FirstHalf):
    PRUNING_TYPE = "other"


REFUSED_PRUNING: list[tuple[Any, type[Exception], str]] = [
    (lambda: prune.l1_unstructured(nn.Linear(3, 2), "weight", 1.5), ValueError, "fraction from 0.0 to 1.0, not 1.5"),
    (lambda: prune.l1_unstructured(nn.Linear(3, 2), "weight", -1), ValueError, "not -1"),
    (lambda: prune.l1_unstructured(nn.Linear(3, 2), "weight", "1"), TypeError, "not str"),
    (lambda: prune.l1_unstructured(nn.Linear(3, 2), "weight", 7), ValueError, "but there are 6"),
    (lambda: prune.l1_unstructured(nn.Linear(3, 2), "w", 1), ValueError, "it has weight, bias"),
    (lambda: prune.l1_unstructured(nn.Linear(3, 2), "weight", 1, X), ValueError, r"shape \(2, 3\) of the parameter"),
    (lambda: prune.ln_structured(nn.Linear(3, 2), "bias", 1, 2, 0), ValueError, "take l1_unstructured"),
    (lambda: prune.ln_structured(nn.Linear(3, 2), "weight", 1, "nuc", 0), ValueError, "slices that are matrices"),
    (lambda: prune.random_structured(nn.Linear(3, 2), "weight", 1, 2), IndexError, "dim=2"),
    (lambda: prune.custom_from_mask(nn.Linear(3, 2), "weight", X), ValueError, r"not \(4, 3, 2\)"),
    (lambda: prune.remove(nn.Linear(3, 2), "weight"), ValueError, "is not pruned"),
    (lambda: prune.global_unstructured([], prune.L1Unstructured, amount=1), ValueError, "no parameters"),
    (lambda: prune.global_unstructured([], prune.LnStructured, amount=1, n=2), TypeError, "which is structured"),
    (lambda: setattr(prune.identity(nn.Linear(3, 2), "weight"), "weight", X), TypeError, "assign weight_orig"),
    (lambda: prune.identity(parametrizations.weight_norm(nn.Linear(3, 2)), "weight"), ValueError, "already computed"),
    (lambda: OfNoType.apply(prune.identity(nn.Linear(3, 2), "weight"), "weight"), ValueError, "not 'other'"),
    (lambda: prune.PruningContainer(3), TypeError, "not int"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "error", "message"), REFUSED_PRUNING)
def test_refused_pruning(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        f()
    assert __file__ in str(caught.value)


# In forward code


class Reader(nn.Module):
    """Forward code of a user, with the methods of torch, over packed sequences."""

    def __init__(self) -> None:
        self.embedding = nn.Embedding(5, 2)
        self.encoder = parametrizations.weight_norm(nn.LSTM(2, 3, batch_first=True), "weight_hh_l0")
        self.decoder = prune.l1_unstructured(nn.Linear(3, 2), "weight", 2)

    def forward(self, tokens: Any, lengths: Any, packed: Any = None) -> Any:
        x = self.embedding(tokens)
        given = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        assert given.data.unsqueeze(0).size(0) == 1
        out, (h, _) = self.encoder(given)
        assert self.decoder.weight.unsqueeze(0).size(0) == 1
        assert packed is None or packed.data.unsqueeze(0).size(0) == 1
        return out, self.decoder(h[-1])


def test_forward_code_of_a_user() -> None:
    model, tokens = Reader(), np.array([[1, 2, 0], [1, 2, 3]])
    packed, out = model(tokens, np.array([2, 3]))
    assert type(packed.data) is np.ndarray
    assert type(out) is np.ndarray
    again, _ = model(tokens, [2, 3], packed)
    np.testing.assert_array_equal(again.data, packed.data)
    assert type(packed.data) is np.ndarray

    def loss(model: Any, tokens: Any, lengths: Any) -> Any:
        return (model(tokens, lengths)[1] ** 2).sum()

    gradients = nn.grad(loss)(model, tokens, [2, 3])
    given = ft.autograd.tensor(np.ones((3, 2, 2), np.float32))
    # Tensors are found inside packed sequences, so that gradients of parameters are recorded.
    found, _ = model.encoder(rnn.pack_padded_sequence(given, [3, 2]))
    assert found.data.requires_grad
    loss(model, ft.autograd.tensor(tokens), [2, 3]).backward()
    for path, p in model.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), gradients[path], atol=1e-6)


def test_computed_weights_are_exact_in_mixed_precision() -> None:
    layer = parametrizations.orthogonal(nn.Linear(5, 5))
    expected = layer.weight.detach().numpy()
    with nn.autocast("bfloat16"):
        np.testing.assert_allclose(nn.jit(lambda m: m.weight)(layer), expected, atol=1e-6)


def test_half_precision() -> None:
    x = np.ones((1, 3), np.float32)
    for f in (parametrizations.weight_norm, parametrizations.spectral_norm, parametrizations.orthogonal,
              nn.utils.weight_norm, nn.utils.spectral_norm):  # fmt: skip
        for dtype in ("float16", "bfloat16"):
            model = f(nn.Linear(3, 3)).to(dtype)
            given = x.astype(model.bias.dtype)
            assert model.weight.dtype == dtype
            assert model(given).dtype == model.bias.dtype
            np.testing.assert_allclose(model(given).astype(float), model.to("float32").eval()(x), atol=0.05)
