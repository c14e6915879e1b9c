"""What several test files share: comparing arrays, running programs in every way, finite differences."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ftrans.core.program import Atom, Program, Var
from ftrans.core.types import ArrayType, is_complex, is_inexact, type_of
from ftrans.run.evaluate import evaluate
from ftrans.transforms.differentiate import pullback, pushforward
from ftrans.transforms.jvp import jvp
from ftrans.transforms.simplify import simplify
from ftrans.xla.execute import lower, run_program

# How far two ways of computing the same may differ, relative to the largest element.
TOLERANCES = {
    "float64": 1e-12, "complex128": 1e-12, "float32": 1e-5, "complex64": 1e-5, "float16": 1e-2, "bfloat16": 6e-2,
}  # fmt: skip
DIFFERENCES = 1e-8

Arrays = Sequence[Any]
Flags = tuple[bool, ...]


def assert_same_type(value: Any, type: ArrayType) -> None:
    """Assert that a value has the shape and dtype that a type says."""
    assert type_of(value) is type, f"{type_of(value)} is not {type}"


def assert_close(actual: Any, expected: Any, tolerance: float | None = None, looseness: float = 1.0) -> None:
    """Assert that two arrays have one type and equal values, up to rounding; NaN equals NaN."""
    assert_same_type(actual, type_of(expected))
    actual, expected = np.asarray(actual), np.asarray(expected)
    if not is_inexact(expected.dtype):
        np.testing.assert_array_equal(actual, expected)
        return
    relative = looseness * (TOLERANCES[expected.dtype.name] if tolerance is None else tolerance)
    wide = np.complex128 if is_complex(expected.dtype) else np.float64
    actual, expected = actual.astype(wide), expected.astype(wide)
    finite = np.abs(expected[np.isfinite(expected)])
    # Elements are computed from each other, so a small one may carry the rounding of a large one, up to a point.
    scale = float(np.clip(np.max(finite, initial=0.0), 1e-2, 1e3))
    np.testing.assert_allclose(actual, expected, rtol=relative, atol=relative * scale)


def assert_all_close(actual: Arrays, expected: Arrays, tolerance: float | None = None, looseness: float = 1.0) -> None:
    """`assert_close` for each pair."""
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        assert_close(a, b, tolerance, looseness)


def checked(program: Program, args: Arrays) -> list[Any]:
    """Results of a program on the NumPy evaluator, after checking that it is valid and means the same simplified."""
    program.check()
    simple = simplify(program).check()
    with np.errstate(all="ignore"):
        results = evaluate(program, args)
        for value, type in zip(results, program.out_types, strict=True):
            assert_same_type(value, type)
        # Two programs of three are simple already, and would be run again.
        if structure(simple) != structure(program):
            assert_all_close(evaluate(simple, args), results)
    return results


def structure(program: Program) -> tuple[Any, ...]:
    """What is the same for programs that differ in nothing but which objects their variables are."""
    numbers = {v: i for i, v in enumerate(program.inputs)}

    def place(atom: Atom) -> Any:
        return numbers[atom] if isinstance(atom, Var) else (atom.type, id(atom))

    eqns = []
    for eqn in program.eqns:
        operands = tuple(map(place, eqn.operands))
        numbers.update(zip(eqn.outputs, range(len(numbers), len(numbers) + len(eqn.outputs)), strict=True))
        eqns.append((eqn.primitive, operands, tuple(eqn.params.items()), tuple(v.type for v in eqn.outputs)))
    return program.in_types, eqns, tuple(map(place, program.outputs))


def through_xla(program: Program, args: Arrays) -> list[Any]:
    """Results of a program through JAX, as NumPy arrays."""
    return [np.asarray(x)[()] for x in run_program(program, args)]


def through_xla_together(programs: Sequence[Program], args: Sequence[Arrays]) -> list[list[Any]]:
    """The results of each program, compiled as one: most of what compiling costs, it costs once.

    Each program is compiled alone where that fails, so that the error is about one of them.
    """
    import jax

    @jax.jit
    def together(args: Any) -> list[list[Any]]:
        return [lower(program, xs) for program, xs in zip(programs, args, strict=True)]

    try:
        with jax.enable_x64(True):
            found = together([list(xs) for xs in args])
    except Exception:
        if len(programs) == 1:
            raise
        pairs = zip(programs, args, strict=True)
        found = [through_xla_together([program], [xs])[0] for program, xs in pairs]
    return [[np.asarray(x)[()] for x in outs] for outs in found]


def chosen(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The items that are flagged."""
    return [x for x, f in zip(items, flags, strict=True) if f]


