"""The choice of an engine for the entries of a sparse matrix of derivatives."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from ..base.checksum import checksum
from ..core.program import Program
from .detect import hessian_pattern, jacobian_pattern
from .eliminate import jacobian_entries
from .entries import Entries, NotStructured
from .whole import dense_hessian_entries, dense_jacobian_entries

Flags = tuple[bool, ...]
Known = Mapping[int, Any]

JACOBIAN_METHODS = ("auto", "elimination", "forward", "reverse", "bidirectional", "dense")
HESSIAN_METHODS = ("auto", "elimination", "star", "acyclic", "dense")


def jacobian_entries_by(
    program: Program, active: Flags, wanted: int, known: Known, method: str, pattern: Any, chunk: int | None
) -> Entries:
    """The entries of a Jacobian by one of `JACOBIAN_METHODS`.

    Args:
        program: the program.
        active: which inputs to differentiate with respect to.
        wanted: how many leading outputs are differentiated.
        known: values of inputs that are known beforehand, by position.
        method: the method.
        pattern: where the entries are, a SciPy array; None if that is to be found out.
        chunk: how many products to compute at once; all by default.
    """
    key = ("jacobian entries", active, wanted, key_of(known), method, _pattern_key(pattern), chunk)

    def make() -> Entries:
        reasons: tuple[str, ...] = ()
        if method == "elimination" or (method == "auto" and pattern is None):
            try:
                return jacobian_entries(program, active, wanted, known)
            except NotStructured as error:
                if method == "elimination":
                    raise
                reasons = (f"no elimination: {error.reason}",)
        found = _found(pattern, lambda: jacobian_pattern(program, active, wanted, known))
        return _with_reasons(dense_jacobian_entries(program, active, wanted, found, chunk), reasons)

    return program.derive(key, make)


def hessian_entries_by(
    program: Program, active: Flags, known: Known, method: str, pattern: Any, chunk: int | None, lower: bool
) -> Entries:
    """The entries of the Hessian of the first output, a scalar, by one of `HESSIAN_METHODS`.

    Args:
        program: the program.
        active: as for `jacobian_entries_by`.
        known: as for `jacobian_entries_by`.
        method: the method.
        pattern: as for `jacobian_entries_by`.
        chunk: as for `jacobian_entries_by`.
        lower: whether only entries on and below the diagonal are wanted.
    """
    key = ("hessian entries", active, key_of(known), method, _pattern_key(pattern), chunk, lower)

    def make() -> Entries:
        found = _found(pattern, lambda: hessian_pattern(program, active, known))
        return dense_hessian_entries(program, active, found, chunk, lower)

    return program.derive(key, make)


def _found(pattern: Any, detect: Callable[[], Any]) -> Any:
    """The given pattern, or the one that is detected; None if that is too large to be worth it."""
    if pattern is not None:
        return pattern
    try:
        return detect()
    except NotStructured:
        return None


def _with_reasons(entries: Entries, reasons: tuple[str, ...]) -> Entries:
    return entries._replace(how=(*entries.how, *reasons))


def key_of(known: Known) -> Hashable:
    """What tells apart known values."""
    return tuple((i, x.shape, x.dtype, checksum(x)) for i, x in known.items())


def _pattern_key(pattern: Any) -> Hashable:
    return None if pattern is None else (pattern.shape, checksum(pattern.indptr), checksum(pattern.indices))
