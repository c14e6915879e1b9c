"""Checkpoints and files: a training goes on at the identical next step, whatever has interrupted it."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest
from training import Net, X, Y, compiled_once, data, figures, fit, mae, mse, state

import ftrans as ft
from ftrans import nn
from ftrans.nn.training import checkpoints
from ftrans.nn.training.files import read_arrays, write_arrays


@pytest.fixture(autouse=True, scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of other processes; here and there, equal steps of all trainings are compiled once."""
    with compiled_once(tmp_path_factory.mktemp("compiled")) as variables:
        yield {**os.environ, **variables, "PYTHONPATH": os.pathsep.join([str(Path(ft.__file__).parents[1]), *sys.path])}


@pytest.fixture
def without_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning curves are not drawn, which takes longer than these trainings."""
    monkeypatch.setattr(nn.History, "plot", lambda history, path: None)


# Checkpoints


class Stop(Exception):
    """Ends a training as an error would."""


RESUMED: dict[str, Any] = {"epochs": 3, "validation": [(X, Y)], "metrics": [mae]}


def many_batches() -> Any:
    """An epoch of 32 batches, more than figures are fetched at once."""
    return data(batch_size=2)


@functools.cache
def uninterrupted() -> tuple[dict[str, bytes], dict[str, bytes], nn.History]:
    """The model, the optimizer and the history after three epochs."""
    model = Net(p=0.3)
    optimizer = nn.Optimizer(model, optax.adam(1e-2))
    history = fit(model, many_batches(), **{**RESUMED, "optimizer": optimizer})
    return state(model), state(optimizer), history


@pytest.mark.usefixtures("without_curves")
@pytest.mark.parametrize(("step", "how"), [(7, "stop"), (32, "stop"), (53, "stop"), (53, "error")])
def test_resumed_equals_uninterrupted(tmp_path: Path, step: int, how: str) -> None:
    class Interrupt:
        def on_step_end(self, state: nn.FitState) -> None:
            if state.step == step:
                if how == "error":
                    raise Stop
                state.stop()

    adam = {"optimizer": optax.adam(1e-2)}
    try:
        model = Net(p=0.3)
        fit(model, many_batches(), directory=tmp_path, save_every=3, callbacks=[Interrupt()], **RESUMED, **adam)
    except Stop:
        assert how == "error"
    saved_at = json.loads((tmp_path / "last.json").read_text())["step"]
    assert saved_at == (step if how == "stop" else (step - 1) // 3 * 3)

    resumed = Net(p=0.3)
    resumed.rng.value = np.array([1, 2, 3], np.uint32)
    optimizer = nn.Optimizer(resumed, optax.adam(1e-2))
    history = fit(resumed, many_batches(), directory=tmp_path, resume=True, optimizer=optimizer, **RESUMED)
    expected_model, expected_optimizer, expected = uninterrupted()
    assert state(resumed) == expected_model
    assert state(optimizer) == expected_optimizer
    assert figures(history) == figures(expected)
    assert history.steps == expected.steps
    assert history.best is not None
    assert expected.best is not None
    assert history.best["epoch"] == expected.best["epoch"]
    assert history.stopped is None


@pytest.mark.usefixtures("without_curves")
def test_resume_skips_batches_of_other_iterables(tmp_path: Path) -> None:
    batches = list(data(shuffle=False))

    def endless() -> Iterator[Any]:
        while True:
            yield from batches

    for make in (lambda: lambda epoch: iter(batches[epoch - 1 :] + batches[: epoch - 1]), endless):
        options: dict[str, Any] = {"epochs": 3, "steps_per_epoch": 4}
        whole, part, resumed = Net(), Net(), Net()
        fit(whole, make(), **options)
        stop = nn.Callback()
        stop.on_step_end = lambda state: state.step == 7 and state.stop()  # type: ignore[method-assign, assignment]
        fit(part, make(), directory=tmp_path, callbacks=[stop], **options)
        fit(resumed, make(), resume=tmp_path / "last.safetensors", **options)
        assert state(resumed) == state(whole)


@pytest.mark.usefixtures("without_curves")
def test_a_finished_training_goes_on_with_more_epochs(tmp_path: Path) -> None:
    whole, part, resumed = Net(), Net(), Net()
    fit(whole, epochs=4)
    fit(part, epochs=2, directory=tmp_path, resume=True)
    same = fit(resumed, epochs=2, directory=tmp_path, resume=True)
    assert len(same) == 2
    assert len(fit(resumed, epochs=4, directory=tmp_path, resume=True)) == 4
    assert state(resumed) == state(whole)


def test_the_seed_of_batches_is_in_the_checkpoint(tmp_path: Path) -> None:
    batches, other = data(seed=None), data(seed=None)
    fit(Net(), batches, epochs=1, directory=tmp_path)
    fit(Net(), other, epochs=1, directory=tmp_path, resume=True)
    assert other.seed == batches.seed
    np.testing.assert_array_equal(next(iter(other))[0], next(iter(batches))[0])


def test_checkpoints_of_something_else(tmp_path: Path) -> None:
    fit(Net(), epochs=1, directory=tmp_path)
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"optimizer": optax.adam(0.1)}, ["another model or optimizer", "has no @optimizer/", "nu.first"]),
        ({"batches": data(batch_size=8)}, ["batch_size was 16 and is 8"]),
        ({"batches": data(seed=9)}, ["seed was 3 and is 9"]),
    ]
    for options, words in cases:
        with pytest.raises(ValueError, match=r"another|differ from") as found:
            fit(Net(), options.pop("batches", None), directory=tmp_path, resume=True, **options)
        for word in words:
            assert word in str(found.value)
    nn.save(tmp_path / "model.safetensors", Net())
    with pytest.raises(ValueError, match=r"not a checkpoint of nn\.fit"):
        fit(Net(), resume=tmp_path / "model.safetensors")
    arrays, metadata = read_arrays(tmp_path / "last.safetensors")
    record = {**json.loads(metadata["ftrans.fit"]), "version": 99}
    write_arrays(tmp_path / "new.safetensors", arrays, {"ftrans.fit": json.dumps(record)})
    with pytest.raises(ValueError, match="has version 99"):
        fit(Net(), resume=tmp_path / "new.safetensors")


def test_model_of_a_checkpoint_loads_alone(tmp_path: Path) -> None:
    model = Net(p=0.3)
    fit(model, epochs=1, directory=tmp_path)
    loaded = Net()
    loaded.load_state_dict(nn.load(tmp_path / "best.safetensors"))
    np.testing.assert_array_equal(loaded.first.value, model.first.value)
    record = json.loads((tmp_path / "best.json").read_text())
    assert record["version"] == 1
    assert record["step"] == 4
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "best.json", "best.safetensors", "curves.png", "last.json", "last.safetensors",
    ]  # fmt: skip


# Killed


def run_script(code: str, environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    """A Python process that runs some code with what this file defines."""
    text = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom test_nn_checkpoints import *\n"
    return subprocess.Popen(
        [sys.executable, "-c", text + textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_files_survive_a_kill_at_any_moment(tmp_path: Path, environment: dict[str, str]) -> None:
    process = run_script(
        """
        import random, time
        path = sys.argv[1] + "/arrays.safetensors"
        random.seed(0)
        survived = 0
        for attempt in range(25):
            child = os.fork()
            if child == 0:
                while True:
                    survived += 1
                    number = attempt * 1_000_000 + survived
                    write_arrays(path, {"a": np.full(20_000, number), "b": np.full(3, number)}, {"n": str(number)})
            time.sleep(0.002 + 0.03 * random.random())
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            if os.path.exists(path):
                arrays, metadata = read_arrays(path)
                assert set(arrays["a"]) == set(arrays["b"]) == {int(metadata["n"])}
                print(metadata["n"])
        """,
        environment,
        str(tmp_path),
    )
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    numbers = list(map(int, out.split()))
    assert len(numbers) > 10
    assert numbers == sorted(numbers)


SCRIPT = """
import time

