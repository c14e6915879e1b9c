"""Function: on tensors, in traces, and as a black box; what its graph keeps, and what is refused."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from checks import assert_close
from scipy import special

import ftrans as ft
from ftrans.autograd import Function, Tensor, grad, tensor
from ftrans.core.primitive import MissingRule

X, Y = np.array([0.3, -1.2, 0.8]), np.array([2.0, 0.7, -0.4])


def leaf(x: Any) -> Tensor:
    """A tensor with a gradient."""
    return tensor(x, requires_grad=True)


def leaves_of_graph(f: Callable[..., Any], *values: Any) -> list[Any]:
    """Gradients of a scalar function of tensors, by `backward`."""
    tensors = [leaf(v) for v in values]
    f(*tensors).backward()
    return [None if t.grad is None else t.grad.numpy() for t in tensors]


def made(forward: Callable[..., Any], backward: Callable[..., Any], name: str = "Made") -> Any:
    """A Function of two functions."""
    return type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


class Exp(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = np.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (y,) = ctx.saved_tensors
        return ct * y


class Product(Function):
    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x * y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        x, y = ctx.saved_tensors
        return ct * y, ct * x


class Sine(Function):
    """It leaves a value that is neither argument nor result."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.slope = np.cos(x)
        return np.sin(x)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * ctx.slope


class Clipped(Function):
    """Code in the way that people write it for tensors."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        new = ct.clone()
        new[x < 0] = 0
        return new


class Bessel1(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return special.j1(x.numpy())

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        x = ctx.saved_tensors[0].detach().numpy()
        return ct * (special.j0(x) - special.j1(x) / x)


class Bessel0(Function):
    """A black box whose backward uses another one, so it has two derivatives."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return tensor(special.j0(x.detach().numpy()))

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return -ct * Bessel1.apply(ctx.saved_tensors[0])


