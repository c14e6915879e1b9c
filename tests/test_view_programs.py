"""Views, copies and writes are NumPy's: random programs, bit for bit, and the memory of what functions return."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tables
from function_rows import Row, resolve, rows
from random_views import COPIES, SAME, STEPS, VIEWS, Random, Refused, random_argument, run, twin

import ftrans as ft
from ftrans.base import tree
from ftrans.core.trace import Tracer
from ftrans.numpy.layouts import layout, strides_of
from ftrans.numpy.views import is_scalar, owner

CHUNK = 25
FLOATS = (np.float64, np.complex128, np.float32)
# One program in so many is compiled, which takes long.
COMPILED = 10


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        count = metafunc.config.getoption("programs") or (10_000 if tables.whole else 150)
        count = max(1, count // COMPILED) if metafunc.function is test_compiled else count
        chunks = [range(i, min(i + CHUNK, count)) for i in range(0, count, CHUNK)]
        metafunc.parametrize("seeds", chunks, ids=lambda r: f"{r[0]}-{r[-1]}")


def on_arrays(seed: int, arguments: list[Any]) -> list[Any]:
    """What NumPy makes of a program, of copies of its arguments with the same strides."""
    given = [twin(x) if isinstance(x, np.ndarray) else x for x in arguments]
    return [np.array(y) for y in run(seed, given)]


def as_array(y: Any) -> Any:
    """A result as an array; one of objects holds numbers of one type."""
    array = np.asarray(y)
    return np.array(array.tolist()) if array.dtype == object else array


def agree(seed: int, arguments: list[Any], expected: list[Any], found: Callable[[], list[Any]]) -> bool:
    """Compare a traced program with NumPy's, and the arguments with what they were; whether the trace took it."""
    before = [x.copy() for x in arguments]
    try:
        results = [as_array(y) for y in found()]
    except Refused:
        return False
    except ValueError as error:
        # The last use of an array is that as a result.
        if "may or may not have changed" not in str(error):
            raise
        return False
    for x, was in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(x, was, f"program {seed} changed an array of the caller")
    assert len(results) == len(expected), f"program {seed}"
    for number, (y, wanted) in enumerate(zip(results, expected, strict=True)):
        assert (y.dtype, y.shape) == (wanted.dtype, wanted.shape), f"program {seed}, result {number}"
        np.testing.assert_array_equal(y, wanted, f"program {seed}, result {number}")
    return True


def random_arguments(c: Random, first: Any = None) -> list[Any]:
    return [random_argument(c, first), random_argument(c)]


def chance(seed: int) -> Random:
    return np.random.default_rng((seed, STEPS))


def test_traced(seeds: range) -> None:
    taken = []
    for seed in seeds:
        xs = random_arguments(chance(seed))
        program = ft.trace(lambda *xs, seed=seed: run(seed, list(xs)))
        taken.append(agree(seed, xs, on_arrays(seed, xs), lambda program=program, xs=xs: program(*xs)(*xs)))
    assert sum(taken) >= 0.9 * len(taken) - 1


def test_values_beside_a_gradient(seeds: range) -> None:
    """One argument is differentiated, the others are lent to the function, which may write to all."""
    taken = []
    for seed in seeds:
        c = chance(seed)
        x, y = random_arguments(c, FLOATS[int(c.integers(3))])

        def values(x: Any, others: Any = None, *, seed: int = seed) -> Any:
            return np.sum(np.real(x)) * 0, run(seed, [x, others["y"]])

        def found(x: Any = x, y: Any = y, values: Any = values) -> list[Any]:
            return ft.value_and_grad(values, has_aux=True)(x, others={"y": y})[0][1]

        taken.append(agree(seed, [x, y], on_arrays(seed, [x, y]), found))
    assert sum(taken) >= 0.8 * len(taken) - 1


