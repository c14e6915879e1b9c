"""Mistakes that newcomers make, and the words of the errors that tell them what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import optax
import pytest

from ftrans import nn
from ftrans.nn import functional as F

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
Y = np.array([0, 1, 1, 0])


class Forgets(nn.Module):
    """A forward without its return."""

    def __init__(self) -> None:
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        self.layer(x)


def loss(model: Any, x: Any, y: Any) -> Any:
    return F.cross_entropy(model(x), y)


def fit(model: Any = None, **options: Any) -> nn.History:
    given = {"progress": False, **options}
    if "objective" not in given:
        given.setdefault("loss", F.cross_entropy)
    return nn.fit(nn.Linear(3, 2) if model is None else model, nn.batches(X, Y), **given)


def optimizer() -> nn.Optimizer:
    return nn.Optimizer(nn.Linear(3, 2), optax.sgd(0.1))


CLASSES: dict[str, Callable[[], Any]] = {
    "fit": lambda: fit(nn.Linear),
    "loss": lambda: fit(loss=nn.CrossEntropyLoss),
    "objective": lambda: fit(objective=nn.Linear),
    "metric": lambda: fit(metrics={"a": nn.CrossEntropyLoss}),
    "callback": lambda: fit(callbacks=[nn.Callback]),
    "optimizer": lambda: nn.Optimizer(nn.Linear, optax.sgd(0.1)),  # type: ignore[arg-type]
    "average": lambda: nn.EMA(nn.Linear),  # type: ignore[arg-type]
    "gradient": lambda: nn.grad(loss)(nn.Linear, X, Y),
    "summary": lambda: nn.summary(nn.Linear, X),  # type: ignore[arg-type]
    "sequential": lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU),
    "list": lambda: nn.ModuleList([nn.ReLU]),
    "dict": lambda: nn.ModuleDict({"a": nn.ReLU}),
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_in_place_of_its_object(name: str) -> None:
    with pytest.raises(TypeError, match=r"the class (\w+); (make an object of it, |write )\1\("):
        CLASSES[name]()


OTHERS: dict[str, tuple[Callable[[], Any], str]] = {
    "loss by name": (lambda: fit(loss="mse"), "loss is a function, such as nn.functional.cross_entropy.*not 'mse'"),
    "loss of nothing": (lambda: fit(loss=lambda o, t: None), "the loss lambda returned None.*no return statement"),
    "metric of nothing": (lambda: fit(metrics={"a": lambda o, t: None}), "the metric a returned None.*no return"),
    "objective of nothing": (lambda: fit(objective=lambda m, x, y: None), "the objective lambda returned None"),
    "optimizer of parameters": (
        lambda: nn.Optimizer(nn.Linear(3, 2).parameters(), optax.sgd(0.1)),  # type: ignore[arg-type]
        "Optimizer takes a module, but the argument is of type generator",
    ),
    "step of a loss": (lambda: optimizer().step(3.0), "dictionary of gradients.*is of type float"),  # type: ignore[arg-type]
    "step of a closure": (lambda: optimizer().step(lambda: 0.0), "not a function that computes the loss.*value_fn="),  # type: ignore[arg-type]
    "step of a pair": (
        lambda: optimizer().step(nn.value_and_grad(loss)(nn.Linear(3, 2), X, Y)),  # type: ignore[arg-type]
        "the second result of nn.value_and_grad, but the argument is of type tuple",
    ),
    "state of a file": (lambda: nn.Linear(3, 2).load_state_dict("a.pt"), r"the str 'a.pt'; nn\.load\(path\) reads one"),  # type: ignore[arg-type]
    "state of a model": (
        lambda: nn.Linear(3, 2).load_state_dict(nn.Linear(3, 2)),  # type: ignore[arg-type]
        r"is of type Linear; model\.state_dict\(\) gives one",
    ),
    "merged in another order": (lambda: nn.merge({}, {}), "takes a structure and a state"),  # type: ignore[arg-type]
    "list of layers": (lambda: nn.Sequential([nn.ReLU()]), r"not a list; write Sequential\(\*modules\)"),
    "function as a layer": (lambda: nn.Sequential(np.tanh), r"not the function tanh; take a layer"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_something_else(name: str) -> None:
    mistake, words = OTHERS[name]
    with pytest.raises(TypeError, match=words):
        mistake()


LAYERS: list[Callable[[], nn.Module]] = [
    lambda: nn.Linear(3, 2),
    lambda: nn.ReLU(),
    lambda: nn.GELU(),
    lambda: nn.Softmax(-1),
    lambda: nn.BatchNorm1d(3),
    lambda: nn.LSTM(3, 3),
    lambda: nn.MaxPool1d(2),
    lambda: nn.Embedding(3, 3),
]


@pytest.mark.parametrize("layer", [make() for make in LAYERS], ids=repr)
def test_a_forward_without_its_return(layer: nn.Module) -> None:
    with pytest.raises((TypeError, ValueError), match=r"None.*perhaps the forward code that computed it has no return"):
        nn.Sequential(Forgets(), layer)(X)
    with pytest.raises(TypeError, match="mse_loss was given None"):
        F.mse_loss(Forgets()(X), X)


def test_arrays_of_another_library() -> None:
    """They would be computed with by that library, which records nothing for our gradients."""
    tensor = SimpleNamespace(dtype="float32 of its own", shape=(4, 3))
    for f in (F.relu, F.gelu, nn.Linear(3, 2)):
        with pytest.raises(TypeError, match=r"was given a SimpleNamespace of types.*pass a NumPy array"):
            f(tensor)


def test_shapes_in_place_of_inputs() -> None:
    with pytest.raises(ValueError, match="last axis") as found:
        nn.summary(nn.Linear(3, 2), (5, 4))
    assert "np.zeros((5, 4), np.float32) in place of (5, 4)" in found.value.__notes__[-1]


def test_a_module_that_is_no_ensemble() -> None:
    with pytest.raises(ValueError, match=r"weight has 2.*in_axes=None.*nn\.stack_modules"):
        nn.vmap(lambda model, x: model(x), in_axes=(0, None))(nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1)), X)


@pytest.mark.parametrize("precision", ["int8", "bf16", np.int32, np.complex64])
def test_precisions_that_are_none(precision: Any) -> None:
    with pytest.raises(ValueError, match=r"the precision of nn\.fit is one of"):
        fit(precision=precision)


def test_optimizers_of_layers_without_parameters_yet() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.Linear(3, 1))
    for make in (lambda: nn.optim.Adam(model.parameters()), lambda: nn.Optimizer(model, optax.sgd(0.1))):
        with pytest.raises(RuntimeError, match=r"0\.weight belongs to a LazyLinear.*call the model once"):
            make()
    model(np.ones((2, 2), np.float32))
    assert len(nn.optim.Adam(model.parameters()).param_groups[0].params) == 4


def test_a_class_for_an_optimizer() -> None:
    with pytest.raises(
        TypeError, match=r"Adam is a class of optimizers; write nn\.optim\.Adam\(model\.parameters\(\), lr=1e-3\)"
    ):
        nn.Optimizer(nn.Linear(2, 1), nn.optim.Adam)


def test_gradients_that_are_not_in_compiled_steps() -> None:
    model = nn.Linear(2, 1)
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    x = np.ones((3, 2), np.float32)

    def step(change: Callable[..., Any]) -> Any:
        def run(model: Any, optimizer: Any) -> Any:
            loss, gradients = nn.value_and_grad(lambda model: (model(x) ** 2).sum())(model)
            change(model, optimizer, gradients)
            return loss

        return nn.jit(run)(model, optimizer)

    with pytest.raises(
        RuntimeError, match=r"clip_grad_norm_\(gradients, \.\.\.\) scales these in place\n  at .*mistakes"
    ):
        step(lambda model, optimizer, gradients: nn.utils.clip_grad_norm_(model.parameters(), 1.0))
    with pytest.raises(RuntimeError, match=r"clip_grad_value_\(gradients, \.\.\.\)"):
        step(lambda model, optimizer, gradients: nn.utils.clip_grad_value_(model, 1.0))
    with pytest.raises(TypeError, match="clip_grad_norm_ returns the norm, and changes the gradients"):
        step(lambda model, optimizer, gradients: optimizer.step(nn.utils.clip_grad_norm_(gradients, 1.0)))
    with pytest.raises(ValueError, match=r"a compiled function has none; write .*step\(gradients\)"):
        step(lambda model, optimizer, gradients: optimizer.step())
