"""Values in another form: other dtypes, complex numbers and their parts, and what derivatives take for constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.cost import Cost
from ...core.on_numpy import Memory
from ...core.primitive import Tangent
from ...core.program import Params
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex, is_inexact
from ..literals import full_like
from .family import Elementwise, is_real, mul, neg, of_jnp


def to_real(dtype: np.dtype[Any]) -> Any:
    """The dtype of the real part."""
    return np.empty(0, dtype).real.dtype if is_complex(dtype) else dtype


def _to_complex(dtype: np.dtype[Any]) -> Any:
    return np.complex64 if dtype == np.float32 else np.complex128


# Dtypes


class Convert(Elementwise):
    """`x` in another dtype, as `numpy.ndarray.astype` does it."""

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

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost(0.0, results[0].size)

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Tracer | None:
        (x,) = operands
        return x if x.dtype == params["dtype"] else None


def _drops_imaginary(source: np.dtype[Any], target: Any) -> bool:
    return is_complex(source) and not is_complex(np.dtype(target)) and np.dtype(target).kind != "b"


convert = Convert()

# Complex numbers.  The transposes are those of the convention that holds for the whole library: the gradient of a
# real function of z = x + iy is df/dx - i df/dy.

conj = Elementwise(
    "conj",
    np.conj,
    of_jnp("conj"),
    lambda y, x: [lambda t: conj(t)],
    transposed=lambda ct, x: [lambda: conj(ct)],
    arithmetic=True,
)
real = Elementwise(
    "real",
    np.real,
    "real",
    lambda y, x: [lambda t: real(t)],
    transposed=lambda ct, x: [lambda: convert(ct, dtype=x.dtype)],
    result=to_real,
    python="{}.real",
    accepts=is_complex,
    arithmetic=True,
)
imag = Elementwise(
    "imag",
    np.imag,
    "imag",
    lambda y, x: [lambda t: imag(t)],
    transposed=lambda ct, x: [lambda: mul(convert(ct, dtype=x.dtype), full_like(x, -1j))],
    result=to_real,
    python="{}.imag",
    accepts=is_complex,
    arithmetic=True,
)
real.memory = imag.memory = conj.memory = Memory.ANY


def _complex(x: Any, y: Any) -> Any:
    # A product with 1j would lose the sign of zeros, and make NaN of infinities.
    z = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), _to_complex(np.result_type(x, y)))
    z.real, z.imag = x, y
    return z[()]


complex_ = Elementwise(
    "complex",
    _complex,
    "complex",
    lambda z, x, y: [lambda t: complex_(t, full_like(t, 0)), lambda t: complex_(full_like(t, 0), t)],
    transposed=lambda ct, x, y: [lambda: real(ct), lambda: neg(imag(ct))],
    result=_to_complex,
    accepts=is_real,
    arithmetic=True,
)


# Values that derivatives see in another way


class StopGradient(Elementwise):
    """`x` itself, as a constant to every derivative."""

    memory = Memory.ANY

    def __init__(self) -> None:
        super().__init__("stop_gradient", lambda x: x, lambda x: x, python="{}")

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost()

    def passes_on(self, operands: Sequence[Tracer], params: Params) -> Sequence[Tracer]:
        return operands


stop_gradient = StopGradient()


class WithValue(Elementwise):
    """`x`, of which the value is known to be `value`: the result is `value`, its derivative that of `x`."""

    memory = Memory.ANY
    broadcasts = False

    def __init__(self) -> None:
        super().__init__(
            "with_value",
            lambda x, value: value,
            lambda x, value: value,
            lambda out, x, value: [lambda t: t, None],
            python="{1}",
        )

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost()


with_value = WithValue()


class Placeholder(Elementwise):
    """`x` as a placeholder: a value that no result reads, so that its derivative does not matter either.

    It is linear, so it may be part of linear programs.  Reverse mode takes its derivative to be zero, so that no
    infinite one reaches `x`.
    """

    memory = Memory.ANY

    def __init__(self) -> None:
        super().__init__(
            "placeholder",
            lambda x: x,
            lambda x: x,
            lambda out, x: [lambda t: placeholder(t)],
            transposed=lambda ct, x: [None],
            python="{}",
        )

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost()


placeholder = Placeholder()
