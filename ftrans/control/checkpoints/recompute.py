"""Which values of the forward pass reverse mode keeps, and how it recomputes the others.

Each value that the backward pass needs is either kept or recomputed from kept ones, as a policy says.  A budget of
bytes is met at the least cost of recomputation: at a given price per byte, the choice is a minimum cut; the price is
found by bisection, and what is left of the budget is filled greedily.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...base.source import at_line, user_line
from ...core.program import Atom, Eqn, Params, Program, Var
from ...core.types import ArrayType
from ...ops.contractions import dot_general
from ...run.costs import cost
from ..rules.tap import tap

Chooser = Callable[[str, tuple[ArrayType, ...], Params], bool]


class Named(NamedTuple):
    """The policy to keep values that `tap` has given one of these names."""

    names: tuple[str, ...]


class Budget(NamedTuple):
    """The policy to keep at most this many bytes, at the least cost of recomputation."""

    nbytes: int


# "nothing" keeps only inputs, "everything" all values that are needed, "dots" results of dot_general; a function
# chooses by the name of the primitive, the types of its results, and its parameters.
Policy = str | Named | Budget | Chooser
POLICIES = ("nothing", "everything", "dots")


class Kept(NamedTuple):
    """The values kept for a backward pass, and the recomputation of the others.

    Attributes:
        values: the kept variables: inputs, and results of equations.
        again: the equations that recompute the other values from them.
    """

    values: list[Var]
    again: list[Eqn]


def keep(program: Program, wanted: Sequence[Var], policy: Policy) -> Kept:
    """Choose which values of `program` to keep so that its variables `wanted` are available later.

    Raises:
        ValueError: a budget cannot be met; the message names the least possible one.
    """
    inputs = set(program.inputs)
    if isinstance(policy, Budget):
        return _Budgeted(program, wanted, policy.nbytes).kept()
    if policy == "everything":
        return _kept(program, wanted, inputs.union(wanted))
    chosen = [v for eqn in program.eqns if _keeps(policy, eqn) for v in eqn.outputs]
    return _kept(program, wanted, inputs.union(chosen))


def _keeps(policy: Policy, eqn: Eqn) -> bool:
    if isinstance(policy, Named):
        return eqn.primitive is tap and eqn.params["name"] in policy.names
    if callable(policy):
        return bool(policy(eqn.primitive.name, tuple(v.type for v in eqn.outputs), eqn.params))
    return policy == "dots" and eqn.primitive is dot_general


def _kept(program: Program, wanted: Sequence[Var], available: set[Var]) -> Kept:
    """Keep those of the `available` variables that are reached first, going backwards from the wanted ones."""
    values: dict[Var, None] = {}
    missing: set[Atom] = set()

    def want(atoms: Sequence[Atom]) -> None:
        for atom in atoms:
            if isinstance(atom, Var):
                if atom in available:
                    values[atom] = None
                else:
                    missing.add(atom)

    want(wanted)
    again: list[Eqn] = []
    for eqn in reversed(program.eqns):
        if not missing.isdisjoint(eqn.outputs):
            again.append(eqn)
            want(eqn.operands)
    return Kept(list(values), again[::-1])


def just_in_time(eqns: Sequence[Eqn], given: Sequence[Var]) -> list[Eqn]:
    """Reorder `eqns`: those that do not depend on the variables in `given` run right before their results are needed.

    A backward pass that recomputes each value only when it gets there need not hold all of them.
    """
    driven: set[Atom] = set(given)
    waiting: dict[Atom, int] = {}
    ordered: list[Eqn] = []
    done: set[int] = set()

    def run(index: int) -> None:
        found: set[int] = set()
        pending = [index]
        while pending:
            i = pending.pop()
            if i not in found and i not in done:
                found.add(i)
                pending += [waiting[a] for a in eqns[i].operands if a in waiting]
        ordered.extend(eqns[i] for i in sorted(found))
        done.update(found)

    for index, eqn in enumerate(eqns):
        if any(a in driven for a in eqn.operands):
            driven.update(eqn.outputs)
            run(index)
        else:
            waiting.update((v, index) for v in eqn.outputs)
    for index in range(len(eqns)):
        run(index)
    return ordered


_MOST_SEGMENTS = 16


def in_segments(eqns: Sequence[Eqn], given: Sequence[Var], least: int) -> list[list[Eqn]]:
    """Cut `eqns` before some of those that do not depend on `given`, into parts with about equal recomputation.

    Args:
        eqns: the equations, as `just_in_time` orders them.
        given: the variables that the other equations depend on.
        least: the least number of bytes that a part recomputes.
    """
    driven: set[Atom] = set(given)
    again: list[int] = []
    for eqn in eqns:
        is_driven = any(a in driven for a in eqn.operands)
        driven.update(eqn.outputs if is_driven else ())
        again.append(0 if is_driven else sum(v.type.nbytes for v in eqn.outputs))
    least = max(least, sum(again) // _MOST_SEGMENTS)
    segments: list[list[Eqn]] = [[]]
    filled = 0
    for index, eqn in enumerate(eqns):
        if filled >= least and again[index] and not again[index - 1]:
            segments.append([])
            filled = 0
        segments[-1].append(eqn)
        filled += again[index]
    return segments


# Budgets

# Capacities in SciPy's maximum_flow are 32-bit integers, and so are their sums.
_WHOLE = 2**29
_UNLIMITED = 2**31 - 1
_BISECTIONS = 30
# Equal layers cost the same to keep and to recompute, so at any one price all of them would be kept or none.  With
# prices that differ a little, some of them are kept.  Fractional parts of multiples of the golden ratio spread these
# evenly, which matters because all values between two kept ones are in memory at once when they are recomputed.
_UNEVENNESS = 0.02
_GOLDEN = 0.6180339887498949
# How many values are tried, one by one, to fill the rest of a budget.
_MOST_TRIED = 64
# Recomputation that costs nothing is still counted, per element as this fraction of an addition.
_LEAST = 0.01
# Values that only the backward pass uses are computed right before it.  Keeping one of them shortens no chain of
# recomputed values, which are in memory at once, so it is worth this much less.
_LAST = 0.5


class _Budgeted:
    """The choice of which values of one program to keep within a budget.

    In the flow network every variable and every equation is a node; on the side of the source, a variable is available
    and an equation runs again.  Cutting the edge between a variable and its equation pays for keeping the variable;
    cutting the edge between an equation and the sink pays for running it again.
    """

    def __init__(self, program: Program, wanted: Sequence[Var], nbytes: int) -> None:
        self._program = program
        self._wanted = list(dict.fromkeys(wanted))
        self._nbytes = nbytes
        self._eqns = _kept(program, wanted, set(program.inputs)).again
        self._vars = list(dict.fromkeys([*program.inputs, *wanted, *(v for eqn in self._eqns for v in eqn.outputs)]))
        used = {a for eqn in self._eqns for a in eqn.operands}
        self._costs = {eqn: _duration(eqn) * (_LAST if used.isdisjoint(eqn.outputs) else 1) for eqn in self._eqns}
        self._sizes = np.array([float(v.type.nbytes) for v in self._vars] or [0.0])
        self._edges = self._network()

    def kept(self) -> Kept:
        """The choice."""
        everything = self._with(self._wanted)
        if nbytes(everything) <= self._nbytes:
            return everything
        fitting, too_large = self._with(self._cheapest(1.0)), everything
        if nbytes(fitting) > self._nbytes:
            name = self._program.name.split("(")[-1].rstrip(")")
            raise ValueError(
                f"a memory_budget of {self._nbytes:,} bytes cannot be met by {name}: its backward pass "
                f"needs at least {nbytes(fitting):,} bytes for its inputs and values that it computes, with all others "
                f"recomputed; ftrans.residuals lists what is kept{at_line(user_line())}"
            )
        low, high = 0.0, 1.0
        for _ in range(_BISECTIONS):
            price = (low + high) / 2
            found = self._with(self._cheapest(price))
            if nbytes(found) <= self._nbytes:
                high, fitting = price, found
            else:
                low, too_large = price, found
        return self._filled(fitting, too_large)

    def _with(self, values: Sequence[Var]) -> Kept:
        return _kept(self._program, self._wanted, {*self._program.inputs, *values})

    def _network(self) -> list[np.ndarray]:
        """Heads and tails of the edges: wanted values, kept values, recomputed equations, and their operands."""
        source, sink = 0, 1
        place = {v: i + 2 for i, v in enumerate(self._vars)}
        maker = {v: i + 2 + len(place) for i, q in enumerate(self._eqns) for v in q.outputs}
        return [
            np.array(edges, np.int32).reshape(-1, 2)
            for edges in (
                [(source, place[v]) for v in self._wanted],
                [(place[v], maker.get(v, sink)) for v in self._vars],
                [(i + 2 + len(place), sink) for i in range(len(self._eqns))],
                [
                    (maker[eqn.outputs[0]], place[a])
                    for eqn in self._eqns
                    for a in dict.fromkeys(eqn.operands)
                    if a in place
                ],
            )
        ]

    def _cheapest(self, price: float) -> list[Var]:
        """The variables to keep that minimize `price` * bytes + (1 - `price`) * cost, as fractions of the totals."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        spread = 1 + _UNEVENNESS * (np.arange(len(self._vars)) * _GOLDEN % 1) * (price < 1)
        sizes = price * self._sizes * spread / max((self._sizes * spread).sum(), 1)
        costs = np.array([*self._costs.values()]) * (1 - price) / max(sum(self._costs.values()), 1e-9)
        wanted, kept, again, operands = self._edges
        capacities = np.concatenate(
            [
                np.full(len(wanted), _UNLIMITED),
                np.round(_WHOLE * sizes)[: len(kept)],
                np.round(_WHOLE * costs)[: len(again)],
                np.full(len(operands), _UNLIMITED),
            ]
        ).astype(np.int32)
        heads, tails = np.concatenate(self._edges).T
        count = 2 + len(self._vars) + len(self._eqns)
        network = csr_array((capacities, (heads, tails)), shape=(count, count))
        left = network - maximum_flow(network, 0, 1).flow
        left.eliminate_zeros()
        at_hand = np.zeros(count, bool)
        at_hand[breadth_first_order(left, 0, return_predecessors=False)] = True
        cut = at_hand[kept[:, 0]] & ~at_hand[kept[:, 1]]
        return [v for v, c in zip(self._vars, cut, strict=True) if c]

    def _filled(self, fitting: Kept, too_large: Kept) -> Kept:
        """`fitting`, with further values of `too_large` as long as they fit."""
        costs = {v: c / max(v.type.nbytes, 1) for eqn, c in self._costs.items() for v in eqn.outputs}
        kept = set(fitting.values)
        candidates = sorted((v for v in too_large.values if v not in kept), key=lambda v: -costs.get(v, 0.0))
        for v in candidates[:_MOST_TRIED]:
            larger = self._with([*fitting.values, v])
            if nbytes(larger) <= self._nbytes and len(larger.again) < len(fitting.again):
                fitting = larger
        return fitting


def nbytes(kept: Kept) -> int:
    """Total bytes of the kept values."""
    return sum(v.type.nbytes for v in kept.values)


def _duration(eqn: Eqn) -> float:
    """Approximate time to recompute an equation, relative to the addition of two numbers in memory."""
    size = max([v.type.size for v in eqn.outputs] + [a.type.size for a in eqn.operands], default=0)
    return max(cost(eqn).time, _LEAST * size)
