"""check_grads: right derivatives pass in every precision, wrong ones are found and named."""

from __future__ import annotations

import doctest
import inspect
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from random_programs import random_arguments, random_program
from samples import SAMPLES

import ftrans as ft
from ftrans.core.primitive import MissingRule
from ftrans.core.types import ArrayType
from ftrans.ops import elementwise
from ftrans.ops.broadcast import reduce_sum
from ftrans.ops.elementwise import Elementwise, mul
from ftrans.ops.literals import full_like
from ftrans.scipy import integrate
from ftrans.testing import GradientError, check_grads
from ftrans.testing.checking import check_program
from ftrans.testing.differences import differentiate, irregularity
from ftrans.testing.failures import Failure, Report, remainder_text
from ftrans.testing.precision import coarsest_unit, in_double_precision
from ftrans.testing.subject import Settings

BF16 = np.dtype(ml_dtypes.bfloat16)
PRECISIONS = [np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16), BF16]
LOW = PRECISIONS[1:]
X = np.array([0.3, -0.7, 1.1])
rng = np.random.default_rng(0)


def error_of(f: Callable[..., Any], *args: Any, **options: Any) -> GradientError:
    """The error that a check raises; without exceptions it returns False."""
    assert check_grads(f, *args, raise_exception=False, **options) is False
    with pytest.raises(GradientError) as caught:
        check_grads(f, *args, **options)
    return caught.value


def names(error: GradientError) -> list[str]:
    """The operations that an error blames."""
    return [c.operation for c in error.culprits]


# What passes


