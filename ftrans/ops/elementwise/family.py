"""The family of primitives that act on each element by itself, and arithmetic, which all derivatives are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.pieces import each_on_itself
from ...core.cost import Cost
from ...core.on_numpy import Memory
from ...core.primitive import SingleResult, Tangent
from ...core.program import Params
from ...core.trace import Tracer, definition
from ...core.types import ArrayType, is_complex, is_inexact
from ..broadcast import with_batch_axis
from ..literals import full_like, splat

Partial = Callable[[Tracer], Tangent] | None


class Elementwise(SingleResult):
    """A function of the elements of operands of one type.

    Args:
        name: name in print.
        numpy: function on NumPy arrays.
        xla: name of a function of `jax.lax`, or a function that is called with the operands.
        partials: takes the result and the operands (as tracers), returns for each operand a function that multiplies
            a tangent by the partial derivative, or None where the derivative is zero everywhere.  None if the result
            has no derivative at all.
        transposed: for a linear primitive, takes the cotangent and the operands, and returns for each operand
            a function without arguments that computes its cotangent, or None.
        result: dtype of the result, from the dtype of the operands; the same by default.
        python: template of a Python expression.
        accepts: dtypes that the operands may have.
        simplify: see `Primitive.simplify`.
        singular: whether a partial derivative may be infinite, where the result is not or nothing depends on it.
        square: for a length, the partial derivatives of its square, given the operands: they exist also where those of
            the length do not.
        commutes: whether its two operands may change places.
        linear: whether it is linear in all of its operands together.
        arithmetic: whether it takes about as long as an addition, and not as long as a function such as exp.
    """

    memory = Memory.NEW

    broadcasts = True
    fuses = True

    def __init__(
        self,
        name: str,
        numpy: Callable[..., Any],
        xla: str | Callable[..., Any],
        partials: Callable[..., Sequence[Partial]] | None = None,
        *,
        transposed: Callable[..., Sequence[Callable[[], Tangent] | None]] | None = None,
        result: Callable[[np.dtype[Any]], Any] | None = None,
        python: str | None = None,
        accepts: Callable[[np.dtype[Any]], bool] | None = None,
        simplify: Callable[..., Tracer | None] | None = None,
        singular: bool = False,
        square: Callable[..., Sequence[Partial]] | None = None,
        commutes: bool = False,
        linear: bool = False,
        arithmetic: bool = False,
    ) -> None:
        self.name = name
        self.commutes = commutes
        self._linear = linear
        self._arithmetic = arithmetic
        self._singular = singular
        self.square = square
        self._numpy = numpy
        self._xla: Any = xla
        self._partials = partials
        self._transposed = transposed
        self._result = result
        self._accepts = accepts
        self._simplify = simplify
        self._is_plain = (result is None and type(self).type_rule is Elementwise.type_rule) and (
            accepts is None or accepts(np.dtype(float))
        )
        if python is None and isinstance(numpy, np.ufunc):
            python = f"np.{numpy.__name__}({', '.join(['{}'] * numpy.nin)})"
        self._python = python

    @property
    def is_constant(self) -> bool:
        """Whether the result has no derivative, with respect to any operand."""
        return self._partials is None and type(self).jvp is Elementwise.jvp

    def type_rule(self, *types: ArrayType) -> ArrayType:
        first = types[0]
        for t in types:
            if t is not first:
                raise TypeError(f"operands of {self.name} differ in type: {', '.join(map(str, types))}")
        if self._accepts is not None and not self._accepts(first.dtype):
            raise TypeError(f"{self.name} is not defined for {first}")
        return first if self._result is None else first.with_dtype(self._result(first.dtype))

    def output_types(self, types: Sequence[ArrayType], params: Params) -> tuple[ArrayType, ...]:
        # Types are interned, so for most equations two comparisons of addresses tell all.
        first = types[0]
        are_same = types[-1] is first and (len(types) < 3 or all([t is first for t in types]))
        if self._is_plain and are_same and first.dtype.kind == "f":
            return (first,)
        return super().output_types(types, params)

    def numpy(self, *arrays: Any) -> Any:
        return self._numpy(*arrays)

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        return None if self._python is None else self._python.format(*operands)

    def stand_alone(self, types: list[ArrayType], params: Params) -> tuple[Callable[..., Any], Params]:
        """A function that means the same where there is no ftrans, and its parameters; see `run.stand_alone`."""
        is_function = type(self).numpy is Elementwise.numpy
        return (self._numpy, {}) if is_function else (self.numpy, params)

    def xla(self, *arrays: Any) -> Any:
        if isinstance(self._xla, str):
            from jax import lax

            self._xla = getattr(lax, self._xla)
        return self._xla(*arrays)

    def xla_channels_last(self, *arrays: Any, **params: Any) -> Any:
        return self.xla(*arrays, **params)

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return range(count) if self._linear else ()

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        out = self(*primals, **params)
        if self._partials is None:
            return out, None
        return out, combined(self._partials(out, *primals, **params), tangents, self.is_singular(primals, params))

    def is_singular(self, operands: Sequence[Tracer | ArrayType], params: Params) -> bool:
        """Whether a partial derivative may be infinite, where the result is not or nothing depends on it."""
        return self._singular

    def transpose(self, ct: Tracer, operands: Sequence[Any], **params: Any) -> list[Tangent]:
        if self._transposed is None:
            self._missing("transpose")
        rules = self._transposed(ct, *operands, **params)
        return [
            rule() if rule is not None and isinstance(x, ArrayType) else None
            for rule, x in zip(rules, operands, strict=True)
        ]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        xs = [with_batch_axis(size, x, b) for x, b in zip(operands, batched, strict=True)]
        return self(*xs, **params), True

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return (Cost.arithmetic if self._arithmetic else Cost.functions)(results[0].size)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        if self.is_constant:
            return [()] * len(types)
        return [each_on_itself(t.shape, None) if is_inexact(t.dtype) else () for t in types]

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Tracer | None:
        return None if self._simplify is None else self._simplify(*operands, **params)


def combined(partials: Sequence[Partial], tangents: Sequence[Tangent], are_singular: bool = False) -> Tangent:
    """The sum of tangents multiplied by partial derivatives, which may be infinite if they `are_singular`."""
    total: Tangent = None
    for partial, t in zip(partials, tangents, strict=True):
        term = None if partial is None or t is None else partial(t)
        if term is not None:
            term = singular_slope(term) if are_singular else term
            total = term if total is None else add(total, term)
    return total


# What a product with a derivative that may be infinite is marked by, until the program is simplified: there the zeros
# of the tangent are put in again (see `transforms/choices.py`).
singular_slope = Elementwise(
    "singular_slope",
    lambda x: x,
    lambda x: x,
    lambda out, x: [lambda t: singular_slope(t)],
    transposed=lambda ct, x: [lambda: singular_slope(ct)],
    python="{}",
    simplify=lambda x: x,
    arithmetic=True,
)
singular_slope.memory = Memory.ANY


def of_jnp(name: str) -> Callable[..., Any]:
    """A function of `jax.numpy` that is looked up when it is called."""

    def call(*arrays: Any) -> Any:
        import jax.numpy

        return getattr(jax.numpy, name)(*arrays)

    return call


def of_lax(name: str, of_complex: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `jax.lax`, and another one for complex numbers, which is called with it first."""

    def call(*arrays: Any) -> Any:
        from jax import lax

        function = getattr(lax, name)
        return of_complex(function, *arrays) if is_complex(arrays[0].dtype) else function(*arrays)

    return call


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether this is a dtype of real floating-point numbers."""
    return is_inexact(dtype) and not is_complex(dtype)


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether this is a dtype of integers."""
    return dtype.kind in "iu"


