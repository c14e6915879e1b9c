"""NumPy on tensors: values, and first and second derivatives, held against the same code on traced values."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import tables
from random_programs import random_arguments, random_program
from sampling import program_of
from tensors import a, check_gradients, flat, leaf, value
from test_numpy_face import CONSTANTS, POSSIBLE, SAMPLES

import ftrans as ft
import ftrans.numpy.fft
import ftrans.numpy.linalg
from ftrans.autograd import Tensor
from ftrans.core.interpret import inline, interpret
from ftrans.core.program import Const, Eqn
from ftrans.core.types import is_inexact
from ftrans.numpy.dispatch import TABLE

# NumPy makes an array of a list by asking each tensor for an array, which one with a gradient refuses.
OF_LISTS = re.compile(r"np\.array\(\[+(np\.cos\()?[A-Z]|np\.(sum|max)\(\[S")
LOOSE = {"F": 1e-3, "G": 6e-2}


def names_in(expression: str) -> list[str]:
    """The samples that an expression is about."""
    return sorted(set(re.findall(r"\b[A-Z]\b", expression)) & SAMPLES.keys())


def as_function(expression: str) -> Callable[..., Any]:
    """An expression as a function of its samples."""
    names = names_in(expression)
    code = compile(expression, "<expression>", "eval")

    def f(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return eval(code, {"np": np, **CONSTANTS, **dict(zip(names, args, strict=True))})

    return f


# Numbers of Python hold no gradient; the others mean something else in torch, and tensors refuse them.
NOT_OF_TENSORS = ("A.tolist()", "A.std()", "A.var()", "A.nonzero()")
# An integer beside an array, with a slice between them.
TORN_INDEX = re.compile(r"\w+\[(\d|K\[1\]), (:|None|\.\.\.), [a-zA-Z]")
OF_TENSORS = list(enumerate(e for e in dict.fromkeys(POSSIBLE) if e not in NOT_OF_TENSORS and not TORN_INDEX.match(e)))


@pytest.mark.filterwarnings("ignore")
@tables.each(lambda row: re.split(r"[([]", row[1])[0], row=OF_TENSORS)
def test_expressions_have_the_derivatives_that_traces_have(row: tuple[int, str]) -> None:
    number, expression = row
    f, names = as_function(expression), names_in(expression)
    args = [SAMPLES[name] for name in names]
    if OF_LISTS.search(expression):
        with pytest.raises(RuntimeError, match=r"np\.stack"):
            f(*map(leaf, args))
        return
    results = flat(f(*args))
    if any(np.asarray(x).dtype.kind in "OUV" for x in results):
        assert [str(value(x)) for x in flat(f(*map(leaf, args)))] == [str(x) for x in results]
        return
    # Float16 rounds too much for second derivatives to be compared; elsewhere they are, now and then.
    order = 2 if number % 2 and "G" not in names else 1
    tolerance = max([1e-10, *(LOOSE[name] for name in names if name in LOOSE)])
    with np.errstate(all="ignore"):
        check_gradients(f, *args, order=order, tolerance=1e-3 if "float32" in expression else tolerance)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("whole", [True, False])
def test_random_programs(seed: int, whole: bool) -> None:
    """A random program is one operation, or as many as it has equations."""
    program = random_program(seed)

    def one(eqn: Eqn, operands: list[Any]) -> list[Any]:
        types = [x.type for x in eqn.operands]
        given = [a.as_tensor(x) for x in operands]
        return Tensor.apply_program(program_of(eqn.primitive, types, eqn.params), given)

    def f(*xs: Any) -> Any:
        if type(xs[0]) is np.ndarray:
            return program(*xs)
        if not isinstance(xs[0], Tensor):
            return inline(program, xs)
        return Tensor.apply_program(program, xs) if whole else interpret(program, xs, one, Const.array)

    check_gradients(f, *random_arguments(seed), order=1 + seed % 2, tolerance=1e-8)


# Operators and methods

SCALARS = [2, 3.0, np.float64(0.5), np.float32(2), np.int64(3), True, 1 + 2j]
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.floordiv, operator.mod,
    operator.lt, operator.ge, operator.eq, operator.ne, divmod,
]  # fmt: skip
POSITIVE = np.array([[0.6, 1.7, 2.2], [1.3, 0.4, 3.1]])


@pytest.mark.parametrize("f", OPERATORS)
def test_operators_mix_tensors_arrays_and_numbers_both_ways_round(f: Callable[[Any, Any], Any]) -> None:
    row = np.array([1.1, 2.3, 0.7])
    for other in (*SCALARS, row, row.astype(np.float32), row.tolist(), a.tensor(row), np.arange(1, 4)):
        if isinstance(other, complex) and f in (operator.floordiv, operator.mod, divmod):
            continue
        plain = other.array if isinstance(other, Tensor) else other
        for order in (lambda x, y: f(x, y), lambda x, y: f(y, x)):
            if isinstance(other, list) and f in (operator.lt, operator.ge) and order(1, 2) != f(1, 2):
                continue
            check_gradients(
                lambda x: order(x, other if isinstance(x, Tensor) else plain),  # noqa: B023
                POSITIVE,
                tolerance=1e-5,
            )
    check_gradients(f, POSITIVE, row, order=2, tolerance=1e-10)


def test_integer_operators() -> None:
    x, y = np.array([5, 6, 12]), np.array([3, 1, 2])
    for f in (
        operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.floordiv, operator.mod,
    ):  # fmt: skip
        check_gradients(f, x, y)
    check_gradients(operator.invert, x)
    check_gradients(lambda m: ~(m > 5) ^ (m < 9) & True, x)


@pytest.mark.parametrize("name", [n for n in dir(np.ndarray) if n in dir(Tensor) and not n.startswith("_")])
def test_methods_of_arrays(name: str) -> None:
    """Each method of arrays that tensors have does the same; `test_expressions...` look at arguments."""
    x = POSITIVE.copy()
    arguments: dict[str, tuple[Any, ...]] = {
        "astype": (np.float32,), "choose": (), "clip": (1.0, 2.0), "compress": ([True, False],), "copy": (),
        "dot": (np.ones(3),), "fill": (2.0,), "item": (3,), "put": ([0, 2], [5.0, 6.0]),
        "reshape": (3, 2), "searchsorted": (1.5,), "swapaxes": (0, 1), "take": ([0, 3],), "argpartition": (1,),
        "view": (), "to_device": ("cpu",),
    }  # fmt: skip
    named: dict[str, dict[str, Any]] = {"std": {"ddof": 0}, "var": {"ddof": 0}, "sort": {"axis": -1}}
    if name in ("choose", "view", "data", "flat", "dtype", "searchsorted", "repeat", "nonzero", "put"):
        pytest.skip("it is tested by itself, or means something else")
    found, expected = getattr(leaf(x).clone(), name), getattr(x, name)
    if callable(expected):
        given, options = arguments.get(name, ()), named.get(name, {})
        found, expected = found(*given, **options), expected(*given, **options)
    if expected is not None and not isinstance(expected, float | int):
        for y, e in zip(flat(found), flat(expected), strict=True):
            np.testing.assert_array_equal(value(y), e)


NAMES_FROM_ELSEWHERE: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda x: x.norm(), lambda x: np.linalg.norm(x.reshape(-1))),
    (lambda x: x.norm(1, dim=0), lambda x: np.linalg.norm(x, 1, axis=0)),
    (lambda x: x.norm(dim=1, keepdim=True), lambda x: np.linalg.norm(x, axis=1, keepdims=True)),
    (lambda x: x.sum(dim=0, keepdim=True), lambda x: x.sum(axis=0, keepdims=True)),
    (lambda x: x.mean(dim=1), lambda x: x.mean(axis=1)),
    (lambda x: x.exp().log().sqrt().sin().cos().tanh(), lambda x: np.tanh(np.cos(np.sin(np.sqrt(np.log(np.exp(x))))))),
    (lambda x: x.clamp(1.0, 2.0), lambda x: np.clip(x, 1.0, 2.0)),
    (lambda x: x.clamp(min=1.0), lambda x: np.maximum(x, 1.0)),
    (lambda x: x.sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    (lambda x: (x - 1).relu(), lambda x: np.maximum(x - 1, 0)),
    (lambda x: x.t().mm(x), lambda x: x.T @ x),
    (lambda x: x.view(-1), lambda x: x.reshape(-1)),
    (lambda x: x.view(3, 2), lambda x: x.reshape(3, 2)),
    (lambda x: x.permute(1, 0), lambda x: x.transpose(1, 0)),
    (lambda x: x.unsqueeze(0).expand(4, 2, 3), lambda x: np.broadcast_to(x[None], (4, 2, 3))),
    (lambda x: x.pow(3).mul(2).add(1).sub(x).div(2).neg().abs(), lambda x: abs(-(x**3 * 2 + 1 - x) / 2)),
    (lambda x: x.float().double(), lambda x: x.astype(np.float32).astype(float)),
    (lambda x: x.atan2(x.square()), lambda x: np.arctan2(x, x**2)),
    (lambda x: x.reciprocal().log1p().expm1(), lambda x: np.expm1(np.log1p(1 / x))),
    (lambda x: x.maximum(x.sum() / 6).minimum(2.0), lambda x: np.minimum(np.maximum(x, x.sum() / 6), 2.0)),
    (lambda x: x.mul_(2).add_(x).exp_().clone(), lambda x: np.exp(4 * x)),
    (lambda x: x.copy_(x + x).sin_().clone(), lambda x: np.sin(x + x)),
    (lambda x: x * x.clone().zero_() + x, lambda x: x * 0 + x),
    (lambda x: x * x.clone().fill_(3.0), lambda x: x * 3.0),
]


@pytest.mark.parametrize(("tensors", "arrays"), NAMES_FROM_ELSEWHERE)
def test_names_known_from_elsewhere(tensors: Callable[[Any], Any], arrays: Callable[[Any], Any]) -> None:
    check_gradients(lambda x: tensors(x) if isinstance(x, Tensor) else arrays(x), POSITIVE, order=2, tolerance=1e-6)


def test_every_function_of_the_face_takes_tensors() -> None:
    """Functions of one array in the table of the face that take a matrix of positive numbers."""
    count = 0
    for function in TABLE:
        if "scipy" in str(getattr(function, "__module__", "")):
            # SciPy's own functions of Python make NumPy arrays of tensors, which is an error.
            continue
        try:
            with np.errstate(all="ignore"):
                expected = flat(function(POSITIVE))
        except (TypeError, ValueError, np.linalg.LinAlgError, DeprecationWarning):
            continue
        if all(isinstance(x, np.ndarray | np.generic) and is_inexact(x.dtype) for x in expected):
            count += 1
            with np.errstate(all="ignore"):
                check_gradients(function, POSITIVE, tolerance=1e-10)
    assert count > 80


def test_functions_without_a_rule() -> None:
    with pytest.raises(Exception, match="obl_rad2 has no rule"):
        scipy.special.obl_rad2(0, 1, 1.0, leaf(POSITIVE))
    np.testing.assert_array_equal(value(np.packbits(a.tensor([1, 0]))), np.packbits([1, 0]))


def test_mirrored_functions_of_scipy() -> None:
    from ftrans.scipy import linalg, special, stats

    x = POSITIVE[0]
    functions: list[Callable[[Any], Any]] = [
        lambda x: special.logsumexp(x),
        lambda x: special.polygamma(1, x),
        lambda x: special.gammaln(x),
        lambda x: stats.norm.logpdf(x, scale=x),
        lambda x: linalg.expm(np.diag(x)),
        lambda x: linalg.toeplitz(x),
        lambda x: linalg.solve(np.diag(x), x),
    ]
    for function in functions:
        check_gradients(function, x, tolerance=1e-10)
    parameter = ft.nn.Parameter(x)
    special.logsumexp(parameter).backward()
    np.testing.assert_allclose(value(parameter.grad), np.exp(x) / np.sum(np.exp(x)))
