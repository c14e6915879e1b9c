"""Primitives that act on each element by itself.

An elementwise primitive states its NumPy function, its XLA function and its partial derivatives; types, batching
and absent tangents belong to the family.  Linear ones state their transpose as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.primitive import Primitive, Tangent
from ..core.program import Params
from ..core.trace import Tracer, definition
from ..core.types import ArrayType, is_complex, is_inexact
from .shapes import full_like, splat, with_batch_axis

Partial = Callable[[Tracer], Tangent] | None


class Elementwise(Primitive):
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
    """

    broadcasts = True

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
    ) -> None:
        self.name = name
        self._numpy = numpy
        self._xla: Any = xla
        self._partials = partials
        self._transposed = transposed
        self._result = result
        self._accepts = accepts
        self._simplify = simplify
        self._is_plain = result is None and type(self) is Elementwise and (accepts is None or accepts(np.dtype(float)))
        if python is None and isinstance(numpy, np.ufunc):
            python = f"np.{numpy.__name__}({', '.join(['{}'] * numpy.nin)})"
        self._python = python

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
        if self._is_plain and first.dtype.kind == "f" and all([t is first for t in types]):
            return (first,)
        return super().output_types(types, params)

    def numpy(self, *arrays: Any) -> Any:
        return self._numpy(*arrays)

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        return None if self._python is None else self._python.format(*operands)

    def xla(self, *arrays: Any) -> Any:
        if isinstance(self._xla, str):
            from jax import lax

            self._xla = getattr(lax, self._xla)
        return self._xla(*arrays)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        out = self(*primals, **params)
        if self._partials is None:
            return out, None
        total: Tangent = None
        for partial, t in zip(self._partials(out, *primals, **params), tangents, strict=True):
            if partial is not None and t is not None:
                term = partial(t)
                total = term if total is None else add(total, term)
        return out, total

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

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Tracer | None:
        return None if self._simplify is None else self._simplify(*operands, **params)


def _jnp(name: str) -> Callable[..., Any]:
    def call(*arrays: Any) -> Any:
        import jax.numpy

        return getattr(jax.numpy, name)(*arrays)

    return call


def _to_bool(_: np.dtype[Any]) -> Any:
    return np.bool_


def _to_real(dtype: np.dtype[Any]) -> Any:
    return np.empty(0, dtype).real.dtype if is_complex(dtype) else dtype


def _to_complex(dtype: np.dtype[Any]) -> Any:
    return np.complex64 if dtype == np.float32 else np.complex128


def _unary(name: str, numpy: Any, xla: Any, partial: Callable[..., Any], **more: Any) -> Elementwise:
    """A differentiable function of one floating-point operand; `partial(y, x, t)` is its tangent."""
    return Elementwise(
        name, numpy, xla, lambda y, x: [lambda t: partial(y, x, t)], accepts=more.pop("accepts", is_inexact), **more
    )


def _constant(name: str, numpy: Any, xla: Any, **more: Any) -> Elementwise:
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


add = Elementwise(
    "add",
    np.add,
    _either("add", "bitwise_or"),
    lambda z, x, y: [lambda t: t, lambda t: t],
    transposed=lambda ct, x, y: [lambda: ct, lambda: ct],
    python="{} + {}",
    simplify=_simplify_add,
)
sub = Elementwise(
    "sub",
    np.subtract,
    "sub",
    lambda z, x, y: [lambda t: t, lambda t: neg(t)],
    transposed=lambda ct, x, y: [lambda: ct, lambda: neg(ct)],
    python="{} - {}",
    simplify=_simplify_sub,
)
mul = Elementwise(
    "mul",
    np.multiply,
    _either("mul", "bitwise_and"),
    lambda z, x, y: [lambda t: mul(t, y), lambda t: mul(x, t)],
    transposed=lambda ct, x, y: [lambda: mul(ct, y), lambda: mul(x, ct)],
    python="{} * {}",
    simplify=_simplify_mul,
)
div = Elementwise(
    "div",
    np.divide,
    "div",
    lambda z, x, y: [lambda t: div(t, y), lambda t: neg(mul(t, div(z, y)))],
    transposed=lambda ct, x, y: [lambda: div(ct, y), None],
    python="{} / {}",
    accepts=is_inexact,
    simplify=lambda x, y: x if splat(y) == 1 else None,
)
neg = Elementwise(
    "neg",
    np.negative,
    "neg",
    lambda y, x: [lambda t: neg(t)],
    transposed=lambda ct, x: [lambda: neg(ct)],
    python="-{}",
    simplify=_simplify_neg,
)


