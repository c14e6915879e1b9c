"""The examples run, and reach what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_nist_regression() -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / "nist_regression.py")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    problems = {path.stem for path in (EXAMPLES / "data" / "nist-strd").glob("*.dat")}
    rows = {words[0]: words[1:] for line in ran.stdout.splitlines() if (words := line.split()) and words[0] in problems}
    assert rows.keys() == problems
    for problem, (_, parameters, standard_errors, residuals, *_) in rows.items():
        for digits in (parameters, standard_errors, residuals):
            assert float(digits) >= 9, f"{problem}: {digits} digits"
    assert "grad(rss)(" in ran.stdout


def test_custom_functions() -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / "custom_functions.py")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(ran.stdout.splitlines()) == 10
