"""Retraces: what a compiled function was traced again for, the table of it, and the warning."""

from __future__ import annotations

import functools
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn

X = np.ones(3)


def reasons_of(f: Any, *calls: tuple[Any, ...], **kwargs: Any) -> list[tuple[str, ...]]:
    """The reasons of the retraces that some calls of a function cause."""
    before = len(ft.debug.retraces())
    for args in calls:
        f(*args, **kwargs)
    return [one.reasons for one in ft.debug.retraces()[before:]]


def branches(x: Any) -> Any:
    if x.sum() > 0:
        return x
    return -x


def scaled(x: Any, n: int = 2) -> Any:
    return n * x


def first(x: Any, y: Any) -> Any:
    return x["a"] + y


CALLS = {
    "shape": (lambda x, y: x + y, [(X, 1.0), (X, 1.0), (np.ones(4), 1.0)], "argument 0 changed from f64[3] to f64[4]"),
    "dtype": (lambda x, y: x + y, [(X, X), (X, np.ones(3, "f4"))], "argument 1 changed from f64[3] to f32[3]"),
    "number": (lambda x: x + 1, [(X[0],), (1.0,)], "argument 0 changed from f64[] (a number) to f64[] (float)"),
    "container": (first, [({"a": X}, X), ({"a": X[:2]}, X[:2])], "argument 0['a'] changed from f64[3] to f64[2]"),
    "new entry": (lambda x, y: x["a"] + y, [({"a": X}, X), ({"a": X, "<b>": X}, X)], "argument 0['<b>'] is new"),
    "another container": (lambda x: x[0], [((X,),), ([X],)], "a container among the arguments is another one"),
    "branch": (branches, [(X,), (-X,), (X,)], "the branch at test_retraces.py:28 went the other way"),
    "value": (lambda n: np.ones(int(n)) * n, [(2,), (3,)], "the value that Python saw at test_retraces.py:49: 2 -> 3"),
}


@pytest.mark.parametrize("name", CALLS)
def test_reasons(name: str) -> None:
    f, calls, reason = CALLS[name]
    assert reason in reasons_of(ft.jit(f), *calls)[0]


def test_static_arguments() -> None:
    f = ft.jit(scaled, static_argnames="n")
    assert reasons_of(f, (X, 2), (X, 3), (X,)) == [
        ("static argument n: 2 -> 3",),
        ("static argument n: 3 -> its default",),
    ]


def test_functions_compiled_anew() -> None:
    # One function does not count its constants, which are compiled into it; several made by one line do.
    found = reasons_of(lambda k: ft.jit(lambda x: k * x)(X), (1,), (2,), (2,))
    assert found == [("k, which the function closes over: 1 -> 2",), ("jit was called again",)]
    found = reasons_of(lambda n: ft.jit(functools.partial(scaled, n=n))(X), (4,), (5,))
    assert found[-1] == ("n, which the function closes over: 4 -> 5",)
    found = reasons_of(lambda k: ft.jit(ft.grad(lambda x: np.sum(k * x)))(X), (X,), (2 * X,))
    assert found == [("k, which the function closes over: f64[3] -> another f64[3]",)]


def test_modules() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
    f = nn.jit(lambda m, x: m(x))
    x = np.ones((2, 3), np.float32)
    f(model, x)
    model[1].p = 0.25
    (reasons,) = reasons_of(f, (model, x))
    assert reasons == ("1.p: 0.5 -> 0.25",)
    model.eval()
    assert reasons_of(f, (model, x)) == [("train() or eval() was called",)]
    kept = weakref.ref(model)
    del model
    gc.collect()
    assert kept() is None


def test_modules_and_keywords() -> None:
    f = nn.jit(lambda m, x, scale: m(x) * scale)
    x = np.ones((2, 3), np.float32)
    found = reasons_of(lambda scale: f(nn.Linear(3, 3), x, scale=scale), (x,), (x[0],))
    assert found[-1] == ("argument scale changed from f32[2,3] to f32[3]",)


def test_warns_once() -> None:
    f = ft.jit(lambda x: 3 * x)
    for n in range(1, 10):
        f(np.ones(n))
    with pytest.warns(
        RuntimeWarning, match=r"jit traces lambda for the 10th time.*f64\[9\] to f64\[10\]. .*pad arrays"
    ):
        f(np.ones(10))
    f(np.ones(11))


def test_table() -> None:
    f = ft.jit(scaled, static_argnames="n")
    f(X, n=2)
    f(X[:2], n=2)
    found = ft.debug.retraces(f)
    assert {one.function for one in found} == {"scaled"}
    lines = str(found).splitlines()
    assert lines[0].split() == ["function", "trace", "called", "at", "tracing", "changed"]
    assert "f64[3] to f64[2]" in lines[-1]
    assert "test_retraces.py" in found._repr_html_()
    assert ft.debug.retraces(branches.__call__)._repr_html_()
    with pytest.raises(TypeError, match="retraces takes a function, not int"):
        ft.debug.retraces(3)


def test_html_is_escaped() -> None:
    reasons_of(ft.jit(lambda x: x["<b>"]), ({"<b>": X},), ({"<b>": X[:2]},))
    text = ft.debug.retraces()[-1:]
    assert "&lt;b&gt;" in ft.debug.Retraces(text)._repr_html_()
    assert "<b>" not in ft.debug.Retraces(text)._repr_html_()
