"""Modules with tensors of `ftrans.autograd`, as people write it: against closed forms and `ft.grad`."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn
from ftrans.autograd import Tensor, no_grad, tensor

X = np.array([[0.3, -1.2, 2.0], [1.0, 0.5, -0.7]])
W = np.array([1.5, -0.5, 2.0])


class Weighted(ft.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weights: Any) -> Any:
        ctx.save_for_backward(x, weights)
        return np.sin(x) * weights

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, weights = ctx.saved_tensors
        return g * weights * np.cos(x), (g * np.sin(x)).sum(0)


class Layer(nn.Module):
    """A parameter and a Function, as in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(W.copy())

    def forward(self, x: Any) -> Any:
        return Weighted.apply(x, self.weights)


class Affine(nn.Module):
    """tanh(x @ weight) + bias, with the mean of what it has seen."""

    def __init__(self) -> None:
        self.weight = nn.Parameter(np.arange(6.0).reshape(3, 2) / 10)
        self.bias = nn.Parameter(np.array([0.1, -0.2]))
        self.mean = nn.Buffer(np.zeros(3))

    def forward(self, x: Any) -> Any:
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return np.tanh(x @ self.weight) + self.bias


def loss_of(model: Any, x: Any) -> Any:
    return (model(x) ** 2).sum()


def expected_gradients(model: Any, x: Any) -> dict[str, Any]:
    return nn.grad(loss_of)(copy.deepcopy(model), x)


def test_a_layer_with_a_function() -> None:
    layer = Layer()
    x = tensor(X, requires_grad=True)
    y = layer(x)
    y.mean().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(X) * W / 6)
    np.testing.assert_allclose(layer.weights.grad.numpy(), np.sin(X).sum(0) / 6)
    # And the same layer in the other world.
    found = nn.grad(lambda m, x: m(x).mean(), argnums=(0, 1))(layer, X)
    np.testing.assert_allclose(found[0]["weights"], layer.weights.grad.numpy())
    np.testing.assert_allclose(found[1], x.grad.numpy())
    assert isinstance(layer(X), np.ndarray)
    assert ft.autograd.gradcheck(layer, (x,))
    assert ft.autograd.gradgradcheck(layer, (x,))


def test_gradients_add_up_until_they_are_forgotten() -> None:
    model = Affine()
    expected = expected_gradients(model, X)
    for count in (1, 2):
        loss_of(model, tensor(X)).backward()
        for path, p in model.named_parameters():
            np.testing.assert_allclose(p.grad.numpy(), count * expected[path])
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.weight.grad = np.ones((3, 2))
    assert isinstance(model.weight.grad, Tensor)
    with pytest.raises(RuntimeError, match="have the type of its tensor"):
        model.weight.grad = np.ones(3)
    with pytest.raises(RuntimeError, match="traced value"):
        ft.grad(lambda x: setattr(model.weight, "grad", x) or x.sum())(np.ones((3, 2)))


def test_parameters_outside_of_forward() -> None:
    model = Affine()
    loss = loss_of(model, tensor(X)) + 0.5 * sum((p**2).sum() for p in model.parameters())
    expected = expected_gradients(model, X)
    loss.backward()
    for path, p in model.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), expected[path] + p.value)
    norm = np.sqrt(sum((p.grad**2).sum() for p in model.parameters()))
    assert float(norm) > 0


