"""Primitives that combine the elements along axes: sums, products, extrema, logic, and their cumulative forms.

Derivatives of products are made of products of the other factors, never of quotients, so that they are right
with any number of zeros, to any order.  Elements that tie for an extremum share its derivative equally.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.primitive import Primitive, Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType, Shape, is_complex, is_inexact
from .elementwise import add, convert, div, eq, exp, isfinite, mul, select, sub
from .shapes import broadcast, concatenate, full, full_like, pad, reshape, reverse, slice_, splat, transpose


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind != "b"


def _is_bool(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "b"


def _is_real(dtype: np.dtype[Any]) -> bool:
    return is_inexact(dtype) and not is_complex(dtype)


def _everything(_: np.dtype[Any]) -> bool:
    return True


class Reduction(Primitive):
    """The elements of `x` along `axes` (increasing, not negative) combined by a ufunc; the result drops the axes.

    The result has the dtype of `x`: NumPy's widening of small integers and booleans belongs to the NumPy face.

    Args:
        ufunc: combines two elements.
        has_identity: whether a reduction of no elements is defined.
        accepts: dtypes that the operand may have.
        repeated: the result for one number and how often it occurs.
    """

    def __init__(
        self,
        name: str,
        ufunc: np.ufunc,
        *,
        has_identity: bool = True,
        accepts: Callable[[np.dtype[Any]], bool] = _everything,
        repeated: Callable[[Any, int], Any] = lambda value, count: value,
    ) -> None:
        self.name = name
        self._reduce = ufunc.reduce
        self._python = f"np.{ufunc.__name__}.reduce({{0}}, {{1}}, {{0}}.dtype)"
        self._has_identity = has_identity
        self._accepts = accepts
        self._repeated = repeated

    def type_rule(self, x: ArrayType, *, axes: Shape) -> ArrayType:
        if any(a >= x.ndim for a in axes):
            raise ValueError(f"{self.name} over axes {axes} of {x}, which has {x.ndim} axes")
        if not self._accepts(x.dtype):
            raise TypeError(f"{self.name} is not defined for {x}")
        if not self._has_identity and any(x.shape[a] == 0 for a in axes):
            raise ValueError(f"{self.name} of no elements, over axes {axes} of {x}, is not defined")
        return x.with_shape(tuple(n for i, n in enumerate(x.shape) if i not in axes))

    def numpy(self, x: Any, *, axes: Shape) -> Any:
        return self._reduce(x, axes, x.dtype)

    def python(self, operands: Sequence[str], params: Params) -> str:
        return self._python.format(operands[0], params["axes"])

    def xla(self, x: Any, *, axes: Shape) -> Any:
        from jax import lax

        return getattr(lax, self.name)(x, axes)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, axes: Shape) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        assert t is not None
        out = self(x, axes=axes)
        return out, self._tangent(out, x, t, axes)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axes: Shape) -> Tangent:
        self._missing("jvp")

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axes: Shape) -> Any:
        return self(operands[0], axes=tuple(a + 1 for a in axes)), True

    def simplify(self, operands: Sequence[Tracer], *, axes: Shape) -> Tracer | None:
        (x,) = operands
        if not axes:
            return x
        result = self.type_rule(x.type, axes=axes)
        count = math.prod(x.shape[a] for a in axes)
        value = splat(x)
        if value is not None and count:
            with np.errstate(all="ignore"):
                return full_like(result, self._repeated(value, count))
        return reshape(x, shape=result.shape) if count == 1 else None


def _restored(reduced: Tracer, x: Tracer, axes: Shape) -> Tracer:
    """A reduction of `x` over `axes`, repeated along them to the shape of `x`."""
    return broadcast(reduced, shape=x.shape, dims=tuple(i for i in range(x.ndim) if i not in axes))


class ReduceSum(Reduction):
    """Sum of `x` over `axes`, which the result drops."""

    def __init__(self) -> None:
        super().__init__(
            "reduce_sum", np.add, accepts=_is_number, repeated=lambda value, count: value * value.dtype.type(count)
        )

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axes: Shape) -> Tangent:
        return reduce_sum(t, axes=axes)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axes: Shape) -> list[Tangent]:
        return [_restored(ct, operands[0], axes)]


class ReduceProd(Reduction):
    """Product of `x` over `axes`, which the result drops."""

    def __init__(self) -> None:
        super().__init__(
            "reduce_prod", np.multiply, accepts=_is_number, repeated=lambda value, count: value ** value.dtype.type(count)
        )

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
                (_section(x, -1, *where), _section(t, -1, *where))
                for where in ((0, half), (half, 2 * half), (2 * half, count))
            )
            x = concatenate(mul(x0, x1), x2, axis=x.ndim - 1) if count % 2 else mul(x0, x1)
            t = add(mul(t0, x1), mul(x0, t1))
            t = concatenate(t, t2, axis=t.ndim - 1) if count % 2 else t
            count -= half
        return reshape(t, shape=out.shape)


class ReduceExtremum(Reduction):
    """The largest or smallest element of `x` along `axes`, which the result drops; NaN if one is NaN."""

    def __init__(self, name: str, ufunc: np.ufunc) -> None:
        super().__init__(name, ufunc, has_identity=False)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axes: Shape) -> Tangent:
        winners = convert(eq(x, _restored(out, x, axes)), dtype=x.dtype)
        return div(reduce_sum(mul(t, winners), axes=axes), reduce_sum(winners, axes=axes))


reduce_sum = ReduceSum()
reduce_prod = ReduceProd()
reduce_max = ReduceExtremum("reduce_max", np.maximum)
reduce_min = ReduceExtremum("reduce_min", np.minimum)
reduce_and = Reduction("reduce_and", np.logical_and, accepts=_is_bool)
reduce_or = Reduction("reduce_or", np.logical_or, accepts=_is_bool)


class ArgExtremum(Primitive):
    """Position along `axis` of the first largest (or smallest) element of `x`, as int64; a NaN wins over numbers."""

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


class Cumulative(Primitive):
    """Element `i` of the result combines elements 0 to `i` of `x` along `axis`, or `i` to the last if `reverse`.

    Args:
        ufunc: combines two elements.
        accepts: dtypes that the operand may have.
    """

    def __init__(
        self, name: str, ufunc: np.ufunc, accepts: Callable[[np.dtype[Any]], bool] = _is_number
    ) -> None:
        self.name = name
        self._accumulate = ufunc.accumulate
        self._python = f"np.{ufunc.__name__}.accumulate({{0}}, {{1}}, {{0}}.dtype)"
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
        from jax import lax

        return getattr(lax, self.name)(x, axis, reverse)

    def jvp(
        self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        assert t is not None
        out = self(x, axis=axis, reverse=reverse)
        if not x.size:
            return out, None
        return out, _flip(self._tangent(*(_flip(v, axis, reverse) for v in (out, x, t)), axis), axis, reverse)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axis: int) -> Tracer:
        """The tangent, for a forward accumulation."""
        self._missing("jvp")

    def batch(
        self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axis: int, reverse: bool
    ) -> Any:
        return self(operands[0], axis=axis + 1, reverse=reverse), True

    def simplify(self, operands: Sequence[Tracer], *, axis: int, reverse: bool) -> Tracer | None:
        (x,) = operands
        return x if x.shape[axis] <= 1 else None


def _flip(x: Tracer, axis: int, wanted: bool) -> Tracer:
    return reverse(x, axes=(axis,)) if wanted else x


def _section(x: Tracer, axis: int, start: int, limit: int, step: int = 1) -> Tracer:
    """Elements `start` to `limit` of `x` along `axis`, in steps."""
    axis %= x.ndim
    return slice_(
        x,
        start=tuple(start if i == axis else 0 for i in range(x.ndim)),
        limit=tuple(limit if i == axis else n for i, n in enumerate(x.shape)),
        strides=tuple(step if i == axis else 1 for i in range(x.ndim)),
    )


def _previous(x: Tracer, axis: int, first: Any) -> Tracer:
    """`x` shifted by one place along `axis`: element `i` is element `i - 1` of `x`, element 0 is `first`."""
    head = full(tuple(1 if i == axis else n for i, n in enumerate(x.shape)), first, x.dtype)
    return concatenate(head, _section(x, axis, 0, x.shape[axis] - 1), axis=axis)


def _interleaved(even: Tracer, odd: Tracer, axis: int) -> Tracer:
    """The elements at even and at odd places along `axis`, in one array."""
    size = even.shape[axis] + odd.shape[axis]

    def spread(x: Tracer, before: int) -> Tracer:
        after = size - before - (2 * x.shape[axis] - 1)
        place: list[Shape] = [tuple(n if i == axis else 0 for i in range(x.ndim)) for n in (before, after, 1)]
        return pad(x, full((), 0, x.dtype), before=place[0], after=place[1], interior=place[2])

    return add(spread(even, 0), spread(odd, 1))


def linear_recurrence(a: Tracer, b: Tracer, axis: int) -> Tracer:
    """The solution of `y[i] = a[i] y[i-1] + b[i]`, with `y[0] = b[0]`, along `axis`.

    It takes 2 log2(n) elementwise steps on ever smaller arrays, by halving the recurrence (Blelloch, "Prefix sums
    and their applications", 1990), so it is linear in `b` and has derivatives and transposes of every order.
    """
    n = b.shape[axis]
    if n < 2:
        return b
    half = n // 2
    a0, b0, a1, b1 = (_section(v, axis, start, n, 2) for start in (0, 1) for v in (a, b))
    a0_paired, b0_paired = (_section(v, axis, 0, half) for v in (a0, b0))
    odd = linear_recurrence(mul(a1, a0_paired), add(mul(a1, b0_paired), b1), axis)
    later = n - half
    before = _section(odd, axis, 0, later - 1)
    rest = add(mul(_section(a0, axis, 1, later), before), _section(b0, axis, 1, later))
    even = concatenate(_section(b0, axis, 0, 1), rest, axis=axis)
    return _interleaved(even, odd, axis)


class CumSum(Cumulative):
    """Cumulative sum of `x` along `axis`, from the end if `reverse`."""

    def __init__(self) -> None:
        super().__init__("cumsum", np.add)

    def jvp(
        self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        return tuple(cumsum(v, axis=axis, reverse=reverse) for v in (primals[0], tangents[0]))  # type: ignore[return-value]

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axis: int, reverse: bool) -> list[Tangent]:
        return [cumsum(ct, axis=axis, reverse=not reverse)]

    def simplify(self, operands: Sequence[Tracer], *, axis: int, reverse: bool) -> Tracer | None:
        (x,) = operands
        return x if x.shape[axis] <= 1 or splat(x) == 0 else None


class CumProd(Cumulative):
    """Cumulative product of `x` along `axis`, from the end if `reverse`."""

    def __init__(self) -> None:
        super().__init__("cumprod", np.multiply)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axis: int) -> Tracer:
        # out[i] = x[i] out[i-1]
        return linear_recurrence(x, mul(t, _previous(out, axis, 1)), axis)


class CumExtremum(Cumulative):
    """Largest or smallest element of `x` so far along `axis`; elements that tie share the derivative equally."""

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axis: int) -> Tracer:
        # Sums of the winners' tangents, and their number, that start again where a new extremum does.
        same = convert(eq(out, _previous(out, axis, 0)), dtype=x.dtype)
        winners = convert(eq(x, out), dtype=x.dtype)
        return div(linear_recurrence(same, mul(t, winners), axis), linear_recurrence(same, winners, axis))


class CumLogSumExp(Cumulative):
    """Logarithm of the cumulative sum of `exp(x)` along `axis`; neither it nor its derivatives overflow."""

    def __init__(self) -> None:
        super().__init__("cumlogsumexp", np.logaddexp, _is_real)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axis: int) -> Tracer:
        # A mean of tangents, weighted by exp(x[j] - out[i]): each step mixes a new one in, with weights that add to 1.
        # An infinite result must not meet an equally infinite operand: inf - inf is not a number.
        base = select(isfinite(out), out, full_like(out, 0))
        kept = exp(sub(_previous(out, axis, -math.inf), base))
        return linear_recurrence(kept, mul(t, exp(sub(x, base))), axis)


cumsum = CumSum()
cumprod = CumProd()
cummax = CumExtremum("cummax", np.maximum)
cummin = CumExtremum("cummin", np.minimum)
cumlogsumexp = CumLogSumExp()
