"""Layers and functions against figures that were made with torch (`torch_figures.py`)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from layer_samples import Row
from torch_figures import (
    FILE,
    FUNCTIONS,
    LAYERS,
    WITHOUT_GRADIENTS,
    Figures,
    figures,
    floats_of,
    inputs_of,
    leaves,
    of_torch,
    total,
    values,
)

import ftrans as ft
import ftrans.nn.functional as F
from ftrans import nn

STORED: dict[str, Figures] = json.loads(FILE.read_text())


def close(found: Figures, expected: Figures, what: str) -> None:
    """Compare figures."""
    assert len(found) == len(expected), what
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7, err_msg=what)


@pytest.mark.parametrize("row", LAYERS, ids=lambda row: row.text)
def test_layers(row: Row) -> None:
    layer = row.make().double()
    for i, parameter in enumerate(layer.parameters()):
        parameter.value = values(parameter.shape, i)
    xs = inputs_of(row.inputs)
    floats = floats_of(row.inputs, xs)

    def loss(layer: Any, *chosen: Any) -> Any:
        given = list(xs)
        for i, x in zip(floats, chosen, strict=True):
            given[i] = x
        out = layer(*given)
        return total(out, np.sin), leaves(out)

    argnums = tuple(range(len(floats) + 1))
    (_, out), (of_parameters, *of_inputs) = nn.value_and_grad(loss, argnums=argnums, has_aux=True)(
        layer, *(xs[i] for i in floats)
    )
    found = figures([*out, *of_inputs, *of_parameters.values()])
    expected = STORED[row.text]
    if row.name in WITHOUT_GRADIENTS:
        found, expected = found[: len(out)], expected[: len(out)]
    close(found, expected, row.text)


@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions(text: str) -> None:
    call = eval(f"lambda x, y=None, z=None: {text}", dict(vars(F)))
    xs = inputs_of(FUNCTIONS[text])
    floats = tuple(floats_of(FUNCTIONS[text], xs))
    out = leaves(call(*xs))
    gradients = ft.grad(lambda *xs: total(call(*xs), np.sin), argnums=floats)(*xs)
    close(figures([*out, *gradients]), STORED[text], text)


def test_every_row_is_stored() -> None:
    assert list(STORED) == [*(row.text for row in LAYERS), *FUNCTIONS], "run python tests/torch_figures.py"


def test_the_figures_are_those_of_torch() -> None:
    pytest.importorskip("torch")
    for text, found in of_torch().items():
        close(found, STORED[text], text)
