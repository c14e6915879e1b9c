"""The choice of an engine for the entries of a sparse matrix of derivatives."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..base.checksum import checksum
from ..core.program import Program
from .colouring.compressed import Colouring, hessian_by_colours, jacobian_by_colours
from .dense.whole import dense_hessian_entries, dense_jacobian_entries
from .elimination.eliminate import jacobian_entries
from .elimination.quadratic import hessian_entries
from .entries import Entries, NotStructured
from .patterns.detect import hessian_pattern, jacobian_pattern
from .plans import Plan, best_plan, hessian_plans, instead, jacobian_plans, running_time

Flags = tuple[bool, ...]
Known = Mapping[int, Any]

JACOBIAN_METHODS = ("auto", "elimination", "forward", "reverse", "bidirectional", "dense")
HESSIAN_METHODS = ("auto", "elimination", "star", "acyclic", "dense")

# For matrices of so many elements the pattern is looked at first.  It takes a fraction of the time of an elimination,
# which would fail after long work where the pattern is too large already.  Larger matrices can only be sparse ones.
_DETECTED_FIRST = range(10**6, 10**8)


def jacobian_entries_by(
    program: Program, active: Flags, wanted: int, known: Known, method: str, pattern: Any, chunk: int | None
) -> Entries:
    """The entries of a Jacobian by one of `JACOBIAN_METHODS`.

    Args:
        program: the program.
        active: which inputs to differentiate with respect to.
        wanted: how many leading outputs are differentiated.
        known: values of inputs that are known beforehand, by position.
        method: the method; "auto" takes the cheapest by the costs of programs.
        pattern: where the entries are, a SciPy array; None if that is to be found out.
        chunk: how many products to compute at once; all by default.

    Raises:
        NotStructured: the method cannot find them.
    """

    def by_products(name: Any, found: Any, colouring: Colouring | None) -> Entries:
        if name == "dense":
            return dense_jacobian_entries(program, active, wanted, found, chunk)
        return jacobian_by_colours(program, active, wanted, found, name, chunk, colouring)

    columns = _columns(program, active)
    engines = _Engines(
        program,
        columns * sum(t.size for t in program.out_types[:wanted]),
        eliminate=lambda: jacobian_entries(program, active, wanted, known),
        detect=lambda: jacobian_pattern(program, active, wanted, known),
        by_products=by_products,
        plans=lambda found: jacobian_plans(program, active, wanted, found),
    )
    key = ("jacobian entries", active, wanted, key_of(known), method, _pattern_key(pattern), chunk)
    return program.derive(key, lambda: engines.entries(method, pattern))


def hessian_entries_by(
    program: Program, active: Flags, known: Known, method: str, pattern: Any, chunk: int | None, lower: bool
) -> Entries:
    """The entries of the Hessian of the first output, a scalar, by one of `HESSIAN_METHODS`.

    Args:
        program: the program.
        active: as for `jacobian_entries_by`.
        known: as for `jacobian_entries_by`.
        method: as for `jacobian_entries_by`.
        pattern: as for `jacobian_entries_by`.
        chunk: as for `jacobian_entries_by`.
        lower: whether only entries on and below the diagonal are wanted.

    Raises:
        NotStructured: the method cannot find them.
    """

    def by_products(name: Any, found: Any, colouring: Colouring | None) -> Entries:
        if name == "dense":
            return dense_hessian_entries(program, active, found, chunk, lower)
        return hessian_by_colours(program, active, found, name, chunk, lower, colouring)

    engines = _Engines(
        program,
        _columns(program, active) ** 2,
        eliminate=lambda: hessian_entries(program, active, known, lower),
        detect=lambda: hessian_pattern(program, active, known),
        by_products=by_products,
        plans=lambda found: hessian_plans(program, active, found),
    )
    key = ("hessian entries", active, key_of(known), method, _pattern_key(pattern), chunk, lower)
    return program.derive(key, lambda: engines.entries(method, pattern))


def _columns(program: Program, active: Flags) -> int:
    return sum(t.size for t, a in zip(program.in_types, active, strict=True) if a)


class _Engines(NamedTuple):
    """The ways to the entries of one matrix.

    Attributes:
        program: the program that is differentiated.
        size: number of elements of the matrix.
        eliminate: entries by elimination.
        detect: the pattern.
        by_products: entries by products of a kind, for a pattern (None for a full one), with a colouring if it is made.
        plans: the kinds that may be cheapest for a pattern.
    """

    program: Program
    size: int
    eliminate: Callable[[], Entries]
    detect: Callable[[], Any]
    by_products: Callable[[Any, Any, Colouring | None], Entries]
    plans: Callable[[Any], list[Plan]]

    def entries(self, method: str, pattern: Any) -> Entries:
        """The entries by a method, for a pattern that is given or detected."""
        if method == "elimination":
            return self.eliminate()
        if method == "auto":
            return self._cheapest(pattern)
        if pattern is None:
            try:
                pattern = self.detect()
            except NotStructured:
                if method != "dense":
                    raise
        return self.by_products(method, pattern, None)

    def _cheapest(self, pattern: Any) -> Entries:
        notes: list[str] = []

        def attempt(make: Callable[[], Any]) -> Any:
            try:
                return make()
            except NotStructured as error:
                notes.append(f"not otherwise: {error.reason}")
                return None

        eliminated: Entries | None = None
        if pattern is None:
            is_first = self.size in _DETECTED_FIRST
            pattern = attempt(self.detect) if is_first else None
            eliminated = None if is_first and pattern is None else attempt(self.eliminate)
            if eliminated is not None and _is_cheap(eliminated, self.program):
                return eliminated
            if pattern is None and not is_first:
                pattern = attempt(self.detect) if eliminated is None else _pattern_of(eliminated)
        time = inf if eliminated is None else running_time(eliminated.program) - running_time(self.program)
        chosen = best_plan(self.plans(pattern), time)
        notes = [*chosen.notes, *notes]
        if chosen.plan is not None:
            name = chosen.plan.name
            made = attempt(lambda: self.by_products(name, pattern, chosen.colouring))
            if made is not None:
                is_costly = eliminated is not None and chosen.time > 0
                notes += [instead("elimination", time / chosen.time)] if is_costly else []
                return made._replace(how=(*made.how, *notes))
        if eliminated is None:
            raise NotStructured("; ".join(notes))
        return eliminated._replace(how=(*eliminated.how, *notes))


def _pattern_of(entries: Entries) -> Any:
    from scipy import sparse

    ones = np.ones(entries.rows.size, np.bool_)
    return sparse.csr_array((ones, (entries.rows, entries.cols)), shape=entries.shape)


def _is_cheap(entries: Entries, program: Program) -> bool:
    """Whether elimination is as cheap as products can be, so that these need not be looked at."""
    columns, rows = (int(np.bincount(x).max(initial=0)) if x.size else 0 for x in (entries.rows, entries.cols))
    return running_time(entries.program) <= (1 + min(columns, rows)) * running_time(program)


def key_of(known: Known) -> Hashable:
    """What tells apart known values."""
    return tuple((i, x.shape, x.dtype, checksum(x)) for i, x in known.items())


def _pattern_key(pattern: Any) -> Hashable:
    return None if pattern is None else (pattern.shape, checksum(pattern.indptr), checksum(pattern.indices))
