"""custom_vjp, custom_jvp and Function: right rules agree with the derivative of the function, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from checks import assert_close

import ftrans as ft
from ftrans.base import tree
from ftrans.core.primitive import MissingRule

Function = Callable[..., Any]


def assert_tree_close(actual: Any, expected: Any) -> None:
    """Assert that two containers have one structure, and arrays that are close."""
    leaves, structure = tree.flatten(actual)
    wanted, wanted_structure = tree.flatten(expected)
    assert structure == wanted_structure
    for x, y in zip(leaves, wanted, strict=True):
        assert_close(np.asarray(x)[()], np.asarray(y)[()], tolerance=1e-10)


def second(f: Function) -> Function:
    """Scalar function -> the sum of its second derivatives, so that a third can be taken."""
    return lambda *args: sum(np.sum(x) for x in tree.flatten(ft.grad(lambda *xs: total(ft.grad(f)(*xs)))(*args))[0])


def total(container: Any) -> Any:
    """Sum of all elements of all arrays."""
    return sum(np.sum(x) for x in tree.flatten(container)[0])


def along(f: Function) -> Function:
    """The derivative along a tangent of ones."""

    def pushed(*args: Any) -> Any:
        return ft.jvp(f, args, tree.map_leaves(lambda x: 0.0 * x + 1.0, args))

    return pushed


MODES: dict[str, Function] = {
    "jvp": along,
    "vjp": lambda f: lambda *args: ft.vjp(f, *args)[1](1.0),
    "jacfwd": ft.jacfwd,
    "jacrev": ft.jacrev,
    "forward over reverse": ft.hessian,
    "reverse over reverse": lambda f: ft.jacrev(ft.jacrev(f)),
    "reverse over forward": lambda f: ft.jacrev(ft.jacfwd(f)),
    "forward over forward": lambda f: ft.jacfwd(ft.jacfwd(f)),
    "third": lambda f: ft.grad(second(f)),
    "third forward": lambda f: ft.jacfwd(ft.jacfwd(ft.grad(f))),
}


def in_batch(transform: Function) -> Function:
    """vmap of a transformed function."""
    return lambda f: ft.vmap(transform(f))


def of_batch(transform: Function) -> Function:
    """A transformed sum over a batch, which makes a scalar function of it."""
    return lambda f: transform(lambda *args: np.sum(ft.vmap(f)(*args) ** 2))


def three(x: Any) -> Any:
    """A batch of three of each array, all different."""
    scales = np.array([1.0, -0.5, 1.5])
    return tree.map_leaves(lambda y: np.multiply.outer(scales, y), x)


# Functions with right rules, beside what they are


def product(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y)


def by_vjp() -> Function:
    f = ft.custom_vjp(product)
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, ct: (ct * np.cos(res[0]) * res[1], ct * np.sin(res[0])))
    return f


def by_vjp_without_itself() -> Function:
    f = ft.custom_vjp(product)

    def fwd(x: Any, y: Any) -> Any:
        s = np.sin(x)
        return np.sum(s * y), {"s": s, "more": (x, y, "a name", None)}

    def bwd(res: Any, ct: Any) -> Any:
        x, y, name, _ = res["more"]
        assert name == "a name"
        return [ct * np.cos(x) * y, ct * res["s"]]

    f.defvjp(fwd, bwd)
    return f


def by_jvp() -> Function:
    f = ft.custom_jvp(product)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), np.sum(np.cos(x) * y * dx + np.sin(x) * dy)

    return f


def by_partials() -> Function:
    f = ft.custom_jvp(product)
    f.defjvps(lambda t, out, x, y: np.sum(np.cos(x) * y * t), lambda t, out, x, y: np.sum(np.sin(x) * t))
    return f


def by_both() -> Function:
    f = by_vjp()
    f.defjvp(lambda p, t: (f(*p), np.sum(np.cos(p[0]) * p[1] * t[0] + np.sin(p[0]) * t[1])))
    return f


def by_function() -> Function:
    class Product(ft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            ctx.label = "kept"
            ctx.slope = np.cos(x)
            return np.sum(np.sin(x) * y)

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            x, y = ctx.saved_tensors
            assert ctx.label == "kept"
            return ct * ctx.slope * y, ct * np.sin(x)

    return Product.apply


RULES = [by_vjp, by_vjp_without_itself, by_jvp, by_partials, by_both, by_function]
X, Y = np.array([0.3, -1.2]), np.array([2.0, 0.7])


def of_both(f: Function) -> Function:
    """A function of one container, which uses the result twice, so that its own derivative counts in higher orders."""
    return lambda p: f(p["x"], p["y"][0]) ** 2 + f(p["y"][0], p["x"])


P = {"x": X, "y": [Y]}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode(mode: str, rule: Function) -> None:
    f, transform = of_both(rule()), MODES[mode]
    assert_tree_close(transform(f)(P), transform(of_both(product))(P))
    assert_tree_close(in_batch(transform)(f)(three(P)), in_batch(transform)(of_both(product))(three(P)))
    if mode not in ("jvp", "third"):
        assert_tree_close(of_batch(transform)(f)(three(P)), of_batch(transform)(of_both(product))(three(P)))


@pytest.mark.parametrize("rule", [by_vjp, by_jvp, by_both])
def test_compiled(rule: Function) -> None:
    f = of_both(rule())
    together = ft.jit(lambda p: [along(f)(p), ft.grad(f)(p), ft.hessian(f)(p), ft.vmap(ft.grad(f))(three(p))])
    expected = of_both(product)
    assert_tree_close(
        together(P),
        [along(expected)(P), ft.grad(expected)(P), ft.hessian(expected)(P), ft.vmap(ft.grad(expected))(three(P))],
    )


@pytest.mark.parametrize("rule", RULES)
def test_in_single_precision(rule: Function) -> None:
    x, y = X.astype(np.float32), Y.astype(np.float32)
    for found, expected in zip(ft.grad(rule(), (0, 1))(x, y), ft.grad(product, (0, 1))(x, y), strict=True):
        assert_close(found, expected)
    assert ft.jvp(rule(), (x, y), (x, y))[1].dtype == np.float32


@pytest.mark.parametrize("rule", RULES)
def test_inside_control_flow(rule: Function) -> None:
    def loop(f: Function) -> Function:
        def run(x: Any) -> Any:
            def step(carry: Any, y: Any) -> Any:
                value = f(carry, y)
                return np.tanh(carry + value), value

            carry, ys = ft.scan(step, x, np.stack([Y, X, X + Y]))
            return np.sum(carry) + ft.cond(ys[0] > 0, lambda x: f(x, x), lambda x: f(x, Y), x)

        return run

    for transform in (along, ft.grad, ft.hessian, lambda f: ft.jacrev(ft.jacrev(f)), lambda f: ft.jacrev(ft.jacfwd(f))):
        assert_tree_close(transform(loop(rule()))(X), transform(loop(product))(X))


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
@pytest.mark.parametrize("mode", MODES)
def test_what_is_closed_over_is_differentiated(mode: str, kind: str) -> None:
    """The function, both halves of its rule and a function among its arguments close over a traced value."""

    def with_rule(w: Any, x: Any) -> Any:
        def f(g: Function, x: Any) -> Any:
            return w**2 * g(x)

        if kind == "vjp":
            f = ft.custom_vjp(f)
            f.defvjp(lambda g, x: (f(g, x), (x, w * x)), lambda res, ct: (None, 2 * ct * w**2 * res[1] * res[0] * w))
        else:
            f = ft.custom_jvp(f)
            f.defjvp(lambda p, t: (f(*p), 2 * w**3 * p[1] * t[1] * p[1] * w))
        return np.sum(f(lambda x: w**2 * x**3 * 2 / 3, x))

    def plain(w: Any, x: Any) -> Any:
        return np.sum(w**4 * x**3 * 2 / 3)

    args = (1.3, X)
    assert_tree_close(MODES[mode](lambda p: with_rule(*p))(args), MODES[mode](lambda p: plain(*p))(args))
    batch = (np.array([1.3, 0.4, -2.0]), three(X))
    assert_tree_close(
        in_batch(MODES[mode])(lambda p: with_rule(*p))(batch), in_batch(MODES[mode])(lambda p: plain(*p))(batch)
    )


def ten_times(rule: str) -> Function:
    """exp, with a rule that makes the derivative ten times too large."""
    f = (ft.custom_jvp if "jvp" in rule else ft.custom_vjp)(lambda x: np.exp(x))

    def result_is_residual(x: Any) -> Any:
        y = np.exp(x)
        return y, y

    if rule == "fwd calls f":
        f.defvjp(lambda x: (f(x), f(x)), lambda y, ct: (10 * ct * y,))
    elif rule == "fwd computes":
        f.defvjp(result_is_residual, lambda y, ct: (10 * ct * y,))
    elif rule == "bwd calls f":
        f.defvjp(lambda x: (np.exp(x), x), lambda x, ct: (10 * ct * f(x),))
    elif rule == "jvp calls f":
        f.defjvp(lambda p, t: (f(*p), 10 * t[0] * f(*p)))
    else:
        f.defjvp(lambda p, t: (np.exp(p[0]), 10 * t[0] * f(*p)))
    return f


@pytest.mark.parametrize("rule", ["fwd calls f", "fwd computes", "bwd calls f", "jvp calls f", "jvp computes"])
def test_the_rule_counts_in_every_order(rule: str) -> None:
    """Also where a derivative uses the value."""
    f = ten_times(rule)
    for transform in (ft.hessian, lambda f: ft.grad(ft.grad(f)), lambda f: ft.jacfwd(ft.jacfwd(f))):
        assert transform(f)(0.0) == pytest.approx(100)
        assert transform(lambda x: f(x) ** 2)(0.0) == pytest.approx(400)
        assert ft.vmap(transform(lambda x: f(x) ** 2))(np.zeros(2)) == pytest.approx([400, 400])
    assert ft.grad(ft.grad(ft.grad(f)))(0.0) == pytest.approx(1000)


def test_called_outside_of_a_trace_it_is_the_function() -> None:
    f = by_vjp()
    assert f(X, Y) == product(X, Y)
    assert f.__name__ == "product"
    assert isinstance(f(1, 2), np.floating)


# Arguments and results


def test_containers_keywords_defaults_and_static_arguments() -> None:
    def plain(p: Any, how: str, power: int = 2, *, scale: Any = 1.0) -> Any:
        assert how == "sum"
        value = np.sum(p["a"] ** power) * p["b"][0] * scale
        return {"value": value, "pair": (p["b"][0] + p["b"][1], None), "where": np.argmax(p["a"]), "power": power}

    f = ft.custom_vjp(plain)
    cotangents = []

    def fwd(p: Any, how: str, power: int = 2, *, scale: Any = 1.0) -> Any:
        assert how == "sum"
        return f(p, how, power, scale=scale), (p, power, scale)

    def bwd(res: Any, ct: Any) -> Any:
        p, power, scale = res
        cotangents.append(ct)
        a, b = p["a"], p["b"]
        slope = ct["value"] * scale
        others = ct["pair"][0]
        return {"a": slope * power * a ** (power - 1) * b[0], "b": (slope * np.sum(a**power) + others, others)}, 0, None

    f.defvjp(fwd, bwd)

    def loss(f: Function) -> Function:
        def value(p: Any, s: Any) -> Any:
            first, other = f(p, "sum", power=3, scale=s), f(how="sum", p=p)
            return first["value"] * other["pair"][0] + other["value"] + 0.0 * first["where"]

        return value

    args = {"a": X, "b": (2.0, 3.0)}, 1.5
    assert_tree_close(f(args[0], "sum"), plain(args[0], "sum"))
    for transform in (ft.grad, ft.hessian, lambda f, n: ft.jacrev(ft.jacrev(f, n), n), ft.jacfwd):
        assert_tree_close(transform(loss(f), (0, 1))(*args), transform(loss(plain), (0, 1))(*args))
    assert cotangents[0]["where"] is None
    assert cotangents[0]["power"] is None
    axes = ({"a": 0, "b": (0, None)}, None)
    batch = ({"a": three(X), "b": (np.arange(3.0), 2.0)}, 0.5)

    def over_lanes(f: Function) -> Function:
        return lambda *args: np.sum(ft.vmap(loss(f), axes)(*args) ** 2)

    for transform in (ft.grad, ft.jacfwd, ft.hessian):
        assert_tree_close(transform(over_lanes(f), (0, 1))(*batch), transform(over_lanes(plain), (0, 1))(*batch))


def test_ufuncs() -> None:
    sine = ft.custom_vjp(np.sin)
    sine.defvjp(lambda x, **options: (np.sin(x, **options), x), lambda x, ct: (2 * ct * np.cos(x),))
    assert_close(ft.grad(sine)(0.5), 2 * np.cos(0.5))
    assert_close(ft.grad(ft.grad(sine))(0.5), -2 * np.sin(0.5))
    assert_close(ft.grad(lambda x: np.sum(sine(x, dtype=np.float64)))(np.ones(2)), 2 * np.cos(np.ones(2)))
    product = ft.custom_jvp(np.multiply, nondiff_argnums=1)
    product.defjvp(lambda y, primals, tangents: (primals[0] * y, 3 * tangents[0] * y))
    assert_close(ft.grad(product)(2.0, 5.0), 15.0)


def test_arguments_without_derivative() -> None:
    @partial(ft.custom_vjp, nondiff_argnums=(0,))
    def f(g: Function, x: Any, n: Any) -> Any:
        return g(x) * n

    f.defvjp(lambda g, x, n: (f(g, x, n), (x, n)), lambda g, res, ct: (7 * ct * g(res[0]) * res[1], "anything"))
    assert ft.grad(lambda x: f(np.sin, x, np.int64(3)))(0.5) == pytest.approx(21 * np.sin(0.5))
    assert ft.vmap(ft.grad(f, 1), (None, 0, 0))(np.sin, np.ones(2), np.arange(2)) == pytest.approx(
        [0.0, 7 * np.sin(1.0)]
    )

    @ft.custom_jvp
    def power(x: Any, n: int) -> Any:
        return x**n

    power.defjvps(lambda t, out, x, n: n * power(x, n - 1) * t if n else None, None)
    assert ft.grad(ft.grad(power))(2.0, 3) == 12.0
    assert ft.jit(ft.grad(ft.grad(power)), static_argnums=1)(2.0, 3) == 12.0

    last = ft.custom_vjp(lambda x, g: g(x), nondiff_argnums=-1)
    last.defvjp(lambda x, g: (last(x, g), x), lambda g, x, ct: (5 * ct * x,))
    assert ft.grad(lambda x: last(x, np.sin))(2.0) == 10.0
    by_name = ft.custom_vjp(lambda x, *xs, scale: x * xs[1] * scale, nondiff_argnames="scale")
    by_name.defvjp(lambda x, *xs, scale: (x, (xs[1], scale)), lambda res, ct: (9 * ct * res[0] * res[1], None, None))
    assert ft.grad(lambda x: by_name(x, 5.0, 3.0, scale=2.0))(2.0) == 54.0

    @partial(ft.custom_jvp, nondiff_argnames="k")
    def times(x: Any, k: Any) -> Any:
        return x * k

    times.defjvp(lambda k, primals, tangents: (times(primals[0], k), 5 * k * tangents[0]))
    # What is declared to have no rule has the derivative of the function.
    assert ft.grad(times, (0, 1))(2.0, 3.0) == (15.0, 2.0)


def test_as_a_method() -> None:
    class Layer:
        w = 3.0

        @ft.custom_vjp
        def scaled(self, x: Any) -> Any:
            return self.w * x

        scaled.defvjp(lambda self, x: (self.w * x, self.w), lambda w, ct: (None, 2 * ct * w))

    assert ft.grad(Layer().scaled)(1.0) == 6.0


def test_python_branches_in_rules() -> None:
    @ft.custom_vjp
    def size(x: Any) -> Any:
        return x if x > 0 else -x

    size.defvjp(lambda x: (size(x), 1.0 if x > 0 else -1.0), lambda sign, ct: (ct * sign,))
    for f in (ft.grad(size), ft.jit(ft.grad(size))):
        assert [f(x) for x in (2.0, -2.0, 3.0)] == [1.0, -1.0, 1.0]
    assert_close(ft.vmap(size)(X), np.abs(X))
    assert_close(ft.vmap(ft.grad(size))(X), np.sign(X))


def test_absent_tangents_are_left_out() -> None:
    """A partial derivative that is infinite does not meet a tangent that is zero."""

    @ft.custom_jvp
    def power(x: Any, y: Any) -> Any:
        return x**y

    power.defjvps(lambda t, out, x, y: t * y * x ** (y - 1), lambda t, out, x, y: t * np.log(x) * out)
    with np.errstate(divide="ignore", invalid="ignore"):
        assert ft.grad(power)(0.0, 2.0) == 0.0
        assert ft.jvp(lambda x: power(x, 2.0), (0.0,), (1.0,))[1] == 0.0


def test_absent_cotangents_are_left_out() -> None:
    """A derivative that is infinite does not meet the cotangent of a result that nobody uses."""
    f = ft.custom_vjp(lambda x: (2 * x, np.log(x)))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (2 * ct[0] + ct[1] / x,))
    with np.errstate(divide="ignore"):
        for transform in (ft.grad, ft.jacfwd, lambda f: lambda x: ft.vmap(ft.grad(f))(np.array([x]))[0]):
            assert transform(lambda x: f(x)[0])(0.0) == 2.0


def test_rules_see_what_changes_between_calls() -> None:
    """Also where the rules are traced twice because one calls the function, and make other arrays each time."""
    size, factor = 20_000, 1.0
    rng = np.random.default_rng(0)
    f, noisy = (ft.custom_vjp(lambda x: 1.0 * x) for _ in range(2))
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * np.full(size, factor),))
    noisy.defvjp(lambda x: (noisy(x), None), lambda _, ct: (ct * rng.normal(size=2),))
    x = np.ones(size)
    for factor in (1.0, 2.0, 3.0):
        assert ft.grad(lambda x: np.sum(f(x)))(x)[0] == factor
        assert ft.jvp(f, (x,), (x,))[1][0] == factor
        assert ft.hessian(lambda s: np.sum(f(s * x) ** 2))(1.0) == pytest.approx(2 * size * factor**2)
    first, second = (ft.grad(lambda x: np.sum(noisy(x)))(X) for _ in range(2))
    assert not np.any(first == second)


def test_equal_arrays_that_are_closed_over() -> None:
    a, b = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    a.flags.writeable = b.flags.writeable = False
    f = ft.custom_vjp(lambda x: a * x)
    f.defvjp(lambda x: (f(x), x + b), lambda _, ct: (ct * a * b + ct * (a * b),))
    np.testing.assert_array_equal(ft.grad(lambda x: np.sum(f(x)))(X), [2.0, 8.0])
    np.testing.assert_array_equal(ft.jacfwd(f)(X), np.diag([2.0, 8.0]))


def test_without_a_traced_argument_it_is_the_function() -> None:
    """Also a rule that cannot do with results that have no derivative."""
    f = ft.custom_vjp(lambda x: x**2)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (7 * ct * x,))
    for x in (3, 3.0, np.float64(3.0)):
        assert ft.grad(lambda y, x=x: y * f(x))(2.0) == 9.0
        assert ft.jit(lambda y, x=x: y * f(x))(2.0) == 18.0


def test_rules_that_call_each_other() -> None:
    """Factors in the rules show that they are used in every order."""
    sin, cos = ft.custom_vjp(lambda x: np.sin(x)), ft.custom_vjp(lambda x: np.cos(x))
    sin.defvjp(lambda x: (sin(x), x), lambda x, ct: (10 * ct * cos(x),))
    cos.defvjp(lambda x: (cos(x), x), lambda x, ct: (-7 * ct * sin(x),))
    for transform in (ft.grad, ft.jacfwd):
        third = transform(transform(transform(sin)))
        assert third(0.7) == pytest.approx(-700 * np.cos(0.7))
        assert ft.vmap(third)(np.array([0.7, 0.1])) == pytest.approx(-700 * np.cos([0.7, 0.1]))


def test_tracing_again_finds_the_same_program() -> None:
    def run(k: Any) -> Any:
        f = ft.custom_vjp(lambda x: np.sin(x) * k)
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * np.cos(x) * k,))
        program: Any = None

        def inner(x: Any) -> Any:
            nonlocal program
            y = f(x)
            program = y.builder.tape.eqns()[-1]
            return y

        ft.grad(inner)(1.0)
        return program

    assert run(2.0) is run(2.0)


# Rules that are not linear


def clipped() -> Function:
    f = ft.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    f.__wrapped__.__name__ = "clipped"
    return f


def test_a_backward_that_is_not_linear_works_in_reverse() -> None:
    x = np.array([0.1, 2.0, -3.0])

    def loss(f: Function) -> Function:
        return lambda x: np.sum(f(x) ** 2)

    f = clipped()
    expected = np.diag([2.0, 0.0, 0.0])
    for wrap in (lambda f: f, ft.jit):
        np.testing.assert_allclose(wrap(ft.grad(loss(f)))(x), [0.2, 1.0, -1.0])
        np.testing.assert_allclose(wrap(ft.hessian(loss(f)))(x), expected)
    np.testing.assert_allclose(ft.jacrev(ft.grad(loss(f)))(x), expected)
    np.testing.assert_allclose(ft.vmap(ft.grad(loss(f)))(np.stack([x, -x])), [[0.2, 1.0, -1.0], [-0.2, -1.0, 1.0]])


def test_a_backward_that_is_not_linear_has_no_forward_mode() -> None:
    f = clipped()
    for call in (
        lambda: ft.jvp(f, (X,), (X,)),
        lambda: ft.jacfwd(f)(X),
        lambda: ft.jit(ft.jacfwd(f))(X),
        lambda: ft.linearize(f, X)[1](X),
        lambda: ft.grad(lambda x: np.sum(ft.jvp(f, (x,), (x,))[1]))(X),
    ):
        with pytest.raises(MissingRule, match=r"not linear in the cotangent(.|\n)*np\.clip(.|\n)*defjvp\(rule\)"):
            call()
    f.defjvp(lambda p, t: (f(*p), 3 * t[0]))
    np.testing.assert_allclose(ft.jvp(f, (X,), (X,))[1], 3 * X)
    np.testing.assert_allclose(ft.vjp(f, X)[1](4 * X)[0], np.clip(4 * X, -1, 1))


NOT_LINEAR: dict[str, Function] = {
    "in a condition": lambda r, ct: ft.while_loop(lambda c: np.sum(c**2) < 9.0, lambda c: 2 * c, ct),
    "loop that adds": lambda r, ct: ft.while_loop(lambda c: c[1] < 3, lambda c: (c[0] + r, c[1] + 1), (ct, 0))[0],
    "adds": lambda r, ct: ct + 1.0,
    "adds a residual": lambda r, ct: ct + r,
    "constant": lambda r, ct: np.ones_like(ct),
    "square": lambda r, ct: ct**2,
    "product": lambda r, ct: ct * ct * r,
    "sign": lambda r, ct: np.sign(ct),
    "selects by itself": lambda r, ct: np.where(ct > 0, ct, 0.0),
    "selects a number": lambda r, ct: np.where(r > 0, ct, 7.0),
    "remainder": lambda r, ct: ct % 2.0,
    "in a loop": lambda r, ct: ft.fori_loop(0, 3, lambda i, c: 2 * c + 1, ct),
    "in a branch": lambda r, ct: ft.cond(r[0] > 0, lambda c: 2 * c, lambda c: np.ones_like(c), ct),
    "sorts": lambda r, ct: np.sort(ct),
    "rounds": lambda r, ct: np.round(ct),
    "stops": lambda r, ct: ft.stop_gradient(ct),
    "divides": lambda r, ct: r / ct,
    "pushes another tangent": lambda r, ct: ft.jvp(scaled_by_vjp(), (r, r), (ct, np.ones(2)))[1],
    "loop from one": lambda r, ct: ft.scan(lambda c, y: (c * y[0] + y[1], c), 1.0, (r, ct))[1],
    "indexes": lambda r, ct: r[np.argmax(ct)] * ct,
}
MATRIX = np.arange(4.0).reshape(2, 2) + np.eye(2)
LINEAR: dict[str, Function] = {
    "scales": lambda r, ct: 2 * ct / r - ct,
    "selects": lambda r, ct: np.where(r > 0, ct, 0.0),
    "minus": lambda r, ct: 0 - ct,
    "matrix": lambda r, ct: MATRIX @ ct,
    "solves": lambda r, ct: np.linalg.solve(MATRIX, ct) * r,
    "sums": lambda r, ct: np.cumsum(ct)[::-1] + np.sum(ct),
    "joins": lambda r, ct: np.concatenate([ct[1:], np.zeros(1)]),
    "joins numbers": lambda r, ct: np.stack([0.0, r[1] * ct[1]]),
    "assigns": lambda r, ct: _assigned(ct),
    "einsum": lambda r, ct: np.einsum("i,j,j->i", r, r, ct),
    "loop": lambda r, ct: ft.fori_loop(0, 3, lambda i, c: np.sin(r) * c, ct),
    "while": lambda r, ct: ft.while_loop(lambda c: c[1] < 3, lambda c: (np.sin(r) * c[0], c[1] + 1), (ct, 0))[0],
    "scan": lambda r, ct: ft.scan(lambda c, y: (c + y, 2 * c), 0.0, ct)[1],
    "recurrence": lambda r, ct: ft.scan(lambda c, y: (c * y[0] + y[1], c), 0.0, (r, ct))[1],
    "times zero": lambda r, ct: np.stack([ct[1], 0.0 * r[0]]),
    "branch": lambda r, ct: ft.cond(r[0] > 0, lambda c: 2 * c, lambda c: np.zeros_like(c), ct),
    "solves without matrix": lambda r, ct: ft.linear_solve(lambda v: r * v, ct, method="gmres"),
    "checkpoint": lambda r, ct: ft.checkpoint(lambda c: c * np.sin(r))(ct),
    "derivative": lambda r, ct: ft.vjp(lambda x: np.sin(x) * x, r)[1](ct)[0],
    "other rule": lambda r, ct: scaled_by_rule()(r, ct),
    "vmap": lambda r, ct: ft.vmap(lambda c, y: c * y)(ct, r),
    "zero": lambda r, ct: None,
}


def scaled_by_rule() -> Function:
    """The product, as a function with a rule."""
    f = ft.custom_jvp(lambda r, ct: ct * r)
    f.defjvps(lambda t, out, r, ct: t * ct, lambda t, out, r, ct: t * r)
    return f


def scaled_by_vjp() -> Function:
    """The same, with a rule for reverse mode."""
    f = ft.custom_vjp(lambda r, ct: ct * r)
    f.defvjp(lambda r, ct: (f(r, ct), (r, ct)), lambda res, g: (g * res[1], g * res[0]))
    return f


def _assigned(ct: Any) -> Any:
    out = np.zeros_like(ct)
    out[0] = 3 * ct[1]
    return out


def with_backward(bwd: Function) -> Function:
    f = ft.custom_vjp(lambda x: 2 * x)
    f.defvjp(lambda x: (f(x), x), lambda r, ct: (bwd(r, ct),))
    return f


@pytest.mark.parametrize("bwd", NOT_LINEAR.values(), ids=NOT_LINEAR)
def test_not_linear_is_found(bwd: Function) -> None:
    f = with_backward(bwd)
    ft.vjp(f, X)[1](Y)
    with pytest.raises(MissingRule, match="not linear in the cotangent"):
        ft.jvp(f, (X,), (X,))
    g = ft.custom_jvp(lambda x: 2 * x)
    g.defjvp(lambda p, t: (g(*p), bwd(*p, *t)))
    ft.jvp(g, (X,), (X,))
    with pytest.raises(MissingRule, match=r"jvp rule of lambda is not linear in the tangents(.|\n)*defvjp"):
        ft.vjp(g, X)[1](Y)


@pytest.mark.parametrize("bwd", LINEAR.values(), ids=LINEAR)
def test_forward_mode_is_the_transpose_of_the_backward(bwd: Function) -> None:
    f = with_backward(bwd)
    np.testing.assert_allclose(ft.jacfwd(f)(X), ft.jacrev(f)(X), atol=1e-12)
    batch = np.stack([X, Y])
    np.testing.assert_allclose(ft.vmap(ft.jacfwd(f))(batch), ft.vmap(ft.jacrev(f))(batch), atol=1e-12)

    def loss(x: Any) -> Any:
        return np.sum(f(x) ** 2)

    np.testing.assert_allclose(ft.hessian(loss)(X), ft.jacrev(ft.jacrev(loss))(X), atol=1e-12)
    np.testing.assert_allclose(ft.jacrev(ft.jacfwd(loss))(X), ft.jacrev(ft.jacrev(loss))(X), atol=1e-12)


# Wrong rules


def wrong(bwd: Any = None, fwd: Any = None, jvp: Any = None) -> None:
    """Differentiate a function of {"a": array, "b": [number]} and a number with such a rule."""
    f = ft.custom_vjp(lambda p, y: p["a"] * p["b"][0] * y)
    if bwd is not None:
        f.defvjp(fwd or (lambda p, y: (p["a"] * p["b"][0] * y, (p, y))), bwd)
    if jvp is not None:
        f.defjvp(jvp)
    ft.grad(lambda p: np.sum(f(p, 2.0)))({"a": X, "b": [3.0]})


def ones(**changed: Any) -> Any:
    """A cotangent of the first argument."""
    return {"a": np.ones(2), "b": [1.0], **changed}


WRONG: dict[str, tuple[dict[str, Function], str]] = {
    "no tuple": ({"bwd": lambda r, ct: ct}, r"bwd rule of lambda(.*)must return a tuple of 2 cotangents, for p, y"),
    "too few": ({"bwd": lambda r, ct: (ones(),)}, "tuple of 2 cotangents, for p, y, but it returned 1 of them"),
    "structure": ({"bwd": lambda r, ct: ({"a": ct}, None)}, r"another structure than the argument p: \{'a': \*\}"),
    "array for a container": ({"bwd": lambda r, ct: (ct, None)}, "another structure than the argument p: an array"),
    "container for an array": ({"bwd": lambda r, ct: (ones(), (ct, ct))}, r"argument y: \(\*, \*\), not an array"),
    "shape": ({"bwd": lambda r, ct: (ones(a=ct[:1]), None)}, r"f64\[1\] as the cotangent of the argument p\['a'\]"),
    "dtype": ({"bwd": lambda r, ct: (ones(a=ct.astype(np.float32)), None)}, r"f32\[2\](.*)\.astype\(np\.float64\)"),
    "complex": ({"bwd": lambda r, ct: (ones(a=1j * ct), None)}, r"c128\[2\] as the cotangent of the argument p\['a'\]"),
    "no array": ({"bwd": lambda r, ct: (ones(a="text"), None)}, r"the str 'text' as the cotangent(.*)p\['a'\]"),
    "leaf": (
        {"bwd": lambda r, ct: (ones(b=[ct]), None)},
        r"as the cotangent of the argument p\['b'\]\[0\], which is f64",
    ),
    "no pair": (
        {"bwd": lambda r, ct: (None, None), "fwd": lambda p, y: p["a"]},
        r"pair \(out, residuals\)(.*)f64\[2\]",
    ),
    "other result": (
        {"bwd": lambda r, ct: (None, None), "fwd": lambda p, y: ((p["a"], y), None)},
        r"fwd rule(.*)another structure than the function: \(\*, \*\), not an array",
    ),
    "other type": (
        {"bwd": lambda r, ct: (None, None), "fwd": lambda p, y: (y, None)},
        r"returned f64\[\] as result, where the function returns f64\[2\]",
    ),
    "jvp without pair": ({"jvp": lambda p, t: t[1]}, r"jvp rule(.*)pair \(out, tangent\)"),
    "jvp of another result": ({"jvp": lambda p, t: (p[1], t[1])}, r"jvp rule(.*)returned f64\[\] as result"),
    "tangent": ({"jvp": lambda p, t: (p[0]["a"], t[1])}, r"f64\[\] as the tangent of result, which is f64\[2\]"),
    "mixed": ({"jvp": lambda p, t: (p[0]["a"] + t[0]["a"], t[0]["a"])}, "result that depends on the tangents"),
}


@pytest.mark.parametrize(("rule", "message"), WRONG.values(), ids=WRONG)
def test_wrong_rules(rule: dict[str, Function], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        wrong(**rule)


def test_what_may_stand_for_a_cotangent() -> None:
    for ct in (None, ones(), {"a": None, "b": None}, {"a": 0, "b": [0]}, {"a": np.zeros(2, np.float32), "b": [1]}):
        wrong(lambda r, _, ct=ct: (ct, None))


def _assigning(x: Any) -> None:
    x["a"][0] = 1.0


def _assigning_to_a_view(x: Any) -> None:
    x["a"][::-1][:1] = 1.0


def _replacing(x: Any) -> None:
    x["a"] = np.ones(2)


def _extending(x: Any) -> None:
    x["b"].append(1.0)


@pytest.mark.parametrize("change", [_assigning, _assigning_to_a_view, _replacing, _extending])
def test_rules_that_change_what_they_are_given(change: Function) -> None:
    def result(p: Any, y: Any) -> Any:
        return p["a"] * p["b"][0] * y

    def backward(r: Any, ct: Any) -> Any:
        change(r[0])
        return None, None

    def forward(p: Any, y: Any) -> Any:
        change(p)
        return result(p, y), None

    def pushing(p: Any, t: Any) -> Any:
        change(t[0])
        return result(*p), None

    for rule, name in (
        ({"bwd": backward}, "bwd"),
        ({"bwd": backward, "fwd": forward}, "fwd"),
        ({"jvp": pushing}, "jvp"),
    ):
        with pytest.raises(TypeError, match=rf"the {name} rule of lambda(.*)assigns to (.*) that it is given"):
            wrong(**rule)


def test_changing_an_array_without_derivative() -> None:
    @partial(ft.custom_vjp, nondiff_argnums=(0,))
    def f(table: Any, x: Any) -> Any:
        return table @ x

    def bwd(table: Any, _: Any, ct: Any) -> Any:
        table[0, 0] = 5.0
        return (ct,)

    f.defvjp(lambda table, x: (table @ x, None), bwd)
    table = MATRIX.copy()
    with pytest.raises(TypeError, match=r"bwd rule of f(.*)assigns to an array"):
        ft.grad(lambda x: np.sum(f(table, x)))(X)
    np.testing.assert_array_equal(table, MATRIX)


def test_missing_rules() -> None:
    for decorate, way in ((ft.custom_vjp, r"g\.defvjp\(fwd, bwd\)"), (ft.custom_jvp, r"g\.defjvp\(rule\)")):

        @decorate
        def g(x: Any) -> Any:
            return x

        assert ft.jit(g)(2.0) == 2.0
        with pytest.raises(MissingRule, match=f"has no derivative rule; write {way}"):
            ft.grad(g)(2.0)


def test_a_rule_that_differentiates_its_function() -> None:
    f = ft.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (f(x), ft.grad(f)(x)), lambda slope, ct: (ct * slope,))
    with pytest.raises(RuntimeError, match="differentiates lambda itself"):
        ft.grad(f)(2.0)


def test_bad_decoration() -> None:
    with pytest.raises(TypeError, match="must be a function, not"):
        ft.custom_vjp(3)
    with pytest.raises(ValueError, match="no argument 'q'"):
        ft.custom_jvp(product, nondiff_argnames="q")
    with pytest.raises(TypeError, match="defjvp"):
        ft.custom_jvp(product, nondiff_argnums=1).defjvps(None)
    f = ft.custom_jvp(product)
    f.defjvps(None)
    with pytest.raises(TypeError, match=r"1 rules(.*)2 arguments"):
        ft.grad(f)(X, Y)
    with pytest.raises(TypeError, match="bwd must be a function, not of type int"):
        f.defvjp(product, 3)
    for number in (2, -3):
        with pytest.raises(ValueError, match=rf"argument {number}, but product takes 2 positional arguments"):
            ft.custom_vjp(product, nondiff_argnums=number)
    with pytest.raises(ValueError, match="takes any number of positional arguments"):
        ft.custom_vjp(lambda *xs: xs, nondiff_argnums=-1)


def test_calls_that_do_not_fit() -> None:
    f = ft.custom_vjp(product)
    f.defvjp(lambda x: (x, None), lambda res, ct: (ct, ct))
    with pytest.raises(TypeError, match=r"fwd rule of product(.*)called with 2 arguments, but(.*)takes 1 positional"):
        ft.grad(f)(X, Y)
    with pytest.raises(TypeError, match=r"product\(\) cannot be called like this: missing a required argument: 'y'"):
        ft.grad(f)(X)


# Function


class SortedPair(ft.autograd.Function):
    """Sorted values, where they came from, and twice the values, which are declared to have no derivative."""

    @staticmethod
    def forward(x: Any) -> Any:
        order = np.argsort(x)
        return x[order], order, 2 * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(output[1])
        ctx.shape = inputs[0].shape

    @staticmethod
    def backward(ctx: Any, ct: Any, of_order: Any, of_double: Any) -> Any:
        assert of_order.dtype == np.int64
        assert not np.any(of_double)
        assert ctx.shape == (3,)
        out = np.zeros_like(ct)
        (order,) = ctx.saved_tensors
        out[order] = ct
        return out


def test_function_with_setup_context_and_results_without_derivative() -> None:
    x = np.array([0.3, -1.2, 2.6])

    def loss(x: Any) -> Any:
        values, _, double = SortedPair.apply(x)
        return np.sum(values * np.arange(3.0)) + np.sum(double)

    assert isinstance(SortedPair.apply(x)[1], np.ndarray)
    np.testing.assert_array_equal(ft.grad(loss)(x), [1.0, 0.0, 2.0])
    np.testing.assert_array_equal(ft.jacfwd(loss)(x), [1.0, 0.0, 2.0])
    np.testing.assert_array_equal(ft.vmap(ft.grad(loss))(np.stack([x, -x])), [[1.0, 0.0, 2.0], [1.0, 2.0, 0.0]])
    np.testing.assert_array_equal(ft.jit(ft.grad(loss))(x), [1.0, 0.0, 2.0])


def test_function_options() -> None:
    seen: list[Any] = []

    class Options(ft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, n: int) -> Any:
            ctx.set_materialize_grads(False)
            ctx.n = n
            return x * n, np.argmax(y)

        @staticmethod
        def backward(ctx: Any, ct: Any, of_index: Any) -> Any:
            seen.append((ctx.needs_input_grad, of_index))
            return ct * ctx.n, None, None

    assert ft.grad(lambda x: Options.apply(x, Y, 3)[0])(2.0) == 3.0
    assert seen[0] == ((True, False, False), None)
    assert ft.grad(lambda x, y: Options.apply(x, y, 3)[0] + np.sum(y), (0, 1))(2.0, Y)[0] == 3.0
    assert seen[-1] == ((True, True, False), None)


def test_function_with_both_modes_or_one() -> None:
    class Forward(ft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_forward(x, y)
            return x * y, x + y

        @staticmethod
        def jvp(ctx: Any, dx: Any, dy: Any) -> Any:
            x, y = ctx.saved_tensors
            return 3 * (x * dy + y * dx), dx + dy

    class Both(Forward):
        @staticmethod
        def backward(ctx: Any, ct: Any, of_sum: Any) -> Any:
            _, y = ctx.saved_tensors
            return np.clip(5 * y * ct, -10, 10) + of_sum, of_sum

    def total(function: Any) -> Function:
        return lambda x, y: function.apply(x, y)[0] + function.apply(x, y)[1] ** 2

    assert ft.grad(total(Forward), (0, 1))(2.0, 3.0) == (19.0, 16.0)
    assert ft.jvp(total(Both), (2.0, 3.0), (1.0, 0.0))[1] == 19.0
    assert ft.grad(total(Both), (0, 1))(2.0, 3.0) == (20.0, 10.0)


def test_messages_name_the_methods() -> None:
    class Few(ft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct

    line = Few.backward.__code__.co_firstlineno
    message = rf"bwd rule of Few (.*)test_custom_rules\.py:{line}(.*)2 cotangents, for args\[0\], args\[1\]"
    with pytest.raises(TypeError, match=message):
        ft.grad(Few.apply)(2.0, 3.0)


def test_function_without_rule() -> None:
    class Bare(ft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

    assert Bare.apply(2.0) == 4.0
    with pytest.raises(MissingRule, match="a static method backward of Bare"):
        ft.grad(Bare.apply)(2.0)