@pytest.mark.parametrize(
    "update",
    [
        lambda p: p.__isub__(0.1 * p.grad),
        lambda p: p.sub_(p.grad, alpha=0.1),
        lambda p: p.add_(p.grad, alpha=-0.1),
        lambda p: p.add_(-0.1 * p.grad.numpy()),
        lambda p: p.copy_(p - 0.1 * p.grad),
        lambda p: p.data.sub_(0.1 * p.grad),
        lambda p: setattr(p, "data", p.data - 0.1 * p.grad),
        lambda p: setattr(p, "value", p.value - 0.1 * p.grad.numpy()),
        lambda p: p.addcmul_(p.grad, np.ones_like(p.value), value=-0.1),
        lambda p: p.lerp_(p - p.grad, 0.1),
    ],
)
def test_updates_in_place(update: Any) -> None:
    model = Affine()
    before = nn.state_of(model)
    before = {path: np.array(x) for path, x in before.items()}
    expected = expected_gradients(model, X)
    loss_of(model, tensor(X)).backward()
    with no_grad():
        for p in model.parameters():
            update(p)
    for path, p in model.named_parameters():
        assert isinstance(p, nn.Parameter)
        np.testing.assert_allclose(p.value, before[path] - 0.1 * expected[path])
        np.testing.assert_allclose(p.grad.numpy(), expected[path])
    # The next step sees the new values.
    model.zero_grad()
    expected = expected_gradients(model, X)
    loss_of(model, tensor(X)).backward()
    np.testing.assert_allclose(model.weight.grad.numpy(), expected["weight"])


def test_updates_in_a_loop_with_attributes() -> None:
    model = Affine()
    with no_grad():
        model.weight -= 1.0
        model.weight *= 2.0
        model.bias.zero_()
        model.mean += 1.0
        model.weight[0] = 7.0
    np.testing.assert_allclose(model.weight.value[1:], 2 * (np.arange(6.0).reshape(3, 2)[1:] / 10 - 1))
    np.testing.assert_allclose(model.weight.value[0], 7)
    np.testing.assert_allclose(model.bias.value, 0)
    np.testing.assert_allclose(model.mean.value, 1)
    assert isinstance(model.weight, nn.Parameter)
    assert isinstance(model.mean, nn.Buffer)

    @nn.jit
    def step(model: Any) -> None:
        model.weight -= 1.0
        model.bias.fill_(3.0).clamp_(max=2.0)
        model.mean.mul_(0.5)

    step(model)
    np.testing.assert_allclose(model.weight.value[0], 6)
    np.testing.assert_allclose(model.bias.value, 2)
    np.testing.assert_allclose(model.mean.value, 0.5)


def test_changes_in_place_keep_shape_and_dtype() -> None:
    p = nn.Parameter(np.ones(3, np.float32))
    with no_grad():
        p += np.full(3, 0.5)
        assert p.dtype == np.float32
        with pytest.raises(ValueError, match="must keep the shape"):
            p += np.ones((2, 3))
        with pytest.raises(ValueError, match="does not fit"):
            p.copy_(np.ones(2))
        p.div_(2).pow_(2) if hasattr(p, "pow_") else p.div_(2)
    count = nn.Buffer(np.array(3))
    count += 1
    assert count.value == 4
    with pytest.raises(TypeError, match="cannot be cast to that dtype"):
        count += 0.5


def test_a_change_in_place_that_would_be_recorded() -> None:
    p = nn.Parameter(np.ones(3))
    for change in (lambda: p.__iadd__(1.0), lambda: p.add_(1.0), lambda: p.zero_()):
        with pytest.raises(RuntimeError, match=r"changes .* in place(.|\n)*no_grad"):
            change()
    frozen = nn.Parameter(np.ones(3), requires_grad=False)
    frozen += 1.0
    np.testing.assert_allclose(frozen.value, 2)
    # A gradient that is computed later is that of what was used.
    y = (p**2).sum()
    with no_grad():
        p += 1.0
    y.backward()
    np.testing.assert_allclose(p.grad.numpy(), [2, 2, 2])


def test_grad_with_respect_to_parameters() -> None:
    model = Affine()
    expected = expected_gradients(model, X)
    for inputs in (list(model.parameters()), tuple(model.parameters()), model.parameters()):
        found = ft.autograd.grad(loss_of(model, tensor(X)), inputs)
        for g, path in zip(found, ("weight", "bias"), strict=True):
            np.testing.assert_allclose(g.numpy(), expected[path])
    assert model.weight.grad is None
    (only,) = ft.autograd.grad(loss_of(model, tensor(X)), model.bias)
    np.testing.assert_allclose(only.numpy(), expected["bias"])
    ft.autograd.backward(loss_of(model, tensor(X)), inputs=[model.bias])
    assert model.weight.grad is None
    np.testing.assert_allclose(model.bias.grad.numpy(), expected["bias"])
    model.weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        ft.autograd.grad(loss_of(model, tensor(X)), list(model.parameters()))


