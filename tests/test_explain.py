"""ft.explain: the figures of its report agree with those of the functions that it puts together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn

ARGS = [np.random.default_rng(0).normal(size=shape) for shape in [(4, 8), (8,), (6, 4), (6,)]]


def loss(w: Any, v: Any, x: Any, y: Any) -> Any:
    h = np.tanh(x @ w)
    z = np.linalg.solve(w.T @ w + np.eye(8), h.T)
    return np.mean((h @ v - y + z.sum()) ** 2)


def test_report() -> None:
    report = ft.explain(loss, *ARGS)
    assert report.name == "loss"
    assert report.equations == len(ft.trace(loss)(*ARGS).eqns)
    assert report.costs.flops == ft.debug.cost(loss)(*ARGS).flops
    assert report.kept.total == ft.residuals(loss)(*ARGS).total
    assert report.sparsity == ft.hessian_sparsity(loss, argnums=(0, 1, 2, 3))(*ARGS)
    assert {one.operation for one in report.dense} == {"solve", "dot_general"}
    assert {one.line.number for one in report.dense} == {18, 19}
    assert {one.operation for one in report.unfused} >= {"solve", "dot_general"}
    assert min(report.times) > 0
    text = str(report)
    for part in ("cost: ", "time: ", "kept for the way back: ", "Hessian: 70 x 70", "fusion: ", "test_explain.py:18"):
        assert part in text


def test_rich_and_html() -> None:
    from rich.console import Console

    report = ft.explain(ft.jit(lambda x: x["<b>"] * 2), {"<b>": np.ones(5)})
    console = Console(width=100, record=True, file=None, quiet=True)
    console.begin_capture()
    console.print(report)
    assert report.times.plain is None
    text = report._repr_html_()
    assert "&lt;b&gt;" in text
    assert "<b>&quot;" not in text
    assert text.count("<details") == text.count("</details>")


MODEL = nn.Linear(2, 2)
CASES = {
    "module": (lambda x: MODEL(x).sum(), (np.ones((1, 2), np.float32),), "Hessian: 2 x 2, 0 entries"),
    "no argument": (lambda: np.ones(3), (), "lambda() -> f64[3]: 0 equations"),
    "jacobian": (lambda x: x[1:] * x[:-1], (np.ones(5),), "Jacobian: 4 x 5, 8 entries"),
    "static": (lambda x, n, name: x * n, (np.ones(5), 3, "a"), "Jacobian: 5 x 5, 5 entries"),
    "integers": (lambda x: x + 1, (np.arange(3),), "lambda(i64[3]) -> i64[3]: 1 equation\n"),
    "large": (lambda x: x * 2, (np.ones(3000),), "note: the Jacobian has 3,000 x 3,000 elements"),
    "loop": (
        lambda x: ft.scan(lambda c, _: (np.sin(c), c), x, length=3)[1].sum(),
        (np.ones(5),),
        "cos in scan",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_functions(name: str) -> None:
    f, args, text = CASES[name]
    assert text in str(ft.explain(f, *args))


def test_retraces_of_the_function() -> None:
    f = ft.jit(lambda x: x + 7)
    for n in (2, 3):
        f(np.ones(n))
    report = ft.explain(f, np.ones(3))
    assert "retraces: 1\n" in str(report)
    assert "argument 0 changed from f64[2] to f64[3]" in str(report)


def test_not_in_a_trace() -> None:
    with pytest.raises(TypeError, match="explain runs lambda and measures it"):
        ft.grad(lambda x: ft.explain(lambda y: y, x) and x)(1.0)
