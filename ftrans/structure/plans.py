"""Plans: which products would give the entries of a sparse matrix of derivatives, and what they would cost.

A plan is an estimate from the linear program of one product and a bound on how many products there must be, so that
only colourings that may pay are made, and only the program of the best one is built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Literal, NamedTuple

from ..core.primitive import MissingRule
from ..core.program import Program
from ..run.costs import program_cost
from ..transforms.differentiate import gradient
from .colouring.colour import fewest_colours, fewest_of_both
from .colouring.compressed import (
    Colouring,
    check_complex,
    check_complex_hessian,
    hessian_colouring,
    jacobian_colouring,
    symmetric,
)
from .colouring.jacobian_products import forward_product, reverse_product
from .dense.whole import dense_mode
from .entries import NotStructured

Flags = tuple[bool, ...]
Name = Literal["forward", "reverse", "bidirectional", "star", "dense"]

# A matrix with more than this part of all entries may be taken for a full one.
_FULL = 0.25
# A colouring of columns and rows is looked at if one of either needs more products than this.
_MANY_PRODUCTS = 20
# What is not made yet has to promise this part of the time of the best so far.
_WORTH = 0.75


class Plan(NamedTuple):
    """Products of one kind.

    Attributes:
        name: the kind.
        least: how many there are at least.
        one: the estimated time of one of them.
        entries: the number of entries to be taken out of them.
        colour: makes the colouring; None for products with unit vectors, of which there are `least`.
    """

    name: Name
    least: int
    one: float
    entries: int
    colour: Callable[[], Colouring] | None

    def time(self, count: int) -> float:
        """The estimated time of so many products and of what is taken out of them."""
        return count * self.one + self.entries

    def __str__(self) -> str:
        return "the dense matrix" if self.colour is None else f"colouring, {self.name} products"


class Choice(NamedTuple):
    """The best of some plans, with its colouring and estimated time; None if what there is beats them all.

    Attributes:
        plan: the plan.
        colouring: its colouring, if it has one.
        time: the estimated time of the best way.
        notes: lines about the others.
    """

    plan: Plan | None
    colouring: Colouring | None
    time: float
    notes: list[str]


def best_plan(plans: Sequence[Plan], limit: float) -> Choice:
    """The plan that takes least time, by estimate, if it takes less than the limit.

    Plans are looked at in the order of what they promise, and their colourings made while that is worth it.
    """
    best = Choice(None, None, limit, [])
    notes: list[tuple[Plan, float, str]] = []
    for plan in sorted(plans, key=lambda plan: plan.time(plan.least)):
        least = plan.time(plan.least)
        if best.time < inf and least > _WORTH * best.time:
            notes.append((plan, least, "at least "))
            continue
        colouring = None if plan.colour is None else plan.colour()
        time = plan.time(plan.least if colouring is None else colouring.total)
        if time <= best.time:
            if best.plan is not None:
                notes.append((best.plan, best.time, ""))
            best = Choice(plan, colouring, time, [])
        else:
            notes.append((plan, time, ""))
    return best._replace(notes=[instead(str(plan), time / best.time, least) for plan, time, least in notes])


def instead(what: str, times: float, least: str = "") -> str:
    """A note on what was not taken."""
    return f"not {what}: {least}{times:.3g} times as long by estimate"


def jacobian_plans(program: Program, active: Flags, wanted: int, pattern: Any) -> list[Plan]:
    """The plans for a Jacobian.

    Args:
        program: the program.
        active: which inputs to differentiate with respect to.
        wanted: how many leading outputs are differentiated.
        pattern: a CSR array; None for a full matrix.
    """
    is_wanted = tuple(i < wanted for i in range(len(program.outputs)))

    def time(direction: Literal["forward", "reverse"]) -> float:
        try:
            check_complex(program, active, is_wanted, direction)
            if direction == "forward":
                return running_time(forward_product(program, active, is_wanted))
            return running_time(reverse_product(program, active, is_wanted).program)
        except (MissingRule, NotStructured):
            return inf

    if pattern is None or _is_full(pattern):
        columns = sum(t.size for t, a in zip(program.in_types, active, strict=True) if a)
        rows = sum(t.size for t in program.out_types[:wanted])
        mode = dense_mode(program, active, wanted)
        return [Plan("dense", columns if mode == "forward" else rows, time(mode), rows * columns, None)]
    of_columns, of_rows = fewest_colours(pattern)
    size = int(pattern.nnz)
    plans = [
        Plan("forward", of_columns, time("forward"), size, lambda: jacobian_colouring(pattern, "forward")),
        Plan("reverse", of_rows, time("reverse"), size, lambda: jacobian_colouring(pattern, "reverse")),
    ]
    fewer = min(of_columns, of_rows)
    of_both = fewest_of_both(pattern, _WORTH * fewer) if fewer > _MANY_PRODUCTS else None
    if of_both is not None:
        one = max(plan.one for plan in plans)
        plans.append(Plan("bidirectional", of_both, one, size, lambda: jacobian_colouring(pattern, "bidirectional")))
    return [plan for plan in plans if plan.one < inf] or plans[:1]


def hessian_plans(program: Program, active: Flags, pattern: Any) -> list[Plan]:
    """The plans for a Hessian.  Substitution loses digits, so that "acyclic" has to be asked for."""
    pattern = None if pattern is None else symmetric(pattern)
    size = sum(t.size for t, a in zip(program.in_types, active, strict=True) if a)
    inner = gradient(program, active, with_value=True)
    is_wanted = tuple(i >= len(program.outputs) for i in range(len(inner.outputs)))
    one = running_time(forward_product(inner, active, is_wanted))
    if pattern is None or _is_full(pattern):
        return [Plan("dense", size, one, size**2, None)]
    check_complex_hessian(program, active)
    # Each two colours of a star colouring form stars, which have fewer edges than vertices.
    least = 1 + (int(pattern.nnz) - size) // (2 * max(size, 1))
    return [Plan("star", max(least, 1), one, int(pattern.nnz), lambda: hessian_colouring(pattern, "star"))]


def running_time(program: Program) -> float:
    """Estimated time to run a program: its operations, and writing its results."""
    return program_cost(program).time + sum(t.size for t in program.out_types)


def _is_full(pattern: Any) -> bool:
    """Whether a colouring would need a large part of the products that show all of a matrix anyway."""
    fewest, most = min(fewest_colours(pattern)), min(pattern.shape)
    return bool(pattern.nnz > _FULL * pattern.shape[0] * pattern.shape[1] and fewest > most / 2)
