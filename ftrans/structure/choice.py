"""The choice of an engine for the entries of a sparse matrix of derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..base.checksum import checksum
from ..core.program import Program
from ..run.costs import program_cost
from .compressed import hessian_by_colours, jacobian_by_colours
from .detect import hessian_pattern, jacobian_pattern
from .eliminate import jacobian_entries
from .entries import Entries, NotStructured
from .quadratic import hessian_entries
from .whole import dense_hessian_entries, dense_jacobian_entries

Flags = tuple[bool, ...]
Known = Mapping[int, Any]

JACOBIAN_METHODS = ("auto", "elimination", "forward", "reverse", "bidirectional", "dense")
HESSIAN_METHODS = ("auto", "elimination", "star", "acyclic", "dense")

# A colouring of columns and rows is looked at if one of either needs more products than this.
_MANY_PRODUCTS = 20
# A matrix with more than this part of all entries is taken for a full one.
_FULL = 0.25
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

    def by_products(name: Any, found: Any) -> Entries:
        if name == "dense":
            return dense_jacobian_entries(program, active, wanted, found, chunk)
        return jacobian_by_colours(program, active, wanted, found, name, chunk)

    columns = _columns(program, active)
    engines = _Engines(
        program,
        columns * sum(t.size for t in program.out_types[:wanted]),
        eliminate=lambda: jacobian_entries(program, active, wanted, known),
        detect=lambda: jacobian_pattern(program, active, wanted, known),
        by_products=by_products,
        methods=_jacobian_methods,
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

    def by_products(name: Any, found: Any) -> Entries:
        if name == "dense":
            return dense_hessian_entries(program, active, found, chunk, lower)
        return hessian_by_colours(program, active, found, name, chunk, lower)

    engines = _Engines(
        program,
        _columns(program, active) ** 2,
        eliminate=lambda: hessian_entries(program, active, known, lower),
        detect=lambda: hessian_pattern(program, active, known),
        by_products=by_products,
        methods=_hessian_methods,
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
        by_products: entries by products of a kind, for a pattern (None for a full one).
        methods: the kinds that may be cheapest for a pattern.
    """

    program: Program
    size: int
    eliminate: Callable[[], Entries]
    detect: Callable[[], Any]
    by_products: Callable[[str, Any], Entries]
    methods: Callable[[Any], list[str]]

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
        return self.by_products(method, pattern)

    def _cheapest(self, pattern: Any) -> Entries:
        found: list[Entries] = []
        reasons: list[str] = []

        def attempt(make: Callable[[], Any]) -> Any:
            try:
                return make()
            except NotStructured as error:
                reasons.append(error.reason)
                return None

        is_given, is_refused = pattern is not None, False
        if not is_given and self.size in _DETECTED_FIRST:
            pattern = attempt(self.detect)
            is_refused = pattern is None
        if not is_given and not is_refused:
            eliminated = attempt(self.eliminate)
            if eliminated is not None:
                if _is_cheap(eliminated, self.program):
                    return eliminated
                found.append(eliminated)
            pattern = attempt(self.detect) if pattern is None else pattern
        for name in self.methods(pattern):
            entries = attempt(functools.partial(self.by_products, name, pattern))
            found += [] if entries is None else [entries]
        if not found:
            raise NotStructured("; ".join(reasons))
        best = min(found, key=lambda entries: _time(entries.program))
        others = [
            f"not {x.how[0].removeprefix('engine: ')}: {_time(x.program) / _time(best.program):.3g} times as long by "
            f"estimate"
            for x in found
            if x is not best
        ]
        return best._replace(how=(*best.how, *others, *(f"not otherwise: {reason}" for reason in reasons)))


def _jacobian_methods(pattern: Any) -> list[str]:
    """The kinds of products that may be the cheapest for a pattern."""
    if pattern is None:
        return ["dense"]
    # No colouring of columns has fewer colours than the fullest row has entries, and the other way round.
    forward, reverse = _fullest(pattern), _fullest(pattern.tocsc())
    methods = ["forward"] * (forward <= 3 * reverse) + ["reverse"] * (reverse <= 3 * forward)
    if min(forward, reverse) > _MANY_PRODUCTS:
        methods.append("bidirectional")
    return [*methods, "dense"] if _is_full(pattern) else methods


def _hessian_methods(pattern: Any) -> list[str]:
    """The same for a Hessian.  Substitution loses digits, so that "acyclic" has to be asked for."""
    if pattern is None:
        return ["dense"]
    return ["star", "dense"] if _is_full(pattern) else ["star"]


def _is_full(pattern: Any) -> bool:
    return bool(pattern.nnz > _FULL * pattern.shape[0] * pattern.shape[1])


def _fullest(compressed: Any) -> int:
    """The number of entries of the fullest row (of CSC: column)."""
    return int(np.diff(compressed.indptr).max(initial=0))


def _is_cheap(entries: Entries, program: Program) -> bool:
    """Whether elimination is as cheap as products can be, so that these need not be looked at."""
    columns, rows = (int(np.bincount(x).max(initial=0)) if x.size else 0 for x in (entries.rows, entries.cols))
    return _time(entries.program) <= (1 + min(columns, rows)) * _time(program)


def _time(program: Program) -> float:
    """Estimated time to run a program: its operations, and writing its results."""
    return program_cost(program).time + sum(t.size for t in program.out_types)


def key_of(known: Known) -> Hashable:
    """What tells apart known values."""
    return tuple((i, x.shape, x.dtype, checksum(x)) for i, x in known.items())


def _pattern_key(pattern: Any) -> Hashable:
    return None if pattern is None else (pattern.shape, checksum(pattern.indptr), checksum(pattern.indices))
