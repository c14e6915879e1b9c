"""The examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_nist_regression() -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / "nist_regression.py")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    problems = {path.stem for path in (EXAMPLES / "data" / "nist-strd").glob("*.dat")}
    rows = [line.split() for line in ran.stdout.splitlines() if line.split()[:1] and line.split()[0] in problems]
    assert {row[0] for row in rows} == problems
    for row in rows:
        digits = [float(word) for word in row[1:] if re.fullmatch(r"\d+\.\d+", word)]
        assert digits, row