def test_second_derivatives_with_respect_to_parameters() -> None:
    model = Affine()
    (first,) = ft.autograd.grad(loss_of(model, tensor(X)), [model.weight], create_graph=True)
    (first**2).sum().backward()

    def penalty(weight: Any) -> Any:
        g = ft.grad(lambda w: ((np.tanh(X @ w) + model.bias.value) ** 2).sum())(weight)
        return (g**2).sum()

    np.testing.assert_allclose(model.weight.grad.numpy(), ft.grad(penalty)(model.weight.value))


def test_functions_of_tensors_take_parameters() -> None:
    p = nn.Parameter(W.copy())
    copied = tensor(p)
    assert isinstance(copied, Tensor)
    assert not copied.requires_grad
    assert ft.autograd.zeros_like(p).shape == (3,)
    (h,) = [ft.autograd.functional.hessian(lambda w: (w**3).sum(), p)]
    np.testing.assert_allclose(h.numpy(), np.diag(6 * W))
    assert ft.autograd.gradcheck(lambda w: np.sin(w) * 2, (p,))
    assert ft.autograd.gradgradcheck(lambda w: w**3, p)
    y = Weighted.apply(tensor(X), p)
    y.sum().backward()
    np.testing.assert_allclose(p.grad.numpy(), np.sin(X).sum(0))
    (p * 2).backward(p)
    np.testing.assert_allclose(p.grad.numpy(), np.sin(X).sum(0) + 2 * W)


def test_derivatives_of_modules_by_functional() -> None:
    model = Affine()
    expected = ft.jacobian(lambda x: np.tanh(x @ model.weight.value))(X[0])
    found = ft.autograd.functional.jacobian(lambda x: model(x[None])[0], tensor(X[0]))
    np.testing.assert_allclose(found.numpy(), expected)


def test_transformations_of_tensors_keep_the_gradients_of_parameters() -> None:
    layer = Layer()

    for f, expected in (
        (ft.vmap(lambda row: layer(row[None])), np.sin(X).sum(0)),
        (lambda x: ft.grad(lambda x: layer(x).sum())(x), np.cos(X).sum(0)),
        (lambda x: ft.fori_loop(0, 2, lambda i, x: layer(x), x), None),
        (lambda x: ft.cond(True, layer, layer, x), np.sin(X).sum(0)),
        (nn.jit(layer), np.sin(X).sum(0)),
    ):
        for requires_grad in (False, True):
            layer.zero_grad()
            x = tensor(X, requires_grad=requires_grad)
            f(x).sum().backward()
            if expected is None:
                expected = ft.grad(lambda w: (np.sin(np.sin(X) * w) * w).sum())(W)
            np.testing.assert_allclose(layer.weights.grad.numpy(), expected)
    # On arrays the result is an array.
    assert isinstance(ft.vmap(lambda row: layer(row[None]))(X), np.ndarray)
    assert isinstance(ft.grad(lambda x: layer(x).sum())(X), np.ndarray)
    # Without arguments there are only parameters.
    assert Bare()().requires_grad


class Bare(nn.Module):
    def __init__(self) -> None:
        self.w = nn.Parameter(W.copy())

    def forward(self) -> Any:
        return (self.w**2).sum()


def test_no_grad_and_detach() -> None:
    model = Affine()
    with no_grad():
        y = model(tensor(X))
        assert not y.requires_grad
        assert not (model.weight * 2).requires_grad
    assert model(tensor(X)).requires_grad
    assert not model.weight.detach().requires_grad
    (model.bias * model.bias.detach()).sum().backward()
    np.testing.assert_allclose(model.bias.grad.numpy(), model.bias.value)
    assert not (model.eval().requires_grad_(False)(tensor(X))).requires_grad


