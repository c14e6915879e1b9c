"""Programs as functions that JAX code calls, such as the objective that a line search of optax evaluates.

JAX code may differentiate the function.  The derivative is that of ftrans: JAX sees a function with a custom JVP rule,
which is linear in the tangents, so that JAX can transpose it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.program import Program
from ...transforms.differentiate import gradient
from ...transforms.simplify import simplify
from ...xla.execute import lower


def as_jax_function(program: Program, count: int) -> Callable[..., Any]:
    """A program as a function of JAX arrays that JAX can differentiate, once.

    Args:
        program: the program; only its first output, a real floating-point scalar, is returned.
        count: how many of the leading inputs it is differentiated with respect to; the others are constants.
    """
    import jax

    active = tuple(i < count for i in range(len(program.inputs)))

    def lowered(program: Program, xs: Sequence[Any]) -> list[Any]:
        # Programs have their own types, whatever JAX's defaults are in the surrounding code.
        with jax.enable_x64(True):
            return lower(simplify(program), xs)

    def value(*xs: Any) -> Any:
        return lowered(program, xs)[0]

    def value_and_gradient(*xs: Any) -> Any:
        y, *gradients = lowered(gradient(program, active, True), xs)
        return y, gradients[-count:]

    def value_and_tangent(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        y, gradients = once(*primals)
        with jax.enable_x64(True):
            parts = [(g * t).sum().real.astype(y.dtype) for g, t in zip(gradients, tangents, strict=False)]
            return y, sum(parts[1:], start=parts[0])

    def refuse(primals: Any, tangents: Any) -> Any:
        raise TypeError(
            f"the JAX code differentiates the gradient of {program.name} again; in JAX code, a function of ftrans has "
            "a first derivative only"
        )

    with_rule, once = jax.custom_jvp(value), jax.custom_jvp(value_and_gradient)
    with_rule.defjvp(value_and_tangent)
    once.defjvp(refuse)
    return with_rule
