"""Going backwards through the states of a loop, with memory for only some of them: checkpoints.

How many steps there will be is not known while the loop runs forwards.  So every state is kept until the places are
full; then most of them are dropped, and from there on every k-th state is kept, with k growing whenever half of the
places are full (Stumm and Walther, 2010, "New algorithms for optimal online checkpointing").  The other half is for the
way back: the states between two checkpoints are computed again, and new checkpoints on that stretch are set as binomial
checkpointing prescribes (Griewank and Walther, 2000, "Algorithm 799: revolve").

There are two forms of it: a Python iterator for the NumPy evaluator, and loops of XLA, whose memory is fixed before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from math import comb
from typing import Any, TypeVar

import numpy as np

State = TypeVar("State")
DEFAULT_CHECKPOINTS = 64

# A stretch is divided as if there were at most so many free places and repetitions.
_MOST_PLACES, _MOST_REPETITIONS = 512, 64


def backwards(
    first: State, goes_on: Callable[[State], Any], step: Callable[[State], State], checkpoints: int
) -> Iterator[State]:
    """The states from which `state = step(state)` runs while `goes_on(state)`, from the last to the first.

    Args:
        first: the state at the start.
        goes_on: whether there is a step from a state.
        step: the next state.
        checkpoints: how many states to keep besides the one that is asked for.
    """
    places = checkpoints + 1
    saved, count = _forwards(first, goes_on, step, places)
    for stop in range(count, 0, -1):
        position, state = saved[-1]
        while position < stop - 1:
            distance = hop(stop - position, places - len(saved))
            for _ in range(distance):
                state = step(state)
            position += distance
            saved.append((position, state))
        yield saved.pop()[1]


def _forwards(
    state: State, goes_on: Callable[[State], Any], step: Callable[[State], State], places: int
) -> tuple[list[tuple[int, State]], int]:
    """Checkpoints, the first state among them, and the number of steps."""
    saved: list[tuple[int, State]] = []
    count, spacing, most = 0, 1, places
    while goes_on(state):
        if count % spacing == 0:
            while len(saved) >= most and count % spacing == 0:
                factor = 4 if spacing == 1 else 2
                saved, spacing, most = saved[::factor], spacing * factor, places // 2
            if count % spacing == 0:
                saved.append((count, state))
        state = step(state)
        count += 1
    return saved, count


def hop(length: int, free: int) -> int:
    """How many steps to run from a checkpoint to the next, of which there may be `free` more, to go through the last
    `length` states."""
    if length <= free + 1:
        return 1
    if free == 1:
        return length - 1
    reach = reaches(min(free, _MOST_PLACES))
    return reach[int(np.searchsorted(reach, length)) - 1]


@functools.cache
def reaches(free: int) -> list[int]:
    """How many states can be gone through from one checkpoint, with so many places, where no step runs more often than
    0, 1, 2, ... times."""
    return [min(comb(free + r, r), 1 << 62) for r in range(_MOST_REPETITIONS)]


# The same in loops of XLA.  States are lists of arrays; a buffer is an array with a leading axis of places.


def sweep_all(
    state: Sequence[Any],
    carry: Sequence[Any],
    goes_on: Callable[[Sequence[Any]], Any],
    step: Callable[[Sequence[Any]], Sequence[Any]],
    undo: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]],
    max_steps: int,
) -> list[Any]:
    """`carry = undo(state, carry)` over the states from last to first, all of which are kept, at most `max_steps`."""
    from jax import lax

    def forwards(loop: Any) -> Any:
        state, count, buffers = loop
        return step(state), count + 1, _written(buffers, state, count)

    def back(loop: Any) -> Any:
        carry, count, buffers = loop
        return undo(_read(buffers, count - 1), carry), count - 1, buffers

    start = (list(state), np.int64(0), _buffers(state, max(max_steps, 1)))
    _, count, buffers = lax.while_loop(lambda loop: goes_on(loop[0]), forwards, start)
    return list(lax.while_loop(lambda loop: loop[1] > 0, back, (list(carry), count, buffers))[0])


def sweep_checkpointed(
    state: Sequence[Any],
    carry: Sequence[Any],
    goes_on: Callable[[Sequence[Any]], Any],
    step: Callable[[Sequence[Any]], Sequence[Any]],
    undo: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]],
    checkpoints: int,
) -> list[Any]:
    """`carry = undo(state, carry)` over the states from last to first, of which at most `checkpoints` are kept."""
    import jax.numpy as jnp
    from jax import lax

    places = checkpoints + 1
    table = jnp.asarray(np.array([reaches(f) for f in range(min(places, _MOST_PLACES + 1))]))

    def advance(state: Any, count: Any, going: Any, target: Any) -> Any:
        """The state at `target`, or where the loop ends."""

        def run(loop: Any) -> Any:
            state, count, _ = loop
            state = step(state)
            return state, count + 1, goes_on(state)

        return lax.while_loop(lambda loop: loop[2] & (loop[1] < target), run, (state, count, going))

    def save_and_advance(loop: Any) -> Any:
        state, count, going, buffers, used, spacing = loop
        buffers = _written(buffers, state, used)
        used = used + (count % spacing == 0)
        return *advance(state, count, going, (count // spacing + 1) * spacing), buffers, used, spacing

    def is_full(used: Any, spacing: Any) -> Any:
        return used >= jnp.where(spacing == 1, places, places // 2)

    def fill(loop: Any) -> Any:
        state, count, going, buffers, used, spacing = loop
        factor = jnp.where(is_full(used, spacing), jnp.where(spacing == 1, 4, 2), 1)
        kept = jnp.minimum(jnp.arange(places) * factor, places - 1)
        buffers, used, spacing = [b[kept] for b in buffers], (used + factor - 1) // factor, spacing * factor
        return lax.while_loop(
            lambda loop: loop[2] & ~((loop[1] % loop[5] == 0) & is_full(loop[4], loop[5])),
            save_and_advance,
            (state, count, going, buffers, used, spacing),
        )

    def descend(loop: Any) -> Any:
        state, position, stop, positions, buffers, used = loop
        length, free = stop - position, places - used
        reach = table[jnp.minimum(free, _MOST_PLACES)]
        distance = jnp.where(free == 1, length - 1, reach[jnp.sum(reach < length) - 1])
        distance = jnp.where(length <= free + 1, 1, distance)
        position = position + distance
        state = lax.fori_loop(0, distance, lambda _, state: step(state), state)
        return state, position, stop, positions.at[used].set(position), _written(buffers, state, used), used + 1

    def undo_saved(loop: Any) -> Any:
        carry, stop, positions, buffers, used = loop
        return undo(_read(buffers, used - 1), carry), stop - 1, positions, buffers, used - 1

    def back(loop: Any) -> Any:
        carry, stop, positions, buffers, used = loop
        start = (_read(buffers, used - 1), positions[used - 1], stop, positions, buffers, used)
        _, _, _, positions, buffers, used = lax.while_loop(lambda loop: loop[1] < loop[2] - 1, descend, start)
        is_next = lambda loop: (loop[4] > 0) & (loop[2][loop[4] - 1] == loop[1] - 1)  # noqa: E731
        return lax.while_loop(is_next, undo_saved, (carry, stop, positions, buffers, used))

    zero, one = np.int64(0), np.int64(1)
    start = (list(state), zero, goes_on(state), _buffers(state, places), zero, one)
    _, count, _, buffers, used, spacing = lax.while_loop(lambda loop: loop[2], fill, start)
    positions = jnp.arange(places) * spacing
    return list(lax.while_loop(lambda loop: loop[1] > 0, back, (list(carry), count, positions, buffers, used))[0])


def _buffers(state: Sequence[Any], places: int) -> list[Any]:
    import jax.numpy as jnp

    return [jnp.zeros((places, *x.shape), x.dtype) for x in state]


def _written(buffers: Sequence[Any], state: Sequence[Any], place: Any) -> list[Any]:
    from jax import lax

    return [lax.dynamic_update_index_in_dim(b, x, place, 0) for b, x in zip(buffers, state, strict=True)]


def _read(buffers: Sequence[Any], place: Any) -> list[Any]:
    from jax import lax

    return [lax.dynamic_index_in_dim(b, place, 0, keepdims=False) for b in buffers]
