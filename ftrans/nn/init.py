"""Initialization of parameters, under the names of `torch.nn.init`.

Each function fills a parameter and returns it.  Values are drawn by NumPy, from the generator that `nn.manual_seed`
seeds or from one that is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from ..base.cell import Cell
from ..base.randomness import generator, manual_seed
from ..base.source import at_line, user_line
from ..core.types import Shape, is_complex, is_inexact
from .torch_hints import missing as _missing

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "generator", "kaiming_normal_", "kaiming_uniform_",
    "manual_seed", "normal_", "ones_", "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

Place = TypeVar("Place", bound=Any)
Mode = Literal["fan_in", "fan_out"]


# Numbers that are all drawn alike


def uniform_(tensor: Place, a: float = 0.0, b: float = 1.0, rng: Generator | None = None) -> Place:
    """Fill with numbers drawn uniformly from `[a, b)`.

    Args:
        tensor: the parameter.
        a: lower bound.
        b: upper bound.
        rng: a NumPy generator; by default the one that `nn.manual_seed` seeds.

    Returns:
        The parameter.

    Raises:
        TypeError: `tensor` is not a parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> weight = nn.init.uniform_(nn.Parameter(np.empty((2, 3))), -1.0, 1.0)
        >>> bool((abs(weight.value) <= 1).all())
        True
    """
    shape, dtype = _checked(tensor, "uniform_")
    return _filled(tensor, _uniform(shape, dtype, a, b, rng))


def normal_(tensor: Place, mean: float = 0.0, std: float = 1.0, rng: Generator | None = None) -> Place:
    """Fill with normally distributed numbers.

    Args:
        tensor: the parameter.
        mean: mean.
        std: standard deviation.
        rng: a NumPy generator; by default the one that `nn.manual_seed` seeds.

    Returns:
        The parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.init.normal_(nn.Parameter(np.empty(2)), std=0.02).shape
        (2,)
    """
    shape, dtype = _checked(tensor, "normal_")
    return _filled(tensor, _normal(shape, dtype, mean, std, rng))


def trunc_normal_(
    tensor: Place, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, rng: Generator | None = None
) -> Place:
    """Fill with numbers from a truncated normal distribution.

    Args:
        tensor: the parameter.
        mean: mean before truncation.
        std: standard deviation before truncation.
        a: lower bound.
        b: upper bound.
        rng: a NumPy generator; by default the one that `nn.manual_seed` seeds.

    Returns:
        The parameter.

    Raises:
        ValueError: `a` is not less than `b`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> weight = nn.init.trunc_normal_(nn.Parameter(np.empty(100)), std=0.02, a=-0.04, b=0.04)
        >>> bool((abs(weight.value) <= 0.04).all())
        True
    """
    from scipy.special import ndtr, ndtri

    shape, _ = _checked(tensor, "trunc_normal_")
    if not a < b:
        raise ValueError(f"trunc_normal_ needs a < b, not a={a} and b={b}{at_line(user_line())}")
    low, high = (a - mean) / std, (b - mean) / std
    # Far above the mean, all digits are in the distance of the distribution function from 1, so both sides change.
    sign = -1.0 if low + high > 0 else 1.0
    start, end = ndtr(sorted((sign * low, sign * high)))
    values = ndtri(_uniform(shape, np.dtype(np.float64), start, end, rng)) * (sign * std) + mean
    return _filled(tensor, np.clip(values, a, b))


# Constants


def constant_(tensor: Place, val: float) -> Place:
    """Fill with a constant.

    Args:
        tensor: the parameter, or any cell.
        val: the constant.

    Returns:
        The parameter.

    Raises:
        TypeError: the dtype cannot represent the constant.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.init.constant_(nn.Parameter(np.empty(2)), 0.5).value
        array([0.5, 0.5])
    """
    shape, dtype = _checked(tensor, "constant_", any_dtype=True)
    given = np.asarray(val)
    with np.errstate(invalid="ignore"):
        is_lost = dtype.kind in "iub" and given.real.astype(dtype) != given
    if is_lost or (given.dtype.kind == "c" and dtype.kind != "c"):
        raise TypeError(f"constant_ cannot fill an array of {dtype} with {val!r}{at_line(user_line())}")
    return _filled(tensor, np.full(shape, val, dtype))


def ones_(tensor: Place) -> Place:
    """Fill with ones."""
    return constant_(tensor, 1)


def zeros_(tensor: Place) -> Place:
    """Fill with zeros."""
    return constant_(tensor, 0)


def eye_(tensor: Place) -> Place:
    """Fill a matrix with the identity.

    Raises:
        ValueError: `tensor` is not a matrix.
    """
    shape, dtype = _matrix(tensor, "eye_")
    return _filled(tensor, np.eye(*shape, dtype=dtype))


def dirac_(tensor: Place, groups: int = 1) -> Place:
    """Fill the weight of a convolution so that it returns its input, for as many channels as possible.

    Args:
        tensor: weight of a 1-, 2- or 3-dimensional convolution.
        groups: number of channel groups of the convolution.

    Returns:
        The parameter.

    Raises:
        ValueError: `tensor` is not such a weight, or `groups` does not divide its channels.
    """
    shape, dtype = _checked(tensor, "dirac_", any_dtype=True)
    if len(shape) not in (3, 4, 5):
        raise ValueError(f"dirac_ takes a weight with 3, 4 or 5 axes, not of shape {shape}{at_line(user_line())}")
    if shape[0] % groups:
        raise ValueError(f"groups={groups} of dirac_ does not divide the {shape[0]} channels{at_line(user_line())}")
    values = np.zeros(shape, dtype)
    size = shape[0] // groups
    center = tuple(n // 2 for n in shape[2:])
    for i in range(shape[0]):
        if i % size < shape[1]:
            values[(i, i % size, *center)] = 1
    return _filled(tensor, values)


# Numbers whose variance suits the layer


def xavier_uniform_(tensor: Place, gain: float = 1.0, rng: Generator | None = None) -> Place:
    """Fill with uniform numbers of variance `2 gain**2 / (fan_in + fan_out)` (Glorot and Bengio, 2010).

    Args:
        tensor: weight with at least 2 axes: outputs, inputs, and those of a kernel.
        gain: factor, such as `calculate_gain("tanh")`.
        rng: a NumPy generator; by default the one that `nn.manual_seed` seeds.

    Returns:
        The parameter.

    Raises:
        ValueError: `tensor` has fewer than 2 axes.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> weight = nn.init.xavier_uniform_(nn.Parameter(np.empty((3, 5))))
        >>> bool(abs(weight.value).max() <= (6 / 8) ** 0.5)
        True
    """
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / max(sum(_fans(tensor, "xavier_uniform_")), 1))
    return uniform_(tensor, -bound, bound, rng)


def xavier_normal_(tensor: Place, gain: float = 1.0, rng: Generator | None = None) -> Place:
    """Fill with normal numbers of variance `2 gain**2 / (fan_in + fan_out)`; arguments as for `xavier_uniform_`."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / max(sum(_fans(tensor, "xavier_normal_")), 1)), rng)