def unary(name: str, numpy: Any, xla: Any, partial: Callable[..., Any], **more: Any) -> Elementwise:
    """A differentiable function of one floating-point operand; `partial(y, x, t)` is its tangent."""
    return Elementwise(
        name, numpy, xla, lambda y, x: [lambda t: partial(y, x, t)], accepts=more.pop("accepts", is_inexact), **more
    )


def piecewise_constant(name: str, numpy: Any, xla: Any, **more: Any) -> Elementwise:
    """A piecewise constant function: its derivative is zero everywhere."""
    return Elementwise(name, numpy, xla, None, **more)


# Arithmetic


def _is_zero(x: Tracer, sign: float) -> bool:
    """Whether `x` is a constant zero of this sign; zeros of integers have none."""
    value = splat(x)
    if value is None or value != 0:
        return False
    return x.dtype.kind in "biu" or (x.dtype.kind == "f" and math.copysign(1.0, value) == sign)


def _simplify_add(x: Tracer, y: Tracer) -> Tracer | None:
    # Adding 0.0 turns -0.0 into 0.0; adding -0.0 changes nothing.
    return y if _is_zero(x, -1.0) else x if _is_zero(y, -1.0) else None


def _simplify_sub(x: Tracer, y: Tracer) -> Tracer | None:
    return neg(y) if _is_zero(x, -1.0) and x.dtype.kind == "f" else x if _is_zero(y, 1.0) else None


def _simplify_neg(x: Tracer) -> Tracer | None:
    inner = definition(x)
    return Tracer(x.builder, inner.operands[0]) if inner is not None and inner.primitive is neg else None


def _simplify_mul(x: Tracer, y: Tracer) -> Tracer | None:
    if is_complex(x.dtype):
        # The product with 1 + 0j, or with its opposite, adds zeros, which decide on which side of a cut a number is.
        return None
    for a, b in ((x, y), (y, x)):
        value = splat(a)
        if value is not None and value == 1:
            return b
        if value is not None and value == -1 and b.dtype.kind != "b":
            return neg(b)
        if value is not None and x.dtype.kind == "f":
            inner = definition(b)
            if inner is not None and inner.primitive is mul:
                for i in (0, 1):
                    factor = splat(Tracer(x.builder, inner.operands[i]))
                    if factor is not None and _multiply_exactly(value, factor):
                        return _scaled(Tracer(x.builder, inner.operands[1 - i]), value * factor)
    return None


