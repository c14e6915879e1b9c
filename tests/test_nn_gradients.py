"""nn.value_and_grad and nn.grad against derivatives of pure functions and against finite differences."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 3))
Y = RNG.normal(size=(5, 2))


class Dense(nn.Module):
    def __init__(self, n, m, dtype=np.float64):
        rng = np.random.default_rng(n + 10 * m)
        self.weight = nn.Parameter(rng.normal(size=(n, m)).astype(dtype))
        self.bias = nn.Parameter(rng.normal(size=m).astype(dtype))

    def forward(self, x):
        return x @ self.weight + self.bias


class Net(nn.Module):
    """Two layers, and a running mean of what is between them."""

    def __init__(self, dtype=np.float64):
        self.first = Dense(3, 4, dtype)
        self.second = Dense(4, 2, dtype)
        self.mean = nn.Buffer(np.zeros(4, dtype))
        self.calls = nn.Buffer(np.zeros((), np.int32))

    def forward(self, x):
        hidden = np.tanh(self.first(x))
        self.mean = 0.9 * self.mean + 0.1 * hidden.mean(axis=0)
        self.calls += 1
        return self.second(hidden)


def loss(model, x, y):
    return ((model(x) - y) ** 2).mean()


def pure(state, x, y):
    hidden = np.tanh(x @ state["first.weight"] + state["first.bias"])
    return ((hidden @ state["second.weight"] + state["second.bias"] - y) ** 2).mean()


def parameters(model):
    return {path: p.value for path, p in model.named_parameters()}


def close(gradients, expected, **tolerance):
    assert gradients.keys() == expected.keys()
    for path, g in gradients.items():
        np.testing.assert_allclose(g, expected[path], err_msg=path, **{"rtol": 1e-10, "atol": 1e-12, **tolerance})


@pytest.mark.parametrize("transform", [lambda f: f, nn.jit], ids=["un-jitted", "jitted"])
def test_equals_the_gradient_of_the_pure_function(transform):
    model = Net()
    value, gradients = transform(nn.value_and_grad(loss))(model, X, Y)
    np.testing.assert_allclose(value, pure(parameters(model), X, Y))
    close(gradients, ft.grad(pure)(parameters(model), X, Y))
    # Buffers have changed once.
    assert int(model.calls.value) == 1
    np.testing.assert_allclose(model.mean.value, 0.1 * np.tanh(model.first(X)).mean(axis=0))


def test_finite_differences():
    model = Net()
    gradients = nn.grad(loss)(model, X, Y)
    for path, p in model.named_parameters():
        start, direction = p.value, np.random.default_rng(1).normal(size=p.shape)
        values = []
        for sign in (1, -1):
            p.value = start + sign * 1e-6 * direction
            values.append(loss(model, X, Y))
        p.value = start
        np.testing.assert_allclose((values[0] - values[1]) / 2e-6, np.sum(gradients[path] * direction), rtol=1e-6)


def test_has_aux_and_arguments():
    model = Net()

    def f(model, scale, x, *, power):
        out = model(x)
        return (scale * out**power).sum(), {"out": out, "text": "as it is", "bias": model.second.bias, "model": model}

    (value, aux), (of_model, of_scale) = nn.value_and_grad(f, argnums=(0, 1), has_aux=True)(model, 1.5, X, power=2)
    out = model(X)
    np.testing.assert_allclose(aux["out"], out)
    assert aux["text"] == "as it is"
    assert aux["model"] is model
    np.testing.assert_array_equal(aux["bias"], model.second.bias.value)
    np.testing.assert_allclose(value, 1.5 * (out**2).sum())
    np.testing.assert_allclose(of_scale, (out**2).sum())
    np.testing.assert_allclose(of_model["second.bias"], 3 * out.sum(axis=0))
    of_x = nn.grad(f, argnums=2, has_aux=True)(model, 1.5, X, power=2)[0]
    assert of_x.shape == X.shape
    of_last, of_first = nn.grad(lambda a, b, x: (b(a(x))).sum(), argnums=(1, 0))(model.first, model.second, X)
    assert list(of_last) == ["weight", "bias"]
    assert of_last["weight"].shape == (4, 2)
    assert of_first["weight"].shape == (3, 4)
    with pytest.raises(TypeError, match="must return a pair"):
        nn.grad(loss, has_aux=True)(model, X, Y)


def test_modules_in_containers():
    models = [Dense(3, 2), {"second": Dense(2, 1), "scale": np.array(2.0)}]

    def f(models, x):
        return models[1]["scale"] * models[1]["second"](models[0](x)).sum()

    first, second = nn.grad(f)(models, X)
    total = X.sum(axis=0)
    w = models[1]["second"].weight.value
    np.testing.assert_allclose(first["weight"], 2 * np.outer(total, w[:, 0]))
    np.testing.assert_allclose(second["second"]["bias"], [10.0])
    np.testing.assert_allclose(second["scale"], f(models, X) / 2)


def test_modules_given_twice_and_tied_parameters_get_the_sum():
    layer = Dense(2, 2)
    x = np.array([1.0, 2.0])

    def f(a, b, x):
        return (3 * a(x) + b(x)).sum()

    once = nn.grad(lambda a, x: a(x).sum())(layer, x)
    close(nn.grad(f)(layer, layer, x), {k: 4 * g for k, g in once.items()})
    both = nn.grad(f, argnums=(0, 1))(layer, layer, x)
    for gradients in both:
        close(gradients, {k: 4 * g for k, g in once.items()})
    tied = nn.Module()
    tied.a = Dense(2, 2)
    tied.b = Dense(2, 2)
    tied.b.weight = tied.a.weight

    def g(tied, x):
        return (tied.b(tied.a(x)) ** 2).sum()

    found = nn.grad(g)(tied, x)
    assert list(found) == ["a.weight", "a.bias", "b.bias"]
    w, a, b = tied.a.weight.value, tied.a.bias.value, tied.b.bias.value
    expected = ft.grad(lambda w: (((x @ w + a) @ w + b) ** 2).sum())(w)
    np.testing.assert_allclose(found["a.weight"], expected)


def test_frozen_parameters():
    model = Net()
    everything = nn.grad(loss)(model, X, Y)
    model.freeze("first.*")
    close(nn.grad(loss)(model, X, Y), {k: g for k, g in everything.items() if k.startswith("second")})
    model.freeze()
    with pytest.raises(TypeError, match=r"nothing to differentiate with respect to.*requires_grad=True"):
        nn.grad(loss)(model, X, Y)
    of_y = nn.grad(loss, argnums=2)(model, X, Y)
    np.testing.assert_allclose(of_y, -2 * (model(X) - Y) / Y.size)


def test_other_models_are_constants():
    student, teacher = Dense(3, 2), Dense(3, 2)
    teacher.weight.value = teacher.weight.value + 1
    found = nn.grad(lambda s, t, x: ((s(x) - t(x)) ** 2).sum())(student, teacher, X)
    np.testing.assert_allclose(found["bias"], 2 * (student(X) - teacher(X)).sum(axis=0))
    # A model that is closed over is one, too.
    closed = nn.grad(lambda s, x: ((s(x) - teacher(x)) ** 2).sum())(student, X)
    close(closed, found)


@pytest.mark.parametrize("transform", [lambda f: f, nn.jit], ids=["un-jitted", "jitted"])
def test_second_derivatives(transform):
    model = Dense(2, 1)
    x = np.array([[0.3, -0.7]])

    def energy(model, x):
        return (np.tanh(model(x)) ** 2).sum()

    def by_x(model, x):
        """A gradient penalty."""
        return (ft.grad(lambda x: energy(model, x))(x) ** 2).sum()

    def penalty(w, b, x):
        return (ft.grad(lambda x: (np.tanh(x @ w + b) ** 2).sum())(x) ** 2).sum()

    w, b = model.weight.value, model.bias.value
    expected = dict(zip(("weight", "bias"), ft.grad(penalty, argnums=(0, 1))(w, b, x), strict=True))
    close(transform(nn.grad(by_x))(model, x), expected)
    np.testing.assert_allclose(
        transform(lambda m, x: ft.grad(by_x, argnums=1)(m, x))(model, x), ft.grad(penalty, 2)(w, b, x)
    )

    def by_parameters(model, x):
        return sum((g**2).sum() for g in nn.grad(energy)(model, x).values())

    def reference(w, b, x):
        gradients = ft.grad(lambda w, b: (np.tanh(x @ w + b) ** 2).sum(), argnums=(0, 1))(w, b)
        return sum((g**2).sum() for g in gradients)

    expected = dict(zip(("weight", "bias"), ft.grad(reference, argnums=(0, 1))(w, b, x), strict=True))
    close(transform(nn.grad(by_parameters))(model, x), expected)
    # The gradients with respect to parameters, as a function of the input.
    np.testing.assert_allclose(
        transform(lambda m, x: ft.grad(lambda x: by_parameters(m, x))(x))(model, x), ft.grad(reference, 2)(w, b, x)
    )


def test_steps_of_an_inner_optimisation_are_differentiated():
    model = Dense(2, 1)
    x = np.array([[0.3, -0.7]])

    def adapted(rate):
        state = nn.state_of(model)
        gradients = ft.grad(lambda s: (nn.functional_call(model, s, x)[0] ** 2).sum())(state)
        new = {path: state[path] - rate * g for path, g in gradients.items()}
        return (nn.functional_call(model, new, x)[0] ** 2).sum()

    step = 1e-6
    np.testing.assert_allclose(
        ft.grad(adapted)(0.1), (adapted(0.1 + step) - adapted(0.1 - step)) / (2 * step), rtol=1e-6
    )


def test_capture():
    model = Net()
    value, gradients = nn.value_and_grad(loss, capture=["first", "second"])(model, X, Y)
    value, taps = value
    hidden = X @ model.first.weight.value + model.first.bias.value
    np.testing.assert_allclose(taps["first"].value, hidden)
    np.testing.assert_allclose(taps["first"].gradient.sum(axis=0), gradients["first.bias"])
    np.testing.assert_allclose(taps["second"].gradient, 2 * (model(X) - Y) / Y.size)
    with pytest.raises(ValueError, match="'third', but the model has the modules first, second"):
        nn.value_and_grad(loss, capture=["third"])(model, X, Y)
    with pytest.raises(ValueError, match="'first', which runs more than once"):
        nn.value_and_grad(lambda m, x: (m.first(x) + m.first(x)).sum(), capture=["first"])(model, X)


def test_loss_scale():
    model = Net()
    value, gradients = nn.value_and_grad(loss)(model, X, Y)
    for scale in (1024.0, nn.LossScale(1024.0)):
        scaled, found = nn.value_and_grad(loss, loss_scale=scale)(model, X, Y)
        np.testing.assert_allclose(scaled, value)
        close(found, gradients)


def test_hooks_of_parameters():
    model = Dense(2, 1)
    handle = model.weight.register_hook(lambda g: 10 * g)
    seen = []
    model.bias.register_hook(seen.append)
    x = np.array([[1.0, 2.0]])
    f = nn.grad(lambda m, x: m(x).sum())
    np.testing.assert_allclose(f(model, x)["weight"], 10 * x.T)
    assert len(seen) == 1
    handle.remove()
    np.testing.assert_allclose(f(model, x)["weight"], x.T)


def test_an_exception_restores_all_cells():
    model = Net()
    before = {path: cell.array for path, cell in model.named_cells()}

    def failing(model, x, y):
        loss(model, x, y)
        raise KeyError("on purpose")

    for f in (nn.grad(failing), nn.jit(failing), nn.jit(nn.grad(failing))):
        with pytest.raises(KeyError, match="on purpose"):
            f(model, X, Y)
        for path, cell in model.named_cells():
            assert cell.array is before[path]
            assert not cell.is_given
    with pytest.raises(TypeError, match="a scalar result"):
        nn.grad(lambda m, x: m(x))(model, X)
    assert all(cell.array is before[path] for path, cell in model.named_cells())
    nn.grad(loss)(model, X, Y)


class Cached(nn.Module):
    def __init__(self):
        self.w = nn.Parameter(np.ones(2))

    @functools.cached_property
    def double(self):
        return self.w * 2


@pytest.mark.parametrize("transform", [nn.grad, nn.jit])
def test_cached_properties_keep_no_traced_value(transform):
    model = Cached()
    with pytest.raises(TypeError, match=r"double was given a traced value.*instead of functools\.cached_property"):
        transform(lambda m: m.double.sum())(model)
    np.testing.assert_array_equal(model.double.detach().numpy(), [2, 2])


class Careless(nn.Module):
    def __init__(self):
        self.w = nn.Parameter(np.ones(2))
        self.kept = []

    def forward(self, x):
        if x is None:
            self.last = self.w * 2
        else:
            self.kept.append(self.w * x)
        return self.w.sum()


def test_traced_values_do_not_stay_behind():
    with pytest.raises(TypeError, match=r"attribute last was assigned a traced value.*self\.last = nn\.Buffer"):
        nn.grad(lambda m: m(None))(Careless())
    with pytest.raises(TypeError, match=r"kept was given a traced value.*nn\.Buffer"):
        nn.grad(lambda m, x: m(x))(Careless(), 2.0)


def test_buffers_that_are_no_arrays_of_their_own():
    model = Net()
    out = nn.grad(lambda m: (m.second.weight**2).sum() + 0 * m.mean.sum())(model)
    np.testing.assert_allclose(out["second.weight"], 2 * model.second.weight.value)
    assert not np.any(out["first.weight"])
    holder = nn.Module()
    holder.p = nn.Parameter(np.float64(3.0))
    # A result that is a parameter.
    assert nn.value_and_grad(lambda m: m.p)(holder) == (3.0, {"p": 1.0})


def test_jax_arrays_in_and_out():
    jax = pytest.importorskip("jax")
    model = Dense(3, 2, np.float32)
    gradients = nn.grad(lambda m, x: m(x).sum())(model, jax.numpy.ones((1, 3), np.float32))
    assert isinstance(gradients["weight"], jax.Array)
    np.testing.assert_allclose(gradients["weight"], np.ones((3, 2)))


@pytest.mark.parametrize("transform", [lambda f: f, nn.jit], ids=["un-jitted", "jitted"])
def test_elements_of_buffers(transform):
    class Cache(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(np.array([1.0, 2.0, 3.0]))
            self.rows = nn.Buffer(np.zeros((2, 3)))

        def forward(self, x):
            before = self.rows.value
            self.rows[1] = self.weight * x
            self.rows[0] += x.sum()
            return (self.rows**2).sum() + before.sum()

    def by_hand(weight, x):
        return ((weight * x) ** 2).sum() + 3 * x.sum() ** 2

    x = np.array([0.5, -1.0, 2.0])
    expected = ft.grad(by_hand, argnums=(0, 1))(np.array([1.0, 2.0, 3.0]), x)
    model = Cache()
    of_model, of_x = transform(nn.grad(lambda model, x: model(x), argnums=(0, 1)))(model, x)
    np.testing.assert_allclose(of_model["weight"], expected[0])
    np.testing.assert_allclose(of_x, expected[1])
    np.testing.assert_allclose(model.rows.value, [[1.5] * 3, [0.5, -2, 6]])
