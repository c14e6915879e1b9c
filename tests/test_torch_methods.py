"""The table of torch's methods: each entry in every mode against figures that were made with torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tables
import torch_method_rows as rows

import ftrans as ft
from ftrans import autograd, nn
from ftrans.base.forward_code import ForwardArray

FIGURES = json.loads(rows.FIGURES.read_text())
ALWAYS = [*rows.calls(rows.METHODS), *rows.calls(rows.FUNCTIONS)]
OF_VALUES = rows.calls(rows.OF_VALUES)
TRAINED = [name for name, a in rows.ARRAYS.items() if a.dtype.kind == "f"]


def result(call: str, values: Any) -> list[Any]:
    """The arrays of the result of a call."""
    return rows.leaves(eval(call, {"torch": autograd, **values}))


def described(y: Any) -> tuple[tuple[int, ...], str, list[float]]:
    """Shape, kind and elements."""
    array = np.asarray(y.detach() if isinstance(y, autograd.Tensor) else y)
    flat = array.reshape(-1)
    if array.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], -1).reshape(-1)
    return array.shape, array.dtype.kind, flat.astype(float).tolist()


def check(call: str, outs: list[Any]) -> None:
    """Compare the arrays of a result with torch's."""
    expected = FIGURES[call][0]
    assert len(outs) == len(expected), call
    for y, (shape, kind, elements) in zip(outs, expected, strict=True):
        found = described(y)
        assert (call, found[0], found[1]) == (call, tuple(shape), kind)
        np.testing.assert_allclose(found[2], elements, 1e-6, 1e-7, err_msg=call)


def objective(call: str, values: Any) -> Any:
    """The number that is differentiated."""
    outs = [y for y in result(call, values) if hasattr(y, "dtype") and y.dtype.kind == "f"]
    return sum(np.sum(y * rows.weights(tuple(y.shape)).astype(y.dtype)) for y in outs)


def check_gradients(call: str, gradients: dict[str, Any]) -> None:
    """Compare derivatives with torch's."""
    for name, expected in FIGURES[call][1].items():
        found = np.zeros(len(expected)) if gradients.get(name) is None else np.asarray(gradients[name]).reshape(-1)
        np.testing.assert_allclose(found, expected, 1e-5, 1e-6, err_msg=f"{call}: {name}")


class Of(nn.Module):
    """A module that computes something of its arguments, or of its parameters and buffers."""

    def __init__(self, f: Callable[[Any], Any], of_cells: bool = False) -> None:
        for name, a in rows.ARRAYS.items():
            setattr(self, name, nn.Parameter(a) if name in TRAINED else nn.Buffer(a))
        self.f = f
        self.of_cells = of_cells

    def forward(self, values: Any) -> Any:
        return self.f({name: getattr(self, name) for name in rows.ARRAYS} if self.of_cells else values)


def name_of(call: str) -> str:
    """What rows of one test have in common: the name of the method, up to its first letter."""
    return next(part for part in call.replace("torch.", "").split(".")[-1:][0].split("(")[:1])[:1]


@pytest.mark.filterwarnings("ignore")
@tables.each(name_of, call=[*ALWAYS, *OF_VALUES])
def test_tensors(call: str) -> None:
    check(call, result(call, {name: autograd.tensor(a) for name, a in rows.ARRAYS.items()}))
    values = {name: autograd.tensor(a, requires_grad=name in TRAINED) for name, a in rows.ARRAYS.items()}
    if call in ALWAYS:
        check(call, result(call, values))
        if FIGURES[call][1]:
            total = objective(call, values)
            if total.requires_grad:
                total.backward()
            check_gradients(call, {name: x.grad for name, x in values.items()})


@pytest.mark.filterwarnings("ignore")
@tables.each(name_of, call=[*ALWAYS, *OF_VALUES])
@pytest.mark.parametrize("of_cells", [False, True])
def test_arrays_and_cells_in_forward_code(call: str, of_cells: bool) -> None:
    def f(values: Any) -> Any:
        found = eval(call, {"torch": autograd, **values})
        plain = [type(y) for y in rows.leaves(found) if type(y) is np.ndarray or isinstance(y, np.generic)]
        assert plain == [] or ".numpy" in call, call
        return found

    outs = rows.leaves(Of(f, of_cells)({name: a.copy() for name, a in rows.ARRAYS.items()}))
    assert not any(isinstance(y, ForwardArray | autograd.Tensor) for y in outs)
    check(call, outs)


@pytest.mark.filterwarnings("ignore")
@tables.each(name_of, call=[call for call in ALWAYS if FIGURES[call][1]])
@pytest.mark.parametrize("of_cells", [False, True])
def test_derivatives_in_forward_code(call: str, of_cells: bool) -> None:
    if of_cells:
        found = nn.grad(lambda m: m(rows.ARRAYS))(Of(lambda values: objective(call, values), True))
    else:
        model = Of(lambda values: objective(call, values))
        fixed = {name: a for name, a in rows.ARRAYS.items() if name not in TRAINED}
        found = ft.grad(lambda given: model({**given, **fixed}))({name: rows.ARRAYS[name] for name in TRAINED})
    check_gradients(call, found)


@pytest.mark.filterwarnings("ignore")
@tables.each(name_of, call=ALWAYS)
def test_batches(call: str) -> None:
    def f(values: Any) -> Any:
        return [y if hasattr(y, "dtype") else np.asarray(y) for y in result(call, values)]

    model = Of(f)
    outs = ft.vmap(lambda values: model(values))({name: np.stack([a, a]) for name, a in rows.ARRAYS.items()})
    check(call, [np.asarray(y)[1] for y in outs])


@pytest.mark.filterwarnings("ignore")
@tables.in_chunks(len(ALWAYS), calls=ALWAYS if tables.whole else ALWAYS[::5])
def test_compiled(calls: Any) -> None:
    model = nn.jit(Of(lambda values: [result(call, values) for call in calls]))
    for call, outs in zip(calls, model(rows.ARRAYS), strict=True):
        check(call, outs)