# Processes that are started in the background ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
nn.History.plot = lambda history, path: None

class Tell:
    def __init__(self, pause):
        self.pause = pause

    def on_step_end(self, state):
        if state.step == 20:
            print("running", flush=True)
        if state.step > 20:
            time.sleep(self.pause)

def train(directory, pause):
    return fit(Net(p=0.3), epochs=10_000, directory=directory, save_every=1, callbacks=[Tell(pause)])

history = train(sys.argv[1], 0.05)
print(history.stopped, json.loads(open(sys.argv[1] + "/last.json").read())["step"], flush=True)
train(sys.argv[2], 0.0)
"""


@pytest.mark.usefixtures("without_curves")
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_training_survives_ctrl_c_and_a_kill(tmp_path: Path, environment: dict[str, str]) -> None:
    directories = tmp_path / "interrupted", tmp_path / "killed"
    process = run_script(SCRIPT, environment, *map(str, directories))
    # A process that does not stop when it should is an error, and no test without end.
    watchdog = threading.Timer(120, process.kill)
    watchdog.start()
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    # Ctrl-C saves, and `fit` returns.
    reason, step = process.stdout.readline().split()
    assert reason == "interrupted"
    assert int(step) >= 20
    assert process.stdout.readline() == "running\n"
    process.kill()
    process.communicate()
    watchdog.cancel()
    for directory in directories:
        # Both trainings go on from their last checkpoints as if nothing had happened.
        record = json.loads(read_arrays(directory / "last.safetensors")[1]["ftrans.fit"])
        epochs = record["step"] // 4 + 2
        whole, resumed = Net(p=0.3), Net(p=0.3)
        expected = fit(whole, epochs=epochs)
        history = fit(resumed, epochs=epochs, resume=directory)
        assert state(resumed) == state(whole)
        assert figures(history) == figures(expected)


@pytest.fixture
def ctrl_c_is_heard() -> Iterator[None]:
    """The usual handler of Ctrl-C, also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_second_ctrl_c_raises() -> None:
    def press(state: nn.FitState) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(Net(), callbacks=press)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# Not finite


