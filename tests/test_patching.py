"""Runs the tests of `ft.patch` in a process of their own.

To patch is to look through all objects of the process, and one that has collected the whole suite has millions.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tables

FOLDER = Path(__file__).with_name("patching")


def test_in_a_process_of_its_own() -> None:
    options = ["--all"] if tables.whole else []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(FOLDER)]
    ran = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
