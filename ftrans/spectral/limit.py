"""Limits: what stands for derivatives of functions of eigenvalues, singular values and vectors where values are equal.

The derivative of vectors has the distances of values in denominators.  Where values are equal it does not exist, but
those of a function of values and vectors which is smooth in the matrix, such as `v @ diag(exp(w)) @ v.H`, do.  They are
the limits of derivatives at matrices whose values have been moved apart, `w + e * s` with `s = 0, 1, 2, ...`, as e goes
to 0.

So the primitives of `eigen` and `singular` differentiate as if no values were equal, and what is made of their
results goes through a *limit*: an equation that changes nothing, but whose derivatives of any order are replaced by
their limits, at run time, where values are equal.  `repeated_values.py` puts limits into a program before it
is differentiated, and `limit_series.py` makes the programs that compute them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core.cost import Cost
from ..core.interpret import interpret, repeat
from ..core.primitive import MultipleResults, Tangent
from ..core.program import Eqn, Params, Program, needed_eqns
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType
from ..ops.broadcast import broadcast, with_batch_axis
from ..ops.elementwise import select
from ..ops.host import on_host
from ..ops.literals import full_like
from ..run.evaluate import evaluate
from ..run.stand_alone import Function, Written

Flags = tuple[bool, ...]


class Series(Protocol):
    """What a limit differentiates: a function of matrices, the results of their decompositions, and other arrays.

    Attributes:
        types: what it takes.
        results: which of these are results of decompositions, and so have no directions of their own.
        strict: the same, where first derivatives of values alone are no numbers either if they depend on the vectors
            of equal values.  A second derivative is made of such first ones, and it would be wrong in silence.
    """

    types: Sequence[ArrayType]
    results: Flags

    @property
    def strict(self) -> Series: ...

    def program(self, directions: tuple[Flags, ...], pulled: int | None) -> Program:
        """The limit of the derivative along directions, see `Limit`; it takes what the equation takes but the sums."""

    def batched(self, size: int, flags: Flags) -> Series:
        """The same for each element of a batch; `flags` says what has the axis, and so have its directions."""


class _Operands(NamedTuple):
    """The operands of a limit in groups, or what belongs to them.

    Attributes:
        sums: what is added to.
        special: whether any values are equal.
        at: what the series takes.
        cotangent: one, if a direction is pulled, or none.
        directions: the parts of each direction; none of the pulled one.
    """

    sums: Sequence[Any]
    special: Any
    at: Sequence[Any]
    cotangent: Sequence[Any]
    directions: Sequence[Sequence[Any]]

    @classmethod
    def of(cls, xs: Sequence[Any], series: Series, directions: Sequence[Flags], pulled: int | None) -> _Operands:
        """The groups of what has been put in one row."""
        rest = iter(xs)
        sums = list(islice(rest, _count_of_sums(directions, pulled)))
        special = next(rest)
        at = list(islice(rest, len(series.types)))
        cotangent = list(islice(rest, 0 if pulled is None else 1))
        parts = [list(islice(rest, 0 if i == pulled else sum(d))) for i, d in enumerate(directions)]
        return cls(sums, special, at, cotangent, parts)

    def flat(self) -> list[Any]:
        """All of them in one row."""
        return [*self.sums, self.special, *self.at, *self.cotangent, *(x for d in self.directions for x in d)]


class Limit(MultipleResults):
    """Sums; where values are equal, the limit of a derivative is added to each.

    With d directions it is the derivative of order d, along each of them, of what `series` describes.  If one of them
    is `pulled`, the derivative is seen as a linear map of this direction, and transposed.

    The operands are the sums; whether any values are equal (for each element of a batch, where there is one); what
    `series` takes; if a direction is pulled, a cotangent; and the directions but the pulled one.  The parameter
    `directions` says for each of them which of the arrays that `series` takes it moves.

    A derivative of order 0 adds nothing; it is there to be differentiated.
    """

    name = "limit"

    def type_rule(
        self, *types: ArrayType, series: Series, directions: tuple[Flags, ...], pulled: int | None
    ) -> list[ArrayType]:
        return list(_Operands.of(types, series, directions, pulled).sums)

    def numpy(self, *arrays: Any, series: Series, directions: tuple[Flags, ...], pulled: int | None) -> list[Any]:
        sums = _count_of_sums(directions, pulled)
        if not directions:
            return list(arrays[:sums])
        return _with_limits(*arrays, sums=sums, function=_evaluated(series, directions, pulled))

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        sums = _count_of_sums(params["directions"], params["pulled"])
        program = params["series"].program(params["directions"], params["pulled"])
        return Written(_with_limits, {"sums": sums, "function": Function(program)})

    def xla(self, *arrays: Any, **params: Any) -> list[Any]:
        from jax import lax

        given = _Operands.of(arrays, **params)
        types = [ArrayType(x.shape, np.dtype(x.dtype)) for x in given.sums]

        # Compiling the limit would take longer than all else, and hardly any matrix needs it.
        def added(*xs: Any) -> list[Any]:
            return on_host(lambda *ys: self.numpy(*ys, **params), types, *xs)

        def kept(*xs: Any) -> list[Any]:
            return list(xs[: len(types)])

        return list(lax.cond(given.special.any(), added, kept, *arrays)) if params["directions"] else list(given.sums)

    def jvp(
        self,
        primals: Sequence[Tracer],
        tangents: Sequence[Tangent],
        *,
        series: Series,
        directions: tuple[Flags, ...],
        pulled: int | None,
    ) -> tuple[Any, Any]:
        outs = self(*primals, series=series.strict, directions=directions, pulled=pulled)
        here, change = (_Operands.of(xs, series, directions, pulled) for xs in (primals, tangents))
        sums = list(change.sums)
        if directions:
            series = series.strict
        else:
            # From here on the limit stands for the derivatives.
            sums = [None if t is None else _unless(here.special, t) for t in sums]

        def add_to_sums(terms: _Operands, along: Sequence[Flags]) -> None:
            sums[:] = self(
                *terms._replace(sums=_filled(sums, outs)).flat(), series=series, directions=tuple(along), pulled=pulled
            )

        # The derivative is linear in each direction, and in the cotangent.
        for i, parts in enumerate(change.directions):
            if any(t is not None for t in parts):
                flags, found = _present(directions[i], parts)
                add_to_sums(
                    here._replace(directions=_replaced(here.directions, i, found)), _replaced(directions, i, flags)
                )
        if change.cotangent and change.cotangent[0] is not None:
            add_to_sums(here._replace(cotangent=change.cotangent), directions)
        moved = [None if is_result else t for t, is_result in zip(change.at, series.results, strict=True)]
        if any(t is not None for t in moved):
            flags, found = _present((True,) * len(moved), moved)
            add_to_sums(here._replace(directions=[*here.directions, found]), [*directions, flags])
        return outs, sums

    def transpose(
        self,
        cotangents: Any,
        operands: Sequence[Tracer | ArrayType],
        *,
        series: Series,
        directions: tuple[Flags, ...],
        pulled: int | None,
    ) -> Sequence[Tangent]:
        given = _Operands.of(operands, series, directions, pulled)
        back = _Operands.of([None] * len(operands), series, directions, pulled)
        back = back._replace(sums=[ct if _is_linear(x) else None for x, ct in zip(given.sums, cotangents, strict=True)])
        # What is transposed once more takes the cotangents as the direction that was pulled.
        if pulled is None:
            cotangent, others, along = list(cotangents), list(given.directions), list(directions)
        else:
            flags, found = _present(directions[pulled], cotangents)
            cotangent, others, along = (
                list(given.cotangent),
                _replaced(given.directions, pulled, found),
                _replaced(directions, pulled, flags),
            )
        if pulled is not None and _is_linear(given.cotangent[0]):
            whole = given._replace(sums=_zeros(given.cotangent), cotangent=[], directions=others)
            back = back._replace(cotangent=self(*whole.flat(), series=series, directions=tuple(along), pulled=None))
        for i, parts in enumerate(given.directions):
            if any(map(_is_linear, parts)):
                whole = given._replace(sums=_zeros(parts), cotangent=cotangent, directions=_replaced(others, i, []))
                pulls = self(*whole.flat(), series=series, directions=tuple(along), pulled=i)
                back = back._replace(directions=_replaced(back.directions, i, pulls))
        return back.flat()

    def batch(
        self,
        size: int,
        operands: Sequence[Tracer],
        batched: Sequence[bool],
        *,
        series: Series,
        directions: tuple[Flags, ...],
        pulled: int | None,
    ) -> Any:
        given, flags = (_Operands.of(xs, series, directions, pulled) for xs in (operands, batched))
        # What moves in any direction has the axis, too.
        has_axis = tuple(map(any, zip(flags.at, *directions, strict=True)))

        def spread(xs: Sequence[Tracer], fs: Sequence[bool]) -> list[Tracer]:
            return [with_batch_axis(size, x, f) for x, f in zip(xs, fs, strict=True)]

        at = [
            with_batch_axis(size, x, f) if axis else x for x, f, axis in zip(given.at, flags.at, has_axis, strict=True)
        ]
        outs = self(
            *_Operands(
                spread(given.sums, flags.sums),
                with_batch_axis(size, given.special, flags.special),
                at,
                spread(given.cotangent, flags.cotangent),
                [spread(xs, fs) for xs, fs in zip(given.directions, flags.directions, strict=True)],
            ).flat(),
            series=series.batched(size, has_axis),
            directions=directions,
            pulled=pulled,
        )
        return outs, [True] * len(outs)

    def before_running(self, program: Program) -> Program:
        if not any(eqn.primitive is self and not eqn.params["directions"] for eqn in program.eqns):
            return program
        return _without_order_zero(program)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        # It computes only where values are equal, which hardly any are.
        return Cost.moves(sum(t.size for t in results))


def _count_of_sums(directions: Sequence[Flags], pulled: int | None) -> int:
    return 1 if pulled is None else sum(directions[pulled])


def _evaluated(series: Series, directions: tuple[Flags, ...], pulled: int | None) -> Callable[..., list[Any]]:
    # Hardly any matrix needs the program, so that it is made when one does.
    return lambda *arrays: evaluate(series.program(directions, pulled), arrays)


def _with_limits(*arrays: Any, sums: int, function: Callable[..., list[Any]]) -> list[Any]:
    """The first arrays, to which the function's results on the others are added where the flag behind them is set."""
    given, special = arrays[:sums], arrays[sums]
    if not np.any(special):
        return list(given)
    # Nothing that is computed on trial is worth a warning, or an error.
    with np.errstate(all="ignore"):
        try:
            found = function(*arrays[sums + 1 :])
        except np.linalg.LinAlgError:
            found = [np.full_like(x, np.nan) for x in given]
    return [x + np.where(_spread(special, x), y, 0) for x, y in zip(given, found, strict=True)]


