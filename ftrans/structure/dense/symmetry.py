"""Which programs have symmetric second derivatives for certain."""

from __future__ import annotations

from functools import cache

from ...core.primitive import Primitive, ProgramHolder
from ...core.program import Program
from ...ops import broadcast, contractions, elementwise, indexing, literals, parts, reductions, shapes


def is_symmetric(program: Program) -> bool:
    """Whether second derivatives do not depend on the order in which they are taken.

    They may where a derivative is stated by the user, who may say anything, and for functions that are not made of
    ftrans's own basic operations nothing is assumed.
    """
    return all(
        eqn.primitive in _basic() or (isinstance(eqn.primitive, ProgramHolder) and is_symmetric(eqn.params["program"]))
        for eqn in program.eqns
    )


@cache
def _basic() -> frozenset[Primitive]:
    """The operations whose partial derivatives are those of one function."""
    modules = (broadcast, contractions, elementwise, indexing, literals, parts, reductions, shapes)
    return frozenset(x for module in modules for x in vars(module).values() if isinstance(x, Primitive))
