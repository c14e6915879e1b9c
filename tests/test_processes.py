"""Several processes that compute together: the same results as one, and no process that waits for ever.

The checks themselves are in `process_checks.py`; most of them run in one pair of processes.
"""

from __future__ import annotations

import os
import re
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
from ftrans import nn
from ftrans.xla.processes import lost

SAME = ["branches", "hand_written_steps", "fitted", "on_a_mesh"]
CHECKS = [
    *SAME, "unequal_seeds", "unequal_models", "unequal_data", "unequal_programs", "unequal_fits", "failing_data",
    "stopped", "divided_cells", "not_finite", "first_alone_writes", "other_shares",
]  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What two processes have found in all checks."""
    return processes.together(CHECKS, limit=400, CHECK_DIRECTORY=str(tmp_path_factory.mktemp("training")))


@pytest.mark.parametrize("name", SAME)
def test_results_are_those_of_one_process(name: str, found: dict[str, list[Any]]) -> None:
    expected = getattr(process_checks, name)()
    for result in found[name]:
        np.testing.assert_allclose(result, expected, rtol=2e-6)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("unequal_seeds", "process 1 has other values than process 0 in weight: float32[1, 6], bias: float32[1]"),
        ("unequal_models", "process 1 has other values than process 0 in weight, bias, but the parts"),
        ("unequal_data", "process 1 has other values than process 0 in argument 1: float32[32, 6]"),
        ("unequal_programs", "process 1 runs another program than process 0 in lambda"),
    ],
)
def test_what_differs_is_named_by_every_process(name: str, said: str, found: dict[str, list[Any]]) -> None:
    for result in found[name]:
        assert said in result
        assert "process_checks.py" in result


def test_trainings_that_differ_are_found_at_the_start(found: dict[str, list[Any]]) -> None:
    for result in found["unequal_fits"]:
        model, size, epochs, code, unequal, undivided, uneven, shorter, settings = result
        assert "weight of the model: other values\n  bias of the model: other values" in model
        assert "the number of batches in data: 4 and 3\n  size of data: 32 and 24" in size
        assert "the number of epochs: 3 and 4" in epochs
        assert "the code of lambda: other values" in code
        assert "different numbers of batches in data: of the next 16, process 0 has 4, process 1 has 3" in unequal
        assert "nothing is divided over the processes" in undivided
        assert "30 samples, which the 4 parts of the axis 'data' of the mesh cannot share evenly" in uneven
        assert "a batch of data has 4 samples in process 0 and 3 in process 1" in shorter
        assert "whether there is a directory: True and False\n  uneven: pad and drop" in settings
    assert "process 1 has failed in data: OSError: the disk is gone" in found["failing_data"][0]
    assert found["failing_data"][1] == "the disk is gone"


def test_batches_must_be_divided_as_the_mesh_says(found: dict[str, list[Any]]) -> None:
    for result in found["other_shares"]:
        assert "one of 2 parts of a batch, but the mesh divides batches over 1 groups of processes" in result


def test_all_processes_stop_at_the_same_step(found: dict[str, list[Any]]) -> None:
    for result in found["stopped"]:
        assert result == ["interrupted", 0, 32, "interrupted", 0, 32, "enough", 2, "early stopping", 2]


def test_cells_are_gathered_only_when_asked_for(found: dict[str, list[Any]]) -> None:
    for shown, total, said, module in found["divided_cells"]:
        assert shown == "Parameter(f32[8,4], divided over the processes by P('data',))"
        assert total == np.arange(32.0).sum()
        assert "weight is divided over the processes" in said
        assert "cell.numpy(gather=True)" in said
        assert module == "Linear(in_features=4, out_features=8, bias=False)"


def test_data_that_are_not_finite_are_found_by_all(found: dict[str, list[Any]]) -> None:
    for result in found["not_finite"]:
        assert "array 0 of the batch holds nan at [5, 0]" in result


def test_one_process_writes_and_all_resume(found: dict[str, list[Any]]) -> None:
    for files, epochs, is_same in found["first_alone_writes"]:
        assert files == ["best.json", "best.safetensors", "curves.png", "last.json", "last.safetensors"]
        assert epochs == 4
        assert all(is_same)


def test_batches_by_process() -> None:
    x = np.arange(20)
    whole = nn.batches(x, batch_size=8, seed=3, shard=(0, 1))
    parts = [nn.batches(x, batch_size=8, seed=3, shard=(i, 2)) for i in range(2)]
    for (expected,), (first,), (second,) in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(np.concatenate([first, second]), expected)
    assert len(parts[0]) == 3
    with pytest.raises(ValueError, match="the last batch, of 3, cannot be divided equally among 2 processes"):
        nn.batches(np.arange(11), batch_size=8, shard=(0, 2))
    with pytest.raises(ValueError, match="batches of 8 cannot be divided equally among 3 processes"):
        nn.batches(x, batch_size=8, shard=(0, 3))
    with pytest.raises(ValueError, match="shard is a pair"):
        nn.batches(x, shard=(2, 2))


def test_a_process_that_hangs_ends_all_after_the_limit() -> None:
    # Both pairs wait at the same time.
    with (
        processes.running(processes.commands(["hangs"]), HANG_TIMEOUT="6") as hanging,
        processes.running(processes.commands(["leaves"]), HANG_TIMEOUT="6") as leaving,
    ):
        ended = processes.wait([*hanging, *leaving], 90)
    hung, left = ended[:2], ended[2:]
    assert "process 1 of 2 ends: it has waited for the next batches of data for 6 seconds" in hung[1].err
    assert "process_checks.py" in hung[1].err
    assert hung[0].code
    assert "process 0 of 2 ends: process 1 hangs, or has left the loop" in left[0].err
    assert "waited for the results of lambda for 6 seconds" in left[0].err
    assert not any([process.code == -signal.SIGKILL for process in ended])


def test_when_the_first_process_dies_jax_ends_the_others() -> None:
    with processes.running(processes.commands(["first_dies"])) as pair:
        first, other = processes.wait(pair, 60)
    assert first.code == -signal.SIGKILL
    assert other.code not in (0, -signal.SIGKILL)
    assert "JAX distributed service" in other.err or "process 0 has ended" in other.err


def test_what_is_said_when_another_process_has_ended() -> None:
    cause = RuntimeError("UNKNOWN: Gloo all-reduce failed: Connection reset by peer")
    error = lost(cause)
    assert error is not None
    assert "another process has ended" in str(error)
    assert "nn.fit(resume=True)" in str(error)
    error.__cause__ = cause
    assert lost(error) is None, "said once"
    assert lost(RuntimeError("RESOURCE_EXHAUSTED: Out of memory")) is None


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
    from ftrans.__main__ import main

    for arguments in (["launch", "-n", "0", "script.py"], ["launch", "script.py"], ["start"]):
        with pytest.raises(SystemExit):
            main(arguments)


def test_the_script_of_the_page_runs_on_two_processes_and_on_one(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "scale.md").read_text()
    [text] = re.findall(r"^```py\n# train.py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    script = tmp_path / "train.py"
    script.write_text(text)
    launched, how = launch("-n", "2", "--devices", "2", str(script))
    lines = []
    for name, command in (("two", launched), ("one", [sys.executable, str(script)])):
        (tmp_path / name).mkdir()
        ended = subprocess.run(command, **how, cwd=tmp_path / name, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, ended.stderr
        # JAX's Gloo prints, too.
        lines += re.findall(r"^(?:\[0\] )?\d\.\d+ \d\.\d+ \d\.\d+$", ended.stdout, re.MULTILINE)
        assert ended.stderr.count("epoch 3/3") == 1
    two, one = lines
    assert two == "[0] " + one
    assert (tmp_path / "two" / "run" / "last.orbax").is_dir()
