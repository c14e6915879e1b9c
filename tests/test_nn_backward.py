"""Modules with a `backward` of their own, and hooks: against closed forms and `ft.grad` of plain functions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.special

import ftrans as ft
from ftrans import nn

X = np.array([0.3, -1.2, 2.0])
W = np.array([1.5, -0.5, 2.0])


class Edited(nn.Module):
    """x * weight, with a gradient of 100 times the right one for x, and 10 times for the weight."""

    def __init__(self) -> None:
        self.weight = nn.Parameter(W.copy())

    def forward(self, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * self.weight

    def backward(self, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        self.weight.grad = 10 * g * x
        return 100 * g * self.weight


class Derived(nn.Module):
    """sin(x) * weight + bias, whose gradients are edits of the derived ones."""

    def __init__(self, factor: float = 2.0) -> None:
        self.weight = nn.Parameter(W.copy())
        self.bias = nn.Parameter(np.zeros(3))
        self.factor = factor

    def forward(self, ctx: Any, x: Any) -> Any:
        return np.sin(x) * self.weight + self.bias

    def backward(self, ctx: Any, g: Any) -> Any:
        grad_input, gradients = ctx.vjp()
        self.weight.grad = self.factor * gradients["weight"]
        return -grad_input


class LeftOut(Derived):
    """The same, which states nothing."""

    def backward(self, ctx: Any, g: Any) -> Any:
        return None


class WithScipy(nn.Module):
    """exp of the log-gamma function by SciPy, times weight: nothing that can be traced."""

    def __init__(self, sets: bool = True) -> None:
        self.weight = nn.Parameter(W.copy())
        self.calls = nn.Buffer(np.zeros(()))
        self.sets = sets

    def forward(self, ctx: Any, x: Any) -> Any:
        self.calls = self.calls + 1
        y = scipy.special.loggamma(np.asarray(x) + 3.0)
        ctx.save_for_backward(x, y)
        return self.weight * y

    def backward(self, ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        if self.sets:
            self.weight.grad = g * y
        return g * self.weight * scipy.special.digamma(np.asarray(x) + 3.0)


def gradients(model: nn.Module, x: Any, how: str) -> tuple[Any, dict[str, Any]]:
    """Gradients of sum(model(x) ** 2) with respect to the argument and the parameters."""

    def loss(model: Any, x: Any) -> Any:
        return (model(x) ** 2).sum()

    if how == "tensors":
        model.zero_grad()
        t = ft.autograd.tensor(x, requires_grad=True)
        loss(model, t).backward()
        return t.grad.numpy(), {path: p.grad.numpy() for path, p in model.named_parameters() if p.grad is not None}
    taken = nn.grad(loss, argnums=(0, 1))
    of_model, of_x = (nn.jit(taken) if how == "compiled" else taken)(model, x)
    return of_x, of_model


HOW = ["traced", "compiled", "tensors"]


@pytest.mark.parametrize("how", HOW)
def test_stated_gradients(how: str) -> None:
    of_x, of_model = gradients(Edited(), X, how)
    g = 2 * X * W
    np.testing.assert_allclose(of_x, 100 * g * W)
    np.testing.assert_allclose(of_model["weight"], 10 * g * X)


@pytest.mark.parametrize("how", HOW)
def test_edits_of_what_is_derived(how: str) -> None:
    g = 2 * np.sin(X) * W
    of_x, of_model = gradients(Derived(3.0), X, how)
    np.testing.assert_allclose(of_x, -g * np.cos(X) * W)
    np.testing.assert_allclose(of_model["weight"], 3 * g * np.sin(X))
    np.testing.assert_allclose(of_model["bias"], g)


@pytest.mark.parametrize("how", HOW)
def test_what_is_left_out_is_derived(how: str) -> None:
    g = 2 * np.sin(X) * W
    of_x, of_model = gradients(LeftOut(), X, how)
    np.testing.assert_allclose(of_x, g * np.cos(X) * W)
    np.testing.assert_allclose(of_model["weight"], g * np.sin(X))
    np.testing.assert_allclose(of_model["bias"], g)


@pytest.mark.parametrize("how", HOW)
def test_zeros_are_not_left_out(how: str) -> None:
    class Zeros(LeftOut):
        def backward(self, ctx: Any, g: Any) -> Any:
            self.weight.grad = 0.0
            return np.zeros_like(g)

    of_x, of_model = gradients(Zeros(), X, how)
    np.testing.assert_array_equal(of_x, 0)
    np.testing.assert_array_equal(of_model["weight"], 0)
    np.testing.assert_allclose(of_model["bias"], 2 * np.sin(X) * W)


@pytest.mark.parametrize("how", HOW)
def test_forward_by_scipy(how: str) -> None:
    model = WithScipy()
    y, slope = scipy.special.loggamma(X + 3), scipy.special.digamma(X + 3)
    of_x, of_model = gradients(model, X, how)
    np.testing.assert_allclose(of_x, 2 * W * y * W * slope)
    np.testing.assert_allclose(of_model["weight"], 2 * W * y * y)
    assert float(model.calls.value) == 1
    of_x, _ = gradients(model, X + 1, how)
    np.testing.assert_allclose(of_x, 2 * W**2 * scipy.special.loggamma(X + 4) * scipy.special.digamma(X + 4))
    assert float(model.calls.value) == 2


@pytest.mark.parametrize("how", HOW)
def test_scipy_without_all_gradients(how: str) -> None:
    # With respect to the weight, forward can be traced: SciPy does not see it.
    of_weight = gradients(WithScipy(sets=False), X, how)[1]["weight"]
    np.testing.assert_allclose(of_weight, 2 * W * scipy.special.loggamma(X + 3) ** 2)

    class Incomplete(WithScipy):
        def backward(self, ctx: Any, g: Any) -> Any:
            self.weight.grad = g
            return None

    with pytest.raises(
        Exception, match=r"leaves out the gradient of argument 0(.|\n)*cannot be traced(.|\n)*return its grad"
    ):
        gradients(Incomplete(), X, how)
    # Where nobody asks for it, it is not missed.
    taken = nn.grad(lambda m, x: m(x).sum())
    found = (nn.jit(taken) if how == "compiled" else taken)(Incomplete(), X)
    np.testing.assert_allclose(found["weight"], np.ones(3))


def test_scipy_in_every_transformation() -> None:
    model = WithScipy()

    def f(x: Any) -> Any:
        return nn.functional_call(model, nn.state_of(model), x)[0]

    slope = W * scipy.special.digamma(X + 3)
    np.testing.assert_allclose(ft.jacrev(f)(X), np.diag(slope))
    np.testing.assert_allclose(ft.vmap(f)(np.stack([X, X + 1]))[1], W * scipy.special.loggamma(X + 4))
    each = ft.vmap(ft.grad(lambda x: f(x).sum()))(np.stack([X, X + 1]))
    np.testing.assert_allclose(each[1], W * scipy.special.digamma(X + 4))
    np.testing.assert_allclose(ft.jit(ft.grad(lambda x: f(x).sum()))(X), slope)
    assert float(model.calls.value) == 0
    with pytest.raises(Exception, match="WithScipy"):
        ft.hessian(lambda x: f(x).sum())(X)


def test_functional_call_and_the_modes() -> None:
    model = Edited()

    def f(state: Any, x: Any) -> Any:
        return nn.functional_call(model, state, x)[0]

    state = {"weight": 2 * W}
    of_state = ft.grad(lambda s: f(s, X).sum())(state)
    np.testing.assert_allclose(of_state["weight"], 10 * X)
    np.testing.assert_allclose(ft.jacobian(f, argnums=1)(state, X), np.diag(200 * W))
    # Forward mode is the transpose of what is stated.
    np.testing.assert_allclose(ft.jvp(lambda x: f(state, x), (X,), (np.ones(3),))[1], 200 * W)
    np.testing.assert_allclose(ft.vmap(ft.grad(lambda x: f(state, x).sum()))(np.stack([X, X])), np.stack([200 * W] * 2))


def test_per_sample_gradients() -> None:
    model = LeftOut()
    xs = np.stack([X, X + 1])
    taken = ft.vmap(
        lambda s, x: ft.grad(lambda s: (nn.functional_call(model, s, x)[0] ** 2).sum())(s), in_axes=(None, 0)
    )
    found = taken(nn.state_of(model), xs)
    np.testing.assert_allclose(found["weight"], 2 * np.sin(xs) ** 2 * W)


@pytest.mark.parametrize("cls", [LeftOut, Derived])
def test_second_derivatives(cls: type[Derived]) -> None:
    model = cls()
    sign = 1.0 if cls is LeftOut else -1.0

    # The rule says that the slope is `sign * cos(x) w`; what it uses is differentiated by the rule again.
    def f(x: Any) -> Any:
        return nn.functional_call(model, nn.state_of(model), x)[0].sum()

    expected = -np.sin(X) * W * sign
    np.testing.assert_allclose(np.diag(ft.hessian(f)(X)), expected)
    t = ft.autograd.tensor(X, requires_grad=True)
    (first,) = ft.autograd.grad(model(t).sum(), t, create_graph=True)
    np.testing.assert_allclose(first.detach().numpy(), sign * np.cos(X) * W)
    (second,) = ft.autograd.grad(first.sum(), t)
    np.testing.assert_allclose(second.numpy(), expected)


def test_second_derivative_of_a_stated_gradient() -> None:
    class Cube(nn.Module):
        def __init__(self) -> None:
            self.scale = nn.Parameter(np.array(2.0))

        def forward(self, ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return self.scale * x**3

        def backward(self, ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            self.scale.grad = (g * x**3).sum()
            return 3 * self.scale * g * x**2

    model = Cube()
    np.testing.assert_allclose(np.diag(ft.hessian(lambda x: model(x).sum())(X)), 12 * X)
    np.testing.assert_allclose(ft.grad(ft.grad(ft.grad(lambda x: model(x).sum())))(1.7), 12.0)
    # A penalty on the gradient, with respect to the parameter.
    penalty = nn.grad(lambda m, x: (ft.grad(lambda x: m(x).sum())(x) ** 2).sum())
    expected = np.sum(2 * 9 * 2.0 * X**4)
    np.testing.assert_allclose(penalty(model, X)["scale"], expected)
    t = ft.autograd.tensor(X, requires_grad=True)
    (first,) = ft.autograd.grad(model(t).sum(), t, create_graph=True)
    (first**2).sum().backward()
    np.testing.assert_allclose(model.scale.grad.numpy(), expected)
    assert ft.autograd.gradcheck(model, (t,))
    assert ft.autograd.gradgradcheck(model, (t,))


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = Edited()
        self.inner = Derived()
        self.again = self.first

    def forward(self, x: Any) -> Any:
        return self.again(self.inner(np.tanh(self.first(x))))


@pytest.mark.parametrize("how", HOW)
def test_twice_in_one_model(how: str) -> None:
    of_x, of_model = gradients(Net(), X, how)
    h = np.tanh(X * W)
    y = np.sin(h) * W
    g = 2 * y * W
    of_weight = 10 * g * y
    g = 100 * g * W
    np.testing.assert_allclose(of_model["inner.weight"], 2 * g * np.sin(h))
    g = -g * np.cos(h) * W * (1 - h**2)
    np.testing.assert_allclose(of_model["first.weight"], of_weight + 10 * g * X)
    np.testing.assert_allclose(of_x, 100 * g * W)


class Outer(nn.Module):
    """A module with a rule, whose parts have rules."""

    def __init__(self) -> None:
        self.layer = Edited()
        self.scale = nn.Parameter(np.array(2.0))

    def forward(self, ctx: Any, x: Any) -> Any:
        return self.scale * self.layer(x)

    def backward(self, ctx: Any, g: Any) -> Any:
        grad_input, _ = ctx.vjp()
        self.layer.weight.grad = np.ones(3) * 7.0
        return grad_input


@pytest.mark.parametrize("how", HOW)
def test_rules_inside_rules(how: str) -> None:
    of_x, of_model = gradients(Outer(), X, how)
    g = 2 * 2 * X * W
    np.testing.assert_allclose(of_x, 2 * g * 100 * W)
    np.testing.assert_allclose(of_model["layer.weight"], [7.0, 7.0, 7.0])
    np.testing.assert_allclose(of_model["scale"], np.sum(g * X * W))


class Several(nn.Module):
    """Two results of three arguments, one of them a container, and a keyword."""

    def forward(self, ctx: Any, a: Any, pair: Any, b: Any = 1.0, *, power: int = 2, shift: Any = 0.0) -> Any:
        ctx.flags = str(ctx.needs_input_grad)
        return a * pair["u"] + shift, (b * pair["v"]) ** power

    def backward(self, ctx: Any, g: Any, h: Any) -> Any:
        (of_a, of_pair, _), _ = ctx.vjp()
        return 2 * of_a, {"u": 3 * of_pair["u"], "v": None}, None


@pytest.mark.parametrize("compiled", [False, True])
def test_several_arguments_and_results(compiled: bool) -> None:
    model = Several()

    def loss(a: Any, u: Any, v: Any, b: Any, shift: Any) -> Any:
        first, second = model(a, b=b, pair={"u": u, "v": v}, power=3, shift=shift)
        return (first + 5 * second).sum()

    args = [np.array([x, 2.0]) for x in (1.0, 2.0, 3.0, 4.0, 5.0)]
    taken = ft.grad(loss, argnums=(0, 1, 2, 3, 4))
    found = (ft.jit(taken) if compiled else taken)(*args)
    a, u, v, b, _ = args
    for x, y in zip(found, [2 * u, 3 * a, 15 * b**3 * v**2, 15 * b**2 * v**3, np.ones(2)], strict=True):
        np.testing.assert_allclose(x, y)
    tensors = [ft.autograd.tensor(x, requires_grad=True) for x in args]
    loss(*tensors).backward()
    for x, y in zip(tensors, found, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), y)


def test_vjp_of_another_gradient() -> None:
    class Clipped(LeftOut):
        def backward(self, ctx: Any, g: Any) -> Any:
            return ctx.vjp(np.clip(g, -1.0, 1.0))[0]

    for how in HOW:
        of_x, of_model = gradients(Clipped(), X, how)
        g = 2 * np.sin(X) * W
        np.testing.assert_allclose(of_x, np.clip(g, -1, 1) * np.cos(X) * W)
        np.testing.assert_allclose(of_model["bias"], g)


class Noisy(nn.Module):
    """Random numbers in forward: what is derived sees those of this call."""

    def __init__(self) -> None:
        self.rng = nn.RngState(0)
        self.last = nn.Buffer(np.zeros(3))
        self.weight = nn.Parameter(np.ones(3))

    def forward(self, ctx: Any, x: Any) -> Any:
        noise = nn.random.normal(self.rng.next_key(), (3,), np.float64)
        self.last = noise
        return self.weight * x * noise

    def backward(self, ctx: Any, g: Any) -> Any:
        # The buffer as forward left it.
        return g * self.last * 2


@pytest.mark.parametrize("how", HOW)
def test_buffers_and_random_numbers(how: str) -> None:
    model = Noisy()
    seen = []
    for _ in range(2):
        of_x, of_model = gradients(model, X, how)
        noise = model.last.numpy()
        seen.append(noise)
        assert isinstance(model.last.value, np.ndarray)
        np.testing.assert_allclose(of_x, 2 * X * noise * noise * 2)
        np.testing.assert_allclose(of_model["weight"], 2 * X * noise * X * noise)
    assert not np.allclose(*seen)


def test_a_result_that_is_a_buffer_too_keeps_its_gradient() -> None:
    class Remembers(nn.Module):
        def __init__(self) -> None:
            self.last = nn.Buffer(np.zeros(3))

        def forward(self, ctx: Any, x: Any) -> Any:
            self.last = y = x * 3
            return y

        def backward(self, ctx: Any, g: Any) -> Any:
            return None

    for how in HOW:
        model = Remembers()
        if how == "tensors":
            t = ft.autograd.tensor(X, requires_grad=True)
            model(t).sum().backward()
            found: Any = t.grad.numpy()
        else:
            taken = nn.grad(lambda m, x: m(x).sum(), argnums=1)
            found = (nn.jit(taken) if how == "compiled" else taken)(model, X)
        np.testing.assert_allclose(found, [3, 3, 3])
        np.testing.assert_allclose(model.last.numpy(), 3 * X)


def test_float32_and_switches_of_training() -> None:
    class Switched(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(W.astype(np.float32))

        def forward(self, ctx: Any, x: Any) -> Any:
            return x * self.weight if self.training else x

        def backward(self, ctx: Any, g: Any) -> Any:
            return ctx.vjp()[0] * 2

    model = Switched()
    x = X.astype(np.float32)
    step = nn.jit(nn.grad(lambda m, x: m(x).sum(), argnums=(0, 1)))
    for expected in (2 * W, np.full(3, 2.0), 2 * W):
        of_model, of_x = step(model, x)
        assert of_x.dtype == of_model["weight"].dtype == np.float32
        np.testing.assert_allclose(of_x, expected, rtol=1e-6)
        model.train(not model.training)


def test_copies_and_pickles() -> None:
    model = Net()
    before = gradients(model, X, "traced")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.again is other.first
        np.testing.assert_allclose(gradients(other, X, "traced")[0], before[0])


def test_numbers_and_containers_of_plain_arrays() -> None:
    model = Edited()
    np.testing.assert_allclose(model(X), X * W)
    assert isinstance(model(X), np.ndarray)
    with ft.autograd.no_grad():
        assert not model(ft.autograd.tensor(X, requires_grad=True)).requires_grad


def test_memory_of_many_steps() -> None:
    import gc

    model = Noisy()
    for _ in range(5):
        gradients(model, X, "tensors")
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(100):
        gradients(model, X, "tensors")
    gc.collect()
    assert len(gc.get_objects()) < before + 200


def test_as_a_container_and_on_jax_arrays() -> None:
    import jax.numpy as jnp

    model = Edited()
    of_model = ft.grad(lambda m: m(X).sum())(model)
    np.testing.assert_allclose(of_model.weight.value, 10 * X)
    np.testing.assert_allclose(model(jnp.asarray(X, np.float32)), X * W, rtol=1e-6)
    found = ft.grad(lambda x: model(x).sum())(jnp.asarray(X, np.float32))
    np.testing.assert_allclose(found, 100 * W, rtol=1e-6)


def test_capture_of_a_module_with_a_rule() -> None:
    model = nn.Sequential(Derived(), nn.Sequential(Edited()))
    (_, taps), _ = nn.value_and_grad(lambda m, x: m(x).sum(), capture=["0"])(model, X)
    np.testing.assert_allclose(taps["0"].value, np.sin(X) * W)
    np.testing.assert_allclose(taps["0"].gradient, 100 * W)
    with pytest.raises(ValueError, match="layer"):
        nn.value_and_grad(lambda m, x: m(x).sum(), capture=["layer"])(Outer(), X)


# Errors


def test_forward_without_context() -> None:
    with pytest.raises(
        TypeError, match=r"defines backward.*forward\(self, x\).*takes no context(.|\n)*forward\(self, ctx, x\)"
    ):

        class Wrong(nn.Module):
            def forward(self, x: Any) -> Any:
                return x

            def backward(self, ctx: Any, g: Any) -> Any:
                return g


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (lambda self, ctx, g: (g, g), "returned 2 gradients, but forward was given 1 argument"),
        (lambda self, ctx, g: g[:2], r"gave f64\[2\] as the gradient of argument 0"),
        (lambda self, ctx, g: setattr(self.weight, "grad", np.ones(4)), r"gave f64\[4\] as the gradient of weight"),
        (lambda self, ctx, g: setattr(self, "seen", g), "changes seen"),
        (lambda self, ctx, g: setattr(OTHER.weight, "grad", g), "not a parameter of this module"),
    ],
)  # fmt: skip
def test_wrong_rules(how: str, code: Any, message: str) -> None:
    class Wrong(LeftOut):
        def __init__(self) -> None:
            super().__init__()
            self.seen = nn.Buffer(np.zeros(3))

        def backward(self, ctx: Any, g: Any) -> Any:
            return code(self, ctx, g)

    with pytest.raises((RuntimeError, TypeError), match=message):
        gradients(Wrong(), X, how)


OTHER = Edited()


def test_vjp_in_forward() -> None:
    class Wrong(LeftOut):
        def forward(self, ctx: Any, x: Any) -> Any:
            return ctx.vjp()

    with pytest.raises(RuntimeError, match="call it in backward, not in forward"):
        Wrong()(X)


def test_once_differentiable() -> None:
    class Once(LeftOut):
        @ft.autograd.once_differentiable
        def backward(self, ctx: Any, g: Any) -> Any:
            return g * self.weight

    model = Once()
    np.testing.assert_allclose(ft.grad(lambda x: model(x).sum())(X), W)
    np.testing.assert_allclose(gradients(model, X, "tensors")[0], W * 2 * np.sin(X) * W)
    with pytest.raises(Exception, match="once_differentiable"):
        nn.grad(lambda m, x: (ft.grad(lambda x: m(x).sum())(x) ** 2).sum())(model, X)
    t = ft.autograd.tensor(X, requires_grad=True)
    (first,) = ft.autograd.grad(model(t).sum(), t, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


# Hooks


class Simple(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Parameter(W.copy())

    def forward(self, x: Any) -> Any:
        return self.weight * x


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("cls", [Simple, Edited])
def test_backward_hooks(how: str, cls: Any) -> None:
    model = cls()
    seen: list[Any] = []

    def hook(module: Any, grad_input: Any, grad_output: Any) -> Any:
        seen.append((module, len(grad_input), len(grad_output)))
        return (grad_input[0] + grad_output[0],)

    plain_x, plain = gradients(cls(), X, how)
    handle = model.register_full_backward_hook(hook)
    more = model.register_full_backward_hook(lambda module, grad_input, grad_output: (2 * grad_input[0],))
    quiet = model.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    of_x, of_model = gradients(model, X, how)
    np.testing.assert_allclose(of_x, 2 * (plain_x + 2 * X * W))
    np.testing.assert_allclose(of_model["weight"], plain["weight"])
    assert (model, 1, 1) in seen
    more.remove()
    quiet.remove()
    np.testing.assert_allclose(gradients(model, X, how)[0], plain_x + 2 * X * W)
    handle.remove()
    handle.remove()
    np.testing.assert_allclose(gradients(model, X, how)[0], plain_x)


def test_backward_hooks_of_compiled_functions_are_traced_again() -> None:
    model = Simple()
    step = nn.jit(nn.grad(lambda m, x: m(x).sum(), argnums=1))
    np.testing.assert_allclose(step(model, X), W)
    with model.register_full_backward_hook(lambda m, i, o: (7 * i[0],)):
        np.testing.assert_allclose(step(model, X), 7 * W)
    np.testing.assert_allclose(step(model, X), W)


def test_backward_hooks_on_tensors() -> None:
    model = Simple()
    seen: list[Any] = []
    model.register_full_backward_hook(lambda m, i, o: seen.append((i, o)))
    # Without a gradient of the argument, the hook still sees that of the result.
    model(ft.autograd.tensor(X)).sum().backward()
    ((grad_input, grad_output),) = seen
    assert grad_input == (None,)
    np.testing.assert_array_equal(grad_output[0].numpy(), np.ones(3))
    assert isinstance(grad_output[0], ft.autograd.Tensor)
    # Second derivatives go through it.
    t = ft.autograd.tensor(X, requires_grad=True)
    (first,) = ft.autograd.grad((model(t) ** 3).sum(), t, create_graph=True)
    (second,) = ft.autograd.grad(first.sum(), t)
    np.testing.assert_allclose(second.numpy(), 6 * W**3 * X)
    with ft.autograd.no_grad():
        model(t)


def test_backward_hooks_with_several_arguments() -> None:
    class Add(nn.Module):
        def forward(self, x: Any, pair: Any, factor: float) -> Any:
            return (x + pair[0] * 2) * factor, pair[1] * 5

    for tensors in (False, True):
        model = Add()
        model.register_full_backward_hook(lambda m, i, o: (i[0] * 2, (i[1][0] * 3, i[1][1] + o[0]), None))

        def loss(x: Any, y: Any, z: Any, model: Any = model) -> Any:
            a, b = model(x, (y, z), 2.0)
            return (a + b).sum()

        if tensors:
            ts = [ft.autograd.tensor(X, requires_grad=True) for _ in range(3)]
            loss(*ts).backward()
            found: Any = [t.grad.numpy() for t in ts]
        else:
            found = ft.grad(loss, argnums=(0, 1, 2))(X, X, X)
        for x, y in zip(found, (4.0, 12.0, 6.0), strict=True):
            np.testing.assert_allclose(x, np.full(3, y))


def test_wrong_backward_hooks() -> None:
    for how in ("traced", "tensors"):
        model = Simple()
        handle = model.register_full_backward_hook(lambda m, i, o: (i[0], i[0]))
        with pytest.raises((RuntimeError, TypeError), match="returned 2 gradients in place of 1"):
            gradients(model, X, how)
        handle.remove()
        model.register_full_backward_hook(lambda m, i, o: (i[0][:2],))
        with pytest.raises((RuntimeError, TypeError), match="must keep its shape"):
            gradients(model, X, how)
    with pytest.raises(TypeError, match="a hook must be a function"):
        Simple().register_forward_hook(3)  # type: ignore[arg-type]


def test_forward_hooks() -> None:
    class Affine(nn.Module):
        def forward(self, x: Any, shift: Any = 0.0) -> Any:
            return x + shift

    model = Affine()
    order: list[str] = []
    model.register_forward_pre_hook(lambda m, args: order.append("second"))
    model.register_forward_pre_hook(lambda m, args: order.append("first"), prepend=True)
    model.register_forward_pre_hook(lambda m, args, kwargs: (args, {"shift": kwargs["shift"] * 2}), with_kwargs=True)
    model.register_forward_hook(lambda m, args, kwargs, out: out * kwargs["shift"], with_kwargs=True)
    handle = model.register_forward_hook(lambda m, args, out: out + 100)
    np.testing.assert_allclose(model(X, shift=1.0), (X + 2) * 2 + 100)
    assert order == ["first", "second"]
    handle.remove()
    np.testing.assert_allclose(ft.grad(lambda x: model(x, shift=1.0).sum())(X), [2, 2, 2])
    other = copy.deepcopy(model)
    np.testing.assert_allclose(other(X, shift=1.0), (X + 2) * 2)
    wrong = Affine()
    wrong.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(TypeError, match=r"pair \(args, kwargs\)"):
        wrong(X)


def test_hooks_of_parameters() -> None:
    for how in HOW:
        model = Simple()
        plain = gradients(Simple(), X, how)[1]["weight"]
        handle = model.weight.register_hook(lambda g: 3 * g)
        silent = model.weight.register_hook(lambda g: None)
        np.testing.assert_allclose(gradients(model, X, how)[1]["weight"], 3 * plain)
        handle.remove()
        silent.remove()
        np.testing.assert_allclose(gradients(model, X, how)[1]["weight"], plain)
    model = Simple()
    # The graph may be older than the hook.
    loss = model(ft.autograd.tensor(X)).sum()
    handle = model.weight.register_hook(lambda g: -g)
    loss.backward()
    np.testing.assert_allclose(model.weight.grad.numpy(), -X)
    loss = model(ft.autograd.tensor(X)).sum()
    handle.remove()
    model.zero_grad()
    loss.backward()
    np.testing.assert_allclose(model.weight.grad.numpy(), X)
    with pytest.raises(RuntimeError, match="requires no gradient"):
        nn.Parameter(W, requires_grad=False).register_hook(lambda g: g)


def test_reference() -> None:
    torch = pytest.importorskip("torch")

    def loss(model: Any, x: Any, seen: list[Any]) -> Any:
        model.register_full_backward_hook(lambda m, i, o: seen.append((i[0] + 0, o[0] + 0)) or (2 * i[0],))
        return (model(x) ** 2).sum()

    theirs, ours = torch.nn.Linear(3, 2), nn.Linear(3, 2)
    ours.load_state_dict(theirs.state_dict())
    x = torch.tensor(X, dtype=torch.float32, requires_grad=True)
    t = ft.autograd.tensor(X.astype(np.float32), requires_grad=True)
    seen: list[Any] = []
    mine: list[Any] = []
    loss(theirs, x, seen).backward()
    loss(ours, t, mine).backward()
    np.testing.assert_allclose(t.grad.numpy(), x.grad.numpy(), rtol=1e-5)
    np.testing.assert_allclose(ours.weight.grad.numpy(), theirs.weight.grad.numpy(), rtol=1e-5)
    for a, b in zip(mine[0], seen[0], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
