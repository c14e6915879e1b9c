"""Jacobians by differences with one step, element by element: the classical check, for who asks for a step `eps`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.program import Program
from ..core.types import ArrayType, is_complex, is_inexact
from .derivatives import Arrays, Mode, Vector, coordinates, derivative_alone, place, run, weights
from .failures import Failure
from .subject import Settings, Subject

ATOL, RTOL = 1e-5, 1e-3
# Jacobians with more rows or columns are compared along random directions instead.
_LARGEST = 256


def compare(subject: Subject, chain: tuple[Mode, ...], settings: Settings) -> list[Failure]:
    """Failures of Jacobians that are not what central differences with the step `settings.eps` give."""
    assert settings.eps is not None
    program, args, active = subject.program, subject.args, subject.active
    wrt = [x for x, a in zip(args, active, strict=True) if a]
    rng = np.random.default_rng(settings.seed)
    columns, rows = sum(map(_width, wrt)), coordinates(run(program, args)).size
    is_large = max(columns, rows) > _LARGEST
    directions = [_random_unit(rng, wrt)] if is_large else list(_units(wrt))

    def moved(vectors: Sequence[Any], h: float) -> Vector:
        steps = iter(vectors)
        return coordinates(run(program, [x + h * next(steps) if a else x for x, a in zip(args, active, strict=True)]))

    eps = settings.eps
    numerical = np.array([(moved(v, eps) - moved(v, -eps)) / (2 * eps) for v in directions]).T
    failures = []
    for mode in settings.modes:
        apply = _applied(derivative_alone(program, active, mode), args)
        if mode == "forward":
            expected, analytic = numerical, np.array([apply(v) for v in directions]).T
        else:
            like = [np.empty(t.shape, t.dtype) for t in subject.out_types]
            cotangents = [_random_unit(rng, like)] if is_large else list(_units(like))
            expected = np.array([weights(u) for u in cotangents]) @ numerical
            analytic = np.array([apply(u) for u in cotangents]) @ np.array([weights(v) for v in directions]).T
        failure = _compared(analytic, expected, (*chain, mode), settings, is_large, subject, wrt)
        failures += [failure] if failure is not None else []
    return failures


def _compared(
    analytic: Vector,
    expected: Vector,
    chain: tuple[Mode, ...],
    settings: Settings,
    is_large: bool,
    subject: Subject,
    wrt: Arrays,
) -> Failure | None:
    atol = ATOL if settings.atol is None else settings.atol
    rtol = RTOL if settings.rtol is None else settings.rtol
    gap = np.abs(analytic - expected)
    wrong = ~(gap <= atol + rtol * np.abs(expected))
    if not wrong.any():
        return None
    worst = np.unravel_index(np.argmax(np.where(wrong, np.nan_to_num(gap, nan=np.inf), -1)), gap.shape)
    given, should = float(analytic[worst]), float(expected[worst])
    if is_large:
        where = "along random directions"
    else:
        arguments = [f"argument {i}" for i in range(len(wrt))]
        of = place(int(worst[0]), subject.out_types, subject.names)
        by = place(int(worst[1]), [ArrayType(np.shape(x), np.asarray(x).dtype) for x in wrt], arguments)
        where = f"of {of} by {by}"
    text = (
        f"the derivative {where} is {given:.9g}, but the difference with eps={settings.eps:g} gives {should:.9g} "
        f"(atol={atol:g}, rtol={rtol:g}; {int(wrong.sum())} of {wrong.size} elements differ)"
    )
    return Failure("jacobian", chain, text, given, should)


def _applied(program: Program, args: Arrays) -> Callable[[Sequence[Any]], Vector]:
    return lambda vectors: coordinates(run(program, [*args, *vectors]))


def _width(x: Any) -> int:
    """How many real numbers an array holds."""
    x = np.asarray(x)
    return x.size * (2 if is_complex(x.dtype) else 1) if is_inexact(x.dtype) else 0


def _units(like: Arrays) -> Iterator[list[Any]]:
    """The unit vectors of the space of some arrays, as arrays like them."""
    zeros = [np.zeros(np.shape(x), np.asarray(x).dtype) for x in like]
    for position, zero in enumerate(zeros):
        for index in np.ndindex(zero.shape):
            for one in (1.0, 1j) if is_complex(zero.dtype) else (1.0,):
                unit = zero.copy()
                unit[index] = one
                yield [unit[()] if i == position else z[()] for i, z in enumerate(zeros)]


def _random_unit(rng: np.random.Generator, like: Arrays) -> list[Any]:
    """A random direction of length 1, as arrays like some others."""
    found = []
    for x in map(np.asarray, like):
        noise = rng.standard_normal(x.shape)
        found.append(noise + 1j * rng.standard_normal(x.shape) if is_complex(x.dtype) else noise)
    length = np.sqrt(sum(float(np.sum(np.abs(x) ** 2)) for x in found))
    return [(v / length).astype(np.asarray(x).dtype)[()] for v, x in zip(found, like, strict=True)]
