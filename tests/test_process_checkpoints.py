"""Checkpoints of several processes: written by two, read by one, and the other way round."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import process_checks
import processes
import pytest
from training import compiled_once

from ftrans import nn
from ftrans.nn.training.folders import read_folder


@pytest.fixture(scope="module", autouse=True)
def _without_curves() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nn.History, "plot", lambda history, path: None)
        yield


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one process has trained for an epoch."""
    directory = tmp_path_factory.mktemp("checkpoints")
    with compiled_once(directory / "compiled"):
        for form in ("safetensors", "orbax"):
            process_checks.training(directory / form, 1, checkpoint_format=form)
    return directory


@pytest.fixture(scope="module")
def found(directory: Path) -> dict[str, list[Any]]:
    """What two processes have found."""
    return processes.together(["checkpoints", "files"], limit=120, CHECKPOINTS=str(directory))


def test_trainings_go_on_on_another_number_of_processes(found: dict[str, list[Any]], directory: Path) -> None:
    with compiled_once(directory / "compiled"):
        expected = process_checks.training(None, 3)
        for losses in found["checkpoints"]:
            assert isinstance(losses, dict), losses
            for form in ("safetensors", "orbax", "by itself"):
                np.testing.assert_allclose(losses[form], expected[:2], rtol=2e-6)
        for form in ("safetensors", "orbax", "new/folder"):
            np.testing.assert_allclose(process_checks.training(directory / form, 3), expected, rtol=2e-6)


def test_arrays_of_several_processes_are_saved_and_loaded(found: dict[str, list[Any]], directory: Path) -> None:
    for where, kept, is_equal, refused in found["files"]:
        assert (where, kept) == ([None, "data"], ["data"])
        assert is_equal
        assert "parts of weight are in other processes" in refused
        assert "model.state_dict(gather=True)" in refused
    full = np.arange(32).reshape(8, 4)
    for name in ("linear.orbax", "gathered.safetensors"):
        np.testing.assert_array_equal(nn.load(directory / name)["weight"], full)
    assert not (directory / "divided.safetensors").exists()


def test_a_process_that_is_killed_while_all_save_leaves_a_whole_state(tmp_path: Path) -> None:
    with processes.running(processes.commands(["saves_for_ever"]), CHECKPOINTS=str(tmp_path)) as pair:
        watchdog = threading.Timer(60, lambda: [os.killpg(p.pid, signal.SIGKILL) for p in pair])
        watchdog.start()
        assert pair[0].stdout is not None
        saved = (line for line in pair[0].stdout if line == "saved\n")
        for _ in range(3):
            next(saved)
        time.sleep(0.2 * random.random())
        for process in pair:
            process.kill()
        assert [ended.code for ended in processes.wait(pair, 20)] == [-signal.SIGKILL] * 2
        watchdog.cancel()
    arrays, record = read_folder(tmp_path / "killed.orbax")
    assert set(arrays["a"].ravel()) == {record["number"]}
    assert record["number"] >= 2
