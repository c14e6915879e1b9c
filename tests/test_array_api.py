"""The array API standard: `ftrans.numpy` against `array_api_strict`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict
import numpy as np
import pytest
from array_api_calls import CALLS, DTYPES

import ftrans as ft
import ftrans.numpy as fnp
from ftrans.core.trace import Tracer

VERSION = "2024.12"
array_api_strict.set_array_api_strict_flags(api_version=VERSION)
# Whether NumPy's own functions, which are called on plain arrays, conform to the standard.
NUMPY_CONFORMS = np.__array_api_version__ >= VERSION
# Names of array_api_strict that are no part of the standard.
_FLAGS = {"set_array_api_strict_flags", "get_array_api_strict_flags", "reset_array_api_strict_flags"}
_FLAGS |= {"ArrayAPIStrictFlags", "Device", "__version__"}


def names() -> Iterator[str]:
    """Every name of the standard, those of the extensions with a dot."""
    for name in sorted(set(array_api_strict.__all__) - _FLAGS):
        if name in ("linalg", "fft"):
            yield from (f"{name}.{inner}" for inner in sorted(getattr(array_api_strict, name).__all__))
        elif not _is_later(getattr(array_api_strict, name)):
            yield name


def _is_later(function: Any) -> bool:
    """Whether a function is of a later version of the standard, which array_api_strict says when it is called."""
    try:
        function()
    except RuntimeError:
        return True
    except Exception:
        return False
    return False


def of(namespace: Any, name: str) -> Any:
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


NAMES = list(names())
FUNCTIONS = [
    name for name in NAMES if callable(of(array_api_strict, name)) and not isinstance(of(array_api_strict, name), type)
]


def test_every_name_is_there() -> None:
    assert len(NAMES) > 180
    assert [name for name in NAMES if not _has(name)] == []
    assert fnp.__array_api_version__ == VERSION


def _has(name: str) -> bool:
    try:
        of(fnp, name)
    except AttributeError:
        return False
    return True


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters(name: str) -> None:
    """What the standard calls positional can be given so, and what has a name there has it here."""
    theirs = inspect.signature(of(array_api_strict, name)).parameters.values()
    ours = inspect.signature(of(fnp, name)).parameters
    places = [p for p in ours.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not any(p.kind is p.VAR_POSITIONAL for p in theirs):
        assert not any(p.kind is p.VAR_POSITIONAL for p in ours.values())
        for p, place in zip([p for p in theirs if p.kind is not p.KEYWORD_ONLY], places, strict=False):
            assert p.default is p.empty or place.default is not p.empty
        assert len(places) >= sum(p.kind is not p.KEYWORD_ONLY for p in theirs)
    for p in theirs:
        if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD):
            assert ours[p.name].kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
            assert p.default is p.empty or ours[p.name].default is not p.empty


# Values and dtypes


def operand(dtype: str, seed: int = 0, shape: tuple[int, ...] = (2, 3)) -> Any:
    draw = np.random.default_rng(seed)
    if dtype == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return draw.integers(1, 6, shape).astype(dtype)
    x = draw.uniform(0.2, 0.9, shape)
    return (x + 1j * draw.uniform(0.2, 0.9, shape) if "complex" in dtype else x).astype(dtype)


def leaves(x: Any) -> list[Any]:
    return [z for y in x for z in leaves(y)] if isinstance(x, tuple | list) else [x]


def is_defined(call: Callable[..., Any], *arrays: Any) -> bool:
    """Whether the standard knows this call: it leaves open most combinations of dtypes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(array_api_strict, *map(array_api_strict.asarray, arrays))
        except (TypeError, ValueError, AttributeError):
            return False
    return True


