"""Modules on a mesh of eight devices: where cells are and stay, and that training equals that on one device."""

from __future__ import annotations

import copy
import pickle
from contextlib import contextmanager

import jax
import numpy as np
import optax
import pytest
import tables
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

    # Each device computes some of the features, and so of their statistics, which are whole on each.
    for _ in range(2):
        step(model, np.ones((16, 8), np.float32))
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


@pytest.mark.parametrize("name", ["Adam", "LBFGS"] if tables.whole else ["Adam"])
def test_optimizers_of_torch_on_a_mesh(name):
    """Steps in nn.jit, steps by themselves, and new rates, from groups, equal those on one device."""
    make = {
        "Adam": lambda model: nn.optim.AdamW([{"params": model[i].parameters(), "lr": 0.1} for i in (0, 2)]),
        "LBFGS": lambda model: nn.optim.LBFGS(model.parameters(), max_iter=3, history_size=4),
    }[name]
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(16, n)).astype(np.float32) for n in (6, 2))
    found, traces = [], []
    for rules in (None, nn.fsdp(min_size=1)):
        nn.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
        if rules is not None:
            nn.shard(model, mesh_of(8), rules)
        optimizer = make(model)

        def loss(model, x, y):
            return mse(model(x), y)

        def step(model, optimizer, x, y):
            traces.append(x)
            value, gradients = nn.value_and_grad(loss)(model, x, y)
            optimizer.step(gradients, value=value, value_fn=lambda model: loss(model, x, y))
            return value

        compiled = nn.jit(step, donate_argnums=(0, 1))
        where = {path: cell.sharding for path, cell in optimizer.named_cells()}
        for _ in range(4):
            compiled(model, optimizer, x, y)
            optimizer.param_groups[0]["lr"] *= 0.5
        if name != "LBFGS":
            step(model, optimizer, x, y)
        assert {path: cell.sharding for path, cell in optimizer.named_cells()} == where
        found.append({path: np.array(p.value) for path, p in model.named_parameters()})
    for path, value in found[0].items():
        np.testing.assert_allclose(found[1][path], value, rtol=2e-4, atol=2e-5, err_msg=path)
    assert len(traces) == (2 if name == "LBFGS" else 4)
    if name == "Adam":
        assert optimizer.state["exp_avg.0.weight"].sharding.spec == model[0].weight.sharding.spec != P()


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


# Training


F = nn.functional
RULES = {"dp": nn.data_parallel(), "fsdp": nn.fsdp(min_size=1), "tp": nn.tensor_parallel()}


def mesh_for(rules):
    return mesh_of(4, 2) if rules == "tp" else mesh_of(8)


def mlp():
    layers = [nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 8), nn.Linear(8, 2)]
    return nn.Sequential(*layers), mse, (6,), 2


def cnn():
    layers = [nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 2)]
    return nn.Sequential(*layers), mse, (1, 8, 8), 2


class Lstm(nn.Module):
    def __init__(self):
        self.lstm = nn.LSTM(4, 8, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def lstm():
    return Lstm(), mse, (5, 4), 2


class Gpt(nn.Module):
    def __init__(self, vocabulary=16, width=16, length=8):
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.block = nn.TransformerEncoderLayer(
            width, 2, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, text):
        x = self.tokens(text) + self.places(np.arange(text.shape[1]))
        return self.head(self.block(x, is_causal=True))


def gpt():
    def loss(logits, target):
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1))

    return Gpt(), loss, None, None


def mse(output, target):
    return np.mean((output - target) ** 2)


def trained(make, rules=None, samples=32, **options):
    """A model after three epochs, and the figures of them."""
    nn.manual_seed(0)
    model, loss, shape, outputs = make()
    rng = np.random.default_rng(0)
    if shape is None:
        x, y = rng.integers(0, 16, (2, samples, 8))
    else:
        x, y = (rng.normal(size=(samples, *s)).astype(np.float32) for s in (shape, (outputs,)))
    data = nn.batches(x, y, batch_size=16, seed=0)
    if rules is not None:
        options |= {"mesh": mesh_for(rules), "rules": RULES[rules]}
    # Adam would make much of a gradient that is zero but for rounding, as that of a bias before BatchNorm.
    options = {"epochs": 3, "optimizer": optax.sgd(0.02, momentum=0.9), "seed": 3, **options}
    return model, nn.fit(model, data, loss=loss, progress=False, **options)


