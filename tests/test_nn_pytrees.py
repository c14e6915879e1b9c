"""Modules as containers: arguments of ft.* transformations, of jax.tree_util and of optax, and copies."""

import copy
import pickle

import jax
import numpy as np
import pytest

import ftrans as ft
from ftrans import nn

F32 = np.float32


class Net(nn.Module):
    """Parameters that are trained, frozen and of integers; buffers, a boolean mask, a stream of random numbers."""

    def __init__(self):
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(4, 1)
        self.mask = nn.Buffer(np.array([True, False, True]))
        self.order = nn.Parameter(np.array([2, 0, 1]), requires_grad=False)
        self.last.bias.requires_grad = False

    def forward(self, x):
        x = (x * self.mask)[:, np.asarray([2, 0, 1])]
        return self.last(self.drop(np.tanh(self.norm(self.first(x)))))


TRAINED = {"first.weight", "first.bias", "norm.weight", "norm.bias", "last.weight"}


@pytest.fixture
def net():
    nn.manual_seed(0)
    return Net()


X = np.random.default_rng(0).normal(size=(5, 3)).astype(F32)


def loss(model, x):
    return (model(x) ** 2).sum()


def states(module):
    return {path: np.array(x) for path, x in nn.state_of(module).items()}


def assert_is_gradient(found, model, expected, tol=1e-6):
    assert type(found) is type(model)
    assert found is not model
    for path, cell in found.named_cells():
        assert cell.type == dict(model.named_cells())[path].type
        want = expected[path] if path in expected else np.zeros(cell.shape, cell.dtype)
        np.testing.assert_allclose(cell.value, want, rtol=tol, atol=tol, err_msg=path)


def test_gradient_is_a_module_and_leaves_the_model_as_it_was(net):
    before = states(net)
    expected = nn.grad(loss)(copy.deepcopy(net), X)
    assert set(expected) == TRAINED
    assert_is_gradient(ft.grad(loss)(net, X), net, expected)
    value, gradient = ft.value_and_grad(loss)(net, X)
    np.testing.assert_allclose(value, loss(copy.deepcopy(net), X), rtol=1e-6)
    assert_is_gradient(gradient, net, expected)
    of_net, of_x = ft.grad(loss, argnums=(0, 1))(net, X)
    assert_is_gradient(of_net, net, expected)
    assert of_x.shape == X.shape
    in_containers = ft.grad(lambda d: loss(d["nets"][0], X) * d["scale"])({"nets": [net], "scale": 2.0})
    assert_is_gradient(in_containers["nets"][0], net, {k: 2 * g for k, g in expected.items()}, 1e-5)
    assert_is_gradient(ft.jit(ft.grad(loss))(net, X), net, expected, 1e-5)
    for path, x in states(net).items():
        np.testing.assert_array_equal(x, before[path])


def test_vjp_jvp_linearize_and_hvp(net):
    expected = nn.grad(loss)(copy.deepcopy(net), X)
    g = ft.grad(loss)(net, X)
    square = sum(float((x**2).sum()) for x in expected.values())

    def of_model(model):
        return loss(model, X)

    value, pull = ft.vjp(of_model, net)
    assert_is_gradient(pull(F32(1.0))[0], net, expected)
    out, tangent = ft.jvp(of_model, (net,), (g,))
    np.testing.assert_allclose([out, tangent], [value, square], rtol=1e-5)
    np.testing.assert_allclose(ft.linearize(of_model, net)[1](g), square, rtol=1e-5)
    product = ft.hvp(of_model, (net,), (g,))
    step = 1e-3
    plus, minus = (ft.grad(loss)(nn.merge(*_moved(net, s * step, g)), X).first.weight.value for s in (1, -1))
    np.testing.assert_allclose(product.first.weight.value, (plus - minus) / (2 * step), rtol=0.05, atol=0.02)
    assert not product.last.bias.value.any()
    assert product.drop.rng.dtype == np.uint32
    with pytest.raises(TypeError, match="must have the structure"):
        ft.jvp(of_model, (net,), (nn.Linear(2, 3),))


def _moved(model, step, direction):
    structure, state = nn.split(model)
    along = nn.state_of(direction)
    return structure, {k: (x + step * along[k]).astype(x.dtype) if k in TRAINED else x for k, x in state.items()}


def test_jacobian_and_hessian_of_a_small_module():
    nn.manual_seed(0)
    model = nn.Linear(2, 3).double()
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    for mode in ("forward", "reverse"):
        found = ft.jacobian(lambda m: m(x), mode=mode)(model)
        np.testing.assert_allclose(found.weight.value, np.einsum("ni,kj->nkji", x, np.eye(3)))
        np.testing.assert_allclose(found.bias.value, np.broadcast_to(np.eye(3), (2, 3, 3)))
    second = ft.hessian(lambda m: (m(x) ** 2).sum() / 2)(model)
    np.testing.assert_allclose(second.bias.value.bias.value, 2 * np.eye(3))
    np.testing.assert_allclose(second.weight.value.bias.value, np.einsum("i,kj->kij", x.sum(0), np.eye(3)))


