"""What derivatives of eigenvectors and singular vectors are where values are equal, or 0.

The derivative of vectors has the distances of values in denominators.  Where values are equal it does not exist, but
that of a function of values and vectors which is smooth in the matrix, such as `v @ diag(exp(w)) @ v.H`, does.  It is
the limit of derivatives at matrices whose values have been moved apart, `w + e * s` with `s = 0, 1, 2, ...`, as e goes
to 0.  With distances `e * (s[j] - s[i])` the vectors turn by `m / e`, where `m` is the *mixing*, and since the function
does not change when vectors of equal values turn, what is left of its change in the limit is its mixed second
derivative: along `s` of the values, and along `v @ m` of the vectors.  `transforms/repeated_values.py` adds that to a
program before it is differentiated.

A second such derivative would need more terms of the series in e: then the result is not a number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ...core.interpret import evaluate, interpret
from ...core.primitive import Primitive, Tangent
from ...core.program import Const, Eqn, Params, Program
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex
from ..elementwise import Elementwise, abs_, add, convert, cos, div, eq, le, mul, real, select, sqrt, sub
from ..elementwise.family import combined
from ..reductions import reduce_max, reduce_sum
from ..shapes import broadcast, full_like, iota, with_batch_axis
from .family import MatrixFunction, along_columns, along_rows, entries, part, real_if_complex

# Values are equal if they differ by less than this many roundings of the largest one, for each row of the matrix.
_ROUNDINGS = 16


def gaps(values: Tracer, like: Tracer) -> Tracer:
    """At row i and column j, `values[j] - values[i]`; on the diagonal, which nothing uses, a number that is never 0."""
    gap = sub(along_columns(values, like), along_rows(values, like))
    large = math.sqrt(np.finfo(gap.dtype).max) / 2
    return select(entries(gap, eq), full_like(gap, large), gap)  # type: ignore[no-any-return]


class InverseGap(Elementwise):
    """`1 / gap**order`, or where the gap is not larger than the tolerance: 0 for order 1, not a number for others.

    So where values are equal the first derivative leaves out what divides by their distance, and a second one that
    would need it is not a number.
    """

    broadcasts = False

    def __init__(self) -> None:
        super().__init__("inverse_gap", np.divide, "div")
        self._is_plain = False

    def type_rule(self, *types: ArrayType, order: int = 1) -> ArrayType:
        return super().type_rule(*types)

    def numpy(self, *arrays: Any, order: int = 1) -> Any:
        return self._inverse(np, order, *arrays)

    def xla(self, *arrays: Any, order: int = 1) -> Any:
        from jax import numpy as jnp

        return self._inverse(jnp, order, *arrays)

    @staticmethod
    def _inverse(xp: Any, order: int, gap: Any, tolerance: Any) -> Any:
        equal = xp.abs(gap) <= tolerance.real
        one = gap.dtype.type(1)
        return xp.where(equal, gap.dtype.type(0 if order == 1 else np.nan), (one / xp.where(equal, one, gap)) ** order)

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        return None

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, order: int = 1) -> tuple[Any, Any]:
        gap, tolerance = primals
        slope = full_like(gap, -order)

        def along_gap(t: Tracer) -> Tracer:
            return mul(t, mul(slope, inverse_gap(gap, tolerance, order=order + 1)))  # type: ignore[no-any-return]

        return self(gap, tolerance, order=order), combined([along_gap, None], tangents)


inverse_gap = InverseGap()


def tolerance_like(values: Tracer, gap: Tracer) -> Tracer:
    """Up to which size a gap between values counts as none."""
    if not values.shape[-1]:
        return full_like(gap, 0)
    largest = reduce_max(abs_(values), axes=(values.ndim - 1,))
    limit = mul(largest, full_like(largest, _ROUNDINGS * values.shape[-1] * np.finfo(values.dtype).eps))
    return convert(broadcast(limit, shape=gap.shape, dims=tuple(range(limit.ndim))), dtype=gap.dtype)


def equal(gap: Tracer, tolerance: Tracer) -> Tracer:
    """Where a gap counts as none."""
    return le(abs_(gap), real(tolerance) if is_complex(gap.dtype) else tolerance)


def steps(values: Tracer) -> Tracer:
    """0, 1, 2, ... in place of the values."""
    return iota(shape=values.shape, axis=values.ndim - 1, dtype=values.dtype)


def chosen_where(condition: Tracer, x: Tracer) -> Tracer:
    """`x` where the condition holds, and zeros elsewhere."""
    return select(condition, x, full_like(x, 0))  # type: ignore[no-any-return]


def reflection(values: Tracer, like: Tracer) -> Tracer:
    """Reflections among vectors of equal values, in matrices like `like`: `v @ reflection` are vectors as well."""
    gap = gaps(values, like)
    others = chosen_where(equal(gap, tolerance_like(values, gap)), full_like(gap, 1))
    others = real_if_complex(others)
    # Householder reflections at vectors of any elements, one for each set of equal values.
    steps_here = real_if_complex(steps(values))
    element = cos(add(steps_here, full_like(steps_here, 0.4)))
    row, column = along_rows(element, others), along_columns(element, others)
    among = reduce_sum(mul(others, mul(column, column)), axes=(others.ndim - 1,))
    is_alone = eq(among, full_like(among, 0))
    length = sqrt(add(mul(element, element), among))
    row, column = div(row, along_rows(length, others)), div(column, along_columns(length, others))
    itself = part(select(along_rows(is_alone, others), full_like(others, 0), full_like(others, 1)), eq)
    moved = mul(mul(add(others, itself), full_like(others, 2)), mul(row, column))
    return convert(sub(part(full_like(others, 1), eq), moved), dtype=like.dtype)


class SpectralPrimitive(MatrixFunction):
    """A primitive that gives values and vectors of matrices.

    Attributes:
        values: which of its results holds the values.
        moves_matrices: whether the matrices can move with the values without changing their dtype.
    """

    multiple_results = True
    values = 0
    moves_matrices = True

    def mixing(self, a: Tracer, results: Sequence[Tracer], t: Tracer, **params: Any) -> list[Tangent]:
        """What a change `t` of the matrices does to vectors of equal values, times e; None for the values."""
        raise NotImplementedError

    def exchanged(self, results: Sequence[Tracer], **params: Any) -> list[Tracer]:
        """Other results that are as right: vectors of equal values are turned."""
        raise NotImplementedError

    def separation(self, results: Sequence[Tracer], **params: Any) -> list[Tracer]:
        """The direction that moves values apart, and if `moves_matrices` the change of the matrices that does so."""
        raise NotImplementedError


class Mixing(Primitive):
    """Zeros, whose derivative is the mixing of the vectors that `of` gives, in place of that of the vectors.

    The operands are the matrices and the results of `of`, and only the change of the matrices counts.
    """

    name = "mixing"
    multiple_results = True

    def type_rule(self, *types: ArrayType, of: SpectralPrimitive, options: Any) -> list[ArrayType]:
        return list(types[1:])

    def numpy(self, *arrays: Any, of: SpectralPrimitive, options: Any) -> list[Any]:
        return [np.zeros(x.shape, x.dtype)[()] for x in arrays[1:]]

    def xla(self, *arrays: Any, of: SpectralPrimitive, options: Any) -> list[Any]:
        from jax import numpy as jnp

        return [jnp.zeros_like(x) for x in arrays[1:]]

    def jvp(
        self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, of: SpectralPrimitive, options: Any
    ) -> tuple[Any, Any]:
        a, *results = primals
        outs = self(*primals, of=of, options=options)
        t = tangents[0]
        return outs, [None] * len(outs) if t is None else of.mixing(a, results, t, **dict(options))

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        outs = self(*(with_batch_axis(size, x, f) for x, f in zip(operands, batched, strict=True)), **params)
        return outs, [True] * len(outs)


class WithChangeOf(Elementwise):
    """`x`, whose derivative is that of `x + y`."""

    broadcasts = False
    aliases = True
    only_moves = True

    def __init__(self) -> None:
        super().__init__("with_change_of", lambda x, y: x, lambda x, y: x, python="{}")

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        return operands[0]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        return primals[0], combined([lambda t: t, lambda t: t], tangents)


class Trial(Protocol):
    """Programs that find out which values depend on the choice of vectors.

    Attributes:
        are_equal: says whether any two values are equal.
        depends: says for each element of some arrays whether it depends on the choice; it takes the same inputs.
    """

    are_equal: Program
    depends: Program

    def batched(self, size: int, flags: tuple[bool, ...]) -> Trial:
        """The same for each element of a batch."""


class DependsOnChoice(Primitive):
    """Which elements depend on the choice of vectors of equal values, by trying; none where no values are equal."""

    name = "depends_on_choice"
    multiple_results = True

    def type_rule(self, *types: ArrayType, trial: Trial) -> list[ArrayType]:
        return list(trial.depends.out_types)

    def numpy(self, *arrays: Any, trial: Trial) -> list[Any]:
        types = trial.depends.out_types
        if not evaluate(trial.are_equal, arrays)[0]:
            return [np.zeros(t.shape, bool)[()] for t in types]
        # What is computed on trial is nothing to warn of.
        with np.errstate(all="ignore"):
            try:
                return evaluate(trial.depends, arrays)
            except np.linalg.LinAlgError:
                return [np.ones(t.shape, bool)[()] for t in types]

    def xla(self, *arrays: Any, trial: Trial) -> list[Any]:
        from jax import lax, numpy

        def none(*xs: Any) -> list[Any]:
            return [numpy.zeros(t.shape, bool) for t in trial.depends.out_types]

        (are_equal,) = _through_xla(trial.are_equal, arrays)
        return list(lax.cond(are_equal, lambda *xs: _through_xla(trial.depends, xs), none, *arrays))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, trial: Trial) -> tuple[Any, Any]:
        outs = self(*primals, trial=trial)
        return outs, [None] * len(outs)

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, trial: Trial) -> Any:
        outs = self(*operands, trial=trial.batched(size, tuple(batched)))
        return outs, [True] * len(outs)


def _through_xla(program: Program, arrays: Sequence[Any]) -> list[Any]:
    from jax import lax, numpy

    def apply(eqn: Eqn, operands: list[Any]) -> Sequence[Any]:
        found = eqn.primitive.xla(*operands, **eqn.params)
        return found if eqn.primitive.multiple_results else [found]

    def constant(const: Const) -> Any:
        shape, dtype = const.type.shape, const.type.dtype
        return lax.full(shape, const.value, dtype) if const.is_splat else numpy.asarray(const.value)

    return interpret(program, arrays, apply, constant)


depends_on_choice = DependsOnChoice()
mixing = Mixing()
with_change_of = WithChangeOf()
