"""The gamma and beta functions, their logarithms and derivatives, binomial coefficients, zeta functions.

At poles derivatives are infinite or NaN, as the values are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import is_complex
from ...numpy.delivery import deliver
from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, broadcast_shapes, cast, operand, promote
from ...ops.special import gamma as _gamma
from ...ops.special import incomplete as _incomplete
from ...ops.special import zeta as _zeta
from .entry import ufunc

__all__ = [
    "beta", "betainc", "betaincc", "betainccinv", "betaincinv", "betaln", "binom", "comb", "digamma", "factorial",
    "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammaln", "gammasgn", "loggamma",
    "multigammaln", "perm", "poch", "polygamma", "psi", "rgamma", "zeta", "zetac",
]  # fmt: skip

gamma = ufunc("gamma", _gamma.gamma)
gammaln = ufunc("gammaln", _gamma.gammaln)
loggamma = ufunc("loggamma", _gamma.loggamma)
rgamma = ufunc("rgamma", _gamma.rgamma)
gammasgn = ufunc("gammasgn", _gamma.gammasgn, constant=True)
psi = digamma = ufunc("psi", _gamma.psi)
poch = ufunc("poch", _gamma.poch)
binom = ufunc("binom", _gamma.binom)
beta = ufunc("beta", _gamma.beta)
betaln = ufunc("betaln", _gamma.betaln)
zetac = ufunc("zetac", _zeta.zetac)

gammainc = ufunc("gammainc", _incomplete.gammainc)
gammaincc = ufunc("gammaincc", _incomplete.gammaincc)
gammaincinv = ufunc("gammaincinv", _incomplete.gammaincinv)
gammainccinv = ufunc("gammainccinv", _incomplete.gammainccinv)
betainc = ufunc("betainc", _incomplete.betainc)
betaincc = ufunc("betaincc", _incomplete.betaincc)
betaincinv = ufunc("betaincinv", _incomplete.betaincinv)
betainccinv = ufunc("betainccinv", _incomplete.betainccinv)


def _floating(x: Any) -> Any:
    """`x` with floating-point numbers, as SciPy's ufuncs convert integers."""
    x = asarray(x)
    if x.dtype.kind in "biu":
        return cast(x, np.dtype(np.float64))
    return cast(x, np.dtype(np.float32)) if x.dtype.itemsize == 2 else x


@implements(scipy.special.polygamma)
def polygamma(n: Any, x: Any) -> Any:
    """The `n`-th derivative of psi, in float64.  It is differentiable in `x`."""
    n, x = asarray(n), _floating(x)
    shape = broadcast_shapes("polygamma", n, x)
    double = np.dtype(np.float64)
    return _gamma.polygamma(operand(n, double, shape), operand(x, double, shape))


@implements(scipy.special.zeta)
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """The Riemann zeta function, or the Hurwitz zeta function if `q` is given; differentiable in both arguments.

    The derivative in `x` is the formula of Euler and Maclaurin, DLMF 25.11.7, term by term.
    """
    if q is None:
        return deliver(_zeta.riemann_zeta(_floating(x)), out, "zeta")
    x, q = promote("zeta", _floating(x), _floating(q))
    return deliver(_zeta.zeta(x, q), out, "zeta")


@implements(scipy.special.multigammaln)
def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the multivariate gamma function of dimension `d`; NaN where `a` is not above (d - 1) / 2."""
    if isinstance(d, Tracer) or np.ndim(d) != 0 or math.floor(d) != d:
        raise ValueError(f"d should be a positive integer (dimension), not {d}{at_line(user_line())}")
    d, a = int(d), asarray(a)
    terms = sum(gammaln(a - j / 2) for j in range(d)) + np.float64(d * (d - 1) / 4 * math.log(math.pi))
    return np.where(a > 0.5 * (d - 1), terms, math.nan)


def _refuse_exact(name: str, exact: Any) -> None:
    if exact:
        raise TypeError(
            f"{name}(exact=True) computes with Python's integers, which a traced value does not have; leave exact out"
            + at_line(user_line())
        )


@implements(scipy.special.factorial)
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """gamma(n + 1); 0 for negative `n`, unless `extend` is "complex"."""
    _refuse_exact("factorial", exact)
    n = asarray(n)
    if extend not in ("zero", "complex"):
        raise ValueError(f"extend must be 'zero' or 'complex', not {extend!r}{at_line(user_line())}")
    if extend == "complex":
        return gamma(n + 1)
    if is_complex(n.dtype):
        raise ValueError(f"factorial of complex numbers needs extend='complex'{at_line(user_line())}")
    found: Any = np.where(n < 0, 0.0, gamma(np.where(n < 0, 0, n) + 1))
    return found if n.weak else cast(found, np.dtype(np.float64))


@implements(scipy.special.comb)
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """Number of combinations of `N` things taken `k` at a time; 0 outside of 0 <= k <= N."""
    _refuse_exact("comb", exact)
    N, k = asarray(N), asarray(k)
    if repetition:
        return np.where((k == 0) & (N >= 0), 1.0, binom(N + k - 1, k))
    return np.where((k <= N) & (N >= 0) & (k >= 0), binom(N, k), 0.0)


@implements(scipy.special.perm)
def perm(N: Any, k: Any, exact: bool = False) -> Any:
    """Number of permutations of `N` things taken `k` at a time; 0 outside of 0 <= k <= N."""
    _refuse_exact("perm", exact)
    N, k = asarray(N), asarray(k)
    return np.where((k <= N) & (N >= 0) & (k >= 0), poch(N - k + 1, k), 0.0)
