"""Hypergeometric functions in their argument, and the function of Lambert.

The derivative of a hypergeometric function is one whose parameters are larger by 1 (DLMF 13.3.15, 13.3.22, 15.5.1,
16.3.1).  In the parameters there is no such formula.
"""

from __future__ import annotations

from typing import Any

from ..elementwise import div, exp, mul, neg
from .arithmetic import over, plus
from .bessel import in_order, like
from .family import Special


def _lambertw(k: Any, tol: Any, z: Any) -> Any:
    import scipy.special

    # The function is scipy.special.lambertw(z, k, tol), and tol is a number for SciPy.
    return scipy.special.lambertw(z, k, tol)


hyp0f1 = Special(
    "hyp0f1",
    lambda y, v, z: [in_order("hyp0f1"), lambda t: mul(t, over(hyp0f1(plus(v, 1), z), like(v, z)))],
    orders=1,
)
hyp1f1 = Special(
    "hyp1f1",
    lambda y, a, b, z: [
        in_order("hyp1f1", "a"),
        in_order("hyp1f1", "b"),
        lambda t: mul(t, mul(like(div(a, b), z), hyp1f1(plus(a, 1), plus(b, 1), z))),
    ],
    orders=2,
)
hyp2f1 = Special(
    "hyp2f1",
    lambda y, a, b, c, z: [
        in_order("hyp2f1", "a"),
        in_order("hyp2f1", "b"),
        in_order("hyp2f1", "c"),
        lambda t: mul(t, mul(like(div(mul(a, b), c), z), hyp2f1(plus(a, 1), plus(b, 1), plus(c, 1), z))),
    ],
    orders=3,
)
hyperu = Special(
    "hyperu",
    lambda y, a, b, x: [
        in_order("hyperu", "a"),
        in_order("hyperu", "b"),
        lambda t: neg(mul(t, mul(like(a, x), hyperu(plus(a, 1), plus(b, 1), x)))),
    ],
    orders=2,
)

# W exp(W) = z; the form with W / z is not finite at 0.
lambertw = Special(
    "lambertw",
    lambda w, k, tol, z: [None, None, lambda t: mul(t, div(exp(neg(w)), plus(w, 1)))],
    numpy=_lambertw,
    orders=2,
)
wrightomega = Special("wrightomega", lambda w, z: [lambda t: mul(t, div(w, plus(w, 1)))])
