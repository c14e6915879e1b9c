"""nn.jit: compiled functions that take and change modules."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import functools
import gc
import threading
import warnings
import weakref

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn

X = np.array([1.0, 2.0], np.float32)


class Scale(nn.Module):
    def __init__(self, value=2.0, **attributes):
        self.w = nn.Parameter(np.full(2, value, np.float32))
        for name, x in attributes.items():
            setattr(self, name, x)

    def forward(self, x):
        return x * self.w


class Counted:
    """A function that knows how often its code has run."""

    def __init__(self, f):
        self.f, self.runs = f, 0
        functools.update_wrapper(self, f)

    def __call__(self, *args, **kwargs):
        self.runs += 1
        return self.f(*args, **kwargs)


class Net(nn.Module):
    def __init__(self):
        self.layers = [Scale(0.5), Scale(-1.5)]
        self.mean = nn.Buffer(np.zeros(2, np.float32))
        self.count = nn.Buffer(np.zeros((), np.int32))

    def forward(self, x):
        for layer in self.layers:
            x = np.tanh(layer(x))
        if self.training:
            self.mean = 0.5 * self.mean + 0.5 * x
            self.count += 1
        return x


def descend(model, x):
    loss, gradients = nn.value_and_grad(lambda m: ((m(x) - 1) ** 2).sum())(model)
    for path, g in gradients.items():
        p = model.get_parameter(path)
        p.value = p - 0.1 * g
    return loss


def test_equals_the_function_itself():
    model, compiled = Net(), Net()
    step = nn.jit(descend)
    for _ in range(3):
        np.testing.assert_allclose(step(compiled, X), descend(model, X), rtol=1e-5)
    for (path, a), (_, b) in zip(model.named_cells(), compiled.named_cells(), strict=True):
        np.testing.assert_allclose(b.value, a.value, rtol=1e-5, err_msg=path)
    assert int(compiled.count.value) == 3
    assert compiled.count.dtype == np.int32


def test_a_thousand_flips_are_two_traces():
    f = Counted(lambda m, x: m(x))
    step, model = nn.jit(f), Net()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(500):
            step(model.train(), X)
            step(model.eval(), X)
    assert f.runs == 2
    assert int(model.count.value) == 500


def test_results_and_arguments_of_all_kinds():
    jax = pytest.importorskip("jax")
    model = Scale()
    f = nn.jit(lambda m, x: {"out": (m(x), None), "w": m.w, "module": m, "number": 3})
    out = f(model, X)
    assert type(out["out"][0]) is np.ndarray
    assert out["out"][1] is None
    assert out["module"] is model
    np.testing.assert_array_equal(out["w"], model.w.value)
    assert isinstance(f(model, jax.numpy.asarray(X))["out"][0], jax.Array)
    assert nn.jit(lambda m, x: m(x))(model, 3.0).dtype == np.float32
    assert nn.jit(lambda: 1.0)() == 1
    assert nn.jit(lambda m, x: m(x))(model.to("float64"), X.astype(np.float64)).dtype == np.float64
    assert nn.jit(lambda m, x: m(x))(model.to("bfloat16"), X.astype("bfloat16")).dtype.name == "bfloat16"


def test_what_is_returned_is_what_the_cell_holds_at_the_end():
    def f(model):
        model.w.value = 3 * model.w
        return model.w, model.w.value

    model = Scale()
    for out in nn.jit(f)(model):
        np.testing.assert_array_equal(out, [6, 6])


@pytest.mark.filterwarnings("ignore:nn.jit traces")
def test_where_the_modules_are_among_the_arguments():
    a, b = Scale(5.0), Scale(3.0)
    f = nn.jit(lambda a, b: a(X) - b(X))
    for out in (f(a, b), f(a=a, b=b), f(b=b, a=a), -f(b, a), -f(b=a, a=b)):
        np.testing.assert_array_equal(out, 2 * X)
    g = nn.jit(lambda d: d["a"](X) - d["b"][0](X))
    for out in (g({"a": a, "b": [b]}), g({"b": [b], "a": a}), -g({"a": b, "b": [a]})):
        np.testing.assert_array_equal(out, 2 * X)
    h = nn.jit(lambda a, b: 1.0 if a is None else 2.0)
    assert (h(a, None), h(None, a)) == (2, 1)
    twice = nn.jit(lambda a, b: setattr(a.w, "value", a.w + b.w))
    twice(a, a)
    np.testing.assert_array_equal(a.w.value, [10, 10])


@dataclasses.dataclass
class State:
    model: nn.Module
    step: object


def test_modules_in_dataclasses_are_changed_too():
    def f(state):
        state.model.w.value = state.model.w + state.step
        return state.model(X)

    state = State(Scale(), np.float32(1))
    jitted = nn.jit(f)
    jitted(state)
    np.testing.assert_array_equal(jitted(state), 4 * X)
    np.testing.assert_array_equal(state.model.w.value, [4, 4])


@pytest.mark.filterwarnings("ignore:nn.jit traces")
def test_modules_and_methods():
    jitted = nn.jit(Scale())
    np.testing.assert_array_equal(jitted(X), 2 * X)

    class Model(Scale):
        @nn.jit
        def step(self, x):
            self.w.value = self.w + 1
            return self(x)

        def forward(self, x, mode="plus"):
            return super().forward(x) if mode == "plus" else -super().forward(x)

    model = Model()
    model.step(X)
    np.testing.assert_array_equal(model.step(X), 4 * X)
    chosen = nn.jit(model, static_argnums=1)
    np.testing.assert_array_equal(chosen(X, "minus"), -4 * X)
    np.testing.assert_array_equal(chosen(X, mode="plus"), 4 * X)
    np.testing.assert_array_equal(chosen(X), 4 * X)


class Kind(enum.Enum):
    A = 1
    B = 2


def _attributes():
    a = {"x": [1.0, 2.0]}
    return {
        "float": (2.0, 3.0),
        "sign of zero": (0.0, -0.0),
        "int, bool, float": (1, True, 1.0),
        "string": ("a", "b"),
        "function": (np.sin, np.cos),
        "lambda": (lambda x: x, lambda x: -x),
        "partial": (functools.partial(np.power, 2.0), functools.partial(np.power, 3.0)),
        "enum": (Kind.A, Kind.B),
        "array": (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
        "numpy number": (np.float64(1.0), np.float32(1.0), np.int64(1)),
        "tuple": ((1, 2.0), (True, 2.0), (1, 2)),
        "dict": (a, {"x": [1.0, 3.0]}, {"y": [1.0, 2.0]}),
        "set": ({1, 2}, {1, 3}),
        "none": (None, 0, ""),
        "dtype": (np.dtype("float32"), np.dtype("float64")),
    }


@pytest.mark.filterwarnings("ignore:nn.jit traces")
@pytest.mark.parametrize("name", _attributes())
def test_attributes_are_looked_at(name):
    seen = []

    @nn.jit
    def f(model, x):
        seen.append(model.attribute)
        return model(x)

    values = _attributes()[name]
    model = Scale()
    for value in values:
        model.attribute = value
        f(model, X)
        f(model, X)
    assert len(seen) == len(values)
    assert all(a is b for a, b in zip(seen, values, strict=True))


def _mutations():
    return {
        "list": ([1.0, 2.0], lambda x: x.__setitem__(1, 5.0)),
        "nested": ({"a": [1, {"b": 2}]}, lambda x: x["a"][1].update(b=3)),
        "dict": ({"a": 1}, lambda x: x.update(b=3)),
        "set": ({1}, lambda x: x.add(2)),
        "array": (np.zeros(3), lambda x: x.fill(2)),
        "large array": (np.zeros(3000), lambda x: x.__setitem__(-1, 2)),
        "dataclass": (State(None, 1.0), lambda x: setattr(x, "step", 2.0)),
        "namespace": (argparse.Namespace(p=0.5), lambda x: setattr(x, "p", 0.1)),
        "functions": ([np.sin], lambda x: x.__setitem__(0, np.cos)),
    }


@pytest.mark.parametrize("name", _mutations())
def test_containers_and_arrays_that_are_changed_in_place_are_noticed(name):
    value, change = _mutations()[name]
    f = Counted(lambda m, x: m(x))
    step, model = nn.jit(f), Scale(attribute=value)
    step(model, X)
    step(model, X)
    assert f.runs == 1
    change(model.attribute)
    step(model, X)
    step(model, X)
    assert f.runs == 2


def test_lists_of_modules_that_are_changed_are_noticed():
    model = nn.Module()
    model.layers = [Scale(2.0)]
    model.table = {"a": Scale(3.0)}

    @nn.jit
    def f(model, x):
        for layer in model.layers:
            x = layer(x)
        return model.table["a"](x)

    np.testing.assert_array_equal(f(model, X), 6 * X)
    model.layers.append(Scale(5.0))
    np.testing.assert_array_equal(f(model, X), 30 * X)
    model.layers.pop()
    model.layers[0] = Scale(7.0)
    # This is the structure of the first trace again.
    np.testing.assert_array_equal(f(model, X), 21 * X)
    model.table["a"] = type("Other", (Scale,), {"forward": lambda self, x: -x})()
    with pytest.warns(RuntimeWarning, match=r"3rd time.*this time: table\.a: Scale -> Other"):
        out = f(model, X)
    np.testing.assert_array_equal(out, -7 * X)


def test_attributes_of_classes_are_noticed():
    class Model(Scale):
        power = 1.0

        def forward(self, x):
            return super().forward(x) ** self.power

    f, model = nn.jit(lambda m, x: m(x)), Model()
    np.testing.assert_array_equal(f(model, X), 2 * X)
    Model.power = 2.0
    np.testing.assert_array_equal(f(model, X), 4 * X**2)


def test_shapes_hooks_and_flags_of_cells_are_noticed():
    f = nn.jit(lambda m, x: nn.value_and_grad(lambda m: m(x).sum())(m))
    model = nn.Sequential(Scale(), Scale())
    assert len(f(model, X)[1]) == 2
    model.freeze("1.*")
    assert len(f(model, X)[1]) == 1
    model[0].w.value = np.ones((3, 2), np.float32)
    with pytest.warns(RuntimeWarning, match=r"0\.w: float32\[2\] -> float32\[3, 2\]"):
        gradients = f(model, X)[1]
    assert gradients["0.w"].shape == (3, 2)
    handle = model[0].w.register_hook(lambda g: 0 * g)
    gradients = f(model, X)[1]
    assert ft.debug.retraces()[-1].number == 4
    assert not np.any(gradients["0.w"])
    handle.remove()
    assert np.any(f(model, X)[1]["0.w"])


def test_models_of_one_structure_share_a_trace():
    f = Counted(lambda m, x: m(x))
    step = nn.jit(f)
    models = [Net() for _ in range(3)]
    for i, model in enumerate(models):
        model.layers[0].w.value = np.full(2, i, np.float32)
    for i, model in enumerate(models):
        np.testing.assert_allclose(step(model, X), np.tanh(-1.5 * np.tanh(i * X)), rtol=1e-5)
        assert int(model.count.value) == 1
    assert f.runs == 1
    tied = Net()
    tied.layers[1].w = tied.layers[0].w
    np.testing.assert_allclose(step(tied, X), np.tanh(0.5 * np.tanh(0.5 * X)), rtol=1e-5)
    assert f.runs == 2


def test_retracing_says_what_has_changed():
    f = nn.jit(lambda m, x: m(x))
    model = Scale(rate=1.0)
    f(model, X)
    f(model, X[None])
    with pytest.warns(
        RuntimeWarning, match=r"traces lambda for the 3rd time.*argument 1 changed from f32\[1,2\] to f32\[3,2\]"
    ):
        f(model, np.ones((3, 2), np.float32))
    model.rate = 2.0
    # It warns once.
    f(model, np.ones((3, 2), np.float32))
    last = ft.debug.retraces()[-1]
    assert (last.number, last.reasons) == (4, ("rate: 1.0 -> 2.0",))
    g = nn.jit(lambda m, x: 2 * m(x))
    for rate in (3.0, 4.0):
        model.rate = rate
        g(model, X)
    model.rate = 5.0
    with pytest.warns(RuntimeWarning, match=r"3rd time.*rate: 4\.0 -> 5\.0.*nn\.Buffer or an argument"):
        g(model, X)


def test_static_arguments_are_told_apart():
    f = nn.jit(lambda m, kind, x: x * (2.0 if isinstance(kind[0], float) else 1.0), static_argnums=1)
    model = Scale()
    np.testing.assert_array_equal(f(model, (1,), X), X)
    np.testing.assert_array_equal(f(model, (1.0,), X), 2 * X)
    with pytest.raises(TypeError, match="must be hashable"):
        f(model, [1], X)
    with pytest.raises(TypeError, match=r"argument \[1\].*the str 'a'; declare it by"):
        nn.jit(lambda m, kind: m(X))(model, "a")
    g = nn.jit(lambda x, mode: x if mode == "a" else -x, static_argnames="mode")
    np.testing.assert_array_equal(g(X, mode="b"), -X)


def test_python_branches_on_values():
    class Guarded(Scale):
        def forward(self, x):
            self.calls += 1
            return x if self.w.sum() > 0 else -x

    f = Counted(lambda m, x: m(x))
    step, model = nn.jit(f, donate_argnums=0), Guarded(calls=nn.Buffer(np.int32(0)))
    for sign in (1, -1, 1, -1):
        model.w.value = np.full(2, sign, np.float32)
        np.testing.assert_array_equal(step(model, X), sign * X)
    assert f.runs == 2
    assert int(model.calls.value) == 4


def test_donation():
    def double(model):
        model.w.value = 2 * model.w

    step = nn.jit(double, donate_argnums=0)
    model = Scale()
    step(model)
    old, kept = model.w.array, model.w.numpy().copy()
    step(model)
    assert old.is_deleted()
    np.testing.assert_array_equal(model.w.value, 2 * kept)
    other = Scale()
    other.w.array = old
    with pytest.raises(RuntimeError, match=r"the array of w was donated.*take a copy"):
        step(other)
    with pytest.raises(RuntimeError, match="the array of w was donated"):
        other.w.numpy()
    # What the function does not change is not overwritten.
    pair = nn.Module()
    pair.a, pair.b = Scale(), Scale()
    still = nn.jit(lambda pair: double(pair.a), donate_argnums=0)
    still(pair)
    b = pair.b.w.array
    still(pair)
    assert pair.b.w.array is b
    np.testing.assert_array_equal(pair.b.w.value, [2, 2])
    # Nor is what somebody looks at.
    seen = model.w.value
    before = seen.copy()
    step(model)
    np.testing.assert_array_equal(seen, before)


@pytest.mark.parametrize("where", ["step", "loop"])
def test_a_model_is_there_after_an_error_in_code_on_the_host(where):
    def see(g):
        if fails:
            raise ValueError("a mistake")

    def watched(w):
        return (ft.grad_hook(w, see=see) ** 2).sum()

    @nn.jit(donate_argnums=0)
    def step(m):
        if where == "step":
            gradient = ft.grad(watched)(m.w.value)
        else:
            gradient = ft.fori_loop(0, 2, lambda i, w: ft.grad(watched)(w), m.w.value)
        m.w.value = m.w - 0.125 * gradient

    model, fails = Scale(), False
    step(model)
    before, fails = model.w.numpy().copy(), True
    with pytest.raises(Exception, match="a mistake"):
        step(model)
    np.testing.assert_array_equal(model.w.numpy(), before)
    fails = False
    step(model)
    assert np.any(model.w.numpy() != before)


def test_cells_that_exchange_their_arrays_are_donated_safely():
    def swap(a, b):
        a.w.value, b.w.value = b.w.value, a.w.value

    def copied(a, b):
        a.w.value = b.w.value

    def grow(a, b):
        a.w.value, b.w.value = a.w + 1, b.w + 1

    a, b = Scale(1.0), Scale(2.0)
    steps = [nn.jit(f, donate_argnums=(0, 1)) for f in (swap, grow, copied, grow, swap, grow)]
    for step in steps:
        step(a, b)
    np.testing.assert_array_equal(a.w.value, [4, 4])
    np.testing.assert_array_equal(b.w.value, [4, 4])


def test_cells_that_were_not_given():
    model, other = Scale(), nn.Sequential(Scale())
    with pytest.raises(RuntimeError, match=r"reads 0\.w, whose module is not among its arguments.*nn\.jit\(f\)\(model"):
        nn.jit(lambda m, x: m(x) + other(x))(model, X)
    with pytest.raises(RuntimeError, match=r"0\.w"):
        nn.jit(lambda m, x: setattr(other[0].w, "value", m(x)))(model, X)
    with pytest.raises(RuntimeError, match="w, whose module"):
        ft.jit(lambda x: model(x))(X)
    np.testing.assert_array_equal(other[0].w.value, [2, 2])


class Writes(Scale):
    def forward(self, x, how):
        if how == "attribute":
            self.last = 3
        elif how == "traced":
            self.last = x
        elif how == "list":
            self.kept.append(1)
        elif how == "traced list":
            self.kept.append(x)
        elif how == "switch":
            self.eval()
        elif how == "frozen":
            self.freeze()
        elif how == "shape":
            self.w.value = x[None]
        return x


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("attribute", r"attribute last was assigned int.*nn\.Buffer"),
        ("traced", r"attribute last was assigned a traced value.*nn\.Buffer"),
        ("traced list", r"kept was given a traced value"),
        ("list", r"has changed attributes.*not cells.*kept has 1 entries, not 0"),
        ("switch", r"training: True -> False.*before the compiled function"),
        ("frozen", r"w: float32\[2\] -> float32\[2\] without gradient"),
        ("shape", r"f32\[1,2\] into w, which is f32\[2\].*keeps its shape and dtype"),
    ],
)
def test_changes_that_would_not_happen_again_are_errors(how, message):
    model = Writes(kept=[])
    with pytest.raises(TypeError, match=message):
        nn.jit(lambda m, x: m(x, how))(model, X)
    np.testing.assert_array_equal(model.w.value, [2, 2])


def test_switches_that_are_put_back_are_no_change():
    class Model(Net):
        def forward(self, x):
            self.eval()
            out = super().forward(x)
            self.train()
            return out

    model, f = Model(), Counted(lambda m, x: m(x))
    step = nn.jit(f)
    step(model, X)
    step(model, X)
    assert f.runs == 1
    assert int(model.count.value) == 0


def test_exceptions():
    class Unlucky(Scale):
        def forward(self, x):
            self.w.value = self.w + 1
            try:
                raise ValueError("first")
            except ValueError as error:
                raise KeyError("second") from error

    model = nn.Sequential(Unlucky())
    step = nn.jit(lambda m, x: m(x))
    for _ in range(2):
        with pytest.raises(KeyError, match="second") as found:
            step(model, X)
        assert isinstance(found.value.__cause__, ValueError)
        assert any("0: Unlucky" in note for note in found.value.__notes__)
    np.testing.assert_array_equal(model[0].w.value, [2, 2])


def test_inside_other_transformations():
    inner = nn.jit(lambda m, x: (m(x) ** 2).sum())
    model = Scale()
    expected = 2 * model.w.value * X**2
    np.testing.assert_allclose(nn.grad(inner)(model, X)["w"], expected)
    np.testing.assert_allclose(nn.jit(nn.grad(inner))(model, X)["w"], expected)
    step = nn.jit(lambda m, x: setattr(m.w, "value", m.w + 1))
    nn.jit(lambda m, x: (step(m, x), step(m, x))[0])(model, X)
    np.testing.assert_array_equal(model.w.value, [4, 4])


def test_tensors_are_recorded():
    model = Scale()
    x = ft.autograd.tensor(X, requires_grad=True)
    out = nn.jit(lambda m, x: (m(x) ** 2).sum())(model, x)
    out.backward()
    np.testing.assert_allclose(x.grad.numpy(), 8 * X)
    np.testing.assert_allclose(model.w.grad.numpy(), 4 * X**2)


@pytest.mark.parametrize("donated", [(), (0, 1)])
def test_training_steps_take_tensors_as_arrays(donated):
    def step(model, optimizer, batch):
        loss, gradients = nn.value_and_grad(lambda m: ((m(batch["x"]) - batch["y"]) ** 2).mean())(model)
        optimizer.step(gradients)
        return {"loss": loss, "model": model}

    results = []
    for convert in (lambda x: x, ft.autograd.tensor):
        model = Scale()
        optimizer = nn.optim.Adam(model.parameters(), lr=0.1)
        jitted = nn.jit(step, donate_argnums=donated)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for rows in (X, X[:1], X):
                found = jitted(model, optimizer, {"x": convert(rows), "y": convert(rows + 1)})
        assert found["model"] is model
        results.append((found["loss"], model.w.value))
    assert isinstance(results[1][0], ft.autograd.Tensor)
    assert not results[1][0].requires_grad
    assert results[0][0] == results[1][0].item()
    np.testing.assert_array_equal(results[0][1], results[1][1])
    # One that requires a gradient gets it.
    x = ft.autograd.tensor(X, requires_grad=True)
    nn.jit(step)(model, optimizer, {"x": x, "y": X})["loss"].backward()
    assert x.grad.shape == X.shape


@pytest.mark.parametrize("donated", [(), (0,)])
def test_anomalies_name_the_parameter(donated):
    class Log(Scale):
        def forward(self, x):
            return np.log(self.w) * x

    def step(model, x):
        model.w.value = model(x)
        return x

    model = nn.Sequential(Log(-1.0))
    jitted = nn.jit(lambda m, x: step(m[0], x), donate_argnums=donated)
    with ft.debug.detect_anomaly():
        with pytest.raises(ft.debug.AnomalyError, match=r"nan in the new value of 0\.w .*logarithm"):
            jitted(model, X)
        np.testing.assert_array_equal(model[0].w.value, [-1, -1])
        model[0].w.value = np.full(2, np.nan, np.float32)
        with pytest.raises(ft.debug.AnomalyError, match=r"0\.w, f32\[2\], is nan"):
            jitted(model, X)


def test_threads():
    class Slow(Scale):
        def forward(self, x):
            for _ in range(50):
                x = x + self.w
            return x

    model, step = Slow(), nn.jit(lambda m, x: m(x))
    found, errors = [], []

    def work():
        try:
            found.extend(step(model, X) for _ in range(5))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(found) == 20
    for out in found:
        np.testing.assert_allclose(out, X + 100)


def test_dead_models_are_let_go():
    step = nn.jit(lambda a, b, x: setattr(a.w, "value", a(x) + b(x)))
    refs = []
    for _ in range(3):
        a, b = Scale(), Scale()
        step(a, b, X)
        refs += [weakref.ref(a), weakref.ref(b), weakref.ref(a.w)]
    del a, b
    gc.collect()
    assert all(ref() is None for ref in refs)


def test_random_streams_go_on():
    class Noisy(nn.Module):
        def __init__(self):
            self.stream = nn.RngState(0)

        def forward(self, x):
            return x + nn.random.uniform(self.stream.next_key(), (2,))

    eager, compiled = Noisy(), Noisy()
    step = nn.jit(lambda m, x: m(x))
    outs = [step(compiled, X) for _ in range(2)]
    np.testing.assert_allclose(outs, [eager(X) for _ in range(2)])
    assert np.any(outs[0] != outs[1])
