"""Devices and modules as programs of torch name them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans import autograd as torch
from ftrans import nn


def test_the_host_is_chosen_where_there_is_no_other_device() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert (device, device.type) == ("cpu", "cpu")
    assert pickle.loads(pickle.dumps(device)).type == "cpu"
    assert torch.device("cpu", 0) == torch.device(device) == device
    model = nn.Linear(2, 2).to(device)
    x = torch.ones(3, 2, device=device, requires_grad=True).to(device, non_blocking=True)
    assert next(model.parameters()).device == x.to(model.weight.device).device == device
    model(x).sum().backward()
    assert x.grad.device.type == "cpu"


def test_devices_have_a_type_in_all_modes() -> None:
    class Asking(nn.Module):
        def forward(self, x: Any) -> Any:
            assert (x.device, x.device.type) == ("cpu", "cpu")
            return x + torch.ones(2, device=x.device)

    for x in (np.ones(2), torch.ones(2)):
        assert Asking()(x).sum() == nn.jit(Asking())(x).sum() == 4


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "mps"])
def test_other_devices_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match=rf"cannot be put on '{name}'; compiled functions .* JAX's default device"):
        torch.device(name)


def test_what_is_asked_about_accelerators() -> None:
    assert torch.cuda.device_count() == 0
    for name in torch.cuda.__all__:
        arguments = [0] if name.startswith("manual_seed") else []
        assert not getattr(torch.cuda, name)(*arguments)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Generator", "default_rng"),
        ("FloatTensor", "dtype=float32"),
        ("set_num_threads", "OPENBLAS"),
        ("save", "nn.save"),
    ],
)
def test_names_of_torch_that_are_elsewhere(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; write .*{words}"):
        getattr(torch, name)


def test_modules_of_torch_are_there_where_nn_is_imported() -> None:
    assert torch.nn is nn
    assert torch.optim is nn.optim
    assert torch.utils.data is nn.data
    assert torch.distributions.Normal is nn.distributions.Normal
    assert torch.autograd is torch
    assert torch.ones(2, 3).size() == torch.Size([2, 3])
    code = (
        "from ftrans import autograd\n"
        "try: autograd.nn\n"
        "except AttributeError as error: print(error)\n"
        "from ftrans import nn\n"
        "print(autograd.nn is nn)\n"
    )
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "write from ftrans import nn" in printed
    assert printed.endswith("True\n")


def test_lists_of_axes_are_those_of_torch() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    for value in (torch.tensor(x), nn.Parameter(x)):
        assert np.allclose(value.sum([0, 2]).detach(), x.sum((0, 2)))
        assert value.mean([-1], keepdim=True).shape == (2, 3, 1)
    assert ft.jit(lambda x: x.mean([0, 1]))(x).shape == (4,)
