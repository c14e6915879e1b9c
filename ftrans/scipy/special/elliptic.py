"""Elliptic integrals and functions."""

from ...ops.special import elliptic as _elliptic
from .entry import ufunc as _ufunc

ellipk = _ufunc("ellipk", _elliptic.ellipk)
ellipkm1 = _ufunc("ellipkm1", _elliptic.ellipkm1)
ellipe = _ufunc("ellipe", _elliptic.ellipe)
ellipkinc = _ufunc("ellipkinc", _elliptic.ellipkinc)
ellipeinc = _ufunc("ellipeinc", _elliptic.ellipeinc)
ellipj = _ufunc("ellipj", _elliptic.ellipj)
elliprc = _ufunc("elliprc", _elliptic.elliprc)
elliprd = _ufunc("elliprd", _elliptic.elliprd)
elliprf = _ufunc("elliprf", _elliptic.elliprf)
elliprg = _ufunc("elliprg", _elliptic.elliprg)
elliprj = _ufunc("elliprj", _elliptic.elliprj)
agm = _ufunc("agm", _elliptic.agm)
