"""Loops of functions of NumPy arrays: what the rules `numpy` of loops do, without programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from ..checkpoints.schedule import DEFAULT_CHECKPOINTS, backwards, forwards
from ..subprograms import cut

Function = Callable[..., list[Any]]

# All states that fit into this memory are kept, unless a number of checkpoints is asked for.
_STATE_BYTES = 1 << 28


def scan(
    *arrays: Any,
    step: Function,
    length: int,
    reverse: bool,
    consts: int,
    carries: int,
    own: Sequence[int],
    elements: Sequence[tuple[tuple[int, ...], Any]],
) -> list[Any]:
    """The last carry, and the elements that each step returns beside it.

    Args:
        arrays: constants, the first carry, and sequences whose elements the steps take in turn.
        step: takes constants, the carry and elements; returns the carry and elements.
        length: the number of steps.
        reverse: whether the last elements come first.
        consts: how many constants there are.
        carries: how many arrays the carry has.
        own: which of the operands of a step it may write to.
        elements: shapes and dtypes of the elements that are returned.
    """
    fixed, carry, xs = cut(arrays, consts, carries)
    if not length:
        carry = [np.array(x)[()] for x in carry]
    carry = [np.array(x) if consts + i in own else x for i, x in enumerate(carry)]
    ys = [np.empty((length, *shape), dtype) for shape, dtype in elements]
    # Rows are read by NumPy's iterator, which is faster than an index.
    rows = zip(*[x[::-1] if reverse else x for x in xs], strict=True) if xs else repeat((), length)
    for i, row in zip(range(length)[::-1] if reverse else range(length), rows, strict=True):
        outs = step(*fixed, *carry, *row)
        if ys:
            for y, element in zip(ys, outs[carries:], strict=True):
                y[i] = element
        carry = outs[:carries]
    return [*carry, *ys]


def while_(
    *arrays: Any, goes_on: Function, step: Function, cond_consts: int, body_consts: int, own: Sequence[int]
) -> list[Any]:
    """The carry when the condition holds no more.

    Args:
        arrays: constants of the condition, those of the step, and the first carry.
        goes_on: takes its constants and the carry.
        step: takes its constants and the carry; returns the carry.
        cond_consts: how many constants the condition has.
        body_consts: how many constants the step has.
        own: which of the operands of a step it may write to.
    """
    of_cond, of_body, carry = cut(arrays, cond_consts, body_consts)
    carry = [np.array(x) if body_consts + i in own else x for i, x in enumerate(carry)]
    ran = False
    while goes_on(*of_cond, *carry)[0]:
        carry = step(*of_body, *carry)
        ran = True
    return carry if ran else [np.array(x)[()] for x in carry]


def keep_states(
    *arrays: Any,
    holds: Function,
    step: Function,
    cond_consts: int,
    body_consts: int,
    kept: Sequence[int],
    keeps_everything: bool,
    checkpoints: int | None,
) -> list[Any]:
    """The carry when the condition holds no more, and states on the way, for a sweep back.

    Args:
        arrays: constants of the condition, those of the step, and the first carry.
        holds: the condition: takes its constants and the carry.
        step: takes its constants and the carry; returns the carry, and more that is kept.
        cond_consts: how many constants the condition has.
        body_consts: how many constants the step has.
        kept: which arrays of a carry are kept.
        keeps_everything: whether every state is.
        checkpoints: how many are, otherwise; None for as many as fit into memory.
    """
    of_cond, of_body, first = cut(arrays, cond_consts, body_consts)
    goes_on: Callable[[Any], Any] = lambda carry: holds(*of_cond, *carry)[0]  # noqa: E731
    members: Callable[[Any], list[Any]] = lambda carry: [carry[i] for i in kept]  # noqa: E731
    carry: Any = first
    saved: Any = []
    if keeps_everything:
        while goes_on(carry):
            outs = step(*of_body, *carry)
            saved.append([*members(carry), *outs[len(first) :]])
            carry = outs[: len(first)]
    else:
        # The overhead of NumPy's array objects counts, too.
        most = _STATE_BYTES // max(sum(x.nbytes + 128 for x in members(first)), 1)
        most = checkpoints or max(most, DEFAULT_CHECKPOINTS)
        carry, saved = forwards(first, goes_on, lambda carry: step(*of_body, *carry), members, most)
    return [*(carry if carry is not first else [np.array(x)[()] for x in carry]), saved]


def sweep_back(
    saved: Any,
    *arrays: Any,
    onwards: Function | None,
    rest: Function | None,
    undo: Function,
    members: Sequence[int],
    step_consts: int,
    undo_consts: int,
    is_last: bool,
) -> list[Any]:
    """The carry of a sweep back through the states of a loop.

    Args:
        saved: what `keep_states` has kept: rows, or checkpoints.
        arrays: constants of `onwards`, those of `undo`, and the first carry.
        onwards: a step of the loop, if there are checkpoints.
        rest: what a row has behind the state, if there are checkpoints.
        undo: takes its constants, a row and the carry; returns the carry.
        members: which parts of what is kept are used.
        step_consts: how many constants `onwards` has.
        undo_consts: how many constants `undo` has.
        is_last: whether nothing else needs what is kept.
    """
    of_step, of_undo, first = cut(arrays, step_consts, undo_consts)
    carry = first
    if onwards is None or rest is None:
        rows = saved if is_last else list(saved)
        while rows:
            values = rows.pop()
            carry = undo(*of_undo, *(values[i] for i in members), *carry)
    else:
        states = saved.states if is_last else list(saved.states)
        states[:] = [(number, [state[i] for i in members]) for number, state in states]
        for state in backwards(saved._replace(states=states), lambda state: onwards(*of_step, *state)):
            carry = undo(*of_undo, *state, *rest(*of_undo, *state), *carry)
    return carry if carry is not first else [np.array(c)[()] for c in carry]
