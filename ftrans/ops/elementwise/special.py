"""The error function and its kin, with the meaning of `scipy.special`, which is imported when one is first computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.trace import Tracer
from ..shapes import full_like
from .family import is_real, mul, neg, unary
from .functions import exp

_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)


def _of_scipy(name: str) -> Callable[..., Any]:
    """A function of `scipy.special` that is looked up when it is called; SciPy knows no numbers of 16 bits."""

    def call(x: Any) -> Any:
        import scipy.special

        function = getattr(scipy.special, name)
        return function(x) if x.dtype.itemsize > 2 else function(x.astype(np.float32)).astype(x.dtype)[()]

    return call


def _bell(x: Tracer) -> Tracer:
    """`2 / sqrt(pi) * exp(-x**2)`, the derivative of erf."""
    return mul(exp(neg(mul(x, x))), full_like(x, _TWO_BY_ROOT_PI))  # type: ignore[no-any-return]


erf = unary("erf", _of_scipy("erf"), "erf", lambda y, x, t: mul(t, _bell(x)), accepts=is_real)
erfc = unary("erfc", _of_scipy("erfc"), "erfc", lambda y, x, t: neg(mul(t, _bell(x))), accepts=is_real)
erf_inv = unary(
    "erf_inv",
    _of_scipy("erfinv"),
    "erf_inv",
    # In terms of the result, which loses no digits near -1 and 1.
    lambda y, x, t: mul(t, mul(exp(mul(y, y)), full_like(y, 1 / _TWO_BY_ROOT_PI))),
    accepts=is_real,
)
