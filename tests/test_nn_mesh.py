"""Modules on a mesh of eight devices: where cells are and stay, and that training equals that on one device."""

from __future__ import annotations

import copy
import pickle

import jax
import numpy as np
import optax
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


# Rules


def specs_of(model):
    return {path: cell.array.sharding.spec for path, cell in model.named_cells()}


def test_patterns_are_searched_in_paths_and_the_first_one_holds():
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 8))
    rules = [("^0[.]weight$", P(None, "data")), ("weight", ("data",)), ("running", "data")]
    assert nn.shard(model, mesh_of(8), rules) is model
    divided = {"0.weight": P(None, "data"), "1.weight": P("data"), "2.weight": P("data")}
    divided |= {"1.running_mean": P("data"), "1.running_var": P("data")}
    assert specs_of(model) == {path: divided.get(path, P()) for path in specs_of(model)}
    # The same mesh, divided otherwise; axes of the mesh may be taken together.
    both = {"0.bias": P(("data", "model"))}
    model.to("cpu")
    assert specs_of(nn.shard(model, mesh_of(4, 2), both))["0.bias"] == P(("data", "model"))
    assert specs_of(nn.shard(model, mesh_of(4, 2), both))["1.running_mean"] == P()


def test_ready_made_rules():
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 40), nn.BatchNorm1d(40))
    assert set(specs_of(nn.shard(model, mesh_of(8), nn.data_parallel())).values()) == {P()}
    found = specs_of(nn.shard(model, mesh_of(8), nn.fsdp()))
    assert {path: spec for path, spec in found.items() if spec} == {"0.weight": P("data"), "2.weight": P(None, "data")}
    assert specs_of(nn.shard(model, mesh_of(8), nn.fsdp(min_size=1)))["2.bias"] == P("data")
    found = specs_of(nn.shard(model.to("cpu"), mesh_of(4, 2), nn.tensor_parallel()))
    divided = {"0.weight": P("model"), "0.bias": P("model"), "2.weight": P(None, "model")}
    assert {path: spec for path, spec in found.items() if spec} == divided
    # What one rule leaves whole, another may divide.
    found = specs_of(nn.shard(model, mesh_of(4, 2), [nn.tensor_parallel(), nn.fsdp("data", min_size=1)]))
    assert {path: spec for path, spec in found.items() if spec and path not in divided} == {
        "2.bias": P("data"), "3.weight": P("data"), "3.bias": P("data"),
    }  # fmt: skip


def test_tensor_parallel_knows_the_layers():
    transformer = nn.TransformerEncoderLayer(8, 2, 16)
    model = nn.ModuleDict(
        {
            "attention": transformer, "table": nn.Embedding(3, 4), "conv": nn.Conv2d(3, 4, 3),
            "up": nn.ConvTranspose1d(3, 4, 3), "lstm": nn.LSTM(3, 4), "odd": nn.Linear(4, 3),
        }
    )  # fmt: skip
    rows, columns = P("model"), P(None, "model")
    layer = {"linear1.weight": rows, "linear1.bias": rows, "linear2.weight": columns}
    layer |= {"self_attn.in_proj_weight": rows, "self_attn.in_proj_bias": rows, "self_attn.out_proj.weight": columns}
    wanted = {f"attention.{path}": spec for path, spec in layer.items()}
    wanted |= {"table.weight": columns, "conv.weight": rows, "conv.bias": rows, "up.weight": columns, "up.bias": rows}
    wanted |= {f"lstm.{name}_l0": rows for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    found = specs_of(nn.shard(model, mesh_of(4, 2), nn.tensor_parallel()))
    assert {path: spec for path, spec in found.items() if spec} == wanted


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([("wieght", P("data"))], r"the rule 'wieght' matches no path .*weight.*regular expression"),
        ([("[", P("data"))], r"is a regular expression, which '\[' is not"),
        ([("weight", P("data"))], r"weight is float32\[6, 16\], whose axis 0 of size 6 .* 'data' \(8\) of the mesh"),
        ([("weight", P("modl"))], r"the rule 'weight' names the axis 'modl', but the mesh has 'data' of size 8"),
        ([("bias", P(None, "data"))], r"divides 2 axes, but bias is float32\[6\]"),
        (nn.fsdp("d"), r"nn.fsdp names the axis 'd', but"),
        (nn.data_parallel("d"), r"nn.data_parallel names the axis 'd', but"),
        (nn.tensor_parallel(), r"nn.tensor_parallel names the axis 'model', but"),
        (nn.tensor_parallel("data"), r"found no Linear.*8 devices divide evenly"),
        (nn.fsdp(min_size=10**6), r"nn.fsdp found no parameter of 1000000 elements"),
    ],
)
def test_rules_that_cannot_be_followed(rules, message):
    model = nn.Linear(16, 6)
    with pytest.raises(ValueError, match=message):
        nn.shard(model, mesh_of(8), rules)
    assert model.weight.sharding is None


@pytest.mark.parametrize("rules", ["weight", [("weight",)], 3, {"weight": 3}])
def test_what_is_no_rule(rules):
    with pytest.raises(TypeError, match="PartitionSpec"):
        nn.shard(nn.Linear(8, 8), mesh_of(8), rules)


def test_a_model_is_on_one_mesh():
    model = nn.shard(nn.Linear(8, 8), mesh_of(8))
    with pytest.raises(ValueError, match=r"weight is on another mesh already, \(data=8\) .* model.to\('cpu'\)"):
        nn.shard(model, mesh_of(4, 2))
    with pytest.raises(TypeError, match=r"nn.shard takes a mesh of JAX, .* not of type list"):
        nn.shard(model, jax.devices())


# What belongs to a model


def bytes_on_first_device(*modules):
    cells = {id(cell): cell for module in modules for _, cell in module.named_cells()}.values()
    shards = [shard for cell in cells for shard in cell.array.addressable_shards]
    return sum(shard.data.nbytes for shard in shards if shard.device == jax.devices()[0])


def test_the_state_of_an_optimizer_is_where_its_parameters_are():
    model = nn.shard(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)), mesh_of(8), nn.fsdp())
    chain = optax.chain(optax.clip_by_global_norm(1.0), optax.MultiSteps(optax.adam(1e-3), 2).gradient_transformation())
    optimizer = nn.Optimizer(model, chain)
    for name, cell in optimizer.state.items():
        assert cell.sharding.spec == (P("data") if name.endswith("weight") else P()), name
    # Weights, two moments, accumulated gradients; an eighth of each, and whole biases and counters.
    whole = 4 * 2 * (64 * 64 * 4)
    assert whole / 8 < bytes_on_first_device(optimizer) < 1.2 * whole / 8
    # One that was made before is placed together with its model.
    later = nn.Optimizer(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)), chain)
    nn.shard(later, mesh_of(8), nn.fsdp())
    assert specs_of(later) == specs_of(optimizer)


@pytest.mark.parametrize("debias", [False, True])
def test_an_average_is_where_its_parameters_are(debias):
    found = []
    for rules in (None, nn.fsdp()):
        nn.manual_seed(0)
        model = nn.Linear(32, 64)
        if rules is not None:
            nn.shard(model, mesh_of(8), rules)
        ema = nn.EMA(model, 0.9, debias=debias)
        for _ in range(2):
            model.weight.value = model.weight.value + 1
            ema.update()
        with ema.applied():
            found.append((model.weight.value, ema.averages["weight"].value, ema.averages["bias"].value))
            if rules is not None:
                assert model.weight.array.sharding.spec == ema.averages["weight"].array.sharding.spec == P("data")
                assert model.weight.array is not ema.averages["weight"].array
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6)
