"""What Python and NumPy get that ask a traced value for a number: one cause and one way out, or a traced number."""

from __future__ import annotations

import array
import cmath
import linecache
import math
import re
import struct
import sys
import textwrap
from collections.abc import Callable
from math import sin as sine
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.sparse.linalg import spsolve
from scipy.spatial import ConvexHull
from scipy.spatial.distance import cdist

import ftrans as ft
from ftrans.testing import check_grads

X = np.array([1.2, 0.7])


def of_objects(x: Any) -> Any:
    objects = np.array([x[0], 1.0])
    return objects.astype(float)


# What asks for a number, what the error names, and the way out.
MISTAKES: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda x: math.sin(x[0]), "math.sin", "write np.sin(x[0])"),
    (lambda x: sine(x[0]), "math.sin", "write np.sin(x[0])"),
    (lambda x: math.atan2(x[0], 2.0), "math.atan2", "write np.arctan2(x[0], 2.0)"),
    (lambda x: math.log(x[0], 2), "math.log", "write np.log(x[0]) / np.log(2)"),
    (lambda x: math.gamma(x[0]), "math.gamma", "write ftrans.scipy.special.gamma(x[0])"),
    (lambda x: math.fsum([x[0], 1.0]), "math.fsum", "write ftrans.numpy.sum([x[0], 1.0])"),
    (lambda x: math.remainder(x[0], 2.0), "math.remainder", "compose math.remainder"),
    (lambda x: cmath.sqrt(x[0]), "cmath.sqrt", "write np.sqrt(x[0] + 0j)"),
    (lambda x: "%.3f" % x[0], "% of a text", "write an f-string"),  # noqa: UP031
    (lambda x: float(x[0]), "float", "write x[0]: keep"),
    (lambda x: complex(x[0]), "complex", "write x[0]: keep"),
    (lambda x: np.asarray(x, float), "np.asarray", "write x.astype(float)"),
    (lambda x: np.array(x, dtype=np.float32), "np.array", "write x.astype(np.float32)"),
    (lambda x: np.array([x[0], 1.0], float), "np.array", "write ftrans.numpy.array([x[0], 1.0], float)"),
    (lambda x: np.float64(x[0]), "np.float64", "write x[0].astype(np.float64)"),
    (lambda x: np.arange(x[0]), "np.arange", "write ftrans.numpy.arange"),
    (of_objects, "objects.astype", "write ftrans.numpy.asarray"),
    (lambda x: brentq(lambda y: y**2 - x[0], 0.0, 2.0), "brentq", "write `from ftrans.scipy.optimize import brentq`"),
    (lambda x: ft.grad(math.sin)(x[0]), "math.sin", "write np.sin(x[0])"),
    (lambda x: array.array("d", [x[0]]), "array.array", "return the traced value"),
    (lambda x: struct.pack("d", x[0]), "struct.pack", "return the traced value"),
    (
        lambda x: np.vectorize(lambda y: y * x[0], otypes=[float])(np.ones(2)),
        "np.vectorize with otypes=",
        "write ftrans.numpy.vectorize",
    ),
]


@pytest.mark.parametrize(("f", "cause", "instead"), MISTAKES, ids=[f"{i} {m[1]}" for i, m in enumerate(MISTAKES)])
def test_errors_name_one_cause_and_one_way_out(f: Callable[[Any], Any], cause: str, instead: str) -> None:
    with pytest.raises(TypeError) as error:
        ft.jacobian(f)(X)
    said = str(error.value)
    assert f"its derivative. {cause}" in said
    assert instead in said
    assert "test_numbers_asked_for.py" in said


TABLE = np.zeros(2)


def into_zeros(x: Any) -> Any:
    flux = np.zeros(len(x) + 1)
    flux[1:] = -x
    return flux


def into_the_latest(x: Any) -> Any:
    flux = np.zeros_like(x)
    flux[0] = x[0]
    flux = np.full((2, 2), 1.0)
    flux[1] = x
    return flux


