"""Dropout: elements or channels are set to zero at random in training, and the others scaled to preserve the mean.

The same key drops the same elements in eager code, compiled code and each lane of `vmap`.  Reverse mode keeps one byte
for each random decision.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...core.types import Shape
from ..random import bernoulli, key_of
from .arguments import array, described, shape_of
from .entry import functional

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

# What the activation selu approaches at minus infinity: the product of its two constants, with a sign.
_LEAST_SELU = -1.7580993408473766


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, rng: Any = None) -> Any:
    """In training, set elements to zero with probability `p`, and scale the others by `1 / (1 - p)`.

    Args:
        input: array.
        p: probability of an element to be zeroed.
        training: whether to drop elements; else the result is `input`.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
        rng: source of random numbers: a key (`ftrans.nn.random.key(0)`), or an object with a method `next_key()`, such
            as an `nn.RngState`.  It may be left out where nothing is transformed or compiled: then the generator that
            `nn.manual_seed` seeds gives a key.

    Returns:
        An array of the same shape.

    Raises:
        ValueError: `p` is not between 0 and 1.
        TypeError: `rng` is missing where a function is transformed or compiled.

    Example:
        >>> import ftrans.nn.functional as F
        >>> from ftrans.nn import random
        >>> F.dropout(np.ones(4), 0.5, rng=random.key(0))
        array([2., 2., 0., 0.])
    """
    return _dropped("dropout", input, p, training, rng, shape_of)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, rng: Any = None) -> Any:
    """`dropout` of whole channels of arrays of shape (N, C, L) or (C, L); arguments as for `dropout`."""
    return _dropped("dropout1d", input, p, training, rng, lambda x: _channels("dropout1d", x, {2: 1, 3: 2}))


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, rng: Any = None) -> Any:
    """`dropout` of whole channels of arrays of shape (N, C, H, W) or (N, C, L); arguments as for `dropout`."""
    return _dropped("dropout2d", input, p, training, rng, lambda x: _channels("dropout2d", x, {3: 2, 4: 2}))


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, rng: Any = None) -> Any:
    """`dropout` of whole channels of arrays of shape (N, C, D, H, W) or (C, D, H, W); arguments as for `dropout`."""
    return _dropped("dropout3d", input, p, training, rng, lambda x: _channels("dropout3d", x, {4: 1, 5: 2}))


def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False, *, rng: Any = None) -> Any:
    """Dropout for networks with `selu`, which preserves mean 0 and variance 1 (Klambauer et al., 2017).

    Elements are replaced by the lower limit of selu with probability `p`; then all are scaled and shifted.

    Args:
        input: array.
        p: probability of an element to be replaced.
        training: whether to drop elements; else the result is `input`.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
        rng: source of random numbers, as for `dropout`.

    Returns:
        An array of the same shape.

    Raises:
        ValueError: `p` is not between 0 and 1.
        TypeError: `rng` is missing where a function is transformed or compiled.
    """
    return _dropped("alpha_dropout", input, p, training, rng, shape_of, keeps_variance=True)


def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False, *, rng: Any = None
) -> Any:
    """`alpha_dropout` of whole channels of arrays of shape (N, C, ...); arguments as for `alpha_dropout`."""

    def shape(x: Any) -> Shape:
        return _channels("feature_alpha_dropout", x, dict.fromkeys(range(2, 33), 2))

    return _dropped("feature_alpha_dropout", input, p, training, rng, shape, keeps_variance=True)


def _dropped(
    what: str, input: Any, p: float, training: bool, rng: Any, decisions: Any, keeps_variance: bool = False
) -> Any:
    """The result of one kind of dropout; `decisions(input)` is the shape of its random decisions."""
    if not is_plain(p, int | float | np.number):
        raise TypeError(
            f"p of {what} must be a number, not {described(p)}; if it is traced, write "
            f"np.where(nn.random.bernoulli(key, 1 - p, x.shape), x / (1 - p), 0){at_line(user_line())}"
        )
    if not 0 <= p <= 1:
        raise ValueError(f"p={p} of {what} must be a probability, from 0 to 1{at_line(user_line())}")
    random = training and p > 0
    # A stream of keys is a cell itself, and would be read like one by the function below.
    return _apply(what, input, float(p), key_of(rng, what, [input]) if random else None, decisions, keeps_variance)


@functional
def _apply(what: str, input: Any, p: float, key: Any, decisions: Any, keeps_variance: bool) -> Any:
    x = array(input)
    shape = decisions(x)
    if key is None:
        return input
    if x.dtype.kind in "biuc":
        raise TypeError(f"{what} takes real floating-point numbers, not {described(x)}{at_line(user_line())}")
    if p == 1:
        return np.zeros_like(x)
    kept = bernoulli(key, 1 - p, shape)
    if not keeps_variance:
        return np.where(kept, x * (1 / (1 - p)), 0.0)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _LEAST_SELU**2))
    shift = -scale * p * _LEAST_SELU
    return np.where(kept, x * scale + shift, scale * _LEAST_SELU + shift)


def _channels(what: str, x: Any, leading: dict[int, int]) -> Shape:
    """The shape of decisions for whole channels; `leading` maps numbers of axes to numbers of leading axes."""
    shape = shape_of(x)
    if len(shape) not in leading:
        counts = " or ".join(map(str, leading)) if len(leading) < 3 else f"at least {min(leading)}"
        raise ValueError(
            f"{what} drops channels of arrays with {counts} axes, not of {described(x)}; F.dropout drops elements of "
            f"any array{at_line(user_line())}"
        )
    count = leading[len(shape)]
    return shape[:count] + (1,) * (len(shape) - count)
