"""Primitives that combine the elements along axes: products, extrema, logic, and their cumulative forms.

Derivatives of products are made of products of the other factors, never of quotients, so that they are right
with any number of zeros, to any order.  Elements that tie for an extremum share its derivative equally.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.index_map import Piece
from ..base.pieces import aligned, triangle
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import SingleResult, Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType, Shape, is_complex
from .broadcast import Reduction, is_number, reduce_sum, restored, with_batch_axis
from .elementwise import add, convert, div, eq, exp, isfinite, mul, select, sub
from .elementwise.family import is_real
from .literals import full, full_like, splat
from .parts import concatenate, slice_
from .platforms import by_platform
from .shapes import reshape, transpose


def _is_bool(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "b"


class ReduceProd(Reduction):
    """Product of `x` over `axes`, which the result drops."""

    def __init__(self) -> None:
        super().__init__("reduce_prod", np.multiply, accepts=is_number)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axes: Shape) -> Tangent:
        kept = tuple(i for i in range(x.ndim) if i not in axes)

        def factors(v: Tracer) -> Tracer:
            return reshape(transpose(v, axes=(*kept, *axes)), shape=(*out.shape, count))

        count = math.prod(x.shape[a] for a in axes)
        if count == 0:
            return None
        x, t = factors(x), factors(t)
        # Products of halves, by the rule for products: a tree of the height of log2(count).
        while count > 1:
            half = count // 2
            (x0, t0), (x1, t1), (x2, t2) = (
                (_section(x, out.ndim, *where), _section(t, out.ndim, *where))
                for where in ((0, half), (half, 2 * half), (2 * half, count))
            )
            x = concatenate(mul(x0, x1), x2, axis=out.ndim) if count % 2 else mul(x0, x1)
            t = add(mul(t0, x1), mul(x0, t1))
            t = concatenate(t, t2, axis=out.ndim) if count % 2 else t
            count -= half
        return reshape(t, shape=out.shape)

    def _of_repeated(self, value: Any, count: int) -> Any:
        return value if value == 1 or (value == 0 and not np.signbit(value.real)) else None


class ReduceExtremum(Reduction):
    """The largest or smallest element of `x` along `axes`, which the result drops; NaN if one is NaN."""

    def __init__(self, name: str, ufunc: np.ufunc) -> None:
        super().__init__(name, ufunc, has_identity=False)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axes: Shape) -> Tangent:
        wins = eq(x, restored(out, x, axes))
        count = reduce_sum(convert(wins, dtype=x.dtype), axes=axes)
        return div(reduce_sum(select(wins, t, full_like(t, 0)), axes=axes), count)


reduce_prod = ReduceProd()
reduce_max = ReduceExtremum("reduce_max", np.maximum)
reduce_min = ReduceExtremum("reduce_min", np.minimum)
reduce_and = Reduction("reduce_and", np.logical_and, accepts=_is_bool)
reduce_or = Reduction("reduce_or", np.logical_or, accepts=_is_bool)


class ArgExtremum(SingleResult):
    """Position along `axis` of the first largest (or smallest) element of `x`, as int64; a NaN wins over numbers."""

    memory = Memory.NEW

    def __init__(self, name: str) -> None:
        self.name = name

    def type_rule(self, x: ArrayType, *, axis: int) -> ArrayType:
        if axis >= x.ndim or x.shape[axis] == 0:
            raise ValueError(f"{self.name} along axis {axis} of {x} is not defined")
        if is_complex(x.dtype):
            raise TypeError(f"{self.name} is not defined for {x}")
        return ArrayType(x.shape[:axis] + x.shape[axis + 1 :], np.int64)

    def numpy(self, x: Any, *, axis: int) -> Any:
        return getattr(x, self.name)(axis)

    def python(self, operands: Sequence[str], params: Params) -> str:
        return f"{operands[0]}.{self.name}({params['axis']})"

    def xla(self, x: Any, *, axis: int) -> Any:
        from jax import lax

        return getattr(lax, self.name)(x, axis, np.int64)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(types[0].size)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, axis: int) -> tuple[Any, Any]:
        return self(primals[0], axis=axis), None

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axis: int) -> Any:
        return self(operands[0], axis=axis + 1), True

    def simplify(self, operands: Sequence[Tracer], *, axis: int) -> Tracer | None:
        (x,) = operands
        if x.shape[axis] != 1 and splat(x) is None:
            return None
        return full_like(self.type_rule(x.type, axis=axis), 0)


argmax = ArgExtremum("argmax")
argmin = ArgExtremum("argmin")


# Cumulative forms


def _so_far(shape: Shape, axis: int, reverse: bool, factor: float | None = None) -> Sequence[Piece]:
    """Each element depends on those up to it along an axis, or from it on if `reverse`."""
    others = [(i, i) for i in range(len(shape)) if i != axis]
    return aligned(shape, shape, others, {(axis, axis): triangle(shape[axis], not reverse)}, factor)


class Cumulative(SingleResult):
    """Element `i` of the result combines elements 0 to `i` of `x` along `axis`, or `i` to the last if `reverse`.

    Args:
        ufunc: combines two elements.
        xla: the same on JAX arrays: name of a function of `jax.numpy`.
        start: what combining with changes nothing, or None for a ufunc that makes nothing of `f(x, x)` but `x`.
        accepts: dtypes that the operand may have.
    """

    memory = Memory.NEW
    # The derivative by each element that is combined, where it is the same for all values.
    _factor: float | None = None

    def __init__(
        self,
        name: str,
        ufunc: np.ufunc,
        xla: str,
        start: float | None = None,
        accepts: Callable[[np.dtype[Any]], bool] = is_number,
    ) -> None:
        self.name = name
        self._accumulate = ufunc.accumulate
        self._python = f"np.{ufunc.__name__}.accumulate({{0}}, {{1}}, {{0}}.dtype)"
        self._xla = xla
        self._start = start
        self._accepts = accepts

    def type_rule(self, x: ArrayType, *, axis: int, reverse: bool) -> ArrayType:
        if axis >= x.ndim:
            raise ValueError(f"{self.name} along axis {axis} of {x}, which has {x.ndim} axes")
        if not self._accepts(x.dtype):
            raise TypeError(f"{self.name} is not defined for {x}")
        return x

    def numpy(self, x: Any, *, axis: int, reverse: bool) -> Any:
        if reverse:
            return np.flip(self._accumulate(np.flip(x, axis), axis, x.dtype), axis)
        return self._accumulate(x, axis, x.dtype)

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        return None if params["reverse"] else self._python.format(operands[0], params["axis"])

    def xla(self, x: Any, *, axis: int, reverse: bool) -> Any:
        import jax.numpy as jnp
        from jax import lax

        def step(total: Any, row: Any) -> Any:
            total = getattr(jnp, self._xla)(total, row)
            return total, total

        def start(rows: Any) -> Any:
            return rows[-1 if reverse else 0] if self._start is None else jnp.full_like(rows[0], self._start)

        if not x.size:
            return x
        return by_platform(
            x,
            cpu=lambda x: _loop(step, start, (x,), axis, reverse),
            default=lambda x: getattr(lax, self.name)(x, axis, reverse),
        )

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return [_so_far(types[0].shape, params["axis"], params["reverse"], self._factor)]

    def jvp(
        self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        assert t is not None
        out = self(x, axis=axis, reverse=reverse)
        return out, self._tangent(out, x, t, axis, reverse) if x.size else None

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axis: int, reverse: bool) -> Tracer:
        self._missing("jvp")

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axis: int, reverse: bool) -> Any:
        return self(operands[0], axis=axis + 1, reverse=reverse), True

    def simplify(self, operands: Sequence[Tracer], *, axis: int, reverse: bool) -> Tracer | None:
        (x,) = operands
        return x if x.shape[axis] <= 1 else None


def _loop(
    step: Callable[[Any, Any], Any], start: Callable[..., Any], arrays: Sequence[Any], axis: int, reverse: bool
) -> Any:
    """An accumulation as a loop over rows: on a CPU several times faster than XLA's tree of partial results."""
    import jax.numpy as jnp
    from jax import lax

    rows = [jnp.moveaxis(x, axis, 0) for x in arrays]
    _, out = lax.scan(step, start(*rows), rows if len(rows) > 1 else rows[0], reverse=reverse)
    return jnp.moveaxis(out, 0, axis)