@contextmanager
def compilations():
    """Within this block, the names of the functions that XLA compiles are added to a list."""
    names = []

    def note(event, _, **found):
        if event.endswith("backend_compile_duration"):
            names.append(found["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(note)
    yield names
    jax.monitoring.unregister_event_duration_listener(note)


SHORT = {("mlp", "dp"), ("mlp", "fsdp"), ("mlp", "tp"), ("cnn", "tp"), ("lstm", "dp"), ("gpt", "fsdp"), ("gpt", "tp")}


@pytest.mark.parametrize("make", [mlp, cnn, lstm, gpt])
def test_losses_are_those_of_one_device(make):
    one, history = trained(make)
    for rules in RULES:
        if not tables.whole and (make.__name__, rules) not in SHORT:
            continue
        with compilations() as names:
            model, found = trained(make, rules)
        assert names.count("jit(step)") == 1, names
        np.testing.assert_allclose(found["loss"], history["loss"], rtol=1e-6, err_msg=rules)
        divided = 0
        for path, cell in one.named_cells():
            where = dict(model.named_cells())[path]
            np.testing.assert_allclose(where.value, cell.value, rtol=1e-4, atol=1e-5, err_msg=f"{rules} {path}")
            assert where.array.sharding == where.sharding, path
            divided += where.sharding.spec != P()
        assert bool(divided) == (rules != "dp")
        if rules == "fsdp":
            whole = sum(cell.type.nbytes for _, cell in one.named_cells())
            assert whole / 8 <= bytes_on_first_device(model) < whole / 8 + 200


def test_adaptive_softmax_on_a_mesh():
    x, target = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8), np.arange(0, 16, 2)
    gradients = nn.jit(nn.grad(lambda layer, x, target: layer(x, target).loss))
    nn.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 16, [4, 10], div_value=2.0)
    one = gradients(layer, x, target)
    mesh = mesh_of(4, 2)
    nn.shard(layer, mesh, [(r"weight", P("model"))])
    found = gradients(layer, on_mesh(x, P("data"), mesh), on_mesh(target, P("data"), mesh))
    for path, expected in one.items():
        np.testing.assert_allclose(found[path], expected, 1e-4, 1e-6)


def test_uneven_batches_are_filled_up_by_samples_that_do_not_count():
    def make():
        return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2)), mse, (6,), 2

    def fit(*rules):
        rng = np.random.default_rng(1)
        x, y = rng.normal(size=(13, 6)).astype(np.float32), rng.normal(size=(13, 2)).astype(np.float32)
        validation = nn.batches(x, y, batch_size=8, shuffle=False)
        options = {"metrics": {"mae": F.l1_loss}, "validation": validation}
        return trained(make, *rules, samples=27, **options)[1]

    one = fit()
    with compilations() as names:
        found = fit("fsdp")
    assert names.count("jit(step)") == names.count("jit(evaluate)") == 1
    for name in ("loss", "mae", "val_loss", "val_mae"):
        np.testing.assert_allclose(found[name], one[name], rtol=1e-6)


@pytest.mark.parametrize("precision", [None, "bfloat16"])
def test_samples_that_stop_to_count_alike_are_found(precision):
    """The loss of the first batch is a mean over its samples, as that of a model without training may be."""
    weights = np.array([0.2, 9.0], np.float32)
    model = nn.Linear(6, 2)
    model.weight.value, model.bias.value = np.zeros((2, 6), np.float32), np.zeros(2, np.float32)
    x = np.random.default_rng(1).normal(size=(13, 6)).astype(np.float32)
    with pytest.raises(FloatingPointError, match="loss has to be the mean over the samples"):
        nn.fit(
            model,
            [(x, (x[:, 0] > 0).astype(int))] * 4,
            loss=lambda output, target: F.cross_entropy(output, target, weight=weights),
            optimizer=optax.sgd(0.3),
            mesh=mesh_of(8),
            precision=precision,
            progress=False,
        )


def test_means_of_filled_up_batches_in_half_precision_do_not_overflow():
    x, y = np.ones((13, 6), np.float32), np.full((13, 2), 140, np.float32)
    given = {"loss": lambda output, target: mse(output, target).astype(np.float16), "precision": "float16"}
    history = nn.fit(nn.Linear(6, 2), [(x, y)], mesh=mesh_of(8), progress=False, **given)
    assert history["loss"][0] > 19_000  # Of 13 of them, the sum is above 65,504.


def test_uneven_batches_are_dropped():
    def make():
        return nn.Linear(6, 2), mse, (6,), 2

    _, found = trained(make, "dp", samples=44, uneven="drop", epochs=1)
    assert found.epochs[-1]["step"] == 2
    np.testing.assert_allclose(found["loss"], trained(make, samples=44, steps_per_epoch=2, epochs=1)[1]["loss"], 1e-6)


