"""Metrics against figures of torchmetrics 1.9, in one batch, several, with masks, compiled, in nn.fit and on a mesh."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest
from training import Net, X, Y, fit, mse, no_curves, state  # noqa: F401

import ftrans as ft
from ftrans import nn
from ftrans.nn import metrics

RNG = np.random.default_rng(7)
SCORES, LABELS = RNG.normal(size=(40, 4)).astype(np.float32), RNG.integers(0, 4, 40)
YES, TRUTH = RNG.normal(size=(40,)).astype(np.float32), (RNG.random(40) < 0.4).astype(np.int64)
TOKENS, WORDS = RNG.normal(size=(3, 10, 6)).astype(np.float32), RNG.integers(0, 6, (3, 10))
WORDS[0, :4] = -100
OUTPUT = RNG.normal(size=(40, 2)).astype(np.float32)
TARGET = (OUTPUT + RNG.normal(size=(40, 2))).astype(np.float32)
CLASSES, BINARY = (SCORES, LABELS), (YES, TRUTH)
SHARES = (1 / (1 + np.exp(-YES)), TRUTH)

CONFUSION = [[2, 1, 4, 2], [1, 2, 3, 1], [2, 4, 2, 4], [4, 1, 3, 4]]
# A metric, what it is given, and its figure.
FIGURES: dict[str, tuple[Callable[[], metrics.Metric], tuple[Any, Any], Any]] = {
    "accuracy": (lambda: metrics.Accuracy(), CLASSES, 0.25),
    "accuracy, classes second": (
        lambda: metrics.Accuracy(),
        (SCORES.reshape(10, 2, 2, 4).transpose(0, 3, 1, 2), LABELS.reshape(10, 2, 2)),
        0.25,
    ),
    "accuracy of probabilities": (lambda: metrics.Accuracy(from_logits=False), SHARES, 0.55),
    "top 2": (lambda: metrics.TopKAccuracy(2), CLASSES, 0.5),
    "binary accuracy": (lambda: metrics.Accuracy(), BINARY, 0.55),
    "threshold": (lambda: metrics.Accuracy(threshold=0.3), BINARY, 0.45),
    "binary precision": (lambda: metrics.Precision(), BINARY, 0.5),
    "precision micro": (lambda: metrics.Precision(4, "micro"), CLASSES, 0.25),
    "precision macro": (lambda: metrics.Precision(4), CLASSES, 0.250631),
    "precision weighted": (lambda: metrics.Precision(4, "weighted"), CLASSES, 0.252841),
    "precision": (lambda: metrics.Precision(4, None), CLASSES, [0.222222, 0.25, 0.166667, 0.363636]),
    "binary recall": (lambda: metrics.Recall(), BINARY, 0.611111),
    "recall micro": (lambda: metrics.Recall(4, "micro"), CLASSES, 0.25),
    "recall macro": (lambda: metrics.Recall(4), CLASSES, 0.251984),
    "recall": (lambda: metrics.Recall(4, None), CLASSES, [0.222222, 0.285714, 0.166667, 0.333333]),
    "binary F1": (lambda: metrics.F1Score(), BINARY, 0.55),
    "F1 macro": (lambda: metrics.F1Score(4), CLASSES, 0.250845),
    "F1 weighted": (lambda: metrics.F1Score(4, "weighted"), CLASSES, 0.251015),
    "F1 without a class": (lambda: metrics.F1Score(4, ignore_index=1), CLASSES, 0.197352),
    "AUROC": (lambda: metrics.AUROC(bins=100_000), BINARY, 0.532828),
    "AUROC of probabilities": (lambda: metrics.AUROC(bins=100_000, from_logits=False), SHARES, 0.532828),
    "AUROC of classes": (
        lambda: metrics.AUROC(4, None, bins=100_000),
        CLASSES,
        [0.458781, 0.675325, 0.455357, 0.491071],
    ),
    "AUROC macro": (lambda: metrics.AUROC(4, bins=100_000), CLASSES, 0.520134),
    "confusion": (lambda: metrics.ConfusionMatrix(4), CLASSES, CONFUSION),
    "confusion, shares": (
        lambda: metrics.ConfusionMatrix(4, "true"),
        CLASSES,
        np.array(CONFUSION) / np.sum(CONFUSION, 1)[:, None],
    ),
    "binary confusion": (lambda: metrics.ConfusionMatrix(2), BINARY, [[11, 11], [7, 11]]),
    "perplexity": (lambda: metrics.Perplexity(), (TOKENS, WORDS), 7.902634),
    "perplexity, classes second": (lambda: metrics.Perplexity(), (TOKENS.transpose(0, 2, 1), WORDS), 7.902634),
    "squared": (lambda: metrics.MeanSquaredError(), (OUTPUT, TARGET), 0.806193),
    "root": (lambda: metrics.RootMeanSquaredError(), (OUTPUT, TARGET), 0.806193**0.5),
    "absolute": (lambda: metrics.MeanAbsoluteError(), (OUTPUT, TARGET), 0.694807),
    "relative": (lambda: metrics.MeanAbsolutePercentageError(), (OUTPUT, TARGET), 4.250949),
    "R2": (lambda: metrics.R2Score(), (OUTPUT, TARGET), 0.536451),
}


@pytest.mark.parametrize("case", FIGURES)
def test_figures(case: str) -> None:
    make, (output, target), expected = FIGURES[case]
    metric = make()
    here = metric(output, target)
    np.testing.assert_allclose(here, expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(metric.compute(), expected, rtol=2e-5, atol=2e-6)
    metric.reset()
    half = len(target) // 2
    metric.update(output[:half], target[:half])
    # Samples that do not count.
    more = np.concatenate([output[half:], output[:3]]), np.concatenate([target[half:], target[:3]])
    metric.update(*more, mask=np.arange(len(more[0])) < len(target) - half)
    np.testing.assert_allclose(metric.compute(), expected, rtol=2e-5, atol=2e-6)


def test_compiled_and_in_16_bits() -> None:
    @nn.jit
    def update(metric: Any, output: Any, target: Any) -> None:
        for x in metric:
            x.update(output, target)

    kinds = metrics.TopKAccuracy(2), metrics.AUROC(4), metrics.ConfusionMatrix(4), metrics.Perplexity()
    compiled = nn.ModuleList([*kinds])
    plain = [metrics.TopKAccuracy(2), metrics.AUROC(4), metrics.ConfusionMatrix(4), metrics.Perplexity()]
    for _ in range(2):
        update(compiled, SCORES, LABELS)
        for x in plain:
            x.update(SCORES, LABELS)
    for one, two in zip(compiled, plain, strict=True):
        np.testing.assert_allclose(one.compute(), two.compute(), rtol=1e-6)
    assert not compiled.state_dict()
    with_few_bits = metrics.Accuracy()
    with_few_bits.update(np.tile(SCORES, (100, 1)).astype(np.float16), np.tile(LABELS, 100))
    assert with_few_bits.compute() == 0.25


def test_tensors_leave_no_graph_behind() -> None:
    model, metric = nn.Linear(2, 2), metrics.MeanSquaredError()
    output = model(ft.autograd.tensor(OUTPUT))
    assert output.requires_grad
    for _ in range(2):
        metric.update(output, TARGET)
    here = metric(output, TARGET)
    assert not metric.sums.requires_grad
    np.testing.assert_allclose([metric.compute(), here], np.mean((output.detach().numpy() - TARGET) ** 2), rtol=1e-6)

    def loss(model: Any, metric: Any) -> Any:
        metric.update(model(OUTPUT), TARGET)
        return mse(model(OUTPUT), TARGET) + 0 * metric.sums.sum()

    again = nn.grad(loss)(model, metric)
    expected = nn.grad(lambda model: mse(model(OUTPUT), TARGET))(model)
    np.testing.assert_allclose(again["weight"], expected["weight"], rtol=1e-6)
    np.testing.assert_allclose(metric.compute(), here, rtol=1e-6)


def test_counts_stay_exact() -> None:
    metric = metrics.Accuracy()
    metric.state_cell.value = np.array([2.0**24, 2.0**24])
    metric.update(SCORES, LABELS)
    assert metric.sums.numpy().tolist() == [2.0**24 + 10, 2.0**24 + 40]
    assert np.isnan(metrics.Accuracy().compute())


# In the training loop


class Classifier(nn.Module):
    """Numbers for three classes."""

    def __init__(self) -> None:
        nn.manual_seed(1)
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.linear(x)


CLASS = np.argmax(X + 0.5, 1)


def figures_of() -> dict[str, metrics.Metric]:
    """The metrics of a training."""
    return {
        "accuracy": metrics.Accuracy(),
        "f1": metrics.F1Score(3),
        "auroc": metrics.AUROC(3),
        "confusion": metrics.ConfusionMatrix(3),
    }


def train(**options: Any) -> Any:
    """A training that leaves the model as it is."""
    model, found = Classifier(), figures_of()
    history = fit(
        model,
        nn.batches(X, CLASS, batch_size=30, seed=0),
        loss=nn.functional.cross_entropy,
        optimizer=optax.sgd(0.0),
        metrics=found,
        validation=nn.batches(X[:22], CLASS[:22], batch_size=5, shuffle=False),
        **options,
    )
    return model, found, history


@pytest.mark.parametrize("is_divided", [False, True])
def test_fit_accumulates(is_divided: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.History, "plot", lambda history, path: None)
    # Pictures are drawn of one of them.
    options = {"mesh": ft.mesh({"data": 4})} if is_divided else {"directory": tmp_path}
    model, found, history = train(**options)
    output = np.asarray(model(X))
    for name, metric in figures_of().items():
        metric.update(output, CLASS)
        if name == "confusion":
            assert name not in history
        else:
            np.testing.assert_allclose(history[name], [metric.compute()] * 2, rtol=1e-5)
        metric.reset()
        metric.update(output[:22], CLASS[:22])
        # They hold those of the validation in the end.
        np.testing.assert_allclose(found[name].compute(), metric.compute(), rtol=1e-5)
    assert is_divided or (tmp_path / "confusion.png").stat().st_size > 1000
    assert "f1" in str(history)


def test_fit_names_metrics_and_monitors_them() -> None:
    history = fit(
        Classifier(),
        nn.batches(X, CLASS),
        loss=nn.functional.cross_entropy,
        metrics=[metrics.F1Score(3), metrics.TopKAccuracy(2), lambda output, target: np.mean(output)],
        validation=nn.batches(X, CLASS),
        monitor="val_f1_score",
        mode="max",
    )
    assert {"f1_score", "val_top_k_accuracy", "val_f1_score"} <= set(history.names)
    assert history.best is not None


@pytest.mark.usefixtures("no_curves")
def test_fit_resumes_metrics_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    def run(directory: Path | None, steps: int | None, resume: bool) -> Any:
        class Stop(nn.Callback):
            def on_step_end(self, state: nn.FitState) -> None:
                if state.step == steps:
                    state.stop()

        model = Net()
        history = fit(
            model,
            epochs=3,
            metrics=[metrics.MeanAbsoluteError(), metrics.R2Score()],
            accumulate=3,
            directory=directory,
            resume=resume,
            callbacks=Stop(),
        )
        return history, state(model)

    whole, final = run(None, None, False)
    run(tmp_path, 6, False)
    # In an epoch, and between two updates.
    run(tmp_path, 7, True)
    history, again = run(tmp_path, None, True)
    assert again == final
    assert history["r2_score"] == whole["r2_score"]
    assert history["mean_absolute_error"] == whole["mean_absolute_error"]


def test_accumulated_gradients_are_those_of_larger_batches() -> None:
    small, large = Net(), Net()
    fit(small, nn.batches(X, Y, batch_size=8, shuffle=False), accumulate=4, epochs=3)
    fit(large, nn.batches(X, Y, batch_size=32, shuffle=False), epochs=3)
    np.testing.assert_allclose(small.first.value, large.first.value, rtol=1e-5, atol=1e-6)
    groups = Net()
    fit(
        groups,
        nn.batches(X, Y, batch_size=8, shuffle=False),
        accumulate=4,
        epochs=3,
        optimizer=nn.optim.SGD(groups, lr=0.05, momentum=0.9),
        mesh=ft.mesh({"data": 2}),
    )
    np.testing.assert_allclose(groups.first.value, large.first.value, rtol=1e-5, atol=1e-6)


# What is refused


MISTAKES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "top_k": (lambda: metrics.Accuracy(top_k=0), ["top_k"]),
    "threshold": (lambda: metrics.F1Score(threshold=1.0), ["threshold", "1.0"]),
    "average": (lambda: metrics.Recall(3, "mean"), ["'mean'", "'macro'"]),
    "classes": (lambda: metrics.ConfusionMatrix(1), ["num_classes", "at least 2"]),
    "normalize": (lambda: metrics.ConfusionMatrix(3, "rows"), ["'rows'", "'true'"]),
    "bins": (lambda: metrics.AUROC(bins=1), ["bins"]),
    "average of areas": (lambda: metrics.AUROC(3, "micro"), ["'micro'"]),
    "no classes": (lambda: metrics.F1Score().update(SCORES, LABELS), ["(40, 4)", "F1Score(num_classes)"]),
    "areas": (lambda: metrics.AUROC().update(SCORES, LABELS), ["AUROC(num_classes)"]),
    "shapes": (lambda: metrics.Accuracy().update(SCORES, LABELS[:3]), ["(40, 4)", "(3,)", "[n, classes]"]),
    "both ways": (
        lambda: metrics.Perplexity().update(np.zeros((2, 3, 3)), np.zeros((2, 3), int)),
        ["axis 1 or 2"],
    ),
    "errors": (lambda: metrics.MeanSquaredError().update(OUTPUT, LABELS), ["(40, 2)", "(40,)"]),
    "labels": (lambda: metrics.ConfusionMatrix(2).plot("x.png", ["a"]), ["1 labels", "2 classes"]),
    "picture": (lambda: metrics.ConfusionMatrix(2).plot("x.bmp"), [".png", "x.bmp"]),
    "accumulate": (lambda: fit(Net(), accumulate=0), ["accumulate", "0"]),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(case: str) -> None:
    make, words = MISTAKES[case]
    with pytest.raises(ValueError) as found:  # noqa: PT011
        make()
    for word in [*words, "test_nn_metrics.py" if case != "accumulate" else "training.py"]:
        assert word in str(found.value)


def test_optimizers_that_evaluate_the_loss_take_no_accumulated_gradients() -> None:
    model = Net()
    with pytest.raises(TypeError, match="leave out accumulate="):
        fit(model, optimizer=nn.optim.LBFGS(model), accumulate=2, loss=mse)
