"""Clipping of gradients: by their norm together, or each number by itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, MutableMapping
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...autograd.modes import no_grad
from ...base.cell import read
from ...base.interrupts import uninterrupted
from ...base.source import at_line, user_line
from ...core.trace import current_builder
from ...core.types import is_complex
from ..modules.module import Module


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Any:
    """The norm of all elements of some arrays.

    Args:
        tensors: an array, or a list or a dictionary of arrays.
        norm_type: order p of the norm, (sum |x|^p)^(1/p); `math.inf` for the largest absolute value.
        error_if_nonfinite: whether to raise if the norm is NaN or infinite.
        foreach: ignored; all arrays are always taken together.

    Returns:
        A scalar in the dtype of the arrays; 0 if there are none.

    Raises:
        RuntimeError: the norm is not finite, and `error_if_nonfinite` is set.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.utils.get_total_norm([np.array([3.0]), np.array([4.0])])
        np.float64(5.0)
    """
    given = tensors.values() if hasattr(tensors, "values") else [tensors] if hasattr(tensors, "dtype") else tensors
    norms = [_norm(fnp.ravel(read(x)), norm_type) for x in given]
    total = _norm(fnp.stack(norms), norm_type) if norms else np.float32(0)
    if error_if_nonfinite and not fnp.isfinite(total):
        raise RuntimeError(
            f"the norm of order {norm_type} of the gradients is not finite, so they cannot be scaled by it; "
            f"ft.autograd.detect_anomaly() finds where NaN comes from, and error_if_nonfinite=False goes on"
            + at_line(user_line())
        )
    return total


def _norm(x: Any, p: float) -> Any:
    """The norm of a vector."""
    size = fnp.abs(x)
    if p == math.inf:
        return fnp.max(size) if x.shape[0] else fnp.sum(size)
    if p == -math.inf:
        return fnp.min(size)
    if p == 0:
        return fnp.sum((size != 0).astype(size.dtype))
    if p == 1:
        return fnp.sum(size)
    return fnp.sqrt(fnp.sum(fnp.square(size))) if p == 2 else fnp.sum(size**p) ** (1 / p)


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale gradients by a common factor, so that their norm is at most `max_norm`.

    The factor is `max_norm / (norm + 1e-6)`, as in torch, or 1 if that is smaller.

    Args:
        parameters: a module, a parameter or a list of parameters, whose `grad` is scaled; or a dictionary of gradients,
            as `nn.value_and_grad` returns it, in which the scaled ones are put, also in a compiled function.
        max_norm: maximum norm.
        norm_type: order of the norm, as for `get_total_norm`.
        error_if_nonfinite: whether to raise if the norm is NaN or infinite.
        foreach: ignored.

    Returns:
        The norm before scaling, a scalar.

    Raises:
        ValueError: `max_norm` is negative.
        RuntimeError: the norm is not finite, and `error_if_nonfinite` is set, so that nothing has been scaled; or
            parameters are given in a function that is traced, in which they have no gradients.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> gradients = {"a": np.array([3.0]), "b": np.array([4.0])}
        >>> nn.utils.clip_grad_norm_(gradients, 1.0)
        np.float64(5.0)
        >>> gradients["a"].round(6)
        array([0.6])
    """
    if max_norm < 0:
        raise ValueError(f"max_norm must not be negative, but is {max_norm}{at_line(user_line())}")
    holders = _holders_of(parameters, "clip_grad_norm_")
    with no_grad():
        total = get_total_norm([_gradient(x) for x in holders], norm_type, error_if_nonfinite)
        _scale(holders, max_norm, total)
    return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None) -> None:
    """Scale gradients by a common factor, as `clip_grad_norm_` does, for a norm that is known.

    Args:
        parameters: as for `clip_grad_norm_`.
        max_norm: maximum norm.
        total_norm: the norm, as `get_total_norm` returns it.
        foreach: ignored.

    Raises:
        ValueError: `max_norm` is negative.
    """
    if max_norm < 0:
        raise ValueError(f"max_norm must not be negative, but is {max_norm}{at_line(user_line())}")
    with no_grad():
        _scale(_holders_of(parameters, "clip_grads_with_norm_"), max_norm, read(total_norm))


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clip each number of the gradients to the interval from `-clip_value` to `clip_value`.

    Args:
        parameters: as for `clip_grad_norm_`.
        clip_value: the largest absolute value.
        foreach: ignored.

    Raises:
        ValueError: `clip_value` is negative.
        TypeError: a gradient is complex.
    """
    if clip_value < 0:
        raise ValueError(f"clip_value must not be negative, but is {clip_value}{at_line(user_line())}")
    with no_grad():
        holders = _holders_of(parameters, "clip_grad_value_")
        if any([is_complex(_gradient(x).dtype) for x in holders]):
            raise TypeError(
                "complex numbers are not ordered, so clip_grad_value_ cannot clip them; take clip_grad_norm_"
                + at_line(user_line())
            )
        _put(holders, [fnp.clip(_gradient(x), -clip_value, clip_value) for x in holders])


def _scale(holders: list[Any], max_norm: float, total: Any) -> None:
    factor = fnp.minimum(max_norm / (total + 1e-6), 1.0)
    _put(holders, [_gradient(x) * factor for x in holders])


class _Entry:
    """An entry of a dictionary of gradients."""

    def __init__(self, gradients: MutableMapping[str, Any], name: str) -> None:
        self._gradients = gradients
        self._name = name

    @property
    def grad(self) -> Any:
        return self._gradients[self._name]

    @grad.setter
    def grad(self, value: Any) -> None:
        self._gradients[self._name] = value


def _holders_of(parameters: Any, what: str) -> list[Any]:
    """The objects with an attribute `grad` that is not None."""
    found: Iterable[Any]
    if isinstance(parameters, Module):
        found = parameters.parameters()
    elif isinstance(parameters, MutableMapping):
        found = [_Entry(parameters, name) for name in parameters]
    elif hasattr(parameters, "dtype"):
        found = [parameters]
    else:
        found = list(parameters)
    listed = list(found)
    for x in listed:
        if not hasattr(x, "grad"):
            raise TypeError(
                f"{what} takes a module, parameters, or a dictionary of gradients by name, not {type(x).__name__}; "
                f"nn.value_and_grad returns such a dictionary{at_line(user_line())}"
            )
    holders = [x for x in listed if x.grad is not None]
    if listed and not holders and current_builder() is not None:
        raise RuntimeError(
            f"{what} was given parameters, which have no gradients in a compiled function or a derivative: there is no "
            f"backward() there. Give it what nn.value_and_grad returns: {what}(gradients, ...) scales these in place"
            + at_line(user_line())
        )
    return holders


def _gradient(holder: Any) -> Any:
    return read(holder.grad)


@uninterrupted
def _put(holders: list[Any], values: list[Any]) -> None:
    """Replace all gradients, or none if an interrupt comes."""
    for holder, new in zip(holders, values, strict=True):
        dtype = _gradient(holder).dtype
        holder.grad = new if new.dtype == dtype else new.astype(dtype)
