"""The scripts of tests/typed_project, which are written for strict type checkers: mypy reads them in `make lint`."""

import ast
import importlib.util
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ftrans as ft
from ftrans.autograd import Tensor
from ftrans.base.cell import Eager

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "tests/typed_project").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_run(script):
    runpy.run_path(str(script), run_name="__main__")


def test_mypy_reads_them_strictly():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert "tests/typed_project" in settings["files"]
    (strict,) = (o for o in settings["overrides"] if "ftrans.core.*" in o["module"])
    assert {script.stem for script in SCRIPTS} <= set(strict["module"])


def test_type_checkers_find_the_types():
    assert (Path(ft.__file__).parent / "py.typed").exists()


@pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None, reason="pyright, which needs Node.js, is not installed"
)
def test_pyright():
    found = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *map(str, SCRIPTS)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", ft.__version__)


def _declared(file):
    """The names in the body of the last class of a file."""
    body = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef)][-1].body
    names = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    names |= {x.id for node in body if isinstance(node, ast.Assign) for x in node.targets if isinstance(x, ast.Name)}
    return names | {node.target.id for node in body if isinstance(node, ast.AnnAssign)}


def test_type_checkers_know_all_that_tensors_can_do():
    folder = Path(ft.__file__).parent / "autograd"
    private = {"_operation", "_negation", "_method", "_whole", "_answer", "_parts", "_mixed"}
    declared = _declared(folder / "declarations.pyi") - private
    assert not [name for name in declared if not hasattr(Tensor, name)]
    public = {name for name in dir(Tensor) if not name.startswith("_") and hasattr(Tensor, name)}
    missing = public - declared - _declared(folder / "tensor.py") - set(Tensor.__slots__) - set(dir(Eager))
    assert not missing, f"add to declarations.pyi: {sorted(missing)}"
