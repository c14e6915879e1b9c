"""Bessel, Airy, Kelvin and Struve functions, differentiable in their argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, broadcast_shapes, cast, operand
from ...ops import elementwise as e
from ...ops.special import airy as _airy
from ...ops.special import bessel as _bessel
from ...ops.special import struve as _struve
from .entry import ufunc

__all__ = [
    "airy", "airye", "bei", "beip", "ber", "berp", "besselpoly", "h1vp", "h2vp", "hankel1", "hankel1e", "hankel2",
    "hankel2e", "i0", "i0e", "i1", "i1e", "it2i0k0", "it2j0y0", "it2struve0", "itairy", "iti0k0", "itj0y0",
    "itmodstruve0", "itstruve0", "iv", "ive", "ivp", "j0", "j1", "jn", "jv", "jve", "jvp", "k0", "k0e", "k1",
    "k1e", "kei", "keip", "kelvin", "ker", "kerp", "kn", "kv", "kve", "kvp", "log_wright_bessel", "modstruve",
    "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn", "struve", "wright_bessel", "y0", "y1", "yn",
    "yv", "yve", "yvp",
]  # fmt: skip

j0 = ufunc("j0", _bessel.j0)
j1 = ufunc("j1", _bessel.j1)
y0 = ufunc("y0", _bessel.y0)
y1 = ufunc("y1", _bessel.y1)
i0 = ufunc("i0", _bessel.i0)
i0e = ufunc("i0e", _bessel.i0e)
i1 = ufunc("i1", _bessel.i1)
i1e = ufunc("i1e", _bessel.i1e)
k0 = ufunc("k0", _bessel.k0)
k0e = ufunc("k0e", _bessel.k0e)
k1 = ufunc("k1", _bessel.k1)
k1e = ufunc("k1e", _bessel.k1e)
jv = jn = ufunc("jv", _bessel.jv)
jve = ufunc("jve", _bessel.jve)
yn = ufunc("yn", _bessel.yn)
yv = ufunc("yv", _bessel.yv)
yve = ufunc("yve", _bessel.yve)
iv = ufunc("iv", _bessel.iv)
ive = ufunc("ive", _bessel.ive)
kn = ufunc("kn", _bessel.kn)
kv = ufunc("kv", _bessel.kv)
kve = ufunc("kve", _bessel.kve)
hankel1 = ufunc("hankel1", _bessel.hankel1)
hankel1e = ufunc("hankel1e", _bessel.hankel1e)
hankel2 = ufunc("hankel2", _bessel.hankel2)
hankel2e = ufunc("hankel2e", _bessel.hankel2e)
wright_bessel = ufunc("wright_bessel", _bessel.wright_bessel)
log_wright_bessel = ufunc("log_wright_bessel", _bessel.log_wright_bessel)
besselpoly = ufunc("besselpoly", lambda a, lmb, nu: _bessel.besselpoly(lmb, nu, a))

struve = ufunc("struve", _struve.struve)
modstruve = ufunc("modstruve", _struve.modstruve)
itj0y0 = ufunc("itj0y0", _struve.itj0y0)
iti0k0 = ufunc("iti0k0", _struve.iti0k0)
it2j0y0 = ufunc("it2j0y0", _struve.it2j0y0)
it2i0k0 = ufunc("it2i0k0", _struve.it2i0k0)
itstruve0 = ufunc("itstruve0", _struve.itstruve0)
it2struve0 = ufunc("it2struve0", _struve.it2struve0)
itmodstruve0 = ufunc("itmodstruve0", _struve.itmodstruve0)

airy = ufunc("airy", _airy.airy)
airye = ufunc("airye", _airy.airye)
itairy = ufunc("itairy", _airy.itairy)
ber = ufunc("ber", _airy.ber)
bei = ufunc("bei", _airy.bei)
ker = ufunc("ker", _airy.ker)
kei = ufunc("kei", _airy.kei)
berp = ufunc("berp", _airy.berp)
beip = ufunc("beip", _airy.beip)
kerp = ufunc("kerp", _airy.kerp)
keip = ufunc("keip", _airy.keip)


def _kelvin(x: Any) -> list[Any]:
    pairs = (("ber", "bei"), ("ker", "kei"), ("berp", "beip"), ("kerp", "keip"))
    return [e.complex_(getattr(_airy, real)(x), getattr(_airy, imag)(x)) for real, imag in pairs]


kelvin = ufunc("kelvin", _kelvin)


# Functions of Python, which NumPy's protocols do not carry


def double(order: Any, z: Any) -> tuple[Any, Any]:
    """An order and an argument of one shape, the latter in double precision, in which SciPy computes here."""
    order, z = asarray(order), asarray(z)
    shape = broadcast_shapes("the function", order, z)
    dtype = np.dtype(np.complex128 if z.dtype.kind == "c" else np.float64)
    return operand(order, order.dtype, shape), operand(z, dtype, shape)


def _spherical(name: str) -> Callable[..., Any]:
    primitive = getattr(_bessel, name)

    def call(n: Any, z: Any, derivative: bool = False) -> Any:
        n, z = asarray(n), asarray(z)
        if n.dtype.kind not in "biu":
            raise TypeError(f"{name} takes integer orders, not {n.type}{at_line(user_line())}")
        n, z = double(n, z)
        n = cast(n, np.dtype(np.int64))
        return _bessel.spherical_slope(name, n, z) if derivative else primitive(n, z)

    call.__name__ = name
    call.__doc__ = f"`scipy.special.{name}` on arrays and on traced values."
    return implements(getattr(scipy.special, name))(call)


spherical_jn = _spherical("spherical_jn")
spherical_yn = _spherical("spherical_yn")
spherical_in = _spherical("spherical_in")
spherical_kn = _spherical("spherical_kn")


def _derivatives(name: str, function: Any, alternates: bool, front: int = 1) -> Callable[..., Any]:
    """The n-th derivative of a Bessel function, DLMF 10.6.7 and 10.29.5; `front` is its sign to the power of n."""

    def call(v: Any, z: Any, n: int = 1) -> Any:
        if not is_plain(n, int | np.integer) or n < 0:
            raise ValueError(f"{name} takes a number of derivatives n >= 0, not {n!r}{at_line(user_line())}")
        total: Any = 0.0
        for k in range(n + 1):
            sign = front**n * (-1 if alternates and k % 2 else 1)
            total = total + sign * math.comb(n, k) / 2.0**n * function(np.add(v, 2.0 * k - n), z)
        return total

    call.__name__ = name
    call.__doc__ = f"`scipy.special.{name}` on arrays and on traced values."
    return implements(getattr(scipy.special, name))(call)


jvp = _derivatives("jvp", jv, True)
yvp = _derivatives("yvp", yv, True)
ivp = _derivatives("ivp", iv, False)
kvp = _derivatives("kvp", kv, False, -1)
h1vp = _derivatives("h1vp", hankel1, True)
h2vp = _derivatives("h2vp", hankel2, True)
