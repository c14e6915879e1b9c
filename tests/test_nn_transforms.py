"""nn.vmap, nn.scan, nn.checkpoint against loops over lanes and layers; and inner traces, which may not change cells."""

import copy

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn

F32 = np.float32


@pytest.fixture(autouse=True)
def seeded():
    nn.manual_seed(0)


def data(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(F32)


def mlp(p=0.0):
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(p), nn.Linear(4, 2))


class Block(nn.Module):
    """A layer with everything that changes: parameters, running means, a counter, dropout."""

    def __init__(self, width=4):
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(0.4)
        self.calls = nn.Buffer(np.zeros((), np.int32))

    def forward(self, x):
        self.calls = self.calls + 1
        return x + self.drop(np.tanh(self.norm(self.linear(x))))


class Counter(nn.Module):
    def __init__(self, value=0.0):
        self.count = nn.Buffer(np.array(value))
        self.rng = nn.RngState(3)
        self.weight = nn.Parameter(np.array(2.0))

    def forward(self, x):
        self.count = self.count + 1
        return self.weight * x


def square(model, x):
    return (model(x) ** 2).sum()


def states(module):
    return {path: np.array(x) for path, x in nn.state_of(module).items()}


def assert_same(found, expected, tol=1e-5):
    assert set(found) == set(expected)
    for path in expected:
        np.testing.assert_allclose(found[path], expected[path], rtol=tol, atol=tol, err_msg=path)


def assert_unchanged(module, before):
    assert_same(states(module), before, 0)
    assert all(isinstance(cell.array, np.ndarray) for _, cell in module.named_cells())


# vmap


def test_vmap_over_an_ensemble_equals_a_loop():
    models, x = [mlp() for _ in range(3)], data(5, 3)
    ensemble = nn.stack_modules(models)
    expected = np.stack([m(x) for m in models])
    run = nn.vmap(lambda model, x: model(x), in_axes=(0, None))
    np.testing.assert_allclose(run(ensemble, x), expected, rtol=1e-5, atol=1e-6)
    assert isinstance(run(ensemble, x), np.ndarray)
    values, gradients = nn.vmap(nn.value_and_grad(square), in_axes=(0, None))(ensemble, x)
    for i, m in enumerate(models):
        value, one = nn.value_and_grad(square)(m, x)
        np.testing.assert_allclose(values[i], value, rtol=1e-5)
        assert_same({k: g[i] for k, g in gradients.items()}, one)


def test_vmap_over_data_and_ensemble_and_another_axis():
    models, x = [mlp() for _ in range(3)], data(5, 3, 3)
    out = nn.vmap(lambda model, x: model(x), in_axes=(0, 2), out_axes=1)(nn.stack_modules(models), x)
    np.testing.assert_allclose(out, np.stack([m(x[..., i]) for i, m in enumerate(models)], 1), rtol=1e-5, atol=1e-6)
    moved = nn.stack_modules([Counter(float(i)) for i in range(3)])
    for _, cell in moved.named_cells():
        cell.value = np.moveaxis(cell.value, 0, -1)
    nn.vmap(lambda model, x: model(x), in_axes=(-1, 0))(moved, np.ones(3))
    np.testing.assert_array_equal(moved.count.value, [1, 2, 3])


def test_buffers_and_streams_of_an_ensemble_are_those_of_each_member():
    blocks, x = [Block() for _ in range(3)], data(6, 4)
    ensemble = nn.stack_modules(blocks)
    out = nn.vmap(lambda model, x: model(x), in_axes=(0, None))(ensemble, x)
    expected = [b(x) for b in blocks]
    np.testing.assert_allclose(out, np.stack(expected), rtol=1e-4, atol=1e-5)
    for found, block in zip(nn.unstack_modules(ensemble), blocks, strict=True):
        assert_same(states(found), states(block))


def test_training_an_ensemble_in_one_compiled_step():
    models, x = [mlp(0.5) for _ in range(2)], data(5, 3)
    ensemble = nn.stack_modules(models)

    def descend(model, x):
        value, gradients = nn.value_and_grad(square)(model, x)
        for path, p in model.named_parameters():
            p.value = p - 0.1 * gradients[path]
        return value

    step = nn.jit(lambda ensemble, x: nn.vmap(descend, in_axes=(0, None))(ensemble, x))
    values = [step(ensemble, x) for _ in range(3)]
    for i, m in enumerate(models):
        np.testing.assert_allclose([v[i] for v in values], [descend(m, x) for _ in range(3)], rtol=1e-4)
        assert_same(states(nn.unstack_modules(ensemble)[i]), states(m), 1e-4)


