"""Anomaly detection: who is blamed for a NaN or an infinity, and for what."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.base.source import callers_of
from ftrans.control.rules.host_call import watch
from ftrans.debug import AnomalyError, detect_anomaly, is_anomaly_enabled, set_detect_anomaly

X = np.array([1.0, 0.0, 4.0])
# Mixes elements, so that a choice made by `where` behind it is not put off until after what stands before it.
EYE = np.eye(3)


@pytest.fixture
def checked() -> Iterator[None]:
    with detect_anomaly():
        yield


def error_of(f: Callable[..., Any], *args: Any) -> AnomalyError:
    """The error that a call raises."""
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        f(*args)
    return caught.value


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: np.sum(f(x))


# What is blamed, for what.  Each row: what runs, on what; the expression, whether in its derivative, operation, kind.

grad, value = ft.grad, ft.value_and_grad
KINDS: dict[str, tuple[Any, Any, str, bool, str, str]] = {
    "log 0": (value(total(lambda x: np.log(x))), X, "np.log(x)", False, "log", "logarithm of zero"),
    "log' 0": (grad(total(lambda x: np.log(x))), X, "np.log(x)", True, "div", "log'(0)"),
    "log -1": (value(total(lambda x: np.log(x - 2))), X, "np.log(x - 2)", False, "log",
               "logarithm of a negative number"),
    "log1p": (value(total(lambda x: np.log1p(x - 1))), X, "np.log1p(x - 1)", False, "log1p", "logarithm of zero"),
    "sqrt": (grad(total(lambda x: np.sqrt(x))), X, "np.sqrt(x)", True, "div", "sqrt'(0)"),
    "cbrt": (grad(total(lambda x: np.cbrt(x))), X, "np.cbrt(x)", True, "div", "cbrt'(0)"),
    "sqrt''": (grad(grad(lambda x: np.sqrt(x))), 0.0, "np.sqrt(x)", True, "div", "sqrt'(0)"),
    "sqrt -1": (grad(total(lambda x: np.sqrt(x - 2))), X, "np.sqrt(x - 2)", False, "sqrt",
                "square root of a negative number"),
    "norm": (grad(lambda x: np.sqrt(x @ x)), np.zeros(2), "np.sqrt(x @ x)", True, "div", "sqrt'(0)"),
    "where": (grad(total(lambda x: np.where(x > 0, EYE @ np.sqrt(x), 0.0))), X, "np.sqrt(x)", True, "div", "sqrt'(0)"),
    "0/0": (value(total(lambda x: x / x)), X, "x / x", False, "div", "0 / 0"),
    "1/0": (value(total(lambda x: 1 / x)), X, "1 / x", False, "div", "division by zero"),
    "inf/inf": (value(total(lambda x: np.exp(x * 300) / np.exp(x * 300))), X, "np.exp(x * 300)", False, "exp",
                "overflow"),
    "sinh": (value(total(lambda x: np.sinh(x * 300))), X, "np.sinh(x * 300)", False, "sinh", "overflow"),
    "softplus": (grad(lambda x: np.log(1 + np.exp(x))), 800.0, "np.exp(x)", False, "exp", "overflow"),
    "square": (value(total(lambda x: (x * 1e300) ** 2)), X, "(x * 1e300) ** 2", False, "integer_pow", "overflow"),
    "sum": (value(lambda x: np.sum(x * 4e307)), X, "np.sum(x * 4e307)", False, "reduce_sum", "overflow"),
    "product": (value(lambda x: np.prod(x + 1e150)), X, "np.prod(x + 1e150)", False, "reduce_prod", "overflow"),
    "matmul": (value(lambda x: (x * 1e200) @ (x * 1e200)), X, "(x * 1e200) @ (x * 1e200)", False, "dot_general",
               "overflow"),
    "power": (grad(total(lambda x: np.power(x, -0.5))), X, "np.power(x, -0.5)", True, "power",
              "zero to a negative power"),
    "power''": (ft.hessian(total(lambda x: x**1.5)), X, "x**1.5", True, "power", "zero to a negative power"),
    "negative power": (value(total(lambda x: (x - 2) ** 1.5)), X, "(x - 2) ** 1.5", False, "power",
                       "negative number to a fractional power"),
    "exponent": (grad(lambda y: (-1.0) ** y), 2.0, "(-1.0) ** y", True, "log", "logarithm of a negative number"),
    "arcsin": (value(total(lambda x: np.arcsin(x))), X, "np.arcsin(x)", False, "arcsin",
               "arcsin outside of its domain"),
    "arcsin'": (grad(total(lambda x: np.arcsin(x))), X / 4, "np.arcsin(x)", True, "div", "arcsin'(±1)"),
    "arctanh": (value(total(lambda x: np.arctanh(x))), X / 4, "np.arctanh(x)", False, "arctanh", "arctanh of ±1"),
    "inf - inf": (value(total(lambda x: x * 1e308 * 10 - x * 1e308 * 10)), X, "x * 1e308 * 10", False, "mul",
                  "overflow"),
    "all masked": (value(total(lambda x: np.where(x > 9, x, -np.inf) - np.where(x > 9, x, -np.inf).max())), X,
                   "np.where(x > 9, x, -np.inf) - np.where(x > 9, x, -np.inf).max()", False, "sub", "inf - inf"),
    "inf * 0": (value(total(lambda x: x * np.array(np.inf))), X[1:2], "x * np.array(np.inf)", False, "mul", "0 * inf"),
    "remainder": (value(total(lambda x: np.remainder(1.0, x))), X, "np.remainder(1.0, x)", False, "remainder",
                  "remainder of a division by zero"),
    "complex": (ft.jit(lambda z: 1 / z), np.array([1j, 0j]), "1 / z", False, "div", "division by zero"),
    "float32": (value(lambda x: np.exp(x)), np.float32(100), "np.exp(x)", False, "exp", "overflow"),
    "too small": (ft.jit(lambda x: x.astype(np.float32)), np.array([1e300]), "x.astype(np.float32)", False, "convert",
                  "overflow"),
    "singular": (ft.jit(lambda x: np.linalg.inv(np.outer(x, x))), X, "np.linalg.inv(np.outer(x, x))", False, "inv",
                 "LinAlgError: Singular matrix"),
    "jvp": (lambda x: ft.jvp(lambda x: np.sqrt(x), (x,), (x + 1,)), X, "np.sqrt(x)", True, "div", "sqrt'(0)"),
    "vjp": (lambda x: ft.vjp(lambda x: np.sqrt(x), x)[1](x + 1), X, "np.sqrt(x)", True, "div", "sqrt'(0)"),
    "linearize": (lambda x: ft.linearize(lambda x: np.sqrt(x), x)[1](x + 1), X, "np.sqrt(x)", True, "div", "sqrt'(0)"),
    "jacfwd": (ft.jacfwd(lambda x: np.sqrt(x)), X, "np.sqrt(x)", True, "div", "sqrt'(0)"),
    "vmap of grad": (ft.vmap(grad(lambda x: np.log(x))), X, "np.log(x)", True, "div", "log'(0)"),
    "grad of vmap": (grad(total(ft.vmap(lambda x: np.log(x)))), X, "np.log(x)", True, "div", "log'(0)"),
    "jit of grad": (ft.jit(grad(total(lambda x: np.where(x > 0, EYE @ np.sqrt(x), 0.0)))), X, "np.sqrt(x)", True, "div",
                    "sqrt'(0)"),
    "jit of hessian": (ft.jit(ft.hessian(total(lambda x: x**1.5))), X, "x**1.5", True, "power",
                       "zero to a negative power"),
    "grad of jit": (grad(total(ft.jit(lambda x: np.sqrt(x)))), X, "np.sqrt(x)", True, "div", "sqrt'(0)"),
    "constant folded": (ft.jit(grad(total(lambda x: x / 0.0))), X, "x / 0.0", True, "div", "division by zero"),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name: str) -> None:
    f, x, expression, in_derivative, operation, kind = KINDS[name]
    error = error_of(f, x)
    assert error.kind == kind
    assert error.operation == operation
    assert error.in_derivative is in_derivative
    assert error.line is not None
    assert error.line.expression == expression
    assert error.line.filename == __file__
    for text in (kind, f"`{expression}`" if len(expression) <= 80 else "the line", f"{__file__}:{error.line.number}: "):
        assert text in str(error)
    assert f"derivative of `{expression}` computes" in str(error) or not in_derivative


def test_the_message_shows_the_numbers() -> None:
    error = error_of(grad(total(lambda x: np.where(x > 0, EYE @ np.sqrt(x), 0.0))), X)
    assert str(error).startswith("nan in the result of grad(lambda) at index [1]: sqrt'(0)\n")
    assert "the derivative of `np.sqrt(x)` computes 0.5 / 0.0 = inf at index [1]\n" in str(error)
    assert "then the derivative of `np.sqrt(x)` computes 0.0 * inf = nan\n" in str(error)
    assert "np.where computes both branches" in str(error)
    assert (error.operands, error.index) == ((0.5, 0.0), (1,))


def test_advice_on_where_is_given_only_where_there_is_one() -> None:
    error = error_of(grad(lambda x: np.sqrt(np.sum(x * x)) + np.sum(x)), np.zeros(2))
    assert "np.hypot" in str(error)
    assert "both branches" not in str(error)


def test_summaries_of_arrays() -> None:
    error = error_of(value(lambda x: np.sum(x * 1e306)), np.arange(100.0))
    assert "reduce_sum(<float64[100] from 0.0 to 9.9e+307>) = inf" in str(error)


# What is no alarm


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["un-jitted", "jitted"])
@pytest.mark.usefixtures("checked")
def test_what_is_masked_is_no_alarm(way: Any) -> None:
    def f(x: Any) -> Any:
        safe = np.where(x > 0, x, 1.0)
        chosen = np.where(x > 0, np.sqrt(safe), 0.0)
        # NaN and infinities that no result depends on.
        unused = np.log(x - 100.0)
        masked = np.where(x > 100, unused, x)
        weights = np.exp(np.where(x > 0, x, -np.inf))
        return np.sum(chosen) + np.sum(masked) + np.sum(weights / weights.sum()) + np.max(x, initial=-np.inf)

    result, gradient = way(value(f))(X)
    assert np.isfinite(result)
    np.testing.assert_allclose(gradient, [1.5, 1.0, 2.25], rtol=1e-14)


@pytest.mark.usefixtures("checked")
def test_integers_and_booleans_are_never_bad() -> None:
    assert ft.jit(lambda x: (x > 0, np.argmax(x)))(np.array([1.0, np.inf]))[1] == 1


def test_flags_choose_what_is_an_anomaly() -> None:
    with detect_anomaly(check_inf=False):
        assert grad(np.log)(0.0) == np.inf
        with pytest.raises(AnomalyError):
            grad(total(lambda x: np.where(x > 0, EYE @ np.sqrt(x), 0.0)))(X)
    with detect_anomaly(check_nan=False):
        assert np.isnan(grad(lambda x: np.sqrt(x - 1))(0.0))
        with pytest.raises(AnomalyError, match="log'"):
            grad(lambda x: np.array([np.nan, 1.0])[0] * 0 + np.log(x) * 1.0)(0.0)
    with detect_anomaly(False, False):
        assert np.isnan(grad(lambda x: np.sqrt(x - 1))(0.0))


# Arguments and constants that are bad from the beginning


def test_bad_arguments() -> None:
    error = error_of(grad(lambda x: np.sum(np.sin(x) * 2)), np.array([1.0, np.nan]))
    assert (error.kind, error.argument, error.index, error.operation) == ("NaN in an argument", 0, (1,), None)
    assert "`np.sin(x)` takes first" in str(error)
    error = error_of(grad(lambda x: np.sum(np.sin(x))), np.array([1.0, np.inf]))
    assert (error.kind, error.argument, error.operation) == ("cos of infinity", 0, "cos")


def test_bad_arguments_of_compiled_functions_have_names() -> None:
    f = ft.jit(lambda tree, w: tree["a"][0] * w)
    one, nan = np.ones(2), np.array([1.0, np.nan])
    assert "argument 0['a'][0], f64[2], is nan at index [1]" in str(error_of(f, {"a": [nan]}, one))
    assert "argument 1, f64[2], is nan" in str(error_of(f, {"a": [one]}, nan))
    assert "argument w, f64[2], is nan" in str(error_of(lambda: f({"a": [one]}, w=nan)))
    large = np.full(10_000, np.nan)
    assert "an array that the function closes over" in str(error_of(ft.jit(lambda x: x * large), 1.0))


def test_bad_cotangents_and_constants() -> None:
    _, pull = ft.vjp(lambda x: x * 2.0, 1.0)
    _, push = ft.linearize(lambda x: np.sin(x), 1.0)
    with detect_anomaly():
        _, pull_checked = ft.vjp(lambda x: np.sin(x), 1.0)
    for f in (pull, push):
        assert error_of(f, np.nan).kind == "NaN in an argument"
    assert "tangent or cotangent 0, f64[], is nan" in str(error_of(pull_checked, np.nan))
    assert error_of(value(lambda x: x * np.array(np.nan)), 1.0).kind in ("NaN in an argument", "NaN constant")


# Loops and branches


def in_scan(x: Any) -> Any:
    def step(carry: Any, a: Any) -> Any:
        return carry - a, np.log(carry)

    carry, ys = ft.scan(step, x, np.arange(5.0))
    return np.sum(carry) + np.sum(ys)


def in_nested_scan(x: Any) -> Any:
    def outer(carry: Any, a: Any) -> Any:
        def inner(c: Any, b: Any) -> Any:
            return np.sqrt(c - a * b), None

        return ft.scan(inner, carry, np.arange(3.0))

    return ft.scan(lambda c, a: (outer(c, a)[0], None), x, np.array([0.0, 0.1, 40.0]))[0]


def in_while(x: Any, **limits: Any) -> Any:
    def step(state: Any) -> Any:
        i, y = state
        return i + 1, np.sqrt(y - 1.0)

    return ft.while_loop(lambda state: state[0] < 6, step, (0, x), **limits)[1]


def test_scan_names_the_step() -> None:
    error = error_of(value(in_scan), np.array([20.0, 5.0]))
    assert (error.kind, error.operation, error.operands) == ("logarithm of a negative number", "log", (-1.0,))
    assert error.steps[0].startswith("step 4 of the scan at test_anomaly.py:")


def test_sequences_are_followed_out_of_a_scan() -> None:
    def f(x: Any) -> Any:
        return np.sum(ft.scan(lambda c, a: (c + a, c * a), x[0], np.log(x), reverse=True)[1])

    error = error_of(value(f), np.array([1.0, 2.0, -1.0]))
    assert (error.line.expression, error.index, error.steps) == ("np.log(x)", (2,), ())  # type: ignore[union-attr]


def test_nested_loops() -> None:
    error = error_of(value(in_nested_scan), 100.0)
    assert error.kind == "square root of a negative number"
    assert [s.split(" at ")[0] for s in error.steps] == ["step 2 of the scan", "step 1 of the scan"]


@pytest.mark.parametrize("limits", [{}, {"max_steps": 8}, {"checkpoints": 2}], ids=str)
@pytest.mark.parametrize("f", [grad, value], ids=["grad", "value"])
def test_while(f: Any, limits: dict[str, Any]) -> None:
    error = error_of(f(lambda x: in_while(x, **limits)), 5.0)
    assert (error.kind, error.operation) == ("square root of a negative number", "sqrt")
    assert error.line.expression == "np.sqrt(y - 1.0)"  # type: ignore[union-attr]
    assert "while loop" in error.steps[0]


def test_the_way_back_through_a_while_loop() -> None:
    # The values are finite; the derivative of the last step but one is not.
    error = error_of(
        grad(lambda x: ft.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, np.sqrt(s[1])), (0, x))[1]), 0.0
    )
    assert (error.kind, error.in_derivative) == ("sqrt'(0)", True)


def test_a_carry_that_has_been_bad_for_long() -> None:
    error = error_of(value(lambda x: ft.scan(lambda c, _: (c * c + 1.0, None), x, length=2000)[0]), 1.0)
    assert (error.kind, error.steps[0].split(" at ")[0]) == ("overflow", "step 10 of the scan")


def test_compiled_loops() -> None:
    error = error_of(ft.jit(grad(in_while)), 5.0)
    assert (error.kind, error.operation) == ("square root of a negative number", "sqrt")


@ft.custom_vjp
def root_by_rule(x: Any) -> Any:
    return np.sqrt(x)


root_by_rule.defvjp(lambda x: (np.sqrt(x), x), lambda x, ct: (ct / (2 * np.sqrt(x)),))

INSIDE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "cond": (lambda x: ft.cond(x[0] > 0, lambda x: np.log(x), lambda x: x, x), "np.log(x)"),
    "checkpoint": (ft.checkpoint(lambda x: np.log(x)), "np.log(x)"),
    "call": (ft.jit(lambda x: np.log(x)), "np.log(x)"),
    "batched cond": (ft.vmap(lambda x: ft.cond(x >= 0, lambda x: np.log(x), lambda x: x, x)), "np.log(x)"),
    "custom": (root_by_rule, "ct / (2 * np.sqrt(x))"),
}


@pytest.mark.parametrize("name", INSIDE)
def test_inside(name: str) -> None:
    f, expression = INSIDE[name]
    error = error_of(grad(total(f)), X)
    assert (error.operation, error.operands, error.index) == ("div", (1.0, 0.0), (1,))
    assert error.line.expression == expression  # type: ignore[union-attr]


def test_solvers_are_followed_to_their_operands() -> None:
    solve = ft.jit(lambda a: ft.linear_solve(lambda v: v * a, np.log(a)))
    error = error_of(solve, np.array([1.0, 2.0, -1.0]))
    assert (error.kind, error.index) == ("logarithm of a negative number", (2,))


def test_callbacks_run_once() -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            (carry,) = watch.apply(seen.append, [carry], [carry])
            return carry - 1.0, None

        return np.log(ft.scan(step, x, length=2)[0])

    assert error_of(grad(f), 2.0).kind == "log'(0)"
    assert seen == [2.0, 1.0]


# Random programs


UNARY: list[Callable[[Any], Any]] = [
    np.log, np.sqrt, np.exp, np.arcsin, np.sin, np.cumsum, np.sort, np.log1p, np.cumprod,
    lambda x: 1 / x,
    lambda x: x**1.5,
    lambda x: x * 1e200,
    lambda x: x[::-1],
    lambda x: np.concatenate([x[1:], x[:1]]),
    lambda x: np.where(x > 0, np.sqrt(x), 1.0),
    lambda x: x / np.sum(x),
    lambda x: np.outer(x, x) @ x,
    lambda x: np.prod(x) * x,
    lambda x: ft.scan(lambda c, a: (c * a, np.log(c + a)), x[0], x)[1],
    lambda x: ft.cond(x[0] > 0, lambda y: np.sqrt(y), lambda y: y * y, x),
    lambda x: ft.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, np.sqrt(s[1] - 0.1)), (0, x))[1],
    lambda x: ft.checkpoint(lambda y: np.log(y * y))(x),
]  # fmt: skip
BINARY = [np.add, np.subtract, np.multiply, np.divide, np.hypot, np.logaddexp, np.power, np.arctan2, np.minimum]


@pytest.mark.parametrize("derivative", [ft.value_and_grad, ft.hessian, ft.jacfwd], ids=["grad", "hessian", "jacfwd"])
def test_culprits_of_random_programs_made_it_themselves(derivative: Any) -> None:
    errors: list[AnomalyError] = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        steps = [(*rng.random(4),) for _ in range(rng.integers(2, 7))]

        def f(x: Any, steps: Any = steps) -> Any:
            values = [x]
            for which, name, first, second in steps:
                a, b = (values[int(place * len(values))] for place in (first, second))
                unary, binary = UNARY[int(name * len(UNARY))], BINARY[int(name * len(BINARY))]
                values.append(unary(a) if which < 0.6 else binary(a, b))
            return np.sum(values[-1])

        try:
            with detect_anomaly():
                derivative(f)(rng.choice([0.0, 1.0, -1.0, 0.5, 2.0], 4))
        except AnomalyError as error:
            errors.append(error)
    assert len(errors) > 15
    assert all(error.kind not in (None, "NaN") and error.argument is None for error in errors)
    assert all(np.isfinite(x).all() for error in errors for x in error.operands)


# Compiled functions


def test_large_compiled_results() -> None:
    x = np.ones(1_000_000)
    f = ft.jit(lambda x: np.sqrt(x) * 2)
    with detect_anomaly():
        assert f(x).sum() == 2_000_000
        # The sum of these overflows, the numbers do not.
        assert np.isfinite(f(x * 1e308 * 1e-1)).all()
        assert np.isfinite(ft.jit(lambda x: x * 1e307)(x)).all()
    x[123_456] = -1.0
    error = error_of(f, x)
    assert (error.index, error.operands) == ((123_456,), (-1.0,))


def test_jax_arrays() -> None:
    import jax

    with jax.enable_x64(True):
        x = jax.numpy.asarray(X)
    for f in (grad(total(lambda x: np.log(x))), ft.jit(grad(total(lambda x: np.log(x))))):
        assert error_of(f, x).kind == "log'(0)"
    donated = error_of(ft.jit(lambda x: np.log(x), donate_argnums=0), x)
    assert "donate_argnums" in str(donated)
    assert donated.kind is None


def test_where_numpy_finds_nothing() -> None:
    from ftrans.api import anomaly

    program = ft.trace(lambda x: x * 2.0)(1.0)
    with detect_anomaly(), pytest.raises(AnomalyError, match="Run again on NumPy"):
        anomaly.check(program, [np.float64(1.0)], [np.float64(np.nan)])


# The mode


def bad() -> Any:
    return grad(np.log)(0.0)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_off_by_default_and_restored() -> None:
    assert not is_anomaly_enabled()
    assert bad() == np.inf
    with pytest.raises(AnomalyError), detect_anomaly():
        bad()
    assert not is_anomaly_enabled()
    with detect_anomaly():
        with set_detect_anomaly(False):
            assert bad() == np.inf
            with detect_anomaly():
                assert is_anomaly_enabled()
            assert not is_anomaly_enabled()
        assert is_anomaly_enabled()
    assert bad() == np.inf


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_set_detect_anomaly() -> None:
    set_detect_anomaly(True)
    try:
        assert is_anomaly_enabled()
        with pytest.raises(AnomalyError):
            bad()
    finally:
        set_detect_anomaly(False)
    assert bad() == np.inf


def test_decorators() -> None:
    checks = detect_anomaly()

    @checks
    def factorial(n: int) -> int:
        """Doc."""
        assert is_anomaly_enabled()
        return 1 if n == 0 else n * factorial(n - 1)

    @detect_anomaly()
    async def coroutine() -> bool:
        await asyncio.sleep(0)
        return is_anomaly_enabled()

    assert factorial(4) == 24
    assert factorial.__doc__ == "Doc."
    assert asyncio.run(coroutine())
    assert not is_anomaly_enabled()
    with pytest.raises(TypeError, match="is a generator"):

        @detect_anomaly()
        def generator() -> Iterator[int]:
            yield 1


def test_threads_and_tasks_have_their_own_mode() -> None:
    seen: list[bool] = []
    with detect_anomaly():
        thread = threading.Thread(target=lambda: seen.append(is_anomaly_enabled()))
        thread.start()
        thread.join()
    assert seen == [False]

    async def task(on: bool) -> bool:
        with set_detect_anomaly(on):
            await asyncio.sleep(0)
            return is_anomaly_enabled()

    async def both() -> list[bool]:
        return await asyncio.gather(task(True), task(False), task(True))

    assert asyncio.run(both()) == [True, False, True]


def test_warnings_are_left_to_the_check() -> None:
    with detect_anomaly():
        # NumPy would warn of the logarithm, which no result depends on.
        assert grad(lambda x: np.where(x > 0, x, np.log(x)))(2.0) == 1.0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        bad()


def test_callers_are_listed() -> None:
    def inner(x: Any) -> Any:
        return np.log(x)

    def outer(x: Any) -> Any:
        return inner(x) * 2

    error = error_of(grad(outer), 0.0)
    assert [line.text for line in error.callers[-1:]] == ["return inner(x) * 2"]
    assert "Called from" in str(error)
    # Nothing is noted while the mode is off.
    line = ft.trace(lambda x: np.exp(x))(1.0).eqns[0].line
    assert line is not None
    with detect_anomaly():
        assert callers_of(line) == ()


def test_callers_are_those_of_the_own_thread() -> None:
    def traced() -> Any:
        return ft.trace(shared_line)(1.0).eqns[0].line

    def shared_line(x: Any) -> Any:
        return np.exp(x)

    with detect_anomaly():
        line = (lambda: traced())()
        mine = callers_of(line)
        with ThreadPoolExecutor(1) as other:
            assert other.submit(callers_of, line).result() == ()

            def elsewhere() -> Any:
                with detect_anomaly():
                    return callers_of(traced())

            assert other.submit(elsewhere).result() != mine
        assert callers_of(line) == mine


def test_the_error_is_a_floating_point_error() -> None:
    with pytest.raises(FloatingPointError), detect_anomaly():
        bad()


def test_modes_of_tasks_leave_each_other_alone() -> None:
    async def off() -> None:
        set_detect_anomaly(False)

    async def on() -> None:
        set_detect_anomaly(True)

    async def main() -> tuple[AnomalyError, bool]:
        with detect_anomaly():
            await asyncio.gather(off(), off())
            error = error_of(lambda: ft.grad(lambda x: np.sqrt(x))(0.0))
        await asyncio.gather(on(), on())
        return error, is_anomaly_enabled()

    error, is_on = asyncio.run(main())
    assert error.callers
    assert not is_on
    # What is traced without the mode does not look for its callers.
    line = ft.trace(lambda x: np.cosh(x))(0.5).eqns[0].line
    assert line is not None
    with detect_anomaly():
        assert not callers_of(line)
