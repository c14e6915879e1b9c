"""Directional derivatives from values alone: central differences over a range of steps, extrapolated to step zero.

A single step is either too large (the function bends) or too small (rounding is divided by it).  Over a range of
steps the differences of a smooth function converge like the square of the step, so that they can be extrapolated, and
what is left between two of them says how far the result can be trusted (Ridders 1982, "Accurate computation of F'(x)
and F'(x) F''(x)").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Vector = np.ndarray[Any, np.dtype[np.float64]]
Function = Callable[[float], Vector]

_UNIT = float(np.finfo(np.float64).eps)
_FIRST_STEP, _RATIO, _LEVELS, _COLUMNS = 2.0**-4, 4.0, 15, 4
# An estimate this good, relative to the derivative, needs no further steps.
_GOOD = 1e-9
# Steps at which a kink or a jump shows.  A curve looks straight at the smaller ones.
_NEAR = (1e-4, 1e-6, 1e-8)


class Differences(NamedTuple):
    """What the values of a function of one number say of its derivative at 0.

    Attributes:
        derivative: the extrapolated derivative of each component; NaN where none was found.
        error: how far it may be off, by its own estimate.
        step: the step at which the rounding of values enters it.
        bends: whether the slopes on both sides seem to differ, however small the step.
    """

    derivative: Vector
    error: Vector
    step: Vector
    bends: np.ndarray[Any, np.dtype[np.bool_]]


def differentiate(f: Function, first: float = _FIRST_STEP) -> Differences:
    """The derivative at 0 of a function of one number.

    Args:
        f: the function; its components are handled one by one.
        first: the largest step.  A value that is not finite takes its step out.

    Returns:
        The derivative with its error.  It takes from 5 to 31 evaluations.
    """
    center = f(0.0)
    derivative, step = np.full(center.shape, np.nan), np.full(center.shape, first)
    error = np.full(center.shape, np.inf)
    row: list[Vector] = []
    bend = np.zeros(center.shape)
    for level in range(_LEVELS):
        h = first / _RATIO**level
        plus, minus = f(h), f(-h)
        coarse_bend, bend = bend, (plus - center - (center - minus)) / h
        before, row = row, [(plus - minus) / (2 * h)]
        size = np.maximum(np.abs(plus), np.abs(minus))
        for column, coarse in enumerate(before[:_COLUMNS], 1):
            finer = row[-1] + (row[-1] - coarse) / (_RATIO ** (2 * column) - 1)
            estimate = np.maximum(np.abs(finer - row[-1]), np.abs(finer - coarse))
            estimate = estimate + _UNIT * (size + np.abs(finer)) / h
            row.append(finer)
            better = estimate < error
            derivative, error = np.where(better, finer, derivative), np.where(better, estimate, error)
            step = np.where(better, h, step)
        # Smaller steps would be worth no more than the rounding of the values, divided by them.
        if level and np.all(error <= _GOOD * np.abs(derivative) + _RATIO * _UNIT * size / h):
            break
    # The difference of the slopes shrinks with the step for a curve, and stays for a kink.
    stays = (np.abs(bend) > 0.7 * np.abs(coarse_bend)) & (np.abs(bend) < 1.4 * np.abs(coarse_bend))
    bends = stays & (np.abs(bend) > 1e3 * _UNIT * np.abs(center) / h)
    return Differences(derivative, error, step, bends)


def irregularity(f: Function, component: int) -> str | None:
    """What keeps a component from having a derivative at 0, in words, or None if nothing is seen."""
    start = f(0.0)
    center, largest = float(start[component]), float(np.max(np.abs(start)))
    sides = [(float(f(h)[component]), float(f(-h)[component])) for h in _NEAR]
    if not np.isfinite(sides).all():
        return "which is at the edge of where it is defined: it is not finite on both sides"
    (far, near, nearest), steps = sides, _NEAR
    slopes = [((right - center) / h, (center - left) / h) for (right, left), h in zip(sides, steps, strict=True)]
    gaps = [abs(right - left) for right, left in slopes]
    # What rounding, or a curve within the largest step, could make of slopes that are one and the same.  A component
    # that is zero but for rounding has that of the others, which it is what remains of.
    rounding = _UNIT * max(100 * abs(center), 100 * abs(near[0]), 100 * abs(near[1]), 16 * largest)
    smallest = max(rounding, 1e-6 * abs(far[0] - far[1]))
    jumps = [max(abs(right - center), abs(left - center)) for right, left in sides]
    if jumps[2] > smallest and 0.5 < jumps[2] / jumps[1] < 2:
        return f"where it jumps, by about {max(jumps[2], abs(nearest[0] - nearest[1])):.3g}"
    steepest = max(map(abs, slopes[2]))
    if gaps[2] > max(1e-2 * steepest, rounding / steps[2]) and 0.5 < gaps[2] / gaps[1] < 2:
        return f"where it has a kink: its slope is {slopes[2][1]:.6g} on one side and {slopes[2][0]:.6g} on the other"
    return None
