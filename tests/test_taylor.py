"""Taylor coefficients, jets and derivatives along several directions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import control_samples  # noqa: F401
import linalg_samples  # noqa: F401
import mpmath
import numpy as np
import pytest
import tables
from samples import SAMPLES, SMOOTH_UNARY
from sampling import c128, dependence, f64
from tables import covering

import ftrans as ft
from ftrans.core.primitive import MissingRule
from ftrans.core.program import Program
from ftrans.core.trace import Builder, building
from ftrans.core.types import is_inexact
from ftrans.ops import elementwise as e
from ftrans.ops.literals import full_like
from ftrans.structure.taylor.nested import nested_coefficients
from ftrans.structure.taylor.taylor import taylor
from ftrans.transforms.simplify import simplify

ORDER = 8


def nested(f: Callable[[Any], Any], x: Any, v: Any, order: int) -> list[Any]:
    """The coefficients by derivatives of derivatives."""

    def along(t: Any) -> Any:
        return f(x + t * v)

    found = []
    for k in range(order + 1):
        found.append(along(0.0) / math.factorial(k))
        along = (lambda g: lambda t: ft.jvp(g, (t,), (1.0,))[1])(along)
    return found


def assert_close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    """Equal up to rounding, in relation to the largest number."""
    scale = max(float(np.max(np.abs(y))) for y in expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


# The functions of one element of the sample table, in mpmath; those that are constant by pieces have no series.
ELEMENTWISE: dict[Any, Callable[[Any], Any]] = {
    e.exp: mpmath.exp,
    e.exp2: lambda x: mpmath.mpf(2) ** x,
    e.expm1: mpmath.expm1,
    e.log: mpmath.log,
    e.log2: lambda x: mpmath.log(x, 2),
    e.log10: mpmath.log10,
    e.log1p: mpmath.log1p,
    e.sqrt: mpmath.sqrt,
    e.cbrt: mpmath.cbrt,
    e.root: mpmath.sqrt,
    e.sin: mpmath.sin,
    e.cos: mpmath.cos,
    e.tan: mpmath.tan,
    e.arcsin: mpmath.asin,
    e.arccos: mpmath.acos,
    e.arctan: mpmath.atan,
    e.sinh: mpmath.sinh,
    e.cosh: mpmath.cosh,
    e.tanh: mpmath.tanh,
    e.sech_square: lambda x: mpmath.sech(x) ** 2,
    e.one_minus_square: lambda x: 1 - x * x,
    e.arcsinh: mpmath.asinh,
    e.arccosh: mpmath.acosh,
    e.arctanh: mpmath.atanh,
    e.square: lambda x: x * x,
    e.reciprocal: lambda x: 1 / x,
    e.neg: lambda x: -x,
    e.abs_: lambda x: x,
    e.conj: lambda x: x,
    e.relu: lambda x: x,
    e.logistic: lambda x: 1 / (1 + mpmath.exp(-x)),
    e.softplus: lambda x: mpmath.log1p(mpmath.exp(x)),
    e.softsign: lambda x: x / (1 + x),
}
PIECEWISE_CONSTANT = {e.sign, e.floor, e.ceil, e.trunc, e.rint}


def assert_matches_mpmath(found: Any, function: Callable[[Any], Any], x: float) -> None:
    with mpmath.workdps(60):
        expected = [float(c) for c in mpmath.taylor(function, mpmath.mpf(x), ORDER)]
    # A coefficient near a zero of a derivative has lost digits that its neighbours have.
    scale = max(map(abs, expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-14 * scale)


@pytest.mark.parametrize("low", [0.3, 0.8])
def test_functions_of_each_element_have_all_digits(low: float) -> None:
    assert {row[0] for row in SMOOTH_UNARY} == {*ELEMENTWISE, *PIECEWISE_CONSTANT}
    for primitive, start, stop, _ in SMOOTH_UNARY:
        x = start + low * (stop - start)
        if primitive in ELEMENTWISE:
            assert_matches_mpmath(ft.taylor(primitive, x, 1.0, ORDER), ELEMENTWISE[primitive], x)
        else:
            assert ft.taylor(primitive, x, 1.0, 2)[1:] == [0.0, 0.0]


COMPOSED: dict[str, tuple[Any, Any, float]] = {
    "exp(sin)": (lambda x: np.exp(np.sin(x)), lambda x: mpmath.exp(mpmath.sin(x)), 0.7),
    "witch": (lambda x: 1 / (1 + x * x), lambda x: 1 / (1 + x * x), 0.7),
    "power": (lambda x: x**2.5, lambda x: x ** mpmath.mpf(2.5), 0.7),
    "whole power": (lambda x: x**7, lambda x: x**7, 0.7),
    "negative power": (lambda x: x**-3, lambda x: x**-3, 0.7),
    "tower": (lambda x: x**x, lambda x: x**x, 0.7),
    "angle": (lambda x: np.arctan2(x**2, 1 + x), lambda x: mpmath.atan2(x**2, 1 + x), 0.4),
    "length": (lambda x: np.hypot(x, 1 - x), lambda x: mpmath.hypot(x, 1 - x), 0.6),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_compositions_have_all_digits(name: str) -> None:
    ours, theirs, x = COMPOSED[name]
    assert_matches_mpmath(ft.taylor(ours, x, 1.0, ORDER), theirs, x)


def test_the_series_of_a_composition_is_the_composition_of_series() -> None:
    def inner(x: Any) -> Any:
        return np.tanh(x) * np.log(x)

    def outer(y: Any) -> Any:
        return np.exp(y) / (1 + y * y)

    x, v = np.array([0.4, 1.3]), np.array([1.0, -0.5])
    first, *rest = ft.taylor(inner, x, v, ORDER)
    value, series = ft.jet(outer, (first,), (rest,), factorial_scaled=False)
    assert_close([value, *series], ft.taylor(lambda x: outer(inner(x)), x, v, ORDER))


def loop(x: Any) -> Any:
    def step(carry: Any, w: Any) -> Any:
        carry = np.sin(carry * w) + 0.1 * carry
        return carry, carry * carry

    carry, ys = ft.scan(step, x, np.arange(1.0, 5.0))
    return carry + ys.sum(0)


@ft.custom_jvp
def with_a_rule(x: Any) -> Any:
    return ft.scan(lambda c, _: (np.sin(c), None), x, None, length=2)[0]


@with_a_rule.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    y = with_a_rule(x)
    return y, ft.scan(lambda c, _: (c * np.cos(y) * x, None), t, None, length=2)[0]


MATRIX = np.array([[3.0, 1.0], [0.5, 2.0]])
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "scan": loop,
    "while": lambda x: ft.while_loop(lambda c: np.sum(c * c) < 100, lambda c: c * 1.5 + np.sin(c), x),
    "cond": lambda x: ft.cond(x[0] > 0, np.exp, lambda y: y, x),
    "jit": lambda x: ft.jit(lambda y: np.exp(y) * y)(x),
    "checkpoint": lambda x: ft.checkpoint(lambda y: np.exp(y) * y)(x),
    "root": lambda x: ft.root(lambda y: y**3 + y - x, np.ones(2)),
    "solve": lambda x: np.linalg.solve(MATRIX * np.sin(x)[:, None] + np.eye(2), x),
    "eigenvalues": lambda x: np.linalg.eigvalsh(np.outer(x, np.sin(x)) + np.outer(np.sin(x), x) + MATRIX),
    "sort": lambda x: np.sort(np.sin(x)) * np.cumsum(x),
    "complex": lambda x: np.abs(np.exp(1j * x) + x),
    "carry that begins to move late": lambda x: ft.scan(
        lambda c, _: ((c[0] + 1, c[0] * x + c[2], c[1]), c[2]), (0.0, np.zeros(2), np.zeros(2)), None, length=4
    )[0][1],
    "constants and sequences of a loop": lambda x: ft.scan(
        lambda c, w: (c * w * x + 1.0, c.sum()), np.zeros(2), np.stack([x, x * x]), reverse=True
    )[1],
    "loop with a counter": lambda x: ft.while_loop(
        lambda c: c[1] < 4, lambda c: (c[0] * x + c[2], c[1] + 1, c[0]), (x, 0, np.ones(2))
    )[0],
    "branch that is constant": lambda x: x + ft.cond(x[0] > 0.5, lambda y: y * y, lambda y: np.zeros(2), x),
    "gradient of a loop": ft.grad(
        lambda x: np.sum(ft.while_loop(lambda c: np.sum(c) < 10.0, lambda c: c * 1.7 + np.sin(c), x) ** 2)
    ),
    "loops in a rule": lambda x: with_a_rule(x) * x,
    "linear operator": lambda x: ft.linear_solve(lambda y: y * np.exp(x) + 0.1 * y[::-1], x),
    "choices in a call": lambda x: np.sqrt(ft.jit(lambda y: np.where(y > 0.5, y - 0.5, 0))(x)),
    "choices for a call": lambda x: ft.jit(lambda y: ft.checkpoint(np.sqrt)(y))(np.where(x > 0.5, x - 0.5, 0)),
    "choices": lambda x: np.where(x > 0.5, np.sqrt(np.where(x > 0.5, x - 0.5, 0)), 0.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_derivatives_of_derivatives(name: str) -> None:
    x, v = np.array([0.3, 0.8]), np.array([1.0, -1.0])
    order = 4 if tables.whole else 3
    expected = nested(PROGRAMS[name], x, v, order)
    assert_close(ft.taylor(PROGRAMS[name], x, v, order), expected)
    assert_close(ft.jit(lambda x, v: ft.taylor(PROGRAMS[name], x, v, order))(x, v), expected)


LONG = {"limit", "logm", "expm", "call", "checkpoint", "riccati", "sylvester"}


def test_every_primitive_agrees_with_derivatives_of_derivatives() -> None:
    # One row of real numbers and one of complex ones of each primitive.
    named = {str((s.primitive, s.out_types[0].dtype, s.params.keys())): s for s in SAMPLES if is_smooth(s)}
    assert len(named) > 150
    for sample in covering(list(named.values()), dependence, lambda s: s.out_types[0].dtype, times=3):
        # Derivatives of derivatives of long programs take longest.
        program, order = sample.program(), 2 if sample.primitive.name in LONG and not tables.whole else 3
        given = tuple((1, 2) if a else () for a in sample.active)
        pairs = zip(sample.tangents(sample.active, 1), sample.tangents(sample.active, 2), strict=True)
        arguments = [*sample.draw(), *(x for pair in pairs for x in pair)]
        try:
            derived = taylor(program, given, order, (True,) * len(program.outputs)).program
        except MissingRule:
            # A third derivative that nobody knows.
            with pytest.raises(MissingRule):
                nested_program(program, given, order)
            continue
        found = simplify(derived).check()(*arguments)
        expected = simplify(nested_program(program, given, order))(*arguments)
        for row in range(len(program.outputs)):
            at = [row, *range(len(program.outputs) + row * order, len(program.outputs) + (row + 1) * order)]
            if is_inexact(program.out_types[row].dtype) and program.out_types[row].size:
                assert_close([found[i] for i in at], [expected[i] for i in at], 1e-10)


def is_smooth(sample: Any) -> bool:
    """Whether a row has derivatives, and the digits to compare them."""
    return sample.smooth and any(sample.active) and all(t.dtype in (f64, c128) for t in sample.out_types)


def nested_program(program: Program, given: tuple[tuple[int, ...], ...], order: int) -> Program:
    """The coefficients of a program by derivatives of derivatives."""
    count = len(program.inputs)
    builder = Builder([*program.in_types, *(t for t, g in zip(program.in_types, given, strict=True) for _ in g)])
    with building(builder):
        values, coefficients = builder.inputs()[:count], iter(builder.inputs()[count:])
        rows = [
            [x, *(next(coefficients) if k in g else None for k in range(1, order + 1))]
            for x, g in zip(values, given, strict=True)
        ]
        found = nested_coefficients(program, rows, order)
        rest = [x for row in found for x in row[1:]]
        zeros = [full_like(a.type, 0) for a in program.outputs for _ in range(order)]
        outs = [z if x is None else x for x, z in zip(rest, zeros, strict=True)]
        return builder.finish([*(row[0] for row in found), *outs], "nested")


# Functions at points where a derivative is infinite, or does not exist, or where a choice leaves out what is infinite.
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, 2.0])
AT_EDGES: dict[str, Callable[[Any], Any]] = {
    "sqrt": np.sqrt,
    "log": np.log,
    "cbrt": np.cbrt,
    "x**2.0": lambda x: x**2.0,
    "x**3": lambda x: x**3,
    "x**2.5": lambda x: x**2.5,
    "x**0.0": lambda x: x**0.0,
    "1/x": lambda x: 1 / x,
    "x**-1": lambda x: x**-1,
    "x**-2": lambda x: x**-2,
    "2**x": lambda x: 2.0**x,
    "x**x": lambda x: x**x,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0) ** 2,
    "arcsin": np.arcsin,
    "length": lambda x: np.hypot(x, x),
    "squared length": lambda x: np.hypot(x, x) ** 2,
    "squared norm": lambda x: np.linalg.norm(x[:2]) ** 2,
    "sinc": np.sinc,
    "logaddexp": lambda x: np.logaddexp(x, 2 * x),
    "safe": lambda x: np.where(x > 0, np.sqrt(np.where(x > 0, x, 0)), 0),
    "chosen before": lambda x: np.sqrt(np.where(x > 0, x, 0)),
    "chosen overflow": lambda x: np.exp(np.where(x > 0.7, x, 1000.0)),
    "chosen product": lambda x: np.where(x > 0, x, 0.0) * np.log(np.where(x > 0, x, 0.0)),
    "chosen quotient": lambda x: np.maximum(x, 0.0) / np.maximum(x, 0.0),
    "root of relu": lambda x: np.sqrt(np.maximum(2 * x, 0) * 3),
    "padded": lambda x: np.sqrt(np.pad(x, 1)),
    "joined": lambda x: np.sqrt(np.concatenate([np.zeros(2), 1 + x[2:5]])),
    "x log x": lambda x: np.where(x == 0, 0, x * np.log(np.where(x == 0, 1, x))),
    "product": lambda x: np.cumprod(x[:5]),
    "largest": lambda x: np.max(x[:5]) * x,
    "remainder": lambda x: x % 0.3 * x,
}


@pytest.mark.parametrize("name", AT_EDGES)
def test_at_edges_as_derivatives_of_derivatives(name: str) -> None:
    program = ft.trace(AT_EDGES[name])(EDGES)
    v, order = np.array([1.0, 1.0, -1.0, 1.0, 2.0, 1.0, 0.5]), 4
    arguments = [EDGES, *[np.zeros(2)] * (len(program.inputs) - 1), v]
    with np.errstate(all="ignore"):
        expected = simplify(nested_program(program, ((1,), *[()] * (len(program.inputs) - 1)), order))(*arguments)
        found = ft.taylor(AT_EDGES[name], EDGES, v, order)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_jet_is_that_of_jax() -> None:
    import jax
    import jax.numpy as jnp
    from jax.experimental.jet import jet

    def f(np: Any) -> Callable[..., Any]:
        def g(x: Any, y: Any) -> Any:
            z = np.tanh(x @ y) + np.arctan2(x[0], y[0]) * np.sqrt(y[1]) ** 3
            w = np.where(x > 0.5, np.sin(x) / y, np.maximum(x, y))
            return {"z": np.log(np.abs(z)), "w": np.concatenate([w, np.cosh(x[::-1]) ** 2]).sum() - np.expm1(y)}

        return g

    rng = np.random.default_rng(0)
    primals = tuple(rng.uniform(0.2, 1.0, (2, 3)))
    series = tuple([rng.normal(size=3) for _ in range(4)] for _ in primals)
    for is_scaled in (True, False):
        with jax.enable_x64(True):
            value, terms = jax.jit(lambda p, s, k=is_scaled: jet(f(jnp), p, s, factorial_scaled=k))(primals, series)
            expected = {name: [np.asarray(value[name]), *map(np.asarray, terms[name])] for name in value}
        value, terms = ft.jet(f(np), primals, series, factorial_scaled=is_scaled)
        for name, rows in expected.items():
            assert_close([value[name], *terms[name]], rows)


def test_rules_of_the_user() -> None:
    @ft.custom_jvp
    def sine(x: Any) -> Any:
        return np.sin(x)

    @sine.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return sine(x), 2 * np.cos(x) * t

    x, v = np.array([0.3, 0.8]), np.array([1.0, -1.0])
    assert_close(ft.taylor(lambda x: sine(x) ** 2, x, v, 4), nested(lambda x: sine(x) ** 2, x, v, 4))


def test_further_transformations() -> None:
    def third(x: Any) -> Any:
        return ft.taylor(lambda y: np.sum(np.tanh(y) * y), x, np.ones(3), 3)[3]

    def reference(x: Any) -> Any:
        return nested(lambda y: np.sum(np.tanh(y) * y), x, np.ones(3), 3)[3]

    x = np.array([0.3, 0.8, -0.4])
    assert_close([ft.grad(third)(x)], [ft.grad(reference)(x)])
    assert_close([ft.jit(ft.grad(third))(x)], [ft.grad(reference)(x)])
    points = np.stack([x, 2 * x])
    assert_close(ft.vmap(third)(points), [reference(points[0]), reference(points[1])])


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_dtypes(dtype: Any) -> None:
    x = np.array([0.3, 0.8], dtype) * (1 + 1j if dtype is np.complex128 else 1)
    found = ft.taylor(lambda x: np.exp(x) / (1 + x), x, x, 4)
    assert all(c.dtype == dtype for c in found)
    assert_close(found, nested(lambda x: np.exp(x) / (1 + x), x, x, 4), 1e-5 if dtype is np.float32 else 1e-12)


def test_containers_and_several_arguments() -> None:
    def f(a: Any, b: Any) -> Any:
        return {"y": a["w"] * b, "n": a["w"].sum()}

    a, b = {"w": np.array([1.0, 2.0])}, 3.0
    found = ft.taylor(f, (a, b), (a, 1.0), 2)
    np.testing.assert_array_equal([c["y"] for c in found], [[3.0, 6.0], [4.0, 8.0], [1.0, 2.0]])
    assert [float(c["n"]) for c in found] == [3.0, 3.0, 0.0]


def test_directional_derivatives() -> None:
    def f(x: Any) -> Any:
        return np.exp(x[0] * x[1]) * np.sin(x[2])

    x, (u, v, w) = np.array([0.3, 0.8, 0.5]), np.random.default_rng(0).normal(size=(3, 3))

    def along(g: Any, t: Any) -> Any:
        return lambda x: ft.jvp(g, (x,), (t,))[1]

    for directions in ([], [u], [u, u], [u, v], [u, v, u], [u, v, w, v, u, u]):
        g = f
        for t in directions:
            g = along(g, t)
        assert_close([ft.directional_derivative(f, x, *directions)], [g(x)])


def test_bilaplacian() -> None:
    def f(x: Any) -> Any:
        return np.exp(np.sin(x[0]) * x[1] - x[2] ** 2) * np.cos(np.sum(x))

    def trace(g: Any) -> Any:
        return lambda x: np.trace(ft.hessian(g)(x))

    x = np.array([0.3, 0.4, 0.5, 0.9])
    expected = trace(trace(f))(x)
    for chunk_size in (None, 5, 100):
        assert_close([ft.bilaplacian(f, chunk_size=chunk_size)(x)], [expected])
    assert_close([ft.jit(ft.grad(ft.bilaplacian(f, chunk_size=5)))(x)], [ft.grad(trace(trace(f)))(x)], 1e-10)
    found = ft.bilaplacian(lambda x, y: (x * y**2 * x**3, 1.0), argnums=(0, 1))(np.array([1.0, 2.0]), 2.0)
    assert_close([found[0]], [[144.0, 288.0]])
    assert found[1] == 0.0
    value, aux = ft.bilaplacian(lambda x: (np.sum(x**4), x + 1), has_aux=True)(np.ones(2))
    assert value == pytest.approx(48.0)
    np.testing.assert_array_equal(aux, [2.0, 2.0])


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="not -1"):
        ft.taylor(np.exp, 0.0, 1.0, -1)
    with pytest.raises(TypeError, match=r"order of taylor .* not of type float"):
        ft.taylor(np.exp, 0.0, 1.0, 1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the direction"):
        ft.taylor(np.exp, 0.0, np.ones(2), 1)
    with pytest.raises(ValueError, match=r"lists of the lengths \[1, 2\]"):
        ft.jet(np.multiply, (0.0, 1.0), ([1.0], [1.0, 2.0]))
    with pytest.raises(TypeError, match=r"write \(\[d1, d2\],\)"):
        ft.jet(np.exp, (0.0,), (np.ones(2),))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="real directions"):
        ft.bilaplacian(np.exp)(1j)
    with pytest.raises(ValueError, match="chunk_size"):
        ft.bilaplacian(np.exp, chunk_size=0)


def test_programs_grow_with_the_square_of_the_order() -> None:
    def count(order: int) -> int:
        return len(ft.trace(lambda x: ft.taylor(lambda y: np.exp(np.sin(y)), x, 1.0, order))(0.7).eqns)

    assert count(16) < 4.5 * count(8)


def test_long_programs_of_choices_grow_with_their_length() -> None:
    def count(steps: int) -> int:
        def f(x: Any) -> Any:
            for _ in range(steps):
                x = np.where(x > 0, x, 0.0)[::-1] * 1.01 + 0.01
            return np.sqrt(x)

        x = np.array([0.3, 0.8])
        return len(taylor(ft.trace(f)(x), ((1,),), 3).program.eqns)

    assert count(600) < 2.1 * count(300)


@pytest.mark.parametrize("f", [np.linalg.eigvalsh, np.linalg.inv])
def test_curves_without_a_velocity(f: Any) -> None:
    a, b = MATRIX + MATRIX.T, np.array([[0.3, 0.1], [0.1, -0.4]])
    value, terms = ft.jet(f, (a,), ([np.zeros((2, 2)), b, np.zeros((2, 2)), np.zeros((2, 2))],), False)
    along = ft.taylor(f, a, b, 2)
    assert_close([value, *terms], [along[0], 0 * value, along[1], 0 * value, along[2]])
    program = ft.trace(lambda a: f(a))(a)
    program = taylor(program, ((2,),), 4, (True,)).program
    assert_close(program(a, b), [value, *terms])


def test_loops_do_not_grow_with_their_length() -> None:
    def of_length(n: int) -> int:
        def f(x: Any) -> Any:
            return ft.scan(lambda c, _: (np.sin(c), None), x, None, length=n)[0]

        return len(str(ft.trace(lambda x: ft.taylor(f, x, 1.0, 3))(0.7)))

    assert of_length(1000) - of_length(100) < 20


# Steps of random programs: of the last value, an earlier one, and a number.
STEPS: list[Callable[[Any, Any, float], Any]] = [
    lambda a, b, c: np.where(a > c, a, 0.0),
    lambda a, b, c: np.where(b > c, a, b),
    lambda a, b, c: np.where(b > 0, np.sqrt(a), 0.0),
    lambda a, b, c: np.where(a > c, a - c, 0.0) * b,
    lambda a, b, c: ft.jit(lambda y: np.where(y > c, y, 0.0))(a),
    lambda a, b, c: np.maximum(a, c),
    lambda a, b, c: np.minimum(a, b),
    lambda a, b, c: np.abs(a),
    lambda a, b, c: np.sqrt(a),
    lambda a, b, c: np.log(a),
    lambda a, b, c: np.hypot(a, b),
    lambda a, b, c: np.linalg.norm(a) * b,
    lambda a, b, c: a / b,
    lambda a, b, c: a * b,
    lambda a, b, c: a + b,
    lambda a, b, c: a**1.5,
    lambda a, b, c: a**3,
    lambda a, b, c: a**-2,
    lambda a, b, c: np.exp(a),
    lambda a, b, c: np.pad(a[1:-1], 1),
    lambda a, b, c: np.concatenate([np.zeros(2), a[:3]]),
    lambda a, b, c: a[::-1],
    lambda a, b, c: np.cumsum(a),
]


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_of_choices_and_infinities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = rng.integers(len(STEPS), size=rng.integers(2, 7))
    earlier, numbers = rng.integers(100, size=steps.size), rng.choice([0.0, 0.5, 1.0], steps.size)

    def f(x: Any) -> Any:
        values = [x, x * x]
        for step, place, c in zip(steps, earlier, numbers, strict=True):
            values.append(STEPS[step](values[-1], values[place % len(values)], c))
        return values[-1]

    x, v, order = rng.choice([0.0, 1.0, -1.0, 0.5, 2.0, -0.3], 5), rng.choice([1.0, -1.0, 0.5], 5), 3
    program = ft.trace(f)(x)
    given = ((1,), *[()] * (len(program.inputs) - 1))
    captured = [np.zeros(t.shape) for t in program.in_types[1:]]
    with np.errstate(all="ignore"):
        expected = simplify(nested_program(program, given, order))(x, *captured, v)
        found = ft.taylor(f, x, v, order)
    for a, b in zip(found, expected, strict=True):
        is_finite = np.isfinite(b)
        np.testing.assert_allclose(np.asarray(a)[is_finite], b[is_finite], rtol=1e-8, atol=1e-8)
