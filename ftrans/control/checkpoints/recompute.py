"""What reverse mode keeps of the forward pass, and how it computes the rest again.

Of the values that the backward pass wants, each is either kept or computed again from others that are.  A policy
says which.  A budget of bytes is met at the least cost of recomputation: what to keep at a given price of a byte is
a minimum cut, the price is found by bisection, and what is left of the budget is filled greedily.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base.source import at_line, user_line
from ...core.program import Atom, Eqn, Params, Program, Var
from ...core.types import ArrayType
from ...ops.contractions import dot_general
from ...run.costs import cost
from ..rules.tap import tap

Chooser = Callable[[str, tuple[ArrayType, ...], Params], bool]


class Named(NamedTuple):
    """The policy to keep what `tap` has given one of these names."""

    names: tuple[str, ...]


class Budget(NamedTuple):
    """The policy to keep at most so many bytes, at the least cost of computing the rest again."""

    nbytes: int


# "nothing" keeps inputs only, "everything" whatever is wanted, "dots" results of dot_general; a function chooses by
# the name of the primitive, the types of its results, and its parameters.
Policy = str | Named | Budget | Chooser
POLICIES = ("nothing", "everything", "dots")


class Kept(NamedTuple):
    """What is kept for a backward pass.

    Attributes:
        values: the variables that are kept: inputs, and results of equations.
        again: the equations that compute from them, once more, what else is wanted.
    """

    values: list[Var]
    again: list[Eqn]


def keep(program: Program, wanted: Sequence[Var], policy: Policy) -> Kept:
    """Choose what to keep of a run of `program`, so that the `wanted` among its variables are at hand later.

    Raises:
        ValueError: a budget cannot be met; the least possible is named.
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
    """Take from `available` whatever is met on the way back from the wanted variables."""
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
    """`eqns` in another order: what does not depend on the variables in `given` runs right before it is needed.

    A backward pass that computes values again one after the other, as it gets to them, need not hold them all.
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
    """`eqns` cut before some of those that do not depend on `given`, into parts that compute about equally much again.

    Args:
        eqns: the equations, as `just_in_time` orders them.
        given: the variables that the other equations depend on.
        least: the least number of bytes that a part computes again.
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

# Capacities of SciPy's flows are 32-bit integers, and so are their sums.
_WHOLE = 2**29
_UNLIMITED = 2**31 - 1
_BISECTIONS = 30
# Equal layers cost the same to keep and to compute again, so at any one price all of them would be kept or none.
# Prices that differ a little keep a part of them, which is spread evenly: fractions of multiples of the golden
# ratio are. Evenly, because what lies between two kept values is in memory at once when it is computed again.
_UNEVENNESS = 0.02
_GOLDEN = 0.6180339887498949
# How many values are tried, one by one, in what is left of a budget.
_MOST_TRIED = 64
# Even what costs nothing is better not done again: for each element this much of an addition.
_LEAST = 0.01
# What only the backward pass uses is computed right before it.  To keep that makes no chain of other values shorter,
# which are in memory at once while they are computed again, so it is worth this much less.
_LAST = 0.5


class _Budgeted:
    """The choice of what to keep of one program within a budget.

    In the flow network every variable and every equation is a node, and those on the side of the source are at hand
    (a variable) or run again (an equation).  What is cut is paid for: between a variable and its equation, that it is
    kept; between an equation and the sink, that it runs again.
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
                f"needs at least {nbytes(fitting):,} bytes of its inputs and of values that it computes, with all else "
                f"computed again; ftrans.residuals lists what is kept{at_line(user_line())}"
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

    def _network(self) -> list[NDArray[Any]]:
        """Heads and tails of the edges: wanted values, kept values, equations that run again, operands of those."""
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
        """What to keep so that `price` times the bytes plus 1 - `price` times the cost, as parts of all, is least."""
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
        """`fitting`, with more of what is kept in `too_large` as long as it fits."""
        costs = {v: c / max(v.type.nbytes, 1) for eqn, c in self._costs.items() for v in eqn.outputs}
        kept = set(fitting.values)
        candidates = sorted((v for v in too_large.values if v not in kept), key=lambda v: -costs.get(v, 0.0))
        for v in candidates[:_MOST_TRIED]:
            larger = self._with([*fitting.values, v])
            if nbytes(larger) <= self._nbytes and len(larger.again) < len(fitting.again):
                fitting = larger
        return fitting


def nbytes(kept: Kept) -> int:
    """Bytes of all that is kept."""
    return sum(v.type.nbytes for v in kept.values)


def _duration(eqn: Eqn) -> float:
    """About how long it takes to compute an equation again, relative to the addition of two numbers in memory."""
    size = max([v.type.size for v in eqn.outputs] + [a.type.size for a in eqn.operands], default=0)
    return max(cost(eqn).time, _LEAST * size)
