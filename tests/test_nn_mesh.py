"""Modules on a mesh of eight devices: where cells are and stay, and that training equals that on one device."""

from __future__ import annotations

import copy
import pickle

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from ftrans import nn


def mesh_of(*shape, names=("data", "model"), kind=AxisType.Auto):
    return jax.make_mesh(shape, names[: len(shape)], axis_types=(kind,) * len(shape))


def on_mesh(x, spec, mesh=None):
    return jax.device_put(x, NamedSharding(mesh or mesh_of(8), spec))


# Cells


def test_a_cell_keeps_its_sharding_when_it_is_assigned():
    cell = nn.Buffer(np.zeros(16, np.float32))
    assert cell.sharding is None
    cell.value = on_mesh(np.zeros(16, np.float32), P("data"))
    wanted = NamedSharding(mesh_of(8), P("data"))
    assert cell.sharding == wanted
    for x in (np.arange(16.0, dtype=np.float32), on_mesh(np.ones(16), P()), jax.numpy.ones(16), [1.0] * 16):
        cell.value = x
        assert cell.array.sharding == wanted
        np.testing.assert_array_equal(cell.value, np.asarray(x))
    cell.value = on_mesh(np.ones(3), P())
    assert cell.sharding.spec == P()
    cell += 1
    assert cell.array.sharding.spec == P()
    assert cell.value.tolist() == [2, 2, 2]


def test_an_array_of_another_shape_must_be_divisible_too():
    cell = nn.Parameter(on_mesh(np.zeros((16, 2)), P("data", None)))
    cell.value = np.zeros((8, 5))
    assert cell.array.sharding.spec == P("data")
    with pytest.raises(ValueError, match=r"divided over devices by .*data.*shape \(12, 2\)"):
        cell.value = np.zeros((12, 2))


def test_axes_are_automatic_whatever_the_mesh_says():
    cell = nn.Buffer(np.zeros(8))
    cell.value = on_mesh(np.ones(8), P("data"), mesh_of(8, kind=AxisType.Explicit))
    assert cell.sharding == NamedSharding(mesh_of(8), P("data"))


def test_copies_stay_divided_and_pickles_do_not():
    model = nn.Linear(8, 16)
    model.weight.value = on_mesh(model.weight.value, P("data"))
    model.bias.value = on_mesh(model.bias.value, P("data"))
    twin = copy.deepcopy(model)
    assert twin.weight.sharding.spec == twin.weight.array.sharding.spec == P("data")
    assert twin.weight.array is not model.weight.array
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.weight.sharding is None
    assert isinstance(loaded.weight.array, np.ndarray)
    np.testing.assert_array_equal(loaded.weight.value, model.weight.value)
    assert model.to("cpu").weight.sharding is None


def test_what_a_step_changes_stays_where_it_is():
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16))
    for name, cell in model.named_cells():
        cell.value = on_mesh(cell.value, P("data") if name.startswith("0.") else P())

    @nn.jit
    def step(model, x):
        model(x)
        for p in model.parameters():
            p.value = p * 2

    for _ in range(2):
        step(model, on_mesh(np.ones((16, 8), np.float32), P("data")))
    for name, cell in model.named_cells():
        assert cell.array.sharding.spec == (P("data") if name.startswith("0.") else P()), name
    # Placed otherwise, it is another program.
    model[0].weight.move(on_mesh(model[0].weight.value, P()))
    step(model, np.ones((16, 8), np.float32))
    assert model[0].weight.array.sharding.spec == P()
    assert model[0].bias.array.sharding.spec == P("data")