def test_vmap_jit_checkpoint_scan(net):
    net.eval()
    expected = net(X)
    np.testing.assert_allclose(ft.vmap(lambda m, x: m(x[None])[0], in_axes=(None, 0))(net, X), expected, rtol=1e-5)
    np.testing.assert_allclose(ft.jit(lambda m, x: m(x))(net, X), expected, rtol=1e-5)
    plain, less = ft.grad(loss)(net, X), ft.grad(ft.checkpoint(loss))(net, X)
    assert_is_gradient(less, net, {k: x for k, x in nn.state_of(plain).items() if k in TRAINED})
    kept = ft.residuals(loss, argnums=0)(net, X)
    assert any(r.name == "model.last.weight" for r in kept)
    rows = ft.vmap(ft.grad(loss), in_axes=(None, 0))(net, X[:, None])
    assert rows.first.weight.shape == (5, 4, 3)
    np.testing.assert_allclose(rows.first.weight.value.sum(0), plain.first.weight.value, rtol=1e-4, atol=1e-5)

    def step(model, x):
        g = ft.grad(lambda m: (m(x) ** 2).sum())(model)
        nn_state = {k: p.value - 0.01 * dict(g.named_cells())[k].value for k, p in model.named_parameters()}
        return nn.merge(nn.split(model)[0], nn_state), (model(x) ** 2).sum()

    model, losses = ft.scan(step, nn.Linear(3, 1), np.stack([X, X, X]))
    assert isinstance(model, nn.Linear)
    assert losses[2] < losses[0]


def test_buffers_change_in_the_copy_that_a_function_is_given(net):
    before = states(net)

    def mean(model):
        return model(X).sum(), model

    gradient, after = ft.grad(mean, has_aux=True)(net)
    assert gradient.first.weight.value.any()
    assert after.norm.num_batches_tracked.value == 1
    assert np.abs(after.norm.running_mean.value).max() > 0
    for path, x in states(net).items():
        np.testing.assert_array_equal(x, before[path])


def test_a_cell_as_an_argument():
    weight = nn.Parameter(np.array([1.0, 2.0]))
    found = ft.grad(lambda w: (w**3).sum())(weight)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, [3.0, 12.0])
    np.testing.assert_allclose(ft.grad(lambda w, x: (w * x).sum(), argnums=(0, 1))(weight, 2.0)[1], 3.0)
    np.testing.assert_allclose(ft.jacobian(lambda b: b * b)(nn.Buffer(np.array([1.0, 2.0]))), np.diag([2.0, 4.0]))
    np.testing.assert_allclose(ft.vmap(lambda w: w + 1)(weight).detach().numpy(), [2.0, 3.0])
    model = nn.Linear(2, 1)
    assert nn.grad(lambda m: ft.grad(lambda w: (w**2).sum())(m.weight).sum())(model)["weight"].tolist() == [[2, 2]]
    with pytest.raises(TypeError, match=r"floating-point arrays, but argument 0 is i64"):
        ft.grad(lambda w: w.sum())(nn.Buffer(np.arange(3)))


def test_nothing_to_differentiate_in_a_frozen_module(net):
    net.requires_grad_(False)
    found = ft.grad(loss)(net, X)
    assert not any(cell.value.any() for _, cell in found.named_cells())


def test_tied_parameters_get_the_sum():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    x = np.ones((1, 2), F32)
    found = ft.grad(lambda m: m(x).sum())(model)
    np.testing.assert_allclose(found[0].weight.value, nn.grad(lambda m: m(x).sum())(model)["0.weight"])
    assert found[0].weight is found[1].weight


def test_arrays_of_jax_stay_there(net):
    model = nn.Linear(3, 2)
    nn.jit(lambda m: [setattr(p, "value", p + 0.0) for p in m.parameters()] and None)(model)
    assert isinstance(model.weight.array, jax.Array)
    found = ft.grad(loss)(model, X)
    assert isinstance(found.weight.array, jax.Array)
    assert isinstance(found.weight.value, np.ndarray)
    np.testing.assert_allclose(found.weight.value, nn.grad(loss)(model, X)["weight"], rtol=1e-5)


def test_tree_util_of_jax(net):
    util = jax.tree_util
    paths = [util.keystr(path) for path, _ in util.tree_leaves_with_path(net)]
    assert paths == [f".{path}" for path in nn.state_of(net)]
    twice = util.tree_map(lambda x: 2 * x, net)
    np.testing.assert_array_equal(twice.first.weight.value, 2 * net.first.weight.value)
    shapes = util.tree_map(lambda x: x.shape, net)
    assert shapes.last.weight.array == (1, 4)
    mask = util.tree_map(lambda x: x.ndim > 1, net)
    assert sum(util.tree_leaves(mask)) == 2
    assert util.tree_structure(net) == util.tree_structure(twice)
    assert util.tree_structure(net) != util.tree_structure(copy.deepcopy(net).eval())
    assert hash(util.tree_structure(net)) == hash(util.tree_structure(copy.deepcopy(net)))
    assert util.tree_structure(net) == util.tree_structure(net.double())
    both = util.tree_map(lambda a, b: a + b, nn.Linear(2, 2), nn.Linear(2, 2).double())
    assert both.weight.dtype == np.float64


