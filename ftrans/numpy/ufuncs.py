"""NumPy's ufuncs on tracers: dtypes as NumPy resolves them, broadcasting, `out=`, `where=`, reductions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..core.primitive import Primitive
from ..core.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import is_complex, is_inexact
from ..ops import elementwise as e
from ..ops.shapes import full_like
from .dispatch import TABLE, implements, missing, public
from .promotion import asarray, broadcast_shapes, cast, is_weak, kind_of, operand

_PYTHON_NUMBERS = (float, int, bool, complex)


@cache
def _resolved(ufunc: np.ufunc, kinds: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    """Dtypes of operands and result, as NumPy resolves them; Python types stand for weak operands."""
    if any(isinstance(k, np.dtype) and k.name == "bfloat16" for k in kinds):
        dtype = np.result_type(*(k if isinstance(k, np.dtype) else k(0) for k in kinds))
        return (dtype,) * len(kinds) + (np.dtype(bool) if ufunc in _PREDICATES else dtype,)
    if not any(isinstance(k, np.dtype) for k in kinds):
        kinds = tuple(np.dtype(k) for k in kinds)
    return ufunc.resolve_dtypes((*(bool_as_dtype(k) for k in kinds), *(None,) * ufunc.nout))  # type: ignore[arg-type]


def bool_as_dtype(kind: Any) -> Any:
    """Python's bool is not weak."""
    return np.dtype(bool) if kind is bool else kind


_PREDICATES = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isfinite, np.isnan}


def elementwise_ufunc(ufunc: np.ufunc, primitive: Primitive) -> Callable[..., Any]:
    """The traced form of a ufunc that is one primitive; enters it in the table and returns its public form."""

    def call(*xs: Any) -> Tracer:
        if len(xs) != ufunc.nin:
            raise TypeError(f"{ufunc.__name__} takes {ufunc.nin} operands, {len(xs)} were given{at_line(user_line())}")
        operands = [x if isinstance(x, _PYTHON_NUMBERS) else asarray(x) for x in xs]
        try:
            *in_dtypes, out_dtype = _resolved(ufunc, tuple([kind_of(x) for x in operands]))
        except TypeError as error:
            raise TypeError(f"{error}{at_line(user_line())}") from None
        shape = operands[0].shape if len(xs) == 1 else broadcast_shapes(ufunc.__name__, *operands)
        y = primitive(*[operand(x, d, shape) for x, d in zip(operands, in_dtypes, strict=True)])
        if y.atom.type.dtype != out_dtype:
            y = cast(y, out_dtype)
        if all(map(is_weak, operands)) and out_dtype.kind != "b":
            y.weak = True
        return y  # type: ignore[no-any-return]

    call.__name__ = ufunc.__name__
    call.__doc__ = f"`numpy.{ufunc.__name__}` on arrays and on traced values."
    TABLE[ufunc] = call
    return public(ufunc, call)


_UNARY = {
    "exp": e.exp, "exp2": e.exp2, "expm1": e.expm1, "log": e.log, "log2": e.log2, "log10": e.log10, "log1p": e.log1p,
    "sqrt": e.sqrt, "cbrt": e.cbrt, "square": e.square, "reciprocal": e.reciprocal, "negative": e.neg,
    "sin": e.sin, "cos": e.cos, "tan": e.tan, "arcsin": e.arcsin, "arccos": e.arccos, "arctan": e.arctan,
    "sinh": e.sinh, "cosh": e.cosh, "tanh": e.tanh, "arcsinh": e.arcsinh, "arccosh": e.arccosh, "arctanh": e.arctanh,
    "sign": e.sign, "isfinite": e.isfinite, "isnan": e.isnan, "isinf": e.isinf, "signbit": e.signbit,
    "invert": e.bitwise_not, "absolute": e.abs_, "rint": e.rint,
}  # fmt: skip
_BINARY = {
    "add": e.add, "subtract": e.sub, "multiply": e.mul, "divide": e.div, "maximum": e.maximum, "minimum": e.minimum,
    "arctan2": e.arctan2, "hypot": e.hypot, "logaddexp": e.logaddexp, "logaddexp2": e.logaddexp2,
    "copysign": e.copysign, "nextafter": e.nextafter, "floor_divide": e.floor_divide, "remainder": e.remainder,
    "fmod": e.fmod, "equal": e.eq, "not_equal": e.ne, "less": e.lt, "less_equal": e.le, "greater": e.gt,
    "greater_equal": e.ge, "bitwise_and": e.bitwise_and, "bitwise_or": e.bitwise_or, "bitwise_xor": e.bitwise_xor,
    "left_shift": e.left_shift, "right_shift": e.right_shift,
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: elementwise_ufunc(getattr(np, name), primitive) for name, primitive in {**_UNARY, **_BINARY}.items()
}

_general_power = elementwise_ufunc(np.power, e.power)
_traced_power = TABLE[np.power]


@implements(np.power)
def power(x: Any, y: Any) -> Any:
    """`x ** y`; a constant integer exponent multiplies instead of taking logarithms."""
    if isinstance(y, int | float) and not isinstance(y, bool) and not isinstance(x, _PYTHON_NUMBERS):
        x = asarray(x)
        if is_inexact(x.dtype) and not (x.weak and isinstance(y, float)):
            if y == int(y if math.isfinite(y) else 0.5) and abs(y) <= 64:
                z = e.integer_pow(x, exponent=int(y))
                z.weak = x.weak
                return z
            if y == 0.5:
                return np.sqrt(x)  # type: ignore[call-overload]
        elif isinstance(y, int) and x.dtype.kind in "iu" and 0 <= y <= 64:
            z = e.integer_pow(x, exponent=y)
            z.weak = x.weak
            return z
    return _traced_power(x, y)


FUNCTIONS["power"] = power
