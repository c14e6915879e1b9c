"""The table of functions in docs/coverage.md: nothing public is left out, and what it says is so."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from function_rows import resolve

import ftrans as ft
import ftrans.numpy.fft
import ftrans.numpy.linalg
from ftrans.base import tree
from ftrans.core.primitive import MissingRule
from ftrans.core.trace import Tracer
from ftrans.numpy import ufuncs
from ftrans.numpy.dispatch import CONSTANT, REFUSED, TABLE

SCRIPT = Path(__file__).parent.parent / "docs" / "make_coverage.py"
spec = importlib.util.spec_from_file_location("make_coverage", SCRIPT)
assert spec is not None
assert spec.loader is not None
coverage = sys.modules["make_coverage"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coverage)

NAMESPACES = (*coverage.WHOLE, *coverage.MIRRORED)
each_namespace = pytest.mark.parametrize("namespace", NAMESPACES)


@each_namespace
def test_every_public_function_has_an_entry(namespace: str) -> None:
    lacking = [name for e in coverage.entries(namespace) if not e.kind for name in e.names]
    assert not lacking, "give it a traced form, mark it constant=True, or enter why it has none in REFUSED"


@each_namespace
def test_every_differentiable_function_has_a_row(namespace: str) -> None:
    lacking = [e.names[0] for e in coverage.entries(namespace) if e.kind == "differentiable" and not e.compiled]
    assert not lacking, "write a row in a file tests/rows_*.py"


def is_there(name: str) -> bool:
    """Whether the installed NumPy or SciPy has a function."""
    try:
        resolve(name, traced=False)
    except (AttributeError, ImportError):
        return False
    return True


@pytest.mark.skipif(np.lib.NumpyVersion(scipy.__version__) < "1.17.0", reason="the page is that of newer versions")
def test_the_page_is_what_the_script_makes() -> None:
    def entries(text: str) -> set[str]:
        return {line for line in text.splitlines() if line.startswith("| `")}

    written, made = entries(coverage.PAGE.read_text()), entries(coverage.page())
    # Names that the installed versions lack stay on the page.
    names = {name for namespace in NAMESPACES for name in coverage.public(namespace)}
    differing = [*(made - written), *(line for line in written - made if line.split("`")[1] in names)]
    assert not differing, f"run python {SCRIPT.parent.name}/{SCRIPT.name}"


# Constants

# How functions are called that are not for one array, or one for each operand of a ufunc.
CALLS: dict[str, Callable[..., Any]] = {
    "allclose": lambda f, x: f(x, x + 1),
    "argpartition": lambda f, x: f(x, 1),
    "array_equal": lambda f, x: f(x, x),
    "array_equiv": lambda f, x: f(x, x[0]),
    "can_cast": lambda f, x: f(x.dtype, np.float32),
    "diag_indices_from": lambda f, x: f(x[:, :2]),
    "digitize": lambda f, x: f(x, [0.0, 1.0]),
    "hamming": lambda f, x: f(x[0], x[1]),
    "isclose": lambda f, x: f(x, x + 1),
    "isin": lambda f, x: f(x, x[0]),
    "ravel_multi_index": lambda f, x: f((abs(x[0]).astype(int), [0, 1, 2]), (3, 3)),
    "result_type": lambda f, x: f(x, np.float32),
    "searchsorted": lambda f, x: f(x[0], x[1]),
    "may_share_memory": lambda f, x: f(x, np.ones(3)),
    "shares_memory": lambda f, x: f(x, np.ones(3)),
    "empty_like": lambda f, x: f(x) * 0,
    "unravel_index": lambda f, x: f(abs(x).astype(int), (3, 3)),
}
OF_INTEGERS = {
    "bitwise_and", "bitwise_count", "bitwise_or", "bitwise_xor", "gcd", "invert", "lcm", "left_shift", "right_shift",
}  # fmt: skip


def called(function: Any) -> Callable[[Any], Any]:
    """A constant function as a function of one array of floating-point numbers."""
    name = function.__name__
    if name in CALLS:
        return lambda x: CALLS[name](function, x)
    count = getattr(function, "nin", 1)
    if name in OF_INTEGERS:
        return lambda x: function(*[abs(x).astype(int)] * count)
    return lambda x: function(*[x + i for i in range(count)])


@pytest.mark.filterwarnings("ignore:numpy.fix:DeprecationWarning")
@pytest.mark.parametrize("function", sorted(CONSTANT, key=lambda f: f.__name__), ids=lambda f: f.__name__)
def test_constant_functions_run_on_traced_values(function: Any) -> None:
    f, x = called(function), np.array([[0.3, 1.7, 2.2], [-1.4, 0.0, 2.6]])
    text = function in (np.array_repr, np.array_str, np.array2string)

    def results(x: Any) -> list[Any]:
        found = f(x)
        assert text is isinstance(found, str)
        return [] if isinstance(found, str | np.dtype | type) else tree.flatten(found)[0]

    found, pushed = ft.jvp(results, (x,), (np.ones_like(x),))
    for y, expected, t in zip(found, results(x), pushed, strict=True):
        np.testing.assert_array_equal(y, expected)
        assert np.asarray(y).dtype == np.asarray(expected).dtype
        assert t is None or not np.any(t)


# Refusals


def refusable() -> list[str]:
    """The refused functions that can be given a traced value: those that NumPy's protocols or ftrans.scipy carry."""
    found = []
    for name in sorted(REFUSED):
        if is_there(name):
            function = resolve(name, traced=False)
            if isinstance(function, np.ufunc) or hasattr(function, "_implementation") or name.startswith("scipy."):
                found.append(name)
    return found


def arguments(function: Any, x: Any) -> list[Any]:
    """A traced value for each argument that a function needs; those that write to files get a name first."""
    if isinstance(function, np.ufunc):
        return [x] * function.nin
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        # Some builtin functions of older versions do not say what they take.
        return [x] * (2 if function.__name__.startswith("busday_") else 1)
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    return ["nowhere" if p.name in ("file", "fname") else x for p in needed]


@pytest.mark.parametrize("name", refusable())
def test_refused_functions_say_why(name: str) -> None:
    function = resolve(name, traced=True)

    def f(x: Any) -> Any:
        return function(*arguments(function, x))

    with pytest.raises(MissingRule) as caught:
        ft.grad(f)(0.5)
    assert REFUSED[name] in str(caught.value)
    assert "test_coverage.py" in str(caught.value)


# One table of ufuncs


def test_every_ufunc_has_all_names_of_numpy_everywhere() -> None:
    rows = {name for name in vars(ufuncs) if not name.startswith("_")}
    names = {name for name, x in vars(np).items() if isinstance(x, np.ufunc) and x in TABLE and x.signature is None}
    assert rows == names
    for name in names:
        assert name in ft.numpy.__all__
        assert callable(getattr(Tracer, name))
        assert callable(getattr(ft.autograd.Tensor, name))


def test_all_names_of_the_protocols_are_exported() -> None:
    namespaces = {"numpy": ft.numpy, "numpy.linalg": ft.numpy.linalg, "numpy.fft": ft.numpy.fft}
    for namespace, ours in namespaces.items():
        found = vars(importlib.import_module(namespace)).items()
        theirs = {name for name, x in found if callable(x) and not name.startswith("_") and x in TABLE}
        assert theirs <= set(ours.__all__) | set(coverage.OLD_NAMES.get(namespace, {}))
