"""Seeds: the generators that decide on orders, and their states for checkpoints."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...api.call import type_name
from ...base.source import at_line, user_line
from ..init import generator, manual_seed

# What decides on an order: a generator, a seed, or None for a seed of `nn.manual_seed`.
Randomness = np.random.Generator | int | None


def generator_for(given: Randomness, what: str) -> np.random.Generator:
    """The generator for an argument.

    Args:
        given: the argument.
        what: what it was given to, for messages.

    Raises:
        TypeError: it is neither a generator nor a seed.
    """
    if given is None:
        return np.random.default_rng(int(generator().integers(1 << 63)))
    if isinstance(given, np.random.Generator):
        return given
    if isinstance(given, int | np.integer):
        return np.random.default_rng(int(given))
    raise TypeError(
        f"generator of {what} is {type_name(given)}; it is a seed or np.random.default_rng(seed), for a "
        f"torch.Generator write generator.initial_seed(){at_line(user_line())}"
    )


def states_of(generators: Iterable[np.random.Generator]) -> list[dict[str, Any]]:
    """The states of generators, of numbers, texts, lists and dictionaries."""
    return [_plain(g.bit_generator.state) for g in generators]


def _plain(state: Any) -> Any:
    if isinstance(state, dict):
        return {name: _plain(x) for name, x in state.items()}
    return state.tolist() if hasattr(state, "tolist") else state


def restore_states(generators: Iterable[np.random.Generator], states: Iterable[dict[str, Any]]) -> None:
    """Give generators the states that `states_of` returned."""
    for g, state in zip(generators, states, strict=True):
        g.bit_generator.state = state


def seed_all(*words: int) -> None:
    """Seed all that code of a dataset may draw from, in a worker process."""
    sequence = np.random.SeedSequence(words)
    numbers = sequence.generate_state(6)
    np.random.seed(numbers[:4])
    random.seed(int(numbers[4]))
    manual_seed(int(numbers[5]))
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(int(numbers[5]))
