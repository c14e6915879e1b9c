"""What is put into cells keeps its values, or is refused: states, copies, fills, and cells with several paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optax
import pytest

import ftrans as ft
from ftrans import nn


class Held(nn.Module):
    """One cell of each kind of dtype."""

    def __init__(self) -> None:
        self.real = nn.Parameter(np.zeros(2, np.float32))
        self.half = nn.Buffer(np.zeros(2, np.float16))
        self.complex = nn.Buffer(np.zeros(2, np.complex64))
        self.integer = nn.Buffer(np.zeros(2, np.int32))
        self.flag = nn.Buffer(np.zeros(2, np.bool_))


GIVEN = {
    "float64": np.array([0.1, -2.5]),
    "whole": np.array([3.0, 0.0]),
    "ones": np.array([1.0, 0.0]),
    "large": np.array([1e6, 1.0]),
    "huge": np.array([1e300, 1.0]),
    "not a number": np.array([np.nan, np.inf]),
    "complex": np.array([1.0 + 2.0j, 3.0]),
    "complex without imaginary parts": np.array([1.0 + 0.0j, 3.0]),
    "int64": np.array([7, -1]),
    "wide int64": np.array([2**40, 1]),
    "bool": np.array([True, False]),
}


def holds(dtype: np.dtype[Any], x: np.ndarray[Any, Any]) -> bool:
    """Whether an array can become one of a dtype with no more than rounding lost, by Python's numbers."""
    if x.dtype.kind == "c":
        return dtype.kind == "c"
    for value in x.tolist():
        if dtype.kind in "fc":
            limit = float(np.finfo(dtype).max)
            if np.isfinite(value) and abs(value) > limit:
                return False
        elif dtype.kind == "b":
            if value not in (0, 1):
                return False
        elif value != value or abs(value) == np.inf or value != int(value) or not -(2**31) <= value < 2**31:
            return False
    return True


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", ["real", "half", "complex", "integer", "flag"])
def test_a_state_keeps_its_values_or_is_refused(name: str, given: str) -> None:
    module, x = Held(), GIVEN[given]
    cell = dict(module.named_cells())[name]
    if holds(cell.dtype, x):
        module.load_state_dict({name: x}, strict=False)
        np.testing.assert_allclose(cell.value.astype(complex), x.astype(complex), rtol=1e-3)
    else:
        with pytest.raises(ValueError, match=f"{name}: the module has "):
            module.load_state_dict({name: x}, strict=False)
        np.testing.assert_array_equal(cell.value, np.zeros(2))


def test_the_state_of_an_optimizer_keeps_its_values_or_is_refused() -> None:
    optimizer = nn.Optimizer(nn.Linear(2, 1), optax.adam(1e-3))
    state = optimizer.state_dict()
    for name, wrong in {"state.0.mu.weight": 1j, "state.0.count": 0.5}.items():
        with pytest.raises(ValueError, match=name):
            optimizer.load_state_dict({**state, name: state[name] + wrong})


COMPLEX = np.array([1.0 + 2.0j, 3.0])
LOSING: dict[str, Callable[[Held], Any]] = {
    "copy_": lambda m: m.real.copy_(COMPLEX),
    "fill_": lambda m: m.real.fill_(2j),
    "copy_ of a buffer": lambda m: m.integer.copy_(COMPLEX),
    "copy_ of a tensor": lambda m: ft.autograd.tensor(np.zeros(2)).copy_(COMPLEX),
    "copy_ of tensors": lambda m: ft.autograd.tensor(np.zeros(2)).copy_(ft.autograd.tensor(COMPLEX)),
    "copy_ of a traced value": lambda m: ft.trace(lambda x: x.copy_(COMPLEX))(np.zeros(2)),
    "assignment": lambda m: m.real.__setitem__(slice(0, 2), COMPLEX),
    "assignment of a number": lambda m: m.integer.__setitem__(0, 2j),
    "assignment to a tensor": lambda m: ft.autograd.tensor(np.zeros(2)).__setitem__(0, COMPLEX[0]),
    "assignment of a tensor": lambda m: ft.autograd.tensor(np.zeros(2)).__setitem__(..., ft.autograd.tensor(COMPLEX)),
    "a device": lambda m: m.real.to("cuda"),
    "init": lambda m: nn.init.constant_(m.real, 2j),  # type: ignore[arg-type]
    "init of integers": lambda m: nn.init.constant_(m.integer, 1.5),
    "init of integers with no number": lambda m: nn.init.constant_(m.integer, np.nan),
    "to": lambda m: m.complex.to(np.float32),
    "to of the module": lambda m: m.to(np.float64),
    "integers in a trained parameter": lambda m: setattr(m.real, "value", np.array([1, 2])),
    "integers as data": lambda m: setattr(m.real, "data", np.array([1, 2])),
}