def test_data_shares_the_memory() -> None:
    p = nn.Parameter(W.copy())
    p.data[0] = 9.0
    assert p.value[0] == 9.0
    p.data = np.ones(3)
    np.testing.assert_allclose(p.value, 1)
    assert not p.data.requires_grad
    buffer = nn.Buffer(np.zeros(2))
    buffer.data += 1.0
    np.testing.assert_allclose(buffer.value, 1)
    np.testing.assert_allclose(ft.grad(lambda s: nn.functional_call(Square(), {"w": s}, None)[0])(W), 2 * W * 1 - W)


class Square(nn.Module):
    def __init__(self) -> None:
        self.w = nn.Parameter(W.copy())

    def forward(self, _: Any) -> Any:
        return (self.w * self.w.data).sum()


def test_tied_parameters() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.first = Layer()
            self.second = Layer()
            self.second.weights = self.first.weights

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x))

    model = Tied()
    expected = nn.grad(loss_of)(model, X)
    loss_of(model, tensor(X)).backward()
    assert list(expected) == ["first.weights"]
    np.testing.assert_allclose(model.second.weights.grad.numpy(), expected["first.weights"])
    with no_grad():
        model.first.weights -= 1.0
    assert model.second.weights is model.first.weights


def test_copies() -> None:
    model = Affine()
    loss_of(model, tensor(X)).backward()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        loss_of(other, tensor(X + 1)).backward()
        assert not np.allclose(other.weight.grad.numpy(), model.weight.grad.numpy())
        with no_grad():
            other.weight += 1.0
        assert not np.allclose(other.weight.value, model.weight.value)


def test_backward_after_compiled_steps() -> None:
    model = Affine()

    @nn.jit
    def step(model: Any, x: Any) -> Any:
        value, gradients = nn.value_and_grad(loss_of)(model, x)
        for path, p in model.named_parameters():
            p.value = p - 0.1 * gradients[path]
        return value

    loss_of(model, tensor(X)).backward()
    for _ in range(2):
        step(model, X)
        model.zero_grad()
        expected = expected_gradients(model, X)
        x = tensor(X, requires_grad=True)
        loss_of(model, x).backward()
        np.testing.assert_allclose(model.weight.grad.numpy(), expected["weight"])
        with no_grad():
            model.weight -= 0.1 * model.weight.grad
            model.bias.data -= 0.1 * model.bias.grad
    # Both ways of stepping give the same as one of them four times.
    other = Affine()
    for _ in range(4):
        step(other, X)
    np.testing.assert_allclose(model.weight.value, other.weight.value)
    np.testing.assert_allclose(model.bias.value, other.bias.value)


def test_buffers_hold_arrays_and_no_graph() -> None:
    model = Affine()

    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    def steps(count: int) -> None:
        for _ in range(count):
            loss_of(model, tensor(X)).backward()
            assert type(model.mean.value) is np.ndarray
            with no_grad():
                for p in model.parameters():
                    p -= 0.01 * p.grad
            model.zero_grad()

    steps(20)
    before = objects()
    steps(60)
    assert objects() < before + 60


def test_hooks_on_parameters_see_tensors() -> None:
    model = Affine()
    seen = []
    handle = model.bias.register_hook(lambda g: seen.append(g) or 2 * g)
    expected = expected_gradients(Affine(), X)
    loss_of(model, tensor(X)).backward()
    assert isinstance(seen[0], Tensor)
    np.testing.assert_allclose(model.bias.grad.numpy(), 2 * expected["bias"])
    handle.remove()
    (g,) = ft.autograd.grad(loss_of(model, tensor(X)), [model.bias])
    np.testing.assert_allclose(g.numpy(), expected["bias"])