def layers(w: Any, b: Any, x: Any) -> Any:
    h = np.tanh(x @ w + b)
    h = (h - np.mean(h, axis=0)) / np.sqrt(np.mean(h * h, axis=0) + np.asarray(0.1, h.dtype))
    return np.sum(np.exp(h[:, ::2] - np.max(h)) ** 2) + np.where(h > 0, h, h * h).mean()


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
def test_layers_pass_in_every_precision(dtype: Any) -> None:
    args = [rng.normal(size=shape).astype(dtype) for shape in [(5, 4), (4,), (3, 5)]]
    assert check_grads(layers, *args)


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
def test_rounding_is_no_error(dtype: Any) -> None:
    def cancelling(x: Any) -> Any:
        return np.sum(np.cumsum(np.sin(x) * x) - np.cumsum(np.cos(x) * x)[::-1])

    assert check_grads(cancelling, rng.normal(size=300).astype(dtype))


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: np.sin(x) ** 2 + np.cos(x) ** 2 - 1, (rng.normal(size=50),)),
        (lambda x: 0.0 * x, (X,)),
        (lambda x: 3.0 * x + 1e6, (X,)),
        (lambda x: np.floor(x) * x, (X,)),
        (lambda x: np.sum(np.log(x)), (np.array([1e-8, 1e8]),)),
        (lambda x: np.sum(1 / x), (np.array([1e-5, 1.0, 1e7]),)),
        (lambda x: np.sin(1e6 * x), (0.3,)),
        (lambda x: np.maximum(x, 0.3 - 1e-7) ** 2, (np.array([0.3, 2.0]),)),
        (lambda x: np.exp(-(x**2) / 1e-4), (0.01,)),
        (lambda x: np.sum(x[:0]) + np.sum(x**2), (X,)),
        (lambda x: np.logaddexp(x, -x), (40 * X,)),
        (lambda a, b: np.linalg.solve(a, b), (rng.normal(size=(3, 3)) + 3 * np.eye(3), X)),
    ],
)
def test_unusual_functions_pass(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_grads(f, *args)


def test_third_order() -> None:
    assert check_grads(lambda x: np.sum(np.sin(x) * np.exp(x)), X, order=3)


def test_complex_functions() -> None:
    z = rng.normal(size=3) + 1j * rng.normal(size=3)
    assert check_grads(lambda z: (z * z, z * np.conj(z), np.abs(np.exp(z))), z)
    assert check_grads(lambda z: np.abs(z) ** 2 * z, z, eps=1e-6)
    assert check_grads(lambda z: np.exp(z), z.astype(np.complex64))


def test_containers_integers_and_results_without_derivatives() -> None:
    def f(parameters: dict[str, Any], n: int, flag: bool, axis: str) -> Any:
        assert isinstance(n, int)
        total = parameters["w"] ** n if flag else parameters["w"]
        return {"a": total * parameters["rest"][0], axis: np.argmax(parameters["w"])}

    assert check_grads(f, {"w": X, "rest": [2.0, np.arange(3)]}, 3, True, "b")


def test_numbers_take_the_precision_of_arrays() -> None:
    def f(p: Any, x: Any) -> Any:
        assert x.dtype == (p * x).dtype
        return np.sum(np.sin(p * x))

    assert check_grads(f, 0.7, X.astype(np.float32))


def test_jitted_functions_and_closures() -> None:
    w = rng.normal(size=3)
    assert check_grads(ft.jit(lambda x: np.sum(np.sin(x * w))), X)
    assert check_grads(lambda x: ft.grad(lambda y: np.sum(np.sin(y * x)))(w), X)
    assert check_grads(lambda x: ft.vmap(lambda a: a**3)(x), X)


def test_loops_and_solvers() -> None:
    def loop(x: Any) -> Any:
        x = ft.scan(lambda c, _: (np.sin(c) + c**2 / 9, c), x, None, length=4)[0]
        return ft.while_loop(lambda c: np.sum(c) < 9, lambda c: c * 1.7 + 1, x)

    assert check_grads(loop, X)
    assert check_grads(lambda a: ft.fixed_point(lambda x, a: np.cos(a * x), np.array(0.5), a), 0.8)


def solution(k: Any, **options: Any) -> Any:
    times = np.linspace(0, 5, 40)
    found = integrate.solve_ivp(lambda t, y: k[0] * np.exp(-t * k[1]) - y, (0, 5), [0.0], t_eval=times, **options)
    return np.sum(found.y**2)


def test_constants_at_the_edge_of_what_is_allowed_stay_there() -> None:
    assert check_grads(solution, np.array([1.2, 0.4]), rtol=1e-2)
    assert check_grads(lambda k: solution(k, rtol=1e-9, atol=1e-11), np.array([1.2, 0.4]))


def test_solvers_with_a_tolerance_are_told_apart_from_wrong_rules() -> None:
    text = str(error_of(solution, np.array([1.2, 0.4])))
    assert text.startswith("the derivative of solution differs from finite differences, as a solver's tolerance lets")
    assert "solve_ivp(rtol=0.001, atol=1e-06) is right up to its tolerance only" in text
    assert "pass a larger rtol to check_grads" in text
    assert "wrong:" not in text
    assert "its rule is at" not in text


def test_one_mode_alone() -> None:
    clipped = lambda x: np.sum(ft.clip_gradient(x, -100.0, 100.0) ** 2)  # noqa: E731
    assert check_grads(clipped, X, modes="reverse", order=1)
    assert check_grads(np.sin, X, modes=["forward"])
    with pytest.raises(MissingRule) as caught:
        check_grads(clipped, X)
    assert any("modes=('reverse',)" in note for note in caught.value.__notes__)


# Every row of the sample table of one family per number, and random programs

SMOOTH = [s for s in SAMPLES if s.smooth and s.reversible and not s.hermitian and any(s.active)]


@pytest.mark.parametrize("part", range(6))
def test_samples_pass(part: int) -> None:
    for sample in SMOOTH[part::6]:
        if any(t.dtype.kind in "fc" or t.dtype == BF16 for t in sample.out_types):
            report = check_program(sample.program(), sample.draw(), sample.active, Settings(order=1))
            assert not report.failures, f"{sample}: {report.error()}"
            assert not report.doubts, f"{sample}: {report.doubts}"


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_pass(seed: int) -> None:
    report = check_program(random_program(seed), random_arguments(seed))
    assert not report.failures, str(report.error())


# Rules that are wrong by 0.2 %

WRONG = 1.002


def scaled(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A jvp rule of a primitive with one result, wrong by 0.2 %."""

    def wrong(primals: Any, tangents: Any, **params: Any) -> Any:
        y, t = rule(primals, tangents, **params)
        return y, None if t is None else mul(t, full_like(t, WRONG))

    return wrong


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("primitive", [elementwise.sin, elementwise.mul, reduce_sum], ids=str)
def test_wrong_jvp_of_a_primitive(dtype: Any, primitive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primitive, "jvp", scaled(primitive.jvp))

    def f(x: Any) -> Any:
        y = np.sum(np.sin(x) * x)
        return np.exp(y)

    error = error_of(f, X.astype(dtype), order=1)
    assert names(error) == [primitive.name]
    (culprit,) = error.culprits
    assert culprit.line is not None
    assert culprit.line.text == "y = np.sum(np.sin(x) * x)"
    assert culprit.failure.relative_error == pytest.approx(WRONG - 1, rel=0.02)
    assert {f.chain for f in error.failures} == {("forward",), ("reverse",)}


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
def test_wrong_transpose_of_a_primitive(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = reduce_sum.transpose

    def wrong(ct: Any, operands: Any, **params: Any) -> Any:
        (found,) = right(ct, operands, **params)
        return [mul(found, full_like(found, WRONG))]

    monkeypatch.setattr(reduce_sum, "transpose", wrong)
    error = error_of(lambda x: np.sum(np.sin(x)), X.astype(dtype), order=1)
    assert names(error) == ["reduce_sum"]
    assert [f.chain for f in error.failures] == [("reverse",)]


def cube_with(factor: float) -> Any:
    """x**3 with a rule for reverse mode, whose derivative is `factor` times the right one."""

    @ft.custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    def bwd(x: Any, ct: Any) -> Any:
        return (np.asarray(3 * factor, x.dtype) * x**2 * ct,)

    cube.defvjp(lambda x: (cube(x), x), bwd)
    return cube


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
def test_custom_vjp(dtype: Any) -> None:
    assert check_grads(lambda x: np.sum(cube_with(1.0)(np.sin(x))), X.astype(dtype))
    wrong = cube_with(WRONG)
    error = error_of(lambda x: np.sum(wrong(np.sin(x))), X.astype(dtype))
    assert names(error) == ["the derivative rule of cube"]
    (culprit,) = error.culprits
    assert culprit.line is not None
    assert "wrong(np.sin(x))" in culprit.line.text
    assert culprit.rule_line is not None
    assert "3 * factor" in culprit.rule_line.text
    assert culprit.failure.actual / culprit.failure.expected == pytest.approx(WRONG, abs=2e-4)


def test_custom_jvp() -> None:
    wave = ft.custom_jvp(lambda x: np.sin(x))
    wave.defjvps(lambda t, out, x: t * np.cos(x) * WRONG)
    error = error_of(lambda x: np.exp(wave(x)), X)
    assert len(error.culprits) == 1
    assert "derivative rule" in names(error)[0]


def test_function_class() -> None:
    class Wrong(ft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return np.exp(x)

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            (x,) = ctx.saved_tensors
            return ct * np.exp(x) * WRONG

    error = error_of(lambda x: np.sum(Wrong.apply(x) ** 2), X)
    assert names(error) == ["the derivative rule of Wrong"]


def test_rule_that_computes_another_function() -> None:
    cube = ft.custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (x**3 * 1.001, x), lambda x, ct: (3 * x**2 * ct,))
    error = error_of(lambda x: np.sum(cube(x)), X, order=1)
    assert {f.check for f in error.failures} == {"value"}
    assert "computes another function" in str(error)
    assert len(error.culprits) == 1


def test_rules_and_what_they_close_over() -> None:
    def energy(p: Any, x: Any, factor: float) -> Any:
        rounded = ft.custom_vjp(lambda x: np.abs(x) * ft.stop_gradient(x) * inner(p))
        inner = cube_with(factor)
        bwd = lambda x, ct: (2 * np.abs(x) * p**3 * ct * (WRONG if factor == 1.0 else 1.0),)  # noqa: E731
        rounded.defvjp(lambda x: (rounded(x), x), bwd)
        return np.sum(rounded(x))

    assert names(error_of(lambda x: energy(2.0, x, 1.0), X, order=1)) == ["the derivative rule of lambda"]
    assert names(error_of(lambda p: energy(p, X, WRONG), 2.0, order=1)) == ["the derivative rule of cube"]


def test_modes_that_disagree_within_the_tolerance_of_differences() -> None:
    cube = ft.custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (3 * x**2 * ct * (1 + 3e-8),))
    cube.defjvp(lambda primals, tangents: (primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]))
    error = error_of(lambda x: np.sum(cube(x)), X, order=1)
    assert {f.check for f in error.failures} == {"inner product"}
    assert check_grads(lambda x: np.sum(cube(x)), X, order=1, rtol=1e-5)


def test_rule_that_is_wrong_in_low_precision_only() -> None:
    def bwd(x: Any, ct: Any) -> Any:
        return (3 * x**2 * ct * (WRONG if x.dtype == np.float32 else 1),)

    cube = ft.custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (cube(x), x), bwd)
    assert check_grads(lambda x: np.sum(cube(x)), X, order=1)
    error = error_of(lambda x: np.sum(cube(x)), X.astype(np.float32), order=1)
    assert {f.check for f in error.failures} == {"precision"}
    assert "float32" in str(error)
    assert len(error.culprits) == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda rule, x: ft.scan(lambda c, _: (rule(np.sin(c)), c), x, None, length=3)[0],
        lambda rule, x: ft.while_loop(lambda c: c[1] < 3, lambda c: (rule(np.sin(c[0])), c[1] + 1), (x, 0))[0],
        lambda rule, x: ft.cond(np.sum(x) > 0, lambda y: rule(np.sin(y)), lambda y: y, x),
        lambda rule, x: ft.checkpoint(lambda y: rule(np.sin(y)))(x),
        lambda rule, x: ft.jit(lambda y: rule(np.sin(y)))(x),
        lambda rule, x: ft.vmap(lambda y: rule(np.sin(y)))(x),
    ],
    ids=["scan", "while", "cond", "checkpoint", "jit", "vmap"],
)
def test_culprits_inside_of_sub_programs(use: Callable[..., Any]) -> None:
    wrong = cube_with(WRONG)
    error = error_of(lambda x: use(wrong, x), X, order=1)
    assert names(error) == ["the derivative rule of cube"]
    assert error.culprits[0].line is not None
    assert "rule(np.sin(" in error.culprits[0].line.text


# Second derivatives


def test_rule_that_is_right_once_and_wrong_twice() -> None:
    slope = ft.custom_vjp(lambda x: np.cos(x))
    slope.defvjp(lambda x: (np.cos(x), x), lambda x, ct: (-WRONG * np.sin(x) * ct,))
    wave = ft.custom_jvp(lambda x: np.sin(x))
    wave.defjvps(lambda t, out, x: t * slope(x))

    def f(x: Any) -> Any:
        return np.sum(wave(x) ** 2)

    assert check_grads(f, X, order=1)
    error = error_of(f, X, order=2)
    assert {f.chain for f in error.failures} == set(itertools.product(("forward", "reverse"), repeat=2))
    assert {f.order for f in error.failures} == {2}
    assert len(error.culprits) == 1
    assert error.culprits[0].line is not None
    assert "slope(x)" in error.culprits[0].line.text
    assert "reverse over forward mode" in str(error)
    one_mode = error_of(f, X, order=2, modes="reverse")
    assert [f.chain for f in one_mode.failures] == [("reverse", "reverse")]


def test_derivative_that_forgets_a_dependence() -> None:
    wave = ft.custom_jvp(lambda x: np.sin(x))
    wave.defjvps(lambda t, out, x: t * ft.stop_gradient(np.cos(x)))
    assert check_grads(wave, X, order=1)
    error = error_of(wave, X)
    assert "stop_gradient" in names(error)
    assert "on purpose" in str(error)


# Points without derivatives


@pytest.mark.parametrize(
    ("f", "x", "order", "words"),
    [
        (lambda x: np.where(x > 0, x, 0.0), 0.0, 1, "kink"),
        (lambda x: np.where(x > 0, 2.0, 0.0) + x, 0.0, 1, "jumps"),
        (lambda x: x * np.floor(x), 3.0, 1, "rounding moves values by 3"),
        (np.sqrt, 0.0, 1, "edge of where it is defined"),
        (np.log, 0.0, 1, "-inf"),
        (lambda x: np.abs(x) * x, 0.0, 2, "kink"),
        (np.abs, 0.0, 1, "kink"),
        (lambda x: np.sum(np.abs(x)), np.array([0.5, 0.0]), 2, "kink"),
    ],
)
def test_points_without_derivative(f: Callable[..., Any], x: Any, order: int, words: str) -> None:
    error = error_of(f, x, order=order)
    assert "has no derivative here" in str(error)
    assert words in str(error)
    assert {f.check for f in error.failures} == {"regularity"}


def test_kinks() -> None:
    error = error_of(lambda x: np.sum(np.exp(np.abs(np.sin(x))) + x), np.array([0.5, 0.0, 1.0]), order=1)
    assert names(error) == ["abs"]
    assert error.culprits[0].line is not None
    assert "np.abs(np.sin(x))" in error.culprits[0].line.text
    assert "where it comes from:" in str(error)
    ties = error_of(lambda x: np.max(x), np.array([0.5, 1.0, 1.0]), order=1)
    assert names(ties) == ["reduce_max"]
    assert check_grads(lambda x: np.sum(np.abs(x)), np.array([0.5, 1e-7, -1e-12]), order=1)


def test_nan_where_there_is_a_derivative() -> None:
    square = ft.custom_jvp(lambda x: x * x)
    square.defjvps(lambda t, out, x: t * 2 * x * (x / x))
    error = error_of(lambda x: np.sum(square(x)), np.array([0.0, 2.0]))
    assert {f.check for f in error.failures} == {"differences"}
    assert "nan" in str(error)
    assert len(error.culprits) == 1


def test_what_differences_cannot_tell_is_said() -> None:
    with pytest.warns(UserWarning, match="could not check all of"):
        assert check_grads(lambda x: 1e12 + x, 2.0)


# Functions that are none


def test_function_that_reads_random_numbers() -> None:
    error = error_of(lambda x: x * np.random.default_rng().normal(), 2.0)
    assert "different" in str(error)
    assert {f.check for f in error.failures} == {"determinism"}


def test_operation_that_is_not_deterministic() -> None:
    source = np.random.default_rng(0)
    noisy = Elementwise(
        "noisy", lambda x: x + 1e-9 * source.normal(), lambda x: x, lambda y, x: [lambda t: mul(t, noisy(x))]
    )
    report = check_program(_of(noisy), [2.0], settings=Settings(order=1, nondet_tol=0.0, rtol=1e-2))
    assert {f.check for f in report.failures} == {"determinism"}
    assert "nondet_tol" in str(report.error())
    report = check_program(_of(noisy), [2.0], settings=Settings(order=1, nondet_tol=1e-6, rtol=1e-2, atol=2.0))
    assert not report.failures


def _of(primitive: Any) -> Any:
    from ftrans.core.trace import Builder, building

    builder = Builder([ArrayType((), np.float64)])
    with building(builder):
        return builder.finish([primitive(*builder.inputs())], "f")


def test_function_that_differs_where_it_is_traced() -> None:
    def f(x: Any) -> Any:
        return x * 2.0 if type(x) is float else x * 3.0

    assert "called with plain arrays" in str(error_of(f, 2.0))


# The classical check


def test_jacobians_with_a_step() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.sin(x)[:, None] * y, np.sum(x) * y

    assert check_grads(f, X, X[:2], eps=1e-6)
    assert check_grads(lambda x: np.sum(np.sin(x)), rng.normal(size=400), eps=1e-6, order=1)
    error = error_of(lambda x: x**3, X, eps=0.1, order=1)
    assert {f.check for f in error.failures} == {"jacobian"}
    assert "eps=0.1" in str(error)
    assert "result[2]" in str(error)
    assert check_grads(lambda x: x**3, X, eps=0.1, order=1, atol=0.02)


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_small_steps_in_low_precision_warn(dtype: Any) -> None:
    with pytest.warns(UserWarning, match=f"(?s){ArrayType((3,), dtype)}".replace("[", r"\[")) as caught:
        assert check_grads(np.sin, X.astype(dtype), eps=1e-6)
    (warning,) = caught
    assert "unreliable" in str(warning.message)
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_grads(np.sin, X, eps=1e-6)
        assert check_grads(np.sin, X.astype(dtype))


def test_tolerances() -> None:
    wrong = cube_with(1 + 1e-4)
    assert not check_grads(wrong, X, raise_exception=False)
    assert check_grads(wrong, X, rtol=1e-3)
    assert check_grads(wrong, X, atol=1e-2)


# Errors


def test_message() -> None:
    wrong = cube_with(WRONG)

    def loss(x: Any) -> Any:
        y = np.sin(x)
        return np.sum(wrong(y))

    text = str(error_of(loss, X, order=1))
    assert text.startswith("the derivative of loss is wrong\n  forward mode: the derivative of result along")
    assert "relative error 0.002" in text
    assert "the derivative rule of cube\n    at " in text
    assert "return np.sum(wrong(y))" in text
    assert "shrinks like h^1.0" in text


def test_message_where_no_operation_is_wrong() -> None:
    failure = Failure("differences", ("reverse",), "it is wrong", 1.0, 2.0, "the remainder")
    text = str(Report("f", (failure,), (), ()).error())
    assert text.startswith(
        "the derivative of f is wrong\n  reverse mode: it is wrong\n    the remainder\neach operation"
    )


def test_overflow_in_low_precision() -> None:
    error = error_of(lambda x: np.sum((x * 200) ** 2 / 1e4), np.full(3, 2.0, np.float16), order=1)
    assert {f.check for f in error.failures} == {"precision"}
    assert "inf" in str(error)


def test_bad_options() -> None:
    for options, words in [
        ({"modes": "both"}, "modes must be"),
        ({"modes": ()}, "modes must be"),
        ({"order": 0}, "order must be"),
        ({"eps": 0.0}, "eps must be"),
        ({"rtol": -1.0}, "rtol must be"),
        ({"atol": np.nan}, "atol must be"),
    ]:
        with pytest.raises(ValueError, match=words):
            check_grads(np.sin, X, **options)
    with pytest.raises(TypeError, match="no floating-point argument of sin"):
        check_grads(np.sin, 3)
    with pytest.raises(TypeError, match="no floating-point argument"):
        check_grads(lambda: 1.0)
    with pytest.raises(TypeError, match="inside of a traced function"):
        ft.trace(lambda x: check_grads(np.sin, x))(X)
    with pytest.raises(TypeError, match="needs a floating-point result"):
        check_grads(lambda x: np.argmax(x), X)


def test_docstring() -> None:
    text = inspect.getdoc(check_grads) or ""
    for parameter in inspect.signature(check_grads).parameters:
        assert f"{parameter}:" in text
    assert doctest.DocTestParser().get_examples(text)


# The parts


def test_differences_know_how_good_they_are() -> None:
    for f, slope in [(np.sin, 1.0), (np.exp, 1.0), (lambda h: (1 + h) ** 5, 5.0), (lambda h: 7 + 0 * h, 0.0)]:
        found = differentiate(lambda h, f=f: np.array([f(h)]))
        assert abs(found.derivative[0] - slope) <= 10 * found.error[0]
        assert found.error[0] < 1e-8


def test_irregularities_are_told_apart() -> None:
    def of(f: Callable[[float], float]) -> str:
        return irregularity(lambda h: np.array([f(h)]), 0) or ""

    assert of(np.sin) == ""
    assert of(lambda h: 1e5 * h * h) == ""
    assert "kink" in of(abs)
    assert "jumps" in of(lambda h: float(h > 0))
    assert "jumps" in of(np.sign)
    assert "edge" in of(lambda h: np.log(h) if h > 0 else (0.0 if h == 0 else np.nan))


def test_remainders_show_their_order() -> None:
    steps = [10.0**-k for k in range(1, 6)]
    assert "h^1.00" in remainder_text([(h, 3 * h) for h in steps], 0.0)
    assert remainder_text([(h, 0.0) for h in steps], 1e-16) == ""


def test_programs_in_double_precision() -> None:
    def f(x: Any) -> Any:
        y = ft.scan(lambda c, _: (np.sin(c), c), x.astype(np.float32), None, length=2)[0]
        return cube_with(1.0)(y).astype(np.float16), np.argmax(x)

    program = ft.trace(f)(X)
    assert coarsest_unit(program) == np.finfo(np.float16).eps
    wide = in_double_precision(program).check()
    assert coarsest_unit(wide) == np.finfo(np.float64).eps
    assert wide.out_types == (ArrayType((3,), np.float64), ArrayType((), np.int64))
    np.testing.assert_allclose(wide(X)[0], np.sin(np.sin(X)) ** 3, rtol=1e-14)
    assert in_double_precision(program) is in_double_precision(program)
