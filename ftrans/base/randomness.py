"""The generator of random numbers of the process: of initial values of modules, of their seeds, of random tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator

_generator: Generator | None = None


def manual_seed(seed: int) -> None:
    """Seed random numbers: initial values of modules, the seeds of their streams and of loaders, and random tensors.

    Args:
        seed: a nonnegative integer.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.manual_seed(0)
        >>> first = nn.init.normal_(nn.Parameter(np.empty(3))).value
        >>> nn.manual_seed(0)
        >>> bool((nn.init.normal_(nn.Parameter(np.empty(3))).value == first).all())
        True
    """
    global _generator
    _generator = np.random.default_rng(seed)


def generator() -> Generator:
    """The generator of random numbers.  Unless `manual_seed` was called, it differs in each process."""
    global _generator
    if _generator is None:
        _generator = np.random.default_rng()
    return _generator
