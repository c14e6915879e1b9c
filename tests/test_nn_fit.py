"""The training loop: what it computes, what data it takes, when it stops, what it says and what it shows."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest
from training import Net, X, Y, compiled_once, data, fit, mae, mse, state

import ftrans as ft
from ftrans import nn
from ftrans.nn.training import progress
from ftrans.nn.training.stopping import Best


@pytest.fixture(autouse=True, scope="module")
def _compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with compiled_once(tmp_path_factory.mktemp("compiled")):
        yield


# What it computes


def test_equals_a_loop_by_hand() -> None:
    model = Net()
    batches = data(shuffle=False, batch_size=30)
    history = fit(model, batches, optimizer=optax.sgd(0.1), metrics={"mae": mae}, validation=[(X, Y)])
    by_hand = {"first": Net().first.numpy().astype(np.float64), "second": Net().second.numpy().astype(np.float64)}

    def output(w: dict[str, Any], x: Any) -> Any:
        return np.tanh(x @ w["first"]) @ w["second"]

    for epoch in range(2):
        sums = np.zeros(2)
        for i in range(0, 64, 30):
            x, y = X[i : i + 30].astype(np.float64), Y[i : i + 30].astype(np.float64)
            sums += len(x) * np.array([mse(output(by_hand, x), y), mae(output(by_hand, x), y)])
            gradient = ft.grad(lambda w, x=x, y=y: mse(output(w, x), y))(by_hand)
            by_hand = {name: w - 0.1 * gradient[name] for name, w in by_hand.items()}
        row = history.epochs[epoch]
        np.testing.assert_allclose([row["loss"], row["mae"]], sums / 64, rtol=1e-5)
        assert row["step"] == 3 * (epoch + 1)
    np.testing.assert_allclose(history["val_loss"][-1], mse(output(by_hand, X), Y), rtol=1e-5)
    np.testing.assert_allclose(history["val_mae"][-1], mae(output(by_hand, X), Y), rtol=1e-5)
    for name, w in by_hand.items():
        np.testing.assert_allclose(getattr(model, name).value, w, rtol=1e-4, atol=1e-6)


def test_training_and_evaluation_mode() -> None:
    model = Net(p=0.5).eval()
    seen = []
    fit(model, validation=data(), callbacks=lambda state: seen.append(state.model.training))
    assert seen == [True, True]
    assert model.training
    # Only the training counts its calls.
    assert int(model.calls) == 8


def test_modules_in_evaluation_mode_stay_there() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            self.frozen, self.free = Net(), Net()

        def forward(self, x: Any) -> Any:
            return self.frozen(x) + self.free(x)

    model = Outer()
    model.frozen.eval()
    fit(model, validation=data())
    assert (model.training, model.frozen.training, model.free.training) == (True, False, True)
    assert (int(model.frozen.calls), int(model.free.calls)) == (0, 8)


def test_two_traces_of_a_step_and_no_warning() -> None:
    traces = []

    def loss(output: Any, target: Any) -> Any:
        traces.append(output.shape)
        return mse(output, target)

    fit(Net(), data(batch_size=50), loss=loss, validation=data(batch_size=50), epochs=3)
    # A full and a small batch, in training and in evaluation.
    assert sorted(traces) == [(14, 2), (14, 2), (50, 2), (50, 2)]


def test_frozen_parameters_stay() -> None:
    model = Net()
    model.freeze("first")
    before = model.first.numpy().copy()
    fit(model)
    np.testing.assert_array_equal(model.first.value, before)
    assert not np.array_equal(model.second.value, Net().second.value)


def test_objective_with_figures_and_dictionaries() -> None:
    def objective(model: Any, x: Any, target: Any) -> Any:
        output = model(x)
        return mse(output, target), {"largest": np.max(np.abs(output))}

    by_name = nn.batches({"x": X, "target": Y}, batch_size=16, seed=3)
    one, two, three = Net(), Net(), Net()
    history = fit(one, objective=objective, validation=[(X, Y)])
    assert set(history.names) >= {"loss", "largest", "val_loss", "val_largest"}
    fit(two, by_name)
    fit(three, by_name.__class__({"x": X, "target": Y}, 16, True, 3, False), objective=objective)
    assert state(one) == state(two) == state(three)


def test_loss_that_is_a_module() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Buffer(np.array([1.0, 2.0], np.float32))

        def forward(self, output: Any, target: Any) -> Any:
            return np.mean(self.weight * (output - target) ** 2)

    model = Net()
    fit(model, loss=Weighted(), metrics={"again": Weighted()})
    by_function = Net()
    fit(by_function, loss=lambda o, t: np.mean(np.array([1, 2], np.float32) * (o - t) ** 2))
    np.testing.assert_allclose(model.first.value, by_function.first.value, rtol=1e-5)


def test_an_optimizer_goes_on() -> None:
    one, two = Net(), Net()
    fit(one, epochs=4)
    optimizer, batches = nn.Optimizer(two, optax.sgd(0.05, momentum=0.9)), data()
    fit(two, batches, optimizer=optimizer)
    fit(two, batches, optimizer=optimizer)
    assert state(one) == state(two)


def test_seed_of_dropout() -> None:
    def trained(seed: int, start: int) -> dict[str, bytes]:
        model = Net(p=0.5)
        model.rng.value = np.array([0, 9, start], np.uint32)
        fit(model, seed=seed, epochs=1)
        return state(model)

    assert trained(1, 0) == trained(1, 4)
    assert trained(1, 0) != trained(2, 0)


def test_bfloat16_keeps_parameters() -> None:
    model = Net()
    history = fit(model, precision="bfloat16")
    assert model.first.dtype == np.float32
    exact = fit(Net())
    np.testing.assert_allclose(history["loss"], exact["loss"], rtol=0.05)
    assert history["loss"] != exact["loss"]


# Data


def test_batches_cover_the_samples_in_new_orders() -> None:
    batches = nn.batches(np.arange(10), batch_size=4, seed=0)
    first, second = (np.concatenate([x for (x,) in batches]) for _ in range(2))
    assert len(batches) == 3
    assert sorted(first) == sorted(second) == list(range(10))
    assert list(first) != list(second)
    again = nn.batches(np.arange(10), batch_size=4, seed=0)
    again.epoch = 1
    np.testing.assert_array_equal(np.concatenate([x for (x,) in again]), second)
    assert [len(x) for (x,) in nn.batches(np.arange(10), batch_size=4, drop_last=True)] == [4, 4]


def test_seed_of_batches_comes_from_manual_seed() -> None:
    nn.manual_seed(4)
    seed = nn.batches(X).seed
    nn.manual_seed(4)
    assert nn.batches(X).seed == seed


def generator() -> Iterator[Any]:
    """The batches in one memory, which is written again for each."""
    raw = np.empty(16 * 3 * 4 + 64, np.uint8)
    # Memory that XLA would take as it is.
    start = -raw.ctypes.data % 64
    x = raw[start : start + 16 * 3 * 4].view(np.float32).reshape(16, 3)
    for batch, target in data(shuffle=False):
        x[:] = batch
        yield x, target


def kinds() -> dict[str, Callable[[], Any]]:
    """The same four batches in different ways."""
    batches = list(data(shuffle=False))
    return {
        "batches": lambda: data(shuffle=False),
        "list": lambda: [[x, y] for x, y in batches],
        "function": lambda: generator,
        "function of the epoch": lambda: lambda epoch: iter(batches if epoch > 0 else ()),
        "iterator": lambda: (batch for batch in batches * 2),
        "jax": lambda: [tuple(map(jax_array, batch)) for batch in batches],
    }


def jax_array(x: Any) -> Any:
    """An array of JAX."""
    import jax

    return jax.device_put(x)


@functools.cache
def in_order() -> dict[str, bytes]:
    """The model after a training on the batches in order."""
    model = Net()
    fit(model, data(shuffle=False))
    return state(model)


@pytest.mark.parametrize("kind", kinds())
def test_kinds_of_data(kind: str) -> None:
    model = Net()
    fit(model, kinds()[kind](), steps_per_epoch=4)
    assert state(model) == in_order()


def test_data_loader_of_torch() -> None:
    torch = pytest.importorskip("torch")
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    loader = torch.utils.data.DataLoader(dataset, batch_size=16)
    model = Net()
    fit(model, loader, validation=loader)
    assert state(model) == in_order()


def test_an_iterator_goes_on_where_it_was() -> None:
    seen = []

    def endless() -> Iterator[Any]:
        while True:
            seen.append(len(seen))
            yield X[:8], Y[:8]

    history = fit(Net(), endless(), steps_per_epoch=3, epochs=3)
    assert [row["step"] for row in history.epochs] == [3, 6, 9]
    assert len(seen) == 9


def _once(iterator: Iterator[Any]) -> Iterator[Any]:
    return iterator


BAD_DATA: dict[str, tuple[Any, type[Exception], list[str]]] = {
    "arrays": ((X, Y), TypeError, ["tuple of arrays", "nn.batches(x, y"]),
    "array": (X, TypeError, ["is an array", "nn.batches(x, y"]),
    "number": (3, TypeError, ["int", "generator function"]),
    "iterator": (iter([(X, Y)]), TypeError, ["iterator", "used up after the first of 2", "function itself"]),
    "empty": ([], ValueError, ["no batch in epoch 1", "at least one"]),
    "used up": (functools.partial(_once, iter([(X, Y)])), ValueError, ["no batch in epoch 2", "used up"]),
    "not an iterator": (lambda: 3, TypeError, ["returned int"]),
    "no target": ([X], ValueError, ["(output, target)", "one array", "objective"]),
    "no target by name": ([{"x": X, "y": Y}], ValueError, ["'target'", "'x', 'y'"]),
    "texts": ([(X, np.full(64, "cat"))], TypeError, ["<U3", "encode"]),
    "double": ([(X.astype(np.float64), Y)], RuntimeWarning, ["float64", "astype(np.float32)"]),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data(case: str) -> None:
    given, error, words = BAD_DATA[case]
    with pytest.raises(error) as found:
        fit(Net(), given)
    for word in [*words, "training.py:" if case != "double" else ""]:
        assert word in str(found.value)


class Typo:
    """A callback with a method that does not exist."""

    def on_epoch_ends(self, state: Any) -> None:
        """Never called."""


BAD_ARGUMENTS: dict[str, tuple[dict[str, Any], type[Exception], list[str]]] = {
    "no loss": ({"loss": None}, ValueError, ["exactly one of loss", "objective"]),
    "two losses": ({"objective": mse}, ValueError, ["exactly one"]),
    "epochs": ({"epochs": 0}, ValueError, ["positive"]),
    "shape of the loss": ({"loss": lambda o, t: (o - t) ** 2}, ValueError, ["(16, 2)", "take its mean"]),
    "shape of a metric": ({"metrics": {"m": lambda o, t: o}}, ValueError, ["metric m", "mean"]),
    "metrics": ({"metrics": ["accuracy"]}, ValueError, ["functions of (output, target)"]),
    "monitor": ({"monitor": "val_loss"}, ValueError, ["'val_loss'", "an epoch has loss"]),
    "mode": ({"metrics": [mae], "monitor": "mae"}, ValueError, ["mode='max'"]),
    "patience": ({"patience": 0}, ValueError, ["at least 1"]),
    "resume": ({"resume": True}, ValueError, ["directory"]),
    "resume from": ({"resume": "nowhere"}, FileNotFoundError, ["nowhere"]),
    "optimizer": ({"optimizer": nn.Optimizer(Net(), optax.sgd(1.0))}, ValueError, ["another model"]),
    "callback": ({"callbacks": [Typo()]}, TypeError, ["on_epoch_ends", "on_epoch_end"]),
    "no callback": ({"callbacks": [3]}, TypeError, ["int", "on_step_end"]),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_bad_arguments(case: str) -> None:
    options, error, words = BAD_ARGUMENTS[case]
    given = {"loss": mse, "progress": False, "epochs": 1, **options}
    with pytest.raises(error) as found:
        nn.fit(Net(), data(), **given)
    for word in [*words, "test_nn_fit.py"]:
        assert word in str(found.value)


def test_figures_of_an_objective_stay_the_same() -> None:
    def objective(model: Any, x: Any, y: Any) -> Any:
        loss = mse(model(x), y)
        return (loss, {"twice": 2 * loss}) if model.training else loss

    with pytest.raises(ValueError, match="figures twice first and none now"):
        fit(Net(), objective=objective, validation=data())


# Stopping


def test_early_stopping_and_best_parameters(tmp_path: Path) -> None:
    def run(directory: Path | None) -> tuple[nn.History, dict[str, bytes], list[dict[str, bytes]]]:
        model, states = Net(), []
        history = fit(
            model,
            data(shuffle=False),
            # The steps go uphill from the thirteenth on.
            optimizer=optax.sgd(lambda count: 0.1 - 0.5 * (count >= 12)),
            epochs=20,
            patience=2,
            restore_best=True,
            directory=directory,
            callbacks=lambda s: states.append(state(s.model)),
        )
        return history, state(model), states

    for directory in (None, tmp_path):
        history, final, states = run(directory)
        assert history.stopped == "early stopping"
        best = int(np.argmin(history["loss"]))
        assert history.best == history.epochs[best]
        assert len(history) == best + 3 < 20
        assert all(final[name] == states[best][name] for name in ("first", "second"))
    saved = nn.load(tmp_path / "best.safetensors")
    assert {name: x.tobytes() for name, x in saved.items()} == {n: states[best][n] for n in ("first", "second")}
    optimizer = optax.sgd(optax.constant_schedule(0.1))
    again = fit(Net(), data(shuffle=False), optimizer=optimizer, epochs=20, patience=2, directory=tmp_path, resume=True)
    assert len(again) == len(history)


def test_min_delta_and_the_largest() -> None:
    best = steps_of_best([1.0, 0.95, 0.8, 0.75, 0.1], min_delta=0.1)
    assert best == [True, False, True, False, True]
    assert steps_of_best([1.0, float("nan"), 2.0, 1.5], monitor="score", mode="max") == [True, False, True, False]


def steps_of_best(values: list[float], monitor: str = "loss", mode: str | None = None, min_delta: float = 0.0) -> Any:
    """Which of the values are the best so far."""
    best, history = Best(monitor, mode, min_delta, None), nn.History()
    return [best.update(history, {monitor: x}) for x in values]


def test_callbacks() -> None:
    class Recorder(nn.Callback):
        def __init__(self) -> None:
            self.calls: list[Any] = []

        def on_fit_begin(self, state: nn.FitState) -> None:
            self.calls.append(("begin", state.step))

        def on_step_end(self, state: nn.FitState) -> None:
            self.calls.append(state.step)
            if state.step == 6:
                state.stop("enough")

        def on_epoch_end(self, state: nn.FitState) -> None:
            state.logs["twice"] = 2 * state.logs["loss"]

        def on_fit_end(self, state: nn.FitState) -> None:
            self.calls.append(("end", state.epoch))

    recorder = Recorder()
    history = fit(Net(), callbacks=[recorder], monitor="twice", mode="min")
    assert recorder.calls == [("begin", 0), *range(1, 7), ("end", 2)]
    assert history.stopped == "enough"
    assert history["twice"] == [2 * history["loss"][0]]
    assert history.best is not None
    with pytest.raises(ValueError, match="monitor is 'thrice'"):
        fit(Net(), callbacks=[Recorder()], monitor="thrice", mode="min")


# What is shown


def test_nothing_is_shown_without_progress(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fit(Net(), directory=tmp_path)
    assert capfd.readouterr() == ("", "")


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(progress.Lines, "every", 0.0)
    fit(Net(), progress=True, validation=data(), metrics=[mae])
    lines = capsys.readouterr().err.splitlines()
    ends = [line for line in lines if "samples/s" in line and "val_mae" in line]
    assert [line.split("  ")[0] for line in ends] == ["epoch 1/2", "epoch 2/2"]
    assert any("batch 3/4" in line and "left" in line for line in lines)


def test_a_bar_by_rich(monkeypatch: Any) -> None:
    import io

    import rich.console

    out = io.StringIO()
    make = rich.console.Console
    monkeypatch.setattr(
        rich.console, "Console", lambda stderr: make(file=out, force_terminal=True, width=140, legacy_windows=False)
    )
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress.Bar, "every", 0.0)
    fit(Net(), progress=True, epochs=2)
    text = out.getvalue()
    for word in ("epoch 1/2", "3/4", "samples/s", "left", "loss", "━"):
        assert word in text


def test_without_rich(monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    shown = progress.progress_for(True)
    assert type(shown) is progress.Lines
    assert "pip install 'ftrans[nn]'" in capsys.readouterr().err


def test_in_a_notebook(monkeypatch: Any) -> None:
    shown: list[tuple[str, str]] = []

    class Area:
        def show(self, text: str, page: str) -> None:
            shown.append((text, page))

    monkeypatch.setattr(progress, "is_in_notebook", lambda: True)
    monkeypatch.setattr(progress, "Area", Area)
    monkeypatch.setattr(progress.Page, "every", 0.0)
    monkeypatch.setattr(progress, "_MOST_LINES", 2)
    fit(Net(), progress=True, epochs=3)
    text, page = shown[0]
    assert text == "epoch 1/3  compiling"
    assert '<progress value="0" max="4"></progress>' in page
    assert any("epoch 2/3  3/4  " in text and "samples/s" in text for text, _ in shown)
    text, page = shown[-1]
    assert [line.split("  ")[0] for line in text.splitlines()] == ["earlier lines: 1", "epoch 2/3", "epoch 3/3"]
    assert "<progress" not in page


def test_without_optax(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match=r"pip install 'ftrans\[nn\]'"):
        nn.fit(Net(), data(), loss=mse)
    with pytest.raises(ImportError, match=r"default optimizer of find_learning_rate .* pip install 'ftrans\[nn\]'"):
        nn.find_learning_rate(Net(), data(), loss=mse)


def test_durations() -> None:
    assert [progress.duration(s) for s in (0.0312, 9.44, 75, 3700)] == ["0.031 s", "9.4 s", "1:15", "1:01:40"]


# History and curves


def test_history(tmp_path: Path) -> None:
    history = fit(Net(), validation=data(), metrics=[mae], epochs=2)
    assert len(history) == 2
    assert "val_mae" in history
    copy = nn.History.from_dict(json.loads(json.dumps(history.to_dict())))
    assert json.dumps(copy.to_dict()) == json.dumps(history.to_dict())
    assert repr(copy) == repr(history)
    assert "best val_loss" in repr(history)
    with pytest.raises(KeyError, match="it has epoch, step, loss"):
        history["accuracy"]


def test_long_histories_are_thinned_out() -> None:
    history = nn.History()
    for i in range(1, 5001):
        history.add_steps(16 * i, float(i))
    assert 500 <= len(history.steps) <= 1000
    recent = history.steps[-1]
    assert recent[0] / 16 - 8 < recent[1] <= recent[0] / 16


def test_curves(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    history = fit(Net(), data(batch_size=1), validation=data(), metrics=[mae], epochs=2)
    for suffix, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        history.plot(tmp_path / f"curves{suffix}")
        assert (tmp_path / f"curves{suffix}").read_bytes().startswith(magic)
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(ValueError, match=r"not as '.*curves.gif'"):
        history.plot(tmp_path / "curves.gif")
    with pytest.raises(ValueError, match="no epoch yet"):
        nn.History().plot(tmp_path / "curves.png")
