"""examples/torch_side_by_side: in how many lines the two forms differ, and losses beside figures of torch."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import tables

FOLDER = Path(__file__).parent.parent / "examples" / "torch_side_by_side"
# Programs, and their forms in ftrans.
NAMES = [path.name.removesuffix("_torch.py") for path in FOLDER.glob("*_torch.py")]
FORMS = sorted(
    (name, form) for name in NAMES for form in ("ftrans", "compiled") if (FOLDER / f"{name}_{form}.py").exists()
)

# The first losses of each form in torch 2.13, with the weights that the form in ftrans begins with after
# `nn.manual_seed(0)`.  test_two_forms_torch.py compares them with torch.
LOSSES = {
    "dcgan": [2.330098, 1.890802, 1.77905],
    "digits": [2.367208, 2.552106, 2.37144],
    "gat": [1.336773, 1.249414, 1.167107],
    "gpt": [4.590993, 4.547006, 4.460438],
    "lander": [0.3886603, 0.2914014, 0.2141459],
    "maml": [2.419859, 3.015614, 8.108116],
    "ode": [0.2817948, 0.334923, 0.2826655],
    "realnvp": [4.297034, 3.033576, 2.42401],
    "vae": [178.8271, 174.2978, 171.2627],
    "wgan": [0.154344, 0.3822054, 0.5695438],
    "words": [3.553292, 3.433032, 3.424573],
}


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that compares the forms."""
    pytest.importorskip("optax")
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("compare")


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_most_lines_are_the_same(compare: ModuleType, name: str, form: str) -> None:
    lines, differing = compare.count_lines(name, form)
    assert 0 < differing <= compare.LIMIT * lines


def test_lines_are_counted(compare: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text('"""About\nit."""\n\nx = 1\n# a comment\n\n\ndef f():\n    """Nothing."""\n    return """\n\n"""\n')
    assert compare.lines_of(path) == ["x = 1", "def f():", 'return """', '"""']


@pytest.mark.parametrize(("name", "form"), [row for row in FORMS if tables.whole or row[1] == "ftrans"])
def test_losses_are_those_of_torch(compare: ModuleType, name: str, form: str) -> None:
    expected = LOSSES[name]
    losses = compare.losses_of(compare.form_of(name, form), len(expected))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
