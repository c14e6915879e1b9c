"""The error function and its kin, and exponential integrals."""

from __future__ import annotations

from ...ops.special import errors as _errors
from ...ops.special import exponential as _exponential
from ...ops.special import faddeeva as _faddeeva
from .entry import ufunc

dawsn = ufunc("dawsn", _faddeeva.dawsn)
erf = ufunc("erf", _errors.erf)
erfc = ufunc("erfc", _errors.erfc)
erfcinv = ufunc("erfcinv", _errors.erfc_inv)
erfcx = ufunc("erfcx", _faddeeva.erfcx)
erfi = ufunc("erfi", _errors.erfi)
erfinv = ufunc("erfinv", _errors.erf_inv)
exp1 = ufunc("exp1", _exponential.exp1)
expi = ufunc("expi", _exponential.expi)
expn = ufunc("expn", _exponential.expn)
exprel = ufunc("exprel", _exponential.exprel)
fresnel = ufunc("fresnel", _errors.fresnel)
log_ndtr = ufunc("log_ndtr", _errors.log_ndtr)
modfresnelm = ufunc("modfresnelm", _faddeeva.modfresnelm)
modfresnelp = ufunc("modfresnelp", _faddeeva.modfresnelp)
ndtr = ufunc("ndtr", _errors.ndtr)
ndtri = ufunc("ndtri", _errors.ndtri)
ndtri_exp = ufunc("ndtri_exp", _errors.ndtri_exp)
shichi = ufunc("shichi", _exponential.shichi)
sici = ufunc("sici", _exponential.sici)
spence = ufunc("spence", _exponential.spence)
voigt_profile = ufunc("voigt_profile", _faddeeva.voigt_profile)
wofz = ufunc("wofz", _faddeeva.wofz)

__all__ = [
    "dawsn",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfi",
    "erfinv",
    "exp1",
    "expi",
    "expn",
    "exprel",
    "fresnel",
    "log_ndtr",
    "modfresnelm",
    "modfresnelp",
    "ndtr",
    "ndtri",
    "ndtri_exp",
    "shichi",
    "sici",
    "spence",
    "voigt_profile",
    "wofz",
]