@pytest.mark.parametrize("transformation", [nn.vmap, ft.vmap])
def test_gradients_of_samples(transformation):
    model, x, y = mlp(), data(5, 3), data(5, 2, seed=1)

    def loss(model, x, y):
        return ((model(x) - y) ** 2).sum()

    found = transformation(nn.grad(loss), in_axes=(None, 0, 0))(model, x, y)
    for i in range(5):
        assert_same({k: g[i] for k, g in found.items()}, nn.grad(loss)(model, x[i], y[i]))


def test_lanes_of_a_shared_module_draw_differently_and_as_each_alone():
    model, x = nn.Dropout(0.5), np.ones((4, 32), F32)
    start = model.rng.value
    out = nn.vmap(lambda model, x: model(x), in_axes=(None, 0))(model, x)
    assert len({row.tobytes() for row in out}) == 4
    key, after = nn.random.advance(start)
    np.testing.assert_array_equal(model.rng.value, after)
    for i in range(4):
        model.rng.value = np.append(nn.random.fold_in(key, i), np.uint32(0))
        np.testing.assert_array_equal(model(x[i]), out[i])
    compiled = nn.jit(lambda model, x: nn.vmap(lambda model, x: model(x), in_axes=(None, 0))(model, x))
    model.rng.value = start
    np.testing.assert_array_equal(compiled(model, x), out)
    np.testing.assert_array_equal(model.rng.value, after)
    model.eval()
    nn.vmap(lambda model, x: model(x), in_axes=(None, 0))(model, x)
    np.testing.assert_array_equal(model.rng.value, after)


def test_a_shared_buffer_takes_one_value_and_no_more():
    model = Counter()
    np.testing.assert_array_equal(nn.vmap(lambda m, x: m(x), in_axes=(None, 0))(model, np.arange(3.0)), [0, 2, 4])
    assert model.count.value == 1
    norm = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    before, x = states(norm), data(4, 5, 3)
    with pytest.raises(RuntimeError, match=r"1\.running_mean, 1\.running_var.*eval\(\).*stack_modules"):
        nn.vmap(lambda m, x: m(x), in_axes=(None, 0))(norm, x)
    assert_unchanged(norm, before)
    norm.eval()
    out = nn.vmap(lambda m, x: m(x), in_axes=(None, 0))(norm, x)
    np.testing.assert_allclose(out, np.stack([norm(y) for y in x]), rtol=1e-5, atol=1e-6)


def test_vmap_inside_a_gradient_and_on_tensors():
    model, x = mlp(), data(5, 3)

    def loss(model, x):
        return (nn.vmap(lambda m, row: m(row), in_axes=(None, 0))(model, x) ** 2).sum()

    assert_same(nn.grad(loss)(model, x), nn.grad(square)(model, x))
    ensemble = nn.stack_modules([model, mlp()])
    t = ft.autograd.tensor(x, requires_grad=True)
    nn.vmap(lambda m, x: square(m, x), in_axes=(0, None))(ensemble, t).sum().backward()
    assert_same({k: p.grad.numpy()[0] for k, p in ensemble.named_parameters()}, nn.grad(square)(model, x))
    np.testing.assert_allclose(
        t.grad.numpy(), sum(ft.grad(square, argnums=1)(m, x) for m in nn.unstack_modules(ensemble)), rtol=1e-4
    )


def test_errors_of_vmap():
    ensemble = nn.stack_modules([mlp() for _ in range(3)])
    with pytest.raises(ValueError, match=r"0\.weight has 3, the other arguments have 4"):
        nn.vmap(lambda m, x: m(x))(ensemble, data(4, 3))
    with pytest.raises(ValueError, match=r"axis 0 of count, which is f64\[\].*in_axes=None"):
        nn.vmap(lambda m, x: m(x))(Counter(), data(4))
    with pytest.raises(ValueError, match=r"given \S*0\.weight twice"):
        nn.vmap(lambda a, b: 0.0, in_axes=(0, None), axis_size=2)(ensemble, ensemble)
    with pytest.raises(ValueError, match="axis_size"):
        nn.vmap(lambda m: 0.0, in_axes=None)(Counter())
    model = mlp()
    before = states(model)
    with pytest.raises(ZeroDivisionError):
        nn.vmap(lambda m, x: m(x) + 1 / 0, in_axes=(None, 0))(model, data(4, 3))
    assert_unchanged(model, before)


# Stacks and scan


