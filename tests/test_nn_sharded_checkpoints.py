"""Checkpoints of models on a mesh: they are read to where the model is, on any number of devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest
import tables
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from training import Net, compiled_once, fit, state

import ftrans as ft
from ftrans import nn
from ftrans.nn.training import checkpoints
from ftrans.nn.training.folders import latest_in

FORMATS = ["safetensors", "orbax"]
MESHES: dict[str, Any] = {
    "8": (((8,), ("data",)), {"first": (None, "data"), "second": ("data",)}),
    "2x4": (((2, 4), ("data", "model")), {"first": (None, ("data", "model")), "second": ("model", "data")}),
}


@pytest.fixture(autouse=True, scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Equal steps of all trainings are compiled once."""
    with compiled_once(tmp_path_factory.mktemp("compiled")):
        yield


@pytest.fixture
def without_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning curves are not drawn, which takes longer than these trainings."""
    monkeypatch.setattr(nn.History, "plot", lambda history, path: None)


def place_on(model: Any, mesh: str) -> Any:
    """Divide the parameters of a `Net` over a mesh; "1" is no mesh."""
    if mesh != "1":
        (shape, names), specs = MESHES[mesh]
        devices = Mesh(np.array(jax.devices()).reshape(shape), names)
        for name, spec in specs.items():
            cell = getattr(model, name)
            cell.value = jax.device_put(cell.value, NamedSharding(devices, PartitionSpec(*spec)))
    return model


@pytest.mark.usefixtures("without_curves")
@pytest.mark.parametrize("form", FORMATS)
def test_a_training_goes_on_on_other_devices(tmp_path: Path, form: str) -> None:
    expected = fit(Net(p=0.3), epochs=4)["loss"]
    for epochs, mesh in enumerate(("8", "2x4", "1", "8"), 1):
        model = place_on(Net(p=0.3), mesh)
        optimizer = nn.Optimizer(model, optax.sgd(0.05, momentum=0.9))
        cells = {path: cell for module in (model, optimizer) for path, cell in module.named_cells()}
        before = {path: cell.sharding for path, cell in cells.items()}
        history = fit(
            model, epochs=epochs, optimizer=optimizer, directory=tmp_path, resume=True, checkpoint_format=form
        )
        np.testing.assert_allclose(history["loss"], expected[:epochs], rtol=1e-6)
        assert all(before[path] in (None, cell.array.sharding) for path, cell in cells.items())
    suffix = checkpoints.FORMATS[form]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        name + end for name in ("best", "last") for end in (suffix, ".json")
    )
    record = json.loads((tmp_path / "last.json").read_text())
    assert record["step"] == 16
    assert record["history"]["epochs"][0]["loss"] == history["loss"][0]


@pytest.mark.usefixtures("without_curves")
def test_the_newest_checkpoint_counts_whatever_its_form(tmp_path: Path) -> None:
    def written(form: str, epochs: int) -> Path:
        fit(Net(), epochs=epochs, directory=tmp_path, checkpoint_format=form)
        found = checkpoints.find(tmp_path)
        assert found is not None
        return found

    assert written("safetensors", 2).name == "last.safetensors"
    file = tmp_path / "last.safetensors"
    kept = file.read_bytes()
    assert written("orbax", 1).name == "last.orbax"
    assert not file.exists()
    # As if the process had been killed before it removed the older one.
    file.write_bytes(kept)
    os.utime(file, (1, 1))
    assert checkpoints.find(tmp_path / "last.json") == tmp_path / "last.orbax"
    assert len(fit(Net(), epochs=1, directory=tmp_path, resume=True, checkpoint_format="orbax")) == 1
    file.write_bytes(kept)
    assert len(fit(Net(), epochs=1, directory=tmp_path, resume=True, restore_best=True)) == 2
    assert written("orbax", 1).name == "last.orbax"
    assert written("safetensors", 1).name == "last.safetensors"
    assert not (tmp_path / "last.orbax").exists()


# Files and folders


@pytest.mark.parametrize("form", FORMATS)
def test_arrays_are_read_to_where_the_model_is(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"model{checkpoints.FORMATS[form]}"
    saved = place_on(Net(), "8")
    nn.save(path, saved)
    model = place_on(Net(), "2x4")
    for cell in model.parameters():
        cell.value = np.zeros(cell.shape, np.float32)
    before = {path: cell.sharding for path, cell in model.named_cells()}
    found = nn.load(path, like=model)
    assert {path: x.sharding for path, x in found.items()} == {path: before[path] for path in ("first", "second")}
    model.load_state_dict(found)
    # What was loaded is a copy, which a step that donates the arrays of the model leaves alone.
    model.first.array.delete()
    model.load_state_dict(found)
    assert {path: cell.sharding for path, cell in model.named_cells()} == before
    assert state(model) == state(saved)
    # Without a model: arrays of NumPy, which a model on a mesh takes, too.
    plain = nn.load(path)
    assert {type(x) for x in plain.values()} == {np.ndarray}
    model.load_state_dict(plain)
    assert {path: cell.sharding for path, cell in model.named_cells()} == before
    model.load_state_dict(saved.state_dict(gather=True))
    assert state(model) == state(saved)


def test_folders_hold_what_was_saved(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    names = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
    arrays: dict[str, Any] = {name: np.arange(6).reshape(2, 3).astype(name) for name in names}
    arrays |= {
        "bfloat16": np.linspace(-1, 1, 5).astype(ml_dtypes.bfloat16),
        "a.number/with a slash": np.array(2.5),
        "empty": np.zeros((0, 4), np.float32),
        "columns": np.arange(6.0).reshape(2, 3).T,
        "parameter": nn.Parameter(np.arange(3.0)),
    }
    with jax.enable_x64(True):
        mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
        arrays["wide"] = jax.device_put(np.arange(8) / 3, NamedSharding(mesh, PartitionSpec("data")))
    path = tmp_path / "arrays.orbax"
    for given in ({"old": np.zeros(3)}, arrays):
        nn.save(path, given)
    found = nn.load(path)
    assert found.keys() == arrays.keys()
    for name, given in arrays.items():
        x = np.asarray(given.value if isinstance(given, nn.Parameter) else given)
        assert found[name].dtype == x.dtype, name
        np.testing.assert_array_equal(found[name], x)
        found[name][...] = 0
    holder = nn.Module()
    holder.wide = nn.Buffer(arrays["wide"])
    assert nn.load(path, like=holder)["wide"].dtype == np.float64
    nn.save(path, {})
    assert nn.load(path) == {}


# Where one array is damaged, orbax closes its event loop while TensorStore still reads others.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_damaged_and_missing_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.orbax"
    for missing in (path, tmp_path / "model.safetensors"):
        with pytest.raises(FileNotFoundError, match=rf"there is nothing at '.*{missing.name}'\n.*test_nn_sharded"):
            nn.load(missing)
    path.write_text("")
    for call in (lambda: nn.load(path), lambda: nn.save(path, Net())):
        with pytest.raises(ValueError, match=r"model\.orbax is not a readable folder of orbax: it is a file"):
            call()
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match=r"model\.orbax is not a readable folder of orbax: .*no complete"):
        nn.load(path)
    with pytest.raises(ValueError, match=r"no complete state, but model\.orbax: give the path"):
        nn.load(tmp_path)
    with pytest.raises(TypeError, match=r"name holds an array of numbers, but was given an array of dtype <U4"):
        nn.save(path, {"name": np.array("text")})
    nn.save(path, Net())
    folder, errors = latest_in(path), []
    assert folder is not None
    for file in sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size > 20):
        whole = file.read_bytes()
        for part in (whole[: len(whole) // 2], None):
            if part is None:
                file.unlink()
            else:
                file.write_bytes(part)
            try:
                # Not all files are needed.
                found = nn.load(path)
            except ValueError as error:
                errors.append(str(error))
            else:
                np.testing.assert_array_equal(found["first"], Net().first.value)
        file.write_bytes(whole)
    assert len(errors) > 5
    assert all("model.orbax is not a readable folder of orbax: " in error for error in errors)
    fit_like = place_on(nn.Linear(8, 8), "1")
    with pytest.raises(ValueError, match=r"missing: weight, bias"):
        fit_like.load_state_dict(nn.load(path, like=fit_like))
    with pytest.raises(TypeError, match=r"like= of nn\.load is a module"):
        nn.load(path, like={})  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "orbax.checkpoint", None)
    with pytest.raises(ImportError, match=r"pip install 'ftrans\[scale\]'"):
        nn.save(path, Net())
    with pytest.raises(ImportError, match=r"pip install 'ftrans\[scale\]'"):
        nn.load(path)


@pytest.mark.usefixtures("without_curves")
@pytest.mark.parametrize("form", FORMATS)
def test_checkpoints_of_another_model_name_file_and_path(tmp_path: Path, form: str) -> None:
    fit(place_on(Net(), "8"), epochs=1, directory=tmp_path, checkpoint_format=form, optimizer=optax.sgd(0.1))
    model = Net()
    model.first.value = np.zeros((3, 4), np.float32)
    with pytest.raises(ValueError, match=rf"last\.{form} is a checkpoint of another model.*\n.*first: .*\(3, 8\)"):
        fit(model, directory=tmp_path, resume=True, optimizer=optax.sgd(0.1))
    with pytest.raises(ValueError, match=rf"last\.{form} is a checkpoint of another .*\n.*no @optimizer/state.*first"):
        fit(Net(), directory=tmp_path, resume=True)
    with pytest.raises(ValueError, match="checkpoint_format is 'zip', but"):
        fit(Net(), checkpoint_format="zip")
    nn.save(tmp_path / f"model{checkpoints.FORMATS[form]}", Net())
    with pytest.raises(ValueError, match=r"not a checkpoint of nn\.fit"):
        fit(Net(), resume=tmp_path / f"model{checkpoints.FORMATS[form]}")


# Killed


KILLED = """
import os, random, signal, sys, time
import numpy as np
import jax, orbax.checkpoint
from ftrans.nn.training.folders import latest_in, read_folder, write_folder
from pathlib import Path

path = Path(sys.argv[1])

def save_for_ever(pipe):
    number = 0
    if latest_in(path) is not None:
        arrays, record = read_folder(path)
        number = record["number"]
        assert set(arrays["a"]) == set(arrays["b"]) == {number}
        print(number, flush=True)
    while True:
        number += 1
        write_folder(path, {"a": np.full(50_000, number), "b": np.full(3, number)}, {"number": number})
        os.write(pipe, b".")

random.seed(0)
for attempt in range(int(sys.argv[2])):
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        save_for_ever(send)
    # It is killed in a save that follows the first one.
    assert os.read(receive, 1) == b"."
    time.sleep(0.2 * random.random())
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_folders_survive_a_kill_at_any_moment(tmp_path: Path) -> None:
    attempts = 40 if tables.whole else 5
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(ft.__file__).parents[1]), *sys.path])}
    out = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "arrays.orbax"), str(attempts)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert out.returncode == 0, out.stderr
    numbers = [int(line) for line in out.stdout.split()]
    assert len(numbers) == attempts - 1, out.stderr
    assert numbers == sorted(numbers)