@pytest.mark.usefixtures("without_curves")
@pytest.mark.parametrize("bad_step", [20, 54])
def test_stops_before_the_step_with_the_reason(tmp_path: Path, bad_step: int) -> None:
    batches = [(X[:8], Y[:8])] * 54
    batches[bad_step - 1] = (np.full((8, 3), 50.0, np.float32), Y[:8])
    model, expected = Net(p=0.3), Net(p=0.3)
    expected_history = fit(expected, batches[: bad_step - 1], objective=deep, epochs=1)
    with pytest.raises(ft.debug.AnomalyError) as found:
        fit(model, batches, objective=deep, epochs=1, directory=tmp_path)
    assert state(model) == state(expected)
    assert found.value.kind == "logarithm of a negative number"
    assert found.value.operation == "log"
    assert found.value.line is not None
    assert "np.log(1e4" in found.value.line.text
    note = found.value.__notes__[-1]
    assert f"batch {bad_step} (step {bad_step})" in note
    assert "last.safetensors" in note
    # What was saved is the state before that step: without it the training goes on.
    good = Net(p=0.3)
    history = fit(good, batches[: bad_step - 1], objective=deep, epochs=1, resume=tmp_path)
    assert figures(history) == figures(expected_history)
    assert state(good) == state(expected)


def deep(model: Any, x: Any, y: Any) -> Any:
    """A loss with a logarithm, which is not defined for inputs that are far out."""
    return np.mean(np.log(1e4 - np.sum(x, axis=1) ** 2)) * 1e-3 + mse(model(x), y)


def test_gradients_that_are_not_finite() -> None:
    def objective(model: Any, x: Any, y: Any) -> Any:
        return np.mean(np.sqrt(0 * model(x)))

    model = Net()
    with pytest.raises(ft.debug.AnomalyError, match=r"derivative of `np\.sqrt"):
        fit(model, objective=objective)
    assert all(np.isfinite(p.value).all() for p in model.parameters())
    assert np.isnan(fit(Net(), objective=objective, check_finite=False)["loss"]).all()


def test_data_and_parameters_that_are_not_finite() -> None:
    x = X.copy()
    x[37, 1] = np.inf
    with pytest.raises(FloatingPointError, match=r"array 0 of the batch holds inf at \[5, 1\]") as found:
        fit(Net(), nn.batches(x, Y, batch_size=16, shuffle=False))
    assert "batch 3" in found.value.__notes__[-1]
    model = Net()
    model.first.value = np.full((3, 8), np.nan, np.float32)
    with pytest.raises(FloatingPointError, match="parameter first was not finite"):
        fit(model)


# Files


