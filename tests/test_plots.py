"""ft.debug.plots: what the pictures hold; those of docs/plots.md can be made again."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import ftrans as ft
from ftrans import nn
from ftrans.debug import plots

SCRIPT = Path(__file__).parent.parent / "docs" / "make_plots.py"
spec = importlib.util.spec_from_file_location("make_plots", SCRIPT)
assert spec is not None
assert spec.loader is not None
make_plots = sys.modules["make_plots"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_plots)


@pytest.mark.parametrize("name", make_plots.PICTURES)
def test_pictures_of_the_page(name: str, tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    make_plots.PICTURES[name]().figure.savefig(path, dpi=30)
    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    assert make_plots.file_of(name).exists()
    assert f"images/plot_{name}.png" in (SCRIPT.parent / "plots.md").read_text()


def quadratic(x: Any) -> Any:
    return 0.5 * np.sum(np.array([4.0, 1.0, -2.0]) * x["a"] ** 2) + x["b"] ** 2


def test_spectrum_of_a_container() -> None:
    axes = plots.hessian_spectrum(quadratic, {"a": np.ones(3), "b": 1.0})
    positive, negative = axes.lines
    np.testing.assert_allclose(positive.get_ydata(), [4.0, 2.0, 1.0])
    np.testing.assert_allclose(negative.get_ydata(), [-2.0])
    assert axes.get_title(loc="left") == "Hessian, 4 x 4: 1 negative"
    for factor, text in ((1.0, "condition number 9"), (0.0, "singular")):
        axes = plots.hessian_spectrum(lambda x, factor=factor: 9 * x[0] ** 2 + factor * x[1] ** 2, np.ones(2))
        assert text in axes.get_title("left")


def test_landscape_has_the_values_of_the_function() -> None:
    d, e = {"a": np.array([1.0, 0, 0]), "b": 0.0}, {"a": np.zeros(3), "b": 2.0}
    seen = []
    ax = Figure().subplots()
    ax.contourf = lambda x, y, z, *args, contourf=ax.contourf, **kwargs: (seen.append((x, y, z)), contourf(x, y, z))[1]
    assert plots.loss_landscape(quadratic, {"a": np.ones(3), "b": 1.0}, (d, e), points=5, span=0.5, ax=ax) is ax
    ((x, y, z),) = seen
    expected = [[quadratic({"a": np.array([1 + a, 1, 1]), "b": 1 + 2 * b}) for a in x] for b in y]
    np.testing.assert_allclose(z, expected)
    plots.loss_landscape(lambda x: x**2, 1.0, points=3)
    plots.loss_landscape(lambda x: np.log(x[0]), np.array([0.5, 1.0], np.float32), points=3)


def test_taylor_polynomials() -> None:
    axes = plots.taylor(np.exp, 1.0, orders=(0, 2), span=0.5)
    _, constant, square, _ = axes.lines
    t = square.get_xdata() - 1.0
    np.testing.assert_allclose(constant.get_ydata(), np.full(t.size, np.e))
    np.testing.assert_allclose(square.get_ydata(), np.e * (1 + t + t**2 / 2))
    assert plots.taylor(lambda x: np.sqrt(x), 0.1, span=1.0).lines[0].get_label() == "f"


def test_gradient_flow_takes_gradients_and_modules() -> None:
    axes = plots.gradient_flow({"b": [np.zeros(2)], "a": np.array([1.0, -3.0])})
    assert [text.get_text() for text in axes.get_yticklabels()] == ["b[0]", "a"]
    assert [text.get_color() == "#c0392b" for text in axes.get_yticklabels()] == [True, False]
    assert [bar.get_width() for bar in axes.patches] == [0.0, 3.0, 0.0, 2.0]
    model = nn.Linear(2, 1)
    model(ft.autograd.tensor(np.ones((1, 2), np.float32))).sum().backward()
    assert len(plots.gradient_flow(model).get_yticklabels()) == 2


def test_curves_of_a_history() -> None:
    history = nn.History()
    history.epochs += [{"epoch": 1, "loss": 1.0, "accuracy": 0.5}, {"epoch": 2, "loss": 0.5, "accuracy": 0.75}]
    ax = Figure().subplots()
    assert plots.learning_curves(history, "accuracy", ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [0.5, 0.75])


BAD = {
    "history": (lambda: plots.learning_curves([]), ValueError, "no epoch yet"),
    "entry": (lambda: plots.learning_curves([{"epoch": 1, "loss": 1.0}], "los"), ValueError, "it has 'epoch', 'loss'"),
    "axes": (lambda: plots.taylor(np.sin, 0.0, ax=3), TypeError, "ax is an Axes of matplotlib"),
    "not a number": (lambda: plots.hessian_spectrum(np.sin, np.ones(2)), TypeError, "take a sum or a mean"),
    "too large": (lambda: plots.hessian_spectrum(np.sum, np.ones(5001)), ValueError, "eigsh"),
    "integers": (lambda: plots.loss_landscape(np.sum, np.arange(3)), TypeError, "floating-point arrays"),
    "not finite": (lambda: plots.hessian_spectrum(np.log, 0.0), ValueError, "not finite"),
    "points": (lambda: plots.loss_landscape(np.sum, np.ones(2), points=1), ValueError, "at least 2 points"),
    "one direction": (lambda: plots.loss_landscape(np.sum, np.ones(2), np.ones(2)[:1]), TypeError, "a pair of dir"),
    "other sizes": (
        lambda: plots.loss_landscape(np.sum, np.ones(2), (np.ones(3), np.ones(2))), TypeError, "have 3 and 2 elements"
    ),
    "orders": (lambda: plots.taylor(np.sin, 0.0, orders=(-1,)), ValueError, "orders from 0"),
    "array": (lambda: plots.taylor(lambda x: np.ones(2) * x, 0.0), TypeError, "whose result is a number"),
    "no gradient": (lambda: plots.gradient_flow({}), ValueError, "after backward"),
    "no profile": (lambda: plots.flame(3), TypeError, "plots.flame takes a profile"),
    "no pattern": (lambda: plots.sparsity(3), TypeError, "takes a pattern"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name: str) -> None:
    call, error, match = BAD[name]
    with pytest.raises(error, match=match) as caught:
        call()
    assert "test_plots.py" in str(caught.value)


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'ftrans\[plot\]'"):
        plots.taylor(np.sin, 0.0)


def test_plots_are_shown_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib import pyplot

    before = pyplot.get_backend()
    pyplot.switch_backend("agg")
    # What tests before have left.
    pyplot.close("all")
    plots.taylor(np.sin, 0.3, 3)
    assert not pyplot.get_fignums()
    monkeypatch.setattr("ftrans.base.figures.is_in_notebook", lambda: True)
    axes = plots.taylor(np.sin, 0.3, 3)
    pattern = plots.sparsity(np.eye(3))
    assert [pyplot.figure(number) for number in pyplot.get_fignums()] == [axes.figure, pattern.figure]
    pyplot.close("all")
    pyplot.switch_backend(before)


def test_plots_on_dark_figures() -> None:
    import matplotlib

    with ft.debug.profile() as prof:
        ft.grad(lambda x: np.sum(np.sin(x)))(np.ones(3))
    with matplotlib.style.context("dark_background"):
        flame = plots.flame(prof)
        # Boxes are light on every figure, so their text is dark.
        assert {text.get_color() for text in flame.texts} == {"black"}
        point = plots.taylor(np.sin, 0.0).lines[-1]
        assert point.get_color() == "white"


def test_what_is_no_history() -> None:
    with pytest.raises(TypeError, match=r"takes the history that nn\.fit returns, .* not int"):
        plots.learning_curves(3)
