"""Primitives that state no more than they must: nothing is taken for granted of them, in any transformation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from checks import assert_close

import ftrans as ft
from ftrans.control.loops.residuals import is_cheap
from ftrans.core.on_numpy import Memory
from ftrans.core.primitive import MissingRule, MultipleResults, SingleResult, Tangent
from ftrans.core.program import Eqn, Program
from ftrans.core.trace import Tracer
from ftrans.core.types import ArrayType
from ftrans.ops.elementwise import Elementwise, mul
from ftrans.ops.literals import full_like
from ftrans.run.costs import cost, is_known

X = np.array([0.5, -1.0, 1.5, 0.25])


class Silent(SingleResult):
    """The square of each element, by rules alone: no word on memory, cost, moves or linearity."""

    name = "silent_square"

    def type_rule(self, x: ArrayType) -> ArrayType:
        return x

    def numpy(self, x: Any) -> Any:
        return np.square(x)

    def xla(self, x: Any) -> Any:
        return x * x

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        assert t is not None
        return self(x), mul(t, mul(full_like(x, 2), x))

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool]) -> Any:
        return self(*operands), True


class Same(Silent):
    """The operand itself: the result is the operand's memory, and nobody is told."""

    name = "silent_same"

    def numpy(self, x: Any) -> Any:
        return x

    def xla(self, x: Any) -> Any:
        return x

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Tracer, operands: Sequence[Any]) -> list[Tangent]:
        return [self(ct)]


silent, same = Silent(), Same()


def by_scan(f: Callable[[Any], Any], x: Any) -> Any:
    def step(total: Any, row: Any) -> Any:
        return total + f(row) * f(x), f(total)

    total, rows = ft.scan(step, np.zeros(4), np.outer(np.arange(3.0), np.ones(4)) + x)
    return np.sum(total) + np.sum(rows)


def by_branches(f: Callable[[Any], Any], x: Any) -> Any:
    return np.sum(ft.cond(x[0] > 0, lambda x: f(x) * x, lambda x: f(f(x)), x))


def by_while(f: Callable[[Any], Any], x: Any, **how: Any) -> Any:
    return np.sum(ft.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, f(s[1]) * 0.5 + s[1]), (0, x), **how)[1])


def plainly(f: Callable[[Any], Any], x: Any) -> Any:
    for _ in range(3):
        x = np.sin(f(x)) + f(x)
    return np.sum(x)


def with_a_budget(f: Callable[[Any], Any], x: Any) -> Any:
    return ft.checkpoint(lambda x: plainly(f, x), memory_budget=160)(x)


PROGRAMS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "plain": plainly,
    "budget": with_a_budget,
    "scan": by_scan,
    "cond": by_branches,
    "while": by_while,
    "while, states": lambda f, x: by_while(f, x, max_steps=5),
    "while, checkpoints": lambda f, x: by_while(f, x, checkpoints=2),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    ("primitive", "function"), [(silent, lambda x: x * x), (same, lambda x: 1.0 * x)], ids=["square", "same"]
)
def test_every_transformation_takes_a_primitive_that_says_nothing(
    program: str, primitive: Any, function: Callable[[Any], Any]
) -> None:
    def f(x: Any) -> Any:
        return PROGRAMS[program](primitive, x)

    def reference(x: Any) -> Any:
        return PROGRAMS[program](function, x)

    x = X.copy()
    for transformed in (ft.jit, ft.grad, lambda f: ft.jit(ft.grad(f)), ft.hessian):
        assert_close(transformed(f)(x), transformed(reference)(x))
    both = np.stack([x, -x])
    assert_close(ft.vmap(ft.grad(f))(both), ft.vmap(ft.grad(reference))(both))
    np.testing.assert_array_equal(x, X)


def equation(primitive: Any) -> Eqn:
    (eqn,) = ft.trace(lambda x: primitive(x))(X).eqns
    return eqn


def test_who_says_nothing_is_never_cheap_linear_or_moving() -> None:
    for primitive in (silent, same):
        eqn = equation(primitive)
        assert primitive.memory is Memory.ANY
        assert not is_known(eqn)
        assert not is_cheap(eqn)
        assert cost(eqn).time > cost(equation(np.exp)).time > cost(equation(np.negative)).time
        assert not primitive.linear_in(1, {})
        assert primitive.passes_on([], {}) is None
    assert not is_cheap(equation(Elementwise("unsaid", np.square, lambda x: x * x)))


def test_a_branch_that_says_nothing_is_not_computed_in_vain() -> None:
    seen: list[str] = []

    class Noted(Silent):
        def xla(self, x: Any) -> Any:
            import jax

            jax.debug.callback(lambda: seen.append("run"))
            return x * x

    noted = Noted()
    f = ft.jit(lambda x: ft.cond(x[0] > 0, noted, lambda x: x, x))
    f(X)
    assert len(seen) == 1
    f(-X)
    assert len(seen) == 1


def test_what_may_share_memory_is_never_written_to() -> None:
    def f(x: Any) -> Any:
        y = same(x)
        z = y.copy()
        z[0] = 7.0
        return y, z

    program: Program = ft.trace(f)(X)
    x = X.copy()
    y, z = program(x)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, X)
    assert z[0] == 7.0
    assert not np.may_share_memory(y, x)


class Unsplit(MultipleResults):
    """Sines, by a jvp rule whose one equation has values and tangents, and without the rule `split`."""

    name = "unsplit_sine"

    def type_rule(self, *types: ArrayType) -> list[ArrayType]:
        return list(types)

    def numpy(self, x: Any, *t: Any) -> list[Any]:
        return [np.sin(x), *(np.cos(x) * t for t in t)]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> Any:
        y, t = self(*primals, *tangents)
        return [y], [t]


class Swapped(Same):
    """The operand itself, by a jvp rule that returns the tangent first."""

    name = "swapped"

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        return self(*tangents), self(*primals)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: Unsplit()(x)[0], r"(?s)'unsplit_sine' has no split rule.*\n  at .*test_new_primitives"),
        (lambda x: Swapped()(x), r"a value depends on a tangent.*results first"),
    ],
    ids=["no split", "swapped"],
)
def test_values_that_need_tangents_are_explained(f: Callable[[Any], Any], message: str) -> None:
    for derivative in (ft.grad(lambda x: np.sum(f(x))), ft.jacobian(f, mode="forward"), ft.jacobian(f, mode="reverse")):
        with pytest.raises(MissingRule, match=message):
            derivative(X)


def test_forward_mode_needs_no_split_rule() -> None:
    value, tangent = ft.jvp(lambda x: Unsplit()(x)[0], (X,), (np.ones(4),))
    assert_close(value, np.sin(X))
    assert_close(tangent, np.cos(X))