def _section(x: Tracer, axis: int, start: int, limit: int) -> Tracer:
    """Elements `start` to `limit` of `x` along `axis`."""
    return slice_(
        x,
        start=tuple(start if i == axis else 0 for i in range(x.ndim)),
        limit=tuple(limit if i == axis else n for i, n in enumerate(x.shape)),
        strides=(1,) * x.ndim,
    )


def _shifted(x: Tracer, axis: int, fill: Any, backwards: bool) -> Tracer:
    """Element `i` is element `i - 1` of `x` along `axis`, or `i + 1` if `backwards`; `fill` comes in at the end."""
    n = x.shape[axis]
    new = full(tuple(1 if i == axis else m for i, m in enumerate(x.shape)), fill, x.dtype)
    if backwards:
        return concatenate(_section(x, axis, 1, n), new, axis=axis)
    return concatenate(new, _section(x, axis, 0, n - 1), axis=axis)


def _where(condition: Any, x: Any) -> Any:
    """`x` where the condition holds, else 0."""
    return np.where(condition, x, x.dtype.type(0))


class LinearRecurrence(SingleResult):
    """The solution of `y[i] = a[i] y[i-1] + b[i]`, `y[0] = b[0]`, along `axis`; from the last on if `reverse`.

    A boolean `a` chooses: where it is false the recurrence starts again, also behind what is infinite or not a number.
    NumPy and accelerators halve the recurrence until it is solved (Blelloch, "Prefix sums and their applications",
    1990): products of several `a` are formed, but nothing is ever divided by one.
    """

    name = "linear_recurrence"
    memory = Memory.NEW

    def type_rule(self, a: ArrayType, b: ArrayType, *, axis: int, reverse: bool) -> ArrayType:
        if (a is not b and a is not b.with_dtype(np.bool_)) or axis >= b.ndim or not is_number(b.dtype):
            raise TypeError(f"{self.name} along axis {axis} is not defined for {a} and {b}")
        return b

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(2 * results[0].size)

    def numpy(self, a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
        a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
        out = self._halve(a[::-1], b[::-1])[::-1] if reverse else self._halve(a, b)
        return np.moveaxis(out, 0, axis)

    def _halve(self, a: Any, b: Any) -> Any:
        n = len(b)
        out = np.array(b)
        if n > 1:
            times = np.multiply if a.dtype.kind != "b" else _where
            even = slice(0, n - n % 2, 2)
            out[1::2] = self._halve(a[1::2] * a[even], times(a[1::2], b[even]) + b[1::2])
            out[2::2] += times(a[2::2], out[1 : n - 1 : 2])
        return out

    def xla(self, a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
        import jax.numpy as jnp
        from jax import lax

        def times(a: Any, y: Any) -> Any:
            return jnp.where(a, y, jnp.zeros_like(y)) if a.dtype == bool else a * y

        def step(y: Any, row: Any) -> Any:
            y = times(row[0], y) + row[1]
            return y, y

        def then(first: Any, second: Any) -> Any:
            return second[0] * first[0], times(second[0], first[1]) + second[1]

        if not b.size:
            return b
        last = b.shape[axis] - 1
        a = a.at[(slice(None),) * axis + (last if reverse else 0,)].set(a.dtype.type(0))
        return by_platform(
            a,
            b,
            cpu=lambda a, b: _loop(step, lambda a, b: jnp.zeros_like(b[0]), (a, b), axis, reverse),
            default=lambda a, b: lax.associative_scan(then, (a, b), reverse, axis)[1],
        )

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        a, b = types
        axis, reverse = params["axis"], params["reverse"]
        return [_so_far(a.shape, axis, reverse) if a.dtype.kind != "b" else (), _so_far(b.shape, axis, reverse)]

    def jvp(
        self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        (a, b), (ta, tb) = primals, tangents
        out = linear_recurrence(a, b, axis=axis, reverse=reverse)
        if not b.size:
            return out, None
        if ta is not None:
            along_a = mul(ta, _shifted(out, axis, 0, reverse))
            tb = along_a if tb is None else add(tb, along_a)
        return out, linear_recurrence(a, tb, axis=axis, reverse=reverse)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axis: int, reverse: bool) -> list[Tangent]:
        if not ct.size:
            return [None, ct]
        later = _shifted(operands[0], axis, 0, not reverse)
        return [None, linear_recurrence(later, ct, axis=axis, reverse=not reverse)]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axis: int, reverse: bool) -> Any:
        a, b = (with_batch_axis(size, x, flag) for x, flag in zip(operands, batched, strict=True))
        return linear_recurrence(a, b, axis=axis + 1, reverse=reverse), True

    def simplify(self, operands: Sequence[Tracer], *, axis: int, reverse: bool) -> Tracer | None:
        a, b = operands
        return b if b.shape[axis] <= 1 or splat(a) == 0 or splat(b) == 0 else None


class CumSum(Cumulative):
    """Cumulative sum of `x` along `axis`, from the end if `reverse`."""

    _factor = 1.0

    def __init__(self) -> None:
        super().__init__("cumsum", np.add, "add", -0.0)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axis: int, reverse: bool) -> Tracer:
        return cumsum(t, axis=axis, reverse=reverse)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axis: int, reverse: bool) -> list[Tangent]:
        return [cumsum(ct, axis=axis, reverse=not reverse)]

    def simplify(self, operands: Sequence[Tracer], *, axis: int, reverse: bool) -> Tracer | None:
        (x,) = operands
        return x if x.shape[axis] <= 1 or splat(x) == 0 else None


