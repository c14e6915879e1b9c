"""Modules: attributes, names, state, switches, copies and errors."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import gc
import pickle
import weakref
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn

X = np.array([[1.0, -2.0, 3.0]], np.float32)


class Dense(nn.Module):
    """A linear map, with a buffer that counts calls."""

    def __init__(self, n, m, seed=0):
        rng = np.random.default_rng(seed)
        self.weight = nn.Parameter(rng.normal(size=(n, m)).astype(np.float32))
        self.bias = nn.Parameter(np.zeros(m, np.float32))
        self.calls = nn.Buffer(np.zeros((), np.int32))

    def forward(self, x):
        self.calls = self.calls + 1
        return x @ self.weight + self.bias

    def extra_repr(self):
        return "{}, {}".format(*self.weight.shape)


class Net(nn.Module):
    def __init__(self):
        self.first = Dense(3, 4)
        self.more = [Dense(4, 4, 1), {"inner": Dense(4, 3, 2)}]
        self.scratch = nn.Buffer(np.ones(2), persistent=False)
        self.stream = nn.RngState(3)

    def forward(self, x):
        return self.more[1]["inner"](np.tanh(self.more[0](np.tanh(self.first(x)))))


class Tied(nn.Module):
    def __init__(self):
        self.inner = Dense(3, 3)
        self.again = self.inner.weight
        self.same = self.inner

    def forward(self, x):
        return self.same(self.inner(x)) @ self.again


def test_names():
    net = Net()
    layers = ["first", "more.0", "more.1.inner"]
    assert [p for p, _ in net.named_parameters()] == [f"{m}.{p}" for m in layers for p in ("weight", "bias")]
    assert [p for p, _ in net.named_buffers()] == [*(f"{m}.calls" for m in layers), "scratch"]
    assert [p for p, _ in net.named_modules()] == ["", *layers]
    assert [p for p, _ in net.named_modules(prefix="net")] == ["net", *(f"net.{m}" for m in layers)]
    assert [p for p, _ in net.named_children()] == layers
    assert [p for p, _ in net.first.named_parameters(prefix="first")] == ["first.weight", "first.bias"]
    assert list(net.named_parameters(recurse=False)) == []
    assert [p for p, _ in net.named_buffers(recurse=False)] == ["scratch"]
    assert net.more[1]["inner"].weight.path == "more.1.inner.weight"
    assert net.get_submodule("more.0") is net.more[0]
    assert net.get_parameter("more.1.inner.bias") is net.more[1]["inner"].bias
    with pytest.raises(AttributeError, match=r"no module 'more\.2'; it has first, more\.0"):
        net.get_submodule("more.2")
    with pytest.raises(AttributeError, match=r"no parameter 'w'; it has first\.weight"):
        net.get_parameter("w")


@dataclasses.dataclass
class Pair:
    left: object
    size: int = 3


def test_containers_of_all_kinds_hold_modules():
    module = nn.Module()
    module.ordered = OrderedDict(a=Dense(1, 1))
    module.named = namedtuple("Both", "x y")(Dense(1, 1), 2)
    module.pair = Pair(Dense(1, 1))
    module.options = argparse.Namespace(layer=Dense(1, 1), k=1)
    assert [p for p, _ in module.named_children()] == ["ordered.a", "named.0", "pair.left", "options.layer"]
    assert set(module.state_dict()) == {
        f"{name}.{p}" for name, _ in module.named_children() for p in ("weight", "bias", "calls")
    }
    structure, state = nn.split(module)
    again = nn.merge(structure, {path: x + 1 for path, x in state.items()})
    assert again.pair.size == 3
    assert again.pair.left is not module.pair.left
    np.testing.assert_array_equal(again.named.x.bias.value, [1])
    np.testing.assert_array_equal(module.named.x.bias.value, [0])


def test_containers_that_hold_themselves():
    pair = Pair(Dense(1, 1))
    pair.size = [pair]
    module = nn.Module()
    module.pair = pair
    assert [p for p, _ in module.named_parameters()] == ["pair.left.weight", "pair.left.bias"]
    assert set(module.state_dict()) == {"pair.left.weight", "pair.left.bias", "pair.left.calls"}


@dataclasses.dataclass
class Declared(nn.Module):
    inner: nn.Module

    def forward(self, x):
        return self.inner(x)


def test_modules_that_are_dataclasses():
    module = Declared(Dense(3, 2))
    assert [p for p, _ in module.named_parameters()] == ["inner.weight", "inner.bias"]
    out, same = nn.jit(lambda m, x: (m(x), m))(module, X)
    np.testing.assert_allclose(out, X @ module.inner.weight.value, rtol=1e-5)
    assert same is module


def test_attributes():
    layer = Dense(2, 2)
    weight = layer.weight
    with pytest.raises(TypeError, match=r"weight is a Parameter; .*weight\.value = array"):
        layer.weight = np.zeros((2, 2))
    layer.weight = nn.Parameter(np.ones((2, 2)))
    assert layer.weight is not weight
    calls = layer.calls
    layer.calls = np.int32(5)
    assert layer.calls is calls
    assert int(calls.value) == 5
    layer.calls = None
    assert [p for p, _ in layer.named_buffers()] == []
    del layer.bias
    assert [p for p, _ in layer.named_parameters()] == ["weight"]
    layer.extra = 3
    assert layer.extra == 3


def test_register():
    module = nn.Module()
    module.add_module("inner", Dense(1, 2))
    module.register_buffer("mean", np.zeros(2))
    module.register_buffer("hidden", np.zeros(2), persistent=False)
    module.register_buffer("later", None)
    module.register_parameter("scale", nn.Parameter(np.ones(2)))
    module.register_parameter("nothing", None)
    assert module.later is None
    assert list(module.state_dict()) == ["inner.weight", "inner.bias", "inner.calls", "mean", "scale"]
    with pytest.raises(TypeError, match="add_module takes a Module, not int"):
        module.add_module("number", 3)
    with pytest.raises(ValueError, match="without dots"):
        module.add_module("a.b", Dense(1, 1))
    with pytest.raises(ValueError, match="already has an attribute 'forward'"):
        module.register_buffer("forward", np.zeros(1))


def test_what_would_hide_parameters_is_an_error():
    with pytest.raises(TypeError, match="__slots__"):
        type("Slots", (nn.Module,), {"__slots__": ("weight",)})
    with pytest.raises(TypeError, match=r"Shared\.weight is a class attribute.*__init__"):
        type("Shared", (nn.Module,), {"weight": nn.Parameter(np.ones(1))})
    with pytest.raises(NotImplementedError, match="has no forward"):
        nn.Module()(1)


def test_state_dict():
    net = Net()
    state = net.state_dict()
    assert "scratch" not in state
    assert "stream" not in state
    assert "stream" in net.state_dict(rng=True)
    assert next(iter(net.state_dict(prefix="net."))) == "net.first.weight"
    state["first.bias"][:] = 7
    np.testing.assert_array_equal(net.first.bias.value, np.zeros(4))
    other = Net()
    assert other.load_state_dict(state) == ([], [])
    np.testing.assert_array_equal(other.first.bias.value, np.full(4, 7))
    state["first.bias"][:] = 8
    np.testing.assert_array_equal(other.first.bias.value, np.full(4, 7))


def test_load_state_dict_says_all_that_is_wrong_and_changes_nothing():
    net = Net()
    state = net.state_dict()
    before = net.state_dict()
    del state["first.weight"]
    state["first.wieght"] = np.zeros(1)
    state["more.0.bias"] = np.ones(9)
    state["first.bias"] = np.ones(4)
    with pytest.raises(ValueError, match="do not match") as error:
        net.load_state_dict(state)
    for text in ("missing: first.weight", "unexpected: first.wieght", "more.0.bias: the module has f32[4]", "(9,)"):
        assert text in str(error.value)
    for path, x in net.state_dict().items():
        np.testing.assert_array_equal(x, before[path])
    del state["more.0.bias"]
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["first.weight", "more.0.bias"]
    assert found.unexpected_keys == ["first.wieght"]
    np.testing.assert_array_equal(net.first.bias.value, np.ones(4))
    with pytest.raises(ValueError, match=r"more\.0\.bias"):
        net.load_state_dict({"more.0.bias": np.ones(9)}, strict=False)


def test_load_converts_and_keeps_the_dtype():
    layer = Dense(2, 2)
    layer.load_state_dict({"weight": [[1, 2], [3, 4]], "bias": np.zeros(2), "calls": 4})
    assert layer.weight.dtype == np.float32
    np.testing.assert_array_equal(layer.weight.value, [[1, 2], [3, 4]])


def test_tied_cells_are_one():
    tied = Tied()
    assert [p for p, _ in tied.named_parameters()] == ["inner.weight", "inner.bias"]
    assert len(list(tied.modules())) == 2
    state = tied.state_dict()
    assert set(state) == {
        "inner.weight",
        "inner.bias",
        "inner.calls",
        "again",
        "same.weight",
        "same.bias",
        "same.calls",
    }
    # One of the paths is enough.
    tied.load_state_dict({"again": np.eye(3), "same.bias": np.ones(3), "inner.calls": 0})
    np.testing.assert_array_equal(tied.inner.weight.value, np.eye(3))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_copies(copied):
    tied = Tied()
    tied.inner.bias.requires_grad_(False)
    tied.size = 5
    tied.eval()
    new = copied(tied)
    assert new.again is new.inner.weight
    assert new.same is new.inner
    assert new.again is not tied.again
    assert not new.inner.bias.requires_grad
    assert new.size == 5
    assert not new.inner.training
    assert new.inner.weight.path == "inner.weight"
    new.again.value = np.zeros((3, 3), np.float32)
    assert np.any(tied.again.value)
    np.testing.assert_array_equal(tied(X), copied(tied)(X))


def test_shallow_copy_shares_the_cells():
    net = Net()
    new = copy.copy(net)
    assert new.first is net.first
    assert new.scratch is net.scratch
    new.other = 1
    assert not hasattr(net, "other")
    new.register_forward_hook(lambda module, args, out: 0 * out)
    assert np.any(net(X))


def test_split_and_merge():
    tied = Tied()
    structure, state = nn.split(tied)
    assert list(state) == ["inner.weight", "inner.bias", "inner.calls"]
    assert structure == nn.split(copy.deepcopy(tied))[0]
    assert hash(structure) == hash(nn.split(copy.deepcopy(tied))[0])
    assert structure != nn.split(Tied().eval())[0]
    new = nn.merge(structure, state)
    assert new.again is new.inner.weight
    np.testing.assert_array_equal(new(X), tied(X))
    with pytest.raises(KeyError, match=r"missing: inner\.bias; unexpected: other"):
        nn.merge(structure, {"inner.weight": 1, "inner.calls": 2, "other": 3})


def test_functional_call_leaves_the_module_alone():
    layer = Dense(3, 2)
    state = nn.state_of(layer)
    out, new = nn.functional_call(layer, {**state, "bias": np.ones(2, np.float32)}, X)
    np.testing.assert_allclose(out, X @ state["weight"] + 1)
    assert int(new["calls"]) == 1
    assert int(layer.calls.value) == 0
    assert not np.any(layer.bias.value)
    with pytest.raises(KeyError, match="it has weight, bias, calls"):
        nn.functional_call(layer, {"w": 1}, X)
    with pytest.raises(ValueError, match=r"bias is f32\[2\].*\(3,\)"):
        nn.functional_call(layer, {"bias": np.ones(3)}, X)


class Joining(nn.Module):
    """Takes arrays one by one, or all of them as one argument."""

    def __init__(self, of_one):
        self.of_one = of_one

    def forward(self, x, *more):
        return sum(x if self.of_one else (x, *more))


class Adding(nn.Module):
    def forward(self, pair):
        return pair[0] + pair[1]


def test_functional_call_does_not_take_torchs_tuple_of_arguments_for_an_argument():
    layer = Dense(3, 2)
    state = nn.state_of(layer)
    calls = [
        lambda: nn.functional_call(layer, state, (X,)),
        lambda: nn.functional_call(layer, state, (), {"x": X}),
        lambda: nn.functional_call(Joining(False), {}, (X, X)),
        lambda: ft.grad(lambda x: nn.functional_call(Joining(False), {}, (x, x), {})[0].sum())(X),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"one by one: write functional_call\(m, state, \*args.*utils\.stateless"):
            call()
    with pytest.raises(TypeError, match=r"input is a tuple of 2 values.*out, _ = nn\.functional_call"):
        nn.functional.mse_loss(nn.functional_call(layer, state, X), X)
    with pytest.raises(TypeError, match="input is a dict of 1 values; give one of them\n"):
        nn.functional.mse_loss({"out": X}, X)
    for call in (
        lambda: nn.functional_call(Adding(), {}, (X, X)),
        lambda: nn.functional_call(Joining(True), {}, x=(X, X)),
        lambda: nn.functional_call(Joining(True), {}, [X, X]),
    ):
        np.testing.assert_array_equal(call()[0], 2 * X)


class Lazy(nn.Module):
    """Gives back what computes later."""

    def __init__(self, f):
        self.layer = nn.Linear(3, 2)
        self.f = f

    def forward(self, x):
        return self.f(self.layer, x)


async def awaited(layer, x):
    return layer(x)


def generated(layer, x):
    yield layer(x)


LAZY = {
    "generator": (generated, "write list"),
    "expression": (lambda layer, x: (layer(y) for y in [x]), "write list"),
    "map": (lambda layer, x: map(layer, [x]), "write list"),
    "in a container": (lambda layer, x: {"a": [zip([layer(x)])]}, "write list"),
    "coroutine": (awaited, "await it inside"),
}
CALLED = {
    "functional_call": lambda m: nn.functional_call(m, nn.state_of(m), X),
    "jit": lambda m: nn.jit(m)(X),
    "value_and_grad": lambda m: nn.value_and_grad(lambda m: m(X))(m),
    "auxiliary": lambda m: nn.grad(lambda m: (m.layer(X).sum(), m(X)), has_aux=True)(m),
}


@pytest.mark.parametrize("call", CALLED)
@pytest.mark.parametrize("kind", LAZY)
def test_a_result_that_would_be_computed_after_the_call_is_refused(kind, call):
    f, words = LAZY[kind]
    with pytest.raises(TypeError, match=rf"would run after the call.*{words}"):
        CALLED[call](Lazy(f))


class Holder(nn.Module):
    def __init__(self):
        self.scale = nn.Parameter(np.float32(3.0))

    def forward(self):
        return {"scale": self.scale, "both": (self.scale, 1.0)}


def test_results_that_are_cells_are_what_they_held():
    out, _ = nn.functional_call(Holder(), {"scale": np.float32(7.0)})
    assert out == {"scale": 7, "both": (7, 1)}


def test_switches():
    net = Net()
    assert net.training
    assert net.eval() is net
    assert not net.more[1]["inner"].training
    assert net.train().more[0].training
    net.freeze("more.*")
    assert [p for p, x in net.named_parameters() if x.requires_grad] == ["first.weight", "first.bias"]
    net.unfreeze("*.weight").freeze("first.weight")
    assert [p for p, x in net.named_parameters() if x.requires_grad] == [
        "first.bias",
        "more.0.weight",
        "more.1.inner.weight",
    ]
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    with pytest.raises(ValueError, match=r"no parameter matches 'enc\.\*'; there are first\.weight"):
        net.freeze("enc.*")


def test_apply_goes_from_the_inside_out():
    seen = []
    net = Net()
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Dense", "Dense", "Dense", "Net"]


def test_dtypes():
    net = Net()
    assert net.to("float64").first.weight.dtype == np.float64
    assert net.first.calls.dtype == np.int32
    assert net.stream.dtype == np.uint32
    assert net(X.astype(np.float64)).dtype == np.float64
    assert net.to(dtype=np.float32)(X).dtype == np.float32
    assert net.double().first.bias.dtype == np.float64
    assert net.float().scratch.dtype == np.float32


def test_cells():
    p = nn.Parameter(np.array([1.0, 2.0]))
    assert (p.shape, p.ndim, p.size, len(p)) == ((2,), 1, 2, 2)
    p[0] = 5.0
    np.testing.assert_array_equal(p.value, [5, 2])
    p.value = np.array([1.0, 2.0])
    np.testing.assert_array_equal(p, [1, 2])
    with pytest.raises(TypeError, match="floating-point"):
        nn.Parameter(np.arange(3))
    assert not nn.Parameter(np.arange(3), requires_grad=False).requires_grad
    with pytest.raises(TypeError, match="array of numbers"):
        nn.Buffer("text")
    with pytest.raises(TypeError, match=r"np\.add cannot write to a cell"):
        np.add(1.0, 2.0, out=nn.Buffer(np.zeros(())))
    assert float(nn.Buffer(2.5)) == 2.5
    assert [10, 20, 30][nn.Buffer(1)] == 20
    assert bool(nn.Buffer(True))


PARAMETERS_IN_NUMPY = {
    "concatenate": lambda p, A, s, x: np.concatenate([p, x, p]),
    "stack": lambda p, A, s, x: np.stack([p, x]),
    "einsum": lambda p, A, s, x: np.einsum("ij,j,i->", A, p, x),
    "solve": lambda p, A, s, x: np.linalg.solve(A, x),
    "where": lambda p, A, s, x: np.where(x > 5.5, p, 0),
    "transposed": lambda p, A, s, x: A.T @ x + x @ A,
    "scalar": lambda p, A, s, x: x / s - s**2 + s,
    "list": lambda p, A, s, x: np.stack([s, 2 * s]),
    "index": lambda p, A, s, x: A[0] * A[:, 1] + p[-1],
    "compare": lambda p, A, s, x: (p > s) * x + p,
    "clip": lambda p, A, s, x: np.clip(p, 0.0, s),
    "unpacked": lambda p, A, s, x: [a * b for a, b in zip(p, x, strict=True)][1],
    "maximum": lambda p, A, s, x: np.maximum(p, s).sum() + abs(-p).mean(),
    "power": lambda p, A, s, x: 2**p + p**2 + 1 // s + x % (p + 0.3),
}


class Code(nn.Module):
    def __init__(self, code):
        self.p = nn.Parameter(np.array([1.0, 2.0]))
        self.A = nn.Parameter(np.array([[2.0, 1.0], [0.0, 3.0]]))
        self.s = nn.Parameter(np.float64(1.5))
        self.code = code

    def forward(self, x):
        return self.code(self.p, self.A, self.s, x)


@pytest.mark.parametrize("name", PARAMETERS_IN_NUMPY)
def test_numpy_code_takes_cells_everywhere(name):
    code, x = PARAMETERS_IN_NUMPY[name], np.array([5.0, 7.0])
    model = Code(code)
    cells = [model.p, model.A, model.s]
    expected = code(*(c.value for c in cells), x)
    inside = model(x)
    assert not hasattr(inside, "requires_grad")
    np.testing.assert_allclose(inside, expected)
    outside = code(*cells, x)
    assert outside.requires_grad
    np.testing.assert_allclose(outside.detach().numpy(), expected)
    outside.sum().backward()
    gradients = nn.grad(lambda model, x: np.sum(model(x)))(model, x)
    for path, gradient in gradients.items():
        found = model.get_parameter(path).grad
        np.testing.assert_allclose(0 if found is None else found.numpy(), gradient, err_msg=path, atol=1e-12)
    step = 1e-6
    numbers = [c.value for c in cells]
    for i, path in enumerate(("p", "A", "s")):
        shift = [step * (i == j) for j in range(3)]
        up, down = (np.sum(code(*(a + sign * b for a, b in zip(numbers, shift, strict=True)), x)) for sign in (1, -1))
        np.testing.assert_allclose(np.sum(gradients[path]), (up - down) / (2 * step), atol=1e-4)


def test_repr():
    assert repr(Net()) == ("Net(\n  (first): Dense(3, 4)\n  (more.0): Dense(4, 4)\n  (more.1.inner): Dense(4, 3)\n)")
    assert repr(nn.Parameter(np.array([1.0, 2.0], np.float32))) == "Parameter([1., 2.], float32)"


def test_errors_name_the_module():
    net = Net()
    with pytest.raises(ValueError, match="matmul") as error:
        net(np.ones((2, 5), np.float32))
    assert any("in the module first: Dense(3, 4)" in note for note in error.value.__notes__)
    assert len(error.value.__notes__) == 1


def test_containers():
    model = nn.Sequential(Dense(3, 4), Dense(4, 2))
    assert list(model.state_dict())[:2] == ["0.weight", "0.bias"]
    assert len(model) == 2
    assert model[-1] is model[1]
    np.testing.assert_array_equal(model[:1](X), model[0](X))
    model.append(Dense(2, 1)).insert(0, Dense(3, 3))
    assert [m.weight.shape for m in model] == [(3, 3), (3, 4), (4, 2), (2, 1)]
    last = model.pop()
    assert last.weight.shape == (2, 1)
    assert last not in model
    del model[0]
    model[0] = Dense(3, 4, 9)
    assert [p for p, _ in model.named_children()] == ["0", "1"]
    with pytest.raises(IndexError, match="has 2 entries"):
        model[2]
    with pytest.raises(TypeError, match="holds Module objects, not int"):
        model.append(3)
    named = nn.Sequential(OrderedDict(a=Dense(3, 2), b=Dense(2, 1)))
    assert [p for p, _ in named.named_children()] == ["a", "b"]
    modules = nn.ModuleList([Dense(1, 1)])
    modules.extend([Dense(2, 2)])
    assert len(modules) == 2
    table = nn.ModuleDict({"a": Dense(1, 1)})
    table["b"] = Dense(2, 2)
    assert list(table) == ["a", "b"]
    assert "b" in table
    assert table.pop("a").weight.shape == (1, 1)
    with pytest.raises(KeyError, match="it has b"):
        table["a"]
    with pytest.raises(KeyError, match="choose another name"):
        table["keys"] = Dense(1, 1)
    numbers = nn.ParameterList([np.zeros(2), nn.Parameter(np.ones(1))])
    assert [p for p, _ in numbers.named_parameters()] == ["0", "1"]
    assert list(nn.ParameterDict({"x": np.zeros(2)}).state_dict()) == ["x"]


def test_modules_are_let_go():
    net = Net()
    net(X)
    nn.grad(lambda m, n, x: (m(x) + n(x)).sum())(net, other := Dense(3, 3), X)
    optimizerless = weakref.ref(net), weakref.ref(other)
    del net, other
    gc.collect()
    assert [ref() for ref in optimizerless] == [None, None]


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("compile", r"step = nn\.jit\(step\)"),
        ("type", r"model\.to\(dtype\)"),
        ("share_memory", r"model\.state_dict\(\)"),
        ("to_empty", r"model\.to\(device\)"),
        ("xpu", r"model\.to\(device\)"),
    ],
)
def test_methods_of_torch_that_modules_are_without(name: str, instead: str) -> None:
    model = nn.Linear(2, 2)
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=rf"Linear has no attribute '{name}'; .*{instead}(?s:.*)test_nn_module"):
        getattr(model, name)()
    # The names are free.
    setattr(model, name, 3)
    assert getattr(model, name) == 3