def test_mapped(seeds: range) -> None:
    for seed in seeds:
        c = chance(seed)
        xs = [random_argument(c, ndim=int(c.integers(1, 4))) for _ in range(2)]
        axes = tuple(int(c.integers(x.ndim)) for x in xs)
        size = min(x.shape[a] for x, a in zip(xs, axes, strict=True))
        xs = [x[(slice(None),) * a + (slice(size),)] for x, a in zip(xs, axes, strict=True)]
        elements = [[x[(slice(None),) * a + (i,)] for x, a in zip(xs, axes, strict=True)] for i in range(size)]
        columns = zip(*(on_arrays(seed, pair) for pair in elements), strict=True)
        mapped = ft.vmap(lambda *xs, seed=seed: run(seed, list(xs)), in_axes=axes)
        agree(seed, xs, [np.stack(column) for column in columns], lambda mapped=mapped, xs=xs: mapped(*xs))


def test_compiled(seeds: range) -> None:
    for seed in seeds:
        xs = random_arguments(chance(seed))
        compiled = ft.jit(lambda *xs, seed=seed: run(seed, list(xs)))
        agree(seed, xs, on_arrays(seed, xs), lambda compiled=compiled, xs=xs: compiled(*xs))


# The memory of results


def orders(x: Any) -> list[Any]:
    """An operand in several memory orders."""
    if not isinstance(x, np.ndarray) or x.ndim < 2:
        return [x]
    swapped = x.swapaxes(0, 1).copy().swapaxes(0, 1)
    return [x, np.asfortranarray(x), swapped]


# Strides follow from the rules of a function only; neither what it computes nor derivatives matter here.
NUMPY_ROWS = [r for r in rows() if r.name.startswith("numpy.")]


def memory_of(call: Callable[..., Any], traced: list[Any]) -> list[Any]:
    """Of each traced result: its strides, those of its square, the argument whose elements it shares, what it is."""
    found = []
    for y in tree.flatten(call(*traced))[0]:
        if isinstance(y, Tracer):
            square = y * y
            place = next((i for i, x in enumerate(traced) if owner(y) is x), None)
            found.append((layout(y), layout(square), place, is_scalar(y)))
        else:
            found.append(None)
    return found


def check_memory(call: Callable[..., Any], arguments: list[Any], places: tuple[int, ...]) -> None:
    """Compare what a trace says of the memory of results with where NumPy puts them."""
    memory: list[Any] = []

    def traced(*tracers: Any) -> Any:
        full = list(arguments)
        for i, x in zip(places, tracers, strict=True):
            full[i] = x
        memory[:] = memory_of(call, full)
        return tracers[0]

    expected = tree.flatten(call(*arguments))[0]
    ft.trace(traced)(*(arguments[i] for i in places))
    assert len(memory) == len(expected)
    for y, found in zip(expected, memory, strict=True):
        if found is None or not isinstance(y, np.ndarray | np.generic):
            continue
        strides, of_square, place, is_number = found
        shared = [i for i in places if isinstance(y, np.ndarray) and np.shares_memory(y, arguments[i])]
        assert (place is not None) == bool(shared) or not y.size
        if not np.ndim(y):
            assert not is_number or not isinstance(y, np.ndarray) or call.__name__.startswith(NUMBERS)
        elif y.size > 1:
            assert strides in (None, strides_of(y))
            assert of_square in (None, strides_of(y * y))


# What gives an array without axes in NumPy, and a number here.
NUMBERS = ("isin", "numpy.where")


@pytest.mark.parametrize("order", range(3))
def test_results_lie_in_memory_as_those_of_numpy(order: int) -> None:
    for row in NUMPY_ROWS:
        check_row(row, order)


def check_row(row: Row, order: int) -> None:
    try:
        function = resolve(row.name, traced=False)
        arguments = [choices[order % len(choices)] for choices in map(orders, row.draw())]
        if order and all(len(orders(x)) == 1 for x in arguments):
            return

        def call(*xs: Any) -> Any:
            return row.call(function, *xs, **row.params) if row.call else function(*xs, **row.params)

        call.__name__ = row.name
        call(*arguments)
    except (AttributeError, ImportError, TypeError, ValueError):
        # Some rows are written for the functions of ftrans.numpy.
        return
    check_memory(call, arguments, row.places)


