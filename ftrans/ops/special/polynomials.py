"""Orthogonal polynomials in their argument.

The derivative of a polynomial is one of degree n - 1 whose parameters are larger (DLMF 18.9.15 to 18.9.27); this holds
for real degrees too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..elementwise import eq, lt, mul, neg, select
from ..literals import full, full_like
from .arithmetic import minus, plus, times
from .bessel import in_order, like
from .family import Special


def _polynomial(name: str, derivative: Callable[..., Any], parameters: str = "") -> Special:
    """A polynomial in x; `derivative(n, *parameters, x)` is the derivative, where the degree `n` is not 0."""
    names = ("n", *parameters.split())

    def partials(y: Any, *operands: Any) -> list[Any]:
        n, x = operands[0], operands[-1]

        def along_x(t: Any) -> Any:
            is_constant = eq(n, full_like(n, 0))
            # SciPy has polynomials of degree -1 for some families only.
            degree = select(is_constant, full_like(n, 1), n)
            slope = derivative(degree, *operands[1:])
            return mul(t, select(is_constant, full_like(x, 0), slope))

        return [*(in_order(name, argument) for argument in names), along_x]

    return Special(name, partials, orders=len(names))


def gegenbauer(n: Any, alpha: float, x: Any) -> Any:
    """A polynomial of Gegenbauer whose parameter is a number."""
    return eval_gegenbauer(n, full(x.shape, alpha, np.finfo(x.dtype).dtype), x)


def _shifted(x: Any) -> Any:
    return plus(times(2, x), -1)


def _half(n: Any, x: Any) -> Any:
    return times(0.5, like(n, x))


eval_jacobi = _polynomial(
    "eval_jacobi",
    lambda n, a, b, x: mul(
        plus(_half(n, x), times(0.5, plus(plus(like(a, x), like(b, x)), 1))),
        eval_jacobi(plus(n, -1), plus(a, 1), plus(b, 1), x),
    ),
    "alpha beta",
)
eval_sh_jacobi = _polynomial(
    "eval_sh_jacobi",
    lambda n, p, q, x: mul(like(n, x), eval_sh_jacobi(plus(n, -1), plus(p, 2), plus(q, 1), x)),
    "p q",
)
eval_gegenbauer = _polynomial(
    "eval_gegenbauer",
    lambda n, a, x: times(2, mul(like(a, x), eval_gegenbauer(plus(n, -1), plus(a, 1), x))),
    "alpha",
)


def _legendre_slope(n: Any, x: Any) -> Any:
    """Of the polynomial of degree n, which is that of degree -n - 1 too."""
    is_negative = lt(n, full_like(n, 0))
    return gegenbauer(select(is_negative, minus(-2, n), plus(n, -1)), 1.5, x)


def _chebyshev_slope(n: Any, x: Any) -> Any:
    """Of the second kind, where that of degree n is minus that of degree -n - 2."""
    is_negative = lt(n, full_like(n, -1))
    slope = times(2, gegenbauer(select(is_negative, minus(-3, n), plus(n, -1)), 2.0, x))
    return select(is_negative, neg(slope), slope)


eval_legendre = _polynomial("eval_legendre", _legendre_slope)
eval_sh_legendre = _polynomial("eval_sh_legendre", lambda n, x: times(2, _legendre_slope(n, _shifted(x))))
eval_chebyt = _polynomial("eval_chebyt", lambda n, x: mul(like(n, x), eval_chebyu(plus(n, -1), x)))
eval_chebyu = _polynomial("eval_chebyu", _chebyshev_slope)
eval_chebyc = _polynomial("eval_chebyc", lambda n, x: mul(like(n, x), eval_chebys(plus(n, -1), x)))
eval_chebys = _polynomial("eval_chebys", lambda n, x: times(0.5, _chebyshev_slope(n, times(0.5, x))))
eval_sh_chebyt = _polynomial("eval_sh_chebyt", lambda n, x: times(2, mul(like(n, x), eval_sh_chebyu(plus(n, -1), x))))
eval_sh_chebyu = _polynomial("eval_sh_chebyu", lambda n, x: times(2, _chebyshev_slope(n, _shifted(x))))
eval_genlaguerre = _polynomial(
    "eval_genlaguerre", lambda n, a, x: neg(eval_genlaguerre(plus(n, -1), plus(a, 1), x)), "alpha"
)
eval_laguerre = _polynomial(
    "eval_laguerre",
    lambda n, x: neg(eval_genlaguerre(plus(n, -1), full(x.shape, 1.0, np.finfo(x.dtype).dtype), x)),
)
eval_hermite = _polynomial("eval_hermite", lambda n, x: times(2, mul(like(n, x), eval_hermite(plus(n, -1), x))))
eval_hermitenorm = _polynomial("eval_hermitenorm", lambda n, x: mul(like(n, x), eval_hermitenorm(plus(n, -1), x)))
