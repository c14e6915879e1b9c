"""Function: an operation defined by its forward and its backward rule, which share a context object."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..api.custom_rules import CustomRule
from ..base import tree
from ..base.cell import Eager, read
from ..core.trace import Tracer, current_builder
from ..core.types import is_inexact
from .context import Context
from .function_node import apply_to_constants, apply_to_tensors
from .function_rule import rule_of
from .tracing import functions_are_programs

Backward = TypeVar("Backward", bound=Callable[..., Any])


class Function:
    """Base class of operations with a user-defined derivative: subclass it, and call `apply` of the subclass.

    The static method `forward(ctx, *args)` computes the result, an array or a tuple of arrays, and saves on `ctx` what
    the derivative needs.  `backward(ctx, *cotangents)` takes a cotangent for each result and returns one for each
    argument, None for zero.  Alternatively, `forward(*args)` takes no context, and `setup_context(ctx, inputs, output)`
    saves.  A static method `jvp(ctx, *tangents)`, which returns a tangent for each result, defines forward mode;
    without it, forward mode is the transpose of `backward`, as in `ftrans.custom_vjp`, whose rules apply here too.

    On tensors, `forward` runs at once, and nothing in it is recorded; `backward` is called in the backward pass.  The
    graph keeps what is saved.  For a second derivative, `backward` is called with recorded tensors if `forward` saved
    only arguments and results on the context; otherwise the Function is traced.

    Inside a transformation (`ftrans.grad`, `jacobian`, `vmap`, `jit`, ...) both are traced.  Code that cannot be
    traced, because it needs arrays or numbers (SciPy, `x.numpy()`, `float(x)`, a branch on a value that differs within
    a batch of `vmap`), runs as Python code whenever the program runs: un-jitted, compiled, and for each element of a
    batch separately.  It is given tensors without gradient, must be pure, and must always return the same shapes and
    dtypes, which are found by running `forward` once on the current values.  It may save arrays and numbers only.
    Such code can be differentiated once, in reverse mode.

    Attributes:
        trial_value: a number to run `forward` on, to find shapes and dtypes, where it cannot be traced and there are no
            current values, as for the elements of a `scan`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> class Exp(ft.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         y = np.exp(x)
        ...         ctx.save_for_backward(y)
        ...         return y
        ...     @staticmethod
        ...     def backward(ctx, ct):
        ...         (y,) = ctx.saved_tensors
        ...         return ct * y
        >>> x = ft.autograd.tensor(0.0, requires_grad=True)
        >>> Exp.apply(x).backward()
        >>> x.grad
        tensor(1.)
        >>> ft.grad(ft.grad(Exp.apply))(0.0)
        np.float64(1.0)
    """

    trial_value: float | None = None

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; override as `forward(ctx, *args)`, or as `forward(*args)` beside `setup_context`."""
        raise NotImplementedError("a Function needs a static method forward(ctx, *args)")

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Any, ...], output: Any) -> None:
        """Save on `ctx` what the derivative needs, if `forward` takes no context."""

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """Compute the cotangents of the arguments; override as `backward(ctx, *cotangents)`."""
        raise NotImplementedError("a Function needs a static method backward(ctx, *cotangents) to be differentiated")

    @staticmethod
    def jvp(*args: Any, **kwargs: Any) -> Any:
        """Compute the tangents of the results; override as `jvp(ctx, *tangents)`."""
        raise NotImplementedError("a Function needs a static method jvp(ctx, *tangents) for forward mode")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Apply the operation.

        Args:
            args: arguments of `forward`, without the context.

        Returns:
            The result of `forward`.  If an argument is a tensor, arrays and floats in the result are tensors too; they
            share no memory with the arguments.

        Raises:
            RuntimeError: `forward` changes an argument in place; or, in the backward pass, `backward` does, or its
                gradients do not fit the arguments.
        """
        args = read(args)
        if current_builder() is None and not functions_are_programs():
            return apply_to_tensors(cls, args)
        leaves = [tree.flatten(x)[0] for x in args]
        if not any(isinstance(x, Tracer) or _is_active(x) for part in leaves for x in part):
            return apply_to_constants(cls, args)
        if "_rule" not in cls.__dict__:
            states = (cls.backward is not Function.backward, cls.jvp is not Function.jvp)
            cls._rule = rule_of(cls, *states)
        return cls._rule(tuple([any(map(_is_differentiated, part)) for part in leaves]), *args)

    @classmethod
    def _forward(cls, ctx: Context, args: tuple[Any, ...]) -> Any:
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args)
        out = cls.forward(*args)
        cls.setup_context(ctx, args, out)
        return out

    _rule: CustomRule


def _is_active(x: Any) -> bool:
    return isinstance(x, Eager) and x.is_active()


def _is_differentiated(x: Any) -> bool:
    return (isinstance(x, Tracer) and is_inexact(x.dtype)) or _is_active(x)


def once_differentiable(backward: Backward) -> Backward:
    """Mark a `backward` that cannot be differentiated: a second derivative is an error instead of a wrong number.

    Use it for a `backward` that calls code which cannot be traced, or that is correct for first derivatives only.

    Args:
        backward: the static method of a `Function`, decorated below `@staticmethod`.

    Returns:
        The marked function.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> class Square(ft.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @ft.autograd.once_differentiable
        ...     def backward(ctx, ct):
        ...         return 2 * ct * ctx.saved_tensors[0]
        >>> ft.grad(Square.apply)(3.0)
        np.float64(6.0)
    """
    function = backward.__func__ if isinstance(backward, staticmethod) else backward

    @functools.wraps(function)
    def marked(ctx: Context, *cotangents: Any) -> Any:
        return function(ctx, *cotangents)

    marked.is_final = True  # type: ignore[attr-defined]
    return marked  # type: ignore[return-value]
