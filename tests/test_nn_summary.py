"""nn.summary: parameters, operations and bytes by module."""

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn

F32 = np.float32


class Model(nn.Module):
    def __init__(self):
        self.encoder = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 8)
        self.head.weight = self.encoder[0].weight
        self.head.bias.requires_grad = False

    def forward(self, x):
        for layer in self.encoder:
            x = np.tanh(layer(x))
        return self.head(self.drop(self.norm(x))), self.encoder[0](x)


X = np.ones((5, 8), F32)


def test_figures_of_each_module():
    model = Model()
    before = {k: np.array(v) for k, v in nn.state_of(model).items()}
    found = nn.summary(model, X)
    for path, x in nn.state_of(model).items():
        assert isinstance(x, np.ndarray)
        np.testing.assert_array_equal(x, before[path])
    assert [(m.path, m.kind, m.depth) for m in found.modules] == [
        ("", "Model", 0),
        ("encoder", "ModuleList", 1),
        ("encoder.0", "Linear", 2),
        ("encoder.1", "Linear", 2),
        ("norm", "BatchNorm1d", 1),
        ("drop", "Dropout", 1),
        ("head", "Linear", 1),
    ]
    linear = 2 * 5 * 8 * 8 + 5 * 8
    assert found["encoder.1"].flops == linear
    assert found["encoder.0"].flops == 2 * linear
    assert found["encoder.0"].calls == 2
    assert found["encoder"].calls == 0
    assert found["encoder"].outputs is None
    assert repr(found["head"].outputs) == "[f32[5,8]]"
    assert found["encoder.0"].activation_bytes == 2 * 5 * 8 * 4
    assert found.activation_bytes == 6 * 5 * 8 * 4
    # The tied weight counts once in the model, and in each of the layers.
    assert found.total.parameters == 2 * 64 + 3 * 8 + 16 == sum(p.size for p in model.parameters())
    assert found.total.trained == found.total.parameters - 8
    assert found["head"].parameters == 72
    assert found["head"].trained == 64
    assert found.total.parameter_bytes == 4 * found.total.parameters
    assert found.buffer_bytes == sum(c.type.nbytes for _, c in model.named_cells() if not isinstance(c, nn.Parameter))
    assert found.total is found[""]
    assert found.total.flops > 4 * linear


def test_the_total_is_that_of_the_program():
    model = Model().eval()
    assert nn.summary(model, X).total.flops == pytest.approx(
        ft.debug.cost(lambda x: model(x))(X).estimated_flops, rel=0.05
    )


def test_print_and_depth():
    model = Model()
    text = repr(nn.summary(model, X))
    assert "encoder" in text
    assert "0: Linear (x2)" in text
    assert "f32[5,8], f32[5,8]" in text
    assert f"parameters: {sum(p.size for p in model.parameters())}, of which" in text
    assert "of parameters" in text
    assert str(nn.summary(model, X)) == text
    assert "<table>" in nn.summary(model, X)._repr_html_()
    assert [m.path for m in nn.summary(model, X, depth=1).modules] == ["", "encoder", "norm", "drop", "head"]
    assert nn.summary(model, X, depth=0).total.flops == nn.summary(model, X).total.flops
    with pytest.raises(KeyError, match=r"encoder\.0"):
        nn.summary(model, X)["nothing"]
    with pytest.raises(TypeError, match="takes a module"):
        nn.summary(lambda x: x, X)


def test_shapes_in_place_of_arrays_and_containers():
    import jax

    shape = jax.ShapeDtypeStruct((5, 8), F32)
    assert nn.summary(Model(), shape).total.flops == nn.summary(Model(), X).total.flops

    class Named(nn.Module):
        def forward(self, batch, *, scale, flag):
            return {"y": batch["x"] * scale} if flag else None

    found = nn.summary(Named(), {"x": X}, scale=2.0, flag=True)
    assert repr(found.total.outputs) == "[f32[5,8]]"
    assert found.total.flops == 40


def test_layers_in_a_loop_and_what_a_gradient_keeps():
    layers = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(3)])

    class Scanned(nn.Module):
        def __init__(self):
            self.layers = layers

        def forward(self, x):
            return nn.scan(self.layers, x)

    class Looped(Scanned):
        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    scanned, looped = nn.summary(Scanned(), X), nn.summary(Looped(), X)
    assert scanned.total.flops == pytest.approx(looped.total.flops, rel=0.05)
    assert scanned["layers.0"].flops == looped["layers.0"].flops
    expected = ft.residuals(lambda m, x: m(x), argnums=0)(Looped(), X)
    assert looped.kept_bytes == sum(r.nbytes for r in expected if not r.name)


def test_an_error_in_forward_leaves_the_model_as_it_was():
    model = Model()
    with pytest.raises(Exception, match=r"8|shape"):
        nn.summary(model, np.ones((5, 7), F32))
    assert all(isinstance(cell.array, np.ndarray) for _, cell in model.named_cells())
    assert nn.summary(model, X).total.calls == 1
