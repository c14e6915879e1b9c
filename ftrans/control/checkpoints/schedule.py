"""Schedules of checkpoints: sweeping back through the states of a loop with memory for only some of them.

The number of steps is not known while the loop runs forward.  So every state is kept until all slots are full; then
most of them are dropped, and from there on every k-th state is kept, with k growing whenever half of the slots are full
(Stumm and Walther, 2010, "New algorithms for optimal online checkpointing").  The other half is for the backward sweep:
the states between two checkpoints are recomputed, with new checkpoints among them as binomial checkpointing prescribes
(Griewank and Walther, 2000, "Algorithm 799: revolve").

There are two forms of it: a Python iterator for the NumPy evaluator, and XLA loops, whose memory is fixed in advance.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from math import comb
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ..loops.row_buffers import RowBuffers

State = TypeVar("State")
Kept = TypeVar("Kept")
DEFAULT_CHECKPOINTS = 64

# A stretch is divided as if there were at most this many free slots and repetitions.
_MOST_PLACES, _MOST_REPETITIONS = 512, 64


class Saved(NamedTuple, Generic[State]):
    """The checkpoints that a forward run of a loop leaves for the sweep back.

    Attributes:
        states: some of the states with their step numbers, including the first state.
        steps: the number of steps.
        places: the number of slots: how many states may be held at a time.
    """

    states: list[tuple[int, State]]
    steps: int
    places: int


def forwards(
    state: State,
    goes_on: Callable[[State], Any],
    step: Callable[[State], State],
    kept: Callable[[State], Kept],
    checkpoints: int,
) -> tuple[State, Saved[Kept]]:
    """Run `state = step(state)` while `goes_on(state)`; return the last state and checkpoints.

    Args:
        state: the first state.
        goes_on: whether the loop continues from a state.
        step: the next state.
        kept: the part of a state that a checkpoint keeps.
        checkpoints: how many states to keep besides the current one.
    """
    saved: list[tuple[int, Kept]] = []
    count, spacing, most = 0, 1, checkpoints + 1
    while goes_on(state):
        if count % spacing == 0:
            while len(saved) >= most and count % spacing == 0:
                factor = 4 if spacing == 1 else 2
                saved, spacing, most = saved[::factor], spacing * factor, (checkpoints + 1) // 2
            if count % spacing == 0:
                saved.append((count, kept(state)))
        state = step(state)
        count += 1
    return state, Saved(saved, count, checkpoints + 1)


def backwards(saved: Saved[State], step: Callable[[State], State]) -> Iterator[State]:
    """The states before each step, from the last to the first; `step` recomputes those between checkpoints.

    Saved states are removed as they are used, so that their slots become free.
    """
    states = saved.states
    for stop in range(saved.steps, 0, -1):
        position, state = states[-1]
        while position < stop - 1:
            distance = hop(stop - position, saved.places - len(states))
            for _ in range(distance):
                state = step(state)
            position += distance
            states.append((position, state))
        yield states.pop()[1]


def hop(length: int, free: int) -> int:
    """The number of steps to the next checkpoint, when sweeping over the last `length` states with `free` slots."""
    if length <= free + 1:
        return 1
    if free == 1:
        return length - 1
    reach = reaches(min(free, _MOST_PLACES))
    return reach[int(np.searchsorted(reach, length)) - 1]


@functools.cache
def reaches(free: int) -> list[int]:
    """How many states a sweep can cover from one checkpoint with `free` slots, if no step runs more than 0, 1, 2, ...
    times."""
    return [min(comb(free + r, r), 1 << 62) for r in range(_MOST_REPETITIONS)]


# The same in XLA loops.  States and rows are lists of arrays.

Arrays = Sequence[Any]
Step = Callable[[Arrays], Arrays]


class Buffers(NamedTuple):
    """The rows that a forward run of an XLA loop leaves for the sweep back.

    Attributes:
        arrays: buffers with one row for each saved state.
        used: the number of rows.
        steps: the number of steps.
        spacing: the number of steps from one row to the next.
    """

    arrays: list[Any]
    used: Any
    steps: Any
    spacing: Any


def keep_all(
    state: Arrays,
    goes_on: Callable[[Arrays], Any],
    step: Callable[[Arrays], tuple[Arrays, Arrays]],
    rows: RowBuffers,
    max_steps: int,
) -> tuple[list[Any], Buffers]:
    """Run `state, row = step(state)` while `goes_on(state)`; return the last state and the rows, at most `max_steps`.

    Args:
        state: the first state.
        goes_on: whether the loop continues from a state.
        step: the next state, and the row of the step.
        rows: how rows are written.
        max_steps: an upper bound of the number of steps.
    """
    from jax import lax

    def run(loop: Any) -> Any:
        state, count, arrays = loop
        state, row = step(state)
        return state, count + 1, rows.write(arrays, row, count)

    start = (list(state), np.int64(0), rows.buffers(max(max_steps, 1)))
    state, count, arrays = lax.while_loop(lambda loop: goes_on(loop[0]), run, start)
    return list(state), Buffers(arrays, count, count, 1)


def sweep_all(saved: Buffers, rows: RowBuffers, carry: Arrays, undo: Callable[[Arrays, Arrays], Arrays]) -> list[Any]:
    """`carry = undo(row, carry)` over all rows, from the last to the first."""
    from jax import lax

    def back(loop: Any) -> Any:
        carry, count, arrays = loop
        return undo(rows.read(arrays, count - 1), carry), count - 1, arrays

    return list(lax.while_loop(lambda loop: loop[1] > 0, back, (list(carry), saved.used, saved.arrays))[0])


def keep_checkpoints(
    state: Arrays,
    goes_on: Callable[[Arrays], Any],
    step: Step,
    kept: Step,
    rows: RowBuffers,
    checkpoints: int,
) -> tuple[list[Any], Buffers]:
    """Run `state = step(state)` while `goes_on(state)`; return the last state, and rows `kept` of some states."""
    import jax.numpy as jnp
    from jax import lax

    places = checkpoints + 1

    def advance(state: Any, count: Any, going: Any, target: Any) -> Any:
        """The state at `target`, or where the loop ends."""

        def run(loop: Any) -> Any:
            state, count, _ = loop
            state = step(state)
            return state, count + 1, goes_on(state)

        return lax.while_loop(lambda loop: loop[2] & (loop[1] < target), run, (state, count, going))

    def save_and_advance(loop: Any) -> Any:
        state, count, going, arrays, used, spacing = loop
        arrays = rows.write(arrays, kept(state), used)
        used = used + (count % spacing == 0)
        return *advance(state, count, going, (count // spacing + 1) * spacing), arrays, used, spacing

    def is_full(used: Any, spacing: Any) -> Any:
        return used >= jnp.where(spacing == 1, places, places // 2)

    def fill(loop: Any) -> Any:
        state, count, going, arrays, used, spacing = loop
        factor = jnp.where(is_full(used, spacing), jnp.where(spacing == 1, 4, 2), 1)
        staying = jnp.minimum(jnp.arange(places) * factor, places - 1)
        arrays, used, spacing = [b[staying] for b in arrays], (used + factor - 1) // factor, spacing * factor
        return lax.while_loop(
            lambda loop: loop[2] & ~((loop[1] % loop[5] == 0) & is_full(loop[4], loop[5])),
            save_and_advance,
            (state, count, going, arrays, used, spacing),
        )

    zero, one = np.int64(0), np.int64(1)
    start = (list(state), zero, goes_on(state), rows.buffers(places), zero, one)
    state, count, _, arrays, used, spacing = lax.while_loop(lambda loop: loop[2], fill, start)
    return list(state), Buffers(arrays, used, count, spacing)


def sweep_checkpoints(
    saved: Buffers,
    states: RowBuffers,
    carry: Arrays,
    step: Step,
    row_of: Step,
    rows: RowBuffers,
    undo: Callable[[Arrays, Arrays], Arrays],
    checkpoints: int,
) -> list[Any]:
    """`carry = undo(row_of(state), carry)` over all states, from the last to the first.

    The states between two checkpoints are recomputed: long stretches are divided by new checkpoints first; then the
    rows of a short stretch are made and kept until the sweep has passed them.

    Args:
        saved: the checkpoints.
        states: how states are written.
        carry: the initial carry.
        step: the next state.
        row_of: the row of a step, made from the state before it.
        rows: how rows are written.
        undo: the next carry.
        checkpoints: how many states, and how many rows, to hold at a time besides the current one.
    """
    import jax.numpy as jnp
    from jax import lax

    places = checkpoints + 1
    table = jnp.asarray(np.array([reaches(f) for f in range(min(places, _MOST_PLACES + 1))]))

    def descend(loop: Any) -> Any:
        state, position, stop, positions, arrays, used = loop
        length, free = stop - position, places - used
        reach = table[jnp.minimum(free, _MOST_PLACES)]
        distance = jnp.where(free == 1, length - 1, reach[jnp.sum(reach < length) - 1])
        position = position + distance
        state = lax.fori_loop(0, distance, lambda _, state: step(state), state)
        return state, position, stop, positions.at[used].set(position), states.write(arrays, state, used), used + 1

    def run(loop: Any) -> Any:
        state, count, made, length = loop
        return step(state), count + 1, rows.write(made, row_of(state), count), length

    def back(loop: Any) -> Any:
        carry, stop, positions, arrays, used, made = loop
        last = (states.read(arrays, used - 1), positions[used - 1], stop, positions, arrays, used)
        state, position, _, positions, arrays, used = lax.while_loop(
            lambda loop: loop[2] - loop[1] > places - loop[5] + 1, descend, last
        )
        stretch = (state, np.int64(0), made, stop - position)
        _, count, made, _ = lax.while_loop(lambda loop: loop[1] < loop[3], run, stretch)
        carry = sweep_all(Buffers(made, count, count, 1), rows, carry, undo)
        return carry, position, positions, arrays, used - 1, made

    positions = jnp.arange(places) * saved.spacing
    start = (list(carry), saved.steps, positions, saved.arrays, saved.used, rows.buffers(places))
    # Once all remaining states are checkpoints, nothing is recomputed.
    carry, _, _, arrays, used, _ = lax.while_loop(lambda loop: loop[1] > loop[4], back, start)
    return sweep_all(Buffers(arrays, used, used, 1), states, carry, lambda state, carry: undo(row_of(state), carry))