class IntegerPow(Elementwise):
    """`x ** exponent` for a constant integer exponent."""

    def __init__(self) -> None:
        super().__init__("integer_pow", np.power, "integer_pow")

    def type_rule(self, *types: ArrayType, exponent: int = 1) -> ArrayType:
        if exponent < 0 and not is_inexact(types[0].dtype):
            raise ValueError("integers to negative integer powers are not allowed")
        return types[0]

    def numpy(self, *arrays: Any, exponent: int = 1) -> Any:
        (x,) = arrays
        power = np.power(x, exponent)
        # NumPy takes powers of the small formats in a larger one.
        return power if power.dtype == x.dtype else power.astype(x.dtype)

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        (x,) = operands
        n = params["exponent"]
        if 2 <= n <= 3:
            return " * ".join([x] * n)
        if n == 4:
            return f"np.square({x} * {x})"
        return {-1: f"np.reciprocal({x})", -2: f"np.reciprocal({x} * {x})"}.get(n)

    def xla(self, *arrays: Any, exponent: int = 1) -> Any:
        from jax import lax

        return lax.integer_pow(arrays[0], exponent)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        (x,), (t,), n = primals, tangents, params["exponent"]
        assert t is not None
        out = integer_pow(x, exponent=n)
        if n == 0:
            return out, None
        return out, mul(t, mul(full_like(x, n), x if n == 2 else integer_pow(x, exponent=n - 1)))

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Tracer | None:
        n = params["exponent"]
        return operands[0] if n == 1 else full_like(operands[0], 1) if n == 0 else None


integer_pow = IntegerPow()


def _power_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Partial]:
    one = full_like(x, 1)
    zero = full_like(x, 0)

    def along_x(t: Tracer) -> Tracer:
        # Where y is 0 the derivative is 0, also at x = 0, where x ** (y - 1) is infinite.
        exponent = select(eq(y, zero), one, sub(y, one))
        return mul(t, mul(y, power(x, exponent)))

    def along_y(t: Tracer) -> Tracer:
        # At x = 0 the limit of log(x) x**y is 0 for y > 0.
        return mul(t, mul(log(select(eq(x, zero), one, x)), z))

    return [along_x, along_y]


power = Elementwise("power", np.power, _jnp("power"), _power_partials, python="{} ** {}")
square = Elementwise(
    "square",
    np.square,
    "square",
    lambda y, x: [lambda t: mul(t, mul(full_like(x, 2), x))],
    python="{0} * {0}",
)
reciprocal = _unary(
    "reciprocal",
    np.reciprocal,
    "reciprocal",
    lambda y, x, t: neg(mul(t, mul(y, y))),
    python="np.reciprocal({})",
)

# Exponentials, logarithms, roots

