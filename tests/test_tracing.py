"""Tracing: how programs print, what functions capture, arrays that change while they are traced, tracers that leak."""

from __future__ import annotations

import gc
import inspect
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from checks import assert_close

import ftrans as ft
from ftrans.core import program as program_module
from ftrans.core import trie as trie_module
from ftrans.core import types as types_module
from ftrans.core import witness
from ftrans.core.program import Const, Eqn, Program, ProgramError, Var
from ftrans.core.trace import TracerLeak
from ftrans.core.types import ArrayType
from ftrans.ops.elementwise import add, sin
from ftrans.run import evaluate
from ftrans.transforms.differentiate import gradient
from ftrans.transforms.simplify import simplify

X = np.array([1.0, 2.0, 3.0])


# Printing


def loss(x: Any) -> Any:
    y = np.sin(x) * 2.0
    return np.sum(y)


def test_a_program_prints_beside_the_users_lines() -> None:
    first = inspect.getsourcelines(loss)[1]
    assert str(ft.trace(loss)(X)) == (
        "loss(a: f64[3]) -> f64[]:\n"
        f"  b: f64[3] = sin(a)                                  # test_tracing.py:{first + 1}\n"
        f"  c: f64[3] = mul(b, 2.0)                             # test_tracing.py:{first + 1}\n"
        f"  d: f64[] = reduce_sum(c, axes=(0,))                 # test_tracing.py:{first + 2}\n"
        "  return d"
    )


def test_derived_equations_inherit_the_line() -> None:
    first = inspect.getsourcelines(loss)[1]
    program = simplify(ft.trace(ft.grad(loss))(X))
    assert str(program) == (
        "grad(loss)(a: f64[3]) -> f64[3]:\n"
        f"  b: f64[3] = cos(a)                                  # test_tracing.py:{first + 1}\n"
        f"  c: f64[3] = mul(2.0, b)                             # test_tracing.py:{first + 1}\n"
        "  return c"
    )


def test_several_results_and_small_constants_print() -> None:
    program = ft.trace(lambda x: (x + np.array([1.0, 2.0, 3.0]), x > 0.5))(X)
    head, *_, last = str(program).splitlines()
    assert head == "lambda(a: f64[3]) -> (f64[3], bool[3]):"
    assert last == "  return b, c"
    assert "add(a, [1., 2., 3.])" in str(program)


def test_large_constants_print_as_their_type() -> None:
    assert "<constant f64[100]>" in str(ft.trace(lambda x: x + np.linspace(0, 1, 100))(np.ones(100)))


def test_subprograms_print_below_their_equation() -> None:
    text = str(ft.trace(lambda x: ft.cond(x > 0.0, np.sin, np.cos, x))(1.0))
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    assert any("cond(" in line for line in lines)
    assert any("= sin(" in line for line in lines)
    assert any("= cos(" in line for line in lines)


def test_names_skip_keywords() -> None:
    def f(x: Any) -> Any:
        for _ in range(800):
            x = np.sin(x)
        return x

    names = {line.split(":")[0].strip() for line in str(ft.trace(f)(1.0)).splitlines()[1:-1]}
    assert {"z", "aa", "zz"} <= names
    assert not names & {"as", "if", "in", "is", "or"}


def test_a_tracer_shows_its_value() -> None:
    seen = []
    ft.grad(lambda x: (seen.append(repr(x * 2.0)), np.sum(x))[1])(np.array([1.0, 2.0]))
    assert seen == ["Traced(f64[2] = [2., 4.])"]
    ft.vmap(lambda x: (seen.append(repr(x)), x)[1])(X)
    assert seen[1] == "Traced(f64[])"


# Programs check themselves


def broken(eqns: list[Eqn], inputs: list[Var], outputs: list[Any]) -> Program:
    return Program("broken", inputs, eqns, outputs)


