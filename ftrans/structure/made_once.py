"""Programs made of the rules of a primitive: each is made once for all equations that are alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..core.program import Const, Eqn, programs_in
from ..core.trace import Tracer
from ..ops.literals import full_like

_CACHE_SIZE = 10_000
_cache: dict[Hashable, Any] = {}


def made_once(what: Hashable, eqn: Eqn, active: Sequence[bool], make: Callable[[], Any]) -> Any:
    """What `make` returns, which is the same for equations of one primitive that have operands of the same types.

    Args:
        what: what is made.
        eqn: the equation.
        active: which of its operands are differentiated.
        make: makes it.  It may depend on numbers among the operands, and on which operands are the same variable.
    """
    operands = eqn.operands
    types = tuple([a.type for a in operands])
    same = tuple([operands.index(a) for a in operands])
    numbers = tuple([a if _is_number(a) else None for a in operands])
    key = (what, eqn.primitive, types, same, numbers, tuple(active), *eqn.params.items())
    holder = next(programs_in(eqn.params), None)
    if holder is not None:
        # It is freed together with the program.
        return holder.derive(key, make)
    found = _cache.get(key)
    if found is None:
        if len(_cache) > _CACHE_SIZE:
            _cache.clear()
        found = _cache[key] = make()
    return found


def with_number(x: Tracer, atom: object) -> Tracer:
    """The number that an operand of the equation is, which simplifies what is made; otherwise the input `x`."""
    return full_like(x, atom.value) if isinstance(atom, Const) and atom.is_splat else x


def _is_number(atom: object) -> bool:
    return isinstance(atom, Const) and atom.is_splat
