"""The scripts of tests/typed_project, which are for strict type checkers: mypy and pyright read them in `make lint`."""

import ast
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import ftrans as ft
from ftrans.autograd import Tensor
from ftrans.autograd.torch_functions import CONSTANTS, DTYPES, FUNCTIONS
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
    declared = {name for name in _declared(folder / "declarations.pyi") if name.startswith("__") or name[0] != "_"}
    assert not [name for name in declared if not hasattr(Tensor, name)]
    public = {name for name in dir(Tensor) if not name.startswith("_") and hasattr(Tensor, name)}
    missing = public - declared - _declared(folder / "tensor.py") - set(Tensor.__slots__) - set(dir(Eager))
    assert not missing, f"add to declarations.pyi: {sorted(missing)}"


def test_type_checkers_know_the_functions_of_tensors():
    declared = ast.parse((Path(ft.__file__).parent / "autograd/torch_names.pyi").read_text()).body
    (exported,) = (
        ast.literal_eval(node.value) for node in declared if isinstance(node, ast.AnnAssign) and node.value is not None
    )
    elsewhere = {"autograd", "bfloat16", "distributions", "nn", "optim", "utils"}
    assert set(exported) == {*FUNCTIONS, *DTYPES, *CONSTANTS} | elsewhere


def test_type_checkers_know_all_layers():
    files = (vars(ft.nn.layers)[path.stem] for path in Path(ft.nn.layers.__file__).parent.glob("[a-z]*.py"))
    assert {name for file in files for name in getattr(file, "__all__", ())} == {*ft.nn.layers.__all__}
