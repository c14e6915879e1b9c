"""Devices as programs of torch ask for them: there is one for tensors, the memory of the host."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

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


@pytest.mark.parametrize(("name", "words"), [("Generator", "default_rng"), ("nn", "from ftrans import nn")])
def test_names_of_torch_that_are_elsewhere(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; write .*{words}"):
        getattr(torch, name)
