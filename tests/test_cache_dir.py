"""Compiled programs on disk: kept from one process to the next, checked, and without a trace in JAX's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import ftrans as ft
from ftrans.xla import on_disk

FOLDER, SECONDS = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
X = np.linspace(0.0, 1.0, 6)


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All programs are kept, however fast they compile; nothing is, afterwards."""
    monkeypatch.setattr(on_disk, "_SHORTEST", 0.0)
    before = {name: getattr(jax.config, name) for name in (FOLDER, SECONDS)}
    yield
    ft.set_cache_dir(None)
    assert {name: getattr(jax.config, name) for name in (FOLDER, SECONDS)} == before


def gradient_of_new() -> Any:
    """The gradient of a function, as a new process would compute it."""
    jax.clear_caches()

    def cubes(x: Any) -> Any:
        return np.sum(np.tanh(x) ** 3)

    return ft.jit(ft.grad(cubes))(X)


EXPECTED = 3 * np.tanh(X) ** 2 / np.cosh(X) ** 2


def entries(folder: Path) -> list[Path]:
    """The files of gradients in a folder."""
    return sorted(folder.glob("jit_*cubes*"))


def test_programs_are_kept_and_found(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    ft.set_cache_dir(folder)
    np.testing.assert_allclose(gradient_of_new(), EXPECTED)
    (kept,) = entries(folder)
    written = kept.stat().st_mtime_ns
    np.testing.assert_allclose(gradient_of_new(), EXPECTED)
    assert [p.stat().st_mtime_ns for p in entries(folder)] == [written]
    ft.set_cache_dir(None)
    kept.unlink()
    gradient_of_new()
    assert entries(folder) == []


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def scrambled(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [truncated, scrambled, lambda content: b""])
def test_damaged_files_are_compiled_again_with_a_note(tmp_path: Path, damage: Any) -> None:
    ft.set_cache_dir(tmp_path)
    gradient_of_new()
    (kept,) = entries(tmp_path)
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    # A process that was killed has left half a line in the list of checksums.
    with open(tmp_path / "ftrans-checksums", "a") as file:
        file.write(f"{kept.name} 12")
    ft.set_cache_dir(None)
    with pytest.warns(RuntimeWarning, match=rf"{kept.name} is damaged, and was removed"):
        ft.set_cache_dir(tmp_path)
    np.testing.assert_allclose(gradient_of_new(), EXPECTED)
    ft.set_cache_dir(None)
    ft.set_cache_dir(tmp_path)
    assert entries(tmp_path) == [kept]
    # It is read: where it is damaged while it is in use, JAX says so.
    kept.write_bytes(truncated(kept.read_bytes()))
    with pytest.warns(UserWarning, match="Error reading persistent compilation cache entry"):
        np.testing.assert_allclose(gradient_of_new(), EXPECTED)


def test_functions_on_the_host_are_those_of_the_process(tmp_path: Path) -> None:
    """JAX 0.10 keeps no programs that call them; newer versions give what they read the functions of the process."""
    import scipy.special

    ft.set_cache_dir(tmp_path)
    for bessel in (scipy.special.kv, scipy.special.yv):
        jax.clear_caches()

        def cubes_on_host(x: Any) -> Any:
            return np.sum(bessel(1.5, x) ** 3)  # noqa: B023 - it is called in this turn of the loop

        assert ft.jit(cubes_on_host)(X + 1) == pytest.approx(cubes_on_host(X + 1))
    assert len(entries(tmp_path)) == (0 if jax.__version_info__ < (0, 11) else 1)


def test_settings_of_the_user_stay(tmp_path: Path) -> None:
    before = getattr(jax.config, SECONDS)
    try:
        jax.config.update(SECONDS, 7.0)
        ft.set_cache_dir(tmp_path / "ours")
        assert getattr(jax.config, SECONDS) == 7.0
        # What the user sets later stays as well.
        jax.config.update(FOLDER, str(tmp_path / "theirs"))
        with pytest.raises(
            ValueError, match=r"JAX has been told to keep compiled programs in '.*theirs'.*\n.*test_cac"
        ):
            ft.set_cache_dir(tmp_path / "ours")
        ft.set_cache_dir(None)
        assert getattr(jax.config, FOLDER) == str(tmp_path / "theirs")
    finally:
        jax.config.update(SECONDS, before)
        jax.config.update(FOLDER, None)


def test_folders_that_cannot_be(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for path in (file, file / "below"):
        with pytest.raises(ValueError, match=r"cannot be kept in '.*file.*': .*\n.*test_cache_dir"):
            ft.set_cache_dir(path)
    with pytest.raises(TypeError, match="set_cache_dir takes the path of a folder, or None"):
        ft.set_cache_dir(3)  # type: ignore[arg-type]


SCRIPT = """
import numpy as np, ftrans as ft, sys
def cubes(x):
    for _ in range(8):
        x = np.sin(x) @ x + np.tanh(x)
    return np.sum(x ** 3)
assert "jax" not in sys.modules
value = ft.jit(ft.grad(cubes))(np.linspace(0, 0.01, 64).reshape(8, 8))
import jax
print(value.sum().hex(), jax.config.jax_compilation_cache_dir, flush=True)
"""


def test_two_processes_at_once(tmp_path: Path) -> None:
    environment = {
        **{name: x for name, x in os.environ.items() if not name.startswith("JAX_COMPILATION")},
        "PYTHONPATH": os.pathsep.join([str(Path(ft.__file__).parents[1]), *sys.path]),
        "FTRANS_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, "-c", SCRIPT]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    answers = set()
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        answers.add(out)
    assert len(answers) == 1
    assert answers.pop().split()[1] == str(tmp_path)
    assert len(entries(tmp_path)) == 1