def into_a_table(x: Any) -> Any:
    TABLE[0] = x[0]
    return TABLE


# What assigns to a plain array, and what the error says of the array.
INTO_PLAIN_ARRAYS: list[tuple[Callable[[Any], Any], str, str]] = [
    (into_zeros, "flux is a plain NumPy array, made by np.zeros(len(x) + 1) in line", "ftrans.numpy.zeros(len(x) + 1)"),
    (into_the_latest, "made by np.full((2, 2), 1.0) in line", "Write flux = ftrans.numpy.full((2, 2), 1.0) there"),
    (into_a_table, "TABLE is a plain NumPy array, which holds numbers", "np.zeros_like(x) of a traced x, or by ftrans"),
]


@pytest.mark.parametrize(("f", "cause", "instead"), INTO_PLAIN_ARRAYS, ids=[m[0].__name__ for m in INTO_PLAIN_ARRAYS])
def test_errors_say_what_made_a_plain_array(f: Callable[[Any], Any], cause: str, instead: str) -> None:
    with pytest.raises(TypeError) as error:
        ft.jacobian(f)(X)
    said = str(error.value)
    assert cause in said
    assert instead in said
    assert "float()" not in said
    number = re.search(r"in line (\d+)", said)
    assert number is None or cause.split("made by ")[1].split(" in line")[0] in linecache.getline(
        __file__, int(number[1])
    )


# Calls of SciPy by its own names, and what the error names instead.
OF_SCIPY: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: cdist([[x, 1.0]], [[0.0, 0.0]])[0, 0], "write `from ftrans.scipy.spatial.distance import cdist`"),
    (lambda x: spsolve(csr_array(np.eye(1)), [x])[0], "write `from ftrans.scipy.sparse.linalg import spsolve`"),
    (lambda x: ConvexHull(np.array([[0, 0], [0, 1], [1, x]])).volume, "scipy.spatial.ConvexHull cannot .* .simplices"),
]


@pytest.mark.parametrize(("f", "instead"), OF_SCIPY, ids=[m[1].split()[-1].strip("`") for m in OF_SCIPY])
def test_errors_name_the_traced_form_of_a_function_of_scipy(f: Callable[[Any], Any], instead: str) -> None:
    with pytest.raises(TypeError, match=instead):
        ft.grad(f)(0.7)


def test_code_without_source_has_no_known_cause() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(x):\n    return float(x)", namespace)
    with pytest.raises(TypeError, match="from its derivative; keep the traced value"):
        ft.grad(namespace["f"])(1.0)


def test_code_of_a_package_is_to_be_patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site-packages" / "some_package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        textwrap.dedent("""
        import math

        def area(r):
            return math.pi * math.pow(r, 2)
        """)
    )
    monkeypatch.syspath_prepend(str(folder.parent))
    import some_package  # type: ignore[import-not-found]

    try:
        with pytest.raises(TypeError, match=r'some_package asks for it; before, call ftrans.patch\("some_package"\)'):
            ft.grad(some_package.area)(2.0)
    finally:
        del sys.modules["some_package"]


def test_items_and_lists_are_traced_numbers() -> None:
    check_grads(lambda x: x[0].item() ** 2 * x.item(1), X)
    check_grads(lambda x: sum(row[0] * row[1] for row in (x[:, None] * x).tolist()), X)
    check_grads(lambda x: x[0].astype(np.float32).item() * np.float32(2.0) * x[1], X, atol=1e-4, rtol=1e-4)

    def f(x: Any) -> Any:
        assert isinstance(x[0].item(), float)
        assert not isinstance(x[0].item(), np.floating)
        assert not isinstance(x.astype(np.float32).tolist()[0], np.floating)
        assert x.argmax().item() == 0
        assert (np.float32(1.0) * x[1].item()).dtype == np.float32
        return x[0]

    ft.grad(f)(X)
    ft.jit(f)(X)