def test_zero_dimensional_and_float32_parameters() -> None:
    p = nn.Parameter(np.float32(3.0))
    (p * p).backward()
    assert p.grad.dtype == np.float32
    with no_grad():
        p -= 0.5 * p.grad
    assert p.value.shape == ()
    assert p.dtype == np.float32
    assert float(p) == 0.0
    assert p.item() == 0.0


def test_a_training_loop_as_people_write_it() -> None:
    random = np.random.default_rng(0)
    inputs = random.standard_normal((50, 3))
    targets = np.tanh(inputs @ np.array([[1.0, 0], [0, 1], [1, -1]])) + 0.3
    model = Affine()
    for _ in range(150):
        loss = ((model(tensor(inputs)) - tensor(targets)) ** 2).mean()
        model.zero_grad()
        loss.backward()
        with no_grad():
            for p in model.parameters():
                p -= 0.5 * p.grad
    assert loss.item() < 1e-3


def test_reference() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Parameter(torch.tensor(W))
    ours = nn.Parameter(W.copy())
    for p, values in ((theirs, torch.tensor(X)), (ours, tensor(X))):
        loss = ((p * values) ** 2).sum() + (p**3).sum()
        loss.backward()
        context = torch.no_grad() if p is theirs else no_grad()
        with context:
            p -= 0.1 * p.grad
            p.addcdiv_(p.grad, p.grad.abs() + 1, value=-0.5)
            p.lerp_(p * 2, 0.25)
            p.clamp_(min=-1.0)
    np.testing.assert_allclose(ours.value, theirs.detach().numpy())


class Smoothed(nn.Module):
    """The result goes through a buffer that forward code writes and reads again, as a whole and by element."""

    def __init__(self) -> None:
        self.weight = nn.Parameter(np.array([1.0, 2.0]))
        self.mean = nn.Buffer(np.zeros(2))

    def forward(self, x: Any) -> Any:
        self.mean = 0.5 * self.mean + self.weight * x
        self.mean[0] = self.mean[0] * 3.0
        return (self.mean * x).sum()


def test_gradients_through_buffers_that_are_read_again() -> None:
    x = np.array([2.0, 5.0])
    model, other = Smoothed(), Smoothed()
    expected = nn.grad(lambda m: m(x))(other)["weight"]
    np.testing.assert_allclose(expected, [3 * 4.0, 25.0])
    model(ft.autograd.tensor(x)).backward()
    np.testing.assert_allclose(model.weight.grad.numpy(), expected)
    assert isinstance(model.mean.array, np.ndarray)
    np.testing.assert_allclose(model.mean.value, other.mean.value)


def test_tensors_do_not_stay_in_buffers_after_an_error() -> None:
    class Failing(Smoothed):
        def forward(self, x: Any) -> Any:
            super().forward(x)
            raise KeyError("stop")

    model = Failing()
    with pytest.raises(KeyError):
        model(ft.autograd.tensor(np.ones(2)))
    assert isinstance(model.mean.array, np.ndarray)


def test_a_function_gets_the_module_itself() -> None:
    """As in an adjoint method: the module is an argument, and so are its parameters, which get the gradients."""

    class Called(ft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, model: Any, x: Any, *parameters: Any) -> Any:
            assert model is layer
            ctx.model = model
            ctx.save_for_backward(x, *parameters)
            return model(x)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            x, *parameters = ctx.saved_tensors
            with ft.autograd.enable_grad():
                x = x.detach().requires_grad_()
                return None, *ft.autograd.grad(ctx.model(x), (x, *parameters), gradient)

    layer = nn.Linear(3, 2)
    x = tensor(np.ones((4, 3), np.float32), requires_grad=True)
    found = []
    for out in (Called.apply(layer, x, *layer.parameters()), layer(x)):
        (out**2).sum().backward()
        found.append([p.grad.numpy() for p in (x, layer.weight, layer.bias)])
        x.grad = None
        layer.zero_grad()
    for mine, expected in zip(*found, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-6)
