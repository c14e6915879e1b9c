"""Taylor coefficients, jets and derivatives along several directions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from samples import SAMPLES
from sampling import c128, f64

import ftrans as ft
from ftrans.core.program import Program
from ftrans.core.trace import Builder, building
from ftrans.core.types import is_inexact
from ftrans.ops.literals import full_like
from ftrans.structure.nested import nested_coefficients
from ftrans.structure.taylor import taylor
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


FUNCTIONS: dict[str, tuple[Any, Any, float]] = {
    "exp(sin)": (lambda x: np.exp(np.sin(x)), lambda x: mpmath.exp(mpmath.sin(x)), 0.7),
    "log": (np.log, mpmath.log, 0.7),
    "sqrt": (np.sqrt, mpmath.sqrt, 0.7),
    "tanh": (np.tanh, mpmath.tanh, 0.4),
    "arctan": (np.arctan, mpmath.atan, 0.4),
    "witch": (lambda x: 1 / (1 + x * x), lambda x: 1 / (1 + x * x), 0.7),
    "power": (lambda x: x**2.5, lambda x: x ** mpmath.mpf(2.5), 0.7),
    "whole power": (lambda x: x**7, lambda x: x**7, 0.7),
    "negative power": (lambda x: x**-3, lambda x: x**-3, 0.7),
    "tower": (lambda x: x**x, lambda x: x**x, 0.7),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_coefficients_have_all_digits(name: str) -> None:
    ours, theirs, x = FUNCTIONS[name]
    with mpmath.workdps(60):
        expected = [float(c) for c in mpmath.taylor(theirs, mpmath.mpf(x), ORDER)]
    np.testing.assert_allclose(ft.taylor(ours, x, 1.0, ORDER), expected, rtol=1e-14, atol=1e-15)


def loop(x: Any) -> Any:
    def step(carry: Any, w: Any) -> Any:
        carry = np.sin(carry * w) + 0.1 * carry
        return carry, carry * carry

    carry, ys = ft.scan(step, x, np.arange(1.0, 5.0))
    return carry + ys.sum(0)


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
    "choices": lambda x: np.where(x > 0.5, np.sqrt(np.where(x > 0.5, x - 0.5, 0)), 0.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_derivatives_of_derivatives(name: str) -> None:
    x, v = np.array([0.3, 0.8]), np.array([1.0, -1.0])
    expected = nested(PROGRAMS[name], x, v, 4)
    assert_close(ft.taylor(PROGRAMS[name], x, v, 4), expected)
    assert_close(ft.jit(lambda x, v: ft.taylor(PROGRAMS[name], x, v, 4))(x, v), expected)


def test_every_primitive_agrees_with_derivatives_of_derivatives() -> None:
    rows = {str((s.primitive, s.types, s.params.keys())): s for s in SAMPLES if is_smooth(s)}
    assert len(rows) > 300
    for sample in rows.values():
        program, order = sample.program(), 3
        given = tuple((1, 2) if a else () for a in sample.active)
        pairs = zip(sample.tangents(sample.active, 1), sample.tangents(sample.active, 2), strict=True)
        arguments = [*sample.draw(), *(x for pair in pairs for x in pair)]
        found = simplify(taylor(program, given, order, (True,) * len(program.outputs)).program).check()(*arguments)
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


def test_programs_grow_with_the_square_of_the_order() -> None:
    def count(order: int) -> int:
        return len(ft.trace(lambda x: ft.taylor(lambda y: np.exp(np.sin(y)), x, 1.0, order))(0.7).eqns)

    assert count(16) < 4.5 * count(8)


def test_loops_do_not_grow_with_their_length() -> None:
    def of_length(n: int) -> int:
        def f(x: Any) -> Any:
            return ft.scan(lambda c, _: (np.sin(c), None), x, None, length=n)[0]

        return len(str(ft.trace(lambda x: ft.taylor(f, x, 1.0, 3))(0.7)))

    assert of_length(1000) - of_length(100) < 20