exp = _unary("exp", np.exp, "exp", lambda y, x, t: mul(t, y))
exp2 = _unary("exp2", np.exp2, "exp2", lambda y, x, t: mul(t, mul(full_like(x, math.log(2)), y)))
expm1 = _unary("expm1", np.expm1, "expm1", lambda y, x, t: mul(t, add(y, full_like(x, 1))))
log = _unary("log", np.log, "log", lambda y, x, t: div(t, x))
log2 = _unary("log2", np.log2, _jnp("log2"), lambda y, x, t: div(t, mul(x, full_like(x, math.log(2)))))
log10 = _unary("log10", np.log10, _jnp("log10"), lambda y, x, t: div(t, mul(x, full_like(x, math.log(10)))))
log1p = _unary("log1p", np.log1p, "log1p", lambda y, x, t: div(t, add(x, full_like(x, 1))))
sqrt = _unary("sqrt", np.sqrt, "sqrt", lambda y, x, t: mul(t, div(full_like(x, 0.5), y)))
cbrt = _unary("cbrt", np.cbrt, "cbrt", lambda y, x, t: div(t, mul(full_like(x, 3), mul(y, y))))

# Trigonometry

sin = _unary("sin", np.sin, "sin", lambda y, x, t: mul(t, cos(x)))
cos = _unary("cos", np.cos, "cos", lambda y, x, t: neg(mul(t, sin(x))))
tan = _unary("tan", np.tan, "tan", lambda y, x, t: mul(t, add(full_like(x, 1), mul(y, y))))


def _one_minus_square(x: Tracer) -> Tracer:
    one = full_like(x, 1)
    return mul(sub(one, x), add(one, x))


arcsin = _unary("arcsin", np.arcsin, "asin", lambda y, x, t: div(t, sqrt(_one_minus_square(x))))
arccos = _unary("arccos", np.arccos, "acos", lambda y, x, t: neg(div(t, sqrt(_one_minus_square(x)))))
arctan = _unary("arctan", np.arctan, "atan", lambda y, x, t: div(t, add(full_like(x, 1), mul(x, x))))
sinh = _unary("sinh", np.sinh, "sinh", lambda y, x, t: mul(t, cosh(x)))
cosh = _unary("cosh", np.cosh, "cosh", lambda y, x, t: mul(t, sinh(x)))
tanh = _unary("tanh", np.tanh, "tanh", lambda y, x, t: mul(t, sub(full_like(y, 1), mul(y, y))))
arcsinh = _unary("arcsinh", np.arcsinh, "asinh", lambda y, x, t: div(t, sqrt(add(mul(x, x), full_like(x, 1)))))
arccosh = _unary(
    "arccosh",
    np.arccosh,
    "acosh",
    lambda y, x, t: div(t, mul(sqrt(sub(x, full_like(x, 1))), sqrt(add(x, full_like(x, 1))))),
)
arctanh = _unary("arctanh", np.arctanh, "atanh", lambda y, x, t: div(t, _one_minus_square(x)))


def _safe_divisor(x: Tracer) -> Tracer:
    return select(eq(x, full_like(x, 0)), full_like(x, 1), x)


def _arctan2_partials(z: Tracer, y: Tracer, x: Tracer) -> list[Partial]:
    # Divided by the radius twice, so that neither tiny nor huge operands overflow; at the origin 0 is chosen.
    radius = _safe_divisor(hypot(x, y))
    return [
        lambda t: mul(t, div(div(x, radius), radius)),
        lambda t: neg(mul(t, div(div(y, radius), radius))),
    ]


def _is_real(dtype: np.dtype[Any]) -> bool:
    return is_inexact(dtype) and not is_complex(dtype)


arctan2 = Elementwise("arctan2", np.arctan2, "atan2", _arctan2_partials, accepts=_is_real)
hypot = Elementwise(
    "hypot",
    np.hypot,
    _jnp("hypot"),
    lambda z, x, y: [lambda t: mul(t, div(x, _safe_divisor(z))), lambda t: mul(t, div(y, _safe_divisor(z)))],
    accepts=_is_real,
)


