"""Functions that solvers are given, as programs: what is integrated, and the right-hand sides of equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...api.call import name_of, trace_flat
from ...api.vectors import Captured
from ...base import tree
from ...core.trace import NoWitness, Tracer, building
from ...core.types import ArrayType
from ...core.witness import CodeBuilder, ConcretizationError, known_value
from ...numpy.promotion import asarray, has_tracer
from .branches import Explore, NotKnown, by_ways


class FoundTraced(Exception):
    """A function uses a traced value for plain arguments: it closes over one."""


def is_traced(*containers: Any) -> bool:
    """Whether there is a traced value among the leaves of some containers."""
    return any(map(has_tracer, tree.flatten(containers)[0]))


class _Plain(CodeBuilder):
    """Where code runs that must use nothing that is traced outside, neither for its results nor for its branches."""

    def __init__(self) -> None:
        super().__init__((), ())

    def _capture_tracer(self, tracer: Tracer) -> Any:
        raise FoundTraced


def plainly(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that raises `FoundTraced` if it uses a traced value."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with building(_Plain()):
            found = f(*args, **kwargs)
            leaves, structure = tree.flatten(found)
            if not has_tracer(leaves):
                return found
            if any(isinstance(x, Tracer) and not isinstance(x.builder, _Plain) for x in leaves):
                raise FoundTraced
            return tree.unflatten(structure, [known_value(x) if isinstance(x, Tracer) else x for x in leaves])

    return call


def traced_function(
    f: Callable[..., Any], types: Sequence[ArrayType], call: Callable[..., Any], what: str, explore: Explore
) -> Captured:
    """The program of `call`, which calls `f`: it takes what `f` closes over, then arguments of these types.

    Args:
        f: the function of the user.
        types: types of the arguments.
        call: takes a tracer for each, and returns a list of tracers.
        what: name of the solver, for messages.
        explore: calls a function at all points that the solver needs, in case that `f` has branches there.

    Raises:
        ConcretizationError: `f` has branches, and the points are not known.
    """
    reason = NoWitness(f"{what} evaluates {name_of(f)} at many points, so a branch has no single value")
    try:
        traced, _ = trace_flat(f, types, lambda tracers: call(*tracers), reason)
    except ConcretizationError as error:
        try:
            chosen = by_ways(types, call, explore)
        except NotKnown:
            raise error from None
        traced, _ = trace_flat(f, types, lambda tracers: chosen(*tracers), reason)
    return Captured.of(traced.program, [asarray(x) for x in traced.captured], len(types))