def test_files_hold_what_was_saved(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    path = tmp_path / "arrays.safetensors"
    names = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64"]
    arrays = {name: np.arange(6).reshape(2, 3).astype(name) for name in names}
    arrays |= {
        "bfloat16": np.linspace(-1, 1, 5).astype(ml_dtypes.bfloat16),
        "number": np.array(2.5),
        "empty": np.zeros((0, 4), np.float32),
        "columns": np.arange(6.0).reshape(2, 3).T,
        "other end": np.arange(3.0).astype(">f8"),
    }
    nn.save(path, arrays)
    found = nn.load(path)
    assert found.keys() == arrays.keys()
    for name, x in arrays.items():
        assert found[name].dtype == x.dtype.newbyteorder("="), name
        np.testing.assert_array_equal(found[name].astype(np.complex128), x.astype(np.complex128))
        found[name][...] = 0


def test_other_libraries_read_and_write_the_files(tmp_path: Path) -> None:
    numpy_files = pytest.importorskip("safetensors.numpy")
    arrays = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(True), "c": np.zeros((0, 2))}
    nn.save(tmp_path / "mine.safetensors", arrays)
    numpy_files.save_file(arrays, tmp_path / "other.safetensors", {"note": "text"})
    for name, read in (("mine", numpy_files.load_file), ("other", nn.load)):
        found = read(tmp_path / f"{name}.safetensors")
        assert found.keys() == arrays.keys()
        for key, x in arrays.items():
            np.testing.assert_array_equal(found[key], x)
            assert found[key].dtype == x.dtype


def test_files_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    files = pytest.importorskip("safetensors.torch")
    layer = torch.nn.Linear(3, 2).to(torch.bfloat16)
    files.save_file(layer.state_dict(), tmp_path / "torch.safetensors")
    found = nn.load(tmp_path / "torch.safetensors")
    assert found["weight"].dtype.name == "bfloat16"
    nn.save(tmp_path / "back.safetensors", layer.state_dict())
    for state_dict in (files.load_file(tmp_path / "back.safetensors"),):
        assert all(torch.equal(x, state_dict[name]) for name, x in layer.state_dict().items())
    nn.save(tmp_path / "arrays.safetensors", found)
    assert torch.equal(files.load_file(tmp_path / "arrays.safetensors")["weight"], layer.weight.detach())


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "arrays.safetensors"
    nn.save(path, Net())
    whole = path.read_bytes()
    for part in (whole[:-1], whole[:20], b"PK" + whole, b""):
        path.write_bytes(part)
        with pytest.raises(ValueError, match=r"not a readable safetensors file: ."):
            nn.load(path)
    with pytest.raises(TypeError, match="complex128"):
        nn.save(path, {"z": np.zeros(2, complex)})
    with pytest.raises(TypeError, match="not list"):
        nn.save(path, [1, 2])  # type: ignore[arg-type]
    assert checkpoints.find(tmp_path / "nothing") is None


def test_dictionaries_of_state_dicts_and_numbers(tmp_path: Path) -> None:
    def parts() -> tuple[Any, Any, Any]:
        nn.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
        optimizer = nn.optim.Adam(model.parameters(), lr=0.1)
        return model, optimizer, nn.optim.lr_scheduler.StepLR(optimizer, 3)

    def train(model: Any, optimizer: Any, scheduler: Any) -> list[float]:
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = (model(ft.autograd.tensor(X[:8, :2])) ** 2).mean()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        return losses

    path, others = tmp_path / "whole.safetensors", {"t": (1, [None, True, {"a": 2.5}]), "inf": np.inf, "é": "ü"}
    first, second = parts(), parts()
    train(*first)
    arrays = {"@y": np.arange(3), "a.b": np.zeros(1), "a": {"b": np.ones(1)}, 5: np.float32(2)}
    nn.save(path, {"parts": [part.state_dict() for part in first], "model": first[0], **others, **arrays})
    found = nn.load(path)
    for part, saved in zip(second, found["parts"], strict=True):
        part.load_state_dict(saved)
    assert train(*first) == train(*second)
    assert {name: found[name] for name in others} == others
    assert [found["@y"].tolist(), found["a.b"].item(), found["a"]["b"].item(), found[5]] == [[0, 1, 2], 0.0, 1.0, 2.0]
    assert set(found["model"]) == set(first[0].state_dict())
    assert "parts.0.0.weight" in read_arrays(path)[0]


def test_what_files_do_not_hold(tmp_path: Path) -> None:
    wrong: list[tuple[Any, str]] = [
        ({"m": {"x": object()}}, r"m\.x is of type object, .* it holds arrays, modules, numbers.*\n  at .*checkpoints"),
        ({"m": {(1, 2): 3}}, r"the dictionary m has the key \(1, 2\)"),
    ]
    for given, message in wrong:
        with pytest.raises(TypeError, match=message):
            nn.save(tmp_path / "x.safetensors", given)
    with pytest.raises(TypeError, match=r"a folder \.orbax holds arrays by name and nothing else"):
        nn.save(tmp_path / "x.orbax", {"epoch": 3})