def check(call: Callable[..., Any], *arrays: Any) -> None:
    """Assert that the results on traced values, and on arrays where NumPy conforms, are those of array_api_strict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = leaves(call(array_api_strict, *map(array_api_strict.asarray, arrays)))
        expected = [x if isinstance(x, bool | str) else np.asarray(getattr(x, "_array", x)) for x in found]
        traced = ft.trace(lambda *xs: leaves(call(fnp, *xs)))(*arrays)(*arrays)
        for results in (traced, leaves(call(fnp, *arrays))) if NUMPY_CONFORMS else (traced,):
            assert len(results) == len(expected)
            for x, y in zip(results, map(np.asarray, expected), strict=True):
                x = np.asarray(x)
                assert x.dtype == y.dtype
                assert x.shape == y.shape
                np.testing.assert_allclose(x, y, rtol=1e-5 if y.dtype.itemsize < 8 else 1e-10, atol=1e-6)


def checked(call: Callable[..., Any], *arrays: Any) -> bool:
    """Whether the standard knows a call, which is checked then."""
    known = is_defined(call, *arrays)
    if known:
        check(call, *arrays)
    return known


def _required(name: str) -> list[str]:
    parameters = inspect.signature(of(array_api_strict, name)).parameters.values()
    return [p.name for p in parameters if p.default is p.empty]


UNORDERED = {"unique_all", "unique_counts", "unique_inverse", "unique_values"}
ELEMENTWISE = [n for n in FUNCTIONS if "." not in n and _required(n) == ["x"] and n not in {"empty_like", *UNORDERED}]
PAIRED = [n for n in FUNCTIONS if "." not in n and _required(n) == ["x1", "x2"] and n != "searchsorted"]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_functions_of_one_array(name: str) -> None:
    # Before NumPy 2.1 these three make floating-point numbers of integers.
    dtypes = DTYPES if NUMPY_CONFORMS or name not in ("ceil", "floor", "trunc") else DTYPES[4:]
    shape = (3,) if name.startswith("cumulative") else (2, 3)
    assert any([checked(lambda xp, x: of(xp, name)(x), operand(dtype, shape=shape)) for dtype in dtypes])


@pytest.mark.parametrize("name", PAIRED)
def test_functions_of_two_arrays(name: str) -> None:
    shape = (3, 3) if name == "matmul" else (2, 3)
    known = [
        checked(lambda xp, x, y: of(xp, name)(x, y), operand(d, shape=shape), operand(e, 1, shape))
        for d in DTYPES
        for e in DTYPES
    ]
    assert any(known)
    if name not in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
        for dtype, number in (("bool", True), ("int32", 2), ("float32", 2.5), ("complex64", 1.5 + 0.5j)):
            checked(lambda xp, x, number=number: of(xp, name)(x, number), operand(dtype))
            checked(lambda xp, x, number=number: of(xp, name)(number, x), operand(dtype))


@pytest.mark.parametrize(("name", "call", "dtypes", "shape"), CALLS, ids=[name for name, *_ in CALLS])
def test_calls(name: str, call: Callable[..., Any], dtypes: tuple[str, ...], shape: tuple[int, ...]) -> None:
    for dtype in dtypes:
        check(call, operand(dtype, shape=shape))


# Arrays


@pytest.mark.parametrize("array", [Tracer, ft.autograd.Tensor])
def test_every_attribute_of_an_array_is_there(array: type) -> None:
    attributes = set(dir(type(array_api_strict.ones(1))))
    public = {name for name in attributes if not name.startswith("_") or name.startswith("__")} - {"__buffer__"}
    assert len(public) > 60
    assert [name for name in sorted(public) if not hasattr(array, name)] == []


def test_a_traced_value_names_its_namespace() -> None:
    def f(x: Any) -> Any:
        assert x.__array_namespace__() is fnp
        assert x.__array_namespace__(api_version=VERSION) is fnp
        with pytest.raises(ValueError, match=r"has no version '1999.12'(.|\n)*test_array_api.py"):
            x.__array_namespace__(api_version="1999.12")
        assert x.device == "cpu"
        assert x.to_device("cpu") is x
        with pytest.raises(ValueError, match=r'Only "cpu" is allowed, but received: tpu(.|\n)*test_array_api.py'):
            x.to_device("tpu")
        for read in (np.from_dlpack, lambda x: x.__dlpack__(), lambda x: x.__dlpack_device__()):
            with pytest.raises(BufferError, match=r"has no memory(.|\n)*test_array_api.py"):
                read(x)
        selected = x[x > 0]
        assert selected.__array_namespace__() is fnp
        return np.sum(x * x.to_device("cpu"))

    np.testing.assert_array_equal(ft.grad(f)(np.array([1.0, 2.0])), [2.0, 4.0])
    for number in (float, complex):
        with pytest.raises(TypeError, match=f"{number.__name__}.. of a traced value"):
            ft.grad(lambda x, number=number: number(x[0]))(np.array([1.0, 2.0]))


def test_tensors_and_cells_name_the_namespace() -> None:
    x = ft.autograd.tensor([3.0, 1.0, 2.0], requires_grad=True)
    xp = x.__array_namespace__()  # type: ignore[attr-defined]
    assert xp is fnp
    assert x.device == "cpu"  # type: ignore[attr-defined]
    assert x.to_device("cpu") is x  # type: ignore[attr-defined]
    xp.sum(xp.sort(x, descending=True) * xp.arange(3.0)).backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad, [0.0, 2.0, 1.0])
    with pytest.raises(RuntimeError, match="would lose it"):
        np.from_dlpack(x)  # type: ignore[arg-type]
    np.testing.assert_array_equal(np.from_dlpack(x.detach()), [3.0, 1.0, 2.0])  # type: ignore[arg-type]
    parameter = ft.nn.Parameter(np.ones(2))
    assert parameter.__array_namespace__() is fnp
    assert isinstance(fnp.asarray(parameter), ft.autograd.Tensor)


def test_operators_in_place_and_reflected() -> None:
    def f(x: Any) -> Any:
        y = x.__array_namespace__().asarray(x, copy=True)
        y += 1
        y *= x
        y -= 2 * x
        y /= 2
        y **= 2
        return np.sum(1 - y + 2 / (3 + y) + 2**y)

    x = np.array([0.3, 0.7])
    y = ((x + 1) * x - 2 * x) / 2
    slope = (-1 - 2 / (3 + y**2) ** 2 + np.log(2) * 2 ** (y**2)) * 2 * y * (2 * x - 1) / 2
    np.testing.assert_allclose(ft.grad(f)(x), slope)
    np.testing.assert_allclose(ft.jit(ft.grad(f))(x), slope)


# The namespace


@pytest.mark.parametrize(
    "make",
    [
        lambda x: fnp.zeros(3),
        lambda x: fnp.ones(3, dtype=x.dtype, device=x.device),
        lambda x: fnp.full(3, 2.0),
        lambda x: fnp.empty(3) * 0,
        lambda x: fnp.zeros_like(np.ones(3)),
        lambda x: fnp.full_like(np.ones(3), 2.0),
        lambda x: fnp.eye(3)[1],
        lambda x: fnp.identity(3)[1],
        lambda x: fnp.tri(3)[1],
        lambda x: fnp.linspace(0.0, 1.0, 3),
        lambda x: fnp.logspace(0.0, 1.0, 3),
        lambda x: fnp.geomspace(1.0, 2.0, 3),
        lambda x: fnp.linspace(0.0, 1.0, 3, retstep=True)[0],
        lambda x: fnp.arange(3.0),
        lambda x: fnp.asarray([1.0, 2.0, 3.0]),
        lambda x: fnp.asarray(np.ones(3), copy=True),
        lambda x: fnp.asarray([1, 2, 3], dtype=fnp.float64),
        lambda x: fnp.array([1.0, 2.0, 3.0]),
        lambda x: fnp.fft.fftfreq(3),
    ],
)
def test_what_is_made_in_a_trace_takes_traced_values(make: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        y = make(x)
        y[1] = x[0] ** 2
        return np.sum(y * np.arange(3.0))

    for g in (ft.grad(f), ft.jit(ft.grad(f))):
        np.testing.assert_allclose(g(np.array([3.0, 1.0])), [6.0, 0.0])
    assert isinstance(make(np.ones(2)), np.ndarray)


def test_integers_made_in_a_trace_stay_numpys() -> None:
    def f(x: Any) -> Any:
        for made in (fnp.arange(3), fnp.asarray([0, 1]), fnp.array([0, 1]), fnp.eye(2, dtype=int)):
            assert isinstance(made, np.ndarray)
        return x

    ft.trace(f)(1.0)


def test_an_array_of_integers_and_a_traced_mask() -> None:
    x = np.array([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match=r"write ftrans.numpy.compress\(mask, table, axis=0\)"):
        ft.trace(lambda x: fnp.arange(3)[x > 1.5])(x)
    chosen = ft.trace(lambda x: fnp.compress(x > 1.5, fnp.arange(3), axis=0) * fnp.sum(x))(x)
    np.testing.assert_array_equal(chosen(x)[0], [6.0, 12.0])


def test_asarray() -> None:
    def f(x: Any) -> Any:
        assert fnp.asarray(x) is x
        assert fnp.asarray(x, copy=False) is x
        changed = fnp.asarray(x, copy=True)
        changed[0] = 0.0
        for bad in (lambda: fnp.asarray(x, dtype=np.float32, copy=False), lambda: fnp.asarray([x[0], 1.0], copy=False)):
            with pytest.raises(ValueError, match="Unable to avoid copy"):
                bad()
        return np.sum(changed) + np.sum(x)

    np.testing.assert_array_equal(ft.grad(f)(np.ones(2)), [1.0, 2.0])
    held = np.ones(2)
    assert fnp.asarray(held) is held
    assert ft.trace(lambda x: fnp.asarray(held) is held and x)(1.0)
    for make in (fnp.zeros, fnp.ones, fnp.empty, fnp.arange, fnp.asarray, fnp.eye, fnp.fft.fftfreq):
        with pytest.raises(ValueError, match="evice"):
            make(3, device="tpu")


def test_arange_of_traced_bounds() -> None:
    def f(bounds: Any) -> Any:
        return fnp.arange(bounds[0], bounds[1], bounds[2])

    bounds = np.array([0.5, 2.5, 0.7])
    np.testing.assert_allclose(ft.jit(f)(bounds), np.arange(*bounds))
    np.testing.assert_allclose(ft.jacobian(f)(bounds), [[1, 0, 0], [1, 0, 1], [1, 0, 2]])
    single = ft.trace(f)(bounds.astype(np.float32))(bounds.astype(np.float32))[0]
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, [0.5, 1.2, 1.9], rtol=1e-6)
    for call in (lambda n: fnp.arange(n), lambda n: fnp.arange(0.0, n), lambda n: fnp.arange(n, 9, 2)):
        for n in (4, 4.5):
            np.testing.assert_array_equal(ft.trace(call)(n)(n)[0], call(n))


def test_order_of_equal_elements() -> None:
    x = np.array([2, 1, 2, 0, 1] * 5)
    for call in (fnp.argsort, ft.jit(fnp.argsort), lambda x: ft.trace(fnp.argsort)(x)(x)[0]):
        np.testing.assert_array_equal(call(x), np.argsort(x, kind="stable"))
    descending = sorted(range(x.size), key=lambda i: -x[i])
    np.testing.assert_array_equal(fnp.argsort(x, descending=True), descending)
    np.testing.assert_array_equal(ft.jit(lambda x: fnp.argsort(x, descending=True))(x), descending)
    np.testing.assert_array_equal(fnp.sort(x.reshape(5, 5), axis=None, descending=True), np.sort(x)[::-1])


def test_information() -> None:
    info = fnp.__array_namespace_info__()
    reference = array_api_strict.__array_namespace_info__()
    assert info.default_device() == "cpu"
    assert info.devices() == ["cpu"]
    for kind in ("bool", "integral", "numeric", ("real floating", "complex floating"), None):
        assert set(info.dtypes(kind=kind)) == set(reference.dtypes(kind=kind))
    assert all(isinstance(dtype, np.dtype) for dtype in info.dtypes().values())
    assert list(info.default_dtypes()) == list(reference.default_dtypes())
    assert info.default_dtypes()["real floating"] == fnp.float64
    with pytest.raises(ValueError, match="unknown kind"):
        info.dtypes(kind="quaternion")
    assert info.capabilities()["boolean indexing"]
    seen = []
    ft.jit(lambda x: (seen.append(info.capabilities()), x)[1])(1.0)
    assert seen[0]["boolean indexing"] is seen[0]["data-dependent shapes"] is False