def sum_of_squares(output, target):
    return np.sum((output - target) ** 2)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rules": nn.fsdp()}, ValueError, "rules says how arrays are divided over a mesh, which was not given"),
        ({"batch_spec": P("data")}, ValueError, "batch_spec says how arrays are divided over a mesh"),
        ({"mesh": 8}, TypeError, "nn.fit takes a mesh of JAX, .* not of type int"),
        ({"mesh": "8", "batch_spec": P("rows")}, ValueError, "batch_spec names the axis 'rows', but the mesh has"),
        ({"mesh": "8", "batch_spec": 3}, TypeError, "batch_spec has 3 where a PartitionSpec is expected"),
        ({"mesh": "8", "uneven": "cut"}, ValueError, "uneven is 'cut', but can be 'pad' or 'drop'"),
        ({"mesh": "8", "rules": [("wait", P())]}, ValueError, "the rule 'wait' matches no path"),
        ({"mesh": "8", "batch_spec": P(None, "data")}, ValueError, "an array of the batch is .*axis 1 of size 6 "),
        ({"mesh": "8", "model": nn.BatchNorm1d(6)}, ValueError, "10 samples, but the model computes statistics"),
        ({"mesh": "8", "loss": sum_of_squares}, ValueError, "loss has to be the mean over the samples"),
        ({"mesh": "8", "loss": None, "objective": lambda model, x, y: mse(model(x), y)}, ValueError,
         "10 samples, which the 8 parts of the axis 'data' .* an objective"),
    ],
)  # fmt: skip
def test_what_fit_refuses(options, error, message):
    x = np.ones((10, 6), np.float32)
    model = options.pop("model", None) or nn.Linear(6, 6)
    options = {"loss": mse, **options, **({"mesh": mesh_of(8)} if options.get("mesh") == "8" else {})}
    with pytest.raises(error, match=message):
        nn.fit(model, [(x, x)], progress=False, **options)


def test_fit_finds_the_mesh_of_a_placed_model():
    model = nn.shard(nn.Linear(6, 2), mesh_of(8), {"weight": P()})
    x, y = np.ones((16, 6), np.float32), np.ones((16, 2), np.float32)
    optimizer = nn.Optimizer(model, optax.sgd(0.1))
    history = nn.fit(model, [(x, y)], loss=mse, optimizer=optimizer, epochs=2, progress=False)
    assert history["loss"][1] < history["loss"][0]
    with pytest.raises(ValueError, match="weight is on another mesh already"):
        nn.fit(model, [(x, y)], loss=mse, mesh=mesh_of(4, 2), progress=False)


def test_a_summary_says_what_each_device_holds():
    model = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.Dropout(0.5))
    x = np.ones((8, 64), np.float32)
    assert nn.summary(model, x).total.device_bytes is None
    planned = nn.summary(model, x, mesh=mesh_of(8), rules=nn.fsdp())
    assert model[0].weight.sharding is None
    placed = nn.summary(nn.shard(model, mesh_of(8), nn.fsdp()), x)
    assert planned.total.device_bytes == placed.total.device_bytes == bytes_on_first_device(model)
    assert placed["0"].device_bytes == 4 * (64 * 128 // 8 + 128)
    assert "bytes per device" in repr(placed)
    assert "each device of the mesh holds 6.68 kB" in repr(placed)
    with pytest.raises(ValueError, match="rules divide a model over a mesh: write mesh="):
        nn.summary(model, x, rules=nn.fsdp())


# Steps of one's own


def own_steps(rules, donates):
    nn.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 2))
    mesh = mesh_of(8)
    if rules is not None:
        nn.shard(model, mesh, rules)
    optimizer = nn.Optimizer(model, optax.MultiSteps(optax.sgd(0.1, momentum=0.9), 2).gradient_transformation())
    average = nn.EMA(model, 0.9)

    @nn.jit(donate_argnums=(0, 1, 2) if donates else ())
    def own_step(model, optimizer, average, x, y):
        loss, gradients = nn.value_and_grad(lambda model: mse(model(x), y))(model)
        optimizer.step(gradients)
        average.update()
        return loss

    rng = np.random.default_rng(0)
    losses, before = [], []
    for _ in range(4):
        x, y = (rng.normal(size=(16, n)).astype(np.float32) for n in (6, 2))
        if rules is not None:
            x, y = on_mesh(x, P("data"), mesh), on_mesh(y, P("data"), mesh)
        before.append(model[0].weight.array)
        losses.append(float(own_step(model, optimizer, average, x, y)))
    assert not donates or all(x.is_deleted() for x in before[1:])
    return losses, nn.state_of(average)


def test_own_steps_compile_once_and_overwrite_what_is_donated():
    losses, state = own_steps(None, False)
    for rules, donates in ((nn.data_parallel(), False), (nn.fsdp(min_size=1), True)):
        with compilations() as names:
            found, others = own_steps(rules, donates)
        assert names.count("jit(own_step)") == 1
        np.testing.assert_allclose(found, losses, rtol=1e-6)
        for path, x in state.items():
            np.testing.assert_allclose(others[path], x, rtol=1e-4, atol=1e-5, err_msg=path)
