"""Blocks after which a model is as it was before: all that it holds, or its mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ...xla import copied, is_jax
from ..modules.graph import graph_of
from ..modules.module import Module


@contextmanager
def as_it_was(model: Module) -> Iterator[None]:
    """A block after which parameters, buffers, streams of random numbers and modes are those of before."""
    cells = graph_of(model).cells
    before = [copied(c.array, c.dtype) if is_jax(c.array) else np.array(c.array) for c in cells]
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for cell, array in zip(cells, before, strict=True):
            cell.array = array
        _restore(modes)


@contextmanager
def in_evaluation_mode(model: Module) -> Iterator[None]:
    """A block in which a model and all of its modules are in evaluation mode."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        _restore(modes)


def _restore(modes: list[tuple[Module, bool]]) -> None:
    for module, mode in modes:
        if module.training != mode:
            module.training = mode