def test_stack_and_unstack():
    models = [mlp(0.5) for _ in range(3)]
    stack = nn.stack_modules(models)
    assert stack[0].weight.shape == (3, 4, 3)
    assert stack[2].rng.shape == (3, 3)
    for found, m in zip(nn.unstack_modules(stack), models, strict=True):
        assert_same(states(found), states(m), 0)
    assert stack.training
    assert not nn.stack_modules([m.eval() for m in models]).training
    with pytest.raises(ValueError, match=r"number 1.*training"):
        nn.stack_modules([models[0], mlp(0.5)])
    with pytest.raises(ValueError, match=r"number 1, Linear\(in_features=3.*differs from the first.*weight"):
        nn.stack_modules([nn.Linear(2, 3), nn.Linear(3, 3)])
    with pytest.raises(ValueError, match="at least one"):
        nn.stack_modules([])
    with pytest.raises(ValueError, match="takes a stack"):
        nn.unstack_modules(mlp())


def loop(layers, x):
    for layer in layers:
        x = layer(x)
    return x


def test_scan_equals_the_loop():
    layers, x = nn.ModuleList([Block() for _ in range(3)]), data(6, 4)
    others = copy.deepcopy(layers)
    np.testing.assert_allclose(nn.scan(layers, x), loop(others, x), rtol=1e-5, atol=1e-6)
    assert_same(states(layers), states(others))
    assert layers[1].calls.value == 1
    assert layers[1].calls.dtype == np.int32


@pytest.mark.parametrize("checkpoint", [False, True])
def test_gradient_of_scan_by_layer(checkpoint):
    layers, x = nn.ModuleList([Block() for _ in range(3)]), data(6, 4)
    layers[0].linear.bias.requires_grad = False
    others = copy.deepcopy(layers)

    def through_scan(layers, x):
        return (nn.scan(layers, x, checkpoint=checkpoint) ** 2).sum()

    value, gradients = nn.value_and_grad(through_scan)(layers, x)
    expected, by_loop = nn.value_and_grad(lambda layers, x: (loop(layers, x) ** 2).sum())(others, x)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert_same(gradients, by_loop, 1e-4)
    assert_same(states(layers), states(others))


def test_scan_compiled_and_of_a_stack():
    layers, x = nn.ModuleList([Block() for _ in range(3)]), data(6, 4)
    others, stack = copy.deepcopy(layers), nn.stack_modules(list(layers))

    def gradient(layers, x):
        return nn.value_and_grad(lambda layers: (nn.scan(layers, x) ** 2).sum())(layers)

    traced = []
    layers[0].register_forward_pre_hook(lambda module, args: traced.append(module))
    for layer in list(layers)[1:]:
        layer.__dict__["_hooks"] = layers[0].__dict__["_hooks"]
    value, gradients = nn.jit(gradient)(layers, x)
    assert len(traced) == 1
    expected, by_loop = nn.value_and_grad(lambda layers, x: (loop(layers, x) ** 2).sum())(others, x)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert_same(gradients, by_loop, 1e-4)
    value, of_stack = gradient(stack, x)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert_same({f"{i}.{k}": g[i] for k, g in of_stack.items() for i in range(3)}, by_loop, 1e-4)
    for found, other in zip(nn.unstack_modules(stack), others, strict=True):
        assert_same(states(found), states(other))


def test_scan_of_one_module_many_times_and_of_parts_in_common():
    class Layer(nn.Module):
        def __init__(self, shared):
            self.shared = shared
            self.own = nn.Linear(4, 4)

        def forward(self, x):
            return self.own(self.shared(x))

    x = data(6, 4)
    for layers in ([Block()] * 3, [Layer(shared) for shared in [Block()] * 3]):
        model = nn.ModuleList(layers)
        other = copy.deepcopy(model)
        value, gradients = nn.value_and_grad(lambda m: (nn.scan(m, x) ** 2).sum())(model)
        expected, by_loop = nn.value_and_grad(lambda m: (loop(m, x) ** 2).sum())(other)
        np.testing.assert_allclose(value, expected, rtol=1e-4)
        assert_same(gradients, by_loop, 1e-3)
        assert_same(states(model), states(other))
    first, second = Block(), Block()
    with pytest.raises(RuntimeError, match="shares with other layers"):
        nn.scan([Layer(first), Layer(first), Layer(second)], x)


