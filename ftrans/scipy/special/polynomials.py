"""Orthogonal polynomials, Legendre functions and spherical harmonics, differentiable in their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, broadcast_shapes, cast, operand
from ...ops import elementwise as e
from ...ops.special import legendre as _legendre
from ...ops.special import polynomials as _polynomials
from .entry import ufunc
from .gamma import gammaln

__all__ = [
    "assoc_laguerre", "eval_chebyc", "eval_chebys", "eval_chebyt", "eval_chebyu", "eval_gegenbauer",
    "eval_genlaguerre", "eval_hermite", "eval_hermitenorm", "eval_jacobi", "eval_laguerre", "eval_legendre",
    "eval_sh_chebyt", "eval_sh_chebyu", "eval_sh_jacobi", "eval_sh_legendre", "lpmv",
]  # fmt: skip

eval_chebyc = ufunc("eval_chebyc", _polynomials.eval_chebyc)
eval_chebys = ufunc("eval_chebys", _polynomials.eval_chebys)
eval_chebyt = ufunc("eval_chebyt", _polynomials.eval_chebyt)
eval_chebyu = ufunc("eval_chebyu", _polynomials.eval_chebyu)
eval_gegenbauer = ufunc("eval_gegenbauer", _polynomials.eval_gegenbauer)
eval_genlaguerre = ufunc("eval_genlaguerre", _polynomials.eval_genlaguerre)
eval_hermite = ufunc("eval_hermite", _polynomials.eval_hermite)
eval_hermitenorm = ufunc("eval_hermitenorm", _polynomials.eval_hermitenorm)
eval_jacobi = ufunc("eval_jacobi", _polynomials.eval_jacobi)
eval_laguerre = ufunc("eval_laguerre", _polynomials.eval_laguerre)
eval_legendre = ufunc("eval_legendre", _polynomials.eval_legendre)
eval_sh_chebyt = ufunc("eval_sh_chebyt", _polynomials.eval_sh_chebyt)
eval_sh_chebyu = ufunc("eval_sh_chebyu", _polynomials.eval_sh_chebyu)
eval_sh_jacobi = ufunc("eval_sh_jacobi", _polynomials.eval_sh_jacobi)
eval_sh_legendre = ufunc("eval_sh_legendre", _polynomials.eval_sh_legendre)
lpmv = ufunc("lpmv", _legendre.lpmv)


@implements(scipy.special.assoc_laguerre)
def assoc_laguerre(x: Any, n: Any, k: Any = 0.0) -> Any:
    """`scipy.special.assoc_laguerre` on arrays and on traced values."""
    return eval_genlaguerre(n, k, x)


# Functions that SciPy has from 1.15 on, which compute in double precision. In their results the derivatives up to the
# order `diff_n` stand along a leading axis.


def _degrees(name: str, z: Any, *degrees: Any) -> list[Any]:
    """The argument and whole degrees and orders, in one shape and in the dtypes in which SciPy computes."""
    z, orders = asarray(z), [asarray(n) for n in degrees]
    for n in orders:
        if n.dtype.kind not in "biu":
            raise TypeError(f"{name} takes integer degrees and orders, not {n.type}{at_line(user_line())}")
    shape = broadcast_shapes(name, z, *orders)
    dtype = np.dtype(np.complex128 if z.dtype.kind == "c" else np.float64)
    return [operand(z, dtype, shape), *(operand(n, np.dtype(np.int64), shape) for n in orders)]


def _without_derivatives(name: str, diff_n: Any) -> None:
    if diff_n != 0:
        raise MissingRule(
            f"{name} on traced values does not take diff_n={diff_n}: leave it out, and differentiate with ftrans.grad,"
            f" ftrans.jvp or ftrans.jacobian{at_line(user_line())}"
        )


def _legendre_p(n: Any, z: Any, *, diff_n: int = 0) -> Any:
    """`scipy.special.legendre_p` on arrays and on traced values."""
    _without_derivatives("legendre_p", diff_n)
    z, n = _degrees("legendre_p", z, n)
    return _polynomials.eval_legendre(n, z)[np.newaxis]


def _assoc_legendre_p(n: Any, m: Any, z: Any, *, branch_cut: int = 2, norm: bool = False, diff_n: int = 0) -> Any:
    """`scipy.special.assoc_legendre_p` on arrays and on traced values: of real arguments between -1 and 1."""
    _without_derivatives("assoc_legendre_p", diff_n)
    z, n, m = _degrees("assoc_legendre_p", z, n, m)
    if z.dtype.kind == "c" or branch_cut != 2:
        raise MissingRule(
            "assoc_legendre_p on traced values takes real z and branch_cut=2 only; beyond, write"
            f" (1 - z**2)**(m / 2) times a derivative of eval_legendre{at_line(user_line())}"
        )
    n, m = cast(n, z.dtype), cast(m, z.dtype)
    value = _legendre.lpmv(m, n, z)[np.newaxis]
    if not norm:
        return value
    # Where abs(m) > n the function is 0.
    m = np.where(abs(m) <= n, m, 0.0)
    return np.sqrt(n + 0.5) * np.exp((gammaln(n - m + 1) - gammaln(n + m + 1)) / 2) * value


def _sph_legendre_p(n: Any, m: Any, theta: Any, *, diff_n: int = 0) -> Any:
    """`scipy.special.sph_legendre_p` on arrays and on traced values."""
    _without_derivatives("sph_legendre_p", diff_n)
    theta, n, m = _degrees("sph_legendre_p", theta, n, m)
    return _legendre.sph_legendre_p(n, m, theta)[np.newaxis]


def _harmonic(name: str, n: Any, m: Any, theta: Any, phi: Any) -> Any:
    """The function of degree n and order m at the polar angle `theta` and the azimuth `phi`."""
    theta, phi = np.broadcast_arrays(asarray(theta), asarray(phi))
    theta, n, m = _degrees(name, theta, n, m)
    turn = cast(m, theta.dtype) * phi
    size = _legendre.sph_legendre_p(n, m, theta)
    return e.complex_(size * np.cos(turn), size * np.sin(turn))


def _sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
    """`scipy.special.sph_harm_y` on arrays and on traced values."""
    _without_derivatives("sph_harm_y", diff_n)
    return _harmonic("sph_harm_y", n, m, theta, phi)


def _sph_harm(m: Any, n: Any, theta: Any, phi: Any) -> Any:
    """`scipy.special.sph_harm`, the form with the azimuth first that SciPy has had up to 1.16."""
    return _harmonic("sph_harm", n, m, phi, theta)


_FOUND = {
    name: implements(getattr(scipy.special, name))(form)
    for name, form in (
        ("legendre_p", _legendre_p),
        ("assoc_legendre_p", _assoc_legendre_p),
        ("sph_legendre_p", _sph_legendre_p),
        ("sph_harm_y", _sph_harm_y),
        ("sph_harm", _sph_harm),
    )
    if hasattr(scipy.special, name)
}
globals().update(_FOUND)
__all__ += _FOUND