def kaiming_uniform_(
    tensor: Place,
    a: float = 0.0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
    rng: Generator | None = None,
) -> Place:
    """Fill with uniform numbers of variance `gain**2 / fan` (He et al., 2015).

    Args:
        tensor: weight with at least 2 axes: outputs, inputs, and those of a kernel.
        a: negative slope of "leaky_relu", which the gain depends on.
        mode: "fan_in" preserves the variance of activations, "fan_out" that of gradients.
        nonlinearity: the function after the layer; see `calculate_gain`.
        rng: a NumPy generator; by default the one that `nn.manual_seed` seeds.

    Returns:
        The parameter.

    Raises:
        ValueError: `tensor` has fewer than 2 axes, or the mode or nonlinearity is unknown.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> weight = nn.init.kaiming_uniform_(nn.Parameter(np.empty((3, 6))), nonlinearity="relu")
        >>> bool(abs(weight.value).max() <= 1)
        True
    """
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    return uniform_(tensor, -bound, bound, rng)


def kaiming_normal_(
    tensor: Place,
    a: float = 0.0,
    mode: Mode = "fan_in",
    nonlinearity: str = "leaky_relu",
    rng: Generator | None = None,
) -> Place:
    """Fill with normal numbers of variance `gain**2 / fan`; arguments as for `kaiming_uniform_`."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_normal_"), rng)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended factor of initial values for the nonlinearity after a layer.

    Args:
        nonlinearity: "linear", "conv1d" and other convolutions, "sigmoid", "tanh", "relu", "leaky_relu" or "selu".
        param: negative slope of "leaky_relu"; 0.01 by default.

    Returns:
        The factor.

    Raises:
        ValueError: the nonlinearity is unknown.

    Example:
        >>> from ftrans import nn
        >>> nn.init.calculate_gain("tanh")
        1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        known = ", ".join(sorted([*_GAINS, "leaky_relu"]))
        raise ValueError(f"nonlinearity={nonlinearity!r} is unknown; known are {known}{at_line(user_line())}")
    return _GAINS[nonlinearity]


_GAINS = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "sigmoid"), 1.0),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1.0),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}


# Matrices with a structure


def orthogonal_(tensor: Place, gain: float = 1.0, rng: Generator | None = None) -> Place:
    """Fill with a random matrix whose rows or columns, whichever are fewer, are orthonormal (Saxe et al., 2013).

    Args:
        tensor: weight with at least 2 axes; all except the first are flattened.
        gain: factor.
        rng: a NumPy generator; by default the one that `nn.manual_seed` seeds.

    Returns:
        The parameter.

    Raises:
        ValueError: `tensor` has fewer than 2 axes.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> q = nn.init.orthogonal_(nn.Parameter(np.empty((2, 5)))).value
        >>> bool(np.allclose(q @ q.T, np.eye(2)))
        True
    """
    shape, dtype = _checked(tensor, "orthogonal_")
    if len(shape) < 2:
        raise ValueError(f"orthogonal_ takes an array with at least 2 axes, not of shape {shape}{at_line(user_line())}")
    rows, columns = shape[0], math.prod(shape[1:])
    wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    q, r = np.linalg.qr(_normal((max(rows, columns), min(rows, columns)), wide, 0.0, 1.0, rng))
    # With these signs every orthogonal matrix is equally likely.
    q = q * (np.where(np.diagonal(r) < 0, -gain, gain).astype(wide))
    return _filled(tensor, (q.T if rows < columns else q).reshape(shape))


def sparse_(tensor: Place, sparsity: float, std: float = 0.01, rng: Generator | None = None) -> Place:
    """Fill a matrix with normal numbers, of which a fraction of each column is zero (Martens, 2010).

    Args:
        tensor: a matrix.
        sparsity: fraction of zeros in each column, rounded up to whole elements.
        std: standard deviation of the other elements.
        rng: a NumPy generator; by default the one that `nn.manual_seed` seeds.

    Returns:
        The parameter.

    Raises:
        ValueError: `tensor` is not a matrix.
    """
    (rows, columns), dtype = _matrix(tensor, "sparse_")
    values = _normal((rows, columns), dtype, 0.0, std, rng)
    order = _generator_of(rng).random((rows, columns)).argsort(0)
    np.put_along_axis(values, order[: math.ceil(sparsity * rows)], 0, 0)
    return _filled(tensor, values)


# What they share


def _checked(tensor: Any, what: str, any_dtype: bool = False) -> tuple[Shape, np.dtype[Any]]:
    """Shape and dtype of the parameter to fill.

    Raises:
        TypeError: it cannot be filled with numbers.
    """
    if not isinstance(tensor, Cell):
        raise TypeError(
            f"{what} fills a parameter of a module, not a value of type {type(tensor).__name__}; write "
            f"nn.Parameter(np.empty(shape, np.float32)) for a new one{at_line(user_line())}"
        )
    shape, dtype = tuple(tensor.shape), np.dtype(tensor.dtype)  # type: ignore[attr-defined]
    if not any_dtype and (not is_inexact(dtype) or is_complex(dtype)):
        raise TypeError(f"{what} fills arrays of real floating-point numbers, not of {dtype}{at_line(user_line())}")
    return shape, dtype


def _matrix(tensor: Any, what: str) -> tuple[Shape, np.dtype[Any]]:
    shape, dtype = _checked(tensor, what)
    if len(shape) != 2:
        raise ValueError(f"{what} fills matrices, not arrays of shape {shape}{at_line(user_line())}")
    return shape, dtype


@contextmanager
def skipped() -> Iterator[None]:
    """A block in which the functions of this file leave parameters as they are, and draw nothing."""
    token = _skips.set(True)
    try:
        yield
    finally:
        _skips.reset(token)


_skips: ContextVar[bool] = ContextVar("whether initial values are left out", default=False)


def _filled(tensor: Place, values: Any) -> Place:
    if _skips.get():
        return tensor
    tensor.value = np.asarray(values).astype(tensor.dtype, copy=False)
    return tensor


def _generator_of(rng: Any) -> Generator:
    if rng is None:
        return generator()
    if not hasattr(rng, "standard_normal"):
        raise TypeError(
            "rng must be a NumPy generator, such as np.random.default_rng(0), not of type "
            f"{type(rng).__name__}{at_line(user_line())}"
        )
    return rng


def _drawn(dtype: np.dtype[Any]) -> Any:
    """The dtype in which NumPy draws numbers for an array of `dtype`."""
    return np.float64 if dtype == np.float64 else np.float32


def _uniform(shape: Shape, dtype: np.dtype[Any], low: float, high: float, rng: Generator | None) -> Any:
    if _skips.get():
        return np.broadcast_to(np.zeros((), dtype), shape)
    values: Any = _generator_of(rng).random(shape, _drawn(dtype))
    values *= high - low
    values += low
    return values


def _normal(shape: Shape, dtype: np.dtype[Any], mean: float, std: float, rng: Generator | None) -> Any:
    if _skips.get():
        return np.broadcast_to(np.zeros((), dtype), shape)
    values: Any = _generator_of(rng).standard_normal(shape, _drawn(dtype))
    values *= std
    values += mean
    return values


def _fans(tensor: Any, what: str) -> tuple[int, int]:
    """The number of inputs of each output, and of outputs of each input."""
    shape, _ = _checked(tensor, what)
    if len(shape) < 2:
        raise ValueError(
            f"{what} takes a weight with at least 2 axes, for outputs and inputs, not of shape {shape}; "
            f"for a bias, use zeros_, constant_ or uniform_{at_line(user_line())}"
        )
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str, what: str) -> float:
    fan_in, fan_out = _fans(tensor, what)
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode of {what} must be 'fan_in' or 'fan_out', not {mode!r}{at_line(user_line())}")
    fan = fan_in if mode == "fan_in" else fan_out
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    raise _missing("nn.init", name)
