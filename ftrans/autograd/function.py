"""Function: an operation with a backward rule, both stated with a context object between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..api.custom_rules import CustomRule
from ..core import tree
from ..core.trace import Tracer, current_builder
from ..core.types import is_inexact


class Context:
    """What `forward` leaves for `backward` and `jvp`: saved arrays, and whatever is set on it as an attribute.

    Attributes:
        needs_input_grad: for each argument of `apply`, whether a gradient with respect to it may be asked for.
        saved_tensors: what `save_for_backward` was given, as a tuple.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple[Any, ...] = ()
        self._marked: tuple[Any, ...] = ()
        self._materializes = True

    def save_for_backward(self, *arrays: Any) -> None:
        """Keep arrays (or None) for `backward`."""
        self.saved_tensors = arrays

    def save_for_forward(self, *arrays: Any) -> None:
        """Keep arrays (or None) for `jvp`, and for `backward`."""
        self.saved_tensors = arrays

    def mark_non_differentiable(self, *results: Any) -> None:
        """Say which of the results of `forward` have no derivative."""
        self._marked = results

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros for results that have no derivative, as it does by default, or None."""
        self._materializes = bool(value)


class Function:
    """An operation with a derivative of its own: subclass it, and call `apply` of the subclass.

    The static method `forward(ctx, *args)` computes the result, an array or a tuple of arrays, and keeps on `ctx` what
    the derivative needs.  `backward(ctx, *cotangents)` takes a cotangent for each result and returns one for each
    argument, None for zero.  `forward(*args)` without context goes with `setup_context(ctx, inputs, output)`.
    A static method `jvp(ctx, *tangents)`, which returns a tangent for each result, states forward mode; without it,
    forward mode is the transpose of `backward`, as in `ftrans.custom_vjp`, whose rules hold here too.

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
        >>> ft.grad(ft.grad(Exp.apply))(0.0)
        np.float64(1.0)
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The result.  To be overridden: `forward(ctx, *args)`, or `forward(*args)` beside `setup_context`."""
        raise NotImplementedError("a Function needs a static method forward(ctx, *args)")

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep on `ctx` what the derivative needs, where `forward` takes no context."""

    @staticmethod
    def backward(ctx: Context, *cotangents: Any) -> Any:
        """Cotangents of the arguments."""
        raise NotImplementedError

    @staticmethod
    def jvp(ctx: Context, *tangents: Any) -> Any:
        """Tangents of the results."""
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """The result of the operation.

        Args:
            args: arguments of `forward`, without the context.

        Returns:
            What `forward` returns.
        """
        needs = tuple(any(map(_is_traced, tree.flatten(x)[0])) for x in args)
        if current_builder() is None:
            return cls._forward(Context(needs), args)
        return cls._with_rule()(needs, *args)

    @classmethod
    def _forward(cls, ctx: Context, args: tuple[Any, ...]) -> Any:
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args)
        out = cls.forward(*args)
        cls.setup_context(ctx, args, out)
        return out

    @classmethod
    def _with_rule(cls) -> CustomRule:
        """The operation as a function with a rule; its first argument is `needs_input_grad`."""

        def value(needs: tuple[bool, ...], *args: Any) -> Any:
            return cls._forward(Context(needs), args)

        def fwd(needs: tuple[bool, ...], *args: Any) -> tuple[Any, Any]:
            ctx = Context(needs)
            out = cls._forward(ctx, args)
            return out, (vars(ctx), _Absent.of(out, ctx))

        def bwd(needs: tuple[bool, ...], residuals: Any, cotangent: Any) -> tuple[Any, ...]:
            kept, absent = residuals
            ctx = Context(needs)
            vars(ctx).update(kept)
            found = cls.backward(ctx, *absent.replaced(_as_tuple(cotangent)))
            found = _as_tuple(found)
            return found[: len(needs)] if all(x is None for x in found[len(needs) :]) else found

        def push(needs: tuple[bool, ...], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            ctx = Context(needs)
            out = cls._forward(ctx, primals)
            tangent = cls.jvp(ctx, *tangents)
            if not isinstance(out, tuple | list):
                return out, tangent
            ctx.set_materialize_grads(False)
            return out, type(out)(_Absent.of(out, ctx).replaced(_as_tuple(tangent)))

        if "_rule" not in cls.__dict__:
            value.__name__ = cls.__name__
            # Messages name the lines of the methods.
            for rule_of_method, method in ((fwd, cls.forward), (bwd, cls.backward), (push, cls.jvp)):
                vars(rule_of_method)["__wrapped__"] = method
            backward, forward = (f"a static method {name} of {{}}" for name in ("backward", "jvp"))
            rule = CustomRule(value, 0, reverse=backward, forward=forward)
            if cls.backward is not Function.backward:
                rule.defvjp(fwd, bwd)
            if cls.jvp is not Function.jvp:
                rule.defjvp(push)
            cls._rule = rule
        return cls._rule

    _rule: CustomRule


class _Absent:
    """Which results have no derivative, and what takes the place of their cotangents.

    Attributes:
        substitutes: for each result, the substitute, behind whether there is one.
    """

    def __init__(self, substitutes: Sequence[tuple[bool, Any]]) -> None:
        self.substitutes = substitutes

    @classmethod
    def of(cls, out: Any, ctx: Context) -> _Absent:
        """From the result of `forward` and what it said of it."""
        substitutes: list[tuple[bool, Any]] = []
        for x in _as_tuple(out):
            is_array = hasattr(x, "dtype")
            is_absent = is_array and (not is_inexact(x.dtype) or any(x is y for y in ctx._marked))
            zero = np.zeros(x.shape, x.dtype) if is_absent and ctx._materializes else None
            substitutes.append((is_absent, zero))
        return cls(substitutes)

    def replaced(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        """Cotangents or tangents of the results, with substitutes where they are absent."""
        if len(items) != len(self.substitutes):
            return items
        return tuple(s if is_absent else x for x, (is_absent, s) in zip(items, self.substitutes, strict=True))


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def _is_traced(x: Any) -> bool:
    return isinstance(x, Tracer) and is_inexact(x.dtype)