class Solve(Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        factors = scipy.linalg.lu_factor(a.numpy())
        y = tensor(scipy.linalg.lu_solve(factors, b.numpy()))
        ctx.save_for_backward(y)
        ctx.factors, ctx.size, ctx.scale, ctx.name = factors, len(b), 2.0, "LU"
        return y

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (y,) = ctx.saved_tensors
        assert (type(ctx.size), type(ctx.scale), ctx.name) == (int, float, "LU")
        assert isinstance(ctx.factors[0], np.ndarray)
        r = scipy.linalg.lu_solve(ctx.factors, ct.numpy(), trans=1)
        return -np.outer(r, y.numpy()), r


A = np.array([[3.0, 0.2, -0.5], [0.1, 2.5, 0.4], [0.3, -0.2, 4.0]])

# On tensors


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gradients(dtype: Any) -> None:
    x, y = X.astype(dtype), Y.astype(dtype)
    assert_close(leaves_of_graph(lambda x: Exp.apply(x).sum(), x)[0], np.exp(x))
    for found, expected in zip(leaves_of_graph(lambda x, y: Product.apply(x, y).sum(), x, y), (y, x), strict=True):
        assert_close(found, expected)
    assert_close(leaves_of_graph(lambda x: (Clipped.apply(x) ** 2).sum(), x)[0], 2 * np.maximum(x, 0))
    assert_close(leaves_of_graph(lambda x: Bessel0.apply(2 * x).sum(), x)[0], -2 * special.j1(2 * x))


def test_the_node() -> None:
    y = Exp.apply(leaf(X))
    assert repr(y.grad_fn) == "<ExpBackward>"
    assert "Exp.apply(leaf(X))" in y.grad_fn.metadata["line"]
    assert y.grad_fn.next_functions[0][0].variable.grad is None
    assert not Exp.apply(tensor(X)).requires_grad
    with ft.autograd.no_grad():
        assert not Exp.apply(leaf(X)).requires_grad
    x = leaf(X)
    with ft.autograd.inference_mode():
        assert Exp.apply(x).is_inference()


@pytest.mark.parametrize("function", [Exp, Sine, Product, Bessel0, Clipped])
def test_second_derivative(function: Any) -> None:
    reference = {
        Exp: lambda x: np.exp(x),
        Sine: lambda x: np.sin(x),
        Product: lambda x: x * x,
        Clipped: lambda x: np.maximum(x, 0),
    }

    def f(apply: Any) -> Callable[..., Any]:
        return lambda x: np.sum(apply(x) ** 2 * x)

    x = leaf(X)
    (first,) = grad(f(lambda x: function.apply(*([x] * (1 + (function is Product)))))(x), x, create_graph=True)
    (second,) = grad((first * first).sum(), x, create_graph=function is not Bessel0)
    if function is Bessel0:
        j0, j1 = special.j0(X), special.j1(X)
        slope = -2 * j0 * j1 * X + j0**2
        curvature = 2 * X * j1**2 - 2 * j0 * X * (j0 - j1 / X) - 4 * j0 * j1
        assert_close(first.detach().numpy(), slope)
        assert_close(second.numpy(), 2 * slope * curvature, tolerance=1e-12)
        return
    plain = f(reference[function])
    squared = ft.grad(lambda x: np.sum(ft.grad(plain)(x) ** 2))
    assert_close(first.detach().numpy(), ft.grad(plain)(X))
    assert_close(second.detach().numpy(), squared(X), tolerance=1e-12)
    (third,) = grad((second * second).sum(), x)
    assert_close(third.numpy(), ft.grad(lambda x: np.sum(squared(x) ** 2))(X), tolerance=1e-10)


def test_derivative_with_respect_to_the_cotangent() -> None:
    x, ct = leaf(X), leaf(Y)
    (pulled,) = grad(Exp.apply(x), x, ct, create_graph=True)
    for found, expected in zip(grad((pulled**2).sum(), [x, ct]), [2, 2 / Y], strict=True):
        assert_close(found.numpy(), expected * (Y * np.exp(X)) ** 2)


def test_arguments_that_are_no_tensors_and_extra_nones() -> None:
    flags = []

    def forward(ctx: Any, x: Any, y: Any, power: int, how: str) -> Any:
        flags.append(ctx.needs_input_grad)
        ctx.save_for_backward(x)
        ctx.power = power
        assert how == "power"
        return x**power + y

    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ct * ctx.power * x ** (ctx.power - 1), None, None, None, None, None

    f = made(forward, backward)
    assert_close(leaves_of_graph(lambda x: f.apply(x, Y, 3, "power").sum(), X)[0], 3 * X**2)
    f.apply(tensor(X), leaf(Y), 3, "power")
    assert flags == [(True, False, False, False), (False, True, False, False)]
    assert_close(ft.grad(lambda x: np.sum(f.apply(x, Y, 3, "power")))(X), 3 * X**2)
    x = leaf(X)
    (first,) = grad(f.apply(x, Y, 3, "power").sum(), x, create_graph=True)
    assert_close(grad(first.sum(), x)[0].numpy(), 6 * X)


def test_containers() -> None:
    def forward(ctx: Any, p: Any) -> Any:
        ctx.save_for_backward(p["x"], p["y"][0])
        return {"product": p["x"] * p["y"][0], "name": "a name"}

    def backward(ctx: Any, ct: Any) -> Any:
        x, y = ctx.saved_tensors
        return {"x": ct["product"] * y, "y": [ct["product"] * x, None]}

    f = made(forward, backward)
    x, y = leaf(X), leaf(Y)
    out = f.apply({"x": x, "y": [y, 3]})
    assert out["name"] == "a name"
    out["product"].sum().backward()
    assert_close(x.grad.numpy(), Y)
    assert_close(y.grad.numpy(), X)


def test_several_results_and_those_without_derivative() -> None:
    arrived: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        largest, rounded = np.argmax(x), np.round(x)
        ctx.mark_non_differentiable(rounded)
        ctx.save_for_backward(largest)
        return x * 2, largest, rounded, x * 3

    def backward(ctx: Any, *cts: Any) -> Any:
        arrived.append([None if ct is None else np.asarray(ct.detach()) for ct in cts])
        assert ctx.saved_tensors[0].item() == 2
        return 2 * cts[0] + 3 * cts[3]

    f = made(forward, backward)
    x = leaf(X)
    doubled, largest, rounded, _ = f.apply(x)
    assert doubled.requires_grad
    assert not largest.requires_grad
    assert not rounded.requires_grad
    doubled.sum().backward()
    assert_close(x.grad.numpy(), np.full(3, 2.0))
    for ct, expected in zip(arrived[0], (1.0, 0, 0.0, 0.0), strict=True):
        assert_close(ct, np.full(ct.shape, expected, ct.dtype))

    def quiet(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def only_second(ctx: Any, first: Any, second: Any) -> Any:
        assert first is None
        return 3 * second

    x = leaf(X)
    made(quiet, only_second).apply(x)[1].sum().backward()
    assert_close(x.grad.numpy(), np.full(3, 3.0))


def test_an_argument_may_be_the_result() -> None:
    flipped = made(lambda ctx, x: x, lambda ctx, ct: -ct, "Flipped")
    x = leaf(X)
    y = flipped.apply(x)
    assert y is not x
    y *= 2
    (y * y).sum().backward()
    assert_close(x.detach().numpy(), X)
    assert_close(x.grad.numpy(), -8 * X)
    twice = made(lambda ctx, x: (x + 1, x[:2]), lambda ctx, a, b: a + np.concatenate([b, [0]]))
    assert_close(leaves_of_graph(lambda x: twice.apply(x)[1].sum(), X)[0], np.array([1.0, 1, 0]))
    pair = made(lambda ctx, x: (x + 1,) * 2, lambda ctx, a, b: a + 10 * b)
    a, b = pair.apply(leaf(X))
    a += 5
    assert_close(b.detach().numpy(), X + 1)


def test_plain_arrays_give_plain_results() -> None:
    assert type(Exp.apply(0.0)) is np.float64
    assert type(Exp.apply(X)) is np.ndarray
    assert type(Bessel0.apply(X)) is np.ndarray
    assert_close(Solve.apply(A, X), np.linalg.solve(A, X))
    assert isinstance(Exp.apply(tensor(X)), Tensor)
    number = made(lambda ctx, x: math.sin(x), lambda ctx, ct: ct)
    assert isinstance(number.apply(leaf(1.0)), Tensor)


def test_once_differentiable() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @ft.autograd.once_differentiable
        def backward(ctx: Any, ct: Any) -> Any:
            assert not ct.requires_grad if isinstance(ct, Tensor) else True
            return 2 * ct * ctx.saved_tensors[0]

    x = leaf(X)
    (first,) = grad(Square.apply(x).sum(), x, create_graph=True)
    assert_close(first.detach().numpy(), 2 * X)
    with pytest.raises(RuntimeError, match=r"(?s)second derivative.*once_differentiable.*Square\.apply"):
        grad(first.sum(), x)

    def f(x: Any) -> Any:
        return np.sum(Square.apply(x))

    assert_close(ft.grad(f)(X), 2 * X)
    assert_close(ft.jacfwd(Square.apply)(X), np.diag(2 * X))
    assert_close(ft.vmap(ft.grad(Square.apply))(X), 2 * X)
    with pytest.raises(MissingRule, match=r"Square\.backward.*once_differentiable"):
        ft.hessian(f)(X)


# What is kept


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collector")
def test_a_graph_goes_with_its_last_reference() -> None:
    # What tests before have left.
    gc.collect()
    contexts = []

    def forward(ctx: Any, x: Any) -> Any:
        y = np.exp(x)
        ctx.save_for_backward(x, y)
        ctx.x, ctx.y = x, y
        contexts.append(weakref.ref(ctx))
        return y

    f = made(forward, lambda ctx, ct: ct * ctx.y)
    x = leaf(X)
    y = f.apply(x * 2)
    (y * y).sum().backward()
    assert contexts[0]() is None
    y = f.apply(x * 2)
    (first,) = grad(y.sum(), x, create_graph=True)
    grad(first.sum(), x)
    del y, first
    f.apply(x)
    with ft.autograd.no_grad():
        f.apply(x)
    assert [ref() for ref in contexts] == [None] * 4
    assert gc.collect() == 0


def test_a_second_way_back_needs_the_graph() -> None:
    x = leaf(X)
    y = Exp.apply(x)
    y.backward(Y, retain_graph=True)
    y.backward(Y)
    with pytest.raises(RuntimeError, match=r"(?s)ExpBackward.*freed.*retain_graph"):
        y.backward(Y)


def square(saves: str) -> Any:
    """x * x, which keeps its argument in one of three ways."""

    def forward(ctx: Any, x: Any) -> Any:
        if saves == "tensor":
            ctx.save_for_backward(x)
        elif saves == "array":
            ctx.save_for_backward(x.numpy())
        else:
            ctx.x = x if saves == "attribute" else x.numpy()
        return x * x

    def backward(ctx: Any, ct: Any) -> Any:
        x = ctx.x if "attribute" in saves else ctx.saved_tensors[0]
        return 2 * ct * x

    return made(forward, backward)


@pytest.mark.parametrize("saves", ["tensor", "attribute", "array attribute"])
@pytest.mark.parametrize("size", [3, 10_000])
def test_what_is_kept_must_not_change(saves: str, size: int) -> None:
    x = leaf(np.ones(size)) * 1
    y = square(saves).apply(x)
    x += 1
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()
    x = leaf(np.ones(size)) * 1
    y = Exp.apply(x)
    y *= 2
    with pytest.raises(RuntimeError, match=r"(?s)ExpBackward.*used at.*changed in place at.*y \*= 2"):
        y.sum().backward()


def test_a_small_array_that_is_saved_is_copied() -> None:
    x = leaf(X)
    y = x * 1
    z = square("array").apply(y)
    y += 1
    z.sum().backward()
    assert_close(x.grad.numpy(), 2 * X)


def test_what_a_traced_second_derivative_needs_must_not_change() -> None:
    x = leaf(X)
    y = x * 1
    z = Sine.apply(y)
    y += 1
    (first,) = grad(z.sum(), x, retain_graph=True)
    assert_close(first.numpy(), np.cos(X))
    (first,) = grad(z.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"(?s)second derivative.*changed in place"):
        grad(first.sum(), x)


# What is refused on tensors


@pytest.mark.parametrize(
    ("gradients", "text"),
    [
        (lambda ct: (ct,), r"(?s)Made\.backward \(.*test_function\.py.* returned 1 gradient, but.* 2 arg.*f\.apply"),
        (lambda ct: (ct, ct, ct), "returned 3 gradients"),
        (lambda ct: (ct.sum(), ct), r"f64\[\] as the gradient of argument 0, which is f64\[3\]"),
        (lambda ct: (ct, "a name"), "an object of type str as the gradient of argument 1"),
        (lambda ct: (ct, ct * 1j), r"c128\[3\] as the gradient of argument 1"),
    ],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_wrong_gradients(gradients: Any, text: str, create_graph: bool) -> None:
    f = made(lambda ctx, x, y: x * y, lambda ctx, ct: gradients(ct))
    with pytest.raises(RuntimeError, match=text):
        f.apply(leaf(X), leaf(Y)).sum().backward(create_graph=create_graph)


def test_wrong_number_of_gradients_in_a_trace() -> None:
    f = made(lambda ctx, x, y: x * y, lambda ctx, ct: ct)
    with pytest.raises(TypeError, match=r"(?s)Made.*test_function\.py.*tuple of 2 cotangents.*1 of them.*f\.apply"):
        ft.grad(lambda x: np.sum(f.apply(x, x)))(X)


def test_zero_stands_for_zeros() -> None:
    f = made(lambda ctx, x, y: x * y, lambda ctx, ct: (0, 0.0))
    assert leaves_of_graph(lambda x, y: f.apply(x, y).sum() + x.sum(), X, Y)[0].tolist() == [1, 1, 1]


def test_changes_in_place_are_refused() -> None:
    def doubles(ctx: Any, x: Any) -> Any:
        x *= 2
        return x

    def writes(ctx: Any, x: Any) -> Any:
        x.numpy()[0] = 1.0
        return x * 1

    def says_so(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x

    for forward in (doubles, writes, says_so):
        with pytest.raises(RuntimeError, match=r"(?s)changes an argument in place.*copy"):
            made(forward, lambda ctx, ct: ct).apply(leaf(X) * 1)

    def changes(ctx: Any, ct: Any) -> Any:
        ct *= 2
        return ct

    f = made(lambda ctx, x: 2 * x, changes)
    for create_graph in (False, True):
        with pytest.raises(RuntimeError, match="changes the gradient that it is given in place"):
            (f.apply(leaf(X)) * Y).sum().backward(create_graph=create_graph)
    with pytest.raises(RuntimeError, match="changes the gradient"):
        f.apply(leaf(X)).sum().backward()
    running = tensor(np.zeros(3))

    def statistics(ctx: Any, x: Any, running: Any) -> Any:
        running += x
        return 2 * x

    # What has no gradient may be a place to write to.
    made(statistics, lambda ctx, ct: (2 * ct, None)).apply(leaf(X), running).sum().backward()
    assert_close(running.numpy(), X)


def test_missing_methods() -> None:
    class Forward(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    with pytest.raises(NotImplementedError, match="forward"):
        Function.apply(leaf(X))
    with pytest.raises(NotImplementedError, match="backward"):
        Forward.apply(leaf(X)).sum().backward()
    with pytest.raises(MissingRule, match="a static method backward of Forward"):
        ft.grad(lambda x: np.sum(Forward.apply(x)))(X)


def test_values_that_leave_the_graph_in_backward() -> None:
    """A second derivative would silently miss what the numbers depend on."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    def of(weight: Callable[[Any], Any]) -> Any:
        return made(forward, lambda ctx, ct: 3 * ct * ctx.saved_tensors[0] * weight(ctx.saved_tensors[0]))

    for weight in (lambda x: x.detach().numpy(), lambda x: tensor(x.tolist()), lambda x: np.asarray(x)):
        x = leaf(X)
        (first,) = grad(of(weight).apply(x).sum(), x, create_graph=True)
        assert_close(first.detach().numpy(), 3 * X**2)
        with pytest.raises(RuntimeError, match=r"(?s)second derivative.*Made\.backward.*\.apply\(x\)"):
            grad(first.sum(), x)


def test_a_backward_that_differentiates() -> None:
    """Its own gradients are recorded only where it says so."""

    def forward(ctx: Any, f: Any, x: Any) -> Any:
        ctx.f = f
        ctx.save_for_backward(x)
        return f(x)

    def backward(ctx: Any, ct: Any) -> Any:
        with ft.autograd.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            y = ctx.f(x)
        ft.autograd.backward(y, ct)
        return None, x.grad

    again = made(forward, backward, "Again")
    assert_close(leaves_of_graph(lambda x: again.apply(np.sin, x).sum(), X)[0], np.cos(X))
    assert_close(ft.grad(lambda x: np.sum(again.apply(np.sin, x)))(X), np.cos(X))
    x = leaf(X)
    (first,) = grad(again.apply(np.sin, x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"(?s)second derivative.*Again\.backward.*without create_graph"):
        grad((first * x).sum(), x)


def test_saved_arguments_are_those_that_a_gradient_in_backward_reaches() -> None:
    """As in an adjoint method, whose function reads parameters that are arguments as well."""
    weight = leaf(2.0)
    offset = leaf(X) * 1.0

    def f(x: Any) -> Any:
        return np.sin(weight * x) + offset

    def forward(ctx: Any, x: Any, *parameters: Any) -> Any:
        ctx.save_for_backward(x, *parameters)
        return f(x)

    def backward(ctx: Any, ct: Any) -> Any:
        x, *parameters = ctx.saved_tensors
        with ft.autograd.enable_grad():
            x = x.detach().requires_grad_()
            return grad(f(x), (x, *parameters), ct)

    adjoint = made(forward, backward, "Adjoint")
    x = leaf(Y)
    found = grad((adjoint.apply(x, weight, offset) ** 2).sum(), (x, weight, offset))
    expected = grad((f(x) ** 2).sum(), (x, weight, offset))
    for mine, theirs in zip(found, expected, strict=True):
        assert_close(mine.numpy(), theirs.numpy())


def test_a_gradient_that_is_cut_off() -> None:
    def backward(ctx: Any, ct: Any) -> Any:
        return 2 * ct.detach()

    cut = made(lambda ctx, x: 2 * x, backward)
    x = leaf(X)
    (first,) = grad((cut.apply(x) ** 2).sum(), x, create_graph=True)
    assert_close(first.detach().numpy(), 8 * X)
    with pytest.raises(RuntimeError, match="second derivative"):
        grad((first * x).sum(), x)
    # Here the gradient is the same everywhere.
    (first,) = grad(cut.apply(x).sum() + (x**2).sum(), x, create_graph=True)
    assert_close(grad(first.sum(), x)[0].numpy(), np.full(3, 2.0))


def test_forward_with_objects_that_cannot_be_traced() -> None:
    class Sparse(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.factors = scipy.sparse.linalg.splu(scipy.sparse.csc_matrix(A))
            return ctx.factors.solve(x.numpy())

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ctx.factors.solve(ct.numpy(), trans="T")

    x = leaf(X)
    Sparse.apply(x).backward(Y, retain_graph=True)
    assert_close(x.grad.numpy(), np.linalg.solve(A.T, Y), tolerance=1e-14)
    (first,) = grad(Sparse.apply(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="has to be traced for a second derivative"):
        grad(first.sum(), x)
    with pytest.raises(TypeError, match=r"(?s)Sparse\.forward.*SuperLU, which .* cannot pass"):
        ft.grad(lambda x: np.sum(Sparse.apply(x)))(X)


# Traced


def test_code_for_tensors_is_traced() -> None:
    def f(x: Any) -> Any:
        return np.sum(Clipped.apply(x) ** 3)

    assert_close(ft.grad(f)(X), 3 * np.maximum(X, 0) ** 2)
    assert_close(ft.hessian(f)(X), np.diag(6 * np.maximum(X, 0)))
    assert "black_box" not in str(ft.trace(ft.grad(f))(X))

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x.detach())
        return x.detach() ** 3

    # Nothing is recorded in forward, so detach() takes nothing away there.
    cube = made(forward, lambda ctx, ct: 3 * ct * ctx.saved_tensors[0].square())
    assert_close(ft.grad(ft.grad(ft.grad(cube.apply)))(2.0), 6.0)
    x = leaf(2.0)
    (first,) = grad(cube.apply(x), x, create_graph=True)
    assert grad(first, x)[0].item() == 12.0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sigmoid() + x.relu() + x.clamp(min=-1, max=0.5),
        lambda x: x.clone().mul_(x).add_(2),
        lambda x: x.unsqueeze(0).expand(2, 3).permute(1, 0).contiguous().t() * x.norm(),
        lambda x: x.sub(1).mul(x).div(x.pow(2).add(1)).exp().tanh().neg().abs(),
        lambda x: x.detach() * x.double().to(np.float64).maximum(0.1),
        lambda x: x.clone().zero_() + x.numel() * x + x.dim(),
    ],
)
def test_methods_of_tensors_for_traced_values(f: Any) -> None:
    expected = leaves_of_graph(lambda x: (f(x) * f(x)).sum(), X)[0]
    assert_close(ft.grad(lambda x: (f(x) * f(x)).sum())(X), expected, tolerance=1e-14)


def test_results_may_be_changed_in_place() -> None:
    def changed(product: Any) -> Any:
        def f(x: Any, y: Any) -> Any:
            z = product(x, y)
            z[0] = 5.0
            z[1:] *= z[:2]
            return (z * z).sum()

        return f

    found = leaves_of_graph(changed(Product.apply), X, Y)
    for a, b in zip(found, leaves_of_graph(changed(np.multiply), X, Y), strict=True):
        assert_close(a, b)


def test_tensors_inside_of_a_trace() -> None:
    """The rule holds for a tensor that the function closes over."""
    ten_times = made(lambda ctx, x: np.exp(x), lambda ctx, ct: 10 * ct)
    w = leaf(0.5)
    ft.grad(lambda x: ten_times.apply(w) * x)(1.0).backward()
    assert w.grad.item() == 10.0
    w.grad = None
    ft.vmap(lambda x: ten_times.apply(w * x))(Y).sum().backward()
    assert_close(w.grad.item(), 10 * Y.sum(), tolerance=1e-14)


def test_constants_in_a_trace() -> None:
    """Nothing that the rule says is asked for; the result is a plain one."""
    found = ft.grad(lambda q: np.sum(Solve.apply(A, X)) * q)(2.0)
    assert type(found) is np.float64
    assert_close(found, np.linalg.solve(A, X).sum(), tolerance=1e-14)
    assert type(ft.grad(lambda q: np.sum(Exp.apply(X)) * q)(2.0)) is np.float64
    assert type(ft.grad(lambda q: np.sum(Bessel0.apply(X)) * q)(2.0)) is np.float64


def test_what_a_function_closes_over_is_differentiated() -> None:
    def loss(w: Any, x: Any) -> Any:
        f = made(lambda ctx, x: np.sin(x) * w**2, lambda ctx, ct: 7 * ct * w)
        return np.sum(f.apply(x))

    of_w, of_x = ft.grad(loss, (0, 1))(2.0, X)
    assert_close(of_w, 4 * np.sin(X).sum())
    assert_close(of_x, np.full(3, 14.0))
    assert_close(ft.grad(loss)(2.0, X), of_w)


def bessel(x: Any) -> Any:
    return np.sum(np.sin(Bessel0.apply(x * 2)) ** 2)


def slope_of_bessel(x: Any) -> Any:
    j0, j1 = special.j0(2 * x), special.j1(2 * x)
    return -4 * np.sin(j0) * np.cos(j0) * j1


@pytest.mark.parametrize("compiled", [False, True])
def test_a_black_box(compiled: bool) -> None:
    run = ft.jit if compiled else lambda f: f
    assert_close(run(bessel)(X), np.sum(np.sin(special.j0(2 * X)) ** 2), tolerance=1e-14)
    assert_close(run(ft.grad(bessel))(X), slope_of_bessel(X), tolerance=1e-14)
    assert_close(run(ft.vmap(ft.grad(bessel)))(X), slope_of_bessel(X), tolerance=1e-14)
    assert_close(run(ft.jacrev(Bessel0.apply))(X), np.diag(-special.j1(X)), tolerance=1e-14)
    # The backward half is a function of NumPy beside another black box.
    second = run(ft.grad(ft.grad(Bessel0.apply)))(1.3)
    assert_close(second, special.j1(1.3) / 1.3 - special.j0(1.3), tolerance=1e-14)


def solved(a: Any, b: Any, solve: Any = Solve.apply) -> Any:
    return np.sum(np.sin(solve(a * a, np.cos(b))))


def seen_through(a: Any, b: Any) -> Any:
    return solved(a, b, np.linalg.solve)


def assert_all_close(found: Any, expected: Any) -> None:
    for x, y in zip(found, expected, strict=True):
        assert_close(np.asarray(x), np.asarray(y), tolerance=1e-13)


SCALES = np.array([1.0, -0.5, 1.5])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_black_box_that_leaves_objects(compiled: bool) -> None:
    gradient, expected = ft.grad(solved, (0, 1)), ft.grad(seen_through, (0, 1))
    batch = (SCALES[:, None, None] * A, SCALES[:, None] * X)
    run = ft.jit if compiled else lambda f: f
    assert_all_close(run(gradient)(A, X), expected(A, X))
    assert_all_close(run(ft.vmap(gradient))(*batch), ft.vmap(expected)(*batch))
    if compiled:
        return
    assert_all_close(
        ft.vmap(gradient, in_axes=(0, None))(batch[0], X), ft.vmap(expected, in_axes=(0, None))(batch[0], X)
    )
    total = ft.grad(lambda a, b: np.sum(ft.vmap(solved)(a, b)), (0, 1))
    assert_all_close(total(*batch), ft.vmap(expected)(*batch))
    pairs = ft.vmap(ft.vmap(gradient, in_axes=(None, 0)), in_axes=(0, None))
    assert_all_close(pairs(*batch), ft.vmap(ft.vmap(expected, in_axes=(None, 0)), in_axes=(0, None))(*batch))
    assert_close(ft.jacrev(lambda b: Solve.apply(A, b))(X), np.linalg.inv(A), tolerance=1e-14)
    assert_close(ft.vjp(lambda b: Solve.apply(A, b), X)[1](Y)[0], np.linalg.solve(A.T, Y), tolerance=1e-14)
    a, b = leaf(A), leaf(X)
    solved(a, b).backward()
    assert_all_close((a.grad, b.grad), expected(A, X))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.complex64])
def test_dtypes_of_a_black_box(dtype: Any, compiled: bool) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.numpy() ** 2

    f = made(forward, lambda ctx, ct: 2 * ct.numpy() * ctx.saved_tensors[0].numpy())
    x = X.astype(dtype) + (np.array(1j, dtype) * Y.astype(dtype) if np.dtype(dtype).kind == "c" else dtype(0))
    found = (ft.jit if compiled else lambda f: f)(ft.grad(lambda x: np.sum(np.abs(f.apply(x)))))(x)
    assert found.dtype == dtype
    assert_close(found, ft.grad(lambda x: np.sum(np.abs(x**2)))(x))


def test_a_black_box_runs_once_where_its_types_are_known() -> None:
    runs = []

    def forward(ctx: Any, x: Any) -> Any:
        y = np.exp(x.numpy())
        runs.append(x)
        ctx.save_for_backward(y)
        return y

    f = made(forward, lambda ctx, ct: ct.numpy() * ctx.saved_tensors[0])
    gradient = ft.grad(lambda x: np.sum(f.apply(x) ** 2))
    gradient(X)
    runs.clear()
    assert_close(gradient(Y), 2 * np.exp(2 * Y), tolerance=1e-14)
    assert len(runs) == 1


def test_what_a_black_box_leaves_must_be_of_one_kind() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mode = "up" if x.item() > 0 else "down"
        return x.numpy() * 1.0

    f = made(forward, lambda ctx, ct: ct * (2 if ctx.mode == "up" else 3))
    assert ft.grad(f.apply)(1.0) == 2.0
    assert ft.grad(f.apply)(-1.0) == 3.0
    with pytest.raises(TypeError, match=r"(?s)Made\.forward.*the same structure and types for all arguments"):
        ft.vmap(ft.grad(f.apply))(np.array([1.0, -1.0]))
    positive = made(lambda ctx, x: x.numpy()[x.numpy() > 0], lambda ctx, ct: None)
    assert ft.vmap(lambda x: positive.apply(x).sum())(np.ones((2, 3))).tolist() == [3, 3]
    with pytest.raises(TypeError, match=r"before it returned .*f64\[3\], now .*f64\[2\]"):
        ft.vmap(lambda x: positive.apply(x).sum())(np.array([[1.0, 1, 1], [1, 1, -1]]))


def test_a_black_box_has_one_derivative_and_no_forward_mode() -> None:
    with pytest.raises(
        MissingRule, match=r"(?s)derivative of Solve\.forward.*could not be traced, so there is no second derivative"
    ):
        ft.hessian(lambda b: solved(A, b))(X)
    with pytest.raises(MissingRule, match=r"(?s)Solve\.backward.*could not be traced.*a static method jvp of Solve"):
        ft.jacfwd(lambda b: solved(A, b))(X)
    # Where nothing depends on the argument, there is nothing to refuse.
    assert ft.hessian(lambda x: solved(A, Y) * x**2)(1.0) == pytest.approx(2 * seen_through(A, Y))


def test_forward_mode_by_a_jvp() -> None:
    class WithJvp(Bessel0):
        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return -t * Bessel1.apply(ctx.saved_tensors[0])

    assert_close(ft.jacfwd(WithJvp.apply)(X), np.diag(-special.j1(X)), tolerance=1e-14)


def test_a_black_box_inside_of_control_flow() -> None:
    def loop(x: Any) -> Any:
        return np.sum(ft.scan(lambda c, _: (Solve.apply(A, c), None), x, None, length=3)[0])

    inverse = np.linalg.inv(A)
    expected = (inverse @ inverse @ inverse).T.sum(1)
    assert_close(ft.grad(loop)(X), expected, tolerance=1e-13)
    assert_close(ft.jit(ft.grad(loop))(X), expected, tolerance=1e-13)

    def branch(x: Any) -> Any:
        return ft.cond(x > 0, Bessel0.apply, lambda x: x, x)

    assert_close(ft.vmap(ft.grad(branch))(X), np.where(X > 0, -special.j1(X), 1), tolerance=1e-14)


def test_no_values_to_try_a_black_box_on() -> None:
    def loop(function: Any) -> Any:
        return lambda xs: np.sum(ft.scan(lambda c, x: (c + function.apply(A, x), None), X, xs)[0])

    class Unseen(Solve):
        pass

    with pytest.raises(TypeError, match=r"(?s)Unseen\.forward cannot be traced.*trial_value.*apply"):
        ft.grad(loop(Unseen))(A)
    Unseen.trial_value = 1.0
    expected = np.tile(np.linalg.inv(A).T.sum(1), (3, 1))
    assert_close(ft.grad(loop(Unseen))(A), expected, tolerance=1e-13)
    assert ft.vmap(lambda b: Unseen.apply(A, b))(np.zeros((0, 3))).shape == (0, 3)


def test_errors_of_a_black_box() -> None:
    cholesky = made(lambda ctx, x: scipy.linalg.cholesky(x.numpy()), lambda ctx, ct: ct.nonsense)
    with pytest.raises(np.linalg.LinAlgError) as caught:
        ft.grad(lambda x: np.sum(cholesky.apply(x)))(-A)
    assert "could not be traced" in caught.value.__notes__[0]
    with pytest.raises(AttributeError, match="nonsense"):
        ft.grad(lambda x: np.sum(cholesky.apply(x)))(A @ A.T)
    misspelt = made(lambda ctx, x: 2 * x, lambda ctx, ct: gradient_of_it)  # type: ignore[name-defined]  # noqa: F821
    with pytest.raises(NameError, match="gradient_of_it"):
        ft.grad(misspelt.apply)(1.0)
    wrong = made(lambda ctx, x: np.sum(x.numpy()), lambda ctx, ct: ct.numpy())
    with pytest.raises(RuntimeError, match=r"f64\[\] as the gradient of argument 0, which is f64\[3\]"):
        ft.grad(wrong.apply)(X)


# Rules of other kinds, on tensors


def scaled_exp(decorator: Any) -> Any:
    """exp, whose derivative is ten times too large."""
    f = decorator(lambda x: np.exp(x))
    if decorator is ft.custom_vjp:
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (10 * ct * np.exp(x),))
    else:
        f.defjvp(lambda p, t: (f(*p), 10 * t[0] * np.exp(p[0])))
    return f


@pytest.mark.parametrize("decorator", [ft.custom_vjp, ft.custom_jvp])
def test_custom_rules_hold_on_tensors(decorator: Any) -> None:
    f = scaled_exp(decorator)
    assert_close(leaves_of_graph(lambda x: np.sum(f(x) ** 2), X)[0], 20 * np.exp(2 * X), tolerance=1e-14)
    x = leaf(0.0)
    (first,) = grad(f(x) ** 2, x, create_graph=True)
    assert grad(first, x)[0].item() == pytest.approx(ft.hessian(lambda x: f(x) ** 2)(0.0))
    w = leaf(0.5)
    ft.grad(lambda x: f(w) * x)(1.0).backward()
    assert w.grad.item() == pytest.approx(10 * np.exp(0.5))
    with ft.autograd.no_grad():
        assert not f(w).requires_grad


def test_what_a_rule_closes_over_is_differentiated() -> None:
    w = leaf(2.0)
    f = ft.custom_vjp(lambda x: w**2 * x)
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (7 * ct,))
    x = leaf(3.0)
    f(x).backward()
    assert (x.grad.item(), w.grad.item()) == (7.0, 12.0)


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda x: ft.scale_gradient(x, 0.1) ** 2, 0.2 * X),
        (lambda x: ft.reverse_gradient(x) ** 2, -2 * X),
        (lambda x: ft.straight_through(np.sign(x), x) * Y, Y),
        (lambda x: ft.clip_gradient(x, -1.0, 1.0) ** 2, np.clip(2 * X, -1, 1)),
        (lambda x: ft.grad_hook(x, lambda ct: 10 * ct) ** 2, 20 * X),
        (lambda x: ft.stop_gradient(x) * x, X),
        (lambda x: ft.tap("x", x) ** 2, 2 * X),
        (lambda x: ft.checkpoint(lambda x: np.sin(x) ** 2)(x), np.sin(2 * X)),
        (lambda x: ft.scale_gradient({"x": x, "n": [x]}, 3.0)["n"][0], np.full(3, 3.0)),
    ],
)
def test_gradient_edits_hold_on_tensors(edit: Any, expected: Any) -> None:
    assert_close(leaves_of_graph(lambda x: edit(x).sum(), X)[0], expected, tolerance=1e-14)


def test_stop_gradient_of_a_tensor() -> None:
    assert not ft.stop_gradient(leaf(X)).requires_grad
    assert isinstance(ft.stop_gradient(leaf(X)), Tensor)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x: ft.numpy.full((2,), x[0]), [2, 0, 0]),
        (lambda x: ft.numpy.array([x[0], x[1], 2.0]), [1, 1, 0]),
        (lambda x: ft.numpy.array([[x[0], 1.0], [x[1], x[1]]]), [1, 2, 0]),
        (lambda x: ft.numpy.asarray(x), [1, 1, 1]),
        (lambda x: ft.numpy.ascontiguousarray(x[2]), [0, 0, 1]),
        (lambda x: ft.numpy.full_like(x, x[1]), [0, 3, 0]),
        (lambda x: ft.numpy.array(x, dtype=np.float32, ndmin=2), [1, 1, 1]),
    ],
)
def test_arrays_made_of_tensors(make: Any, expected: Any) -> None:
    assert leaves_of_graph(lambda x: make(x).sum(), X)[0].tolist() == expected

    def product(w: Any, q: Any) -> Any:
        return (make(w) * q).sum()

    w = leaf(X)
    ft.grad(lambda q: product(w, q))(2.0).backward()
    assert w.grad.tolist() == expected