class CumProd(Cumulative):
    """Cumulative product of `x` along `axis`, from the end if `reverse`."""

    def __init__(self) -> None:
        super().__init__("cumprod", np.multiply, "multiply", 1)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axis: int, reverse: bool) -> Tracer:
        # The tangent of out[i] = x[i] out[i-1].
        new = mul(t, _shifted(out, axis, 1, reverse))
        return linear_recurrence(x, new, axis=axis, reverse=reverse)


class CumExtremum(Cumulative):
    """Largest or smallest element of `x` so far along `axis`; elements that tie share the derivative equally."""

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axis: int, reverse: bool) -> Tracer:
        # Sums of the winners' tangents, and their number, that start again where a new extremum does.
        same = eq(out, _shifted(out, axis, 0, reverse))
        wins = eq(x, out)
        # Chosen, not multiplied by 0: behind an infinite derivative of what has lost, or was the extremum before, that
        # would be NaN.
        parts = (select(wins, t, full_like(t, 0)), convert(wins, dtype=x.dtype))
        total, count = (linear_recurrence(same, v, axis=axis, reverse=reverse) for v in parts)
        return div(total, count)


class CumLogSumExp(Cumulative):
    """Logarithm of the cumulative sum of `exp(x)` along `axis`; neither it nor its derivatives overflow."""

    def __init__(self) -> None:
        super().__init__("cumlogsumexp", np.logaddexp, "logaddexp", -math.inf, is_real)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axis: int, reverse: bool) -> Tracer:
        # A mean of tangents with weights exp(x[j] - out[i]): each step mixes a new one in, by weights that add to 1.
        # An infinite result must not meet an equally infinite operand: inf - inf is not a number.
        base = select(isfinite(out), out, full_like(out, 0))
        kept = exp(sub(_shifted(out, axis, -math.inf, reverse), base))
        return linear_recurrence(kept, mul(t, exp(sub(x, base))), axis=axis, reverse=reverse)


linear_recurrence = LinearRecurrence()
cumsum = CumSum()
cumprod = CumProd()
cummax = CumExtremum("cummax", np.maximum, "maximum")
cummin = CumExtremum("cummin", np.minimum, "minimum")
cumlogsumexp = CumLogSumExp()