A, B = Var(ArrayType((), "float64")), Var(ArrayType((), "float64"))
N = ArrayType((), "int64")
SINE = Eqn(sin, (A,), {}, (B,), None)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (broken([SINE], [], [B]), "not defined before its use"),
        (broken([SINE, SINE], [A], [B]), "assigned twice"),
        (broken([], [A], [B]), "assigned nowhere"),
        (broken([], [A, A], [A]), "listed twice"),
        (broken([Eqn(sin, (A,), {}, (Var(ArrayType((2,), "float64")),), None)], [A], [A]), "differ from inferred"),
        (broken([Eqn(add, (A, Const(np.int64(1), N)), {}, (B,), None)], [A], [B]), "do not fit"),
        (broken([Eqn(sin, (Const(np.ones(2), A.type),), {}, (B,), None)], [], [B]), "declared as"),
    ],
)
def test_check_finds_what_is_wrong(program: Program, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        program.check()


def test_check_shows_the_users_line() -> None:
    program = ft.trace(loss)(X)
    eqns = [*program.eqns[:1], Eqn(sin, program.eqns[1].operands[:1], {}, (B,), program.eqns[1].line)]
    with pytest.raises(ProgramError, match=r"test_tracing\.py:\d+: y = np\.sin\(x\) \* 2\.0"):
        Program("broken", program.inputs, eqns, [B]).check()


def test_a_program_is_called_on_arrays() -> None:
    program = ft.trace(loss)(X)
    (value,) = program(X)
    assert_close(value, np.sum(2 * np.sin(X)))
    with pytest.raises(TypeError, match="takes 1 argument"):
        program(X, X)


# Capture


def test_closed_over_arrays_are_constants_of_a_program() -> None:
    weights = np.array([3.0, 4.0, 5.0])
    program = ft.trace(lambda x: x * weights)(X)
    assert len(program.inputs) == 1
    assert_close(program(X)[0], X * weights)


def test_no_perturbation_confusion() -> None:
    assert ft.grad(lambda x: x * ft.grad(lambda y: x + y)(2.0))(1.0) == 1.0
    assert ft.grad(lambda x: x * ft.grad(lambda y: x * y)(2.0))(3.0) == 6.0
    assert ft.grad(lambda x: ft.grad(lambda y: x * x * y * y)(x))(2.0) == 24.0
    assert ft.jvp(lambda x: x * ft.jvp(lambda y: x * y * y, (3.0,), (1.0,))[1], (2.0,), (1.0,))[1] == 24.0


def test_perturbation_confusion_across_modes() -> None:
    def inner(x: Any) -> Any:
        return ft.jvp(lambda y: np.sin(x * y), (0.5,), (1.0,))[1]

    # d/dx [x cos(x / 2)]
    assert ft.grad(inner)(1.2) == pytest.approx(np.cos(0.6) - 0.6 * np.sin(0.6))
    mapped = ft.vmap(lambda x: ft.grad(lambda y: np.sum(np.sin(x) * y**2))(3.0))(X)
    assert_close(mapped, 6.0 * np.sin(X))


def test_three_functions_deep() -> None:
    def f(x: Any) -> Any:
        def g(y: Any) -> Any:
            return ft.grad(lambda z: x * y * z**2)(y)

        return ft.grad(g)(x)

    # g(y) = 2 x y^2, so f(x) = 4 x^2.
    assert ft.grad(f)(3.0) == pytest.approx(24.0)


def test_an_inner_function_that_ignores_its_argument() -> None:
    assert ft.grad(lambda x: x * ft.grad(lambda y: x * x)(1.0))(3.0) == 0.0
    assert ft.jacobian(lambda x: ft.jacobian(lambda y: x * 1.0)(1.0))(2.0) == 0.0


def test_a_value_computed_outside_is_captured_by_an_inner_function() -> None:
    def f(x: Any) -> Any:
        y = np.exp(x)
        return ft.grad(lambda z: y * z**3)(2.0)

    assert ft.grad(f)(1.0) == pytest.approx(12.0 * np.e)


# Values that change between calls


def test_a_large_array_that_stays_is_fine() -> None:
    scale = np.linspace(0, 1, 100_000)
    assert_close(ft.grad(lambda x: np.sum(x * scale))(np.ones(100_000)), scale)


def test_values_that_change_between_calls_are_seen() -> None:
    scale = np.array([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        return np.sum(x * scale)

    np.testing.assert_array_equal(ft.grad(f)(X), [1.0, 2.0, 3.0])
    scale[:] = 5.0
    np.testing.assert_array_equal(ft.grad(f)(X), [5.0, 5.0, 5.0])


def test_scalars_that_change_between_calls_are_seen() -> None:
    for k in range(12):
        assert ft.grad(lambda x, k=k: float(k) * x * k)(1.0) == k * k


# Tracing is a look-up


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """The programs that are translated to Python from now on."""
    seen: list[Program] = []
    translate = evaluate.compiled

    def counted(program: Program) -> Any:
        seen.append(program)
        return translate(program)

    monkeypatch.setattr(evaluate, "compiled", counted)
    return seen


def test_a_new_function_with_the_same_equations_is_the_same_program(compilations: list[Program]) -> None:
    for _ in range(10):
        ft.grad(lambda x: np.sum(np.sin(x) * np.cos(x)))(X)
    assert len(compilations) == 1


def test_a_scalar_that_varies_becomes_an_input(compilations: list[Program]) -> None:
    for k in range(30):
        scale = 1.5 * k
        assert_close(ft.grad(lambda x, scale=scale: np.sum(x * x) * scale)(X), 2 * X * scale)
    assert len(compilations) < 10


def test_an_array_that_varies_is_an_input(compilations: list[Program]) -> None:
    for k in range(10):
        data = np.full(3, float(k))
        assert_close(ft.grad(lambda x, data=data: np.sum(x * data))(X), data)
    assert len(compilations) == 1


def test_what_is_derived_dies_with_the_program() -> None:
    program = ft.trace(lambda x: np.sum(np.sin(x)))(X)
    derived = gradient(program, (True,), with_value=True)
    program(X), derived(X)
    watched = weakref.ref(program), weakref.ref(derived)
    del program, derived
    gc.collect()
    assert [w() for w in watched] == [None, None]


def test_memory_for_traces_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trie_module, "_MOST_NODES", 40)
    monkeypatch.setattr(program_module, "_MOST_LITERALS", 10)
    for k in range(60):
        f = lambda x, k=k: np.sum(np.sin(x) ** (k % 7 + 1) * (k + 0.25))  # noqa: E731
        n = k % 7 + 1
        expected = (k + 0.25) * n * np.sin(X) ** (n - 1) * np.cos(X)
        assert_close(ft.grad(f)(X), expected)
    assert trie_module.trie.count < 200


def test_a_large_program_outlives_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trie_module, "_MOST_NODES", 40)

    def chain(x: Any) -> Any:
        for _ in range(20):
            x = np.sin(x)
        return np.sum(x)

    for count in (5, 7):
        x, types = np.ones(count), (ArrayType((count,), np.float64),)
        ft.grad(chain)(x)
        root = trie_module.trie.roots[types]
        ft.grad(chain)(x)
        assert trie_module.trie.roots[types] is root


# Evaluation comes after tracing, and is reported at the user's line


def overflowing(x: Any) -> Any:
    y = x * 1000.0
    return np.sum(np.exp(y))


def test_tracing_does_not_compute() -> None:
    program = ft.trace(overflowing)(X)
    with pytest.warns(RuntimeWarning, match=r"overflow encountered in `return np\.sum\(np\.exp\(y\)\)`") as caught:
        program(X)
    (warning,) = caught
    assert warning.filename == __file__
    assert warning.lineno == inspect.getsourcelines(overflowing)[1] + 2


def test_error_modes_of_numpy_are_obeyed() -> None:
    with np.errstate(over="ignore"):
        assert ft.grad(overflowing)(X)[2] == np.inf
    with np.errstate(over="raise"), pytest.raises(FloatingPointError) as caught:
        ft.grad(overflowing)(X)
    assert "test_tracing.py" in caught.value.__notes__[0]


def test_what_numpy_raises_names_the_line() -> None:
    def f(x: Any) -> Any:
        matrix = np.outer(x, x)
        return np.sum(np.linalg.solve(matrix, x))

    with pytest.raises(np.linalg.LinAlgError) as caught:
        ft.grad(f)(X)
    assert any("return np.sum(np.linalg.solve(matrix, x))" in note for note in caught.value.__notes__)


# Leaks


def leaked() -> Any:
    kept = []
    ft.grad(lambda x: (kept.append(np.sin(x)), x)[1])(1.0)
    return kept[0]


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t + 1.0,
        lambda t: np.cos(t),
        lambda t: t.sum(),
        lambda t: bool(t > 0),
        lambda t: t[None],
        lambda t: ft.grad(lambda x: x * t)(1.0),
        lambda t: ft.trace(lambda x: t)(1.0),
    ],
)
def test_a_leaked_tracer_names_the_line_that_made_it(use: Any) -> None:
    line = inspect.getsourcelines(leaked)[1] + 2
    with pytest.raises(TracerLeak, match=rf"(?s)f64\[\].*test_tracing\.py:{line}.*after the function.*had returned"):
        use(leaked())