def test_jit_of_jax_takes_modules():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.5))
    out, after = jax.jit(lambda model, x: (model(x), model))(model, X)
    np.testing.assert_allclose(out, model(X), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after[1].running_mean.value, model[1].running_mean.value, rtol=1e-5)
    np.testing.assert_array_equal(after[3].rng.value, model[3].rng.value)
    jitted, after = jax.jit(lambda model, x: (nn.jit(model)(x), model))(model, X)
    np.testing.assert_allclose(jitted, model(X), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after[1].running_mean.value, model[1].running_mean.value, rtol=1e-5)
    shown = []
    jax.jit(lambda model: shown.append(repr(model.weight)))(nn.Linear(2, 3))
    assert "float32[3,2]" in shown[0]
    model = nn.Linear(2, 3)
    decay = jax.grad(lambda model: (model.weight**2).sum() + copy.deepcopy(model).bias.sum())(model)
    np.testing.assert_allclose(decay.weight.value, 2 * model.weight.value)
    np.testing.assert_array_equal(decay.bias.value, 1)
    doubled = jax.jit(lambda model: jax.tree_util.tree_map(lambda x: x + x, model))(nn.Linear(2, 3))
    assert isinstance(doubled, nn.Linear)
    assert isinstance(doubled.weight.array, jax.Array)


@pytest.mark.parametrize("turns", ["compiled first", "JAX first"])
@pytest.mark.parametrize("convert", [np.asarray, jax.numpy.asarray])
def test_compiled_functions_of_modules_keep_their_rules_in_jax(turns, convert):
    """One function, called with a module as it is and with the same module where JAX traces it."""

    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(np.arange(3, dtype=F32))
            self.calls = nn.Buffer(np.zeros((), F32))

        def forward(self, x):
            self.calls.value = self.calls + 1
            return (ft.stop_gradient(self.weight) * self.weight * x).sum()

    model, f, x = Half(), nn.jit(lambda model, x: model(x)), convert(X)
    for step in range(1, 4):
        if turns == "compiled first":
            assert type(f(model, x)) is type(x.sum())
        found, after = jax.jit(jax.grad(lambda model, x: (f(model, x), model), has_aux=True))(model, x)
        np.testing.assert_allclose(found.weight.value, np.arange(3) * X.sum(axis=0), rtol=1e-5)
        np.testing.assert_allclose(jax.grad(f)(model, x).weight.value, found.weight.value, rtol=1e-5)
        np.testing.assert_allclose(jax.grad(Half.__call__)(model, x).weight.value, found.weight.value, rtol=1e-5)
        assert after.calls.value == model.calls.value + 1
        if turns == "JAX first":
            assert type(f(model, x)) is type(x.sum())
        assert model.calls.value == step


def test_optax_on_gradients_that_are_modules():
    import optax

    nn.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.0), nn.Linear(4, 1))
    model[0].bias.requires_grad = False
    transformation = optax.sgd(0.01)
    state, first = transformation.init(model), loss(model, X)
    for _ in range(5):
        updates, state = transformation.update(ft.grad(loss)(model, X), state, model)
        new = optax.apply_updates(model, updates)
        assert np.array_equal(new[0].bias.value, model[0].bias.value)
        model = new
    assert loss(model, X) < first
    with jax.enable_x64(True):
        assert optax.apply_updates(model, ft.grad(loss)(model, X))[1].rng.dtype == np.uint32


def test_copies(net):
    for other in (copy.deepcopy(net), copy.copy(net), pickle.loads(pickle.dumps(net))):
        assert other.first.weight is not net.first.weight or type(other) is Net
        np.testing.assert_array_equal(other.first.weight.value, net.first.weight.value)
        assert_is_gradient(ft.grad(loss)(other, X), net, nn.grad(loss)(copy.deepcopy(net), X))


def test_containers_stay_cheap(net):
    structure = nn.split(net)[0]
    assert nn.split(net)[0] is structure
    net.norm.eval()
    assert nn.split(net)[0] is not structure


def test_changes_of_parameters_that_would_be_lost_are_errors() -> None:
    nn.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    x = np.ones((3, 2), np.float32)

    def step(model, optimizer):
        loss, gradients = nn.value_and_grad(lambda model: (model(x) ** 2).sum())(model)
        optimizer.step(gradients)
        return loss

    def halve(model):
        model.weight.value = model.weight.value / 2
        return model(x).sum()

    for transform in (ft.jit, lambda f: ft.vmap(f, in_axes=None, axis_size=2)):
        with pytest.raises(
            RuntimeError, match=r"step changes .*\.params\.0 of SGD, .* Write nn\.jit in place of ft\.jit"
        ):
            transform(step)(model, optimizer)
    nn.jit(step)(model, optimizer)
    # A change that a result depends on is none that is lost.
    np.testing.assert_allclose(ft.jit(halve)(model), model(x).sum() / 2 + 1.5 * model.bias.value.item(), rtol=1e-5)
    assert ft.jit(lambda model: (halve(model), model)[1])(model).weight.value[0, 0] == model.weight.value[0, 0] / 2
