"""Examining the derivatives of a program at one point: every mode, up to an order.

The derivatives of one order are examined at a `Point`; those of the next order are the derivatives of the derivative
programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..control.subprograms import chosen
from ..core.program import Program
from . import jacobians
from .derivatives import (
    Mode,
    coordinates,
    derivative_alone,
    differentiable,
    place,
    random_like,
    run,
    typical_size,
)
from .failures import Failure
from .point import Point
from .precision import widened
from .subject import Settings, Subject

Chain = tuple[Mode, ...]


def examine(subject: Subject, settings: Settings) -> tuple[list[Failure], list[str]]:
    """The failures of a program's derivatives up to an order, and inconclusive checks.

    The derivatives of an order are examined only if those below it are right.
    """
    rng = np.random.default_rng(settings.seed)
    subjects: list[tuple[Chain, Subject]] = [((), subject)]
    doubts: list[str] = []
    for order in range(1, settings.order + 1):
        failures: list[Failure] = []
        for chain, each in subjects:
            failures += _first_order(each, chain, settings, rng, doubts)
        if failures or order == settings.order:
            return failures, doubts
        subjects = [
            ((*chain, mode), differentiated(each, mode, rng)) for chain, each in subjects for mode in settings.modes
        ]
    return [], doubts


def differentiated(subject: Subject, mode: Mode, rng: np.random.Generator) -> Subject:
    """The derivative of a program in one mode, as a program to be differentiated again."""
    vectors = _tangents(subject, rng) if mode == "forward" else _cotangents(subject, rng)
    program = derivative_alone(subject.program, subject.active, mode)
    own = None if subject.own is None else derivative_alone(subject.own, subject.active, mode)
    if mode == "forward":
        names = [f"the tangent of {name}" for name in chosen(subject.out_names, subject.out_differentiable)]
    else:
        names = [f"the cotangent of argument {i}" for i, a in enumerate(subject.active) if a]
    return Subject(
        program,
        (*subject.args, *map(widened, vectors)),
        (*subject.active, *(True for _ in vectors)),
        own,
        (*subject.own_args, *vectors),
        tuple(names),
    )


def _first_order(
    subject: Subject, chain: Chain, settings: Settings, rng: np.random.Generator, doubts: list[str]
) -> list[Failure]:
    """Failures of the first derivatives of a subject, which is itself a derivative along `chain`."""
    values = coordinates(run(subject.program, subject.args))
    infinite = np.flatnonzero(~np.isfinite(values))
    if infinite.size:
        name = place(int(infinite[0]), subject.out_types, subject.names)
        text = f"{name} is {values[infinite[0]]} at the point that is checked"
        return [Failure("regularity", chain, text, float(values[infinite[0]]), np.nan)]
    point = Point(subject, chain, settings, _tangents(subject, rng, relative=True), _cotangents(subject, rng))
    failures = point.failures()
    doubts += point.doubts
    if not failures:
        # Elements that are small by accident count in units of the others.  That may leave the domain of others that
        # are small on purpose, which says nothing of the derivative.
        point = Point(subject, chain, settings, _tangents(subject, rng), _cotangents(subject, rng))
        failures = [f for f in point.failures() if f.check != "regularity"]
    if not failures and settings.eps is not None:
        failures = jacobians.compare(subject, chain, settings)
    return failures


def _tangents(subject: Subject, rng: np.random.Generator, relative: bool = False) -> list[Any]:
    """A random direction, in units of each argument or, if `relative`, of each of its elements."""
    found = []
    for x in chosen(subject.own_args, subject.active):
        size: Any = typical_size(x)
        if relative:
            each = np.abs(np.asarray(x)).astype(np.float64)
            size = np.where(each > 0, each, size)
        found.append(random_like(rng, x, size))
    return found


def _cotangents(subject: Subject, rng: np.random.Generator) -> list[Any]:
    program: Program = subject.own or subject.program
    types: Sequence[Any] = chosen(program.out_types, differentiable(program.out_types))
    return [random_like(rng, np.empty(t.shape, t.dtype)) for t in types]
