"""What is built for others to install, and what the files beside it say."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import wheel

import ftrans as ft

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FILES = [
    p.relative_to(ROOT).as_posix() for p in (ROOT / "ftrans").rglob("*") if p.is_file() and "pycache" not in str(p)
]
INFO = f"ftrans-{ft.__version__}.dist-info/METADATA"


def test_a_wheel_has_the_library_and_nothing_else():
    assert wheel.faults_of_wheel([*FILES, INFO]) == []
    assert wheel.faults_of_wheel([*FILES, INFO, "tests/test_jit.py"]) == ["not of the library: tests/test_jit.py"]
    without = [name for name in FILES if name != "ftrans/py.typed"]
    assert wheel.faults_of_wheel([*without, INFO]) == ["missing: ftrans/py.typed"]


def test_an_sdist_has_the_project():
    names = ["pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "ftrans/py.typed", "tests/wheel.py"]
    assert wheel.faults_of_sdist([f"ftrans-1/{name}" for name in names]) == []
    assert wheel.faults_of_sdist([f"ftrans-1/{name}" for name in names[1:]]) == ["missing: pyproject.toml"]
    assert all((ROOT / name).exists() for name in names)


def test_the_version_stands_in_one_place():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "ftrans/base/version.py"
    assert f"version: {ft.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^## \[(Unreleased|{re.escape(ft.__version__)})\]", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_the_changelog_has_the_form_of_keep_a_changelog():
    kinds = re.findall(r"^### (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert kinds
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize("name", ["bug", "wrong_derivative", "feature"])
def test_issue_templates_ask_for_what_is_needed(name):
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text()
    assert re.match(r"name: .+\ndescription: .+\n", text)
    assert "\nbody:\n" in text
    if name != "feature":
        assert "python -m ftrans doctor" in text


def test_an_import_brings_little_beside_numpy():
    program = "import numpy, sys; before = set(sys.modules); import ftrans; print(*set(sys.modules) - before)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    others = {name.split(".")[0] for name in found.stdout.split()} - {"ftrans", "numpy"}
    # Each takes milliseconds, and some bring dozens of modules.
    assert others.isdisjoint(
        {"jax", "scipy", "optree", "json", "pathlib", "hashlib", "concurrent", "logging", "urllib", "signal"}
    )


def test_an_import_leaves_the_collector_as_it_was():
    for before, after in (("pass", True), ("gc.disable()", False)):
        program = f"import gc; {before}; import ftrans; print(gc.isenabled())"
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
        assert found.stdout.strip() == str(after)


def test_an_import_is_not_walked_through_by_the_collector():
    """Nor in the line after it; objects that somebody has frozen before stay frozen."""
    noting = "import gc, numpy; gc.collect(); ran = []; gc.callbacks.append(lambda phase, about: ran.append(about))"
    program = f"{noting}; import ftrans; print(len(ran), gc.get_freeze_count())"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.split() == ["0", "0"]
    # Some of them are gone by then.
    program = "import gc; gc.freeze(); n = gc.get_freeze_count(); import ftrans; print(gc.get_freeze_count() > n // 2)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.split() == ["True"]


def test_a_first_gradient_brings_nothing_for_compiled_programs():
    program = (
        "import sys, numpy as np, ftrans as ft; ft.grad(lambda x: np.sum(np.sin(x) * x))(np.ones(3));"
        " print(*(name for name in sys.modules if name.startswith('ftrans.')))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(found.stdout.split()).isdisjoint(
        {"ftrans.xla.execute", "ftrans.xla.processes", "ftrans.control.extrema.by_index", "ftrans.nn", "ftrans.scipy"}
    )