def _logaddexp_partials(z: Tracer, x: Tracer, y: Tracer, exponential: Elementwise) -> list[Partial]:
    zero = full_like(z, 0)

    def weight(operand: Tracer) -> Tracer:
        # An infinite result must not meet an equally infinite operand: inf - inf is not a number.
        limit = select(bitwise_and(eq(operand, z), gt(z, zero)), zero, full_like(z, -math.inf))
        return exponential(select(isinf(z), limit, sub(operand, select(isinf(z), zero, z))))

    return [lambda t: mul(t, weight(x)), lambda t: mul(t, weight(y))]


logaddexp = Elementwise(
    "logaddexp", np.logaddexp, _jnp("logaddexp"), lambda z, x, y: _logaddexp_partials(z, x, y, exp), accepts=_is_real
)
logaddexp2 = Elementwise(
    "logaddexp2",
    np.logaddexp2,
    _jnp("logaddexp2"),
    lambda z, x, y: _logaddexp_partials(z, x, y, exp2),
    accepts=_is_real,
)

# Choice: at ties both operands get half of the derivative.


def _winner_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Partial]:
    def share(mine: Tracer, other: Tracer) -> Tracer:
        half, one, zero = (full_like(x, v) for v in (0.5, 1, 0))
        return select(eq(mine, z), select(eq(other, z), half, one), zero)

    return [lambda t: mul(t, share(x, y)), lambda t: mul(t, share(y, x))]


maximum = Elementwise("maximum", np.maximum, "max", _winner_partials)
minimum = Elementwise("minimum", np.minimum, "min", _winner_partials)


def _where(condition: Any, x: Any, y: Any) -> Any:
    # NumPy's where makes 0-d arrays of scalars, unlike every ufunc.
    return np.asarray(np.where(condition, x, y))[()]


class Select(Elementwise):
    """`x` where `condition` holds, else `y`."""

    def __init__(self) -> None:
        super().__init__("select", _where, "select", python="np.where({}, {}, {})[()]")

    def type_rule(self, *types: ArrayType) -> ArrayType:
        condition, x, y = types
        if x is not y or condition is not x.with_dtype(np.bool_):
            raise TypeError(f"operands of select do not fit: {condition}, {x}, {y}")
        return x

    def xla(self, *arrays: Any) -> Any:
        from jax import lax

        # Constants come as scalars; lax.select wants full shapes.
        shape = max((a.shape for a in arrays), key=len)
        return lax.select(*(a if a.shape == shape else lax.full(shape, a) for a in arrays))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        condition, x, y = primals
        _, tx, ty = tangents
        out = select(condition, x, y)
        return out, select(condition, full_like(x, 0) if tx is None else tx, full_like(y, 0) if ty is None else ty)

    def transpose(self, ct: Tracer, operands: Sequence[Any], **params: Any) -> list[Tangent]:
        condition, x, y = operands
        zero = full_like(ct, 0)
        return [
            None,
            select(condition, ct, zero) if isinstance(x, ArrayType) else None,
            select(condition, zero, ct) if isinstance(y, ArrayType) else None,
        ]

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Tracer | None:
        condition, x, y = operands
        value = splat(condition)
        if value is not None:
            return x if value else y
        return x if x.atom is y.atom else None


select = Select()


def _copysign_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Partial]:
    return [lambda t: select(eq(signbit(x), signbit(y)), t, neg(t)), None]


copysign = Elementwise("copysign", np.copysign, _jnp("copysign"), _copysign_partials, accepts=_is_real)
nextafter = Elementwise("nextafter", np.nextafter, "nextafter", lambda z, x, y: [lambda t: t, None], accepts=_is_real)
abs_ = Elementwise(
    "abs",
    np.abs,
    "abs",
    lambda y, x: [lambda t: real(mul(t, conj(sign(x)))) if is_complex(x.dtype) else mul(t, sign(x))],
    result=_to_real,
)

# Division with remainder: the quotient is piecewise constant.