def _spread(special: Any, x: Any) -> Any:
    """A flag for each element of a batch, in the number of axes of a NumPy array that has leading axes for it."""
    return np.reshape(special, np.shape(special) + (1,) * (np.ndim(x) - np.ndim(special)))


def _unless(condition: Tracer, x: Tracer) -> Tracer:
    """`x`, or zeros where the condition holds, which has one or more of the leading axes."""
    spread = broadcast(condition, shape=x.shape, dims=tuple(range(condition.ndim)))
    return select(spread, full_like(x, 0), x)


def _is_linear(x: Tracer | ArrayType) -> bool:
    return not isinstance(x, Tracer)


def _present(flags: Flags, parts: Sequence[Tangent]) -> tuple[Flags, list[Tracer]]:
    """The parts of a direction that are not zero, and the flags that say where they belong."""
    every = iter(parts)
    present = tuple(f and next(every) is not None for f in flags)
    return present, [x for x in parts if x is not None]


def _replaced(xs: Sequence[Any], index: int, x: Any) -> Any:
    """The items, with another one in the place of one of them."""
    return [x if i == index else y for i, y in enumerate(xs)]


def _zeros(types: Sequence[Tracer | ArrayType]) -> list[Tracer]:
    return [full_like(t, 0) for t in types]


def _filled(xs: Sequence[Tangent], like: Sequence[Tracer]) -> list[Tracer]:
    return [full_like(y, 0) if x is None else x for x, y in zip(xs, like, strict=True)]


def _without_order_zero(program: Program) -> Program:
    """The program without the limits that are there only to be differentiated, and without what only they need."""
    builder = Builder(program.in_types)

    def apply(eqn: Eqn, operands: list[Tracer]) -> Sequence[Tracer]:
        return operands[:1] if eqn.primitive is limit and not eqn.params["directions"] else repeat(eqn, operands)

    with building(builder):
        outs = interpret(program, builder.inputs(), apply, lambda const: Tracer(builder, const))
        whole = builder.finish(outs, program.name)
    return Program(whole.name, whole.inputs, needed_eqns(whole.eqns, whole.outputs), whole.outputs)


limit = Limit()