def _scaled(x: Tracer, factor: Any) -> Tracer:
    return x if factor == 1 else mul(full_like(x, factor), x)


def _multiply_exactly(a: Any, b: Any) -> bool:
    """Whether two factors may be joined: one is a power of two, and the product is neither too large nor too small."""
    if not (math.isfinite(a) and math.isfinite(b) and 0.5 in (abs(math.frexp(a)[0]), abs(math.frexp(b)[0]))):
        return False
    limits = np.finfo(a.dtype)
    return bool(limits.tiny <= abs(float(a) * float(b)) <= limits.max)


def _either(of_numbers: str, of_booleans: str) -> Callable[..., Any]:
    """A function of `jax.lax` for numbers, and what it means for booleans, where NumPy takes both."""

    functions: list[Any] = []

    def call(x: Any, y: Any) -> Any:
        if not functions:
            from jax import lax

            functions.extend((getattr(lax, of_numbers), getattr(lax, of_booleans)))
        return functions[x.dtype.kind == "b"](x, y)

    return call


# XLA takes `x + 0.0` for `x`, which it is not where `x` is -0.0.


def _is_positive_zero(x: Any) -> bool:
    """Whether this is a number of the program, and no array, that is 0.0 or 0.0 + 0.0j."""
    if not isinstance(x, np.generic) or not is_inexact(x.dtype) or x != 0:
        return False
    return not (np.signbit(x.real) or np.signbit(x.imag))


def without_negative_zeros(x: Any) -> Any:
    """A JAX array with 0.0 for -0.0."""
    import jax.numpy as jnp
    from jax import lax

    if is_complex(x.dtype):
        return lax.complex(without_negative_zeros(x.real), without_negative_zeros(x.imag))
    return jnp.where(x == 0, np.zeros((), x.dtype), x)


def _add_on_xla(x: Any, y: Any) -> Any:
    if _is_positive_zero(y):
        return without_negative_zeros(x)
    return without_negative_zeros(y) if _is_positive_zero(x) else _add_numbers(x, y)


def _sub_on_xla(x: Any, y: Any) -> Any:
    from jax import lax

    is_sum = isinstance(y, np.number) and is_inexact(y.dtype) and _is_positive_zero(np.negative(y))
    return without_negative_zeros(x) if is_sum else lax.sub(x, y)


_add_numbers = _either("add", "bitwise_or")
add = Elementwise(
    "add",
    np.add,
    _add_on_xla,
    lambda z, x, y: [lambda t: t, lambda t: t],
    transposed=lambda ct, x, y: [lambda: ct, lambda: ct],
    python="{} + {}",
    simplify=_simplify_add,
    commutes=True,
    linear=True,
    arithmetic=True,
)
sub = Elementwise(
    "sub",
    np.subtract,
    _sub_on_xla,
    lambda z, x, y: [lambda t: t, lambda t: neg(t)],
    transposed=lambda ct, x, y: [lambda: ct, lambda: neg(ct)],
    python="{} - {}",
    simplify=_simplify_sub,
    linear=True,
    arithmetic=True,
)
mul = Elementwise(
    "mul",
    np.multiply,
    _either("mul", "bitwise_and"),
    lambda z, x, y: [lambda t: mul(t, y), lambda t: mul(x, t)],
    transposed=lambda ct, x, y: [lambda: mul(ct, y), lambda: mul(x, ct)],
    python="{} * {}",
    simplify=_simplify_mul,
    commutes=True,
    arithmetic=True,
)


class Division(Elementwise):
    """The quotient of two numbers; where the divisor is not known to differ from 0, its derivatives may be infinite."""

    def is_singular(self, operands: Sequence[Tracer | ArrayType], params: Params) -> bool:
        y = operands[1]
        return not (isinstance(y, Tracer) and splat(y))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        # One quotient for both terms: its own derivative has the same form again, so higher derivatives share it.
        x, y = primals
        t_x, t_y = tangents
        z = div(x, y)
        change = t_x if t_y is None else neg(mul(z, t_y)) if t_x is None else sub(t_x, mul(z, t_y))
        tangent = div(change, y)
        return z, singular_slope(tangent) if self.is_singular(primals, params) else tangent


div = Division(
    "div",
    np.divide,
    "div",
    transposed=lambda ct, x, y: [lambda: div(ct, y), None],
    python="{} / {}",
    accepts=is_inexact,
    simplify=lambda x, y: x if splat(y) == 1 and not is_complex(x.dtype) else None,
    arithmetic=True,
)
neg = Elementwise(
    "neg",
    np.negative,
    "neg",
    lambda y, x: [lambda t: neg(t)],
    transposed=lambda ct, x: [lambda: neg(ct)],
    python="-{}",
    simplify=_simplify_neg,
    linear=True,
    arithmetic=True,
)
