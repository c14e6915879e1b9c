"""Comparisons, tests, logic of booleans and bits, and the choice between two values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.primitive import Tangent
from ...core.trace import Tracer
from ...core.types import ArrayType
from ..literals import full_like, splat
from .family import Elementwise, is_integer, of_jnp, of_lax, piecewise_constant


def _to_bool(_: np.dtype[Any]) -> Any:
    return np.bool_


# All of them take as long as an addition.
_operation = partial(piecewise_constant, arithmetic=True)

# Predicates

eq = _operation("eq", np.equal, "eq", result=_to_bool, python="{} == {}")
ne = _operation("ne", np.not_equal, "ne", result=_to_bool, python="{} != {}")


def _lexicographic(function: Callable[..., Any], x: Any, y: Any) -> Any:
    """Complex numbers by their real parts, and by the imaginary ones where these are equal."""
    import jax.numpy as jnp

    apart = jnp.where(jnp.isnan(x.imag) | jnp.isnan(y.imag), False, function(x.real, y.real))
    return jnp.where(x.real == y.real, function(x.imag, y.imag), apart)


lt = _operation("lt", np.less, of_lax("lt", _lexicographic), result=_to_bool, python="{} < {}")
le = _operation("le", np.less_equal, of_lax("le", _lexicographic), result=_to_bool, python="{} <= {}")
gt = _operation("gt", np.greater, of_lax("gt", _lexicographic), result=_to_bool, python="{} > {}")
ge = _operation("ge", np.greater_equal, of_lax("ge", _lexicographic), result=_to_bool, python="{} >= {}")
isfinite = _operation("isfinite", np.isfinite, of_jnp("isfinite"), result=_to_bool)
isnan = _operation("isnan", np.isnan, of_jnp("isnan"), result=_to_bool)
isinf = _operation("isinf", np.isinf, of_jnp("isinf"), result=_to_bool)
signbit = _operation("signbit", np.signbit, of_jnp("signbit"), result=_to_bool)


# Bits


def _is_discrete(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biu"


def _simplify_twice(x: Tracer, y: Tracer) -> Tracer | None:
    """`x & x` and `x | x`."""
    return x if x.atom is y.atom else None


def _join(name: str, numpy: Any, python: str) -> Elementwise:
    return _operation(name, numpy, name, python=python, accepts=_is_discrete, simplify=_simplify_twice, commutes=True)


bitwise_and = _join("bitwise_and", np.bitwise_and, "{} & {}")
bitwise_or = _join("bitwise_or", np.bitwise_or, "{} | {}")
bitwise_xor = _operation("bitwise_xor", np.bitwise_xor, "bitwise_xor", python="{} ^ {}", accepts=_is_discrete)
bitwise_not = _operation("bitwise_not", np.invert, "bitwise_not", python="~{}", accepts=_is_discrete)
left_shift = _operation("left_shift", np.left_shift, of_jnp("left_shift"), accepts=is_integer)
right_shift = _operation("right_shift", np.right_shift, of_jnp("right_shift"), accepts=is_integer)


# Choice


# From this size on, masking the bits of numbers is several times faster than choosing between two, because nothing
# depends on a prediction of the mask.
_MASKED_SIZE = 1 << 12
_BITS = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}


def _where(condition: Any, x: Any, y: Any) -> Any:
    """`np.where`, where operands may be numbers."""
    if type(condition) is np.ndarray and condition.size >= _MASKED_SIZE:
        if _is_zero(y) and _can_be_masked(x, condition):
            return _masked(x, np.negative(condition.view(np.int8)))
        if _is_zero(x) and _can_be_masked(y, condition):
            return _masked(y, np.subtract(condition.view(np.int8), np.int8(1)))
    return np.where(condition, x, y)[()]


def _is_zero(x: Any) -> bool:
    """Whether `x` is the number 0, whose bits are all 0, which those of -0.0 are not."""
    return isinstance(x, float | np.floating) and x == 0 and not np.signbit(x)


def _can_be_masked(x: Any, condition: Any) -> bool:
    return type(x) is np.ndarray and x.dtype in _BITS and x.shape == condition.shape


def _masked(x: Any, mask: Any) -> Any:
    """The elements of `x` where all bits of `mask` are set, zeros where none is."""
    return np.bitwise_and(x.view(_BITS[x.dtype]), mask).view(x.dtype)


class Select(Elementwise):
    """`x` where `condition` holds, else `y`."""

    choices = (1, 2)

    def __init__(self) -> None:
        super().__init__("select", _where, "select", arithmetic=True)

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
