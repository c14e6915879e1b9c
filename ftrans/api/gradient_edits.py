"""Functions that return a value unchanged, with a derivative of choice."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import tree
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..base.type_variables import Value
from ..control.rules.host_call import watch
from ..core.types import ArrayType, is_complex, is_inexact, type_of
from .call import check_function, type_name
from .custom_rules import CustomRule, custom_jvp


def straight_through(value: Value, through: Any) -> Value:
    """Return the first argument, with the derivative of the second.

    Args:
        value: an array, or a container of arrays: the value that is returned.  Integers and booleans take the dtype of
            their counterpart in `through`, since they have no derivative.
        through: arrays of the same shapes, in the same containers.

    Returns:
        `value`; derivatives see `through` in its place.

    Raises:
        ValueError: shapes or structures differ.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.grad(lambda x: ft.straight_through(np.round(x), x) ** 2)(1.7)
        np.float64(4.0)
    """
    return tree.map_leaves(_replaced, value, through)


def _replaced(value: Any, through: Any) -> Any:
    of_value, of_through = _type(value, "straight_through"), _type(through, "straight_through")
    if of_value.shape != of_through.shape:
        raise ValueError(
            f"straight_through takes two arrays of one shape, not {of_value} and {of_through}{at_line(user_line())}"
        )
    if not is_inexact(of_value.dtype):
        value = np.asarray(value).astype(of_through.dtype)[()] if _is_plain(value) else value.astype(of_through.dtype)
    return _with_tangent_of(value, through)


def _type(x: Any, what: str) -> ArrayType:
    try:
        return type_of(x)
    except TypeError:
        raise TypeError(
            f"{what} takes arrays, numbers and containers of them, not {type_name(x)}{at_line(user_line())}"
        ) from None


def _is_plain(x: Any) -> bool:
    return is_plain(x, np.ndarray | np.generic | int | float | complex)


@custom_jvp
def _with_tangent_of(value: Any, through: Any) -> Any:
    return value


@_with_tangent_of.defjvp
def _tangent_of_through(primals: Any, tangents: Any) -> Any:
    value, t = primals[0], tangents[1]
    return _with_tangent_of(*primals), _in_dtype(t, value)


def _in_dtype(t: Any, like: Any) -> Any:
    """A tangent in the dtype of what it is the tangent of."""
    if t is None or t.dtype == like.dtype:
        return t
    return (t.real if is_complex(t.dtype) and not is_complex(like.dtype) else t).astype(like.dtype)


def scale_gradient(x: Value, factor: Any) -> Value:
    """Return `x`, with its derivative multiplied by `factor`.

    Args:
        x: an array, or a container of arrays.
        factor: a number, or an array that broadcasts to each array in `x`.  The value does not depend on it, so its own
            derivative is zero in the first order.

    Returns:
        `x`.

    Raises:
        ValueError: the factor does not broadcast to an array in `x`.

    Example:
        >>> import ftrans as ft
        >>> ft.grad(lambda x: ft.scale_gradient(x, 0.1) * 3.0)(2.0).round(12)
        np.float64(0.3)
    """
    return tree.map_leaves(lambda leaf: _scaled(_fitting(factor, leaf), leaf), x)


def _fitting(factor: Any, x: Any) -> Any:
    shape, wanted = _type(factor, "scale_gradient").shape, _type(x, "scale_gradient").shape
    if len(shape) > len(wanted) or any(
        n not in (1, m) for n, m in zip(reversed(shape), reversed(wanted), strict=False)
    ):
        raise ValueError(
            f"the factor of a gradient must broadcast to {type_of(x)}, but it has shape {shape}{at_line(user_line())}"
        )
    return factor


def _scaled_value(factor: Any, x: Any) -> Any:
    return x


_scaled = CustomRule(_scaled_value, 0)


@_scaled.defjvp
def _scaled_tangent(factor: Any, primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _scaled(factor, x), None if t is None else _in_dtype(t * factor, x)


def reverse_gradient(x: Value, factor: Any = 1.0) -> Value:
    """Return `x`, with its derivative multiplied by `-factor` (gradient reversal).

    The layers before it are trained against the layers after it (Ganin and Lempitsky, 2015).

    Args:
        x: an array, or a container of arrays.
        factor: a number, or an array that broadcasts to each array in `x`.

    Returns:
        `x`.

    Example:
        >>> import ftrans as ft
        >>> ft.grad(lambda x: ft.reverse_gradient(x) ** 2)(3.0)
        np.float64(-6.0)
    """
    _type(factor, "reverse_gradient")
    return scale_gradient(x, -factor)


def clip_gradient(x: Value, low: Any = None, high: Any = None, *, max_norm: Any = None) -> Value:
    """Return `x`, with its cotangent clipped in reverse mode.

    Forward mode is an error: clipping is not linear, so it has no counterpart there.

    Args:
        x: an array, or a container of arrays.
        low: lower bound for each element of the cotangent; none by default.
        high: upper bound for each element of the cotangent; none by default.
        max_norm: upper bound for the Euclidean norm of the cotangent, of all arrays in `x` together; a longer one is
            scaled down.

    Returns:
        `x`.

    Raises:
        TypeError: no bound is given; or, in the backward pass, the cotangent is complex and `low` or `high` is given.
        ValueError: `max_norm` is negative.
        MissingRule: in forward mode.

    Example:
        >>> import ftrans as ft
        >>> ft.grad(lambda x: ft.clip_gradient(x, -1.0, 1.0) ** 2)(3.0)
        np.float64(1.0)
    """
    if low is None and high is None and max_norm is None:
        raise TypeError(f"clip_gradient needs low, high or max_norm{at_line(user_line())}")

    if is_plain(max_norm, int | float) and max_norm < 0:
        raise ValueError(f"clip_gradient takes a norm, which is not negative, not {max_norm}{at_line(user_line())}")

    def clip(cotangent: Any) -> Any:
        if low is not None or high is not None:
            cotangent = tree.map_leaves(lambda ct: _clipped(ct, low, high), cotangent)
        if max_norm is not None:
            scale = _scale_to(cotangent, max_norm)
            cotangent = tree.map_leaves(lambda ct: _in_dtype(ct * scale, ct), cotangent)
        return cotangent

    return _hooked("clip_gradient", x, clip)


def _clipped(ct: Any, low: Any, high: Any) -> Any:
    if is_complex(ct.dtype):
        raise TypeError(
            "clip_gradient with low or high is for real arrays, because complex numbers have no order; clip by max_norm"
            + at_line(user_line())
        )
    return _in_dtype(np.clip(ct, low, high), ct)


def _scale_to(cotangent: Any, max_norm: Any) -> Any:
    """The factor that makes a container of arrays no longer than `max_norm`."""
    total: Any = 0.0
    for ct in tree.flatten(cotangent)[0]:
        total = total + np.sum(ct.real**2 + ct.imag**2 if is_complex(ct.dtype) else ct**2)
    is_long = total > max_norm**2
    # Both branches have a derivative, so the square root must not see zero.
    return np.where(is_long, max_norm / np.sqrt(np.where(is_long, total, 1.0)), 1.0)


def grad_hook(x: Value, fn: Callable[[Any], Any] | None = None, *, see: Callable[[Any], Any] | None = None) -> Value:
    """Return `x`, with a function that replaces its cotangent, or one that observes it.

    `fn` is traced: it may use NumPy and close over traced values, and is differentiated in higher orders.  Forward mode
    is the transpose of `fn` if that is linear, and an error otherwise.  `see` is not traced: it is called with NumPy
    arrays whenever the cotangent is computed, un-jitted and compiled; its result is ignored, and forward mode does not
    call it.

    Args:
        x: an array, or a container of arrays.
        fn: takes a cotangent like `x` and returns one; None stands for zero, and for the cotangent of anything but a
            floating-point array.
        see: takes the cotangent that arrives, which is like `x`.

    Returns:
        `x`.

    Raises:
        TypeError: neither function is given; or, in the backward pass, `fn` returns a cotangent that does not fit `x`.

    Example:
        >>> import ftrans as ft
        >>> ft.grad(lambda x: ft.grad_hook(x, lambda ct: 10 * ct) ** 2)(3.0)
        np.float64(60.0)
        >>> ft.grad(lambda x: ft.grad_hook(x, see=print) ** 2)(3.0)
        6.0
        np.float64(6.0)
    """
    if fn is None and see is None:
        raise TypeError(f"grad_hook needs fn, which replaces the cotangent, or see{at_line(user_line())}")
    for name, function in (("fn", fn), ("see", see)):
        if function is not None:
            check_function(function, "grad_hook", name)

    @functools.wraps(see if fn is None else fn)  # type: ignore[arg-type]
    def hook(cotangent: Any) -> Any:
        if see is not None:
            leaves, structure = tree.flatten(cotangent)
            seen: Callable[..., Any] = see
            if structure is not tree.LEAF:
                seen = _Seen(see, structure)
            cotangent = tree.unflatten(structure, watch.apply(seen, leaves, leaves))
        return cotangent if fn is None else fn(cotangent)

    return _hooked("grad_hook", x, hook)


@dataclass(frozen=True)
class _Seen:
    """Calls a function with a container of the arrays."""

    see: Callable[[Any], Any]
    structure: tree.Structure

    def __call__(self, *arrays: Any) -> None:
        self.see(tree.unflatten(self.structure, arrays))


def _hooked(name: str, x: Any, hook: Callable[[Any], Any]) -> Any:
    def identity(x: Any) -> Any:
        return x

    @functools.wraps(hook)
    def bwd(_: None, cotangent: Any) -> tuple[Any]:
        return (hook(cotangent),)

    identity.__name__ = name
    edited = CustomRule(identity, forward=None)
    edited.defvjp(lambda x: (x, None), bwd)
    return edited(x)
