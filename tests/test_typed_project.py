"""The scripts of tests/typed_project, which are written for strict type checkers: mypy reads them in `make lint`."""

import importlib.util
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ftrans as ft

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
