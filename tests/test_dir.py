"""What `dir` lists, which is what tab completion offers: names that are there, and for users."""

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn
from ftrans.autograd import tensor


class Model(nn.Module):
    def __init__(self):
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


def traced(check):
    ft.trace(lambda x: check(x) or x + 1)(np.ones((2, 2)))


OBJECTS = {
    "tensor": lambda: tensor([[1.0, 2.0]], requires_grad=True),
    "parameter": lambda: Model().layers[0].weight,
    "buffer": lambda: nn.BatchNorm1d(2).running_mean,
    "module": Model,
    "layer": lambda: nn.Linear(2, 2),
    "container": lambda: Model().layers,
    "program": lambda: ft.trace(np.sin)(np.ones(2)),
    "sparsity": lambda: ft.jacobian_sparsity(np.sin)(np.ones(2)),
    "explanation": lambda: ft.explain(np.sum, np.ones(2)),
    "compiled": lambda: ft.jit(np.sin),
    "optimizer": lambda: nn.optim.Adam(Model(), lr=0.1),
    "distribution": lambda: nn.distributions.Normal(0.0, 1.0),
}


def public(x):
    return [name for name in dir(x) if not name.startswith("_")]


@pytest.mark.parametrize("kind", OBJECTS)
def test_what_dir_lists_is_there(kind):
    x = OBJECTS[kind]()
    for name in public(x):
        assert name.isidentifier()
        assert hasattr(x, name), f"dir lists {name}, which raises"


def test_traced_values_list_what_they_have():
    def check(x):
        names = public(x)
        assert {"shape", "dtype", "sum", "T", "reshape"} <= {*names}
        assert all(hasattr(x, name) for name in names)
        assert not {"atom", "builder", "tobytes", "strides"} & {*names}

    traced(check)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("tensor", {"node", "memory", "window", "apply_program", "concrete", "as_strided"}),
        ("parameter", {"held", "home", "transaction", "concrete", "recorded"}),
        ("module", {"compile", "share_memory", "xpu"}),
        ("program", {"page_of", "storage"}),
        ("sparsity", {"page_of"}),
    ],
)
def test_what_is_not_for_users_is_not_listed(kind, names):
    assert not names & {*public(OBJECTS[kind]())}


def test_parameters_list_methods_of_arrays():
    assert {"T", "sum", "mean", "reshape", "norm", "value", "grad"} <= {*dir(Model().layers[0].weight)}


def test_submodules_and_computed_attributes_are_listed():
    model = Model()
    assert {"layers", "forward", "parameters", "state_dict"} <= {*dir(model)}
    nn.utils.parametrizations.weight_norm(model.layers[0])
    assert "weight" in dir(model.layers[0])