def test_scan_on_tensors_and_further_arguments():
    class Layer(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(data(4, 4, seed=int(np.random.default_rng(1).integers(9))))

        def forward(self, x, shift):
            return np.tanh(x @ self.weight) + shift

    layers, x, shift = [Layer() for _ in range(3)], data(2, 4), data(4, seed=2)
    t = ft.autograd.tensor(x, requires_grad=True)
    nn.scan(layers, t, shift).sum().backward()
    model = nn.ModuleList(layers)

    def by_loop(model, x):
        for layer in model:
            x = layer(x, shift)
        return x.sum()

    expected, of_x = nn.grad(by_loop, argnums=(0, 1))(model, x)
    assert_same({k: p.grad.numpy() for k, p in model.named_parameters()}, expected)
    np.testing.assert_allclose(t.grad.numpy(), of_x, rtol=1e-4, atol=1e-5)


def test_errors_of_scan():
    with pytest.raises(ValueError, match=r"number 1, Linear\(in_features=4, out_features=3.*weight"):
        nn.scan([nn.Linear(4, 4), nn.Linear(4, 3)], data(2, 4))
    with pytest.raises(ValueError, match=r"number 1.*p: 0\.1 -> 0\.2"):
        nn.scan([nn.Dropout(0.1), nn.Dropout(0.2)], data(2, 4))
    with pytest.raises(
        TypeError, match=r"the layer Linear\(in_features=4[^\0]*f32\[2,4\] came in, f32\[2,3\] was returned"
    ):
        nn.scan([nn.Linear(4, 3), nn.Linear(4, 3)], data(2, 4))
    with pytest.raises(TypeError, match="layer 0 is a function"):
        nn.scan([lambda x: x], data(2, 4))
    with pytest.raises(ValueError, match="takes a stack"):
        nn.scan(Block(), data(2, 4))
    assert nn.scan([], 3.0) == 3.0


# checkpoint


@pytest.mark.parametrize("policy", ["nothing", "dots"])
def test_checkpoint_changes_nothing_but_memory(policy):
    model, x = nn.ModuleList([Block() for _ in range(2)]), data(6, 4)
    other = copy.deepcopy(model)

    def loss(layers, x, wrap):
        for layer in layers:
            x = wrap(layer)(x)
        return (x**2).sum()

    value, gradients = nn.value_and_grad(loss)(model, x, lambda layer: nn.checkpoint(layer, policy=policy))
    expected, plain = nn.value_and_grad(loss)(other, x, lambda layer: layer)
    assert value == expected
    assert_same(gradients, plain, 1e-6)
    assert_same(states(model), states(other), 0)

    def kept(wrap):
        return ft.residuals(lambda model, x: loss(model, x, wrap), argnums=0)(model, x).total

    assert kept(lambda layer: nn.checkpoint(layer, policy=policy)) < kept(lambda layer: layer)


def test_checkpoint_of_closures_and_nested_and_compiled():
    model, x = nn.ModuleList([Block() for _ in range(2)]), data(6, 4)
    other = copy.deepcopy(model)

    def loss(model, x):
        inner = nn.checkpoint(lambda x: model[0](x) + model[0].calls)
        both = nn.checkpoint(lambda model, x: model[1](inner(x)), memory_budget=10**6)
        return (both(model, x) ** 2).sum()

    def plain(model, x):
        return (model[1](model[0](x) + model[0].calls) ** 2).sum()

    for compiled in (False, True):
        taking = nn.value_and_grad(loss)
        value, gradients = (nn.jit(taking) if compiled else taking)(model, x)
        expected, by_plain = nn.value_and_grad(plain)(other, x)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        assert_same(gradients, by_plain, 1e-4)
        assert_same(states(model), states(other))
    assert model[0].calls.value == 2
    np.testing.assert_allclose(nn.checkpoint(model[0])(x), other[0](x), rtol=1e-4, atol=1e-6)
    assert model[0].calls.value == 3


def test_checkpoint_on_tensors():
    model, x = Block(), data(6, 4)
    other = copy.deepcopy(model)
    t = ft.autograd.tensor(x, requires_grad=True)
    (nn.checkpoint(model)(t) ** 2).sum().backward()
    expected, of_x = nn.grad(square, argnums=(0, 1))(other, x)
    assert_same({k: p.grad.numpy() for k, p in model.named_parameters()}, expected, 1e-4)
    np.testing.assert_allclose(t.grad.numpy(), of_x, rtol=1e-4, atol=1e-5)
    assert_same(states(model), states(other))


def test_a_checkpointed_module_is_a_module():
    model = nn.Sequential(nn.checkpoint(nn.Linear(3, 4)), nn.Tanh())
    assert set(nn.grad(square)(model, data(2, 3))) == {"0.module.weight", "0.module.bias"}
    assert "policy='nothing'" in repr(model)
    with pytest.raises(ValueError, match="no policy 'nothin'"):
        nn.checkpoint(nn.Linear(2, 2), policy="nothin")
    with pytest.raises(TypeError, match="not both"):
        nn.checkpoint(nn.Linear(2, 2), policy="dots", memory_budget=3)


def test_a_failing_checkpointed_function_leaves_cells_as_they_were():
    model = Counter()

    def fails(x):
        model(x)
        raise KeyError("no")

    before = states(model)
    with pytest.raises(KeyError):
        nn.value_and_grad(lambda model, x: nn.checkpoint(fails)(x))(model, 1.0)
    assert_unchanged(model, before)


# Inner traces


def inner_traces():
    """Functions of a module's forward code, each of which calls the module in a trace of its own."""
    return {
        "vmap": lambda call, x: ft.vmap(call)(np.stack([x, x])).sum(),
        "jit": lambda call, x: ft.jit(call)(x),
        "grad": lambda call, x: ft.grad(call)(x),
        "jvp": lambda call, x: ft.jvp(call, (x,), (x,))[1],
        "jacobian": lambda call, x: ft.jacobian(call)(x),
        "checkpoint": lambda call, x: ft.checkpoint(call)(x),
        "scan": lambda call, x: ft.scan(lambda c, _: (call(c), None), x, length=2)[0],
        "map": lambda call, x: ft.map(call, np.stack([x, x])).sum(),
        "cond": lambda call, x: ft.cond(x > 0, call, lambda x: x, x),
        "while": lambda call, x: ft.while_loop(lambda c: c < 9, lambda c: call(c) + 1, x),
        "fori": lambda call, x: ft.fori_loop(0, 2, lambda i, c: call(c), x),
    }


@pytest.mark.parametrize("name", inner_traces())
@pytest.mark.parametrize("around", ["value_and_grad", "jit", "nothing"])
def test_inner_traces_read_cells_but_do_not_change_them(name, around):
    run = inner_traces()[name]

    class Reads(nn.Module):
        def __init__(self, part, call):
            self.part = part
            self.call = call

        def forward(self, x):
            return run(lambda y: self.call(self.part, y), x)

    part = Counter()
    changing = {
        "count": lambda part, y: part(y),
        "part.rng": lambda part, y: y * nn.random.uniform(part.rng.next_key(), ()).astype(np.float64),
        "part.weight": lambda part, y: [part.weight.copy_(y), y][1],
    }

    def called(model, x):
        if around == "nothing":
            return model(x)
        taking = nn.value_and_grad(lambda model, x: model(x), argnums=(0, 1))
        return (nn.jit(taking) if around == "jit" else taking)(model, x)

    if around == "nothing" and name in ("cond", "checkpoint", "jit"):
        # Nothing is traced, or the module would be a constant of what is compiled, which is another error.
        return
    reading = Reads(part, lambda part, y: part.weight * y + part.count)
    before = states(reading)
    called(reading, np.float64(1.5))
    assert_unchanged(reading, before)
    for path, call in changing.items():
        model = Reads(part, call)
        with pytest.raises(RuntimeError, match=f"{path}.* is changed in a function.*nn.checkpoint"):
            called(model, np.float64(1.5))
        assert_unchanged(model, before)
        assert np.isfinite(part.weight.value)


def test_a_gradient_through_inner_traces_that_read():
    model, x = Counter().eval(), np.float64(1.5)
    for name, run in inner_traces().items():
        if name in ("while", "jvp", "jacobian"):
            continue
        found = nn.grad(lambda model, x, run=run: run(lambda y: model.weight * y * y, x))(model, x)["weight"]
        w, h = model.weight.value, 1e-6

        def at(w, run=run):
            return run(lambda y: w * y * y, x)

        np.testing.assert_allclose(found, (at(w + h) - at(w - h)) / (2 * h), rtol=1e-5, err_msg=name)


def test_inner_traces_of_forward_code_on_tensors_reach_parameters():
    class Model(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(np.array(2.0))

        def forward(self, x):
            y, _ = ft.scan(lambda c, _: (c * self.weight, None), x, length=2)
            return ft.checkpoint(lambda y: y * self.weight)(y)

    model = Model()
    model(ft.autograd.tensor(3.0, requires_grad=True)).backward()
    assert model.weight.grad.item() == pytest.approx(3 * 3 * 2.0**2)


def test_modules_made_in_a_trace_belong_to_it():
    structure, state = nn.split(Counter())

    def f(x):
        model = nn.merge(structure, {**state, "weight": x})
        return model(x) + model.count

    assert ft.grad(f)(3.0) == 6.0
    with pytest.raises(RuntimeError, match="count is changed"):
        ft.grad(lambda x: (lambda m: ft.checkpoint(m)(x))(nn.merge(structure, {**state, "weight": x})))(3.0)
