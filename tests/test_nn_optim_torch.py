"""nn.optim against torch where it is installed: steps, rates, and state dictionaries in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scheduler_rows
from optimizer_rows import FIRST, ROWS, STEPS, Row, gradients
from scheduler_rows import MAKERS

import ftrans as ft
from ftrans import nn

torch = pytest.importorskip("torch")

DTYPES = {"float32": 2e-6, "complex128": 1e-7, "float64": 1e-7}


def step(optimizer: Any, parameters: list[Any], number: int, tensor: Any) -> None:
    values = [p.detach().numpy().copy() for p in parameters]
    for p, g in zip(parameters, gradients(number, values), strict=True):
        p.grad = tensor(g.astype(values[0].dtype))
    optimizer.step()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_steps_and_states(row: Row, dtype: str) -> None:
    """Ten steps each, then ten steps each from the state of the other."""
    first = [x.astype(dtype) * (1 + 0.5j if dtype.startswith("complex") else 1) for x in FIRST]
    ours = [ft.autograd.tensor(x.copy(), requires_grad=True) for x in first]
    theirs = [torch.tensor(x, requires_grad=True) for x in first]
    for _ in range(2):
        optimizers = [
            getattr(nn.optim, row.name)(ours, **row.numbers),
            getattr(torch.optim, row.name)(theirs, **row.numbers),
        ]
        for number in range(STEPS // 2):
            step(optimizers[0], ours, number, ft.autograd.tensor)
            step(optimizers[1], theirs, number, torch.tensor)
        for p, q in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(
                p.detach().numpy().copy(), q.detach().numpy(), rtol=DTYPES[dtype], atol=DTYPES[dtype]
            )
        states = [x.state_dict() for x in optimizers]
        as_tensors = {
            i: {name: torch.tensor(x) for name, x in of_one.items()} for i, of_one in states[0]["state"].items()
        }
        optimizers = [getattr(nn.optim, row.name)(ours, lr=9.0), getattr(torch.optim, row.name)(theirs, **row.numbers)]
        optimizers[0].load_state_dict(states[1])
        optimizers[1].load_state_dict({**states[1], "state": as_tensors})
        for number in range(STEPS // 2, STEPS):
            step(optimizers[0], ours, number, ft.autograd.tensor)
            step(optimizers[1], theirs, number, torch.tensor)
        for p, q in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(
                p.detach().numpy().copy(), q.detach().numpy(), rtol=DTYPES[dtype], atol=DTYPES[dtype]
            )


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.filterwarnings("ignore")
def test_rates(name: str) -> None:
    made = []
    for library, values in ((torch.optim, [torch.zeros(1, requires_grad=True) for _ in range(2)]), (nn.optim, None)):
        values = values or [nn.Parameter(np.ones(1)) for _ in range(2)]
        groups = [{"params": values[:1]}, {"params": values[1:], "lr": 0.05}]
        optimizer = library.RMSprop(groups, lr=0.2, momentum=0.9)
        scheduler = MAKERS[name](library.lr_scheduler, optimizer)
        rows: list[Any] = []
        scheduler_rows.figures(
            scheduler, optimizer, lambda _, o=optimizer, r=rows: r.append([g["lr"] for g in o.param_groups])
        )
        made.append(rows)
    np.testing.assert_allclose(made[1], made[0], rtol=1e-9, atol=1e-12)