def inexact(program: Program) -> Flags:
    """Which outputs of a program have derivatives."""
    return tuple(is_inexact(t.dtype) for t in program.out_types)


def inner(xs: Arrays, ys: Arrays) -> float:
    """The inner product that reverse mode is defined by: without conjugation, real parts only."""
    return float(sum(np.sum(np.asarray(x) * y).real for x, y in zip(xs, ys, strict=True)))


def magnitude(xs: Arrays, ys: Arrays) -> float:
    """The inner product of absolute values: what rounding of `inner` is relative to, and at least 1."""
    return max(1.0, inner([np.abs(x) for x in xs], [np.abs(y) for y in ys]))


def differences(f: Callable[..., Arrays], args: Arrays, tangents: Arrays, step: float = 1e-3) -> list[Any]:
    """Directional derivatives by central differences of fourth order."""

    def at(h: float) -> Arrays:
        return f(*(x if t is None else x + h * t for x, t in zip(args, tangents, strict=True)))

    points = zip(at(step), at(-step), at(2 * step), at(-2 * step), strict=True)
    return [(8 * (a - b) - (c - d)) / (12 * step) for a, b, c, d in points]


def spread(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """One entry per flag: the next item where it is set, else None."""
    remaining = iter(items)
    return [next(remaining) if f else None for f in flags]


def or_zeros(values: Arrays, types: Sequence[ArrayType]) -> list[Any]:
    """The values, with zeros where one is absent."""
    return [np.zeros(t.shape, t.dtype)[()] if v is None else v for v, t in zip(values, types, strict=True)]


def forward(program: Program, active: Flags, args: Arrays, tangents: Arrays) -> tuple[list[Any], list[Any]]:
    """Outputs, and tangents of the inexact ones, by forward mode."""
    derived = jvp(program, active)
    outs = checked(derived.program, [*args, *tangents])
    count = len(program.outputs)
    found = or_zeros(spread(outs[count:], derived.out_active), program.out_types)
    return outs[:count], chosen(found, inexact(program))


def linearized(program: Program, active: Flags, args: Arrays, tangents: Arrays) -> tuple[list[Any], list[Any]]:
    """The same as `forward`, through the linear program."""
    parts = pushforward(program, active)
    outs = checked(parts.values, args)
    count = len(program.outputs)
    pushed = checked(parts.linear, [*outs[count:], *tangents])
    found = or_zeros(spread(pushed, parts.out_active), program.out_types)
    return outs[:count], chosen(found, inexact(program))


def backward(program: Program, active: Flags, args: Arrays, cotangents: Arrays) -> tuple[list[Any], list[Any]]:
    """Outputs, and cotangents of the active inputs, from cotangents of the inexact outputs."""
    parts = pullback(program, active)
    outs = checked(parts.values, args)
    count = len(program.outputs)
    given = spread(cotangents, inexact(program))
    pulled = checked(parts.linear, [*outs[count:], *chosen(given, parts.out_active)])
    types = chosen(program.in_types, active)
    return outs[:count], or_zeros(spread(pulled, parts.in_active), types)


def assert_docstrings_run(name: str) -> None:
    """Assert that a module says what it represents, and that the examples of its docstrings run."""
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} does not say what it represents"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
