"""Rule: one equation that programs are rewritten by, and how its left hand side is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from ..core.primitive import Primitive
from ..core.program import Atom, Params, Program
from ..core.trace import Tracer, definition


class Stage(Enum):
    """Which programs a rule may be applied to; the package says what each one promises."""

    ANY = "any"
    DIFFERENTIATED = "differentiated"
    COMPILED = "compiled"


class Operands(NamedTuple):
    """The operands of an equation that a rule looks at.

    Attributes:
        values: the operands, in the program that is being written.
        users: how many equations use a value, in the program that is being read; zero for what was just recorded.
    """

    values: Sequence[Tracer]
    users: Mapping[Atom, int]

    def only_user_of(self, x: Tracer) -> bool:
        """Whether nothing else uses `x`, so that it need not be computed when this equation does without."""
        return self.users.get(x.atom, 0) <= 1


class Rule(NamedTuple):
    """One rewrite.

    Attributes:
        name: its name, for tests.
        says: the equation, left hand side first, in the notation of NumPy.
        because: its proof, in a line.
        pays: when the right hand side is cheaper; None for always.
        stage: which programs it may be applied to.
        primitive: the primitive of the outermost operation on the left.
        apply: takes the operands and the parameters of an equation of this primitive; records the right hand side and
            returns its result, or None where the equation is no such left hand side, or where it does not pay.
        needs: other primitives on the left, without which a program need not be searched.
    """

    name: str
    says: str
    because: str
    pays: str | None
    stage: Stage
    primitive: Primitive
    apply: Callable[[Operands, Params], Tracer | None]
    needs: tuple[Primitive, ...] = ()


def made_by(primitive: Primitive, x: Tracer) -> tuple[list[Tracer], Params] | None:
    """Where `x` is a result of `primitive`: the operands and the parameters of that equation."""
    eqn = definition(x)
    if eqn is None or eqn.primitive is not primitive:
        return None
    return [Tracer(x.builder, a) for a in eqn.operands], eqn.params


def users_of(program: Program) -> Counter[Atom]:
    """How many equations use each variable of a program, its results counted as one more."""
    users = Counter(a for eqn in program.eqns for a in dict.fromkeys(eqn.operands))
    users.update(dict.fromkeys(program.outputs, 1))
    return users
