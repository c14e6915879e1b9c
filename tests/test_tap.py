"""Named intermediate values: collecting them changes nothing, and their gradients are those of a shift in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft

XS = np.array([0.3, -0.2, 0.5])
Named = Callable[[str, Any], Any]


def model(w: Any, named: Named) -> Any:
    """Values in every construct that a tap may be in."""

    def step(h: Any, x: Any) -> Any:
        h = named("state", np.tanh(w * h + x))
        return h, named("pair", {"a": h * 2, "b": (h * x,)})["b"][0]

    h, ys = ft.scan(step, 0.1, XS)
    z = ft.cond(h > 0, lambda h: named("taken", h * h), lambda h: named("not taken", -h), h)
    z = z + ft.jit(lambda u: named("compiled", np.exp(u)) ** 2)(h)
    z = z + ft.checkpoint(lambda u: named("again", np.sin(u)) * u)(h)
    z = z + np.sum(ft.vmap(lambda x: named("lane", x * w) ** 2)(XS)) + np.sum(ys**2)
    z = z + np.sum(ft.map(lambda x: named("mapped", np.cos(x * w)) ** 3, XS))
    return z * ft.grad(lambda u: named("inner", np.sin(u)) ** 2)(w)


def plain(w: Any) -> Any:
    return model(w, lambda name, x: x)


def tapped(w: Any) -> Any:
    return model(w, ft.tap)


def shifted(name: str, index: Any, by: float) -> Callable[..., Any]:
    """The model with one element of one named value moved."""

    def move(called: str, x: Any, at: Any = ()) -> Any:
        return x + by * (at == index) if called == name else x

    def f(w: Any) -> Any:
        h, ys = 0.1, []
        for i, x in enumerate(XS):
            h = move("state", np.tanh(w * h + x), i)
            ys.append(move("pair", h * x, i))
        z = move("taken", h * h) + move("compiled", np.exp(h)) ** 2 + move("again", np.sin(h)) * h
        z = z + sum(move("lane", x * w, i) ** 2 for i, x in enumerate(XS)) + sum(y**2 for y in ys)
        z = z + sum(move("mapped", np.cos(x * w), i) ** 3 for i, x in enumerate(XS))
        return z * 2 * move("inner", np.sin(w)) * np.cos(w)

    return f


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "jit"])
def collected(request: pytest.FixtureRequest) -> Any:
    f = ft.value_and_grad(tapped, taps=True)
    return (ft.jit(f) if request.param else f)(0.7)


def test_results_are_unchanged(collected: Any) -> None:
    (value, _), gradient = collected
    expected = ft.value_and_grad(plain)(0.7)
    np.testing.assert_allclose((value, gradient), expected, rtol=1e-13)
    for way in (ft.grad, ft.hessian, lambda f: ft.grad(ft.grad(f)), lambda f: ft.vmap(ft.grad(f))):
        w = np.array([0.7, 0.2]) if way is not ft.grad and "vmap" in way(plain).__name__ else 0.7
        np.testing.assert_allclose(way(tapped)(w), way(plain)(w), rtol=1e-13)


@pytest.mark.parametrize("name", ["state", "pair", "taken", "compiled", "again", "lane", "mapped", "inner"])
def test_gradients_are_those_of_a_shift(collected: Any, name: str) -> None:
    (_, taps), _ = collected
    found = taps[name].gradient["b"][0] if name == "pair" else taps[name].gradient
    places: list[Any] = list(range(3)) if np.ndim(found) else [()]
    h = 1e-5
    expected = [(shifted(name, i, h)(0.7) - shifted(name, i, -h)(0.7)) / (2 * h) for i in places]
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-7)


def test_values(collected: Any) -> None:
    (_, taps), _ = collected
    state = taps["state"].value
    np.testing.assert_allclose(state, np.tanh(0.7 * np.array([0.1, *state[:-1]]) + XS), rtol=1e-14)
    np.testing.assert_allclose(taps["pair"].value["a"], 2 * state, rtol=1e-14)
    np.testing.assert_array_equal(taps["pair"].gradient["a"], np.zeros(3))
    np.testing.assert_allclose(taps["lane"].value, 0.7 * XS, rtol=1e-14)
    np.testing.assert_allclose(taps["inner"].value, np.sin(0.7), rtol=1e-14)
    assert taps["not taken"] == (0.0, 0.0)
    assert taps["compiled"].value == pytest.approx(np.exp(state[-1]), rel=1e-14)


def test_auxiliary_results_and_several_arguments() -> None:
    def f(x: Any, y: Any) -> Any:
        z = ft.tap("z", x * y)
        return np.sum(z**2), {"half": z / 2}

    x, y = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    (value, aux, taps), gradients = ft.value_and_grad(f, argnums=(0, 1), has_aux=True, taps=True)(x, y)
    assert value == 13.0
    np.testing.assert_array_equal(aux["half"], x * y / 2)
    np.testing.assert_array_equal(taps["z"].gradient, 2 * x * y)
    np.testing.assert_array_equal(gradients[0], 2 * x * y * y)
    np.testing.assert_array_equal(gradients[1], 2 * x * y * x)


def test_a_value_without_influence() -> None:
    def f(x: Any) -> Any:
        ft.tap("unused", x**3)
        n = ft.tap("count", x > 0)
        return np.where(n, x, 0.0) * 1.0 + ft.stop_gradient(ft.tap("stopped", np.exp(x)))

    (_, taps), gradient = ft.value_and_grad(f, taps=True)(2.0)
    assert taps["unused"] == (8.0, 0.0)
    assert taps["stopped"] == (np.exp(2.0), 0.0)
    assert taps["count"].value
    assert taps["count"].gradient is None
    assert gradient == 1.0


def test_no_taps_and_constant_functions() -> None:
    assert ft.value_and_grad(lambda x: x * x, taps=True)(3.0) == ((9.0, {}), 6.0)
    (value, taps), gradient = ft.value_and_grad(lambda x: np.sum(ft.stop_gradient(x)), taps=True)(3.0)
    assert (value, taps, gradient) == (3.0, {}, 0.0)


def test_collected_values_are_differentiable() -> None:
    def f(x: Any) -> Any:
        (_, taps), _ = ft.value_and_grad(lambda x: np.sin(ft.tap("y", x**2)), taps=True)(x)
        return taps["y"].value + 3 * taps["y"].gradient

    x = 1.3
    for way in (ft.grad, ft.jacfwd, lambda f: ft.jit(ft.grad(f))):
        assert way(f)(x) == pytest.approx(2 * x - 6 * x * np.sin(x**2), rel=1e-13)
    np.testing.assert_allclose(ft.vmap(f)(np.array([x, 2 * x])), [f(x), f(2 * x)], rtol=1e-14)


def test_dtypes_and_signed_zeros_are_kept() -> None:
    def f(x: Any) -> Any:
        y = ft.tap("y", x * ft.tap("factor", 2.0))
        assert y.dtype == np.float32
        return y

    (value, taps), gradient = ft.value_and_grad(f, taps=True)(np.float32(-0.0))
    assert all(z.dtype == np.float32 for z in (value, gradient, *taps["y"]))
    assert np.signbit(value)
    assert np.signbit(taps["y"].value)


def test_outside_of_a_trace_it_does_nothing() -> None:
    x = {"a": np.ones(2)}
    assert ft.tap("x", x) is x


def test_integers_stay_integers() -> None:
    f = lambda x: x[: ft.tap("n", 2)].sum()  # noqa: E731
    (_, taps), gradient = ft.value_and_grad(f, taps=True)(np.ones(3))
    assert taps["n"] == (2, None)
    np.testing.assert_array_equal(gradient, [1.0, 1.0, 0.0])


def test_a_name_used_twice() -> None:
    def f(x: Any) -> Any:
        y = ft.tap("same", x)
        return ft.tap("same", y * y)

    assert ft.grad(f)(2.0) == 4.0
    with pytest.raises(ValueError, match=r"'same' is used by two taps(.|\n)*tap\(\"same\", x\)(.|\n)*y \* y"):
        ft.value_and_grad(f, taps=True)(2.0)


def test_a_function_that_is_called_twice() -> None:
    f = ft.jit(lambda y: ft.tap("y", y * y))
    with pytest.raises(ValueError, match="'y' is used by two taps in one function, or its line runs twice"):
        ft.value_and_grad(lambda x: f(x) + f(2 * x), taps=True)(3.0)


def test_branches_that_some_lanes_take() -> None:
    def f(x: Any) -> Any:
        return ft.cond(x > 0, lambda x: ft.tap("log", np.log(x)) * 2, lambda x: ft.tap("square", x * x), x)

    x = np.array([1.0, -2.0, 3.0])
    (value, taps), gradient = ft.vmap(ft.value_and_grad(f, taps=True))(x)
    np.testing.assert_allclose(taps["log"], [[0.0, 0.0, np.log(3.0)], [2.0, 0.0, 2.0]], rtol=1e-14)
    np.testing.assert_allclose(taps["square"], [[0.0, 4.0, 0.0], [0.0, 1.0, 0.0]], rtol=1e-14)
    (total, taps), of_total = ft.value_and_grad(lambda x: np.sum(ft.vmap(f)(x)), taps=True)(x)
    np.testing.assert_allclose((total, *of_total), (value.sum(), *gradient), rtol=1e-14)
    np.testing.assert_allclose(taps["log"].value[[0, 2]], [0.0, np.log(3.0)], rtol=1e-14)
    np.testing.assert_array_equal(taps["log"].gradient, [2.0, 0.0, 2.0])
    np.testing.assert_array_equal(taps["square"].gradient, [0.0, 1.0, 0.0])
    assert taps["square"].value[1] == 4.0
    assert np.isfinite([*taps["log"].value, *taps["square"].value]).all()


def test_a_tap_in_a_while_loop() -> None:
    f = lambda x: ft.while_loop(lambda y: y < 10.0, lambda y: ft.tap("y", y * 2), x)  # noqa: E731
    assert ft.grad(f)(3.0) == 4.0
    with pytest.raises(NotImplementedError, match=r"'y' is inside the body of a while_loop(.|\n)*ftrans.scan"):
        ft.value_and_grad(f, taps=True)(3.0)


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match=r"name of a tap must be a string(.|\n)*tap\(name, x\)"):
        ft.grad(lambda x: ft.tap(x, "x"))(1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"x\['b'\] is of type object"):
        ft.grad(lambda x: ft.tap("x", {"a": x, "b": object()})["a"])(1.0)