def _integer_division(name: str) -> Callable[..., Any]:
    """A division of `jax.numpy` whose result is 0 where an integer is divided by 0, as it is in NumPy."""

    def call(x: Any, y: Any) -> Any:
        import jax.numpy as jnp

        if not _is_integer(x.dtype):
            quotient = getattr(jnp, name)(x, y)
            # Older versions of JAX give NaN for a floor division by zero, where NumPy gives infinity.
            return jnp.where(y == 0, x / y, quotient) if name == "floor_divide" else quotient
        is_zero = y == 0
        return jnp.where(is_zero, 0, getattr(jnp, name)(x, jnp.where(is_zero, 1, y))).astype(x.dtype)

    return call


floor_divide = _constant("floor_divide", np.floor_divide, _integer_division("floor_divide"), python="{} // {}")
remainder = Elementwise(
    "remainder",
    np.remainder,
    _integer_division("remainder"),
    lambda z, x, y: [lambda t: t, lambda t: neg(mul(t, floor_divide(x, y)))],
    python="{} % {}",
)
fmod = Elementwise(
    "fmod", np.fmod, _integer_division("fmod"), lambda z, x, y: [lambda t: t, lambda t: neg(mul(t, trunc(div(x, y))))]
)

# Piecewise constant functions


def _sign_partials(y: Tracer, x: Tracer) -> list[Partial]:
    if not is_complex(x.dtype):
        return [None]

    def along(t: Tracer) -> Tracer:
        # A complex sign is x / |x|: only the part of the tangent at right angles to x turns it.
        radial = convert(real(mul(conj(y), t)), dtype=x.dtype)
        return div(sub(t, mul(y, radial)), _safe_divisor(convert(abs_(x), dtype=x.dtype)))

    return [along]


sign = Elementwise("sign", np.sign, "sign", _sign_partials)
floor = _constant("floor", np.floor, "floor", accepts=_is_real)
ceil = _constant("ceil", np.ceil, "ceil", accepts=_is_real)
trunc = _constant("trunc", np.trunc, _jnp("trunc"), accepts=_is_real)
rint = _constant("rint", np.rint, _jnp("rint"), accepts=is_inexact)

# Predicates and logic

eq = _constant("eq", np.equal, "eq", result=_to_bool, python="{} == {}")
ne = _constant("ne", np.not_equal, "ne", result=_to_bool, python="{} != {}")
lt = _constant("lt", np.less, "lt", result=_to_bool, python="{} < {}")
le = _constant("le", np.less_equal, "le", result=_to_bool, python="{} <= {}")
gt = _constant("gt", np.greater, "gt", result=_to_bool, python="{} > {}")
ge = _constant("ge", np.greater_equal, "ge", result=_to_bool, python="{} >= {}")
isfinite = _constant("isfinite", np.isfinite, _jnp("isfinite"), result=_to_bool)
isnan = _constant("isnan", np.isnan, _jnp("isnan"), result=_to_bool)
isinf = _constant("isinf", np.isinf, _jnp("isinf"), result=_to_bool)
signbit = _constant("signbit", np.signbit, _jnp("signbit"), result=_to_bool)


