"""Activation functions as layers; `ftrans.nn.functional` says what they compute.

Where torch has an argument `inplace`, it is taken and shown, and has no effect: no layer overwrites its input.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .. import functional as F
from .. import init
from ..cells import RngState
from ..module import Module
from .arguments import empty


def _with_inplace(text: str, inplace: bool) -> str:
    return ", ".join(([text] if text else []) + (["inplace=True"] if inplace else []))


class _MaybeInPlace(Module):
    """Activations without constants, but with torch's `inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def extra_repr(self) -> str:
        return _with_inplace("", self.inplace)


class ReLU(_MaybeInPlace):
    """`max(x, 0)`.

    Args:
        inplace: has no effect.

    Example:
        >>> from ftrans import nn
        >>> nn.ReLU()(np.array([-1.0, 2.0]))
        array([0., 2.])
    """

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.relu(input)


class ReLU6(_MaybeInPlace):
    """`min(max(x, 0), 6)`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.relu6(input)


class SELU(_MaybeInPlace):
    """`functional.selu`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.selu(input)


class SiLU(_MaybeInPlace):
    """`x * sigmoid(x)`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.silu(input)


class Mish(_MaybeInPlace):
    """`x * tanh(softplus(x))`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.mish(input)


class Hardsigmoid(_MaybeInPlace):
    """`min(max(x + 3, 0), 6) / 6`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.hardsigmoid(input)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_MaybeInPlace):
    """`x * hardsigmoid(x)`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.hardswish(input)

    def extra_repr(self) -> str:
        return ""


class LeakyReLU(Module):
    """`x` where it is positive, else `negative_slope * x`.

    Args:
        negative_slope: the slope below 0.
        inplace: has no effect.
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.leaky_relu(input, self.negative_slope)

    def extra_repr(self) -> str:
        return _with_inplace(f"negative_slope={self.negative_slope}", self.inplace)


class PReLU(Module):
    """`x` where it is positive, else `weight * x`.

    Args:
        num_parameters: 1, or the number of channels, which are on axis 1.
        init: the first slope.
        dtype: dtype of the slopes.

    Attributes:
        weight: the slopes, of shape (num_parameters,).

    Example:
        >>> from ftrans import nn
        >>> nn.PReLU()(np.array([-4.0, 2.0]))
        array([-1.,  2.])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = np.float32) -> None:
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty((num_parameters,), dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all slopes to the first one."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """`x` where it is positive, else `x` times a slope: in training a random one for each element, else the mean.

    Args:
        lower: the least slope.
        upper: the greatest slope.
        inplace: has no effect.

    Attributes:
        rng: the stream of random numbers, which each call in training moves on.
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        self.lower = lower
        self.upper = upper
        self.inplace = inplace
        self.rng = RngState()

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        key = self.rng.next_key() if self.training else None
        return F.rrelu(input, self.lower, self.upper, self.training, rng=key)

    def extra_repr(self) -> str:
        return _with_inplace(f"lower={self.lower}, upper={self.upper}", self.inplace)


class ELU(Module):
    """`x` where it is positive, else `alpha * (exp(x) - 1)`.

    Args:
        alpha: minus what it approaches at minus infinity.
        inplace: has no effect.
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.elu(input, self.alpha)

    def extra_repr(self) -> str:
        return _with_inplace(f"alpha={self.alpha}", self.inplace)


class CELU(ELU):
    """`x` where it is positive, else `alpha * (exp(x / alpha) - 1)`; the arguments are those of `ELU`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.celu(input, self.alpha)


class GELU(Module):
    """`x` times the probability that a standard normal number is below `x`.

    Args:
        approximate: "none" for the exact function, "tanh" for an approximation.
    """

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """The logarithm of `sigmoid`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.logsigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.tanh(input)


class Tanhshrink(Module):
    """`x - tanh(x)`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.tanhshrink(input)


class Softsign(Module):
    """`x / (1 + |x|)`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.softsign(input)


class Hardshrink(Module):
    """`x` where its magnitude is above `lambd`, else 0.

    Args:
        lambd: the bound.
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Hardshrink):
    """`x` moved towards 0 by `lambd`, and 0 where its magnitude is not above; the argument is that of `Hardshrink`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.softshrink(input, self.lambd)


class Hardtanh(Module):
    """`x` held between two bounds.

    Args:
        min_val: the lower bound.
        max_val: the upper bound.
        inplace: has no effect.
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.hardtanh(input, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return _with_inplace(f"min_val={self.min_val}, max_val={self.max_val}", self.inplace)


class Threshold(Module):
    """`x` where it is above the threshold, else `value`.

    Args:
        threshold: the threshold.
        value: what takes the place of the others.
        inplace: has no effect.
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.threshold(input, self.threshold, self.value)

    def extra_repr(self) -> str:
        return _with_inplace(f"threshold={self.threshold}, value={self.value}", self.inplace)


class Softplus(Module):
    """`log(1 + exp(beta * x)) / beta`, and `x` where `beta * x` is above the threshold.

    Args:
        beta: how sharp the bend is.
        threshold: from where on it is the identity.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _OverAxis(Module):
    """Activations along an axis."""

    def __init__(self, dim: int | None = None) -> None:
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_OverAxis):
    """`exp(x) / sum(exp(x))` along an axis.

    Args:
        dim: the axis.

    Example:
        >>> from ftrans import nn
        >>> nn.Softmax(dim=-1)(np.zeros((1, 4)))
        array([[0.25, 0.25, 0.25, 0.25]])
    """

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.softmax(input, self.dim)


class LogSoftmax(_OverAxis):
    """The logarithm of `Softmax`; the argument is that of `Softmax`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.log_softmax(input, self.dim)


class Softmin(_OverAxis):
    """`Softmax` of `-x`; the argument is that of `Softmax`."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """`Softmax` over the channels of arrays of shape (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        return F.softmax(input, -3)


class GLU(Module):
    """The first half along an axis, times `sigmoid` of the second half.

    Args:
        dim: the axis.
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, input: Any) -> Any:
        """An array of half the size along the axis."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
