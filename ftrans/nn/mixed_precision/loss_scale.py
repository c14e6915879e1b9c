"""Mixed precision: scaling the loss, so that gradients in float16 do not underflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...base.source import at_line, user_line
from ...core.types import is_complex, is_inexact
from ..cells.kinds import Buffer
from ..modules.module import Module


class LossScale(Module):
    """A dynamic factor for the loss in mixed-precision training.

    float16 has a small exponent range, so small gradients underflow to zero; multiplying the loss before it is
    differentiated prevents that.  The factor is halved when a gradient overflows, and doubled after a number of steps
    without overflow (Micikevicius et al., Mixed precision training, 2018).  bfloat16 has the range of float32 and needs
    no factor.

    Args:
        initial: initial factor.
        growth_interval: number of steps without overflow after which the factor grows.
        factor: ratio by which it grows and shrinks.

    Attributes:
        scale: the factor, a buffer of type f32[].

    Example:
        >>> import numpy as np, optax
        >>> from ftrans import nn
        >>> model, scale = nn.Linear(2, 1), nn.LossScale(1024.0)
        >>> optimizer = nn.Optimizer(model, optax.sgd(0.1))
        >>> @nn.jit
        ... def step(model, optimizer, scale, x):
        ...     with nn.autocast("float16"):
        ...         loss = lambda model, x: (model(x) ** 2).mean()
        ...         value, gradients = nn.value_and_grad(loss, loss_scale=scale)(model, x)
        ...     return scale.step(optimizer, gradients)
        >>> bool(step(model, optimizer, scale, np.ones((4, 2), np.float32)))
        True
    """

    def __init__(self, initial: float = 2.0**15, growth_interval: int = 2000, factor: float = 2.0) -> None:
        if initial <= 0 or factor <= 1 or growth_interval < 1:
            raise ValueError(
                f"LossScale takes a positive initial scale, a factor above 1 and a positive interval, not "
                f"initial={initial}, factor={factor}, growth_interval={growth_interval}{at_line(user_line())}"
            )
        self.scale = Buffer(np.asarray(initial, np.float32))
        self.good_steps = Buffer(np.asarray(0, np.int32))
        self.growth_interval = growth_interval
        self.factor = factor

    def step(self, optimizer: Any, gradients: Mapping[str, Any]) -> Any:
        """Call `optimizer.step(gradients)` if all gradients are finite, else skip the step; update the factor.

        Args:
            optimizer: the `nn.Optimizer`.
            gradients: the gradients that `nn.value_and_grad(..., loss_scale=self)` returned.

        Returns:
            Whether the step was taken, a boolean array.
        """
        return self.guard(optimizer, gradients, lambda: optimizer.step(gradients))

    def guard(self, optimizer: Any, gradients: Mapping[str, Any], update: Callable[[], None]) -> Any:
        """The same for any update of the optimizer.

        Args:
            optimizer: the `nn.Optimizer`.
            gradients: as for `step`.
            update: calls the optimizer.

        Returns:
            As `step` does.
        """
        finite = all_finite(gradients)
        cells = optimizer.changed_cells()
        before = [cell.value for cell in cells]
        update()
        for cell, old in zip(cells, before, strict=True):
            if cell.value is not old:
                cell.value = fnp.where(finite, cell.value, old)
        steps = self.good_steps.value + 1
        grows = steps >= self.growth_interval
        larger = self.scale.value * self.factor
        grown = fnp.where(grows & fnp.isfinite(larger), larger, self.scale.value)
        self.scale.value = fnp.where(finite, grown, self.scale.value / self.factor).astype(np.float32)
        self.good_steps.value = fnp.where(finite & ~grows, steps, 0).astype(np.int32)
        return finite

    def extra_repr(self) -> str:
        return f"growth_interval={self.growth_interval}, factor={self.factor}"


def floating_dtype(dtype: Any) -> np.dtype[Any]:
    """The floating-point dtype in which gradients are computed.

    Raises:
        ValueError: the dtype is not floating-point.
    """
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or not is_inexact(found) or is_complex(found):
        raise ValueError(
            f"dtype must be floating-point, such as 'bfloat16', since gradients are computed in it, not {dtype!r}"
            + at_line(user_line())
        )
    return found


def all_finite(gradients: Mapping[str, Any]) -> Any:
    """Whether all numbers in a dictionary of arrays are finite.

    Args:
        gradients: arrays by name.

    Returns:
        A boolean array of shape ().
    """
    found: Any = np.bool_(True)
    for x in gradients.values():
        found = found & fnp.all(fnp.isfinite(x))
    return found


def global_norm(gradients: Mapping[str, Any]) -> Any:
    """The Euclidean norm of all arrays in a dictionary together.

    Args:
        gradients: arrays by name.

    Returns:
        A scalar in the dtype of the arrays.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.global_norm({"a": np.array([3.0]), "b": np.array([4.0])})
        np.float64(5.0)
    """
    total: Any = 0.0
    for x in gradients.values():
        total = total + fnp.sum(fnp.square(fnp.abs(x)))
    return fnp.sqrt(total)


def clip_grad_norm(gradients: Mapping[str, Any], max_norm: float) -> dict[str, Any]:
    """Gradients scaled by a common factor so that their global norm is at most `max_norm`.

    Args:
        gradients: arrays by name, as returned by `nn.value_and_grad`.
        max_norm: maximum norm.

    Returns:
        A new dictionary of gradients.

    Raises:
        ValueError: `max_norm` is negative.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.clip_grad_norm({"a": np.array([3.0]), "b": np.array([4.0])}, 1.0)["a"].round(12)
        array([0.6])
    """
    if max_norm < 0:
        raise ValueError(f"max_norm must not be negative, but is {max_norm}{at_line(user_line())}")
    norm = global_norm(gradients)
    factor = fnp.minimum(max_norm / fnp.maximum(norm, 1e-30), 1.0)
    return {name: (x * factor).astype(x.dtype) for name, x in gradients.items()}