def _is_discrete(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biu"


def _is_integer(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu"


bitwise_and = _constant("bitwise_and", np.bitwise_and, "bitwise_and", python="{} & {}", accepts=_is_discrete)
bitwise_or = _constant("bitwise_or", np.bitwise_or, "bitwise_or", python="{} | {}", accepts=_is_discrete)
bitwise_xor = _constant("bitwise_xor", np.bitwise_xor, "bitwise_xor", python="{} ^ {}", accepts=_is_discrete)
bitwise_not = _constant("bitwise_not", np.invert, "bitwise_not", python="~{}", accepts=_is_discrete)
left_shift = _constant("left_shift", np.left_shift, _jnp("left_shift"), accepts=_is_integer)
right_shift = _constant("right_shift", np.right_shift, _jnp("right_shift"), accepts=_is_integer)

# Complex numbers.  The transposes are those of the convention that holds for the whole library: the gradient of a
# real function of z = x + iy is df/dx - i df/dy.

conj = Elementwise(
    "conj",
    np.conj,
    _jnp("conj"),
    lambda y, x: [lambda t: conj(t)],
    transposed=lambda ct, x: [lambda: conj(ct)],
)
real = Elementwise(
    "real",
    np.real,
    "real",
    lambda y, x: [lambda t: real(t)],
    transposed=lambda ct, x: [lambda: convert(ct, dtype=x.dtype)],
    result=_to_real,
    python="{}.real",
    accepts=is_complex,
)
imag = Elementwise(
    "imag",
    np.imag,
    "imag",
    lambda y, x: [lambda t: imag(t)],
    transposed=lambda ct, x: [lambda: mul(convert(ct, dtype=x.dtype), full_like(x, -1j))],
    result=_to_real,
    python="{}.imag",
    accepts=is_complex,
)
real.aliases = imag.aliases = conj.aliases = True
complex_ = Elementwise(
    "complex",
    lambda x, y: x + 1j * y,
    "complex",
    lambda z, x, y: [lambda t: complex_(t, full_like(t, 0)), lambda t: complex_(full_like(t, 0), t)],
    transposed=lambda ct, x, y: [lambda: real(ct), lambda: neg(imag(ct))],
    result=_to_complex,
    accepts=_is_real,
)


class Convert(Elementwise):
    """`x` in another dtype, as `numpy.ndarray.astype` does it."""

    aliases = False

    def __init__(self) -> None:
        super().__init__("convert", np.asarray, "convert_element_type")

    def type_rule(self, *types: ArrayType, dtype: Any = None) -> ArrayType:
        return types[0].with_dtype(dtype)

    def numpy(self, *arrays: Any, dtype: Any = None) -> Any:
        # A Python number may have come this far: comparisons of them are no arrays.
        x = np.asarray(arrays[0])
        return (x.real if _drops_imaginary(x.dtype, dtype) else x).astype(dtype)[()]

    def python(self, operands: Sequence[str], params: Params) -> None:
        return None

    def xla(self, *arrays: Any, dtype: Any = None) -> Any:
        from jax import lax

        (x,) = arrays
        if is_complex(x.dtype) and np.dtype(dtype).kind == "b":
            return lax.ne(x, lax.full_like(x, 0))
        return lax.convert_element_type(lax.real(x) if _drops_imaginary(x.dtype, dtype) else x, dtype)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        (x,), (t,), dtype = primals, tangents, params["dtype"]
        return convert(x, dtype=dtype), convert(t, dtype=dtype) if is_inexact(np.dtype(dtype)) else None

    def transpose(self, ct: Tracer, operands: Sequence[Any], **params: Any) -> list[Tangent]:
        return [convert(ct, dtype=operands[0].dtype)]

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Tracer | None:
        (x,) = operands
        return x if x.dtype == params["dtype"] else None


def _drops_imaginary(source: np.dtype[Any], target: Any) -> bool:
    return is_complex(source) and not is_complex(np.dtype(target)) and np.dtype(target).kind != "b"


convert = Convert()


class StopGradient(Elementwise):
    """`x` itself, as a constant to every derivative."""

    aliases = True

    def __init__(self) -> None:
        super().__init__("stop_gradient", lambda x: x, lambda x: x, python="{}")


stop_gradient = StopGradient()


class StandIn(Elementwise):
    """`x` in the place of a value that nothing reads in the end, so that its derivative does not matter either.

    It is linear, so that it may be a part of linear programs.  Reverse mode takes its derivative for zero: no infinite
    one reaches `x` on the way.
    """

    aliases = True

    def __init__(self) -> None:
        super().__init__(
            "stand_in",
            lambda x: x,
            lambda x: x,
            lambda out, x: [lambda t: stand_in(t)],
            transposed=lambda ct, x: [None],
            python="{}",
        )


stand_in = StandIn()
