"""What Windows and macOS do not have, or do otherwise: names of files, encodings, and parts of Python's library."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = [path.relative_to(ROOT) for path in (ROOT / "ftrans").rglob("*") if "__pycache__" not in path.parts]
SOURCES = [path for path in PACKAGE if path.suffix == ".py"]
# Devices of DOS, which no file may be called, whatever its suffix.
DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)

# Runs before ftrans is imported, but after NumPy and JAX, which know their systems.
WITHOUT = """
import ctypes, os, signal, sys
import jax, multiprocessing.connection, numpy, optree, scipy.stats, subprocess, threading
for name in ("register_at_fork", "fork", "sysconf", "sched_getaffinity", "getuid", "uname", "setsid", "killpg", "nice"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGCHLD", "SIGPIPE", "setitimer", "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)
for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty"):
    sys.modules[name] = None
libraries = ctypes.CDLL
ctypes.CDLL = lambda name, *more: libraries(name + "", *more)
"""
USE = """
import importlib, pkgutil, ftrans as ft, numpy as np
from ftrans import nn
names = [module.name for module in pkgutil.walk_packages(ft.__path__, "ftrans.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
f = lambda x: np.sum(np.sin(x) ** 2)
x = np.linspace(0.0, 1.0, 5)
assert np.allclose(ft.grad(f)(x), np.sin(2 * x)) and np.allclose(ft.jit(ft.grad(f))(x), np.sin(2 * x))
assert ft.keep_memory() is False
batches = nn.batches(np.ones((8, 3)), np.ones((8, 1)), batch_size=4)
nn.fit(nn.Linear(3, 1), batches, loss=nn.functional.mse_loss, progress=False)
print(len(names))
"""


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    told = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, *command], env=told, capture_output=True, text=True, encoding="utf-8", cwd=ROOT
    )


def test_files_can_have_their_names_everywhere():
    assert len({str(path).lower() for path in PACKAGE}) == len(PACKAGE)
    for path in PACKAGE:
        assert str(path).isascii()
        assert not re.search(r'[<>:"|?*\x00-\x1f]|[ .]$', path.name), path
        assert not any(DEVICES.fullmatch(part) for part in path.parts), path


def test_files_of_text_say_their_encoding():
    """By default it is another one on Windows."""
    calls = [(path, node) for path in SOURCES for node in ast.walk(ast.parse((ROOT / path).read_bytes()))]
    opened = [(path, node) for path, node in calls if isinstance(node, ast.Call) and is_text(node)]
    assert len(opened) > 3
    silent = [f"{path}:{call.lineno}" for path, call in opened if "encoding" not in {k.arg for k in call.keywords}]
    assert silent == []


def is_text(call: ast.Call) -> bool:
    """Whether a call opens, reads or writes a file of text."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in ("read_text", "write_text")
    if isinstance(call.func, ast.Name) and call.func.id == "open":
        mode = call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], ast.Constant) else ""
        return "b" not in mode
    return False


def test_the_library_needs_nothing_that_only_unix_has():
    ended = run("-c", WITHOUT + USE)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 400


def test_a_program_is_printed_where_its_name_cannot_be_encoded(tmp_path):
    """As where output goes to a file on Windows."""
    (tmp_path / "model.py").write_text("def λ(x):\n    return x * 2\n", encoding="utf-8")
    ended = run("-m", "ftrans", "trace", f"{tmp_path / 'model.py'}:λ", "--args", "1.0", PYTHONIOENCODING="cp1252")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("\\u03bb(a: f64[]) -> f64[]:")


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", "●"), ("cp1252", "\\u25cf")])
def test_what_a_launched_script_prints_comes_through(tmp_path, encoding, shown):
    (tmp_path / "script.py").write_text("print('●')\n", encoding="utf-8")
    ended = run("-m", "ftrans", "launch", "-n", "1", str(tmp_path / "script.py"), PYTHONIOENCODING=encoding)
    assert (ended.returncode, ended.stdout) == (0, f"[0] {shown}\n"), ended.stderr
