"""The command line: `python -m ftrans doctor` and `trace`; `launch` is tested with processes."""

import importlib
import json
import os
import signal

import numpy as np
import pytest

import ftrans as ft
from ftrans.__main__ import main
from ftrans.api import allocator
from ftrans.base import memory_size
from ftrans.commands import doctor, launching, showing

MODEL = """
import numpy as np

def loss(x, scale=1.0):
    return np.sum(scale * np.sin(x) ** 2)

class Model:
    def energy(x):
        return x @ x

size = 3

def wrong(x):
    return unknown * x
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model_of_user.py"
    path.write_text(MODEL)
    (tmp_path / "wrong.py").write_text("def f(x) return x")
    (tmp_path / "imports.py").write_text("import no_such")
    return str(path)


@pytest.fixture(scope="module")
def report():
    return doctor.report()


def test_doctor_says_what_is_there(report):
    assert report["versions"]["ftrans"] == ft.__version__
    assert report["versions"]["numpy"] == np.__version__
    assert report["machine"]["usable processors"] >= 1
    assert report["devices"]["devices"]
    assert report["check"]["gradients are right"]
    assert json.loads(json.dumps(report)) == report
    assert report["machine"]["threads of NumPy's BLAS"] >= 1
    assert "gradients are right       yes" in doctor.section("check", report["check"])
    assert "XLA_FLAGS                 not set" in doctor.section("settings", {})
    assert "torch                     not installed" in doctor.section("versions", {"torch": None})


def test_doctor_as_a_command(report, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "parts", report.items)
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == report
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        *("versions", "machine", "settings", "cache", "devices", "check", "what is wrong or slow, and what to write")
    ]
    wrong = report | {"check": {"gradients are right": False}}
    monkeypatch.setattr(doctor, "parts", wrong.items)
    assert main(["doctor"]) == 1


def test_doctor_prints_before_it_starts_xla(monkeypatch, capsys):
    def ends():
        raise SystemExit(3)

    monkeypatch.setitem(doctor._PARTS, "devices", ends)
    with pytest.raises(SystemExit):
        main(["doctor"])
    assert "settings\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("part", "change", "finding", "write"),
    [
        ("settings", {"JAX_DISABLE_JIT": "1"}, "nothing is compiled", "unset JAX_DISABLE_JIT"),
        ("settings", {"XLA_FLAGS": "--xla_dump_to=/tmp/x"}, "is written to a file", "XLA_FLAGS"),
        ("settings", {"OMP_NUM_THREADS": "1"}, "1 of 4 processors", "unset OMP_NUM_THREADS"),
        ("cache", {"folder": None}, "compiles anew", "FTRANS_CACHE_DIR"),
        ("cache", {"folder": "/full", "writable": False}, "/full cannot be written to", "FTRANS_CACHE_DIR"),
        ("devices", {"error": "ImportError: no such file"}, "no such file", "pip install"),
        ("check", {"error": "ValueError: it fails"}, "cannot be compiled: ValueError: it fails", "pip install"),
    ],
)  # fmt: skip
def test_doctor_says_what_is_slow(report, part, change, finding, write):
    plain = report | {"settings": {}, "machine": report["machine"] | {"usable processors": 4}}
    advice = doctor._advice(plain | {part: plain[part] | change})
    assert any(finding in a.finding and write in a.write for a in advice), advice


def test_doctor_names_the_setting_that_is_wrong(report):
    wrong = report | {"settings": {"JAX_PLATFORMS": "gpux"}, "devices": report["devices"] | {"error": "no gpux"}}
    first = doctor._advice(wrong)[0]
    assert first == ("JAX does not start with JAX_PLATFORMS=gpux: no gpux", "unset JAX_PLATFORMS")
    error = "ValueError: compiled programs cannot be kept in '/full'"
    wrong = report | {"cache": report["cache"] | {"folder": "/full"}, "check": report["check"] | {"error": error}}
    assert doctor._advice(wrong)[0] == (f"nothing can be compiled: {error}", "choose another FTRANS_CACHE_DIR")


def test_doctor_finds_a_gpu_that_is_not_used(report, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: "/usr/bin/nvidia-smi")
    cpu = report | {"devices": {"backend": "cpu", "devices": [], "error": None}}
    assert any("a GPU that JAX does not use" in a.finding for a in doctor._advice(cpu))


def test_systems_that_do_not_say_what_linux_says(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert doctor.processors() == os.cpu_count()
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert memory_size.memory_of_machine() is None


def test_systems_without_glibc_and_without_sigkill(monkeypatch):
    def no_library(name):
        raise TypeError("bad argument type for built-in operation")

    monkeypatch.setattr(allocator.ctypes, "CDLL", no_library)
    assert ft.keep_memory() is False
    with monkeypatch.context() as patched:
        patched.delattr(signal, "SIGKILL", raising=False)
        patched.setattr(os, "name", "nt")
        assert importlib.reload(launching)._LAST_SIGNAL == signal.SIGTERM
        assert launching.PARENT not in launching._environment("127.0.0.1:1", 2, 0, None)
    importlib.reload(launching)


def test_trace_prints_a_program(model, capsys):
    assert main(["trace", f"{model}:loss", "--args", "f64[3]", "2.0"]) == 0
    assert "sin" in capsys.readouterr().out
    assert main(["trace", f"{model}:loss", "--transform", "grad", "--args", "np.arange(3.0)"]) == 0
    assert capsys.readouterr().out.startswith("grad(loss)(a: f64[3])")
    assert main(["trace", f"{model}:Model.energy", "--args", "f32[2]"]) == 0
    assert "f32[2]" in capsys.readouterr().out
    assert main(["trace", "numpy:sin", "--args", "1.0"]) == 0


def test_trace_draws_a_program(model, tmp_path, capsys):
    file = tmp_path / "program.dot"
    assert main(["trace", f"{model}:loss", "--args", "f64[3]", "--svg", str(file)]) == 0
    assert str(file) in capsys.readouterr().out
    assert file.read_text().startswith("digraph")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["loss"], "write module:function or file.py:function"),
        (["MODEL:los"], "there is loss"),
        (["MODEL:size"], "is no function, but of the class int"),
        (["nowhere.py:f"], "there is no file nowhere.py"),
        (["no_such_module:f"], "no_such_module.py:f"),
        (["MODEL:loss", "--args", "f64["], "a type such as f64[3]"),
        (["MODEL:loss", "--args", "f7[3]"], "there is no type f7"),
        (["MODEL:loss", "--args", "'text'"], "text"),
        (["MODEL:loss"], "--args gives it arguments"),
        (["MODEL:Model"], "is a class"),
        (["MODEL:wrong", "--args", "2.0"], "model_of_user.py:14: return unknown * x"),
        (["WRONG:f"], "wrong.py cannot be imported: SyntaxError: expected ':' (wrong.py, line 1)"),
        (["IMPORTS:f"], "imports.py cannot be imported: ModuleNotFoundError: No module named 'no_such'\n  at "),
    ],
)
def test_trace_says_what_is_wrong(model, arguments, message, capsys):
    folder = os.path.dirname(model)
    target = arguments[0].replace("MODEL", model)
    target = target.replace("WRONG", f"{folder}/wrong.py").replace("IMPORTS", f"{folder}/imports.py")
    given = [target, *arguments[1:]]
    assert main(["trace", *given]) in (1, 2)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("text", "value"), [("2.5", 2.5), ("f64[]", np.ones(())), ("i64[2,3]", np.ones((2, 3), int))])
def test_arguments_of_a_command_line(text, value):
    found = showing.value_of(text)
    assert np.array_equal(found, value)
    assert np.asarray(found).dtype == np.asarray(value).dtype
