"""The limit for repeated work with which a program is fastest, found by trying."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ..core.program import Program
from .compiled import Compiled

# Barriers help where much is shared, and cost time where it is cheap; these limits differ in what they keep.
LIMITS = (None, 0.0, 8.0, 20.0, 60.0)
_ROUNDS = 20
_SECONDS = 0.5


def fastest(program: Program, args: Sequence[Any], limits: Sequence[float | None] = LIMITS) -> Compiled:
    """`program`, compiled with the limit with which it is fastest for these arguments.

    Each limit costs a compilation; those that keep no value share one.

    Args:
        program: the program.
        args: NumPy or JAX arrays, which are not donated.
        limits: what to try (see `Compiled`).
    """
    contenders: list[Compiled] = []
    for limit in limits:
        compiled = Compiled(program, limit=limit)
        if compiled.has_barriers or all(c.has_barriers for c in contenders):
            _run(compiled, args)
            contenders.append(compiled)
    best = dict.fromkeys(contenders, float("inf"))
    end = time.perf_counter() + _SECONDS * len(contenders)
    # In turns, since what else runs on the machine changes all the time.
    for _ in range(_ROUNDS):
        for compiled in contenders:
            best[compiled] = min(best[compiled], _run(compiled, args))
        if time.perf_counter() > end:
            break
    return min(contenders, key=best.__getitem__)


def _run(compiled: Compiled, args: Sequence[Any]) -> float:
    import jax

    start = time.perf_counter()
    jax.block_until_ready(compiled(*args))
    return time.perf_counter() - start