# Ways to call any function with an array.
CALLS: list[Callable[[Any, Any], Any]] = [
    lambda f, v: f(v),
    lambda f, v: f(v, v),
    lambda f, v: f(v, 0.5),
    lambda f, v: f(0.5, v),
    lambda f, v: f(v, 1),
    lambda f, v: f(v, axis=0),
    lambda f, v: f(v, axis=-1),
    lambda f, v: f(v, axis=0, keepdims=True),
    lambda f, v: f([v, v]),
    lambda f, v: f([v, v], axis=1),
    lambda f, v: f([[v], [v]]),
    lambda f, v: f(v, v.copy()),
    lambda f, v: f(v, 0.2, 0.6),
    lambda f, v: f(np.real(v) > 0.5, v, 0.0),
    lambda f, v: f(np.real(v) > 0.5, v, v),
    lambda f, v: f([np.real(v) > 0.5], [v], 0.0),
    lambda f, v: f(v, v[:1]),
    lambda f, v: f(v[..., :2], v[..., :2]),
]
# These take no arrays, write files, print, or make other numbers on every call.
NO_FUNCTIONS_OF_ARRAYS = {
    "empty", "empty_like", "fromfile", "genfromtxt", "get_include", "info", "load", "loadtxt", "save", "savetxt",
    "savez", "savez_compressed", "set_printoptions", "setbufsize", "seterr", "seterrcall", "show_config",
    "show_runtime", "test",
}  # fmt: skip


ORDERS = [(2, 1, 0), (1, 0, 2), (2, 0, 1)]


def functions(module: Any) -> list[Any]:
    names = [n for n in dir(module) if n[0] != "_" and n not in NO_FUNCTIONS_OF_ARRAYS]
    found = [getattr(module, n) for n in names]
    return [f for f in found if callable(f) and not isinstance(f, type)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.int64])
@pytest.mark.parametrize("module", [np, np.linalg, np.fft], ids=lambda m: m.__name__)
def test_results_of_any_function_lie_in_memory_as_those_of_numpy(module: Any, dtype: Any) -> None:
    numbers = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3, 4))
    x = (numbers * 9 if dtype is np.int64 else numbers + 1j * numbers**2).astype(dtype)
    count = 0
    for place, function in enumerate(functions(module)):
        # The second argument of a ufunc of one operand is where it writes.
        for number, way in enumerate(CALLS if getattr(function, "nin", 2) > 1 else CALLS[:1]):
            for axes in ORDERS if tables.whole else ORDERS[place % 3 :][:1]:
                call = functools.partial(way, function)
                call.__name__ = f"{function.__name__}, call {number}, {axes}"
                v = x.transpose(axes).copy().transpose(np.argsort(axes)) if number else x.transpose(axes)
                try:
                    y = call(v)
                    if not isinstance(y, np.ndarray | tuple | list):
                        break
                    check_memory(call, [v], (0,))
                except AssertionError as error:
                    raise AssertionError(call.__name__) from error
                except Exception:
                    break
                count += 1
    assert count > 20


# Functions of NumPy that several ufuncs make up, or that make an array of their own order.
COMPOSED: list[Callable[[Any], Any]] = [
    lambda v: np.select([v > 2], [v], 0.0),
    lambda v: np.around(v, 1),
    lambda v: np.around(v, -1),
    np.around,
    np.nan_to_num,
    np.block,
    np.array,
    np.sinc,
    np.tril,
    lambda v: np.clip(v, 1.0, 20.0),
    lambda v: np.pad(v, 0),
    lambda v: np.cross(v[..., :2], v[..., :2] + 1.0),
]


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors")
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1), (2, 0, 1)])
@pytest.mark.parametrize("index", range(len(COMPOSED)))
def test_writes_through_reshaped_results(index: int, axes: tuple[int, ...]) -> None:
    x = np.arange(24.0).reshape(2, 3, 4) + 0.25

    def f(x: Any) -> Any:
        result = COMPOSED[index](x.transpose(axes))
        result.ravel()[:] = -1.0
        return np.sum(result)

    assert ft.jvp(f, (x,), (x,))[0] == f(x)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("index", range(len(VIEWS) + len(SAME) + len(COPIES)))
def test_statements_of_programs_alone(index: int, dtype: Any) -> None:
    statement = [*VIEWS, *SAME, *COPIES][index]
    for seed in range(6):
        x = random_argument(np.random.default_rng(seed), dtype, 2, read_only=False)
        check_memory(lambda x, seed=seed: statement(np.random.default_rng(seed), x), [x], (0,))
