"""What happens when a solver does not converge: an error where the program runs on NumPy, NaN where it is compiled.

The same happens to the derivative of a solution that has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.pieces import each_on_itself
from ..core.primitive import Moving, Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType
from ..ops.broadcast import with_batch_axis
from ..ops.literals import full


class ConvergenceError(RuntimeError):
    """A solver did not find a solution, or found one that has no derivative."""


class Required(Moving):
    """The vectors `x`, provided that `holds` is true for each of them.

    Where it is false, NumPy raises ConvergenceError and XLA gives NaN.  `message` is formatted with the number of
    `iterations` and the norm of the `residual`.  The other operands have the shape of the lanes of `x`: all axes but
    the last.  The tangent of `x` passes unchanged, because the rule that recorded it has its own check.
    """

    name = "required"

    def type_rule(
        self, x: ArrayType, holds: ArrayType, iterations: ArrayType, residual: ArrayType, *, message: str
    ) -> ArrayType:
        lanes = x.shape[:-1]
        if holds is not ArrayType(lanes, np.bool_) or iterations.shape != lanes or residual.shape != lanes:
            raise TypeError(f"{self.name}: {holds}, {iterations} and {residual} do not fit the lanes of {x}")
        return x

    def numpy(self, x: Any, holds: Any, iterations: Any, residual: Any, *, message: str) -> Any:
        if np.all(holds):
            return x
        failed = ~np.asarray(holds)
        text = message.format(
            iterations=np.asarray(iterations)[failed].max(), residual=f"{np.asarray(residual)[failed].max():.3g}"
        )
        if failed.size > 1:
            text = f"{int(failed.sum())} of {failed.size} problems: {text}"
        raise ConvergenceError(text)

    def xla(self, x: Any, holds: Any, iterations: Any, residual: Any, *, message: str) -> Any:
        import jax.numpy as jnp

        return jnp.where(holds[..., None], x, jnp.full_like(x, jnp.nan))

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return [each_on_itself(types[0].shape), (), (), ()]

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return (0,)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, message: str) -> tuple[Any, Any]:
        return self(*primals, message=message), tangents[0]

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, message: str) -> list[Tangent]:
        # When a linear solve is transposed, its success is unknown: the transposed solve has its own check.
        unknown = any(isinstance(x, ArrayType) for x in operands[1:])
        return [ct if unknown else self(ct, *operands[1:], message=message), None, None, None]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, message: str) -> Any:
        lanes = [with_batch_axis(size, x, b) for x, b in zip(operands, batched, strict=True)]
        return self(*lanes, message=message), True


required = Required()


class DerivativeRequired(Moving):
    """The vectors `x`, unchanged; their tangents are `required` to exist: `holds` says so for each vector."""

    name = "derivative_required"

    def type_rule(self, x: ArrayType, holds: ArrayType, *, message: str) -> ArrayType:
        if holds is not ArrayType(x.shape[:-1], np.bool_):
            raise TypeError(f"{self.name}: {holds} does not fit the lanes of {x}")
        return x

    def numpy(self, x: Any, holds: Any, *, message: str) -> Any:
        return x

    def xla(self, x: Any, holds: Any, *, message: str) -> Any:
        return x

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return [each_on_itself(types[0].shape), ()]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, message: str) -> tuple[Any, Any]:
        x, holds = primals
        out = self(x, holds, message=message)
        if tangents[0] is None:
            return out, None
        unknown = full(holds.shape, 0, np.dtype(np.int64)), full(holds.shape, 0, x.dtype)
        return out, required(tangents[0], holds, *unknown, message=message)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, message: str) -> list[Tangent]:
        return [ct, None]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, message: str) -> Any:
        lanes = [with_batch_axis(size, x, b) for x, b in zip(operands, batched, strict=True)]
        return self(*lanes, message=message), True


derivative_required = DerivativeRequired()
