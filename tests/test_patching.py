"""Runs the tests of `ft.patch` in processes of their own.

To patch is to look through all objects of the process, and one that has collected the whole suite has millions.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tables


@pytest.mark.parametrize("file", sorted(Path(__file__).with_name("patching").glob("test_*.py")), ids=lambda p: p.stem)
def test_in_a_process_of_its_own(file: Path) -> None:
    options = ["--all"] if tables.whole else []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(file)]
    ran = subprocess.run(command, cwd=file.parents[2], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
