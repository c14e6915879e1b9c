"""What programs of torch ask about accelerators: tensors are in the memory of the host, so that there is none.

Compiled code (`nn.jit`) runs on JAX's default device, which may be one.
"""

from __future__ import annotations

from typing import Any

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all", "synchronize"]


def is_available() -> bool:
    """False: tensors cannot be put on an accelerator."""
    return False


def device_count() -> int:
    """0, the number of accelerators that tensors can be put on."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing, as there are no generators of accelerators; `autograd.manual_seed` seeds that of the host."""


manual_seed_all = manual_seed


def synchronize(device: Any = None) -> None:
    """Nothing: operations on tensors have ended when they return."""


def empty_cache() -> None:
    """Nothing, as no memory of an accelerator is held."""


def __dir__() -> list[str]:
    return __all__
