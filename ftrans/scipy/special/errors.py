"""The error function and related functions, and exponential integrals."""

from ...ops.special import errors as _errors
from ...ops.special import exponential as _exponential
from ...ops.special import faddeeva as _faddeeva
from .entry import ufunc as _ufunc

dawsn = _ufunc("dawsn", _faddeeva.dawsn)
erf = _ufunc("erf", _errors.erf)
erfc = _ufunc("erfc", _errors.erfc)
erfcinv = _ufunc("erfcinv", _errors.erfc_inv)
erfcx = _ufunc("erfcx", _faddeeva.erfcx)
erfi = _ufunc("erfi", _errors.erfi)
erfinv = _ufunc("erfinv", _errors.erf_inv)
exp1 = _ufunc("exp1", _exponential.exp1)
expi = _ufunc("expi", _exponential.expi)
expn = _ufunc("expn", _exponential.expn)
exprel = _ufunc("exprel", _exponential.exprel)
fresnel = _ufunc("fresnel", _errors.fresnel)
log_ndtr = _ufunc("log_ndtr", _errors.log_ndtr)
modfresnelm = _ufunc("modfresnelm", _faddeeva.modfresnelm)
modfresnelp = _ufunc("modfresnelp", _faddeeva.modfresnelp)
ndtr = _ufunc("ndtr", _errors.ndtr)
ndtri = _ufunc("ndtri", _errors.ndtri)
ndtri_exp = _ufunc("ndtri_exp", _errors.ndtri_exp)
shichi = _ufunc("shichi", _exponential.shichi)
sici = _ufunc("sici", _exponential.sici)
spence = _ufunc("spence", _exponential.spence)
voigt_profile = _ufunc("voigt_profile", _faddeeva.voigt_profile)
wofz = _ufunc("wofz", _faddeeva.wofz)