@pytest.mark.parametrize("name", LOSING)
def test_what_would_be_lost_is_refused(name: str) -> None:
    module = Held()
    with ft.autograd.no_grad(), pytest.raises(TypeError):
        LOSING[name](module)
    np.testing.assert_array_equal(module.real.value, np.zeros(2))


NO_NUMBERS: dict[str, tuple[Any, str]] = {
    "objects": (np.array([1.0, 2.0], object), "dtype object"),
    "texts": (np.array(["1", "2"]), "dtype <U1"),
    "dates": (np.array([1, 2], "datetime64[s]"), r"dtype datetime64\[s\]"),
    "list of texts": (["1", "2"], "dtype <U1"),
    "nothing": (None, "type NoneType"),
    "text": ("12", "type str"),
}
PUT: dict[str, Callable[[Held, Any], Any]] = {
    "load_state_dict": lambda m, x: m.load_state_dict({"half": x}, strict=False),
    "functional_call": lambda m, x: nn.functional_call(m, {"half": x}),
    "assignment": lambda m, x: m.half.__setitem__(..., x),
    "copy_": lambda m, x: m.half.copy_(x),
}


@pytest.mark.parametrize(
    ("given", "way"),
    # NumPy reads the numbers in lists of texts that are assigned.
    [
        (g, way)
        for g in NO_NUMBERS
        for way in PUT
        if g != "list of texts" or way in ("load_state_dict", "functional_call")
    ],
)
def test_what_is_no_array_of_numbers_is_refused(given: str, way: str) -> None:
    module, (x, words) = Held(), NO_NUMBERS[given]
    with pytest.raises(TypeError, match=f"half holds an array of numbers, but was given .*{words}"):
        PUT[way](module, x)
    np.testing.assert_array_equal(module.half.value, np.zeros(2))


def test_init_rounds_what_it_is_given() -> None:
    for value in (2**60 + 1, 0.1, True):
        assert nn.init.constant_(nn.Parameter(np.empty(2, np.float32)), value).value[0] == np.float32(value)
    assert nn.init.constant_(nn.Buffer(np.empty(2, np.int32)), 3.0).value[0] == 3


def test_conversions_of_a_module_leave_complex_cells_alone() -> None:
    module = Held().double()
    assert module.real.dtype == np.float64
    assert module.complex.dtype == np.complex64


def tied() -> nn.Module:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    return model


@pytest.mark.parametrize("names", [("0.weight",), ("1.weight",), ("0.weight", "1.weight"), ("1.weight", "0.weight")])
def test_a_tied_cell_is_given_by_any_of_its_paths(names: tuple[str, ...]) -> None:
    model, x = tied(), np.array([1.0, 2.0, 3.0])
    before = model.state_dict()
    w = np.arange(9.0).reshape(3, 3)
    out, new = nn.functional_call(model, dict.fromkeys(names, w), x)
    b0, b1 = before["0.bias"], before["1.bias"]
    np.testing.assert_allclose(out, (x @ w.T + b0) @ w.T + b1)
    assert tuple(new) == names
    np.testing.assert_array_equal(model.state_dict()["1.weight"], before["1.weight"])


def test_the_state_of_a_tied_model_is_taken_by_functional_call() -> None:
    model, x = tied(), np.ones(3, np.float32)
    out, new = nn.functional_call(model, model.state_dict(), x)
    np.testing.assert_array_equal(out, model(x))
    assert list(new) == ["0.weight", "0.bias", "1.weight", "1.bias"]

    def through(w: Any) -> Any:
        return nn.functional_call(model, {"1.weight": w, "0.weight": w}, x)[0].sum()

    gradient = nn.grad(lambda m: m(x).sum())(model)["0.weight"]
    np.testing.assert_allclose(ft.grad(through)(model[0].weight.value), gradient, rtol=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        lambda model, state: nn.functional_call(model, state, np.ones(3)),
        lambda model, state: model.load_state_dict(state),
        lambda model, state: ft.grad(lambda s: nn.functional_call(model, s, np.ones(3))[0].sum())(state),
    ],
)
def test_two_values_for_a_tied_cell_are_an_error(call: Callable[[Any, Any], Any]) -> None:
    model = tied()
    state = model.state_dict()
    state["1.weight"] = state["1.weight"] + 1
    with pytest.raises(ValueError, match=r"0\.weight and 1\.weight are the same cell .* different"):
        call(model, state)


def test_functional_call_returns_what_forward_code_has_changed() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            self.count = nn.Buffer(np.zeros(()))
            self.again = self.count

        def forward(self, x: Any) -> Any:
            self.count = self.count + 1
            return x

    model = Counting()
    assert nn.functional_call(model, {"again": np.array(4.0)}, 1.0)[1] == {"again": 5.0}
    assert nn.functional_call(model, {}, 1.0)[1] == {"count": 1.0}
