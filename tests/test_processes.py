"""Several processes that compute together: the same results as one, and no process that waits for ever.

The checks themselves are in `process_checks.py`; most of them run in one pair of processes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import process_checks
import processes
import pytest

import ftrans as ft

CHECKS = ["branches", "hand_written_steps", "unequal_seeds", "unequal_data", "unequal_programs"]


@pytest.fixture(scope="module")
def found() -> dict[str, list[Any]]:
    """What two processes have found in all checks."""
    return processes.together(CHECKS, limit=120)


@pytest.mark.parametrize("name", ["branches", "hand_written_steps"])
def test_results_are_those_of_one_process(name: str, found: dict[str, list[Any]]) -> None:
    expected = getattr(process_checks, name)()
    for result in found[name]:
        np.testing.assert_allclose(result, expected, rtol=2e-6)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("unequal_seeds", "process 1 has other values than process 0 in weight: float32[1, 6], bias: float32[1]"),
        ("unequal_data", "process 1 has other values than process 0 in argument 1: float32[32, 6]"),
        ("unequal_programs", "process 1 runs another program than process 0 in lambda"),
    ],
)
def test_what_differs_is_named_by_every_process(name: str, said: str, found: dict[str, list[Any]]) -> None:
    for result in found[name]:
        assert said in result
        assert "process_checks.py" in result


def launch(*arguments: str, **more: str) -> tuple[list[str], dict[str, Any]]:
    """The command line of the launcher, and how to run it."""
    return [sys.executable, "-m", "ftrans", "launch", *arguments], {"env": processes.environment(**more)}


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


SCRIPT = """
import os, sys, time
import ftrans as ft
print(*ft.initialize_processes(heartbeat_timeout=5), os.getpid(), *sys.argv[1:])
if sys.argv[1] == "dies":
    import process_checks
    process_checks.dies()
if sys.argv[1] == "waits":
    time.sleep(60)
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_mistakes_in_joining() -> None:
    jax.devices()
    with pytest.raises(RuntimeError, match="at the beginning of the script"):
        ft.initialize_processes()
    with pytest.raises(ValueError, match="takes a text coordinator_address"):
        ft.initialize_processes("127.0.0.1:1234", 2)
    with pytest.raises(ValueError, match="hang_timeout is a number of seconds"):
        ft.initialize_processes(hang_timeout=0)


def test_a_script_that_was_not_launched_runs_as_one_process(script: str) -> None:
    found = subprocess.run(
        [sys.executable, script, "once"], env=processes.environment(), capture_output=True, text=True
    )
    assert found.stdout.startswith("0 1 ")


def test_when_a_process_dies_the_launcher_names_it_and_all_end(script: str) -> None:
    command, how = launch("-n", "2", "--devices", "2", script, "dies", "--flag")
    begun = time.monotonic()
    ended = subprocess.run(command, **how, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 128 + signal.SIGKILL
    assert "ftrans launch: process 1 was ended by SIGKILL" in ended.stderr
    lines = sorted(line.split() for line in ended.stdout.splitlines() if "--flag" in line)
    assert [[*line[:3], *line[4:]] for line in lines] == [
        ["[0]", "0", "2", "dies", "--flag"],
        ["[1]", "1", "2", "dies", "--flag"],
    ]
    assert not any(is_running(int(line[3])) for line in lines)
    began = max(float(line.split()[-1]) for line in ended.stdout.splitlines() if "begun" in line)
    assert time.monotonic() - max(began, begun) < 15


def test_the_launcher_hands_signals_on_and_its_end_ends_the_processes(script: str) -> None:
    command, how = launch("-n", "2", script, "waits")
    with subprocess.Popen(command, **how, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as launched:
        assert launched.stdout is not None
        found = [int(launched.stdout.readline().split()[3]) for _ in range(2)]
        launched.send_signal(signal.SIGTERM)
        assert launched.wait(20) == 128 + signal.SIGTERM
    assert not any(map(is_running, found))


def test_wrong_command_lines() -> None:
    from ftrans.launching import main

    for arguments in (["launch", "-n", "0", "script.py"], ["launch", "script.py"], ["start"]):
        with pytest.raises(SystemExit):
            main(arguments)
