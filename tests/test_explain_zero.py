"""Zero gradients are explained: which line cut each path, and nothing said where there is a gradient."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import ftrans as ft


def cut_lines(report: Any) -> dict[str, list[str]]:
    """For each array with a zero gradient, the text of the lines that cut it."""
    return {zero.path: [cut.line.text for cut in zero.cuts] for zero in report}


def test_each_way_to_cut_a_path() -> None:
    def f(whole: Any, index: Any, rounded: Any, stopped: Any, looked: Any, compared: Any, dead: Any, kept: Any) -> Any:
        a = np.sum(whole.astype(int))
        b = np.argmax(index)
        c = np.sum(np.round(rounded) + np.floor(rounded))
        d = np.sum(ft.stop_gradient(stopped))
        if np.sum(looked) > 0:
            kept = 2 * kept
        e = np.sum(np.where(compared > 0, 1.0, kept))
        dead *= 2
        return a + b + c + d + e

    ones = np.ones(2)
    report = ft.explain_zero(f)(ones, ones, ones, ones, ones, ones - 2, ones, ones)
    lines = [line.strip() for line in inspect.getsource(f).splitlines()]
    assert cut_lines(report) == {
        "whole": [lines[1]],
        "index": [lines[2]],
        "rounded": [lines[3], lines[3]],
        "stopped": [lines[4]],
        "looked": [lines[5]],
        "compared": [lines[7]],
        "dead": [],
    }
    assert all(zero.is_structural for zero in report)
    text = str(report)
    for words in ("conversion to int64", "argmax gives integers", "rint is constant", "stop_gradient", "control flow"):
        assert words in text
    assert "dead: f64[2]: the result does not depend on it" in text


def test_no_zero() -> None:
    softmax = ft.explain_zero(lambda x: np.exp(x) / np.sum(np.exp(x)))(np.arange(3.0))
    assert len(softmax) == 0
    assert str(softmax) == "No gradient of lambda is zero."


def test_zero_for_these_values() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, x, 0.0))

    (zero,) = ft.explain_zero(f)(np.array([-1.0, -2.0]))
    assert not zero.is_structural
    assert "np.where(x > 0" in str(zero)
    assert not ft.explain_zero(f)(np.array([-1.0, 2.0]))


def test_inside_of_loops_and_branches() -> None:
    def loop(x: Any) -> Any:
        return ft.scan(lambda c, r: (np.floor(c + r), None), x, np.arange(3.0))[0]

    (zero,) = ft.explain_zero(loop)(0.5)
    assert "floor" in str(zero)

    def branch(x: Any) -> Any:
        return ft.cond(x > 0, lambda x: np.round(x), lambda x: np.ceil(x), x)

    (zero,) = ft.explain_zero(branch)(0.7)
    assert {"rint", "ceil"} <= set(str(zero).split())


def test_containers_argnums_and_modules() -> None:
    def f(p: Any, x: Any) -> Any:
        return np.sum(p["w"] * x) + np.sum(np.sign(p["b"][0]))

    report = ft.explain_zero(f)({"w": np.ones(2), "b": [np.ones(2)]}, np.ones(2))
    assert [zero.path for zero in report] == ["p['b'][0]"]
    assert not ft.explain_zero(f, argnums=1)({"w": np.ones(2), "b": [np.ones(2)]}, np.ones(2))
    linear = ft.nn.Linear(2, 2)
    report = ft.explain_zero(lambda m, x: np.sum(m(x).astype(int)))(linear, np.ones(2))
    assert [zero.path for zero in report] == ["m.weight", "m.bias", "x"]


def test_whole_numbers_are_not_differentiated() -> None:
    report = ft.explain_zero(lambda counts, x: np.sum(x.astype(int) + counts))(np.arange(3), np.ones(3))
    assert [zero.path for zero in report] == ["x"]
    with pytest.raises(TypeError, match=r"astype\(float\)"):
        ft.explain_zero(np.sum)(np.arange(3))
    with pytest.raises(TypeError, match="asks for argument 3"):
        ft.explain_zero(np.sum, 3)(np.ones(3))


def test_a_number_that_python_looks_at_is_no_result() -> None:
    (zero,) = ft.explain_zero(lambda x: np.sum(np.histogram(x, bins=3)[0]) * 1.0)(np.array([1.0, 2.0, 4.0]))
    assert zero.is_structural