def test_a_leaked_argument() -> None:
    kept = []
    ft.grad(lambda x: (kept.append(x), x)[1])(1.0)
    with pytest.raises(TracerLeak, match="an argument of the traced function"):
        kept[0] + 1.0


def test_a_tracer_of_an_inner_function_does_not_reach_the_outer_one() -> None:
    def f(x: Any) -> Any:
        kept = []
        ft.grad(lambda y: (kept.append(y * 2.0), y)[1])(1.0)
        return x * kept[0]

    with pytest.raises(TracerLeak):
        ft.grad(f)(1.0)


def test_an_error_while_tracing_leaves_nothing_behind() -> None:
    def f(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ft.grad(f)(1.0)
    assert ft.grad(np.sin)(0.0) == 1.0
    assert isinstance(np.sin(1.0), np.float64)


def test_a_tracer_in_another_thread_is_a_leak() -> None:
    errors: list[Exception] = []

    def f(x: Any) -> Any:
        def work() -> None:
            try:
                x * 2.0
            except TracerLeak as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x

    ft.grad(f)(1.0)
    assert len(errors) == 1


# Types


def test_types_that_nobody_uses_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs compare types by identity, so one that is in use stays the only one of its kind."""
    monkeypatch.setattr(types_module, "_MOST_RECENT", 8)
    kept = ArrayType((7001,), np.float32)
    before = len(types_module._interned)
    for n in range(1000):
        ArrayType((n, 7001), "float64")
    assert len(types_module._interned) < before + 20
    assert ArrayType((7001,), "float32") is kept


# Time


def test_arrays_of_traced_numbers_take_as_long_late_in_a_trace_as_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy asks each element whether it is a known number."""
    looked_at = 0
    slice_ = witness._slice

    def counted(eqns: Any) -> Any:
        nonlocal looked_at
        for eqn in eqns:
            looked_at += 1
            yield eqn

    monkeypatch.setattr(witness, "_slice", lambda backwards, *rest: slice_(counted(backwards), *rest))

    def count(steps: int) -> int:
        def f(x: Any) -> Any:
            for _ in range(steps):
                x = np.array([x[1], -np.sin(x[0])])
            return x

        nonlocal looked_at
        looked_at = 0
        ft.trace(f)(X[:2])
        return looked_at

    assert 0 < count(40) < 5 * count(10)
