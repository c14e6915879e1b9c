"""Activation functions as layers; `ftrans.nn.functional` says what they compute."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .. import functional as F
from .. import init
from ..cells.kinds import RngState
from ..modules.module import Module
from .arguments import empty, put
from .function_layer import FunctionLayer

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]  # fmt: skip

# Without constants


class _MaybeInPlace(FunctionLayer):
    inplace: bool = False


class ReLU(_MaybeInPlace, of=F.relu):
    """
    >>> nn.ReLU()(np.array([-1.0, 2.0]))
    array([0., 2.])
    """


class ReLU6(_MaybeInPlace, of=F.relu6):
    """
    >>> nn.ReLU6()(np.array([-1.0, 2.0, 9.0]))
    array([0., 2., 6.])
    """


class SELU(_MaybeInPlace, of=F.selu):
    """
    >>> nn.SELU()(np.array([-1.0, 2.0])).round(4)
    array([-1.1113,  2.1014])
    """


class SiLU(_MaybeInPlace, of=F.silu):
    """
    >>> nn.SiLU()(np.array([-1.0, 2.0])).round(4)
    array([-0.2689,  1.7616])
    """


class Mish(_MaybeInPlace, of=F.mish):
    """
    >>> nn.Mish()(np.array([-1.0, 2.0])).round(4)
    array([-0.3034,  1.944 ])
    """


class Hardsigmoid(_MaybeInPlace, of=F.hardsigmoid):
    """
    >>> nn.Hardsigmoid()(np.array([-4.0, 0.0, 4.0]))
    array([0. , 0.5, 1. ])
    """

    def extra_repr(self) -> str:
        return ""


class Hardswish(_MaybeInPlace, of=F.hardswish):
    """
    >>> nn.Hardswish()(np.array([-4.0, 1.0, 4.0])).round(4)
    array([0.    , 0.6667, 4.    ])
    """

    def extra_repr(self) -> str:
        return ""


class Sigmoid(FunctionLayer, of=F.sigmoid):
    """
    >>> nn.Sigmoid()(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """


class LogSigmoid(FunctionLayer, of=F.logsigmoid):
    """
    >>> nn.LogSigmoid()(np.array([-1000.0, 0.0])).round(4)
    array([-1.000e+03, -6.931e-01])
    """


class Tanh(FunctionLayer, of=F.tanh):
    """
    >>> nn.Tanh()(np.array([-1.0, 0.0])).round(4)
    array([-0.7616,  0.    ])
    """


class Tanhshrink(FunctionLayer, of=F.tanhshrink):
    """
    >>> nn.Tanhshrink()(np.array([-1.0, 0.0])).round(4)
    array([-0.2384,  0.    ])
    """


class Softsign(FunctionLayer, of=F.softsign):
    """
    >>> nn.Softsign()(np.array([-1.0, 3.0]))
    array([-0.5 ,  0.75])
    """


# With constants


class LeakyReLU(FunctionLayer, of=F.leaky_relu):
    """
    >>> nn.LeakyReLU(0.1)(np.array([-2.0, 2.0]))
    array([-0.2,  2. ])
    """

    negative_slope: float = 0.01
    inplace: bool = False


class ELU(FunctionLayer, of=F.elu):
    """
    >>> nn.ELU()(np.array([-100.0, 2.0]))
    array([-1.,  2.])
    """

    alpha: float = 1.0
    inplace: bool = False


class CELU(FunctionLayer, of=F.celu):
    """
    >>> nn.CELU(0.5)(np.array([-100.0, 2.0]))
    array([-0.5,  2. ])
    """

    alpha: float = 1.0
    inplace: bool = False


class GELU(FunctionLayer, of=F.gelu):
    """
    >>> nn.GELU()(np.array([-1.0, 2.0])).round(4)
    array([-0.1587,  1.9545])
    """

    approximate: Literal["none", "tanh"] = "none"


class Hardshrink(FunctionLayer, of=F.hardshrink):
    """
    >>> nn.Hardshrink()(np.array([-0.2, 2.0]))
    array([0., 2.])
    """

    lambd: float = 0.5

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(FunctionLayer, of=F.softshrink):
    """
    >>> nn.Softshrink()(np.array([-0.2, 2.0]))
    array([0. , 1.5])
    """

    lambd: float = 0.5

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardtanh(FunctionLayer, of=F.hardtanh):
    """
    >>> nn.Hardtanh()(np.array([-3.0, 0.5, 3.0]))
    array([-1. ,  0.5,  1. ])
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False


class Threshold(FunctionLayer, of=F.threshold):
    """
    >>> nn.Threshold(0.1, 20.0)(np.array([0.0, 0.1, 0.5]))
    array([20. , 20. ,  0.5])
    """

    threshold: float
    value: float
    inplace: bool = False


class Softplus(FunctionLayer, of=F.softplus):
    """
    >>> nn.Softplus()(np.array([-1000.0, 0.0, 1000.0])).round(4)
    array([0.000e+00, 6.931e-01, 1.000e+03])
    """

    beta: float = 1.0
    threshold: float = 20.0


# Along an axis


class Softmax(FunctionLayer, of=F.softmax):
    """
    >>> nn.Softmax(dim=-1)(np.zeros((1, 4)))
    array([[0.25, 0.25, 0.25, 0.25]])
    """

    dim: int | None = None


class LogSoftmax(FunctionLayer, of=F.log_softmax):
    """
    >>> nn.LogSoftmax(dim=-1)(np.array([0.0, -1000.0]))
    array([    0., -1000.])
    """

    dim: int | None = None


class Softmin(FunctionLayer, of=F.softmin):
    """
    >>> nn.Softmin(dim=-1)(np.array([0.0, 1000.0]))
    array([1., 0.])
    """

    dim: int | None = None


class GLU(FunctionLayer, of=F.glu):
    """
    >>> nn.GLU()(np.array([1.0, 2.0, 0.0, 1000.0]))
    array([0.5, 2. ])
    """

    dim: int = -1


class Softmax2d(Module):
    """`exp(x) / sum(exp(x))` over the channels of images.

    Inputs:
        input: array of shape (N, C, H, W) or (C, H, W).

    Returns:
        An array of the same shape.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Softmax2d()(np.zeros((2, 1, 1))).ravel()
        array([0.5, 0.5])
    """

    def forward(self, input: Any) -> Any:
        """An array of the same shape."""
        return F.softmax(input, -3)


# With parameters or random numbers


class PReLU(Module):
    """Elementwise `x` for positive `x`, else `weight * x`, where `weight` is trained.

    Args:
        num_parameters: number of slopes: 1, or the number of channels (axis 1).
        init: initial value of the slopes.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the slopes; float32 for None.

    Attributes:
        weight: the slopes, of shape (num_parameters,).

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.PReLU()(np.array([-4.0, 2.0]))
        array([-1.,  2.])
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = np.float32
    ) -> None:
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty((num_parameters,), dtype)
        self.reset_parameters()
        put(self, device)

    def reset_parameters(self) -> None:
        """Set all slopes to their initial value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        """An array of the same shape."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """Elementwise `x` for positive `x`, else a slope times `x`: random in training, the mean slope in evaluation.

    Args:
        lower: lower bound of the slopes.
        upper: upper bound of the slopes.
        inplace: accepted as in torch, without effect.

    Attributes:
        rng: the stream of random numbers, which every call in training advances.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.RReLU(0.1, 0.3).eval()(np.array([-1.0, 2.0]))
        array([-0.2,  2. ])
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        self.lower = lower
        self.upper = upper
        self.inplace = inplace
        self.rng = RngState()

    def forward(self, input: Any) -> Any:
        """An array of the same shape."""
        return F.rrelu(input, self.lower, self.upper, self.training, rng=self.rng)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")
